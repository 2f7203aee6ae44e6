/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A device that is large enough to count its faults. */
#ifndef MUNINN_TESTS_NAND_FAULT_SCENE_H
#define MUNINN_TESTS_NAND_FAULT_SCENE_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/nand/fixture.h"

#include "nand/faults.h"

/* 64 blocks of 64 pages of 4096 + 128 bytes: 1.38 * 10^8 bits. */
enum { BLOCKS = 64, PAGES = BLOCKS * 64, PAGE_BITS = (4096 + 128) * 8 };

static inline struct nand *open_large(void)
{
	struct nand_geometry geometry = small_geometry;
	struct nand *nand;

	geometry.pages_per_block = 64;
	geometry.blocks = BLOCKS;
	assert_int_equal(nand_open_memory(&geometry, 0, &nand, NULL), 0);
	nand_set_violation_policy(nand, NAND_VIOLATION_FAILS);
	log_capture();
	return nand;
}

static inline void set_faults(struct nand *nand, struct nand_faults faults)
{
	struct error_text error = { "" };

	if (nand_set_faults(nand, &faults, &error) < 0)
		fail_msg("%s", error.text);
}

static inline struct nand_faults faults_of(const char *text)
{
	struct error_text error = { "" };
	struct nand_faults faults;

	if (nand_faults_parse(text, &faults, &error) < 0)
		fail_msg("%s", error.text);
	return faults;
}

static inline struct nand_fault_counters counters_of(struct nand *nand)
{
	struct nand_fault_counters counters;

	nand_read_fault_counters(nand, &counters);
	return counters;
}

static inline bool is_bad(struct nand *nand, uint32_t block)
{
	struct nand_block_info info;

	assert_int_equal(nand_block_info(nand, block, &info), 0);
	return info.state == NAND_BLOCK_BAD;
}

static inline void assert_within_3_sigma(double found, double bits, double rate)
{
	double expected = bits * rate, sigma = sqrt(bits * rate * (1 - rate));

	if (fabs(found - expected) > 3 * sigma)
		fail_msg("%.0f of %.0f are wrong, expected are %.1f +- 3 * %.1f", found, bits,
			 expected, sigma);
}

#endif
