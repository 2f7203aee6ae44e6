/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The functions that the table of attributes names. Private to page_table.c; see struct
 * osd_page_attribute.
 */
#ifndef MUNINN_OSD_PAGE_VALUES_H
#define MUNINN_OSD_PAGE_VALUES_H

#include "osd/page_table.h"

/* Information pages: what is the device's, the partition's, the object's own. */
osd_page_getter osd_page_get_root_information, osd_page_get_information, osd_page_get_duplicate;
osd_page_getter osd_page_get_layout, osd_page_get_clone_depth;
osd_page_setter osd_page_set_logical_length, osd_page_set_layout;
osd_page_checker osd_page_allows_layout;
/* Isolation: kept as somebody set it; all methods are alike. */
osd_page_getter osd_page_get_default_isolation;
osd_page_checker osd_page_allows_isolation;
/* Duplication: what the root supports, what partitions have by default. */
osd_page_getter osd_page_get_duplication, osd_page_get_default_duplication;
osd_page_checker osd_page_allows_duplication_method, osd_page_allows_duplication_time;
/* Damage that was met. */
osd_page_getter osd_page_get_error_recovery, osd_page_get_damaged_commands;
/* Command tracking: the command at work on the collection. */
osd_page_getter osd_page_get_active_command;
/* Timestamps. */
osd_page_getter osd_page_get_time;
osd_page_setter osd_page_set_time;
osd_page_checker osd_page_allows_bypass;
/* Policy/security. */
osd_page_getter osd_page_get_security;

#endif
