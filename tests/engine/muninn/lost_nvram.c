/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A small device that loses its NVRAM. */
#include "tests/engine/muninn/lost_nvram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/muninn/row.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/small_flash.h"

enum { PUTS_MAX = 20, FREE_MIN = 120 };

const struct nand_geometry device_shape = SMALL_FLASH(500);

uint32_t device_below(struct device *device, uint32_t limit)
{
	return (uint32_t)(hash_mix(device->random++) % limit);
}

int device_open(struct device *device, bool recover, struct error_text *error)
{
	struct engine_options options = device->options;

	options.records.recover_without_nvram = recover;
	*error = (struct error_text){ "" };
	return engine_open_records(device->nand, &options, &device->store, error);
}

static void discard(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

void device_say_nothing(void)
{
	log_configure(discard, LOG_LEVEL_ERROR);
}

struct device *device_new_of(const struct nand_geometry *flash, uint32_t rows,
			     enum bloom_hot_rows hot_rows, uint64_t seed)
{
	struct device *device = calloc(1, sizeof(*device));
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	assert_non_null(device);
	device_say_nothing();
	device->class = RECORD_CLASS_DATA;
	device->random = seed << 32;
	device->options = (struct engine_options){ .muninn.index = index_under_test(),
						   .muninn.rows = rows,
						   .muninn.segment_pages = 8,
						   .muninn.record_bytes = 128,
						   .muninn.bloom.hot_rows = hot_rows };
	/* More pages than hash functions give most keys. */
	if (hot_rows == BLOOM_HOT_ROWS_SPREAD)
		device->options.muninn.segment_pages = 16;
	if (engine_nvram_bytes(flash, &device->options, &nvram_bytes, &error) ||
	    nand_open_memory(flash, nvram_bytes, &device->nand, &error) ||
	    engine_format(device->nand, &device->options, &error) ||
	    device_open(device, false, &error))
		fail_msg("%s", error.text);
	return device;
}

struct device *device_new(enum bloom_hot_rows hot_rows, uint64_t seed)
{
	return device_new_of(&device_shape, 2, hot_rows, seed);
}

void device_free(struct device *device)
{
	if (device->store)
		device->store->operations->close(device->store, false);
	assert_int_equal(nand_close(device->nand), 0);
	log_configure(NULL, LOG_LEVEL_WARNING);
	free(device);
}

static struct record_key key_of(const struct device *device, uint32_t number)
{
	return (struct record_key){ .class = device->class,
				    .partition = 1,
				    .identifier = 0x10000 + number };
}

int device_put(struct device *device, uint32_t count)
{
	uint8_t value[DEVICE_VALUE_MAX];
	int result = 0;

	for (uint32_t n = 0; n < count && !result; n++) {
		struct record_key key = key_of(device, device_below(device, DEVICE_KEYS));
		bool ends = device_below(device, 20) == 0;

		memset(value, (int)device_below(device, 256), sizeof(value));
		result = device->store->operations->put(
			device->store, &key, 1, ends ? RECORD_TOMBSTONE : 0, value,
			ends ? 0 : 20 + device_below(device, DEVICE_VALUE_MAX - 20), false);
	}
	return result;
}

static void merge_when_low(struct device *device)
{
	const struct record_keep keep = { 0 }; /* the present is all */
	struct record_merge merge = { .segments_wanted = 1 + device_below(device, 4),
				      .live_permille_max = 950 };
	struct record_statistics statistics = { 0 };

	for (int i = 0; i < 1000; i++) {
		device->store->operations->statistics(device->store, &statistics);
		if (statistics.segments_free >= FREE_MIN)
			return;
		int result = device->store->operations->merge(device->store, &keep, &merge);

		assert_true(result == 0 || result == -EAGAIN);
	}
	fail_msg("a thousand merges free nothing");
}

void device_run(struct device *device, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		device->store->operations->begin(device->store, 0);
		assert_int_equal(device_put(device, 1 + device_below(device, PUTS_MAX)), 0);
		if (device_below(device, 20))
			device->store->operations->commit(device->store);
		else
			device->store->operations->abort(device->store);
		merge_when_low(device);
	}
}

struct answer device_ask(struct device *device, uint32_t number, uint64_t bound)
{
	struct record_key key = key_of(device, number);
	struct answer answer = { .result = 0 };

	answer.result = device->store->operations->get(device->store, &key, bound, answer.value,
						       sizeof(answer.value), &answer.info);
	return answer;
}

void device_expect(uint32_t number, uint64_t bound, const struct answer *found,
		   const struct answer *expected)
{
	if (found->result != expected->result || found->info.sequence != expected->info.sequence)
		fail_msg("key %u up to %llu: result %d, sequence %llu; not %d, %llu", number,
			 (unsigned long long)bound, found->result,
			 (unsigned long long)found->info.sequence, expected->result,
			 (unsigned long long)expected->info.sequence);
	assert_int_equal(found->info.length, expected->info.length);
	assert_memory_equal(found->value, expected->value, found->info.length);
}

uint64_t device_segments_sealed(struct device *device)
{
	struct record_statistics statistics = { 0 };

	device->store->operations->statistics(device->store, &statistics);
	return statistics.segments_sealed;
}

void device_note_answers(struct device *device)
{
	struct muninn_store *store = device_store(device);

	for (uint32_t row = 0; row < store->geometry.rows; row++)
		row_cut(store, row, 0);
	device->segments_sealed = device_segments_sealed(device);
	device->last = min_u64(state_read(store, STATE_SEALED_AT), store->committed);
	for (int n = 0; n < DEVICE_BOUNDS; n++)
		device->bounds[n] = n ? 1 + device_below(device, (uint32_t)store->committed)
				      : store->committed;
	for (uint32_t number = 0; number < DEVICE_KEYS; number++) {
		for (int n = 0; n < DEVICE_BOUNDS; n++)
			device->before[number][n] = device_ask(device, number, device->bounds[n]);
		device->without_last[number] = device_ask(device, number, device->last - 1);
	}
}

void device_lose_nvram(struct device *device)
{
	uint64_t bytes;
	uint8_t *nvram = nand_nvram(device->nand, &bytes);

	device->store->operations->close(device->store, false);
	device->store = NULL;
	memset(nvram, 0, bytes);
}

static bool is_aborted(struct device *device, uint64_t sequence)
{
	struct visibility visibility = store_visibility(device_store(device), RECORD_NEWEST);

	return !sequence_is_visible(&visibility, sequence);
}

bool device_check_answers(struct device *device)
{
	bool last_left_out = is_aborted(device, device->last);

	/* None that was merged away has come back. */
	assert_int_equal(device_segments_sealed(device), device->segments_sealed);

	for (uint32_t number = 0; number < DEVICE_KEYS; number++) {
		struct answer newest = device_ask(device, number, RECORD_NEWEST);

		device_expect(number, RECORD_NEWEST, &newest,
			      last_left_out ? &device->without_last[number]
					    : &device->before[number][0]);
		for (int n = 1; n < DEVICE_BOUNDS; n++) {
			struct answer found = device_ask(device, number, device->bounds[n]);

			if (device->bounds[n] < device->last || !last_left_out)
				device_expect(number, device->bounds[n], &found,
					      &device->before[number][n]);
		}
	}
	return last_left_out;
}

void device_commit(struct device *device, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		device->store->operations->begin(device->store, 0);
		assert_int_equal(device_put(device, 10), 0);
		device->store->operations->commit(device->store);
	}
}
