/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Facts for a reader: names and values, and lists of rows of them. Who finds them does not know how
 * they are shown, and who shows them does not know what they mean.
 *
 * Names are lower-case words with `_` between them. The order is the one in which people read.
 */
#ifndef MUNINN_COMMON_FIELDS_H
#define MUNINN_COMMON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_kind {
	FIELD_NUMBER,
	FIELD_HEX,  /* a number that people know in hexadecimal: an identifier, a mask */
	FIELD_TEXT, /* valid during the call */
	FIELD_FLAG,
	FIELD_LIST, /* begins one: fields up to its FIELD_END belong to its rows */
	FIELD_ROW,  /* begins a row of the list */
	FIELD_END,
};

struct field {
	enum field_kind kind;
	bool is_detail; /* for programs: another field says the same to people */
	const char *name;
	uint64_t value;
	const char *text;
};

/* Who takes them, one after the other. */
struct fields {
	void (*take)(void *context, const struct field *field);
	void *context;
};

static inline void field_put(const struct fields *to, enum field_kind kind, const char *name,
			     uint64_t value, const char *text)
{
	const struct field field = { .kind = kind, .name = name, .value = value, .text = text };

	to->take(to->context, &field);
}

static inline void field_number(const struct fields *to, const char *name, uint64_t value)
{
	field_put(to, FIELD_NUMBER, name, value, NULL);
}

static inline void field_hex(const struct fields *to, const char *name, uint64_t value)
{
	field_put(to, FIELD_HEX, name, value, NULL);
}

static inline void field_text(const struct fields *to, const char *name, const char *text)
{
	field_put(to, FIELD_TEXT, name, 0, text);
}

static inline void field_flag(const struct fields *to, const char *name, bool value)
{
	field_put(to, FIELD_FLAG, name, value, NULL);
}

static inline void field_detail(const struct fields *to, enum field_kind kind, const char *name,
				uint64_t value)
{
	const struct field field = {
		.kind = kind, .is_detail = true, .name = name, .value = value
	};

	to->take(to->context, &field);
}

static inline void field_list(const struct fields *to, const char *name)
{
	field_put(to, FIELD_LIST, name, 0, NULL);
}

static inline void field_row(const struct fields *to)
{
	field_put(to, FIELD_ROW, NULL, 0, NULL);
}

static inline void field_end(const struct fields *to)
{
	field_put(to, FIELD_END, NULL, 0, NULL);
}

#endif
