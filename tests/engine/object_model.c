/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The model: what is shared, transactions, partitions, history. */
#include "tests/engine/object_model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* ---- sharing ---- */

static void release(struct model_object *object)
{
	while (object && --object->users == 0) {
		struct model_object *older = object->older;

		free(object->data);
		free(object);
		object = older;
	}
}

static struct model_object *share(struct model_object *object)
{
	if (object)
		object->users++;
	return object;
}

static struct model_object *copy_of(const struct object_model *model,
				    const struct model_object *object)
{
	struct model_object *copy = malloc(sizeof(*copy));

	assert(copy);
	*copy = *object;
	copy->users = 1;
	share(copy->older);
	if (object->data) {
		copy->data = malloc((size_t)MODEL_PIECES * model->page_bytes);
		assert(copy->data);
		memcpy(copy->data, object->data, (size_t)MODEL_PIECES * model->page_bytes);
	}
	return copy;
}

static void graves_release(struct model_graves *graves)
{
	if (!graves || --graves->users)
		return;
	for (uint32_t index = 0; index < MODEL_GRAVES; index++)
		release(graves->of[index]);
	free(graves);
}

static struct model_graves *graves_share(struct model_graves *graves)
{
	if (graves)
		graves->users++;
	return graves;
}

/* Those of a state that are to change: nobody else has them. */
static struct model_graves *own_graves(struct model_state *state)
{
	struct model_graves *own;

	if (state->graves && state->graves->users == 1)
		return state->graves;
	own = calloc(1, sizeof(*own));
	assert(own);
	own->users = 1;
	for (uint32_t index = 0; state->graves && index < MODEL_GRAVES; index++)
		own->of[index] = share(state->graves->of[index]);
	graves_release(state->graves);
	state->graves = own;
	return own;
}

static void state_clear(struct model_state *state)
{
	release(state->self);
	for (uint32_t index = 0; index < state->count; index++)
		release(state->objects[index]);
	graves_release(state->graves);
	*state = (struct model_state){ 0 };
}

/* One more state has these objects. */
static void state_keep(struct model_state *state)
{
	share(state->self);
	for (uint32_t index = 0; index < state->count; index++)
		share(state->objects[index]);
	graves_share(state->graves);
}

/* A place that has `old` is to have `wanted`. */
static void exchange(struct model_object *old, struct model_object *wanted)
{
	if (old == wanted)
		return;
	share(wanted);
	release(old);
}

/* Most of it is mostly the same already. */
static void state_share(struct model_state *to, const struct model_state *from)
{
	exchange(to->self, from->self);
	for (uint32_t index = 0; index < to->count || index < from->count; index++)
		exchange(index < to->count ? to->objects[index] : NULL,
			 index < from->count ? from->objects[index] : NULL);
	graves_share(from->graves);
	graves_release(to->graves);
	*to = *from;
}

static void left_release(struct model_left *left)
{
	if (!left || --left->users)
		return;
	for (uint32_t version = 0; version < left->version_count; version++)
		state_clear(&left->versions[version]);
	free(left);
}

void object_model_init(struct object_model *model, uint32_t page_bytes)
{
	*model = (struct object_model){ .page_bytes = page_bytes };
	for (uint64_t index = 0; index < MODEL_PARTITIONS; index++)
		model->partitions[index].id = ENGINE_FIRST_ID + index;
}

void object_model_clear(struct object_model *model)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &model->partitions[index];

		state_clear(&partition->now);
		state_clear(&partition->before);
		for (uint32_t version = 0; version < MODEL_VERSIONS; version++)
			state_clear(&partition->versions[version]);
	}
	for (uint32_t slot = 0; slot < MODEL_MOMENTS; slot++)
		for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
			state_clear(&model->moments[slot].states[index]);
	for (uint32_t at = 0; at < MODEL_LEFT; at++)
		left_release(model->left[at]);
	object_model_init(model, model->page_bytes);
}

void object_model_copy(struct object_model *to, const struct object_model *from)
{
	*to = *from;
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &to->partitions[index];

		state_keep(&partition->now);
		state_keep(&partition->before);
		for (uint32_t version = 0; version < MODEL_VERSIONS; version++)
			state_keep(&partition->versions[version]);
	}
	for (uint32_t slot = 0; slot < MODEL_MOMENTS; slot++)
		for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
			state_keep(&to->moments[slot].states[index]);
	for (uint32_t at = 0; at < MODEL_LEFT; at++)
		if (to->left[at])
			to->left[at]->users++;
}

/* ---- partitions that are gone ---- */

/* Whether a moment that is remembered shows it. */
static bool may_come_back(const struct object_model *model, uint64_t created_sequence)
{
	for (uint32_t slot = 0; slot < MODEL_MOMENTS; slot++)
		for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
			const struct model_object *self = model->moments[slot].states[index].self;

			if (model->moments[slot].sequence && self &&
			    self->created_sequence == created_sequence)
				return true;
		}
	return false;
}

/* Where to remember what one that was created at a number had: the last it had is what counts. */
static uint32_t place_of_left(const struct object_model *model, uint64_t id,
			      uint64_t created_sequence)
{
	uint32_t free_at = MODEL_LEFT;

	for (uint32_t at = 0; at < MODEL_LEFT; at++) {
		const struct model_left *left = model->left[at];

		if (left && left->id == id && left->created_sequence == created_sequence)
			return at;
		if (free_at == MODEL_LEFT &&
		    (!left || !may_come_back(model, left->created_sequence)))
			free_at = at;
	}
	assert(free_at < MODEL_LEFT);
	return free_at;
}

/* Remembers what the partition that was `state` had. */
static void leave(struct object_model *model, struct model_partition *partition,
		  const struct model_state *state, uint32_t version_count)
{
	struct model_left *left = calloc(1, sizeof(*left));
	uint32_t at;

	assert(left);
	left->users = 1;
	left->id = partition->id;
	left->created_sequence = state->self->created_sequence;
	left->particular = state->particular;
	left->policy = state->policy;
	left->version = partition->version_left;
	left->version_count = version_count;
	for (uint32_t version = 0; version < version_count; version++) {
		left->numbers[version] = partition->numbers[version];
		state_share(&left->versions[version], &partition->versions[version]);
	}
	at = place_of_left(model, left->id, left->created_sequence);
	left_release(model->left[at]);
	model->left[at] = left;
}

/* The partition is there again as the one that was created at a number. */
static void come_back(struct object_model *model, struct model_partition *partition,
		      uint64_t created_sequence)
{
	partition->version_count = 0;
	for (uint32_t at = 0; at < MODEL_LEFT; at++) {
		const struct model_left *left = model->left[at];

		if (!left || left->id != partition->id ||
		    left->created_sequence != created_sequence)
			continue;
		partition->now.particular = left->particular;
		partition->now.policy = left->policy;
		partition->now.version = left->version;
		partition->version_count = left->version_count;
		partition->came_back = true;
		for (uint32_t version = 0; version < left->version_count; version++) {
			partition->numbers[version] = left->numbers[version];
			state_share(&partition->versions[version], &left->versions[version]);
		}
	}
}

/* ---- transactions ---- */

void object_model_begin(struct object_model *model, uint64_t sequence, uint64_t time_ms)
{
	model->sequence = sequence;
	model->time_ms = time_ms;
	model->bypass = model->went_back = false;
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		state_share(&model->partitions[index].before, &model->partitions[index].now);
}

static uint32_t position_of(const struct model_state *state, uint64_t id)
{
	uint32_t low = 0, high = state->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (state->objects[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* For changing it. NULL: that ID is not remembered. */
static struct model_object **grave_of(struct model_state *state, uint64_t id)
{
	return id - ENGINE_FIRST_ID < MODEL_GRAVES ? &own_graves(state)->of[id - ENGINE_FIRST_ID]
						   : NULL;
}

/* Notes that `older` was before `object`, which nobody shares. */
static void link_older(struct model_object *object, struct model_object *older)
{
	release(object->older);
	object->older = share(older);
	for (int depth = 1; object; object = object->older) {
		if (depth++ == MODEL_OLDER) {
			release(object->older);
			object->older = NULL;
		}
	}
}

static struct model_object *new_grave(const struct object_model *model, uint64_t id)
{
	struct model_object *grave = calloc(1, sizeof(*grave));

	assert(grave);
	grave->users = 1;
	grave->id = id;
	grave->removed = true;
	grave->modified_sequence = model->sequence;
	return grave;
}

static void bury(struct object_model *model, struct model_state *state, struct model_object *object)
{
	struct model_object **place = grave_of(state, object->id);

	if (!place)
		return;
	release(*place);
	*place = new_grave(model, object->id);
	link_older(*place, object);
}

/* Links what the transaction made of an object to what was before. */
static void link_made(struct object_model *model, struct model_partition *partition,
		      struct model_object *object, struct model_object *before)
{
	struct model_object **place;

	if (object == before || object->modified_sequence != model->sequence)
		return;
	if (before) {
		link_older(object, before);
		return;
	}
	place = grave_of(&partition->now, object->id);
	if (place) {
		if (!*place)
			(*place = new_grave(model, object->id))->modified_sequence = 0;
		link_older(object, (*place)->modified_sequence == model->sequence ? (*place)->older
										  : *place);
		release(*place);
		*place = NULL;
	}
}

/* The object with an ID, looked for from *at on: IDs come in ascending order. NULL: none. */
static struct model_object *find_from(const struct model_state *state, uint32_t *at, uint64_t id)
{
	while (*at < state->count && state->objects[*at]->id < id)
		++*at;
	return *at < state->count && state->objects[*at]->id == id ? state->objects[*at] : NULL;
}

/* Remembers how the objects that a transaction changed were before. */
static void link_changes(struct object_model *model, struct model_partition *partition)
{
	struct model_state *now = &partition->now, *before = &partition->before;
	uint32_t at = 0;

	if (!now->self)
		return;
	if (!object_model_is_same(now, before)) {
		/* What is in it did not come about here. */
		return;
	}
	for (uint32_t index = 0; index < now->count; index++)
		link_made(model, partition, now->objects[index],
			  find_from(before, &at, now->objects[index]->id));
	at = 0;
	for (uint32_t index = 0; index < before->count; index++)
		if (!find_from(now, &at, before->objects[index]->id))
			bury(model, now, before->objects[index]);
}

/* Drops the versions of a partition of old if the committed one is another. */
void object_model_commit(struct object_model *model)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &model->partitions[index];

		if (!model->went_back)
			link_changes(model, partition);
		if (partition->version_left && partition->before.self)
			leave(model, partition, &partition->before, partition->version_count_left);
		partition->version_left = 0;
		if (partition->version_count)
			continue;
		for (uint32_t version = 0; version < MODEL_VERSIONS; version++)
			state_clear(&partition->versions[version]);
	}
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		model->partitions[index].version_count_before =
			model->partitions[index].version_count;
}

void object_model_abort(struct object_model *model)
{
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_partition *partition = &model->partitions[index];

		state_share(&partition->now, &partition->before);
		partition->version_count = partition->version_count_before;
		partition->version_left = 0;
	}
}

/* ---- partitions and objects ---- */

struct model_object *object_model_find(const struct model_state *state, uint64_t id)
{
	uint32_t index = position_of(state, id);

	if (id == 0)
		return state->self;
	return index < state->count && state->objects[index]->id == id ? state->objects[index]
								       : NULL;
}

uint64_t object_model_used_bytes(const struct object_model *model,
				 const struct model_object *object)
{
	uint64_t pieces = 0;

	for (uint32_t piece = 0; piece < MODEL_PIECES; piece++)
		pieces += object->live[piece];
	return pieces * model->page_bytes;
}

uint64_t object_model_highest(const struct model_state *state)
{
	return state->count ? state->objects[state->count - 1]->id : ENGINE_FIRST_ID - 1;
}

static struct model_object *new_object(const struct object_model *model, enum engine_type type,
				       uint64_t id)
{
	struct model_object *object = calloc(1, sizeof(*object));

	assert(object);
	object->users = 1;
	object->type = type;
	object->id = id;
	object->modified_sequence = object->created_sequence = model->sequence;
	for (int which = 0; which < ENGINE_TIMES; which++)
		object->times_ms[which] = object->stable_ms[which] = model->time_ms;
	return object;
}

void object_model_partition_create(struct object_model *model, struct model_partition *partition)
{
	state_clear(&partition->now);
	partition->now.version = 1;
	partition->now.self = new_object(model, ENGINE_PARTITION, 0);
	partition->version_count = 0;
	partition->came_back = false;
}

void object_model_partition_remove(struct object_model *model, struct model_partition *partition)
{
	(void)model;
	/* Not one that came and went in the transaction. */
	if (object_model_is_same(&partition->now, &partition->before)) {
		partition->version_count_left = partition->version_count;
		partition->version_left = partition->now.version;
	}
	state_clear(&partition->now);
	partition->version_count = 0;
}

void object_model_snapshot(struct model_partition *partition, uint32_t number)
{
	struct model_state *versions = partition->versions;

	/*
	 * The slots behind version_count are free: snapshots come first in a transaction that is
	 * committed.
	 */
	if (partition->version_count == MODEL_VERSIONS) {
		state_clear(&versions[0]);
		memmove(&versions[0], &versions[1], (MODEL_VERSIONS - 1) * sizeof(versions[0]));
		memmove(&partition->numbers[0], &partition->numbers[1],
			(MODEL_VERSIONS - 1) * sizeof(partition->numbers[0]));
		versions[MODEL_VERSIONS - 1] = (struct model_state){ 0 };
		partition->version_count--;
		partition->version_count_before--;
	}
	partition->numbers[partition->version_count] = number;
	state_share(&versions[partition->version_count++], &partition->before);
	partition->now.version = number == ENGINE_PARTITION_VERSION_LAST ? 1 : number + 1;
}

void object_model_create(struct object_model *model, struct model_state *state,
			 enum engine_type type, uint64_t id)
{
	uint32_t index = position_of(state, id);

	assert(state->count < MODEL_OBJECTS);
	memmove(&state->objects[index + 1], &state->objects[index],
		(state->count - index) * sizeof(state->objects[0]));
	state->objects[index] = new_object(model, type, id);
	state->count++;
}

/* One that came and went in a transaction leaves nothing but the note that it went. */
static void leave_ghost(struct object_model *model, struct model_state *state, uint64_t id)
{
	struct model_object **place = grave_of(state, id), *ghost;

	if (!place)
		return;
	ghost = new_grave(model, id);
	if (!*place)
		(*place = new_grave(model, id))->modified_sequence = 0;
	link_older(ghost,
		   (*place)->modified_sequence == model->sequence ? (*place)->older : *place);
	release(*place);
	*place = ghost;
}

void object_model_remove(struct object_model *model, struct model_state *state, uint64_t id)
{
	uint32_t index = position_of(state, id);

	if (state->objects[index]->created_sequence == model->sequence)
		leave_ghost(model, state, id);
	release(state->objects[index]);
	state->count--;
	memmove(&state->objects[index], &state->objects[index + 1],
		(state->count - index) * sizeof(state->objects[0]));
}

struct model_object *object_model_change(struct object_model *model, struct model_state *state,
					 uint64_t id)
{
	struct model_object **object = id ? &state->objects[position_of(state, id)] : &state->self;

	if ((*object)->users > 1) {
		struct model_object *copy = copy_of(model, *object);

		release(*object);
		*object = copy;
	}
	return *object;
}

/* ---- history ---- */

bool object_model_is_same(const struct model_state *a, const struct model_state *b)
{
	return a->self && b->self && a->self->created_sequence == b->self->created_sequence;
}

struct model_moment *object_model_note_moment(struct object_model *model, uint32_t slot,
					      uint64_t sequence, uint64_t ms, uint32_t version)
{
	struct model_moment *moment = &model->moments[slot];

	moment->sequence = sequence;
	moment->ms = ms;
	moment->version = version;
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		state_share(&moment->states[index], &model->partitions[index].now);
	return moment;
}

/* What is no part of history. */
static void take_policy(struct model_state *to, const struct model_state *from)
{
	to->particular = from->particular;
	to->policy = from->policy;
	to->kept_from = from->kept_from;
}

void object_model_go_back(struct object_model *model, struct model_partition *partition,
			  const struct model_state *then)
{
	uint32_t version = partition->now.version;
	struct model_state as_now = { 0 };

	model->went_back = true;
	if (object_model_is_same(&partition->now, then)) {
		as_now = partition->now;
		state_share(&partition->now, then);
		partition->now.version = version;
		take_policy(&partition->now, &as_now);
		return;
	}
	partition->version_left = version;
	if (partition->now.self)
		leave(model, partition, &partition->now, partition->version_count);
	partition->version_left = 0;
	state_share(&partition->now, then);
	take_policy(&partition->now, &as_now);
	partition->version_count = 0;
	partition->came_back = false;
	if (then->self)
		come_back(model, partition, then->self->created_sequence);
}

void object_model_restore(struct object_model *model, struct model_partition *partition,
			  uint64_t id, struct model_object *then)
{
	struct model_object *object = object_model_find(&partition->now, id);

	if (then->removed) {
		object_model_remove(model, &partition->now, id);
		return;
	}
	if (object && object->modified_sequence == then->modified_sequence &&
	    !partition->now.unlogged)
		return;
	if (!object)
		object_model_create(model, &partition->now, ENGINE_USER_OBJECT, id);
	object_model_copy_content(model, object_model_change(model, &partition->now, id), then);
}

void object_model_clone(struct object_model *model, struct model_partition *partition,
			const struct model_state *source, bool anew)
{
	struct model_object *self = share(partition->now.self);
	uint32_t version = partition->now.version;
	struct model_state as_now = { 0 };

	if (!anew)
		as_now = partition->now;
	if (anew) {
		self = new_object(model, ENGINE_PARTITION, 0);
		self->attribute_count = source->self->attribute_count;
		memcpy(self->attributes, source->self->attributes, sizeof(self->attributes));
		version = 1;
		partition->version_count = 0;
	}
	model->went_back = true;
	state_share(&partition->now, source);
	release(partition->now.self);
	partition->now.self = self;
	partition->now.version = version;
	take_policy(&partition->now, &as_now);
	/* They go their own ways, and have no past here. */
	for (uint32_t index = 0; index < partition->now.count; index++) {
		struct model_object *shared = partition->now.objects[index];

		partition->now.objects[index] = copy_of(model, shared);
		release(partition->now.objects[index]->older);
		partition->now.objects[index]->older = NULL;
		release(shared);
	}
	graves_release(partition->now.graves);
	partition->now.graves = NULL;
}

void object_model_drop_version(struct model_partition *partition, uint32_t index)
{
	uint32_t behind = --partition->version_count - index;

	state_clear(&partition->versions[index]);
	memmove(&partition->versions[index], &partition->versions[index + 1],
		behind * sizeof(partition->versions[0]));
	memmove(&partition->numbers[index], &partition->numbers[index + 1],
		behind * sizeof(partition->numbers[0]));
	partition->versions[partition->version_count] = (struct model_state){ 0 };
}

struct model_object *object_model_last(const struct model_state *state, uint64_t id)
{
	struct model_object *object = object_model_find(state, id);

	if (object || id - ENGINE_FIRST_ID >= MODEL_GRAVES || !state->graves)
		return object;
	return state->graves->of[id - ENGINE_FIRST_ID];
}
