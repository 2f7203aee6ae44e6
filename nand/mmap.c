/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The mmap back end: page data and spare areas of the image file, or of anonymous memory, as one mapping.
 *
 * A store into a hole of a full file system would kill the process (SIGBUS), so a block gets its room with
 * fallocate(2) before its first program, and once again in every process: a copy of the image may have lost it. A host
 * without room is an error there and nowhere later.
 *
 * Sync is one fdatasync(2) for the whole file, not msync(2) of ranges: data, spare areas and table are three ranges,
 * and each msync would wait for a flush of the host's drive. A page is programmed once, so what fdatasync
 * writes beyond the range asked for had to be written once anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/private.h"

int nand_map(struct nand_mapping *mapping, enum nand_mapping_kind kind, int fd, uint64_t offset,
	     uint64_t bytes, const char *what, struct error_text *error)
{
	int protection = kind == NAND_MAP_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	int flags = MAP_NORESERVE;
	void *at;

	flags |= kind == NAND_MAP_PRIVATE || fd < 0 ? MAP_PRIVATE : MAP_SHARED;
	flags |= fd < 0 ? MAP_ANONYMOUS : 0;
	at = mmap(NULL, bytes, protection, flags, fd, (off_t)offset);
	if (at == MAP_FAILED)
		return error_set(error, -errno, "cannot map %llu bytes of %s: %s",
				 (unsigned long long)bytes, what, strerror(errno));
	mapping->at = at;
	mapping->bytes = bytes;
	return 0;
}

void nand_unmap(struct nand_mapping *mapping)
{
	if (mapping->at)
		munmap(mapping->at, mapping->bytes);
	mapping->at = NULL;
}

static uint8_t *data_of(const struct nand *nand, uint64_t page)
{
	return nand->pages.at + page * nand->geometry.page_bytes;
}

static uint8_t *spare_of(const struct nand *nand, uint64_t page)
{
	return nand->pages.at + (nand->layout.spare_offset - nand->layout.data_offset) +
	       page * nand->geometry.spare_bytes;
}

/* The two ranges of a block in the image file. */
struct block_ranges {
	struct {
		uint64_t offset, bytes;
	} data, spare;
};

static struct block_ranges ranges_of(const struct nand *nand, uint32_t block)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t page = (uint64_t)block * geometry->pages_per_block;

	return (struct block_ranges){
		.data = { nand->layout.data_offset + page * geometry->page_bytes,
			  nand->layout.block_bytes },
		.spare = { nand->layout.spare_offset + page * geometry->spare_bytes,
			   (uint64_t)geometry->pages_per_block * geometry->spare_bytes },
	};
}

/* For file systems without fallocate: zeroes take the room as well. */
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

static int mmap_prepare(struct nand *nand, uint32_t block)
{
	struct block_ranges ranges = ranges_of(nand, block);
	uint64_t bit = UINT64_C(1) << block % 64;
	int result;

	if (!nand->prepared ||
	    atomic_load_explicit(&nand->prepared[block / 64], memory_order_relaxed) & bit)
		return 0;
	result = reserve(nand->image_fd, ranges.data.offset, ranges.data.bytes);
	if (result == 0)
		result = reserve(nand->image_fd, ranges.spare.offset, ranges.spare.bytes);
	if (result == 0) {
		atomic_fetch_or_explicit(&nand->prepared[block / 64], bit, memory_order_relaxed);
		atomic_store_explicit(&nand->prepare_failed, false, memory_order_relaxed);
		return 0;
	}
	if (!atomic_exchange(&nand->prepare_failed, true))
		log_line(LOG_LEVEL_ERROR,
			 "%s: no room for block %u on the host's file system (%s): programs fail "
			 "until "
			 "there is",
			 nand->path, block, strerror(-result));
	return -EIO;
}

static int mmap_write(struct nand *nand, uint64_t page, const void *data, const void *spare)
{
	memcpy(data_of(nand, page), data, nand->geometry.page_bytes);
	memcpy(spare_of(nand, page), spare, nand->geometry.spare_bytes);
	return 0;
}

static int mmap_read(struct nand *nand, uint64_t page, void *data, void *spare)
{
	memcpy(spare, spare_of(nand, page), nand->geometry.spare_bytes);
	if (data)
		memcpy(data, data_of(nand, page), nand->geometry.page_bytes);
	return 0;
}

/* Memory keeps its pages for the next program; a file gives the space back where the file system can. */
static void mmap_discard(struct nand *nand, uint32_t block)
{
	struct block_ranges ranges = ranges_of(nand, block);
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	if (!nand->prepared)
		return;
	atomic_fetch_and_explicit(&nand->prepared[block / 64], ~(UINT64_C(1) << block % 64),
				  memory_order_relaxed);
	if (fallocate(nand->image_fd, mode, (off_t)ranges.data.offset, (off_t)ranges.data.bytes) ==
	    0)
		(void)fallocate(nand->image_fd, mode, (off_t)ranges.spare.offset,
				(off_t)ranges.spare.bytes);
}

static int mmap_sync(struct nand *nand)
{
	if (nand->image_fd < 0)
		return 0;
	if (fdatasync(nand->image_fd) == 0)
		return 0;
	log_line(LOG_LEVEL_ERROR, "%s: the host could not store the image: %s", nand->path,
		 strerror(errno));
	return -EIO;
}

static void mmap_close(struct nand *nand)
{
	nand_unmap(&nand->pages);
	free(nand->prepared);
	nand->prepared = NULL;
}

static const struct nand_backend mmap_backend = {
	.name = "mmap",
	.prepare = mmap_prepare,
	.write = mmap_write,
	.read = mmap_read,
	.discard = mmap_discard,
	.sync = mmap_sync,
	.close = mmap_close,
};

int nand_mmap_open(struct nand *nand, struct error_text *error)
{
	int result = nand_map(&nand->pages, nand->read_only ? NAND_MAP_READ_ONLY : NAND_MAP_SHARED,
			      nand->image_fd, nand->layout.data_offset,
			      nand->layout.image_bytes - nand->layout.data_offset, nand->path,
			      error);

	if (result < 0)
		return result;
	nand->backend = &mmap_backend;
	if (nand->image_fd < 0)
		return 0;
	nand->prepared = calloc(divide_up(nand->geometry.blocks, 64), sizeof(*nand->prepared));
	if (!nand->prepared)
		return error_set(error, -ENOMEM, "cannot open %s: %s", nand->path,
				 strerror(ENOMEM));
	return 0;
}
