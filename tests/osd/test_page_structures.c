/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Page format, byte by byte: which standard pages have a structure, and where each of their
 * attributes is in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"

#define COLLECT (O + 50)

struct field {
	uint16_t offset, bytes;
	uint32_t number;
};

/* A page, and what the standard's headers say of its structure: 0 bytes behind its head = none. */
struct page {
	uint32_t page;
	uint32_t bytes;
	struct field fields[8];
};

static const struct page pages[] = {
	{ OSD_PAGES_ROOT + OSD_PAGE_DIRECTORY, 0, { { 0 } } },
	{ OSD_ROOT_INFORMATION, 0, { { 0 } } },
	{ OSD_ROOT_QUOTAS,
	  0x24,
	  { { 8, 8, 0x1 },
	    { 16, 8, 0x10001 },
	    { 24, 8, 0x10002 },
	    { 32, 4, 0x10081 },
	    { 36, 8, 0x20002 } } },
	{ OSD_ROOT_TIMESTAMPS, 0x0D, { { 8, 6, 0x2 }, { 14, 6, 0x3 }, { 20, 1, 0xFFFFFFFE } } },
	{ OSD_PAGES_ROOT + 4, 0, { { 0 } } },
	{ OSD_ROOT_ERROR_RECOVERY,
	  0x1C,
	  { { 8, 8, 0x6 },
	    { 16, 1, 0x1 },
	    { 17, 1, 0x2 },
	    { 18, 6, 0x3 },
	    { 24, 6, 0x4 },
	    { 30, 6, 0x5 } } },
	{ OSD_PAGES_PARTITION + OSD_PAGE_DIRECTORY, 0, { { 0 } } },
	{ OSD_PARTITION_INFORMATION, 0, { { 0 } } },
	{ OSD_PARTITION_QUOTAS,
	  0x1C,
	  { { 8, 8, 0x1 }, { 16, 8, 0x10001 }, { 24, 8, 0x10002 }, { 32, 4, 0x10081 } } },
	{ OSD_PARTITION_TIMESTAMPS,
	  0x1F,
	  { { 8, 6, 0x1 },
	    { 14, 6, 0x2 },
	    { 20, 6, 0x3 },
	    { 26, 6, 0x4 },
	    { 32, 6, 0x5 },
	    { 38, 1, 0xFFFFFFFE } } },
	{ OSD_PARTITION_ATTRIBUTES_ACCESS, 0, { { 0 } } },
	{ OSD_PARTITION_ERROR_RECOVERY,
	  0x1C,
	  { { 8, 8, 0x6 },
	    { 16, 1, 0x1 },
	    { 17, 1, 0x2 },
	    { 18, 6, 0x3 },
	    { 24, 6, 0x4 },
	    { 30, 6, 0x5 } } },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_DIRECTORY, 0, { { 0 } } },
	{ OSD_COLLECTION_INFORMATION, 0, { { 0 } } },
	{ OSD_PAGES_COLLECTION + OSD_PAGE_QUOTAS, 0, { { 0 } } },
	{ OSD_COLLECTION_TIMESTAMPS,
	  0x1E,
	  { { 8, 6, 0x1 }, { 14, 6, 0x2 }, { 20, 6, 0x3 }, { 26, 6, 0x4 }, { 32, 6, 0x5 } } },
	{ OSD_COLLECTION_TRACKING, 0, { { 0 } } },
	{ OSD_COLLECTION_SECURITY, 0x04, { { 8, 4, 0x40000001 } } },
	{ OSD_COLLECTION_ERROR_RECOVERY, 0x0E, { { 8, 1, 0x1 }, { 10, 6, 0x3 }, { 16, 6, 0x4 } } },
	{ OSD_USER_OBJECT_INFORMATION, 0, { { 0 } } },
	{ OSD_USER_OBJECT_QUOTAS, 0x08, { { 8, 8, 0x1 } } },
	{ OSD_USER_OBJECT_TIMESTAMPS,
	  0x1E,
	  { { 8, 6, 0x1 }, { 14, 6, 0x2 }, { 20, 6, 0x3 }, { 26, 6, 0x4 }, { 32, 6, 0x5 } } },
	{ OSD_USER_OBJECT_SECURITY, 0x04, { { 8, 4, 0x40000001 } } },
	{ OSD_USER_OBJECT_ERROR_RECOVERY, 0x0E, { { 8, 1, 0x1 }, { 10, 6, 0x3 }, { 16, 6, 0x4 } } },
	{ OSD_USER_OBJECT_ATOMICS, 0, { { 0 } } },
	{ 0x10000, 0, { { 0 } } },
	{ 0xF0000000, 0, { { 0 } } },
};

#define PAGES (sizeof(pages) / sizeof(pages[0]))

static void find(uint32_t page, uint64_t *partition, uint64_t *object)
{
	*partition = page < OSD_PAGES_ROOT || page >= OSD_PAGES_RESERVED ? P : 0;
	*object = page < OSD_PAGES_PARTITION || page >= OSD_PAGES_RESERVED ? O : 0;
	if (page >= OSD_PAGES_COLLECTION && page < OSD_PAGES_ROOT)
		*object = COLLECT;
}

/* Gets a page in page format with room for `room` bytes. */
static void get_page(struct unit *unit, uint32_t page, uint32_t room)
{
	uint64_t partition, object;
	struct call call;

	find(page, &partition, &object);
	call = call_of(OSD_GET_ATTRIBUTES, partition, object);
	call.cdb.format = OSD_ATTRIBUTES_PAGE;
	call.cdb.get_page = page;
	call.cdb.retrieved.length = call.data_in_capacity = room;
	call_run(unit, &call);
}

static void expect_page(struct unit *unit, uint32_t page, uint32_t bytes)
{
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 8 + bytes);
	assert_int_equal(get_be32(unit->data_in), page);
	assert_int_equal(get_be32(unit->data_in + 4), bytes);
}

/* A value of its own for each attribute that can be set; times that differ. */
static void fill(struct unit *unit, const struct page *page)
{
	for (size_t i = 0; i < 8 && page->fields[i].bytes != 0; i++) {
		const struct field *field = &page->fields[i];
		uint64_t partition, object;
		uint8_t value[8] = { 0 };
		struct call call;

		find(page->page, &partition, &object);
		value[field->bytes - 1] = field->number == OSD_TIME_BYPASS ? 0 : (uint8_t)(i + 100);
		call = call_of(OSD_SET_ATTRIBUTES, partition, object);
		call.cdb.timestamps_control = OSD_TIMESTAMPS_BYPASS;
		call_set(&call, page->page, field->number, value, field->bytes);
		call_run(unit, &call);
		if (unit->command.status != SCSI_STATUS_GOOD)
			expect_sense(unit, SENSE_ILLEGAL_REQUEST,
				     SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	}
}

static int set_up(void **state)
{
	struct call call;

	unit_set_up_with_object(state);
	call = call_of(OSD_CREATE_COLLECTION, P, COLLECT);
	call_run(*state, &call);
	expect_good((struct unit *)*state);
	return 0;
}

static void test_each_page_has_its_attributes_where_the_standard_has_them(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < PAGES; i++)
		if (pages[i].bytes != 0)
			fill(unit, &pages[i]);
	for (size_t i = 0; i < PAGES; i++) {
		uint8_t expected[64] = { 0 }, data[64];
		uint64_t partition, object;

		if (pages[i].bytes == 0)
			continue;
		find(pages[i].page, &partition, &object);
		/* Gets change times of accesses: the clock stands still. */
		get_page(unit, pages[i].page, 64);
		expect_page(unit, pages[i].page, pages[i].bytes);
		memcpy(data, unit->data_in, 8 + pages[i].bytes);
		put_be32(expected, pages[i].page);
		put_be32(expected + 4, pages[i].bytes);
		for (size_t j = 0; j < 8 && pages[i].fields[j].bytes != 0; j++) {
			const struct field *field = &pages[i].fields[j];
			bool accessed = field->bytes == 6 && field->number == 0x2;
			uint8_t value[8] = { 0 };
			uint32_t length = unit_get(unit, partition, object, pages[i].page,
						   field->number, value, sizeof(value));

			if (accessed)
				memcpy(value, data + field->offset, 6);
			else
				assert_true(length == 0 || length == field->bytes);
			memcpy(expected + field->offset, value, field->bytes);
		}
		assert_memory_equal(data, expected, 8 + pages[i].bytes);
	}
}

static void test_pages_without_a_structure_are_refused(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < PAGES; i++) {
		if (pages[i].bytes != 0)
			continue;
		get_page(unit, pages[i].page, 64);
		/* Page 0 can't be named. */
		expect_field(unit, 52);
	}
}

static void test_each_structure_is_cut_at_its_allocation(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < PAGES; i++) {
		for (uint32_t room = 1; pages[i].bytes != 0 && room <= 8 + pages[i].bytes; room++) {
			get_page(unit, pages[i].page, room);
			expect_good(unit);
			assert_int_equal(unit->command.data_in_length, room);
		}
	}
}

static void test_the_collections_page_lists_what_an_object_is_in(void **state)
{
	struct unit *unit = *state;
	uint8_t id[8];

	get_page(unit, OSD_USER_OBJECT_COLLECTIONS, 256);
	expect_page(unit, OSD_USER_OBJECT_COLLECTIONS, 0);
	for (uint64_t i = 1; i <= 5; i++) {
		struct call call = call_of(OSD_CREATE_COLLECTION, P, COLLECT + i);

		call_run(unit, &call);
		expect_good(unit);
		put_be64(id, COLLECT + i);
		/* Numbers in another order than IDs. */
		unit_set(unit, P, O, OSD_USER_OBJECT_COLLECTIONS, (uint32_t)(0x1000 - 7 * i), id,
			 8);
	}
	unit_set(unit, P, O, 0x10000, 1, "behind", 6);
	get_page(unit, OSD_USER_OBJECT_COLLECTIONS, 256);
	expect_page(unit, OSD_USER_OBJECT_COLLECTIONS, 40);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(get_be64(unit->data_in + 8 + 8 * (5 - i)), COLLECT + i);
	get_page(unit, OSD_USER_OBJECT_COLLECTIONS, 21);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 21);
	assert_int_equal(get_be32(unit->data_in + 4), 40);
}

/* ---- policy/security, with keys ---- */

static void expect_shown(struct unit *unit, uint64_t partition, uint32_t page, uint32_t number,
			 const uint8_t *at, uint32_t bytes)
{
	uint8_t value[8] = { 0 };

	assert_int_equal(unit_get(unit, partition, 0, page, number, value, sizeof(value)), bytes);
	assert_memory_equal(at, value, bytes);
}

static void test_the_root_s_policy_has_the_structure_of_linux_s_header(void **state)
{
	bool second = unit_version == OSD_2;
	struct unit *unit = *state;
	uint8_t page[80];

	get_page(unit, OSD_ROOT_SECURITY, sizeof(page));
	expect_page(unit, OSD_ROOT_SECURITY, second ? 0x48 : 0x45);
	memcpy(page, unit->data_in, sizeof(page));
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_DEFAULT_METHOD, page + 8, 1);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD, page + 9,
		     1);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_SUPPORTED_METHODS, page + 10, 2);
	/* The master key is the first one, whose identifier is zero; the root key was set. */
	assert_int_equal(page[12], 0x03);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_OLDEST_NONCE, page + 13, 6);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_NEWEST_NONCE, page + 19, 6);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_ADJUSTABLE_CLOCK, page + 25, 6);
	assert_memory_equal(page + 31, "\0\0\0\0\0\0\0", 7);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_ROOT_KEY_IDENTIFIER, page + 38, 7);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_ALGORITHMS, page + 45, 1);
	assert_int_equal(page[46], 0);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS, page + 61, 1);
	expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_DH_GROUPS + 1, page + 62, 1);
	assert_int_equal(page[63], 0);
	if (second)
		expect_shown(unit, 0, OSD_ROOT_SECURITY, OSD_SECURITY_BOOT_EPOCH, page + 78, 2);
}

static void test_a_partition_s_policy_has_the_structure_of_both_headers(void **state)
{
	struct unit *unit = *state;
	uint8_t page[158];

	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_FROZEN_KEYS, "\x80\x01", 2);
	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, "\1\2\3\4", 4);
	unit_set(unit, P, 0, OSD_PARTITION_SECURITY, OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG,
		 "\5\6\7\x8", 4);
	get_page(unit, OSD_PARTITION_SECURITY, sizeof(page));
	expect_page(unit, OSD_PARTITION_SECURITY, 0x96);
	memcpy(page, unit->data_in, sizeof(page));
	assert_memory_equal(page + 8, "\0\0\0\0", 4);
	expect_shown(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_OLDEST_NONCE, page + 12, 6);
	expect_shown(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_NEWEST_NONCE, page + 18, 6);
	expect_shown(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_NONCE_LIST_DEPTH, page + 24, 2);
	assert_memory_equal(page + 26, "\x80\x01\1\2\3\4\5\6\7\x8", 10);
	/* The partition key, and of the working keys number KEY_VERSION = 5. */
	assert_memory_equal(page + 36, "\x01\x20\x00", 3);
	expect_shown(unit, P, OSD_PARTITION_SECURITY, OSD_SECURITY_PARTITION_KEY_IDENTIFIER,
		     page + 39, 7);
	for (uint32_t i = 0; i < 16; i++) {
		const uint8_t *at = page + 46 + 7 * (size_t)i;

		if (i == KEY_VERSION)
			expect_shown(unit, P, OSD_PARTITION_SECURITY,
				     OSD_SECURITY_WORKING_KEY_IDENTIFIERS + i, at, 7);
		else
			assert_memory_equal(at, "\0\0\0\0\0\0\0", 7);
	}
}

#define with_pages(test) cmocka_unit_test_setup_teardown(test, set_up, unit_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_pages(test_each_page_has_its_attributes_where_the_standard_has_them),
		with_pages(test_pages_without_a_structure_are_refused),
		with_pages(test_each_structure_is_cut_at_its_allocation),
		with_pages(test_the_collections_page_lists_what_an_object_is_in),
		with_keys_in_both(test_the_root_s_policy_has_the_structure_of_linux_s_header),
		with_keys_in_both(test_a_partition_s_policy_has_the_structure_of_both_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
