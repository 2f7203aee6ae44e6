/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the members of collections, and the memberships that objects know. */
#include "engine/objects/collections.h"

#include <assert.h>

#include "common/bytes.h"
#include "engine/objects/handles.h"
#include "engine/sets/idset_node.h"

/* ---- the state of a collection ---- */

struct collection_state {
	struct idset_header members;
	uint64_t filled_sequence;
};

/* A collection that never had a member has no state attribute. */
static int state_read(const struct onode *onode, struct collection_state *state)
{
	const uint8_t *value;
	uint32_t index, page, number, length;

	*state = (struct collection_state){ 0 };
	if (!attribute_set_find(&onode->attributes, ENGINE_PRIVATE_PAGE, 0, &index))
		return 0;
	attribute_set_at(&onode->attributes, index, &page, &number, &value, &length);
	if (length != COLLECTION_STATE_BYTES)
		return -EBADMSG;
	state->filled_sequence = get_le48(value + IDSET_HEADER_BYTES);
	if (idset_header_decode(&state->members, value) != 0)
		return -EBADMSG;
	state->members.changed_sequence = onode->head.modified_sequence;
	return 0;
}

/* Stores the state; once it is there this cannot fail. -EFBIG, -ENOMEM. */
static int state_write(struct onode *onode, const struct collection_state *state)
{
	uint8_t value[COLLECTION_STATE_BYTES];

	idset_header_encode(&state->members, value);
	put_le48(value + IDSET_HEADER_BYTES, state->filled_sequence);
	return attribute_set_change(&onode->attributes, ENGINE_PRIVATE_PAGE, 0, value,
				    sizeof(value));
}

static_assert(RECORD_MEMBERS_PIECE + ((uint64_t)IDSET_NODES_MAX << IDSET_PART_BITS) <=
		      RECORD_ONODE_PIECE,
	      "the nodes of a collection end before its onode");

static struct idset members_of(const struct target *target, struct collection_state *state)
{
	struct engine *engine = target->txn->engine;

	return (struct idset){
		.store = engine->store,
		.nodes = &engine->nodes,
		.header = &state->members,
		.first = key_of_node(target->partition->index, target->onode->entry.key.identifier,
				     0),
		.bound = target->bound,
	};
}

int collection_stat(const struct onode *onode, struct engine_stat *stat)
{
	struct collection_state state;
	int result = state_read(onode, &state);

	stat->members = state.members.count;
	stat->filled_sequence = state.filled_sequence;
	return result;
}

int collection_has_members(const struct onode *onode)
{
	struct collection_state state;
	int result = state_read(onode, &state);

	return result ? result : state.members.count != 0;
}

/* What an opened collection stands for. -EINVAL: it is something else. */
static int use_collection(struct engine_object *object, enum target_use use, struct target **target,
			  struct collection_state *state)
{
	int result = object_use(object, use, target);

	if (result)
		return result;
	return (*target)->onode->head.type == ENGINE_COLLECTION
		       ? state_read((*target)->onode, state)
		       : -EINVAL;
}

/* The same by its address; ended by target_close. */
static int open_collection(struct engine_txn *txn, struct engine_address address,
			   struct target *target, struct collection_state *state)
{
	int result = target_open(txn, address, TARGET_CHANGE, target);

	if (result)
		return result;
	result = target->onode->head.type == ENGINE_COLLECTION ? state_read(target->onode, state)
							       : -EINVAL;
	if (result)
		target_close(target);
	return result;
}

static void note_change(struct target *target)
{
	if (!target->txn->bypass)
		target->onode->head.times_ms[ENGINE_TIME_DATA_MODIFIED] = target->txn->time_ms;
}

/* ---- members ---- */

/* Adds an ID to the opened collection. */
static int insert(struct target *target, struct collection_state *state, uint64_t object)
{
	struct idset members = members_of(target, state);
	int result = idset_contains(&members, object);

	if (result)
		return result < 0 ? result : -EEXIST;
	if (state->members.generation < target->txn->members_generation)
		state->members.generation = target->txn->members_generation;
	result = target_change(target);
	/* Makes the place for the state before anything depends on it. */
	if (!result)
		result = state_write(target->onode, state);
	if (!result)
		result = idset_insert(&members, &target->txn->writer, object);
	if (result)
		return result;
	state->filled_sequence = target->txn->sequence;
	note_change(target);
	return state_write(target->onode, state);
}

/* Takes an ID out of the opened collection. -ENOENT. */
static int take_out(struct target *target, struct collection_state *state, uint64_t object)
{
	struct idset members = members_of(target, state);
	int result = idset_contains(&members, object);

	if (result <= 0)
		return result < 0 ? result : -ENOENT;
	result = target_change(target);
	if (!result)
		result = idset_remove(&members, &target->txn->writer, object);
	if (result)
		return result;
	note_change(target);
	return state_write(target->onode, state);
}

int engine_object_member_insert(struct engine_object *collection, uint64_t object)
{
	struct collection_state state;
	struct target *target;
	int result = object < ENGINE_FIRST_ID
			     ? -EINVAL
			     : use_collection(collection, TARGET_CHANGE, &target, &state);

	return result ? result : insert(target, &state, object);
}

int engine_object_member_remove(struct engine_object *collection, uint64_t object)
{
	struct collection_state state;
	struct target *target;
	int result = use_collection(collection, TARGET_CHANGE, &target, &state);

	return result ? result : take_out(target, &state, object);
}

/* Forgets the set's nodes. Those of the store are not reached any more once the header is gone. */
static void forget_nodes(const struct target *target, const struct collection_state *state)
{
	struct engine_txn *txn = target->txn;

	cache_drop_identifier(&txn->engine->nodes, target->partition->index,
			      target->onode->entry.key.identifier);
	if (txn->members_generation < state->members.generation)
		txn->members_generation = state->members.generation;
}

int engine_object_members_clear(struct engine_object *collection)
{
	struct collection_state state;
	struct target *target;
	int result = use_collection(collection, TARGET_CHANGE, &target, &state);

	if (result || !state.members.count)
		return result;
	result = target_change(target);
	if (result)
		return result;
	forget_nodes(target, &state);
	state.members = (struct idset_header){ .generation = state.members.generation };
	note_change(target);
	return state_write(target->onode, &state);
}

int collection_drop(struct target *target)
{
	struct collection_state state;
	int result = state_read(target->onode, &state);

	if (!result)
		forget_nodes(target, &state);
	return result;
}

int collection_set(struct engine_object *object, struct idset *set, struct idset_header *header)
{
	struct collection_state state;
	struct target *target;
	int result = use_collection(object, TARGET_READ, &target, &state);

	if (result)
		return result;
	*set = members_of(target, &state);
	*header = state.members;
	set->header = header;
	return 0;
}

/* ---- memberships ---- */

bool membership_is_at(const struct onode *onode, uint32_t page, uint32_t number)
{
	return onode->head.type == ENGINE_USER_OBJECT && page == ENGINE_MEMBERSHIPS_PAGE &&
	       number >= 1 && number <= ENGINE_MEMBERSHIPS_LAST_NUMBER;
}

/*
 * A collection as it is, or was, beside an object: current ones are pinned in the cache, old ones
 * are owned.
 */
struct neighbour {
	struct target target;
	struct collection_state state;
};

static void neighbour_close(struct neighbour *neighbour)
{
	if (neighbour->target.old)
		onode_free(neighbour->target.onode);
	else
		target_close(&neighbour->target);
}

/*
 * Opens collection `id` of the partition and at the time of `object`. -ENOENT, also when it is
 * something else.
 */
static int neighbour_open(const struct target *object, uint64_t id, struct neighbour *neighbour)
{
	struct engine_address address = { .partition = object->partition->id, .object = id };
	struct engine_txn *txn = object->txn;
	int result;

	*neighbour = (struct neighbour){ .target = *object };
	if (id < ENGINE_FIRST_ID)
		return -ENOENT;
	if (object->old)
		result = onode_load(txn->engine->store, object->partition->index, id, object->bound,
				    partition_objects_since(object->partition), txn->sequence,
				    &neighbour->target.onode);
	else
		result = target_open(txn, address, TARGET_READ, &neighbour->target);
	if (result)
		return result;
	result = neighbour->target.onode->head.type == ENGINE_COLLECTION
			 ? state_read(neighbour->target.onode, &neighbour->state)
			 : -ENOENT;
	if (result)
		neighbour_close(neighbour);
	return result;
}

int membership_is_live(const struct target *target, const uint8_t *value, uint32_t length)
{
	struct neighbour neighbour;
	struct idset members;
	int result;

	if (length != MEMBERSHIP_BYTES)
		return 0;
	result = neighbour_open(target, get_be64(value), &neighbour);
	if (result)
		return result == -ENOENT ? 0 : result;
	members = members_of(&neighbour.target, &neighbour.state);
	if (neighbour.target.onode->head.created_sequence == get_le48(value + 8))
		result = idset_contains(&members, target->onode->entry.key.identifier);
	neighbour_close(&neighbour);
	return result;
}

/* The first stored membership at or behind *number; false: there is none. */
static bool next_stored(const struct onode *onode, uint32_t *number, const uint8_t **value,
			uint32_t *length)
{
	const struct attribute_set *set = &onode->attributes;
	uint32_t index = attribute_set_position(set, ENGINE_MEMBERSHIPS_PAGE, *number), page;

	if (index >= set->count)
		return false;
	attribute_set_at(set, index, &page, number, value, length);
	return membership_is_at(onode, page, *number);
}

/* Counts stored and living memberships. */
static int count_memberships(const struct target *target, uint32_t *stored, uint32_t *live)
{
	const uint8_t *value;
	uint32_t length;

	*stored = *live = 0;
	for (uint32_t number = 1; next_stored(target->onode, &number, &value, &length); number++) {
		int result = membership_is_live(target, value, length);

		if (result < 0)
			return result;
		(*stored)++;
		*live += (uint32_t)result;
	}
	return 0;
}

int engine_object_membership_count(struct engine_object *object, uint32_t *count)
{
	uint32_t stored;
	struct target *target;
	int result = object_use_data(object, TARGET_READ, &target);

	return result ? result : count_memberships(target, &stored, count);
}

/* Forgets memberships whose collection is gone. */
static int purge(struct target *target)
{
	const uint8_t *value;
	uint32_t length;

	for (uint32_t number = 1; next_stored(target->onode, &number, &value, &length); number++) {
		int result = membership_is_live(target, value, length);

		if (result == 0)
			result = attribute_set_change(&target->onode->attributes,
						      ENGINE_MEMBERSHIPS_PAGE, number, NULL, 0);
		else if (result == 1)
			result = 0;
		if (result)
			return result;
	}
	return 0;
}

/* Ends one stored membership on the collection's side. */
static int end_membership(struct target *target, const uint8_t *value, uint32_t length)
{
	struct engine_address address = { .partition = target->partition->id };
	struct collection_state state;
	struct target collection;
	int result = membership_is_live(target, value, length);

	if (result <= 0)
		return result;
	address.object = get_be64(value);
	result = open_collection(target->txn, address, &collection, &state);
	if (result)
		return result;
	result = take_out(&collection, &state, target->onode->entry.key.identifier);
	target_close(&collection);
	return result;
}

int memberships_end(struct target *target)
{
	const uint8_t *value;
	uint32_t length;
	int result = 0;

	for (uint32_t number = 1; !result && next_stored(target->onode, &number, &value, &length);
	     number++)
		result = end_membership(target, value, length);
	return result;
}

/* Forgets earlier memberships in the collection, which would count again with a new one. */
static int forget_memberships(struct target *object, uint64_t collection)
{
	const uint8_t *value;
	uint32_t length;
	int result = 0;

	for (uint32_t number = 1; !result && next_stored(object->onode, &number, &value, &length);
	     number++)
		if (length >= MEMBERSHIP_SHOWN_BYTES && get_be64(value) == collection)
			result = attribute_set_change(&object->onode->attributes,
						      ENGINE_MEMBERSHIPS_PAGE, number, NULL, 0);
	return result;
}

/* Makes the opened object a member of the opened collection and notes it under `number`. */
static int join(struct target *object, uint32_t number, struct target *collection,
		struct collection_state *state)
{
	uint8_t value[MEMBERSHIP_BYTES];
	int result = forget_memberships(object, collection->onode->entry.key.identifier);

	if (result)
		return result;
	put_be64(value, collection->onode->entry.key.identifier);
	put_le48(value + MEMBERSHIP_SHOWN_BYTES, collection->onode->head.created_sequence);
	result = attribute_set_change(&object->onode->attributes, ENGINE_MEMBERSHIPS_PAGE, number,
				      value, sizeof(value));
	return result ? result : insert(collection, state, object->onode->entry.key.identifier);
}

/* The object's memberships are about to change. */
static int touch_object(struct target *object)
{
	int result = target_change(object);

	if (!result && !object->txn->bypass)
		object->onode->head.times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED] =
			object->txn->time_ms;
	return result;
}

/*
 * Whether the object can have one more membership, or may change the one that it has as `number`.
 */
static int check_space(struct target *object, bool replaces)
{
	uint32_t stored, live;
	int result = replaces ? 0 : count_memberships(object, &stored, &live);

	if (result || replaces || stored < ENGINE_MEMBERSHIPS_MAX)
		return result;
	if (live >= ENGINE_MEMBERSHIPS_MAX)
		return -EFBIG;
	result = touch_object(object);
	return result ? result : purge(object);
}

/* Makes the object's membership `number` one of the opened collection. */
static int change_to(struct target *object, uint32_t number, const uint8_t *before, uint32_t length,
		     struct target *collection, struct collection_state *state)
{
	uint64_t id = object->onode->entry.key.identifier;
	struct idset members = members_of(collection, state);
	int live = before ? membership_is_live(object, before, length) : 0, result;

	if (live < 0)
		return live;
	if (live && get_be64(before) == collection->onode->entry.key.identifier)
		return 0;
	result = idset_contains(&members, id);
	if (result)
		return result < 0 ? result : -EEXIST;
	result = check_space(object, before != NULL);
	if (!result)
		result = touch_object(object);
	if (!result && live)
		result = end_membership(object, before, length);
	return result ? result : join(object, number, collection, state);
}

/* Membership `number` becomes none. */
static int leave(struct target *object, uint32_t number, const uint8_t *before, uint32_t length)
{
	int result = touch_object(object);

	if (!result)
		result = end_membership(object, before, length);
	if (!result)
		result = attribute_set_change(&object->onode->attributes, ENGINE_MEMBERSHIPS_PAGE,
					      number, NULL, 0);
	return result;
}

int membership_change(struct target *object, uint32_t number, uint64_t collection)
{
	struct engine_address address = { .partition = object->partition->id,
					  .object = collection };
	const struct attribute_set *set = &object->onode->attributes;
	const uint8_t *found = NULL;
	uint8_t copy[MEMBERSHIP_BYTES];
	uint32_t index, page, length = 0;
	struct collection_state state;
	struct target target;
	int result;

	if (attribute_set_find(set, ENGINE_MEMBERSHIPS_PAGE, number, &index)) {
		/* Copied, since the set moves when it is changed. */
		attribute_set_at(set, index, &page, &number, &found, &length);
		memcpy(copy, found, min_u64(length, sizeof(copy)));
		found = copy;
	}
	if (collection == 0)
		return found ? leave(object, number, found, length) : 0;
	if (collection < ENGINE_FIRST_ID)
		return -EINVAL;
	result = open_collection(object->txn, address, &target, &state);
	if (result)
		return result == -ENOENT ? -EINVAL : result;
	result = change_to(object, number, found, length, &target, &state);
	target_close(&target);
	return result;
}

int engine_object_membership_set(struct engine_object *object, uint32_t number, uint64_t collection)
{
	struct target *target;
	int result;

	if (number < 1 || number > ENGINE_MEMBERSHIPS_LAST_NUMBER)
		return -EINVAL;
	result = object_use_data(object, TARGET_CHANGE, &target);
	return result ? result : membership_change(target, number, collection);
}
