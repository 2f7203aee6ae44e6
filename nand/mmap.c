/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The mmap back end: the pages of the image file, or of anonymous memory, as one mapping.
 *
 * Sync is one fdatasync(2) for the whole file, not msync(2) of ranges: pages and table are two
 * ranges, and each msync would wait for a flush of the host's drive. A page is programmed once, so
 * what fdatasync writes beyond the range asked for had to be written once anyway.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "common/bytes.h"
#include "nand/copy.h"
#include "nand/private.h"
#include "nand/space.h"

/* Memory smaller than this takes the host's ordinary pages. */
#define LARGE_PAGES_FROM (UINT64_C(32) << 20)

/* So much at once goes on to the drive without waiting for a sync. */
#define WRITE_BACK_BYTES (128 << 10)

/* Linux 5.14; older headers lack it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

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
	/*
	 * Fewer misses when pages of flash are found at random. A hint: a host without large pages
	 * does without.
	 */
	if (fd < 0 && bytes >= LARGE_PAGES_FROM)
		(void)madvise(at, bytes, MADV_HUGEPAGE);
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

static uint8_t *page_at(const struct nand *nand, uint64_t page)
{
	return nand->pages.at + nand_page_offset(&nand->layout, &nand->geometry, page) -
	       nand->layout.data_offset;
}

/*
 * Maps all of a block before its first page is stored to, in one call in place of a fault for each
 * page. A hint: an older kernel does without.
 */
static void map_block(struct nand *nand, uint64_t page)
{
	const uintptr_t host_page = 4096;
	uintptr_t first = (uintptr_t)page_at(nand, page);
	uintptr_t end = first + nand->layout.block_stride;

	if (page % nand->geometry.pages_per_block)
		return;
	end = min_u64(end, (uintptr_t)nand->pages.at + nand->pages.bytes);
	first -= first % host_page;
	(void)madvise((void *)first, end - first, MADV_POPULATE_WRITE);
}

static int memory_write(struct nand *nand, uint64_t page, const void *data, const void *spare)
{
	uint8_t *at = page_at(nand, page);

	map_block(nand, page);
	nand_copy_in(at, data, nand->geometry.page_bytes);
	memcpy(at + nand->geometry.page_bytes, spare, nand->geometry.spare_bytes);
	return 0;
}

/*
 * A file on a drive is written by calls. A store into its mapping may kill the process (SIGBUS) on
 * a full file system, even where the block has space: the host keeps pages of a file together in
 * larger pieces of memory, and wants space for all of a piece, which may reach into a hole.
 */
static int drive_write(struct nand *nand, uint64_t page, const void *data, const void *spare)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t offset = nand_page_offset(&nand->layout, geometry, page);
	struct iovec parts[] = { { (void *)data, geometry->page_bytes },
				 { (void *)spare, geometry->spare_bytes } };
	int result = 0;

	if (pwritev(nand->image_fd, parts, 2, (off_t)offset) ==
	    geometry->page_bytes + geometry->spare_bytes)
		return 0;
	/* Interrupted or cut short: once more, each part until it is whole or has failed. */
	for (unsigned i = 0; i < 2 && result == 0; i++) {
		result =
			nand_write_all(nand->image_fd, parts[i].iov_base, parts[i].iov_len, offset);
		offset += parts[i].iov_len;
	}
	return result == 0 ? 0
			   : nand_space_failed(nand, (uint32_t)(page / geometry->pages_per_block),
					       result);
}

/* A call of many pages takes a third of the processor time of as many calls. */
static int write_run_by_call(struct nand *nand, const struct nand_page_io *pages, uint8_t *spares,
			     uint32_t count, uint32_t *done)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t offset = nand_page_offset(&nand->layout, geometry, pages[0].page);
	ssize_t bytes = (ssize_t)count * nand->layout.page_stride;
	struct iovec parts[2 * NAND_RUN_PAGES] = { 0 };
	int result = 0;

	for (uint32_t i = 0; i < count; i++) {
		parts[2 * i] = (struct iovec){ pages[i].data, geometry->page_bytes };
		parts[2 * i + 1] = (struct iovec){ spares + (size_t)i * geometry->spare_bytes,
						   geometry->spare_bytes };
	}
	*done = count;
	if (pwritev(nand->image_fd, parts, (int)(2 * count), (off_t)offset) == bytes)
		return 0;
	/* Interrupted or cut short: once more, one by one, which tells how many there is space for.
	 */
	for (*done = 0; *done < count; ++*done) {
		result = drive_write(nand, pages[*done].page, pages[*done].data,
				     spares + (size_t)*done * geometry->spare_bytes);
		if (result < 0)
			break;
	}
	return result;
}

static int drive_write_run(struct nand *nand, const struct nand_page_io *pages, uint8_t *spares,
			   uint32_t count, uint32_t *done)
{
	uint64_t bytes = (uint64_t)count * nand->layout.page_stride;
	int result = write_run_by_call(nand, pages, spares, count, done);

	/* The drive begins with it while the next ones come, so that a sync waits less. */
	if (result == 0 && bytes >= WRITE_BACK_BYTES)
		(void)sync_file_range(
			nand->image_fd,
			(off_t)nand_page_offset(&nand->layout, &nand->geometry, pages[0].page),
			(off_t)bytes, SYNC_FILE_RANGE_WRITE);
	return result;
}

/*
 * Pages of memory that are new to the file are cleared before they are mapped. A call fills them
 * without that, and maps nothing. Those that the file has had are faster to store to.
 */
static int memory_write_run(struct nand *nand, const struct nand_page_io *pages, uint8_t *spares,
			    uint32_t count, uint32_t *done)
{
	const struct nand_geometry *geometry = &nand->geometry;

	if (nand_space_is_fresh(nand, (uint32_t)(pages[0].page / geometry->pages_per_block)))
		return write_run_by_call(nand, pages, spares, count, done);
	for (*done = 0; *done < count; ++*done)
		memory_write(nand, pages[*done].page, pages[*done].data,
			     spares + (size_t)*done * geometry->spare_bytes);
	return 0;
}

static int mmap_read(struct nand *nand, uint64_t page, void *data, void *spare)
{
	const uint8_t *at = page_at(nand, page);

	memcpy(spare, at + nand->geometry.page_bytes, nand->geometry.spare_bytes);
	if (data)
		nand_copy_out(data, at, nand->geometry.page_bytes);
	return 0;
}

/*
 * The mapping may lack a page that the host has on its drive, and a look at it would wait. So this
 * asks the host's page cache, which is what the mapping shows.
 */
static int drive_read_at_hand(struct nand *nand, uint64_t page, void *data, void *spare)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t offset = nand_page_offset(&nand->layout, geometry, page);
	struct iovec parts[] = { { data, geometry->page_bytes }, { spare, geometry->spare_bytes } };
	int first = data ? 0 : 1;
	ssize_t wanted = geometry->spare_bytes + (data ? geometry->page_bytes : 0);

	if (!data)
		offset += geometry->page_bytes;
	return preadv2(nand->image_fd, parts + first, 2 - first, (off_t)offset, RWF_NOWAIT) ==
			       wanted
		       ? 0
		       : -EINPROGRESS;
}

static void mmap_close(struct nand *nand)
{
	nand_unmap(&nand->pages);
	nand_space_close(nand);
}

static const struct nand_backend in_memory = {
	.name = "mmap",
	.prepare = nand_space_take,
	.write = memory_write,
	.read = mmap_read,
	.read_at_hand = mmap_read,
	.discard = nand_space_give,
	.sync = nand_image_sync,
	.close = mmap_close,
};

static const struct nand_backend in_file_of_memory = {
	.name = "mmap",
	.prepare = nand_space_take,
	.write = memory_write,
	.write_run = memory_write_run,
	.read = mmap_read,
	.read_at_hand = mmap_read,
	.discard = nand_space_give,
	.sync = nand_image_sync,
	.close = mmap_close,
};

static const struct nand_backend on_drive = {
	.name = "mmap",
	.prepare = nand_space_take,
	.write = drive_write,
	.write_run = drive_write_run,
	.read = mmap_read,
	.read_at_hand = drive_read_at_hand,
	.discard = nand_space_give,
	.sync = nand_image_sync,
	.close = mmap_close,
};

int nand_mmap_open(struct nand *nand, struct error_text *error)
{
	bool is_memory = nand->image_fd < 0 || nand_space_is_memory(nand->image_fd);
	bool stored_to = is_memory && !nand->read_only;
	int result = 0;

	/* salvage.c has mapped them by itself. */
	if (!nand->pages.at)
		result = nand_map(&nand->pages, stored_to ? NAND_MAP_SHARED : NAND_MAP_READ_ONLY,
				  nand->image_fd, nand->layout.data_offset,
				  nand->layout.image_bytes - nand->layout.data_offset, nand->path,
				  error);
	if (result < 0)
		return result;
	if (nand->image_fd < 0)
		nand->backend = &in_memory;
	else
		nand->backend = is_memory ? &in_file_of_memory : &on_drive;
	if (nand->backend->write_run)
		nand->on_the_way = calloc(nand->geometry.blocks, sizeof(*nand->on_the_way));
	if (nand->backend->write_run && !nand->on_the_way)
		return error_set(error, -ENOMEM, "cannot open %s: %s", nand->path,
				 strerror(ENOMEM));
	/*
	 * Memory keeps its pages for the next program; a file gives the space back where the file
	 * system can.
	 */
	return nand->image_fd < 0 ? 0 : nand_space_open(nand, error);
}
