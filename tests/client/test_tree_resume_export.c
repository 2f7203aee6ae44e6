/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Exports that are interrupted, at every command, and begun again: what is whole is not brought
 * again, and nothing else is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/aside.h"
#include "tests/client/tree_scene.h"

enum { NAMES = 10 }; /* of scene_make_tree */

static const struct tree_options plain, update = { .update = true };

static void test_an_export_cut_off_at_any_command_goes_on(void **state)
{
	struct scene *scene = *state;
	uint64_t command = 0, resumed = 0, files;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	for (;;) {
		scene_remove_tree(scene->copy);
		scene->osd.dies_at = scene->osd.commands + ++command;
		if (scene_export(scene) == 0)
			break;
		scene->osd.dies_at = 0;
		files = scene->report.files;
		scene_must(scene, scene_export(scene));
		assert_int_equal(scene->report.files, 6);
		assert_int_equal(scene->report.resumed, files);
		scene_expect_copy(scene, NAMES);
		resumed += files;
	}
	scene->osd.dies_at = 0;
	assert_true(command > 8);
	assert_true(resumed > 0);
	/* It is one that nobody goes on with. */
	assert_int_equal(scene_export(scene), -ENOTEMPTY);
}

/* An export without a file whose object is damaged. The others are there. */
static struct memory_object *export_without(struct scene *scene, uint64_t id)
{
	struct memory_object *object = memory_osd_find(&scene->osd, PARTITION, id);

	object->data[0] ^= 1;
	scene_remove_tree(scene->copy);
	assert_int_equal(scene_export(scene), -EBADMSG);
	object->data[0] ^= 1;
	return object;
}

/* Stores a, b and z, and exports a and b. */
static void begin_export(struct scene *scene)
{
	scene_write_file(scene->source, "a", 5000, 1);
	scene_write_file(scene->source, "b", 5000, 2);
	scene_write_file(scene->source, "z", 2 << 20, 3);
	scene_must(scene, scene_import(scene, plain, false));
	export_without(scene, OSD_FIRST_ID + 2);
	assert_int_equal(scene->report.files, 2);
}

static void test_an_export_brings_files_again_that_the_host_has_lost(void **state)
{
	struct scene *scene = *state;
	char path[256];
	struct stat status;

	begin_export(scene);
	/* As after a crash: name and time are there, the content is not. */
	snprintf(path, sizeof(path), "%s/a", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(utimensat(AT_FDCWD, path,
				   (const struct timespec[2]){ status.st_atim, status.st_mtim }, 0),
			 0);
	/* And of a file that was under way there is a part. */
	scene_write_file(scene->copy, "z.partial", 1000, 4);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene->report.resumed, 1);
	scene_expect_copy(scene, 3);
}

static void test_an_export_does_not_overwrite_what_somebody_has_changed(void **state)
{
	struct scene *scene = *state;
	char path[256], mine[256];

	begin_export(scene);
	scene_write_file(scene->copy, "a", 5000, 7);
	assert_int_equal(scene_export(scene), -EEXIST);
	assert_non_null(strstr(scene->error.sentence.text, "/a is not as the interrupted export"));
	snprintf(path, sizeof(path), "%s/a", scene->copy);
	snprintf(mine, sizeof(mine), "%s/mine", scene->folder);
	assert_int_equal(rename(path, mine), 0);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 3);
	assert_int_equal(unlink(mine), 0);
}

static void test_an_export_removes_no_files_but_those_it_has_not_completed(void **state)
{
	static const char *const ours[] = { "z.partial", "z.1.partial", "a.23.partial" },
				 *const theirs[] = { "mine.partial", ".partial", "a.x.partial",
						     "a.1.2.partial", "1.partial" };
	struct scene *scene = *state;
	char path[256], long_name[NAME_MAX + 1];

	begin_export(scene);
	memset(long_name, 'a', NAME_MAX);
	snprintf(long_name + NAME_MAX - 8, 9, ".partial");
	scene_write_file(scene->copy, long_name, 100, 4);
	for (size_t i = 0; i < 3; i++)
		scene_write_file(scene->copy, ours[i], 100, 4);
	for (size_t i = 0; i < 5; i++)
		scene_write_file(scene->copy, theirs[i], 100, 5);
	scene_must(scene, scene_export(scene));
	for (size_t i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s/%s", scene->copy, theirs[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(scene_compare_trees(scene->copy, scene->source), 3);
}

static void test_an_export_does_not_go_on_with_another_tree(void **state)
{
	struct scene *scene = *state;

	begin_export(scene);
	scene_write_file(scene->source, "a", 5000, 7);
	scene_must(scene, scene_import(scene, update, false));
	assert_int_equal(scene_export(scene), -ENOTEMPTY);
	assert_non_null(strstr(scene->error.sentence.text, ".muninn-export.partial"));
	scene_expect_same_trees(scene, 3);
}

static void test_a_second_export_does_not_go_on_with_one_that_runs(void **state)
{
	struct scene *scene = *state;
	char path[256];
	int fd;

	begin_export(scene);
	snprintf(path, sizeof(path), "%s/.muninn-export.partial", scene->copy);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(scene_export(scene), -EBUSY);
	assert_int_equal(close(fd), 0);
	scene_must(scene, scene_export(scene));
}

/* It has nothing but its marker yet. */
static void test_a_second_export_leaves_one_that_has_just_begun_its_marker(void **state)
{
	struct scene *scene = *state;
	char path[256];
	int fd;

	scene_write_file(scene->source, "a", 5000, 1);
	scene_must(scene, scene_import(scene, plain, false));
	assert_int_equal(mkdir(scene->copy, 0700), 0);
	snprintf(path, sizeof(path), "%s/.muninn-export.partial", scene->copy);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(scene_export(scene), -EBUSY);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(close(fd), 0);
	scene_must(scene, scene_export(scene));
}

static void test_an_export_follows_no_link_where_a_directory_was(void **state)
{
	struct scene *scene = *state;
	char path[256], elsewhere[256];
	struct stat status;

	scene_make_directory(scene->source, "d");
	scene_write_file(scene->source, "d/a", 5000, 1);
	scene_write_file(scene->source, "z", 2 << 20, 3);
	scene_must(scene, scene_import(scene, plain, false));
	export_without(scene, OSD_FIRST_ID + 1);
	snprintf(path, sizeof(path), "%s/d", scene->copy);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", scene->folder);
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, path), 0);
	assert_int_equal(scene_export(scene), -ENOTDIR);
	assert_int_equal(unlink(path), 0);
	/* Nor does it change a file there. */
	scene_write_file(scene->copy, "d", 100, 4);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(scene_export(scene), -ENOTDIR);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_int_equal(unlink(path), 0);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 3);
	scene_remove_tree(elsewhere);
}

/* Names of the tree that files have while they are not whole, as a killed export leaves them. */
static void test_an_export_goes_on_where_the_tree_has_names_of_files_that_are_not_whole(
	void **state)
{
	static const char *const torn[] = { "a.partial", "b.partial", "c.partial",
					    ".muninn-export.1.partial" };
	struct scene *scene = *state;
	char path[256];

	for (int i = 0; i < 3; i++) {
		char name[2] = { (char)('a' + i), '\0' };

		scene_write_file(scene->source, name, 5000, (unsigned)i);
	}
	scene_make_directory(scene->source, "a.partial");
	snprintf(path, sizeof(path), "%s/b.partial", scene->source);
	assert_int_equal(symlink("nowhere", path), 0);
	scene_write_file(scene->source, "c.partial", 6000, 5);
	scene_write_file(scene->source, ".muninn-export.partial", 600, 6);
	scene_must(scene, scene_import(scene, plain, false));
	export_without(scene, OSD_FIRST_ID);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", scene->copy, torn[i]);
		scene_remove_tree(path);
	}
	for (size_t i = 0; i < 3; i++)
		scene_write_file(scene->copy, torn[i], 100, 9);
	snprintf(path, sizeof(path), "%s/%s", scene->copy, torn[3]);
	if (access(path, F_OK) < 0)
		fail_msg("no marker %s", path);
	scene_must(scene, scene_export(scene));
	scene_expect_copy(scene, 7);
}

static const char *marker_of_another; /* which ends as soon as its marker was opened; NULL: none */

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	if (marker_of_another)
		assert_int_equal(unlink(marker_of_another), 0);
	return __real_flock(fd, operation);
}

/* It has the lock of a file then that is gone. */
static void test_an_export_does_not_begin_with_the_marker_of_one_that_ends(void **state)
{
	struct scene *scene = *state;
	char path[256];

	begin_export(scene);
	snprintf(path, sizeof(path), "%s/.muninn-export.partial", scene->copy);
	marker_of_another = path;
	assert_int_equal(scene_export(scene), -EBUSY);
	marker_of_another = NULL;
}

static bool keeps_markers; /* as if the export ended before it takes its own away */

int __real_unlinkat(int root, const char *path, int flags);
int __wrap_unlinkat(int root, const char *path, int flags);
int __wrap_unlinkat(int root, const char *path, int flags)
{
	if (keeps_markers && strcmp(path, ".muninn-export.partial") == 0) {
		errno = EIO;
		return -1;
	}
	return __real_unlinkat(root, path, flags);
}

/* Without the marker nobody would take it for an export. */
static void test_an_export_gives_the_root_its_status_before_it_takes_the_marker_away(void **state)
{
	struct scene *scene = *state;
	struct stat source, copy;

	scene_write_file(scene->source, "a", 5000, 1);
	assert_int_equal(chmod(scene->source, 0751), 0);
	scene_set_time(scene->folder, "source", 1000);
	scene_must(scene, scene_import(scene, plain, false));
	keeps_markers = true;
	assert_int_equal(scene_export(scene), -EIO);
	keeps_markers = false;
	assert_int_equal(stat(scene->source, &source), 0);
	assert_int_equal(stat(scene->copy, &copy), 0);
	assert_int_equal(copy.st_mode, source.st_mode);
	assert_int_equal(copy.st_mtim.tv_sec, 1000);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene_compare_trees(scene->copy, scene->source), 1);
	assert_int_equal(stat(scene->copy, &copy), 0);
	assert_int_equal(copy.st_mtim.tv_sec, 1000);
}

static void test_an_export_gives_the_root_a_mode_that_shuts_its_owner_out(void **state)
{
	struct scene *scene = *state;
	struct stat copy;
	int result;

	scene_write_file(scene->source, "a", 5000, 1);
	assert_int_equal(chmod(scene->source, 0500), 0);
	scene_set_time(scene->folder, "source", 1000);
	scene_must(scene, scene_import(scene, plain, false));
	scene_begin_as_nobody(scene);
	result = scene_export(scene);
	scene_end_as_nobody();
	scene_must(scene, result);
	assert_int_equal(scene_compare_trees(scene->copy, scene->source), 1);
	assert_int_equal(stat(scene->copy, &copy), 0);
	assert_int_equal(copy.st_mode & 07777, 0500);
	assert_int_equal(copy.st_mtim.tv_sec, 1000);
}

static void test_an_export_that_has_brought_nothing_leaves_nothing(void **state)
{
	struct scene *scene = *state;

	scene_write_file(scene->source, "a", 5000, 1);
	scene_must(scene, scene_import(scene, plain, false));
	export_without(scene, OSD_FIRST_ID);
	assert_int_equal(rmdir(scene->copy), 0);
}

static void test_an_export_keeps_whole_files_that_have_names_of_ones_that_are_not(void **state)
{
	struct scene *scene = *state;

	scene_write_file(scene->source, "a", 5000, 1);
	scene_write_file(scene->source, "a.partial", 6000, 2);
	scene_write_file(scene->source, "z", 2 << 20, 3);
	scene_must(scene, scene_import(scene, plain, false));
	export_without(scene, OSD_FIRST_ID + 2);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene->report.resumed, 2);
	scene_expect_copy(scene, 3);
}

/* As one has left it that had come to giving directories their modes. */
static void test_an_export_goes_on_where_modes_shut_it_out(void **state)
{
	struct scene *scene = *state;
	char path[256];
	int result;

	scene_make_directory(scene->source, "d");
	scene_write_file(scene->source, "d/a", 5000, 1);
	scene_write_file(scene->source, "d/b", 5000, 2);
	scene_write_file(scene->source, "z", 2 << 20, 3);
	scene_must(scene, scene_import(scene, plain, false));
	export_without(scene, OSD_FIRST_ID + 2);
	snprintf(path, sizeof(path), "%s/d/a", scene->copy);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/d/b", scene->copy);
	assert_int_equal(chmod(path, 0), 0);
	snprintf(path, sizeof(path), "%s/d", scene->copy);
	assert_int_equal(chmod(path, 0), 0);
	scene_begin_as_nobody(scene);
	result = scene_export(scene);
	scene_end_as_nobody();
	scene_must(scene, result);
	scene_expect_copy(scene, 4);
}

/* As one has left it that had come to its hard links. */
static void test_an_export_goes_on_with_links_that_are_there(void **state)
{
	struct scene *scene = *state;
	char path[256], link_path[256];
	struct stat status;

	scene_write_file(scene->source, "a", 5000, 1);
	snprintf(path, sizeof(path), "%s/a", scene->source);
	snprintf(link_path, sizeof(link_path), "%s/h", scene->source);
	assert_int_equal(link(path, link_path), 0);
	snprintf(path, sizeof(path), "%s/k", scene->source);
	assert_int_equal(symlink("nowhere", path), 0);
	scene_write_file(scene->source, "z", 2 << 20, 3);
	scene_must(scene, scene_import(scene, plain, false));
	export_without(scene, OSD_FIRST_ID + 1);
	/* One that has lost the file that it was. */
	snprintf(path, sizeof(path), "%s/h", scene->copy);
	assert_int_equal(unlink(path), 0);
	scene_write_file(scene->copy, "h", 5000, 1);
	snprintf(path, sizeof(path), "%s/k", scene->copy);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(scene_export(scene), -EEXIST);
	assert_int_equal(unlink(path), 0);
	scene_must(scene, scene_export(scene));
	scene_expect_copy(scene, 4);
	snprintf(path, sizeof(path), "%s/h", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_nlink, 2);
}

/* Holds the writer before it names the first file, until the export waits for it, or has gone on.
 */
static bool holds_writer, writer_is_held, export_went_on;

static bool is_set(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(bool *flag)
{
	__atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

int __real_renameat2(int from, const char *path, int to, const char *name, unsigned flags);
int __wrap_renameat2(int from, const char *path, int to, const char *name, unsigned flags);
int __wrap_renameat2(int from, const char *path, int to, const char *name, unsigned flags)
{
	set(&writer_is_held);
	while (holds_writer && !is_set(&export_went_on))
		sched_yield();
	return __real_renameat2(from, path, to, name, flags);
}

struct aside_task *__real_aside_take(struct aside *aside, bool wait);
struct aside_task *__wrap_aside_take(struct aside *aside, bool wait);
struct aside_task *__wrap_aside_take(struct aside *aside, bool wait)
{
	if (wait)
		set(&export_went_on);
	return __real_aside_take(aside, wait);
}

int __real_mkdirat(int root, const char *path, mode_t mode);
int __wrap_mkdirat(int root, const char *path, mode_t mode);
int __wrap_mkdirat(int root, const char *path, mode_t mode)
{
	int result;

	while (holds_writer && !is_set(&export_went_on) && !is_set(&writer_is_held))
		sched_yield();
	result = __real_mkdirat(root, path, mode);
	set(&export_went_on);
	return result;
}

static void test_an_export_makes_no_name_that_a_file_has_until_it_is_written(void **state)
{
	struct scene *scene = *state;
	char name[16];

	scene_write_file(scene->source, "a", 5000, 1);
	/* More than are under way, fewer than the writer may have: the first one has arrived. */
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "a.%02d", i);
		scene_write_file(scene->source, name, 100, (unsigned)i);
	}
	scene_make_directory(scene->source, "a.partial");
	scene_must(scene, scene_import(scene, plain, false));
	writer_is_held = export_went_on = false;
	holds_writer = true;
	scene_must(scene, scene_export(scene));
	holds_writer = false;
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 62);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_export_cut_off_at_any_command_goes_on),
		TEST(test_an_export_brings_files_again_that_the_host_has_lost),
		TEST(test_an_export_does_not_overwrite_what_somebody_has_changed),
		TEST(test_an_export_removes_no_files_but_those_it_has_not_completed),
		TEST(test_an_export_does_not_go_on_with_another_tree),
		TEST(test_a_second_export_does_not_go_on_with_one_that_runs),
		TEST(test_a_second_export_leaves_one_that_has_just_begun_its_marker),
		TEST(test_an_export_follows_no_link_where_a_directory_was),
		TEST(test_an_export_goes_on_where_the_tree_has_names_of_files_that_are_not_whole),
		TEST(test_an_export_does_not_begin_with_the_marker_of_one_that_ends),
		TEST(test_an_export_gives_the_root_its_status_before_it_takes_the_marker_away),
		TEST(test_an_export_gives_the_root_a_mode_that_shuts_its_owner_out),
		TEST(test_an_export_that_has_brought_nothing_leaves_nothing),
		TEST(test_an_export_keeps_whole_files_that_have_names_of_ones_that_are_not),
		TEST(test_an_export_goes_on_where_modes_shut_it_out),
		TEST(test_an_export_goes_on_with_links_that_are_there),
		TEST(test_an_export_makes_no_name_that_a_file_has_until_it_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
