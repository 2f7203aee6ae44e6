/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which keys a command has put more than once in a segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/muninn/repeats.h"

enum { RECORDS = 60, PAGES = 100 };

static struct repeats repeats;

static struct record_key key_of(uint64_t identifier)
{
	return (struct record_key){ .partition = 1, .identifier = identifier };
}

/* Notes a page of records with the numbers first, first + 1, ... and keys with these identifiers.
 */
static void note(uint64_t first)
{
	uint8_t data[RECORDS * RECORD_HEADER_BYTES];
	const struct page_view page = { .data = data, .used = sizeof(data) };

	for (uint64_t n = 0; n < RECORDS; n++) {
		const struct record_header header = { .key = key_of(first + n),
						      .sequence = first + n };

		record_header_encode(&header, 0, NULL, data + n * RECORD_HEADER_BYTES);
	}
	repeats_note(&repeats, &page);
}

static void test_what_was_put_twice_is_told_and_little_else(void **state)
{
	uint32_t wrong = 0;

	(void)state;
	repeats_begin(&repeats);
	for (uint64_t n = 0; n < PAGES; n++)
		note(1 + n * RECORDS);
	for (uint64_t n = 0; n < PAGES; n += 10)
		note(1 + n * RECORDS);
	for (uint64_t n = 0; n < PAGES * RECORDS; n++) {
		const struct record_key key = key_of(1 + n);
		bool has_one = !repeats_may_have(&repeats, &key, 1 + n);

		if (n / RECORDS % 10 == 0)
			assert_false(has_one);
		else
			wrong += !has_one;
	}
	print_message("%u of %u seem to have been put twice\n", wrong, PAGES * RECORDS * 9 / 10);
	assert_true(wrong < PAGES * RECORDS / 50);
}

static void test_another_number_class_or_key_is_another_put(void **state)
{
	struct record_header header = { .key = key_of(7), .sequence = 9 };
	uint8_t data[4 * RECORD_HEADER_BYTES];
	const struct page_view page = { .data = data, .used = sizeof(data) };

	(void)state;
	repeats_begin(&repeats);
	record_header_encode(&header, 0, NULL, data);
	header.sequence++;
	record_header_encode(&header, 0, NULL, data + RECORD_HEADER_BYTES);
	header.key.class ++;
	record_header_encode(&header, 0, NULL, data + 2 * RECORD_HEADER_BYTES);
	header.key.piece++;
	record_header_encode(&header, 0, NULL, data + 3 * RECORD_HEADER_BYTES);
	repeats_note(&repeats, &page);
	assert_true(!repeats_may_have(&repeats, &header.key, 10));
	header.key = key_of(7);
	assert_true(!repeats_may_have(&repeats, &header.key, 9));
	assert_true(!repeats_may_have(&repeats, &header.key, 10));
	repeats_note(&repeats, &page);
	assert_false(!repeats_may_have(&repeats, &header.key, 9));
	repeats_begin(&repeats);
	assert_true(!repeats_may_have(&repeats, &header.key, 9));
}

static void test_with_a_lost_page_anything_may_have_been_put_twice(void **state)
{
	const struct record_key key = key_of(7);

	(void)state;
	repeats_begin(&repeats);
	repeats_note_lost(&repeats);
	assert_true(repeats_may_have(&repeats, &key, 9));
	repeats_begin(&repeats);
	assert_true(!repeats_may_have(&repeats, &key, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_put_twice_is_told_and_little_else),
		cmocka_unit_test(test_another_number_class_or_key_is_another_put),
		cmocka_unit_test(test_with_a_lost_page_anything_may_have_been_put_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
