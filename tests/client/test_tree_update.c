/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Trees that are imported again: what is the same stays, what differs is changed, and updates cut
 * off are found out.
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
#include "tests/client/local_target.h"
#include "tests/client/tree_scene.h"

static const struct tree_options plain, update = { .update = true },
					with_checksum = { .update = true, .checksum = true };

static const char *path_of(const struct scene *scene, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", scene->source, name);
	return path;
}

/* Bytes in the middle of a file become others. */
static void patch(const struct scene *scene, const char *name, off_t offset, size_t length)
{
	int fd = open(path_of(scene, name), O_WRONLY);
	uint8_t bytes[256];

	memset(bytes, 0xEE, sizeof(bytes));
	assert_true(fd >= 0 && length <= sizeof(bytes));
	assert_int_equal(pwrite(fd, bytes, length, offset), length);
	assert_int_equal(close(fd), 0);
}

static void expect_report(const struct scene *scene, uint64_t added, uint64_t changed,
			  uint64_t touched, uint64_t unchanged)
{
	assert_int_equal(scene->report.added, added);
	assert_int_equal(scene->report.changed, changed);
	assert_int_equal(scene->report.touched, touched);
	assert_int_equal(scene->report.unchanged, unchanged);
}

/* The object whose user name is this path. */
static struct memory_object *object_of(const struct scene *scene, const char *name)
{
	for (size_t i = 0; i < scene->osd.count; i++) {
		const struct memory_attribute *username =
			memory_osd_attribute(scene->osd.objects[i], OSD_USER_OBJECT_INFORMATION,
					     OSD_INFORMATION_USERNAME);

		if (username && username->length == strlen(name) &&
		    memcmp(username->value, name, username->length) == 0)
			return scene->osd.objects[i];
	}
	fail_msg("no object of %s", name);
	return NULL;
}

static void test_an_update_without_changes_writes_nothing(void **state)
{
	struct scene *scene = *state;
	uint64_t commands, manifest;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	expect_report(scene, 6, 0, 0, 0);
	manifest = scene->report.manifest_object;
	commands = scene->osd.commands;
	scene_must(scene, scene_import(scene, update, true));
	expect_report(scene, 0, 0, 0, 6);
	assert_int_equal(scene->report.sent_bytes, 0);
	assert_int_equal(scene->report.manifest_object, manifest);
	assert_true(scene->osd.commands - commands < 60);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 7);
	scene_expect_same_trees(scene, 10);
}

struct told {
	uint64_t files, bytes, within; /* `within`: calls for bytes of a file that is not done */
};

static void tell(void *context, uint64_t files, uint64_t bytes)
{
	struct told *told = context;

	told->files += files;
	told->bytes += bytes;
	told->within += files == 0 && bytes > 0;
}

static void test_progress_moves_within_long_files_and_ends_at_their_sum(void **state)
{
	const struct tree_options runs[] = { plain, with_checksum };
	struct scene *scene = *state;

	scene_write_file(scene->source, "long", (5 << 20) + 1, 1);
	scene_write_file(scene->source, "short", 1000, 2);
	for (size_t i = 0; i < 2; i++) {
		struct tree_options options = runs[i];
		struct told told = { 0 };

		options.progress = tell;
		options.context = &told;
		scene_must(scene, scene_import(scene, options, false));
		assert_int_equal(told.files, 2);
		assert_int_equal(told.bytes, (5 << 20) + 1 + 1000);
		assert_true(told.within >= 5);
	}
}

static void test_an_update_of_nothing_is_an_import(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, update, false));
	expect_report(scene, 6, 0, 0, 0);
	scene_expect_same_trees(scene, 10);
}

static void test_only_ranges_that_differ_are_sent_and_objects_stay_those_of_their_files(
	void **state)
{
	struct scene *scene = *state;
	uint64_t small, large;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	small = object_of(scene, "directory/file")->id;
	large = object_of(scene, "large")->id;
	patch(scene, "directory/file", 30000, 10);
	patch(scene, "large", 5000, 100);
	patch(scene, "large", 3 << 20, 17);
	scene_must(scene, scene_import(scene, update, false));
	expect_report(scene, 0, 2, 0, 4);
	/* 10 bytes; two pages, of which the second is the file's last 17 bytes. */
	assert_int_equal(scene->report.sent_bytes, 10 + 4096 + 17);
	assert_int_equal(object_of(scene, "directory/file")->id, small);
	assert_int_equal(object_of(scene, "large")->id, large);
	scene_expect_same_trees(scene, 10);
}

static void test_files_grow_shrink_come_and_go(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	assert_int_equal(truncate(path_of(scene, "large"), 5 << 20), 0);
	patch(scene, "large", (5 << 20) - 3, 3);
	assert_int_equal(truncate(path_of(scene, "directory/file"), 100), 0);
	assert_int_equal(unlink(path_of(scene, "one")), 0);
	scene_write_file(scene->source, "another", 3000, 77);
	scene_write_file(scene->source, "empty", 5, 78);
	scene_must(scene, scene_import(scene, update, false));
	expect_report(scene, 1, 3, 0, 2);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 7);
	scene_expect_same_trees(scene, 10);
	/* From long to short and back. */
	assert_int_equal(truncate(path_of(scene, "large"), 10), 0);
	scene_must(scene, scene_import(scene, update, false));
	assert_int_equal(object_of(scene, "large")->length, 10);
	scene_expect_same_trees(scene, 10);
	scene_write_file(scene->source, "large", 2 << 20, 79);
	scene_must(scene, scene_import(scene, update, false));
	scene_expect_same_trees(scene, 10);
}

static void test_modes_times_and_names_are_changes_of_attributes(void **state)
{
	struct scene *scene = *state;
	struct memory_object *renamed;
	char from[512];

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	renamed = object_of(scene, "one");
	assert_int_equal(chmod(path_of(scene, "large"), 0600), 0);
	snprintf(from, sizeof(from), "%s", path_of(scene, "one"));
	assert_int_equal(rename(from, path_of(scene, "directory/uno")), 0);
	scene_must(scene, scene_import(scene, update, false));
	expect_report(scene, 0, 0, 2, 4);
	assert_int_equal(scene->report.sent_bytes, 0);
	assert_ptr_equal(object_of(scene, "directory/uno"), renamed);
	scene_expect_same_trees(scene, 10);
}

static void test_the_same_length_and_time_is_taken_for_the_same_content_unless_told_otherwise(
	void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene_set_time(scene->source, "directory/file", 1000000000);
	scene_must(scene, scene_import(scene, plain, false));
	patch(scene, "directory/file", 100, 1);
	scene_set_time(scene->source, "directory/file", 1000000000);
	scene_must(scene, scene_import(scene, update, false));
	expect_report(scene, 0, 0, 0, 6);
	scene_must(scene, scene_import(scene, with_checksum, false));
	expect_report(scene, 0, 1, 0, 5);
	assert_int_equal(scene->report.sent_bytes, 1);
	scene_expect_same_trees(scene, 10);
}

static void remove_object(struct scene *scene, uint64_t id)
{
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);

	assert_int_equal(
		osd_client_remove(client, (struct osd_client_address){ PARTITION, id, 0 }, NULL),
		0);
	loopback_stop(loopback, client);
}

static void test_what_others_removed_or_cut_comes_back(void **state)
{
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback;
	uint64_t cut;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	remove_object(scene, object_of(scene, "one")->id);
	cut = object_of(scene, "directory/file")->id;
	loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	assert_int_equal(osd_client_truncate(
				 client, (struct osd_client_address){ PARTITION, cut, 0 }, 9, NULL),
			 0);
	loopback_stop(loopback, client);
	scene_must(scene, scene_import(scene, update, false));
	expect_report(scene, 1, 1, 0, 4);
	scene_expect_same_trees(scene, 10);
}

static void test_a_link_that_becomes_a_file_of_its_own_gets_an_object_of_its_own(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	assert_int_equal(unlink(path_of(scene, "directory/other name")), 0);
	scene_write_file(scene->source, "directory/other name", 4000, 9);
	scene_must(scene, scene_import(scene, update, false));
	scene_expect_same_trees(scene, 10);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 8);
}

static void test_a_tree_that_was_there_is_updated_when_told_so_only(void **state)
{
	struct scene *scene = *state;

	scene_write_file(scene->source, "a", 10, 1);
	scene_must(scene, scene_import(scene, plain, false));
	assert_int_equal(scene_import(scene, plain, false), -EEXIST);
	assert_non_null(strstr(scene->error.sentence.text, "--update"));
}

static void test_a_target_that_lists_ids_alone_is_asked_for_each_object(void **state)
{
	struct scene *scene = *state;
	uint64_t file;

	scene->osd.lists_ids_alone = true;
	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	file = object_of(scene, "directory/file")->id;
	patch(scene, "directory/file", 30000, 10);
	assert_int_equal(truncate(path_of(scene, "large"), 3 << 20), 0);
	remove_object(scene, object_of(scene, "one")->id);
	scene_must(scene, scene_import(scene, update, false));
	expect_report(scene, 1, 2, 0, 3);
	assert_int_equal(scene->report.sent_bytes, 10 + 1);
	assert_int_equal(object_of(scene, "directory/file")->id, file);
	scene_expect_same_trees(scene, 10);
}

static void test_an_object_without_a_length_is_an_error_and_not_an_empty_one(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	patch(scene, "directory/file", 30000, 10);
	scene->osd.lists_no_values = true;
	assert_int_equal(scene_import(scene, update, false), -EPROTO);
	assert_non_null(strstr(scene->error.sentence.text, "length of object 0x"));
	assert_int_equal(scene->report.sent_bytes, 0);
	scene->osd.lists_no_values = false;
	scene_must(scene, scene_import(scene, update, false));
	scene_expect_same_trees(scene, 10);
}

static void execute_locally(void *context, struct loopback_command *command)
{
	local_target_execute(context, 1, command);
}

static void test_an_update_by_commands_of_osd1_changes_what_differs(void **state)
{
	struct tree_options options = { .chunk_bytes = 1 << 18, .log_fd = -1 };
	struct scene *scene = *state;
	struct local_target target;

	scene_make_tree(scene);
	local_target_open(&target, 64 << 20, (const uint8_t[16]){ 1 }, NULL);
	local_target_start(&target, OSD_1, execute_locally, &target);
	scene_must(scene, tree_import(target.client, PARTITION, scene->source, &options,
				      &scene->report, &scene->error));
	patch(scene, "directory/file", 30000, 10);
	patch(scene, "large", 5000, 100);
	options.update = true;
	scene_must(scene, tree_import(target.client, PARTITION, scene->source, &options,
				      &scene->report, &scene->error));
	expect_report(scene, 0, 2, 0, 4);
	assert_int_equal(scene->report.sent_bytes, 10 + 4096);
	options.update = false;
	scene_must(scene,
		   tree_export(target.client, (struct osd_client_address){ .partition = PARTITION },
			       scene->copy, &options, &scene->report, &scene->error));
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 10);
	local_target_close(&target);
}

/* What an update has to do, all at once. */
static void change_tree(const struct scene *scene)
{
	char from[512];

	patch(scene, "large", 1 << 20, 50);
	patch(scene, "large", 0, 50);
	patch(scene, "directory/file", 40000, 20);
	assert_int_equal(unlink(path_of(scene, "one")), 0);
	snprintf(from, sizeof(from), "%s", path_of(scene, "empty"));
	assert_int_equal(rename(from, path_of(scene, "void")), 0);
	scene_write_file(scene->source, "new", 1000, 50);
}

static void test_an_update_cut_off_at_any_command_is_found_out_and_can_be_repeated(void **state)
{
	struct scene *scene = *state;
	uint64_t after, refused = 0;
	bool finished = false;

	for (after = 1; !finished; after++) {
		int exported;

		memory_osd_free(&scene->osd);
		scene->osd = (struct memory_osd){ 0 };
		scene_remove_tree(scene->source);
		assert_int_equal(mkdir(scene->source, 0755), 0);
		scene_make_tree(scene);
		scene_must(scene, scene_import(scene, plain, false));
		change_tree(scene);
		scene->osd.dies_at = scene->osd.commands + after;
		scene->osd.executes_the_last = after % 2;
		finished = scene_import(scene, update, false) == 0;
		scene->osd.dies_at = 0;
		/* The old tree, the new one, or an error that tells what to do: never a mixture. */
		scene_remove_tree(scene->copy);
		exported = scene_export(scene);
		if (exported == -EINPROGRESS) {
			assert_non_null(strstr(scene->error.sentence.text, "--update"));
			refused++;
		} else {
			scene_must(scene, exported);
		}
		scene_must(scene, scene_import(scene, update, false));
		scene_expect_same_trees(scene, 10);
		assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 7);
	}
	assert_true(after > 30);
	assert_true(refused > 5);
}

static void test_a_device_that_is_full_leaves_the_old_tree(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, plain, false));
	change_tree(scene);
	scene->osd.objects_max = scene->osd.count;
	assert_int_equal(scene_import(scene, update, false), -ENOSPC);
	scene_must(scene, scene_export(scene));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_update_without_changes_writes_nothing),
		TEST(test_progress_moves_within_long_files_and_ends_at_their_sum),
		TEST(test_an_update_of_nothing_is_an_import),
		TEST(test_only_ranges_that_differ_are_sent_and_objects_stay_those_of_their_files),
		TEST(test_files_grow_shrink_come_and_go),
		TEST(test_modes_times_and_names_are_changes_of_attributes),
		TEST(test_the_same_length_and_time_is_taken_for_the_same_content_unless_told_otherwise),
		TEST(test_what_others_removed_or_cut_comes_back),
		TEST(test_a_link_that_becomes_a_file_of_its_own_gets_an_object_of_its_own),
		TEST(test_a_tree_that_was_there_is_updated_when_told_so_only),
		TEST(test_a_target_that_lists_ids_alone_is_asked_for_each_object),
		TEST(test_an_object_without_a_length_is_an_error_and_not_an_empty_one),
		TEST(test_an_update_by_commands_of_osd1_changes_what_differs),
		TEST(test_an_update_cut_off_at_any_command_is_found_out_and_can_be_repeated),
		TEST(test_a_device_that_is_full_leaves_the_old_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
