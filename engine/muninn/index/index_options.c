/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The words that name an index. */
#include "engine/muninn/index/index_options.h"

#include <errno.h>
#include <string.h>

static const char *const names[] = {
	[INDEX_BLOOM] = "bloom",
	[INDEX_RIBBON] = "ribbon",
};

const char *index_kind_name(enum index_kind kind)
{
	return names[kind ? kind : INDEX_DEFAULT];
}

int index_kind_parse(const char *name, enum index_kind *kind)
{
	for (int n = INDEX_BLOOM; n <= INDEX_RIBBON; n++)
		if (strcmp(name, names[n]) == 0) {
			*kind = (enum index_kind)n;
			return 0;
		}
	return -EINVAL;
}
