/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Hidden intervals on record: what is put into a chunk comes out again, and damage is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/hidden_chunks.h"
#include "engine/muninn/hash.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

#define CHUNK 7
#define MANY  64

struct list {
	struct hidden_interval intervals[MANY];
	uint32_t count;
};

static uint64_t some_bits(uint64_t *random)
{
	*random += UINT64_C(0x9e3779b97f4a7c15);
	return hash_mix(*random);
}

static int take(void *context, const struct hidden_interval *interval)
{
	struct list *list = context;

	assert_true(list->count < MANY);
	list->intervals[list->count++] = *interval;
	return 0;
}

static bool is_same(const struct hidden_interval *a, const struct hidden_interval *b)
{
	return a->partition == b->partition && a->identifier == b->identifier && a->at == b->at &&
	       a->to == b->to && a->is_followed == b->is_followed && a->chunk == b->chunk;
}

static uint32_t bytes_of(const struct list *list)
{
	uint32_t bytes = HIDDEN_CHUNK_HEAD_BYTES;

	for (uint32_t at = 0; at < list->count; at++)
		bytes += hidden_bytes(&list->intervals[at]);
	return bytes;
}

/* The chunk has just these, those of partitions first. */
static void check(struct fixture *f, const struct list *wanted)
{
	struct list found = { .count = 0 };
	bool objects = false;
	uint32_t length;

	assert_int_equal(hidden_chunk_load(f->engine->store, CHUNK, take, &found, &length), 0);
	assert_int_equal(found.count, wanted->count);
	assert_int_equal(length, bytes_of(wanted));
	for (uint32_t at = 0; at < found.count; at++) {
		uint32_t same = 0;

		while (same < wanted->count &&
		       !is_same(&found.intervals[at], &wanted->intervals[same]))
			same++;
		assert_true(same < wanted->count);
		assert_false(objects && !found.intervals[at].identifier);
		objects = found.intervals[at].identifier != 0;
	}
}

static struct hidden_interval some_interval(uint64_t *random, uint32_t number)
{
	uint64_t bits = some_bits(random);

	return (struct hidden_interval){
		.identifier = bits & 1 ? some_bits(random) | 1 : 0,
		.partition = (uint16_t)(bits >> 8),
		.at = RECORD_NEWEST - 1 - number,
		.to = bits >> 20,
		.chunk = CHUNK,
	};
}

/* Adds, changes and removes until the chunk was full a few times. */
static void test_a_chunk_has_what_was_added_and_not_removed(void **state)
{
	struct fixture *f = *state;
	uint64_t random = 1;
	struct list list = { .count = 1 };
	uint32_t full = 0;

	begin(f, ENGINE_WRITE);
	list.intervals[0] = some_interval(&random, 0);
	assert_int_equal(hidden_chunk_begin(&f->txn->writer, &list.intervals[0]), 0);
	check(f, &list);
	for (uint32_t number = 1; number < 2000; number++) {
		struct hidden_interval interval = some_interval(&random, number);
		bool fits = bytes_of(&list) + hidden_bytes(&interval) <= HIDDEN_CHUNK_BYTES;
		uint32_t at = list.count ? (uint32_t)some_bits(&random) % list.count : 0;

		if (fits) {
			assert_int_equal(hidden_chunk_add(&f->txn->writer, &interval), 0);
			list.intervals[list.count++] = interval;
		} else {
			/* Whoever adds to one that is full is told. */
			assert_int_equal(hidden_chunk_add(&f->txn->writer, &interval), -EBADMSG);
			assert_true(list.count >= HIDDEN_CHUNK_FULL);
			full++;
		}
		if (list.intervals[at].identifier) {
			list.intervals[at].is_followed = true;
			assert_int_equal(hidden_chunk_change(&f->txn->writer, &list.intervals[at]),
					 0);
		}
		if (!fits || some_bits(&random) % 3 == 0) {
			assert_int_equal(hidden_chunk_remove(&f->txn->writer, &list.intervals[at]),
					 0);
			list.intervals[at] = list.intervals[--list.count];
		}
		check(f, &list);
	}
	assert_true(full > 10);
	while (list.count)
		assert_int_equal(
			hidden_chunk_remove(&f->txn->writer, &list.intervals[--list.count]), 0);
	check(f, &list);
	abort_all(f);
}

static int load(struct fixture *f)
{
	struct list found = { .count = 0 };
	uint32_t length;

	return hidden_chunk_load(f->engine->store, CHUNK, take, &found, &length);
}

static void put(struct fixture *f, const uint8_t *bytes, uint32_t length)
{
	assert_int_equal(record_put(&f->txn->writer, key_of_table(RECORD_ID_HIDDEN, CHUNK),
				    RECORD_ABSORB, bytes, length),
			 0);
}

static void test_damage_is_noticed(void **state)
{
	const struct hidden_interval absent = { .at = 3, .to = 1, .chunk = CHUNK };
	uint8_t bytes[HIDDEN_CHUNK_BYTES + 1] = { 0 };
	struct fixture *f = *state;

	assert_int_equal(load(f), -EBADMSG);
	begin(f, ENGINE_WRITE);
	/* Without a head. */
	put(f, bytes, 0);
	assert_int_equal(load(f), -EBADMSG);
	/* Too long. */
	put(f, bytes, sizeof(bytes));
	assert_int_equal(load(f), -EBADMSG);
	/* It says that there is one of a partition, and is too short for it. */
	bytes[0] = 1;
	put_le48(bytes + 3, 2);
	put_le48(bytes + 9, 1);
	put(f, bytes, HIDDEN_BYTES);
	assert_int_equal(load(f), -EBADMSG);
	put(f, bytes, HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_BYTES);
	assert_int_equal(load(f), 0);
	assert_int_equal(hidden_chunk_remove(&f->txn->writer, &absent), -EBADMSG);
	assert_int_equal(hidden_chunk_change(&f->txn->writer, &absent), -EBADMSG);
	/* Neither the beginning of an object's, nor a partition's behind the first. */
	put(f, bytes, HIDDEN_CHUNK_HEAD_BYTES + 2 * HIDDEN_BYTES);
	assert_int_equal(load(f), -EBADMSG);
	/* Back to a moment that came later. */
	put_le48(bytes + 9, 2);
	put(f, bytes, HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_BYTES);
	assert_int_equal(load(f), -EBADMSG);
	assert_int_equal(hidden_chunk_change(&f->txn->writer, &absent), -EBADMSG);
	assert_int_equal(hidden_chunk_remove(&f->txn->writer, &absent), -EBADMSG);
	/* An object's without an object, then with a flag that there is not. */
	bytes[0] = 0;
	put_le48(bytes + 9, 1);
	put(f, bytes, HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_OF_OBJECT_BYTES);
	assert_int_equal(load(f), -EBADMSG);
	bytes[HIDDEN_CHUNK_HEAD_BYTES + 14] = 1;
	put(f, bytes, HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_OF_OBJECT_BYTES);
	assert_int_equal(load(f), 0);
	bytes[HIDDEN_CHUNK_HEAD_BYTES + 22] = 2;
	put(f, bytes, HIDDEN_CHUNK_HEAD_BYTES + HIDDEN_OF_OBJECT_BYTES);
	assert_int_equal(load(f), -EBADMSG);
	abort_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_chunk_has_what_was_added_and_not_removed),
		TEST(test_damage_is_noticed),
	};

	return cmocka_run_group_tests_name("hidden_chunks", tests, NULL, NULL);
}
