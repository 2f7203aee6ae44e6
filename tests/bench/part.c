/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs the parts of muninn-bench that have a command line of their own. */
#include "tests/bench/part.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS_MAX = 32 };

int run_part(bench_part *part, const char *name, const char *line, char **json, char **text)
{
	char *words, *argv[ARGUMENTS_MAX], *rest;
	size_t json_bytes, text_bytes;
	FILE *json_to = open_memstream(json, &json_bytes);
	FILE *text_to = open_memstream(text, &text_bytes);
	int argc = 0, code;

	if (asprintf(&words, "%s %s", name, line) < 0)
		abort();
	rest = words;
	while ((argv[argc] = strsep(&rest, " "))) {
		argc += *argv[argc] != 0;
		assert(argc < ARGUMENTS_MAX);
	}
	code = part(argc, argv, json_to, text_to);
	fclose(json_to);
	fclose(text_to);
	free(words);
	return code;
}
