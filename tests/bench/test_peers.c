/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * `muninn-bench peers` on a small scale, with the real libraries: that every store does every
 * phase, that what a store loses is noticed, and what the goals are measured against. Not how fast.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/folder.h"
#include "bench/memory_limit.h"
#include "bench/peers_bench.h"
#include "tests/bench/part.h"

#ifdef __SANITIZE_ADDRESS__
#define LIBRARIES "build/asan/lib"
#else
#define LIBRARIES "build/lib"
#endif

static int run(const char *line, char **json, char **text)
{
	return run_part(peers_bench_main, "peers", line, json, text);
}

/* ---- the whole ---- */

struct seen {
	unsigned phases, ratios, goals;
};

static void look_at(const json_t *object, struct seen *seen)
{
	const char *store = json_string_value(json_object_get(object, "store"));

	seen->ratios += json_object_get(object, "bench") != NULL;
	seen->goals += json_object_get(object, "goal_of") != NULL;
	if (!store || !json_object_get(object, "ops_per_s"))
		return;
	seen->phases++;
	assert_true(json_real_value(json_object_get(object, "ops_per_s")) > 0);
	assert_int_equal(!strcmp(store, "muninn"),
			 json_object_get(object, "page_reads_per_op") != NULL);
	/* LevelDB and LMDB don't tell. */
	assert_int_equal(!strcmp(store, "muninn") || !strcmp(store, "rocksdb"),
			 json_object_get(object, "index_per_key") != NULL);
	if (json_object_get(object, "index_per_key"))
		assert_true(json_real_value(json_object_get(object, "index_per_key")) > 0);
}

static void test_every_store_does_every_phase_of_every_workload(void **state)
{
	char folder[] = "/tmp/muninn-test-peers-XXXXXX", line[256], *json, *text, *rest = NULL;
	struct seen seen = { 0 };

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(line, sizeof(line),
		 "--folder %s --libraries " LIBRARIES
		 " --data 3M --lookups 200 --threads 4 --buffer 4M --runs 1",
		 folder);
	/* 1: a goal may be missed on this scale, and with sanitizers. */
	if (run(line, &json, &text) > 1 || !strstr(text, "median"))
		fail_msg("%s", text);
	for (char *row = strtok_r(json, "\n", &rest); row; row = strtok_r(NULL, "\n", &rest)) {
		json_t *object = json_loads(row, 0, NULL);

		assert_non_null(object);
		look_at(object, &seen);
		json_decref(object);
	}
	/* Three workloads; Muninn and three peers. */
	assert_int_equal(seen.phases, 3 * 4 * PEERS_PHASES);
	assert_int_equal(seen.ratios, 3 * PEERS_PHASES);
	assert_true(seen.goals >= 2);
	/* Nothing is left behind. */
	assert_int_equal(rmdir(folder), 0);
	free(json);
	free(text);
}

static void test_muninn_has_the_index_that_is_asked_for(void **state)
{
	static const char *const indexes[] = { "bloom", "ribbon" };
	char folder[] = "/tmp/muninn-test-peers-XXXXXX", line[256], *json, *text;
	json_t *object;

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < 2; i++) {
		snprintf(line, sizeof(line),
			 "--folder %s --data 16M --lookups 1000 --threads 4 --buffer 4M --runs 1 "
			 "--workload mixed --store muninn --index %s",
			 folder, indexes[i]);
		if (run(line, &json, &text) > 1)
			fail_msg("%s", text);
		strtok(json, "\n");
		object = json_loads(strtok(NULL, "\n"), 0, NULL);
		assert_string_equal(json_string_value(json_object_get(object, "index")),
				    indexes[i]);
		assert_string_equal(json_string_value(json_object_get(object, "phase")),
				    "present keys, depth 1");
		/* Filters say yes to wrong keys now and then. */
		assert_int_equal(json_real_value(json_object_get(object, "page_reads_per_op")) > 1,
				 i == 0);
		json_decref(object);
		free(json);
		free(text);
	}
	assert_int_equal(rmdir(folder), 0);
}

/* ---- stores that do wrong ---- */

static int fake_open(const struct peer_options *options, void **peer, struct error_text *error)
{
	static uint8_t any;

	(void)options;
	(void)error;
	*peer = &any;
	return 0;
}

static int fake_put(void *peer, uint64_t key, const void *value, uint32_t bytes,
		    struct error_text *error)
{
	(void)peer;
	(void)key;
	(void)value;
	(void)bytes;
	(void)error;
	return 0;
}

static int fake_put_that_fails(void *peer, uint64_t key, const void *value, uint32_t bytes,
			       struct error_text *error)
{
	(void)peer;
	(void)key;
	(void)value;
	(void)bytes;
	return error_set(error, -EIO, "no more paper");
}

static int fake_get_that_loses(void *peer, uint64_t key, void *value, uint32_t capacity,
			       uint32_t *bytes, struct error_text *error)
{
	(void)peer;
	(void)key;
	(void)value;
	(void)capacity;
	(void)bytes;
	(void)error;
	return -ENOENT;
}

static int fake_get_of_zeroes(void *peer, uint64_t key, void *value, uint32_t capacity,
			      uint32_t *bytes, struct error_text *error)
{
	(void)peer;
	(void)key;
	(void)error;
	memset(value, 0, capacity);
	*bytes = 996;
	return 0;
}

static int fake_get_that_dies(void *peer, uint64_t key, void *value, uint32_t capacity,
			      uint32_t *bytes, struct error_text *error)
{
	(void)peer;
	(void)key;
	(void)value;
	(void)capacity;
	(void)bytes;
	(void)error;
	raise(SIGKILL);
	return 0;
}

static int fake_end(void *peer, struct error_text *error)
{
	(void)peer;
	(void)error;
	return 0;
}

static int turn_of(const struct peer_type *type, struct error_text *error)
{
	static const struct peers_workload workload = { .name = "1k",
							.value_min = 996,
							.value_max = 996 };
	struct peers_run at = { .workload = &workload,
				.pairs = 100,
				.lookups = 10,
				.updates = 10,
				.threads = 2,
				.seed = 1 };
	struct peers_result results[PEERS_PHASES];
	char folder[128];
	uint64_t space;
	int result;

	assert_int_equal(bench_folder_make("/tmp", folder, sizeof(folder), error), 0);
	assert_int_equal(peers_run_begin(&at, error), 0);
	result = peers_turn(&at, type, folder, results, &space, error);
	peers_run_end(&at);
	bench_folder_remove(folder);
	assert_int_not_equal(access(folder, F_OK), 0);
	return result;
}

static void test_a_store_that_does_wrong_ends_the_turn(void **state)
{
	static const struct peer_type types[] = {
		{ "loser", fake_open, fake_put, fake_get_that_loses, fake_end, NULL, NULL,
		  fake_end },
		{ "zeroes", fake_open, fake_put, fake_get_of_zeroes, fake_end, NULL, NULL,
		  fake_end },
		{ "dying", fake_open, fake_put, fake_get_that_dies, fake_end, NULL, NULL,
		  fake_end },
		{ "full", fake_open, fake_put_that_fails, fake_get_that_loses, fake_end, NULL, NULL,
		  fake_end },
	};
	static const char *const texts[] = { "loser has lost pair", "zeroes gave another value",
					     "dying died of signal 9", "no more paper" };

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct error_text error = { "" };

		assert_true(turn_of(&types[i], &error) < 0);
		if (!strstr(error.text, texts[i]))
			fail_msg("\"%s\" is not in \"%s\"", texts[i], error.text);
	}
}

static void test_muninn_alone_keeps_what_was_put(void **state)
{
	struct error_text error = { "" };

	(void)state;
	if (turn_of(&peer_muninn, &error))
		fail_msg("%s", error.text);
}

/* ---- figures ---- */

/* A store with this rate of the load and of look-ups. */
static void fill(struct peers_sheet *sheet, uint32_t store, const char *name, double rate)
{
	sheet->names[store] = name;
	for (uint32_t n = 0; n < sheet->runs; n++)
		for (int phase = 0; phase < PEERS_PHASES; phase++)
			sheet->results[store][n][phase] = (struct peers_result){
				.seconds = 1000 / rate,
				.seconds_to_put = 900 / rate,
				.operations = 1000,
				.bytes = 1000000,
				.page_reads = 1250,
				.has_index = true,
				.index_bytes = 2050,
				.has_drive = true,
				.drive = { .reads = 1300, .written_bytes = 2200000 },
			};
}

static unsigned goals_of(const struct peers_sheet *sheet)
{
	struct bench_goals goals = { .count = 0 };
	FILE *nowhere = fopen("/dev/null", "we");
	const struct bench_output output = { nowhere, nowhere };

	assert_non_null(nowhere);
	peers_report(&output, sheet, &goals);
	fclose(nowhere);
	return goals.count;
}

static void test_goals_are_against_the_best_peer(void **state)
{
	static const struct peers_workload workload = { .name = "1k",
							.goals_of_load = true,
							.goal_of_bytes = true };
	const struct peers_run at = { .workload = &workload, .pairs = 1000 };
	struct peers_sheet *sheet = calloc(1, sizeof(*sheet));
	struct bench_goals goals = { .count = 0 };
	size_t json_bytes, text_bytes;
	char *json, *text;
	struct bench_output output = { open_memstream(&json, &json_bytes),
				       open_memstream(&text, &text_bytes) };

	(void)state;
	assert_non_null(sheet);
	sheet->run = &at;
	sheet->data_bytes = UINT64_C(1) << 30;
	sheet->stores = 3;
	sheet->runs = 3;
	fill(sheet, 0, "muninn", 70);
	fill(sheet, 1, "slow", 5);
	fill(sheet, 2, "fast", 10);
	/* One turn of three is no median. */
	sheet->results[0][1][PEERS_LOAD].seconds = 1;
	peers_report(&output, sheet, &goals);
	fclose(output.json);
	fclose(output.text);
	assert_true(json_bytes > 0 && text_bytes > 0);
	assert_int_equal(goals.count, 5);
	assert_true(goals.goals[0].value > 6.99 && goals.goals[0].value < 7.01);
	assert_false(bench_goal_reached(&goals.goals[0]));
	assert_true(bench_goal_reached(&goals.goals[1]));
	assert_true(goals.goals[2].value > 1.03 && goals.goals[2].value < 1.05);
	assert_true(bench_goal_reached(&goals.goals[2]));
	assert_true(goals.goals[3].value > 2.19 && goals.goals[3].value < 2.21);
	assert_false(bench_goal_reached(&goals.goals[3]));
	assert_non_null(strstr(json, "\"reference\": \"fast\""));
	assert_null(strstr(json, "\"reference\": \"slow\""));
	assert_true(goals.goals[4].value > 2.04 && goals.goals[4].value < 2.06);
	assert_true(bench_goal_reached(&goals.goals[4]));
	assert_non_null(strstr(json, "\"index_per_key\": 2.05"));
	/* 512 MiB are enough, of which whole pairs leave a few bytes out. */
	sheet->data_bytes = (1 << 29) - 1000;
	assert_int_equal(goals_of(sheet), 5);
	/* A load that ends at once has no goal, and fills no groups of an index. */
	sheet->data_bytes = 1 << 20;
	assert_int_equal(goals_of(sheet), 3);
	free(json);
	free(text);
	free(sheet);
}

/* ---- the limit of memory ---- */

/* In a process of its own. 0: it is in the group. */
static int look_for_group(const struct bench_memory_limit *limit)
{
	const char *name = strrchr(limit->group, '/');
	char line[512];
	bool found = false;
	FILE *file;

	if (bench_memory_limit_enter(limit))
		return 1;
	file = fopen("/proc/self/cgroup", "re");
	while (file && fgets(line, sizeof(line), file))
		found = found || strstr(line, name);
	if (file)
		fclose(file);
	return found ? 0 : 2;
}

static void test_a_limit_of_memory_holds_for_who_enters_it(void **state)
{
	struct bench_memory_limit limit;
	struct error_text error = { "" };
	int result = bench_memory_limit_begin(&limit, UINT64_C(64) << 20, &error), status;
	pid_t pid;

	(void)state;
	if (result < 0) {
		/* A host that does not let us says so. */
		assert_non_null(strstr(error.text, "no control group"));
		assert_int_equal(bench_memory_limit_enter(&limit), 0);
		return;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(look_for_group(&limit));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(limit.group, F_OK), 0);
	bench_memory_limit_end(&limit);
	assert_string_equal(limit.group, "");
}

/* ---- use ---- */

static void test_wrong_use_is_explained(void **state)
{
	static const struct {
		const char *line, *text;
		int code;
	} wrong[] = {
		{ "--store sqlite", "--store sqlite: there are rocksdb, leveldb, lmdb and muninn",
		  2 },
		{ "--workload 8k", "--workload 8k: there are 1k, mixed and 4k", 2 },
		{ "--index hash", "--index hash: must be bloom or ribbon", 2 },
		{ "--runs 10", "--runs 10: must be a number, 1 to 9", 2 },
		{ "--data 1K", "--data 1K: must be a number", 2 },
		{ "more", "more: not an option", 2 },
		{ "--libraries /nowhere", "there is no store to compare with", 1 },
		{ "--libraries /nowhere --store lmdb", "--store lmdb: /nowhere/peer_lmdb.so", 1 },
		{ "--libraries " LIBRARIES " --folder /nowhere", "/nowhere: No such file", 1 },
	};
	char *json, *text;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(run(wrong[i].line, &json, &text), wrong[i].code);
		if (!strstr(text, wrong[i].text))
			fail_msg("\"%s\" is not in \"%s\"", wrong[i].text, text);
		free(json);
		free(text);
	}
	assert_int_equal(run("--help", &json, &text), 0);
	assert_non_null(strstr(json, "--workload"));
	free(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_store_does_every_phase_of_every_workload),
		cmocka_unit_test(test_muninn_has_the_index_that_is_asked_for),
		cmocka_unit_test(test_a_store_that_does_wrong_ends_the_turn),
		cmocka_unit_test(test_muninn_alone_keeps_what_was_put),
		cmocka_unit_test(test_goals_are_against_the_best_peer),
		cmocka_unit_test(test_a_limit_of_memory_holds_for_who_enters_it),
		cmocka_unit_test(test_wrong_use_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
