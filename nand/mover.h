/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Moves ranges of a file to and from memory while the caller goes on. Two kinds: io_uring, and
 * threads where the host forbids it. Knows files and bytes, nothing of flash.
 *
 * One thread at a time may use a mover.
 */
#ifndef MUNINN_NAND_MOVER_H
#define MUNINN_NAND_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* One range of the file. The mover holds it from `start` until `next` returns it. */
struct nand_transfer {
	uint64_t offset;
	uint64_t bytes;
	uint8_t *memory;
	bool write;
	int result; /* 0 or -errno, once it is finished: all bytes were moved, or the contents are
		       undefined */
	struct nand_transfer *following; /* the mover's */
};

struct nand_mover;

struct nand_mover_operations {
	/*
	 * Takes a transfer. At most `depth` may be held at a time. Need not begin before `flush` or
	 * a waiting `next`.
	 */
	void (*start)(struct nand_mover *mover, struct nand_transfer *transfer);
	void (*flush)(struct nand_mover *mover);
	/*
	 * A finished transfer; NULL: none is finished now. `wait`: until one is, at least one must
	 * be held.
	 */
	struct nand_transfer *(*next)(struct nand_mover *mover, bool wait);
	/* Nothing may be held any more. */
	void (*close)(struct nand_mover *mover);
};

/* First member of both kinds. */
struct nand_mover {
	const struct nand_mover_operations *operations;
};

struct nand_mover_options {
	int fd;
	uint32_t depth; /* transfers held at most; 1..4096 */
	void *memory;   /* where most transfers begin and end, to be made known to the kernel; NULL:
			   none */
	uint64_t memory_bytes;
	int event_fd; /* an eventfd(2) to be written to with each finished transfer; 0: none */
};

/* 0, -EPERM or -ENOSYS if this host forbids or lacks io_uring, -ENOMEM, -errno. */
int nand_uring_open(const struct nand_mover_options *options, struct nand_mover **mover);

/* At most 16 threads. 0 or -errno. */
int nand_io_threads_open(const struct nand_mover_options *options, struct nand_mover **mover);

/*
 * pread(2) or pwrite(2) of what is left of a transfer, of which `done` bytes have been moved. Goes
 * on after short results. 0 or -errno; -EIO at the end of the file.
 */
int nand_transfer_by_hand(int fd, const struct nand_transfer *transfer, uint64_t done);

#endif
