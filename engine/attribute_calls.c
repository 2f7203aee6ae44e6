/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h that are about attributes. */
#include "common/bytes.h"
#include "engine/collections.h"

int engine_attribute_set(struct engine_txn *txn, struct engine_address address, uint32_t page,
			 uint32_t number, const void *value, uint32_t length)
{
	struct target target;
	int result = target_open(txn, address, TARGET_CHANGE, &target);

	if (result)
		return result;
	/* These are kept by the engine itself. */
	if (page == ENGINE_PRIVATE_PAGE || membership_is_at(target.onode, page, number))
		result = -EINVAL;
	if (!result)
		result = target_touch(&target);
	if (!result)
		result = attribute_set_change(&target.onode->attributes, page, number, value,
					      length);
	if (!result)
		target_modified(&target);
	if (!result && !txn->bypass)
		target.onode->head.times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED] = txn->time_ms;
	target_close(&target);
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
 * What of a stored attribute is shown: `length` becomes the bytes of that. -ENOENT: nothing, as if it were not there;
 * errors of looking at the collection of a membership.
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

int engine_attribute_get(struct engine_txn *txn, struct engine_address address, uint32_t page,
			 uint32_t number, void *value, uint32_t capacity, uint32_t *length)
{
	const struct attribute_set *set;
	const uint8_t *found;
	uint32_t index, full;
	struct target target;
	int result = target_open(txn, address, TARGET_READ, &target);

	if (result)
		return result;
	set = &target.onode->attributes;
	if (attribute_set_find(set, page, number, &index)) {
		attribute_set_at(set, index, &page, &number, &found, &full);
		result = show(&target, page, number, found, &full);
	} else {
		result = -ENOENT;
	}
	if (!result)
		copy_value(found, full, value, capacity, length);
	target_close(&target);
	return result;
}

int engine_attribute_next(struct engine_txn *txn, struct engine_address address, uint32_t *page,
			  uint32_t *number, void *value, uint32_t capacity, uint32_t *length)
{
	const struct attribute_set *set;
	const uint8_t *found;
	uint32_t index, full;
	struct target target;
	int result = target_open(txn, address, TARGET_READ, &target);

	if (result)
		return result;
	set = &target.onode->attributes;
	index = attribute_set_position(set, *page, *number);
	for (result = -ENOENT; result == -ENOENT && index < set->count; index++) {
		attribute_set_at(set, index, page, number, &found, &full);
		result = show(&target, *page, *number, found, &full);
	}
	if (!result)
		copy_value(found, full, value, capacity, length);
	target_close(&target);
	return result;
}
