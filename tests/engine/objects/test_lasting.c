/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Lasting attributes: no rollback takes them back, and a format leaves the root's. Formats as
 * transactions.
 */
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { PLAIN = 0x30010000, LASTING = 0x30000005, OTHER = 0x5fffffff };

static int setup_lasting(void **state)
{
	static const uint32_t pages[] = { LASTING, OTHER };
	struct fixture *f;

	setup_on_memory(state);
	f = *state;
	engine_set_lasting_pages(f->engine, pages, 2);
	begin_with_object(f);
	commit(f);
	return 0;
}

static void reopen_lasting(struct fixture *f)
{
	static const uint32_t pages[] = { LASTING, OTHER };

	crash(f);
	engine_set_lasting_pages(f->engine, pages, 2);
}

static void set_text(struct fixture *f, struct engine_address address, uint32_t page,
		     const char *text)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(
		engine_attribute_set(f->txn, address, page, 1, text, (uint32_t)strlen(text)), 0);
	commit(f);
}

/* NULL: not set. */
static void check_attribute(struct fixture *f, struct engine_address address, uint32_t page,
			    const char *text)
{
	char value[64] = "";
	uint32_t length = 0;
	int result;

	begin(f, ENGINE_READ);
	result = engine_attribute_get(f->txn, address, page, 1, value, sizeof(value), &length);
	commit(f);
	assert_int_equal(result, text ? 0 : -ENOENT);
	if (text)
		assert_string_equal(value, text);
}

static uint64_t new_partition(struct fixture *f)
{
	uint64_t id;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, 0, &id), 0);
	commit(f);
	return id;
}

/* ---- rollbacks ---- */

static void test_a_rollback_takes_back_all_attributes_but_lasting_ones(void **state)
{
	const uint64_t scopes[] = { PARTITION, 0 };
	struct fixture *f = *state;

	set_text(f, the_partition, PLAIN, "then");
	set_text(f, the_partition, LASTING, "old key");
	set_text(f, the_root, LASTING, "old root key");
	for (int n = 0; n < 2; n++) {
		uint32_t version = take_snapshot(f, scopes[n], NULL);

		set_text(f, the_partition, PLAIN, "now");
		set_text(f, the_partition, LASTING, "new key");
		set_text(f, the_partition, OTHER, "policy");
		set_text(f, the_root, LASTING, "new root key");
		roll_back(f, scopes[n], at_number(version));
		check_attribute(f, the_partition, PLAIN, "then");
		check_attribute(f, the_partition, LASTING, "new key");
		check_attribute(f, the_partition, OTHER, "policy");
		check_attribute(f, the_root, LASTING, "new root key");
		reopen_lasting(f);
		check_attribute(f, the_partition, LASTING, "new key");
		check_attribute(f, the_root, LASTING, "new root key");
		check_attribute(f, at_version(the_partition, version), LASTING, "new key");
	}
}

static void test_lasting_attributes_are_listed_among_the_others(void **state)
{
	const uint32_t wanted[] = { LASTING, PLAIN, OTHER };
	struct fixture *f = *state;
	uint32_t page = 0, number = 0, length;
	char value[16];

	set_text(f, the_partition, PLAIN, "plain");
	set_text(f, the_partition, OTHER, "other");
	set_text(f, the_partition, LASTING, "lasting");
	begin(f, ENGINE_READ);
	for (size_t n = 0; n < 3; n++, number++) {
		assert_int_equal(engine_attribute_next(f->txn, the_partition, &page, &number, value,
						       sizeof(value), &length),
				 0);
		assert_int_equal(page, wanted[n]);
		assert_int_equal(number, 1);
	}
	assert_int_equal(engine_attribute_next(f->txn, the_partition, &page, &number, value,
					       sizeof(value), &length),
			 -ENOENT);
	commit(f);
}

static void test_a_lasting_attribute_goes_with_its_transaction(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	set_text(f, the_partition, LASTING, "kept");
	begin(f, ENGINE_WRITE);
	before = stat_of(f, the_partition).lasting_sequence;
	assert_int_equal(engine_attribute_set(f->txn, the_partition, LASTING, 1, "never", 5), 0);
	assert_true(stat_of(f, the_partition).lasting_sequence > before);
	abort_all(f);
	check_attribute(f, the_partition, LASTING, "kept");
	begin(f, ENGINE_READ);
	assert_int_equal(stat_of(f, the_partition).lasting_sequence, before);
	commit(f);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_attribute_set(f->txn, the_partition, LASTING, 1, NULL, 0), 0);
	commit(f);
	check_attribute(f, the_partition, LASTING, NULL);
}

static void test_a_clone_has_none_of_its_source_s_and_keeps_its_own(void **state)
{
	struct engine_address clone = { .partition = PARTITION + 1 };
	struct engine_moment now = { .kind = ENGINE_NOW };
	struct fixture *f = *state;

	set_text(f, the_partition, LASTING, "source");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, now, clone.partition, true, NULL), 0);
	commit(f);
	check_attribute(f, clone, LASTING, NULL);
	set_text(f, clone, LASTING, "clone");
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, clone.partition), 0);
	commit(f);
	check_attribute(f, clone, LASTING, "clone");
	check_attribute(f, the_partition, LASTING, "source");
}

/* ---- partitions that come back ---- */

static void test_a_removed_partition_comes_back_with_what_it_was_removed_with(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set_text(f, the_partition, LASTING, "then");
	version = take_snapshot(f, 0, NULL);
	set_text(f, the_partition, LASTING, "at the end");
	remove_partition(f, PARTITION);
	reopen_lasting(f);
	roll_back(f, 0, at_number(version));
	check_attribute(f, the_partition, LASTING, "at the end");
}

static void test_what_was_set_by_the_command_that_removes_counts(void **state)
{
	struct fixture *f = *state;
	uint32_t version = take_snapshot(f, 0, NULL);

	begin(f, ENGINE_FREE);
	assert_int_equal(engine_attribute_set(f->txn, the_partition, LASTING, 1, "last", 4), 0);
	assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
	commit(f);
	roll_back(f, 0, at_number(version));
	check_attribute(f, the_partition, LASTING, "last");
}

/* A start begins with the lowest index that is free: that of one that may come back is not. */
static void test_another_partition_takes_nothing_from_one_that_may_come_back(void **state)
{
	struct engine_address other = { 0 };
	struct fixture *f = *state;
	uint32_t version, second;

	set_text(f, the_partition, LASTING, "first");
	version = take_snapshot(f, 0, NULL);
	remove_partition(f, PARTITION);
	reopen_lasting(f);
	other.partition = new_partition(f);
	check_attribute(f, other, LASTING, NULL);
	set_text(f, other, LASTING, "second");
	second = take_snapshot(f, 0, NULL);
	roll_back(f, 0, at_number(version));
	check_attribute(f, the_partition, LASTING, "first");
	set_text(f, the_partition, LASTING, "third");
	reopen_lasting(f);
	check_attribute(f, the_partition, LASTING, "third");
	roll_back(f, 0, at_number(second));
	check_attribute(f, other, LASTING, "second");
}

static void check_shown(struct fixture *f, struct engine_address address, int result, bool present)
{
	bool is_present = !present;

	begin(f, ENGINE_READ);
	assert_int_equal(engine_partition_shown(f->txn, address, &is_present), result);
	commit(f);
	if (result == 0)
		assert_int_equal(is_present, present);
}

/* Each has its own, whoever has the ID. */
static void test_a_version_has_those_of_the_partition_that_it_shows(void **state)
{
	uint32_t before, first, second, own;
	struct fixture *f = *state;

	set_text(f, the_partition, LASTING, "first");
	first = take_snapshot(f, 0, NULL);
	check_shown(f, at_version(the_partition, first), 0, true);
	remove_partition(f, PARTITION);
	check_shown(f, the_partition, -ENOENT, false);
	check_shown(f, at_version(the_partition, first), 0, false);
	before = take_snapshot(f, 0, NULL);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	commit(f);
	check_attribute(f, at_version(the_partition, first), LASTING, "first");
	check_attribute(f, the_partition, LASTING, NULL);
	set_text(f, the_partition, LASTING, "second");
	second = take_snapshot(f, 0, NULL);
	own = take_snapshot(f, PARTITION, NULL);
	set_text(f, the_partition, LASTING, "now");
	for (int again = 0; again < 2; again++) {
		check_attribute(f, at_version(the_partition, first), LASTING, "first");
		check_attribute(f, at_version(the_partition, second), LASTING, "now");
		check_attribute(f, at_version(the_partition, own), LASTING, "now");
		check_shown(f, at_version(the_partition, first), 0, false);
		check_shown(f, at_version(the_partition, before), -ENOENT, false);
		check_shown(f, at_version(the_partition, second), 0, true);
		check_shown(f, at_version(the_partition, own), 0, true);
		check_shown(f, at_version(the_root, first), 0, true);
		reopen_lasting(f);
	}
	/* The first comes back, and the second is the one that is gone. */
	roll_back(f, 0, at_number(first));
	check_attribute(f, the_partition, LASTING, "first");
	check_attribute(f, at_version(the_partition, first), LASTING, "first");
	check_attribute(f, at_version(the_partition, second), LASTING, "now");
	check_shown(f, at_version(the_partition, first), 0, true);
	check_shown(f, at_version(the_partition, second), 0, false);
}

/* NULL: not set; "": there is none above. */
static void check_above(struct fixture *f, struct engine_address address, unsigned above,
			const char *text)
{
	char value[64] = "";
	uint32_t length = 0;
	int result;

	begin(f, ENGINE_READ);
	result = engine_snapshot_attribute_get(f->txn, address, above, LASTING, 1, value,
					       sizeof(value), &length);
	commit(f);
	assert_int_equal(result, !text ? -ENOENT : text[0] ? 0 : -ENODATA);
	if (text)
		assert_string_equal(value, text);
}

static uint64_t clone_of(struct fixture *f, uint64_t source, bool writable)
{
	uint64_t clone;

	begin(f, ENGINE_WRITE);
	assert_int_equal(
		engine_clone(f->txn, source, (struct engine_moment){ 0 }, 0, writable, &clone), 0);
	commit(f);
	return clone;
}

static void test_a_snapshot_knows_what_it_was_made_of_when_that_is_gone(void **state)
{
	struct engine_address snapshot = { 0 }, second = { 0 }, clone = { 0 };
	struct fixture *f = *state;
	uint32_t version;

	set_text(f, the_partition, LASTING, "source");
	snapshot.partition = clone_of(f, PARTITION, false);
	second.partition = clone_of(f, snapshot.partition, false);
	clone.partition = clone_of(f, PARTITION, true);
	set_text(f, the_partition, LASTING, "stronger");
	version = take_snapshot(f, 0, NULL);
	for (int round = 0; round < 2; round++) {
		check_above(f, snapshot, 1, "stronger");
		check_above(f, snapshot, 2, "");
		check_above(f, second, 1, NULL);
		check_above(f, second, 2, "stronger");
		check_above(f, second, 3, "");
		check_above(f, clone, 1, "");
		check_above(f, the_partition, 1, "");
		if (round > 0)
			continue;
		/* Another has its ID from then on. */
		remove_partition(f, PARTITION);
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
		commit(f);
		set_text(f, the_partition, LASTING, "another");
		reopen_lasting(f);
	}
	remove_partition(f, second.partition);
	snapshot.version = second.version = version;
	check_above(f, snapshot, 1, "stronger");
	check_above(f, second, 1, NULL);
	check_above(f, second, 2, "stronger");
}

/* Puts lasting attributes of a later owner of an index. */
static void take_index_over(struct fixture *f, uint16_t index)
{
	struct onode *onode = onode_new(index, RECORD_ID_LASTING);

	begin(f, ENGINE_WRITE);
	onode->head.type = ENGINE_PARTITION;
	onode->head.created_sequence = onode->head.modified_sequence = f->txn->sequence;
	assert_int_equal(onode_put(&f->txn->writer, onode), 0);
	f->txn->changed = true;
	commit(f);
	onode_free(onode);
}

/* That nothing is known of a partition's protection does not mean that it had none. */
static void test_lost_attributes_are_an_error(void **state)
{
	struct partition *partition;
	struct fixture *f = *state;
	uint32_t version, length;
	uint16_t index;
	char value[8];

	set_text(f, the_partition, LASTING, "lost");
	version = take_snapshot(f, 0, NULL);
	assert_int_equal(partition_get(f->engine, PARTITION, &partition), 0);
	index = partition->index;
	partition_release(f->engine, partition);
	remove_partition(f, PARTITION);
	take_index_over(f, index);
	reopen_lasting(f);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_attribute_get(f->txn, at_version(the_partition, version), LASTING,
					      1, value, sizeof(value), &length),
			 -EBADMSG);
	commit(f);
}

/* ---- formats ---- */

static void test_a_format_takes_everything_but_the_root_s_lasting_attributes(void **state)
{
	struct fixture *f = *state;

	set_text(f, the_root, LASTING, "root key");
	set_text(f, the_root, PLAIN, "name");
	set_text(f, the_partition, LASTING, "key");
	take_snapshot(f, 0, "gone");
	assert_int_equal(engine_begin_format(f->engine, &f->txn), 0);
	assert_int_equal(stat_of(f, the_root).members, 0);
	assert_int_equal(engine_attribute_set(f->txn, the_root, PLAIN, 2, "new", 3), 0);
	commit(f);
	for (int again = 0; again < 2; again++) {
		uint32_t version;

		check_absent(f, the_partition);
		check_attribute(f, the_root, LASTING, "root key");
		check_attribute(f, the_root, PLAIN, NULL);
		begin(f, ENGINE_READ);
		assert_int_equal(engine_version_find(f->txn, 0, "gone", &version), -ENOENT);
		commit(f);
		reopen_lasting(f);
	}
	begin_with_object(f);
	commit(f);
	check_attribute(f, the_partition, LASTING, NULL);
}

static void test_an_aborted_format_leaves_everything(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	set_text(f, the_partition, PLAIN, "plain");
	set_text(f, the_partition, LASTING, "key");
	put_text(f, object(OBJECT), "data");
	version = take_snapshot(f, PARTITION, "kept");
	put_text(f, object(OBJECT), "later");
	assert_int_equal(engine_begin_format(f->engine, &f->txn), 0);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_attribute_set(f->txn, the_partition, LASTING, 1, "other", 5), 0);
	abort_all(f);
	for (int again = 0; again < 2; again++) {
		check_text(f, object(OBJECT), "later");
		check_text(f, at_version(object(OBJECT), version), "data");
		check_attribute(f, the_partition, PLAIN, "plain");
		check_attribute(f, the_partition, LASTING, "key");
		reopen_lasting(f);
	}
	assert_int_not_equal(new_partition(f), PARTITION);
}

static void test_a_format_may_make_what_it_likes(void **state)
{
	struct fixture *f = *state;

	put_text(f, object(OBJECT), "old");
	assert_int_equal(engine_begin_format(f->engine, &f->txn), 0);
	assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT, 1, NULL), 0);
	write_text(f, 3, "new");
	commit(f);
	reopen_lasting(f);
	begin(f, ENGINE_READ);
	assert_data(f, object(OBJECT), "\0\0\0new", 6);
	commit(f);
	put_text(f, object(OBJECT), "newer");
	check_text(f, object(OBJECT), "newer");
}

#define LASTING_TEST(name) cmocka_unit_test_setup_teardown(name, setup_lasting, teardown)

static void test_the_memo_outlives_crashes_rollbacks_formats_and_aborts(void **state)
{
	struct fixture *f = *state;
	const uint64_t first = UINT64_C(0xfedcba9876543210), second = 7;

	assert_int_equal(engine_memo(f->engine), 0);
	assert_int_equal(engine_set_memo(f->engine, first, false), 0);
	crash(f);
	assert_int_equal(engine_memo(f->engine), first);
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_set_memo(f->engine, second, true), 0);
	abort_all(f);
	assert_int_equal(engine_memo(f->engine), second);
	assert_int_equal(engine_reformat(f->engine), 0);
	assert_int_equal(engine_memo(f->engine), second);
	crash(f);
	assert_int_equal(engine_memo(f->engine), second);
}

static void test_the_memo_can_be_set_when_no_transaction_can_begin(void **state)
{
	struct fixture *f = *state;
	struct engine_txn *txn;

	f->engine->numbered = RECORD_NEWEST;
	assert_int_equal(engine_begin(f->engine, ENGINE_FREE, &txn), -EOVERFLOW);
	assert_int_equal(engine_set_memo(f->engine, 1, true), 0);
	crash(f);
	assert_int_equal(engine_memo(f->engine), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LASTING_TEST(test_a_rollback_takes_back_all_attributes_but_lasting_ones),
		LASTING_TEST(test_lasting_attributes_are_listed_among_the_others),
		LASTING_TEST(test_a_lasting_attribute_goes_with_its_transaction),
		LASTING_TEST(test_a_clone_has_none_of_its_source_s_and_keeps_its_own),
		LASTING_TEST(test_a_removed_partition_comes_back_with_what_it_was_removed_with),
		LASTING_TEST(test_what_was_set_by_the_command_that_removes_counts),
		LASTING_TEST(test_another_partition_takes_nothing_from_one_that_may_come_back),
		LASTING_TEST(test_a_version_has_those_of_the_partition_that_it_shows),
		LASTING_TEST(test_a_snapshot_knows_what_it_was_made_of_when_that_is_gone),
		LASTING_TEST(test_lost_attributes_are_an_error),
		LASTING_TEST(test_a_format_takes_everything_but_the_root_s_lasting_attributes),
		LASTING_TEST(test_an_aborted_format_leaves_everything),
		LASTING_TEST(test_a_format_may_make_what_it_likes),
		LASTING_TEST(test_the_memo_outlives_crashes_rollbacks_formats_and_aborts),
		LASTING_TEST(test_the_memo_can_be_set_when_no_transaction_can_begin),
	};

	return cmocka_run_group_tests_name("lasting attributes and formats", tests, NULL, NULL);
}
