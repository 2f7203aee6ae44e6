/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Fills the table through which objects call history. */
#include "engine/history/calls.h"

#include "engine/history/locks.h"
#include "engine/history/retention.h"
#include "engine/history/times.h"

static int put_last(struct engine_txn *txn)
{
	int result = txn->object_rolled_back && txn->data_put ? hidden_follow(txn) : 0;

	return result ? result : times_note(txn);
}

static void note_aborted(struct engine_txn *txn)
{
	if (txn->rolled_back || txn->object_rolled_back)
		hidden_undo(&txn->engine->hidden, txn->sequence);
}

const struct history_calls history_calls = {
	.begin = history_new,
	.load = history_load,
	.put = history_put,
	.keeps_nothing = history_keeps_nothing,
	.indices = history_indices,
	.remove = retention_forget,
	.format = locks_check_all,
	.bound_of_version = moment_of_version,
	.bound_of_view = moment_of_view,
	.bound_ago = moment_ago,
	.make_room = engine_make_room,
	.commit = put_last,
	.aborted = note_aborted,
	.learn = engine_learn_history,
};
