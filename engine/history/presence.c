/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/history/presence.h"

#include "engine/history/times.h"

/* ---- at one moment ---- */

/* Nothing but a rollback of the device brings a partition back. */
static bool may_have_gaps(const struct engine *engine, const struct partition *partition)
{
	const struct rollback *last =
		timeline_last(&engine->timeline, RECORD_ROOT_INDEX, RECORD_NEWEST);

	return partition->index != RECORD_ROOT_INDEX && last &&
	       last->at > partition->created_sequence;
}

int presence_check(struct engine *engine, const struct partition *partition, uint64_t bound)
{
	struct partition state = { 0 };
	int result = 0;

	if (bound < partition->created_sequence)
		return -ENOENT;
	if (!may_have_gaps(engine, partition))
		return 0;
	if (!kept_find_state(&engine->kept, partition->id, bound, &state)) {
		result = partition_state_of(engine->store, partition->index, bound, &state);
		/* Otherwise the table of partitions would have to tell who had the ID. */
		if (!result && state.id == partition->id)
			kept_add_state(&engine->kept, bound, &state);
	}
	if (result)
		return result;
	return state.created_sequence == partition->created_sequence ? 0 : -ENOENT;
}

int presence_check_inside(struct engine *engine, const struct partition *partition,
			  uint64_t sequence)
{
	int result = presence_check(engine, partition, sequence);

	/* Its state of then may have been absorbed by one that came later in the slot. */
	return result == -ENOENT ? presence_check(engine, partition, slot_end(sequence)) : result;
}

/* ---- gaps ---- */

uint64_t presence_next(const struct engine *engine, uint64_t bound)
{
	const struct timeline *timeline = &engine->timeline;
	uint32_t count, low = timeline_of(timeline, RECORD_ROOT_INDEX, &count);
	uint32_t end = low + count, high = end;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (timeline->list[middle].at <= bound)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end ? timeline->list[low].at : RECORD_NEWEST;
}

static uint64_t end_of_slot(uint64_t slot)
{
	return slot_end(slot << RECORD_SLOT_BITS);
}

/*
 * Between two rollbacks of the device a partition can go, but not come back. It is gone at the end
 * of slot `last`: finds the first slot from `first` on at whose end it is.
 */
static int find_gap(struct engine *engine, const struct partition *partition, uint64_t first,
		    uint64_t last, uint64_t *gap)
{
	while (first < last) {
		uint64_t middle = first + (last - first) / 2;
		int result = presence_check(engine, partition, end_of_slot(middle));

		if (result == -ENOENT)
			last = middle;
		else if (result)
			return result;
		else
			first = middle + 1;
	}
	*gap = last;
	return 0;
}

/*
 * Counts those of the versions from the one at `bound` up to the next rollback of the device, at
 * `to`, at which the partition was gone. A rollback begins a slot.
 */
static int count_up_to(struct engine *engine, const struct partition *partition,
		       const struct idset *versions, uint64_t bound, uint64_t to, uint64_t *missed)
{
	uint64_t last = (to >> RECORD_SLOT_BITS) - 1, gap, of_gap = 0, behind = 0;
	int result = presence_check(engine, partition, end_of_slot(last));

	if (result != -ENOENT)
		return result;
	result = find_gap(engine, partition, bound >> RECORD_SLOT_BITS, last, &gap);
	if (!result)
		result = idset_count(versions, history_element(end_of_slot(gap), 0), &of_gap);
	if (!result)
		result = idset_count(versions, history_element(to, 0), &behind);
	*missed += of_gap - behind;
	return result;
}

int presence_count_missed(struct engine *engine, struct partition *root,
			  const struct partition *partition, uint64_t *missed)
{
	struct idset versions = history_versions(engine, root);
	uint64_t bound = partition->created_sequence;
	int result = 0;

	*missed = 0;
	if (!may_have_gaps(engine, partition))
		return 0;
	while (!result) {
		uint64_t next;

		result = history_next_kept(&versions, bound, &bound, NULL);
		if (result || bound == RECORD_NEWEST)
			break;
		next = presence_next(engine, bound);
		/* It has been there since, or it would not be now. */
		if (next == RECORD_NEWEST)
			break;
		result = count_up_to(engine, partition, &versions, bound, next, missed);
		bound = next;
	}
	return result;
}
