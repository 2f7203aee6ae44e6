/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * POSIX extended regular expressions on bytes, for SEARCH: their syntax, and the steps that they
 * are compiled to. The initiator compiles one to say what is wrong before it sends it. The target
 * finds matches with the steps (osd/expression_find.h).
 *
 * An expression comes from a stranger: compiling takes memory for EXPRESSION_STEPS_MAX steps.
 * docs/explanation/design.md, "Regular expressions", says what this is and why it is no library.
 *
 * The syntax: literals, ".", brackets with ranges and classes, "^", "$", groups, "|", "*", "+",
 * "?", {n}, {n,}, {n,m} with n, m <= 255, a backslash before any punctuation, and \w \W \s \S.
 * Bytes are characters (the C locale). There are no back references and no word boundaries. Nothing
 * matches a newline.
 */
#ifndef MUNINN_WIRE_EXPRESSION_H
#define MUNINN_WIRE_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EXPRESSION_BYTES_MAX = 256,  /* of the text */
	EXPRESSION_STEPS_MAX = 512,  /* of the compiled form; copies that bounds make count */
	EXPRESSION_DEPTH_MAX = 32,   /* groups in groups */
	EXPRESSION_REPEAT_MAX = 255, /* in bounds */
};

/*
 * The work of one call of finding (osd/expression_find.h), in steps; it may take twice that. A byte
 * counts four steps at least.
 */
#define EXPRESSION_WORK_MAX (UINT64_C(1) << 25)
/*
 * Matches of up to this length are exact; or up to EXPRESSION_WORK_MAX / 2 / steps if that is less
 * (32 KiB at least).
 */
#define EXPRESSION_SPAN_MAX (UINT64_C(1) << 20)

enum expression_operation {
	EXPRESSION_SET,        /* consumes a byte of set `set` */
	EXPRESSION_SPLIT,      /* goes on at the next step and at `jump` */
	EXPRESSION_JUMP,       /* goes on at `jump` */
	EXPRESSION_LINE_BEGIN, /* goes on there only */
	EXPRESSION_LINE_END,
	EXPRESSION_MATCH,
};

struct expression_step {
	uint8_t operation;
	uint16_t set;
	int16_t jump; /* relative to this step */
};

struct expression_set {
	uint64_t bits[4]; /* of 256 bytes */
};

struct expression {
	struct expression_step steps[EXPRESSION_STEPS_MAX];
	uint32_t step_count;
	struct expression_set sets[EXPRESSION_BYTES_MAX];
	uint32_t set_count;
	struct expression_set first; /* bytes that a match can begin with */
	uint64_t span;               /* bytes up to which matches are exact */
};

static inline bool expression_set_has(const struct expression_set *set, uint8_t byte)
{
	return set->bits[byte / 64] >> (byte % 64) & 1;
}

/* -EINVAL: it is no expression, or uses what is not supported. -E2BIG: too many steps or groups. */
int expression_compile(const uint8_t *text, size_t length, struct expression *expression);

#endif
