/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Draws commands, and says what they ask for. */
#include "tests/sim/commands.h"

#include <stdio.h>

#include "common/bytes.h"

/* Of a hundred commands. */
static const uint8_t shares[SIM_KINDS] = {
	[SIM_READ] = 22,
	[SIM_WRITE] = 20,
	[SIM_APPEND] = 7,
	[SIM_CLEAR] = 3,
	[SIM_PUNCH] = 3,
	[SIM_TRUNCATE] = 3,
	[SIM_CREATE] = 5,
	[SIM_CREATE_AND_WRITE] = 3,
	[SIM_CREATE_COLLECTION] = 1,
	[SIM_REMOVE] = 6,
	[SIM_REMOVE_COLLECTION] = 1,
	[SIM_SET] = 8,
	[SIM_GET] = 6,
	[SIM_LIST] = 3,
	[SIM_LIST_COLLECTIONS] = 1,
	[SIM_CREATE_PARTITION] = 1,
	[SIM_REMOVE_PARTITION] = 1,
	[SIM_FLUSH] = 1,
	[SIM_SNAPSHOT] = 1,
	[SIM_ROLLBACK] = 1,
	[SIM_TASKS] = 3,
};

static const char *const names[SIM_KINDS] = {
	[SIM_READ] = "READ",
	[SIM_WRITE] = "WRITE",
	[SIM_APPEND] = "APPEND",
	[SIM_CLEAR] = "CLEAR",
	[SIM_PUNCH] = "PUNCH",
	[SIM_TRUNCATE] = "SET LOGICAL LENGTH",
	[SIM_CREATE] = "CREATE",
	[SIM_CREATE_AND_WRITE] = "CREATE AND WRITE",
	[SIM_CREATE_COLLECTION] = "CREATE COLLECTION",
	[SIM_REMOVE] = "REMOVE",
	[SIM_REMOVE_COLLECTION] = "REMOVE COLLECTION",
	[SIM_SET] = "SET ATTRIBUTES",
	[SIM_GET] = "GET ATTRIBUTES",
	[SIM_LIST] = "LIST",
	[SIM_LIST_COLLECTIONS] = "LIST COLLECTION",
	[SIM_CREATE_PARTITION] = "CREATE PARTITION",
	[SIM_REMOVE_PARTITION] = "REMOVE PARTITION",
	[SIM_FLUSH] = "FLUSH OSD",
	[SIM_SNAPSHOT] = "SNAPSHOT",
	[SIM_ROLLBACK] = "ROLLBACK",
	[SIM_TASKS] = "PERFORM TASK MANAGEMENT FUNCTION",
};

static const char *const credentials[SIM_CREDENTIALS] = {
	[SIM_GENUINE] = "",
	[SIM_UNSIGNED] = ", unsigned",
	[SIM_FOREIGN] = ", with a foreign key",
	[SIM_STALE] = ", with a stale key",
	[SIM_FORGED] = ", forged",
	[SIM_WEAK] = ", for a weak method",
	[SIM_ELSEWHERE] = ", for another object",
	[SIM_EXPIRED] = ", expired",
	[SIM_CAPTURED] = ", captured",
};

static enum sim_kind some_kind(struct model_run *run)
{
	uint32_t dice = (uint32_t)model_run_below(run, 100);
	int kind = 0;

	for (; kind < SIM_KINDS - 1 && dice >= shares[kind]; kind++)
		dice -= shares[kind];
	return (enum sim_kind)kind;
}

/* Mostly one that is there. */
static uint64_t some_id(struct model_run *run, const struct model_state *state)
{
	if (state->count && !one_in(run, 20))
		return state->objects[model_run_below(run, state->count)]->id;
	return ENGINE_FIRST_ID + model_run_below(run, 2 * MODEL_OBJECTS);
}

/* Small ones often, some at the edges of pages. */
static void draw_range(struct model_run *run, struct sim_command *command)
{
	const struct model_object *object =
		object_model_find(&command->partition->now, command->id);
	uint64_t page_bytes = run->model.page_bytes, all = all_bytes(run);
	uint64_t end = object ? object->length : 0;

	switch (model_run_below(run, 5)) {
	case 0:
		command->offset = min_u64(end, all - 1);
		break;
	case 1:
		command->offset = model_run_below(run, MODEL_PIECES) * page_bytes;
		break;
	case 2:
		command->offset = model_run_below(run, all);
		break;
	default:
		command->offset = model_run_below(run, end + 1);
		break;
	}
	switch (model_run_below(run, 8)) {
	case 0:
		command->length = page_bytes * (1 + model_run_below(run, 6));
		break;
	case 1:
		command->length = model_run_below(run, 8 * page_bytes);
		break;
	default:
		command->length = model_run_below(run, page_bytes);
		break;
	}
	command->offset = min_u64(command->offset, all - 1);
	command->length = min_u64(command->length, all - command->offset);
}

static void draw_attribute(struct model_run *run, struct sim_command *command)
{
	command->attribute = (struct model_attribute){
		.page = 0x10000000,
		.number = 1 + (uint32_t)model_run_below(run, 4),
		.length = (uint32_t)model_run_below(run, one_in(run, 8) ? 2000 : 60),
		.fill = (uint8_t)model_run_below(run, 256),
	};
}

static void draw_version(struct model_run *run, struct sim_command *command)
{
	const struct model_partition *partition = command->partition;

	if (partition->version_count)
		command->version =
			partition->numbers[model_run_below(run, partition->version_count)];
}

static void draw_task_function(struct model_run *run, struct sim_command *command)
{
	static const uint8_t functions[] = {
		OSD_ABORT_TASK,     OSD_ABORT_TASK, OSD_ABORT_TASK_SET,
		OSD_CLEAR_TASK_SET, OSD_QUERY_TASK, OSD_QUERY_TASK_SET
	};

	command->function = functions[model_run_below(run, sizeof(functions))];
}

/* OSD-1 has no such command, or not all of it. */
static bool is_of_osd2(enum sim_kind kind)
{
	return kind == SIM_CLEAR || kind == SIM_PUNCH || kind == SIM_REMOVE_PARTITION ||
	       kind == SIM_SNAPSHOT || kind == SIM_ROLLBACK;
}

static bool is_seldom(enum sim_kind kind)
{
	return kind == SIM_REMOVE_PARTITION || kind == SIM_ROLLBACK || kind == SIM_FLUSH;
}

static void draw_details(struct model_run *run, struct sim_command *command)
{
	draw_range(run, command);
	draw_attribute(run, command);
	command->has_attribute = (command->kind == SIM_WRITE || command->kind == SIM_APPEND ||
				  command->kind == SIM_CREATE ||
				  command->kind == SIM_CREATE_AND_WRITE) &&
				 one_in(run, 4);
	if (command->kind == SIM_CREATE && one_in(run, 2)) {
		command->id = 0;
		command->count = 1 + (uint32_t)model_run_below(run, 3);
	} else if (command->kind == SIM_CREATE || command->kind == SIM_CREATE_AND_WRITE ||
		   command->kind == SIM_CREATE_COLLECTION) {
		command->id = one_in(run, 3)
				      ? 0
				      : ENGINE_FIRST_ID + model_run_below(run, 2 * MODEL_OBJECTS);
	}
	if (command->kind == SIM_ROLLBACK || (command->kind == SIM_READ && one_in(run, 4)))
		draw_version(run, command);
	if (command->kind == SIM_TASKS)
		draw_task_function(run, command);
}

void sim_command_make(struct sim_world *world, struct sim_command *command)
{
	struct model_run *run = &world->run;

	*command = (struct sim_command){
		.kind = some_kind(run),
		.osd = one_in(run, 4) ? OSD_1 : OSD_2,
		.partition = &run->model.partitions[model_run_below(run, MODEL_PARTITIONS)],
		.count = 1,
		.fill = (uint8_t)model_run_below(run, 256),
		.fua = one_in(run, 25),
		.contents = one_in(run, 2),
	};
	if (is_seldom(command->kind) && !one_in(run, 4))
		command->kind = SIM_WRITE;
	/* Without one nothing else can be done. */
	if (!command->partition->now.self && one_in(run, 2))
		command->kind = SIM_CREATE_PARTITION;
	command->id = some_id(run, &command->partition->now);
	draw_details(run, command);
	if (is_of_osd2(command->kind))
		command->osd = OSD_2;
	if (world->profile->secured)
		command->credential = sim_security_draw(world);
}

void sim_command_print(const struct sim_command *command, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s %llx/%llx version %u: %llu bytes at %llu%s%s%s",
		 names[command->kind], (unsigned long long)command->partition->id,
		 (unsigned long long)command->id, command->version,
		 (unsigned long long)command->length, (unsigned long long)command->offset,
		 command->has_attribute || command->kind == SIM_SET ? ", with an attribute" : "",
		 command->fua ? ", FUA" : "", credentials[command->credential]);
}
