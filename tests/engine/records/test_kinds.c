/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A device is opened by the kind of record store that formatted it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/open.h"
#include "engine/salvage.h"
#include "tests/engine/memory_store.h"
#include "tests/engine/small_flash.h"

/* ---- a second kind: only its name is on the device, all else in memory ---- */

static struct memory_store *memory;

static int nvram_bytes(const struct nand_geometry *geometry, const struct record_options *records,
		       const void *own, uint64_t *bytes, struct error_text *error)
{
	(void)geometry;
	(void)records;
	(void)error;
	assert_null(own);
	*bytes = 4096;
	return 0;
}

static int format(struct nand *nand, const struct record_options *records, const void *own,
		  struct error_text *error)
{
	(void)nand;
	(void)records;
	(void)own;
	(void)error;
	return 0;
}

static int open_store(struct nand *nand, const struct record_options *records, const void *own,
		      struct record_store **store, struct error_text *error)
{
	(void)nand;
	(void)records;
	(void)own;
	(void)error;
	*store = memory_store_open(memory);
	return 0;
}

static const struct record_store_type memory_type = {
	.name = "memory",
	.nvram_bytes = nvram_bytes,
	.format = format,
	.open = open_store,
};

/* ---- tests ---- */

static const struct nand_geometry shape = SMALL_FLASH_WITH_SPARE(600, 256);

static bool recover;

static struct engine_options options_of(const char *store)
{
	return (struct engine_options){
		.store = store,
		.records = { .recover_without_nvram = recover },
		.muninn = { .rows = 2, .segment_pages = 8, .record_bytes = 128 },
	};
}

static struct nand *formatted_with(const struct engine_options *options)
{
	struct error_text error = { "" };
	struct nand *nand;
	uint64_t bytes;

	assert_int_equal(engine_nvram_bytes(&shape, options, &bytes, &error), 0);
	assert_int_equal(nand_open_memory(&shape, bytes, &nand, &error), 0);
	assert_int_equal(engine_format(nand, options, &error), 0);
	return nand;
}

static struct nand *formatted(const char *store)
{
	const struct engine_options options = options_of(store);

	return formatted_with(&options);
}

static int open_as(struct nand *nand, const char *store, struct error_text *error)
{
	const struct engine_options options = options_of(store);
	struct engine *engine;
	int result = engine_open(nand, &options, &engine, error);

	return result ? result : engine_close(engine);
}

static void test_a_device_says_which_index_it_has(void **state)
{
	static const struct {
		const char *store;
		enum index_kind index;
		const char *name;
	} cases[] = {
		{ "muninn", 0, "ribbon" },
		{ "muninn", INDEX_BLOOM, "bloom" },
		{ "muninn", INDEX_RIBBON, "ribbon" },
		{ "memory", INDEX_RIBBON, NULL },
	};

	(void)state;
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct engine_options options = options_of(cases[n].store);
		struct nand *nand;
		const char *name;

		options.muninn.index = cases[n].index;
		nand = formatted_with(&options);
		name = engine_stored_index(nand);
		if (cases[n].name)
			assert_string_equal(name, cases[n].name);
		else
			assert_null(name);
		assert_int_equal(nand_close(nand), 0);
	}
}

/* Of a copy that a repair makes. */
static void test_a_device_says_what_it_was_formatted_with(void **state)
{
	struct engine_options options = options_of("muninn"), found = { 0 };
	struct error_text error = { "" };
	struct engine *engine;
	struct nand *nand;

	(void)state;
	options.muninn.index = INDEX_RIBBON;
	options.muninn.parity = 2;
	options.records.over_provision_permille = 150;
	nand = formatted_with(&options);
	assert_int_equal(engine_open(nand, NULL, &engine, &error), 0);
	engine_formatted_options(engine, &found);
	assert_int_equal(found.muninn.index, INDEX_RIBBON);
	assert_int_equal(found.muninn.parity, 2);
	assert_int_equal(found.muninn.rows, options.muninn.rows);
	assert_int_equal(found.muninn.segment_pages, options.muninn.segment_pages);
	assert_int_equal(found.muninn.record_bytes, options.muninn.record_bytes);
	assert_int_equal(found.records.over_provision_permille, 150);
	assert_int_equal(engine_close(engine), 0);
	assert_int_equal(nand_close(nand), 0);
}

/* Known before a device is made: the index is in memory as a whole. */
static void test_a_ribbon_index_takes_no_cache_of_tables(void **state)
{
	struct engine_options options = options_of("muninn");
	struct error_text error = { "" };
	struct engine *engine;
	struct nand *nand;
	uint64_t bytes;

	(void)state;
	options.muninn.index = INDEX_RIBBON;
	nand = formatted_with(&options);
	options.muninn.bloom.table_cache_bytes = 1 << 20;
	assert_int_equal(engine_nvram_bytes(&shape, &options, &bytes, &error), -EINVAL);
	assert_non_null(strstr(error.text, "the ribbon index is in memory as a whole"));
	assert_int_equal(engine_open(nand, &options, &engine, &error), -EINVAL);
	assert_non_null(strstr(error.text, "the ribbon index is in memory as a whole"));
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_device_is_opened_by_its_own_kind(void **state)
{
	struct error_text error = { "" };

	(void)state;
	for (int round = 0; round < 2; round++) {
		const char *own = round ? "memory" : "muninn";
		struct nand *nand = formatted(own);

		assert_int_equal(open_as(nand, NULL, &error), 0);
		assert_int_equal(open_as(nand, own, &error), 0);
		assert_int_equal(open_as(nand, round ? "muninn" : "memory", &error), -EINVAL);
		assert_non_null(strstr(error.text, "was formatted for engine"));
		assert_int_equal(nand_close(nand), 0);
	}
}

static void test_its_own_kind_opens_a_device_that_has_lost_its_nvram(void **state)
{
	struct error_text error = { "" };

	(void)state;
	for (int round = 0; round < 2; round++) {
		struct nand *nand = formatted(round ? "memory" : "muninn");
		uint64_t bytes;

		memset(nand_nvram(nand, &bytes), 0, 4096);
		assert_int_equal(open_as(nand, round ? "muninn" : "memory", &error), -EINVAL);
		assert_non_null(strstr(error.text, "was formatted for engine"));
		/* The memory store has nothing there; Muninn misses it, and can do without. */
		assert_int_equal(open_as(nand, NULL, &error), round ? 0 : -EINVAL);
		if (!round)
			assert_non_null(strstr(error.text, "if the NVRAM is lost"));
		recover = true;
		assert_int_equal(open_as(nand, NULL, &error), 0);
		recover = false;
		assert_int_equal(nand_close(nand), 0);
	}
}

static void test_a_kind_that_this_program_does_not_have_is_named(void **state)
{
	struct nand *nand = formatted(NULL);
	struct error_text error = { "" };
	const char *name;

	(void)state;
	assert_int_equal(engine_stored_kind(nand, NULL, &name, &error), 0);
	assert_string_equal(name, "muninn");
	assert_int_equal(nand_set_contents(nand, "huginn", &error), 0);
	assert_int_equal(engine_stored_kind(nand, NULL, &name, &error), -EINVAL);
	assert_null(name);
	assert_int_equal(open_as(nand, NULL, &error), -EINVAL);
	assert_non_null(strstr(error.text, "engine \"huginn\", which this program does not have"));
	assert_int_equal(nand_close(nand), 0);
}

static void test_an_unknown_kind_is_refused_by_its_name(void **state)
{
	const struct engine_options options = options_of("gone");
	struct nand *nand = formatted(NULL);
	struct error_text error = { "" };
	uint64_t bytes;

	(void)state;
	assert_int_equal(engine_nvram_bytes(&shape, &options, &bytes, &error), -EINVAL);
	assert_int_equal(engine_format(nand, &options, &error), -EINVAL);
	assert_int_equal(open_as(nand, "gone", &error), -EINVAL);
	assert_non_null(strstr(error.text, "no engine \"gone\""));
	assert_int_equal(nand_close(nand), 0);
}

static void test_a_device_that_nobody_formatted_is_refused(void **state)
{
	struct error_text error = { "" };
	struct nand *nand;

	(void)state;
	assert_int_equal(nand_open_memory(&shape, 1 << 20, &nand, &error), 0);
	assert_int_equal(open_as(nand, NULL, &error), -ENODEV);
	assert_non_null(strstr(error.text, "not formatted"));
	assert_int_equal(nand_close(nand), 0);
}

static int begin_all(void **state)
{
	(void)state;
	memory = memory_store_create(512);
	engine_add_store(&memory_type);
	return 0;
}

static int end_all(void **state)
{
	(void)state;
	memory_store_destroy(memory);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_device_says_which_index_it_has),
		cmocka_unit_test(test_a_device_says_what_it_was_formatted_with),
		cmocka_unit_test(test_a_ribbon_index_takes_no_cache_of_tables),
		cmocka_unit_test(test_a_device_is_opened_by_its_own_kind),
		cmocka_unit_test(test_its_own_kind_opens_a_device_that_has_lost_its_nvram),
		cmocka_unit_test(test_a_kind_that_this_program_does_not_have_is_named),
		cmocka_unit_test(test_an_unknown_kind_is_refused_by_its_name),
		cmocka_unit_test(test_a_device_that_nobody_formatted_is_refused),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
