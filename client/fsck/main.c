/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* muninn-fsck [OPTIONS] IMAGE: options, and what ends it early. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/fsck/fsck.h"
#include "common/log.h"
#include "common/version.h"

static const char help[] =
	"Usage: muninn-fsck [OPTIONS] IMAGE\n"
	"       muninn-fsck [OPTIONS] --repair --to NEW IMAGE\n"
	"\n"
	"Looks for damage in IMAGE and its NVRAM file, IMAGE.nvram, and says in words what\n"
	"is wrong, what that means, and what a repair makes of it. It changes nothing in\n"
	"either file. The service must not have the image open.\n"
	"\n"
	"  --repair --to NEW  copies all that can be read to a new image, NEW, which takes\n"
	"                     the place of IMAGE when you move it there: partitions,\n"
	"                     objects, collections, attributes, keys, policies. Versions\n"
	"                     and the rest of history are not copied. IMAGE stays as it is\n"
	"  --versions         also reads all objects of all kept versions\n"
	"  --all              prints all findings, not only the first 20 of a kind\n"
	"  --json             prints one JSON object with all findings\n"
	"  --quiet            prints nothing; the exit code tells\n"
	"  --help, --version\n"
	"\n"
	"Exit codes, as those of fsck(8):\n"
	"  0   nothing is wrong\n"
	"  1   something was wrong, and NEW holds everything\n"
	"  4   something is wrong; with --repair: NEW lacks something\n"
	"  8   the image could not be examined to the end, or not copied,\n"
	"      or its report not written\n"
	"  16  wrong usage\n"
	"  32  interrupted\n";

enum option_code {
	OPTION_ALL = 256,
	OPTION_JSON,
	OPTION_REPAIR,
	OPTION_TO,
	OPTION_VERSION,
	OPTION_VERSIONS,
};

static const struct option long_options[] = {
	{ "all", no_argument, NULL, OPTION_ALL },
	{ "help", no_argument, NULL, 'h' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "quiet", no_argument, NULL, 'q' },
	{ "repair", no_argument, NULL, OPTION_REPAIR },
	{ "to", required_argument, NULL, OPTION_TO },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "versions", no_argument, NULL, OPTION_VERSIONS },
	{ NULL, 0, NULL, 0 },
};

/* Ends the process behind a sentence, wherever it is. */
static void say_and_end(const char *sentence, int code)
{
	fsck_clean_up();
	if (write(STDERR_FILENO, sentence, strlen(sentence)) < 0)
		_exit(FSCK_CANNOT);
	_exit(code);
}

/* The files are mapped: what the host can't read of them comes as a signal. */
static void end_early(int number)
{
	switch (number) {
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
		say_and_end("\nmuninn-fsck: interrupted; nothing was changed\n", FSCK_INTERRUPTED);
		break;
	case SIGBUS:
		say_and_end("\nmuninn-fsck: the host can't read a part of the image; copy both "
			    "files to another drive with ddrescue, and examine the copy\n",
			    FSCK_CANNOT);
		break;
	default:
		say_and_end("\nmuninn-fsck: ended by an error of its own; nothing was changed. "
			    "Please report this\n",
			    FSCK_CANNOT);
	}
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGBUS, SIGSEGV, SIGABRT, SIGFPE };
	const struct sigaction action = { .sa_handler = end_early, .sa_flags = SA_RESETHAND };

	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
		sigaction(numbers[n], &action, NULL);
}

static int usage(const char *sentence)
{
	fprintf(stderr, "muninn-fsck: %s; --help explains\n", sentence);
	return FSCK_USAGE;
}

/* Nobody takes a report for whole that is not: a full disk leaves a part of it. */
static int end_output(const char *what, int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fprintf(stderr, "muninn-fsck: the %s can't be written: %s\n", what, strerror(errno));
	return code == FSCK_CLEAN ? FSCK_CANNOT : code;
}

/* -1: go on. */
static int parse(int count, char **arguments, struct fsck_options *options)
{
	bool repair = false;
	int code;

	while ((code = getopt_long(count, arguments, "hq", long_options, NULL)) != -1) {
		switch (code) {
		case 'h':
			fputs(help, stdout);
			return end_output("help", FSCK_CLEAN);
		case OPTION_VERSION:
			puts("muninn-fsck " MUNINN_VERSION);
			return end_output("version", FSCK_CLEAN);
		case 'q':
			options->quiet = true;
			break;
		case OPTION_ALL:
			options->all = true;
			break;
		case OPTION_JSON:
			options->json = true;
			break;
		case OPTION_VERSIONS:
			options->versions = true;
			break;
		case OPTION_REPAIR:
			repair = true;
			break;
		case OPTION_TO:
			options->to = optarg;
			break;
		default:
			return FSCK_USAGE; /* getopt has said why */
		}
	}
	if (count - optind != 1)
		return usage("one IMAGE is wanted");
	if (repair && !options->to)
		return usage("--repair never changes the image itself: --to NEW is missing, the "
			     "image that gets what is whole");
	if (!repair && options->to)
		return usage("--to goes with --repair");
	options->image = arguments[optind];
	return -1;
}

/* What the engine logs on the way is told by findings. */
static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

int main(int count, char **arguments)
{
	struct fsck_options options = { 0 };
	struct fsck_report report;
	int code = parse(count, arguments, &options);

	if (code >= 0)
		return code;
	catch_signals();
	log_configure(discard_line, LOG_LEVEL_ERROR);
	report_begin(&report, &options);
	return end_output("report", (int)fsck_run(&report));
}
