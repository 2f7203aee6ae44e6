/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Large objects go back by a note that hides what was put since, whatever their size; and what
 * merging keeps of them.
 */
#include "tests/engine/device_fixture.h"

#include "common/bytes.h"
#include "engine/objects/objects.h"

enum {
	PAGES = 200,
	BYTES = PAGES * PAGE,
	/* Onode, rollback and the root's history, and the two records with which a slot begins:
	   none of them holds data. */
	RECORDS_PUT_MAX = 2 * PAGE,
};

static struct engine_address address_of(uint64_t partition, uint64_t object)
{
	return (struct engine_address){ .partition = partition, .object = object };
}

/* Writes pages first..end - 1 of an object, each with what it can be told by. */
static void write_object(struct device *device, struct engine_address address, uint32_t first,
			 uint32_t end, uint8_t round)
{
	uint8_t page[PAGE];

	begin(device, ENGINE_WRITE);
	for (uint32_t at = first; at < end; at++) {
		memset(page, round, sizeof(page));
		put_le32(page, at);
		assert_int_equal(
			engine_write(device->txn, address, (uint64_t)at * PAGE, page, PAGE), 0);
	}
	commit(device);
}

static void write_pages(struct device *device, uint64_t partition, uint32_t first, uint32_t end,
			uint8_t round)
{
	write_object(device, address_of(partition, OBJECT), first, end, round);
}

static void write_all(struct device *device, uint8_t round)
{
	write_pages(device, PARTITION, 0, PAGES, round);
}

/* Pages first..end - 1 are those of a round. */
static void check_pages(struct device *device, struct engine_address address, uint32_t first,
			uint32_t end, uint8_t round)
{
	uint8_t page[PAGE];
	uint64_t got;

	begin(device, ENGINE_READ);
	for (uint32_t at = first; at < end; at++) {
		assert_int_equal(
			engine_read(device->txn, address, (uint64_t)at * PAGE, page, PAGE, &got),
			0);
		assert_int_equal(got, PAGE);
		assert_int_equal(get_le32(page), at);
		assert_int_equal(page[PAGE - 1], round);
	}
	commit(device);
}

static void check_all(struct device *device, uint8_t round)
{
	check_pages(device, address_of(PARTITION, OBJECT), 0, PAGES, round);
}

static uint64_t length_of(struct device *device, uint64_t partition)
{
	struct engine_stat stat;

	begin(device, ENGINE_READ);
	assert_int_equal(engine_stat(device->txn, address_of(partition, OBJECT), &stat), 0);
	commit(device);
	return stat.length;
}

/* What has ever been put, in bytes. */
static uint64_t put_so_far(const struct device *device)
{
	return device->engine->put_bytes;
}

static void undo(struct device *device, uint64_t partition, uint32_t modifications)
{
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_undo(device->txn, partition, OBJECT, modifications), 0);
	commit(device);
}

/* The same, having put no data. */
static void undo_without_data(struct device *device, uint64_t partition, uint32_t modifications)
{
	uint64_t before = put_so_far(device);

	undo(device, partition, modifications);
	assert_in_range(put_so_far(device) - before, 1, RECORDS_PUT_MAX);
}

static int go_back(struct device *device, uint64_t partition, uint64_t ms)
{
	const struct engine_moment to = { .kind = ENGINE_AT_TIME, .value = ms };

	begin(device, ENGINE_WRITE);
	return end(device, engine_rollback_object(device->txn, partition, OBJECT, to));
}

static void keep(struct device *device, uint64_t partition, enum engine_retention_kind kind)
{
	const struct engine_retention retention = { .kind = kind };

	begin(device, ENGINE_HISTORY);
	assert_int_equal(engine_retention_set(device->txn, partition, &retention, false), 0);
	commit(device);
}

/* Fills buffers, so that what was put before is in segments that can be merged. */
static void push(struct device *device)
{
	for (uint8_t round = 0; round < 3; round++)
		write_pages(device, OTHERS, 0, PAGES, round);
}

static void test_a_large_object_goes_back_without_its_data_being_put_again(void **state)
{
	struct device *device = *state;

	write_all(device, 1);
	write_all(device, 2);
	undo_without_data(device, PARTITION, 1);
	check_all(device, 1);
	/* What was undone is still the modification before. */
	check_pages(device,
		    (struct engine_address){ .partition = PARTITION, .object = OBJECT, .ago = 1 },
		    0, PAGES, 2);
	undo_without_data(device, PARTITION, 1);
	check_all(device, 2);
	undo_without_data(device, PARTITION, 3);
	check_all(device, 1);
	crash(device);
	check_all(device, 1);
	assert_int_equal(device->engine->hidden.count, 3);
}

static void test_a_small_object_is_put_again(void **state)
{
	struct device *device = *state;

	write_pages(device, PARTITION, 0, 3, 1);
	write_pages(device, PARTITION, 0, 3, 2);
	undo(device, PARTITION, 1);
	check_pages(device, address_of(PARTITION, OBJECT), 0, 3, 1);
	assert_int_equal(device->engine->hidden.count, 0);
}

static void test_what_is_written_behind_it_counts(void **state)
{
	struct device *device = *state;

	write_all(device, 1);
	write_all(device, 2);
	undo_without_data(device, PARTITION, 1);
	write_pages(device, PARTITION, 10, 20, 3);
	crash(device);
	for (int after = 0; after < 2; after++) {
		check_pages(device, address_of(PARTITION, OBJECT), 0, 10, 1);
		check_pages(device, address_of(PARTITION, OBJECT), 10, 20, 3);
		check_pages(device, address_of(PARTITION, OBJECT), 20, PAGES, 1);
		keep(device, PARTITION, ENGINE_RETAIN_NONE);
		push(device);
		merge_all(device);
	}
}

/* In the transaction that goes back, too. */
static void test_a_transaction_may_write_behind_it(void **state)
{
	struct device *device = *state;
	uint8_t page[PAGE] = { 7 };
	const struct engine_address address = address_of(PARTITION, OBJECT);

	write_all(device, 1);
	write_all(device, 2);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_undo(device->txn, PARTITION, OBJECT, 1), 0);
	page[PAGE - 1] = 9;
	assert_int_equal(engine_write(device->txn, address, 0, page, PAGE), 0);
	commit(device);
	check_pages(device, address, 1, PAGES, 1);
	/* And one that wrote before has pages of its own number, which nothing hides. */
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_write(device->txn, address, PAGE, page, PAGE), 0);
	assert_int_equal(engine_rollback_object(device->txn, PARTITION, OBJECT,
						(struct engine_moment){ .kind = ENGINE_AT_TIME,
									.value = device->now }),
			 0);
	engine_abort(device->txn);
	device->now += 5 * SECOND;
	write_all(device, 3);
	device->now += 5 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_write(device->txn, address, PAGE, page, PAGE), 0);
	assert_int_equal(
		engine_rollback_object(device->txn, PARTITION, OBJECT,
				       (struct engine_moment){ .kind = ENGINE_AT_TIME,
							       .value = device->now - SECOND }),
		0);
	commit(device);
	check_all(device, 3);
}

static void test_an_abort_leaves_all_as_it_was(void **state)
{
	struct device *device = *state;

	write_all(device, 1);
	write_all(device, 2);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_undo(device->txn, PARTITION, OBJECT, 1), 0);
	engine_abort(device->txn);
	assert_int_equal(device->engine->hidden.count, 0);
	check_all(device, 2);
	crash(device);
	check_all(device, 2);
}

static void test_an_object_that_was_removed_comes_back_without_its_data_being_put_again(
	void **state)
{
	struct device *device = *state;
	uint64_t before;

	write_all(device, 1);
	device->now += 5 * SECOND;
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_remove(device->txn, address_of(PARTITION, OBJECT)), 0);
	commit(device);
	/* Another one has its ID for a while. */
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_create(device->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL),
			 0);
	commit(device);
	write_pages(device, PARTITION, 50, PAGES + 50, 2);
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_remove(device->txn, address_of(PARTITION, OBJECT)), 0);
	commit(device);
	before = put_so_far(device);
	assert_int_equal(go_back(device, PARTITION, SECOND + 1), 0);
	assert_in_range(put_so_far(device) - before, 1, 2 * RECORDS_PUT_MAX);
	check_all(device, 1);
	assert_int_equal(length_of(device, PARTITION), BYTES);
	keep(device, PARTITION, ENGINE_RETAIN_NONE);
	push(device);
	merge_all(device);
	crash(device);
	check_all(device, 1);
}

static void test_holes_and_ends_are_those_of_then(void **state)
{
	struct device *device = *state;
	const struct engine_address address = address_of(PARTITION, OBJECT);
	struct engine_extent extent;
	uint32_t budget = UINT32_MAX;
	uint8_t byte;
	uint64_t got;

	write_all(device, 1);
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_punch(device->txn, address, 20 * PAGE, 60 * PAGE), 0);
	commit(device);
	write_pages(device, PARTITION, 10, PAGES + 100, 2);
	undo_without_data(device, PARTITION, 1);
	assert_int_equal(length_of(device, PARTITION), BYTES - 60 * PAGE);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_truncate(device->txn, address, 5 * PAGE), 0);
	commit(device);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_truncate(device->txn, address, 400 * PAGE), 0);
	commit(device);
	undo_without_data(device, PARTITION, 2);
	for (int after = 0; after < 2; after++) {
		check_pages(device, address, 0, 20, 1);
		assert_int_equal(length_of(device, PARTITION), BYTES - 60 * PAGE);
		begin(device, ENGINE_READ);
		assert_int_equal(engine_map(device->txn, address, 0, true, &budget, &extent), 0);
		assert_int_equal(extent.length, BYTES - 60 * PAGE);
		assert_int_equal(extent.kind, ENGINE_EXTENT_DATA);
		commit(device);
		keep(device, PARTITION, ENGINE_RETAIN_NONE);
		push(device);
		merge_all(device);
	}
	/* What is cut and written again beyond is not what had been there. */
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_write(device->txn, address, 300 * PAGE, "x", 1), 0);
	commit(device);
	begin(device, ENGINE_READ);
	assert_int_equal(engine_read(device->txn, address, 299 * PAGE, &byte, 1, &got), 0);
	assert_int_equal(got, 1);
	assert_int_equal(byte, 0);
	commit(device);
}

/* Versions of before and behind it, each as it was, when all else is gone. */
static void test_merging_keeps_what_each_version_shows(void **state)
{
	struct device *device = *state;
	struct engine_address at = address_of(PARTITION, OBJECT);
	uint64_t versions[4];

	keep(device, PARTITION, ENGINE_RETAIN_NONE);
	write_all(device, 1);
	versions[0] = take_snapshot(device, PARTITION);
	write_all(device, 2);
	versions[1] = take_snapshot(device, PARTITION);
	write_all(device, 3);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_rollback_object(device->txn, PARTITION, OBJECT,
						(struct engine_moment){ .kind = ENGINE_AT_VERSION,
									.value = versions[0] }),
			 0);
	commit(device);
	versions[2] = take_snapshot(device, PARTITION);
	write_pages(device, PARTITION, 0, PAGES / 2, 4);
	versions[3] = take_snapshot(device, PARTITION);
	push(device);
	merge_all(device);
	crash(device);
	for (int i = 0; i < 4; i++) {
		at.version = (uint32_t)versions[i];
		check_pages(device, at, 0, PAGES / 2, (uint8_t[]){ 1, 2, 1, 4 }[i]);
		check_pages(device, at, PAGES / 2, PAGES, (uint8_t[]){ 1, 2, 1, 1 }[i]);
	}
	/*
	 * The partition goes to the version in between, and sees it without the object's rollback.
	 */
	begin(device, ENGINE_RESCUE);
	assert_int_equal(engine_rollback(device->txn, PARTITION,
					 (struct engine_moment){ .kind = ENGINE_AT_VERSION,
								 .value = versions[1] }),
			 0);
	commit(device);
	check_all(device, 2);
	merge_all(device);
	begin(device, ENGINE_RESCUE);
	assert_int_equal(engine_rollback(device->txn, PARTITION,
					 (struct engine_moment){ .kind = ENGINE_AT_VERSION,
								 .value = versions[3] }),
			 0);
	commit(device);
	check_pages(device, address_of(PARTITION, OBJECT), 0, PAGES / 2, 4);
	check_pages(device, address_of(PARTITION, OBJECT), PAGES / 2, PAGES, 1);
}

/*
 * What only a version behind it shows: superseded at the version before it and at the present, with
 * no moment left in between.
 */
static void test_merging_keeps_what_only_a_version_behind_it_shows(void **state)
{
	struct device *device = *state;
	struct engine_address at = address_of(PARTITION, OBJECT);
	uint32_t versions[2];

	device->now = 10 * SECOND;
	write_all(device, 1);
	device->now = 20 * SECOND;
	write_all(device, 2);
	versions[0] = take_snapshot(device, PARTITION);
	device->now = 30 * SECOND;
	assert_int_equal(go_back(device, PARTITION, 15 * SECOND), 0);
	versions[1] = take_snapshot(device, PARTITION);
	write_all(device, 3);
	keep(device, PARTITION, ENGINE_RETAIN_NONE);
	keep(device, OTHERS, ENGINE_RETAIN_NONE);
	keep(device, 0, ENGINE_RETAIN_NONE);
	push(device);
	merge_all(device);
	crash(device);
	check_all(device, 3);
	at.version = versions[0];
	check_pages(device, at, 0, PAGES, 2);
	at.version = versions[1];
	check_pages(device, at, 0, PAGES, 1);
}

/* What is hidden for good makes room. */
static void test_what_is_hidden_is_reclaimed(void **state)
{
	struct device *device = *state;
	struct engine_statistics before, after;

	write_all(device, 1);
	keep(device, PARTITION, ENGINE_RETAIN_ALL);
	for (uint8_t round = 2; round < 8; round++)
		write_all(device, round);
	undo_without_data(device, PARTITION, 6);
	push(device);
	merge_all(device);
	engine_read_statistics(device->engine, &before);
	keep(device, PARTITION, ENGINE_RETAIN_NONE);
	merge_all(device);
	engine_read_statistics(device->engine, &after);
	assert_in_range(before.used_bytes - after.used_bytes, 3 * BYTES, 8 * BYTES);
	check_all(device, 1);
}

/* A writable one of the partition as it is. */
static void make_clone(struct device *device)
{
	uint64_t id = CLONE;

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone(device->txn, PARTITION,
				      (struct engine_moment){ .kind = ENGINE_NOW }, id, true, &id),
			 0);
	commit(device);
}

static void test_an_object_of_a_clone_goes_back(void **state)
{
	struct device *device = *state;

	write_all(device, 1);
	make_clone(device);
	device->now += 5 * SECOND;
	write_pages(device, CLONE, 0, PAGES / 2, 2);
	device->now += 5 * SECOND;
	write_pages(device, CLONE, 0, PAGES, 3);
	undo_without_data(device, CLONE, 1);
	write_all(device, 9);
	check_pages(device, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
	check_pages(device, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
	/* A refresh makes it its source again, of which nothing is hidden. */
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(device->txn, CLONE), 0);
	commit(device);
	check_pages(device, address_of(CLONE, OBJECT), 0, PAGES, 9);
	/* Across it the data has to be put again: what is older is read in another source. */
	assert_int_equal(go_back(device, CLONE, 7 * SECOND), 0);
	for (int after = 0; after < 2; after++) {
		check_pages(device, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
		check_pages(device, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
		keep(device, PARTITION, ENGINE_RETAIN_NONE);
		keep(device, CLONE, ENGINE_RETAIN_NONE);
		push(device);
		merge_all(device);
	}
	assert_int_equal(device->engine->hidden.count, 1);
}

static void roll_back_to(struct device *device, uint64_t partition, uint64_t ms)
{
	const struct engine_moment to = { .kind = ENGINE_AT_TIME, .value = ms };

	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_rollback(device->txn, partition, to), 0);
	commit(device);
	device->now += 2 * SECOND;
}

/*
 * A moment that came behind a refresh may show the clone as before it, when it had been rolled back
 * meanwhile.
 */
static void test_an_object_of_a_clone_goes_back_to_a_line_of_history_without_a_refresh(void **state)
{
	struct device *device = *state;

	write_all(device, 1);
	make_clone(device);
	device->now = 10 * SECOND;
	write_pages(device, CLONE, 0, PAGES / 2, 2);
	write_all(device, 9);
	device->now = 20 * SECOND;
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(device->txn, CLONE), 0);
	commit(device);
	device->now = 30 * SECOND;
	roll_back_to(device, CLONE, 15 * SECOND);
	device->now = 40 * SECOND;
	roll_back_to(device, CLONE, 25 * SECOND);
	check_pages(device, address_of(CLONE, OBJECT), 0, PAGES, 9);
	assert_int_equal(go_back(device, CLONE, 35 * SECOND), 0);
	check_pages(device, address_of(CLONE, OBJECT), 0, PAGES / 2, 2);
	check_pages(device, address_of(CLONE, OBJECT), PAGES / 2, PAGES, 1);
}

/*
 * Rollbacks that no moment leads to any more are forgotten, so that they never run out by
 * themselves.
 */
static void test_rollbacks_that_nothing_shows_make_room_for_others(void **state)
{
	struct device *device = *state;

	keep(device, PARTITION, ENGINE_RETAIN_NONE);
	keep(device, OTHERS, ENGINE_RETAIN_NONE);
	for (uint64_t id = OBJECT + 1; id <= OBJECT + 40; id++) {
		const struct engine_address address = address_of(PARTITION, id);
		uint32_t version;

		begin(device, ENGINE_WRITE);
		assert_int_equal(
			engine_create(device->txn, PARTITION, ENGINE_USER_OBJECT, id, 1, NULL), 0);
		commit(device);
		write_object(device, address, 0, PAGES, 1);
		version = take_snapshot(device, PARTITION);
		write_object(device, address, 0, PAGES, 2);
		begin(device, ENGINE_WRITE);
		assert_int_equal(
			engine_rollback_object(device->txn, PARTITION, id,
					       (struct engine_moment){ .kind = ENGINE_AT_VERSION,
								       .value = version }),
			0);
		commit(device);
		check_pages(device, address, 0, PAGES, 1);
		begin(device, ENGINE_FREE);
		assert_int_equal(engine_version_drop(device->txn, PARTITION, version), 0);
		assert_int_equal(engine_remove(device->txn, address), 0);
		commit(device);
		merge_all(device);
	}
	assert_int_equal(device->engine->hidden.count, 0);
	crash(device);
	assert_int_equal(device->engine->hidden.count, 0);
	assert_in_range(device->engine->hidden.places, 1, 4);
}

/*
 * The second one goes back to behind the first, and that to before: what is shown is found by both,
 * even when the first one's onodes are merged away.
 */
static void test_a_rollback_that_another_one_leads_to_stays(void **state)
{
	struct device *device = *state;
	const struct engine_address other = address_of(PARTITION, OBJECT + 1);

	device->engine->pieces_put_again = 0;
	begin(device, ENGINE_WRITE);
	assert_int_equal(
		engine_create(device->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL), 0);
	commit(device);
	write_page(device, 10 * SECOND, 0, 'a');
	write_page(device, 20 * SECOND, 0, 'b');
	device->now = 25 * SECOND;
	take_snapshot(device, PARTITION);
	device->now = 27 * SECOND;
	begin(device, ENGINE_FREE);
	assert_int_equal(engine_remove(device->txn, address_of(PARTITION, OBJECT)), 0);
	commit(device);
	device->now = 29 * SECOND;
	take_snapshot(device, PARTITION);
	device->now = 30 * SECOND;
	assert_int_equal(go_back(device, PARTITION, 15 * SECOND), 0);
	write_page(device, 40 * SECOND, 1, 'c');
	write_page(device, 50 * SECOND, 0, 'd');
	device->now = 60 * SECOND;
	assert_int_equal(go_back(device, PARTITION, 45 * SECOND), 0);
	write_object(device, other, 0, 1, 1);
	device->now = 80 * SECOND;
	set_policy(device, PARTITION, 3 * SECOND, 0, 0);
	set_policy(device, 0, 3 * SECOND, 0, 0);
	for (uint8_t round = 2; round < 6; round++) {
		device->now += 20 * SECOND;
		write_object(device, other, 0, 1, round);
		merge_all(device);
	}
	device->now += 2 * SECOND;
	write_object(device, other, 0, 1, 6);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_undo(device->txn, PARTITION, OBJECT + 1, 1), 0);
	commit(device);
	check_page(device, 0, 0, 'a');
	check_page(device, 0, 1, 'c');
}

/* How many rollbacks a reader of the object's oldest data goes by. */
static uint32_t steps_of(struct device *device)
{
	struct record_key key = key_of_data(0, OBJECT, 0);
	struct partition *partition;

	assert_int_equal(partition_get(device->engine, PARTITION, &partition), 0);
	key.partition = partition->index;
	partition_release(device->engine, partition);
	return hidden_steps(&device->engine->hidden, key.partition, OBJECT, RECORD_NEWEST,
			    UINT32_MAX);
}

static void test_undoing_again_and_again_leaves_one_step_to_readers(void **state)
{
	struct device *device = *state;

	write_all(device, 1);
	write_all(device, 2);
	for (uint8_t n = 0; n < 50; n++) {
		undo_without_data(device, PARTITION, 1);
		assert_int_equal(steps_of(device), 1);
		check_all(device, n % 2 ? 2 : 1);
	}
	crash(device);
	for (uint8_t n = 0; n < 9; n++) {
		undo_without_data(device, PARTITION, 1);
		assert_int_equal(steps_of(device), 1);
		check_all(device, n % 2 ? 2 : 1);
	}
	/* A transaction that writes behind its rollback leaves more than that did. */
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_undo(device->txn, PARTITION, OBJECT, 1), 0);
	assert_int_equal(engine_write(device->txn, address_of(PARTITION, OBJECT), 5, "x", 1), 0);
	commit(device);
	write_all(device, 3);
	undo_without_data(device, PARTITION, 1);
	check_pages(device, address_of(PARTITION, OBJECT), 1, PAGES, 2);
	begin(device, ENGINE_READ);
	char byte;
	uint64_t got;
	assert_int_equal(engine_read(device->txn, address_of(PARTITION, OBJECT), 5, &byte, 1, &got),
			 0);
	assert_int_equal(byte, 'x');
	commit(device);
}

/*
 * What stays between what is undone makes each rollback a step of its own; with many of them the
 * object is put again.
 */
static void test_readers_never_go_by_too_many(void **state)
{
	enum { ROUNDS = 600, STEPS_MANY = 512 };
	struct device *device = *state;

	write_all(device, 0);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		write_pages(device, PARTITION, n % PAGES, n % PAGES + 1, 1);
		write_pages(device, PARTITION, 0, 1, 2);
		undo(device, PARTITION, 1);
		assert_in_range(steps_of(device), 1, STEPS_MANY);
	}
	assert_int_equal(steps_of(device), STEPS_MANY);
	check_all(device, 1);
}

/* Also one of the partition, on a line of history that has been left since. */
static void test_a_rollback_of_the_partition_that_an_objects_leads_to_stays(void **state)
{
	struct device *device = *state;

	device->now = 10 * SECOND;
	write_all(device, 1);
	device->now = 20 * SECOND;
	write_all(device, 2);
	device->now = 30 * SECOND;
	roll_back_to(device, PARTITION, 15 * SECOND);
	device->now = 40 * SECOND;
	write_pages(device, PARTITION, 0, 10, 3);
	device->now = 50 * SECOND;
	roll_back_to(device, PARTITION, 22 * SECOND);
	device->now = 60 * SECOND;
	assert_int_equal(go_back(device, PARTITION, 45 * SECOND), 0);
	device->now = 70 * SECOND;
	keep(device, PARTITION, ENGINE_RETAIN_NONE);
	keep(device, 0, ENGINE_RETAIN_NONE);
	/* Each looks for a place to take. What is hidden has not been merged away. */
	for (int n = 0; n < 8; n++) {
		uint32_t version = take_snapshot(device, PARTITION);
		const struct engine_moment to = { .kind = ENGINE_AT_VERSION, .value = version };

		device->now += 2 * SECOND;
		begin(device, ENGINE_WRITE);
		assert_int_equal(engine_rollback(device->txn, PARTITION, to), 0);
		commit(device);
	}
	check_pages(device, address_of(PARTITION, OBJECT), 0, 10, 3);
	check_pages(device, address_of(PARTITION, OBJECT), 10, PAGES, 1);
}

/* As many as all share, all of them seen. */
static void use_up_shared_ones(struct device *device)
{
	struct hidden *hidden = &device->engine->hidden;
	struct partition *others;
	uint64_t first;

	device->now += 5 * SECOND;
	write_pages(device, OTHERS, 0, 1, 1);
	first = device->engine->committed;
	for (int slot = 0; slot < 3; slot++) {
		device->now += 50 * SECOND;
		write_pages(device, OTHERS, 0, 1, 1);
	}
	assert_true(device->engine->committed > first + 2 * ENGINE_HIDDEN_MAX);
	assert_int_equal(partition_get(device->engine, OTHERS, &others), 0);
	assert_null(hidden->list);
	hidden->capacity = 2 * ENGINE_HIDDEN_MAX;
	hidden->list = calloc(hidden->capacity, sizeof(*hidden->list));
	hidden->free = calloc(hidden->capacity, sizeof(*hidden->free));
	assert_non_null(hidden->list);
	assert_non_null(hidden->free);
	for (uint32_t n = 0; n < ENGINE_HIDDEN_MAX; n++)
		hidden->list[n] = (struct hidden_interval){ .identifier = OBJECT,
							    .partition = others->index,
							    .at = first + 2 * n + 2,
							    .to = first + 2 * n + 1,
							    .place = n };
	hidden->count = ENGINE_HIDDEN_MAX;
	/* They are in memory only: new ones go to the first places of the table. */
	partition_release(device->engine, others);
}

/*
 * Other objects' never shut one out: each partition has some of its own, and what is not too large
 * is put again.
 */
static void test_when_they_run_out_an_object_is_put_again(void **state)
{
	struct device *device = *state;
	const uint32_t full = ENGINE_HIDDEN_MAX + ENGINE_HIDDEN_OWN;
	uint64_t before;

	use_up_shared_ones(device);
	write_all(device, 1);
	write_all(device, 2);
	for (int n = 0; n < ENGINE_HIDDEN_OWN; n++)
		undo_without_data(device, PARTITION, 1);
	check_all(device, 2);
	assert_int_equal(device->engine->hidden.count, full);
	before = put_so_far(device);
	undo(device, PARTITION, 1);
	assert_true(put_so_far(device) - before > BYTES);
	check_all(device, 1);
	assert_int_equal(device->engine->hidden.count, full);
	device->engine->pieces_put_max = PAGES;
	begin(device, ENGINE_WRITE);
	assert_int_equal(end(device, engine_undo(device->txn, PARTITION, OBJECT, 1)), -EFBIG);
	check_all(device, 1);
}

/* However many an object's writer makes: the partition, and others, still go back. */
static void test_objects_leave_their_partition_a_way_back(void **state)
{
	struct device *device = *state;

	use_up_shared_ones(device);
	write_pages(device, PARTITION, 0, 1, 1);
	device->now += 5 * SECOND;
	roll_back_to(device, PARTITION, device->now - SECOND);
	roll_back_to(device, OTHERS, device->now - SECOND);
	roll_back_to(device, 0, device->now - SECOND);
	check_pages(device, address_of(PARTITION, OBJECT), 0, 1, 1);
}

/* The example of docs/objects.md. */
static void test_the_record_is_as_documented(void **state)
{
	static const uint8_t wanted[2 * HIDDEN_BYTES] = { 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
	struct device *device = *state;
	const struct record_key key = key_of_table(RECORD_ID_HIDDEN, 0);
	const struct hidden_interval *list;
	uint8_t record[PAGE], entries[2 * HIDDEN_BYTES];
	struct record_info info;

	write_all(device, 1);
	write_all(device, 2);
	begin(device, ENGINE_WRITE);
	assert_int_equal(engine_undo(device->txn, PARTITION, OBJECT, 1), 0);
	assert_int_equal(engine_write(device->txn, address_of(PARTITION, OBJECT), 5, "x", 1), 0);
	commit(device);
	device->now += 5 * SECOND;
	roll_back_to(device, 0, device->now - SECOND);
	assert_int_equal(device->engine->hidden.count, 2);
	list = device->engine->hidden.list;
	assert_int_equal(record_get(device->engine->store, key, RECORD_NEWEST, record,
				    sizeof(record), &info),
			 0);
	assert_int_equal(info.length, sizeof(entries));
	memcpy(entries, wanted, sizeof(entries));
	put_le48(entries + 10, list[1].at);
	put_le48(entries + 16, list[1].to);
	put_le16(entries + 22, 1);
	put_le48(entries + HIDDEN_BYTES + 10, list[0].at);
	put_le48(entries + HIDDEN_BYTES + 16, list[0].to);
	assert_memory_equal(record, entries, sizeof(entries));
	assert_true(list[0].to < list[0].at && list[1].to < list[1].at);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_large_object_goes_back_without_its_data_being_put_again),
		TEST(test_a_small_object_is_put_again),
		TEST(test_what_is_written_behind_it_counts),
		TEST(test_a_transaction_may_write_behind_it),
		TEST(test_an_abort_leaves_all_as_it_was),
		TEST(test_an_object_that_was_removed_comes_back_without_its_data_being_put_again),
		TEST(test_holes_and_ends_are_those_of_then),
		TEST(test_merging_keeps_what_each_version_shows),
		TEST(test_merging_keeps_what_only_a_version_behind_it_shows),
		TEST(test_what_is_hidden_is_reclaimed),
		TEST(test_an_object_of_a_clone_goes_back),
		TEST(test_an_object_of_a_clone_goes_back_to_a_line_of_history_without_a_refresh),
		TEST(test_rollbacks_that_nothing_shows_make_room_for_others),
		TEST(test_a_rollback_that_another_one_leads_to_stays),
		TEST(test_undoing_again_and_again_leaves_one_step_to_readers),
		TEST(test_readers_never_go_by_too_many),
		TEST(test_a_rollback_of_the_partition_that_an_objects_leads_to_stays),
		TEST(test_when_they_run_out_an_object_is_put_again),
		TEST(test_objects_leave_their_partition_a_way_back),
		TEST(test_the_record_is_as_documented),
	};

	return cmocka_run_group_tests_name("object_rollbacks", tests, NULL, NULL);
}
