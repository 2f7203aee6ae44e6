/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finds an expression in a text: leftmost-longest matches inside lines, as `grep -o` does, in
 * objects that are much longer than memory. expression_match.c finds, expression_zeros.c goes over
 * holes; wire/expression.h has the syntax and compiles.
 *
 * Text and expression come from a stranger. So finding a match takes at most as many steps of work
 * as the bytes looked at times the steps of the expression.
 */
#ifndef MUNINN_OSD_EXPRESSION_FIND_H
#define MUNINN_OSD_EXPRESSION_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "wire/expression.h"

/* The state of a search. */
struct expression_matcher;
/* NULL: no memory. */
struct expression_matcher *expression_matcher_create(const struct expression *expression);
void expression_matcher_free(struct expression_matcher *matcher);

/*
 * Gives bytes of the text from `offset` on: as many as it likes, but at least one. *length 0: the
 * text ends at or before `offset`. *bytes NULL: *length zeros; the search goes over them at once,
 * however many they are. The bytes stay until the next call. Negative errno.
 */
typedef int expression_read(void *context, uint64_t offset, const uint8_t **bytes, size_t *length);

enum expression_outcome {
	EXPRESSION_FOUND,  /* [*begin, *end) */
	EXPRESSION_NONE,   /* nothing more in the text */
	EXPRESSION_PAUSED, /* enough work is done; nothing begins before *begin, go on there */
};

/*
 * Finds the first match that begins at or behind `from`, and of these the longest; never an empty
 * one. `from` is where a search begins, or the end of the match before. Adds its work to *work, and
 * pauses soon after that has reached EXPRESSION_WORK_MAX. Returns an enum expression_outcome or a
 * negative errno.
 */
int expression_find(struct expression_matcher *matcher, uint64_t from, expression_read *read,
		    void *context, uint64_t *work, uint64_t *begin, uint64_t *end);

#endif
