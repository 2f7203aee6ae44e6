/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finding an expression in a text: leftmost-longest matches inside lines, as `grep -o` finds them,
 * in objects that are much longer than memory. expression_match.c finds, expression_zeros.c goes
 * over holes; wire/expression.h has the syntax and compiles.
 *
 * The text comes from a stranger, as the expression does: finding a match takes time that is at
 * most the bytes looked at times the steps.
 */
#ifndef MUNINN_OSD_EXPRESSION_FIND_H
#define MUNINN_OSD_EXPRESSION_FIND_H

#include <stddef.h>
#include <stdint.h>

#include "wire/expression.h"

/* Room for finding; not to be looked into. */
struct expression_matcher;
/* NULL: no memory. */
struct expression_matcher *expression_matcher_create(const struct expression *expression);
void expression_matcher_free(struct expression_matcher *matcher);

/*
 * Gives the bytes of the text from `offset` on, as many as it likes but at least one; *length 0:
 * the text ends at or before it. *bytes NULL: *length zeros, which are gone over at once, however
 * many they are. Bytes stay until the next call. Negative errno.
 */
typedef int expression_read(void *context, uint64_t offset, const uint8_t **bytes, size_t *length);

enum expression_outcome {
	EXPRESSION_FOUND,  /* [*begin, *end) */
	EXPRESSION_NONE,   /* nothing more in the text */
	EXPRESSION_PAUSED, /* enough done: nothing before *begin, go on there */
};

/*
 * The first match that begins at or behind `from`, and the longest of those; never an empty one.
 * `from` is where a search begins or the end of the match before. *work counts on from what it is,
 * and once it has got to EXPRESSION_WORK_MAX the search pauses as soon as it has got any further.
 * An enum expression_outcome or a negative errno.
 */
int expression_find(struct expression_matcher *matcher, uint64_t from, expression_read *read,
		    void *context, uint64_t *work, uint64_t *begin, uint64_t *end);

#endif
