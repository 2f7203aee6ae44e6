/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What merging keeps of objects that went back, and which of the notes that hide data stay as long
 * as something shows what they hide.
 */
#include "engine/history/hidden_review.h"
#include "engine/history/retention.h"
#include "tests/engine/history/object_pages.h"

/* Versions of before and behind it, each as it was, when all else is gone. */
static void test_merging_keeps_what_each_version_shows(void **state)
{
	struct fixture *f = *state;
	struct engine_address at = address_of(PARTITION, OBJECT);
	uint64_t versions[4];

	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	write_all(f, 1);
	versions[0] = take_snapshot(f, PARTITION, NULL);
	write_all(f, 2);
	versions[1] = take_snapshot(f, PARTITION, NULL);
	write_all(f, 3);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_number(versions[0])),
			 0);
	commit(f);
	versions[2] = take_snapshot(f, PARTITION, NULL);
	write_pages(f, PARTITION, 0, PAGES / 2, 4);
	versions[3] = take_snapshot(f, PARTITION, NULL);
	push(f);
	merge_all(f);
	crash(f);
	for (int i = 0; i < 4; i++) {
		at.version = (uint32_t)versions[i];
		check_pages(f, at, 0, PAGES / 2, (uint8_t[]){ 1, 2, 1, 4 }[i]);
		check_pages(f, at, PAGES / 2, PAGES, (uint8_t[]){ 1, 2, 1, 1 }[i]);
	}
	/*
	 * The partition goes to the version in between, and sees it without the object's rollback.
	 */
	begin(f, ENGINE_RESCUE);
	assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(versions[1])), 0);
	commit(f);
	check_all(f, 2);
	merge_all(f);
	begin(f, ENGINE_RESCUE);
	assert_int_equal(engine_rollback(f->txn, PARTITION, at_number(versions[3])), 0);
	commit(f);
	check_pages(f, address_of(PARTITION, OBJECT), 0, PAGES / 2, 4);
	check_pages(f, address_of(PARTITION, OBJECT), PAGES / 2, PAGES, 1);
}

/*
 * What only a version behind it shows: superseded at the version before it and at the present, with
 * no moment left in between.
 */
static void merging_keeps_what_only_a_version_behind_it_shows(struct fixture *f,
							      bool whole_partition)
{
	struct engine_address at = address_of(PARTITION, OBJECT);
	uint32_t versions[2];

	f->now = 10 * SECOND;
	write_all(f, 1);
	f->now = 20 * SECOND;
	write_all(f, 2);
	versions[0] = take_snapshot(f, PARTITION, NULL);
	f->now = 30 * SECOND;
	if (whole_partition)
		roll_back(f, PARTITION, at_time(15 * SECOND));
	else
		assert_int_equal(object_go_back(f, PARTITION, 15 * SECOND), 0);
	versions[1] = take_snapshot(f, PARTITION, NULL);
	write_all(f, 3);
	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	set_kind(f, OTHERS, ENGINE_RETAIN_NONE);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	push(f);
	merge_all(f);
	crash(f);
	check_all(f, 3);
	at.version = versions[0];
	check_pages(f, at, 0, PAGES, 2);
	at.version = versions[1];
	check_pages(f, at, 0, PAGES, 1);
}

static void test_merging_keeps_what_only_a_version_behind_it_shows(void **state)
{
	merging_keeps_what_only_a_version_behind_it_shows(*state, false);
}

static void test_merging_keeps_what_only_a_version_behind_a_partition_s_rollback_shows(void **state)
{
	merging_keeps_what_only_a_version_behind_it_shows(*state, true);
}

/* What is hidden for good makes room. */
static void test_what_is_hidden_is_reclaimed(void **state)
{
	struct fixture *f = *state;
	struct engine_statistics before, after;

	write_all(f, 1);
	set_kind(f, PARTITION, ENGINE_RETAIN_ALL);
	for (uint8_t round = 2; round < 8; round++)
		write_all(f, round);
	undo_without_data(f, PARTITION, 6);
	push(f);
	merge_all(f);
	engine_read_statistics(f->engine, &before);
	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	merge_all(f);
	engine_read_statistics(f->engine, &after);
	assert_in_range(before.used_bytes - after.used_bytes, 3 * BYTES, 8 * BYTES);
	check_all(f, 1);
}

/*
 * Rollbacks that no moment leads to any more are forgotten, so that they never run out by
 * themselves.
 */
static void test_rollbacks_that_nothing_shows_make_room_for_others(void **state)
{
	struct fixture *f = *state;

	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	set_kind(f, OTHERS, ENGINE_RETAIN_NONE);
	for (uint64_t id = OBJECT + 1; id <= OBJECT + 40; id++) {
		const struct engine_address address = address_of(PARTITION, id);
		uint32_t version;

		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, id, 1, NULL),
				 0);
		commit(f);
		write_object(f, address, 0, PAGES, 1);
		version = take_snapshot(f, PARTITION, NULL);
		write_object(f, address, 0, PAGES, 2);
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_rollback_object(f->txn, PARTITION, id, at_number(version)),
				 0);
		commit(f);
		check_pages(f, address, 0, PAGES, 1);
		begin(f, ENGINE_FREE);
		assert_int_equal(engine_version_drop(f->txn, PARTITION, version), 0);
		assert_int_equal(engine_remove(f->txn, address), 0);
		commit(f);
		merge_all(f);
	}
	assert_int_equal(f->engine->past->hidden.count, 0);
	crash(f);
	assert_int_equal(f->engine->past->hidden.count, 0);
	assert_int_equal(f->engine->past->hidden.chunks, 1);
	assert_int_equal(f->engine->past->hidden.lengths[0], HIDDEN_CHUNK_HEAD_BYTES);
}

/*
 * The second one goes back to behind the first, and that to before: what is shown is found by both,
 * even when the first one's onodes are merged away.
 */
static void test_a_rollback_that_another_one_leads_to_stays(void **state)
{
	struct fixture *f = *state;
	const struct engine_address other = address_of(PARTITION, OBJECT + 1);

	f->engine->past->pieces_put_again = 0;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL),
			 0);
	commit(f);
	write_page(f, 10 * SECOND, 0, 'a');
	write_page(f, 20 * SECOND, 0, 'b');
	f->now = 25 * SECOND;
	take_snapshot(f, PARTITION, NULL);
	f->now = 27 * SECOND;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, address_of(PARTITION, OBJECT)), 0);
	commit(f);
	f->now = 29 * SECOND;
	take_snapshot(f, PARTITION, NULL);
	f->now = 30 * SECOND;
	assert_int_equal(object_go_back(f, PARTITION, 15 * SECOND), 0);
	write_page(f, 40 * SECOND, 1, 'c');
	write_page(f, 50 * SECOND, 0, 'd');
	f->now = 60 * SECOND;
	assert_int_equal(object_go_back(f, PARTITION, 45 * SECOND), 0);
	write_object(f, other, 0, 1, 1);
	f->now = 80 * SECOND;
	set_policy(f, PARTITION, 3 * SECOND, 0, 0);
	set_policy(f, 0, 3 * SECOND, 0, 0);
	for (uint8_t round = 2; round < 6; round++) {
		f->now += 20 * SECOND;
		write_object(f, other, 0, 1, round);
		merge_all(f);
	}
	f->now += 2 * SECOND;
	write_object(f, other, 0, 1, 6);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT + 1, 1), 0);
	commit(f);
	check_page(f, 0, 0, 'a');
	check_page(f, 0, 1, 'c');
}

/* One of the partition, on a line of history that has been left before `go_back` leads to it. */
static void keep_rollback_for(struct fixture *f, void (*go_back)(struct fixture *f))
{
	f->now = 10 * SECOND;
	write_all(f, 1);
	f->now = 20 * SECOND;
	write_all(f, 2);
	f->now = 30 * SECOND;
	roll_back_to_time(f, PARTITION, 15 * SECOND);
	f->now = 40 * SECOND;
	write_pages(f, PARTITION, 0, 10, 3);
	f->now = 50 * SECOND;
	roll_back_to_time(f, PARTITION, 22 * SECOND);
	f->now = 60 * SECOND;
	go_back(f);
	f->now = 70 * SECOND;
	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	/* Each looks for a place to take. What is hidden has not been merged away. */
	for (int n = 0; n < 8; n++) {
		uint32_t version = take_snapshot(f, PARTITION, NULL);
		const struct engine_moment to = { .kind = ENGINE_AT_VERSION, .value = version };

		f->now += 2 * SECOND;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_rollback(f->txn, PARTITION, to), 0);
		commit(f);
	}
	check_pages(f, address_of(PARTITION, OBJECT), 0, 10, 3);
	check_pages(f, address_of(PARTITION, OBJECT), 10, PAGES, 1);
}

static void object_back(struct fixture *f)
{
	assert_int_equal(object_go_back(f, PARTITION, 45 * SECOND), 0);
}

static void partition_back(struct fixture *f)
{
	roll_back_to_time(f, PARTITION, 45 * SECOND);
}

static void device_back(struct fixture *f)
{
	roll_back_to_time(f, 0, 45 * SECOND);
}

static void test_a_rollback_of_the_partition_that_an_objects_leads_to_stays(void **state)
{
	keep_rollback_for(*state, object_back);
}

static void test_a_rollback_of_the_partition_that_another_of_it_leads_to_stays(void **state)
{
	keep_rollback_for(*state, partition_back);
}

static void test_a_rollback_of_the_partition_that_one_of_the_device_leads_to_stays(void **state)
{
	keep_rollback_for(*state, device_back);
}

/* A version of after the object's end shows nothing of what its rollback hides. */
static void test_a_rollback_goes_with_its_object_when_only_later_versions_stay(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	undo_without_data(f, PARTITION, 1);
	set_kind(f, PARTITION, ENGINE_RETAIN_NONE);
	set_kind(f, 0, ENGINE_RETAIN_NONE);
	f->now += 5 * SECOND;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, address_of(PARTITION, OBJECT)), 0);
	commit(f);
	assert_int_equal(f->engine->past->hidden.count, 1);
	f->now += 5 * SECOND;
	take_snapshot(f, PARTITION, NULL);
	f->now += 5 * SECOND;
	write_pages(f, OTHERS, 0, 1, 1);
	assert_int_equal(retention_judge(f->engine), 0);
	hidden_review(f->engine);
	assert_int_equal(f->engine->past->hidden.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_merging_keeps_what_each_version_shows),
		FLASH_TEST(test_merging_keeps_what_only_a_version_behind_it_shows),
		FLASH_TEST(
			test_merging_keeps_what_only_a_version_behind_a_partition_s_rollback_shows),
		FLASH_TEST(test_what_is_hidden_is_reclaimed),
		FLASH_TEST(test_rollbacks_that_nothing_shows_make_room_for_others),
		FLASH_TEST(test_a_rollback_that_another_one_leads_to_stays),
		FLASH_TEST(test_a_rollback_of_the_partition_that_an_objects_leads_to_stays),
		FLASH_TEST(test_a_rollback_of_the_partition_that_another_of_it_leads_to_stays),
		FLASH_TEST(test_a_rollback_of_the_partition_that_one_of_the_device_leads_to_stays),
		FLASH_TEST(test_a_rollback_goes_with_its_object_when_only_later_versions_stay),
	};

	return cmocka_run_group_tests_name("object_rollbacks_kept", tests, NULL, NULL);
}
