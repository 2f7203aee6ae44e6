/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Who may log in by the access lists, as tgtd judges; sections that are added to a file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/access.h"

static struct config config;
static struct error_text error;

/* Reads a file with this text, and sections behind it. */
static int read_texts(const char *text, const char *added)
{
	static struct config_file file;

	strcpy(file.source, "FILE");
	file.text = (char *)(uintptr_t)text;
	file.bytes = strlen(text);
	error.text[0] = '\0';
	return config_parse(&file, added, &config, &error);
}

#define UNIT "[lun 1]\ntype = osd\n"

static bool allows(const char *lists, const char *name, const char *address)
{
	char text[512];

	snprintf(text, sizeof(text), "[target]\n%s\n" UNIT, lists);
	if (read_texts(text, NULL))
		fail_msg("%s", error.text);
	return access_allows(&config.targets[0], name, address);
}

static void test_a_name_in_the_list_may_from_wherever(void **state)
{
	(void)state;
	assert_true(allows("allow_name = iqn.x:a, iqn.x:b", "iqn.x:b", "10.0.0.1"));
	assert_false(allows("allow_name = iqn.x:a, iqn.x:b", "iqn.x:c", "10.0.0.1"));
	assert_false(allows("allow_name = iqn.x:a", "iqn.x:ab", "10.0.0.1"));
	assert_true(
		allows("allow_name = iqn.x:a\nallow_address = 10.0.0.1", "iqn.x:c", "10.0.0.1"));
}

static void test_an_address_is_in_a_net_bit_by_bit(void **state)
{
	static const struct {
		const char *entry, *inside, *outside;
	} rows[] = {
		{ "10.1.2.3", "10.1.2.3", "10.1.2.2" },
		{ "10.0.0.0/8", "10.255.255.255", "11.0.0.0" },
		{ "10.1.2.0/23", "10.1.3.255", "10.1.4.0" },
		{ "10.1.2.4/31", "10.1.2.5", "10.1.2.6" },
		{ "10.1.2.4/32", "10.1.2.4", "10.1.2.5" },
		{ "0.0.0.0/0", "1.2.3.4", "::1" },
		{ "::1", "::1", "::2" },
		{ "fd00::/8", "fdff::1", "fe00::1" },
		{ "fd00:1::/33", "fd00:1:7fff::", "fd00:1:8000::" },
		{ "::/0", "fd00::1", "127.0.0.1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char lists[128];

		snprintf(lists, sizeof(lists), "allow_address = %s", rows[i].entry);
		if (!allows(lists, "iqn.x:a", rows[i].inside))
			fail_msg("%s is not in %s", rows[i].inside, rows[i].entry);
		if (allows(lists, "iqn.x:a", rows[i].outside))
			fail_msg("%s is in %s", rows[i].outside, rows[i].entry);
	}
	assert_true(allows("allow_address = ALL", "iqn.x:a", "fd00::1"));
	assert_true(allows("allow_address = 10.0.0.1, ::1", "iqn.x:a", "::1"));
	/* What tgtd could not tell of a connection. */
	assert_false(allows("allow_address = 10.0.0.0/8", "iqn.x:a", ""));
}

static void test_an_added_unit_has_what_the_file_says_for_all(void **state)
{
	(void)state;
	assert_int_equal(read_texts("[nand]\nbackend = file\n" UNIT, "[lun 5]\nthreads = 3\n"), 0);
	assert_int_equal(config.lun_count, 2);
	assert_int_equal(config.luns[1].number, 5);
	assert_int_equal(config.luns[1].options.threads, 3);
	assert_string_equal(lun_options_backend(&config.luns[1].options), "file");
	assert_false(config.luns[0].added);
	assert_true(config.luns[1].added);
}

static void test_an_added_section_is_refused_without_a_line_of_the_file(void **state)
{
	(void)state;
	assert_int_equal(read_texts(UNIT, "[lun 5]\nthreads = 0\n"), -EINVAL);
	assert_memory_equal(error.text, "threads: ", 9);
	assert_int_equal(read_texts(UNIT, "[lun 1]\nthreads = 3\n"), -EINVAL);
	assert_string_equal(error.text, "FILE has [lun 1]: a reload or the next start serves it");
	/* The file's own mistakes have theirs. */
	assert_int_equal(read_texts(UNIT "threads = 0\n", "[lun 5]\ntype = osd\n"), -EINVAL);
	assert_memory_equal(error.text, "FILE:3: threads: ", 17);
	assert_int_equal(read_texts("", "[lun 5]\ntype = osd\n"), -EINVAL);
	assert_memory_equal(error.text, "FILE: there is no logical unit", 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_in_the_list_may_from_wherever),
		cmocka_unit_test(test_an_address_is_in_a_net_bit_by_bit),
		cmocka_unit_test(test_an_added_unit_has_what_the_file_says_for_all),
		cmocka_unit_test(test_an_added_section_is_refused_without_a_line_of_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
