/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Transactions: the one that writes and those that read; formats, which are transactions too;
 * access times on their way.
 */
#include <assert.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/objects/lasting.h"
#include "engine/objects/objects.h"
#include "engine/records/waiting.h"

/*
 * Page programs behind a commit, of what is left to do: a segment takes some ten commits, and none
 * of them long.
 */
#define CATCH_UP_PROGRAMS 16

static_assert(RECORD_CATCH_UP_FEW == ENGINE_HISTORY_PROGRAMS, "a promise of the store's");

uint64_t engine_time_now(const struct engine *engine)
{
	return min_u64(engine->options.clock_ms(engine->options.clock_context), ONODE_TIME_MAX);
}

/* ---- begin ---- */

/*
 * Whether there is a number for one more transaction. In the last slot but one they go on to its
 * end.
 */
static bool has_number(const struct engine *engine)
{
	return max_u64(engine->committed, engine->numbered) + 1 < slot_begin(RECORD_NEWEST);
}

/* Somebody wants the present as a moment, or so much time has passed and a slot may be begun. */
static bool slot_is_over(struct engine *engine, uint64_t now_ms)
{
	uint32_t interval = engine->options.history_interval_ms;
	bool has_passed = interval == ENGINE_EVERY_COMMAND || now_ms < engine->slot_ms ||
			  now_ms - engine->slot_ms >= interval;

	return __atomic_load_n(&engine->slot_over, __ATOMIC_RELAXED) ||
	       (has_passed && slots_check(engine, SLOT_PASS) == 0);
}

/* What it may use of a full device. */
static enum record_room room_of(const struct engine_txn *txn)
{
	if (txn->is_aside)
		return RECORD_ROOM_UPKEEP;
	if (txn->formats)
		return RECORD_ROOM_RESCUE;
	/*
	 * Which of those behind it the last two may use hangs on what is done: see txn_raise_room.
	 */
	return txn->mode == ENGINE_WRITE    ? RECORD_ROOM_WRITE
	       : txn->mode == ENGINE_RESCUE ? RECORD_ROOM_RETURN
					    : RECORD_ROOM_FREE;
}

void txn_raise_room(struct engine_txn *txn, enum record_room room)
{
	if ((txn->mode == ENGINE_RESCUE || txn->mode == ENGINE_HISTORY) && txn->writer.room < room)
		txn->writer.room = room;
}

/* As a writer's `count`. */
static void count_put(void *context, const struct record_key *key, uint64_t bytes)
{
	struct engine_txn *txn = context;

	turn_serve(&txn->engine->turn);
	txn->put_bytes += bytes;
	if (key_is_timeless(key))
		return;
	txn->is_moment = true;
	written_add(&txn->written, key->partition, bytes);
}

/* What follows when the store has begun a transaction. */
static void begin_caches(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;

	engine->numbered = txn->sequence;
	txn->writer = (struct record_writer){ .store = engine->store,
					      .sequence = txn->sequence,
					      .epoch = slot_begin(txn->sequence),
					      .page = engine->page,
					      .room = room_of(txn),
					      .is_timeless = key_is_timeless,
					      .count = count_put,
					      .context = txn };
	cache_begin(&engine->onodes);
	cache_begin(&engine->nodes);
	cache_begin(&engine->partitions);
	engine->writer = txn;
}

static void begin_writing(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;
	uint64_t at_least = slot_is_over(engine, txn->time_ms) ? slots_next(engine) : 0;

	txn->sequence = engine->store->operations->begin(engine->store,
							 max_u64(at_least, engine->committed + 1));
	begin_caches(txn);
}

int txn_begin_slot(struct engine_txn *txn, enum slot_use use)
{
	struct engine *engine = txn->engine;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if (txn->changed)
		return -EINVAL;
	if (slot_begin(txn->sequence) > engine->committed)
		return 0;
	if (txn->put_bytes)
		return -EINVAL;
	result = slots_check(engine, use);
	if (result)
		return result;
	engine->store->operations->abort(engine->store);
	txn->sequence = engine->store->operations->begin(engine->store, slots_next(engine));
	txn->writer.sequence = txn->sequence;
	txn->writer.epoch = slot_begin(txn->sequence);
	engine->numbered = txn->sequence;
	return 0;
}

/* Most access times that wait in memory between transactions. */
static uint32_t accesses_max(const struct engine *engine)
{
	return engine->options.onode_cache_entries / 4 * 3;
}

/* Without the turn: would a writing transaction have something to wait for, behind it or before? */
static bool writing_waits(const struct engine *engine)
{
	return engine->options.stable_commits ||
	       __atomic_load_n(&engine->sealer.pressed, __ATOMIC_RELAXED);
}

/* Gets the turn in an attempt. -EINPROGRESS */
static int try_turn(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;

	/* Whoever may wait stores them at the end of his transaction. */
	if (access_times_count(&engine->accesses) > accesses_max(engine))
		return would_wait();
	if (txn->mode == ENGINE_READ)
		return turn_try_share(&engine->turn, &txn->since) ? 0 : would_wait();
	/* Room comes before the turn, so that nobody tries for that in vain. */
	if (writing_waits(engine) || !engine->history->await_space(engine, txn->mode) ||
	    !turn_try_take(&engine->turn))
		return would_wait();
	if (!engine->history->wants_space(engine))
		return 0;
	turn_give(&engine->turn);
	return would_wait();
}

/* Waits until a writing transaction may begin. */
static void wait_for_room(const struct engine_txn *txn)
{
	/* What must not wait takes little. */
	if (txn->mode == ENGINE_WRITE || txn->mode == ENGINE_FREE)
		sealer_wait(txn->engine);
	txn->engine->history->await_space(txn->engine, txn->mode);
}

/* Waits for the turn, and looks for space. */
static void take_turn(struct engine_txn *txn, enum engine_mode space)
{
	struct engine *engine = txn->engine;

	if (txn->mode == ENGINE_READ) {
		txn->since = turn_share(&engine->turn);
		return;
	}
	wait_for_room(txn);
	turn_take_passing(&engine->turn);
	/* Those who waited for the same room come one by one. */
	while (engine->history->is_behind(engine, txn->mode)) {
		turn_give(&engine->turn);
		wait_for_room(txn);
		turn_take_passing(&engine->turn);
	}
	engine->history->make_space(engine, space);
}

/* As engine_begin; `space`: as whose transaction it looks for space before. */
static int begin_as(struct engine *engine, enum engine_mode mode, enum engine_mode space,
		    struct engine_txn **begun)
{
	struct engine_txn *txn = txn_new(engine, mode);

	*begun = txn;
	if (!txn)
		return -ENOMEM;
	if (may_wait()) {
		take_turn(txn, space);
	} else if (try_turn(txn) != 0) {
		txn_free(txn);
		*begun = NULL;
		return -EINPROGRESS;
	}
	txn->time_ms = engine_time_now(engine);
	if (mode == ENGINE_READ)
		return 0;
	if (!has_number(engine)) {
		turn_give(&engine->turn);
		txn_free(txn);
		*begun = NULL;
		return -EOVERFLOW;
	}
	begin_writing(txn);
	return 0;
}

int engine_begin(struct engine *engine, enum engine_mode mode, struct engine_txn **begun)
{
	return begin_as(engine, mode, mode, begun);
}

void engine_bypass_timestamps(struct engine_txn *txn, bool bypass)
{
	txn->bypass = bypass;
}

uint64_t engine_txn_time(const struct engine_txn *txn)
{
	return txn->time_ms;
}

uint64_t engine_txn_worked(const struct engine_txn *txn)
{
	return turn_worked(&txn->engine->turn, txn->mode == ENGINE_READ, txn->since);
}

uint64_t engine_txn_sequence_max(const struct engine_txn *txn)
{
	return slot_end(txn->engine->committed);
}

/* ---- end ---- */

/* Forgets what a writing transaction did and ends it; it still holds its turn. */
static void undo(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;

	objects_release(txn);
	engine->store->operations->abort(engine->store);
	cache_abort(&engine->onodes);
	cache_abort(&engine->nodes);
	cache_abort(&engine->partitions);
	access_times_abort(&engine->accesses);
	stale_say(&engine->memories, STALE_UNDONE);
	engine->history->aborted(txn);
	if (txn->partitions_created || txn->formats)
		stale_say(&engine->memories, STALE_INDICES);
	if (txn->formats)
		engine->put_bytes = txn->put_bytes_before;
	engine->writer = NULL;
}

/* Notes where history stands after a commit. */
static void note_committed(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;

	engine->put_bytes += txn->put_bytes;
	/* What is only noted is no moment: to whoever looks back it has not been. */
	if (!txn->is_moment)
		return;
	if (slot_begin(txn->sequence) != slot_begin(engine->committed)) {
		if (txn->begins_time_epoch)
			engine->committed_ms = txn->time_ms;
		engine->slot_ms = txn->time_ms;
		__atomic_store_n(&engine->slot_over, false, __ATOMIC_RELAXED);
	}
	engine->committed = txn->sequence;
	engine->committed_ms = max_u64(engine->committed_ms, txn->time_ms);
}

/* After a format: nothing that was known of the past is true any more. */
static void note_formatted(struct engine *engine)
{
	int result;

	stale_say(&engine->memories, STALE_NOTES);
	result = engine->history->learn(engine);
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "%s: the unit can't read what it has just formatted (error %d); start the "
			 "service again",
			 engine->store->device, -result);
}

/* Puts all that was changed in memory and makes it visible. On an error the transaction goes on. */
static int put_and_commit(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;
	int result;

	objects_release(txn);
	result = onodes_put_dirty(txn);
	if (!result)
		result = idset_put_dirty(&engine->nodes, &txn->writer);
	if (!result)
		result = written_mark(txn);
	assert(!txn->is_aside || !txn->is_moment);
	if (!result)
		result = engine->history->commit(txn);
	if (!result)
		result = partition_put_dirty(txn);
	if (!result && has_missed())
		result = -EINPROGRESS;
	if (!result && (txn->formats || txn->put_bytes))
		engine->store->operations->commit(engine->store);
	else if (!result)
		/* Nothing happened, not even a number was used. */
		engine->store->operations->abort(engine->store);
	if (result)
		return result;
	engine->transactions++;
	engine->history->committed(txn);
	cache_commit(&engine->onodes);
	cache_commit(&engine->nodes);
	cache_commit(&engine->partitions);
	access_times_commit(&engine->accesses);
	if (txn->forgets_accesses)
		access_times_forget_partition(&engine->accesses, txn->accesses_of);
	stale_say(&engine->memories,
		  (txn->partitions_created || txn->partitions_removed ? STALE_PARTITIONS : 0) |
			  (txn->forgets_states ? STALE_STATES : 0));
	usage_commit(txn);
	written_commit(txn);
	engine->writer = NULL;
	if (txn->formats)
		note_formatted(engine);
	note_committed(txn);
	if (engine->sealer.count)
		sealer_look(engine);
	else if (engine->store->operations->catch_up && may_wait())
		engine->store->operations->catch_up(engine->store, txn->mode == ENGINE_HISTORY
									   ? RECORD_CATCH_UP_FEW
									   : CATCH_UP_PROGRAMS);
	return 0;
}

int engine_aside(struct engine *engine, aside_work *work, void *context)
{
	struct partition *root;
	struct engine_txn *txn;
	int result;

	if (!has_number(engine))
		return -EOVERFLOW;
	txn = txn_new(engine, ENGINE_FREE);
	if (!txn)
		return -ENOMEM;
	txn->is_aside = true;
	txn->time_ms = engine_time_now(engine);
	begin_writing(txn);
	result = partition_get(engine, 0, &root);
	if (!result) {
		result = work(txn, root, context);
		partition_release(engine, root);
	}
	if (!result)
		result = put_and_commit(txn);
	if (result)
		undo(txn);
	txn_free(txn);
	return result;
}

/* Gives the turn back and frees. */
static void end(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;

	objects_release(txn);
	if (txn->mode == ENGINE_READ)
		turn_unshare(&engine->turn, txn->since);
	else
		turn_give(&engine->turn);
	txn_free(txn);
}

static void settle_accesses_if_many(struct engine *engine)
{
	struct access_key key;

	if (access_times_count(&engine->accesses) <= accesses_max(engine))
		return;
	engine_settle_accesses(engine, engine->options.onode_cache_entries / 2);
	/* If they cannot be stored because the device is full, the oldest are given up. */
	while (access_times_count(&engine->accesses) > accesses_max(engine) &&
	       access_times_oldest(&engine->accesses, &key))
		access_times_forget(&engine->accesses, key);
}

struct flush {
	struct engine *engine;
	uint64_t begun;     /* flushes, with this one */
	uint64_t committed; /* transactions that it makes stable ... */
	uint64_t number;    /* ... and the number of the last of them */
};

/* In the turn. */
static void begin_flush(void *context)
{
	struct flush *flush = context;
	struct engine *engine = flush->engine;

	flush->begun = __atomic_add_fetch(&engine->flushes, 1, __ATOMIC_SEQ_CST);
	flush->committed = engine->transactions;
	flush->number = engine->store->operations->flush_begin(engine->store);
}

/*
 * Flushes, unless another thread has done so since `committed` transactions were committed and
 * `begun` flushes had begun. Waits for the host without the turn: meanwhile others commit, and the
 * next flush is for all of them.
 */
static int make_stable(struct engine *engine, uint64_t committed, uint64_t begun)
{
	struct flush flush = { .engine = engine };
	int result = 0;

	pthread_mutex_lock(&engine->flushing);
	if (engine->flushed < committed || engine->flushes_good <= begun) {
		turn_call(&engine->turn, begin_flush, &flush);
		result = engine->store->operations->flush(engine->store, flush.number);
		if (!result) {
			engine->flushed = flush.committed;
			engine->flushes_good = flush.begun;
		}
	}
	pthread_mutex_unlock(&engine->flushing);
	return result;
}

int engine_flush_beside(struct engine *engine)
{
	/* Also what is no transaction of this engine: the memo, what an earlier process left. */
	return make_stable(engine, 0, __atomic_load_n(&engine->flushes, __ATOMIC_SEQ_CST));
}

int engine_flush(struct engine *engine)
{
	engine_settle_accesses(engine, 0);
	return engine_flush_beside(engine);
}

int engine_commit(struct engine_txn *txn, bool stable)
{
	struct engine *engine = txn->engine;
	bool writing = txn->mode != ENGINE_READ, quick = txn->mode == ENGINE_HISTORY;
	uint64_t committed;
	int result = 0;

	assert(may_wait() || !stable);
	if (writing)
		result = put_and_commit(txn);
	else if (has_missed())
		result = -EINPROGRESS;
	if (result && writing)
		undo(txn);
	committed = engine->transactions;
	end(txn);
	seals_decided();
	if (!result && (stable || (writing && engine->options.stable_commits)))
		result = make_stable(engine, committed, 0);
	if (!quick && may_wait() && may_seal())
		settle_accesses_if_many(engine);
	return result;
}

void engine_abort(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;

	if (txn->mode != ENGINE_READ)
		undo(txn);
	end(txn);
	seals_decided();
	if (may_wait() && may_seal())
		settle_accesses_if_many(engine);
}

/* ---- attempts ---- */

void engine_attempt_begin(struct nand_stage *stage)
{
	waiting_forbid(stage);
}

void engine_attempt_end(void)
{
	waiting_allow();
}

/* ---- transactions that do not seal ---- */

bool engine_seals_put_off(struct engine *engine)
{
	if (!engine->sealer.count)
		return false;
	seals_put_off();
	return true;
}

bool engine_seals_awaited(struct engine *engine, uint32_t tries)
{
	bool missed = seals_allow();

	if (missed)
		sealer_wait_for_some(engine, UINT32_C(1) << min_u64(tries, 31));
	return missed;
}

/* ---- access times ---- */

/* Takes the note that waits longest into its object's onode. */
static int settle_access(struct engine_txn *txn, struct access_key key)
{
	struct engine_address address = { .partition = key.partition, .object = key.object };
	struct target target;
	int result = target_open(txn, address, TARGET_CHANGE, &target);

	if (result == -ENOENT || result == -EBADMSG || result == -EROFS) {
		access_times_forget(&txn->engine->accesses, key);
		return 0;
	}
	if (result)
		return result;
	if (target.onode->head.created_sequence == key.created_sequence)
		result = target_touch(&target);
	else
		access_times_forget(&txn->engine->accesses, key);
	target_close(&target);
	return result;
}

/* Takes the notes that wait longest until at most `most` wait or the transaction has enough. */
static int settle_some(struct engine_txn *txn, uint32_t most)
{
	struct access_times *accesses = &txn->engine->accesses;
	struct access_key key;
	int result = 0;

	for (int count = 0; !result && count < ENGINE_DIRTY_ONODES_MAX; count++) {
		if (access_times_count(accesses) <= most || !access_times_oldest(accesses, &key))
			return 0;
		result = settle_access(txn, key);
	}
	return result;
}

void engine_settle_accesses(struct engine *engine, uint32_t most)
{
	/* Other threads may note more meanwhile, so the rounds are counted. */
	uint32_t rounds = access_times_count(&engine->accesses) / ENGINE_DIRTY_ONODES_MAX + 1;
	struct engine_txn *txn;

	for (; rounds && access_times_count(&engine->accesses) > most; rounds--) {
		/* They take little, and no history is given up for them. */
		int result = begin_as(engine, ENGINE_WRITE, ENGINE_HISTORY, &txn);

		if (result)
			return;
		result = settle_some(txn, most);
		if (!result)
			result = put_and_commit(txn);
		if (result)
			undo(txn);
		end(txn);
		if (result) {
			log_line(LOG_LEVEL_DEBUG, "%s: access times stay in memory: error %d",
				 engine->store->device, -result);
			return;
		}
	}
}

/* ---- formats ---- */

/*
 * Begins the store's transaction, in which nothing is found any more; but for an abort everything
 * is still there.
 */
static int begin_empty(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;
	int result = slots_check(engine, SLOT_GO_BACK);

	if (!result)
		result = engine->store->operations->begin_format(engine->store, slots_next(engine),
								 &txn->sequence);
	if (result)
		return result;
	engine->numbered = txn->sequence;
	stale_say(&engine->memories, STALE_RECORDS | STALE_INDICES);
	txn->put_bytes_before = engine->put_bytes;
	engine->put_bytes = 0;
	txn->changed = true;
	begin_caches(txn);
	return 0;
}

static int begin_format(struct engine_txn *txn)
{
	struct attribute_set lasting = { 0 };
	int result = txn->engine->history->format(txn);

	if (!result)
		result = lasting_copy(txn, &lasting);
	if (!result)
		result = begin_empty(txn);
	if (!result) {
		result = lasting_give(txn, &lasting);
		if (result)
			undo(txn);
	}
	attribute_set_free(&lasting);
	return result;
}

int engine_begin_format(struct engine *engine, struct engine_txn **begun)
{
	struct engine_txn *txn = txn_new(engine, ENGINE_FREE);
	int result;

	*begun = NULL;
	if (!txn)
		return -ENOMEM;
	txn->formats = true;
	turn_take(&engine->turn);
	txn->time_ms = engine_time_now(engine);
	result = begin_format(txn);
	if (result)
		end(txn);
	else
		*begun = txn;
	return result;
}

int engine_reformat(struct engine *engine)
{
	struct engine_txn *txn;
	int result = engine_begin_format(engine, &txn);

	return result ? result : engine_commit(txn, false);
}
