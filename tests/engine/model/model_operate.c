/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Random operations on partitions, objects and what they hold, one by one, on engine and model side
 * by side.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/past.h"
#include "tests/engine/model/model_run.h"

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

/*
 * Objects that are mostly kept about as long as the data that an onode takes along, so that they
 * often become larger and smaller than that.
 */
static bool is_kept_small(struct model_run *run, uint64_t id)
{
	return id % 3 == 0 && !one_in(run, 12);
}

/* Where such data ends, or shortly before or behind that. */
static uint64_t some_small_end(struct model_run *run)
{
	uint64_t end = run->engine->inline_max + model_run_below(run, 5);

	return end > 2 ? end - 2 : end;
}

static uint64_t some_offset(struct model_run *run, uint64_t id, uint64_t length)
{
	uint64_t page_bytes = run->model.page_bytes;

	if (is_kept_small(run, id))
		return one_in(run, 3) ? some_small_end(run)
				      : model_run_below(run, some_small_end(run));
	switch (model_run_below(run, 4)) {
	case 0:
		return min_u64(length, all_bytes(run) - 1);
	case 1:
		return model_run_below(run, MODEL_PIECES) * page_bytes;
	default:
		return model_run_below(run, all_bytes(run));
	}
}

static uint64_t some_length(struct model_run *run, uint64_t id, uint64_t offset)
{
	uint64_t page_bytes = run->model.page_bytes, length;

	if (is_kept_small(run, id)) {
		uint64_t end = some_small_end(run);

		length = end > offset && one_in(run, 2) ? end - offset
							: model_run_below(run, end / 2 + 1);
		return min_u64(length, all_bytes(run) - offset);
	}
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
 * A call that fails for lack of room ends the transaction; all else must be as wanted. Returns
 * whether the model follows the call.
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

/* Makes a partition that has no objects one in which overwriting puts data alone; half of them. */
static void unlog(struct model_run *run, struct model_partition *partition)
{
	int wanted = 0;

	/* Nobody could ask about what clients write. */
	if (run->weights->others || one_in(run, 2))
		return;
	for (uint32_t n = 0; n < partition->now.count; n++)
		if (partition->now.objects[n]->type == ENGINE_USER_OBJECT)
			wanted = -ENOTEMPTY;
	if (succeeded(run, answer(run, engine_partition_unlog(run->txn, partition->id)), wanted))
		partition->now.unlogged = true;
}

static void change_partition(struct model_run *run, struct model_partition *partition)
{
	bool contents = one_in(run, 2);
	int wanted = contents || partition->now.count == 0 ? 0 : -ENOTEMPTY;

	if (!partition->now.self) {
		if (succeeded(run,
			      answer(run, engine_partition_create(run->txn, partition->id, NULL)),
			      0)) {
			object_model_partition_create(&run->model, partition);
			unlog(run, partition);
		}
		return;
	}
	if (one_in(run, 4)) {
		unlog(run, partition);
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
	if (!wanted && locks_hold_for(run, &partition->now)) {
		wanted = -EPERM;
		run->refusals++;
	}
	if (succeeded(run, answer(run, engine_partition_remove(run->txn, partition->id, contents)),
		      wanted))
		object_model_partition_remove(&run->model, partition);
}

/*
 * Numbers that have been given once come again when all have been: so that this happens, they
 * sometimes go on with the last of them, or with one that a kept version has.
 */
static void turn_numbers(struct model_run *run, const struct model_partition *model)
{
	struct partition *partition;
	int result;

	if (!model->now.self || !one_in(run, 4))
		return;
	/* What is pinned is released before the power is found to be off. */
	model_power_notice(run);
	result = partition_get(run->engine, model->id, &partition);
	if (result) {
		assert_int_equal(answer(run, result), 0);
		return;
	}
	partition->history->next_version = ENGINE_PARTITION_VERSION_LAST;
	if (model->version_count && one_in(run, 2))
		partition->history->next_version =
			model->numbers[model_run_below(run, model->version_count)];
	partition_mark_history(run->txn, partition);
	partition_release(run->engine, partition);
}

/* Makes a version; its number is none that a kept version has. */
void operate_snapshot(struct model_run *run)
{
	struct model_partition *partition = some_partition(run);
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

/*
 * Whether a write has put data alone. The model does not know where data is, nor which onodes a
 * clone has, so it asks; but it knows where that may not be.
 */
static bool was_quiet(struct model_run *run, struct model_partition *partition,
		      const struct model_object *object, uint64_t offset, uint64_t length)
{
	struct engine_stat stat;
	bool quiet = false;

	if (length &&
	    !answer(run, engine_stat(run->txn, address_of(partition, object->id, 0), &stat)))
		quiet = stat.modified_sequence != run->model.sequence ||
			(!run->model.bypass &&
			 stat.times_ms[ENGINE_TIME_DATA_MODIFIED] != run->model.time_ms);
	assert_true(!quiet || (partition->now.unlogged &&
			       object_model_may_overwrite(&run->model, object, offset, length)));
	return quiet;
}

static void write_data(struct model_run *run, struct model_partition *partition, uint64_t id,
		       const struct model_object *object)
{
	struct engine_address address = address_of(partition, id, 0);
	uint64_t end = object ? object->length : 0, at = 0;
	bool append = one_in(run, 4);
	uint64_t offset = append ? end : some_offset(run, id, end);
	uint64_t length = some_length(run, id, offset);
	int wanted = data_result(object), result;

	fill_buffer(run, length);
	if (append)
		result = answer(run, engine_append(run->txn, address, run->buffer, length, &at));
	else
		result = answer(run, engine_write(run->txn, address, offset, run->buffer, length));
	if (!succeeded(run, result, wanted))
		return;
	assert_true(!append || at == offset);
	if (was_quiet(run, partition, object, offset, length)) {
		object_model_overwrite(&run->model, change(run, partition, id), offset, run->buffer,
				       length);
		run->overwritten++;
	} else {
		object_model_write(&run->model, change(run, partition, id), offset, run->buffer,
				   length);
	}
}

static void change_ranges(struct model_run *run, struct model_partition *partition, uint64_t id,
			  const struct model_object *object)
{
	struct engine_address address = address_of(partition, id, 0);
	uint64_t size = object ? object->length : 0, offset = some_offset(run, id, size);
	uint64_t length = some_length(run, id, offset);
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

/*
 * Notes an access. In a reading transaction the state of the object is shared and stays as it is,
 * but for the times.
 */
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
		object_model_accessed(object, ENGINE_TIME_DATA_ACCESSED, run->now_ms);
	if (attributes)
		object_model_accessed(object, ENGINE_TIME_ATTRIBUTES_ACCESSED, run->now_ms);
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
	offset = some_offset(run, id, object->length);
	object_check_stat(run, address, &partition->now, object);
	object_check_read(run, address, object, offset, all_bytes(run) - offset);
}

void operate(struct model_run *run)
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

void operate_reading(struct model_run *run)
{
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
				assert_int_equal(answer(run, engine_read(run->txn, address, 0, NULL,
									 0, &got)),
						 -ENOENT);
			break;
		}
		/* fall through */
	default:
		read_object(run, partition, id, object);
		break;
	}
}
