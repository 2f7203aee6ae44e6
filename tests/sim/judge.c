/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the model says to a command, and how it follows. */
#include "tests/sim/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"

const struct model_state *sim_state_of(const struct sim_command *command)
{
	const struct model_partition *partition = command->partition;

	if (command->version == 0)
		return &partition->now;
	for (uint32_t index = 0; index < partition->version_count; index++)
		if (partition->numbers[index] == command->version)
			return &partition->versions[index];
	return NULL; /* it has been dropped meanwhile */
}

static struct model_object *object_of(const struct sim_command *command)
{
	const struct model_state *state = sim_state_of(command);

	return state ? object_model_find(state, command->id) : NULL;
}

static bool is_user_object(const struct model_object *object)
{
	return object && object->type == ENGINE_USER_OBJECT;
}

static bool creates(enum sim_kind kind)
{
	return kind == SIM_CREATE || kind == SIM_CREATE_AND_WRITE || kind == SIM_CREATE_COLLECTION;
}

/* Does the model have room for what it would make? */
bool sim_judge_fits(struct sim_world *world, const struct sim_command *command)
{
	const struct model_state *state = sim_state_of(command);
	const struct model_object *object = object_of(command);

	/* The model remembers the last versions only. */
	if (!state)
		return false;
	/* How the moment of a version came about could not be told when the power fails in it. */
	if (command->kind == SIM_SNAPSHOT || command->kind == SIM_ROLLBACK)
		return !model_power_is_watched(&world->run) &&
		       (command->kind == SIM_SNAPSHOT || command->version != 0);
	if (creates(command->kind))
		return state->count + command->count <= MODEL_OBJECTS;
	if (command->kind == SIM_APPEND && object)
		return object->length + command->length <= all_bytes(&world->run);
	return true;
}

bool sim_judge_does_nothing(const struct sim_command *command)
{
	const struct model_object *object = object_of(command);

	if (command->kind == SIM_PUNCH && object && command->offset == object->length)
		return true;
	return command->length == 0 && !command->has_attribute &&
	       (command->kind == SIM_WRITE || command->kind == SIM_APPEND ||
		command->kind == SIM_CLEAR || command->kind == SIM_PUNCH);
}

/* Is there space for one more attribute in the model? Else it is removed. */
struct model_attribute sim_judge_attribute(const struct sim_command *command)
{
	const struct model_object *object = object_of(command);
	struct model_attribute attribute = command->attribute;

	if (object && object->attribute_count == MODEL_ATTRIBUTES)
		attribute.length = 0;
	return attribute;
}

static bool removes_locked(const struct sim_world *world, const struct sim_command *command)
{
	return locks_hold_for(&world->run, &command->partition->now);
}

enum sim_answer sim_judge_expects(struct sim_world *world, const struct sim_command *command)
{
	const struct model_state *now = &command->partition->now;
	const struct model_object *object = object_of(command);
	bool right;

	switch (command->kind) {
	case SIM_CREATE_PARTITION:
		return now->self ? SIM_REFUSED : SIM_GOOD;
	case SIM_REMOVE_PARTITION:
		if (!now->self || (now->count && !command->contents))
			return SIM_REFUSED;
		return removes_locked(world, command) ? SIM_PROTECTED : SIM_GOOD;
	case SIM_LIST:
	case SIM_LIST_COLLECTIONS:
	case SIM_SNAPSHOT:
	case SIM_ROLLBACK:
		return now->self ? SIM_GOOD : SIM_REFUSED;
	case SIM_FLUSH:
	case SIM_TASKS:
		return SIM_GOOD;
	case SIM_CREATE:
	case SIM_CREATE_AND_WRITE:
	case SIM_CREATE_COLLECTION:
		right = now->self && !(command->id && object);
		return right ? SIM_GOOD : SIM_REFUSED;
	case SIM_REMOVE_COLLECTION:
		return object && object->type == ENGINE_COLLECTION ? SIM_GOOD : SIM_REFUSED;
	case SIM_PUNCH:
		right = is_user_object(object) && command->offset <= object->length;
		return right ? SIM_GOOD : SIM_REFUSED;
	case SIM_READ:
		if (!is_user_object(object))
			return SIM_REFUSED;
		if (command->length == 0 || command->offset + command->length <= object->length)
			return SIM_GOOD;
		return command->offset < object->length ? SIM_PAST_END : SIM_REFUSED;
	default:
		return is_user_object(object) ? SIM_GOOD : SIM_REFUSED;
	}
}

/* ---- the model follows ---- */

static void set_attribute(struct sim_world *world, const struct sim_command *command, uint64_t id)
{
	struct object_model *model = &world->run.model;
	struct model_attribute attribute = sim_judge_attribute(command);

	object_model_set_attribute(model, object_model_change(model, &command->partition->now, id),
				   attribute);
}

static void create(struct sim_world *world, const struct sim_command *command, const uint8_t *data)
{
	struct object_model *model = &world->run.model;
	struct model_state *state = &command->partition->now;
	uint64_t first = command->id ? command->id : object_model_highest(state) + 1;
	bool collection = command->kind == SIM_CREATE_COLLECTION;

	for (uint32_t n = 0; n < command->count; n++) {
		object_model_create(model, state,
				    collection ? ENGINE_COLLECTION : ENGINE_USER_OBJECT, first + n);
		if (command->has_attribute)
			set_attribute(world, command, first + n);
	}
	if (command->kind == SIM_CREATE_AND_WRITE)
		object_model_write(model, object_model_change(model, state, first), command->offset,
				   data, command->length);
}

static void change_data(struct sim_world *world, const struct sim_command *command,
			const uint8_t *data)
{
	struct object_model *model = &world->run.model;
	struct model_state *state = &command->partition->now;
	struct model_object *object = object_model_change(model, state, command->id);

	switch (command->kind) {
	case SIM_WRITE:
		object_model_write(model, object, command->offset, data, command->length);
		break;
	case SIM_APPEND:
		object_model_write(model, object, object->length, data, command->length);
		break;
	case SIM_CLEAR:
		object_model_clear_range(model, object, command->offset, command->length);
		break;
	case SIM_PUNCH:
		object_model_punch(model, object, command->offset,
				   min_u64(command->length, object->length - command->offset));
		break;
	default:
		/* LOGICAL LENGTH is an attribute, too. */
		object_model_truncate(model, object, command->offset);
		object->times_ms[ENGINE_TIME_ATTRIBUTES_MODIFIED] = model->time_ms;
		break;
	}
	if (command->has_attribute)
		set_attribute(world, command, command->id);
}

static void go_back(struct sim_world *world, const struct sim_command *command)
{
	struct model_run *run = &world->run;

	object_model_go_back(&run->model, command->partition, sim_state_of(command));
	run->unsure = true;
	run->rollbacks++;
}

void sim_judge_follow(struct sim_world *world, const struct sim_command *command,
		      const uint8_t *data, uint32_t number)
{
	struct object_model *model = &world->run.model;
	struct model_state *state = &command->partition->now;

	switch (command->kind) {
	case SIM_CREATE_PARTITION:
		object_model_partition_create(model, command->partition);
		break;
	case SIM_REMOVE_PARTITION:
		object_model_partition_remove(model, command->partition);
		break;
	case SIM_CREATE:
	case SIM_CREATE_AND_WRITE:
	case SIM_CREATE_COLLECTION:
		create(world, command, data);
		break;
	case SIM_REMOVE:
	case SIM_REMOVE_COLLECTION:
		object_model_remove(model, state, command->id);
		break;
	case SIM_SET:
		set_attribute(world, command, command->id);
		break;
	case SIM_SNAPSHOT:
		for (uint32_t index = 0; index < command->partition->version_count; index++)
			assert_int_not_equal(command->partition->numbers[index], number);
		object_model_snapshot(command->partition, number);
		break;
	case SIM_ROLLBACK:
		go_back(world, command);
		break;
	case SIM_WRITE:
	case SIM_APPEND:
	case SIM_CLEAR:
	case SIM_PUNCH:
	case SIM_TRUNCATE:
		change_data(world, command, data);
		break;
	default:
		break;
	}
}

bool sim_judge_changes(enum sim_kind kind)
{
	switch (kind) {
	case SIM_READ:
	case SIM_GET:
	case SIM_LIST:
	case SIM_LIST_COLLECTIONS:
	case SIM_FLUSH:
	case SIM_TASKS:
		return false;
	default:
		return true;
	}
}

/* ---- data that comes back ---- */

static void check_read(struct sim_world *world, const struct sim_command *command,
		       const uint8_t *in, size_t length)
{
	const struct model_object *object = object_of(command);
	uint64_t got = command->offset < object->length
			       ? min_u64(command->length, object->length - command->offset)
			       : 0;

	assert_int_equal(length, command->length);
	if (object->data && memcmp(in, object->data + command->offset, got) != 0)
		assert_memory_equal(in, object->data + command->offset, got);
	for (uint64_t at = object->data ? got : 0; at < length; at++)
		assert_int_equal(in[at], 0);
	world->run.compared++;
}

static void check_list(struct sim_world *world, const struct sim_command *command,
		       const uint8_t *in, size_t length)
{
	enum engine_type type = command->kind == SIM_LIST ? ENGINE_USER_OBJECT : ENGINE_COLLECTION;
	const struct model_state *state = &command->partition->now;
	struct osd_listed_object listed;
	struct osd_list_head head;
	size_t position = OSD_LIST_HEAD_BYTES;

	assert_int_equal(osd_list_head_decode(command->osd, in, length, &head), 0);
	assert_int_equal(head.continuation_id, 0);
	for (uint32_t index = 0; index < state->count; index++) {
		if (state->objects[index]->type != type)
			continue;
		assert_int_equal(osd_listed_next(&head, in, length, &position, &listed), 1);
		assert_int_equal(listed.id, state->objects[index]->id);
	}
	assert_int_equal(osd_listed_next(&head, in, length, &position, &listed), 0);
	world->run.compared++;
}

static void check_get(struct sim_world *world, const struct sim_command *command, const uint8_t *in,
		      size_t length)
{
	const struct model_object *object = object_of(command);
	const struct model_attribute *wanted = &command->attribute;
	uint32_t index = object_model_attribute(object, wanted->page, wanted->number);
	const struct model_attribute *found = &object->attributes[index];
	struct osd_list_reader reader;
	struct osd_attribute got;

	assert_int_equal(osd_list_read(&reader, command->osd, OSD_LIST_RETRIEVED, in, length), 0);
	assert_int_equal(osd_list_next(&reader, &got), 1);
	if (index == object->attribute_count || found->page != wanted->page ||
	    found->number != wanted->number) {
		assert_int_equal(got.length, 0);
	} else {
		assert_int_equal(got.length, found->length);
		for (uint32_t at = 0; at < got.present; at++)
			assert_int_equal(got.value[at], (uint8_t)(found->fill + at));
	}
	assert_int_equal(osd_list_next(&reader, &got), 1);
	assert_int_equal(got.length, 8);
	assert_int_equal(get_be64(got.value), object->length);
	world->run.compared += 2;
}

void sim_judge_data(struct sim_world *world, const struct sim_command *command, const uint8_t *in,
		    size_t length)
{
	if (command->kind == SIM_READ)
		check_read(world, command, in, length);
	else if (command->kind == SIM_LIST || command->kind == SIM_LIST_COLLECTIONS)
		check_list(world, command, in, length);
	else if (command->kind == SIM_GET)
		check_get(world, command, in, length);
}
