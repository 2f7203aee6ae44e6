/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The sentence that goes with an error: what was wrong, where, and what to do. Functions that open,
 * create or parse take a `struct error_text *` (may be NULL) beside their negative errno result.
 */
#ifndef MUNINN_COMMON_ERROR_H
#define MUNINN_COMMON_ERROR_H

#include <stdarg.h>

struct error_text {
	char text[512];
};

/*
 * Formats into `error` (if not NULL) and returns `result`, so that callers can `return
 * error_set(...)`. A sentence that is too long, mostly because of a path, loses its middle: its end
 * says what was wrong.
 */
int error_set(struct error_text *error, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int error_set_list(struct error_text *error, int result, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

#endif
