/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the osd target knows by itself of who may do what: so that a command which the target under
 * test executes without the right to it is noticed.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_PERMISSIONS_H
#define MUNINN_TESTS_FUZZ_OSD_PERMISSIONS_H

#include "tests/fuzz/osd_input.h"

/*
 * Permissions that a capability for the command cannot do without, at least; 0 when the command is
 * none that works on what is in the secured partition.
 */
uint16_t osd_permissions_of(const struct osd_input_command *input);

/*
 * Does the command stay in that range of a user object's bytes, or touch none? Length 0: all of
 * them may be touched.
 */
bool osd_permissions_allow_range(const struct osd_input_command *input, uint64_t start,
				 uint64_t length);

/* Can the command let others in: by setting attributes, keys, or what partitions there are? */
bool osd_permissions_change(const struct osd_input_command *input);

#endif
