/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Space of an image's blocks on the host's file system, and its way to the host's drive; for the
 * back ends on files.
 */
#ifndef MUNINN_NAND_SPACE_H
#define MUNINN_NAND_SPACE_H

#include "nand/private.h"

/*
 * What is stored to by mappings, the block table and the NVRAM, is written and read in pieces of
 * this size. The host keeps together in its memory what came in one piece, and writes all of that
 * back for one store.
 */
#define NAND_STORED_PIECE 4096

/* Writes all of it, at an offset of a file. 0 or -errno. */
int nand_write_all(int fd, const void *from, uint64_t bytes, uint64_t offset);
int nand_write_zeroes(int fd, uint64_t offset, uint64_t bytes);

/* Reads all of it. 0, or -errno; -EIO where the file ends before. */
int nand_read_all(int fd, void *to, uint64_t bytes, uint64_t offset);

/*
 * Gives the holes of `bytes` bytes of a file space by writing zeroes to them, so that no store into
 * its mapping can want some: a copy of the file may have got holes. 0 or -errno.
 */
int nand_space_fill_holes(int fd, uint64_t from, uint64_t bytes);

/* Warns if the file's file system has less left than it may come to need. */
void nand_space_warn(int fd, const char *path, uint64_t needed);

/* Is the file in the host's memory, and on no drive? */
bool nand_space_is_memory(int fd);

int nand_space_open(struct nand *nand, struct error_text *error);
void nand_space_close(struct nand *nand);

/* Cuts off what lies behind the image's end, the reserve too, which it then does without. */
int nand_space_cut(struct nand *nand);

/* As `prepare` of struct nand_backend; nothing to do without nand_space_open. */
int nand_space_take(struct nand *nand, uint32_t block);

/*
 * Is the block being filled for the first time since its space was taken? What the host has for it
 * may be pages of memory that nothing has been stored to.
 */
bool nand_space_is_fresh(const struct nand *nand, uint32_t block);

/*
 * Logs that the host could not write to a block, a full one once until it has space again. Returns
 * -ENOSPC for a full host, else -EIO.
 */
int nand_space_failed(struct nand *nand, uint32_t block, int result);

/* As `discard`: gives the space back, unless it is kept; then it is fresh no more. */
void nand_space_give(struct nand *nand, uint32_t block);

/* As `sync`. */
int nand_image_sync(struct nand *nand);

#endif
