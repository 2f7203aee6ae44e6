/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Signatures that no fuzzer finds by itself: with OSD_INPUT_SIGN a command gets the capability and
 * the check values that its security manager would give it.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_SIGN_H
#define MUNINN_TESTS_FUZZ_OSD_SIGN_H

#include "tests/fuzz/osd_unit.h"

/*
 * Sets keys and lists of allowed attributes of root and first partition, and demands capability
 * keys there.
 */
void osd_sign_secure(struct osd_fuzz_unit *unit);

/* What is not allowed to who holds the capability of a command. */
struct osd_sign_limits {
	uint16_t lacking; /* permissions */
	unsigned access;  /* number of the list of allowed attributes (osd_access.h); 0: it is not
			     bound to one */
	uint64_t range_start, range_length; /* bytes of the object; length 0: all */
	bool former_key;                    /* it is signed with a master key that was replaced */
};

/*
 * Signs with the method that byte 82 of the CDB chooses, if the command is whole and its Data-Out
 * is in the input; and the extension capabilities in it, for the IDs and of the type that they
 * have. `serial` must not come twice on one unit: the nonce is made of it. The capability has all
 * permissions, unless byte 133, which is reserved, is another than 0: then it lacks one that the
 * command needs, or one of any. Byte 132, likewise, says to which list of allowed attributes it is
 * bound, and byte 131 to which bytes.
 *
 * With OSD_INPUT_FORGE and an odd fill byte a bit of the extension capabilities is turned before
 * the rest is signed, as by somebody who has a right to the addressed object alone; and what needs
 * the master key is signed with the former one.
 */
struct osd_sign_limits osd_sign(struct osd_fuzz_unit *unit, struct osd_input_command *input,
				uint64_t nexus, uint32_t serial);

/* Will the capability lack a permission, or be bound to a list? */
bool osd_sign_restricts(const struct osd_input_command *input);

/*
 * Turns a bit of the capability or of its check value; not if one of an extension capability was
 * turned.
 */
void osd_sign_forge(struct osd_input_command *input);

#endif
