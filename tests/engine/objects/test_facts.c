/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Facts of a partition are made once, and always say what its attributes say. */
#include "tests/engine/fixture.h"

enum { PLAIN = 0x30010000, LASTING = 0x30000005 };

static const uint32_t pages[] = { PLAIN, LASTING };
#define PAGES 2

static unsigned made;

/* A byte for each page: the value of its attribute 1; 0: not set. */
static int make_facts(struct engine_object *object, struct engine_facts *facts)
{
	int result = 0;

	made++;
	for (size_t i = 0; result == 0 && i < PAGES; i++) {
		uint32_t length;

		result = engine_object_attribute_get(object, pages[i], 1, &facts->bytes[i], 1,
						     &length);
		if (result == -ENOENT)
			result = 0;
	}
	return result;
}

static int setup_facts(void **state)
{
	struct fixture *f;

	setup_on_memory(state);
	f = *state;
	engine_set_lasting_pages(f->engine, &pages[1], 1);
	engine_set_facts_maker(f->engine, make_facts);
	begin_with_object(f);
	commit(f);
	made = 0;
	return 0;
}

/* In the open transaction. */
static void set(struct fixture *f, uint64_t id, size_t page, uint8_t value)
{
	const struct engine_address address = { .partition = id };

	assert_int_equal(engine_attribute_set(f->txn, address, pages[page], 1, &value, 1), 0);
}

static uint8_t fact_of(struct fixture *f, uint64_t id, size_t page)
{
	struct engine_facts facts;

	assert_int_equal(engine_facts_of(f->txn, id, &facts), 0);
	return facts.bytes[page];
}

/* In one transaction. */
static void set_now(struct fixture *f, uint64_t id, size_t page, uint8_t value)
{
	f->now += 2000;
	begin(f, ENGINE_WRITE);
	set(f, id, page, value);
	commit(f);
}

static uint8_t fact_now(struct fixture *f, uint64_t id, size_t page)
{
	uint8_t value;

	begin(f, ENGINE_READ);
	value = fact_of(f, id, page);
	commit(f);
	return value;
}

static void test_facts_are_made_once(void **state)
{
	struct fixture *f = *state;

	for (uint32_t round = 0; round < 3; round++)
		assert_int_equal(fact_now(f, PARTITION, 0), 0);
	assert_int_equal(made, 1);
	/* Neither data nor attributes of objects are of any account to them. */
	put_text(f, object(OBJECT), "text");
	assert_int_equal(fact_now(f, PARTITION, 0), 0);
	assert_int_equal(made, 1);
	set_now(f, PARTITION, 0, 5);
	assert_int_equal(fact_now(f, PARTITION, 0), 5);
	assert_int_equal(made, 2);
}

/* Facts made of what a transaction has set, before it goes: as if it had never been. */
static void test_an_abort_takes_facts_back(void **state)
{
	static const uint64_t ids[] = { PARTITION, 0 };
	struct fixture *f = *state;

	for (size_t i = 0; i < 2; i++) {
		for (size_t page = 0; page < PAGES; page++) {
			for (uint32_t known = 0; known < 2; known++) {
				set_now(f, ids[i], page, 1);
				if (known)
					assert_int_equal(fact_now(f, ids[i], page), 1);
				begin(f, ENGINE_WRITE);
				set(f, ids[i], page, 2);
				assert_int_equal(fact_of(f, ids[i], page), 2);
				set(f, ids[i], page, 3);
				assert_int_equal(fact_of(f, ids[i], page), 3);
				abort_all(f);
				assert_int_equal(fact_now(f, ids[i], page), 1);
				begin(f, ENGINE_WRITE);
				assert_int_equal(fact_of(f, ids[i], page), 1);
				abort_all(f);
				assert_int_equal(fact_now(f, ids[i], page), 1);
			}
		}
	}
}

/* Lasting attributes, as keys are, stay as they are set when the rest goes back. */
static void test_facts_go_back_with_what_is_rolled_back(void **state)
{
	static const uint64_t ids[] = { PARTITION, 0 };
	struct fixture *f = *state;

	for (size_t i = 0; i < 2; i++) {
		uint32_t version;

		set_now(f, PARTITION, 0, 1);
		set_now(f, PARTITION, 1, 1);
		f->now += 2000;
		version = take_snapshot(f, ids[i], NULL);
		set_now(f, PARTITION, 0, 2);
		set_now(f, PARTITION, 1, 2);
		f->now += 2000;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_rollback(f->txn, ids[i], at_number(version)), 0);
		assert_int_equal(fact_of(f, PARTITION, 0), 1);
		abort_all(f);
		assert_int_equal(fact_now(f, PARTITION, 0), 2);
		roll_back(f, ids[i], at_number(version));
		assert_int_equal(fact_now(f, PARTITION, 0), 1);
		assert_int_equal(fact_now(f, PARTITION, 1), 2);
	}
}

static void refresh(struct fixture *f)
{
	f->now += 2000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone_refresh(f->txn, CLONE), 0);
}

/* Of its attributes a refresh changes none. */
static void test_a_refreshed_clone_has_its_own_facts(void **state)
{
	const struct engine_moment now = { .kind = ENGINE_NOW };
	struct fixture *f = *state;

	set_now(f, PARTITION, 0, 1);
	set_now(f, PARTITION, 1, 1);
	f->now += 2000;
	begin(f, ENGINE_WRITE);
	assert_int_equal(engine_clone(f->txn, PARTITION, now, CLONE, true, NULL), 0);
	assert_int_equal(fact_of(f, CLONE, 0), 1);
	commit(f);
	assert_int_equal(fact_now(f, CLONE, 1), 0);
	set_now(f, CLONE, 1, 5);
	set_now(f, PARTITION, 0, 2);
	refresh(f);
	assert_int_equal(fact_of(f, CLONE, 0), 1);
	set(f, CLONE, 1, 6);
	assert_int_equal(fact_of(f, CLONE, 1), 6);
	abort_all(f);
	assert_int_equal(fact_now(f, CLONE, 1), 5);
	refresh(f);
	commit(f);
	assert_int_equal(fact_now(f, CLONE, 0), 1);
	assert_int_equal(fact_now(f, CLONE, 1), 5);
	assert_int_equal(fact_now(f, PARTITION, 0), 2);
}

static void test_a_new_partition_has_no_facts_of_its_id_before(void **state)
{
	struct fixture *f = *state;

	set_now(f, PARTITION, 0, 1);
	set_now(f, PARTITION, 1, 1);
	assert_int_equal(fact_now(f, PARTITION, 0), 1);
	for (uint32_t round = 0; round < 2; round++) {
		f->now += 2000;
		begin(f, ENGINE_WRITE);
		assert_int_equal(engine_partition_remove(f->txn, PARTITION, true), 0);
		assert_int_equal(engine_partition_create(f->txn, PARTITION, NULL), 0);
		assert_int_equal(fact_of(f, PARTITION, 0), 0);
		assert_int_equal(fact_of(f, PARTITION, 1), 0);
		if (round == 0)
			abort_all(f);
		else
			commit(f);
		assert_int_equal(fact_now(f, PARTITION, 0), round == 0);
		assert_int_equal(fact_now(f, PARTITION, 1), round == 0);
	}
}

#define FACTS(name) cmocka_unit_test_setup_teardown(name, setup_facts, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACTS(test_facts_are_made_once),
		FACTS(test_an_abort_takes_facts_back),
		FACTS(test_facts_go_back_with_what_is_rolled_back),
		FACTS(test_a_refreshed_clone_has_its_own_facts),
		FACTS(test_a_new_partition_has_no_facts_of_its_id_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
