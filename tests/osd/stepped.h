/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands that are stopped before one of their transactions, where another session does something:
 * so a test says exactly what comes between. Everything happens on the thread of the test.
 */
#ifndef MUNINN_TESTS_OSD_STEPPED_H
#define MUNINN_TESTS_OSD_STEPPED_H

#include "tests/osd/secured.h"

/*
 * What the other session does. `unit` has the device and the nexus of the first one, and buffers of
 * its own.
 */
typedef void changing(struct unit *unit);

/*
 * Runs a command, and before its n-th transaction (from 1) the change. It must have come to that.
 */
void stepped_run(struct unit *unit, struct call *call, unsigned before, changing *change);
void stepped_run_signed(struct unit *unit, struct signed_call *call, unsigned before,
			changing *change);

/* While the change is made: the command that is stopped. */
struct osd_command *stepped_command(void);

#endif
