/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes the sentence that goes with an error. */
#include "common/error.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A path, and what is said of it. */
#define WHOLE_BYTES (PATH_MAX + sizeof(struct error_text))
#define GAP         " ... "

/* Whether a byte goes on with a character of UTF-8. */
static int continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

static void take_middle_out(const char *whole, struct error_text *error)
{
	size_t head = sizeof(error->text) / 2, tail = sizeof(error->text) - head - sizeof(GAP);
	const char *end = whole + strlen(whole) - tail;

	while (head > 0 && continues(whole[head]))
		head--;
	while (continues(*end))
		end++;
	snprintf(error->text, sizeof(error->text), "%.*s" GAP "%s", (int)head, whole, end);
}

int error_set_list(struct error_text *error, int result, const char *format, va_list arguments)
{
	char whole[WHOLE_BYTES];

	if (!error)
		return result;
	if (vsnprintf(whole, sizeof(whole), format, arguments) < (int)sizeof(error->text))
		strcpy(error->text, whole);
	else
		take_middle_out(whole, error);
	return result;
}

int error_set(struct error_text *error, int result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	error_set_list(error, result, format, arguments);
	va_end(arguments);
	return result;
}
