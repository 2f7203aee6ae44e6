/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a session withdraws of what another one's command is allowed by, while that is under way: a
 * secured unit whose objects are members of collections, the commands on them, and the changes.
 */
#ifndef MUNINN_TESTS_OSD_WITHDRAWALS_H
#define MUNINN_TESTS_OSD_WITHDRAWALS_H

#include "tests/osd/stepped.h"

/*
 * Collections in P and OTHER: of all OBJECTS objects from LINEAR + 1 on; more than a batch, or a
 * turn of QUERY.
 */
#define OTHER    (P + 1)
#define LINEAR   UINT64_C(0x20000)
#define TRACKING UINT64_C(0x10001)
#define MATCHES  UINT64_C(0x10002)
enum { OBJECTS = 5000, BATCH = 64 };
#define PAGE 0x10000u
#define TAG  7

/* ---- the unit ---- */

/* A secured unit with `count` members in collections; tags are set, and P is closed. */
void members_begin(void **state, uint16_t count);
/* A partition with `count` objects, all of them members of LINEAR and of TRACKING. */
void members_fill(struct unit *unit, uint64_t partition, uint16_t count);
uint64_t members_of(struct unit *unit, uint64_t partition, uint64_t collection);

/* ---- commands, signed, with what all of the following can withdraw ---- */

struct signed_call members_call(struct unit *unit, uint16_t action, uint64_t object, uint8_t type);
/* A QUERY of all members of LINEAR, more than one turn of it. */
struct signed_call members_query(struct unit *unit, uint64_t matches);

/*
 * Lets the thread begin, and waits until it has ended all commands that are waiting, and then one
 * more.
 */
void members_let_go(struct unit *unit);
/* The status with which the last command on a tracking collection has ended. */
uint16_t members_ended_status(struct unit *unit, uint64_t collection);

/* ---- what the other session does ---- */

void withdraw_key(struct unit *unit, uint8_t version);
void withdraw_object_tag(struct unit *unit);
void withdraw_collection_tags(struct unit *unit);
void withdraw_openness(struct unit *unit);
void members_set_signed(struct unit *unit, uint64_t object, uint8_t type, uint32_t page,
			uint32_t number, const void *value, uint32_t length);

/*
 * What may be changed while a command is under way, and how the rest of it is refused: with a code,
 * or a field of the CDB.
 */
struct withdrawal {
	changing *change;
	bool is_field;
	uint16_t code;
};
enum { WITHDRAWALS = 4 };
void withdrawals_of(changing *tag_change, struct withdrawal list[WITHDRAWALS]);
void expect_withdrawn(struct unit *unit, const struct withdrawal *withdrawal);

#endif
