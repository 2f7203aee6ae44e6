/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Names of partitions: which there may be, giving and finding them, on the target's own OSD layer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/osd_client.h"
#include "tests/client/local_target.h"

#define FIRST UINT64_C(0x10000)
/* More than are asked at a time. */
#define PARTITIONS 150

static int find(struct local_target *target, const char *name, uint64_t *partition)
{
	struct osd_client_error error;

	return osd_client_find_named(target->client, name, 0, partition, &error);
}

static void test_a_name_means_nothing_else_in_an_address(void **state)
{
	static const char *const good[] = { "docs", "a", "My mail 2026", "gr\xc3\xbc\xc3\x9f",
					    "x-1.y_z" };
	static const char *const bad[] = { "",    "1docs", "docs:a",   "a/b",  "a@b",
					   "now", "root",  "master",   "new",  "a\nb",
					   "-a",  " a",    "\xc3\xa4", "a\xff" };
	char longest[OSD_VERSION_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!osd_client_name_is_valid(good[i]))
			fail_msg("'%s' is refused", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (osd_client_name_is_valid(bad[i]))
			fail_msg("'%s' is taken", bad[i]);
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_false(osd_client_name_is_valid(longest));
	longest[sizeof(longest) - 2] = '\0';
	assert_true(osd_client_name_is_valid(longest));
}

static void test_a_partition_is_found_by_its_name_among_many(void **state)
{
	struct local_target target;
	uint64_t partition;
	char name[16];

	(void)state;
	local_target_serve(&target, 64 << 20);
	assert_int_equal(find(&target, "p1", &partition), -ENOENT);
	for (uint64_t i = 0; i < PARTITIONS; i++) {
		snprintf(name, sizeof(name), "p%d", (int)i);
		assert_int_equal(osd_client_create_named(target.client, FIRST + i, -1,
							 i % 7 ? name : NULL, NULL, NULL),
				 0);
	}
	assert_int_equal(find(&target, "p1", &partition), 0);
	assert_true(partition == FIRST + 1);
	assert_int_equal(find(&target, "p148", &partition), 0);
	assert_true(partition == FIRST + 148);
	/* The begin of a name is another one, and so is one without a name. */
	assert_int_equal(find(&target, "p14", &partition), -ENOENT);
	assert_int_equal(find(&target, "p1489", &partition), -ENOENT);
	local_target_close(&target);
}

static void test_a_name_that_two_have_is_refused_until_one_has_another(void **state)
{
	struct local_target target;
	uint64_t partition;

	(void)state;
	local_target_serve(&target, 64 << 20);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(
			osd_client_create_named(target.client, FIRST + i, -1, "same", NULL, NULL),
			0);
	assert_int_equal(find(&target, "same", &partition), -ENOTUNIQ);
	assert_int_equal(osd_client_set_name(target.client, FIRST, "other", NULL), 0);
	assert_int_equal(find(&target, "same", &partition), -ENOTUNIQ);
	assert_int_equal(osd_client_set_name(target.client, FIRST + 2, "", NULL), 0);
	assert_int_equal(find(&target, "same", &partition), 0);
	assert_true(partition == FIRST + 1);
	assert_int_equal(find(&target, "other", &partition), 0);
	assert_true(partition == FIRST);
	local_target_close(&target);
}

static void test_a_clone_has_its_own_name_or_none(void **state)
{
	const struct osd_client_address source = { .partition = FIRST };
	struct local_target target;
	uint64_t partition;

	(void)state;
	local_target_serve(&target, 64 << 20);
	assert_int_equal(osd_client_create_named(target.client, FIRST, -1, "source", NULL, NULL),
			 0);
	for (int writable = 0; writable <= 1; writable++) {
		char name[2] = { (char)('a' + writable), '\0' };
		uint64_t clone;

		assert_int_equal(osd_client_clone_named(target.client, source, 0, writable, name,
							&clone, NULL),
				 0);
		assert_int_equal(find(&target, name, &partition), 0);
		assert_true(partition == clone);
		assert_int_equal(osd_client_clone_named(target.client, source, 0, writable, "",
							&clone, NULL),
				 0);
		assert_int_equal(find(&target, "source", &partition), 0);
		assert_true(partition == FIRST);
	}
	local_target_close(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_means_nothing_else_in_an_address),
		cmocka_unit_test(test_a_partition_is_found_by_its_name_among_many),
		cmocka_unit_test(test_a_name_that_two_have_is_refused_until_one_has_another),
		cmocka_unit_test(test_a_clone_has_its_own_name_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
