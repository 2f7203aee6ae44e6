/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Comparing what an engine shows with what the model shows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/engine/model/model_run.h"

/*
 * Access times are those of the model. After a crash they may be the ones that were stable for
 * sure, or any noted in between, because the engine may store them at any time; the model takes
 * over what is found.
 */
static void check_times(struct model_run *run, const uint64_t *got, struct model_object *object,
			bool old)
{
	for (int which = 0; which < ENGINE_TIMES; which++) {
		bool accessed = which == ENGINE_TIME_DATA_ACCESSED ||
				which == ENGINE_TIME_ATTRIBUTES_ACCESSED;

		if ((old || run->times_free) && accessed)
			continue;
		/*
		 * After going back the model learns what is shown: as it was stored then, or a note
		 * that is still in memory, in which case a crash shows what was stored, which may
		 * be later, since times can be set to anything.
		 */
		if (run->unsure && accessed) {
			object->times_ms[which] = got[which];
			object->stable_unknown = true;
		}
		if (run->crashed && accessed &&
		    object_model_may_be_left(object, (enum engine_time)which, got[which]))
			object->times_ms[which] = got[which];
		assert_int_equal(got[which], object->times_ms[which]);
	}
}

void object_check_stat(struct model_run *run, struct engine_address address,
		       const struct model_state *state, struct model_object *object)
{
	struct engine_stat stat;

	assert_int_equal(answer(run, engine_stat(run->txn, address, &stat)), 0);
	assert_int_equal(stat.type, object->type);
	assert_int_equal(stat.modified_sequence, object->modified_sequence);
	check_times(run, stat.times_ms, object, address.version || address.ago);
	if (address.object) {
		assert_int_equal(stat.length, object->length);
		assert_int_equal(stat.used_bytes, object_model_used_bytes(&run->model, object));
	} else {
		uint64_t used = 0, collections = 0;

		for (uint32_t index = 0; index < state->count; index++) {
			used += object_model_used_bytes(&run->model, state->objects[index]);
			collections += state->objects[index]->type == ENGINE_COLLECTION;
		}
		assert_int_equal(stat.used_bytes, used);
		assert_int_equal(stat.members, state->count);
		assert_int_equal(stat.collections, collections);
		/* A rollback takes back what is stored of it, but not the number. */
		if (!address.version)
			assert_int_equal(stat.version, state->version);
	}
}

void object_check_attribute(struct model_run *run, const struct model_attribute *wanted,
			    uint32_t length, uint32_t copied)
{
	uint32_t index = 0, end = (uint32_t)min_u64(length, copied);

	assert_int_equal(length, wanted->length);
	while (index < end && run->buffer[index] == (uint8_t)(wanted->fill + index))
		index++;
	if (index < end)
		assert_int_equal(run->buffer[index], (uint8_t)(wanted->fill + index));
}

/* The next attribute that the model has; those of partitions that others set are left out. */
static int next_attribute(struct model_run *run, struct engine_address address, uint32_t *page,
			  uint32_t *number, uint32_t capacity, uint32_t *length)
{
	int result;

	do
		result = answer(run, engine_attribute_next(run->txn, address, page, number,
							   run->buffer, capacity, length));
	while (result == 0 && !address.object && run->pages && *page >= run->pages && ++*number);
	return result;
}

static void check_attributes(struct model_run *run, struct engine_address address,
			     const struct model_object *object)
{
	uint32_t page = 0, number = 0, length = 0, capacity = (uint32_t)model_run_below(run, 5000);

	for (uint32_t index = 0; index < object->attribute_count; index++, number++) {
		const struct model_attribute *wanted = &object->attributes[index];

		assert_int_equal(next_attribute(run, address, &page, &number, capacity, &length),
				 0);
		assert_int_equal(page, wanted->page);
		assert_int_equal(number, wanted->number);
		object_check_attribute(run, wanted, length, capacity);
	}
	assert_int_equal(next_attribute(run, address, &page, &number, 0, &length), -ENOENT);
}

void object_check_read(struct model_run *run, struct engine_address address,
		       const struct model_object *object, uint64_t offset, uint64_t length)
{
	uint64_t got,
		wanted = offset < object->length ? min_u64(length, object->length - offset) : 0;

	assert_int_equal(
		answer(run, engine_read(run->txn, address, offset, run->buffer, length, &got)), 0);
	assert_int_equal(got, wanted);
	if (object->data) {
		if (memcmp(run->buffer, object->data + offset, wanted) != 0)
			assert_memory_equal(run->buffer, object->data + offset, wanted);
		return;
	}
	/* All are zero if the first one is, and each is as the one before. */
	if (wanted && (run->buffer[0] || memcmp(run->buffer, run->buffer + 1, wanted - 1) != 0))
		fail_msg("what has never been written is not zero");
}

void object_check(struct model_run *run, struct engine_address address,
		  const struct model_state *state, struct model_object *object)
{
	object_check_stat(run, address, state, object);
	check_attributes(run, address, object);
	if (object->type == ENGINE_USER_OBJECT)
		object_check_read(run, address, object, 0, all_bytes(run));
}

static void check_lists(struct model_run *run, struct engine_address address,
			const struct model_state *state)
{
	uint64_t first = one_in(run, 2) ? 0
					: ENGINE_FIRST_ID + model_run_below(run, 2 * MODEL_OBJECTS);

	for (int type = 0; type < 2; type++) {
		enum engine_list what = type ? ENGINE_LIST_COLLECTIONS : ENGINE_LIST_USER_OBJECTS;
		uint64_t ids[8], next = first, number = 0, counted;
		size_t count = 0, at = 0;
		bool more = true;

		assert_int_equal(
			answer(run, engine_list_count(run->txn, address, what, first, &counted)),
			0);
		for (uint32_t index = 0; index < state->count; index++) {
			const struct model_object *object = state->objects[index];

			if (object->id < first || (object->type == ENGINE_COLLECTION) != type)
				continue;
			if (at == count) {
				assert_true(more);
				assert_int_equal(
					answer(run, engine_list(run->txn, address, what, next, ids,
								1 + model_run_below(run, 8), &count,
								&next)),
					0);
				more = next != 0;
				at = 0;
			}
			assert_true(at < count);
			assert_int_equal(ids[at++], object->id);
			number++;
		}
		assert_int_equal(at, count);
		if (more)
			assert_int_equal(answer(run, engine_list(run->txn, address, what, next, ids,
								 8, &count, &next)),
					 0);
		assert_true(!more || count == 0);
		assert_int_equal(counted, number);
	}
}

void object_check_state(struct model_run *run, const struct model_partition *partition,
			uint32_t version, const struct model_state *state)
{
	struct engine_address address = address_of(partition, 0, version);
	struct engine_stat stat;

	if (!state->self) {
		assert_int_equal(answer(run, engine_stat(run->txn, address, &stat)), -ENOENT);
		return;
	}
	object_check(run, address, state, state->self);
	check_lists(run, address, state);
	for (uint32_t index = 0; index < state->count; index++) {
		address.object = state->objects[index]->id;
		object_check(run, address, state, state->objects[index]);
	}
}

void object_check_present(struct model_run *run)
{
	uint64_t partitions = 0, used, sum = 0;
	struct engine_stat stat;
	int64_t change;

	assert_int_equal(answer(run, engine_used(run->txn, &used, &change)), 0);
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		const struct model_partition *partition = &run->model.partitions[index];

		partitions += partition->now.self != NULL;
		if (answer(run, engine_stat(run->txn, address_of(partition, 0, 0), &stat)) == 0)
			sum += stat.used_bytes;
		object_check_state(run, partition, 0, &partition->now);
	}
	assert_int_equal(answer(run, engine_stat(run->txn, (struct engine_address){ 0 }, &stat)),
			 0);
	assert_int_equal(stat.members, partitions);
	assert_int_equal(used, sum);
}

static void check_version(struct model_run *run, const struct model_partition *partition,
			  uint32_t version)
{
	object_check_state(run, partition, partition->numbers[version],
			   &partition->versions[version]);
}

void object_check_versions(struct model_run *run)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		for (uint32_t version = 0; version < run->model.partitions[index].version_count;
		     version++)
			check_version(run, &run->model.partitions[index], version);
}

void object_check_some_version(struct model_run *run)
{
	const struct model_partition *partition =
		&run->model.partitions[model_run_below(run, MODEL_PARTITIONS)];

	if (partition->version_count)
		check_version(run, partition,
			      (uint32_t)model_run_below(run, partition->version_count));
}
