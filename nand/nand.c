/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The functions of nand.h on an open device: what happens to one page is in page.c. */
#include "nand/nand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/calls.h"
#include "nand/image_copy.h"
#include "nand/lab.h"
#include "nand/page.h"
#include "nand/private.h"
#include "nand/stage.h"

const char *nand_path(const struct nand *nand)
{
	return nand->path;
}

const struct nand_geometry *nand_geometry(const struct nand *nand)
{
	return &nand->geometry;
}

uint32_t nand_page_stride(const struct nand *nand)
{
	return nand->layout.page_stride;
}

const char *nand_contents(const struct nand *nand)
{
	return nand->contents;
}

const uint8_t *nand_uuid(const struct nand *nand)
{
	return nand->uuid;
}

void nand_set_violation_policy(struct nand *nand, enum nand_violation_policy policy)
{
	nand->violation_policy = policy;
}

/* ---- the block table ---- */

/*
 * Notes that there is something to sync. Comes after the stores that it is about. It stores
 * unconditionally: a load that asks first could overtake them.
 */
static void set_dirty(struct nand *nand)
{
	atomic_store_explicit(&nand->dirty, true, memory_order_release);
}

void nand_table_initialise(uint8_t *to, uint32_t count)
{
	const struct nand_block_word erased = { 0 };
	uint64_t word = nand_block_word_encode(&erased);

	for (uint32_t i = 0; i < count; i++)
		put_le64(to + i * sizeof(word), word);
}

int nand_block_info(struct nand *nand, uint32_t block, struct nand_block_info *info)
{
	struct nand_block_word word;

	if (block >= nand->geometry.blocks)
		return -ERANGE;
	if (nand_power_is_off(nand))
		return -EIO;
	if (!nand_word_load(nand, block, &word))
		return -EBADMSG;
	*info = (struct nand_block_info){
		.state = word.bad ? NAND_BLOCK_BAD : NAND_BLOCK_GOOD,
		.next_page = word.next_page,
		.erase_count = word.erase_count,
	};
	return 0;
}

int nand_mark_bad(struct nand *nand, uint32_t block)
{
	struct nand_block_word word = { 0 };

	if (nand->read_only)
		return -EROFS;
	if (block >= nand->geometry.blocks)
		return -ERANGE;
	if (nand_power_is_off(nand))
		return -EIO;
	nand_word_load(nand, block, &word);
	word.bad = true;
	nand_word_store(nand, block, &word);
	set_dirty(nand);
	return 0;
}

/* ---- pages ---- */

static void count_io(_Atomic uint64_t *pages, _Atomic uint64_t *bytes, uint64_t more_pages,
		     uint64_t more_bytes)
{
	atomic_fetch_add_explicit(pages, more_pages, memory_order_relaxed);
	atomic_fetch_add_explicit(bytes, more_bytes, memory_order_relaxed);
}

static uint32_t block_of(const struct nand *nand, uint64_t page)
{
	return (uint32_t)(page / nand->geometry.pages_per_block);
}

typedef int page_reader(struct nand *nand, uint64_t page, void *data, void *spare);

/* Reads one page by a function of the back end; adds to `bytes` what was transferred. */
static int read_page(struct nand *nand, page_reader *read, const struct nand_page_io *io,
		     uint64_t *bytes)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint8_t spare[NAND_SPARE_BYTES_MAX];
	struct nand_page_way way;
	int result = nand_page_read_begin(nand, io, &way);

	if (result == 0)
		result = read(nand, io->page, io->data, spare);
	if (result < 0)
		return result;
	*bytes += geometry->spare_bytes + (io->data ? geometry->page_bytes : 0);
	return nand_page_read_finish(nand, io, &way, spare);
}

void nand_count_read(struct nand *nand, enum nand_cause cause, uint64_t pages, uint64_t bytes,
		     int result)
{
	struct nand_cause_counters *counters = &nand->by_cause[cause];

	count_io(&counters->pages_read, &counters->bytes_read, pages, bytes);
	if (result == -EBADMSG)
		atomic_fetch_add_explicit(&nand->uncorrectable_reads, 1, memory_order_relaxed);
}

static int read_each(struct nand *nand, page_reader *read, struct nand_timed *timed,
		     enum nand_cause cause, const struct nand_page_io *pages, size_t count,
		     size_t *done)
{
	uint64_t pages_read = 0, bytes_read = 0;
	int result = 0;

	for (*done = 0; *done < count; ++*done) {
		uint64_t before = bytes_read;

		result = read_page(nand, read, &pages[*done], &bytes_read);
		if (bytes_read != before) {
			pages_read++;
			nand_timed_page(nand, timed, NAND_READ, block_of(nand, pages[*done].page),
					bytes_read - before);
		}
		if (result < 0)
			break;
	}
	nand_count_read(nand, cause, pages_read, bytes_read, result);
	return result;
}

int nand_read_each(struct nand *nand, struct nand_timed *timed, enum nand_cause cause,
		   const struct nand_page_io *pages, size_t count, size_t *done)
{
	return read_each(nand, nand->backend->read, timed, cause, pages, count, done);
}

int nand_read(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
	      size_t count)
{
	const struct nand_request request = { .kind = NAND_REQUEST_READ,
					      .cause = cause,
					      .pages = pages };
	struct nand_timed timed;
	size_t done;
	int result;

	/*
	 * A page by itself takes the shortest way: one system call that waits, no queue, no lock.
	 */
	if (nand->backend->async && count > 1)
		return nand_call(nand, &request, count);
	nand_timed_begin(nand, &timed);
	result = nand_read_each(nand, &timed, cause, pages, count, &done);
	nand_timed_end(nand, &timed);
	return result;
}

/* One page at hand; notes in the stage what is not. */
static int read_page_at_hand(struct nand *nand, struct nand_stage *stage, enum nand_cause cause,
			     const struct nand_page_io *io)
{
	struct nand_timed timed;
	int result = -EINPROGRESS;
	size_t done;

	if (stage && nand_stage_copy(nand, stage, io))
		return 0;
	/* Where pages take their time, those who have a stage are to do something else meanwhile.
	 */
	if (nand->backend->read_at_hand && !nand_timed_waits(nand) &&
	    !(stage && nand_timed_is_virtual(nand))) {
		nand_timed_begin(nand, &timed);
		result = read_each(nand, nand->backend->read_at_hand, &timed, cause, io, 1, &done);
		nand_timed_end(nand, &timed);
	}
	if (result == -EINPROGRESS && stage)
		nand_stage_note(nand, stage, io->page);
	return result;
}

int nand_read_at_hand(struct nand *nand, struct nand_stage *stage, enum nand_cause cause,
		      const struct nand_page_io *pages, size_t count)
{
	int result = 0;

	/* Of those that are not at hand the stage is told all. */
	for (size_t i = 0; i < count && (!result || result == -EINPROGRESS); i++) {
		int read = read_page_at_hand(nand, stage, cause, &pages[i]);

		result = read ? read : result;
	}
	return result;
}

void nand_count_programmed(struct nand *nand, enum nand_cause cause, uint64_t pages)
{
	struct nand_cause_counters *counters = &nand->by_cause[cause];
	uint64_t page_bytes = nand->geometry.page_bytes + nand->geometry.spare_bytes;

	if (pages > 0)
		set_dirty(nand);
	count_io(&counters->pages_programmed, &counters->bytes_programmed, pages,
		 pages * page_bytes);
}

static int program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
		   size_t count, bool whole)
{
	const struct nand_request request = {
		.kind = NAND_REQUEST_PROGRAM, .cause = cause, .pages = pages, .whole = whole
	};
	struct nand_timed timed;
	size_t done;
	int result;

	if (nand->backend->async)
		return nand_call(nand, &request, count);
	nand_timed_begin(nand, &timed);
	result = nand_program_each(nand, &timed, cause, pages, count, &done);
	nand_timed_end(nand, &timed);
	return result;
}

int nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
		 size_t count)
{
	return program(nand, cause, pages, count, false);
}

int nand_program_whole(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
		       size_t count)
{
	return program(nand, cause, pages, count, true);
}

/* The state first, then the contents. */
static int erase_contents(struct nand *nand, uint32_t block, struct nand_block_word *word)
{
	bool fails = nand_erase_fails(nand, block, word);

	if (!fails) {
		word->next_page = 0;
		if (word->erase_count < UINT32_MAX)
			word->erase_count++;
		nand_word_store(nand, block, word);
		nand->backend->discard(nand, block);
	}
	set_dirty(nand);
	return fails ? -EIO : 0;
}

static int erase_block(struct nand *nand, uint32_t block, struct nand_block_word *word)
{
	struct nand_timed timed;
	int result = nand_power_erase(nand, block, word);

	if (result < 0)
		return result;
	nand_timed_begin(nand, &timed);
	nand_timed_page(nand, &timed, NAND_ERASE, block, 0);
	pthread_rwlock_rdlock(&nand->erasing);
	if (nand->image_copy)
		nand_image_copy_keep(nand->image_copy, block);
	result = erase_contents(nand, block, word);
	pthread_rwlock_unlock(&nand->erasing);
	nand_timed_end(nand, &timed);
	return result;
}

int nand_erase(struct nand *nand, enum nand_cause cause, uint32_t block)
{
	struct nand_block_word word = { 0 };
	int result;

	if (nand->read_only)
		return -EROFS;
	if (block >= nand->geometry.blocks)
		return -ERANGE;
	if (!nand_word_load(nand, block, &word)) {
		log_line(LOG_LEVEL_WARNING,
			 "%s: state of block %u was damaged: erased, its erase count starts again "
			 "at 0",
			 nand->path, block);
		word = (struct nand_block_word){ 0 };
	}
	if (word.bad)
		return nand_violation(nand, "bad block %u erased", block);
	if (nand_pages_on_the_way(nand, block) > 0)
		return nand_violation(nand, "block %u erased while pages of it are programmed",
				      block);
	result = erase_block(nand, block, &word);
	if (result < 0)
		return result;
	atomic_fetch_add_explicit(&nand->by_cause[cause].blocks_erased, 1, memory_order_relaxed);
	return 0;
}

/* ---- stable storage ---- */

/* With the lock: syncs, unless nothing is to be synced. */
static void sync_dirty(struct nand *nand)
{
	if (nand->sync_failed || !atomic_exchange(&nand->dirty, false))
		return;
	atomic_fetch_add(&nand->syncs_begun, 1);
	atomic_fetch_add_explicit(&nand->image_syncs, 1, memory_order_relaxed);
	nand->sync_failed = nand->backend->sync(nand) < 0;
}

/*
 * One sync at a time. It serves all callers that waited when it began, whatever others program
 * meanwhile. A failed sync stays failed. The host marks pages clean that it could not write, so a
 * second sync would succeed without cause.
 */
static int sync_image(struct nand *nand)
{
	uint64_t begun;
	int result = 0;

	if (nand->read_only)
		return 0;
	result = nand_power_sync(nand, "sync of the image");
	if (result < 0)
		return result;
	/* Not a load: who counts the next one on sees what has been stored before this. */
	begun = atomic_fetch_add(&nand->syncs_begun, 0);
	atomic_fetch_add(&nand->sync_callers, 1);
	pthread_mutex_lock(&nand->sync_lock);
	if (atomic_load(&nand->syncs_begun) == begun)
		sync_dirty(nand);
	if (nand->sync_failed)
		result = -EIO;
	pthread_mutex_unlock(&nand->sync_lock);
	atomic_fetch_sub(&nand->sync_callers, 1);
	return result;
}

int nand_sync(struct nand *nand, uint32_t first, uint32_t count)
{
	if ((uint64_t)first + count > nand->geometry.blocks)
		return -ERANGE;
	return count == 0 ? 0 : sync_image(nand);
}

void nand_read_counters(struct nand *nand, struct nand_counters *counters)
{
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		struct nand_cause_counters *from = &nand->by_cause[cause];

		counters->by_cause[cause].pages_read = atomic_load(&from->pages_read);
		counters->by_cause[cause].pages_programmed = atomic_load(&from->pages_programmed);
		counters->by_cause[cause].blocks_erased = atomic_load(&from->blocks_erased);
		counters->by_cause[cause].bytes_read = atomic_load(&from->bytes_read);
		counters->by_cause[cause].bytes_programmed = atomic_load(&from->bytes_programmed);
	}
	counters->rule_violations = atomic_load(&nand->rule_violations);
	counters->uncorrectable_reads = atomic_load(&nand->uncorrectable_reads);
	counters->image_syncs = atomic_load(&nand->image_syncs);
	counters->nvram_sync_requests = atomic_load(&nand->nvram_sync_requests);
	counters->nvram_syncs = atomic_load(&nand->nvram_syncs);
	counters->nvram_bytes_synced = atomic_load(&nand->nvram_bytes_synced);
}

/* ---- the end of a handle ---- */

void nand_free(struct nand *nand)
{
	nand_calls_close(nand);
	if (nand->backend)
		nand->backend->close(nand);
	nand_unmap(&nand->table);
	nand_unmap(&nand->nvram);
	if (nand->nvram_fd >= 0)
		close(nand->nvram_fd);
	if (nand->image_fd >= 0)
		close(nand->image_fd); /* the lock goes with it, last */
	if (nand->copied_fd >= 0)
		close(nand->copied_fd);
	nand_lab_free(nand);
	nand_nvram_group_destroy(&nand->nvram_group);
	pthread_rwlock_destroy(&nand->erasing);
	pthread_mutex_destroy(&nand->sync_lock);
	pthread_mutex_destroy(&nand->ballast_lock);
	pthread_mutex_destroy(&nand->space_lock);
	free((void *)nand->on_the_way);
	free(nand->path);
	free(nand);
}

int nand_close(struct nand *nand)
{
	int result = sync_image(nand);
	int nvram_result = nand_nvram_sync(nand, 0, nand->nvram_bytes);

	nand_free(nand);
	return result < 0 ? result : nvram_result;
}

void nand_abandon(struct nand *nand)
{
	nand_free(nand);
}
