/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A logical unit of tgtd on a device of ours: what every kind of unit needs. That is its life
 * (unit.c), the way of its commands from tgtd to a thread (arrival.c, order.h, io_threads.h), and
 * the seam to its kind, which says what the commands mean.
 *
 * A kind is one file with one struct unit_kind, a row in unit_type.c and a line in bs_muninn.c.
 */
#ifndef MUNINN_DAEMON_MODULE_UNIT_H
#define MUNINN_DAEMON_MODULE_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "daemon/module/control.h"
#include "daemon/module/device.h"
#include "daemon/module/io_threads.h"
#include "daemon/module/latency.h"
#include "daemon/module/options.h"
#include "daemon/module/registrations.h"
#include "daemon/module/unit_type.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* tgtd numbers sessions with 16 bits, in turn. */
#define SESSION_NUMBERS 65536

struct unit;

struct unit_kind {
	const struct unit_type *type;
	/*
	 * Tells each new session of the power-on unit attention (29/00), as SPC wants it. false:
	 * its initiators would take that for an error.
	 */
	bool tells_power_on;
	/*
	 * The operation codes that it knows; tgtd refuses others. I/O threads execute those of
	 * `on_threads`, which tgtd must hand to the backing store by its device type. tgtd's main
	 * thread performs the others.
	 */
	const uint8_t *operations;
	size_t operation_count;
	const uint8_t *on_threads;
	size_t on_threads_count;
	/*
	 * In place of tgtd's functions for those, which shall end in unit_submit. NULL: tgtd's do.
	 */
	int (*hand_over)(int host_no, struct scsi_cmd *cmd);

	/*
	 * Makes unit->state on the unit's device, before there are threads; *bytes = the size that
	 * tgtd tells for the unit. -errno with a sentence; then `close` is not called.
	 */
	int (*open)(struct unit *unit, uint64_t *bytes, struct error_text *error);
	/* Ends it, when no command is under way. */
	void (*close)(struct unit *unit);
	/* The partition that an open unit is all of. NULL: it is the whole device. */
	uint64_t (*partition)(const struct unit *unit);
	/*
	 * On tgtd's main thread, before anything else happens to a command. `is_first`: of its
	 * session. NULL: the kind need not know.
	 */
	void (*arrives)(struct unit *unit, const struct scsi_cmd *cmd, bool is_first);
	/*
	 * On an I/O thread, any number side by side: leaves status, sense and residuals in the
	 * command.
	 */
	void (*execute)(struct unit *unit, struct scsi_cmd *cmd);
	/*
	 * On tgtd's main thread, as `execute` if nothing has to wait. False: nothing has happened.
	 * NULL: everything goes to the threads.
	 */
	bool (*attempt)(struct unit *unit, struct scsi_cmd *cmd, struct nand_stage *stage);
	/*
	 * On tgtd's main thread, without waiting for anything: as `execute`, but returns the
	 * status. Gives what the kind does not answer itself to unit_perform_stock.
	 */
	int (*perform)(struct unit *unit, struct scsi_cmd *cmd);
	/* Lines of what the unit is, for `status`. Any thread. NULL: there is nothing to add. */
	void (*describe)(struct unit *unit, FILE *to);
	/*
	 * Lets the unit grow. Not on tgtd's main thread, which calls `grown` after it succeeded.
	 * -errno with a sentence. Both NULL: it can't.
	 */
	int (*grow)(struct unit *unit, uint64_t bytes, struct error_text *error);
	void (*grown)(struct unit *unit);
};

/* What all sessions have had answered: tgtd counts for each, and forgets it with the session. */
struct unit_done {
	uint64_t reads, writes, both, errors; /* commands */
	uint64_t read_bytes, written_bytes;
	struct latency read, written, bidirectional;
};

/* The state of one logical unit, behind tgtd's own structure. */
struct unit {
	const struct unit_kind *kind;
	struct lun_options options;
	struct device *device;      /* NULL: no image is open */
	struct io_threads *threads; /* NULL: as above */
	struct nand_stages *stages; /* of the threads; NULL: the device needs none */
	void *state;                /* the kind's */
	struct schedule schedule;   /* the device's, while it is open */
	struct control control;
	/* tgtd's own functions that ours replace: of the unit, and by operation code. */
	int (*stock_perform)(int tid, struct scsi_cmd *cmd);
	int (*stock_operations[NR_SCSI_OPCODES])(int host_no, struct scsi_cmd *cmd);
	uint64_t senses[16];           /* atomic: commands that ended with sense, by sense key */
	struct unit_done done;         /* on tgtd's main thread */
	enum order_attribute arriving; /* of the command that tgtd is just handing over */
	/* By tgtd's number of a session: which one with it has sent a command (nexus_of). */
	uint32_t sessions_seen[SESSION_NUMBERS];
	struct registrations registrations;
};

static inline struct unit *unit_of(struct scsi_lu *lu)
{
	return (struct unit *)((char *)lu + sizeof(*lu));
}

static inline struct scsi_lu *lu_of(struct unit *unit)
{
	return (struct scsi_lu *)(void *)((char *)unit - sizeof(struct scsi_lu));
}

/* A command ends with this sense; length 0: with none. */
static inline void unit_note_sense(struct unit *unit, const uint8_t *sense, size_t length)
{
	/* Descriptor format has the key in another place than fixed format. */
	if (length > 2)
		__atomic_fetch_add(&unit->senses[sense[(sense[0] & 0x7E) == 0x72 ? 1 : 2] & 0x0F],
				   1, __ATOMIC_RELAXED);
}

/* ---- for bs_muninn.c, on tgtd's main thread ---- */

/*
 * Makes a new unit without an image, and puts the module's functions where its commands arrive.
 * `bsopts`: options.h. -EINVAL with a sentence: it has another device type, or the options are
 * wrong.
 */
int unit_attach(struct scsi_lu *lu, const struct unit_kind *kind, const char *bsopts,
		struct error_text *error);

/*
 * Opens the image and begins to serve; *bytes = the unit's size. -errno with a sentence; then
 * nothing is open.
 */
int unit_open(struct unit *unit, const char *image, uint64_t *bytes, struct error_text *error);

/*
 * Executes what has arrived, makes everything stable and closes; the unit can be opened again.
 * Returns the first error.
 */
int unit_close(struct unit *unit);

/* A command that tgtd hands to the backing store. Returns what bs_cmd_submit returns. */
int unit_submit(struct scsi_cmd *cmd);

/* ---- for kinds ---- */

/* tgtd's own answer to a command, which ours has replaced. Main thread. */
int unit_perform_stock(struct unit *unit, struct scsi_cmd *cmd);

/* ---- between unit.c and arrival.c ---- */

void unit_watch_arrivals(struct unit *unit, struct scsi_lu *lu);

#endif
