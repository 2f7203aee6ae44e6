/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Collections against a model: random transactions of everything that changes who is a member of
 * what, some of them aborted, cut short by a crash or out of room, and every member, membership and
 * old version compared. A run follows from its seed; COLLECTIONS_SEED chooses another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

enum { OBJECTS = 40, COLLECTIONS = 6, NUMBERS = 4, VERSIONS_MAX = 60, TRANSACTIONS = 4000 };

/* What can be at an ID: objects at OBJECT + n, collections at OBJECT + OBJECTS + n. */
struct object_state {
	bool exists;
	uint8_t in[NUMBERS]; /* collection + 1 under number n + 1; 0: none */
};

struct collection_state {
	bool exists;
	bool members[OBJECTS]; /* also bare ones, whose object may not exist */
};

struct state {
	struct object_state objects[OBJECTS];
	struct collection_state collections[COLLECTIONS];
};

struct run {
	struct fixture *f;
	struct nand *nand; /* NULL: on records in memory */
	uint64_t random;
	struct state now, before; /* before: as of the last commit */
	struct state versions[VERSIONS_MAX];
	uint32_t version_count, versions_max;
};

static uint32_t below(struct run *run, uint32_t limit)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 7;
	run->random ^= run->random << 17;
	return (uint32_t)(run->random >> 33) % limit;
}

static uint64_t object_id(uint32_t index)
{
	return OBJECT + index;
}

static uint64_t collection_id(uint32_t index)
{
	return OBJECT + OBJECTS + index;
}

/* ---- comparing ---- */

static void check_collection(struct run *run, const struct state *state, uint32_t index,
			     uint32_t version)
{
	const struct collection_state *collection = &state->collections[index];
	struct engine_address address = at_version(object(collection_id(index)), version);
	uint64_t ids[OBJECTS + 1], next;
	size_t count, expected = 0;
	int result = engine_list(run->f->txn, address, ENGINE_LIST_MEMBERS, 0, ids, OBJECTS + 1,
				 &count, &next);

	if (!collection->exists) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	assert_int_equal(result, 0);
	for (uint32_t i = 0; i < OBJECTS; i++) {
		if (!collection->members[i])
			continue;
		assert_true(expected < count);
		assert_int_equal(ids[expected++], object_id(i));
	}
	assert_int_equal(count, expected);
	assert_int_equal(stat_of(run->f, address).members, expected);
}

static void check_object(struct run *run, const struct state *state, uint32_t index,
			 uint32_t version)
{
	const struct object_state *wanted = &state->objects[index];
	struct engine_address address = at_version(object(object_id(index)), version);

	for (uint32_t n = 0; n < NUMBERS; n++) {
		uint8_t value[8];
		uint32_t length;
		int result = engine_attribute_get(run->f->txn, address, ENGINE_MEMBERSHIPS_PAGE,
						  n + 1, value, 8, &length);

		if (!wanted->exists || wanted->in[n] == 0) {
			assert_int_equal(result, -ENOENT);
			continue;
		}
		assert_int_equal(result, 0);
		assert_int_equal(get_be64(value), collection_id(wanted->in[n] - 1U));
	}
}

static void check_all(struct run *run, const struct state *state, uint32_t version)
{
	for (uint32_t i = 0; i < COLLECTIONS; i++)
		check_collection(run, state, i, version);
	for (uint32_t i = 0; i < OBJECTS; i++)
		check_object(run, state, i, version);
}

/* ---- operations ---- */

static void forget_object(struct state *state, uint32_t index)
{
	struct object_state *gone = &state->objects[index];

	for (uint32_t n = 0; n < NUMBERS; n++)
		if (gone->in[n])
			state->collections[gone->in[n] - 1].members[index] = false;
	*gone = (struct object_state){ 0 };
}

/* Members leave, or the collection goes: no object shows it any more. */
static void forget_members(struct state *state, uint32_t index)
{
	memset(state->collections[index].members, 0, sizeof(state->collections[index].members));
	for (uint32_t i = 0; i < OBJECTS; i++)
		for (uint32_t n = 0; n < NUMBERS; n++)
			if (state->objects[i].in[n] == index + 1)
				state->objects[i].in[n] = 0;
}

static void toggle_object(struct run *run)
{
	uint32_t index = below(run, OBJECTS);
	struct object_state *state = &run->now.objects[index];

	if (state->exists) {
		assert_int_equal(engine_remove(run->f->txn, object(object_id(index))), 0);
		forget_object(&run->now, index);
		return;
	}
	assert_int_equal(engine_create(run->f->txn, PARTITION, ENGINE_USER_OBJECT, object_id(index),
				       1, NULL),
			 0);
	state->exists = true;
}

static bool has_members(const struct collection_state *collection)
{
	for (uint32_t i = 0; i < OBJECTS; i++)
		if (collection->members[i])
			return true;
	return false;
}

static void toggle_collection(struct run *run)
{
	uint32_t index = below(run, COLLECTIONS);
	struct collection_state *state = &run->now.collections[index];
	struct engine_address address = object(collection_id(index));

	if (!state->exists) {
		assert_int_equal(engine_create(run->f->txn, PARTITION, ENGINE_COLLECTION,
					       collection_id(index), 1, NULL),
				 0);
		*state = (struct collection_state){ .exists = true };
		return;
	}
	if (has_members(state))
		assert_int_equal(engine_remove(run->f->txn, address), -ENOTEMPTY);
	assert_int_equal(engine_members_clear(run->f->txn, address), 0);
	forget_members(&run->now, index);
	if (below(run, 2))
		return;
	assert_int_equal(engine_remove(run->f->txn, address), 0);
	state->exists = false;
}

static void set_membership(struct run *run)
{
	uint32_t index = below(run, OBJECTS), n = below(run, NUMBERS),
		 wanted = below(run, COLLECTIONS + 1);
	struct object_state *state = &run->now.objects[index];
	struct collection_state *collection = wanted ? &run->now.collections[wanted - 1] : NULL;
	int result = engine_membership_set(run->f->txn, object(object_id(index)), n + 1,
					   wanted ? collection_id(wanted - 1) : 0);

	if (!state->exists) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	if (collection && !collection->exists) {
		assert_int_equal(result, -EINVAL);
		return;
	}
	if (collection && collection->members[index] && state->in[n] != wanted) {
		assert_int_equal(result, -EEXIST);
		return;
	}
	assert_int_equal(result, 0);
	if (state->in[n])
		run->now.collections[state->in[n] - 1].members[index] = false;
	state->in[n] = (uint8_t)wanted;
	if (collection)
		collection->members[index] = true;
}

/* A bare member comes, or a member goes; if its object knew of it, it does not any more. */
static void toggle_member(struct run *run)
{
	uint32_t index = below(run, OBJECTS), which = below(run, COLLECTIONS);
	struct collection_state *state = &run->now.collections[which];
	struct engine_address address = object(collection_id(which));

	if (!state->exists) {
		assert_int_equal(engine_member_insert(run->f->txn, address, object_id(index)),
				 -ENOENT);
		return;
	}
	if (!state->members[index]) {
		/* A membership that ended on this side only would count again. */
		for (uint32_t n = 0; n < NUMBERS; n++)
			if (run->now.objects[index].exists && run->now.objects[index].in[n] == 0)
				assert_int_equal(engine_membership_set(run->f->txn,
								       object(object_id(index)),
								       n + 1, 0),
						 0);
		assert_int_equal(engine_member_insert(run->f->txn, address, object_id(index)), 0);
		state->members[index] = true;
		return;
	}
	assert_int_equal(engine_member_remove(run->f->txn, address, object_id(index)), 0);
	state->members[index] = false;
	for (uint32_t n = 0; n < NUMBERS; n++)
		if (run->now.objects[index].in[n] == which + 1)
			run->now.objects[index].in[n] = 0;
}

/* ---- the engine on flash, which is small enough to be merged all the time ---- */

enum { FLASH_BLOCKS = 2000, FLASH_BLOCK_PAGES = 8, FLASH_VERSIONS_MAX = 12 };

static void clock_moves(struct run *run)
{
	run->f->now += 10;
}

static void open_on_flash(struct run *run)
{
	struct engine_options options = { .muninn.rows = 2,
					  .muninn.segment_pages = 16,
					  .muninn.record_bytes = 256,
					  .clock_ms = clock_of,
					  .clock_context = run->f };
	static const struct nand_geometry shape = { .page_bytes = 512,
						    .spare_bytes = 64,
						    .pages_per_block = FLASH_BLOCK_PAGES,
						    .blocks = FLASH_BLOCKS,
						    .channels = 1,
						    .dies_per_channel = 1 };
	struct error_text error = { "" };
	uint64_t nvram;

	if (!run->nand) {
		assert_int_equal(engine_nvram_bytes(&shape, &options, &nvram, &error), 0);
		assert_int_equal(nand_open_memory(&shape, nvram, &run->nand, &error), 0);
		assert_int_equal(engine_format(run->nand, &options, &error), 0);
	}
	if (engine_open(run->nand, &options, &run->f->engine, &error))
		fail_msg("%s", error.text);
}

/*
 * Other objects, whose data and attributes fill segments together with what collections are made
 * of.
 */
enum { FILLERS = 60, FILLER_PAGES = 8 };

static void make_fillers(struct run *run)
{
	for (uint64_t i = 0; i < FILLERS; i++)
		assert_int_equal(engine_create(run->f->txn, PARTITION, ENGINE_USER_OBJECT,
					       OBJECT + 1000 + i, 1, NULL),
				 0);
}

static void write_filler(struct run *run)
{
	struct engine_address address = object(OBJECT + 1000 + below(run, FILLERS));
	uint8_t bytes[FILLER_PAGES * PAGE];

	memset(bytes, (int)below(run, 256), sizeof(bytes));
	assert_int_equal(engine_write(run->f->txn, address, 0, bytes, sizeof(bytes)), 0);
	assert_int_equal(engine_attribute_set(run->f->txn, address, 9, 1, bytes, 300), 0);
}

static void crash_any(struct run *run)
{
	if (!run->nand) {
		crash(run->f);
		return;
	}
	engine_abandon(run->f->engine);
	run->f->txn = NULL;
	open_on_flash(run);
}

/* ---- transactions ---- */

static void snapshot(struct run *run)
{
	uint32_t version;

	if (run->version_count == run->versions_max)
		return;
	begin(run->f, ENGINE_WRITE);
	assert_int_equal(engine_snapshot(run->f->txn, PARTITION, NULL, &version), 0);
	commit(run->f);
	assert_int_equal(version, run->version_count + 1);
	run->versions[run->version_count++] = run->now;
}

static void one_transaction(struct run *run)
{
	static void (*const operations[])(struct run *) = { set_membership, set_membership,
							    set_membership, toggle_object,
							    toggle_member,  toggle_collection };
	uint32_t count = 1 + below(run, 8), fate = below(run, 20);

	run->before = run->now;
	begin(run->f, ENGINE_WRITE);
	for (uint32_t i = 0; i < count; i++)
		operations[below(run, 6)](run);
	if (run->nand)
		write_filler(run);
	if (fate == 0) {
		abort_all(run->f);
		run->now = run->before;
	} else if (fate == 1) {
		crash_any(run);
		run->now = run->before;
	} else if (fate == 2 && !run->nand) {
		memory_store_fail_put(run->f->memory, below(run, 8));
		if (end(run->f, 0))
			run->now = run->before;
		memory_store_fail_put(run->f->memory, -1);
	} else {
		commit(run->f);
	}
}

static void run_all(struct run *run)
{
	const char *seed = getenv("COLLECTIONS_SEED");

	run->random = seed ? strtoull(seed, NULL, 0) | 1 : 20261121;
	begin(run->f, ENGINE_WRITE);
	assert_int_equal(engine_partition_create(run->f->txn, PARTITION, NULL), 0);
	make_fillers(run);
	commit(run->f);
	for (uint32_t i = 0; i < TRANSACTIONS; i++) {
		clock_moves(run);
		if (below(run, 60) == 0)
			snapshot(run);
		one_transaction(run);
		if (i % 5 != 0)
			continue;
		begin(run->f, ENGINE_READ);
		check_all(run, &run->now, 0);
		if (run->version_count) {
			uint32_t version = 1 + below(run, run->version_count);

			check_all(run, &run->versions[version - 1], version);
		}
		abort_all(run->f);
	}
	assert_true(run->version_count > run->versions_max / 2);
}

static void test_random_transactions_in_memory_agree_with_the_model(void **state)
{
	struct run *run = calloc(1, sizeof(*run));

	run->f = *state;
	run->versions_max = VERSIONS_MAX;
	memory_store_absorb(run->f->memory, true);
	run_all(run);
	free(run);
}

static void test_random_transactions_on_flash_agree_with_the_model(void **state)
{
	struct run *run = calloc(1, sizeof(*run));
	struct nand_counters counters;
	uint64_t programmed = 0;

	(void)state;
	run->f = calloc(1, sizeof(*run->f));
	run->versions_max = FLASH_VERSIONS_MAX;
	open_on_flash(run);
	run_all(run);
	nand_read_counters(run->nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++)
		programmed += counters.by_cause[cause].pages_programmed;
	/* More than there is: it was merged. */
	assert_true(programmed > 2 * FLASH_BLOCKS * FLASH_BLOCK_PAGES);
	assert_int_equal(engine_close(run->f->engine), 0);
	assert_int_equal(nand_close(run->nand), 0);
	free(run->f);
	free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_random_transactions_in_memory_agree_with_the_model),
		cmocka_unit_test(test_random_transactions_on_flash_agree_with_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
