/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Fills the table through which objects call history. */
#include "engine/history/calls.h"

#include "engine/history/left_out.h"
#include "engine/history/locks.h"
#include "engine/history/merge.h"
#include "engine/history/moments.h"
#include "engine/history/retention.h"
#include "engine/history/times.h"

static void begin(struct partition *partition)
{
	*partition->history = history_new(partition->index, partition->created_sequence);
}

static int load(struct engine *engine, struct partition *partition)
{
	struct history *history = partition->history;
	int result = history_load(engine, partition->index, partition->created_sequence, history);

	if (!result && partition->index != RECORD_ROOT_INDEX)
		partition->version = (uint16_t)history->next_version;
	return result;
}

static uint64_t *written_bytes(struct history *history)
{
	return &history->written_bytes;
}

static bool keeps_nothing(const struct engine *engine, const struct partition *partition)
{
	return history_keeps_nothing(history_policy(engine, partition->history));
}

/* With what else is put of the device's history, and anew after a format. */
static int note_device_time(struct engine_txn *txn)
{
	struct partition *root;
	int result = partition_get(txn->engine, 0, &root);

	if (result)
		return result;
	if (txn->formats)
		partition_mark_history(txn, root);
	if (root->history_changed)
		root->history->device.passed_ms = device_time_note(txn->engine);
	partition_release(txn->engine, root);
	return 0;
}

static int put_last(struct engine_txn *txn)
{
	int result = txn->object_rolled_back && txn->data_put ? hidden_follow(txn) : 0;

	if (!result)
		result = times_note(txn);
	return result ? result : note_device_time(txn);
}

static void note_aborted(struct engine_txn *txn)
{
	struct past *past = txn->engine->past;

	if (txn->rolled_back || txn->object_rolled_back)
		hidden_undo(&past->hidden, txn->sequence);
	if (txn->policy_changed)
		past->policy = txn->policy_before;
}

const struct history_calls history_calls = {
	.open = past_open,
	.close = past_close,
	.learn = past_learn,
	.bytes = sizeof(struct history),
	.begin = begin,
	.load = load,
	.put = history_put,
	.written_bytes = written_bytes,
	.keeps_nothing = keeps_nothing,
	.shows = left_out_reaches,
	.indices = history_indices,
	.remove = retention_forget,
	.format = locks_check_all,
	.bound_of_version = moment_of_version,
	.bound_of_view = moment_of_view,
	.bound_ago = moment_ago,
	.start = merger_start,
	.end = merger_end,
	.stop = merger_stop,
	.await_space = merger_await,
	.is_behind = merger_is_behind,
	.make_space = merge_before,
	.wants_space = merge_is_due,
	.commit = put_last,
	.committed = merge_after,
	.aborted = note_aborted,
};
