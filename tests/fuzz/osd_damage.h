/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Faults of the flash under the osd target: pages that no ECC corrects, and programs and erases
 * that fail. What is damaged by them is told as such, and is never given as data; lifted,
 * everything is there again, so that it can be looked at.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_DAMAGE_H
#define MUNINN_TESTS_FUZZ_OSD_DAMAGE_H

#include "tests/fuzz/osd_unit.h"

/*
 * `choice` 0: none any more. Otherwise its bits 6 and 7 are how many pages are unreadable, bit 5
 * whether a program fails, bit 4 whether an erase does, and the others which: the same choice gives
 * the same faults.
 */
void osd_damage_choose(struct osd_fuzz_unit *unit, uint8_t choice);

/* As if there were no faults; and as before that. */
void osd_damage_lift(struct osd_fuzz_unit *unit);
void osd_damage_restore(struct osd_fuzz_unit *unit);

/*
 * Reads the objects of the scene with and without the faults: what can be read with them is what is
 * there, and what is not there with them is not there without.
 */
void osd_damage_check(struct osd_fuzz_unit *unit);

#endif
