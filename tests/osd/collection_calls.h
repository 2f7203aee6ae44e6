/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the tests of collections do again and again. */
#ifndef MUNINN_TESTS_OSD_COLLECTION_CALLS_H
#define MUNINN_TESTS_OSD_COLLECTION_CALLS_H

#include "tests/osd/unit.h"

/* Objects M .. M + MEMBERS - 1 are in the linear collection C and in the tracking collection T. */
#define M       (O + 0x100)
#define MEMBERS 10
#define C       (O + 0x1000)
#define T       (O + 0x1001)

/*
 * A page of user objects, and number, for tests to set and query: object M + i has the 8-byte
 * number i under it.
 */
#define TEST_PAGE   0x10001u
#define TEST_NUMBER 7u

/* cmocka set-up: as unit_set_up_with_object, and the collections with their members. */
int unit_set_up_with_members(void **state);
#define with_members(test)                                                  \
	{                                                                   \
#test, test, unit_set_up_with_members, unit_tear_down, NULL \
	}

/* Sets or, with collection 0, removes a membership; must succeed. */
void unit_join(struct unit *unit, uint64_t object, uint32_t number, uint64_t collection);

/* The members that LIST COLLECTION shows, in order; at most `capacity`. */
size_t unit_members(struct unit *unit, uint64_t partition, uint64_t collection, uint64_t *ids,
		    size_t capacity);

/* The members are exactly M + n for the set bits n. */
void assert_members(struct unit *unit, uint64_t collection, unsigned mask);

/* Attributes of the command tracking page. */
struct tracked {
	unsigned percent, active, ended;
	uint64_t members, processed, newer, missing;
	size_t sense_length;
};
/* Waits until no command works on the collection any more. */
void unit_wait_ended(struct unit *unit, uint64_t collection);
struct tracked unit_tracked(struct unit *unit, uint64_t collection);

#endif
