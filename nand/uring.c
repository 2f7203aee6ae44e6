/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A mover on io_uring(7). The file and the caller's memory are registered, so that the kernel need
 * not look up the one and pin the other for each transfer. One system call hands over what was
 * started, and also waits.
 */
#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>

#include "nand/mover.h"

struct uring {
	struct nand_mover mover;
	struct io_uring ring;
	int fd;
	uint8_t *memory; /* registered; NULL: none */
	uint64_t memory_bytes;
	uint32_t depth, held;
};

static struct uring *uring_of(struct nand_mover *mover)
{
	return (struct uring *)mover;
}

static bool is_registered(const struct uring *uring, const struct nand_transfer *transfer)
{
	uint64_t offset = (uint64_t)((uintptr_t)transfer->memory - (uintptr_t)uring->memory);

	return uring->memory && offset < uring->memory_bytes &&
	       transfer->bytes <= uring->memory_bytes - offset;
}

static void uring_flush(struct nand_mover *mover)
{
	struct uring *uring = uring_of(mover);

	/* What the kernel has no memory for now stays in the ring for the next call. */
	if (io_uring_sq_ready(&uring->ring) > 0)
		(void)io_uring_submit(&uring->ring);
}

static void uring_start(struct nand_mover *mover, struct nand_transfer *transfer)
{
	struct uring *uring = uring_of(mover);
	struct io_uring_sqe *entry = io_uring_get_sqe(&uring->ring);
	unsigned int bytes = (unsigned int)transfer->bytes;

	/* The ring has space for all that may be held. */
	assert(entry && uring->held < uring->depth);
	if (is_registered(uring, transfer)) {
		if (transfer->write)
			io_uring_prep_write_fixed(entry, 0, transfer->memory, bytes,
						  transfer->offset, 0);
		else
			io_uring_prep_read_fixed(entry, 0, transfer->memory, bytes,
						 transfer->offset, 0);
	} else if (transfer->write) {
		io_uring_prep_write(entry, 0, transfer->memory, bytes, transfer->offset);
	} else {
		io_uring_prep_read(entry, 0, transfer->memory, bytes, transfer->offset);
	}
	entry->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(entry, transfer);
	uring->held++;
}

static struct nand_transfer *uring_next(struct nand_mover *mover, bool wait)
{
	struct uring *uring = uring_of(mover);
	struct nand_transfer *transfer;
	struct io_uring_cqe *completion;
	int moved;

	while (io_uring_peek_cqe(&uring->ring, &completion) != 0) {
		if (!wait)
			return NULL;
		assert(uring->held > 0);
		/* Interrupted, or short of memory for a moment: look again. */
		(void)io_uring_submit_and_wait(&uring->ring, 1);
	}
	transfer = io_uring_cqe_get_data(completion);
	moved = completion->res;
	io_uring_cqe_seen(&uring->ring, completion);
	uring->held--;
	if (moved == -EINTR || moved == -EAGAIN)
		moved = 0;
	if (moved < 0)
		transfer->result = moved;
	else if ((uint64_t)moved == transfer->bytes)
		transfer->result = 0;
	else
		transfer->result = nand_transfer_by_hand(uring->fd, transfer, (uint64_t)moved);
	return transfer;
}

static void uring_close(struct nand_mover *mover)
{
	struct uring *uring = uring_of(mover);

	assert(uring->held == 0);
	io_uring_queue_exit(&uring->ring);
	free(uring);
}

static const struct nand_mover_operations uring_operations = {
	.start = uring_start,
	.flush = uring_flush,
	.next = uring_next,
	.close = uring_close,
};

/* Completions are fetched by the thread that waits for them, without being interrupted for each. */
static int open_ring(struct uring *uring)
{
	int result = io_uring_queue_init(uring->depth, &uring->ring, IORING_SETUP_COOP_TASKRUN);

	/* A kernel before 5.19 does not know the flag. */
	if (result == -EINVAL)
		result = io_uring_queue_init(uring->depth, &uring->ring, 0);
	return result;
}

int nand_uring_open(const struct nand_mover_options *options, struct nand_mover **mover)
{
	struct iovec memory = { options->memory, options->memory_bytes };
	struct uring *uring = calloc(1, sizeof(*uring));
	int result;

	if (!uring)
		return -ENOMEM;
	uring->mover.operations = &uring_operations;
	uring->fd = options->fd;
	uring->depth = options->depth;
	result = open_ring(uring);
	if (result < 0) {
		free(uring);
		return result;
	}
	result = io_uring_register_files(&uring->ring, &uring->fd, 1);
	if (result < 0) {
		io_uring_queue_exit(&uring->ring);
		free(uring);
		return result;
	}
	if (options->event_fd) {
		result = io_uring_register_eventfd(&uring->ring, options->event_fd);
		if (result < 0) {
			io_uring_queue_exit(&uring->ring);
			free(uring);
			return result;
		}
	}
	/* A process may be allowed to pin less than this: then it goes without. */
	if (options->memory && io_uring_register_buffers(&uring->ring, &memory, 1) == 0) {
		uring->memory = options->memory;
		uring->memory_bytes = options->memory_bytes;
	}
	*mover = &uring->mover;
	return 0;
}
