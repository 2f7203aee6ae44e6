/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a flash in memory held at one moment, to be put back: much cheaper than formatting a new
 * one, and the next sequence cannot tell it from a new one.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_FLASH_H
#define MUNINN_TESTS_FUZZ_OSD_FLASH_H

#include "nand/nand.h"

struct osd_flash_state;

/*
 * Pages, block words, NVRAM and counters of a flash in memory that nobody uses meanwhile. Never
 * NULL; never freed.
 */
struct osd_flash_state *osd_flash_remember(struct nand *nand);

/*
 * The same flash is as it was. Looks at all block words, and copies the blocks that are others
 * since.
 */
void osd_flash_restore(const struct osd_flash_state *state);

#endif
