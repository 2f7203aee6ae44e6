/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lists of allowed attributes of the scene SECURED, and what the osd target knows by itself of what
 * they allow: so that a command which gets or sets another one is noticed.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_ACCESS_H
#define MUNINN_TESTS_FUZZ_OSD_ACCESS_H

#include "tests/fuzz/osd_input.h"

/* Lists 1 to OSD_ACCESS_LISTS; one more number stands for a list that there is not. */
#define OSD_ACCESS_LISTS      2
#define OSD_ACCESS_LIST_BYTES 16

/* The list as it is stored. */
void osd_access_list(unsigned number, uint8_t list[OSD_ACCESS_LIST_BYTES]);

/*
 * May all attributes that the command sets and gets be set and got by who is bound to list
 * `number`?
 */
bool osd_access_allows(unsigned number, const struct osd_input_command *input);

#endif
