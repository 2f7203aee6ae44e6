/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The copy of an image that is in use. */
#include "nand/image_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "nand/private.h"
#include "nand/space.h"

#define KEPT_BYTES (UINT64_C(64) << 20)
#define WAIT_MS    1000
/* What a step copies, about. */
#define STEP_BYTES (UINT64_C(4) << 20)
#define NO_BLOCK   UINT32_MAX

/* Linux 5.14; older headers lack it. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* Pages of a block that has been erased since the instant. */
struct kept {
	struct kept *next;
	uint32_t block, pages;
	uint8_t *bytes;
};

/* What is being done, in this order. */
enum stage { STAGE_HEADERS, STAGE_NVRAM, STAGE_BLOCKS, STAGE_SYNC, STAGE_DONE };

struct nand_image_copy {
	struct nand *nand;
	int image_fd, nvram_fd;
	uint32_t wait_ms;
	enum stage stage;
	uint64_t nvram_done; /* bytes of the region that are written */
	/* Both NULL once they are written. */
	struct nand_mapping nvram, table;
	struct kept own; /* of the caller's steps */
	_Atomic uint64_t done, total;
	uint64_t written_from, written_to; /* by the step before, on its way to the drive */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	uint16_t *left;             /* pages of each block that are still to be copied */
	uint32_t next;              /* no block before it has any */
	uint32_t reading;           /* the block that a step reads */
	uint32_t keeping;           /* threads that read what they are about to erase */
	uint32_t places_left;       /* that may still be made */
	struct kept *free;          /* places with nothing in them */
	struct kept *first, **last; /* what is kept, in the order of its erases */
	int result;                 /* the first error, with its sentence */
	struct error_text error;
};

/* ---- memory ---- */

static uint8_t *block_memory(const struct nand *nand)
{
	return aligned_alloc(NAND_BLOCK_ALIGNMENT, nand->layout.block_stride);
}

/* Memory that is there, so that nobody waits for it at the instant. */
static int take_memory(struct nand_mapping *mapping, uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	*mapping = (struct nand_mapping){ .at = at, .bytes = bytes };
	return 0;
}

static int allocate(struct nand_image_copy *copy)
{
	const struct nand *nand = copy->nand;
	uint64_t blocks = nand->geometry.blocks;
	int result = take_memory(&copy->nvram, max_u64(nand->nvram_bytes, 1));

	if (!result)
		result = take_memory(&copy->table, blocks * sizeof(uint64_t));
	copy->left = calloc(blocks, sizeof(*copy->left));
	copy->own.bytes = block_memory(nand);
	return result || !copy->left || !copy->own.bytes ? -ENOMEM : 0;
}

static void free_list(struct kept *kept)
{
	while (kept) {
		struct kept *next = kept->next;

		free(kept->bytes);
		free(kept);
		kept = next;
	}
}

/* ---- opening ---- */

/* An empty file; so it is none of the device's own. */
static int check_file(int fd, struct error_text *error)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat file;

	if (fstat(fd, &file) || !S_ISREG(file.st_mode) || file.st_size)
		return error_set(error, -EINVAL,
				 "a copy is made into regular files that are empty");
	if ((flags & O_ACCMODE) == O_RDONLY)
		return error_set(error, -EINVAL, "a file of the copy is not open for writing");
	/* Linux writes to its end then, whatever place pwrite(2) names. */
	if (flags & O_APPEND)
		return error_set(error, -EINVAL,
				 "a file of the copy is open for appending; open it without that");
	return 0;
}

static int check_files(int image_fd, int nvram_fd, struct error_text *error)
{
	struct stat image, nvram;
	int result = check_file(image_fd, error);

	if (!result)
		result = check_file(nvram_fd, error);
	if (!result && fstat(image_fd, &image) == 0 && fstat(nvram_fd, &nvram) == 0 &&
	    image.st_dev == nvram.st_dev && image.st_ino == nvram.st_ino)
		result = error_set(error, -EINVAL,
				   "the image and the NVRAM of a copy need two files");
	return result;
}

/* Sets the end of a file of the copy. */
static int set_end(int fd, uint64_t bytes, struct error_text *error)
{
	return ftruncate(fd, (off_t)bytes)
		       ? error_set(error, -errno, "the copy can't be written: %s", strerror(errno))
		       : 0;
}

static struct nand_image_copy *new_copy(struct nand *nand, int image_fd, int nvram_fd,
					const struct nand_image_copy_options *options)
{
	const struct nand_image_copy_options defaults = { 0 };
	struct nand_image_copy *copy = calloc(1, sizeof(*copy));
	pthread_condattr_t attributes;
	uint64_t places;

	if (!copy)
		return NULL;
	if (!options)
		options = &defaults;
	places = (options->kept_bytes ? options->kept_bytes : KEPT_BYTES) /
		 nand->layout.block_stride;
	copy->nand = nand;
	copy->image_fd = image_fd;
	copy->nvram_fd = nvram_fd;
	copy->wait_ms = options->wait_ms ? options->wait_ms : WAIT_MS;
	copy->places_left = (uint32_t)max_u64(places, 2);
	copy->reading = NO_BLOCK;
	copy->last = &copy->first;
	pthread_mutex_init(&copy->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&copy->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return copy;
}

int nand_image_copy_open(struct nand *nand, int image_fd, int nvram_fd,
			 const struct nand_image_copy_options *options,
			 struct nand_image_copy **copy, struct error_text *error)
{
	struct nand_image_copy *new;
	int result = 0;

	*copy = NULL;
	if (nand->image_fd < 0)
		return error_set(error, -EOPNOTSUPP, "%s has no image that could be copied",
				 nand->path);
	result = check_files(image_fd, nvram_fd, error);
	if (result)
		return result;
	new = new_copy(nand, image_fd, nvram_fd, options);
	if (!new || allocate(new)) {
		nand_image_copy_close(new);
		return error_set(error, -ENOMEM,
				 "out of memory: a copy of %s takes %llu MiB until its NVRAM is "
				 "written",
				 nand->path, (unsigned long long)(nand->nvram_bytes >> 20) + 1);
	}
	result = set_end(image_fd, nand->layout.image_bytes, error);
	if (!result)
		result = set_end(nvram_fd, NAND_NVRAM_FILE_AT + nand->nvram_bytes, error);
	if (result) {
		nand_image_copy_close(new);
		return result;
	}
	/* A hint: at the instant nobody should wait for the drive. */
	(void)madvise(nand->nvram.at, nand->nvram.bytes, MADV_POPULATE_READ);
	*copy = new;
	return 0;
}

void nand_image_copy_close(struct nand_image_copy *copy)
{
	if (!copy)
		return;
	pthread_mutex_lock(&copy->lock);
	/* Nobody who erases waits any more. */
	if (!copy->result)
		copy->result = -ECANCELED;
	pthread_cond_broadcast(&copy->changed);
	pthread_mutex_unlock(&copy->lock);
	pthread_rwlock_wrlock(&copy->nand->erasing);
	if (copy->nand->image_copy == copy)
		copy->nand->image_copy = NULL;
	pthread_rwlock_unlock(&copy->nand->erasing);
	nand_unmap(&copy->nvram);
	nand_unmap(&copy->table);
	free_list(copy->first);
	free_list(copy->free);
	free(copy->own.bytes);
	free(copy->left);
	pthread_cond_destroy(&copy->changed);
	pthread_mutex_destroy(&copy->lock);
	free(copy);
}

/* ---- the instant ---- */

uint8_t *nand_image_copy_nvram(struct nand_image_copy *copy)
{
	return copy->nvram.at;
}

/* Notes a block's word as it is now. Returns the pages that it stands for. */
static uint32_t note_block(struct nand_image_copy *copy, uint32_t block)
{
	const struct nand *nand = copy->nand;
	const _Atomic uint64_t *words = (const _Atomic uint64_t *)(const void *)nand->table.at;
	uint64_t stored = atomic_load_explicit(&words[block], memory_order_acquire);
	struct nand_block_word word;

	memcpy(copy->table.at + (uint64_t)block * sizeof(stored), &stored, sizeof(stored));
	/* A word that is damaged tells nothing. */
	if (!nand_block_word_decode(le64toh(stored), nand->geometry.pages_per_block, &word))
		return nand->geometry.pages_per_block;
	return word.next_page;
}

void nand_image_copy_begin(struct nand_image_copy *copy)
{
	struct nand *nand = copy->nand;
	uint64_t pages = 0;

	pthread_rwlock_wrlock(&nand->erasing);
	/*
	 * From the last block to the first. Who programs several goes the other way, so none is on
	 * record without those that were programmed before it.
	 */
	for (uint32_t block = nand->geometry.blocks; block-- > 0;) {
		copy->left[block] = (uint16_t)note_block(copy, block);
		pages += copy->left[block];
	}
	nand->image_copy = copy;
	pthread_rwlock_unlock(&nand->erasing);
	atomic_store(&copy->total, NAND_SUPERBLOCKS_BYTES + copy->table.bytes + NAND_NVRAM_FILE_AT +
					   nand->nvram_bytes + pages * nand->layout.page_stride);
}

/* ---- errors ---- */

/* With the lock. The first one counts. */
static void fail(struct nand_image_copy *copy, int result, const char *sentence)
{
	if (!copy->result)
		copy->result = error_set(&copy->error, result, "%s", sentence);
	pthread_cond_broadcast(&copy->changed);
}

static int fail_unlocked(struct nand_image_copy *copy, int result, const char *what)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "%s: %s", what, strerror(-result));
	pthread_mutex_lock(&copy->lock);
	fail(copy, result, sentence);
	pthread_mutex_unlock(&copy->lock);
	return result;
}

static int write_out(struct nand_image_copy *copy, int fd, const void *from, uint64_t bytes,
		     uint64_t offset)
{
	int result = nand_write_all(fd, from, bytes, offset);

	if (result)
		return fail_unlocked(copy, result, "the copy can't be written");
	atomic_fetch_add(&copy->done, bytes);
	return 0;
}

/* ---- reading ---- */

/* The first pages of a block as they are stored, past flash and its time. */
static int read_pages(struct nand_image_copy *copy, const struct kept *place)
{
	struct nand *nand = copy->nand;
	uint64_t bytes = (uint64_t)place->pages * nand->layout.page_stride;
	uint64_t offset = nand_block_offset(&nand->layout, place->block);

	/* By direct I/O where pages are moved so: whole units, of which a block has some. */
	if (nand->backend->async)
		return nand->backend->async->fetch(nand, offset, place->bytes,
						   align_up(bytes, NAND_BLOCK_ALIGNMENT));
	return nand_read_all(nand->image_fd, place->bytes, bytes, offset);
}

/* ---- what is erased ---- */

/* After so many milliseconds. */
static struct timespec deadline_in(uint32_t ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += (long)(ms % 1000) * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	return at;
}

/* With the lock: room for a block. NULL: the copy has failed. */
static struct kept *take_place(struct nand_image_copy *copy)
{
	struct timespec deadline = deadline_in(copy->wait_ms);
	struct kept *place;
	int late = 0;

	while (!copy->result && !copy->free && !copy->places_left && !late)
		late = pthread_cond_timedwait(&copy->changed, &copy->lock, &deadline);
	if (copy->result)
		return NULL;
	place = copy->free;
	if (place) {
		copy->free = place->next;
		return place;
	}
	if (!copy->places_left) {
		fail(copy, -ETIMEDOUT,
		     "the copy is written too slowly: the device erases faster, and can't wait; "
		     "write it to a faster place, or when less is written to the device");
		return NULL;
	}
	place = calloc(1, sizeof(*place));
	if (place)
		place->bytes = block_memory(copy->nand);
	if (!place || !place->bytes) {
		free(place);
		fail(copy, -ENOMEM, "out of memory for what is erased meanwhile");
		return NULL;
	}
	copy->places_left--;
	return place;
}

/* With the lock. */
static void give_place(struct nand_image_copy *copy, struct kept *place)
{
	place->next = copy->free;
	copy->free = place;
	pthread_cond_broadcast(&copy->changed);
}

/* A place for what is left of the block. NULL: nothing is, or the copy has failed. */
static struct kept *take_place_of(struct nand_image_copy *copy, uint32_t block, uint32_t *pages)
{
	struct kept *place = NULL;

	pthread_mutex_lock(&copy->lock);
	if (copy->left[block] && !copy->result)
		place = take_place(copy);
	/* A step may have come to the block while this waited for a place. */
	while (copy->reading == block)
		pthread_cond_wait(&copy->changed, &copy->lock);
	*pages = copy->left[block];
	if (place && !*pages) {
		give_place(copy, place);
		place = NULL;
	}
	if (place) {
		copy->left[block] = 0;
		copy->keeping++;
	}
	pthread_mutex_unlock(&copy->lock);
	return place;
}

void nand_image_copy_keep(struct nand_image_copy *copy, uint32_t block)
{
	uint32_t pages;
	struct kept *place = take_place_of(copy, block, &pages);
	int result;

	if (!place)
		return;
	place->block = block;
	place->pages = pages;
	place->next = NULL;
	result = read_pages(copy, place);
	if (result)
		fail_unlocked(copy, result, "the image can't be read");
	pthread_mutex_lock(&copy->lock);
	copy->keeping--;
	*copy->last = place;
	copy->last = &place->next;
	pthread_cond_broadcast(&copy->changed);
	pthread_mutex_unlock(&copy->lock);
}

/* ---- steps ---- */

/* Of a file of the device to one of the copy. */
static int copy_header(struct nand_image_copy *copy, int from, int to, uint64_t at)
{
	uint8_t header[NAND_HEADER_BYTES];
	int result = nand_read_all(from, header, sizeof(header), at);

	return result ? fail_unlocked(copy, result, "the image can't be read")
		      : write_out(copy, to, header, sizeof(header), at);
}

static int write_headers(struct nand_image_copy *copy)
{
	struct nand *nand = copy->nand;
	int result = copy_header(copy, nand->nvram_fd, copy->nvram_fd, 0);

	for (uint64_t at = 0; !result && at < NAND_SUPERBLOCKS_BYTES; at += NAND_HEADER_BYTES)
		result = copy_header(copy, nand->image_fd, copy->image_fd, at);
	if (!result)
		result = write_out(copy, copy->image_fd, copy->table.at, copy->table.bytes,
				   nand->layout.table_offset);
	nand_unmap(&copy->table);
	copy->stage = STAGE_NVRAM;
	return result;
}

static int write_nvram(struct nand_image_copy *copy)
{
	uint64_t left = copy->nand->nvram_bytes - copy->nvram_done;
	uint64_t bytes = min_u64(left, STEP_BYTES);
	int result = write_out(copy, copy->nvram_fd, copy->nvram.at + copy->nvram_done, bytes,
			       NAND_NVRAM_FILE_AT + copy->nvram_done);

	copy->nvram_done += bytes;
	if (bytes == left) {
		nand_unmap(&copy->nvram);
		copy->stage = STAGE_BLOCKS;
	}
	return result;
}

/* The next block that has pages left becomes the one that is read. False: none has. */
static bool choose_block(struct nand_image_copy *copy)
{
	while (copy->next < copy->nand->geometry.blocks && !copy->left[copy->next])
		copy->next++;
	if (copy->next == copy->nand->geometry.blocks)
		return false;
	copy->reading = copy->own.block = copy->next;
	copy->own.pages = copy->left[copy->next];
	copy->left[copy->next] = 0;
	return true;
}

/* With the lock: what is kept, the first of it. NULL: nothing. */
static struct kept *take_kept(struct nand_image_copy *copy)
{
	struct kept *place = copy->first;

	if (!place)
		return NULL;
	copy->first = place->next;
	if (!copy->first)
		copy->last = &copy->first;
	return place;
}

/* What is kept comes first: somebody may wait for its place. NULL: all blocks are copied. */
static struct kept *take_next(struct nand_image_copy *copy)
{
	struct kept *place;

	pthread_mutex_lock(&copy->lock);
	while (!(place = take_kept(copy)) && !copy->result) {
		if (choose_block(copy))
			place = &copy->own;
		if (place || !copy->keeping)
			break;
		pthread_cond_wait(&copy->changed, &copy->lock);
	}
	pthread_mutex_unlock(&copy->lock);
	return place;
}

static int read_chosen(struct nand_image_copy *copy)
{
	int result = read_pages(copy, &copy->own);

	pthread_mutex_lock(&copy->lock);
	copy->reading = NO_BLOCK;
	pthread_cond_broadcast(&copy->changed);
	pthread_mutex_unlock(&copy->lock);
	return result ? fail_unlocked(copy, result, "the image can't be read") : 0;
}

/* It may tell of an error that fsync does not tell of again. Not every host has it. */
static int sync_range(const struct nand_image_copy *copy, uint64_t from, uint64_t to,
		      unsigned int flags)
{
	if (to <= from ||
	    sync_file_range(copy->image_fd, (off_t)from, (off_t)(to - from), flags) == 0)
		return 0;
	return errno == ENOSYS ? 0 : -errno;
}

/* So that a sync at the end does not find all of it, and the host's memory is not full of it. */
static int send_to_drive(struct nand_image_copy *copy, uint64_t from, uint64_t to)
{
	int result = sync_range(copy, from, to, SYNC_FILE_RANGE_WRITE);

	if (!result)
		result = sync_range(copy, copy->written_from, copy->written_to,
				    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					    SYNC_FILE_RANGE_WAIT_AFTER);
	if (result)
		return fail_unlocked(copy, result, "the copy can't be written");
	if (copy->written_to > copy->written_from)
		(void)posix_fadvise(copy->image_fd, (off_t)copy->written_from,
				    (off_t)(copy->written_to - copy->written_from),
				    POSIX_FADV_DONTNEED);
	copy->written_from = from;
	copy->written_to = to;
	return 0;
}

static uint64_t bytes_of(const struct nand_image_copy *copy, const struct kept *place)
{
	return (uint64_t)place->pages * copy->nand->layout.page_stride;
}

static int write_pages(struct nand_image_copy *copy, const struct kept *place)
{
	return write_out(copy, copy->image_fd, place->bytes, bytes_of(copy, place),
			 nand_block_offset(&copy->nand->layout, place->block));
}

/* ... of a block that was erased; then its place is free. */
static int write_kept(struct nand_image_copy *copy, struct kept *place)
{
	int result = write_pages(copy, place);

	pthread_mutex_lock(&copy->lock);
	give_place(copy, place);
	pthread_mutex_unlock(&copy->lock);
	return result;
}

static int write_all_kept(struct nand_image_copy *copy)
{
	struct kept *place;
	int result = 0;

	do {
		pthread_mutex_lock(&copy->lock);
		place = take_kept(copy);
		pthread_mutex_unlock(&copy->lock);
		if (place)
			result = write_kept(copy, place);
	} while (!result && place);
	return result;
}

static int write_blocks(struct nand_image_copy *copy)
{
	uint64_t from = UINT64_MAX, to = 0, written = 0;
	struct kept *place = NULL;
	int result = 0;

	while (!result && written < STEP_BYTES && (place = take_next(copy))) {
		written += bytes_of(copy, place);
		if (place != &copy->own) {
			result = write_kept(copy, place);
			continue;
		}
		from = min_u64(from, nand_block_offset(&copy->nand->layout, place->block));
		to = nand_block_offset(&copy->nand->layout, place->block) + bytes_of(copy, place);
		result = read_chosen(copy);
		if (!result)
			result = write_pages(copy, place);
	}
	if (!result)
		result = send_to_drive(copy, from, to);
	if (!result && !place)
		copy->stage = STAGE_SYNC;
	return result;
}

static int sync_files(struct nand_image_copy *copy)
{
	copy->stage = STAGE_DONE;
	if (fsync(copy->image_fd) || fsync(copy->nvram_fd))
		return fail_unlocked(copy, -errno, "the copy can't be written");
	return 0;
}

int nand_image_copy_step(struct nand_image_copy *copy, struct error_text *error)
{
	static int (*const stages[])(struct nand_image_copy * copy) = {
		[STAGE_HEADERS] = write_headers,
		[STAGE_NVRAM] = write_nvram,
		[STAGE_BLOCKS] = write_blocks,
		[STAGE_SYNC] = sync_files,
	};
	int result;

	if (copy->stage != STAGE_DONE && write_all_kept(copy) == 0)
		(void)stages[copy->stage](copy);
	pthread_mutex_lock(&copy->lock);
	result = copy->result;
	if (result)
		*error = copy->error;
	pthread_mutex_unlock(&copy->lock);
	return result ? result : copy->stage != STAGE_DONE;
}

void nand_image_copy_pause(struct nand_image_copy *copy, uint32_t ms)
{
	struct timespec deadline = deadline_in(ms);
	int late = 0;

	pthread_mutex_lock(&copy->lock);
	while (!copy->result && !copy->first && !late)
		late = pthread_cond_timedwait(&copy->changed, &copy->lock, &deadline);
	pthread_mutex_unlock(&copy->lock);
}

void nand_image_copy_progress(struct nand_image_copy *copy, uint64_t *done, uint64_t *total)
{
	*done = atomic_load(&copy->done);
	*total = atomic_load(&copy->total);
}
