/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Memberships of an object that goes back: those of then come back, and those that it has got since
 * end.
 */
#include "common/bytes.h"
#include "engine/objects/collections.h"

/* A membership that counts: what is stored of it. */
struct membership {
	uint64_t collection, created_sequence; /* of the collection */
};

/*
 * The first membership that counts at or behind *number, as seen from an object now or then.
 * -ENOENT: no more.
 */
static int next_live(const struct target *object, uint32_t *number, struct membership *membership)
{
	const struct attribute_set *set = &object->onode->attributes;

	for (uint32_t at = attribute_set_position(set, ENGINE_MEMBERSHIPS_PAGE, *number);
	     at < set->count; at++) {
		const uint8_t *value;
		uint32_t page, length;
		int live;

		attribute_set_at(set, at, &page, number, &value, &length);
		if (!membership_is_at(object->onode, page, *number))
			break;
		live = membership_is_live(object, value, length);
		if (live < 0)
			return live;
		if (!live)
			continue;
		*membership = (struct membership){ get_be64(value),
						   get_le48(value + MEMBERSHIP_SHOWN_BYTES) };
		return 0;
	}
	return -ENOENT;
}

/* Whether an object has just this membership as `number`. 1, 0; errors of reading. */
static int has(const struct target *object, uint32_t number, const struct membership *membership)
{
	struct membership found;
	uint32_t at = number;
	int result = next_live(object, &at, &found);

	if (result)
		return result == -ENOENT ? 0 : result;
	return at == number && found.collection == membership->collection &&
	       found.created_sequence == membership->created_sequence;
}

/* Ends what the object was not in then, or under another number. */
static int end_later(struct target *now, const struct target *then)
{
	struct membership membership;
	uint32_t number = 1;
	int result;

	while ((result = next_live(now, &number, &membership)) == 0) {
		int same = has(then, number, &membership);

		if (same < 0)
			return same;
		if (!same)
			result = membership_change(now, number, 0);
		if (result)
			return result;
		number++;
	}
	return result == -ENOENT ? 0 : result;
}

/* Makes the object a member again where the collection of then is still there. */
static int join_again(struct target *now, uint32_t number, const struct membership *membership)
{
	const struct engine_address address = { .partition = now->partition->id,
						.object = membership->collection };
	struct onode_head collection;
	struct target target;
	int result = target_open(now->txn, address, TARGET_READ, &target);

	if (result)
		return result == -ENOENT ? 0 : result;
	collection = target.onode->head;
	target_close(&target);
	if (collection.type != ENGINE_COLLECTION ||
	    collection.created_sequence != membership->created_sequence)
		return 0;
	result = membership_change(now, number, membership->collection);
	/* Somebody has put its bare ID there meanwhile, which stays as it is. */
	return result == -EEXIST ? 0 : result;
}

int memberships_restore(struct target *now, const struct target *then)
{
	struct membership membership;
	uint32_t number = 1;
	int result = end_later(now, then);

	if (result)
		return result;
	while ((result = next_live(then, &number, &membership)) == 0) {
		int same = has(now, number, &membership);

		result = same < 0 ? same : same ? 0 : join_again(now, number, &membership);
		if (result)
			return result;
		number++;
	}
	return result == -ENOENT ? 0 : result;
}
