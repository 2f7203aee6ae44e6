/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes log lines of every layer to where the process wants them. */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>

static void sink_stderr(enum log_level level, const char *line)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };

	fprintf(stderr, "muninn: %s: %s\n", names[level], line);
}

static log_sink *configured_sink = sink_stderr;
static enum log_level configured_level = LOG_LEVEL_INFO;

void log_configure(log_sink *sink, enum log_level most)
{
	configured_sink = sink ? sink : sink_stderr;
	configured_level = most;
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list arguments;

	if (level > configured_level)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	configured_sink(level, line);
}
