/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Facts (common/fields.h) as JSON, and such JSON as lines and tables for people. */
#ifndef MUNINN_CLIENT_CTL_FIELDS_H
#define MUNINN_CLIENT_CTL_FIELDS_H

#include <jansson.h>
#include <stdbool.h>

#include "common/fields.h"

/* Puts facts into an object: lists are arrays of objects, hexadecimal numbers strings "0x…". */
struct ctl_fields {
	json_t *object;
	bool with_details;  /* those for programs, too */
	bool failed;        /* no memory, or a text is no UTF-8 */
	json_t *list, *row; /* those that are being filled */
};

/* Where facts go that are to be in `to`. */
struct fields ctl_fields_into(struct ctl_fields *to);

/*
 * Prints an object: lines of a name and a value, and for each array a table below its name. Lines
 * have at most CTL_COLUMNS characters, unless a table has no text in its last column to be broken.
 */
#define CTL_COLUMNS 100
void ctl_fields_print(const json_t *object);

#endif
