/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands of the simulated clients: what they ask for, their bytes, and whether their answers are
 * those of the model.
 */
#ifndef MUNINN_TESTS_SIM_COMMANDS_H
#define MUNINN_TESTS_SIM_COMMANDS_H

#include "tests/sim/world.h"
#include "wire/wire.h"

enum sim_kind {
	SIM_READ,
	SIM_WRITE,
	SIM_APPEND,
	SIM_CLEAR,
	SIM_PUNCH,
	SIM_TRUNCATE,
	SIM_CREATE,
	SIM_CREATE_AND_WRITE,
	SIM_CREATE_COLLECTION,
	SIM_REMOVE,
	SIM_REMOVE_COLLECTION,
	SIM_SET,
	SIM_GET,
	SIM_LIST,
	SIM_LIST_COLLECTIONS,
	SIM_CREATE_PARTITION,
	SIM_REMOVE_PARTITION,
	SIM_FLUSH,
	SIM_SNAPSHOT,
	SIM_ROLLBACK,
	SIM_TASKS, /* a task management function */
	SIM_KINDS
};

struct sim_command {
	enum sim_kind kind;
	enum osd_version osd;
	struct model_partition *partition;
	uint64_t id;    /* of the object; 0: the target chooses one */
	uint32_t count; /* of CREATE */
	uint64_t offset, length;
	uint8_t fill;     /* byte i of its data is fill + i + i / 251 */
	uint32_t version; /* of what is read, or gone back to; 0: the present */
	bool fua, contents;
	bool has_attribute; /* sets one beside its work */
	struct model_attribute attribute;
	uint8_t function; /* of tasks */
	uint64_t tag;     /* of the task that it is about */
	enum sim_credential credential;
};

/* How a command ended. */
enum sim_answer {
	SIM_GOOD,
	SIM_PAST_END, /* a READ in part beyond the object's end */
	SIM_REFUSED,  /* what it asks for can't be */
	SIM_PROTECTED,
	SIM_NO_ROOM,
	SIM_DAMAGED, /* stored data can't be read */
	SIM_TOO_FAST,
	SIM_TOLD, /* a unit attention: it was not executed */
	SIM_ABORTED,
	SIM_OTHER,
};

/* Draws a command. */
void sim_command_make(struct sim_world *world, struct sim_command *command);

/* In words. */
void sim_command_print(const struct sim_command *command, char *text, size_t bytes);

/*
 * Executes it for a session, compares the answer, and lets the model follow. `at_once`: only if
 * nothing has to wait. False: it was not executed, and is to be.
 */
bool sim_command_execute(struct sim_world *world, struct sim_session *session,
			 const struct sim_command *command, bool at_once);

/* The service response of the last task management function. */
uint8_t sim_command_response(void);

#endif
