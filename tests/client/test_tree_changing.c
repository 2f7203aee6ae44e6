/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Imports of directories in which others remove and change files meanwhile. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/client/tree_scene.h"

static const struct tree_options plain, with_checksum = { .update = true, .checksum = true };

struct meddler {
	const struct scene *scene;
	int changes; /* so many are still to come */
	int64_t time_ns;
	bool is_late; /* the time had come before the file was opened, perhaps */
	unsigned warnings;
	char warned[1024];
};

static void note_warning(void *context, const char *sentence)
{
	struct meddler *meddler = context;

	meddler->warnings++;
	snprintf(meddler->warned, sizeof(meddler->warned), "%s", sentence);
}

static void in_source(const struct meddler *meddler, const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s", meddler->scene->source, name);
}

/* Behind the walk. */
static void remove_some(void *context, uint64_t files, uint64_t bytes)
{
	char path[256];

	(void)files;
	(void)bytes;
	in_source(context, "b", path);
	assert_int_equal(unlink(path), 0);
	in_source(context, "c", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
}

/* While a long file is read. */
static void change_long(void *context, uint64_t files, uint64_t bytes)
{
	struct meddler *meddler = context;

	(void)bytes;
	if (files || !meddler->changes)
		return;
	meddler->changes--;
	scene_write_file(meddler->scene->source, "long", (3 << 20) + 1 + (size_t)meddler->changes,
			 7);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void set_time(const struct meddler *meddler)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = meddler->time_ns / 1000000000,
				       .tv_nsec = meddler->time_ns % 1000000000 } };
	char path[256];

	in_source(meddler, "long", path);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Behind the walk. */
static void date_ahead(void *context, uint64_t files, uint64_t bytes)
{
	struct meddler *meddler = context;

	(void)files;
	(void)bytes;
	meddler->time_ns = now_ns() + 300000000;
	set_time(meddler);
}

/* While a long file is read, whose time comes meanwhile: as if it was written twice at that time.
 */
static void change_at_the_same_time(void *context, uint64_t files, uint64_t bytes)
{
	struct meddler *meddler = context;

	(void)bytes;
	if (files || !meddler->changes)
		return;
	meddler->changes--;
	meddler->is_late = now_ns() >= meddler->time_ns;
	while (now_ns() < meddler->time_ns)
		;
	scene_write_file(meddler->scene->source, "long", 3 << 20, 7);
	set_time(meddler);
}

static struct tree_options watched(struct tree_options options, struct meddler *meddler)
{
	options.warn = note_warning;
	options.context = meddler;
	return options;
}

static void write_four(const struct scene *scene, unsigned seed)
{
	char path[256], other[256];

	scene_write_file(scene->source, "a", 10, seed);
	scene_write_file(scene->source, "b", 20, seed + 1);
	scene_write_file(scene->source, "c", 3 << 20, seed + 2);
	scene_write_file(scene->source, "d", 40, seed + 3);
	for (const char *name = "bd"; *name; name++) {
		snprintf(path, sizeof(path), "%s/%c", scene->source, *name);
		snprintf(other, sizeof(other), "%s/link-%c", scene->source, *name);
		unlink(other);
		assert_int_equal(link(path, other), 0);
	}
}

static void test_files_that_vanish_are_left_out_with_their_links(void **state)
{
	struct scene *scene = *state;
	struct meddler meddler = { .scene = scene };
	struct tree_options options = watched(plain, &meddler);
	char path[256];

	write_four(scene, 1);
	options.total = remove_some;
	scene_must(scene, scene_import(scene, options, false));
	assert_int_equal(meddler.warnings, 2);
	assert_non_null(strstr(meddler.warned, "/c: it is no file any more; it is left out"));
	assert_int_equal(scene->report.left_out, 3);
	assert_int_equal(scene->report.files, 2);
	assert_int_equal(scene->report.bytes, 50);
	assert_int_equal(scene->report.hard_links, 1);
	scene_must(scene, scene_export(scene));
	in_source(&meddler, "c", path);
	unlink(path);
	in_source(&meddler, "link-b", path);
	unlink(path);
	scene_expect_copy(scene, 3);
}

static void test_in_an_update_files_that_vanish_stay_as_they_were(void **state)
{
	struct scene *scene = *state;
	struct meddler meddler = { .scene = scene };
	struct tree_options options = watched(with_checksum, &meddler);
	struct stat status;
	char path[256];

	write_four(scene, 1);
	scene_must(scene, scene_import(scene, plain, false));
	scene_write_file(scene->source, "d", 44, 9);
	options.total = remove_some;
	scene_must(scene, scene_import(scene, options, false));
	assert_int_equal(scene->report.left_out, 2);
	assert_non_null(strstr(meddler.warned, "it stays as it was stored"));
	assert_int_equal(scene->report.bytes, 10 + 20 + (3 << 20) + 44);
	/* The export compares all with the manifest's checksums. */
	scene_must(scene, scene_export(scene));
	snprintf(path, sizeof(path), "%s/c", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 3 << 20);
	snprintf(path, sizeof(path), "%s/d", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 44);
}

/* Once, or without an end. */
static void import_while_it_changes(struct scene *scene, const struct tree_options *how, bool once)
{
	struct meddler meddler = { .scene = scene, .changes = once ? 1 : 1000 };
	uint64_t torn = once ? 0 : 1;
	struct tree_options options = watched(*how, &meddler);

	options.progress = change_long;
	scene_must(scene, scene_import(scene, options, false));
	assert_true(meddler.changes < (once ? 1 : 999));
	assert_int_equal(scene->report.torn, torn);
	assert_int_equal(meddler.warnings, torn);
	if (torn)
		assert_non_null(strstr(meddler.warned, "long: it changed while it was read"));
	scene_remove_tree(scene->copy);
	scene_must(scene, scene_export(scene));
	if (!torn)
		assert_int_equal(scene_compare_trees(scene->source, scene->copy), 2);
}

static void test_a_long_file_that_changes_is_read_again_and_at_last_stored_with_a_warning(
	void **state)
{
	static const struct tree_options again = { .replace = true };
	struct scene *scene = *state;

	scene_write_file(scene->source, "long", 3 << 20, 1);
	scene_write_file(scene->source, "short", 10, 1);
	import_while_it_changes(scene, &plain, true);
	import_while_it_changes(scene, &again, false);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 3);
	/* Read for the comparison twice, then as a new one, whose second reading is quiet. */
	scene_write_file(scene->source, "long", 3 << 20, 2);
	import_while_it_changes(scene, &with_checksum, true);
	scene_write_file(scene->source, "long", 3 << 20, 3);
	import_while_it_changes(scene, &with_checksum, false);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 3);
}

static void test_a_change_that_leaves_length_and_time_is_found(void **state)
{
	struct scene *scene = *state;
	struct meddler meddler = { .scene = scene };
	struct tree_options options = watched((struct tree_options){ .replace = true }, &meddler);

	options.total = date_ahead;
	options.progress = change_at_the_same_time;
	do {
		meddler.changes = 1;
		scene_write_file(scene->source, "long", 3 << 20, 1);
		scene_must(scene, scene_import(scene, options, false));
		assert_int_equal(meddler.changes, 0);
	} while (meddler.is_late);
	assert_int_equal(meddler.warnings, 0);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 1);
}

/* The time of a file goes on, without an end. */
struct writer {
	char path[256];
	bool ends;
};

static void *write_on(void *context)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1 } };
	struct writer *writer = context;

	while (!__atomic_load_n(&writer->ends, __ATOMIC_RELAXED)) {
		times[1].tv_nsec = (times[1].tv_nsec + 1) % 1000000000;
		utimensat(AT_FDCWD, writer->path, times, 0);
	}
	return NULL;
}

static void test_a_small_file_that_changes_all_the_time_is_stored_with_a_warning(void **state)
{
	const struct tree_options runs[] = { { .replace = true }, with_checksum };
	struct scene *scene = *state;
	struct meddler meddler = { .scene = scene };
	struct writer writer = { .ends = false };
	pthread_t thread;

	scene_write_file(scene->source, "small", 100000, 1);
	in_source(&meddler, "small", writer.path);
	assert_int_equal(pthread_create(&thread, NULL, write_on, &writer), 0);
	for (size_t i = 0; i < 2; i++) {
		meddler.warnings = 0;
		/* Now and then it is read between two changes. */
		do
			scene_must(scene, scene_import(scene, watched(runs[i], &meddler), false));
		while (scene->report.torn == 0);
		assert_int_equal(meddler.warnings, 1);
		scene_remove_tree(scene->copy);
		scene_must(scene, scene_export(scene));
	}
	__atomic_store_n(&writer.ends, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files_that_vanish_are_left_out_with_their_links),
		TEST(test_in_an_update_files_that_vanish_stay_as_they_were),
		TEST(test_a_long_file_that_changes_is_read_again_and_at_last_stored_with_a_warning),
		TEST(test_a_change_that_leaves_length_and_time_is_found),
		TEST(test_a_small_file_that_changes_all_the_time_is_stored_with_a_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
