/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands that find nearly every row full of small records. There are two units, and both get the
 * same: one has threads that seal, so its commands begin anew behind them, the other one has none.
 * What is full is kept from the threads until a command has begun so often, so that its tries
 * before that fail however fast they are.
 */
#ifndef MUNINN_TESTS_OSD_FULL_ROWS_H
#define MUNINN_TESTS_OSD_FULL_ROWS_H

#include "tests/osd/secured.h"

/* At the latest here the threads may seal. */
#define FULL_ROWS_TRIES_MAX 40
/* Bytes of a page, and of O that are compared. */
#define FULL_ROWS_PAGE     512
#define FULL_ROWS_DATA_MAX (400 * FULL_ROWS_PAGE)

struct full_rows {
	struct unit served, alone;   /* with threads, and without */
	unsigned tries, tries_alone; /* transactions of the last call */
	unsigned release_at;         /* before this one the threads may seal */
};

/* cmocka set-up and tear-down: units with keys, partition P and object O in *state. */
int full_rows_set_up(void **state);
int full_rows_tear_down(void **state);
#define with_full_rows(test) \
	cmocka_unit_test_setup_teardown(test, full_rows_set_up, full_rows_tear_down)

/*
 * Fills the rows and executes a call on both units. The answers must be the same; `served` and
 * `alone` have them then.
 */
void full_rows_run(struct full_rows *rows, struct call *call, unsigned release_at);
/* Before and behind calls that are executed otherwise, on one unit and then on the other. */
void full_rows_begin(struct full_rows *rows, unsigned release_at);
void full_rows_end(struct full_rows *rows);

/* Numbers, times, attributes and data of root, P and O. */
void full_rows_expect_same(struct full_rows *rows);

#endif
