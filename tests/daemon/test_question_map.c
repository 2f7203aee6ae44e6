/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which versions the map of a device tells of: the newest ones, of the device and of each
 * partition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/questions.h"
#include "engine/engine.h"
#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"

#define P ENGINE_FIRST_ID

enum { MIB = 1 << 20, TOLD_MOST = 16, SECOND_MS = 1000 };

struct scene {
	struct nand *nand;
	struct engine *engine;
	uint64_t now_ms;
	char *answer;
};

static uint64_t clock_of(void *context)
{
	return ((struct scene *)context)->now_ms;
}

static int setup(void **state)
{
	const struct nand_geometry geometry = nand_geometry_default(32 * MIB);
	struct scene *scene = calloc(1, sizeof(*scene));
	struct engine_options options = { .clock_ms = clock_of };
	struct error_text error = { "" };
	struct engine_txn *txn;
	uint64_t nvram;

	assert_non_null(scene);
	scene->now_ms = UINT64_C(1795616400000);
	options.clock_context = scene;
	if (engine_nvram_bytes(&geometry, &options, &nvram, &error) ||
	    nand_open_memory(&geometry, nvram, &scene->nand, &error) ||
	    engine_format(scene->nand, &options, &error) ||
	    engine_open(scene->nand, &options, &scene->engine, &error))
		fail_msg("%s", error.text);
	assert_int_equal(engine_begin(scene->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_partition_create(txn, P, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(engine_close(scene->engine), 0);
	assert_int_equal(nand_close(scene->nand), 0);
	free(scene->answer);
	free(scene);
	return 0;
}

static void snapshot(struct scene *scene, uint64_t partition, const char *name)
{
	struct engine_txn *txn;

	scene->now_ms += SECOND_MS;
	assert_int_equal(engine_begin(scene->engine, ENGINE_HISTORY, &txn), 0);
	assert_int_equal(engine_snapshot(txn, partition, name, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

static void ask(struct scene *scene)
{
	size_t length;
	FILE *to = open_memstream(&scene->answer, &length);

	assert_non_null(to);
	assert_int_equal(question_map(scene->engine, to), 0);
	assert_int_equal(fclose(to), 0);
}

static int count_of(const struct scene *scene, const char *text)
{
	int count = 0;

	for (const char *at = scene->answer; (at = strstr(at, text)); at++)
		count++;
	return count;
}

static void test_versions_of_the_device_leave_room_for_those_of_a_partition(void **state)
{
	struct scene *scene = *state;
	char line[32];

	snapshot(scene, P, "first");
	for (int n = 0; n < 2 * TOLD_MOST; n++)
		snapshot(scene, 0, NULL);
	snapshot(scene, P, "second");
	for (int n = 0; n < 2 * TOLD_MOST; n++)
		snapshot(scene, 0, NULL);
	ask(scene);
	assert_int_equal(count_of(scene, "version 0x10000 "), 2);
	/* The newest first. */
	assert_true(strstr(scene->answer, " second\n") < strstr(scene->answer, " first\n"));
	assert_int_equal(count_of(scene, " first\n"), 1);
	/* Those of the device once, and no partition's among them. */
	assert_int_equal(count_of(scene, "version 0x0 "), TOLD_MOST);
	/* All of them count, and no partition's. */
	snprintf(line, sizeof(line), "\ndevice_versions %d\n", 4 * TOLD_MOST);
	assert_int_equal(count_of(scene, line), 1);
}

static void test_the_newest_versions_are_told(void **state)
{
	struct scene *scene = *state;
	char name[16];

	for (int n = 0; n < TOLD_MOST + 3; n++) {
		snprintf(name, sizeof(name), "n%02d", n);
		snapshot(scene, P, name);
	}
	ask(scene);
	assert_int_equal(count_of(scene, "version 0x10000 "), TOLD_MOST);
	assert_int_equal(count_of(scene, "version 0x0 "), 0);
	assert_int_equal(count_of(scene, " n02\n"), 0);
	assert_int_equal(count_of(scene, " n03\n"), 1);
	assert_int_equal(count_of(scene, " n18\n"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_versions_of_the_device_leave_room_for_those_of_a_partition, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_the_newest_versions_are_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
