/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes the NVRAM stable with one sync for several callers. */
#include "nand/nvram.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/lab.h"
#include "nand/space.h"

static_assert(NAND_NVRAM_FILE_AT == NAND_HEADER_BYTES, "the region follows the file's header");

/* Requests that are nearer to each other are one range. */
#define RANGE_GAP_BYTES (64 << 10)

/* So much is taken out of the mapping before it is written; for less that would cost more. */
#define UNMAP_FROM_BYTES (16 << 10)

/* A flush of all asks for more, what the index says of a segment for less. */
#define SMALL_BYTES_MAX (512 << 10)

/* Where a range begins in the file: the host has it in pages. */
static uint64_t page_begin(const struct nand_nvram_range *range)
{
	return (NAND_HEADER_BYTES + range->from) & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

static uint64_t page_bytes(const struct nand_nvram_range *range)
{
	return NAND_HEADER_BYTES + range->to - page_begin(range);
}

/*
 * Takes pages out of the mapping, which brings them back when they are used. With each page that it
 * writes the host stops all processors that run the process, unless the page is not mapped; to take
 * many out it stops them once. Private pages, behind a power cut, would come back as the file is.
 */
static void unmap_range(struct nand *nand, const struct nand_nvram_range *range)
{
	if (page_bytes(range) < UNMAP_FROM_BYTES)
		return;
	pthread_mutex_lock(&nand->lab_lock);
	if (!nand->nvram_is_private)
		(void)madvise(nand->nvram.at + page_begin(range), page_bytes(range), MADV_DONTNEED);
	pthread_mutex_unlock(&nand->lab_lock);
}

/*
 * The host writes all ranges while msync waits for the first. Only msync makes stable, and tells of
 * errors: a file system may take the other call for done, and it would tell of an error only once.
 */
static int store_mapped(struct nand *nand, const struct nand_nvram_range *ranges, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++)
		unmap_range(nand, &ranges[n]);
	for (uint32_t n = 1; n < count; n++)
		(void)sync_file_range(nand->nvram_fd, (off_t)page_begin(&ranges[n]),
				      (off_t)page_bytes(&ranges[n]), SYNC_FILE_RANGE_WRITE);
	for (uint32_t n = 0; n < count; n++)
		if (msync(nand->nvram.at + page_begin(&ranges[n]), page_bytes(&ranges[n]),
			  MS_SYNC) < 0)
			return -errno;
	return 0;
}

/* A file system in memory has nothing behind it: what is stored there is as stable as it gets. */
static int store_nowhere(struct nand *nand, const struct nand_nvram_range *ranges, uint32_t count)
{
	(void)nand;
	(void)ranges;
	(void)count;
	return 0;
}

void nand_nvram_group_init(struct nand_nvram_group *group)
{
	*group = (struct nand_nvram_group){ .small = { .gathering = 1, .witness = -1 },
					    .large = { .gathering = 1, .witness = -1 },
					    .store = store_mapped };
	pthread_mutex_init(&group->lock, NULL);
	pthread_cond_init(&group->done, NULL);
}

int nand_nvram_group_open(struct nand_nvram_group *group, int nvram_fd)
{
	char name[32];

	if (nand_space_is_memory(nvram_fd)) {
		group->store = store_nowhere;
		return 0;
	}
	/* Another open file, not another descriptor of the same one. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", nvram_fd);
	group->small.witness = open(name, O_RDWR | O_CLOEXEC);
	group->large.witness = open(name, O_RDWR | O_CLOEXEC);
	return group->small.witness < 0 || group->large.witness < 0 ? -errno : 0;
}

void nand_nvram_group_destroy(struct nand_nvram_group *group)
{
	if (group->small.witness >= 0)
		close(group->small.witness);
	if (group->large.witness >= 0)
		close(group->large.witness);
	pthread_cond_destroy(&group->done);
	pthread_mutex_destroy(&group->lock);
}

void *nand_nvram(struct nand *nand, uint64_t *bytes)
{
	if (bytes)
		*bytes = nand->nvram_bytes;
	return nand->nvram.at + NAND_HEADER_BYTES;
}

static uint64_t bytes_of(const struct nand_nvram_range *ranges, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t n = 0; n < count; n++)
		bytes += ranges[n].to - ranges[n].from;
	return bytes;
}

/* Whether anybody's sync has met an error that this lane was not told of. 0 or -errno. */
static int ask_witness(const struct nand_nvram_lane *lane)
{
	if (lane->witness < 0 ||
	    sync_file_range(lane->witness, 0, NAND_HEADER_BYTES, SYNC_FILE_RANGE_WAIT_BEFORE) == 0)
		return 0;
	return errno == ENOSYS ? 0 : -errno;
}

/*
 * Syncs for the gathering group, which becomes the running one. Called and returns with the lock.
 */
static void run_group(struct nand *nand, struct nand_nvram_group *group,
		      struct nand_nvram_lane *lane)
{
	struct nand_nvram_range ranges[NAND_NVRAM_RANGES];
	uint64_t number = lane->gathering++, bytes;
	uint32_t count = lane->count;
	int result = 0;

	memcpy(ranges, lane->ranges, sizeof(ranges));
	bytes = bytes_of(ranges, count);
	lane->count = 0;
	lane->running = true;
	if (!group->failed) {
		pthread_mutex_unlock(&group->lock);
		atomic_fetch_add_explicit(&nand->nvram_syncs, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&nand->nvram_bytes_synced, bytes, memory_order_relaxed);
		result = group->store(nand, ranges, count);
		if (result == 0)
			result = ask_witness(lane);
		pthread_mutex_lock(&group->lock);
	}
	if (result < 0) {
		group->failed = true;
		log_line(LOG_LEVEL_ERROR, "%s.nvram: the host could not store the NVRAM: %s",
			 nand->path, strerror(-result));
	}
	lane->running = false;
	lane->finished = number;
	pthread_cond_broadcast(&group->done);
}

/* How many bytes two ranges have between them; 0: none, or they overlap. */
static uint64_t gap(const struct nand_nvram_range *a, const struct nand_nvram_range *b)
{
	uint64_t from = max_u64(a->from, b->from), to = min_u64(a->to, b->to);

	return from > to ? from - to : 0;
}

/* Adds a request to the nearest range, or, if that is far and there is space, as one of its own. */
static void add_range(struct nand_nvram_lane *lane, struct nand_nvram_range range)
{
	struct nand_nvram_range *nearest = NULL;

	for (uint32_t n = 0; n < lane->count; n++)
		if (!nearest || gap(&lane->ranges[n], &range) < gap(nearest, &range))
			nearest = &lane->ranges[n];
	if (!nearest ||
	    (gap(nearest, &range) > RANGE_GAP_BYTES && lane->count < NAND_NVRAM_RANGES)) {
		lane->ranges[lane->count++] = range;
		return;
	}
	nearest->from = min_u64(nearest->from, range.from);
	nearest->to = max_u64(nearest->to, range.to);
}

static int sync_in_group(struct nand *nand, const struct nand_nvram_range *ranges, uint32_t count)
{
	struct nand_nvram_group *group = &nand->nvram_group;
	struct nand_nvram_lane *lane = bytes_of(ranges, count) > SMALL_BYTES_MAX ? &group->large
										 : &group->small;
	uint64_t mine;
	int result;

	pthread_mutex_lock(&group->lock);
	mine = lane->gathering;
	for (uint32_t n = 0; n < count; n++)
		add_range(lane, ranges[n]);
	group->waiting++;
	while (lane->finished < mine) {
		if (lane->running)
			pthread_cond_wait(&group->done, &group->lock);
		else
			run_group(nand, group, lane);
	}
	group->waiting--;
	result = group->failed ? -EIO : 0;
	pthread_mutex_unlock(&group->lock);
	return result;
}

int nand_nvram_sync_ranges(struct nand *nand, const struct nand_nvram_range *ranges, uint32_t count)
{
	int result;

	for (uint32_t n = 0; n < count; n++)
		if (ranges[n].to > nand->nvram_bytes || ranges[n].from > ranges[n].to)
			return -ERANGE;
	if (bytes_of(ranges, count) == 0 || nand->read_only)
		return 0;
	result = nand_power_sync(nand, "sync of the NVRAM");
	if (result < 0)
		return result;
	atomic_fetch_add_explicit(&nand->nvram_sync_requests, 1, memory_order_relaxed);
	if (nand->nvram_fd >= 0)
		result = sync_in_group(nand, ranges, count);
	for (uint32_t n = 0; n < count && result == 0; n++)
		if (nand_feature_is_on(nand, NAND_FEATURE_POWER))
			result = nand_power_nvram_synced(nand, ranges[n].from,
							 ranges[n].to - ranges[n].from);
	return result;
}

int nand_nvram_sync(struct nand *nand, uint64_t offset, uint64_t length)
{
	const struct nand_nvram_range range = { offset, offset + length };

	return length > UINT64_MAX - offset ? -ERANGE : nand_nvram_sync_ranges(nand, &range, 1);
}
