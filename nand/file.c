/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The file back end. Pages go past the host's page cache by direct I/O, many transfers at once
 * (queue.c). A page and its spare area lie together, so a read is one transfer.
 *
 * Direct I/O moves whole units of the file, and pages do not end at one. A read takes what it needs
 * of the units around the page. A program has to keep what is in front of its page in the first
 * unit: the end of the page before. So it reads that unit first, unless a block begins there.
 *
 * A process that dies waits for its transfers before it lets go of its files and the lock. So none
 * arrives late on a page that the next process has programmed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/private.h"
#include "nand/space.h"

/*
 * Programs move multiples of this: then a file system does not have to complete what is not written
 * of a block of its own, and no sector of a drive is written in part.
 */
#define WRITE_UNIT 4096

/* What a page takes at most in whole units: the largest page and spare area, and their ends. */
#define EXTENT_BYTES_MAX (65536 + NAND_SPARE_BYTES_MAX + NAND_PAGE_ALIGNMENT + 2 * WRITE_UNIT)

_Static_assert(WRITE_UNIT <= NAND_BLOCK_ALIGNMENT, "blocks share no unit");

struct nand_file {
	int data_fd; /* direct if the host's file system can; the image_fd is not */
	struct nand_units units;
	bool threads; /* instead of io_uring */
};

static struct nand_units file_units(const struct nand *nand)
{
	return nand->file->units;
}

static int file_open_mover(struct nand *nand, const struct nand_mover_options *wanted,
			   struct nand_mover **mover)
{
	struct nand_mover_options options = *wanted;

	options.fd = nand->file->data_fd;
	return nand->file->threads ? nand_io_threads_open(&options, mover)
				   : nand_uring_open(&options, mover);
}

static int move_now(const struct nand *nand, uint64_t offset, uint8_t *memory, uint64_t bytes,
		    bool write)
{
	const struct nand_transfer transfer = {
		.offset = offset,
		.bytes = bytes,
		.memory = memory,
		.write = write,
	};

	return nand_transfer_by_hand(nand->file->data_fd, &transfer, 0);
}

static int file_fetch(struct nand *nand, uint64_t offset, uint8_t *to, uint64_t bytes)
{
	return move_now(nand, offset, to, bytes, false);
}

/* ---- one page by itself: a call of one page has nothing to gain from a queue ---- */

static int file_write(struct nand *nand, uint64_t page, const void *data, const void *spare)
{
	_Alignas(NAND_BLOCK_ALIGNMENT) uint8_t extent[EXTENT_BYTES_MAX];
	const struct nand_geometry *geometry = &nand->geometry;
	uint32_t unit = nand->file->units.write;
	uint64_t offset = nand_page_offset(&nand->layout, geometry, page);
	uint64_t end = offset + geometry->page_bytes + geometry->spare_bytes;
	uint64_t first = align_down(offset, unit), bytes = align_up(end, unit) - first;
	uint8_t *at = extent + (offset - first);
	int result = 0;

	/* Both neighbours, as a power cut leaves pages of an erased block in any order. */
	if (offset % unit != 0 || end % unit != 0)
		result = move_now(nand, first, extent, bytes, false);
	memcpy(at, data, geometry->page_bytes);
	memcpy(at + geometry->page_bytes, spare, geometry->spare_bytes);
	if (result == 0)
		result = move_now(nand, first, extent, bytes, true);
	return result == 0 ? 0
			   : nand_space_failed(nand, (uint32_t)(page / geometry->pages_per_block),
					       result);
}

static int file_read(struct nand *nand, uint64_t page, void *data, void *spare)
{
	_Alignas(NAND_BLOCK_ALIGNMENT) uint8_t extent[EXTENT_BYTES_MAX];
	const struct nand_geometry *geometry = &nand->geometry;
	uint32_t unit = nand->file->units.read;
	uint64_t offset = nand_page_offset(&nand->layout, geometry, page);
	uint64_t spare_offset = offset + geometry->page_bytes;
	uint64_t first = align_down(data ? offset : spare_offset, unit);
	uint64_t end = align_up(spare_offset + geometry->spare_bytes, unit);
	int result = move_now(nand, first, extent, end - first, false);

	if (result < 0) {
		log_line(LOG_LEVEL_ERROR, "%s: the host could not read page %llu: %s", nand->path,
			 (unsigned long long)page, strerror(-result));
		return -EIO;
	}
	if (data)
		memcpy(data, extent + (offset - first), geometry->page_bytes);
	memcpy(spare, extent + (spare_offset - first), geometry->spare_bytes);
	return 0;
}

static void file_close(struct nand *nand)
{
	struct nand_file *file = nand->file;

	nand_space_close(nand);
	if (!file)
		return;
	if (file->data_fd >= 0)
		close(file->data_fd);
	free(file);
	nand->file = NULL;
}

static const struct nand_backend_async file_async = {
	.open_mover = file_open_mover,
	.units = file_units,
	.fetch = file_fetch,
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

/* The least unit of direct reads that the host tells; 0: this file has no direct I/O. */
static uint32_t direct_unit(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
	    status.stx_mask & STATX_DIOALIGN)
		return status.stx_dio_offset_align > WRITE_UNIT ||
				       status.stx_dio_mem_align > NAND_BLOCK_ALIGNMENT
			       ? 0
			       : status.stx_dio_offset_align;
#endif
	/* Memory takes the flag, and has no drive to go to. */
	if (nand_space_is_memory(fd))
		return 0;
	/* Not told: every drive takes 4096. */
	return WRITE_UNIT;
}

/* A second descriptor, as direct I/O is a property of one. */
static int open_data(struct nand *nand, struct error_text *error)
{
	struct nand_file *file = nand->file;
	int flags = (nand->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC;
	struct stat mine, checked;
	uint32_t unit = 0;

	file->data_fd = open(nand->path, flags | O_DIRECT);
	if (file->data_fd < 0 && errno != EINVAL)
		return error_set(error, -errno, "cannot open %s for direct I/O: %s", nand->path,
				 strerror(errno));
	if (file->data_fd >= 0)
		unit = direct_unit(file->data_fd);
	file->units = (struct nand_units){ .read = unit, .write = WRITE_UNIT };
	if (unit == 0) {
		if (file->data_fd >= 0)
			close(file->data_fd);
		file->data_fd = open(nand->path, flags);
		file->units = (struct nand_units){ 1, 1 };
		log_line(LOG_LEVEL_WARNING,
			 "%s: its file system has no direct I/O: pages go through the host's page "
			 "cache; the back end mmap does that with fewer copies, or put the image "
			 "on a file system with direct I/O (ext4, XFS)",
			 nand->path);
	}
	if (file->data_fd < 0)
		return error_set(error, -errno, "cannot open %s: %s", nand->path, strerror(errno));
	if (fstat(file->data_fd, &mine) < 0 || fstat(nand->image_fd, &checked) < 0 ||
	    mine.st_dev != checked.st_dev || mine.st_ino != checked.st_ino)
		return error_set(error, -EINVAL, "%s was replaced while it was opened: try again",
				 nand->path);
	return 0;
}

/* Is there io_uring? If not: threads, or what to do about it. */
static int choose_mover(struct nand *nand, enum nand_io_kind io, struct error_text *error)
{
	const struct nand_mover_options one = { .depth = 1 };
	struct nand_mover *mover = NULL;
	int result = -ENOSYS;

	nand->file->threads = io == NAND_IO_THREADS;
	if (nand->file->threads)
		return 0;
	result = file_open_mover(nand, &one, &mover);
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

int nand_file_open(struct nand *nand, enum nand_io_kind io, struct error_text *error)
{
	int result;

	nand->backend = &file_backend;
	nand->file = calloc(1, sizeof(*nand->file));
	nand->on_the_way = calloc(nand->geometry.blocks, sizeof(*nand->on_the_way));
	if (!nand->file || !nand->on_the_way)
		return error_set(error, -ENOMEM, "cannot open %s: %s", nand->path,
				 strerror(ENOMEM));
	nand->file->data_fd = -1;
	result = open_data(nand, error);
	if (result == 0)
		result = choose_mover(nand, io, error);
	return result == 0 ? nand_space_open(nand, error) : result;
}
