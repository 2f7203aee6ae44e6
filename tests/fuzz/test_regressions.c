/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Every kept input of every fuzz target, run without a fuzzer: tests/fuzz/corpus/TARGET holds what
 * reaches much of the code, tests/fuzz/found/TARGET what once showed a mistake.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_BYTES_MAX (1 << 20)

static void run_file(const struct fuzz_target *target, const char *path)
{
	static uint8_t read[INPUT_BYTES_MAX];
	FILE *file = fopen(path, "rb");
	uint8_t *input;
	size_t size = 0;

	if (file) {
		size = fread(read, 1, sizeof(read), file);
		fclose(file);
	} else {
		fail_msg("%s: %s", path, strerror(errno));
	}
	assert_true(size < sizeof(read));
	/* Of exactly its size, so that the address sanitizer sees every byte too far. */
	input = fuzz_exact(size, 0);
	memcpy(input, read, size);
	fuzz_input_name = path;
	target->run(input, size);
	fuzz_input_name = NULL;
	free(input);
}

/* Returns how many files there were; a folder that does not exist has none. */
static unsigned run_folder(const struct fuzz_target *target, const char *kind)
{
	char folder[256], path[768];
	struct dirent *entry;
	unsigned count = 0;
	DIR *opened;

	snprintf(folder, sizeof(folder), "tests/fuzz/%s/%s", kind, target->name);
	opened = opendir(folder);
	if (!opened) {
		assert_int_equal(errno, ENOENT);
		return 0;
	}
	while ((entry = readdir(opened)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		run_file(target, path);
		count++;
	}
	closedir(opened);
	return count;
}

static void run_target(const struct fuzz_target *target)
{
	unsigned kept = run_folder(target, "corpus"), found = run_folder(target, "found");

	print_message("%s: %u inputs of the corpus, %u that once found something\n", target->name,
		      kept, found);
	assert_true(kept > 0);
}

static void test_no_kept_sequence_of_commands_breaks_the_disk(void **state)
{
	(void)state;
	run_target(&fuzz_disk);
}

static void test_no_kept_input_of_the_wire_decoders_breaks_them(void **state)
{
	(void)state;
	run_target(&fuzz_wire);
}

static void test_no_kept_sequence_of_commands_breaks_the_target(void **state)
{
	(void)state;
	run_target(&fuzz_osd);
}

static void test_no_kept_answer_or_text_breaks_the_client_or_the_parsers(void **state)
{
	(void)state;
	run_target(&fuzz_client);
}

static void test_no_kept_bytes_on_flash_break_what_reads_them(void **state)
{
	(void)state;
	run_target(&fuzz_flash);
}

static void test_no_kept_session_gets_past_the_guard_with_what_tgtd_can_t_handle(void **state)
{
	(void)state;
	run_target(&fuzz_pdu);
}

/* With a pattern of names as its argument: those tests only. */
int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_kept_bytes_on_flash_break_what_reads_them),
		cmocka_unit_test(test_no_kept_answer_or_text_breaks_the_client_or_the_parsers),
		cmocka_unit_test(test_no_kept_sequence_of_commands_breaks_the_target),
		cmocka_unit_test(test_no_kept_sequence_of_commands_breaks_the_disk),
		cmocka_unit_test(
			test_no_kept_session_gets_past_the_guard_with_what_tgtd_can_t_handle),
		cmocka_unit_test(test_no_kept_input_of_the_wire_decoders_breaks_them),
	};

	if (count > 1)
		cmocka_set_test_filter(arguments[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
