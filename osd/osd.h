/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A T10 OSD logical unit: executes OSD-1 and OSD-2 commands on an engine, also those that come in
 * envelopes (wire/envelope.h). Knows nothing of tgt, iSCSI or sockets. The byte layouts are in
 * wire/wire.h, which the initiator library uses too.
 */
#ifndef MUNINN_OSD_OSD_H
#define MUNINN_OSD_OSD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "wire/status.h"

#define OSD_SENSE_BYTES_MAX 250

/* Identity of the logical unit, shown in the root information page. */
struct osd_options {
	uint8_t system_id[20]; /* OSD SYSTEM ID; all zero: derived from the device's UUID */
	uint8_t layout;  /* of object IDs in new partitions: enum osd_layout of wire/layout.h; 0:
			  * flat
			  */
	char serial[37]; /* PRODUCT SERIAL NUMBER, NUL-terminated; empty: the device's UUID */
	/*
	 * Encrypts the keys that the device stores. Without it, NOSEC is the only security method.
	 */
	bool has_device_key;
	uint8_t device_key[32];
	uint32_t nonces_max; /* nonces that the unit remembers, 80 bytes each; 0: 65536; 2 to
				2^24 */
};

struct osd_device;

/* Which tasks a task management function is about. */
struct osd_task_choice {
	bool every_nexus; /* the tasks of all, not of `nexus` alone */
	uint64_t nexus;   /* as in osd_command */
	bool one;         /* of those the one with `tag` only */
	uint64_t tag;     /* as the transport numbers them: of iSCSI the Initiator Task Tag */
};

/* Called with the nexus of each task that was found. */
typedef void osd_task_found(void *context, uint64_t nexus);

/*
 * The tasks of a logical unit: commands that have arrived and have not ended. The caller of
 * osd_execute keeps them. PERFORM TASK MANAGEMENT FUNCTION calls this from inside osd_execute; it
 * never chooses the task that calls.
 */
struct osd_task_set {
	void *context;
	/*
	 * Returns how many tasks are chosen, and calls `found` (may be NULL) for each. With
	 * `abort`, tasks that have not begun never will. Those that have begun go on to their end,
	 * and the answer of the aborting command waits for them. This call must not wait for any of
	 * them itself.
	 */
	uint32_t (*choose)(void *context, const struct osd_task_choice *choice, bool abort,
			   osd_task_found *found, void *found_context);
};

/* A logical unit on `engine`, which the device uses but does not own. -ENOMEM. */
int osd_device_create(struct engine *engine, const uint8_t uuid[16],
		      const struct osd_options *options, struct osd_device **device);
void osd_device_destroy(struct osd_device *device);
/*
 * Gives the device its tasks, before the first command; copies `tasks`. A device without tasks
 * rejects task management functions.
 */
void osd_device_set_tasks(struct osd_device *device, const struct osd_task_set *tasks);

/* What tgtd writes behind the name of an initiator. */
#define OSD_INITIATOR_END " alias: "

/* One command. The caller owns all buffers and keeps them until osd_execute returns. */
struct osd_command {
	const uint8_t *cdb;
	size_t cdb_length; /* bytes received, any number */
	const uint8_t *data_out;
	size_t data_out_length; /* bytes received from the initiator */
	uint8_t *data_in;
	size_t data_in_capacity; /* bytes that the initiator has space for */
	/*
	 * Tells connections of initiators (I_T nexuses) apart; never used again. 0: nobody, and
	 * unit attentions do not concern the command.
	 */
	uint64_t nexus;
	/*
	 * The name of its initiator, ended by NUL, a newline or OSD_INITIATOR_END, for others that
	 * ask who uses a partition. NULL: not known.
	 */
	const char *initiator;

	/*
	 * Has its initiator aborted the command? Asked between two turns of a long one, on the
	 * thread that executes it: then it ends there, with TASK ABORTED. NULL: it is not asked.
	 */
	bool (*is_aborted)(void *context);
	void *abort_context;

	/* Results. */
	uint8_t status;
	uint8_t sense[OSD_SENSE_BYTES_MAX];
	size_t sense_length;
	size_t data_in_length; /* bytes of data_in to send; every one of them is set */
	size_t data_out_used;  /* bytes of data_out that the command describes, for the residual */
};

/*
 * Executes one command. Thread-safe; commands on one device may run side by side. Never fails: see
 * `status`.
 */
void osd_execute(struct osd_device *device, struct osd_command *command);

/*
 * Executes the command if it is short and nothing in it has to wait: for a thread that has others
 * to serve. False: nothing has happened, and the command is still to be executed; its results mean
 * nothing. A command that would fail counts as one that would wait. `stage` as of
 * engine_attempt_begin: if it has noted pages, it may be tried again when they have come.
 */
struct nand_stage;
bool osd_execute_at_once(struct osd_device *device, struct osd_command *command,
			 struct nand_stage *stage);

/*
 * For TEST UNIT READY: what happened to the unit that the session has not been told yet; this call
 * counts as telling. Descriptor-format sense data. False: there is nothing.
 */
bool osd_unit_attention(struct osd_device *device, uint64_t nexus,
			uint8_t sense[OSD_SENSE_BYTES_MAX], size_t *length);

/* Is the session of a nexus still there? */
typedef bool osd_is_logged_in(void *context, uint64_t nexus);

/*
 * Forgets the sessions that have ended, of all units of the device; each remembers 256. For the
 * caller of osd_execute: when a session sends its first command, and before commands that
 * osd_asks_for_sessions names. The caller knows the sessions of all units of the device, so they
 * are of one target. Thread-safe.
 */
void osd_forget_sessions(struct osd_device *device, osd_is_logged_in *is_logged_in, void *context);

/*
 * The units that share a device. They tell one another which sessions use which partition, and when
 * a partition is as it was earlier. Thread-safe. NULL: no memory.
 */
struct osd_units;
struct osd_units *osd_units_create(void);
/* When no unit is one of them any more. NULL is allowed. */
void osd_units_destroy(struct osd_units *units);

/* Before the first command; until the device is destroyed. */
void osd_device_join(struct osd_device *device, struct osd_units *units);

/* A disk among them: a unit each of whose sessions uses one partition. NULL: no memory. */
struct osd_neighbour;
struct osd_neighbour *osd_neighbour_create(struct osd_units *units, uint64_t partition);
void osd_neighbour_destroy(struct osd_neighbour *neighbour);

/*
 * A command of a session of the disk, which uses the partition from now on. `initiator` as in
 * struct osd_command. Returns the code of a unit attention that the session has not been told; this
 * call counts as telling. 0: there is none.
 */
uint16_t osd_neighbour_hear(struct osd_neighbour *neighbour, uint64_t nexus, const char *initiator);

/* As osd_forget_sessions, when a session sends the disk its first command. */
void osd_neighbour_forget_sessions(struct osd_neighbour *neighbour, osd_is_logged_in *is_logged_in,
				   void *context);

/*
 * Is it a command that is refused while other sessions use what it takes back? `nexus`: whose it
 * is, for a command in an envelope.
 */
bool osd_asks_for_sessions(struct osd_device *device, uint64_t nexus, const uint8_t *cdb,
			   size_t cdb_length);

/*
 * Standard INQUIRY data (cdb[1] bit 0 clear) or a VPD page for this device: at most `capacity`
 * bytes into `data`; returns the full length, or -EINVAL for a page that does not exist. `nexus` as
 * in osd_command.
 */
int osd_inquiry(const struct osd_device *device, uint64_t nexus, const uint8_t cdb[6],
		uint8_t *data, size_t capacity);

#endif
