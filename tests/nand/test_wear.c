/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The wear histogram, and what an inspector sees of blocks, pages and holders of an image. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

#include "nand/inspect.h"
#include "nand/wear.h"

static void erase_times(struct nand *nand, uint32_t block, uint32_t times)
{
	while (times-- > 0)
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, block), 0);
}

/* ---- wear ---- */

static void test_a_new_device_has_no_wear(void **state)
{
	struct nand *nand = open_small();
	struct nand_wear wear;

	(void)state;
	nand_read_wear(nand, &wear);
	assert_int_equal(wear.blocks, 16);
	assert_int_equal(wear.erases, 0);
	assert_int_equal(wear.most, 0);
	assert_int_equal(wear.bucket_width, 1);
	assert_int_equal(wear.buckets[0], 16);
	assert_true(wear.mean == 0 && wear.deviation == 0);
	assert_int_equal(nand_close(nand), 0);
}

static void test_wear_is_counted_exactly(void **state)
{
	struct nand *nand = open_small();
	struct nand_wear wear;
	uint64_t blocks = 0;

	(void)state;
	for (uint32_t block = 0; block < 16; block++)
		erase_times(nand, block, 10 + block * 3); /* 10 to 55 */
	assert_int_equal(nand_mark_bad(nand, 4), 0);
	nand_read_wear(nand, &wear);
	assert_int_equal(wear.blocks, 16);
	assert_int_equal(wear.bad, 1);
	assert_int_equal(wear.erases, 16 * 10 + 3 * 120);
	assert_int_equal(wear.least, 10);
	assert_int_equal(wear.most, 55);
	assert_true(wear.mean == 32.5);
	/* Of n numbers 3 apart: 3 * sqrt((n^2 - 1) / 12). */
	assert_true(wear.deviation > 13.82 && wear.deviation < 13.84);
	assert_int_equal(wear.bucket_width, 45 / NAND_WEAR_BUCKETS + 1);
	for (int i = 0; i < NAND_WEAR_BUCKETS; i++) {
		assert_int_equal(wear.buckets[i], 1);
		blocks += wear.buckets[i];
	}
	assert_int_equal(blocks, 16);
	assert_int_equal(nand_close(nand), 0);
}

static void test_wear_stays_with_the_image_and_leaves_out_damaged_blocks(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	uint64_t table;
	struct nand_wear wear;

	erase_times(nand, 3, 5);
	erase_times(nand, 7, 9);
	table = nand->layout.table_offset;
	assert_int_equal(nand_close(nand), 0);
	file_flip(directory->image, table + 7 * 8, 0x10);
	assert_int_equal(nand_open_read_only(directory->image, &nand, NULL), 0);
	nand_read_wear(nand, &wear);
	assert_int_equal(wear.blocks, 15);
	assert_int_equal(wear.erases, 5);
	assert_int_equal(wear.most, 5);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- blocks ---- */

static struct nand *with_blocks_of_all_kinds(const struct test_directory *directory)
{
	struct nand *nand = create_image(directory);
	uint64_t table = nand->layout.table_offset;

	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	for (uint64_t page = 8; page < 13; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_mark_bad(nand, 2), 0);
	erase_times(nand, 4, 7);
	assert_int_equal(nand_close(nand), 0);
	file_flip(directory->image, table + 3 * 8, 0x01);
	assert_int_equal(nand_open_read_only(directory->image, &nand, NULL), 0);
	return nand;
}

static void test_each_block_looks_like_what_it_is(void **state)
{
	struct nand *nand = with_blocks_of_all_kinds(*state);
	static const enum nand_block_look looks[] = { NAND_LOOK_FULL, NAND_LOOK_PARTLY,
						      NAND_LOOK_BAD, NAND_LOOK_DAMAGED,
						      NAND_LOOK_ERASED };
	struct nand_summary summary;

	for (uint32_t block = 0; block < 5; block++)
		assert_int_equal(nand_look_at(nand, block, 1).look, looks[block]);
	assert_int_equal(nand_look_at(nand, 0, 1).fill_permille, 1000);
	assert_int_equal(nand_look_at(nand, 1, 1).fill_permille, 625);
	assert_int_equal(nand_look_at(nand, 4, 1).erase_count_most, 7);
	nand_summarize(nand, &summary);
	assert_int_equal(summary.blocks[NAND_LOOK_ERASED], 12);
	for (int look = NAND_LOOK_PARTLY; look < NAND_LOOKS; look++)
		assert_int_equal(summary.blocks[look], 1);
	assert_int_equal(summary.pages_programmed, 13);
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_cell_shows_the_worst_of_its_blocks(void **state)
{
	struct nand *nand = with_blocks_of_all_kinds(*state);

	assert_int_equal(nand_look_at(nand, 0, 2).look, NAND_LOOK_PARTLY);
	assert_int_equal(nand_look_at(nand, 0, 3).look, NAND_LOOK_BAD);
	assert_int_equal(nand_look_at(nand, 0, 16).look, NAND_LOOK_DAMAGED);
	assert_int_equal(nand_look_at(nand, 0, 16).fill_permille, 13 * 1000 / 128);
	assert_int_equal(nand_look_at(nand, 4, 12).look, NAND_LOOK_ERASED);
	assert_int_equal(nand_cell_blocks(nand_geometry(nand), 16), 1);
	assert_int_equal(nand_cell_blocks(nand_geometry(nand), 15), 2);
	assert_int_equal(nand_cell_blocks(nand_geometry(nand), 1), 16);
	assert_int_equal(nand_close(nand), 0);
}

/* A full block beside an erased one is neither. */
static void test_full_and_erased_together_are_partly_programmed(void **state)
{
	struct nand *nand = open_small();

	(void)state;
	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_look_at(nand, 0, 2).look, NAND_LOOK_PARTLY);
	assert_int_equal(nand_look_at(nand, 0, 2).fill_permille, 500);
	assert_int_equal(nand_close(nand), 0);
}

/* ---- pages ---- */

static void test_a_dump_tells_what_is_stored_and_whether_it_is_right(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	uint8_t data[4096], spare[128];
	struct nand_page_dump dump;
	uint64_t page_offset = nand_page_offset(&nand->layout, &nand->geometry, 1);

	erase_times(nand, 0, 3);
	assert_int_equal(program_filled(nand, 0, 1), 0);
	assert_int_equal(program_filled(nand, 1, 1), 0);
	fill_page(nand, 0, 1, data, spare);
	assert_int_equal(nand_close(nand), 0);
	file_flip(directory->image, page_offset + 77, 0x40);
	assert_int_equal(nand_open_read_only(directory->image, &nand, NULL), 0);

	assert_int_equal(nand_dump_page(nand, 0, &dump), 0);
	assert_int_equal(dump.verdict, 0);
	assert_true(dump.spare_intact);
	assert_int_equal(dump.data_crc, dump.stored_data_crc);
	assert_int_equal(dump.stored_erase_count, 3);
	assert_memory_equal(dump.data, data, sizeof(data));
	assert_memory_equal(dump.spare, spare, 128 - NAND_SPARE_RESERVED);
	nand_page_dump_free(&dump);

	assert_int_equal(nand_dump_page(nand, 1, &dump), 0);
	fill_page(nand, 1, 1, data, spare);
	assert_int_equal(dump.verdict, -EBADMSG);
	assert_true(dump.spare_intact && dump.data_crc != dump.stored_data_crc);
	assert_int_equal(dump.data[77], data[77] ^ 0x40);
	nand_page_dump_free(&dump);

	assert_int_equal(nand_dump_page(nand, 9, &dump), 0);
	assert_int_equal(dump.verdict, -ENODATA);
	assert_int_equal(dump.block, 1);
	assert_int_equal(dump.index, 1);
	nand_page_dump_free(&dump);

	assert_int_equal(nand_dump_page(nand, 128, &dump), -ERANGE);
	assert_int_equal(nand_close(nand), 0);
}

static void test_the_holder_of_an_image_is_named(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand = create_image(directory);
	long holder = nand_image_holder(directory->image);

	/* A host that does not tell says 0. */
	assert_true(holder == getpid() || holder == 0);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_image_holder(directory->image), 0);
	assert_int_equal(nand_open_read_only(directory->image, &nand, NULL), 0);
	assert_int_equal(nand_image_holder(directory->image), 0);
	assert_int_equal(nand_close(nand), 0);
	assert_int_equal(nand_image_holder("/nonexistent/image"), 0);
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_device_has_no_wear),
		cmocka_unit_test(test_wear_is_counted_exactly),
		IN_DIRECTORY(test_wear_stays_with_the_image_and_leaves_out_damaged_blocks),
		IN_DIRECTORY(test_each_block_looks_like_what_it_is),
		IN_DIRECTORY(test_a_cell_shows_the_worst_of_its_blocks),
		cmocka_unit_test(test_full_and_erased_together_are_partly_programmed),
		IN_DIRECTORY(test_a_dump_tells_what_is_stored_and_whether_it_is_right),
		IN_DIRECTORY(test_the_holder_of_an_image_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
