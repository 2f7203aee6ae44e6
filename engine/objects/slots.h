/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How fast slots may be begun. There are 2^32 of them, and they end the device's life. So a device
 * may begin SLOTS_AT_ONCE whenever it likes, and besides them three in two seconds of device time:
 * whatever commands come, it runs for 68 years. Nothing is on record for it: the number of a slot
 * tells how many there were, those that a format or a recovery left out among them.
 *
 * Beyond that, what only likes a slot goes on in the present one, and what needs one ends with
 * -ETIME. A second later there is one again.
 */
#ifndef MUNINN_ENGINE_OBJECTS_SLOTS_H
#define MUNINN_ENGINE_OBJECTS_SLOTS_H

#include <stdint.h>

struct engine;

#define SLOTS_AT_ONCE        (UINT64_C(1) << 30)
#define SLOTS_IN_TWO_SECONDS 3

/* What a slot is for. Each leaves one to each of those before it. */
enum slot_use {
	SLOT_GO_BACK, /* rollbacks, formats, what is done on the host */
	SLOT_KEEP,    /* a moment that somebody wants: versions, views, clones */
	SLOT_PASS,    /* because time has passed */
};

/* How many may have been begun by a device time. */
uint64_t slots_allowed(uint64_t device_ms);

/* The number that the next slot begins with; 0: there are no more. */
uint64_t slots_next(const struct engine *engine);

/*
 * Whether the next slot may be begun. -EOVERFLOW: there are no more. -ETIME: not yet, which is
 * logged now and then.
 */
int slots_check(struct engine *engine, enum slot_use use);

/*
 * Makes all that is committed a moment: the next writing transaction begins a slot, unless the open
 * one has. -ETIME: not yet. -EOVERFLOW: there are no more slots, but numbers in the present one.
 * Then the moment before it is the last one.
 */
int slots_end_present(struct engine *engine);

#endif
