/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The words that the Muninn store's options are written with. */
#include "engine/muninn/options.h"

#include <errno.h>
#include <string.h>

static const char *const hot_rows_names[] = {
	[MUNINN_HOT_ROWS_FINALISE] = "finalise",
	[MUNINN_HOT_ROWS_SPREAD] = "spread",
};

const char *muninn_hot_rows_name(enum muninn_hot_rows hot_rows)
{
	return hot_rows_names[hot_rows];
}

int muninn_hot_rows_parse(const char *name, enum muninn_hot_rows *hot_rows)
{
	for (int n = MUNINN_HOT_ROWS_FINALISE; n <= MUNINN_HOT_ROWS_SPREAD; n++)
		if (strcmp(name, hot_rows_names[n]) == 0) {
			*hot_rows = (enum muninn_hot_rows)n;
			return 0;
		}
	return -EINVAL;
}
