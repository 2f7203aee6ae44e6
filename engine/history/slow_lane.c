/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lets rollbacks go on slowly beyond their limits. */
#include "engine/history/slow_lane.h"

#include "engine/history/past.h"

static const struct pace lane_pace = { .each_ms = 5000, .most = 16 };

static bool is_there(const struct hidden *hidden, const struct slow_lane_note *note)
{
	const struct hidden_interval *found = hidden_last_of(hidden, note->partition, 0, note->at);

	return note->at && found && found->at == note->at;
}

/* How many of a partition there were in the last minute. */
static uint32_t recent_of(const struct past *past, uint16_t partition, uint64_t device_ms)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < SLOW_LANE_NOTES; n++) {
		const struct slow_lane_note *note = &past->lane.notes[n];

		count += note->partition == partition && is_there(&past->hidden, note) &&
			 device_ms < note->device_ms + SLOW_LANE_OF_ONE_MS;
	}
	return count;
}

int slow_lane_check(struct engine_txn *txn, uint16_t partition)
{
	struct past *past = txn->engine->past;
	uint64_t device_ms = device_time_of(txn), used_ms;
	struct partition *root;
	int result = past->hidden.count < HIDDEN_SLOW_MAX ? 0 : -EFBIG;

	if (!result)
		result = partition_get(txn->engine, 0, &root);
	if (result)
		return result;
	used_ms = root->history->device.spared_ms;
	partition_release(txn->engine, root);
	return pace_allows(lane_pace, used_ms, device_ms, 0) &&
			       recent_of(past, partition, device_ms) < SLOW_LANE_OF_ONE
		       ? 0
		       : -ETIME;
}

void slow_lane_use(struct engine_txn *txn, struct partition *root, uint16_t partition)
{
	struct past *past = txn->engine->past;
	struct device_history *device = &root->history->device;
	uint64_t device_ms = device_time_of(txn);

	device->spared_ms = pace_use(lane_pace, device->spared_ms, device_ms);
	past->lane.notes[past->lane.next++ % SLOW_LANE_NOTES] = (struct slow_lane_note){
		.at = txn->sequence,
		.device_ms = device_ms,
		.partition = partition,
	};
}
