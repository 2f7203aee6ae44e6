/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where pages are kept. A back end moves whole pages and knows neither rules, nor checksums, nor counters: nand.c
 * does that in front of it, once for all of them.
 *
 * Results are 0 or -EIO; a back end logs the host's reason itself. The caller has checked page and block numbers.
 * All functions are thread-safe for different blocks; read may run beside anything.
 */
#ifndef MUNINN_NAND_BACKEND_H
#define MUNINN_NAND_BACKEND_H

#include <stdint.h>

#include "common/error.h"

struct nand;

struct nand_backend {
	const char *name;

	/* Before every program: makes sure that the host has room for all of the block. Quick once it has. */
	int (*prepare)(struct nand *nand, uint32_t block);

	/* `data` is page_bytes long, `spare` spare_bytes, reserved part included. */
	int (*write)(struct nand *nand, uint64_t page, const void *data, const void *spare);

	/* As write; `data` may be NULL: not wanted. */
	int (*read)(struct nand *nand, uint64_t page, void *data, void *spare);

	/* After an erase: the contents of the block are worthless. A hint; cannot fail. */
	void (*discard)(struct nand *nand, uint32_t block);

	/* Makes everything that was written before the call stable, the block table too. */
	int (*sync)(struct nand *nand);

	/* Frees what the back end holds. Does not sync. */
	void (*close)(struct nand *nand);
};

/* The pages of the image file, or anonymous memory, mapped. Sets nand->backend; 0 or -errno with `error`. */
int nand_mmap_open(struct nand *nand, struct error_text *error);

#endif
