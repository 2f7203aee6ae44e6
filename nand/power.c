/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Counting operations down to the cut; what it leaves on flash and in the NVRAM. */
#include "nand/power.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/lab.h"
#include "nand/page.h"
#include "nand/space.h"

#define MIXED_BYTES 4096

/* Linux 5.14; older headers lack it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct power_state {
	pthread_mutex_t lock; /* all below, but for the atomics */
	bool armed;
	struct nand_power_cut cut;
	uint64_t operations;
	_Atomic bool off;
	_Atomic bool count_reads; /* as in `cut`, for those who do not take the lock */
	char in_flight[64];
	/*
	 * The NVRAM region as flushed, while a cut is armed. While the power is off: as it will be
	 * found, unless the file has that already.
	 */
	uint8_t *kept;
};

/* xorshift64* (Vigna 2016): garbage for pages; the state is never 0. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545F4914F6CDD1DU;
}

static void fill_random(void *to, size_t bytes, uint64_t *random)
{
	uint8_t *next = to;

	for (size_t i = 0; i < bytes; i++)
		next[i] = (uint8_t)(next_random(random) >> 56);
}

/* ---- the NVRAM ---- */

static uint8_t *region(const struct nand *nand)
{
	return nand->nvram.at + NAND_HEADER_BYTES;
}

/*
 * Copies a part of the region into `kept`. The host copies a file's part, because other threads may
 * be storing to it. Of a device in memory, whoever arms a cut sees to it that nobody is.
 */
static int keep(struct nand *nand, struct power_state *power, uint64_t offset, uint64_t length)
{
	if (nand->nvram_fd >= 0)
		return nand_read_all(nand->nvram_fd, power->kept + offset, length,
				     NAND_HEADER_BYTES + offset);
	memcpy(power->kept + offset, region(nand) + offset, length);
	return 0;
}

static int keep_mixed(struct nand *nand, struct power_state *power)
{
	uint64_t random = power->cut.seed | 1;
	int result = 0;

	for (uint64_t at = 0; at < nand->nvram_bytes && result == 0; at += MIXED_BYTES)
		if (next_random(&random) >> 63)
			result =
				keep(nand, power, at, min_u64(MIXED_BYTES, nand->nvram_bytes - at));
	return result;
}

/* Turns `kept`, as flushed, into what will be found. */
static int settle_nvram(struct nand *nand, struct power_state *power)
{
	switch (power->cut.nvram) {
	case NAND_CUT_NVRAM_LOST:
		memset(power->kept, 0, nand->nvram_bytes);
		return 0;
	case NAND_CUT_NVRAM_MIXED:
		return keep_mixed(nand, power);
	case NAND_CUT_NVRAM_KEPT:
		return keep(nand, power, 0, nand->nvram_bytes);
	default: /* flushed: it is that already */
		return 0;
	}
}

/*
 * Takes the file of an image's NVRAM from under all threads at one instant, as a power cut does:
 * mmap replaces the mapping in one step. A thread that stores meanwhile waits for it in the host.
 * So the file has all that a thread stored before some moment and nothing of what it stored later,
 * nor what another one stored after it saw that. Everybody goes on with the same contents in
 * private memory, which the file's changes reach no more.
 */
static int detach_nvram(struct nand *nand)
{
	int result = 0;

	pthread_mutex_lock(&nand->lab_lock);
	if (mmap(nand->nvram.at, nand->nvram.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 nand->nvram_fd, 0) == MAP_FAILED)
		result = -errno;
	else
		nand->nvram_is_private = true;
	if (result == 0 && madvise(nand->nvram.at, nand->nvram.bytes, MADV_POPULATE_WRITE) < 0)
		result = -errno;
	pthread_mutex_unlock(&nand->lab_lock);
	return result;
}

/* Leaves the NVRAM as the cut wants it. */
static int cut_nvram(struct nand *nand, struct power_state *power)
{
	int result;

	if (nand->nvram_fd < 0)
		return settle_nvram(nand, power);
	result = detach_nvram(nand);
	if (result < 0 || power->cut.nvram == NAND_CUT_NVRAM_KEPT)
		return result;
	result = settle_nvram(nand, power);
	return result < 0 ? result
			  : nand_write_all(nand->nvram_fd, power->kept, nand->nvram_bytes,
					   NAND_HEADER_BYTES);
}

static int attach_nvram(struct nand *nand)
{
	int result = 0;

	pthread_mutex_lock(&nand->lab_lock);
	if (mmap(nand->nvram.at, nand->nvram.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 nand->nvram_fd, 0) == MAP_FAILED)
		result = -errno;
	else
		nand->nvram_is_private = false;
	pthread_mutex_unlock(&nand->lab_lock);
	return result;
}

int nand_power_nvram_synced(struct nand *nand, uint64_t offset, uint64_t length)
{
	struct power_state *power = nand->power;
	int result = 0;

	pthread_mutex_lock(&power->lock);
	if (power->off)
		result = -EIO;
	else if (power->armed)
		result = keep(nand, power, offset, length);
	pthread_mutex_unlock(&power->lock);
	return result;
}

/* ---- the cut ---- */

bool nand_power_is_off_slow(struct nand *nand)
{
	return atomic_load(&nand->power->off);
}

/* Under the lock. `in_flight` says what. */
__attribute__((format(printf, 3, 4))) static void switch_off(struct nand *nand,
							     struct power_state *power,
							     const char *in_flight, ...)
{
	va_list arguments;
	int result;

	va_start(arguments, in_flight);
	vsnprintf(power->in_flight, sizeof(power->in_flight), in_flight, arguments);
	va_end(arguments);
	result = cut_nvram(nand, power);
	if (result < 0)
		log_line(LOG_LEVEL_ERROR,
			 "%s.nvram: cannot be left as the power cut wants it (%s): it may hold "
			 "anything",
			 nand->path, strerror(-result));
	atomic_store(&power->off, true);
	log_line(LOG_LEVEL_WARNING,
		 "%s: power cut after %" PRIu64
		 " operations, in the %s: everything fails until the "
		 "device is opened again",
		 nand->path, power->operations, power->in_flight);
}

/*
 * Counts an operation. 0: it goes on; 1, with the lock held: it is the one in flight; -EIO: the
 * power is off.
 */
static int count_operation(struct power_state *power, bool counts)
{
	if (atomic_load(&power->off))
		return -EIO;
	if (!counts)
		return 0;
	pthread_mutex_lock(&power->lock);
	if (power->off || !power->armed || power->operations < power->cut.after) {
		int result = power->off ? -EIO : 0;

		power->operations += power->armed && !power->off;
		pthread_mutex_unlock(&power->lock);
		return result;
	}
	return 1;
}

int nand_power_read_slow(struct nand *nand, uint64_t page)
{
	struct power_state *power = nand->power;
	int result = count_operation(power, atomic_load(&power->count_reads));

	if (result <= 0)
		return result;
	switch_off(nand, power, "read of page %" PRIu64, page);
	pthread_mutex_unlock(&power->lock);
	return -EIO;
}

int nand_power_sync_slow(struct nand *nand, const char *what)
{
	struct power_state *power = nand->power;
	int result = count_operation(power, true);

	if (result <= 0)
		return result;
	switch_off(nand, power, "%s", what);
	pthread_mutex_unlock(&power->lock);
	return -EIO;
}

int nand_power_point(struct nand *nand)
{
	return nand_power_sync(nand, "scenario");
}

/* Leaves the page in flight as the cut says. */
static void break_program(struct nand *nand, const struct power_state *power,
			  const struct nand_page_io *io, const struct nand_page_way *way)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint32_t bytes = geometry->page_bytes + geometry->spare_bytes;
	uint64_t random = (power->cut.seed ^ io->page << 20) | 1;
	uint8_t *page;

	if (power->cut.page == NAND_CUT_PAGE_ABSENT)
		return;
	page = malloc(bytes);
	if (!page)
		return; /* absent, then */
	memcpy(page, io->data, geometry->page_bytes);
	nand_page_seal(nand, io, way, page + geometry->page_bytes);
	if (power->cut.page == NAND_CUT_PAGE_GARBAGE)
		fill_random(page, bytes, &random);
	else if (power->cut.torn_bytes < bytes)
		memset(page + power->cut.torn_bytes, 0xFF, bytes - power->cut.torn_bytes);
	if (nand->backend->write(nand, io->page, page, page + geometry->page_bytes) == 0)
		nand_page_program_finish(nand, way);
	free(page);
}

int nand_power_program_slow(struct nand *nand, const struct nand_page_io *io,
			    const struct nand_page_way *way)
{
	struct power_state *power = nand->power;
	int result = count_operation(power, true);

	if (result <= 0)
		return result;
	break_program(nand, power, io, way);
	switch_off(nand, power, "program of page %" PRIu64, io->page);
	pthread_mutex_unlock(&power->lock);
	return -EIO;
}

/* Half of the pages lose what they held; the block stays what it was in the eyes of its state. */
static void break_erase(struct nand *nand, const struct power_state *power, uint32_t block,
			const struct nand_block_word *before)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t random = (power->cut.seed ^ (uint64_t)block << 20) | 1;
	uint64_t first = (uint64_t)block * geometry->pages_per_block;
	uint8_t *page = malloc(geometry->page_bytes + geometry->spare_bytes);

	if (!page)
		return; /* as before, then */
	for (uint32_t i = 0; i < before->next_page; i++) {
		if (next_random(&random) >> 63)
			continue;
		fill_random(page, geometry->page_bytes + geometry->spare_bytes, &random);
		nand->backend->write(nand, first + i, page, page + geometry->page_bytes);
	}
	free(page);
}

int nand_power_erase_slow(struct nand *nand, uint32_t block, const struct nand_block_word *before)
{
	struct power_state *power = nand->power;
	struct nand_block_word erased = *before;
	int result = count_operation(power, true);

	if (result <= 0)
		return result;
	if (power->cut.erase == NAND_CUT_ERASE_HALF) {
		break_erase(nand, power, block, before);
	} else if (power->cut.erase == NAND_CUT_ERASE_DONE) {
		erased.next_page = 0;
		erased.erase_count += erased.erase_count < UINT32_MAX;
		nand_word_store(nand, block, &erased);
		nand->backend->discard(nand, block);
	}
	switch_off(nand, power, "erase of block %u", block);
	pthread_mutex_unlock(&power->lock);
	return -EIO;
}

/* ---- arming, and power again ---- */

static int check_cut(const struct nand *nand, const struct nand_power_cut *cut,
		     struct error_text *error)
{
	if (cut->page >= NAND_CUT_PAGES || cut->erase >= NAND_CUT_ERASES ||
	    cut->nvram >= NAND_CUT_NVRAMS)
		return error_set(error, -EINVAL,
				 "bad power cut: no such state of a page, an erase "
				 "or the NVRAM");
	if (nand->read_only)
		return error_set(error, -EROFS, "%s is open for reading only: no power cut there",
				 nand->path);
	return 0;
}

/* Under nand->lab_lock. */
static struct power_state *power_state(struct nand *nand)
{
	struct power_state *power = nand->power;

	if (power)
		return power;
	power = calloc(1, sizeof(*power));
	if (!power)
		return NULL;
	power->kept = malloc(max_u64(nand->nvram_bytes, 1));
	if (!power->kept) {
		free(power);
		return NULL;
	}
	pthread_mutex_init(&power->lock, NULL);
	nand->power = power;
	return power;
}

int nand_arm_power_cut(struct nand *nand, const struct nand_power_cut *cut,
		       struct error_text *error)
{
	struct power_state *power;
	int result = check_cut(nand, cut, error);

	if (result < 0)
		return result;
	pthread_mutex_lock(&nand->lab_lock);
	power = power_state(nand);
	pthread_mutex_unlock(&nand->lab_lock);
	if (!power)
		return error_set(error, -ENOMEM, "no memory for a power cut of %s", nand->path);
	pthread_mutex_lock(&power->lock);
	if (power->off)
		result = error_set(error, -EIO, "the power of %s is off already", nand->path);
	else if ((result = keep(nand, power, 0, nand->nvram_bytes)) < 0)
		error_set(error, result, "%s.nvram can't be read: %s", nand->path,
			  strerror(-result));
	if (result == 0) {
		power->cut = *cut;
		atomic_store(&power->count_reads, cut->count_reads);
		power->operations = 0;
		power->armed = true;
		nand_feature_switch(nand, NAND_FEATURE_POWER, true);
	}
	pthread_mutex_unlock(&power->lock);
	return result;
}

/* NULL: no cut was ever armed. */
static struct power_state *existing_state(struct nand *nand)
{
	struct power_state *power;

	pthread_mutex_lock(&nand->lab_lock);
	power = nand->power;
	pthread_mutex_unlock(&nand->lab_lock);
	return power;
}

void nand_disarm_power_cut(struct nand *nand)
{
	struct power_state *power = existing_state(nand);

	if (!power)
		return;
	pthread_mutex_lock(&power->lock);
	if (!power->off) {
		nand_feature_switch(nand, NAND_FEATURE_POWER, false);
		power->armed = false;
	}
	pthread_mutex_unlock(&power->lock);
}

void nand_power_status(struct nand *nand, struct nand_power_status *status)
{
	struct power_state *power = existing_state(nand);

	*status = (struct nand_power_status){ 0 };
	if (!power)
		return;
	pthread_mutex_lock(&power->lock);
	status->armed = power->armed;
	status->off = power->off;
	status->operations = power->operations;
	memcpy(status->in_flight, power->in_flight, sizeof(status->in_flight));
	pthread_mutex_unlock(&power->lock);
}

int nand_power_on(struct nand *nand)
{
	struct power_state *power = existing_state(nand);
	int result = 0;

	if (!power)
		return 0;
	pthread_mutex_lock(&power->lock);
	if (power->off && nand->nvram_fd >= 0)
		result = attach_nvram(nand);
	else if (power->off)
		memcpy(region(nand), power->kept, nand->nvram_bytes);
	if (power->off && result == 0) {
		power->armed = false;
		power->in_flight[0] = 0;
		atomic_store(&power->off, false);
		nand_feature_switch(nand, NAND_FEATURE_POWER, false);
	}
	pthread_mutex_unlock(&power->lock);
	return result;
}

void nand_power_free(struct nand *nand)
{
	if (!nand->power)
		return;
	pthread_mutex_destroy(&nand->power->lock);
	free(nand->power->kept);
	free(nand->power);
	nand->power = NULL;
}
