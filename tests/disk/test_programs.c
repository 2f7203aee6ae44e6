/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What writing to blocks that are mapped costs, with all history kept: by the device's counters a
 * page program each, and a page read where a block is a part of a page. Nothing else: no onode, no
 * directory.
 */
#include "tests/disk/drive.h"

#include <stdio.h>

#include "common/bytes.h"

enum { PAGES = 6000, WRITES = 12000, BLOCKS_OF_PAGE = 8 };

static uint32_t below(uint64_t *random, uint32_t limit)
{
	uint64_t z = *random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)((z ^ z >> 31) % limit);
}

static struct drive *mapped_drive(void)
{
	struct drive *drive = drive_new(256, (uint64_t)PAGES * 4096, 512);

	for (uint32_t page = 0; page < PAGES; page += 100)
		drive_write(drive, page * BLOCKS_OF_PAGE, 100 * BLOCKS_OF_PAGE, 1);
	return drive;
}

static uint64_t records_put(struct drive *drive)
{
	struct engine_statistics statistics;

	engine_read_statistics(drive->engine, &statistics);
	return statistics.records_put;
}

struct cost {
	double programs, reads, records;
};

/* Of a write of `count` blocks at the beginning of any page, or at any of its blocks. */
static struct cost cost_of_writes(uint32_t count)
{
	struct drive *drive = mapped_drive();
	struct nand_counters before, after;
	uint64_t random = 1, records = records_put(drive);
	struct cost cost;

	nand_read_counters(drive->nand, &before);
	for (uint32_t n = 0; n < WRITES; n++) {
		uint32_t block = below(&random, PAGES) * BLOCKS_OF_PAGE;

		if (count < BLOCKS_OF_PAGE)
			block += below(&random, BLOCKS_OF_PAGE);
		drive_write(drive, block, count, n);
		drive->now += n % 4 == 0;
	}
	nand_read_counters(drive->nand, &after);
#define MORE(what) \
	((double)(after.by_cause[NAND_CAUSE_USER].what - before.by_cause[NAND_CAUSE_USER].what))
	cost = (struct cost){ .programs = MORE(pages_programmed) / WRITES,
			      .reads = MORE(pages_read) / WRITES,
			      .records = (double)(records_put(drive) - records) / WRITES };
#undef MORE
	print_message("a write of %u bytes: %.3f page programs, %.3f page reads, %.3f records\n",
		      count * 512, cost.programs, cost.reads, cost.records);
	drive_free(drive);
	return cost;
}

static void test_a_page_is_one_program(void **state)
{
	struct cost cost = cost_of_writes(BLOCKS_OF_PAGE);

	(void)state;
	assert_true(cost.programs <= 1.03);
	assert_true(cost.records <= 1.01);
	assert_true(cost.reads <= 0.01);
}

static void test_a_block_is_one_program_and_one_read(void **state)
{
	struct cost cost = cost_of_writes(1);

	(void)state;
	assert_true(cost.programs <= 1.03);
	assert_true(cost.records <= 1.01);
	assert_true(cost.reads <= 1.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_page_is_one_program),
		cmocka_unit_test(test_a_block_is_one_program_and_one_read),
	};

	return cmocka_run_group_tests_name("disk programs", tests, NULL, NULL);
}
