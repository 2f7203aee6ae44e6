/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Imports that are interrupted, at every command, and begun again: what is whole is not sent again,
 * and nothing else is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/client/tree_scene.h"

enum { OBJECTS = 7, NAMES = 10 }; /* of scene_make_tree */

static const struct tree_options plain, update = { .update = true }, replace = { .replace = true };

static bool is_whole_file(const struct memory_object *object)
{
	static const char manifest[] = "muninn-tree";
	const struct memory_attribute *path =
		memory_osd_attribute(object, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_USERNAME);

	if (path && path->length == strlen(manifest) &&
	    memcmp(path->value, manifest, path->length) == 0)
		return false;
	return memory_osd_attribute(object, TREE_OBJECT_PAGE, TREE_OBJECT_COMPLETE) &&
	       memory_osd_attribute(object, TREE_OBJECT_PAGE, TREE_OBJECT_STATUS);
}

struct whole {
	uint64_t files, bytes;
};

/* What the interrupted import has stored. */
static struct whole count_whole(const struct scene *scene)
{
	struct whole whole = { 0, 0 };

	for (size_t i = 0; i < scene->osd.count; i++)
		if (is_whole_file(scene->osd.objects[i])) {
			whole.files++;
			whole.bytes += scene->osd.objects[i]->length;
		}
	return whole;
}

static bool has_tree(struct scene *scene)
{
	const struct memory_object *partition = memory_osd_find(&scene->osd, PARTITION, 0);

	return partition &&
	       memory_osd_attribute(partition, TREE_PARTITION_PAGE, TREE_PARTITION_MANIFEST);
}

/* Cuts an import off at a command. False: it has come to its end, or the tree is there. */
static bool cut_off(struct scene *scene, struct tree_options options, uint64_t command)
{
	int result;

	scene->osd.dies_at = scene->osd.commands + command;
	scene->osd.executes_the_last = command % 2;
	result = scene_import(scene, options, false);
	scene->osd.dies_at = 0;
	return result < 0;
}

static void cut_off_at_any_command(struct scene *scene)
{
	uint64_t command = 0, resumed = 0;

	scene_make_tree(scene);
	for (;;) {
		struct whole whole;
		uint64_t all;
		bool lists_ids_alone = scene->osd.lists_ids_alone;

		memory_osd_free(&scene->osd);
		scene->osd.lists_ids_alone = lists_ids_alone;
		if (!cut_off(scene, plain, ++command))
			break;
		if (has_tree(scene))
			continue;
		whole = count_whole(scene);
		scene_must(scene, scene_import(scene, plain, false));
		all = scene->report.bytes;
		assert_int_equal(scene->report.resumed, whole.files);
		assert_int_equal(scene->report.resumed + scene->report.added, 6);
		assert_true(scene->report.sent_bytes <= all - whole.bytes);
		assert_int_equal(memory_osd_count(&scene->osd, PARTITION), OBJECTS);
		scene_expect_same_trees(scene, NAMES);
		resumed += whole.files;
	}
	assert_true(command > 20);
	assert_true(resumed > 20);
}

static void test_an_import_cut_off_at_any_command_goes_on(void **state)
{
	cut_off_at_any_command(*state);
}

static void test_an_import_goes_on_at_a_target_that_lists_ids_alone(void **state)
{
	struct scene *scene = *state;

	scene->osd.lists_ids_alone = true;
	cut_off_at_any_command(scene);
}

/* Each time a little further, until it is done. */
static void test_an_import_cut_off_again_and_again_comes_to_its_end(void **state)
{
	struct scene *scene = *state;
	struct whole before = { 0, 0 }, now;
	int times = 0;

	for (int i = 0; i < 100; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%02d", i);
		scene_write_file(scene->source, name, 500 + (size_t)i, (unsigned)i);
	}
	while (cut_off(scene, plain, 60)) {
		now = count_whole(scene);
		assert_true(now.files >= before.files);
		assert_true(memory_osd_count(&scene->osd, PARTITION) <= 102);
		before = now;
		assert_in_range(++times, 1, 20);
	}
	assert_true(times > 1);
	assert_true(scene->report.resumed > 0);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 101);
	scene_expect_same_trees(scene, 100);
}

/* An import of which a lot is there: all files, and no manifest. */
static void store_without_manifest(struct scene *scene)
{
	struct memory_object *partition;

	scene_must(scene, scene_import(scene, plain, false));
	partition = memory_osd_find(&scene->osd, PARTITION, 0);
	for (size_t i = 0; i < partition->attribute_count; i++)
		if (partition->attributes[i].page == TREE_PARTITION_PAGE)
			partition->attributes[i].page = 0x30055555;
	assert_false(has_tree(scene));
}

static void test_files_that_have_changed_meanwhile_are_not_taken_for_those_stored(void **state)
{
	struct scene *scene = *state;
	char path[256];

	scene_write_file(scene->source, "changed", 5000, 1);
	scene_write_file(scene->source, "changed-long", 3 << 20, 2);
	scene_write_file(scene->source, "same", 5000, 3);
	scene_write_file(scene->source, "vanished", 5000, 4);
	scene_set_time(scene->source, "changed", 1000);
	scene_set_time(scene->source, "changed-long", 1000);
	store_without_manifest(scene);
	/* Length and time are the same. */
	scene_write_file(scene->source, "changed", 5000, 5);
	scene_write_file(scene->source, "changed-long", 3 << 20, 6);
	scene_write_file(scene->source, "vanished-not", 6000, 7);
	scene_set_time(scene->source, "changed", 1000);
	scene_set_time(scene->source, "changed-long", 1000);
	snprintf(path, sizeof(path), "%s/vanished", scene->source);
	assert_int_equal(unlink(path), 0);
	scene_must(scene, scene_import(scene, plain, false));
	assert_int_equal(scene->report.resumed, 1);
	assert_int_equal(scene->report.added, 3);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 5);
	scene_expect_same_trees(scene, 4);
}

static void test_of_a_long_file_that_has_changed_meanwhile_what_differs_is_sent(void **state)
{
	struct scene *scene = *state;
	char path[256];
	int fd;

	scene_write_file(scene->source, "long", 3 << 20, 1);
	store_without_manifest(scene);
	snprintf(path, sizeof(path), "%s/long", scene->source);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "changed", 7, 2 << 20), 7);
	assert_int_equal(close(fd), 0);
	scene_must(scene, scene_import(scene, plain, false));
	assert_int_equal(scene->report.added, 1);
	assert_in_range(scene->report.sent_bytes, 7, 1 << 18);
	scene_expect_same_trees(scene, 1);
}

static void test_a_long_file_goes_on_where_it_was_cut_off(void **state)
{
	struct scene *scene = *state;
	uint64_t command = 0, least = UINT64_MAX;

	scene_write_file(scene->source, "long", 8 << 20, 1);
	while (cut_off(scene, plain, ++command)) {
		if (has_tree(scene)) {
			memory_osd_free(&scene->osd);
			continue;
		}
		scene_must(scene, scene_import(scene, plain, false));
		if (scene->report.sent_bytes)
			least = min_u64(least, scene->report.sent_bytes);
		assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 2);
		scene_expect_same_trees(scene, 1);
		memory_osd_free(&scene->osd);
	}
	assert_true(least <= 1 << 20);
}

static void test_an_interrupted_update_and_replacement_go_on(void **state)
{
	const struct tree_options *const runs[] = { &update, &replace };
	struct scene *scene = *state;

	for (size_t i = 0; i < 2; i++) {
		uint64_t stored, command = 0, resumed = 0;

		scene_remove_tree(scene->source);
		assert_int_equal(mkdir(scene->source, 0700), 0);
		memory_osd_free(&scene->osd);
		scene_write_file(scene->source, "old", 700, 1);
		scene_must(scene, scene_import(scene, plain, false));
		for (int n = 0; n < 40; n++) {
			char name[16];

			snprintf(name, sizeof(name), "new-%02d", n);
			scene_write_file(scene->source, name, 500 + (size_t)n, (unsigned)n);
		}
		while (cut_off(scene, *runs[i], ++command * 10)) {
			resumed = max_u64(resumed, scene->report.resumed);
			stored = count_whole(scene).files - 1;
			/* The tree that was there is the present one until the very end. */
			scene_remove_tree(scene->copy);
			scene_must(scene, scene_export(scene));
			assert_true(scene->report.files == 1 || stored >= 40);
			assert_true(command < 20);
			/* It need not be marked, though attributes of what is left change. */
			scene_set_time(scene->source, "new-00", (time_t)command * 1000);
		}
		assert_true(max_u64(resumed, scene->report.resumed) >= 10);
		assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 42);
		scene_expect_same_trees(scene, 41);
	}
}

static void test_cleaning_removes_what_an_interrupted_import_has_left(void **state)
{
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback;

	scene_make_tree(scene);
	store_without_manifest(scene);
	loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	scene->report.removed = 0;
	assert_int_equal(tree_clean(client, PARTITION, &scene->report, &scene->error), 0);
	loopback_stop(loopback, client);
	assert_int_equal(scene->report.removed, OBJECTS);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 0);
	store_without_manifest(scene);
	scene_must(scene, scene_import(scene, (struct tree_options){ .clean = true }, false));
	assert_int_equal(scene->report.removed, OBJECTS);
	assert_int_equal(scene->report.resumed, 0);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), OBJECTS);
}

static const char *const vanishing[] = { "short", "long", "other-name" };

static void move_away(void *context, struct loopback_command *command)
{
	struct scene *scene = context;

	for (size_t i = 0; i < 3; i++) {
		char from[256], to[256];

		snprintf(from, sizeof(from), "%s/%s", scene->source, vanishing[i]);
		snprintf(to, sizeof(to), "%s/%s", scene->folder, vanishing[i]);
		(void)rename(from, to);
	}
	memory_osd_execute(&scene->osd, command);
}

/* It may be the only copy that there still is. Of one with another name nobody knows that it is. */
static void test_a_file_that_is_stored_and_can_not_be_read_any_more_stays(void **state)
{
	const struct tree_options options = { .chunk_bytes = 1 << 18, .log_fd = -1 };
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback;
	char name[256], other_name[256];

	scene_write_file(scene->source, "same", 5000, 1);
	scene_write_file(scene->source, "short", 6000, 2);
	scene_write_file(scene->source, "long", 3 << 20, 3);
	scene_write_file(scene->source, "name", 7000, 4);
	store_without_manifest(scene);
	snprintf(name, sizeof(name), "%s/name", scene->source);
	snprintf(other_name, sizeof(other_name), "%s/other-name", scene->source);
	assert_int_equal(rename(name, other_name), 0);
	loopback = loopback_start(move_away, scene, OSD_2, &client);
	scene_must(scene, tree_import(client, PARTITION, scene->source, &options, &scene->report,
				      &scene->error));
	loopback_stop(loopback, client);
	assert_int_equal(scene->report.left_out, 3);
	assert_int_equal(scene->report.files, 3);
	for (size_t i = 0; i < 2; i++) {
		char from[256], to[256];

		snprintf(from, sizeof(from), "%s/%s", scene->folder, vanishing[i]);
		snprintf(to, sizeof(to), "%s/%s", scene->source, vanishing[i]);
		assert_int_equal(rename(from, to), 0);
	}
	scene_expect_same_trees(scene, 3);
}

static uint8_t first_byte(struct scene *scene, uint64_t id)
{
	return memory_osd_find(&scene->osd, PARTITION, id)->data[0];
}

/* What an interrupted update has stored is all that there is of the file. */
static void test_a_file_that_an_interrupted_update_has_stored_stays_when_it_can_not_be_read(
	void **state)
{
	const struct tree_options options = { .chunk_bytes = 1 << 18,
					      .log_fd = -1,
					      .update = true };
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback;
	char from[256], to[256];
	uint64_t command = 0;
	uint8_t before;

	scene_write_file(scene->source, "same", 5000, 1);
	scene_write_file(scene->source, "short", 6000, 2);
	scene_set_time(scene->source, "short", 1000);
	scene_must(scene, scene_import(scene, plain, false));
	before = first_byte(scene, OSD_FIRST_ID + 1);
	scene_write_file(scene->source, "short", 6500, 3);
	scene_set_time(scene->source, "short", 1000);
	do
		assert_true(cut_off(scene, update, ++command));
	while (first_byte(scene, OSD_FIRST_ID + 1) == before);
	loopback = loopback_start(move_away, scene, OSD_2, &client);
	scene_must(scene, tree_import(client, PARTITION, scene->source, &options, &scene->report,
				      &scene->error));
	loopback_stop(loopback, client);
	assert_int_equal(scene->report.left_out, 1);
	assert_int_equal(scene->report.bytes, 5000 + 6500);
	snprintf(from, sizeof(from), "%s/short", scene->folder);
	snprintf(to, sizeof(to), "%s/short", scene->source);
	assert_int_equal(rename(from, to), 0);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 2);
}

/* Another import stores its tree, and removes what it does not know, while this one is at work. */
static void store_a_tree_of_another(void *context, struct loopback_command *command)
{
	struct scene *scene = context;
	struct osd_cdb cdb;
	uint16_t field;

	memory_osd_execute(&scene->osd, command);
	if (osd_cdb_decode(command->cdb, command->cdb_length, &cdb, &field) == 0 &&
	    cdb.action == OSD_CREATE_AND_WRITE && !has_tree(scene))
		scene_must(scene, scene_import(scene, plain, false));
}

static void test_an_import_does_not_put_its_tree_in_the_place_of_another_new_one(void **state)
{
	struct tree_options options = { .chunk_bytes = 1 << 18, .log_fd = -1 };
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback;
	struct tree_report report;
	struct osd_client_error error;

	scene_make_tree(scene);
	loopback = loopback_start(store_a_tree_of_another, scene, OSD_2, &client);
	assert_int_equal(tree_import(client, PARTITION, scene->source, &options, &report, &error),
			 -EEXIST);
	loopback_stop(loopback, client);
	scene_expect_same_trees(scene, NAMES);
}

static unsigned questions, stopped_at;

static bool stop(void)
{
	return ++questions >= stopped_at;
}

static void count_warning(void *context, const char *sentence)
{
	(void)sentence;
	++*(int *)context;
}

/* Files that nobody waits for any more are not ones that can't be read. */
static void test_an_import_that_is_stopped_as_it_goes_on_leaves_no_file_out(void **state)
{
	struct scene *scene = *state;
	int warnings = 0, result;
	const struct tree_options options = {
		.chunk_bytes = 1 << 18, .log_fd = -1, .warn = count_warning, .context = &warnings
	};
	struct osd_client *client;
	struct loopback *loopback;

	scene_write_file(scene->source, "small", 5000, 1);
	scene_write_file(scene->source, "long", 3 << 20, 2);
	store_without_manifest(scene);
	stopped_at = 0;
	do {
		questions = 0;
		stopped_at++;
		loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
		osd_client_stop_when(client, stop);
		result = tree_import(client, PARTITION, scene->source, &options, &scene->report,
				     &scene->error);
		loopback_stop(loopback, client);
		if (result < 0)
			assert_int_equal(result, -ECANCELED);
		assert_int_equal(warnings, 0);
		assert_int_equal(scene->report.left_out, 0);
	} while (result < 0);
	assert_true(stopped_at > 20);
	assert_int_equal(scene->report.resumed, 2);
	scene_expect_same_trees(scene, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_import_cut_off_at_any_command_goes_on),
		TEST(test_an_import_goes_on_at_a_target_that_lists_ids_alone),
		TEST(test_an_import_cut_off_again_and_again_comes_to_its_end),
		TEST(test_files_that_have_changed_meanwhile_are_not_taken_for_those_stored),
		TEST(test_of_a_long_file_that_has_changed_meanwhile_what_differs_is_sent),
		TEST(test_a_long_file_goes_on_where_it_was_cut_off),
		TEST(test_an_interrupted_update_and_replacement_go_on),
		TEST(test_cleaning_removes_what_an_interrupted_import_has_left),
		TEST(test_a_file_that_is_stored_and_can_not_be_read_any_more_stays),
		TEST(test_a_file_that_an_interrupted_update_has_stored_stays_when_it_can_not_be_read),
		TEST(test_an_import_does_not_put_its_tree_in_the_place_of_another_new_one),
		TEST(test_an_import_that_is_stopped_as_it_goes_on_leaves_no_file_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
