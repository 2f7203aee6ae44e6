/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * muninnctl nand …: what it shows of an image, on terminals, in files and as JSON, and that it
 * changes nothing.
 */
#include <errno.h>
#include <jansson.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

#include "client/ctl/ctl.h"
#include "tests/client/muninnctl_path.h"

static char program[4096];
static char output[262144];

static int find_program(void **state)
{

	(void)state;
	muninnctl_path(program);
	return 0;
}

/*
 * Runs `muninnctl nand ARGUMENTS`, $I is the image, $D its directory; `output` gets both outputs.
 * Returns the exit code.
 */
static int run(const struct test_directory *directory, const char *arguments)
{
	char command[8192];
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "I=%s; D=%s; %s nand %s 2>&1 </dev/null",
		 directory->image, directory->directory, program, arguments);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const struct test_directory *directory, const char *arguments, int code,
		   const char *word)
{
	int result = run(directory, arguments);

	if (result != code || !strstr(output, word))
		fail_msg("muninnctl nand %s: exit code %d instead of %d, or '%s' is not in: %s",
			 arguments, result, code, word, output);
}

static json_t *expect_json(const struct test_directory *directory, const char *arguments)
{
	json_t *value;

	assert_int_equal(run(directory, arguments), CTL_OK);
	value = json_loads(output, 0, NULL);
	if (!value)
		fail_msg("not JSON: %s", output);
	return value;
}

static json_int_t number(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

/* Block 0 is full, 1 has 5 of 8 pages, 2 is bad, 4 was erased 7 times; page 9 is damaged. */
static void make_image(const struct test_directory *directory)
{
	struct nand *nand = create_image(directory);
	uint64_t page_offset = nand_page_offset(&nand->layout, &nand->geometry, 9);

	for (uint64_t page = 0; page < 13; page++)
		assert_int_equal(program_filled(nand, page, 1), 0);
	assert_int_equal(nand_mark_bad(nand, 2), 0);
	for (int i = 0; i < 7; i++)
		assert_int_equal(nand_erase(nand, NAND_CAUSE_USER, 4), 0);
	assert_int_equal(nand_close(nand), 0);
	file_flip(directory->image, page_offset, 0x80);
}

static void test_info_says_what_the_image_is(void **state)
{
	const struct test_directory *directory = *state;
	json_t *info;

	make_image(directory);
	expect(directory, "info $I", CTL_OK, "1 partly programmed, 1 full, 1 bad");
	assert_non_null(strstr(output, "13 programmed of 128"));
	assert_non_null(strstr(output, "7 erases, 0.4 a block, at most 7"));
	assert_null(strstr(output, "in use"));
	info = expect_json(directory, "info --json $I");
	assert_int_equal(number(info, "pages_programmed"), 13);
	assert_int_equal(number(info, "page_bytes"), 4096);
	assert_int_equal(number(info, "nvram_bytes"), TEST_NVRAM_BYTES);
	assert_int_equal(number(json_object_get(info, "blocks_by_state"), "bad"), 1);
	assert_int_equal(number(info, "in_use_by_process"), 0);
	json_decref(info);
}

static void test_an_image_in_use_is_shown_and_said_to_be(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand;
	char word[64];

	make_image(directory);
	nand = open_image_ok(directory);
	snprintf(word, sizeof(word), "in use by process %d", (int)getpid());
	if (run(directory, "info $I") != CTL_OK)
		fail_msg("%s", output);
	if (!strstr(output, "in use"))
		print_message("this host does not tell who holds a lock\n");
	else
		assert_non_null(strstr(output, word));
	assert_int_equal(nand_close(nand), 0);
}

static void test_map_without_a_terminal_is_plain_text(void **state)
{
	const struct test_directory *directory = *state;

	make_image(directory);
	expect(directory, "map $I", CTL_OK, "        0  #6X.............\n");
	assert_null(strchr(output, '\033'));
}

/* Runs on a terminal of its own; `output` gets what is printed there. */
static void run_on_terminal(const char *image, bool no_color)
{
	size_t used = 0;
	ssize_t got;
	int terminal, status;
	pid_t child = forkpty(&terminal, NULL, NULL, NULL);

	assert_true(child >= 0);
	if (child == 0) {
		if (no_color)
			setenv("NO_COLOR", "1", 1);
		else
			unsetenv("NO_COLOR");
		execl(program, program, "nand", "map", image, (char *)NULL);
		_exit(127);
	}
	while (used < sizeof(output) - 1 &&
	       (got = read(terminal, output + used, sizeof(output) - 1 - used)) > 0)
		used += (size_t)got;
	output[used] = '\0';
	assert_int_equal(waitpid(child, &status, 0), child);
	close(terminal);
	assert_int_equal(status, 0);
}

static void test_map_on_a_terminal_has_colours_unless_no_color_is_set(void **state)
{
	const struct test_directory *directory = *state;

	make_image(directory);
	run_on_terminal(directory->image, false);
	assert_non_null(
		strstr(output, "\033[30;46m#\033[0m\033[30;43m6\033[0m\033[97;41mX\033[0m"));
	run_on_terminal(directory->image, true);
	assert_non_null(strstr(output, "#6X."));
	assert_null(strchr(output, '\033'));
}

static size_t count_of(const char *word)
{
	size_t count = 0;

	for (const char *at = output; (at = strstr(at, word)); at++)
		count++;
	return count;
}

static void test_map_and_wear_as_svg_have_a_shape_for_each_block_or_bucket(void **state)
{
	const struct test_directory *directory = *state;
	char svg[128];

	make_image(directory);
	snprintf(svg, sizeof(svg), "%s/picture.svg", directory->directory);
	expect(directory, "map $I --svg $D/picture.svg && cat $D/picture.svg", CTL_OK,
	       "<svg xmlns=\"http://www.w3.org/2000/svg\"");
	assert_int_equal(count_of("<title>block "), 16);
	assert_non_null(strstr(output, "block 1: partly programmed, 62.5 % programmed"));
	assert_non_null(strstr(output, "</svg>\n"));
	expect(directory, "wear $I --svg $D/picture.svg && cat $D/picture.svg", CTL_OK, "</svg>");
	assert_int_equal(count_of("erases: "), 8);
	assert_int_equal(unlink(svg), 0);
	expect(directory, "map $I --svg /nonexistent/x.svg", CTL_LOCAL, "can't be written");
}

static void test_map_as_json_is_runs_of_equal_blocks(void **state)
{
	const struct test_directory *directory = *state;
	json_int_t blocks = 0;
	json_t *map, *run_of_blocks;
	size_t i;

	make_image(directory);
	map = expect_json(directory, "map $I --json");
	assert_int_equal(json_array_size(json_object_get(map, "runs")), 4);
	json_array_foreach(json_object_get(map, "runs"), i, run_of_blocks)
	{
		assert_int_equal(number(run_of_blocks, "first"), blocks);
		blocks += number(run_of_blocks, "count");
	}
	assert_int_equal(blocks, 16);
	json_decref(map);
}

static void test_wear_is_a_histogram(void **state)
{
	const struct test_directory *directory = *state;
	json_t *wear;

	make_image(directory);
	expect(directory, "wear $I", CTL_OK, "7 of 16 blocks: 0 to 7, mean 0.44");
	assert_null(strchr(output, '\033'));
	wear = expect_json(directory, "wear $I --json");
	assert_int_equal(number(wear, "erases"), 7);
	assert_int_equal(number(json_array_get(json_object_get(wear, "buckets"), 7), "blocks"), 1);
	json_decref(wear);
}

static void test_dump_shows_pages_and_what_is_wrong_with_them(void **state)
{
	const struct test_directory *directory = *state;
	json_t *dump;

	make_image(directory);
	expect(directory, "dump 0 $I", CTL_OK, "verdict                  intact");
	assert_non_null(strstr(output, "not decoded"));
	assert_non_null(strstr(output, "the device is not formatted for any engine"));
	expect(directory, "dump 9 $I", CTL_OK, "verdict                  damaged");
	expect(directory, "dump 0x20 $I", CTL_OK, "verdict                  not programmed");
	expect(directory, "dump 17 $I", CTL_OK, "block                    bad");
	expect(directory, "dump block:1 $I", CTL_OK, "9  damaged");
	assert_non_null(strstr(output, "13  not programmed, up to page 15\n"));
	expect(directory, "dump 128 $I", CTL_NOT_FOUND, "the last one is 127");
	expect(directory, "dump nine $I", CTL_USAGE, "'nine' is no page number");
	dump = expect_json(directory, "dump 9 $I --json");
	assert_string_equal(json_string_value(json_object_get(dump, "verdict")), "damaged");
	assert_true(json_is_true(json_object_get(dump, "spare_intact")));
	assert_int_equal(json_string_length(json_object_get(dump, "data")), 2 * 4096);
	json_decref(dump);
}

static void test_looking_changes_nothing(void **state)
{
	const struct test_directory *directory = *state;
	uint32_t image_crc, nvram_crc;

	make_image(directory);
	image_crc = file_crc(directory->image);
	nvram_crc = file_crc(directory->nvram);
	for (size_t i = 0; i < 4; i++) {
		static const char *const verbs[] = { "info $I", "map $I", "wear $I", "dump 3 $I" };

		assert_int_equal(run(directory, verbs[i]), CTL_OK);
	}
	assert_int_equal(file_crc(directory->image), image_crc);
	assert_int_equal(file_crc(directory->nvram), nvram_crc);
}

static void test_what_is_no_image_is_refused_with_the_reason(void **state)
{
	const struct test_directory *directory = *state;

	expect(directory, "info $D/none", CTL_NOT_FOUND, "there is no image");
	expect(directory, "map --json $D/none", CTL_NOT_FOUND, "\"name\":\"not found\"");
	expect(directory, "info /dev/null", CTL_BAD_DATA, "not a regular file");
	expect(directory, "create $I 64M 64K", CTL_OK, "");
	expect(directory, "create $I 64M", CTL_EXISTS, "exists already");
	expect(directory, "info $I", CTL_OK, "64.0 MiB of data, 64.0 KiB of NVRAM");
	expect(directory, "create $D/other 1", CTL_USAGE, "is less than a block has");
}

static void test_a_cut_is_left_for_the_next_process_and_taken_back(void **state)
{
	const struct test_directory *directory = *state;
	struct nand *nand;

	make_image(directory);
	expect(directory, "cut $I after=1,page=garbage", CTL_OK, "");
	nand = open_image_ok(directory);
	assert_int_equal(program_filled(nand, 13, 1), 0);
	assert_int_equal(program_filled(nand, 14, 1), -EIO);
	nand_abandon(nand);
	expect(directory, "dump 14 $I", CTL_OK, "verdict                  damaged");
	expect(directory, "cut $I after=1", CTL_OK, "");
	expect(directory, "cut $I off", CTL_OK, "");
	expect(directory, "cut $I off", CTL_NOT_FOUND, "no power cut was left");
	expect(directory, "cut $I after=soon", CTL_USAGE, "after is 'soon'");
	expect(directory, "cut $I", CTL_USAGE, "too few arguments");
}

#define IN_DIRECTORY(test) \
	cmocka_unit_test_setup_teardown(test, directory_setup, directory_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_info_says_what_the_image_is),
		IN_DIRECTORY(test_an_image_in_use_is_shown_and_said_to_be),
		IN_DIRECTORY(test_map_without_a_terminal_is_plain_text),
		IN_DIRECTORY(test_map_on_a_terminal_has_colours_unless_no_color_is_set),
		IN_DIRECTORY(test_map_and_wear_as_svg_have_a_shape_for_each_block_or_bucket),
		IN_DIRECTORY(test_map_as_json_is_runs_of_equal_blocks),
		IN_DIRECTORY(test_wear_is_a_histogram),
		IN_DIRECTORY(test_dump_shows_pages_and_what_is_wrong_with_them),
		IN_DIRECTORY(test_looking_changes_nothing),
		IN_DIRECTORY(test_what_is_no_image_is_refused_with_the_reason),
		IN_DIRECTORY(test_a_cut_is_left_for_the_next_process_and_taken_back),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
