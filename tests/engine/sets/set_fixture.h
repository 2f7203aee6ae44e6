/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* An ordered set of IDs on records in memory, and what should be in it. */
#ifndef MUNINN_TESTS_ENGINE_SETS_SET_FIXTURE_H
#define MUNINN_TESTS_ENGINE_SETS_SET_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/objects/keys.h"
#include "engine/sets/idset.h"
#include "engine/sets/idset_node.h"
#include "tests/engine/memory_store.h"

enum { PAGE = 512, IDS_MAX = 6000, PARTITION = 3, IDENTIFIER = 0x1234 };

/* A set and what should be in it. */
struct fixture {
	struct memory_store *memory;
	struct record_store *store;
	struct cache nodes;
	struct idset_header header, committed;
	struct idset set;
	struct record_writer writer;
	uint8_t page[4096];
	uint64_t random;
	uint64_t ids[IDS_MAX], before[IDS_MAX];
	uint32_t count, count_before;
};

static inline void open_set(struct fixture *f, uint32_t cached)
{
	f->store = memory_store_open(f->memory);
	assert_int_equal(cache_init(&f->nodes, cached, SIZE_MAX, idset_node_destroy), 0);
	f->set = (struct idset){ .store = f->store,
				 .nodes = &f->nodes,
				 .header = &f->header,
				 .first = key_of_node(PARTITION, IDENTIFIER, 0),
				 .bound = RECORD_NEWEST };
	f->writer = (struct record_writer){ .store = f->store, .page = f->page };
}

static inline int setup_pages(void **state, uint32_t page_bytes)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->memory = memory_store_create(page_bytes);
	open_set(f, 8);
	*state = f;
	return 0;
}

static inline int setup(void **state)
{
	return setup_pages(state, PAGE);
}

static inline int setup_4096(void **state)
{
	return setup_pages(state, 4096);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	cache_destroy(&f->nodes);
	f->store->operations->close(f->store, false);
	memory_store_destroy(f->memory);
	free(f);
	return 0;
}

static inline void begin(struct fixture *f)
{
	f->writer.sequence = f->store->operations->begin(f->store, 0);
	cache_begin(&f->nodes);
	f->committed = f->header;
}

static inline void commit(struct fixture *f)
{
	assert_int_equal(idset_put_dirty(&f->nodes, &f->writer), 0);
	f->store->operations->commit(f->store);
	cache_commit(&f->nodes);
}

static inline void abort_changes(struct fixture *f)
{
	f->store->operations->abort(f->store);
	cache_abort(&f->nodes);
	f->header = f->committed;
}

static inline void insert(struct fixture *f, uint64_t id)
{
	assert_int_equal(idset_insert(&f->set, &f->writer, id), 0);
}

static inline void insert_run(struct fixture *f, uint64_t first, uint32_t count)
{
	for (uint32_t index = 0; index < count; index++)
		insert(f, first + index);
}

static inline uint64_t below(struct fixture *f, uint64_t limit)
{
	f->random = f->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (f->random >> 33) % limit;
}

static inline uint32_t position(const uint64_t *ids, uint32_t count, uint64_t id)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static inline void check_from(const struct idset *set, const uint64_t *ids, uint32_t count,
			      uint64_t first)
{
	struct idset_walk walk = idset_walk_from(set, first);
	uint64_t got[17], next = first, counted, walked;
	uint32_t at = position(ids, count, first);
	bool more = true;
	size_t number;

	assert_int_equal(idset_count(set, first, &counted), 0);
	assert_int_equal(counted, count - at);
	assert_int_equal(idset_next(set, first, &walked), at < count ? 0 : -ENOENT);
	assert_true(at == count || walked == ids[at]);
	while (more) {
		assert_int_equal(idset_list(set, next, got, 17, &number, &more, &next), 0);
		for (size_t index = 0; index < number; index++) {
			assert_int_equal(idset_walk(&walk, &walked), 1);
			assert_int_equal(walked, ids[at]);
			assert_int_equal(got[index], ids[at++]);
		}
		assert_true(!more || next == ids[at]);
	}
	assert_int_equal(at, count);
	assert_int_equal(idset_walk(&walk, &walked), 0);
}

static inline void check_before(struct fixture *f, uint64_t id)
{
	uint32_t at = position(f->ids, f->count, id);
	uint64_t before;

	assert_int_equal(idset_before(&f->set, id, &before), at ? 0 : -ENOENT);
	if (at)
		assert_int_equal(before, f->ids[at - 1]);
}

static inline void check(struct fixture *f)
{
	uint64_t last;

	assert_int_equal(f->header.count, f->count);
	check_from(&f->set, f->ids, f->count, 0);
	check_from(&f->set, f->ids, f->count,
		   f->count ? f->ids[below(f, f->count)] + below(f, 2) : 5);
	assert_int_equal(idset_last(&f->set, &last), f->count ? 0 : -ENOENT);
	if (f->count)
		assert_int_equal(last, f->ids[f->count - 1]);
	check_before(f, f->count ? f->ids[below(f, f->count)] + below(f, 2) : 5);
	check_before(f, f->count ? f->ids[0] : 0);
	check_before(f, UINT64_MAX);
}

static inline void change_one(struct fixture *f, uint64_t id, bool remove)
{
	uint32_t at = position(f->ids, f->count, id);
	bool there = at < f->count && f->ids[at] == id;

	assert_int_equal(idset_contains(&f->set, id), there);
	if (remove) {
		assert_int_equal(idset_remove(&f->set, &f->writer, id), there ? 0 : -ENOENT);
		if (there)
			memmove(&f->ids[at], &f->ids[at + 1], (--f->count - at) * sizeof(id));
	} else {
		assert_int_equal(idset_insert(&f->set, &f->writer, id), there ? -EEXIST : 0);
		if (!there) {
			memmove(&f->ids[at + 1], &f->ids[at], (f->count++ - at) * sizeof(id));
			f->ids[at] = id;
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
