/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The bounds of requests that were dated ahead: one an owner, few places, none too low. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/security_ahead.h"

#define P UINT64_C(0x10000)

static bool raise_of(struct osd_ahead *ahead, uint64_t partition, uint32_t sender,
		     uint64_t bound_ms)
{
	uint8_t key[OSD_KEY_BYTES] = { 0 };
	const struct osd_nonce_owner owner = { .partition = partition, .key = key };

	put_be32(key, sender);
	return osd_ahead_raise(ahead, &owner, bound_ms);
}

static uint64_t bound_of(const struct osd_ahead *ahead, uint64_t partition, uint32_t sender)
{
	uint8_t key[OSD_KEY_BYTES] = { 0 };
	const struct osd_nonce_owner owner = { .partition = partition, .key = key };

	put_be32(key, sender);
	return osd_ahead_of(ahead, &owner);
}

static void test_each_owner_has_his_own_bound(void **state)
{
	struct osd_ahead ahead = { .count = 0 };

	(void)state;
	assert_int_equal(bound_of(&ahead, P, 1), 0);
	assert_true(raise_of(&ahead, P, 1, 100));
	assert_true(raise_of(&ahead, P, 2, 200));
	assert_true(raise_of(&ahead, P + 1, 1, 300));
	assert_true(raise_of(&ahead, P, 1, 50));
	assert_int_equal(bound_of(&ahead, P, 1), 100);
	assert_int_equal(bound_of(&ahead, P, 2), 200);
	assert_int_equal(bound_of(&ahead, P + 1, 1), 300);
	assert_int_equal(bound_of(&ahead, P, 3), 0);
	assert_int_equal(bound_of(&ahead, P + 1, 2), 0);
	assert_true(raise_of(&ahead, P, 1, 150));
	assert_int_equal(bound_of(&ahead, P, 1), 150);
	assert_int_equal(ahead.count, 3);
}

static void test_who_has_most_places_gets_one_bound_for_all_his_keys(void **state)
{
	struct osd_ahead ahead = { .count = 0 };

	(void)state;
	assert_true(raise_of(&ahead, P, 1, 7));
	for (uint32_t sender = 1; sender < OSD_AHEAD_MAX; sender++)
		assert_true(raise_of(&ahead, P + 1, sender, 1000 + sender));
	assert_int_equal(ahead.count, OSD_AHEAD_MAX);
	assert_int_equal(bound_of(&ahead, P + 1, 5000), 0);
	assert_true(raise_of(&ahead, P + 2, 9, 8));
	assert_int_equal(ahead.count, 3);
	/* No bound went down, and nobody else's went up. */
	assert_int_equal(bound_of(&ahead, P + 1, 1), 1000 + OSD_AHEAD_MAX - 1);
	assert_int_equal(bound_of(&ahead, P + 1, 5000), 1000 + OSD_AHEAD_MAX - 1);
	assert_int_equal(bound_of(&ahead, P, 1), 7);
	assert_int_equal(bound_of(&ahead, P, 2), 0);
	assert_int_equal(bound_of(&ahead, P + 2, 9), 8);
	/* From then on its new keys take no places. */
	for (uint32_t sender = 0; sender < 1000; sender++)
		assert_true(raise_of(&ahead, P + 1, 10000 + sender, 2000 + sender));
	assert_int_equal(ahead.count, 3);
	assert_int_equal(bound_of(&ahead, P + 1, 1), 2999);
}

static void test_the_partition_that_is_folded_may_be_the_new_owner_s(void **state)
{
	struct osd_ahead ahead = { .count = 0 };

	(void)state;
	for (uint32_t sender = 0; sender < OSD_AHEAD_MAX; sender++)
		assert_true(raise_of(&ahead, P, sender, 100));
	assert_true(raise_of(&ahead, P, 1000, 50));
	assert_int_equal(ahead.count, 1);
	assert_int_equal(bound_of(&ahead, P, 1000), 100);
}

static void test_more_partitions_than_places_are_not_taken(void **state)
{
	struct osd_ahead ahead = { .count = 0 }, before;

	(void)state;
	for (uint32_t i = 0; i < OSD_AHEAD_MAX; i++)
		assert_true(raise_of(&ahead, P + i, 1, 100 + i));
	before = ahead;
	assert_false(raise_of(&ahead, P + OSD_AHEAD_MAX, 1, 500));
	assert_memory_equal(&ahead, &before, sizeof(ahead));
	/* Those that the clock has passed give their places up. */
	assert_int_equal(osd_ahead_settle(&ahead, 109), 109);
	assert_int_equal(ahead.count, OSD_AHEAD_MAX - 10);
	assert_int_equal(osd_ahead_settle(&ahead, 109), 0);
	assert_true(raise_of(&ahead, P + OSD_AHEAD_MAX, 1, 500));
	assert_int_equal(bound_of(&ahead, P + OSD_AHEAD_MAX, 1), 500);
	assert_int_equal(bound_of(&ahead, P + 20, 1), 120);
	assert_int_equal(bound_of(&ahead, P + 9, 1), 0);
}

/* What is in memory behind the table is no bound of anybody. */
static void test_only_places_of_the_table_count(void **state)
{
	struct {
		struct osd_ahead ahead;
		struct osd_ahead_bound behind;
	} memory = { .ahead.count = 0 };
	struct osd_ahead before;

	(void)state;
	for (uint32_t i = 0; i < OSD_AHEAD_MAX; i++)
		assert_true(raise_of(&memory.ahead, P + i, 1, 100 + i));
	memory.behind = memory.ahead.bounds[0];
	before = memory.ahead;
	assert_false(raise_of(&memory.ahead, P + OSD_AHEAD_MAX, 1, 500));
	assert_memory_equal(&memory.ahead, &before, sizeof(before));
	assert_memory_equal(&memory.behind, &before.bounds[0], sizeof(memory.behind));
}

static void test_two_places_make_room_wherever_they_are(void **state)
{
	(void)state;
	for (uint32_t first = 0; first + 1 < OSD_AHEAD_MAX; first++) {
		struct osd_ahead ahead = { .count = 0 };

		for (uint32_t i = 0; i < OSD_AHEAD_MAX; i++) {
			bool is_second = i == first + 1;

			assert_true(raise_of(&ahead, P + i - is_second, is_second, 100 + i));
		}
		assert_true(raise_of(&ahead, P + OSD_AHEAD_MAX, 1, 500));
		assert_int_equal(ahead.count, OSD_AHEAD_MAX);
		assert_int_equal(bound_of(&ahead, P + first, 7), 100 + first + 1);
		assert_int_equal(bound_of(&ahead, P + OSD_AHEAD_MAX, 1), 500);
	}
}

static void test_the_bytes_are_those_that_are_documented(void **state)
{
	static const uint8_t example[] = {
		/* docs/format.md: a key of 20 zeros in partition 10000; all of partition 10001. */
		0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0xde, 0x47, 0xc9, 0xb2, 0x7e,
		0xb8, 0xd3, 0x00, 0xdb, 0xb5, 0xf2, 0xc3, 0x53, 0xe6, 0x32, 0xc3, 0x00, 0x00,
		0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x7b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00,
		0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x7c,
	};
	struct osd_ahead ahead = { .count = 0 }, back;
	uint8_t data[OSD_AHEAD_BYTES_MAX + OSD_AHEAD_ENTRY_BYTES] = { 0 };

	(void)state;
	assert_true(raise_of(&ahead, P, 0, UINT64_C(1700000000123)));
	ahead.bounds[ahead.count++] =
		(struct osd_ahead_bound){ P + 1, { 0 }, UINT64_C(1700000000124) };
	assert_int_equal(osd_ahead_encode(&ahead, data), sizeof(example));
	assert_memory_equal(data, example, sizeof(example));
	assert_int_equal(osd_ahead_decode(example, sizeof(example), &back), 0);
	assert_memory_equal(&back, &ahead, sizeof(back));
	assert_int_equal(bound_of(&back, P + 1, 77), UINT64_C(1700000000124));

	assert_int_equal(osd_ahead_decode(data, 0, &back), 0);
	assert_int_equal(back.count, 0);
	assert_int_equal(osd_ahead_decode(data, 31, &back), -EBADMSG);
	assert_int_equal(osd_ahead_decode(data, 33, &back), -EBADMSG);
	assert_int_equal(osd_ahead_decode(data, sizeof(data), &back), -EBADMSG);
	assert_int_equal(osd_ahead_decode(data, OSD_AHEAD_BYTES_MAX, &back), 0);
	assert_int_equal(back.count, OSD_AHEAD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_owner_has_his_own_bound),
		cmocka_unit_test(test_who_has_most_places_gets_one_bound_for_all_his_keys),
		cmocka_unit_test(test_the_partition_that_is_folded_may_be_the_new_owner_s),
		cmocka_unit_test(test_more_partitions_than_places_are_not_taken),
		cmocka_unit_test(test_only_places_of_the_table_count),
		cmocka_unit_test(test_two_places_make_room_wherever_they_are),
		cmocka_unit_test(test_the_bytes_are_those_that_are_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
