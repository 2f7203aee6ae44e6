/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The file back end. Page data go past the host's page cache by direct I/O, many transfers at once
 * (queue.c). The spare areas, a sixteenth as much, are mapped as in mmap.c, so a page costs one
 * transfer. The host keeps those in use in its page cache and takes their memory back when it needs
 * it. The next look at one then reads 4096 bytes, the spare areas of 16 neighbours.
 *
 * A process that dies waits for its transfers before it lets go of its files and the lock. So none
 * arrives late on a page that the next process has programmed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/private.h"
#include "nand/space.h"

/* Memory for direct I/O begins here at the latest, on every host that we know. */
#define ALIGNMENT_SAFE 4096

struct nand_file {
	int data_fd;        /* direct if the host's file system can; the image_fd is not */
	uint32_t alignment; /* of memory */
	bool threads;       /* instead of io_uring */
	struct nand_mapping spares;
	uint32_t cache_shift; /* log2 of the bytes of a page of the host */
	_Atomic uint64_t
		*fetched; /* pages of the host in `spares`, a bit each: asked for by this process */
};

static uint8_t *file_spare(const struct nand *nand, uint64_t page)
{
	return nand->file->spares.at + page * nand->geometry.spare_bytes;
}

/* Without waiting; the spare areas of neighbours come along. */
static void fetch(struct nand_file *file, uint64_t cache_page)
{
	uint64_t bit = UINT64_C(1) << cache_page % 64;
	_Atomic uint64_t *word = &file->fetched[cache_page / 64];

	if (atomic_load_explicit(word, memory_order_relaxed) & bit)
		return;
	atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
	(void)madvise(file->spares.at + (cache_page << file->cache_shift),
		      (size_t)1 << file->cache_shift, MADV_WILLNEED);
}

static void file_expect(struct nand *nand, uint64_t page)
{
	struct nand_file *file = nand->file;
	uint64_t from = page * nand->geometry.spare_bytes;
	uint64_t last = (from + nand->geometry.spare_bytes - 1) >> file->cache_shift;

	/* By the time the data are here, the spare area is in the processor's cache. */
	for (uint32_t i = 0; i < nand->geometry.spare_bytes; i += 64)
		__builtin_prefetch(file->spares.at + from + i);
	fetch(file, from >> file->cache_shift);
	if (last != from >> file->cache_shift)
		fetch(file, last);
}

static uint32_t file_alignment(const struct nand *nand)
{
	return nand->file->alignment;
}

static int file_open_mover(struct nand *nand, uint32_t depth, void *memory, uint64_t memory_bytes,
			   struct nand_mover **mover)
{
	const struct nand_mover_options options = {
		.fd = nand->file->data_fd,
		.depth = depth,
		.memory = memory,
		.memory_bytes = memory_bytes,
	};

	return nand->file->threads ? nand_io_threads_open(&options, mover)
				   : nand_uring_open(&options, mover);
}

/* A range of the image by a system call that waits; `data` begins where direct I/O wants it. */
static int move_now(const struct nand *nand, uint64_t page, void *data, bool write)
{
	uint32_t page_bytes = nand->geometry.page_bytes;
	struct iovec vector = { data, page_bytes };
	struct nand_transfer transfer = {
		.offset = nand->layout.data_offset + page * page_bytes,
		.bytes = page_bytes,
		.vectors = &vector,
		.count = 1,
		.write = write,
	};

	return nand_transfer_by_hand(nand->file->data_fd, &transfer, 0);
}

/* By way of a copy that begins where direct I/O wants it. */
static int move_copy(const struct nand *nand, uint64_t page, void *data, bool write)
{
	uint32_t page_bytes = nand->geometry.page_bytes;
	void *aligned = aligned_alloc(ALIGNMENT_SAFE, align_up(page_bytes, ALIGNMENT_SAFE));
	int result;

	if (!aligned)
		return -ENOMEM;
	if (write)
		memcpy(aligned, data, page_bytes);
	result = move_now(nand, page, aligned, write);
	if (result == 0 && !write)
		memcpy(data, aligned, page_bytes);
	free(aligned);
	return result;
}

/* One page by itself: a call of one page has nothing to gain from a queue. */
static int move_page(struct nand *nand, uint64_t page, void *data, bool write)
{
	bool copy = (uintptr_t)data % nand->file->alignment != 0;
	int result = copy ? move_copy(nand, page, data, write) : move_now(nand, page, data, write);

	if (result == 0)
		return 0;
	if (write)
		return nand_space_failed(nand, (uint32_t)(page / nand->geometry.pages_per_block),
					 result);
	log_line(LOG_LEVEL_ERROR, "%s: the host could not read page %llu: %s", nand->path,
		 (unsigned long long)page, strerror(-result));
	return -EIO;
}

static int file_write(struct nand *nand, uint64_t page, const void *data, const void *spare)
{
	int result = move_page(nand, page, (void *)(uintptr_t)data, true);

	if (result == 0)
		memcpy(file_spare(nand, page), spare, nand->geometry.spare_bytes);
	return result;
}

static int file_read(struct nand *nand, uint64_t page, void *data, void *spare)
{
	int result;

	/* Its spare area comes along meanwhile. */
	file_expect(nand, page);
	result = data ? move_page(nand, page, data, false) : 0;
	if (result == 0)
		memcpy(spare, file_spare(nand, page), nand->geometry.spare_bytes);
	return result;
}

static void file_close(struct nand *nand)
{
	struct nand_file *file = nand->file;

	nand_space_close(nand);
	if (!file)
		return;
	nand_unmap(&file->spares);
	if (file->data_fd >= 0)
		close(file->data_fd);
	free(file->fetched);
	free(file);
	nand->file = NULL;
}

static const struct nand_backend_async file_async = {
	.open_mover = file_open_mover,
	.spare = file_spare,
	.expect = file_expect,
	.alignment = file_alignment,
};

static const struct nand_backend file_backend = {
	.name = "file",
	.prepare = nand_space_take,
	.write = file_write,
	.read = file_read,
	.discard = nand_space_give,
	.sync = nand_image_sync,
	.close = file_close,
	.async = &file_async,
};

/* What direct I/O on the file needs in memory; 0: this file cannot, or not in units of a page. */
static uint32_t direct_alignment(const struct nand *nand, int fd)
{
#ifdef STATX_DIOALIGN
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
	    status.stx_mask & STATX_DIOALIGN) {
		if (status.stx_dio_offset_align == 0 ||
		    nand->geometry.page_bytes % status.stx_dio_offset_align != 0)
			return 0;
		return (uint32_t)max_u64(status.stx_dio_mem_align, 1);
	}
#else
	(void)fd;
#endif
	/* Not told: every drive takes 4096. */
	return nand->geometry.page_bytes % ALIGNMENT_SAFE == 0 ? ALIGNMENT_SAFE : 0;
}

/* A second descriptor, as direct I/O is a property of one. */
static int open_data(struct nand *nand, struct error_text *error)
{
	struct nand_file *file = nand->file;
	int flags = (nand->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
	struct stat mine, checked;
	bool direct = true;

	file->data_fd = open(nand->path, flags | O_DIRECT);
	if (file->data_fd >= 0)
		file->alignment = direct_alignment(nand, file->data_fd);
	if (file->data_fd >= 0 && file->alignment == 0) {
		close(file->data_fd);
		direct = false;
	}
	if (!direct || (file->data_fd < 0 && errno == EINVAL)) {
		file->data_fd = open(nand->path, flags);
		file->alignment = 1;
		log_line(
			LOG_LEVEL_WARNING,
			"%s: its file system has no direct I/O for pages of %u bytes: page data go "
			"through the host's page cache; the back end mmap does that with fewer "
			"copies, or put the image on a file system with direct I/O (ext4, XFS)",
			nand->path, nand->geometry.page_bytes);
	}
	if (file->data_fd < 0)
		return error_set(error, -errno, "cannot open %s for direct I/O: %s", nand->path,
				 strerror(errno));
	if (fstat(file->data_fd, &mine) < 0 || fstat(nand->image_fd, &checked) < 0 ||
	    mine.st_dev != checked.st_dev || mine.st_ino != checked.st_ino)
		return error_set(error, -EINVAL, "%s was replaced while it was opened: try again",
				 nand->path);
	return 0;
}

/* Is there io_uring? If not: threads, or what to do about it. */
static int choose_mover(struct nand *nand, enum nand_io_kind io, struct error_text *error)
{
	struct nand_mover *mover = NULL;
	int result = -ENOSYS;

	nand->file->threads = io == NAND_IO_THREADS;
	if (nand->file->threads)
		return 0;
	result = file_open_mover(nand, 1, NULL, 0, &mover);
	if (result == 0) {
		mover->operations->close(mover);
		return 0;
	}
	if (io == NAND_IO_URING)
		return error_set(
			error, result,
			"%s: this host has no io_uring for this process (%s): allow it (sysctl "
			"kernel.io_uring_disabled, the service's or container's system call "
			"filter), or do not "
			"demand it",
			nand->path, strerror(-result));
	log_line(LOG_LEVEL_WARNING,
		 "%s: this host has no io_uring for this process (%s): using threads, which are "
		 "slower; to "
		 "change that allow io_uring (sysctl kernel.io_uring_disabled, the service's or "
		 "container's "
		 "system call filter)",
		 nand->path, strerror(-result));
	nand->file->threads = true;
	return 0;
}

static int allocate(struct nand *nand, struct error_text *error)
{
	struct nand_file *file = nand->file;
	uint64_t spare_bytes = nand->layout.image_bytes - nand->layout.spare_offset;

	file->cache_shift = (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	file->fetched =
		calloc(divide_up(spare_bytes >> file->cache_shift, 64) + 1, sizeof(*file->fetched));
	nand->on_the_way = calloc(nand->geometry.blocks, sizeof(*nand->on_the_way));
	return file->fetched && nand->on_the_way ? 0
						 : error_set(error, -ENOMEM, "cannot open %s: %s",
							     nand->path, strerror(ENOMEM));
}

int nand_file_open(struct nand *nand, enum nand_io_kind io, struct error_text *error)
{
	int result;

	nand->backend = &file_backend;
	nand->file = calloc(1, sizeof(*nand->file));
	if (!nand->file)
		return error_set(error, -ENOMEM, "cannot open %s: %s", nand->path,
				 strerror(ENOMEM));
	nand->file->data_fd = -1;
	result = allocate(nand, error);
	if (result == 0)
		result = open_data(nand, error);
	if (result == 0)
		result = nand_map(
			&nand->file->spares, nand->read_only ? NAND_MAP_READ_ONLY : NAND_MAP_SHARED,
			nand->image_fd, nand->layout.spare_offset,
			nand->layout.image_bytes - nand->layout.spare_offset, nand->path, error);
	if (result == 0)
		result = choose_mover(nand, io, error);
	return result == 0 ? nand_space_open(nand, error) : result;
}
