/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Opens a fresh store, puts pairs into it, and checks every byte that it gives back. */
#include "bench/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "bench/merging.h"
#include "bench/record_codec.h"
#include "common/allocator.h"
#include "common/bytes.h"
#include "engine/open.h"

enum { PARTITION = 1, BLOCK_PAGES_DEFAULT = 64 };

/* ---- keys and values ---- */

static uint32_t value_bytes(const struct bench_store *store)
{
	return store->options.pair_bytes - PAIR_HEADER_BYTES;
}

struct record_key bench_store_key(const struct bench_store *store, uint64_t pair)
{
	uint64_t number = store->random_keys ? permutation_at(&store->keys, pair) : pair;

	return (struct record_key){ .partition = PARTITION,
				    .identifier = ENGINE_FIRST_ID + number };
}

/* ---- processor time ---- */

static uint64_t thread_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* The least of many, so that it is taken off only what is surely the clock's. */
static uint64_t clock_cost_ns(void)
{
	uint64_t least = UINT64_MAX;

	for (int n = 0; n < 1000; n++) {
		uint64_t begun = thread_ns();

		least = min_u64(least, thread_ns() - begun);
	}
	return least;
}

uint64_t bench_store_charge_begin(const struct bench_store *store)
{
	return store->options.adds_processor ? thread_ns() : 0;
}

void bench_store_charge_end(struct bench_store *store, uint64_t begun)
{
	uint64_t spent;

	if (!store->options.adds_processor)
		return;
	spent = thread_ns() - begun;
	nand_advance_ns(store->nand, spent - min_u64(spent, store->clock_ns));
}

/* ---- opening ---- */

/* A device in memory must not make the kernel choose a process to kill. */
static int check_memory(const struct bench_options *options, struct error_text *error)
{
	struct sysinfo info;
	uint64_t wanted = options->pairs * (options->pair_bytes + options->pair_bytes / 8), present;

	if (sysinfo(&info) != 0)
		return 0;
	present = (uint64_t)info.totalram * info.mem_unit;
	if (wanted < options->size ? wanted < present : options->size < present)
		return 0;
	return error_set(error, -EINVAL,
			 "%llu pairs of %u bytes need about %llu MiB of memory, this machine has "
			 "%llu MiB; use fewer pairs, or --nand headers",
			 (unsigned long long)options->pairs, options->pair_bytes,
			 (unsigned long long)wanted >> 20, (unsigned long long)present >> 20);
}

static struct engine_options engine_options_of(const struct bench_store *store)
{
	const struct bench_options *options = &store->options;

	return (struct engine_options){
		.muninn.index = options->index,
		.muninn.rows = options->rows,
		.muninn.segment_pages = options->segment_bytes / store->geometry.page_bytes,
		.muninn.record_bytes =
			(uint32_t)min_u64(options->pair_bytes, store->geometry.page_bytes),
		.muninn.bloom.fpr_millionths = options->fpr_millionths,
		.muninn.bloom.fpr_factor_permille = options->fpr_factor_permille,
		.muninn.bloom.filters = options->filters,
		.muninn.bloom.paged_filters = options->paged_filters,
		.muninn.bloom.even_filters = options->even_filters,
		.muninn.parity = options->parity ? options->parity : MUNINN_PARITY_NONE,
		.muninn.bloom.hot_rows = options->hot_rows,
		.muninn.bloom.internal_version_tables = options->internal_version_tables,
		.muninn.bloom.table_cache_bytes = options->table_cache_bytes,
	};
}

static int open_device(struct bench_store *store, uint64_t nvram_bytes, struct error_text *error)
{
	const struct nand_options options = {
		.backend = store->options.nand == BENCH_NAND_FILE ? NAND_BACKEND_FILE
								  : NAND_BACKEND_MMAP,
	};
	const char *path = store->options.path;
	int result;

	if (store->options.nand == BENCH_NAND_HEADERS) {
		const struct nand_payload_codec codec = record_codec(&store->geometry.page_bytes);

		return nand_open_headers(&store->geometry, nvram_bytes, &codec, &store->nand,
					 error);
	}
	if (store->options.nand == BENCH_NAND_MEMORY) {
		result = check_memory(&store->options, error);
		return result ? result
			      : nand_open_memory(&store->geometry, nvram_bytes, &store->nand,
						 error);
	}
	result = nand_create(path, &store->geometry, nvram_bytes, error);
	if (result)
		return result;
	result = nand_open_with(path, &options, &store->nand, error);
	if (result)
		return result;
	/* The open files live on, and nothing is left behind however this process ends. */
	char nvram[4096];

	snprintf(nvram, sizeof(nvram), "%s.nvram", path);
	unlink(nvram);
	unlink(path);
	return 0;
}

static int open_engine(struct bench_store *store, struct error_text *error)
{
	struct engine_options options = engine_options_of(store);
	struct allocator_figures figures;
	uint64_t nvram_bytes;
	int result = engine_nvram_bytes(&store->geometry, &options, &nvram_bytes, error);

	if (!result)
		result = open_device(store, nvram_bytes, error);
	if (!result)
		result = engine_format(store->nand, &options, error);
	if (!result)
		result = nand_set_timing(store->nand, &store->options.timing, error);
	if (!result && allocator_read(&figures))
		store->allocated_before = figures.allocated_bytes;
	if (!result)
		result = engine_open_records(store->nand, &options, &store->records, error);
	if (!result && value_bytes(store) > store->records->limits.value_bytes)
		result = error_set(error, -EINVAL,
				   "--pair-size %u: the engine takes values of at most"
				   " %u bytes and a header of %d",
				   store->options.pair_bytes, store->records->limits.value_bytes,
				   PAIR_HEADER_BYTES);
	return result;
}

int bench_store_open(struct bench_store **out, const struct bench_options *options,
		     struct error_text *error)
{
	struct bench_store *store = calloc(1, sizeof(*store));
	int result;

	if (!store)
		return error_set(error, -ENOMEM, "out of memory");
	store->options = *options;
	store->clock_ns = clock_cost_ns();
	store->geometry = nand_geometry_default(options->size);
	if (options->segment_bytes / store->geometry.page_bytes < BLOCK_PAGES_DEFAULT) {
		uint32_t pages = options->segment_bytes / store->geometry.page_bytes;

		store->geometry.blocks *= BLOCK_PAGES_DEFAULT / pages;
		store->geometry.pages_per_block = pages;
	}
	store->keys = permutation_make(options->pairs, random_mix(options->seed));
	store->expected = calloc(options->pairs, sizeof(*store->expected));
	pthread_rwlock_init(&store->lock, NULL);
	result = store->expected ? open_engine(store, error)
				 : error_set(error, -ENOMEM, "out of memory for %llu pairs",
					     (unsigned long long)options->pairs);
	if (result) {
		bench_store_close(store);
		return result;
	}
	*out = store;
	return 0;
}

int bench_store_crash(struct bench_store *store, struct error_text *error)
{
	struct engine_options options = engine_options_of(store);
	int result;

	pthread_rwlock_wrlock(&store->lock);
	store->records->operations->close(store->records, false);
	store->records = NULL;
	result = engine_open_records(store->nand, &options, &store->records, error);
	pthread_rwlock_unlock(&store->lock);
	return result;
}

void bench_store_close(struct bench_store *store)
{
	if (!store)
		return;
	if (store->records)
		store->records->operations->close(store->records, false);
	if (store->nand)
		nand_abandon(store->nand);
	pthread_rwlock_destroy(&store->lock);
	free(store->expected);
	free(store);
}

/* ---- operations ---- */

static bool exists(uint32_t expected)
{
	return expected != 0 && !(expected & EXPECTED_DELETED);
}

static int put_locked(struct bench_store *store, uint64_t pair, bool deleted)
{
	const struct record_store_operations *operations = store->records->operations;
	struct record_key key = bench_store_key(store, pair);
	unsigned flags = store->options.history ? 0 : RECORD_ABSORB;
	uint32_t length = deleted ? 0 : value_bytes(store);
	uint64_t sequence = operations->begin(store->records, 0);
	uint64_t epoch = sequence & ~(RECORD_SLOT - 1);
	uint8_t value[VALUE_BYTES_MAX];
	int result = -EFBIG;

	if (sequence <= SEQUENCE_MAX) {
		uint64_t begun;

		record_value_make(&key, sequence, value, length);
		begun = bench_store_charge_begin(store);
		result = operations->put(store->records, &key, epoch,
					 flags | (deleted ? RECORD_TOMBSTONE : 0), value, length,
					 false);
		if (!result)
			operations->commit(store->records);
		bench_store_charge_end(store, begun);
	}
	if (result) {
		operations->abort(store->records);
		return result;
	}
	store->live += !deleted;
	store->live -= exists(store->expected[pair]);
	store->expected[pair] = (uint32_t)sequence | (deleted ? EXPECTED_DELETED : 0);
	return 0;
}

int bench_store_put(struct bench_store *store, uint64_t pair, bool deleted)
{
	uint64_t begun;
	int result;

	pthread_rwlock_wrlock(&store->lock);
	begun = bench_store_charge_begin(store);
	result = bench_make_space(store);
	bench_store_charge_end(store, begun);
	if (!result)
		result = put_locked(store, pair, deleted);
	pthread_rwlock_unlock(&store->lock);
	return result;
}

static int get_locked(struct bench_store *store, uint64_t pair, bool *found)
{
	struct record_key key = bench_store_key(store, pair);
	uint32_t expected = store->expected[pair], length = value_bytes(store);
	uint8_t value[VALUE_BYTES_MAX], wanted[VALUE_BYTES_MAX];
	struct record_info info;
	uint64_t begun = bench_store_charge_begin(store);
	int result = store->records->operations->get(store->records, &key, RECORD_NEWEST, value,
						     sizeof(value), &info);

	bench_store_charge_end(store, begun);
	*found = exists(expected);
	if (result == -ENOENT)
		return expected == 0 ? 0 : -EILSEQ;
	if (result)
		return result;
	if (info.sequence != (expected & SEQUENCE_MAX) ||
	    !(info.flags & RECORD_TOMBSTONE) != exists(expected))
		return -EILSEQ;
	if (!exists(expected))
		return info.length == 0 ? 0 : -EILSEQ;
	record_value_make(&key, info.sequence, wanted, length);
	return info.length == length && memcmp(value, wanted, length) == 0 ? 0 : -EILSEQ;
}

int bench_store_get(struct bench_store *store, uint64_t pair, bool *found)
{
	int result;

	pthread_rwlock_rdlock(&store->lock);
	result = get_locked(store, pair, found);
	pthread_rwlock_unlock(&store->lock);
	return result;
}

int bench_store_get_absent(struct bench_store *store, uint64_t number)
{
	/* Behind the keys of all pairs. */
	struct record_key key = { .partition = PARTITION,
				  .identifier = ENGINE_FIRST_ID + store->options.pairs + number };
	struct record_info info;
	uint64_t begun;
	int result;

	pthread_rwlock_rdlock(&store->lock);
	begun = bench_store_charge_begin(store);
	result = store->records->operations->get(store->records, &key, RECORD_NEWEST, NULL, 0,
						 &info);
	bench_store_charge_end(store, begun);
	pthread_rwlock_unlock(&store->lock);
	if (result == -ENOENT)
		return 0;
	return result ? result : -EILSEQ;
}

int bench_store_explain(const struct bench_store *store, int result, const char *operation,
			uint64_t pair, struct error_text *error)
{
	unsigned long long number = pair, size = store->options.size >> 20;

	switch (result) {
	case -ENOSPC:
		return error_set(error, result,
				 "%s of pair %llu: the device of %llu MiB is full; use a"
				 " larger --size, or fewer --pairs or --ops",
				 operation, number, size);
	case -EILSEQ:
		return error_set(error, result,
				 "%s of pair %llu: what was found is not what was put; the engine "
				 "is broken",
				 operation, number);
	case -EFBIG:
		return error_set(error, result, "%s of pair %llu: more than %u puts in one run",
				 operation, number, SEQUENCE_MAX);
	default:
		return error_set(error, result, "%s of pair %llu: error %d (%s)", operation, number,
				 -result, strerror(-result));
	}
}
