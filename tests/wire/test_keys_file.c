/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The file that holds a unit's device key: made once, read by its owner only, refused when it is
 * anything else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/keys_file.h"

#define DIGITS "00112233445566778899aabbccddeeff0123456789abcdefABCDEF0123456789"

struct folder {
	char path[64], key[80];
};

static int make_folder(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	if (!folder)
		return -1;
	snprintf(folder->path, sizeof(folder->path), "/tmp/muninn-key-XXXXXX");
	if (!mkdtemp(folder->path)) {
		free(folder);
		return -1;
	}
	snprintf(folder->key, sizeof(folder->key), "%s/key", folder->path);
	*state = folder;
	return 0;
}

static int remove_folder(void **state)
{
	struct folder *folder = *state;

	unlink(folder->key);
	rmdir(folder->path);
	free(folder);
	return 0;
}

static void write_file(const struct folder *folder, const char *text, mode_t mode)
{
	int fd = open(folder->key, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* Refused with a sentence that names the file and has `word` in it. */
static void expect_refused(const struct folder *folder, int result, const char *word)
{
	uint8_t key[OSD_DEVICE_KEY_BYTES];
	struct error_text error = { "" };

	assert_int_equal(osd_key_file_read(folder->key, key, &error), result);
	assert_non_null(strstr(error.text, folder->key));
	assert_non_null(strstr(error.text, word));
}

static void test_the_key_that_was_made_is_read_every_time(void **state)
{
	struct folder *folder = *state;
	uint8_t first[OSD_DEVICE_KEY_BYTES], second[OSD_DEVICE_KEY_BYTES];
	struct error_text error = { "" };
	struct stat stat_of;

	assert_int_equal(osd_key_file_create(folder->key, &error), 0);
	assert_int_equal(stat(folder->key, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600);
	assert_int_equal(osd_key_file_read(folder->key, first, &error), 0);
	assert_int_equal(osd_key_file_read(folder->key, second, &error), 0);
	assert_memory_equal(first, second, sizeof(first));
}

static void test_no_two_keys_that_are_made_are_the_same(void **state)
{
	struct folder *folder = *state;
	uint8_t first[OSD_DEVICE_KEY_BYTES], second[OSD_DEVICE_KEY_BYTES];
	struct error_text error = { "" };

	assert_int_equal(osd_key_file_create(folder->key, &error), 0);
	assert_int_equal(osd_key_file_read(folder->key, first, &error), 0);
	assert_int_equal(unlink(folder->key), 0);
	assert_int_equal(osd_key_file_create(folder->key, &error), 0);
	assert_int_equal(osd_key_file_read(folder->key, second, &error), 0);
	assert_memory_not_equal(first, second, sizeof(first));
}

static void test_a_key_that_is_there_is_not_made_anew(void **state)
{
	struct folder *folder = *state;
	uint8_t key[OSD_DEVICE_KEY_BYTES];
	struct error_text error = { "" };

	write_file(folder, DIGITS "\n", 0600);
	assert_int_equal(osd_key_file_create(folder->key, &error), -EEXIST);
	assert_non_null(strstr(error.text, folder->key));
	assert_int_equal(osd_key_file_read(folder->key, key, &error), 0);
	assert_int_equal(key[0], 0x00);
	assert_int_equal(key[OSD_DEVICE_KEY_BYTES - 1], 0x89);
}

static void test_digits_are_read_in_both_cases_and_without_a_newline(void **state)
{
	static const uint8_t expected[OSD_DEVICE_KEY_BYTES] = {
		0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA,
		0xBB, 0xCC, 0xDD, 0xEE, 0xFF, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB,
		0xCD, 0xEF, 0xAB, 0xCD, 0xEF, 0x01, 0x23, 0x45, 0x67, 0x89,
	};
	struct folder *folder = *state;
	uint8_t key[OSD_DEVICE_KEY_BYTES];
	struct error_text error = { "" };

	write_file(folder, DIGITS, 0600);
	assert_int_equal(osd_key_file_read(folder->key, key, &error), 0);
	assert_memory_equal(key, expected, sizeof(key));
	write_file(folder, DIGITS "\n", 0400);
	assert_int_equal(osd_key_file_read(folder->key, key, &error), 0);
	assert_memory_equal(key, expected, sizeof(key));
}

static void test_a_key_that_others_can_use_is_refused(void **state)
{
	static const mode_t modes[] = { 0640, 0620, 0604, 0602, 0601, 0777 };
	struct folder *folder = *state;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		write_file(folder, DIGITS "\n", modes[i]);
		expect_refused(folder, -EPERM, "chmod 600");
		assert_int_equal(unlink(folder->key), 0);
	}
}

static void test_what_is_not_64_digits_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"00",
		DIGITS "0",
		DIGITS "\n\n",
		DIGITS " \n",
		DIGITS "\r\n",
		/* A digit that is none, first and last; one too few. */
		"g0112233445566778899aabbccddeeff0123456789abcdefABCDEF0123456789\n",
		"00112233445566778899aabbccddeeff0123456789abcdefABCDEF012345678:\n",
		"0112233445566778899aabbccddeeff0123456789abcdefABCDEF0123456789\n",
	};
	struct folder *folder = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		write_file(folder, texts[i], 0600);
		expect_refused(folder, -EINVAL, "muninnctl key create");
	}
}

static void test_a_file_that_cannot_be_opened_or_read_is_named(void **state)
{
	struct folder *folder = *state;

	expect_refused(folder, -ENOENT, "No such file");
	assert_int_equal(mkdir(folder->key, 0700), 0);
	expect_refused(folder, -EISDIR, "directory");
	assert_int_equal(rmdir(folder->key), 0);
}

/* Under a limit on the size of files, as a full file system: all of it fails, or its last part. */
static void create_under_limit(const struct folder *folder, rlim_t limit, int result)
{
	struct error_text error = { "" };
	struct rlimit before, now;
	int created;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	now = before;
	now.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	errno = 0;
	created = osd_key_file_create(folder->key, &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(created, result);
	assert_non_null(strstr(error.text, folder->key));
	assert_non_null(strstr(error.text, strerror(-result)));
}

static void test_a_key_that_could_not_be_written_is_not_there(void **state)
{
	struct folder *folder = *state;
	struct error_text error = { "" };

	create_under_limit(folder, 0, -EFBIG);
	assert_int_equal(access(folder->key, F_OK), -1);
	create_under_limit(folder, 10, -ENOSPC);
	assert_int_equal(access(folder->key, F_OK), -1);
	/* So the next try is not told of a file that exists. */
	assert_int_equal(osd_key_file_create(folder->key, &error), 0);
}

static void test_the_key_that_root_makes_in_the_folder_of_a_user_is_the_users(void **state)
{
	struct folder *folder = *state;
	struct error_text error = { "" };
	char outside[96];
	struct stat status;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(folder->path, 65534, 65534), 0);
	assert_int_equal(osd_key_file_create(folder->key, &error), 0);
	assert_int_equal(stat(folder->key, &status), 0);
	assert_int_equal(status.st_uid, 65534);
	assert_int_equal(unlink(folder->key), 0);
	/* But not where a link of the user leads. */
	snprintf(outside, sizeof(outside), "%s.outside", folder->path);
	assert_int_equal(symlink(outside, folder->key), 0);
	assert_int_equal(lchown(folder->key, 65534, 65534), 0);
	assert_int_equal(osd_key_file_create(folder->key, &error), -EEXIST);
	assert_non_null(strstr(error.text, "File exists"));
	assert_int_equal(access(outside, F_OK), -1);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_the_key_that_was_made_is_read_every_time),
		with_folder(test_no_two_keys_that_are_made_are_the_same),
		with_folder(test_a_key_that_is_there_is_not_made_anew),
		with_folder(test_a_key_that_could_not_be_written_is_not_there),
		with_folder(test_the_key_that_root_makes_in_the_folder_of_a_user_is_the_users),
		with_folder(test_digits_are_read_in_both_cases_and_without_a_newline),
		with_folder(test_a_key_that_others_can_use_is_refused),
		with_folder(test_what_is_not_64_digits_is_refused),
		with_folder(test_a_file_that_cannot_be_opened_or_read_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
