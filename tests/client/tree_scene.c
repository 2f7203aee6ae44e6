/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A folder, a tree with everything in it, and an OSD in memory for tests of trees. */
#include "tests/client/tree_scene.h"

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

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/muninn/hash.h"

/* ---- files ---- */

void scene_write_file(const char *folder, const char *name, size_t length, unsigned seed)
{
	char path[512];
	uint64_t random = seed;
	uint8_t *bytes = malloc(length + sizeof(random));
	FILE *file;

	assert_non_null(bytes);
	for (size_t i = 0; i < length; i += sizeof(random)) {
		random += UINT64_C(0x9e3779b97f4a7c15);
		put_le64(bytes + i, hash_mix(random));
	}
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
	free(bytes);
}

void scene_make_directory(const char *folder, const char *name)
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

void scene_remove_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void scene_set_time(const char *folder, const char *name, time_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

int scene_set_up(void **state)
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

int scene_tear_down(void **state)
{
	struct scene *scene = *state;

	scene_remove_tree(scene->folder);
	memory_osd_free(&scene->osd);
	free(scene);
	return 0;
}

/* A tree with everything that is kept. */
void scene_make_tree(const struct scene *scene)
{
	const struct timespec times[2] = { { 1, 0 }, { 1234567890, 123456789 } };
	char path[256], target[256];

	scene_write_file(scene->source, "empty", 0, 1);
	scene_write_file(scene->source, "one", 1, 2);
	scene_write_file(scene->source, "bytes \t\n\x01\xff%20\\", 100, 3);
	scene_write_file(scene->source, "small", 5000, 4);
	scene_write_file(scene->source, "large", (3 << 20) + 17, 5);
	scene_make_directory(scene->source, "directory");
	scene_make_directory(scene->source, "directory/empty");
	scene_write_file(scene->source, "directory/file", 70000, 6);
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

static bool same_content(const char *left, const char *right)
{
	static uint8_t of_a[1 << 16], of_b[1 << 16];
	FILE *a = fopen(left, "r"), *b = fopen(right, "r");
	size_t got;
	bool same;

	assert_true(a && b);
	do {
		got = fread(of_a, 1, sizeof(of_a), a);
		same = fread(of_b, 1, sizeof(of_b), b) == got && memcmp(of_a, of_b, got) == 0;
	} while (same && got);
	fclose(a);
	fclose(b);
	return same;
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
size_t scene_compare_trees(const char *left, const char *right)
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
		count += 1 + (S_ISDIR(status.st_mode) ? scene_compare_trees(a, b) : 0);
	}
	closedir(directory);
	return count;
}

/* ---- import and export ---- */

int scene_import(struct scene *scene, struct tree_options options, bool log)
{
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	int result;

	options.chunk_bytes = 1 << 18;
	options.log_fd = -1;
	if (log)
		options.log_fd = open(scene->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	result = tree_import(client, PARTITION, scene->source, &options, &scene->report,
			     &scene->error);
	loopback_stop(loopback, client);
	if (log)
		close(options.log_fd);
	return result;
}

int scene_export(struct scene *scene)
{
	const struct tree_options options = { .chunk_bytes = 1 << 18, .log_fd = -1 };
	struct osd_client *client;
	struct loopback *loopback = loopback_start(memory_osd_execute, &scene->osd, OSD_2, &client);
	int result = tree_export(client, (struct osd_client_address){ .partition = PARTITION },
				 scene->copy, &options, &scene->report, &scene->error);

	loopback_stop(loopback, client);
	return result;
}

void scene_expect_copy(const struct scene *scene, size_t names)
{
	assert_int_equal(scene_compare_trees(scene->source, scene->copy), names);
	assert_int_equal(scene_compare_trees(scene->copy, scene->source), names);
}

void scene_expect_same_trees(struct scene *scene, size_t names)
{
	scene_remove_tree(scene->copy);
	scene_must(scene, scene_export(scene));
	scene_expect_copy(scene, names);
}

void scene_must(const struct scene *scene, int result)
{
	if (result < 0)
		fail_msg("%d: %s", result, scene->error.sentence.text);
}

/* ---- as nobody ---- */

enum { NOBODY = 65534 };

static int give_away(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return lchown(path, NOBODY, NOBODY);
}

void scene_begin_as_nobody(const struct scene *scene)
{
	if (geteuid() != 0)
		return;
	assert_int_equal(nftw(scene->folder, give_away, 16, FTW_PHYS), 0);
	assert_int_equal(seteuid(NOBODY), 0);
}

/* Who is not root can't become it either. */
void scene_end_as_nobody(void)
{
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}
