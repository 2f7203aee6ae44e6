/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Stages: pages that are read while somebody does something else. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "nand/timing.h"
#include "tests/nand/fixture.h"

enum { STAGES = 3, PAGES = NAND_STAGE_PAGES + 1 };

static struct nand *nand;
static struct nand_stages *stages;
static int event_fd;
static uint8_t data[PAGES][4096], spares[PAGES][4096], expected[4096], expected_spare[4096];

static int set_up(void **state)
{
	struct error_text error;

	(void)state;
	nand = open_small();
	assert_int_equal(nand_stages_open(nand, STAGES, &stages, &event_fd, &error), 0);
	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	nand_stages_close(stages);
	return nand_close(nand);
}

/* Asks for `count` pages from `first` on, all at once. */
static int ask(struct nand_stage *stage, uint64_t first, uint32_t count)
{
	struct nand_page_io ios[PAGES];

	for (uint32_t n = 0; n < count; n++)
		ios[n] = (struct nand_page_io){ first + n, data[n], spares[n] };
	return nand_read_at_hand(nand, stage, NAND_CAUSE_USER, ios, count);
}

static void assert_page(uint32_t n, uint64_t page, uint32_t generation)
{
	fill_page(nand, page, generation, expected, expected_spare);
	assert_memory_equal(data[n], expected, sizeof(data[n]));
	assert_memory_equal(spares[n], expected_spare, nand_spare_usable(&nand->geometry));
}

static uint64_t pages_read(void)
{
	struct nand_counters counters;

	nand_read_counters(nand, &counters);
	return counters.by_cause[NAND_CAUSE_USER].pages_read;
}

static void bring(struct nand_stage *stage)
{
	assert_true(nand_stage_send(stage));
	assert_ptr_equal(nand_stages_next(stages, true), stage);
}

static void test_pages_that_were_missing_are_there_when_they_have_come(void **state)
{
	struct nand_stage *stage = nand_stage_take(stages);
	uint64_t before = pages_read();

	(void)state;
	assert_int_equal(ask(stage, 2, 3), -EINPROGRESS);
	assert_int_equal(ask(stage, 2, 3), -EINPROGRESS);
	bring(stage);
	assert_int_equal(ask(stage, 2, 3), 0);
	for (uint32_t n = 0; n < 3; n++)
		assert_page(n, 2 + n, 1);
	/* Each is read once, and others come to them. */
	assert_int_equal(ask(stage, 1, 3), -EINPROGRESS);
	bring(stage);
	assert_int_equal(ask(stage, 1, 4), 0);
	assert_page(0, 1, 1);
	assert_int_equal(pages_read() - before, 4);
	assert_false(nand_stage_send(stage));
	nand_stage_give(stage);
	/* The next one begins with nothing. */
	stage = nand_stage_take(stages);
	assert_int_equal(ask(stage, 2, 1), -EINPROGRESS);
	nand_stage_give(stage);
}

static void test_many_are_under_way_and_tell_when_they_come(void **state)
{
	struct pollfd event = { .fd = event_fd, .events = POLLIN };
	struct nand_stage *taken[STAGES];
	uint32_t came = 0;

	(void)state;
	for (int n = 0; n < STAGES; n++) {
		taken[n] = nand_stage_take(stages);
		assert_non_null(taken[n]);
		assert_int_equal(ask(taken[n], (uint64_t)n, 1), -EINPROGRESS);
		assert_true(nand_stage_send(taken[n]));
	}
	assert_null(nand_stage_take(stages));
	nand_stages_flush(stages);
	while (came != (1u << STAGES) - 1) {
		struct nand_stage *stage;

		assert_int_equal(poll(&event, 1, -1), 1);
		while ((stage = nand_stages_next(stages, false))) {
			assert_int_equal(came & 1u << stage->number, 0);
			came |= 1u << stage->number;
		}
	}
	for (int n = 0; n < STAGES; n++) {
		assert_int_equal(ask(taken[n], (uint64_t)n, 1), 0);
		assert_page(0, (uint64_t)n, 1);
		nand_stage_give(taken[n]);
	}
	assert_null(nand_stages_next(stages, true));
}

static void test_a_page_that_was_erased_meanwhile_is_not_taken_for_the_new_one(void **state)
{
	struct nand_stage *stage = nand_stage_take(stages);

	(void)state;
	assert_int_equal(ask(stage, 0, 2), -EINPROGRESS);
	bring(stage);
	assert_int_equal(ask(stage, 0, 2), 0);
	assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(ask(stage, 0, 1), -EINPROGRESS);
	assert_int_equal(program_filled(nand, 0, 2), 0);
	assert_int_equal(ask(stage, 0, 1), -EINPROGRESS);
	/* It is of no more use for that. */
	assert_false(nand_stage_send(stage));
	nand_stage_give(stage);
	stage = nand_stage_take(stages);
	assert_int_equal(ask(stage, 0, 1), -EINPROGRESS);
	bring(stage);
	assert_int_equal(ask(stage, 0, 1), 0);
	assert_page(0, 0, 2);
	nand_stage_give(stage);
}

static void test_what_cannot_be_read_is_left_to_others(void **state)
{
	struct nand_stage *stage = nand_stage_take(stages);

	(void)state;
	assert_int_equal(ask(stage, 8, 1), -EINPROGRESS); /* not programmed */
	assert_true(nand_stage_send(stage));
	assert_ptr_equal(nand_stages_next(stages, true), stage);
	assert_int_equal(ask(stage, 8, 1), -EINPROGRESS);
	assert_false(nand_stage_send(stage));
	nand_stage_give(stage);

	raw_flip_data(nand, 3, 77, 4);
	stage = nand_stage_take(stages);
	assert_int_equal(ask(stage, 2, 2), -EINPROGRESS);
	assert_true(nand_stage_send(stage));
	assert_ptr_equal(nand_stages_next(stages, true), stage);
	assert_int_equal(ask(stage, 2, 2), -EINPROGRESS);
	assert_false(nand_stage_send(stage));
	nand_stage_give(stage);

	stage = nand_stage_take(stages);
	assert_int_equal(ask(stage, UINT64_MAX / 2, 1), -EINPROGRESS);
	assert_false(nand_stage_send(stage));
	nand_stage_give(stage);
}

static void test_more_pages_than_a_stage_holds_are_not_worth_waiting_for(void **state)
{
	struct nand_stage *stage = nand_stage_take(stages);

	(void)state;
	assert_int_equal(ask(stage, 0, PAGES - 1), -EINPROGRESS);
	assert_int_equal(ask(stage, PAGES - 1, 1), -EINPROGRESS);
	assert_false(nand_stage_send(stage));
	nand_stage_give(stage);
}

static void test_a_set_that_is_closed_waits_for_what_is_under_way(void **state)
{
	struct nand_stage *stage = nand_stage_take(stages);

	(void)state;
	assert_int_equal(ask(stage, 0, 8), -EINPROGRESS);
	assert_true(nand_stage_send(stage));
	/* The tear-down closes it; the sanitizer sees whether something comes late. */
}

static void test_what_is_in_memory_needs_no_stage(void **state)
{
	struct error_text error;

	(void)state;
	nand = open_small();
	if (test_device == TEST_DEVICE_MMAP || test_device == TEST_DEVICE_HEADERS)
		assert_int_equal(nand_stages_open(nand, STAGES, &stages, &event_fd, &error),
				 -EOPNOTSUPP);
	assert_int_equal(nand_close(nand), 0);
}

/* Two pages by a stage each, in virtual time. Returns how long that took. */
static uint64_t time_of_both(uint64_t one, uint64_t other)
{
	const uint64_t pages[] = { one, other }, begun = nand_now_ns(nand);
	struct nand_stage *taken[2];

	for (int n = 0; n < 2; n++) {
		taken[n] = nand_stage_take(stages);
		assert_int_equal(ask(taken[n], pages[n], 1), -EINPROGRESS);
		assert_true(nand_stage_send(taken[n]));
	}
	for (int n = 0; n < 2; n++)
		assert_ptr_equal(nand_stages_next(stages, true), taken[n]);
	assert_null(nand_stages_next(stages, true));
	for (int n = 0; n < 2; n++) {
		assert_int_equal(ask(taken[n], pages[n], 1), 0);
		assert_page(0, pages[n], 1);
		nand_stage_give(taken[n]);
	}
	return nand_now_ns(nand) - begun;
}

static void test_stages_share_the_dies_of_any_device_in_virtual_time(void **state)
{
	const struct nand_timing timing = { .mode = NAND_TIMING_VIRTUAL,
					    .page_read_ns = 15000,
					    .channels = 1,
					    .dies_per_channel = 2 };
	struct error_text error;
	uint64_t begun;

	(void)state;
	nand = open_small();
	for (uint64_t page = 0; page < 16; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_set_timing(nand, &timing, &error), 0);
	assert_int_equal(nand_stages_open(nand, STAGES, &stages, NULL, &error), 0);
	/* Blocks of 8 pages are on the two dies in turn. */
	assert_int_equal(time_of_both(0, 8), 15000);
	assert_int_equal(time_of_both(1, 2), 30000);
	/* Who has no stage waits for each. */
	begun = nand_now_ns(nand);
	assert_int_equal(read_filled(nand, 0, 1), 0);
	assert_int_equal(read_filled(nand, 8, 1), 0);
	assert_int_equal(nand_now_ns(nand) - begun, 30000);
	nand_stages_close(stages);
	assert_int_equal(nand_close(nand), 0);
}

#define prepared(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		prepared(test_pages_that_were_missing_are_there_when_they_have_come),
		prepared(test_many_are_under_way_and_tell_when_they_come),
		prepared(test_a_page_that_was_erased_meanwhile_is_not_taken_for_the_new_one),
		prepared(test_what_cannot_be_read_is_left_to_others),
		prepared(test_more_pages_than_a_stage_holds_are_not_worth_waiting_for),
		prepared(test_a_set_that_is_closed_waits_for_what_is_under_way),
	};
	const struct CMUnitTest of_all[] = {
		cmocka_unit_test(test_what_is_in_memory_needs_no_stage),
		cmocka_unit_test(test_stages_share_the_dies_of_any_device_in_virtual_time),
	};
	int failed = RUN_ON_ALL_DEVICES(of_all, NULL, NULL);

	for (int device = TEST_DEVICE_FILE; device <= TEST_DEVICE_FILE_THREADS; device++) {
		test_device = (enum test_device)device;
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
