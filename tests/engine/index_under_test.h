/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which index the devices of a test have: that of MUNINN_INDEX, or the default. Programs whose
 * first comment says "Runs for each index." are run once more with MUNINN_INDEX=bloom.
 */
#ifndef MUNINN_TESTS_ENGINE_INDEX_UNDER_TEST_H
#define MUNINN_TESTS_ENGINE_INDEX_UNDER_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "engine/muninn/index/index_options.h"

static inline enum index_kind index_under_test(void)
{
	const char *name = getenv("MUNINN_INDEX");
	enum index_kind kind = INDEX_DEFAULT;

	if (name && index_kind_parse(name, &kind)) {
		fprintf(stderr, "MUNINN_INDEX=%s is no index\n", name);
		abort();
	}
	return kind;
}

/* What goes in front of a command that repeats a run. */
static inline const char *index_setting(void)
{
	static char text[40];
	const char *name = getenv("MUNINN_INDEX");

	snprintf(text, sizeof(text), name ? "MUNINN_INDEX=%s " : "%s", name ? name : "");
	return text;
}

#endif
