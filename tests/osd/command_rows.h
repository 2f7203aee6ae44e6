/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every command of the target with a call that succeeds, for tests of what all commands have in
 * common.
 */
#ifndef MUNINN_TESTS_OSD_COMMAND_ROWS_H
#define MUNINN_TESTS_OSD_COMMAND_ROWS_H

#include "tests/osd/unit.h"

/* What the command addresses, and with it which IDs may be wrong. */
enum row_target {
	ROW_ROOT,
	ROW_PARTITION,
	ROW_OBJECT,
	ROW_COLLECTION,
	ROW_NEW_PARTITION, /* P + 1 */
	ROW_NEW_OBJECT,    /* O + 100, a user object or a collection */
};

enum row_flag {
	ROW_CHANGES = 1 << 0,            /* refused for an old version */
	ROW_NO_ATTRIBUTES = 1 << 1,      /* has no sets and gets, for a reason that the row says */
	ROW_NO_CONTINUATION = 1 << 2,    /* has no such field */
	ROW_NEEDS_CONTINUATION = 1 << 3, /* its parameters are in the segment */
	ROW_REMOVES = 1 << 4,            /* what has the attributes is gone when the command ends */
	ROW_OWN_LISTS = 1 << 5,          /* the set list is a parameter of the command */
	ROW_NO_OPTIONS = 1 << 6,         /* bytes 10 and 32..51 have other uses than elsewhere */
};

struct command_row {
	uint16_t action;        /* enum osd_action */
	const char *attributes; /* of what: for the table of commands */
	enum row_target target;
	unsigned flags;
	/* Completes a bare call of the row's target; NULL: nothing is missing. */
	void (*fill)(struct call *call);
};

extern const struct command_row command_rows[];
extern const size_t command_row_count;

/* Fails the test if there is none. */
const struct command_row *command_row_of(uint16_t action);

/* The collection of unit_set_up_for_rows. */
#define ROW_COLLECTION_ID (O + 50)

/* Adds to a unit with partition P and object O: data in O, and an empty collection. */
void command_rows_prepare(struct unit *unit);

/* A call of the row's command that succeeds on such a unit. */
struct call command_row_call(const struct command_row *row, enum osd_version version);

#endif
