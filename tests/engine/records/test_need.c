/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a merge must keep: dropping all that record_judge gives up changes nothing that is found at
 * the present or at a boundary. One key, its versions in an array.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/records/need.h"

enum { VERSIONS = 12, BOUNDS = 5 };

struct version {
	struct record_info info;
	bool dropped;
};

/* A key: its versions, the moments that are kept, and one rollback. */
struct scene {
	struct version versions[VERSIONS];
	uint32_t count, judged;
	uint64_t bounds[BOUNDS];
	uint32_t bound_count;
	uint64_t to, at;      /* from `at` on, what is of (to, at) is hidden; 0: no rollback */
	uint64_t unreachable; /* versions up to that number are of something removed */
	bool lone_tombstones;
	uint32_t searches;
	uint64_t latest; /* what the store tells of it */
	uint64_t random;
};

static const struct record_key key = { .partition = 1, .identifier = 0x10000 };

static uint32_t below(struct scene *scene, uint32_t limit)
{
	scene->random = scene->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(scene->random >> 33) % limit;
}

static bool is_hidden(void *context, const struct record_key *of, uint64_t sequence, uint64_t bound)
{
	const struct scene *scene = context;

	(void)of;
	return scene->at && bound >= scene->at && sequence > scene->to && sequence < scene->at;
}

/* The version that a search at `bound` finds; NULL: none. */
static const struct version *find(const struct scene *scene, uint64_t bound, bool hides)
{
	for (uint32_t n = scene->count; n-- > 0;) {
		const struct version *version = &scene->versions[n];

		if (!version->dropped && version->info.sequence <= bound &&
		    !(hides &&
		      is_hidden((void *)(uintptr_t)scene, &key, version->info.sequence, bound)))
			return version;
	}
	return NULL;
}

/* The one behind that which is judged, or that one. */
static const struct version *any_newer(const struct scene *scene)
{
	uint32_t n = scene->judged + 1;

	while (n < scene->count && scene->versions[n].dropped)
		n++;
	return &scene->versions[n < scene->count ? n : scene->judged];
}

static int is_found(void *context, uint64_t bound, bool hides, uint64_t *sequence)
{
	struct scene *scene = context;
	const struct version *version =
		bound == RECORD_NEWEST && !hides ? any_newer(scene) : find(scene, bound, hides);

	scene->searches++;
	*sequence = version ? version->info.sequence : 0;
	return version == &scene->versions[scene->judged];
}

static int has_older(void *context)
{
	const struct scene *scene = context;

	for (uint32_t n = 0; n < scene->judged; n++)
		if (!scene->versions[n].dropped)
			return 1;
	return 0;
}

static uint32_t kept_bounds(void *context, const struct record_key *of,
			    const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	const struct scene *scene = context;
	uint32_t count = 0;

	(void)of;
	assert_true(max >= BOUNDS);
	for (uint32_t n = 0; n < scene->bound_count; n++)
		if (scene->bounds[n] >= info->sequence)
			bounds[count++] = scene->bounds[n];
	return count;
}

static uint32_t too_many_bounds(void *context, const struct record_key *of,
				const struct record_info *info, uint64_t *bounds, uint32_t max)
{
	(void)context;
	(void)of;
	(void)info;
	(void)bounds;
	return max + 1;
}

static bool is_reachable(void *context, const struct record_key *of, const struct record_info *info,
			 uint64_t bound)
{
	const struct scene *scene = context;

	(void)of;
	(void)bound;
	return info->sequence > scene->unreachable;
}

static bool keeps_lone_tombstone(void *context, const struct record_key *of,
				 const struct record_info *info)
{
	const struct scene *scene = context;

	(void)of;
	(void)info;
	return scene->lone_tombstones;
}

static int judge(struct scene *scene, uint32_t n, const struct record_keep *keep, bool roughly)
{
	const struct record_hidden hidden = { .context = scene, .is_hidden = is_hidden };

	scene->judged = n;
	return record_judge(&(struct record_judged){
		.keep = keep,
		.hidden = scene->at ? &hidden : NULL,
		.key = &key,
		.info = &scene->versions[n].info,
		.roughly = roughly,
		.latest = scene->latest,
		.context = scene,
		.is_found = is_found,
		.has_older = has_older,
	});
}

static struct record_keep keep_of(struct scene *scene)
{
	return (struct record_keep){
		.context = scene,
		.bounds = kept_bounds,
		.is_reachable = is_reachable,
		.keeps_lone_tombstone = keeps_lone_tombstone,
	};
}

/* Versions with the numbers 10, 20, ...; of `tombstones` bit n makes one of the n-th. */
static struct scene versions(uint32_t count, uint32_t tombstones)
{
	struct scene scene = { .count = count };

	for (uint32_t n = 0; n < count; n++)
		scene.versions[n].info = (struct record_info){
			.sequence = 10 * (n + 1),
			.flags = tombstones >> n & 1 ? RECORD_TOMBSTONE : 0,
		};
	return scene;
}

/* ---- single judgements ---- */

static void test_the_present_needs_the_newest_and_a_boundary_what_is_found_there(void **state)
{
	const struct record_keep present = { 0 };
	struct scene scene = versions(3, 0);
	struct record_keep keep = keep_of(&scene);

	(void)state;
	assert_int_equal(judge(&scene, 2, &present, false), RECORD_NEED_NEWEST);
	assert_int_equal(judge(&scene, 1, &present, false), RECORD_NEED_NONE);
	scene.bounds[scene.bound_count++] = 25;
	assert_int_equal(judge(&scene, 2, &keep, false), RECORD_NEED_NEWEST);
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_OLD);
	assert_int_equal(judge(&scene, 0, &keep, false), RECORD_NEED_NONE);
}

static void test_what_a_rollback_brings_back_is_needed_and_what_it_hides_is_not(void **state)
{
	struct scene scene = versions(3, 0);
	struct record_keep keep = keep_of(&scene);

	(void)state;
	scene.to = 10;
	scene.at = 35;
	assert_int_equal(judge(&scene, 0, &keep, false), RECORD_NEED_OLD);
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NONE);
	assert_int_equal(judge(&scene, 2, &keep, false), RECORD_NEED_NONE);
	/* A reader before the rollback still sees what it hid. */
	scene.bounds[scene.bound_count++] = 30;
	assert_int_equal(judge(&scene, 2, &keep, false), RECORD_NEED_NEWEST);
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NONE);
}

static void test_what_is_found_but_not_reached_is_not_needed(void **state)
{
	struct scene scene = versions(2, 0);
	struct record_keep keep = keep_of(&scene);

	(void)state;
	scene.unreachable = 20;
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NONE);
	/* A tombstone is reached where it is found. */
	scene.versions[1].info.flags = RECORD_TOMBSTONE;
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NEWEST);
}

static void test_a_tombstone_of_nothing_is_needed_only_if_it_says_something(void **state)
{
	struct scene scene = versions(2, 2);
	struct record_keep keep = keep_of(&scene);

	(void)state;
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NEWEST);
	scene.versions[0].dropped = true;
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NONE);
	scene.lone_tombstones = true;
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NEWEST);
}

static void test_with_too_many_bounds_everything_is_kept(void **state)
{
	const struct record_keep keep = { .bounds = too_many_bounds };
	struct scene scene = versions(3, 0);

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(judge(&scene, n, &keep, false),
				 n == 2 ? RECORD_NEED_NEWEST : RECORD_NEED_OLD);
}

static void test_with_too_many_bounds_the_last_put_of_a_command_is_kept_alone(void **state)
{
	const struct record_keep keep = { .bounds = too_many_bounds };
	struct scene scene = versions(3, 0);

	(void)state;
	scene.versions[1].info.sequence = scene.versions[0].info.sequence;
	assert_int_equal(judge(&scene, 0, &keep, false), RECORD_NEED_NONE);
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_OLD);
	assert_int_equal(judge(&scene, 2, &keep, false), RECORD_NEED_NEWEST);
}

static int damaged(void *context, uint64_t bound, bool hides, uint64_t *sequence)
{
	(void)context;
	(void)bound;
	(void)hides;
	(void)sequence;
	return -EBADMSG;
}

static int failing(void *context, uint64_t bound, bool hides, uint64_t *sequence)
{
	(void)context;
	(void)bound;
	(void)hides;
	(void)sequence;
	return -EIO;
}

static void test_what_can_t_be_judged_for_a_lost_page_is_kept_and_other_errors_are_told(
	void **state)
{
	const struct record_keep keep = { 0 };
	const struct record_info info = { .sequence = 10 };
	struct record_judged judged = {
		.keep = &keep, .key = &key, .info = &info, .is_found = damaged
	};

	(void)state;
	assert_int_equal(record_judge(&judged), RECORD_NEED_OLD);
	judged.is_found = failing;
	assert_int_equal(record_judge(&judged), -EIO);
}

static void test_a_rough_judgement_does_not_look_for_the_moment_of_the_put(void **state)
{
	struct scene scene = versions(2, 0);
	struct record_keep keep = keep_of(&scene);

	(void)state;
	scene.bounds[scene.bound_count++] = 10;
	assert_int_equal(judge(&scene, 0, &keep, true), RECORD_NEED_OLD);
	assert_int_equal(scene.searches, 0);
	assert_int_equal(judge(&scene, 0, &keep, false), RECORD_NEED_OLD);
	assert_int_equal(scene.searches, 2);
}

static void test_one_search_tells_what_is_superseded_where_it_is_kept(void **state)
{
	struct scene scene = versions(4, 0);
	struct record_keep keep = keep_of(&scene);

	(void)state;
	scene.latest = 40;
	scene.bounds[scene.bound_count++] = 25;
	scene.bounds[scene.bound_count++] = 35;
	assert_int_equal(judge(&scene, 0, &keep, false), RECORD_NEED_NONE);
	assert_int_equal(scene.searches, 1);
	/* Unless a rollback takes away what supersedes it. */
	scene.to = 10;
	scene.at = 33;
	assert_int_equal(judge(&scene, 0, &keep, false), RECORD_NEED_OLD);
}

static void test_where_the_newest_is_as_old_as_the_bound_one_search_tells(void **state)
{
	struct scene scene = versions(2, 0);
	struct record_keep keep = keep_of(&scene);

	(void)state;
	scene.latest = 20;
	scene.bounds[scene.bound_count++] = 30;
	assert_int_equal(judge(&scene, 0, &keep, false), RECORD_NEED_NONE);
	assert_int_equal(judge(&scene, 1, &keep, false), RECORD_NEED_NEWEST);
	assert_int_equal(scene.searches, 2);
}

/* ---- random ---- */

/* What a reader at `bound` gets: the number of the version, 0 for none. */
static uint64_t read_at(const struct scene *scene, uint64_t bound)
{
	const struct version *version = find(scene, bound, true);

	return !version || version->info.flags & RECORD_TOMBSTONE ? 0 : version->info.sequence;
}

static void begin_scene(struct scene *scene, uint64_t seed)
{
	*scene = versions(1 + (uint32_t)(seed % VERSIONS), 0);
	scene->random = seed;
	scene->latest = seed % 2 ? 10 * scene->count : 0;
	for (uint32_t n = 0; n < scene->count; n++)
		if (below(scene, 3) == 0)
			scene->versions[n].info.flags = RECORD_TOMBSTONE;
	while (scene->bound_count < below(scene, BOUNDS + 1)) {
		uint64_t last = scene->bound_count ? scene->bounds[scene->bound_count - 1] : 0;

		scene->bounds[scene->bound_count++] = last + 1 + below(scene, 50);
	}
	if (below(scene, 2)) {
		scene->to = below(scene, 80);
		scene->at = scene->to + 1 + below(scene, 80);
		if (scene->at % 10 == 0) /* a rollback has a number of its own */
			scene->at++;
	}
}

static void test_dropping_what_is_not_needed_changes_nothing_that_is_kept(void **state)
{
	uint32_t dropped = 0, kept = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20000; seed++) {
		uint64_t expected[BOUNDS], present;
		struct record_keep keep;
		struct scene scene;

		begin_scene(&scene, seed);
		keep = keep_of(&scene);
		present = read_at(&scene, RECORD_NEWEST);
		for (uint32_t n = 0; n < scene.bound_count; n++)
			expected[n] = read_at(&scene, scene.bounds[n]);
		for (uint32_t step = 0; step < 3 * VERSIONS; step++) {
			uint32_t n = below(&scene, scene.count);

			if (scene.versions[n].dropped)
				continue;
			scene.versions[n].dropped = judge(&scene, n, &keep, step % 2) ==
						    RECORD_NEED_NONE;
			dropped += scene.versions[n].dropped;
			kept += !scene.versions[n].dropped;
			assert_int_equal(read_at(&scene, RECORD_NEWEST), present);
			for (uint32_t i = 0; i < scene.bound_count; i++)
				assert_int_equal(read_at(&scene, scene.bounds[i]), expected[i]);
		}
	}
	assert_true(dropped > 10000 && kept > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_the_present_needs_the_newest_and_a_boundary_what_is_found_there),
		cmocka_unit_test(
			test_what_a_rollback_brings_back_is_needed_and_what_it_hides_is_not),
		cmocka_unit_test(test_what_is_found_but_not_reached_is_not_needed),
		cmocka_unit_test(test_a_tombstone_of_nothing_is_needed_only_if_it_says_something),
		cmocka_unit_test(test_with_too_many_bounds_everything_is_kept),
		cmocka_unit_test(test_with_too_many_bounds_the_last_put_of_a_command_is_kept_alone),
		cmocka_unit_test(
			test_what_can_t_be_judged_for_a_lost_page_is_kept_and_other_errors_are_told),
		cmocka_unit_test(test_a_rough_judgement_does_not_look_for_the_moment_of_the_put),
		cmocka_unit_test(test_one_search_tells_what_is_superseded_where_it_is_kept),
		cmocka_unit_test(test_where_the_newest_is_as_old_as_the_bound_one_search_tells),
		cmocka_unit_test(test_dropping_what_is_not_needed_changes_nothing_that_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
