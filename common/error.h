/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The sentence that goes with an error: what was wrong, where, and what to do. Functions that open,
 * create or parse take a `struct error_text *` (may be NULL) beside their negative errno result.
 */
#ifndef MUNINN_COMMON_ERROR_H
#define MUNINN_COMMON_ERROR_H

struct error_text {
	char text[512];
};

/*
 * Formats into `error` (if not NULL) and returns `result`, so that callers can `return
 * error_set(...)`.
 */
int error_set(struct error_text *error, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
