/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Timing and faults that one process leaves and another, which has the image open, takes up. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/nand/fixture.h"

#include "nand/faults.h"
#include "nand/live.h"
#include "nand/nand.h"
#include "nand/timing.h"

struct image {
	char directory[40];
	char path[64];
	struct nand *nand;
	struct nand_settings settings;
};

static int setup(void **state)
{
	struct image *image = calloc(1, sizeof(*image));
	struct nand_geometry geometry = nand_geometry_default(1 << 20);
	struct error_text error = { "" };

	assert_non_null(image);
	strcpy(image->directory, "/tmp/muninn-live-XXXXXX");
	assert_non_null(mkdtemp(image->directory));
	snprintf(image->path, sizeof(image->path), "%s/image", image->directory);
	assert_int_equal(nand_create(image->path, &geometry, 4096, &error), 0);
	assert_int_equal(nand_open(image->path, &image->nand, &error), 0);
	assert_string_equal(error.text, "");
	*state = image;
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "", ".nvram", ".timing", ".faults" };
	struct image *image = *state;
	char path[128];

	nand_close(image->nand);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", image->path, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(image->directory), 0);
	free(image);
	return 0;
}

static uint32_t read_ns(struct image *image)
{
	struct nand_timing timing;

	nand_get_timing(image->nand, &timing);
	return timing.mode == NAND_TIMING_OFF ? 0 : timing.page_read_ns;
}

static uint64_t faults_seed(struct image *image)
{
	struct nand_faults faults;

	nand_get_faults(image->nand, &faults);
	return faults.on ? faults.seed : 0;
}

static void leave(struct image *image, enum nand_setting which, const char *text)
{
	struct error_text error = { "" };

	assert_int_equal(nand_leave_setting(image->path, which, text, &error), 0);
	assert_string_equal(error.text, "");
}

static void test_a_setting_is_taken_up_changed_and_taken_back_while_the_image_is_open(void **state)
{
	struct image *image = *state;

	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(read_ns(image), 0);
	leave(image, NAND_SETTING_TIMING, "tlc,mode=virtual,read=60us");
	assert_int_equal(read_ns(image), 0);
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(read_ns(image), 60000);
	leave(image, NAND_SETTING_TIMING, "tlc,mode=virtual,read=61us");
	leave(image, NAND_SETTING_FAULTS, "seed=77,program=0.5");
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(read_ns(image), 61000);
	assert_int_equal(faults_seed(image), 77);
	leave(image, NAND_SETTING_TIMING, NULL);
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(read_ns(image), 0);
	assert_int_equal(faults_seed(image), 77);
	leave(image, NAND_SETTING_FAULTS, NULL);
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(faults_seed(image), 0);
}

static void test_what_has_not_changed_is_not_applied_again(void **state)
{
	struct image *image = *state;
	struct error_text error = { "" };
	struct nand_timing other = { 0 };

	leave(image, NAND_SETTING_TIMING, "tlc,mode=virtual,read=60us");
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(nand_timing_parse("slc,mode=virtual,read=9us", &other, &error), 0);
	assert_int_equal(nand_set_timing(image->nand, &other, &error), 0);
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(read_ns(image), 9000);
}

static void test_a_setting_stays_for_the_next_opening(void **state)
{
	struct image *image = *state;
	struct error_text error = { "" };

	leave(image, NAND_SETTING_FAULTS, "seed=5,erase=0.1");
	assert_int_equal(nand_close(image->nand), 0);
	assert_int_equal(nand_open(image->path, &image->nand, &error), 0);
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(faults_seed(image), 5);
}

static void test_bad_texts_and_images_are_refused_with_a_sentence(void **state)
{
	struct image *image = *state;
	struct error_text error = { "" };

	assert_int_equal(nand_leave_setting(image->path, NAND_SETTING_TIMING, "fast", &error),
			 -EINVAL);
	assert_non_null(strstr(error.text, "fast"));
	assert_int_equal(nand_leave_setting(image->path, NAND_SETTING_FAULTS, "luck=3", &error),
			 -EINVAL);
	assert_non_null(strstr(error.text, "luck"));
	assert_int_equal(nand_leave_setting("/nowhere/image", NAND_SETTING_TIMING, "slc", &error),
			 -ENOENT);
	assert_non_null(strstr(error.text, "/nowhere/image"));
	assert_int_equal(nand_leave_setting(image->path, NAND_SETTING_TIMING, NULL, &error),
			 -ENOENT);
	assert_non_null(strstr(error.text, "no timing was set for"));
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(read_ns(image), 0);
}

/* Written by hand: nand_leave_setting refuses what is too long. */
static void write_padded(const struct image *image, const char *name, const char *text,
			 size_t bytes)
{
	char path[80], padded[4096];
	FILE *file;

	memset(padded, ' ', sizeof(padded));
	memcpy(padded, text, strlen(text));
	snprintf(path, sizeof(path), "%s.%s", image->path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(padded, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static void test_a_text_that_is_too_long_is_not_cut_short(void **state)
{
	struct image *image = *state;

	write_padded(image, "timing", "tlc,mode=virtual,read=60us\n", 1023);
	write_padded(image, "faults", "seed=5,erase=0.1\n", 1024);
	log_capture();
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(read_ns(image), 60000);
	assert_int_equal(faults_seed(image), 0);
	assert_non_null(strstr(log_captured(), "image.faults: not used: File too large"));
}

/* ---- the host's files ---- */

/* Leaves a setting under a limit on the size of files, as on a full file system. */
static void leave_under_limit(struct image *image, rlim_t limit, int result)
{
	struct error_text error = { "" };
	struct rlimit before, now;
	int left;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	now = before;
	now.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	left = nand_leave_setting(image->path, NAND_SETTING_FAULTS, "seed=5,erase=0.1", &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(left, result);
	assert_non_null(strstr(error.text, strerror(-result)));
}

static void test_a_setting_that_could_not_be_written_is_told_and_leaves_nothing(void **state)
{
	struct image *image = *state;

	/* All of it, then its last part. */
	leave_under_limit(image, 0, -EFBIG);
	leave_under_limit(image, 5, -ENOSPC);
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(faults_seed(image), 0);
}

#define NOBODY 65534

static void plant(const struct image *image, const char *suffix, const char *target)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", image->path, suffix);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(lchown(path, NOBODY, NOBODY), 0);
}

static void test_a_setting_that_root_leaves_replaces_the_links_of_a_user(void **state)
{
	struct image *image = *state;
	char outside[64], file[128];
	struct stat status;

	if (geteuid() != 0)
		skip();
	snprintf(outside, sizeof(outside), "%s.outside", image->directory);
	assert_int_equal(chown(image->directory, NOBODY, NOBODY), 0);
	plant(image, ".faults", outside);
	plant(image, ".faults.new", outside);
	leave(image, NAND_SETTING_FAULTS, "seed=5,erase=0.1");
	assert_int_equal(lstat(outside, &status), -1);
	snprintf(file, sizeof(file), "%s.faults", image->path);
	assert_int_equal(lstat(file, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_uid, NOBODY);
	nand_take_settings(image->nand, &image->settings);
	assert_int_equal(faults_seed(image), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_setting_is_taken_up_changed_and_taken_back_while_the_image_is_open,
			setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_has_not_changed_is_not_applied_again,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_setting_stays_for_the_next_opening, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_bad_texts_and_images_are_refused_with_a_sentence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_text_that_is_too_long_is_not_cut_short,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_setting_that_could_not_be_written_is_told_and_leaves_nothing, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_a_setting_that_root_leaves_replaces_the_links_of_a_user, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
