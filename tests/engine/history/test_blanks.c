/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stretches in which the device has no moments: where they begin and end, how many are told apart,
 * how they are recorded.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/history/blanks.h"

/* A number in a slot. */
#define AT(slot, offset) ((uint64_t)(slot) << 16 | (offset))
#define LATE             AT(1000000, 0)

static uint64_t pass(const struct blanks *blanks, uint64_t bound)
{
	return blanks_pass(blanks, LATE, bound);
}

static void add(struct blanks *blanks, uint64_t from, uint64_t until)
{
	blanks_begin(blanks, from);
	blanks_end(blanks, until, 0);
}

static void test_one_reaches_from_its_slot_to_the_number_at_which_it_ends(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	assert_int_equal(blanks_behind(&blanks, LATE), 0);
	add(&blanks, AT(5, 77), AT(9, 33));
	assert_int_equal(pass(&blanks, AT(4, 0xffff)), AT(4, 0xffff));
	assert_int_equal(pass(&blanks, AT(5, 0)), AT(9, 33));
	assert_int_equal(pass(&blanks, AT(9, 32)), AT(9, 33));
	assert_int_equal(pass(&blanks, AT(9, 33)), AT(9, 33));
	assert_int_equal(blanks_behind(&blanks, LATE), AT(9, 33));
}

static void test_one_that_goes_on_reaches_to_the_present(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	blanks_begin(&blanks, AT(5, 77));
	/* Another one that begins changes nothing. */
	blanks_begin(&blanks, AT(7, 0));
	assert_int_equal(blanks_pass(&blanks, AT(8, 5), AT(4, 0xffff)), AT(4, 0xffff));
	assert_int_equal(blanks_pass(&blanks, AT(8, 5), AT(5, 0)), AT(8, 5));
	assert_int_equal(blanks_pass(&blanks, AT(8, 5), AT(8, 0xffff)), AT(8, 0xffff));
	assert_int_equal(blanks_behind(&blanks, AT(8, 5)), AT(8, 5));
	/* Nothing is behind it that is not committed. */
	assert_int_equal(blanks_behind(&blanks, AT(4, 5)), 0);
}

static void test_the_first_bound_of_all_is_in_none(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	add(&blanks, AT(0, 3), AT(2, 0));
	assert_int_equal(pass(&blanks, 0), 0);
	assert_int_equal(pass(&blanks, 1), AT(2, 0));
}

static void test_one_that_begins_in_the_slot_of_the_last_end_goes_on_with_it(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	add(&blanks, AT(5, 77), AT(9, 33));
	add(&blanks, AT(9, 60), AT(9, 61));
	assert_int_equal(blanks.count, 1);
	assert_int_equal(pass(&blanks, AT(5, 0)), AT(9, 61));
	add(&blanks, AT(10, 0), AT(11, 0));
	assert_int_equal(blanks.count, 2);
	assert_int_equal(pass(&blanks, AT(9, 0xffff)), AT(9, 0xffff));
}

static void test_ending_without_beginning_is_nothing(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	blanks_end(&blanks, AT(5, 0), 0);
	assert_int_equal(blanks.count, 0);
}

static void test_of_too_many_the_nearest_become_one(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	for (uint64_t n = 1; n <= BLANKS_MAX; n++)
		add(&blanks, AT(100 * n, 0), AT(100 * n + 10 + n, 0));
	assert_int_equal(blanks.count, BLANKS_MAX);
	/* Between the last two there is the least. */
	add(&blanks, AT(100 * BLANKS_MAX + 100, 0), AT(100 * BLANKS_MAX + 101, 0));
	assert_int_equal(blanks.count, BLANKS_MAX);
	assert_int_equal(pass(&blanks, AT(100 * BLANKS_MAX + 50, 0)),
			 AT(100 * BLANKS_MAX + 101, 0));
	for (uint64_t n = 1; n < BLANKS_MAX; n++) {
		assert_int_equal(pass(&blanks, AT(100 * n, 0)), AT(100 * n + 10 + n, 0));
		assert_int_equal(pass(&blanks, AT(100 * n + 90, 0)), AT(100 * n + 90, 0));
	}
	/* Then it is between the two before. */
	add(&blanks, AT(10000, 0), AT(10001, 0));
	assert_int_equal(blanks.count, BLANKS_MAX);
	assert_int_equal(pass(&blanks, AT(100 * (BLANKS_MAX - 1), 0)),
			 AT(100 * BLANKS_MAX + 101, 0));
	assert_int_equal(pass(&blanks, AT(9999, 0)), AT(9999, 0));
	assert_int_equal(pass(&blanks, AT(10000, 0)), AT(10001, 0));
}

/* Who makes many of them takes nothing from before the first. */
static void test_however_many_begin_what_was_before_them_stays(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	add(&blanks, AT(10, 0), AT(20, 0));
	for (uint64_t n = 0; n < 1000; n++)
		add(&blanks, AT(5000 + 2 * n, 0), AT(5001 + 2 * n, 0));
	assert_int_equal(pass(&blanks, AT(9, 0)), AT(9, 0));
	assert_int_equal(pass(&blanks, AT(20, 0)), AT(20, 0));
	assert_int_equal(pass(&blanks, AT(4999, 0)), AT(4999, 0));
	assert_int_equal(pass(&blanks, AT(7000, 0)), AT(7000, 0));
}

static void test_what_is_older_than_all_moments_makes_room(void **state)
{
	struct blanks blanks = { 0 };

	(void)state;
	for (uint64_t n = 1; n <= BLANKS_MAX; n++)
		add(&blanks, AT(100 * n, 0), AT(100 * n + 10, 0));
	blanks_begin(&blanks, AT(5000, 0));
	blanks_end(&blanks, AT(5001, 0), AT(250, 0));
	assert_int_equal(blanks.count, BLANKS_MAX - 1);
	assert_int_equal(blanks.list[0].from, AT(300, 0));
}

static void test_what_is_recorded_is_read_again(void **state)
{
	struct blanks blanks = { 0 }, found;
	uint8_t record[BLANKS_BYTES_MAX];
	uint32_t length;

	(void)state;
	assert_int_equal(blanks_encode(&blanks, record), BLANKS_HEAD_BYTES);
	assert_int_equal(blanks_decode(&found, record, BLANKS_HEAD_BYTES), 0);
	assert_memory_equal(&found, &blanks, sizeof(found));
	for (uint64_t n = 1; n <= BLANKS_MAX; n++)
		add(&blanks, AT(100 * n, 0), AT(100 * n + 10, 0));
	blanks_begin(&blanks, AT(5000, 0));
	length = blanks_encode(&blanks, record);
	assert_int_equal(length, BLANKS_BYTES_MAX);
	assert_int_equal(blanks_decode(&found, record, length), 0);
	assert_memory_equal(&found, &blanks, sizeof(found));
}

static void test_the_example_in_docs_is_what_is_recorded(void **state)
{
	static const uint8_t example[] = { 0, 0, 0, 0, 0,    0, 1, 0, 0, 0,
					   5, 0, 0, 0, 0x21, 0, 9, 0, 0, 0 };
	struct blanks blanks = { 0 };
	uint8_t record[BLANKS_BYTES_MAX];

	(void)state;
	add(&blanks, 0x50007, 0x90021);
	assert_int_equal(blanks_encode(&blanks, record), sizeof(example));
	assert_memory_equal(record, example, sizeof(example));
}

static void test_a_record_that_can_t_be_is_refused(void **state)
{
	/* Goes on since 0x300; one from 0x100 to 0x200. */
	static const uint8_t good[] = {
		0, 3, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0
	};
	uint8_t record[sizeof(good)];
	struct blanks found;

	(void)state;
	assert_int_equal(blanks_decode(&found, good, sizeof(good)), 0);
	assert_int_equal(found.since, 0x300);
	assert_int_equal(found.list[0].from, 0x100);
	assert_int_equal(found.list[0].until, 0x200);
	for (uint32_t length = 0; length < sizeof(good); length++)
		assert_int_equal(blanks_decode(&found, good, length), -EBADMSG);
	memcpy(record, good, sizeof(good));
	record[1] = 2; /* not behind the last */
	assert_int_equal(blanks_decode(&found, record, sizeof(record)), -EBADMSG);
	memcpy(record, good, sizeof(good));
	record[15] = 1; /* ends where it begins */
	assert_int_equal(blanks_decode(&found, record, sizeof(record)), -EBADMSG);
	memcpy(record, good, sizeof(good));
	record[7] = 1; /* too many */
	assert_int_equal(blanks_decode(&found, record, sizeof(record)), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_reaches_from_its_slot_to_the_number_at_which_it_ends),
		cmocka_unit_test(test_one_that_goes_on_reaches_to_the_present),
		cmocka_unit_test(test_the_first_bound_of_all_is_in_none),
		cmocka_unit_test(test_one_that_begins_in_the_slot_of_the_last_end_goes_on_with_it),
		cmocka_unit_test(test_ending_without_beginning_is_nothing),
		cmocka_unit_test(test_of_too_many_the_nearest_become_one),
		cmocka_unit_test(test_however_many_begin_what_was_before_them_stays),
		cmocka_unit_test(test_what_is_older_than_all_moments_makes_room),
		cmocka_unit_test(test_what_is_recorded_is_read_again),
		cmocka_unit_test(test_the_example_in_docs_is_what_is_recorded),
		cmocka_unit_test(test_a_record_that_can_t_be_is_refused),
	};

	return cmocka_run_group_tests_name("blanks", tests, NULL, NULL);
}
