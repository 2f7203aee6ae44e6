/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Large objects go back by a note that hides what was put since, whatever their size; and what
 * merging keeps of them.
 */
#include "tests/engine/fixture.h"

#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/objects/objects.h"

enum {
	PAGES = 200,
	BYTES = PAGES * PAGE,
	/* Onode, rollback and the root's history, and the two records with which a slot begins:
	   none of them holds data. */
	RECORDS_PUT_MAX = 9 * PAGE / 4,
};

static struct engine_address address_of(uint64_t partition, uint64_t object)
{
	return (struct engine_address){ .partition = partition, .object = object };
}

/* Writes pages first..end - 1 of an object, each with what it can be told by. */
static void write_object(struct fixture *f, struct engine_address address, uint32_t first,
			 uint32_t end, uint8_t round)
{
	uint8_t page[PAGE];

	begin(f, ENGINE_WRITE);
	for (uint32_t at = first; at < end; at++) {
		memset(page, round, sizeof(page));
		put_le32(page, at);
		assert_int_equal(engine_write(f->txn, address, (uint64_t)at * PAGE, page, PAGE), 0);
	}
	commit(f);
}

static void write_pages(struct fixture *f, uint64_t partition, uint32_t first, uint32_t end,
			uint8_t round)
{
	write_object(f, address_of(partition, OBJECT), first, end, round);
}

static void write_all(struct fixture *f, uint8_t round)
{
	write_pages(f, PARTITION, 0, PAGES, round);
}

/* Pages first..end - 1 are those of a round. */
static void check_pages(struct fixture *f, struct engine_address address, uint32_t first,
			uint32_t end, uint8_t round)
{
	uint8_t page[PAGE];
	uint64_t got;

	begin(f, ENGINE_READ);
	for (uint32_t at = first; at < end; at++) {
		assert_int_equal(
			engine_read(f->txn, address, (uint64_t)at * PAGE, page, PAGE, &got), 0);
		assert_int_equal(got, PAGE);
		assert_int_equal(get_le32(page), at);
		assert_int_equal(page[PAGE - 1], round);
	}
	commit(f);
}

static void check_all(struct fixture *f, uint8_t round)
{
	check_pages(f, address_of(PARTITION, OBJECT), 0, PAGES, round);
}

static uint64_t length_of(struct fixture *f, uint64_t partition)
{
	struct engine_stat stat;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_stat(f->txn, address_of(partition, OBJECT), &stat), 0);
	commit(f);
	return stat.length;
}

/* What has ever been put, in bytes. */
static uint64_t put_so_far(const struct fixture *f)
{
	return f->engine->put_bytes;
}

static void undo(struct fixture *f, uint64_t partition, uint32_t modifications)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, partition, OBJECT, modifications), 0);
	commit(f);
}

/* The same, having put no data. */
static void undo_without_data(struct fixture *f, uint64_t partition, uint32_t modifications)
{
	uint64_t before = put_so_far(f);

	undo(f, partition, modifications);
	assert_in_range(put_so_far(f) - before, 1, RECORDS_PUT_MAX);
}

static int go_back(struct fixture *f, uint64_t partition, uint64_t ms)
{
	const struct engine_moment to = { .kind = ENGINE_AT_TIME, .value = ms };

	begin(f, ENGINE_WRITE);
	return end(f, engine_rollback_object(f->txn, partition, OBJECT, to));
}

static void keep(struct fixture *f, uint64_t partition, enum engine_retention_kind kind)
{
	const struct engine_retention retention = { .kind = kind };

	begin(f, ENGINE_HISTORY);
	assert_int_equal(engine_retention_set(f->txn, partition, &retention, false), 0);
	commit(f);
}

/* Fills buffers, so that what was put before is in segments that can be merged. */
static void push(struct fixture *f)
{
	for (uint8_t round = 0; round < 3; round++)
		write_pages(f, OTHERS, 0, PAGES, round);
}

static void test_a_large_object_goes_back_without_its_data_being_put_again(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	undo_without_data(f, PARTITION, 1);
	check_all(f, 1);
	/* What was undone is still the modification before. */
	check_pages(f,
		    (struct engine_address){ .partition = PARTITION, .object = OBJECT, .ago = 1 },
		    0, PAGES, 2);
	undo_without_data(f, PARTITION, 1);
	check_all(f, 2);
	undo_without_data(f, PARTITION, 3);
	check_all(f, 1);
	crash(f);
	check_all(f, 1);
	assert_int_equal(f->engine->past->hidden.count, 3);
}

static void test_a_small_object_is_put_again(void **state)
{
	struct fixture *f = *state;

	write_pages(f, PARTITION, 0, 3, 1);
	write_pages(f, PARTITION, 0, 3, 2);
	undo(f, PARTITION, 1);
	check_pages(f, address_of(PARTITION, OBJECT), 0, 3, 1);
	assert_int_equal(f->engine->past->hidden.count, 0);
}

static void test_what_is_written_behind_it_counts(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	undo_without_data(f, PARTITION, 1);
	write_pages(f, PARTITION, 10, 20, 3);
	crash(f);
	for (int after = 0; after < 2; after++) {
		check_pages(f, address_of(PARTITION, OBJECT), 0, 10, 1);
		check_pages(f, address_of(PARTITION, OBJECT), 10, 20, 3);
		check_pages(f, address_of(PARTITION, OBJECT), 20, PAGES, 1);
		keep(f, PARTITION, ENGINE_RETAIN_NONE);
		push(f);
		merge_all(f);
	}
}

/* In the transaction that goes back, too. */
static void test_a_transaction_may_write_behind_it(void **state)
{
	struct fixture *f = *state;
	uint8_t page[PAGE] = { 7 };
	const struct engine_address address = address_of(PARTITION, OBJECT);

	write_all(f, 1);
	write_all(f, 2);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	page[PAGE - 1] = 9;
	assert_int_equal(engine_write(f->txn, address, 0, page, PAGE), 0);
	commit(f);
	check_pages(f, address, 1, PAGES, 1);
	/* And one that wrote before has pages of its own number, which nothing hides. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, PAGE, page, PAGE), 0);
	assert_int_equal(engine_rollback_object(f->txn, PARTITION, OBJECT, at_time(f->now)), 0);
	engine_abort(f->txn);
	f->now += 5 * SECOND;
	write_all(f, 3);
	f->now += 5 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, PAGE, page, PAGE), 0);
	assert_int_equal(
		engine_rollback_object(f->txn, PARTITION, OBJECT, at_time(f->now - SECOND)), 0);
	commit(f);
	check_all(f, 3);
}

static void test_an_abort_leaves_all_as_it_was(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	engine_abort(f->txn);
	assert_int_equal(f->engine->past->hidden.count, 0);
	check_all(f, 2);
	crash(f);
	check_all(f, 2);
}

static void test_an_object_that_was_removed_comes_back_without_its_data_being_put_again(
	void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	write_all(f, 1);
	f->now += 5 * SECOND;
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, address_of(PARTITION, OBJECT)), 0);
	commit(f);
	/* Another one has its ID for a while. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	commit(f);
	write_pages(f, PARTITION, 50, PAGES + 50, 2);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_remove(f->txn, address_of(PARTITION, OBJECT)), 0);
	commit(f);
	before = put_so_far(f);
	assert_int_equal(go_back(f, PARTITION, SECOND + 1), 0);
	assert_in_range(put_so_far(f) - before, 1, 2 * RECORDS_PUT_MAX);
	check_all(f, 1);
	assert_int_equal(length_of(f, PARTITION), BYTES);
	keep(f, PARTITION, ENGINE_RETAIN_NONE);
	push(f);
	merge_all(f);
	crash(f);
	check_all(f, 1);
}

static void test_holes_and_ends_are_those_of_then(void **state)
{
	struct fixture *f = *state;
	const struct engine_address address = address_of(PARTITION, OBJECT);
	struct engine_extent extent;
	uint32_t budget = UINT32_MAX;
	uint8_t byte;
	uint64_t got;

	write_all(f, 1);
	begin(f, ENGINE_FREE);
	assert_int_equal(engine_punch(f->txn, address, 20 * PAGE, 60 * PAGE), 0);
	commit(f);
	write_pages(f, PARTITION, 10, PAGES + 100, 2);
	undo_without_data(f, PARTITION, 1);
	assert_int_equal(length_of(f, PARTITION), BYTES - 60 * PAGE);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 5 * PAGE), 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_truncate(f->txn, address, 400 * PAGE), 0);
	commit(f);
	undo_without_data(f, PARTITION, 2);
	for (int after = 0; after < 2; after++) {
		check_pages(f, address, 0, 20, 1);
		assert_int_equal(length_of(f, PARTITION), BYTES - 60 * PAGE);
		begin(f, ENGINE_READ);
		assert_int_equal(engine_map(f->txn, address, 0, true, &budget, &extent), 0);
		assert_int_equal(extent.length, BYTES - 60 * PAGE);
		assert_int_equal(extent.kind, ENGINE_EXTENT_DATA);
		commit(f);
		keep(f, PARTITION, ENGINE_RETAIN_NONE);
		push(f);
		merge_all(f);
	}
	/* What is cut and written again beyond is not what had been there. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, address, 300 * PAGE, "x", 1), 0);
	commit(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_read(f->txn, address, 299 * PAGE, &byte, 1, &got), 0);
	assert_int_equal(got, 1);
	assert_int_equal(byte, 0);
	commit(f);
}

/* Versions of before and behind it, each as it was, when all else is gone. */
static void test_merging_keeps_what_each_version_shows(void **state)
{
	struct fixture *f = *state;
	struct engine_address at = address_of(PARTITION, OBJECT);
	uint64_t versions[4];

	keep(f, PARTITION, ENGINE_RETAIN_NONE);
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
static void test_merging_keeps_what_only_a_version_behind_it_shows(void **state)
{
	struct fixture *f = *state;
	struct engine_address at = address_of(PARTITION, OBJECT);
	uint32_t versions[2];

	f->now = 10 * SECOND;
	write_all(f, 1);
	f->now = 20 * SECOND;
	write_all(f, 2);
	versions[0] = take_snapshot(f, PARTITION, NULL);
	f->now = 30 * SECOND;
	assert_int_equal(go_back(f, PARTITION, 15 * SECOND), 0);
	versions[1] = take_snapshot(f, PARTITION, NULL);
	write_all(f, 3);
	keep(f, PARTITION, ENGINE_RETAIN_NONE);
	keep(f, OTHERS, ENGINE_RETAIN_NONE);
	keep(f, 0, ENGINE_RETAIN_NONE);
	push(f);
	merge_all(f);
	crash(f);
	check_all(f, 3);
	at.version = versions[0];
	check_pages(f, at, 0, PAGES, 2);
	at.version = versions[1];
	check_pages(f, at, 0, PAGES, 1);
}

/* What is hidden for good makes room. */
static void test_what_is_hidden_is_reclaimed(void **state)
{
	struct fixture *f = *state;
	struct engine_statistics before, after;

	write_all(f, 1);
	keep(f, PARTITION, ENGINE_RETAIN_ALL);
	for (uint8_t round = 2; round < 8; round++)
		write_all(f, round);
	undo_without_data(f, PARTITION, 6);
	push(f);
	merge_all(f);
	engine_read_statistics(f->engine, &before);
	keep(f, PARTITION, ENGINE_RETAIN_NONE);
	merge_all(f);
	engine_read_statistics(f->engine, &after);
	assert_in_range(before.used_bytes - after.used_bytes, 3 * BYTES, 8 * BYTES);
	check_all(f, 1);
}

/* A writable one of the partition as it is. */
static void make_clone(struct fixture *f)
{
	uint64_t id = CLONE;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION,
				      (struct engine_moment){ .kind = ENGINE_NOW }, id, true, &id),
			 0);
	commit(f);
}

static void test_an_object_of_a_clone_goes_back(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	make_clone(f);
	f->now += 5 * SECOND;
	write_pages(f, CLONE, 0, PAGES / 2, 2);
	f->now += 5 * SECOND;
	write_pages(f, CLONE, 0, PAGES, 3);
	undo_without_data(f, CLONE, 1);
	write_all(f, 9);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
	check_pages(f, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
	/* A refresh makes it its source again, of which nothing is hidden. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
	commit(f);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES, 9);
	/* Across it the data has to be put again: what is older is read in another source. */
	assert_int_equal(go_back(f, CLONE, 7 * SECOND), 0);
	for (int after = 0; after < 2; after++) {
		check_pages(f, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
		check_pages(f, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
		keep(f, PARTITION, ENGINE_RETAIN_NONE);
		keep(f, CLONE, ENGINE_RETAIN_NONE);
		push(f);
		merge_all(f);
	}
	assert_int_equal(f->engine->past->hidden.count, 1);
}

static void roll_back_to(struct fixture *f, uint64_t partition, uint64_t ms)
{
	const struct engine_moment to = { .kind = ENGINE_AT_TIME, .value = ms };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_rollback(f->txn, partition, to), 0);
	commit(f);
	f->now += 2 * SECOND;
}

/*
 * A moment that came behind a refresh may show the clone as before it, when it had been rolled back
 * meanwhile.
 */
static void test_an_object_of_a_clone_goes_back_to_a_line_of_history_without_a_refresh(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	make_clone(f);
	f->now = 10 * SECOND;
	write_pages(f, CLONE, 0, PAGES / 2, 2);
	write_all(f, 9);
	f->now = 20 * SECOND;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
	commit(f);
	f->now = 30 * SECOND;
	roll_back_to(f, CLONE, 15 * SECOND);
	f->now = 40 * SECOND;
	roll_back_to(f, CLONE, 25 * SECOND);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES, 9);
	assert_int_equal(go_back(f, CLONE, 35 * SECOND), 0);
	check_pages(f, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
	check_pages(f, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
}

/*
 * Rollbacks that no moment leads to any more are forgotten, so that they never run out by
 * themselves.
 */
static void test_rollbacks_that_nothing_shows_make_room_for_others(void **state)
{
	struct fixture *f = *state;

	keep(f, PARTITION, ENGINE_RETAIN_NONE);
	keep(f, OTHERS, ENGINE_RETAIN_NONE);
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
	assert_int_equal(go_back(f, PARTITION, 15 * SECOND), 0);
	write_page(f, 40 * SECOND, 1, 'c');
	write_page(f, 50 * SECOND, 0, 'd');
	f->now = 60 * SECOND;
	assert_int_equal(go_back(f, PARTITION, 45 * SECOND), 0);
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

/* How many rollbacks a reader of the object's oldest data goes by. */
static uint32_t steps_of(struct fixture *f)
{
	struct record_key key = key_of_data(0, OBJECT, 0);
	struct partition *partition;

	assert_int_equal(partition_get(f->engine, PARTITION, &partition), 0);
	key.partition = partition->index;
	partition_release(f->engine, partition);
	return hidden_steps(&f->engine->past->hidden, key.partition, OBJECT, RECORD_NEWEST,
			    UINT32_MAX);
}

static void test_undoing_again_and_again_leaves_one_step_to_readers(void **state)
{
	struct fixture *f = *state;

	write_all(f, 1);
	write_all(f, 2);
	for (uint8_t n = 0; n < 50; n++) {
		undo_without_data(f, PARTITION, 1);
		assert_int_equal(steps_of(f), 1);
		check_all(f, n % 2 ? 2 : 1);
	}
	crash(f);
	for (uint8_t n = 0; n < 9; n++) {
		undo_without_data(f, PARTITION, 1);
		assert_int_equal(steps_of(f), 1);
		check_all(f, n % 2 ? 2 : 1);
	}
	/* A transaction that writes behind its rollback leaves more than that did. */
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	assert_int_equal(engine_write(f->txn, address_of(PARTITION, OBJECT), 5, "x", 1), 0);
	commit(f);
	write_all(f, 3);
	undo_without_data(f, PARTITION, 1);
	check_pages(f, address_of(PARTITION, OBJECT), 1, PAGES, 2);
	begin(f, ENGINE_READ);
	char byte;
	uint64_t got;
	assert_int_equal(engine_read(f->txn, address_of(PARTITION, OBJECT), 5, &byte, 1, &got), 0);
	assert_int_equal(byte, 'x');
	commit(f);
}

/*
 * What stays between what is undone makes each rollback a step of its own; with many of them the
 * object is put again.
 */
static void test_readers_never_go_by_too_many(void **state)
{
	enum { ROUNDS = 600, STEPS_MANY = 512 };
	struct fixture *f = *state;

	write_all(f, 0);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		write_pages(f, PARTITION, n % PAGES, n % PAGES + 1, 1);
		write_pages(f, PARTITION, 0, 1, 2);
		undo(f, PARTITION, 1);
		assert_in_range(steps_of(f), 1, STEPS_MANY);
	}
	assert_int_equal(steps_of(f), STEPS_MANY);
	check_all(f, 1);
}

/* Also one of the partition, on a line of history that has been left since. */
static void test_a_rollback_of_the_partition_that_an_objects_leads_to_stays(void **state)
{
	struct fixture *f = *state;

	f->now = 10 * SECOND;
	write_all(f, 1);
	f->now = 20 * SECOND;
	write_all(f, 2);
	f->now = 30 * SECOND;
	roll_back_to(f, PARTITION, 15 * SECOND);
	f->now = 40 * SECOND;
	write_pages(f, PARTITION, 0, 10, 3);
	f->now = 50 * SECOND;
	roll_back_to(f, PARTITION, 22 * SECOND);
	f->now = 60 * SECOND;
	assert_int_equal(go_back(f, PARTITION, 45 * SECOND), 0);
	f->now = 70 * SECOND;
	keep(f, PARTITION, ENGINE_RETAIN_NONE);
	keep(f, 0, ENGINE_RETAIN_NONE);
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

/* As many as all share, all of them seen. */
static void use_up_shared_ones(struct fixture *f)
{
	struct hidden *hidden = &f->engine->past->hidden;
	struct partition *others;
	uint64_t first;

	f->now += 5 * SECOND;
	write_pages(f, OTHERS, 0, 1, 1);
	first = f->engine->committed;
	for (int slot = 0; slot < 3; slot++) {
		f->now += 50 * SECOND;
		write_pages(f, OTHERS, 0, 1, 1);
	}
	assert_true(f->engine->committed > first + 2 * ENGINE_HIDDEN_MAX);
	assert_int_equal(partition_get(f->engine, OTHERS, &others), 0);
	assert_null(hidden->list);
	hidden->capacity = 2 * ENGINE_HIDDEN_MAX;
	hidden->list = calloc(hidden->capacity, sizeof(*hidden->list));
	assert_non_null(hidden->list);
	for (uint32_t n = 0; n < ENGINE_HIDDEN_MAX; n++)
		hidden->list[n] = (struct hidden_interval){ .identifier = OBJECT,
							    .partition = others->index,
							    .at = first + 2 * n + 2,
							    .to = first + 2 * n + 1 };
	hidden->count = ENGINE_HIDDEN_MAX;
	/* They are in memory only: new ones go to the first chunks of the table. */
	partition_release(f->engine, others);
}

/*
 * Other objects' never shut one out: each partition has some of its own, and what is not too large
 * is put again.
 */
static void test_when_they_run_out_an_object_is_put_again(void **state)
{
	struct fixture *f = *state;
	const uint32_t full = ENGINE_HIDDEN_MAX + ENGINE_HIDDEN_OWN;
	uint64_t before;

	use_up_shared_ones(f);
	write_all(f, 1);
	write_all(f, 2);
	for (int n = 0; n < ENGINE_HIDDEN_OWN; n++)
		undo_without_data(f, PARTITION, 1);
	check_all(f, 2);
	assert_int_equal(f->engine->past->hidden.count, full);
	before = put_so_far(f);
	undo(f, PARTITION, 1);
	assert_true(put_so_far(f) - before > BYTES);
	check_all(f, 1);
	assert_int_equal(f->engine->past->hidden.count, full);
	f->engine->past->pieces_put_max = PAGES;
	begin(f, ENGINE_WRITE);
	assert_int_equal(end(f, engine_undo(f->txn, PARTITION, OBJECT, 1)), -EFBIG);
	check_all(f, 1);
}

/* However many an object's writer makes: the partition, and others, still go back. */
static void test_objects_leave_their_partition_a_way_back(void **state)
{
	struct fixture *f = *state;

	use_up_shared_ones(f);
	write_pages(f, PARTITION, 0, 1, 1);
	f->now += 5 * SECOND;
	roll_back_to(f, PARTITION, f->now - SECOND);
	roll_back_to(f, OTHERS, f->now - SECOND);
	roll_back_to(f, 0, f->now - SECOND);
	check_pages(f, address_of(PARTITION, OBJECT), 0, 1, 1);
}

/* The example of docs/objects.md. */
static void test_the_record_is_as_documented(void **state)
{
	/* The device's comes first, though it was added later. */
	uint8_t wanted[HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_BYTES + HIDDEN_OF_OBJECT_BYTES] = { 1 };
	struct fixture *f = *state;
	const struct record_key key = key_of_table(RECORD_ID_HIDDEN, 0);
	uint8_t *of_object = wanted + HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_BYTES;
	const struct hidden_interval *list;
	struct record_info info;
	uint8_t record[PAGE];

	write_all(f, 1);
	write_all(f, 2);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_undo(f->txn, PARTITION, OBJECT, 1), 0);
	assert_int_equal(engine_write(f->txn, address_of(PARTITION, OBJECT), 5, "x", 1), 0);
	commit(f);
	f->now += 5 * SECOND;
	roll_back_to(f, 0, f->now - SECOND);
	assert_int_equal(f->engine->past->hidden.count, 2);
	list = f->engine->past->hidden.list;
	assert_int_equal(
		record_get(f->engine->store, key, RECORD_NEWEST, record, sizeof(record), &info), 0);
	put_le48(wanted + 3, list[0].at);
	put_le48(wanted + 9, list[0].to);
	put_le16(of_object, 1);
	put_le48(of_object + 2, list[1].at);
	put_le48(of_object + 8, list[1].to);
	put_le64(of_object + 14, OBJECT);
	of_object[22] = 1;
	assert_int_equal(info.length, sizeof(wanted));
	assert_memory_equal(record, wanted, sizeof(wanted));
	assert_true(list[0].to < list[0].at && list[1].to < list[1].at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_a_large_object_goes_back_without_its_data_being_put_again),
		FLASH_TEST(test_a_small_object_is_put_again),
		FLASH_TEST(test_what_is_written_behind_it_counts),
		FLASH_TEST(test_a_transaction_may_write_behind_it),
		FLASH_TEST(test_an_abort_leaves_all_as_it_was),
		FLASH_TEST(
			test_an_object_that_was_removed_comes_back_without_its_data_being_put_again),
		FLASH_TEST(test_holes_and_ends_are_those_of_then),
		FLASH_TEST(test_merging_keeps_what_each_version_shows),
		FLASH_TEST(test_merging_keeps_what_only_a_version_behind_it_shows),
		FLASH_TEST(test_what_is_hidden_is_reclaimed),
		FLASH_TEST(test_an_object_of_a_clone_goes_back),
		FLASH_TEST(
			test_an_object_of_a_clone_goes_back_to_a_line_of_history_without_a_refresh),
		FLASH_TEST(test_rollbacks_that_nothing_shows_make_room_for_others),
		FLASH_TEST(test_a_rollback_that_another_one_leads_to_stays),
		FLASH_TEST(test_undoing_again_and_again_leaves_one_step_to_readers),
		FLASH_TEST(test_readers_never_go_by_too_many),
		FLASH_TEST(test_a_rollback_of_the_partition_that_an_objects_leads_to_stays),
		FLASH_TEST(test_when_they_run_out_an_object_is_put_again),
		FLASH_TEST(test_objects_leave_their_partition_a_way_back),
		FLASH_TEST(test_the_record_is_as_documented),
	};

	return cmocka_run_group_tests_name("object_rollbacks", tests, NULL, NULL);
}
