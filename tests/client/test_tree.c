/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Directory trees into a partition and back, and imports that are cut off at every command. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/sha.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "tests/client/tree_scene.h"

static void test_a_tree_comes_back_as_it_was(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	assert_int_equal(scene->report.files, 6);
	assert_int_equal(scene->report.directories, 3);
	assert_int_equal(scene->report.symlinks, 1);
	assert_int_equal(scene->report.hard_links, 1);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene->report.files, 6);
	assert_int_equal(scene->report.hard_links, 1);
	scene_expect_copy(scene, 10);
}

static void test_objects_ascend_from_the_first_free_id(void **state)
{
	struct scene *scene = *state;
	char name[32];

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "%03d", i);
		scene_write_file(scene->source, name, (size_t)i, (unsigned)i);
	}
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 301);
	for (uint64_t i = 0; i < 300; i++) {
		const struct memory_object *object =
			memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + i);

		assert_non_null(object);
		assert_int_equal(object->length, i);
	}
	assert_int_equal(scene->report.manifest_object, OSD_FIRST_ID + 300);
	/* Behind a lonely high ID, too. */
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = true }, false));
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 301);
	assert_null(memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + 300));
	assert_non_null(memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + 301));
}

static void test_zeros_become_holes_again(void **state)
{
	struct scene *scene = *state;
	struct stat status;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/sparse", scene->source);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(pwrite(fd, "x", 1, 5 << 20), 1);
	assert_int_equal(ftruncate(fd, 9 << 20), 0);
	close(fd);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	scene_must(scene, scene_export(scene));
	scene_compare_trees(scene->source, scene->copy);
	snprintf(path, sizeof(path), "%s/sparse", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 9 << 20);
	assert_true(status.st_blocks * 512 < 1 << 20);
}

static void test_a_partition_with_a_tree_is_not_overwritten_by_chance(void **state)
{
	struct scene *scene = *state;

	scene_write_file(scene->source, "a", 10, 1);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	assert_int_equal(scene_import(scene, (struct tree_options){ .replace = false }, false),
			 -EEXIST);
	assert_non_null(strstr(scene->error.sentence.text, "--replace"));
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 2);
}

static void test_replacing_leaves_the_new_tree_only_and_spares_other_objects(void **state)
{
	const uint8_t foreign[] = "not an import's";
	struct osd_client_address address = { PARTITION, 0x50000, 0 };
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback;

	scene_make_tree(scene);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	assert_int_equal(osd_client_create_and_write(client, PARTITION, address.object, foreign,
						     sizeof(foreign), NULL, NULL),
			 0);
	loopback_stop(loopback, client);
	scene_write_file(scene->source, "new", 10, 1);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = true }, false));
	assert_int_equal(scene->report.removed, 7);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 7 + 1 + 1);
	assert_non_null(memory_osd_find(&scene->osd, PARTITION, address.object));
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 11);
}

static void test_ids_taken_by_others_meanwhile_are_passed_over(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene->osd.thief_every = 2;
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	assert_true(memory_osd_count(&scene->osd, PARTITION) > 7);
	scene_must(scene, scene_export(scene));
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), 10);
}

/* ---- damage ---- */

static void test_damaged_content_is_noticed(void **state)
{
	struct scene *scene = *state;
	struct memory_object *object;

	scene_write_file(scene->source, "small", 5000, 4);
	scene_write_file(scene->source, "zlarge", 2 << 20, 5);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	object = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID);
	object->data[4999] ^= 1;
	assert_int_equal(scene_export(scene), -EBADMSG);
	assert_non_null(strstr(scene->error.sentence.text, "small"));
	object->data[4999] ^= 1;
	object = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + 1);
	object->data[1 << 20] ^= 1;
	scene_remove_tree(scene->copy);
	assert_int_equal(scene_export(scene), -EBADMSG);
	assert_non_null(strstr(scene->error.sentence.text, "zlarge"));
}

static void test_objects_of_another_length_are_noticed(void **state)
{
	struct scene *scene = *state;
	struct memory_object *object;

	scene_write_file(scene->source, "small", 5000, 4);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	object = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID);
	/* Longer: the bytes that the manifest knows are all right. */
	object->data = realloc(object->data, 6000);
	memset(object->data + 5000, 0, 1000);
	object->length = 6000;
	assert_int_equal(scene_export(scene), -EBADMSG);
	object->length = 4999;
	scene_remove_tree(scene->copy);
	assert_int_equal(scene_export(scene), -EBADMSG);
}

/* Fails unless the export brings these files, and nothing under other names. */
static void expect_all_but(struct scene *scene, int result, const char *files)
{
	char name[2] = "", path[256];

	scene_remove_tree(scene->copy);
	assert_int_equal(scene_export(scene), result);
	assert_true(scene->report.brought_the_rest);
	for (name[0] = 'a'; name[0] <= 'f'; name[0]++) {
		snprintf(path, sizeof(path), "%s/%s", scene->copy, name);
		assert_int_equal(access(path, F_OK) == 0, strchr(files, name[0]) != NULL);
	}
	assert_int_equal(scene->report.left_out, 6 - strlen(files));
	snprintf(path, sizeof(path), "%s/.muninn-export.partial", scene->copy);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(scene_compare_trees(scene->copy, scene->source), strlen(files));
}

static void test_files_whose_content_can_not_be_had_are_left_out_and_the_rest_comes(void **state)
{
	struct scene *scene = *state;
	struct memory_object *small, *large;
	char path[256], link_path[256];

	scene_write_file(scene->source, "a", 5000, 1);
	scene_write_file(scene->source, "b", 5000, 2);
	scene_write_file(scene->source, "c", 5000, 3);
	scene_write_file(scene->source, "d", 2 << 20, 4);
	scene_write_file(scene->source, "e", 2 << 20, 5);
	snprintf(path, sizeof(path), "%s/b", scene->source);
	snprintf(link_path, sizeof(link_path), "%s/f", scene->source);
	assert_int_equal(link(path, link_path), 0);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	small = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + 1);
	large = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + 3);
	large->data[1 << 20] ^= 1;
	expect_all_but(scene, -EBADMSG, "abcef");
	small->data[0] ^= 1;
	expect_all_but(scene, -EBADMSG, "ace");
	large->data[1 << 20] ^= 1;
	large->length--;
	small->data[0] ^= 1;
	small->length--;
	expect_all_but(scene, -EBADMSG, "ace");
	large->length++;
	small->length++;
	scene->osd.damaged_id = small->id;
	expect_all_but(scene, -EIO, "acde");
	scene->osd.damaged_id = large->id;
	expect_all_but(scene, -EIO, "abcef");
	scene->osd.damaged_id = 0;
	scene_expect_same_trees(scene, 6);
}

static void test_a_damaged_or_exchanged_manifest_is_refused(void **state)
{
	struct scene *scene = *state;
	struct memory_object *manifest;

	scene_write_file(scene->source, "small", 5000, 4);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	manifest = memory_osd_find(&scene->osd, PARTITION, scene->report.manifest_object);
	manifest->data[manifest->length / 2] ^= 1;
	assert_int_equal(scene_export(scene), -EBADMSG);
	manifest->data[manifest->length / 2] ^= 1;
	manifest->length--;
	assert_int_equal(scene_export(scene), -EBADMSG);
	manifest->length++;
	scene_must(scene, scene_export(scene));
}

static void test_export_needs_an_empty_directory_and_a_tree(void **state)
{
	struct scene *scene = *state;

	scene_write_file(scene->source, "small", 5000, 4);
	assert_int_equal(scene_export(scene), -ENOENT);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	assert_int_equal(mkdir(scene->copy, 0700), 0);
	scene_write_file(scene->copy, "mine", 5, 1);
	assert_int_equal(scene_export(scene), -ENOTEMPTY);
	assert_true(scene->error.local);
}

/* A refusal that has the errno by which file systems say that they can't do something. */
static void test_a_file_that_did_not_arrive_whole_has_no_name(void **state)
{
	struct scene *scene = *state;
	char path[128];

	scene_write_file(scene->source, "large", 2 << 20, 5);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	scene->osd.unreadable_from = 1 << 20;
	assert_int_equal(scene_export(scene), -EINVAL);
	assert_false(scene->error.local);
	assert_int_equal(scene->report.files, 0);
	snprintf(path, sizeof(path), "%s/large", scene->copy);
	assert_int_equal(access(path, F_OK), -1);
	/* Nor is it there under another one. */
	assert_int_equal(rmdir(scene->copy), 0);
}

/* ---- names ---- */

/* `name` and what files have as names that are not whole yet, each another way. */
static void make_names(const struct scene *scene, const char *name, size_t length)
{
	char path[512];

	scene_write_file(scene->source, name, length, 1);
	snprintf(path, sizeof(path), "%s.partial", name);
	scene_make_directory(scene->source, path);
	snprintf(path, sizeof(path), "%s/%s.1.partial", scene->source, name);
	assert_int_equal(symlink("nowhere", path), 0);
	snprintf(path, sizeof(path), "%s.2.partial", name);
	scene_write_file(scene->source, path, 5000, 2);
	snprintf(path, sizeof(path), "%s.2.partial.partial", name);
	scene_write_file(scene->source, path, 5000, 3);
}

static void test_names_of_files_that_are_not_whole_may_be_in_the_tree(void **state)
{
	struct scene *scene = *state;
	char name[NAME_MAX + 1];

	for (int n = 0; n < 40; n++) {
		snprintf(name, sizeof(name), "%02d", n);
		make_names(scene, name, n % 8 ? 5000 : 2 << 20);
	}
	/* What is left of a long name is a name of the tree, too. */
	memset(name, 'z', NAME_MAX);
	name[NAME_MAX] = '\0';
	scene_write_file(scene->source, name, 2 << 20, 4);
	memcpy(name + NAME_MAX - 8, ".partial", 8);
	scene_write_file(scene->source, name, 5000, 5);
	scene_must(scene, scene_import(scene, (struct tree_options){ .replace = false }, false));
	scene_must(scene, scene_export(scene));
	scene_expect_copy(scene, 202);
}

/* ---- interruption ---- */

/*
 * Each line of the log must be an object that is there, with the mark and the content that the line
 * tells.
 */
static size_t check_log(struct scene *scene)
{
	FILE *log = fopen(scene->log, "r");
	unsigned long long id, length;
	char hex[65], path[512];
	size_t lines = 0;

	assert_non_null(log);
	while (fscanf(log, "0x%llx %llu %64s %511s\n", &id, &length, hex, path) == 4) {
		const struct memory_object *object = memory_osd_find(&scene->osd, PARTITION, id);
		uint8_t digest[32];
		char expected[65];

		assert_non_null(object);
		assert_int_equal(object->length, length);
		SHA256(object->data ? object->data : (const uint8_t *)"", length, digest);
		manifest_hex(digest, 32, expected);
		assert_string_equal(hex, expected);
		lines++;
	}
	assert_true(feof(log));
	fclose(log);
	return lines;
}

/* Whole or absent: an object with the mark has the content that the mark tells. */
static void check_marks(const struct memory_osd *osd)
{
	for (size_t i = 0; i < osd->count; i++) {
		const struct memory_object *object = osd->objects[i];
		const struct memory_attribute *mark =
			memory_osd_attribute(object, TREE_OBJECT_PAGE, TREE_OBJECT_COMPLETE);
		uint8_t digest[32];

		if (!mark)
			continue;
		assert_int_equal(mark->length, TREE_COMPLETE_BYTES);
		assert_int_equal(get_be64(mark->value), object->length);
		SHA256(object->data ? object->data : (const uint8_t *)"", object->length, digest);
		assert_memory_equal(mark->value + 8, digest, 32);
	}
}

static void test_an_import_cut_off_at_any_command_is_whole_or_absent(void **state)
{
	struct scene *scene = *state;
	uint64_t dies_at = 0;
	bool finished = false;

	scene_make_tree(scene);
	while (!finished) {
		size_t logged;

		memory_osd_free(&scene->osd);
		scene->osd.dies_at = ++dies_at;
		scene->osd.executes_the_last = dies_at % 2;
		finished = scene_import(scene, (struct tree_options){ .replace = false }, true) ==
			   0;
		logged = check_log(scene);
		check_marks(&scene->osd);
		scene->osd.dies_at = 0;
		assert_true(logged <= 6);
		scene_remove_tree(scene->copy);
		if (scene_export(scene) == 0) {
			/* The pointer is set by the very last command. */
			assert_int_equal(logged, 6);
			assert_int_equal(scene_compare_trees(scene->source, scene->copy), 10);
			continue;
		}
		assert_false(finished);
		assert_true(scene->error.result == -ENODATA || scene->error.result == -ENOENT);
		/* The next try cleans up behind it. */
		scene_must(scene,
			   scene_import(scene, (struct tree_options){ .clean = true }, false));
		assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 7);
	}
	assert_true(dies_at > 20);
}

static atomic_bool interrupted;

static bool is_interrupted(void)
{
	return interrupted;
}

/* The user interrupts it before the answer comes that an ID is taken. */
static void interrupt_at_a_taken_id(void *context, struct loopback_command *command)
{
	struct osd_cdb cdb;
	uint16_t field;

	memory_osd_execute(context, command);
	if (osd_cdb_decode(command->cdb, command->cdb_length, &cdb, &field) == 0 &&
	    cdb.action == OSD_CREATE_AND_WRITE && command->status != 0)
		interrupted = true;
}

static void test_a_file_whose_second_try_is_never_sent_does_not_count_as_stored(void **state)
{
	struct tree_options options = { .chunk_bytes = 1 << 18, .log_fd = -1 };
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback =
		loopback_start(interrupt_at_a_taken_id, &scene->osd, OSD_2, &client);

	interrupted = false;
	osd_client_stop_when(client, is_interrupted);
	scene->osd.thief_every = 1;
	scene_write_file(scene->source, "a", 10, 1);
	scene_write_file(scene->source, "b", 20, 2);
	assert_int_equal(tree_import(client, PARTITION, scene->source, &options, &scene->report,
				     &scene->error),
			 -ECANCELED);
	assert_true(interrupted);
	assert_int_equal(scene->report.added, 1);
	assert_int_equal(scene->report.sent_bytes, 10);
	loopback_stop(loopback, client);
}

static void test_a_full_device_ends_the_import_with_its_reason(void **state)
{
	struct scene *scene = *state;

	scene_make_tree(scene);
	scene->osd.objects_max = 4;
	assert_int_equal(scene_import(scene, (struct tree_options){ .replace = false }, true),
			 -ENOSPC);
	assert_int_equal(check_log(scene), 3);
	assert_false(scene->error.local);
}

static void test_a_file_that_cannot_be_read_ends_the_import_with_its_name(void **state)
{
	struct tree_options options = { .chunk_bytes = 1 << 18, .log_fd = -1 };
	struct scene *scene = *state;
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	int result;

	snprintf(scene->source, sizeof(scene->source), "%s/nowhere", scene->folder);
	result = tree_import(client, PARTITION, scene->source, &options, &scene->report,
			     &scene->error);
	assert_int_equal(result, -ENOENT);
	assert_true(scene->error.local);
	assert_non_null(strstr(scene->error.sentence.text, "nowhere"));
	loopback_stop(loopback, client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_tree_comes_back_as_it_was),
		TEST(test_objects_ascend_from_the_first_free_id),
		TEST(test_zeros_become_holes_again),
		TEST(test_a_partition_with_a_tree_is_not_overwritten_by_chance),
		TEST(test_replacing_leaves_the_new_tree_only_and_spares_other_objects),
		TEST(test_ids_taken_by_others_meanwhile_are_passed_over),
		TEST(test_damaged_content_is_noticed),
		TEST(test_objects_of_another_length_are_noticed),
		TEST(test_files_whose_content_can_not_be_had_are_left_out_and_the_rest_comes),
		TEST(test_a_damaged_or_exchanged_manifest_is_refused),
		TEST(test_export_needs_an_empty_directory_and_a_tree),
		TEST(test_a_file_that_did_not_arrive_whole_has_no_name),
		TEST(test_names_of_files_that_are_not_whole_may_be_in_the_tree),
		TEST(test_an_import_cut_off_at_any_command_is_whole_or_absent),
		TEST(test_a_file_whose_second_try_is_never_sent_does_not_count_as_stored),
		TEST(test_a_full_device_ends_the_import_with_its_reason),
		TEST(test_a_file_that_cannot_be_read_ends_the_import_with_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
