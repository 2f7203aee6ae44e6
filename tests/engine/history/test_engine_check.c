/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * engine_check names what contradicts something else though all checksums are right: each test puts
 * one such record, and finds just that.
 */
#include <stdio.h>

#include "common/crc32c.h"
#include "engine/check.h"
#include "engine/history/history.h"
#include "tests/engine/fixture.h"

/* The findings of a check. */
struct found {
	uint32_t count;
	uint32_t by_kind[FINDING_KINDS];
	struct finding last[FINDING_KINDS];
};

static void take(void *context, const struct finding *finding)
{
	struct found *found = context;

	found->count++;
	found->by_kind[finding->kind]++;
	found->last[finding->kind] = *finding;
}

static struct found look_now(struct fixture *f, struct engine_check *check)
{
	struct found found = { 0 };
	struct findings findings = { .take = take, .context = &found };

	check->findings = &findings;
	assert_int_equal(engine_check(f->engine, check), 0);
	return found;
}

/* Of a device that is closed. */
static struct found look_with(struct fixture *f, struct engine_check *check)
{
	/* What is in memory tells nothing. */
	reopen(f);
	return look_now(f, check);
}

static struct found look(struct fixture *f)
{
	struct engine_check check = { .versions = true };

	return look_with(f, &check);
}

/* Ends the engine, which `look` opens again. */
static struct found look_again(struct fixture *f)
{
	assert_int_equal(engine_close(f->engine), 0);
	return look(f);
}

static void expect_only(struct fixture *f, enum finding_kind kind, uint64_t partition,
			uint64_t object, const char *word)
{
	struct found found = look_again(f);
	const struct finding *finding = &found.last[kind];

	if (found.count != 1 || found.by_kind[kind] != 1 || finding->partition != partition ||
	    finding->object != object || !strstr(finding->text, word))
		fail_msg("%u findings, %u of them of the kind; 0x%llx/0x%llx: %s", found.count,
			 found.by_kind[kind], (unsigned long long)finding->partition,
			 (unsigned long long)finding->object, finding->text);
}

static struct record_writer *writer(struct fixture *f)
{
	return &f->txn->writer;
}

static struct partition *partition_of(struct fixture *f, uint64_t id)
{
	struct partition *partition;

	assert_int_equal(partition_get(f->engine, id, &partition), 0);
	return partition;
}

/* Ends what a record of PARTITION said, with a tombstone. */
static void take_away(struct fixture *f, struct record_key key)
{
	begin(f, ENGINE_WRITE);
	f->txn->changed = true;
	assert_int_equal(record_put(writer(f), key, RECORD_TOMBSTONE, NULL, 0), 0);
	commit(f);
}

static uint64_t make_page_object(struct fixture *f)
{
	uint8_t bytes[3 * PAGE];

	memset(bytes, 7, sizeof(bytes));
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_write(f->txn, object(OBJECT), 0, bytes, sizeof(bytes)), 0);
	commit(f);
	return OBJECT;
}

static void test_nothing_is_found_where_all_is_well(void **state)
{
	struct fixture *f = *state;
	struct found found;

	make_page_object(f);
	take_snapshot(f, PARTITION, "one");
	take_snapshot(f, 0, "all");
	make_clone(f, PARTITION, CLONE);
	found = look_again(f);
	assert_int_equal(found.count, 0);
}

/* ---- what it says of a device that is well ---- */

/* What it told its caller on the way. */
struct told {
	uint32_t members[ENGINE_USER_OBJECT + 1];
	uint64_t objects_done, objects_total, records_done, records_total;
};

static void count_member(void *context, struct engine_address address, enum engine_type type)
{
	struct told *told = context;

	assert_int_equal(address.object != 0, type != ENGINE_PARTITION);
	told->members[type]++;
}

static void count_step(void *context, const char *step, uint64_t done, uint64_t total)
{
	struct told *told = context;
	bool of_objects = strcmp(step, "objects") == 0;

	*(of_objects ? &told->objects_done : &told->records_done) = done;
	*(of_objects ? &told->objects_total : &told->records_total) = total;
}

static uint64_t make_collection(struct fixture *f)
{
	struct engine_object *collection;
	uint64_t id = 0;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_COLLECTION, 0, 1, &id), 0);
	assert_int_equal(engine_open_object(f->txn, object(id), &collection), 0);
	assert_int_equal(engine_object_member_insert(collection, OBJECT), 0);
	engine_close_object(collection);
	commit(f);
	return id;
}

static void test_what_there_is_is_counted_and_told(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	struct engine_check check = { .member = count_member,
				      .progress = count_step,
				      .context = &told };
	struct found found;

	make_page_object(f);
	make_collection(f);
	/* So that, whatever the index absorbs, segments are sealed, whose records are looked at. */
	for (uint64_t n = 1; n <= 40; n++)
		write_page(f, n * SECOND, (uint32_t)(n % 3), 7);
	take_snapshot(f, PARTITION, "one");
	take_snapshot(f, PARTITION, "two");
	take_snapshot(f, 0, "all");
	assert_int_equal(engine_close(f->engine), 0);
	found = look_with(f, &check);
	assert_int_equal(found.count, 0);
	/* PARTITION and OTHERS have an object each. */
	assert_int_equal(check.partitions, 2);
	assert_int_equal(check.objects, 2);
	assert_int_equal(check.collections, 1);
	assert_int_equal(check.kept_versions, 3);
	assert_int_equal(check.data_bytes, 3 * PAGE);
	assert_int_equal(told.members[ENGINE_PARTITION], 2);
	assert_int_equal(told.members[ENGINE_USER_OBJECT], 2);
	assert_int_equal(told.members[ENGINE_COLLECTION], 1);
	assert_int_equal(told.objects_done, 1);
	assert_int_equal(told.objects_total, 1);
	assert_true(told.records_done > 0);
	assert_int_equal(told.records_done, told.records_total);
	assert_true(check.records > 0);
}

static void test_what_versions_show_is_looked_at_and_not_counted(void **state)
{
	struct fixture *f = *state;
	struct told told = { 0 };
	struct engine_check check = { .versions = true, .member = count_member, .context = &told };
	struct found found;

	make_page_object(f);
	make_collection(f);
	take_snapshot(f, PARTITION, "one");
	assert_int_equal(engine_close(f->engine), 0);
	found = look_with(f, &check);
	assert_int_equal(found.count, 0);
	assert_int_equal(told.members[ENGINE_PARTITION], 3);
	assert_int_equal(told.members[ENGINE_USER_OBJECT], 3);
	assert_int_equal(told.members[ENGINE_COLLECTION], 2);
	assert_int_equal(check.partitions, 2);
	assert_int_equal(check.objects, 2);
	assert_int_equal(check.collections, 1);
	assert_int_equal(check.kept_versions, 1);
}

/* ---- what contradicts something else ---- */

static void test_an_object_that_no_directory_has_is_an_orphan(void **state)
{
	struct fixture *f = *state;
	struct partition *partition;
	struct idset set;

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, OBJECT + 1, 1, NULL),
			 0);
	commit(f);
	begin(f, ENGINE_WRITE);
	partition = partition_of(f, PARTITION);
	set = partition_set(f->engine, partition, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	assert_int_equal(idset_remove(&set, writer(f), OBJECT + 1), 0);
	f->txn->changed = true;
	partition_mark(f->txn, partition);
	partition_release(f->engine, partition);
	assert_int_equal(idset_put_dirty(&f->engine->nodes, writer(f)), 0);
	commit(f);
	expect_only(f, FINDING_ORPHAN, PARTITION, OBJECT + 1, "directory");
}

static void test_a_listed_object_that_is_not_stored_is_named(void **state)
{
	struct fixture *f = *state;
	uint16_t index = index_of(f, PARTITION);

	take_away(f, key_of_onode(index, OBJECT));
	expect_only(f, FINDING_OBJECT, PARTITION, OBJECT, "missing");
}

static void test_a_piece_that_is_not_stored_is_named_with_its_bytes(void **state)
{
	struct fixture *f = *state;
	uint16_t index = index_of(f, PARTITION);

	make_page_object(f);
	take_away(f, key_of_data(index, OBJECT, 1));
	expect_only(f, FINDING_DATA, PARTITION, OBJECT, "bytes 512 to 1023");
}

static void test_a_partition_of_many_objects_is_looked_at_to_its_end(void **state)
{
	struct fixture *f = *state;
	enum { OBJECTS = 300, MISSING = 290 };

	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_create(f->txn, PARTITION, ENGINE_USER_OBJECT, 0, OBJECTS - 1, NULL),
			 0);
	commit(f);
	take_away(f, key_of_onode(index_of(f, PARTITION), OBJECT + MISSING));
	expect_only(f, FINDING_OBJECT, PARTITION, OBJECT + MISSING, "missing");
}

/* Changes the state of a partition, or of the root, in a transaction. */
static struct partition *begin_change_of(struct fixture *f, uint64_t id)
{
	struct partition *partition;

	begin(f, ENGINE_WRITE);
	partition = partition_of(f, id);
	f->txn->changed = true;
	partition_mark(f->txn, partition);
	return partition;
}

static void end_change_of(struct fixture *f, struct partition *partition)
{
	partition_release(f->engine, partition);
	commit(f);
}

static void test_used_bytes_that_do_not_add_up_are_named(void **state)
{
	struct fixture *f = *state;
	struct partition *partition = begin_change_of(f, PARTITION);

	partition->used_bytes += PAGE;
	end_change_of(f, partition);
	expect_only(f, FINDING_COUNT, PARTITION, 0, "its objects use");
}

static void test_a_wrong_number_of_objects_is_named(void **state)
{
	struct fixture *f = *state;
	struct partition *partition = begin_change_of(f, PARTITION);

	partition->sets[PARTITION_USER_OBJECTS].count++;
	end_change_of(f, partition);
	expect_only(f, FINDING_COUNT, PARTITION, 0, "it lists 1 objects, and counts 2");
}

static void test_a_wrong_number_of_collections_is_named(void **state)
{
	struct fixture *f = *state;
	struct partition *partition;
	struct found found;

	make_collection(f);
	partition = begin_change_of(f, PARTITION);
	partition->sets[PARTITION_COLLECTIONS].count++;
	end_change_of(f, partition);
	/* They are objects, too. */
	found = look_again(f);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.by_kind[FINDING_COUNT], 2);
	assert_non_null(strstr(found.last[FINDING_COUNT].text, "it lists 2 objects, and counts 3"));
}

static void test_a_wrong_number_of_partitions_is_named(void **state)
{
	struct fixture *f = *state;
	struct partition *root = begin_change_of(f, 0);

	root->sets[PARTITION_USER_OBJECTS].count++;
	end_change_of(f, root);
	expect_only(f, FINDING_COUNT, 0, 0, "the device lists 2 partitions, and counts 3");
}

static void test_an_object_whose_attributes_are_not_stored_is_named(void **state)
{
	static const uint8_t value[2 * PAGE];
	struct fixture *f = *state;

	begin(f, ENGINE_WRITE);
	assert_int_equal(
		engine_attribute_set(f->txn, object(OBJECT), 0x10000, 7, value, sizeof(value)), 0);
	commit(f);
	take_away(f, key_of_onode_chunk(index_of(f, PARTITION), OBJECT, RECORD_ATTRIBUTES_PIECE));
	expect_only(f, FINDING_OBJECT, PARTITION, OBJECT, "what is stored of it");
}

static void test_a_directory_with_a_missing_node_is_named(void **state)
{
	struct fixture *f = *state;
	uint16_t index = index_of(f, PARTITION);
	struct found found;

	take_away(f, key_of_node(index, RECORD_ID_USER_OBJECTS, 0));
	found = look_again(f);
	assert_int_equal(found.by_kind[FINDING_DIRECTORY], 1);
	assert_int_equal(found.last[FINDING_DIRECTORY].partition, PARTITION);
	/* The other partition is not concerned. */
	for (int kind = 0; kind < FINDING_KINDS; kind++)
		assert_true(!found.by_kind[kind] || found.last[kind].partition == PARTITION);
}

static void test_a_partition_without_a_state_is_named(void **state)
{
	struct fixture *f = *state;
	uint16_t index = index_of(f, PARTITION);

	take_away(f, key_of_state(index));
	expect_only(f, FINDING_PARTITION, PARTITION, 0, "its state");
}

static void test_members_of_a_collection_that_are_not_stored_are_named(void **state)
{
	struct fixture *f = *state;
	uint64_t id = make_collection(f);

	take_away(f, key_of_node(index_of(f, PARTITION), id, 0));
	expect_only(f, FINDING_COLLECTION, PARTITION, id, "members");
}

static void test_a_version_that_is_not_stored_is_named(void **state)
{
	struct fixture *f = *state;
	uint16_t index = index_of(f, PARTITION);
	uint32_t version = take_snapshot(f, PARTITION, "one");
	struct found found;

	take_away(f, key_of_version(index, version));
	found = look_again(f);
	assert_true(found.by_kind[FINDING_VERSION] >= 1);
	assert_int_equal(found.by_kind[FINDING_VERSION], found.count);
	assert_int_equal(found.last[FINDING_VERSION].partition, PARTITION);
}

/* Only its first and last object are looked at: nobody asks for what is in it. */
static void test_a_version_that_shows_nothing_is_named_though_it_is_not_read(void **state)
{
	struct fixture *f = *state;
	struct engine_check check = { .versions = false };
	struct found found;

	take_snapshot(f, PARTITION, "one");
	take_away(f, key_of_onode(index_of(f, PARTITION), OBJECT));
	assert_int_equal(engine_close(f->engine), 0);
	found = look_with(f, &check);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.by_kind[FINDING_OBJECT], 1);
}

static void test_a_name_that_does_not_lead_to_its_version_is_named(void **state)
{
	struct fixture *f = *state;
	uint32_t hash = crc32c(0, "one", 3) * 8 & (ENGINE_PIECES_MAX - 1);
	uint16_t index = index_of(f, PARTITION);

	take_snapshot(f, PARTITION, "one");
	take_snapshot(f, PARTITION, "two");
	take_away(f, key_of_version_name(index, hash));
	expect_only(f, FINDING_VERSION, PARTITION, 0, "the name \"one\" of version 1");
}

static void test_a_name_of_the_device_that_does_not_lead_to_its_version_is_named_once(void **state)
{
	struct fixture *f = *state;
	uint32_t hash = crc32c(0, "all", 3) * 8 & (ENGINE_PIECES_MAX - 1);

	take_snapshot(f, 0, "all");
	take_away(f, key_of_version_name(RECORD_ROOT_INDEX, hash));
	expect_only(f, FINDING_VERSION, 0, 0, "the name \"all\"");
}

static void test_a_clone_whose_source_keeps_nothing_for_it_is_named(void **state)
{
	struct fixture *f = *state;
	struct partition *source;
	uint64_t element;
	struct idset set;

	make_clone(f, PARTITION, CLONE);
	begin(f, ENGINE_WRITE);
	source = partition_of(f, PARTITION);
	set = history_clones(f->engine, source);
	assert_int_equal(idset_next(&set, 0, &element), 0);
	assert_int_equal(idset_remove(&set, writer(f), element), 0);
	f->txn->changed = true;
	partition_mark_history(f->txn, source);
	partition_release(f->engine, source);
	assert_int_equal(idset_put_dirty(&f->engine->nodes, writer(f)), 0);
	commit(f);
	expect_only(f, FINDING_CLONE, CLONE, 0, "does not keep");
}

/* ---- what may be older than it was ---- */

/* The partition whose state the store is not sure of. */
static uint16_t uncertain_index;

static enum record_certainty one_state_is_uncertain(struct record_store *store,
						    const struct record_key *key)
{
	struct record_key state = key_of_state(uncertain_index);

	(void)store;
	return key->partition == state.partition && key->class == state.class &&
			       key->identifier == state.identifier && key->piece == state.piece
		       ? RECORD_UNCERTAIN
		       : RECORD_CERTAIN;
}

static struct found look_unsure_of(struct fixture *f, uint16_t index)
{
	struct record_store *store = f->engine->store;
	const struct record_store_operations *own = store->operations;
	struct record_store_operations unsure = *own;
	struct engine_check check = { .versions = true };
	struct found found;

	uncertain_index = index;
	unsure.is_uncertain = one_state_is_uncertain;
	store->operations = &unsure;
	found = look_now(f, &check);
	store->operations = own;
	return found;
}

static void test_whose_state_may_be_lost_is_named_and_clones_of_it(void **state)
{
	struct fixture *f = *state;
	struct partition *partition;
	struct found found;
	uint16_t index;

	make_clone(f, PARTITION, CLONE);
	found = look_unsure_of(f, RECORD_ROOT_INDEX);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.by_kind[FINDING_OLDER], 1);
	assert_int_equal(found.last[FINDING_OLDER].partition, 0);

	partition = partition_of(f, CLONE);
	index = partition->index;
	partition_release(f->engine, partition);
	found = look_unsure_of(f, index);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.last[FINDING_OLDER].partition, CLONE);

	/* What the clone has not written itself it reads there. */
	partition = partition_of(f, PARTITION);
	index = partition->index;
	partition_release(f->engine, partition);
	found = look_unsure_of(f, index);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.by_kind[FINDING_OLDER], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_nothing_is_found_where_all_is_well),
		FLASH_TEST(test_what_there_is_is_counted_and_told),
		FLASH_TEST(test_what_versions_show_is_looked_at_and_not_counted),
		FLASH_TEST(test_an_object_that_no_directory_has_is_an_orphan),
		FLASH_TEST(test_a_listed_object_that_is_not_stored_is_named),
		FLASH_TEST(test_a_piece_that_is_not_stored_is_named_with_its_bytes),
		FLASH_TEST(test_a_partition_of_many_objects_is_looked_at_to_its_end),
		FLASH_TEST(test_used_bytes_that_do_not_add_up_are_named),
		FLASH_TEST(test_a_wrong_number_of_objects_is_named),
		FLASH_TEST(test_a_wrong_number_of_collections_is_named),
		FLASH_TEST(test_a_wrong_number_of_partitions_is_named),
		FLASH_TEST(test_an_object_whose_attributes_are_not_stored_is_named),
		FLASH_TEST(test_a_directory_with_a_missing_node_is_named),
		FLASH_TEST(test_a_partition_without_a_state_is_named),
		FLASH_TEST(test_members_of_a_collection_that_are_not_stored_are_named),
		FLASH_TEST(test_a_version_that_is_not_stored_is_named),
		FLASH_TEST(test_a_version_that_shows_nothing_is_named_though_it_is_not_read),
		FLASH_TEST(test_a_name_that_does_not_lead_to_its_version_is_named),
		FLASH_TEST(
			test_a_name_of_the_device_that_does_not_lead_to_its_version_is_named_once),
		FLASH_TEST(test_a_clone_whose_source_keeps_nothing_for_it_is_named),
		FLASH_TEST(test_whose_state_may_be_lost_is_named_and_clones_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
