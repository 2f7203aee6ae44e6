/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Directory trees into a partition and back, and imports that are cut off at every command. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/sha.h>

#include <cmocka.h>

#include "client/tree.h"
#include "common/bytes.h"
#include "tests/client/memory_osd.h"

#define PARTITION 0x10000

struct scene {
	char folder[64];
	char source[96], copy[96], log[96];
	struct memory_osd osd;
	struct osd_client_error error;
	struct tree_report report;
};

/* ---- files ---- */

static void write_file(const char *folder, const char *name, size_t length, unsigned seed)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	srand(seed);
	for (size_t i = 0; i < length; i++)
		fputc(rand(), file);
	assert_int_equal(fclose(file), 0);
}

static void make_directory(const char *folder, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
	(void)status;
	(void)flag;
	(void)ftw;
	chmod(path, 0700);
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	snprintf(scene->folder, sizeof(scene->folder), "/tmp/muninn-test-tree-XXXXXX");
	assert_non_null(mkdtemp(scene->folder));
	snprintf(scene->source, sizeof(scene->source), "%s/source", scene->folder);
	snprintf(scene->copy, sizeof(scene->copy), "%s/copy", scene->folder);
	snprintf(scene->log, sizeof(scene->log), "%s/log", scene->folder);
	assert_int_equal(mkdir(scene->source, 0755), 0);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	remove_tree(scene->folder);
	memory_osd_free(&scene->osd);
	free(scene);
	return 0;
}

/* A tree with everything that is kept. */
static void make_tree(const struct scene *scene)
{
	const struct timespec times[2] = { { 1, 0 }, { 1234567890, 123456789 } };
	char path[256], target[256];

	write_file(scene->source, "empty", 0, 1);
	write_file(scene->source, "one", 1, 2);
	write_file(scene->source, "bytes \t\n\x01\xff%20\\", 100, 3);
	write_file(scene->source, "small", 5000, 4);
	write_file(scene->source, "large", (3 << 20) + 17, 5);
	make_directory(scene->source, "directory");
	make_directory(scene->source, "directory/empty");
	write_file(scene->source, "directory/file", 70000, 6);
	snprintf(path, sizeof(path), "%s/link", scene->source);
	assert_int_equal(symlink("../nowhere at all", path), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
	snprintf(path, sizeof(path), "%s/small", scene->source);
	snprintf(target, sizeof(target), "%s/directory/other name", scene->source);
	assert_int_equal(link(path, target), 0);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	snprintf(path, sizeof(path), "%s/directory/empty", scene->source);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_int_equal(chmod(path, 0500), 0);
	snprintf(path, sizeof(path), "%s/directory", scene->source);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static size_t compare_trees(const char *left, const char *right);

static bool same_content(const char *left, const char *right)
{
	FILE *a = fopen(left, "r"), *b = fopen(right, "r");
	int c = 0, d = 0;

	assert_true(a && b);
	while (c == d && c != EOF) {
		c = fgetc(a);
		d = fgetc(b);
	}
	fclose(a);
	fclose(b);
	return c == d;
}

static void compare_entry(const char *left, const char *right, const struct stat *a)
{
	char target_a[256] = "", target_b[256] = "";
	struct stat b;

	if (lstat(right, &b) < 0)
		fail_msg("%s is missing", right);
	assert_int_equal(a->st_mode, b.st_mode);
	assert_int_equal(a->st_mtim.tv_sec, b.st_mtim.tv_sec);
	assert_int_equal(a->st_mtim.tv_nsec, b.st_mtim.tv_nsec);
	if (S_ISREG(a->st_mode)) {
		assert_int_equal(a->st_size, b.st_size);
		assert_int_equal(a->st_nlink, b.st_nlink);
		if (!same_content(left, right))
			fail_msg("%s differs", right);
	}
	if (S_ISLNK(a->st_mode)) {
		assert_true(readlink(left, target_a, sizeof(target_a) - 1) > 0);
		assert_true(readlink(right, target_b, sizeof(target_b) - 1) > 0);
		assert_string_equal(target_a, target_b);
	}
}

/* Returns the number of entries. The trees of these tests are a few levels deep. */
static size_t compare_trees(const char *left, const char *right)
{
	DIR *directory = opendir(left);
	const struct dirent *entry;
	size_t count = 0;

	assert_non_null(directory);
	while ((entry = readdir(directory)) != NULL) {
		char a[512], b[512];
		struct stat status;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(a, sizeof(a), "%.200s/%.255s", left, entry->d_name);
		snprintf(b, sizeof(b), "%.200s/%.255s", right, entry->d_name);
		assert_int_equal(lstat(a, &status), 0);
		compare_entry(a, b, &status);
		count += 1 + (S_ISDIR(status.st_mode) ? compare_trees(a, b) : 0);
	}
	closedir(directory);
	return count;
}

/* ---- import and export ---- */

static int import(struct scene *scene, bool replace, bool clean, bool log)
{
	struct tree_options options = {
		.chunk_bytes = 1 << 18, .replace = replace, .clean = clean, .log_fd = -1
	};
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	int result;

	if (log)
		options.log_fd = open(scene->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	result = tree_import(client, PARTITION, scene->source, &options, &scene->report,
			     &scene->error);
	loopback_stop(loopback, client);
	if (log)
		close(options.log_fd);
	return result;
}

static int export(struct scene *scene)
{
	const struct tree_options options = { .chunk_bytes = 1 << 18, .log_fd = -1 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	int result = tree_export(client, (struct osd_client_address){ .partition = PARTITION },
				 scene->copy, &options, &scene->report, &scene->error);

	loopback_stop(loopback, client);
	return result;
}

static void must(const struct scene *scene, int result)
{
	if (result < 0)
		fail_msg("%d: %s", result, scene->error.sentence.text);
}

static void test_a_tree_comes_back_as_it_was(void **state)
{
	struct scene *scene = *state;

	make_tree(scene);
	must(scene, import(scene, false, false, false));
	assert_int_equal(scene->report.files, 6);
	assert_int_equal(scene->report.directories, 3);
	assert_int_equal(scene->report.symlinks, 1);
	assert_int_equal(scene->report.hard_links, 1);
	must(scene, export(scene));
	assert_int_equal(scene->report.files, 6);
	assert_int_equal(scene->report.hard_links, 1);
	assert_int_equal(compare_trees(scene->source, scene->copy), 10);
	assert_int_equal(compare_trees(scene->copy, scene->source), 10);
}

static void test_objects_ascend_from_the_first_free_id(void **state)
{
	struct scene *scene = *state;
	char name[32];

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "%03d", i);
		write_file(scene->source, name, (size_t)i, (unsigned)i);
	}
	must(scene, import(scene, false, false, false));
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 301);
	for (uint64_t i = 0; i < 300; i++) {
		const struct memory_object *object =
			memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + i);

		assert_non_null(object);
		assert_int_equal(object->length, i);
	}
	assert_int_equal(scene->report.manifest_object, OSD_FIRST_ID + 300);
	/* Behind a lonely high ID, too. */
	must(scene, import(scene, true, false, false));
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
	must(scene, import(scene, false, false, false));
	must(scene, export(scene));
	compare_trees(scene->source, scene->copy);
	snprintf(path, sizeof(path), "%s/sparse", scene->copy);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_size, 9 << 20);
	assert_true(status.st_blocks * 512 < 1 << 20);
}

static void test_a_partition_with_a_tree_is_not_overwritten_by_chance(void **state)
{
	struct scene *scene = *state;

	write_file(scene->source, "a", 10, 1);
	must(scene, import(scene, false, false, false));
	assert_int_equal(import(scene, false, false, false), -EEXIST);
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

	make_tree(scene);
	must(scene, import(scene, false, false, false));
	loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	assert_int_equal(osd_client_create_and_write(client, PARTITION, address.object, foreign,
						     sizeof(foreign), NULL, NULL),
			 0);
	loopback_stop(loopback, client);
	write_file(scene->source, "new", 10, 1);
	must(scene, import(scene, true, false, false));
	assert_int_equal(scene->report.removed, 7);
	assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 7 + 1 + 1);
	assert_non_null(memory_osd_find(&scene->osd, PARTITION, address.object));
	must(scene, export(scene));
	assert_int_equal(compare_trees(scene->source, scene->copy), 11);
}

static void test_ids_taken_by_others_meanwhile_are_passed_over(void **state)
{
	struct scene *scene = *state;

	make_tree(scene);
	scene->osd.thief_every = 2;
	must(scene, import(scene, false, false, false));
	assert_true(memory_osd_count(&scene->osd, PARTITION) > 7);
	must(scene, export(scene));
	assert_int_equal(compare_trees(scene->source, scene->copy), 10);
}

/* ---- damage ---- */

static void test_damaged_content_is_noticed(void **state)
{
	struct scene *scene = *state;
	struct memory_object *object;

	write_file(scene->source, "small", 5000, 4);
	write_file(scene->source, "zlarge", 2 << 20, 5);
	must(scene, import(scene, false, false, false));
	object = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID);
	object->data[4999] ^= 1;
	assert_int_equal(export(scene), -EBADMSG);
	assert_non_null(strstr(scene->error.sentence.text, "small"));
	object->data[4999] ^= 1;
	object = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID + 1);
	object->data[1 << 20] ^= 1;
	remove_tree(scene->copy);
	assert_int_equal(export(scene), -EBADMSG);
	assert_non_null(strstr(scene->error.sentence.text, "zlarge"));
}

static void test_objects_of_another_length_are_noticed(void **state)
{
	struct scene *scene = *state;
	struct memory_object *object;

	write_file(scene->source, "small", 5000, 4);
	must(scene, import(scene, false, false, false));
	object = memory_osd_find(&scene->osd, PARTITION, OSD_FIRST_ID);
	/* Longer: the bytes that the manifest knows are all right. */
	object->data = realloc(object->data, 6000);
	memset(object->data + 5000, 0, 1000);
	object->length = 6000;
	assert_int_equal(export(scene), -EBADMSG);
	object->length = 4999;
	remove_tree(scene->copy);
	assert_int_equal(export(scene), -EBADMSG);
}

static void test_a_damaged_or_exchanged_manifest_is_refused(void **state)
{
	struct scene *scene = *state;
	struct memory_object *manifest;

	write_file(scene->source, "small", 5000, 4);
	must(scene, import(scene, false, false, false));
	manifest = memory_osd_find(&scene->osd, PARTITION, scene->report.manifest_object);
	manifest->data[manifest->length / 2] ^= 1;
	assert_int_equal(export(scene), -EBADMSG);
	manifest->data[manifest->length / 2] ^= 1;
	manifest->length--;
	assert_int_equal(export(scene), -EBADMSG);
	manifest->length++;
	must(scene, export(scene));
}

static void test_export_needs_an_empty_directory_and_a_tree(void **state)
{
	struct scene *scene = *state;

	write_file(scene->source, "small", 5000, 4);
	assert_int_equal(export(scene), -ENOENT);
	must(scene, import(scene, false, false, false));
	assert_int_equal(mkdir(scene->copy, 0700), 0);
	write_file(scene->copy, "mine", 5, 1);
	assert_int_equal(export(scene), -ENOTEMPTY);
	assert_true(scene->error.local);
}

/* ---- interruption ---- */

/* Each line of the log must be an object that is there, with the mark and the content that the line tells. */
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

	make_tree(scene);
	while (!finished) {
		size_t logged;

		memory_osd_free(&scene->osd);
		scene->osd.dies_at = ++dies_at;
		scene->osd.executes_the_last = dies_at % 2;
		finished = import(scene, false, false, true) == 0;
		logged = check_log(scene);
		check_marks(&scene->osd);
		scene->osd.dies_at = 0;
		assert_true(logged <= 6);
		remove_tree(scene->copy);
		if (export(scene) == 0) {
			/* The pointer is set by the very last command. */
			assert_int_equal(logged, 6);
			assert_int_equal(compare_trees(scene->source, scene->copy), 10);
			continue;
		}
		assert_false(finished);
		assert_true(scene->error.result == -ENODATA || scene->error.result == -ENOENT);
		/* The next try cleans up behind it. */
		must(scene, import(scene, false, true, false));
		assert_int_equal(memory_osd_count(&scene->osd, PARTITION), 7);
	}
	assert_true(dies_at > 20);
}

static void test_a_full_device_ends_the_import_with_its_reason(void **state)
{
	struct scene *scene = *state;

	make_tree(scene);
	scene->osd.objects_max = 4;
	assert_int_equal(import(scene, false, false, true), -ENOSPC);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
		TEST(test_a_damaged_or_exchanged_manifest_is_refused),
		TEST(test_export_needs_an_empty_directory_and_a_tree),
		TEST(test_an_import_cut_off_at_any_command_is_whole_or_absent),
		TEST(test_a_full_device_ends_the_import_with_its_reason),
		TEST(test_a_file_that_cannot_be_read_ends_the_import_with_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
