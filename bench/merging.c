/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reclaims segments between operations, as the object layer does on a full device. */
#include "bench/merging.h"

#include <errno.h>

#include "common/bytes.h"

enum {
	/* As in engine/history/merge.c. */
	SEGMENTS_AT_ONCE = 8,
	LIVE_PERMILLE_AUTOMATIC = 700,
};

static int merge_step(struct bench_store *store, uint32_t wanted, uint32_t live_permille_max)
{
	store->merged.segments_wanted = wanted;
	store->merged.live_permille_max = live_permille_max;
	store->merged.choice = store->options.merge == BENCH_MERGE_FILTERS ? RECORD_MERGE_ESTIMATED
									   : RECORD_MERGE_SAMPLED;
	return store->records->operations->merge(store->records, &store->keep, &store->merged);
}

int bench_make_space(struct bench_store *store)
{
	uint32_t shortage;
	int result;

	if (store->options.merge == BENCH_MERGE_OFF)
		return 0;
	shortage = store->records->operations->shortage(store->records, RECORD_ROOM_WRITE);
	if (shortage == 0)
		return 0;
	result = merge_step(store, (uint32_t)max_u64(shortage, SEGMENTS_AT_ONCE),
			    LIVE_PERMILLE_AUTOMATIC);
	return result == -EAGAIN ? 0 : result;
}

int bench_merge(struct bench_store *store, uint64_t segments, uint32_t live_permille_max)
{
	uint32_t futile = 0,
		 futile_max = store->records->operations->merge_calls_max(store->records);
	uint64_t wanted = store->merged.segments_freed + segments;
	int result = 0;

	while (!result && store->merged.segments_freed < wanted && futile <= futile_max) {
		result = merge_step(store, 1, live_permille_max);
		futile = result == -EAGAIN ? futile + 1 : 0;
		if (result == -EAGAIN)
			result = 0;
	}
	return result;
}

struct merge_costs bench_merge_costs(const struct bench_store *store)
{
	struct nand_counters counters;

	nand_read_counters(store->nand, &counters);
	return (struct merge_costs){
		.page_reads = counters.by_cause[NAND_CAUSE_MERGE].pages_read,
		.segments_freed = store->merged.segments_freed,
		.records_moved = store->merged.records_moved,
		.bytes_moved = store->merged.bytes_moved,
	};
}
