/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes log lines of every layer to where the process wants them. */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const words[] = { "error", "warning", "info", "debug" };

int log_level_parse(const char *word, enum log_level *level)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], word)) {
			*level = (enum log_level)i;
			return 0;
		}
	return -EINVAL;
}

const char *log_level_word(enum log_level level)
{
	return words[level];
}

/* systemd says which stream is the journal's; it may have been sent elsewhere since. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat status;
	char text[64];

	if (!stream || fstat(STDERR_FILENO, &status) < 0)
		return false;
	snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
	return strcmp(stream, text) == 0;
}

const char *log_priority(enum log_level level)
{
	static const char *const priorities[] = { "<3>", "<4>", "<6>", "<7>" };

	return is_journal() ? priorities[level] : "";
}

static void sink_stderr(enum log_level level, const char *line)
{
	fprintf(stderr, "%smuninn: %s: %s\n", log_priority(level), words[level], line);
}

static log_sink *configured_sink = sink_stderr;
static enum log_level configured_level = LOG_LEVEL_INFO;

void log_configure(log_sink *sink, enum log_level most)
{
	configured_sink = sink ? sink : sink_stderr;
	log_set_level(most);
}

void log_set_level(enum log_level most)
{
	__atomic_store_n(&configured_level, most, __ATOMIC_RELAXED);
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list arguments;

	if (level > __atomic_load_n(&configured_level, __ATOMIC_RELAXED))
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	configured_sink(level, line);
}
