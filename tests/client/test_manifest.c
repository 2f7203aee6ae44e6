/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Manifests: what is written can be read, and nothing that leads out of its directory is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include <cmocka.h>

#include "client/manifest.h"

#define SHA           "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
#define ROOT          "d 0755 1.000000000 .\n"
#define TIME          "1.000000000 "
#define FILE_OF(path) "f 0644 " TIME "0x10000 5 " SHA " " path "\n"

/* The text with its right last line; `count` entries. */
static char *finish(const char *lines, size_t count)
{
	uint8_t digest[32];
	char hex[65], *text;
	char *body;

	assert_true(asprintf(&body, "muninn-tree 1\n%s", lines) > 0);
	SHA256((const unsigned char *)body, strlen(body), digest);
	manifest_hex(digest, 32, hex);
	assert_true(asprintf(&text, "%send %zu %s\n", body, count, hex) > 0);
	free(body);
	return text;
}

static int parse(const char *lines, size_t count, struct error_text *error)
{
	char *text = finish(lines, count);
	struct manifest manifest;
	int result = manifest_parse(text, strlen(text), &manifest, error);

	if (result == 0)
		assert_int_equal(manifest.count, count);
	else
		assert_null(manifest.entries);
	manifest_free(&manifest);
	free(text);
	return result;
}

static void add(struct manifest *manifest, enum manifest_type type, const char *path)
{
	struct manifest_entry *entry = manifest_add(manifest);

	assert_non_null(entry);
	entry->type = type;
	entry->path = strdup(path);
	entry->mode = 0640;
	entry->user = 4000000000;
	entry->group = 7;
	entry->seconds = -7;
	entry->nanoseconds = 123456789;
	if (type == MANIFEST_SYMLINK) {
		entry->target = strdup(path);
		entry->mode = 0;
	}
	if (type == MANIFEST_FILE) {
		entry->object = UINT64_C(0xfedcba9876543210);
		entry->length = 1234567890123;
		for (size_t i = 0; i < 32; i++)
			entry->sha256[i] = (uint8_t)(i * 7);
		assert_int_equal(manifest_add_xattr(entry, "user.a b", "", 0), 0);
		assert_int_equal(manifest_add_xattr(entry, "user.c", "\0\xff\n", 3), 0);
	}
	if (type == MANIFEST_HARD_LINK) {
		entry->linked = manifest->count - 2;
		entry->user = entry->group = MANIFEST_NO_OWNER;
		entry->mode = 0;
		entry->seconds = 0;
		entry->nanoseconds = 0;
	}
}

static void expect_equal(const struct manifest *a, const struct manifest *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct manifest_entry *x = &a->entries[i], *y = &b->entries[i];

		assert_int_equal(x->type, y->type);
		assert_int_equal(x->mode, y->mode);
		assert_true(x->seconds == y->seconds);
		assert_int_equal(x->nanoseconds, y->nanoseconds);
		assert_true(x->object == y->object);
		assert_true(x->length == y->length);
		assert_memory_equal(x->sha256, y->sha256, 32);
		assert_int_equal(x->linked, y->linked);
		assert_true(manifest_same_owner(x, y));
		assert_true(manifest_same_xattrs(x, y));
		assert_string_equal(x->path, y->path);
		assert_int_equal(x->target != NULL, y->target != NULL);
		if (x->target)
			assert_string_equal(x->target, y->target);
	}
}

static void expect_round_trip(const struct manifest *manifest)
{
	struct manifest again;
	struct error_text error;
	char *text;
	size_t length;

	assert_int_equal(manifest_format(manifest, &text, &length), 0);
	for (size_t i = 0; i < length; i++)
		assert_true((text[i] >= 0x20 && text[i] < 0x7f) || text[i] == '\n');
	if (manifest_parse(text, length, &again, &error) < 0)
		fail_msg("%s", error.text);
	expect_equal(manifest, &again);
	free(text);
	manifest_free(&again);
}

/* The example of docs/muninnctl.md. */
static const char DOCUMENTED[] =
	"muninn-tree 2\n"
	"d 0755 1700000000.123456789 0:0 .\n"
	"f 0644 1.000000000 1000:100 0x10000 5 "
	"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 a%20b\n"
	"x user.colour 0x726564\n"
	"h 1 same%20file\n"
	"l 1700000000.000000000 0:0 link ../somewhere/else\n"
	"d 0700 -1.500000000 1000:100 sub\n"
	"end 5 1296f0f5d62223c2392f18f582d2dcb7cb20f6e6dc79d640e5c440a7705adb58\n";

/* As version 1 has it, which is still read. */
static const char WITHOUT_OWNERS[] =
	"muninn-tree 1\n"
	"d 0755 1700000000.123456789 .\n"
	"f 0644 1.000000000 0x10000 5 "
	"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 a%20b\n"
	"h 1 same%20file\n"
	"l 1700000000.000000000 link ../somewhere/else\n"
	"d 0700 -1.500000000 sub\n"
	"end 5 bcb300935234bf10190b9e83bae49872551fd8455c281ff36e490e5f1d2fa181\n";

static void test_the_documented_example_is_what_is_written_and_read(void **state)
{
	struct manifest manifest;
	char *text;
	size_t length;

	(void)state;
	assert_int_equal(manifest_parse(DOCUMENTED, strlen(DOCUMENTED), &manifest, NULL), 0);
	assert_int_equal(manifest.count, 5);
	assert_string_equal(manifest.entries[1].path, "a b");
	assert_int_equal(manifest.entries[1].length, 5);
	assert_int_equal(manifest.entries[2].linked, 1);
	assert_string_equal(manifest.entries[3].target, "../somewhere/else");
	assert_int_equal(manifest.entries[4].seconds, -1);
	assert_int_equal(manifest.entries[4].nanoseconds, 500000000);
	assert_int_equal(manifest_format(&manifest, &text, &length), 0);
	assert_string_equal(text, DOCUMENTED);
	free(text);
	manifest_free(&manifest);
}

static void test_every_byte_a_name_can_have_survives(void **state)
{
	struct manifest manifest = { 0 };
	char path[300] = "";

	(void)state;
	add(&manifest, MANIFEST_DIRECTORY, ".");
	for (int byte = 1; byte < 256; byte++) {
		if (byte == '/')
			continue;
		snprintf(path, sizeof(path), "a%cb", byte);
		add(&manifest, MANIFEST_FILE, path);
		snprintf(path, sizeof(path), "x%c", byte);
		add(&manifest, MANIFEST_SYMLINK, path);
	}
	expect_round_trip(&manifest);
	manifest_free(&manifest);
}

static void test_trees_survive(void **state)
{
	struct manifest manifest = { 0 };

	(void)state;
	add(&manifest, MANIFEST_DIRECTORY, ".");
	add(&manifest, MANIFEST_DIRECTORY, "a");
	add(&manifest, MANIFEST_DIRECTORY, "a/b");
	add(&manifest, MANIFEST_FILE, "a/b/c");
	add(&manifest, MANIFEST_HARD_LINK, "a/b/d");
	add(&manifest, MANIFEST_SYMLINK, "a/e");
	add(&manifest, MANIFEST_DIRECTORY, "a/f");
	add(&manifest, MANIFEST_DIRECTORY, "g");
	add(&manifest, MANIFEST_FILE, "g/...");
	add(&manifest, MANIFEST_FILE, "..h");
	expect_round_trip(&manifest);
	manifest_free(&manifest);
}

static void test_random_names_survive(void **state)
{
	unsigned seed = 4711;

	(void)state;
	print_message("seed %u\n", seed);
	srand(seed);
	for (int round = 0; round < 200; round++) {
		struct manifest manifest = { 0 };

		add(&manifest, MANIFEST_DIRECTORY, ".");
		for (int i = 0; i < 20; i++) {
			char name[257] = "n";
			size_t length = 1 + (size_t)rand() % 254;

			for (size_t j = 1; j < length; j++) {
				char c = (char)(1 + rand() % 255);

				name[j] = c == '/' ? '_' : c;
			}
			add(&manifest, rand() % 2 ? MANIFEST_FILE : MANIFEST_SYMLINK, name);
		}
		expect_round_trip(&manifest);
		manifest_free(&manifest);
	}
}

static void test_a_well_formed_text_is_read(void **state)
{
	struct error_text error;

	(void)state;
	assert_int_equal(parse(ROOT FILE_OF("a"), 2, &error), 0);
	assert_int_equal(parse(ROOT "d 0700 -5.999999999 x\n" FILE_OF("x/y") "h 2 x/z\nl " TIME
									     "l /etc/passwd\n",
			       5, &error),
			 0);
}

static void expect_refused(const char *lines, size_t count)
{
	struct error_text error = { "" };

	if (parse(lines, count, &error) != -EBADMSG || !error.text[0])
		fail_msg("was not refused: %s", lines);
}

static void test_paths_that_lead_out_are_refused(void **state)
{
	static const char *const paths[] = {
		"/etc/passwd", "..",    "../x", "a/../b", "a/..",   "./a",      "a/./b",
		"a//b",        "a/",    "/",    "%2fetc", "%2e%2e", "%2E%2E/x", "a/%2E%2E/%2E%2E/b",
		"%00",         "a%00b", ".",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char lines[512];

		/* With a directory `a`, so that only the path itself is at fault. */
		snprintf(lines, sizeof(lines),
			 ROOT "d 0755 " TIME "a\nf 0644 " TIME "0x10000 5 " SHA " %s\n", paths[i]);
		expect_refused(lines, 3);
		snprintf(lines, sizeof(lines), ROOT "d 0755 " TIME "a\nd 0755 " TIME "%s\n",
			 paths[i]);
		expect_refused(lines, 3);
	}
}

static void test_nothing_is_put_below_a_link_a_file_or_what_is_not_there(void **state)
{
	(void)state;
	expect_refused(ROOT "l " TIME "x /etc\n" FILE_OF("x/passwd"), 3);
	expect_refused(ROOT FILE_OF("x") FILE_OF("x/y"), 3);
	expect_refused(ROOT FILE_OF("x/y"), 2);
	/* A directory that is closed already: its children must follow it. */
	expect_refused(ROOT "d 0755 " TIME "a\nd 0755 " TIME "b\n" FILE_OF("a/c"), 4);
	expect_refused(FILE_OF("a"), 1);
	expect_refused("d 0755 " TIME "a\n", 1);
}

static void test_hard_links_point_to_earlier_files_only(void **state)
{
	(void)state;
	assert_int_equal(parse(ROOT FILE_OF("a") "h 1 b\n", 3, NULL), 0);
	expect_refused(ROOT FILE_OF("a") "h 0 b\n", 3);
	expect_refused(ROOT FILE_OF("a") "h 2 b\n", 3);
	expect_refused(ROOT FILE_OF("a") "h 3 b\n", 3);
	expect_refused(ROOT FILE_OF("a") "h 18446744073709551616 b\n", 3);
	expect_refused(ROOT "l " TIME "a /etc/shadow\nh 1 b\n", 3);
	expect_refused(ROOT FILE_OF("a") "h -1 b\n", 3);
}

static void test_malformed_fields_are_refused(void **state)
{
	(void)state;
	expect_refused(ROOT "\n", 2);
	expect_refused(ROOT "c 0644 " TIME "tty\n", 2);
	expect_refused(ROOT "f\n", 2);
	expect_refused(ROOT "f 0644\n", 2);
	expect_refused(ROOT "f 10000 " TIME "0x10000 5 " SHA " a\n", 2);
	expect_refused(ROOT "f 0888 " TIME "0x10000 5 " SHA " a\n", 2);
	expect_refused(ROOT "f 0644 1.5 0x10000 5 " SHA " a\n", 2);
	expect_refused(ROOT "f 0644 1.0000000000 0x10000 5 " SHA " a\n", 2);
	expect_refused(ROOT "f 0644 99999999999999999999.000000000 0x10000 5 " SHA " a\n", 2);
	expect_refused(ROOT "f 0644 " TIME "10000 5 " SHA " a\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 9223372036854775808 " SHA " a\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA "00 a\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 0011 a\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA " \n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA " a b\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA " a%\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA " a%4\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA " a%GG\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA " a\x80\n", 2);
	expect_refused(ROOT "f 0644 " TIME "0x10000 5 " SHA " a\tb\n", 2);
	expect_refused(ROOT "l " TIME "a\n", 2);
	expect_refused(ROOT "l " TIME "a \n", 2);
	expect_refused(ROOT "l " TIME "a b c\n", 2);
	expect_refused("", 0);
}

static void test_names_too_long_for_a_file_system_are_refused(void **state)
{
	char lines[1024];

	(void)state;
	snprintf(lines, sizeof(lines), ROOT FILE_OF("%0255d"), 0);
	assert_int_equal(parse(lines, 2, NULL), 0);
	snprintf(lines, sizeof(lines), ROOT FILE_OF("%0256d"), 0);
	expect_refused(lines, 2);
}

static void test_a_count_that_is_not_that_of_the_entries_is_refused(void **state)
{
	(void)state;
	expect_refused(ROOT FILE_OF("a"), 1);
	expect_refused(ROOT FILE_OF("a"), 3);
}

static void test_every_truncation_and_every_changed_byte_is_refused(void **state)
{
	char *text = finish(ROOT FILE_OF("a") "l " TIME "b c\n", 3);
	size_t length = strlen(text);
	struct manifest manifest;

	(void)state;
	for (size_t cut = 0; cut < length; cut++) {
		/* An own block, so that a read behind the end is seen. */
		char *copy = malloc(cut ? cut : 1);

		memcpy(copy, text, cut);
		assert_int_equal(manifest_parse(copy, cut, &manifest, NULL), -EBADMSG);
		free(copy);
	}
	for (size_t at = 0; at < length; at++) {
		char was = text[at];

		/* Upper and lower case are the same digits. */
		text[at] ^= 0x01;
		assert_int_equal(manifest_parse(text, length, &manifest, NULL), -EBADMSG);
		text[at] = was;
	}
	assert_int_equal(manifest_parse(text, length, &manifest, NULL), 0);
	manifest_free(&manifest);
	free(text);
}

static void test_a_manifest_without_owners_is_still_read(void **state)
{
	struct manifest manifest;
	struct error_text error;

	(void)state;
	assert_int_equal(manifest_parse(WITHOUT_OWNERS, strlen(WITHOUT_OWNERS), &manifest, &error),
			 0);
	assert_int_equal(manifest.count, 5);
	for (size_t i = 0; i < manifest.count; i++)
		assert_true(manifest.entries[i].user == MANIFEST_NO_OWNER &&
			    manifest.entries[i].group == MANIFEST_NO_OWNER);
	manifest_free(&manifest);
}

/* Version 2 with these lines behind that of a file, and that of a link. */
static int parse_attribute(const char *behind_file, const char *behind_link)
{
	uint8_t digest[32];
	char hex[65], *text, *body;
	struct manifest manifest;
	struct error_text error;
	int result;

	assert_true(asprintf(&body,
			     "muninn-tree 2\nd 0755 1.000000000 0:0 .\nf 0644 1.000000000 1:1 "
			     "0x10000 5 " SHA " a\n%sl 1.000000000 0:0 b a\n%s",
			     behind_file, behind_link) > 0);
	SHA256((const unsigned char *)body, strlen(body), digest);
	manifest_hex(digest, 32, hex);
	assert_true(asprintf(&text, "%send 3 %s\n", body, hex) > 0);
	result = manifest_parse(text, strlen(text), &manifest, &error);
	manifest_free(&manifest);
	free(text);
	free(body);
	return result;
}

static void test_malformed_extended_attributes_are_refused(void **state)
{
	static const char *const wrong[] = {
		"x\n",
		"x user.a\n",
		"x user.a 0x0\n",
		"x user.a 12\n",
		"x user.a 0xZZ\n",
		"x  0x00\n",
		"xuser.a 0x00\n",
		"x user.a 0x00 \n",
		"x user.b 0x\nx user.a 0x\n",
		"x user.a 0x\nx user.a 0x\n",
	};
	char *long_name, *long_value;

	(void)state;
	assert_int_equal(parse_attribute("x user.a 0x\nx user.b 0x00fF\n", ""), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (parse_attribute(wrong[i], "") != -EBADMSG)
			fail_msg("%s is taken", wrong[i]);
	assert_int_equal(parse_attribute("", "x user.a 0x\n"), -EBADMSG);
	assert_true(asprintf(&long_name, "x %0256d 0x\n", 1) > 0);
	assert_int_equal(parse_attribute(long_name, ""), -EBADMSG);
	assert_true(asprintf(&long_value, "x user.a 0x%0*d\n", 2 * 65536, 0) > 0);
	assert_int_equal(parse_attribute(long_value, ""), 0);
	free(long_value);
	assert_true(asprintf(&long_value, "x user.a 0x%0*d\n", 2 * 65537, 0) > 0);
	assert_int_equal(parse_attribute(long_value, ""), -EBADMSG);
	free(long_value);
	free(long_name);
}

/* A file with one name outside of "in" and two below; its neighbours have names that begin alike.
 */
static void parse_for_below(struct manifest *manifest)
{
	struct error_text error;
	char *text = finish(ROOT FILE_OF("a") "f 0644 " TIME "0x10001 5 " SHA " b\n"
					      "d 0755 " TIME "in\n"
					      "h 1 in/x\n"
					      "d 0755 " TIME "in/deep\n"
					      "h 1 in/deep/y\n"
					      "l " TIME "in/z ../a\n"
					      "f 0644 " TIME "0x10002 5 " SHA " inner\n"
					      "h 2 out\n",
			    10);
	assert_int_equal(manifest_parse(text, strlen(text), manifest, &error), 0);
	free(text);
}

static void test_what_is_below_a_directory_becomes_a_tree(void **state)
{
	static const struct {
		const char *path;
		enum manifest_type type;
	} expected[] = { { ".", MANIFEST_DIRECTORY },
			 { "x", MANIFEST_FILE },
			 { "deep", MANIFEST_DIRECTORY },
			 { "deep/y", MANIFEST_HARD_LINK },
			 { "z", MANIFEST_SYMLINK } };
	struct manifest manifest;

	(void)state;
	parse_for_below(&manifest);
	assert_int_equal(manifest_take_below(&manifest, "in"), 0);
	assert_int_equal(manifest.count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < manifest.count; i++) {
		assert_string_equal(manifest.entries[i].path, expected[i].path);
		assert_int_equal(manifest.entries[i].type, expected[i].type);
	}
	assert_true(manifest.entries[1].object == 0x10000);
	assert_true(manifest.entries[1].length == 5);
	assert_int_equal(manifest.entries[3].linked, 1);
	assert_string_equal(manifest.entries[4].target, "../a");
	manifest_free(&manifest);
}

static void test_only_a_directory_of_the_tree_becomes_one(void **state)
{
	struct manifest manifest;

	(void)state;
	parse_for_below(&manifest);
	assert_int_equal(manifest_take_below(&manifest, "i"), -ENOENT);
	manifest_free(&manifest);
	parse_for_below(&manifest);
	assert_int_equal(manifest_take_below(&manifest, "in/x"), -ENOTDIR);
	manifest_free(&manifest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_documented_example_is_what_is_written_and_read),
		cmocka_unit_test(test_every_byte_a_name_can_have_survives),
		cmocka_unit_test(test_trees_survive),
		cmocka_unit_test(test_random_names_survive),
		cmocka_unit_test(test_a_well_formed_text_is_read),
		cmocka_unit_test(test_paths_that_lead_out_are_refused),
		cmocka_unit_test(test_nothing_is_put_below_a_link_a_file_or_what_is_not_there),
		cmocka_unit_test(test_hard_links_point_to_earlier_files_only),
		cmocka_unit_test(test_malformed_fields_are_refused),
		cmocka_unit_test(test_names_too_long_for_a_file_system_are_refused),
		cmocka_unit_test(test_a_count_that_is_not_that_of_the_entries_is_refused),
		cmocka_unit_test(test_a_manifest_without_owners_is_still_read),
		cmocka_unit_test(test_malformed_extended_attributes_are_refused),
		cmocka_unit_test(test_what_is_below_a_directory_becomes_a_tree),
		cmocka_unit_test(test_only_a_directory_of_the_tree_becomes_one),
		cmocka_unit_test(test_every_truncation_and_every_changed_byte_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
