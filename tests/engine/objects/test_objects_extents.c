/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lists of extents: how runs join and part, and that no voided record ever counts again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/engine.h"
#include "engine/objects/extents.h"

static void add(struct extents *extents, uint32_t piece, uint64_t void_sequence)
{
	assert_int_equal(extents_reserve(extents, 1), 0);
	extents_add(extents, piece, void_sequence);
}

static void add_run(struct extents *extents, uint32_t first, uint32_t count, uint64_t void_sequence)
{
	for (uint32_t piece = first; piece < first + count; piece++)
		add(extents, piece, void_sequence);
}

static void remove_run(struct extents *extents, uint64_t first, uint64_t end)
{
	assert_int_equal(extents_reserve(extents, 1), 0);
	extents_remove(extents, first, end);
}

static void assert_extent(const struct extents *extents, uint32_t index, uint32_t first,
			  uint32_t count, uint64_t min_sequence, bool loose)
{
	assert_true(index < extents->count);
	assert_int_equal(extents->list[index].first, first);
	assert_int_equal(extents->list[index].count, count);
	assert_int_equal(extents->list[index].min_sequence, min_sequence);
	assert_int_equal(extents->list[index].loose, loose);
}

static void test_a_contiguous_run_is_one_extent_in_whatever_order_it_is_written(void **state)
{
	static const uint32_t order[] = { 4, 0, 7, 2, 6, 1, 3, 5 };
	struct extents extents = { 0 };

	(void)state;
	for (size_t index = 0; index < 8; index++) {
		add(&extents, order[index], 9);
		assert_int_equal(extents.pieces, index + 1);
	}
	assert_int_equal(extents.count, 1);
	assert_extent(&extents, 0, 0, 8, 10, false);
	add(&extents, 3, 9);
	assert_int_equal(extents.pieces, 8);
	extents_free(&extents);
}

static void test_removing_cuts_splits_and_drops(void **state)
{
	struct extents extents = { 0 };

	(void)state;
	add_run(&extents, 10, 10, 0);
	add_run(&extents, 30, 10, 0);
	add_run(&extents, 50, 10, 0);
	remove_run(&extents, 12, 14);
	assert_int_equal(extents.count, 4);
	assert_extent(&extents, 0, 10, 2, 1, false);
	assert_extent(&extents, 1, 14, 6, 1, false);
	remove_run(&extents, 18, 55);
	assert_int_equal(extents.count, 3);
	assert_extent(&extents, 1, 14, 4, 1, false);
	assert_extent(&extents, 2, 55, 5, 1, false);
	assert_int_equal(extents.pieces, 11);
	remove_run(&extents, 20, 50);
	remove_run(&extents, 0, 10);
	assert_int_equal(extents.pieces, 11);
	remove_run(&extents, 0, ENGINE_PIECES_MAX);
	assert_int_equal(extents.count, 0);
	assert_int_equal(extents.pieces, 0);
	extents_free(&extents);
}

static void test_the_next_piece_is_found_across_holes(void **state)
{
	struct extents extents = { 0 };

	(void)state;
	add_run(&extents, 10, 2, 0);
	add(&extents, ENGINE_PIECES_MAX - 1, 0);
	assert_int_equal(extents_next_piece(&extents, 0), 10);
	assert_int_equal(extents_next_piece(&extents, 11), 11);
	assert_int_equal(extents_next_piece(&extents, 12), ENGINE_PIECES_MAX - 1);
	assert_int_equal(extents_next_piece(&extents, ENGINE_PIECES_MAX), EXTENTS_NO_PIECE);
	assert_null(extents_find(&extents, 9));
	assert_non_null(extents_find(&extents, 11));
	assert_null(extents_find(&extents, 12));
	extents_free(&extents);
}

static void test_bridging_is_free_where_nothing_was_voided(void **state)
{
	struct extents extents = { 0 };
	uint32_t pair;

	(void)state;
	add_run(&extents, 0, 5, 3);  /* before something was voided at 8 */
	add_run(&extents, 10, 1, 8); /* behind it */
	add_run(&extents, 20, 1, 8);
	pair = extents_cheapest_pair(&extents, 8);
	assert_int_equal(pair, 1);
	extents_bridge(&extents, pair, 8);
	assert_int_equal(extents.count, 2);
	assert_extent(&extents, 1, 10, 11, 9, true);
	assert_int_equal(extents.pieces, 16);
	extents_free(&extents);
}

static void test_a_loose_extent_does_not_join_one_that_would_lower_its_bound(void **state)
{
	struct extents extents = { 0 };

	(void)state;
	add_run(&extents, 0, 2, 3);
	add(&extents, 3, 8);
	add(&extents, 5, 8);
	extents_bridge(&extents, 1, 8);
	/* Voided records may be as new as 8, so the gap at 4 must not count from 4 on. */
	add(&extents, 2, 10);
	assert_int_equal(extents.count, 2);
	assert_extent(&extents, 0, 0, 3, 4, false);
	assert_extent(&extents, 1, 3, 3, 9, true);
	extents_free(&extents);
}

/* ---- encoding ---- */

static void test_an_extent_is_encoded_as_documented(void **state)
{
	static const uint8_t bytes[2 * EXTENT_BYTES] = {
		3, 0, 0, 0, 1, 0, 0, 0,    5, 0, 0, 0, 0, 0, 0, 0, /* pieces 3..4 since 5 */
		8, 0, 0, 0, 2, 0, 0, 0x80, 1, 2, 0, 0, 0, 0, 0, 0, /* 8..10, loose, since 513 */
	};
	struct extents extents = { 0 };
	uint8_t again[sizeof(bytes)];

	(void)state;
	assert_int_equal(extents_decode(&extents, bytes, 2), 0);
	assert_extent(&extents, 0, 3, 2, 5, false);
	assert_extent(&extents, 1, 8, 3, 513, true);
	assert_int_equal(extents.pieces, 5);
	extents_encode(&extents, 0, 2, again);
	assert_memory_equal(again, bytes, sizeof(bytes));
	extents_free(&extents);
}

static void test_impossible_extents_are_refused(void **state)
{
	struct extents extents = { 0 };
	uint8_t bytes[2 * EXTENT_BYTES] = { 0 };

	(void)state;
	put_le32(bytes + 4, 9);
	put_le32(bytes + EXTENT_BYTES, 9); /* begins inside the first */
	assert_int_equal(extents_decode(&extents, bytes, 2), -EBADMSG);
	put_le32(bytes + EXTENT_BYTES, 10);
	assert_int_equal(extents_decode(&extents, bytes, 2), 0);
	put_le32(bytes + EXTENT_BYTES, ENGINE_PIECES_MAX); /* behind the last piece */
	assert_int_equal(extents_decode(&extents, bytes, 2), -EBADMSG);
	assert_int_equal(extents_decode(&extents, bytes, EXTENTS_MAX + 1), -EBADMSG);
	extents_free(&extents);
}

/* ---- any order of things ---- */

enum { PIECES = 64, ROUNDS = 20000 };

struct pieces {
	uint64_t newest[PIECES]; /* sequence number of the newest record, 0: none */
	bool live[PIECES], bridged[PIECES];
	uint64_t void_sequence;
};

/* What extents promise: see extents.h. */
static void check(const struct extents *extents, const struct pieces *pieces)
{
	uint64_t covered = 0, end = 0;

	for (uint32_t piece = 0; piece < PIECES; piece++) {
		const struct extent *extent = extents_find(extents, piece);

		covered += extent != NULL;
		if (pieces->live[piece]) {
			assert_non_null(extent);
			assert_true(pieces->newest[piece] >= extent->min_sequence);
		} else if (extent) {
			assert_true(extent->loose && pieces->bridged[piece]);
			assert_true(pieces->newest[piece] < extent->min_sequence);
		}
	}
	assert_int_equal(covered, extents->pieces);
	for (uint32_t index = 0; index < extents->count; index++) {
		assert_true(extents->list[index].first >= end);
		end = extents->list[index].first + extents->list[index].count;
	}
}

static void void_pieces(struct extents *extents, struct pieces *pieces, uint32_t first,
			uint32_t end, uint64_t now)
{
	remove_run(extents, first, end);
	for (uint32_t piece = first; piece < end; piece++)
		pieces->live[piece] = pieces->bridged[piece] = false;
	pieces->void_sequence = now - 1;
}

static void bridge(struct extents *extents, struct pieces *pieces, uint64_t now)
{
	uint32_t pair = extents_cheapest_pair(extents, pieces->void_sequence);
	struct extent left = extents->list[pair], right = extents->list[pair + 1];

	for (uint32_t piece = left.first; piece < right.first + right.count; piece++) {
		const struct extent *extent = extents_find(extents, piece);

		if (!extent)
			pieces->bridged[piece] = true;
		else if (pieces->live[piece] && extent->min_sequence <= pieces->void_sequence)
			pieces->newest[piece] = now; /* put again */
	}
	extents_bridge(extents, pair, pieces->void_sequence);
}

static void test_no_order_of_writing_voiding_and_bridging_revives_a_record(void **state)
{
	struct pieces pieces = { .void_sequence = 0 };
	struct extents extents = { 0 };
	uint64_t random = 7;

	(void)state;
	for (uint64_t now = 1; now < ROUNDS; now++) {
		uint32_t first, end;

		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		first = (uint32_t)(random >> 33) % PIECES;
		end = first + 1 + (uint32_t)(random >> 53) % 5;
		end = end > PIECES ? PIECES : end;
		switch (random >> 61) {
		case 0:
			void_pieces(&extents, &pieces, first, end, now);
			break;
		case 1:
			void_pieces(&extents, &pieces, PIECES - 1 - first / 2, PIECES, now);
			break;
		case 2:
		case 3:
			if (extents.count >= 2)
				bridge(&extents, &pieces, now);
			break;
		default:
			for (uint32_t piece = first; piece < end; piece++) {
				add(&extents, piece, pieces.void_sequence);
				pieces.live[piece] = true;
				pieces.newest[piece] = now;
			}
			break;
		}
		check(&extents, &pieces);
	}
	extents_free(&extents);
}

/* Of pairs that cost the same the one with the smallest gap, wherever it is. */
static void test_of_equal_pairs_the_nearest_is_the_cheapest(void **state)
{
	static const uint32_t gaps[][3] = { { 5, 3, 4 }, { 3, 4, 5 }, { 5, 4, 3 } };
	static const uint32_t nearest[] = { 1, 0, 2 };

	(void)state;
	for (size_t n = 0; n < 3; n++) {
		struct extent list[4] = { { .first = 0, .count = 2, .min_sequence = 9 } };
		const struct extents extents = { .list = list, .count = 4 };

		for (uint32_t i = 1; i < 4; i++)
			list[i] = (struct extent){ .first = list[i - 1].first + 2 + gaps[n][i - 1],
						   .count = 2,
						   .min_sequence = 9 };
		assert_int_equal(extents_cheapest_pair(&extents, 5), nearest[n]);
		assert_int_equal(extents_cheapest_pair(&extents, 9), nearest[n]);
		/* One that need not be put again is cheaper than a near one. */
		list[3].min_sequence = 10;
		list[2].min_sequence = 10;
		assert_int_equal(extents_cheapest_pair(&extents, 9), 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_equal_pairs_the_nearest_is_the_cheapest),
		cmocka_unit_test(
			test_a_contiguous_run_is_one_extent_in_whatever_order_it_is_written),
		cmocka_unit_test(test_removing_cuts_splits_and_drops),
		cmocka_unit_test(test_the_next_piece_is_found_across_holes),
		cmocka_unit_test(test_bridging_is_free_where_nothing_was_voided),
		cmocka_unit_test(test_a_loose_extent_does_not_join_one_that_would_lower_its_bound),
		cmocka_unit_test(test_an_extent_is_encoded_as_documented),
		cmocka_unit_test(test_impossible_extents_are_refused),
		cmocka_unit_test(test_no_order_of_writing_voiding_and_bridging_revives_a_record),
	};

	return cmocka_run_group_tests_name("extents", tests, NULL, NULL);
}
