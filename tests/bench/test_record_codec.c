/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The codec of records: pages as the engine makes them come back from a few bytes; others are
 * declined or kept whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bench/record_codec.h"
#include "engine/muninn/format.h"

enum { PAGE_BYTES = 4096, SPARE_BYTES = 240 };

static const uint32_t page_bytes = PAGE_BYTES;

struct page {
	uint8_t data[PAGE_BYTES], spare[SPARE_BYTES];
	struct page_spare about;
};

static void begin(struct page *page)
{
	memset(page, 0, sizeof(*page));
	page->about = (struct page_spare){ .kind = PAGE_KIND_RECORDS, .serial = 77 };
}

static void add(struct page *page, const struct record_header *header)
{
	uint8_t *at = page->data + page->about.used;

	record_value_make(&header->key, header->sequence, at + RECORD_HEADER_BYTES, header->length);
	record_header_encode(header, page->about.serial, at + RECORD_HEADER_BYTES, at);
	page->about.used += RECORD_HEADER_BYTES + header->length;
}

static bool pack(struct page *page, uint8_t *packed, size_t capacity, size_t *bytes)
{
	struct nand_payload_codec codec = record_codec(&page_bytes);

	page_spare_encode(&page->about, page->spare);
	return codec.pack(codec.context, 0, page->data, page->spare, packed, capacity, bytes);
}

static bool unpack(const struct page *page, const uint8_t *packed, size_t bytes, uint8_t *data)
{
	struct nand_payload_codec codec = record_codec(&page_bytes);

	return codec.unpack(codec.context, 0, packed, bytes, page->spare, data);
}

/* Returns the packed length. */
static size_t assert_comes_back(struct page *page)
{
	uint8_t packed[2048], data[PAGE_BYTES];
	size_t bytes;

	assert_true(pack(page, packed, sizeof(packed), &bytes));
	memset(data, 0xEE, sizeof(data));
	assert_true(unpack(page, packed, bytes, data));
	assert_memory_equal(data, page->data, PAGE_BYTES);
	/* Nothing shorter passes for it, and nothing is read or written beyond the ends. */
	for (size_t shorter = 0; shorter < bytes; shorter++)
		assert_false(unpack(page, packed, shorter, data));
	return bytes;
}

static void test_a_page_of_records_takes_few_bytes(void **state)
{
	struct page page;

	(void)state;
	begin(&page);
	for (uint64_t i = 0; i < 4; i++)
		add(&page,
		    &(struct record_header){ .key = { .partition = 1, .identifier = random_mix(i) },
					     .epoch = 1000000,
					     .sequence = 1000000 + i * 100,
					     .length = 996 });
	assert_in_range(assert_comes_back(&page), 4 * 9, 60);
}

static void test_every_field_may_be_anything(void **state)
{
	struct random_state random = random_stream(5, 0);
	struct page page;

	(void)state;
	for (int round = 0; round < 500; round++) {
		begin(&page);
		while (page.about.used + 300 < PAGE_BYTES && page.about.used < 3000) {
			struct record_header header = {
				.key = { .partition = (uint16_t)random_below(&random, 3),
					 .identifier = random_next(&random) >>
						       random_below(&random, 64),
					 .piece = (uint32_t)random_next(&random) >>
						  random_below(&random, 32),
					 .class = (uint8_t)random_below(&random, RECORD_CLASSES) },
				.sequence = random_next(&random) >>
					    (16 + random_below(&random, 48)),
				.length = (uint16_t)random_below(&random, 200),
				.flags = (uint8_t)random_below(&random, 4),
			};

			header.epoch = header.sequence >> random_below(&random, 48);
			add(&page, &header);
		}
		assert_comes_back(&page);
	}
}

static void test_a_large_record_takes_one_byte(void **state)
{
	struct record_header header = {
		.key = { .partition = 3, .identifier = 99, .piece = 7 },
		.sequence = 12345,
		.length = PAGE_BYTES,
	};
	struct page page;

	(void)state;
	for (int shorter = 0; shorter < 2; shorter++) {
		begin(&page);
		header.length = (uint16_t)(PAGE_BYTES - shorter * 5);
		record_value_make(&header.key, header.sequence, page.data, header.length);
		page.about.large = true;
		page.about.used = header.length;
		record_header_encode(&header, page.about.serial, page.data,
				     page.about.large_header);
		assert_int_equal(assert_comes_back(&page), 1);
	}
}

static void test_an_empty_page_takes_one_byte(void **state)
{
	struct page page;

	(void)state;
	begin(&page);
	assert_int_equal(assert_comes_back(&page), 1);
}

/* The page's buffer is not cleared between segments. */
static void test_what_an_earlier_segment_left_behind_the_records_comes_back(void **state)
{
	struct page page;

	(void)state;
	for (uint32_t used = 0; used <= 4; used++) {
		begin(&page);
		for (uint64_t i = 0; i < 4; i++)
			add(&page, &(struct record_header){ .key = { .identifier = random_mix(i) },
							    .sequence = 900 + i,
							    .length = 996 });
		page.about.used = used * 1024;
		assert_in_range(assert_comes_back(&page), 1, 60);
	}
}

static void test_other_pages_are_declined_or_come_back_otherwise(void **state)
{
	struct page page;
	uint8_t packed[2048], data[PAGE_BYTES];
	size_t bytes;

	(void)state;
	begin(&page);
	page.about.kind = PAGE_KIND_GROUP;
	page.about.used = 4096;
	assert_false(pack(&page, packed, sizeof(packed), &bytes));
	begin(&page);
	add(&page,
	    &(struct record_header){ .key = { .identifier = 5 }, .sequence = 1, .length = 50 });
	page.data[60] ^= 1;
	assert_true(pack(&page, packed, sizeof(packed), &bytes));
	assert_true(unpack(&page, packed, bytes, data));
	assert_memory_not_equal(data, page.data, PAGE_BYTES);
	/* Too small a buffer. */
	for (size_t capacity = 0; capacity < bytes; capacity++)
		assert_false(pack(&page, packed, capacity, &bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_page_of_records_takes_few_bytes),
		cmocka_unit_test(test_every_field_may_be_anything),
		cmocka_unit_test(test_a_large_record_takes_one_byte),
		cmocka_unit_test(test_an_empty_page_takes_one_byte),
		cmocka_unit_test(test_what_an_earlier_segment_left_behind_the_records_comes_back),
		cmocka_unit_test(test_other_pages_are_declined_or_come_back_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
