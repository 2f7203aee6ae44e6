/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "tests/engine/model_power.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"

uint64_t model_run_below(struct model_run *run, uint64_t limit)
{
	uint64_t z = run->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % limit;
}

static uint64_t clock_of(void *context)
{
	return ((struct model_run *)context)->now_ms;
}

/* ---- what an operation is about ---- */

static struct model_partition *some_partition(struct model_run *run)
{
	return &run->model.partitions[model_run_below(run, MODEL_PARTITIONS)];
}

/* An ID that often is there: one of the objects', or any. */
static uint64_t some_id(struct model_run *run, const struct model_state *state)
{
	if (state->count && !one_in(run, 20))
		return state->objects[model_run_below(run, state->count)]->id;
	return ENGINE_FIRST_ID + model_run_below(run, 2 * MODEL_OBJECTS);
}

static uint64_t some_offset(struct model_run *run, uint64_t length)
{
	uint64_t page_bytes = run->model.page_bytes;

	switch (model_run_below(run, 4)) {
	case 0:
		return min_u64(length, all_bytes(run) - 1);
	case 1:
		return model_run_below(run, MODEL_PIECES) * page_bytes;
	default:
		return model_run_below(run, all_bytes(run));
	}
}

static uint64_t some_length(struct model_run *run, uint64_t offset)
{
	uint64_t page_bytes = run->model.page_bytes, length;

	switch (model_run_below(run, 8)) {
	case 0:
		length = 0;
		break;
	case 1:
		length = page_bytes * (1 + model_run_below(run, 6));
		break;
	case 2:
		length = model_run_below(run, 8 * page_bytes);
		break;
	default:
		length = model_run_below(run, page_bytes);
		break;
	}
	return min_u64(length, all_bytes(run) - offset);
}

/*
 * A call that fails for lack of room ends the transaction; all else must be as wanted. Returns whether the model follows
 * the call.
 */
static bool succeeded(struct model_run *run, int result, int wanted)
{
	if (result == -ENOSPC) {
		run->failures++;
		engine_abort(run->txn);
		run->txn = NULL;
		object_model_abort(&run->model);
		return false;
	}
	assert_int_equal(result, wanted);
	return result == 0;
}

/* ---- operations on partitions ---- */

static void change_partition(struct model_run *run, struct model_partition *partition)
{
	bool contents = one_in(run, 2);
	int wanted = contents || partition->now.count == 0 ? 0 : -ENOTEMPTY;

	if (!partition->now.self) {
		if (succeeded(run,
			      answer(run, engine_partition_create(run->txn, partition->id, NULL)),
			      0))
			object_model_partition_create(&run->model, partition);
		return;
	}
	if (one_in(run, 2)) {
		succeeded(run, answer(run, engine_partition_create(run->txn, partition->id, NULL)),
			  -EEXIST);
		return;
	}
	/* Seldom, or there would be no history. */
	if (!one_in(run, run->restless ? 2 : 8))
		return;
	if (!wanted && locks_hold(run, &partition->now)) {
		wanted = -EPERM;
		run->refusals++;
	}
	if (succeeded(run, answer(run, engine_partition_remove(run->txn, partition->id, contents)),
		      wanted))
		object_model_partition_remove(&run->model, partition);
}

/*
 * Numbers that have been given once come again when all have been: so that this happens, they sometimes go on with the last of
 * them, or with one that a kept version has.
 */
static void turn_numbers(struct model_run *run, const struct model_partition *model)
{
	struct partition *partition;

	if (!model->now.self || !one_in(run, 4))
		return;
	assert_int_equal(answer(run, partition_get(run->engine, model->id, &partition)), 0);
	partition->history.next_version = ENGINE_PARTITION_VERSION_LAST;
	if (model->version_count && one_in(run, 2))
		partition->history.next_version =
			model->numbers[model_run_below(run, model->version_count)];
	partition_mark_history(run->txn, partition);
	partition_release(run->engine, partition);
}

/* Makes a version; its number is none that a kept version has. */
static void snapshot(struct model_run *run, struct model_partition *partition)
{
	int exists = partition->now.self ? 0 : -ENOENT, result;
	uint32_t version;

	turn_numbers(run, partition);
	result = answer(run, engine_snapshot(run->txn, partition->id, NULL, &version));
	/* It may have begun a slot. */
	run->model.sequence = run->txn->sequence;
	if (!succeeded(run, result, exists))
		return;
	for (uint32_t index = 0; index < partition->version_count; index++)
		assert_int_not_equal(partition->numbers[index], version);
	object_model_snapshot(partition, version);
}

static void create(struct model_run *run, struct model_partition *partition)
{
	enum engine_type type = one_in(run, 5) ? ENGINE_COLLECTION : ENGINE_USER_OBJECT;
	uint64_t first,
		id = one_in(run, 2) ? 0 : ENGINE_FIRST_ID + model_run_below(run, 2 * MODEL_OBJECTS);
	uint32_t count = id ? 1 : 1 + (uint32_t)model_run_below(run, 3);
	struct model_state *state = &partition->now;
	uint64_t wanted = id ? id : object_model_highest(state) + 1;
	int result = state->self ? 0 : -ENOENT;

	if (state->count + count > MODEL_OBJECTS)
		return;
	if (!result && id && object_model_find(state, id))
		result = -EEXIST;
	if (!succeeded(run,
		       answer(run, engine_create(run->txn, partition->id, type, id, count, &first)),
		       result))
		return;
	assert_int_equal(first, wanted);
	for (uint32_t index = 0; index < count; index++)
		object_model_create(&run->model, state, type, wanted + index);
}

static void remove_object(struct model_run *run, struct model_partition *partition)
{
	uint64_t id = some_id(run, &partition->now);
	struct engine_address address = address_of(partition, id, 0);

	/* Twice as seldom as creation while there are few. */
	if (partition->now.count < MODEL_OBJECTS / 2 && one_in(run, 2))
		return;
	if (succeeded(run, answer(run, engine_remove(run->txn, address)),
		      object_model_find(&partition->now, id) && partition->now.self ? 0 : -ENOENT))
		object_model_remove(&run->model, &partition->now, id);
}

/* ---- operations on objects ---- */

static void fill_buffer(struct model_run *run, uint64_t length)
{
	uint8_t byte = (uint8_t)model_run_below(run, 256);

	for (uint64_t index = 0; index < length; index++)
		run->buffer[index] = (uint8_t)(byte + index + index / 251);
}

/* What a data call on this object should say: 0, or why it can't be. */
static int data_result(const struct model_object *object)
{
	if (!object)
		return -ENOENT;
	return object->type == ENGINE_USER_OBJECT ? 0 : -EINVAL;
}

static struct model_object *change(struct model_run *run, struct model_partition *partition,
				   uint64_t id)
{
	return object_model_change(&run->model, &partition->now, id);
}

static void write_data(struct model_run *run, struct model_partition *partition, uint64_t id,
		       const struct model_object *object)
{
	struct engine_address address = address_of(partition, id, 0);
	uint64_t end = object ? object->length : 0, at = 0;
	bool append = one_in(run, 4);
	uint64_t offset = append ? end : some_offset(run, end), length = some_length(run, offset);
	int wanted = data_result(object), result;

	fill_buffer(run, length);
	if (append)
		result = answer(run, engine_append(run->txn, address, run->buffer, length, &at));
	else
		result = answer(run, engine_write(run->txn, address, offset, run->buffer, length));
	if (!succeeded(run, result, wanted))
		return;
	assert_true(!append || at == offset);
	object_model_write(&run->model, change(run, partition, id), offset, run->buffer, length);
}

static void change_ranges(struct model_run *run, struct model_partition *partition, uint64_t id,
			  const struct model_object *object)
{
	struct engine_address address = address_of(partition, id, 0);
	uint64_t size = object ? object->length : 0, offset = some_offset(run, size);
	uint64_t length = some_length(run, offset);
	int wanted = data_result(object);

	switch (model_run_below(run, 3)) {
	case 0:
		if (one_in(run, 2))
			offset = size - min_u64(size, length);
		if (succeeded(run, answer(run, engine_truncate(run->txn, address, offset)), wanted))
			object_model_truncate(&run->model, change(run, partition, id), offset);
		break;
	case 1:
		if (succeeded(run, answer(run, engine_clear(run->txn, address, offset, length)),
			      wanted))
			object_model_clear_range(&run->model, change(run, partition, id), offset,
						 length);
		break;
	default:
		if (offset > size && !one_in(run, 10))
			offset = model_run_below(run, size + 1);
		if (!wanted && offset > size)
			wanted = -EINVAL;
		if (succeeded(run, answer(run, engine_punch(run->txn, address, offset, length)),
			      wanted))
			object_model_punch(&run->model, change(run, partition, id), offset, length);
		break;
	}
}

static void set_attribute(struct model_run *run, struct model_partition *partition, uint64_t id,
			  const struct model_object *object)
{
	struct model_attribute attribute = {
		.page = (uint32_t)model_run_below(run, 3) * 0x10000000,
		.number = (uint32_t)model_run_below(run, 5),
		.length = (uint32_t)model_run_below(run, one_in(run, 8) ? 3000 : 60),
		.fill = (uint8_t)model_run_below(run, 256),
	};

	if (object && object->attribute_count == MODEL_ATTRIBUTES)
		attribute.length = 0;
	for (uint32_t index = 0; index < attribute.length; index++)
		run->buffer[index] = (uint8_t)(attribute.fill + index);
	if (succeeded(run,
		      answer(run, engine_attribute_set(run->txn, address_of(partition, id, 0),
						       attribute.page, attribute.number,
						       run->buffer, attribute.length)),
		      object ? 0 : -ENOENT))
		object_model_set_attribute(&run->model, change(run, partition, id), attribute);
}

static void get_attribute(struct model_run *run, struct model_partition *partition, uint64_t id,
			  const struct model_object *object)
{
	uint32_t page = (uint32_t)model_run_below(run, 3) * 0x10000000,
		 number = (uint32_t)model_run_below(run, 5);
	uint32_t index = object ? object_model_attribute(object, page, number) : 0, length;
	const struct model_attribute *found = NULL;
	int result = answer(run, engine_attribute_get(run->txn, address_of(partition, id, 0), page,
						      number, run->buffer, 100, &length));

	if (object && index < object->attribute_count)
		found = &object->attributes[index];
	if (!found || found->page != page || found->number != number) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	assert_int_equal(result, 0);
	object_check_attribute(run, found, length, 100);
}

static void set_time(struct model_run *run, struct model_partition *partition, uint64_t id,
		     const struct model_object *object)
{
	enum engine_time which = (enum engine_time)(1 + model_run_below(run, ENGINE_TIMES - 1));
	uint64_t ms = model_run_below(run, 1000000);
	struct model_object *changed;

	if (!succeeded(
		    run,
		    answer(run, engine_set_time(run->txn, address_of(partition, id, 0), which, ms)),
		    object ? 0 : -ENOENT))
		return;
	changed = change(run, partition, id);
	changed->modified_sequence = run->model.sequence;
	changed->times_ms[which] = ms;
	object_model_settled(changed);
}

/* Notes an access. In a reading transaction the state of the object is shared and stays as it is, but for the times. */
static void note_access(struct model_run *run, struct model_partition *partition, uint64_t id,
			struct model_object *object, bool writing)
{
	bool data = one_in(run, 2), attributes = one_in(run, 2);

	if (!succeeded(run,
		       answer(run, engine_accessed(run->txn, address_of(partition, id, 0), data,
						   attributes)),
		       object ? 0 : -ENOENT))
		return;
	if (run->model.bypass || (!data && !attributes))
		return;
	if (writing)
		object = change(run, partition, id);
	if (data)
		object->times_ms[ENGINE_TIME_DATA_ACCESSED] = run->now_ms;
	if (attributes)
		object->times_ms[ENGINE_TIME_ATTRIBUTES_ACCESSED] = run->now_ms;
	if (writing)
		object_model_settled(object);
}

static void read_object(struct model_run *run, struct model_partition *partition, uint64_t id,
			struct model_object *object)
{
	struct engine_address address = address_of(partition, id, 0);
	uint64_t offset, got;

	if (!object || object->type == ENGINE_COLLECTION) {
		assert_int_equal(
			answer(run, engine_read(run->txn, address, 0, run->buffer, 1, &got)),
			data_result(object));
		return;
	}
	offset = some_offset(run, object->length);
	object_check_stat(run, address, &partition->now, object);
	object_check_read(run, address, object, offset, all_bytes(run) - offset);
}

static void operate(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);
	uint64_t id = some_id(run, &partition->now), choice = model_run_below(run, 100);
	struct model_object *object = object_model_find(&partition->now, id), *any = object;
	uint64_t any_id = id;

	run->operations++;
	if (one_in(run, 10)) {
		any = partition->now.self;
		any_id = 0;
	}
	if (one_in(run, 10)) {
		run->model.bypass = !run->model.bypass;
		engine_bypass_timestamps(run->txn, run->model.bypass);
	}
	if (choice < 3)
		change_partition(run, partition);
	else if (choice < 15)
		create(run, partition);
	else if (choice < 25)
		remove_object(run, partition);
	else if (choice < 50)
		write_data(run, partition, id, object);
	else if (choice < 62)
		change_ranges(run, partition, id, object);
	else if (choice < 75)
		set_attribute(run, partition, any_id, any);
	else if (choice < 80)
		get_attribute(run, partition, any_id, any);
	else if (choice < 82)
		set_time(run, partition, any_id, any);
	else if (choice < 85)
		note_access(run, partition, any_id, any, true);
	else
		read_object(run, partition, id, object);
}

/* ---- transactions ---- */

static void reading_transaction(struct model_run *run)
{
	uint64_t count = 1 + model_run_below(run, 6);

	run->doing = MODEL_READING;
	run->model.bypass = false;
	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	if (one_in(run, 6))
		history_check_some(run);
	for (; count; count--) {
		struct model_partition *partition = some_partition(run);
		uint64_t id = some_id(run, &partition->now), got;
		struct model_object *object = object_model_find(&partition->now, id);
		struct engine_address address = address_of(partition, id, 0);

		run->operations++;
		switch (model_run_below(run, 4)) {
		case 0:
			note_access(run, partition, id, object, false);
			break;
		case 1:
			if (partition->version_count) {
				uint64_t version = model_run_below(run, partition->version_count);
				const struct model_state *state = &partition->versions[version];

				id = some_id(run, state);
				address = address_of(partition, id, partition->numbers[version]);
				object = object_model_find(state, id);
				if (object)
					object_check(run, address, state, object);
				else
					assert_int_equal(answer(run, engine_read(run->txn, address,
										 0, NULL, 0, &got)),
							 -ENOENT);
				break;
			}
			/* fall through */
		default:
			read_object(run, partition, id, object);
			break;
		}
	}
	engine_abort(run->txn);
	run->txn = NULL;
}

static void open_again(struct model_run *run)
{
	run->doing = MODEL_OPENING;
	run->engine = run->store.open(run);
	answer(run, 0);
}

void model_run_abandon(struct model_run *run)
{
	engine_abandon(run->engine);
	run->engine = NULL;
	run->txn = NULL;
	object_model_abort(&run->model);
	run->crashes++;
	run->crashed = true;
	open_again(run);
}

void model_run_begin(struct model_run *run, enum engine_mode mode)
{
	assert_int_equal(engine_begin(run->engine, mode, &run->txn), 0);
	object_model_begin(&run->model, run->txn->sequence, run->now_ms);
	answer(run, 0);
}

bool model_run_commit(struct model_run *run)
{
	bool stable = one_in(run, 10);
	int result;

	model_power_committing(run);
	result = engine_commit(run->txn, stable);
	run->txn = NULL;
	if (model_power_committed(run, result, stable))
		return true;
	run->commits += result == 0;
	run->failures += result == -ENOSPC;
	assert_true(result == 0 || result == -ENOSPC);
	return result == 0;
}

static void writing_transaction(struct model_run *run)
{
	enum engine_mode mode = one_in(run, 10) ? ENGINE_FREE : ENGINE_WRITE;
	uint64_t count = 1 + model_run_below(run, 8);

	run->doing = MODEL_WRITING;
	if (run->store.disturb && one_in(run, 20))
		run->store.disturb(run);
	model_run_begin(run, mode);
	if (one_in(run, 40))
		snapshot(run, some_partition(run));
	while (run->txn && count--)
		operate(run);
	if (!run->txn)
		return;
	if (one_in(run, 200)) {
		model_run_abandon(run);
	} else if (one_in(run, 12)) {
		engine_abort(run->txn);
		run->txn = NULL;
		object_model_abort(&run->model);
		run->aborts++;
	} else if (model_run_commit(run)) {
		object_model_commit(&run->model);
	} else {
		object_model_abort(&run->model);
	}
}

/* Everything that is known about access times is stable now. */
static void all_stable(struct model_run *run)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_state *state = &run->model.partitions[index].now;

		if (state->self)
			object_model_settled(state->self);
		for (uint32_t object = 0; object < state->count; object++)
			object_model_settled(state->objects[object]);
	}
}

void model_run_look(struct model_run *run)
{
	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	object_check_all(run);
	locks_check(run);
	if (one_in(run, 3) || (run->power && run->crashed))
		history_check(run);
	engine_abort(run->txn);
	run->txn = NULL;
	if (run->crashed)
		all_stable(run);
	run->crashed = run->unsure = false;
}

static void format(struct model_run *run)
{
	answer(run, 0); /* it may have none already */
	model_power_spare(run);
	if (locks_hold_anything(run)) {
		assert_int_equal(engine_reformat(run->engine), -EPERM);
		run->refusals++;
		run->now_ms = locks_latest(&run->model);
	}
	assert_int_equal(engine_reformat(run->engine), 0);
	object_model_clear(&run->model);
	run->formats++;
}

static void close_and_open(struct model_run *run)
{
	struct engine *engine = run->engine;

	run->engine = NULL;
	run->doing = MODEL_CLOSING;
	assert_int_equal(answer(run, engine_close(engine)), 0);
	model_power_flushed(run);
	/* On a full device access times can get lost. */
	run->crashed = true;
	open_again(run);
}

/* Opens again, cleanly or not, flushes, or formats. */
static void upheaval(struct model_run *run)
{
	switch (model_run_below(run, 4)) {
	case 0:
		object_model_begin(&run->model, 0, 0);
		model_run_abandon(run);
		break;
	case 1:
		close_and_open(run);
		break;
	case 2:
		run->doing = MODEL_FLUSHING;
		assert_int_equal(answer(run, engine_flush(run->engine)), 0);
		model_power_flushed(run);
		break;
	default:
		if (one_in(run, 10))
			format(run);
		break;
	}
	run->doing = MODEL_READING;
	model_run_look(run);
}

/* A full store is formatted, or nothing would happen any more. */
static void format_if_full(struct model_run *run, uint64_t *failures, uint64_t *commits)
{
	if (run->commits > *commits) {
		*commits = run->commits;
		*failures = run->failures;
	}
	if (run->failures - *failures < 20)
		return;
	model_power_spare(run);
	model_run_look(run);
	format(run);
	*failures = run->failures;
}

/* A transaction, and sometimes more. */
static void turn(struct model_run *run)
{
	run->now_ms += model_run_below(run, 100);
	if (one_in(run, 3))
		reading_transaction(run);
	else if (one_in(run, run->restless ? 3 : run->history_often ? 4 : 12))
		history_operate(run);
	else
		writing_transaction(run);
	if (run->store.calm)
		run->store.calm(run);
	if (one_in(run, 300))
		upheaval(run);
	else if (run->crashed || run->unsure || one_in(run, 300))
		model_run_look(run);
}

void model_run(struct model_run *run, uint64_t seed, uint64_t operations)
{
	uint64_t failures = 0, commits = 0;

	run->random = seed;
	run->now_ms = 1000;
	run->options.clock_ms = clock_of;
	run->options.clock_context = run;
	run->engine = run->store.open(run);
	object_model_init(&run->model, run->engine->page_bytes);
	run->buffer = malloc(max_u64(all_bytes(run), 5000));
	assert_non_null(run->buffer);
	while (run->operations < operations) {
		model_power_turn(run, turn);
		format_if_full(run, &failures, &commits);
	}
	model_power_spare(run);
	model_run_look(run);
	assert_int_equal(engine_close(run->engine), 0);
	object_model_clear(&run->model);
	free(run->buffer);
	printf("%llu operations: %llu commits, %llu aborts, %llu crashes, %llu without room, %llu "
	       "formats, %llu rollbacks, %llu clones; %llu moments and %llu modifications "
	       "compared; %llu locks, %llu refusals for them\n",
	       (unsigned long long)run->operations, (unsigned long long)run->commits,
	       (unsigned long long)run->aborts, (unsigned long long)run->crashes,
	       (unsigned long long)run->failures, (unsigned long long)run->formats,
	       (unsigned long long)run->rollbacks, (unsigned long long)run->clones,
	       (unsigned long long)run->moments, (unsigned long long)run->undone,
	       (unsigned long long)run->locks, (unsigned long long)run->refusals);
}
