/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Stops a command before one of its transactions, for another session to act there. */
#include "tests/osd/stepped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "osd/execute.h"

static struct {
	struct unit *unit;
	unsigned before, seen;
	changing *change;
} stop;

static void step(void *context)
{
	struct unit session = *stop.unit;

	(void)context;
	if (++stop.seen != stop.before)
		return;
	/* What the command has in its buffers stays there. */
	session.device->step = NULL;
	session.data_in = NULL;
	stop.change(&session);
	free(session.data_in);
}

static void begin(struct unit *unit, unsigned before, changing *change)
{
	stop.unit = unit;
	stop.before = before;
	stop.seen = 0;
	stop.change = change;
	unit->device->step = step;
}

static void end(struct unit *unit)
{
	assert_true(stop.seen >= stop.before);
	unit->device->step = NULL;
}

void stepped_run(struct unit *unit, struct call *call, unsigned before, changing *change)
{
	begin(unit, before, change);
	call_run(unit, call);
	end(unit);
}

void stepped_run_signed(struct unit *unit, struct signed_call *call, unsigned before,
			changing *change)
{
	begin(unit, before, change);
	signed_run(unit, call);
	end(unit);
}

struct osd_command *stepped_command(void)
{
	return &stop.unit->command;
}
