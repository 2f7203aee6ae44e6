/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How each record store that the conformance suite runs on is made: in memory, and on RAM flash. */
#include "tests/engine/records/stores.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/open.h"
#include "tests/engine/memory_store.h"

/* ---- the tests' own store ---- */

static void *create_memory(bool small)
{
	static const uint64_t rooms[RECORD_ROOMS] = {
		100000, 120000, 125000, 128000, 130000, 132000
	};
	struct memory_store *memory = memory_store_create(STORES_VALUE_BYTES);

	memory_store_absorb(memory, true);
	memory_store_merge(memory);
	if (small)
		memory_store_limit_rooms(memory, rooms);
	return memory;
}

static struct record_store *open_memory(void *device)
{
	return memory_store_open(device);
}

static void destroy_memory(void *device)
{
	memory_store_destroy(device);
}

/* ---- Muninn on flash in memory ---- */

static const struct engine_options any_index = {
	.muninn = { .rows = 2, .segment_pages = 8, .record_bytes = 128 },
};

static void *create_with(enum index_kind index, bool small)
{
	const struct nand_geometry shape = {
		.page_bytes = STORES_VALUE_BYTES,
		.spare_bytes = 64,
		.pages_per_block = 8,
		.blocks = small ? 120 : 6000,
		.channels = 1,
		.dies_per_channel = 1,
	};
	struct engine_options options = any_index;
	struct error_text error = { "" };
	struct nand *nand = NULL;
	uint64_t nvram;

	options.muninn.index = index;
	if (engine_nvram_bytes(&shape, &options, &nvram, &error) ||
	    nand_open_memory(&shape, nvram, &nand, &error) ||
	    engine_format(nand, &options, &error)) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
	return nand;
}

static void *create_bloom(bool small)
{
	return create_with(INDEX_BLOOM, small);
}

static void *create_ribbon(bool small)
{
	return create_with(INDEX_RIBBON, small);
}

static struct record_store *open_muninn(void *device)
{
	struct error_text error = { "" };
	struct record_store *store;

	if (engine_open_records(device, &any_index, &store, &error)) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
	return store;
}

static void destroy_muninn(void *device)
{
	int result = nand_close(device);

	assert(result == 0);
}

/* ---- the table ---- */

const struct tested_store tested_stores[] = {
	{ "memory", create_memory, open_memory, destroy_memory },
	{ "muninn", create_bloom, open_muninn, destroy_muninn },
	{ "muninn with a ribbon index", create_ribbon, open_muninn, destroy_muninn },
};

const int tested_store_count = sizeof(tested_stores) / sizeof(tested_stores[0]);
