/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Images lie one behind the other: those who seal are told when all that waits waits for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "engine/muninn/merge_run.h"
#include "engine/muninn/row.h"
#include "tests/engine/muninn/lost_nvram.h"
#include "tests/engine/small_flash.h"

enum { COMMITS_MAX = 100000 };

static const struct nand_geometry flash = SMALL_FLASH(2000);

static struct record_sealing state_of(struct device *device)
{
	struct record_sealing state;

	device->store->operations->seal_state(device->store, &state);
	return state;
}

static int go_on(struct device *device, int number)
{
	device->store->operations->seal_run(device->store, number);
	return device->store->operations->seal_step(device->store, number);
}

/* Takes a full buffer, and seals it until its image is under way. -1: it needed none. */
static int take_until_image(struct device *device)
{
	int number = device->store->operations->seal_take(device->store), more = 1;

	if (number < 0) {
		device_commit(device, 1);
		return -1;
	}
	while (more == 1 && device_store(device)->rows[number].sealing.stage != SEAL_IMAGE)
		more = go_on(device, number);
	return more == 1 ? number : -1;
}

/* Until another row waits for the image of row `number`, too. False: a writer has ended that. */
static bool fill_another(struct device *device, int number)
{
	const struct muninn_store *store = device_store(device);

	while (store->image_writing.entry && store->image_writing.row == (uint32_t)number) {
		int other = device->store->operations->seal_take(device->store);

		if (state_of(device).held_up && state_of(device).waiting > 1) {
			assert_int_equal(other, -EAGAIN);
			return true;
		}
		if (other < 0)
			device_commit(device, 1);
		while (other >= 0 && go_on(device, other) == 1)
			;
	}
	return false;
}

/* A row may lack a segment that is free now; what a merge has emptied needs no image. */
static void check_what_ends_it(struct device *device)
{
	struct muninn_store *store = device_store(device);

	store->space.count++;
	assert_false(state_of(device).held_up);
	store->space.count--;
	store->merge_run->emptied.stage = EMPTIED_MOVED;
	assert_false(state_of(device).held_up);
	store->merge_run->emptied.way.driven = true;
	assert_true(state_of(device).held_up);
	store->merge_run->emptied.way.driven = false;
	store->merge_run->emptied.stage = EMPTIED_NONE;
}

static void test_what_waits_for_an_image_is_told_until_its_next_step(void **state)
{
	struct device *device = device_new_of(&flash, 8, BLOOM_HOT_ROWS_FINALISE, 31);
	uint32_t commits = 0;
	int number = -1;

	(void)state;
	assert_false(state_of(device).held_up);
	while (number < 0 || !fill_another(device, number)) {
		while (number >= 0 && go_on(device, number) == 1)
			;
		number = take_until_image(device);
		assert_true(commits++ < COMMITS_MAX);
	}
	assert_int_equal(device->store->operations->seal_take(device->store), -EAGAIN);
	assert_true(state_of(device).held_up);
	check_what_ends_it(device);
	assert_true(state_of(device).held_up);
	go_on(device, number);
	assert_false(state_of(device).held_up);
	while (go_on(device, number) == 1)
		;
	assert_true(device->store->operations->seal_take(device->store) >= 0);
	device_free(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_waits_for_an_image_is_told_until_its_next_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
