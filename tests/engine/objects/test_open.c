/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Opening says what it failed at, and what to do; options may be left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "common/log.h"
#include "engine/objects/objects.h"
#include "nand/nand.h"
#include "tests/engine/memory_store.h"

enum { PAGE = 512 };

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void expect_words(const struct error_text *error, const char *what, const char *advice)
{
	if (!strstr(error->text, what) || !strstr(error->text, advice))
		fail_msg("message is: %s", error->text);
}

static void test_damaged_history_is_not_taken_for_a_lack_of_memory(void **state)
{
	struct memory_store *memory = memory_store_create(PAGE);
	const struct record_key key = key_of_history(RECORD_ROOT_INDEX);
	struct error_text error = { "" };
	struct engine *engine;

	(void)state;
	memory_store_corrupt(memory, &key);
	assert_int_equal(engine_open_on(memory_store_open(memory), NULL, &engine, &error),
			 -EBADMSG);
	expect_words(&error, "history is damaged", "copy of the image");
	assert_null(engine);
	memory_store_corrupt(memory, NULL);
	assert_int_equal(engine_open_on(memory_store_open(memory), NULL, &engine, &error), 0);
	assert_int_equal(engine_close(engine), 0);
	memory_store_destroy(memory);
}

/* Sanitizers reserve more than any limit of addresses leaves. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void test_too_little_memory_for_caches_names_the_caches(void **state)
{
	const struct engine_options options = { .onode_cache_entries = 1U << 31 };
	struct memory_store *memory = memory_store_create(PAGE);
	const struct rlimit least = { UINT64_C(1) << 32, RLIM_INFINITY };
	struct error_text error = { "" };
	struct engine *engine;
	struct rlimit before;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &least), 0);
	assert_int_equal(engine_open_on(memory_store_open(memory), &options, &engine, &error),
			 -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	expect_words(&error, "2147483648 onodes", "onode_cache");
	memory_store_destroy(memory);
}
#endif

static void test_a_device_without_options_is_formatted_and_opened(void **state)
{
	const struct nand_geometry geometry = nand_geometry_default(UINT64_C(64) << 20);
	struct error_text error = { "" };
	struct engine *engine;
	uint64_t nvram_bytes;
	struct nand *nand;

	(void)state;
	assert_int_equal(engine_nvram_bytes(&geometry, NULL, &nvram_bytes, &error), 0);
	assert_int_equal(nand_open_memory(&geometry, nvram_bytes, &nand, &error), 0);
	log_configure(no_log, LOG_LEVEL_ERROR);
	assert_int_equal(engine_open(nand, NULL, &engine, &error), -ENODEV);
	log_configure(NULL, LOG_LEVEL_WARNING);
	expect_words(&error, "not formatted", "any engine");
	assert_null(engine);
	assert_int_equal(engine_format(nand, NULL, &error), 0);
	assert_int_equal(engine_open(nand, NULL, &engine, &error), 0);
	assert_int_equal(engine_close(engine), 0);
	assert_int_equal(nand_close(nand), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_history_is_not_taken_for_a_lack_of_memory),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(test_too_little_memory_for_caches_names_the_caches),
#endif
		cmocka_unit_test(test_a_device_without_options_is_formatted_and_opened),
	};

	return cmocka_run_group_tests_name("opening", tests, NULL, NULL);
}
