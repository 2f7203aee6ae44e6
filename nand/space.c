/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Space of an image's blocks on the host's file system.
 *
 * A store into a mapped hole of a full file system would kill the process (SIGBUS), so a block gets
 * its space with fallocate(2) before its first program, and once again in every process: a copy of
 * the image may have lost it. A host without space is an error there and nowhere later.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/space.h"

/*
 * Images that keep the space of erased blocks get it for so many bytes of page data at a time: few
 * calls, since each waits for what is under way.
 */
#define SPACE_AHEAD_BYTES (UINT64_C(64) << 20)

/* The two ranges of some blocks in the image file. */
struct block_ranges {
	struct {
		uint64_t offset, bytes;
	} data, spare;
};

static struct block_ranges ranges_of(const struct nand *nand, uint32_t block, uint32_t count)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t page = (uint64_t)block * geometry->pages_per_block;

	return (struct block_ranges){
		.data = { nand->layout.data_offset + page * geometry->page_bytes,
			  count * nand->layout.block_bytes },
		.spare = { nand->layout.spare_offset + page * geometry->spare_bytes,
			   (uint64_t)count * geometry->pages_per_block * geometry->spare_bytes },
	};
}

/* For file systems without fallocate: zeroes take the space as well. */
static int reserve_by_writing(int fd, uint64_t offset, uint64_t bytes)
{
	static const uint8_t zeroes[65536];

	while (bytes > 0) {
		ssize_t written = pwrite(fd, zeroes, min_u64(bytes, sizeof(zeroes)), (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		offset += (uint64_t)written;
		bytes -= (uint64_t)written;
	}
	return 0;
}

static int reserve(int fd, uint64_t offset, uint64_t bytes)
{
	int result;

	do
		result = fallocate(fd, 0, (off_t)offset, (off_t)bytes) < 0 ? -errno : 0;
	while (result == -EINTR);
	return result == -EOPNOTSUPP ? reserve_by_writing(fd, offset, bytes) : result;
}

static int reserve_blocks(const struct nand *nand, uint32_t block, uint32_t count)
{
	struct block_ranges ranges = ranges_of(nand, block, count);
	int result = reserve(nand->image_fd, ranges.data.offset, ranges.data.bytes);

	return result < 0 ? result
			  : reserve(nand->image_fd, ranges.spare.offset, ranges.spare.bytes);
}

static void mark_prepared(struct nand *nand, uint32_t block, uint32_t count)
{
	for (uint32_t i = block; i < block + count; i++)
		atomic_fetch_or_explicit(&nand->prepared[i / 64], UINT64_C(1) << i % 64,
					 memory_order_relaxed);
	atomic_store_explicit(&nand->prepare_failed, false, memory_order_relaxed);
}

int nand_space_take(struct nand *nand, uint32_t block)
{
	uint64_t ahead = max_u64(SPACE_AHEAD_BYTES / nand->layout.block_bytes, 1);
	uint32_t count = (uint32_t)min_u64(ahead, nand->geometry.blocks - block);
	int result;

	if (!nand->prepared ||
	    atomic_load_explicit(&nand->prepared[block / 64], memory_order_relaxed) &
		    UINT64_C(1) << block % 64)
		return 0;
	if (nand->keep_space && reserve_blocks(nand, block, count) == 0) {
		mark_prepared(nand, block, count);
		return 0;
	}
	result = reserve_blocks(nand, block, 1);
	if (result == 0) {
		mark_prepared(nand, block, 1);
		return 0;
	}
	if (!atomic_exchange(&nand->prepare_failed, true))
		log_line(LOG_LEVEL_ERROR,
			 "%s: no space for block %u on the host's file system (%s): programs fail "
			 "until "
			 "there is",
			 nand->path, block, strerror(-result));
	return -EIO;
}

void nand_space_give(struct nand *nand, uint32_t block)
{
	struct block_ranges ranges = ranges_of(nand, block, 1);
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	if (!nand->prepared || nand->keep_space)
		return;
	atomic_fetch_and_explicit(&nand->prepared[block / 64], ~(UINT64_C(1) << block % 64),
				  memory_order_relaxed);
	if (fallocate(nand->image_fd, mode, (off_t)ranges.data.offset, (off_t)ranges.data.bytes) ==
	    0)
		(void)fallocate(nand->image_fd, mode, (off_t)ranges.spare.offset,
				(off_t)ranges.spare.bytes);
}

int nand_space_open(struct nand *nand, struct error_text *error)
{
	nand->prepared = calloc(divide_up(nand->geometry.blocks, 64), sizeof(*nand->prepared));
	return nand->prepared ? 0
			      : error_set(error, -ENOMEM, "cannot open %s: %s", nand->path,
					  strerror(ENOMEM));
}

void nand_space_close(struct nand *nand)
{
	free(nand->prepared);
	nand->prepared = NULL;
}

int nand_image_sync(struct nand *nand)
{
	if (nand->image_fd < 0 || fdatasync(nand->image_fd) == 0)
		return 0;
	log_line(LOG_LEVEL_ERROR, "%s: the host could not store the image: %s", nand->path,
		 strerror(errno));
	return -EIO;
}
