/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Signatures that no fuzzer finds by itself: with OSD_INPUT_SIGN a command gets the capability and
 * the check values that its security manager would give it.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_SIGN_H
#define MUNINN_TESTS_FUZZ_OSD_SIGN_H

#include "tests/fuzz/osd_unit.h"

/* What the unit is opened with. */
extern const uint8_t osd_sign_uuid[16];
void osd_sign_options(struct osd_options *options);

/* Sets the keys of root, first partition and its working key, and demands capability keys there. */
void osd_sign_set_keys(struct osd_fuzz_unit *unit);

/*
 * Signs with the method that byte 82 of the CDB chooses, if the command is whole and its Data-Out is
 * in the input; and the extension capabilities in it, for the IDs and of the type that they have. `serial` must not come
 * twice on one unit: the nonce is made of it. The capability has all permissions, unless byte 133, which is reserved,
 * is another than 0: then it lacks one that the command needs, or one of any. Returns what it lacks.
 *
 * With OSD_INPUT_FORGE and an odd fill byte a bit of the extension capabilities is turned before the rest is signed, as by
 * somebody who has a right to the addressed object alone.
 */
uint16_t osd_sign(struct osd_fuzz_unit *unit, struct osd_input_command *input, uint64_t nexus,
		  uint32_t serial);

/* Will the capability lack a permission? */
bool osd_sign_restricts(const struct osd_input_command *input);

/* Turns a bit of the capability or of its check value; not if one of an extension capability was turned. */
void osd_sign_forge(struct osd_input_command *input);

#endif
