/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes the NVRAM stable with one sync for several callers. */
#include "nand/nvram.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/lab.h"

static_assert(NAND_NVRAM_FILE_AT == NAND_HEADER_BYTES, "the region follows the file's header");

static int store_mapped(struct nand *nand, uint64_t from, uint64_t to)
{
	uint64_t host_page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t begin = (NAND_HEADER_BYTES + from) & ~(host_page - 1);
	uint64_t end = NAND_HEADER_BYTES + to;

	return msync(nand->nvram.at + begin, end - begin, MS_SYNC) < 0 ? -errno : 0;
}

void nand_nvram_group_init(struct nand_nvram_group *group)
{
	*group = (struct nand_nvram_group){ .gathering = 1, .store = store_mapped };
	pthread_mutex_init(&group->lock, NULL);
	pthread_cond_init(&group->done, NULL);
}

void nand_nvram_group_destroy(struct nand_nvram_group *group)
{
	pthread_cond_destroy(&group->done);
	pthread_mutex_destroy(&group->lock);
}

void *nand_nvram(struct nand *nand, uint64_t *bytes)
{
	if (bytes)
		*bytes = nand->nvram_bytes;
	return nand->nvram.at + NAND_HEADER_BYTES;
}

/*
 * Syncs for the gathering group, which becomes the running one. Called and returns with the lock.
 */
static void run_group(struct nand *nand, struct nand_nvram_group *group)
{
	uint64_t number = group->gathering++, from = group->from, to = group->to;
	int result = 0;

	group->from = group->to = 0;
	group->running = true;
	if (!group->failed) {
		pthread_mutex_unlock(&group->lock);
		atomic_fetch_add_explicit(&nand->nvram_syncs, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&nand->nvram_bytes_synced, to - from,
					  memory_order_relaxed);
		result = group->store(nand, from, to);
		pthread_mutex_lock(&group->lock);
	}
	if (result < 0) {
		group->failed = true;
		log_line(LOG_LEVEL_ERROR, "%s.nvram: the host could not store the NVRAM: %s",
			 nand->path, strerror(-result));
	}
	group->running = false;
	group->finished = number;
	pthread_cond_broadcast(&group->done);
}

static int sync_in_group(struct nand *nand, uint64_t offset, uint64_t length)
{
	struct nand_nvram_group *group = &nand->nvram_group;
	uint64_t mine;
	int result;

	pthread_mutex_lock(&group->lock);
	mine = group->gathering;
	group->from = group->from == group->to ? offset : min_u64(group->from, offset);
	group->to = max_u64(group->to, offset + length);
	group->waiting++;
	while (group->finished < mine) {
		if (group->running)
			pthread_cond_wait(&group->done, &group->lock);
		else
			run_group(nand, group);
	}
	group->waiting--;
	result = group->failed ? -EIO : 0;
	pthread_mutex_unlock(&group->lock);
	return result;
}

int nand_nvram_sync(struct nand *nand, uint64_t offset, uint64_t length)
{
	int result;

	if (offset > nand->nvram_bytes || length > nand->nvram_bytes - offset)
		return -ERANGE;
	if (length == 0 || nand->read_only)
		return 0;
	result = nand_power_sync(nand, "sync of the NVRAM");
	if (result < 0)
		return result;
	atomic_fetch_add_explicit(&nand->nvram_sync_requests, 1, memory_order_relaxed);
	if (nand->nvram_fd >= 0)
		result = sync_in_group(nand, offset, length);
	if (result == 0 && nand_feature_is_on(nand, NAND_FEATURE_POWER))
		nand_power_nvram_synced(nand, offset, length);
	return result;
}
