/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The table of the standard's attributes, in order of page and number. Private to pages.c.
 *
 * An entry with a getter is computed. One without is stored like any other attribute, but its
 * length (and sometimes its value) is checked.
 */
#ifndef MUNINN_OSD_PAGE_TABLE_H
#define MUNINN_OSD_PAGE_TABLE_H

#include "osd/execute.h"

/* Longest computed value. */
#define OSD_COMPUTED_BYTES_MAX 64

struct osd_page_attribute;

/* Returns the length of the value, 0 = not defined. */
typedef uint32_t osd_page_getter(const struct osd_request *request,
				 const struct osd_subject *subject,
				 const struct osd_page_attribute *attribute,
				 uint8_t value[OSD_COMPUTED_BYTES_MAX]);
/* 0 or the engine's error. -EINVAL: the attribute can't be set now. */
typedef int osd_page_setter(struct osd_request *request, const struct osd_subject *subject,
			    const struct osd_page_attribute *attribute, const uint8_t *value);
typedef bool osd_page_checker(const struct osd_request *request, const uint8_t *value);

struct osd_page_attribute {
	uint32_t page;
	uint32_t number;
	uint16_t length; /* 0 = any */
	bool settable;
	osd_page_getter *get;
	osd_page_setter *set;     /* NULL: stored */
	osd_page_checker *allows; /* NULL: any value of the right length */
};

extern const struct osd_page_attribute osd_page_table[];
extern const size_t osd_page_table_length;

/* Index of the first entry at or behind (page, number); the table's length if there is none. */
size_t osd_page_table_position(uint32_t page, uint32_t number);
/* NULL: the table does not have it. */
const struct osd_page_attribute *osd_page_table_find(uint32_t page, uint32_t number);

#endif
