/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Opening and closing the object layer, statistics. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "engine/history/calls.h"
#include "engine/history/hidden.h"
#include "engine/history/locks.h"
#include "engine/history/times.h"
#include "engine/objects/objects.h"
#include "engine/sets/idset_node.h"
#include "nand/image_copy.h"

#define DEFAULT_ONODE_CACHE_ENTRIES   4096
#define DEFAULT_DIRECTORY_CACHE_NODES 1024
#define DEFAULT_VERSION_CACHE_ENTRIES 16384
#define DEFAULT_HISTORY_INTERVAL_MS   1000
#define DEFAULT_INLINE_BYTES          1024
#define PARTITION_CACHE_ENTRIES       256
/* Below these a transaction would not have space for what it works on. */
#define ONODE_CACHE_ENTRIES_MIN   (2 * ENGINE_DIRTY_ONODES_MAX)
#define DIRECTORY_CACHE_NODES_MIN 128
/*
 * The onode cache is bounded in bytes too: so many an entry. Most onodes are a few hundred bytes.
 */
#define ONODE_CACHE_BYTES_EACH 2048
/* A device that is only looked at keeps no account of it. */
#define TIME_KEPT_AT_CLOSE_MS 1000
/* Partition indices have 16 bits. */
#define WRITTEN_BYTES ((UINT16_MAX + 1) * sizeof(struct written))

static uint64_t system_clock_ms(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t monotonic_clock_ms(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct engine_options with_defaults(const struct engine_options *given)
{
	struct engine_options options = given ? *given : (struct engine_options){ 0 };

	if (!options.onode_cache_entries)
		options.onode_cache_entries = DEFAULT_ONODE_CACHE_ENTRIES;
	if (!options.directory_cache_nodes)
		options.directory_cache_nodes = DEFAULT_DIRECTORY_CACHE_NODES;
	if (!options.version_cache_entries)
		options.version_cache_entries = DEFAULT_VERSION_CACHE_ENTRIES;
	if (options.onode_cache_entries < ONODE_CACHE_ENTRIES_MIN)
		options.onode_cache_entries = ONODE_CACHE_ENTRIES_MIN;
	if (options.directory_cache_nodes < DIRECTORY_CACHE_NODES_MIN)
		options.directory_cache_nodes = DIRECTORY_CACHE_NODES_MIN;
	if (!options.inline_bytes)
		options.inline_bytes = DEFAULT_INLINE_BYTES;
	if (!options.history_interval_ms)
		options.history_interval_ms = DEFAULT_HISTORY_INTERVAL_MS;
	if (!options.running_ms)
		options.running_ms = options.clock_ms ? options.clock_ms : monotonic_clock_ms;
	if (!options.clock_ms)
		options.clock_ms = system_clock_ms;
	return options;
}

static uint32_t inline_max(const struct engine *engine)
{
	uint32_t wanted = engine->options.inline_bytes;

	return wanted == ENGINE_INLINE_NONE
		       ? 0
		       : (uint32_t)min_u64(wanted, onode_inline_max(engine->page_bytes));
}

/* ---- open and close ---- */

/*
 * What was written to each partition there could be: zeros, which take memory only where there are
 * partitions.
 */
static struct written *map_written(void)
{
	void *at = mmap(NULL, WRITTEN_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void free_memory(struct engine *engine)
{
	cache_destroy(&engine->onodes);
	cache_destroy(&engine->nodes);
	cache_destroy(&engine->partitions);
	if (engine->accesses.notes)
		access_times_destroy(&engine->accesses);
	engine->history->close(engine);
	lineage_destroy(&engine->lineage);
	pthread_mutex_destroy(&engine->facts_mutex);
	device_time_destroy(engine);
	kept_destroy(&engine->kept);
	free(engine->page);
	txn_pool_destroy(engine);
	if (engine->written)
		munmap(engine->written, WRITTEN_BYTES);
	turn_destroy(&engine->turn);
	pthread_mutex_destroy(&engine->flushing);
	free(engine);
}

/* ---- what is remembered ---- */

static void forget_cache(void *what)
{
	cache_clear(what);
}

static void forget_accesses(void *what)
{
	access_times_clear(what);
}

static void forget_lineage(void *what)
{
	lineage_forget(what);
}

static void forget_kept(void *what)
{
	kept_forget(what);
}

static void forget_indices(void *what)
{
	*(bool *)what = false;
}

static void register_memories(struct engine *engine)
{
	struct memories *memories = &engine->memories;

	stale_register(memories, &engine->onodes, forget_cache, STALE_RECORDS);
	stale_register(memories, &engine->nodes, forget_cache, STALE_RECORDS);
	stale_register(memories, &engine->partitions, forget_cache, STALE_RECORDS);
	stale_register(memories, &engine->lineage, forget_lineage,
		       STALE_RECORDS | STALE_UNDONE | STALE_PARTITIONS);
	stale_register(memories, &engine->kept, forget_kept,
		       STALE_RECORDS | STALE_UNDONE | STALE_PARTITIONS | STALE_STATES);
	stale_register(memories, &engine->accesses, forget_accesses, STALE_NOTES);
	stale_register(memories, &engine->indices_known, forget_indices, STALE_INDICES);
}

static int allocate(struct engine *engine)
{
	uint32_t onodes = engine->options.onode_cache_entries;
	uint32_t nodes = engine->options.directory_cache_nodes;
	size_t node_bytes = sizeof(struct idset_node) + engine->page_bytes;
	int result;

	engine->page = malloc(engine->page_bytes);
	engine->written = map_written();
	result = kept_init(&engine->kept, engine->options.version_cache_entries);
	if (result || !engine->page || !engine->written)
		return -ENOMEM;
	result = cache_init(&engine->onodes, onodes, (size_t)onodes * ONODE_CACHE_BYTES_EACH,
			    onode_destroy);
	if (!result)
		result = cache_init(&engine->nodes, nodes, nodes * node_bytes, idset_node_destroy);
	if (!result)
		result = cache_init(&engine->partitions, PARTITION_CACHE_ENTRIES, SIZE_MAX,
				    partition_destroy);
	if (!result)
		result = txn_pool_init(engine);
	if (!result)
		result = access_times_init(&engine->accesses, onodes);
	if (result)
		return result;
	register_memories(engine);
	return engine->history->open(engine);
}

/* What a recovery without NVRAM has found is shown by moments from now on. */
static void take_in_found(struct engine *engine)
{
	struct record_statistics statistics = { 0 };
	int result;

	hidden_mend(engine);
	engine->store->operations->statistics(engine->store, &statistics);
	result = times_note_found(engine, statistics.committed_sequence);
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "%s: the time of the newest data can't be recorded (error %d); versions "
			 "and "
			 "moments may lack that data until more is written",
			 engine->store->device, -result);
}

static int refuse_memory(const struct engine_options *options, struct error_text *error)
{
	return error_set(
		error, -ENOMEM,
		"out of memory for the caches of the object layer (%u onodes, %u directory "
		"nodes, %u versions); make onode_cache, directory_cache or version_cache "
		"smaller",
		options->onode_cache_entries, options->directory_cache_nodes,
		options->version_cache_entries);
}

static int refuse_history(int result, struct error_text *error)
{
	if (result == -ENOMEM)
		return error_set(error, result,
				 "out of memory for what the device has on record of its history; "
				 "give the service more");
	if (result == -EBADMSG)
		return error_set(
			error, result,
			"what the device has on record of its history is damaged; messages "
			"above name the flash page, if it is one; go back to a copy of the "
			"image");
	return error_set(error, result,
			 "what the device has on record of its history can't be read (error %d); "
			 "mend the host's storage and start again",
			 -result);
}

int engine_open_on(struct record_store *store, const struct engine_options *options,
		   struct engine **opened, struct error_text *error)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int result = -ENOMEM;

	if (!engine)
		error_set(error, result, "out of memory for an object store");
	if (engine) {
		engine->store = store;
		engine->history = &history_calls;
		lineage_init(&engine->lineage);
		store->lineage = &engine->lineage.calls;
		engine->options = with_defaults(options);
		engine->page_bytes = record_bytes_max(store);
		engine->inline_max = inline_max(engine);
		turn_init(&engine->turn);
		device_time_init(engine);
		pthread_mutex_init(&engine->flushing, NULL);
		pthread_mutex_init(&engine->facts_mutex, NULL);
		result = allocate(engine);
		if (result)
			refuse_memory(&engine->options, error);
		if (!result) {
			result = engine->history->learn(engine);
			if (result)
				refuse_history(result, error);
		}
		if (!result && engine->options.records.recover_without_nvram)
			take_in_found(engine);
		if (!result) {
			result = sealer_start(engine);
			if (!result) {
				result = engine->history->start(engine);
				if (result)
					sealer_stop(engine);
			}
			if (result)
				error_set(error, result, "no thread can be started (error %d)",
					  -result);
		}
	}
	if (result) {
		if (engine)
			free_memory(engine);
		store->lineage = NULL;
		store->operations->close(store, false);
		engine = NULL;
	}
	*opened = engine;
	return result;
}

int engine_close(struct engine *engine)
{
	int result;

	engine->history->stop(engine);
	sealer_stop(engine);
	engine_settle_accesses(engine, 0);
	locks_keep_time(engine, TIME_KEPT_AT_CLOSE_MS);
	engine->store->lineage = NULL;
	result = engine->store->operations->close(engine->store, true);
	free_memory(engine);
	return result;
}

void engine_abandon(struct engine *engine)
{
	if (engine->writer) {
		objects_release(engine->writer);
		txn_free(engine->writer);
		cache_abort(&engine->onodes);
		cache_abort(&engine->nodes);
		cache_abort(&engine->partitions);
		sealer_end(engine);
		engine->history->end(engine);
		turn_give(&engine->turn);
	}
	engine->history->stop(engine);
	sealer_stop(engine);
	engine->store->lineage = NULL;
	engine->store->operations->close(engine->store, false);
	free_memory(engine);
}

uint32_t engine_page_bytes(const struct engine *engine)
{
	return engine->page_bytes;
}

uint32_t engine_capabilities(const struct engine *engine)
{
	return ENGINE_HAS_COLLECTIONS | ENGINE_HAS_VERSIONS | ENGINE_HAS_ROLLBACK |
	       ENGINE_HAS_DIFFERENCES | ENGINE_HAS_RETENTION | ENGINE_HAS_CLONES |
	       (engine->store->operations->merge ? ENGINE_HAS_MERGE : 0);
}

void engine_read_statistics(struct engine *engine, struct engine_statistics *statistics)
{
	struct record_statistics records = { 0 };
	struct turn_times times;
	uint64_t since;

	since = turn_share(&engine->turn);
	engine->store->operations->statistics(engine->store, &records);
	times = engine->turn.times;
	turn_unshare(&engine->turn, since);
	*statistics = (struct engine_statistics){
		.capacity_bytes = engine->store->limits.capacity_bytes,
		.used_bytes = records.used_bytes,
		.segments = records.segments,
		.segments_free = records.segments_free,
		.segments_sealed = records.segments_sealed,
		.segments_metadata = records.segments_metadata,
		.index = records.index,
		.rows = records.rows,
		.tables = records.tables,
		.internal_versions = records.internal_versions,
		.records_put = records.records_put,
		.records_got = records.records_got,
		.records_absent = records.records_absent,
		.record_bytes_put = records.record_bytes_put,
		.pages_repaired = records.pages_repaired,
		.pages_lost = records.pages_lost,
		.user_page_reads = records.user_page_reads,
		.false_positive_reads = records.false_positive_reads,
		.index_bytes = records.index_bytes,
		.table_cache_bytes = records.table_cache_bytes,
		.table_reads = records.table_reads,
		.table_page_reads = records.table_page_reads,
		.buffer_bytes = records.buffer_bytes,
		.sealed_records = records.sealed_records,
		.sealed_record_bytes = records.sealed_record_bytes,
		.committed_sequence = records.committed_sequence,
		.open_microseconds = records.open_microseconds,
		.turns = times.taken,
		.turns_held_us = times.held_ns / 1000,
		.turns_waited = times.waited,
		.turns_waited_us = times.waited_ns / 1000,
		.turn_waited_most_us = times.waited_most_ns / 1000,
	};
	static_assert(ENGINE_MEMORY_KINDS_MAX == RECORD_MEMORY_KINDS_MAX, "every kind fits");
	for (int kind = 0; kind < RECORD_MEMORY_KINDS_MAX && records.memory[kind].name; kind++)
		statistics->memory[kind] =
			(struct engine_memory){ .name = records.memory[kind].name,
						.bytes = records.memory[kind].bytes };
	statistics->cache_bytes = engine->onodes.bytes_max + engine->nodes.bytes_max +
				  PARTITION_CACHE_ENTRIES * partition_bytes(engine) +
				  access_times_bytes(&engine->accesses) + kept_bytes(&engine->kept);
	statistics->object_lookups = __atomic_load_n(&engine->object_lookups, __ATOMIC_RELAXED);
	if (engine->open_microseconds)
		statistics->open_microseconds = engine->open_microseconds;
}

uint64_t engine_take_longest_turn(struct engine *engine)
{
	return turn_take_most(&engine->turn);
}

int engine_begin_copy(struct engine *engine, struct nand_image_copy *copy, uint64_t *held_us)
{
	uint64_t since_us;

	if (!engine->store->operations->copy_nvram)
		return -EOPNOTSUPP;
	turn_take(&engine->turn);
	since_us = clock_microseconds();
	engine->store->operations->copy_nvram(engine->store, nand_image_copy_nvram(copy));
	nand_image_copy_begin(copy);
	*held_us = clock_microseconds() - since_us;
	turn_give(&engine->turn);
	return 0;
}
