/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Imports of directories that can't be read, or of which only the names can: what is stored of them
 * may be the only copy that there still is, and stays.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/client/tree_scene.h"

static const struct tree_options plain, update = { .update = true };

static char said[4096];
static unsigned warnings, differences;

static void note_warning(void *context, const char *sentence)
{
	size_t length = strlen(said);

	(void)context;
	warnings++;
	snprintf(said + length, sizeof(said) - length, "%s\n", sentence);
}

static void note_difference(void *context, const char *what, const char *path)
{
	(void)context;
	(void)what;
	(void)path;
	differences++;
}

static void in_source(const struct scene *scene, const char *name, char path[256])
{
	snprintf(path, 256, "%.90s/%s", scene->source, name);
}

static void set_mode(const char *folder, const char *name, mode_t mode)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(chmod(path, mode), 0);
}

static void make_link(const struct scene *scene, const char *file, const char *name)
{
	char from[256], to[256];

	in_source(scene, file, from);
	in_source(scene, name, to);
	assert_int_equal(link(from, to), 0);
}

static void remove_name(const struct scene *scene, const char *name)
{
	char path[256];

	in_source(scene, name, path);
	assert_int_equal(unlink(path), 0);
}

/* With a warning for each name that can't be read. */
static void import_as_nobody(struct scene *scene, struct tree_options options)
{
	int result;

	said[0] = '\0';
	warnings = differences = 0;
	options.warn = note_warning;
	options.differs = note_difference;
	scene_begin_as_nobody(scene);
	result = scene_import(scene, options, false);
	scene_end_as_nobody();
	scene_must(scene, result);
}

static void expect_said(const char *sentence)
{
	if (!strstr(said, sentence))
		fail_msg("'%s' is not in:\n%s", sentence, said);
}

/* The directories that could not be read are stored with the modes that shut readers out. */
static void expect_copy(struct scene *scene, const char *shut, size_t names)
{
	scene_remove_tree(scene->copy);
	scene_must(scene, scene_export(scene));
	set_mode(scene->source, shut, 0700);
	set_mode(scene->copy, shut, 0700);
	scene_expect_copy(scene, names);
}

enum { NAMES = 9 };

/* Around and in a directory d, which sorts before "d.txt" and has everything that is kept. */
static void make_tree(const struct scene *scene)
{
	char path[256];

	scene_write_file(scene->source, "a", 5000, 1);
	scene_make_directory(scene->source, "d");
	scene_write_file(scene->source, "d/large", 3 << 20, 2);
	scene_make_directory(scene->source, "d/sub");
	scene_write_file(scene->source, "d/sub/file", 6000, 3);
	make_link(scene, "d/sub/file", "d/sub/name");
	in_source(scene, "d/sub/symlink", path);
	assert_int_equal(symlink("nowhere", path), 0);
	scene_write_file(scene->source, "d.txt", 7000, 4);
	make_link(scene, "d.txt", "e");
}

static void keep_with_mode(struct scene *scene, mode_t mode, struct tree_options options,
			   uint64_t unread)
{
	size_t objects;

	make_tree(scene);
	import_as_nobody(scene, plain);
	assert_int_equal(warnings, 0);
	objects = memory_osd_count(&scene->osd, PARTITION);
	set_mode(scene->source, "d", mode);
	scene_write_file(scene->source, "a", 5000, 9);
	import_as_nobody(scene, options);
	assert_int_equal(scene->report.left_out, unread);
	assert_int_equal(warnings, unread);
	assert_int_equal(scene->report.files, 4);
	assert_int_equal(scene->report.directories, 3);
	assert_int_equal(scene->report.symlinks, 1);
	assert_int_equal(scene->report.hard_links, 2);
	assert_int_equal(scene->report.bytes, 5000 + (3 << 20) + 6000 + 7000);
	assert_int_equal(scene->report.changed, 1);
	assert_int_equal(scene->report.unchanged, 3);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), objects);
}

static void test_what_is_stored_of_a_directory_that_can_not_be_read_stays(void **state)
{
	struct scene *scene = *state;

	keep_with_mode(scene, 0, update, 1);
	expect_said("/d: Permission denied; what is stored of it stays\n");
	expect_copy(scene, "d", NAMES);
	/* Nothing is sent again when it can be read. */
	import_as_nobody(scene, update);
	assert_int_equal(warnings, 0);
	assert_int_equal(scene->report.sent_bytes, 0);
	expect_copy(scene, "d", NAMES);
}

static void test_with_checksums_it_stays_too(void **state)
{
	struct scene *scene = *state;

	keep_with_mode(scene, 0, (struct tree_options){ .update = true, .checksum = true }, 1);
	expect_copy(scene, "d", NAMES);
}

static void test_what_is_stored_of_names_that_can_not_be_looked_at_stays(void **state)
{
	struct scene *scene = *state;

	keep_with_mode(scene, S_IRUSR, update, 2);
	expect_said("/d/large: Permission denied; what is stored of it stays\n");
	expect_said("/d/sub: Permission denied; what is stored of it stays\n");
	expect_copy(scene, "d", NAMES);
}

static void test_an_update_that_is_tried_says_nothing_of_what_stays(void **state)
{
	struct scene *scene = *state;

	make_tree(scene);
	import_as_nobody(scene, plain);
	set_mode(scene->source, "d", 0);
	import_as_nobody(scene, (struct tree_options){ .update = true, .dry_run = true });
	assert_int_equal(differences, 0);
	assert_int_equal(scene->report.removed, 0);
	assert_int_equal(scene->report.left_out, 1);
}

static void test_of_what_is_left_out_by_a_pattern_nothing_stays(void **state)
{
	static const char *const patterns[] = { "sub" };
	struct scene *scene = *state;

	make_tree(scene);
	import_as_nobody(scene, plain);
	set_mode(scene->source, "d", 0);
	import_as_nobody(scene, (struct tree_options){
					.update = true, .excludes = patterns, .exclude_count = 1 });
	assert_int_equal(scene->report.files, 3);
	assert_int_equal(scene->report.directories, 2);
	/* One file, and the old manifest. */
	assert_int_equal(scene->report.removed, 2);
	scene_must(scene, scene_export(scene));
	set_mode(scene->source, "d", 0700);
	set_mode(scene->copy, "d", 0700);
	assert_int_equal(scene_compare_trees(scene->copy, scene->source), NAMES - 4);
}

/* ---- hard links ---- */

static void test_links_into_it_and_out_of_it_keep_their_content(void **state)
{
	struct scene *scene = *state;
	char path[256];
	struct stat status;

	scene_make_directory(scene->source, "d");
	scene_write_file(scene->source, "a-same", 5000, 1);
	make_link(scene, "a-same", "d/same");
	scene_write_file(scene->source, "a-other", 5000, 2);
	make_link(scene, "a-other", "d/other");
	make_link(scene, "a-other", "d/other-too");
	scene_write_file(scene->source, "a-gone", 5000, 3);
	make_link(scene, "a-gone", "d/gone");
	scene_write_file(scene->source, "d/inside", 5000, 4);
	make_link(scene, "d/inside", "z");
	import_as_nobody(scene, plain);
	/* Others have the names outside now. */
	remove_name(scene, "a-other");
	scene_write_file(scene->source, "a-other", 4000, 5);
	remove_name(scene, "a-gone");
	set_mode(scene->source, "d", 0);
	import_as_nobody(scene, update);
	scene_must(scene, scene_export(scene));
	set_mode(scene->source, "d", 0700);
	set_mode(scene->copy, "d", 0700);
	/* A link across the border may become a file of its own. */
	remove_name(scene, "z");
	scene_write_file(scene->source, "z", 5000, 4);
	snprintf(path, sizeof(path), "%s/z", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 5000);
	assert_int_equal(unlink(path), 0);
	remove_name(scene, "z");
	scene_expect_copy(scene, 8);
}

/* ---- without a tree ---- */

static void test_a_first_import_stores_it_with_its_mode_and_says_that_it_is_empty(void **state)
{
	struct scene *scene = *state;
	struct stat status;
	char path[256];

	make_tree(scene);
	set_mode(scene->source, "d", S_IXUSR);
	import_as_nobody(scene, plain);
	expect_said("/d: Permission denied; what is in it is left out\n");
	assert_int_equal(warnings, 1);
	assert_int_equal(scene->report.left_out, 1);
	assert_int_equal(scene->report.directories, 2);
	scene_must(scene, scene_export(scene));
	snprintf(path, sizeof(path), "%s/d", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, S_IXUSR);
	set_mode(scene->copy, "d", 0700);
	assert_int_equal(rmdir(path), 0);
	/* Names whose status nobody tells have no entry. */
	set_mode(scene->source, "d", S_IRUSR);
	import_as_nobody(scene, (struct tree_options){ .replace = true });
	expect_said("/d/sub: Permission denied; it is left out\n");
	assert_int_equal(scene->report.left_out, 2);
}

/* All files are there, and no manifest. */
static void lose_the_manifest(struct scene *scene)
{
	struct memory_object *partition = memory_osd_find(&scene->osd, PARTITION, 0);

	for (size_t i = 0; i < partition->attribute_count; i++)
		if (partition->attributes[i].page == TREE_PARTITION_PAGE)
			partition->attributes[i].page = 0x30055555;
}

static void test_files_that_an_interrupted_import_has_stored_of_it_stay(void **state)
{
	struct scene *scene = *state;
	char path[256];
	struct stat status;

	make_tree(scene);
	import_as_nobody(scene, plain);
	lose_the_manifest(scene);
	set_mode(scene->source, "d", 0);
	import_as_nobody(scene, plain);
	expect_said("/d: Permission denied; what is stored of it stays\n");
	assert_int_equal(warnings, 1);
	assert_int_equal(scene->report.resumed, 4);
	assert_int_equal(scene->report.sent_bytes, 0);
	/* 4 files and the manifest. */
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 5);
	scene_must(scene, scene_export(scene));
	/* Of the directory in between nothing was known. */
	set_mode(scene->copy, "d", 0700);
	snprintf(path, sizeof(path), "%s/d/sub", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0);
	set_mode(scene->copy, "d/sub", 0755);
	snprintf(path, sizeof(path), "%s/d/sub/file", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 6000);
	snprintf(path, sizeof(path), "%s/d/large", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 3 << 20);
}

/* Length and time of what nobody can look at do not tell that it is another file, renamed. */
static void test_a_file_of_an_interrupted_update_that_stays_is_taken_for_no_other(void **state)
{
	struct scene *scene = *state;
	uint64_t command = 0;
	size_t objects;

	scene_make_directory(scene->source, "d");
	scene_write_file(scene->source, "a", 5000, 1);
	scene_set_time(scene->source, "a", 1000);
	import_as_nobody(scene, plain);
	objects = memory_osd_count(&scene->osd, PARTITION);
	scene_write_file(scene->source, "d/b", 5000, 2);
	scene_set_time(scene->source, "d/b", 1000);
	while (memory_osd_count(&scene->osd, PARTITION) == objects) {
		scene->osd.dies_at = scene->osd.commands + ++command;
		scene->osd.executes_the_last = true;
		assert_true(scene_import(scene, update, false) < 0);
	}
	scene->osd.dies_at = 0;
	remove_name(scene, "a");
	set_mode(scene->source, "d", 0);
	import_as_nobody(scene, update);
	assert_int_equal(scene->report.files, 1);
	expect_copy(scene, "d", 2);
}

/* What is not complete can't become whole without the file. */
static void test_files_that_it_has_not_completed_do_not_stay(void **state)
{
	struct scene *scene = *state;
	uint64_t command = 0;

	scene_make_directory(scene->source, "d");
	scene_write_file(scene->source, "d/large", 3 << 20, 2);
	do {
		memory_osd_free(&scene->osd);
		scene->osd.dies_at = ++command;
		scene_import(scene, plain, false);
		scene->osd.dies_at = 0;
		assert_true(command < 100);
	} while (memory_osd_count(&scene->osd, PARTITION) == 0);
	set_mode(scene->source, "d", 0);
	import_as_nobody(scene, plain);
	expect_said("/d: Permission denied; what is in it is left out\n");
	assert_int_equal(scene->report.files, 0);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 1);
}

/* ---- an error behind the first names ---- */

static unsigned reads_until_error; /* 0: there is none */

struct dirent *__real_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream)
{
	if (reads_until_error && --reads_until_error == 0) {
		errno = EIO;
		return NULL;
	}
	return __real_readdir(stream);
}

static void test_a_directory_that_can_not_be_read_to_its_end_is_not_read(void **state)
{
	struct scene *scene = *state;
	size_t objects;

	make_tree(scene);
	import_as_nobody(scene, plain);
	objects = memory_osd_count(&scene->osd, PARTITION);
	/* The root's names (7 and its end), then two of the directory's. */
	reads_until_error = 11;
	import_as_nobody(scene, update);
	reads_until_error = 0;
	expect_said("/d: Input/output error; what is stored of it stays\n");
	assert_int_equal(scene->report.files, 4);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), objects);
	expect_copy(scene, "d", NAMES);
}

static void test_a_root_that_can_not_be_read_ends_the_import(void **state)
{
	struct scene *scene = *state;
	int result;

	make_tree(scene);
	set_mode(scene->source, ".", 0);
	scene_begin_as_nobody(scene);
	result = scene_import(scene, plain, false);
	scene_end_as_nobody();
	assert_int_equal(result, -EACCES);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_stored_of_a_directory_that_can_not_be_read_stays),
		TEST(test_with_checksums_it_stays_too),
		TEST(test_what_is_stored_of_names_that_can_not_be_looked_at_stays),
		TEST(test_an_update_that_is_tried_says_nothing_of_what_stays),
		TEST(test_of_what_is_left_out_by_a_pattern_nothing_stays),
		TEST(test_links_into_it_and_out_of_it_keep_their_content),
		TEST(test_a_first_import_stores_it_with_its_mode_and_says_that_it_is_empty),
		TEST(test_files_that_an_interrupted_import_has_stored_of_it_stay),
		TEST(test_a_file_of_an_interrupted_update_that_stays_is_taken_for_no_other),
		TEST(test_files_that_it_has_not_completed_do_not_stay),
		TEST(test_a_directory_that_can_not_be_read_to_its_end_is_not_read),
		TEST(test_a_root_that_can_not_be_read_ends_the_import),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
