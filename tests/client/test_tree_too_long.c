/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Exports into a file system with shorter names and link targets than that of the import. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/client/tree_scene.h"

enum { NAME_BYTES = 40, TARGET_BYTES = 60 };

/* Of ours: what the file system of the copy takes. */
int __wrap_mkdirat(int directory, const char *path, mode_t mode);
int __real_mkdirat(int directory, const char *path, mode_t mode);
long __wrap_fpathconf(int fd, int name);
int __wrap_symlinkat(const char *target, int directory, const char *path);
int __real_symlinkat(const char *target, int directory, const char *path);

int __wrap_mkdirat(int directory, const char *path, mode_t mode)
{
	const char *slash = strrchr(path, '/');

	if (strlen(slash ? slash + 1 : path) > NAME_BYTES) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return __real_mkdirat(directory, path, mode);
}

long __wrap_fpathconf(int fd, int name)
{
	(void)fd;
	assert_int_equal(name, _PC_NAME_MAX);
	return NAME_BYTES;
}

int __wrap_symlinkat(const char *target, int directory, const char *path)
{
	if (strlen(target) > TARGET_BYTES) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return __real_symlinkat(target, directory, path);
}

static void make_link(const struct scene *scene, size_t length, const char *name)
{
	char target[256], path[256];

	memset(target, 't', length);
	target[length] = '\0';
	snprintf(path, sizeof(path), "%s/%s", scene->source, name);
	assert_int_equal(symlink(target, path), 0);
}

static void remove_names(const struct scene *scene, const char *const *names, size_t count)
{
	char path[256];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", scene->source, names[i]);
		scene_remove_tree(path);
	}
}

static void test_names_and_targets_that_are_too_long_are_left_out_and_the_rest_comes(void **state)
{
	static const struct tree_options plain;
	char long_folder[NAME_BYTES + 2], long_file[NAME_BYTES + 2], inside[2 * NAME_BYTES];
	const char *const gone[] = { long_folder, long_file, "link to something far away" };
	struct scene *scene = *state;

	memset(long_folder, 'd', NAME_BYTES + 1);
	memset(long_file, 'f', NAME_BYTES + 1);
	long_folder[NAME_BYTES + 1] = long_file[NAME_BYTES + 1] = '\0';
	snprintf(inside, sizeof(inside), "%s/file", long_folder);
	scene_write_file(scene->source, "before", 100, 1);
	scene_make_directory(scene->source, long_folder);
	scene_write_file(scene->source, inside, 100, 2);
	scene_write_file(scene->source, long_file, 100, 3);
	make_link(scene, TARGET_BYTES + 1, gone[2]);
	make_link(scene, TARGET_BYTES, "link");
	scene_write_file(scene->source, "zero", 2 << 20, 4);
	scene_must(scene, scene_import(scene, plain, false));

	scene_must(scene, scene_export(scene));
	assert_int_equal(scene->report.left_out, 4);
	assert_int_equal(scene->report.files, 2);
	assert_int_equal(scene->report.symlinks, 1);
	remove_names(scene, gone, 3);
	scene_expect_copy(scene, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scene_set_up, scene_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names_and_targets_that_are_too_long_are_left_out_and_the_rest_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
