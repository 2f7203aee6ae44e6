/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The words that the Bloom index's options are written with. */
#include "engine/muninn/index/bloom_options.h"

#include <errno.h>
#include <string.h>

static const char *const hot_rows_names[] = {
	[BLOOM_HOT_ROWS_FINALISE] = "finalise",
	[BLOOM_HOT_ROWS_SPREAD] = "spread",
};

const char *bloom_hot_rows_name(enum bloom_hot_rows hot_rows)
{
	return hot_rows_names[hot_rows];
}

int bloom_hot_rows_parse(const char *name, enum bloom_hot_rows *hot_rows)
{
	for (int n = BLOOM_HOT_ROWS_FINALISE; n <= BLOOM_HOT_ROWS_SPREAD; n++)
		if (strcmp(name, hot_rows_names[n]) == 0) {
			*hot_rows = (enum bloom_hot_rows)n;
			return 0;
		}
	return -EINVAL;
}
