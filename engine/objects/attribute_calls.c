/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h that are about attributes. */
#include "common/bytes.h"
#include "engine/objects/collections.h"
#include "engine/objects/handles.h"
#include "engine/objects/lasting.h"

/*
 * A lasting attribute. That there is another one is a change of the partition, unless timestamps
 * are bypassed.
 */
static int set_lasting(struct target *partition, struct engine_address address, uint32_t page,
		       uint32_t number, const void *value, uint32_t length)
{
	struct engine_txn *txn = partition->txn;
	struct target lasting;
	int result = lasting_open(txn, address, &lasting);

	if (result)
		return result;
	if (!txn->bypass)
		result = target_change(partition);
	if (!result)
		result = target_touch(&lasting);
	if (!result)
		result = attribute_set_change(&lasting.onode->attributes, page, number, value,
					      length);
	if (!result)
		target_modified(&lasting);
	target_close(&lasting);
	return result;
}

int engine_object_attribute_set(struct engine_object *object, uint32_t page, uint32_t number,
				const void *value, uint32_t length)
{
	struct engine_txn *txn = object->txn;
	struct target *target;
	int result = object_use(object, TARGET_CHANGE, &target);

	if (result)
		return result;
	/* These are kept by the engine itself. */
	if (page == ENGINE_PRIVATE_PAGE || membership_is_at(target->onode, page, number)) {
		result = -EINVAL;
	} else if (lasting_has(txn->engine, object->address, page)) {
		result = set_lasting(target, object->address, page, number, value, length);
	} else {
		result = target_touch(target);
		if (!result)
			result = attribute_set_change(&target->onode->attributes, page, number,
						      value, length);
		if (!result)
			target_modified(target);
	}
	if (!object->address.object)
		partition_forget_facts(target->partition);
	if (!result && !txn->bypass)
		target->onode->head.times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED] = txn->time_ms;
	return result;
}

static void copy_value(const uint8_t *from, uint32_t full, void *value, uint32_t capacity,
		       uint32_t *length)
{
	if (full && capacity)
		memcpy(value, from, min_u64(full, capacity));
	*length = full;
}

/*
 * What of a stored attribute is shown: `length` becomes the bytes of that. -ENOENT: nothing, as if
 * it were not there; errors of looking at the collection of a membership.
 */
static int show(const struct target *target, uint32_t page, uint32_t number, const uint8_t *stored,
		uint32_t *length)
{
	int live;

	if (page == ENGINE_PRIVATE_PAGE)
		return -ENOENT;
	if (!membership_is_at(target->onode, page, number))
		return 0;
	live = membership_is_live(target, stored, *length);
	*length = MEMBERSHIP_SHOWN_BYTES;
	return live < 0 ? live : live ? 0 : -ENOENT;
}

static int get(const struct target *target, uint32_t page, uint32_t number, void *value,
	       uint32_t capacity, uint32_t *length)
{
	const struct attribute_set *set = &target->onode->attributes;
	const uint8_t *found;
	uint32_t index, full;
	int result;

	if (!attribute_set_find(set, page, number, &index))
		return -ENOENT;
	attribute_set_at(set, index, &page, &number, &found, &full);
	result = show(target, page, number, found, &full);
	if (!result)
		copy_value(found, full, value, capacity, length);
	return result;
}

int engine_object_attribute_get(struct engine_object *object, uint32_t page, uint32_t number,
				void *value, uint32_t capacity, uint32_t *length)
{
	struct target lasting, *target;
	int result;

	if (!lasting_has(object->txn->engine, object->address, page)) {
		result = object_use(object, TARGET_READ, &target);
		return result ? result : get(target, page, number, value, capacity, length);
	}
	result = lasting_open(object->txn, object->address, &lasting);
	if (result)
		return result;
	result = get(&lasting, page, number, value, capacity, length);
	target_close(&lasting);
	return result;
}

/* The first attribute of a target that is shown, at or behind page and number. */
static int next_of(const struct target *target, uint32_t *page, uint32_t *number,
		   const uint8_t **found, uint32_t *full)
{
	const struct attribute_set *set = &target->onode->attributes;
	uint32_t index = attribute_set_position(set, *page, *number);
	int result = -ENOENT;

	for (; result == -ENOENT && index < set->count; index++) {
		attribute_set_at(set, index, page, number, found, full);
		result = show(target, *page, *number, *found, full);
	}
	return result;
}

/*
 * Takes the lasting attribute instead, if it comes first. `result` = of the search for another one,
 * at `at`.
 */
static int next_lasting(struct engine_txn *txn, struct engine_address address, int result,
			const uint32_t from[2], uint32_t at[2], void *value, uint32_t capacity,
			uint32_t *length)
{
	uint32_t page = from[0], number = from[1], full;
	const uint8_t *found;
	struct target target;
	int lasting = lasting_open(txn, address, &target);

	if (lasting)
		return lasting == -ENOENT ? result : lasting;
	lasting = next_of(&target, &page, &number, &found, &full);
	if (!lasting && (result || page < at[0] || (page == at[0] && number < at[1]))) {
		at[0] = page;
		at[1] = number;
		copy_value(found, full, value, capacity, length);
		result = 0;
	}
	target_close(&target);
	return lasting && lasting != -ENOENT ? lasting : result;
}

int engine_object_attribute_next(struct engine_object *object, uint32_t *page, uint32_t *number,
				 void *value, uint32_t capacity, uint32_t *length)
{
	const uint32_t from[2] = { *page, *number };
	uint32_t at[2] = { *page, *number };
	const uint8_t *found;
	struct target *target;
	uint32_t full;
	int result = object_use(object, TARGET_READ, &target);

	if (result)
		return result;
	result = next_of(target, &at[0], &at[1], &found, &full);
	if (!result)
		copy_value(found, full, value, capacity, length);
	if ((!result || result == -ENOENT) && !object->address.object &&
	    object->txn->engine->lasting_count)
		result = next_lasting(object->txn, object->address, result, from, at, value,
				      capacity, length);
	if (!result) {
		*page = at[0];
		*number = at[1];
	}
	return result;
}
