/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How a full device's free segments are shared out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/records/rooms.h"

static void test_each_room_leaves_something_to_those_behind_it(void **state)
{
	uint32_t kept[RECORD_ROOMS];

	(void)state;
	for (uint32_t metadata = 0; metadata < 20; metadata += 3)
		for (uint32_t hidden = 0; hidden < 300; hidden++)
			for (uint32_t least = 1; least < 130; least += 43) {
				rooms_share(kept, metadata, metadata / 2, hidden, least);
				assert_int_equal(kept[RECORD_ROOM_MERGE], metadata - metadata / 2);
				assert_true(kept[RECORD_ROOM_UPKEEP] > metadata);
				for (int room = 0; room < RECORD_ROOM_MERGE; room++)
					assert_true(kept[room] > kept[room + 1]);
				assert_true(kept[RECORD_ROOM_WRITE] - kept[RECORD_ROOM_FREE] >=
					    least);
				assert_true(kept[RECORD_ROOM_WRITE] >= metadata + hidden);
			}
}

static void test_what_is_hidden_is_shared_out_and_no_more_where_it_is_enough(void **state)
{
	uint32_t kept[RECORD_ROOMS];

	(void)state;
	rooms_share(kept, 5, 1, 800, 9);
	assert_int_equal(kept[RECORD_ROOM_WRITE], 805);
	assert_int_equal(kept[RECORD_ROOM_RETURN] - kept[RECORD_ROOM_RESCUE], 100);
	assert_int_equal(kept[RECORD_ROOM_FREE] - kept[RECORD_ROOM_RETURN], 200);
}

static void test_a_room_ends_where_the_next_one_begins(void **state)
{
	uint32_t kept[RECORD_ROOMS];

	(void)state;
	rooms_share(kept, 3, 1, 100, 4);
	for (enum record_room room = RECORD_ROOM_WRITE; room <= RECORD_ROOM_MERGE; room++) {
		assert_true(room_has_segment(kept, room, kept[room] + 1));
		assert_false(room_has_segment(kept, room, kept[room]));
		/* What it has taken itself is filled; what those behind it have taken is theirs. */
		assert_false(room_is_overdrawn(kept, room, kept[room]));
		assert_int_equal(room_is_overdrawn(kept, room, kept[room] - 1),
				 room != RECORD_ROOM_MERGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_room_leaves_something_to_those_behind_it),
		cmocka_unit_test(test_what_is_hidden_is_shared_out_and_no_more_where_it_is_enough),
		cmocka_unit_test(test_a_room_ends_where_the_next_one_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
