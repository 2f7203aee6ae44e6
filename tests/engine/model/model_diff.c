/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Differences between two moments of a partition in random runs: exactly those that the model's two
 * states have.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/engine/model/model_run.h"

/* What was reported of one object. */
struct told {
	bool added, removed, length, attributes;
	uint8_t *covered; /* a byte for each of the longest object */
};

/* The byte of an object; what is not there is 0. */
static uint8_t byte_of(const struct model_object *object, uint64_t at)
{
	return object->data && at < object->length ? object->data[at] : 0;
}

static bool have_same_attributes(const struct model_object *a, const struct model_object *b)
{
	if (a->attribute_count != b->attribute_count)
		return false;
	for (uint32_t index = 0; index < a->attribute_count; index++) {
		const struct model_attribute *one = &a->attributes[index];
		const struct model_attribute *other = &b->attributes[index];

		if (one->page != other->page || one->number != other->number ||
		    one->length != other->length || one->fill != other->fill)
			return false;
	}
	return true;
}

static void check_data(const struct model_object *from, const struct model_object *to,
		       const struct told *told)
{
	for (uint64_t at = 0; at < to->length; at++) {
		bool differs = byte_of(from, at) != byte_of(to, at);
		bool begins = told->covered[at] && (at == 0 || !told->covered[at - 1]);
		bool ends = told->covered[at] && (at + 1 == to->length || !told->covered[at + 1]);

		if (differs)
			assert_true(told->covered[at]);
		if (begins || ends)
			assert_true(differs);
	}
}

/* NULL: not there. */
static void check_object(const struct model_object *from, const struct model_object *to,
			 const struct told *told)
{
	bool both = from && to;

	assert_int_equal(told->added, !from && to);
	assert_int_equal(told->removed, from && !to);
	if (!both || from->type != ENGINE_USER_OBJECT || to->type != ENGINE_USER_OBJECT) {
		assert_false(told->length);
	} else {
		check_data(from, to, told);
		assert_int_equal(told->length, from->length != to->length);
	}
	/* Memberships are attributes too, of which the model knows nothing. */
	if (both && !have_same_attributes(from, to))
		assert_true(told->attributes);
	assert_false(!both && told->attributes);
}

/*
 * Asks for all that differs of an object, from the one that `found` is about; *found = the first of
 * the next one.
 */
static int collect(struct model_run *run, const struct model_partition *partition,
		   const struct engine_moment moments[2], struct engine_diff_cursor *cursor,
		   struct engine_difference *found, struct told *told)
{
	uint64_t object = found->object;
	int result = 0;

	*told = (struct told){ .covered = run->buffer };
	memset(told->covered, 0, all_bytes(run));
	while (!result && found->object == object) {
		told->added |= found->kind == ENGINE_OBJECT_ADDED;
		told->removed |= found->kind == ENGINE_OBJECT_REMOVED;
		told->length |= found->kind == ENGINE_LENGTH_DIFFERS;
		told->attributes |= found->kind == ENGINE_ATTRIBUTES_DIFFER;
		if (found->kind == ENGINE_DATA_DIFFERS) {
			assert_true(found->length &&
				    found->offset + found->length <= all_bytes(run));
			memset(told->covered + found->offset, 1, found->length);
		}
		do
			result = answer(run, engine_diff_next(run->txn, partition->id, moments[0],
							      moments[1], cursor, found));
		while (result == -EAGAIN);
	}
	return result;
}

/* The first object of either state with an ID from `id` on; 0: none. */
static uint64_t next_object(const struct model_state *from, const struct model_state *to,
			    uint64_t id)
{
	uint64_t next = 0;

	for (int side = 0; side < 2; side++) {
		const struct model_state *state = side ? to : from;

		for (uint32_t index = 0; index < state->count; index++)
			if (state->objects[index]->id >= id &&
			    (!next || state->objects[index]->id < next))
				next = state->objects[index]->id;
	}
	return next;
}

static void check_untold(struct model_run *run, const struct model_state *from,
			 const struct model_state *to, uint64_t id, uint64_t end)
{
	struct told nothing = { .covered = run->buffer };

	memset(nothing.covered, 0, all_bytes(run));
	for (id = next_object(from, to, id); id && id < end; id = next_object(from, to, id + 1))
		check_object(object_model_find(from, id), object_model_find(to, id), &nothing);
}

bool model_check_differences(struct model_run *run, const struct model_partition *partition,
			     const struct engine_moment moments[2], const struct model_state *from,
			     const struct model_state *to)
{
	struct engine_diff_cursor cursor = { 0 };
	struct engine_difference found;
	uint64_t checked = 0;
	int result;

	do
		result = answer(run, engine_diff_next(run->txn, partition->id, moments[0],
						      moments[1], &cursor, &found));
	while (result == -EAGAIN);
	if (result == -ENOENT && cursor.state != ENGINE_DIFF_DONE)
		return false; /* one of the moments is not kept */
	while (!result) {
		uint64_t object = found.object;
		struct told told;

		check_untold(run, from, to, checked, object);
		result = collect(run, partition, moments, &cursor, &found, &told);
		check_object(object_model_find(from, object), object_model_find(to, object), &told);
		checked = object + 1;
	}
	assert_int_equal(result, -ENOENT);
	check_untold(run, from, to, checked, UINT64_MAX);
	return true;
}
