/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands with further objects, and what they are about: for tests of extension capabilities. */
#ifndef MUNINN_TESTS_OSD_EXTENDED_H
#define MUNINN_TESTS_OSD_EXTENDED_H

#include "tests/osd/secured.h"

/* In P beside O: an object, and collections with O as their member. */
#define SECOND   (O + 1)
#define LINEAR   (O + 2)
#define TRACKING (O + 3)
/* Partitions: another one with an object of the same number; a snapshot and a clone of P. */
#define OTHER    (P + 1)
#define SNAPSHOT (P + 2)
#define CLONE    (P + 3)
#define NEW      (P + 9)

#define FIELD_CONTINUATION 48

/* A working key of OTHER. */
extern struct key_pair other_working;

/* cmocka set-up: secured_set_up with all of that; no partition demands a method. */
int extended_set_up(void **state);
#define with_scene(test) cmocka_unit_test_setup_teardown(test, extended_set_up, unit_tear_down)

/* A command that names a further object, and what it needs. */
struct use {
	uint16_t action;
	uint64_t partition, object;
	uint8_t type;     /* of what is addressed */
	uint16_t present; /* what the capability in the CDB has to permit */
	void (*fill)(struct call *call);
	/* The further object, and what its capability has to permit. */
	uint64_t further_partition, further_object;
	uint8_t further_type;
	uint16_t further_permissions;
};

extern const struct use uses[];
extern const size_t use_count;
/* The first of them: a copy of SECOND. Behind it all that are within P. */
#define USE_COPY      0
#define USES_WITHIN_P 5

/* The command with all permissions on what it addresses, and none on anything else. */
struct signed_call call_of_use(struct unit *unit, const struct use *use, uint8_t method);
/* Adds the extension capability for its further object. */
struct granted *extend(struct signed_call *call, const struct use *use);

/*
 * A copy of object O of OTHER into P; and the extension capability for that, by the key of OTHER.
 */
struct signed_call copy_of_other(struct unit *unit, uint8_t method);
void extend_by_other(struct signed_call *call);
/* Adds a copy source. */
void add_source(struct call *call, uint64_t partition, uint64_t object, bool attributes);

/*
 * 26/00, with a field pointer into Data-Out: to `field` of the CDB's capability in extension
 * capability 0.
 */
void expect_extension_field(struct unit *unit, const struct signed_call *call, uint16_t field);

#endif
