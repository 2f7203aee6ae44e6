/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Ratios turn by turn, goals, and what is known of a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/process.h"
#include "bench/turns.h"

struct printed {
	struct bench_output output;
	char *json, *text;
	size_t json_bytes, text_bytes;
};

static void print_begin(struct printed *printed)
{
	printed->output.json = open_memstream(&printed->json, &printed->json_bytes);
	printed->output.text = open_memstream(&printed->text, &printed->text_bytes);
}

static void print_end(struct printed *printed)
{
	fclose(printed->output.json);
	fclose(printed->output.text);
}

static void print_free(struct printed *printed)
{
	free(printed->json);
	free(printed->text);
}

static void test_the_ratio_is_the_median_of_each_turns_ratio(void **state)
{
	/* The ratio of the medians would be 20 / 10. */
	const struct bench_pair pair = { .name = "a",
					 .reference_name = "b",
					 .unit = "k/s",
					 .runs = 3,
					 .measured = { 10, 20, 30 },
					 .reference = { 10, 40, 10 } };
	struct printed printed;

	(void)state;
	print_begin(&printed);
	assert_true(bench_pair_report(&printed.output, &pair) == 1);
	print_end(&printed);
	assert_non_null(strstr(printed.json, "\"ratio_least\": 0.5"));
	assert_non_null(strstr(printed.json, "\"ratio_most\": 3.0"));
	assert_null(strstr(printed.text, "goal"));
	print_free(&printed);
}

static void test_goals_are_least_or_most(void **state)
{
	struct bench_goals goals = { .count = 0 };
	struct printed printed;

	(void)state;
	bench_goals_add(&goals, &(struct bench_goal){ "x", "exactly", 0.9, 0.9, false });
	bench_goals_add(&goals, &(struct bench_goal){ "y", "too little", 0.89, 0.9, false });
	bench_goals_add(&goals, &(struct bench_goal){ "z", "exactly", 2, 2, true });
	bench_goals_add(&goals, &(struct bench_goal){ "w", "too much", 2.01, 2, true });
	print_begin(&printed);
	assert_int_equal(bench_goals_report(&printed.output, &goals), 2);
	print_end(&printed);
	assert_non_null(strstr(printed.json, "\"goal_of\": \"y\""));
	assert_non_null(strstr(printed.json, "\"is\": \"at most\", \"met\": false"));
	assert_non_null(strstr(printed.text, "MISSED"));
	print_free(&printed);
}

static void test_a_program_that_fails_is_told_with_its_last_words(void **state)
{
	char *fails[] = { "sh", "-c", "echo first; echo the disk is on fire; exit 3", NULL };
	char *works[] = { "sh", "-c", "test \"$COLOUR\" = blue", NULL };
	char *missing[] = { "/nowhere/no-such-program", NULL };
	const struct bench_process_options options = { .variable = "COLOUR", .value = "blue" };
	struct error_text error = { "" };

	(void)state;
	assert_int_equal(bench_process_run(works, &options, &error), 0);
	assert_int_equal(bench_process_run(fails, NULL, &error), -EIO);
	assert_string_equal(error.text, "sh failed: the disk is on fire");
	assert_int_equal(bench_process_run(missing, NULL, &error), -EIO);
}

static void test_a_process_is_ended_by_its_number(void **state)
{
	char *argv[] = { "sh", "-c", "echo ready; exec sleep 1000", NULL };
	struct bench_process process;
	struct error_text error;
	char line[16];
	pid_t pid;

	(void)state;
	assert_int_equal(bench_process_start(&process, argv, NULL, &error), 0);
	pid = process.pid;
	assert_non_null(fgets(line, sizeof(line), process.output));
	assert_string_equal(line, "ready\n");
	assert_int_equal(bench_process_child(getpid()), pid);
	bench_process_end(&process, SIGTERM);
	assert_int_equal(process.pid, 0);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(bench_process_child(getpid()), 0);
}

static void test_processor_time_grows_with_work(void **state)
{
	double before = bench_process_seconds(getpid());
	volatile unsigned sum = 0;

	(void)state;
	for (unsigned i = 0; i < 10000000; i++)
		sum += i;
	assert_true(before > 0 && sum > 0);
	assert_true(bench_process_seconds(getpid()) > before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_ratio_is_the_median_of_each_turns_ratio),
		cmocka_unit_test(test_goals_are_least_or_most),
		cmocka_unit_test(test_a_program_that_fails_is_told_with_its_last_words),
		cmocka_unit_test(test_a_process_is_ended_by_its_number),
		cmocka_unit_test(test_processor_time_grows_with_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
