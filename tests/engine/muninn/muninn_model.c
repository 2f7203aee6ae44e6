/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A model of the record store that keeps every version, and random work for both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "engine/open.h"
#include "tests/engine/index_under_test.h"
#include "tests/engine/muninn/muninn_model.h"
#include "tests/engine/small_flash.h"

uint64_t model_random(struct model *model)
{
	return hash_mix(model->random += UINT64_C(0x9e3779b97f4a7c15));
}

uint32_t model_below(struct model *model, uint32_t limit)
{
	return (uint32_t)(model_random(model) % limit);
}

/* Pages that are overwritten, and absorbed. */
static bool is_absorbed_page(uint32_t number)
{
	return number >= 5 && number < 10;
}

struct record_key model_key(uint32_t number)
{
	if (is_absorbed_page(number))
		return (struct record_key){ .partition = 1,
					    .identifier = 0x30000 + number / 2,
					    .piece = number };
	if (number < 20)
		return (struct record_key){ .partition = 1,
					    .identifier = 0x10000 + number,
					    .piece = UINT32_MAX,
					    .class = RECORD_CLASS_METADATA };
	if (number < 150)
		return (struct record_key){ .partition = 1,
					    .identifier = 0x20000,
					    .piece = number };
	return (struct record_key){ .partition = 2,
				    .identifier = UINT64_C(0x100000000) * number,
				    .piece = 0 };
}

bool model_is_absorbed(uint32_t number)
{
	return number < 10;
}

void model_fill(uint8_t *value, uint16_t length, uint64_t fill)
{
	for (uint16_t i = 0; i < length; i++)
		value[i] = (uint8_t)(hash_mix(fill + i / 8) >> i % 8 * 8);
}

static void add_version(struct model_history *history, const struct model_version *version)
{
	if (history->count == history->capacity) {
		history->capacity = history->capacity ? history->capacity * 2 : 8;
		history->versions =
			realloc(history->versions, history->capacity * sizeof(*version));
		assert_non_null(history->versions);
	}
	history->versions[history->count++] = *version;
}

/* Walks back through the rollbacks that led to the state at `bound`. */
static bool is_hidden(void *context, const struct record_key *key, uint64_t sequence,
		      uint64_t bound)
{
	const struct model *model = context;

	for (size_t i = model->rollback_count; i-- > 0;) {
		const struct model_rollback *rollback = &model->rollbacks[i];

		if (rollback->at > bound ||
		    (rollback->partition && rollback->partition != key->partition))
			continue;
		if (sequence >= rollback->at)
			return false;
		if (sequence > rollback->to)
			return true;
		bound = rollback->to;
	}
	return false;
}

const struct model_version *model_find(const struct model *model, uint32_t number, uint64_t bound)
{
	const struct model_history *history = &model->keys[number];
	struct record_key key = model_key(number);

	for (size_t i = history->count; i-- > 0;) {
		uint64_t sequence = history->versions[i].sequence;

		if (sequence <= bound &&
		    !is_hidden((void *)(uintptr_t)model, &key, sequence, bound))
			return &history->versions[i];
	}
	return NULL;
}

/*
 * Whether the store knows of something between two numbers. What is found at the upper one counts;
 * what is not, may be merged away.
 */
static void check_between(struct model *model, uint32_t number, uint64_t after, uint64_t bound)
{
	const struct model_version *expected = model_find(model, number, bound);
	const struct model_history *history = &model->keys[number];
	struct record_key key = model_key(number);
	int found = model->store->operations->has_between(model->store, &key, after, bound);
	bool any = false;

	for (size_t i = 0; i < history->count; i++)
		any |= history->versions[i].sequence > after &&
		       history->versions[i].sequence <= bound;
	assert_in_range(found, 0, any);
	if (expected && expected->sequence > after && !(expected->flags & RECORD_TOMBSTONE))
		assert_int_equal(found, 1);
}

void model_check_key(struct model *model, uint32_t number, uint64_t bound)
{
	const struct model_version *expected = model_find(model, number, bound);
	struct record_key key = model_key(number);
	struct record_info info;
	uint8_t found[MODEL_VALUE_MAX], wanted[MODEL_VALUE_MAX];
	int result = model->store->operations->get(model->store, &key, bound, found, sizeof(found),
						   &info);

	model->lookups++;
	for (uint64_t part = 0; part < 4; part++)
		check_between(model, number, bound / 4 * part, bound);
	if (expected)
		check_between(model, number, expected->sequence, bound);
	if (!expected || (result == -ENOENT && expected->flags & RECORD_TOMBSTONE)) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	if (result || info.sequence != expected->sequence)
		print_error(
			"key %u bound %llu: result %d, sequence %llu instead of %llu, flags %x\n",
			number, (unsigned long long)bound, result,
			(unsigned long long)info.sequence, (unsigned long long)expected->sequence,
			expected->flags);
	assert_int_equal(result, 0);
	assert_int_equal(info.sequence, expected->sequence);
	assert_int_equal(info.length, expected->length);
	assert_int_equal(info.flags, expected->flags);
	model_fill(wanted, expected->length, expected->fill);
	assert_memory_equal(found, wanted, expected->length);
}

void model_check_all(struct model *model)
{
	for (uint32_t number = 0; number < MODEL_KEYS; number++)
		model_check_key(model, number, RECORD_NEWEST);
}

/* The versions that a reader at `bound` sees, newest first; of one command the last. */
static uint32_t visible_versions(const struct model *model, uint32_t number, uint64_t bound,
				 const struct model_version **versions, uint32_t max)
{
	const struct model_history *history = &model->keys[number];
	struct record_key key = model_key(number);
	uint32_t count = 0;

	for (size_t i = history->count; i-- > 0 && count < max;) {
		const struct model_version *version = &history->versions[i];

		if (version->sequence <= bound &&
		    !is_hidden((void *)(uintptr_t)model, &key, version->sequence, bound) &&
		    !(count && versions[count - 1]->sequence == version->sequence))
			versions[count++] = version;
	}
	return count;
}

/* In parts, each of which begins where the last one ended. */
static uint32_t list_in_parts(struct model *model, const struct record_key *key, uint64_t bound,
			      struct record_info *infos, uint32_t max)
{
	uint32_t part = 1 + model_below(model, max), listed = 0;
	uint64_t below = RECORD_NEWEST + 1;

	while (listed < max) {
		uint32_t wanted = part < max - listed ? part : max - listed;
		int result = model->store->operations->list(model->store, key, bound, below,
							    infos + listed, wanted);

		assert_true(result >= 0);
		listed += (uint32_t)result;
		if ((uint32_t)result < wanted)
			break;
		below = infos[listed - 1].sequence;
	}
	return listed;
}

/*
 * A version that was listed can be read, at its own number: nothing that hides it from there is
 * newer.
 */
static void check_listed(struct model *model, const struct record_key *key,
			 const struct record_info *listed, const struct model_version *expected)
{
	uint8_t found[MODEL_VALUE_MAX], wanted[MODEL_VALUE_MAX];
	struct record_info info;

	assert_int_equal(model->store->operations->get(model->store, key, listed->sequence, found,
						       sizeof(found), &info),
			 0);
	assert_int_equal(info.sequence, expected->sequence);
	assert_int_equal(info.length, expected->length);
	model_fill(wanted, expected->length, expected->fill);
	assert_memory_equal(found, wanted, expected->length);
}

uint32_t model_check_run(struct model *model, struct record_key key, uint32_t count, uint64_t bound)
{
	const struct record_store_operations *operations = model->store->operations;
	uint32_t page_bytes = nand_geometry(model->nand)->page_bytes, damaged = 0;
	uint8_t *values = malloc((size_t)count * page_bytes), *value = malloc(page_bytes);
	struct record_found found[RECORD_RUN_MAX];

	assert_non_null(values);
	assert_non_null(value);
	operations->get_run(model->store, &key, count, bound, values, page_bytes, found);
	for (uint32_t n = 0; n < count; n++, key.piece++) {
		struct record_info info;

		assert_int_equal(found[n].result, operations->get(model->store, &key, bound, value,
								  page_bytes, &info));
		damaged += found[n].result == -EBADMSG;
		if (found[n].result)
			continue;
		assert_int_equal(found[n].info.sequence, info.sequence);
		assert_int_equal(found[n].info.length, info.length);
		assert_int_equal(found[n].info.flags, info.flags);
		assert_memory_equal(values + (size_t)n * page_bytes, value, info.length);
	}
	free(values);
	free(value);
	return damaged;
}

void model_check_versions(struct model *model, uint32_t number, uint64_t bound)
{
	const struct model_version *expected[MODEL_VERSIONS_MAX];
	struct record_info infos[MODEL_VERSIONS_MAX];
	struct record_key key = model_key(number);
	uint32_t count = visible_versions(model, number, bound, expected, MODEL_VERSIONS_MAX);

	assert_int_equal(list_in_parts(model, &key, bound, infos, MODEL_VERSIONS_MAX), count);
	for (uint32_t n = 0; n < count; n++) {
		assert_int_equal(infos[n].sequence, expected[n]->sequence);
		assert_int_equal(infos[n].length, expected[n]->length);
		assert_int_equal(infos[n].flags, expected[n]->flags);
		model->lookups++;
		check_listed(model, &key, &infos[n], expected[n]);
	}
}

void model_check_versions_since(struct model *model, uint32_t number, uint64_t bound,
				uint64_t horizon)
{
	const struct model_version *expected[MODEL_VERSIONS_MAX];
	struct record_info infos[MODEL_VERSIONS_MAX];
	struct record_key key = model_key(number);
	uint32_t count = visible_versions(model, number, bound, expected, MODEL_VERSIONS_MAX);
	uint32_t listed = list_in_parts(model, &key, bound, infos, MODEL_VERSIONS_MAX), at = 0;

	for (uint32_t n = 0; n < count; n++) {
		if (at == listed || infos[at].sequence != expected[n]->sequence) {
			assert_true(expected[n]->sequence < horizon ||
				    expected[n]->flags & RECORD_TOMBSTONE);
			continue;
		}
		model->lookups++;
		check_listed(model, &key, &infos[at], expected[n]);
		at++;
	}
	/* A full list of the model may end before the store's. */
	assert_true(at == listed || count == MODEL_VERSIONS_MAX);
}

const struct nand_geometry model_nand = SMALL_FLASH(6000);

const struct engine_options model_options = { .muninn.rows = 2,
					      .muninn.segment_pages = 8,
					      .muninn.record_bytes = 128 };

static void take_options(struct model *model, const struct engine_options *options)
{
	model->options = *options;
	if (!options->muninn.index)
		model->options.muninn.index = index_under_test();
}

void model_open(struct model *model, const struct nand_geometry *nand,
		const struct engine_options *options)
{
	struct error_text error = { "" };
	struct nand *memory;
	uint64_t nvram;

	take_options(model, options);
	assert_int_equal(engine_nvram_bytes(nand, &model->options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(nand, nvram, &memory, &error), 0);
	model_open_on(model, memory, options);
}

void model_open_on(struct model *model, struct nand *nand, const struct engine_options *options)
{
	struct error_text error = { "" };

	take_options(model, options);
	model->nand = nand;
	if (engine_format(model->nand, &model->options, &error) ||
	    engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	model->hidden = (struct record_hidden){ .context = model, .is_hidden = is_hidden };
	model->store->operations->set_hidden(model->store, &model->hidden);
}

void model_crash(struct model *model)
{
	struct error_text error = { "" };

	model->store->operations->close(model->store, false);
	if (model->sealers)
		sealers_forget(model->sealers);
	if (engine_open_records(model->nand, &model->options, &model->store, &error))
		fail_msg("%s", error.text);
	model->store->operations->set_hidden(model->store, &model->hidden);
}

void model_close(struct model *model)
{
	assert_int_equal(model->store->operations->close(model->store, true), 0);
	assert_int_equal(nand_close(model->nand), 0);
	for (uint32_t number = 0; number < MODEL_KEYS; number++)
		free(model->keys[number].versions);
	free(model);
}

uint64_t model_setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

struct model_version model_new_version(struct model *model, uint32_t number, uint64_t sequence)
{
	struct model_version version = {
		.sequence = sequence,
		.fill = model_random(model),
		.length = (uint16_t)(model_below(model, 10)
					     ? model_below(model, 150)
					     : model_below(model, MODEL_VALUE_MAX + 1)),
		.epoch = max_u64(sequence - sequence % 1000, sequence & ~(RECORD_SLOT - 1)),
		.flags = model_is_absorbed(number) ? RECORD_ABSORB : 0,
	};

	if (is_absorbed_page(number) && model_below(model, 2))
		version.length = MODEL_VALUE_MAX;
	if (model->length && model_below(model, 1000))
		version.length = model->length;
	if (model_below(model, 15) == 0) {
		version.flags |= RECORD_TOMBSTONE;
		version.length = 0;
	}
	return version;
}

/* Puts a version into the store. */
static int put_version(struct model *model, uint32_t number, const struct model_version *version,
		       enum record_room room)
{
	struct record_key key = model_key(number);
	uint8_t value[MODEL_VALUE_MAX];

	model_fill(value, version->length, version->fill);
	return model->store->operations->put(model->store, &key, version->epoch, version->flags,
					     value, version->length, room);
}

bool model_transaction(struct model *model, bool commit, bool crash)
{
	const struct record_store_operations *operations = model->store->operations;
	uint32_t count = model_below(model, 20) ? 1 + model_below(model, 3)
						: 1 + model_below(model, MODEL_PUTS_MAX);
	uint64_t sequence = operations->begin(model->store, model->next);
	uint32_t numbers[MODEL_PUTS_MAX];
	struct model_version puts[MODEL_PUTS_MAX];

	assert_true(sequence > model->sequence && sequence >= model->next);
	for (uint32_t i = 0; i < count; i++) {
		numbers[i] = model_below(model, 4) ? model_below(model, MODEL_KEYS)
						   : model_below(model, 12);
		puts[i] = model_new_version(model, numbers[i], sequence);
		int result = put_version(model, numbers[i], &puts[i], false);

		if (model->sealers)
			sealers_act(model->sealers, model->store, true);

		model->puts++;
		if (result == -ENOSPC) {
			operations->abort(model->store);
			return false;
		}
		assert_int_equal(result, 0);
	}
	if (crash) {
		model_crash(model);
	} else if (!commit) {
		operations->abort(model->store);
	} else {
		operations->commit(model->store);
		model->sequence = sequence;
		for (uint32_t i = 0; i < count; i++)
			add_version(&model->keys[numbers[i]], &puts[i]);
	}
	if (model->sealers)
		sealers_act(model->sealers, model->store, false);
	return true;
}

uint64_t model_end_slot(struct model *model)
{
	model->next = (model->sequence / RECORD_SLOT + 1) * RECORD_SLOT;
	return model->sequence;
}

void model_roll_back(struct model *model, uint16_t partition, uint64_t to)
{
	const struct record_store_operations *operations = model->store->operations;
	struct model_rollback *rollback = &model->rollbacks[model->rollback_count];

	assert_true(model->rollback_count < MODEL_ROLLBACKS_MAX && to <= model->sequence);
	model_end_slot(model);
	rollback->at = operations->begin(model->store, model->next);
	rollback->to = to;
	rollback->partition = partition;
	operations->commit(model->store);
	model->sequence = rollback->at;
	model->rollback_count++;
}
