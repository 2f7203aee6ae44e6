/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What takes the space: sums over all pages are what a merge finds, and few pages tell about the
 * same. Dropping and shortening free what was told before. Runs for each index.
 */
#include "common/bytes.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { BLOCKS = 900, PAGES = 40 };

struct sums {
	struct engine_survey_part device, mine, other, removed, others;
	uint64_t version[10]; /* by number */
	uint64_t looked_at, pages, calls, record_bytes, used, all;
};

static int setup(void **state)
{
	struct fixture *f = make_merging(BLOCKS);

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, 2, NULL), 0);
	commit(f);
	*state = f;
	return 0;
}

/* Each slot has its own time. */
static void write_pages(struct fixture *f, uint64_t object, uint32_t pages, char byte)
{
	const struct engine_address address = { .partition = PARTITION, .object = OBJECT + object };
	static char data[PAGE];

	f->now += 2000;
	for (uint32_t page = 0; page < pages; page++) {
		memset(data, byte + (char)page, sizeof(data));
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_write(f->txn, address, (uint64_t)page * PAGE, data, PAGE),
				 0);
		commit(f);
	}
}

static void add(struct engine_survey_part *to, const struct engine_survey_part *from)
{
	to->live += from->live;
	to->kept += from->kept;
	to->history += from->history;
	to->reclaimable += from->reclaimable;
	to->freed += from->freed;
}

static struct engine_survey_part *sum_of(struct sums *sums, const struct engine_survey_part *part)
{
	switch (part->kind) {
	case ENGINE_SURVEY_DEVICE:
		return &sums->device;
	case ENGINE_SURVEY_REMOVED:
		return &sums->removed;
	case ENGINE_SURVEY_OTHERS:
		return &sums->others;
	default:
		return part->partition == PARTITION ? &sums->mine : &sums->other;
	}
}

/* One survey, in parts as small as they come. */
static struct sums survey(struct fixture *f, struct engine_survey asked)
{
	struct sums sums = { .calls = 0 };

	asked.work = 1;
	if (!asked.wanted)
		asked.wanted = UINT64_MAX;
	while (!asked.done) {
		begin(f, ENGINE_READ);
		assert_int_equal(engine_survey(f->txn, &asked), 0);
		commit(f);
		for (uint32_t n = 0; n < asked.part_count; n++) {
			const struct engine_survey_part *part = &asked.parts[n];

			add(sum_of(&sums, part), part);
			sums.all += part->live + part->kept + part->history + part->reclaimable;
		}
		for (uint32_t n = 0; n < asked.version_count; n++)
			sums.version[asked.versions[n].version % 10] += asked.versions[n].bytes;
		sums.looked_at += asked.looked_at;
		sums.calls++;
	}
	sums.pages = asked.pages;
	sums.record_bytes = asked.record_bytes;
	sums.used = asked.used_bytes;
	return sums;
}

/* Between the bytes of so many pages of data and a little more, for what tells of them. */
static void assert_pages(uint64_t bytes, uint32_t pages)
{
	assert_in_range(bytes, (uint64_t)pages * PAGE, ((uint64_t)pages + 6) * PAGE);
}

static void test_each_record_counts_once_and_as_what_it_is(void **state)
{
	struct fixture *f = *state;
	struct sums sums;

	write_pages(f, 0, PAGES, 'a');
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
	write_pages(f, 0, PAGES, 'b'); /* history that goes */
	write_pages(f, 0, PAGES / 2, 'c');
	sums = survey(f, (struct engine_survey){ .partition = 0 });
	assert_int_equal(sums.looked_at, sums.pages);
	assert_pages(sums.mine.live, PAGES);
	assert_pages(sums.mine.kept, PAGES);
	assert_true(sums.mine.history >= (uint64_t)(PAGES / 2) * PAGE);
	assert_true(sums.device.live > 0 && sums.device.live < 8 * PAGE);
	assert_true(sums.all <= sums.record_bytes);
	assert_true(sums.record_bytes <= sums.used);
}

static void test_a_version_has_what_it_alone_keeps(void **state)
{
	struct fixture *f = *state;
	struct sums sums, without;

	write_pages(f, 0, PAGES, 'a');
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
	write_pages(f, 0, PAGES / 2, 'b');
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 2);
	write_pages(f, 0, PAGES, 'c');
	sums = survey(f, (struct engine_survey){ .partition = PARTITION });
	/* Half of version 1 is in version 2, too. */
	assert_pages(sums.version[1], PAGES / 2);
	assert_pages(sums.version[2], PAGES / 2);
	without = survey(f, (struct engine_survey){
				    .partition = PARTITION, .drop = { 1 }, .drop_count = 1 });
	assert_pages(without.mine.freed, PAGES / 2);
	/* Without both, also what they share. */
	without = survey(f, (struct engine_survey){
				    .partition = PARTITION, .drop = { 2, 1 }, .drop_count = 2 });
	assert_pages(without.mine.freed, PAGES + PAGES / 2);
	/* And so it is when that is done: what was kept becomes history. */
	drop_version(f, PARTITION, 1);
	drop_version(f, PARTITION, 2);
	assert_true(survey(f, (struct engine_survey){ .partition = PARTITION }).mine.kept <
		    6 * PAGE);
}

static void test_a_shorter_history_frees_what_was_told(void **state)
{
	const struct engine_retention everything = { .kind = ENGINE_RETAIN_ALL };
	struct fixture *f = *state;
	struct engine_survey asked = { .partition = PARTITION };
	struct engine_moment now = { .kind = ENGINE_NOW };
	uint64_t freed;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_retention_set(f->txn, PARTITION, &everything, false), 0);
	assert_int_equal(engine_retention_set(f->txn, 0, &everything, false), 0);
	commit(f);
	write_pages(f, 0, PAGES, 'a');
	write_pages(f, 0, PAGES, 'b');
	assert_pages(survey(f, asked).mine.live, PAGES);
	assert_true(survey(f, asked).mine.kept >= PAGES * PAGE);
	assert_true(survey(f, asked).mine.history < PAGE);
	f->now += 2000;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, now, &asked.horizon), 0);
	commit(f);
	freed = survey(f, asked).mine.freed;
	assert_true(freed >= PAGES * PAGE);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	asked.horizon = 0;
	assert_true(survey(f, asked).mine.reclaimable + 6 * PAGE >= freed);
}

static void test_removed_partitions_and_others_are_apart(void **state)
{
	struct fixture *f = *state;
	struct sums sums;

	write_pages(f, 0, PAGES, 'a');
	create(f, PARTITION + 1);
	f->now += 2000;
	sums = survey(f, (struct engine_survey){ .partition = PARTITION + 1 });
	assert_true(sums.others.live >= PAGES * PAGE);
	assert_true(sums.mine.live == 0 && sums.other.live > 0);
	remove_partition(f, PARTITION);
	f->now += 2000;
	sums = survey(f, (struct engine_survey){ .partition = 0 });
	assert_true(sums.mine.live == 0);
	/* Moments of the device still show it. */
	assert_true(sums.removed.history >= PAGES * PAGE);
}

static void test_what_a_rollback_hides_is_no_present(void **state)
{
	struct fixture *f = *state;
	struct sums sums;

	write_pages(f, 0, PAGES, 'a');
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
	write_pages(f, 0, PAGES, 'b');
	f->now += 2000;
	roll_back(f, PARTITION, (struct engine_moment){ ENGINE_AT_VERSION, 1 });
	sums = survey(f, (struct engine_survey){ .partition = PARTITION });
	assert_pages(sums.mine.live, PAGES);
	assert_true(sums.mine.history >= PAGES * PAGE);
	assert_true(sums.mine.kept < 6 * PAGE);
}

static void test_some_pages_tell_about_the_same(void **state)
{
	struct fixture *f = *state;
	struct sums all, some;

	for (uint32_t round = 0; round < 6; round++)
		write_pages(f, round % 2, 150, (char)('a' + round));
	all = survey(f, (struct engine_survey){ .partition = 0 });
	some = survey(f, (struct engine_survey){ .partition = 0, .wanted = all.pages / 3 });
	assert_int_equal(some.looked_at, all.pages / 3);
	/* The same pages each time, so this is no matter of luck. */
	assert_in_range(some.mine.live * 100 / some.all, all.mine.live * 100 / all.all - 8,
			all.mine.live * 100 / all.all + 8);
}

/* ---- records that can't be judged ---- */

static const struct record_store_operations *original;
static int failure; /* of each look for a record of an object that wants no data */

static int failing_get(struct record_store *store, const struct record_key *key, uint64_t bound,
		       void *data, uint32_t length, struct record_info *info)
{
	if (failure && !data && key->partition != RECORD_ROOT_INDEX)
		return failure;
	return original->get(store, key, bound, data, length, info);
}

/* The first result that is none, or 0 at the survey's end. */
static int result_of_survey(struct fixture *f, struct engine_survey asked)
{
	int result = 0;

	asked.wanted = UINT64_MAX;
	asked.work = 1;
	while (!result && !asked.done) {
		begin(f, ENGINE_READ);
		result = engine_survey(f->txn, &asked);
		commit(f);
	}
	return result;
}

static void test_what_fails_ends_it_and_what_is_damaged_does_not(void **state)
{
	struct fixture *f = *state;
	struct record_store_operations operations = *f->engine->store->operations;
	const struct engine_survey asked = { .partition = PARTITION,
					     .drop = { 1 },
					     .drop_count = 1 };

	write_pages(f, 0, PAGES, 'a');
	assert_int_equal(take_snapshot(f, PARTITION, NULL), 1);
	write_pages(f, 0, PAGES, 'b');
	original = f->engine->store->operations;
	operations.get = failing_get;
	f->engine->store->operations = &operations;
	failure = 0;
	assert_int_equal(result_of_survey(f, asked), 0);
	failure = -EIO;
	assert_int_equal(result_of_survey(f, asked), -EIO);
	failure = -EBADMSG;
	assert_int_equal(result_of_survey(f, asked), 0);
	f->engine->store->operations = original;
}

static void test_what_is_not_there_is_refused(void **state)
{
	struct fixture *f = *state;
	struct engine_survey asked = { .partition = PARTITION + 7 };

	begin(f, ENGINE_READ);
	assert_int_equal(engine_survey(f->txn, &asked), -ENOENT);
	asked = (struct engine_survey){ .partition = PARTITION, .drop = { 3 }, .drop_count = 1 };
	assert_int_equal(engine_survey(f->txn, &asked), -ENOENT);
	commit(f);
}

#define SURVEY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Segments of stretches, and what was seen in them, added up. */
static struct engine_stretch whole_of(const struct engine_stretch *stretches, uint32_t count)
{
	struct engine_stretch whole = { 0 };

	for (uint32_t n = 0; n < count; n++) {
		assert_true(stretches[n].segments > 0);
		assert_true(stretches[n].free + stretches[n].sealed <= stretches[n].segments);
		assert_true(stretches[n].live_bytes <= stretches[n].looked_bytes);
		assert_true(stretches[n].sealed > 0 || stretches[n].looked_bytes == 0);
		whole.segments += stretches[n].segments;
		whole.free += stretches[n].free;
		whole.sealed += stretches[n].sealed;
		whole.looked_bytes += stretches[n].looked_bytes;
		whole.live_bytes += stretches[n].live_bytes;
	}
	return whole;
}

static void test_a_map_shows_what_segments_are_used_for_and_how_much_of_them_lives(void **state)
{
	struct engine_stretch stretches[ENGINE_SURVEY_STRETCHES], whole;
	struct engine_survey asked = { .partition = 0, .stretches = stretches };
	struct engine_statistics statistics;
	struct fixture *f = *state;
	struct sums sums;

	for (int round = 0; round < 12; round++)
		write_pages(f, (uint64_t)round % 2, PAGES, (char)('a' + round));
	engine_read_statistics(f->engine, &statistics);
	assert_true(statistics.segments_sealed > 0);
	for (uint32_t count = 1; count <= ENGINE_SURVEY_STRETCHES; count += 85) {
		memset(stretches, 0, sizeof(stretches));
		asked.stretch_count = count;
		sums = survey(f, asked);
		whole = whole_of(stretches, (uint32_t)min_u64(count, statistics.segments));
		assert_int_equal(whole.segments, statistics.segments);
		assert_int_equal(whole.free, statistics.segments_free);
		assert_int_equal(whole.sealed, statistics.segments_sealed);
		/* All but what is in NVRAM. Of this much is overwritten. */
		assert_in_range(whole.looked_bytes, sums.all / 4, sums.all);
		assert_in_range(whole.live_bytes, 1, sums.mine.live + sums.device.live);
		assert_true(whole.live_bytes < whole.looked_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SURVEY_TEST(test_each_record_counts_once_and_as_what_it_is),
		SURVEY_TEST(test_a_version_has_what_it_alone_keeps),
		SURVEY_TEST(test_a_shorter_history_frees_what_was_told),
		SURVEY_TEST(test_removed_partitions_and_others_are_apart),
		SURVEY_TEST(test_what_a_rollback_hides_is_no_present),
		SURVEY_TEST(test_some_pages_tell_about_the_same),
		SURVEY_TEST(test_what_fails_ends_it_and_what_is_damaged_does_not),
		SURVEY_TEST(test_what_is_not_there_is_refused),
		SURVEY_TEST(test_a_map_shows_what_segments_are_used_for_and_how_much_of_them_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
