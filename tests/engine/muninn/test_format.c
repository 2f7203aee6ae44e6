/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The bytes of docs/format.md, the filter mathematics, and what opening says of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>

#include "common/crc32c.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/header.h"
#include "engine/muninn/index/bloom.h"
#include "engine/muninn/index/ribbon/group_format.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/store.h"
#include "engine/open.h"
#include "tests/engine/small_flash.h"

static void test_a_record_header_has_the_documented_bytes(void **state)
{
	const struct record_header header = {
		.key = { .partition = 0x0102,
			 .identifier = UINT64_C(0x1112131415161718),
			 .piece = 0x21222324,
			 .class = RECORD_CLASS_HISTORY },
		.sequence = UINT64_C(0x313233343536),
		.epoch = UINT64_C(0x313233340000),
		.length = 5,
		.flags = RECORD_ABSORB,
	};
	const uint8_t documented[RECORD_HEADER_BYTES] = {
		0x02, 0x01, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0xa6, 0x66, 0x24, 0x23,
		0x22, 0x21, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x05, 0x40, 0x0b, 0xc9, 0x29, 0x93,
	};
	struct record_header decoded;
	uint8_t bytes[RECORD_HEADER_BYTES];

	(void)state;
	record_header_encode(&header, 7, "hello", bytes);
	for (int i = 0; i < RECORD_HEADER_BYTES; i++)
		if (bytes[i] != documented[i])
			print_error("byte %d is %02x\n", i, bytes[i]);
	assert_memory_equal(bytes, documented, sizeof(documented));
	assert_true(record_is_intact(bytes, 7, "hello"));
	assert_false(record_is_intact(bytes, 7, "hellp"));
	assert_false(record_is_intact(bytes, 8, "hello"));
	record_header_decode(bytes, &decoded);
	assert_int_equal(decoded.key.partition, header.key.partition);
	assert_int_equal(decoded.key.identifier, header.key.identifier);
	assert_int_equal(decoded.key.piece, header.key.piece);
	assert_int_equal(decoded.sequence, header.sequence);
	assert_int_equal(decoded.key.class, header.key.class);
	assert_int_equal(decoded.epoch, header.epoch);
	assert_int_equal(decoded.length, header.length);
	assert_int_equal(decoded.flags, header.flags);
	assert_true(record_has_key(bytes, &header.key));
	for (int i = 0; i < RECORD_HEADER_BYTES; i++) {
		bytes[i] ^= 0x10;
		assert_false(record_is_intact(bytes, 7,
					      "hello\0padding that a longer length may take in"));
		bytes[i] ^= 0x10;
	}
}

/* As it is stored, of a record with this number. */
static uint64_t stored_epoch(uint64_t sequence, uint64_t epoch)
{
	const struct record_header header = { .sequence = sequence, .epoch = epoch };
	uint8_t bytes[RECORD_HEADER_BYTES];
	struct record_header decoded;

	record_header_encode(&header, 1, NULL, bytes);
	record_header_decode(bytes, &decoded);
	return decoded.epoch;
}

static void test_an_epoch_is_stored_as_it_is_or_as_a_later_one(void **state)
{
	const uint64_t slot = UINT64_C(0x123456780000);

	(void)state;
	assert_int_equal(stored_epoch(1, RECORD_EPOCH_ENDLESS), RECORD_EPOCH_ENDLESS);
	assert_int_equal(stored_epoch(RECORD_NEWEST, RECORD_EPOCH_ENDLESS), RECORD_EPOCH_ENDLESS);
	/* Slots begin with a multiple of the step: they are told exactly to nearly their end. */
	for (uint64_t sequence = slot; sequence < slot + 65520; sequence++)
		assert_int_equal(stored_epoch(sequence, slot), slot);
	for (uint64_t sequence = 1; sequence < 3000; sequence++)
		for (uint64_t epoch = 1; epoch <= sequence; epoch++) {
			uint64_t stored = stored_epoch(sequence, epoch);

			/* Or it absorbs nothing, when no step begins in the epoch. */
			assert_true(stored >= epoch);
			if (stored > sequence)
				assert_true(sequence / RECORD_REACH_STEP ==
					    (epoch - 1) / RECORD_REACH_STEP);
			else
				assert_true(stored < epoch + RECORD_REACH_STEP);
		}
	/* One that is too long is cut off; it never comes out as one of long ago. */
	for (int bit = 16; bit < 47; bit++) {
		uint64_t sequence = slot + (UINT64_C(1) << bit);

		assert_in_range(stored_epoch(sequence, slot), sequence - 65536, sequence);
		assert_in_range(stored_epoch(sequence, 1), sequence - 65536, sequence);
	}
}

static void test_a_spare_area_says_which_bytes_belong_to_records_of_the_pages_beside(void **state)
{
	const struct page_spare spare = { .kind = PAGE_KIND_RECORDS,
					  .row = 5,
					  .used = 4096,
					  .serial = 9,
					  .begin = 0x0102,
					  .beyond = 0x0304 };
	const uint8_t documented[PAGE_SPARE_BYTES] = { 1, 4, 5, 0, 0, 0x10, 0, 0, 9, 0,
						       0, 0, 0, 0, 0, 0,    2, 1, 4, 3 };
	uint8_t bytes[PAGE_SPARE_BYTES];
	struct page_spare decoded;

	(void)state;
	page_spare_encode(&spare, bytes);
	assert_memory_equal(bytes, documented, sizeof(documented));
	assert_true(page_spare_decode(bytes, 4096, &decoded));
	assert_int_equal(decoded.begin, spare.begin);
	assert_int_equal(decoded.beyond, spare.beyond);
	/* One that runs on fills its page, and ends in the next one; nothing begins behind the end.
	 */
	put_le32(bytes + 4, 4095);
	assert_false(page_spare_decode(bytes, 4096, &decoded));
	put_le16(bytes + 18, 0);
	assert_true(page_spare_decode(bytes, 4096, &decoded));
	put_le32(bytes + 4, 0x0101);
	assert_false(page_spare_decode(bytes, 4096, &decoded));
	page_spare_encode(&spare, bytes);
	put_le16(bytes + 18, 4096);
	assert_false(page_spare_decode(bytes, 4096, &decoded));
	/* Large records and images have pages for themselves. */
	page_spare_encode(&spare, bytes);
	bytes[1] |= 1;
	assert_false(page_spare_decode(bytes, 4096, &decoded));
	page_spare_encode(&spare, bytes);
	bytes[0] = PAGE_KIND_GROUP;
	assert_false(page_spare_decode(bytes, 4096, &decoded));
}

static void test_a_page_s_spare_area_has_the_documented_bytes(void **state)
{
	struct page_spare spare = {
		.kind = PAGE_KIND_RECORDS,
		.large = true,
		.unfinished = true,
		.row = 0x0201,
		.used = 4096,
		.serial = UINT64_C(0x0102030405060708),
	};
	uint8_t bytes[PAGE_SPARE_BYTES];
	const uint8_t documented[16] = { 1, 3, 1, 2, 0, 0x10, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1 };
	struct page_spare decoded;

	(void)state;
	memset(spare.large_header, 0xA5, sizeof(spare.large_header));
	page_spare_encode(&spare, bytes);
	assert_memory_equal(bytes, documented, sizeof(documented));
	assert_memory_equal(bytes + 16, spare.large_header, RECORD_HEADER_BYTES);
	memset(&decoded, 0xFF, sizeof(decoded));
	assert_true(page_spare_decode(bytes, 4096, &decoded));
	assert_int_equal(decoded.kind, PAGE_KIND_RECORDS);
	assert_true(decoded.large && decoded.unfinished);
	assert_int_equal(decoded.row, spare.row);
	assert_int_equal(decoded.used, 4096);
	assert_int_equal(decoded.serial, spare.serial);
	assert_false(page_spare_decode(bytes, 2048, &decoded));
	assert_int_equal(decoded.begin + decoded.beyond, 0);
	bytes[0] = 7;
	assert_false(page_spare_decode(bytes, 4096, &decoded));
}

static void test_a_page_of_one_large_record_is_walked_once_whatever_it_says(void **state)
{
	static const uint32_t used[] = { 0, 1, 99, 100, 512 };
	struct record_header header = { .length = 100 };
	uint8_t large[RECORD_HEADER_BYTES], data[512] = { 0 };
	struct page_record record;

	(void)state;
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
		for (header.length = 0; header.length <= 100; header.length += 100) {
			struct page_view page = { .data = data,
						  .used = used[i],
						  .large_header = large };
			uint32_t offset = 0, records = 0;

			record_header_encode(&header, 0, data, large);
			while (page_next(&page, &offset, &record))
				assert_true(++records <= 1);
			/* One that runs over the end is damage. */
			assert_int_equal(records, used[i] > 0 && header.length <= used[i]);
			assert_int_equal(offset<used[i], header.length> used[i] && used[i] > 0);
		}
	}
}

static void test_a_page_of_a_root_has_the_documented_spare_area(void **state)
{
	struct page_spare spare = { .kind = PAGE_KIND_ROOT, .used = 512, .serial = 9 };
	const uint8_t documented[24] = { 3, 0, 0, 0, 0, 2, 0, 0, 9, 0, 0, 0,
					 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0 };
	uint8_t bytes[PAGE_SPARE_BYTES];
	struct page_spare decoded;

	(void)state;
	spare.part = 1;
	spare.parts = 4;
	page_spare_encode(&spare, bytes);
	assert_memory_equal(bytes, documented, sizeof(documented));
	memset(&decoded, 0xFF, sizeof(decoded));
	assert_true(page_spare_decode(bytes, 512, &decoded));
	assert_int_equal(decoded.part, 1);
	assert_int_equal(decoded.parts, 4);
}

enum { GROUP_BYTES = ROOT_GROUP_ENTRY_AT + 32 };

static void test_a_list_of_changes_has_the_documented_bytes(void **state)
{
	const struct root_header header = {
		.magic = LIST_MAGIC,
		.bytes = ROOT_HEADER_BYTES + ROOT_KILL_BYTES + GROUP_BYTES,
		.count = 1,
		.groups = 1,
		.serial = 0x12,
		.base = 0x11,
		.committed = 0x020000,
		.sealed = 0x01ffff,
		.next_serial = UINT64_C(0x100000007),
		.aborted_count = 2,
		.void_before = 0x010000,
	};
	const struct root_kill kill = {
		.segment = 0x01020304, .row = 0x0506, .member = 63, .group = 7, .serial = 0x99
	};
	const uint8_t documented[ROOT_HEADER_BYTES + ROOT_KILL_BYTES + GROUP_BYTES] = {
		0x4d, 0x55, 0x4e, 0x4b, 0x49, 0x4c, 0x4c, 0x31, 0x09, 0x00, 0x00, 0x00, 0x98, 0x00,
		0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x12, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x07, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x53, 0x40, 0x94, 0xfa, 0x04, 0x03, 0x02, 0x01, 0x06, 0x05, 0x3f, 0x00, 0x07, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x99, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x9a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06, 0x05, 0x00, 0x00, 0x08, 0x00,
		0x00, 0x00, 0x00, 0x30, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x05, 0x03, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00,
	};
	const struct muninn_geometry geometry = { .root_entry_bytes = 32 };
	uint8_t bytes[sizeof(documented)];
	struct root_header found;
	struct root_kill found_kill;
	uint8_t *group = bytes + root_list_bytes(&geometry, 1, 0);

	(void)state;
	root_header_encode(&header, bytes);
	root_kill_encode(&kill, bytes + ROOT_HEADER_BYTES);
	assert_ptr_equal(root_list_group(&geometry, bytes, 1, 0), group);
	assert_int_equal(root_list_bytes(&geometry, 1, 1), sizeof(bytes));
	put_le64(group + ROOT_GROUP_SERIAL_AT, 0x9a);
	group += ROOT_GROUP_ENTRY_AT;
	put_le32(group + DIRECTORY_ROW_AT, 0x0506);
	put_le32(group + DIRECTORY_GROUP_AT, 8);
	put_le32(group + DIRECTORY_BYTES_AT, 0x3000);
	put_le32(group + DIRECTORY_FIRST_PAGE_AT, 5);
	put_le64(group + DIRECTORY_LIVE_AT, 0xffffff);
	put_le32(group + DIRECTORY_SEGMENTS_AT, 0x01020305);
	put_le32(group + DIRECTORY_SEGMENTS_AT + 4, 0);
	root_seal(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != documented[i])
			print_error("byte %zu is %02x\n", i, bytes[i]);
	assert_memory_equal(bytes, documented, sizeof(documented));
	assert_true(root_header_decode(bytes, sizeof(bytes), &found));
	assert_int_equal(found.magic, header.magic);
	assert_int_equal(found.bytes, header.bytes);
	assert_int_equal(found.count, header.count);
	assert_int_equal(found.groups, header.groups);
	assert_int_equal(found.serial, header.serial);
	assert_int_equal(found.base, header.base);
	assert_int_equal(found.committed, header.committed);
	assert_int_equal(found.sealed, header.sealed);
	assert_int_equal(found.next_serial, header.next_serial);
	assert_int_equal(found.aborted_count, header.aborted_count);
	root_kill_decode(bytes + ROOT_HEADER_BYTES, &found_kill);
	assert_int_equal(found_kill.segment, kill.segment);
	assert_int_equal(found_kill.row, kill.row);
	assert_int_equal(found_kill.member, kill.member);
	assert_int_equal(found_kill.group, kill.group);
	assert_int_equal(found_kill.serial, kill.serial);
	assert_false(root_header_decode(bytes, sizeof(bytes) - 1, &found));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 1;
		assert_false(root_header_decode(bytes, sizeof(bytes), &found));
		bytes[i] ^= 1;
	}
}

static void test_the_static_header_has_the_documented_bytes(void **state)
{
	const struct muninn_geometry geometry = {
		.page_bytes = 4096,
		.segment_pages = 256,
		.hashed_rows = 128,
		.record_bytes = 1024,
		.over_provision_permille = 100,
		.block_pages = 64,
		.blocks = 0x040000,
		.index = INDEX_BLOOM,
		.bloom = { .fpr_millionths = 500,
			   .fpr_factor_permille = 1010,
			   .filters = 8,
			   .paged_filters = 7,
			   .even_filters = true,
			   .hot_rows = BLOOM_HOT_ROWS_SPREAD },
		.parity = { .losses = 1 },
	};
	const uint8_t uuid[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
	const uint8_t documented[NVRAM_HEADER_CRC_AT + 4] = {
		'M', 'U', 'N', 'I', 'N', 'N', '1', 0,   9,  0,  0,    0,  0x80, 0,    0,    0,    0,
		1,   0,   0,   0,   4,   0,   0,   100, 0,  0,  0,    0,  0x10, 0,    0,    64,   0,
		0,   0,   0,   0,   4,   0,   1,   0,   1,  0,  0xf4, 1,  0,    0,    0xf2, 3,    0,
		0,   8,   7,   1,   1,   0,   0,   0,   0,  0,  0,    0,  0,    0,    1,    2,    3,
		4,   5,   6,   7,   8,   9,   10,  11,  12, 13, 14,   15, 0x7f, 0x07, 0xbc, 0x2c,
	};
	uint8_t bytes[sizeof(documented)];
	struct muninn_options options = { 0 };

	(void)state;
	header_write(bytes, &geometry, uuid);
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != documented[i])
			print_error("byte %zu is %02x\n", i, bytes[i]);
	assert_memory_equal(bytes, documented, sizeof(documented));
	assert_int_equal(index_get_part(INDEX_BLOOM, bytes + NVRAM_INDEX_PART_AT, &options, NULL),
			 0);
	assert_int_equal(options.bloom.fpr_millionths, 500);
	assert_int_equal(options.bloom.fpr_factor_permille, 1010);
	assert_int_equal(options.bloom.filters, 8);
	assert_int_equal(options.bloom.paged_filters, 7);
	assert_true(options.bloom.even_filters);
	assert_int_equal(options.bloom.hot_rows, BLOOM_HOT_ROWS_SPREAD);
}

static void test_a_group_s_members_have_the_documented_bytes(void **state)
{
	const uint8_t documented[] = { 0x02, 0x01, 0, 0, 0x03, 0x01, 0, 0 };
	uint8_t entry[32 + DIRECTORY_MEMBERS_BYTES] = { 0 };
	uint8_t image[TABLE_HEADER_BYTES + GROUP_SEGMENTS * COLUMN_BYTES] = { 0 };
	const struct muninn_store store = { .geometry = { .root_entry_bytes = 32,
							  .index = INDEX_BLOOM } };
	uint32_t members[GROUP_SEGMENTS];

	(void)state;
	put_le32(entry + DIRECTORY_ROW_AT, 5);
	put_le32(entry + DIRECTORY_GROUP_AT, 7);
	for (uint32_t n = 0; n < GROUP_SEGMENTS; n++)
		put_le32(image + index_image_member_at(&store.geometry, n), 0x0102 + n);
	directory_put_members(&store, entry, image, UINT64_MAX);
	assert_memory_equal(entry + 32, documented, sizeof(documented));
	assert_int_equal(get_le32(entry + 32 + DIRECTORY_MEMBERS_CRC), 0x5d4339ae);
	assert_true(directory_members(&store, entry, members));
	for (uint32_t n = 0; n < GROUP_SEGMENTS; n++)
		assert_int_equal(members[n], 0x0102 + n);
	for (uint32_t bit = 0; bit < 8 * (32 + DIRECTORY_MEMBERS_CRC + 4); bit += 37) {
		bool matters = bit / 8 < DIRECTORY_BYTES_AT || bit / 8 >= 32;

		entry[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(directory_members(&store, entry, members), !matters);
		entry[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Measured against equation 1 - (1 - (1 - 1/m)^(kn))^k of each filter. */
static void test_filters_have_the_false_positive_rate_that_they_are_made_for(void **state)
{
	const struct nand_geometry nand = nand_geometry_default(UINT64_C(1) << 30);
	const struct engine_options options = { .muninn.index = INDEX_BLOOM,
						.muninn.bloom.fpr_millionths = 10000 };
	struct muninn_geometry geometry;
	struct filter_geometry filters;
	struct error_text error;
	enum { PROBES = 400000 };
	uint64_t *set;

	(void)state;
	assert_int_equal(
		muninn_geometry_choose(&nand, &options.records, &options.muninn, &geometry, &error),
		0);
	bloom_filter_geometry(&geometry, geometry.bloom.tables_expected, &filters);
	set = calloc(1, align_up(filters.bits_total, 64) / 8);
	assert_non_null(set);
	for (uint32_t filter = 0; filter < geometry.bloom.filters; filter++) {
		double keys = geometry.bloom.keys_nominal[filter], m = filters.bits[filter],
		       k = filters.hashes[filter];
		double expected = pow(1 - pow(1 - 1 / m, k * keys), k);
		uint32_t hits = 0;

		for (uint32_t key = 0; key < geometry.bloom.keys_nominal[filter]; key++) {
			struct key_hash hash = { .key = hash_mix(key) };

			filter_add(set, &filters, filter, &hash);
			assert_true(filter_test(set, &filters, filter, &hash));
		}
		for (uint32_t probe = 0; probe < PROBES; probe++) {
			struct key_hash hash = { .key = hash_mix(UINT64_C(1) << 40 | probe) };

			hits += filter_test(set, &filters, filter, &hash);
		}
		/*
		 * The number of set bits varies with the keys chosen, the more so the smaller the
		 * filter.
		 */
		double sigma = sqrt(PROBES * expected) + PROBES * expected * k / sqrt(m);

		print_message("filter %u: %.0f keys, rate %.5f, expected %.5f\n", filter, keys,
			      hits / (double)PROBES, expected);
		assert_true(fabs(hits - PROBES * expected) < 3 * sigma);
	}
	free(set);
}

/* A factor above 1 spends memory on newer tables, one below 1 on older ones; no table outgrows the
 * image that was planned. */
static void test_the_factor_says_which_tables_get_the_memory(void **state)
{
	static const uint32_t factors[] = { 1100, 1000, BLOOM_FACTOR_MIN };
	const struct nand_geometry nand = nand_geometry_default(UINT64_C(1) << 30);

	(void)state;
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
		const struct engine_options options = {
			.muninn.rows = 1,
			.muninn.index = INDEX_BLOOM,
			.muninn.bloom.fpr_factor_permille = factors[i],
		};
		struct filter_geometry oldest, newest, largest;
		struct muninn_geometry geometry;
		struct error_text error;

		assert_int_equal(muninn_geometry_choose(&nand, &options.records, &options.muninn,
							&geometry, &error),
				 0);
		assert_true(geometry.bloom.tables_expected > 4);
		bloom_filter_geometry(&geometry, 0, &oldest);
		bloom_filter_geometry(&geometry, geometry.bloom.tables_expected, &newest);
		bloom_largest_filters(&geometry, &largest);
		if (factors[i] > 1000)
			assert_true(oldest.bits_total < newest.bits_total);
		else if (factors[i] == 1000)
			assert_int_equal(oldest.bits_total, newest.bits_total);
		else
			assert_true(oldest.bits_total > newest.bits_total);
		assert_int_equal(largest.bits_total, oldest.bits_total > newest.bits_total
							     ? oldest.bits_total
							     : newest.bits_total);
	}
}

static void test_filters_take_the_memory_of_equal_rates_and_waste_fewer_reads(void **state)
{
	const struct nand_geometry nand = nand_geometry_default(UINT64_C(64) << 30);
	const struct engine_options options = { .muninn.index = INDEX_BLOOM };
	struct muninn_geometry geometry;
	struct filter_geometry filters;
	struct error_text error;
	double equal_bits = 0, rates = 0;

	(void)state;
	assert_int_equal(
		muninn_geometry_choose(&nand, &options.records, &options.muninn, &geometry, &error),
		0);
	assert_int_equal(geometry.hashed_rows, 128);
	bloom_filter_geometry(&geometry, geometry.bloom.tables_expected, &filters);
	for (uint32_t filter = 0; filter < geometry.bloom.filters; filter++) {
		double keys = geometry.bloom.keys_nominal[filter], k = filters.hashes[filter];

		equal_bits += keys * -log(0.0005) / (M_LN2 * M_LN2);
		rates += pow(1 - exp(-k * keys / filters.bits[filter]), k);
	}
	assert_true(filters.bits_total < equal_bits * 1.02);
	assert_true(rates < geometry.bloom.filters * 0.0005 / 2);
}

static void test_rows_grow_with_the_device(void **state)
{
	static const struct {
		uint64_t gibibytes;
		uint32_t rows;
	} cases[] = { { 1, 8 },     { 15, 64 },    { 16, 128 },    { 64, 128 },   { 127, 128 },
		      { 128, 256 }, { 512, 1024 }, { 1024, 2048 }, { 8192, 4096 } };

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		const struct nand_geometry nand = nand_geometry_default(cases[n].gibibytes << 30);
		const struct engine_options options = { .muninn.index = INDEX_RIBBON };
		struct muninn_geometry geometry;
		struct error_text error;

		assert_int_equal(muninn_geometry_choose(&nand, &options.records, &options.muninn,
							&geometry, &error),
				 0);
		assert_int_equal(geometry.hashed_rows, cases[n].rows);
	}
}

static void test_sums_and_slots_have_the_documented_bytes(void **state)
{
	const uint8_t documented[36] = {
		0x8e, 0x71, 0xf9, 0x54, 0x8d, 0xfa, 0xda, 0x88, 0x7f, 0xb7, 0xda, 0x68,
		0x01, 0x08, 0x69, 0x09, 0x2c, 0x01, 0,    0,    0xcc, 0,    0xb3, 0xc8,
		0x06, 0,    0xf9, 0xff, 0x2c, 1,    0x07, 0,    0,    0,    0,    0,
	};
	uint8_t bytes[sizeof(documented)] = { 0 };

	(void)state;
	/* The committed number 5 alone, while it becomes 6. */
	sum_set(bytes, sum_word(STATE_COMMITTED_AT, 5));
	sum_begin(bytes, sum_word(STATE_COMMITTED_AT, 5) ^ sum_word(STATE_COMMITTED_AT, 6));
	/* Two records, behind each other, in a slot. */
	put_le32(bytes + 16, 300);
	put_le32(bytes + 20, slot_fold(slot_fold(0, 0x01020304), 0x05060708));
	put_le32(bytes + 24, buffer_row_word(5 + 1));
	put_le64(bytes + 28, slot_stamp(300, 7));
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != documented[i])
			print_error("byte %zu is %02x\n", i, bytes[i]);
	assert_memory_equal(bytes, documented, sizeof(documented));
	assert_true(sum_fits(bytes, sum_word(STATE_COMMITTED_AT, 5)));
	assert_true(sum_fits(bytes, sum_word(STATE_COMMITTED_AT, 6)));
	assert_false(sum_fits(bytes, sum_word(STATE_COMMITTED_AT, 7)));
	assert_false(sum_is_settled(bytes));
	sum_end(bytes);
	assert_true(sum_is_settled(bytes));
	assert_false(sum_fits(bytes, sum_word(STATE_COMMITTED_AT, 5)));
}

/* Aborts a transaction that has sealed segments, so that its number is noted. */
static void abort_much(struct record_store *store)
{
	uint8_t value[100] = { 0 };

	store->operations->begin(store, 0);
	for (uint32_t i = 0; i < 300; i++) {
		struct record_key key = { .partition = 1, .identifier = 0x20000 + i };

		assert_int_equal(
			store->operations->put(store, &key, 1, 0, value, sizeof(value), false), 0);
	}
	store->operations->abort(store);
}

static struct nand *small_device(struct record_store **store, uint32_t puts)
{
	const struct nand_geometry nand_shape = SMALL_FLASH(2000);
	const struct engine_options options = { .muninn.rows = 1,
						.muninn.index = INDEX_BLOOM,
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 128 };
	struct error_text error = { "" };
	struct nand *nand;
	uint64_t nvram;
	uint8_t value[100] = { 0 };

	assert_int_equal(engine_nvram_bytes(&nand_shape, &options, &nvram, &error), 0);
	assert_int_equal(nand_open_memory(&nand_shape, nvram, &nand, &error), 0);
	assert_int_equal(engine_format(nand, &options, &error), 0);
	assert_int_equal(engine_open_records(nand, &options, store, &error), 0);
	abort_much(*store);
	for (uint32_t i = 0; i < puts; i++) {
		struct record_key key = { .partition = 1, .identifier = 0x10000 + i };

		(*store)->operations->begin(*store, 0);
		assert_int_equal(
			(*store)->operations->put(*store, &key, 1, 0, value, sizeof(value), false),
			0);
		(*store)->operations->commit(*store);
	}
	return nand;
}

/* Opens and expects this result and these words in the message. */
static void expect_open(struct nand *nand, int expected, const char *words)
{
	struct error_text error = { "" };
	struct record_store *store = NULL;
	int result = engine_open_records(nand, &(struct engine_options){ 0 }, &store, &error);

	assert_int_equal(result, expected);
	if (result == 0)
		store->operations->close(store, false);
	else if (!strstr(error.text, words))
		fail_msg("message is: %s", error.text);
}

static void test_opening_damaged_nvram_says_what_is_wrong(void **state)
{
	struct record_store *store;
	struct nand *nand = small_device(&store, 3000);
	uint8_t *nvram = nand_nvram(nand, NULL);
	const struct muninn_geometry geometry = ((struct muninn_store *)(void *)store)->geometry;
	uint64_t slot_headers_at = geometry.buffers_at + geometry.slot_headers_at;
	struct record_statistics statistics = { 0 };

	(void)state;
	store->operations->statistics(store, &statistics);
	assert_true(statistics.tables > 0);
	store->operations->close(store, false);

	struct {
		uint64_t at;
		uint8_t flip;
		int result;
		const char *words;
	} damages[] = {
		{ NVRAM_MAGIC_AT, 1, -EINVAL, "not formatted" },
		{ NVRAM_ROWS_AT, 1, -EINVAL, "checksum" },
		{ NVRAM_UUID_AT, 1, -EINVAL, "checksum" },
		{ NVRAM_DIRECTORY_AT + DIRECTORY_ROW_AT, 2, -EINVAL, "the table directory" },
		{ NVRAM_DIRECTORY_AT + DIRECTORY_SEGMENTS_AT + 3, 0x80, -EINVAL,
		  "(memory).nvram: bytes 40960 to 81919, which hold the table directory, "
		  "contradict byte 82032" },
		{ STATE_SEALED_AT + 5, 1, -EINVAL, "the state words" },
		{ NVRAM_MEMO_AT + 3, 4, -EINVAL, "the memo" },
		{ NVRAM_ABORTED_AT, 1, -EINVAL, "aborted sequence numbers" },
		{ NVRAM_ABORTED_AT + 8, 1, -EINVAL, "aborted sequence numbers" },
		{ geometry.sums_at + SUMS_PAIRS_AT + SUM_ABORTED * SUM_PAIR_BYTES, 1, 0, "" },
		{ geometry.buffers_at + BUFFER_SERIAL_AT, 1, -EINVAL, "headers of buffer 0" },
		{ geometry.buffers_at + BUFFER_ROW_AT, 1, -EINVAL, "headers of buffer 0" },
		{ slot_headers_at + SLOT_STATE_AT, 4, -EINVAL, "headers of buffer 0" },
		{ slot_headers_at + SLOT_SERIAL_AT, 1, -EINVAL, "headers of buffer 0" },
		{ geometry.buffers_at + geometry.slots_at + 100, 1, -EINVAL, "records of row 0" },
		{ geometry.groups_at + TABLE_MAGIC_AT, 1, -EINVAL, "growing group of row 0" },
		{ geometry.groups_at + TABLE_INDEX_AT, 4, -EINVAL, "growing group of row 0" },
		{ geometry.groups_at + TABLE_LIVE_AT, 1, -EINVAL, "growing group of row 0" },
		{ geometry.groups_at + TABLE_HEADER_BYTES + COLUMN_SEGMENT_AT, 1, -EINVAL,
		  "growing group of row 0" },
		{ geometry.groups_at + table_bits_offset() + 80, 1, -EINVAL,
		  "growing group of row 0" },
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		nvram[damages[i].at] ^= damages[i].flip;
		expect_open(nand, damages[i].result, damages[i].words);
		nvram[damages[i].at] ^= damages[i].flip;
		expect_open(nand, 0, "");
	}
	/* Later and earlier versions of the format, with a right checksum. */
	put_le32(nvram + NVRAM_VERSION_AT, MUNINN_FORMAT_VERSION + 1);
	put_le32(nvram + NVRAM_HEADER_CRC_AT, crc32c(0, nvram, NVRAM_HEADER_CRC_AT));
	expect_open(nand, -EINVAL, "format 10, this program knows 9");
	put_le32(nvram + NVRAM_VERSION_AT, 8);
	put_le32(nvram + NVRAM_HEADER_CRC_AT, crc32c(0, nvram, NVRAM_HEADER_CRC_AT));
	expect_open(nand, -EINVAL, "format 8, this program knows 9");
	/* An index that is not built in. */
	put_le32(nvram + NVRAM_VERSION_AT, MUNINN_FORMAT_VERSION);
	put_le16(nvram + NVRAM_INDEX_AT, 9);
	put_le32(nvram + NVRAM_HEADER_CRC_AT, crc32c(0, nvram, NVRAM_HEADER_CRC_AT));
	expect_open(nand, -EINVAL, "index 9, which this program does not know");
	/* An index of another version. */
	put_le16(nvram + NVRAM_INDEX_AT, INDEX_RIBBON);
	put_le32(nvram + NVRAM_INDEX_PART_AT, RIBBON_VERSION + 1);
	put_le32(nvram + NVRAM_HEADER_CRC_AT, crc32c(0, nvram, NVRAM_HEADER_CRC_AT));
	expect_open(nand, -EINVAL,
		    "version 7 of the ribbon index, this program knows versions 3 to 6");
	put_le32(nvram + NVRAM_INDEX_PART_AT, RIBBON_VERSION_OLDEST - 1);
	put_le32(nvram + NVRAM_HEADER_CRC_AT, crc32c(0, nvram, NVRAM_HEADER_CRC_AT));
	expect_open(nand, -EINVAL, "version 2 of the ribbon index, this program knows");
	assert_int_equal(nand_close(nand), 0);
}

/* Otherwise the ring would go on elsewhere, over the last root. */
static void test_the_place_of_the_last_root_is_found_again_when_nvram_has_a_wrong_one(void **state)
{
	struct record_store *store;
	struct nand *nand = small_device(&store, 3000);
	uint8_t *word = (uint8_t *)nand_nvram(nand, NULL) + STATE_ROOT_SEGMENT_AT;
	uint32_t segments = ((struct muninn_store *)(void *)store)->geometry.root_segments;
	uint64_t right;

	(void)state;
	assert_int_equal(store->operations->close(store, true), 0);
	right = get_le64(word);
	assert_true(segments > 1 && right < segments);
	for (uint64_t wrong = 0; wrong <= segments; wrong++) {
		put_le64(word, wrong);
		expect_open(nand, 0, "");
		assert_int_equal(get_le64(word), right);
	}
	assert_int_equal(nand_close(nand), 0);
}

#define BLOOM(...)                                                           \
	{                                                                    \
		.muninn.index = INDEX_BLOOM, .muninn.bloom = { __VA_ARGS__ } \
	}

static void test_impossible_shapes_are_refused_with_a_sentence(void **state)
{
	const struct nand_geometry good = nand_geometry_default(UINT64_C(64) << 20);
	struct nand_geometry large_pages = good, small_spare = good,
			     tiny = nand_geometry_default(1 << 20);
	const struct {
		const struct nand_geometry *nand;
		struct engine_options options;
		const char *words;
	} cases[] = {
		{ &good, { .muninn.rows = 3 }, "rows" },
		{ &good, { .muninn.segment_pages = 96 }, "segments of 96 pages" },
		{ &good, { .muninn.segment_pages = 32 }, "erase block" },
		{ &good, { .muninn.record_bytes = 8000 }, "record_bytes of 8000" },
		{ &good, BLOOM(.fpr_millionths = 900000), "false-positive rate" },
		{ &good, BLOOM(.fpr_factor_permille = 899), "factor" },
		{ &good, BLOOM(.fpr_factor_permille = 4001), "factor" },
		{ &good, BLOOM(.filters = 4, .paged_filters = 4), "4 filters" },
		{ &good, BLOOM(.filters = 8, .paged_filters = 5), "5 of them" },
		{ &good, { .records.over_provision_permille = 950 }, "over-provisioning" },
		{ &good, { .muninn.rows = 64 }, "too few" },
		{ &tiny, { 0 }, "too few" },
		{ &good, { .muninn.parity = 6 }, "spare areas of at least 264 bytes" },
		{ &good, { .muninn.parity = 17 }, "at most 16" },
		{ &large_pages, { 0 }, "page size" },
		{ &small_spare, { 0 }, "spare" },
	};

	(void)state;
	large_pages.page_bytes = 8192;
	small_spare.spare_bytes = 32;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error_text error = { "" };
		uint64_t bytes;

		assert_int_equal(
			engine_nvram_bytes(cases[i].nand, &cases[i].options, &bytes, &error),
			-EINVAL);
		if (!strstr(error.text, cases[i].words))
			fail_msg("case %zu: message is: %s", i, error.text);
	}
}

static void test_nine_tenths_of_a_device_may_be_hidden_and_no_more(void **state)
{
	const struct nand_geometry large = nand_geometry_default(UINT64_C(64) << 30);
	struct engine_options options = { .muninn.rows = 4 };
	struct error_text error = { "" };
	uint64_t bytes;

	(void)state;
	options.records.over_provision_permille = 900;
	assert_int_equal(engine_nvram_bytes(&large, &options, &bytes, &error), 0);
	options.records.over_provision_permille = 901;
	assert_int_equal(engine_nvram_bytes(&large, &options, &bytes, &error), -EINVAL);
	assert_non_null(strstr(error.text, "over-provisioning"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_record_header_has_the_documented_bytes),
		cmocka_unit_test(test_an_epoch_is_stored_as_it_is_or_as_a_later_one),
		cmocka_unit_test(test_a_page_s_spare_area_has_the_documented_bytes),
		cmocka_unit_test(
			test_a_spare_area_says_which_bytes_belong_to_records_of_the_pages_beside),
		cmocka_unit_test(test_a_page_of_one_large_record_is_walked_once_whatever_it_says),
		cmocka_unit_test(test_a_page_of_a_root_has_the_documented_spare_area),
		cmocka_unit_test(test_a_list_of_changes_has_the_documented_bytes),
		cmocka_unit_test(test_the_static_header_has_the_documented_bytes),
		cmocka_unit_test(test_a_group_s_members_have_the_documented_bytes),
		cmocka_unit_test(test_filters_have_the_false_positive_rate_that_they_are_made_for),
		cmocka_unit_test(test_the_factor_says_which_tables_get_the_memory),
		cmocka_unit_test(test_filters_take_the_memory_of_equal_rates_and_waste_fewer_reads),
		cmocka_unit_test(test_rows_grow_with_the_device),
		cmocka_unit_test(test_sums_and_slots_have_the_documented_bytes),
		cmocka_unit_test(test_opening_damaged_nvram_says_what_is_wrong),
		cmocka_unit_test(
			test_the_place_of_the_last_root_is_found_again_when_nvram_has_a_wrong_one),
		cmocka_unit_test(test_nine_tenths_of_a_device_may_be_hidden_and_no_more),
		cmocka_unit_test(test_impossible_shapes_are_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
