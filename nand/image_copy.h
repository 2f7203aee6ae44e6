/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Copies an image and its NVRAM file while they are in use, as they are at one instant: what a
 * process leaves that is killed then.
 *
 * At the instant only the NVRAM and the block table are copied, in memory. The blocks follow. A
 * program changes nothing that a block held at the instant, because its pages are programmed once.
 * An erase does. So an erase of a block that is still to be copied puts the block's pages into
 * memory first. That memory has a limit. Who erases waits when it is used up, for a limited time;
 * then the copy fails, and the device goes on.
 *
 * One thread makes all calls but those that say otherwise.
 */
#ifndef MUNINN_NAND_IMAGE_COPY_H
#define MUNINN_NAND_IMAGE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct nand;
struct nand_image_copy;

/* 0: the defaults. */
struct nand_image_copy_options {
	uint64_t kept_bytes; /* of blocks that are erased meanwhile; at least two blocks; 64 MiB */
	uint32_t wait_ms;    /* how long an erase waits for some of these; 1000 */
};

/*
 * Prepares a copy into two files, which are regular, empty, open for writing but not for appending,
 * and the caller's. The copy takes as much memory as the device has NVRAM until that is written,
 * and 10 bytes a block. One copy of a device at a time. -EOPNOTSUPP: the device is in memory and
 * has no image. -EINVAL: a file is none of these. -ENOMEM. With a sentence. `options` may be NULL.
 */
int nand_image_copy_open(struct nand *nand, int image_fd, int nvram_fd,
			 const struct nand_image_copy_options *options,
			 struct nand_image_copy **copy, struct error_text *error);

/* Where the NVRAM region is to be put at the instant, as many bytes as the device has. */
uint8_t *nand_image_copy_nvram(struct nand_image_copy *copy);

/*
 * The instant of the flash. What the NVRAM of the copy names must be programmed, and not be erased
 * until this returns. What it does not name may change meanwhile. Waits for erases; takes about a
 * millisecond for a million blocks.
 */
void nand_image_copy_begin(struct nand_image_copy *copy);

/*
 * Copies some MiB. 1: call it again. 0: both files are complete, and stable on their storage. Else
 * -errno with a sentence: the copy is worth nothing. -ETIMEDOUT: the files took too little for what
 * was erased meanwhile.
 */
int nand_image_copy_step(struct nand_image_copy *copy, struct error_text *error);

/* Waits for so long, or until somebody who erases wants a step. */
void nand_image_copy_pause(struct nand_image_copy *copy, uint32_t ms);

/* Bytes that are copied, of how many. Any thread, as long as the copy is open. */
void nand_image_copy_progress(struct nand_image_copy *copy, uint64_t *done, uint64_t *total);

/* Ends the copy, complete or not. The device must still be open. NULL: nothing happens. */
void nand_image_copy_close(struct nand_image_copy *copy);

/* ---- for nand.c ---- */

/* Before a block is erased, with nand->erasing shared: keeps what is still to be copied of it. */
void nand_image_copy_keep(struct nand_image_copy *copy, uint32_t block);

#endif
