/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Ordered ID sets against a sorted array, by random operations. */
#include "tests/engine/sets/set_fixture.h"

/* ---- against an array ---- */

/* Some changes: single ones anywhere, ascending and descending runs, removal of ranges. */
static void change_some(struct fixture *f, bool growing)
{
	uint64_t id = below(f, 3 * IDS_MAX), kind = below(f, 8);
	uint32_t number = (uint32_t)below(f, kind < 4 ? 8 : 150);

	for (uint32_t index = 0; index < number && f->count < IDS_MAX; index++) {
		switch (kind) {
		case 0:
		case 1:
			change_one(f, below(f, 3 * IDS_MAX), !growing);
			break;
		case 2:
		case 3:
			change_one(f, f->count ? f->ids[below(f, f->count)] + below(f, 2) : 1,
				   below(f, 2));
			break;
		case 4:
			change_one(f, id + index, !growing);
			break;
		case 5:
			change_one(f, id > index ? id - index : 0, !growing);
			break;
		case 6:
			change_one(f, f->count ? f->ids[f->count - 1] + 1 : 0, false);
			break;
		default:
			change_one(f, f->count ? f->ids[0] : 0, true);
			break;
		}
	}
}

/* Once in `checks` rounds everything is looked at. */
static void play(struct fixture *f, int rounds, uint64_t checks)
{
	uint32_t largest = 0;

	memory_store_absorb(f->memory, true);
	for (int round = 0; round < rounds; round++) {
		begin(f);
		memcpy(f->before, f->ids, f->count * sizeof(f->ids[0]));
		f->count_before = f->count;
		for (uint64_t times = below(f, 4) + 1; times; times--) {
			change_some(f, round / 400 % 2 == 0);
			/* As when a transaction changes more nodes than may wait. */
			if (below(f, 4) == 0)
				assert_int_equal(idset_put_dirty(&f->nodes, &f->writer), 0);
			if (below(f, checks) == 0)
				check(f);
		}
		largest = f->count > largest ? f->count : largest;
		if (below(f, 10) == 0) {
			abort_changes(f);
			memcpy(f->ids, f->before, f->count_before * sizeof(f->ids[0]));
			f->count = f->count_before;
		} else {
			commit(f);
		}
		if (below(f, 20) == 0)
			cache_clear(&f->nodes);
		if (below(f, checks) == 0)
			check(f);
	}
	check(f);
	/* It was deep enough to mean something. */
	assert_true(largest > 3000);
}

static void test_it_holds_what_a_sorted_array_holds(void **state)
{
	struct fixture *f = *state;

	f->random = 11;
	play(f, 4000, 10);
}

/* All nodes stay in memory, and with them the numbers of IDs below each. */
static void test_what_is_counted_stays_right_under_changes_and_aborts(void **state)
{
	struct fixture *f = *state;

	cache_destroy(&f->nodes);
	assert_int_equal(cache_init(&f->nodes, 1000, SIZE_MAX, idset_node_destroy), 0);
	f->random = 12;
	play(f, 2000, 2);
}

static void test_a_header_of_old_shows_the_set_of_old(void **state)
{
	struct fixture *f = *state;
	struct idset_header headers[20];
	uint64_t *ids[20], bounds[20];
	uint32_t counts[20];

	f->random = 5;
	memory_store_absorb(f->memory, true);
	for (int version = 0; version < 20; version++) {
		f->writer.epoch = f->writer.sequence + 1;
		for (int round = 0; round < 30; round++) {
			begin(f);
			change_some(f, version < 12);
			change_some(f, version < 12);
			bounds[version] = f->writer.sequence;
			commit(f);
		}
		headers[version] = f->header;
		counts[version] = f->count;
		ids[version] = malloc((f->count + 1) * sizeof(uint64_t));
		memcpy(ids[version], f->ids, f->count * sizeof(uint64_t));
	}
	for (int version = 0; version < 20; version++) {
		struct idset old = f->set;

		old.header = &headers[version];
		old.bound = bounds[version];
		check_from(&old, ids[version], counts[version], 0);
		check_from(&old, ids[version], counts[version], 3 * IDS_MAX / 2);
		free(ids[version]);
	}
}

static void test_values_at_the_ends_of_the_range_are_like_any(void **state)
{
	struct fixture *f = *state;
	const uint64_t ends[] = { UINT64_MAX, 0, UINT64_MAX - 1, 1 };

	begin(f);
	for (int index = 0; index < 4; index++)
		change_one(f, ends[index], false);
	for (uint64_t id = 1000; id < 3000; id++)
		change_one(f, id, false);
	check(f);
	for (int index = 0; index < 4; index++)
		change_one(f, ends[index], true);
	check(f);
	commit(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_it_holds_what_a_sorted_array_holds),
		TEST(test_what_is_counted_stays_right_under_changes_and_aborts),
		TEST(test_a_header_of_old_shows_the_set_of_old),
		TEST(test_values_at_the_ends_of_the_range_are_like_any),
	};

	return cmocka_run_group_tests_name("idset", tests, NULL, NULL);
}
