/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The simulator: some seeds of each profile, that a run repeats itself, that a violation is found
 * and said, and that a failing list gets short. muninn-sim makes longer runs.
 *
 * Runs for each index.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/engine/index_under_test.h"
#include "tests/repetition.h"
#include "tests/sim/sim.h"

enum { SEEDS = 2, OPERATIONS = 2500 };

static char text[4096];

/* ---- runs ---- */

static void run_seed(const struct sim_profile *profile, uint64_t seed)
{
	const struct sim_plan plan = { .profile = profile,
				       .seed = seed,
				       .operations = rounds(OPERATIONS) };
	struct sim_report report;

	if (!sim_run(&plan, &report, text, sizeof(text)))
		fail_msg("%smuninn-sim --profile %s --seed %llu --ops %d, step %llu, while %s: %s",
			 index_setting(), profile->name, (unsigned long long)seed,
			 (int)plan.operations, (unsigned long long)report.step, report.what, text);
	assert_true(report.counts.operations >= plan.operations);
	assert_true(report.counts.compared > 0);
	assert_true(!profile->flash.power_fails || report.counts.cuts > 0);
	assert_true(!profile->weights.others || report.counts.commands > 0);
	assert_true(!profile->secured || (report.counts.let_in > 0 && report.counts.kept_out > 0));
}

static void test_no_profile_finds_a_violation(void **state)
{
	(void)state;
	for (const struct sim_profile *profile = sim_profiles; profile->name; profile++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			print_message("%s: seed %llu\n", profile->name, (unsigned long long)seed);
			run_seed(profile, seed);
		}
}

static uint64_t merged_beside(const char *profile, uint64_t seed)
{
	const struct sim_plan plan = { .profile = sim_profile_find(profile),
				       .seed = seed,
				       .operations = 6000 };
	struct sim_report report;

	assert_true(sim_run(&plan, &report, text, sizeof(text)));
	return report.counts.merged;
}

/* In a quarter of the seeds; others merge before their own transactions. */
static void test_segments_are_merged_beside_transactions(void **state)
{
	(void)state;
	assert_true(merged_beside("full", 2) > 0);
	assert_int_equal(merged_beside("full", 1), 0);
	/* Segments of 8 pages, as all seeds that are multiples of 4 have them. */
	assert_true(merged_beside("full", 8) > 0);
}

/* And it is compared what was in segments of flash, but for what is named. */
static void test_devices_are_opened_without_their_nvram(void **state)
{
	const struct sim_plan plan = { .profile = sim_profile_find("faults"),
				       .seed = 2,
				       .operations = 6000 };
	struct sim_report report;

	(void)state;
	assert_true(sim_run(&plan, &report, text, sizeof(text)));
	assert_true(report.counts.recovered > report.counts.recovered_open);
	assert_true(report.counts.recovered_objects > 100);
	assert_true(report.counts.recovered_named > 0);
	assert_true(report.counts.nvram_older > 0);
}

/* It begins no thread on such a device. */
static void test_what_nobody_is_to_merge_is_not_merged_beside_transactions(void **state)
{
	(void)state;
	assert_int_equal(merged_beside("stuffed", 2), 0);
}

static void test_a_seed_decides_everything(void **state)
{
	(void)state;
	for (const struct sim_profile *profile = sim_profiles; profile->name; profile++) {
		struct sim_plan plan = { .profile = profile, .seed = 3, .operations = 500 };
		struct sim_report first, second, other;

		assert_true(sim_run(&plan, &first, text, sizeof(text)));
		assert_true(sim_run(&plan, &second, text, sizeof(text)));
		assert_true(first.digest == second.digest);
		plan.seed = 4;
		assert_true(sim_run(&plan, &other, text, sizeof(text)));
		assert_true(first.digest != other.digest);
	}
}

static void test_steps_can_be_left_out(void **state)
{
	static const uint64_t kept[] = { 0, 2, 3, 5, 7, 11, 13, 17, 19, 23 };
	struct sim_plan plan = { .seed = 1,
				 .kept = kept,
				 .kept_count = sizeof(kept) / sizeof(kept[0]) };
	struct sim_report report;

	(void)state;
	for (const struct sim_profile *profile = sim_profiles; profile->name; profile++) {
		plan.profile = profile;
		assert_true(sim_run(&plan, &report, text, sizeof(text)));
		assert_int_equal(report.counts.steps, plan.kept_count);
		assert_int_equal(report.step, 23);
	}
}

/* ---- what is not as it should be ---- */

static void test_a_violation_is_found_and_said(void **state)
{
	struct sim_plan plan = {
		.profile = sim_profile_find("osd"), .seed = 1, .operations = 5000, .forges_at = 40
	};
	struct sim_report report;

	(void)state;
	assert_false(sim_run(&plan, &report, text, sizeof(text)));
	assert_false(report.ended);
	assert_true(report.step >= 40);
	assert_non_null(strstr(text, "error: Failure!"));
}

static void test_a_crash_is_one(void **state)
{
	struct sim_plan plan = { .profile = sim_profile_find("engine"),
				 .seed = 1,
				 .operations = 5000,
				 .crashes_at = 10 };
	struct sim_report report;

	(void)state;
	assert_false(sim_run(&plan, &report, text, sizeof(text)));
	assert_int_equal(report.step, 10);
}

/* ---- minimising ---- */

struct culprits {
	uint64_t steps[4];
	size_t count;
	unsigned runs;
};

/* Fails if all of the culprits are there. */
static bool has_culprits(void *context, const uint64_t *kept, size_t count)
{
	struct culprits *culprits = context;
	size_t found = 0;

	culprits->runs++;
	for (size_t n = 0; n < count; n++) {
		assert_true(n == 0 || kept[n] > kept[n - 1]);
		for (size_t culprit = 0; culprit < culprits->count; culprit++)
			found += kept[n] == culprits->steps[culprit];
	}
	return found == culprits->count;
}

static size_t minimise(struct culprits *culprits, uint64_t *kept, size_t count, unsigned tries)
{
	for (size_t n = 0; n < count; n++)
		kept[n] = n;
	sim_minimise(kept, &count, tries, has_culprits, culprits);
	return count;
}

static void test_only_the_steps_that_matter_are_left(void **state)
{
	static const struct culprits scenes[] = {
		{ .steps = { 0 }, .count = 1 },
		{ .steps = { 999 }, .count = 1 },
		{ .steps = { 3, 4, 5, 6 }, .count = 4 },
		{ .steps = { 0, 333, 666, 999 }, .count = 4 },
	};
	uint64_t kept[1000];

	(void)state;
	for (size_t n = 0; n < sizeof(scenes) / sizeof(scenes[0]); n++) {
		struct culprits culprits = scenes[n];

		assert_int_equal(minimise(&culprits, kept, 1000, 1000), culprits.count);
		assert_memory_equal(kept, culprits.steps, culprits.count * sizeof(kept[0]));
		assert_true(culprits.runs < 200);
	}
}

static void test_tries_are_limited(void **state)
{
	struct culprits culprits = { .steps = { 1, 500, 998 }, .count = 3 };
	uint64_t kept[1000];
	size_t count;

	(void)state;
	count = minimise(&culprits, kept, 1000, 20);
	assert_int_equal(culprits.runs, 20);
	assert_true(count > 3 && count < 1000);
	assert_true(has_culprits(&culprits, kept, count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_profile_finds_a_violation),
		cmocka_unit_test(test_segments_are_merged_beside_transactions),
		cmocka_unit_test(test_devices_are_opened_without_their_nvram),
		cmocka_unit_test(test_what_nobody_is_to_merge_is_not_merged_beside_transactions),
		cmocka_unit_test(test_a_seed_decides_everything),
		cmocka_unit_test(test_steps_can_be_left_out),
		cmocka_unit_test(test_a_violation_is_found_and_said),
		cmocka_unit_test(test_a_crash_is_one),
		cmocka_unit_test(test_only_the_steps_that_matter_are_left),
		cmocka_unit_test(test_tries_are_limited),
	};

	return cmocka_run_group_tests_name("simulator", tests, NULL, NULL);
}
