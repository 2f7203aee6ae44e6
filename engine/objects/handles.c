/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Opened objects: what a transaction has found by its address, kept for the calls that follow. */
#include "engine/objects/handles.h"

#include <assert.h>

/*
 * A transaction has a fixed number of places. What was found stays in its place, pinned in the
 * caches, when the object is closed: opened again it need not be found again. The place goes to
 * another object when there is no other.
 */

static bool is_same_address(const struct engine_address *a, const struct engine_address *b)
{
	return a->partition == b->partition && a->object == b->object && a->version == b->version &&
	       a->ago == b->ago;
}

static bool is_old(const struct engine_object *object)
{
	return object->address.version || object->address.ago;
}

/* Gives back what was found. */
static void forget(struct engine_object *object)
{
	if (object->target.onode && !is_old(object))
		target_close(&object->target);
	object->target.onode = NULL;
}

/* The place of an address, or one that nobody uses: the one that was closed first. */
static struct engine_object *find_place(struct engine_txn *txn,
					const struct engine_address *address)
{
	struct engine_object *free_place = NULL;

	for (int i = 0; i < ENGINE_OBJECTS_MAX; i++) {
		struct engine_object *place = &txn->objects[i];

		if (place->txn && is_same_address(&place->address, address))
			return place;
		if (!place->uses && (!free_place || place->closed < free_place->closed))
			free_place = place;
	}
	assert(free_place); /* the caller opens more than it may */
	forget(free_place);
	*free_place = (struct engine_object){ .txn = txn, .address = *address };
	return free_place;
}

/* Was it removed, or taken back, since it was found? */
static bool is_stale(const struct target *target)
{
	return target->onode->entry.dropped || target->partition->entry.dropped;
}

/* Finds it, if that was not done yet. */
static int resolve(struct engine_object *object)
{
	int result;

	/* The transaction has one view of the past, which other objects use as well. */
	if (!is_old(object) && object->target.onode) {
		if (!is_stale(&object->target))
			return 0;
		forget(object);
	}
	result = target_open(object->txn, object->address, TARGET_READ, &object->target);
	if (result)
		object->target.onode = NULL;
	return result;
}

int engine_open_object(struct engine_txn *txn, struct engine_address address,
		       struct engine_object **opened)
{
	struct engine_object *object = find_place(txn, &address);
	int result = resolve(object);

	*opened = NULL;
	if (result)
		return result;
	object->uses++;
	*opened = object;
	return 0;
}

void engine_close_object(struct engine_object *object)
{
	if (!object)
		return;
	assert(object->uses > 0);
	object->uses--;
	object->closed = ++object->txn->closings;
}

struct engine_address engine_object_address(const struct engine_object *object)
{
	return object->address;
}

int object_use(struct engine_object *object, enum target_use use, struct target **target)
{
	int result;

	if (use == TARGET_CHANGE && (object->txn->mode == ENGINE_READ || is_old(object)))
		return -EROFS;
	result = resolve(object);
	if (!result && use == TARGET_CHANGE)
		result = target_check_writable(&object->target);
	*target = &object->target;
	return result;
}

int object_use_data(struct engine_object *object, enum target_use use, struct target **target)
{
	int result = object_use(object, use, target);

	return result || (*target)->onode->head.type == ENGINE_USER_OBJECT ? result : -EINVAL;
}

void objects_release(struct engine_txn *txn)
{
	for (int i = 0; i < ENGINE_OBJECTS_MAX; i++)
		forget(&txn->objects[i]);
}
