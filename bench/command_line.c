/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads what the command lines of `muninn-bench list` and `muninn-bench nand` share. */
#include "bench/command_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* False: it is no number, or not within the limits. */
static bool parse_number(const struct bench_number *option, const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	const char *found;
	unsigned shift = 0;
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (errno || end == text || *text == '-')
		return false;
	if (option->unit && *end && (found = strchr(units, *end))) {
		shift = 10 * (unsigned)(found - units + 1);
		end++;
	}
	if (*end || *value > UINT64_MAX >> shift)
		return false;
	*value <<= shift;
	return *value >= option->least && *value <= option->most;
}

int bench_take_number(const struct bench_number *option, const char *text, uint64_t *value,
		      struct error_text *error)
{
	if (parse_number(option, text, value))
		return 0;
	return error_set(error, -EINVAL, "--%s %s: must be a number, %llu to %llu", option->name,
			 text, (unsigned long long)option->least, (unsigned long long)option->most);
}

int bench_next_option(int argc, char **argv, const struct option *options, struct error_text *error)
{
	int option;

	opterr = 0;
	option = getopt_long(argc, argv, ":", options, NULL);
	if (option == ':')
		return error_set(error, -EINVAL, "%s needs a value", argv[optind - 1]);
	if (option == '?')
		return error_set(error, -EINVAL, "%s: no such option", argv[optind - 1]);
	if (option == -1 && optind < argc)
		return error_set(error, -EINVAL, "%s: not an option", argv[optind]);
	return option;
}

int bench_do_without(const char *command, const char *help, int result,
		     const struct error_text *error, FILE *json, FILE *text)
{
	if (result > 0) {
		fputs(help, json);
		return DONE;
	}
	fprintf(text, "muninn-bench %s: %s\n`muninn-bench %s --help` lists the options\n", command,
		error->text, command);
	return WRONG_USE;
}
