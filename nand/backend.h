/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Where pages are kept. A back end moves whole pages and knows neither rules, nor checksums, nor
 * counters: nand.c does that in front of it, once for all of them.
 *
 * Results are 0 or -EIO, and of `prepare` and `write` -ENOSPC if the host's file system is full. A
 * back end logs the host's reason itself. The caller has checked page and block numbers. All
 * functions are thread-safe for different blocks; read may run beside anything.
 */
#ifndef MUNINN_NAND_BACKEND_H
#define MUNINN_NAND_BACKEND_H

#include <stdint.h>

#include "common/error.h"
#include "nand/mover.h"
#include "nand/nand.h"

/*
 * What the transfers of a file must begin and end at multiples of, in the file; powers of two, at
 * most NAND_BLOCK_ALIGNMENT. In memory they begin at multiples of that.
 */
struct nand_units {
	uint32_t read, write;
};

/*
 * Of a back end that moves pages while the caller goes on. Each page is where the layout of the
 * image says.
 */
struct nand_backend_async {
	/* A mover of the image file; `options` but for its descriptor. 0 or -errno. */
	int (*open_mover)(struct nand *nand, const struct nand_mover_options *options,
			  struct nand_mover **mover);

	struct nand_units (*units)(const struct nand *nand);

	/* Reads a range of the file, in units, and waits for it. 0 or -errno. */
	int (*fetch)(struct nand *nand, uint64_t offset, uint8_t *to, uint64_t bytes);
};

/* As many as a block has by default. */
#define NAND_RUN_PAGES 64

struct nand_backend {
	const char *name;

	/*
	 * Before every program: makes sure that the host has space for all of the block. Quick once
	 * it has.
	 */
	int (*prepare)(struct nand *nand, uint32_t block);

	/* `data` is page_bytes long, `spare` spare_bytes, reserved part included. */
	int (*write)(struct nand *nand, uint64_t page, const void *data, const void *spare);

	/*
	 * The same for up to NAND_RUN_PAGES pages of a block, each behind the one before. `pages`
	 * say which, and their data; `spares` has spare_bytes for each. *done: pages that are
	 * whole. NULL: page by page is as fast.
	 */
	int (*write_run)(struct nand *nand, const struct nand_page_io *pages, uint8_t *spares,
			 uint32_t count, uint32_t *done);

	/* As write; `data` may be NULL: not wanted. */
	int (*read)(struct nand *nand, uint64_t page, void *data, void *spare);

	/*
	 * As read, but does not wait. -EINPROGRESS: it would have to. NULL: it always would.
	 */
	int (*read_at_hand)(struct nand *nand, uint64_t page, void *data, void *spare);

	/* After an erase: the contents of the block are worthless. A hint; cannot fail. */
	void (*discard)(struct nand *nand, uint32_t block);

	/* Makes everything that was written before the call stable, the block table too. */
	int (*sync)(struct nand *nand);

	/* Frees what the back end holds. Does not sync. */
	void (*close)(struct nand *nand);

	/* NULL: page by page with `read` and `write`, as fast as any. */
	const struct nand_backend_async *async;
};

/*
 * The pages of the image file, or anonymous memory, mapped. Sets nand->backend; 0 or -errno with
 * `error`.
 */
int nand_mmap_open(struct nand *nand, struct error_text *error);

/*
 * The pages of the image file by direct I/O. As above; also -EPERM and -ENOSYS for want of
 * io_uring.
 */
int nand_file_open(struct nand *nand, enum nand_io_kind io, struct error_text *error);

/*
 * What cannot be regenerated of the pages, in memory. `codec` may be NULL. 0 or -ENOMEM with
 * `error`.
 */
int nand_headers_open(struct nand *nand, const struct nand_payload_codec *codec,
		      struct error_text *error);

#endif
