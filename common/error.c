/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes the sentence that goes with an error. */
#include "common/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error_text *error, int result, const char *format, ...)
{
	if (error) {
		va_list arguments;

		va_start(arguments, format);
		vsnprintf(error->text, sizeof(error->text), format, arguments);
		va_end(arguments);
	}
	return result;
}
