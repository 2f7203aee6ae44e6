/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Bytes, checksums, error sentences and log lines. */
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
#include "common/crc32c.h"
#include "common/error.h"
#include "common/log.h"
#include "common/owner.h"

static void test_big_endian_puts_the_high_byte_first(void **state)
{
	uint8_t bytes[8];

	(void)state;
	put_be16(bytes, 0x0102);
	assert_memory_equal(bytes, "\x01\x02", 2);
	put_be32(bytes, 0x01020304);
	assert_memory_equal(bytes, "\x01\x02\x03\x04", 4);
	put_be48(bytes, UINT64_C(0x010203040506));
	assert_memory_equal(bytes, "\x01\x02\x03\x04\x05\x06", 6);
	assert_int_equal(get_be48(bytes), UINT64_C(0x010203040506));
	put_be64(bytes, UINT64_C(0x0102030405060708));
	assert_memory_equal(bytes, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	assert_int_equal(get_be64(bytes), UINT64_C(0x0102030405060708));
}

static void test_little_endian_puts_the_low_byte_first(void **state)
{
	uint8_t bytes[8];

	(void)state;
	put_le32(bytes, 0x01020304);
	assert_memory_equal(bytes, "\x04\x03\x02\x01", 4);
	put_le48(bytes, UINT64_C(0x010203040506));
	assert_memory_equal(bytes, "\x06\x05\x04\x03\x02\x01", 6);
	assert_int_equal(get_le48(bytes), UINT64_C(0x010203040506));
	put_le64(bytes, UINT64_C(0x0102030405060708));
	assert_memory_equal(bytes, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
	assert_int_equal(get_le16(bytes), 0x0708);
}

static void test_rounding_goes_up_and_keeps_multiples(void **state)
{
	(void)state;
	assert_int_equal(align_up(0, 8), 0);
	assert_int_equal(align_up(1, 8), 8);
	assert_int_equal(align_up(8, 8), 8);
	assert_int_equal(divide_up(0, 10), 0);
	assert_int_equal(divide_up(10, 10), 1);
	assert_int_equal(divide_up(11, 10), 2);
	assert_int_equal(divide_up(UINT64_MAX, 2), UINT64_C(1) << 63);
}

static void test_only_powers_of_two_are_powers_of_two(void **state)
{
	(void)state;
	assert_false(is_power_of_two(0));
	assert_true(is_power_of_two(1));
	assert_false(is_power_of_two(3));
	assert_true(is_power_of_two(UINT64_C(1) << 63));
	assert_false(is_power_of_two(UINT64_MAX));
}

static void test_crc32c_has_the_published_check_value(void **state)
{
	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, "", 0), 0);
}

static void test_crc32c_of_parts_continues(void **state)
{
	(void)state;
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void test_an_error_sentence_is_cut_never_overrun(void **state)
{
	struct error_text error;
	char long_name[2 * sizeof(error.text)];

	(void)state;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(error_set(&error, -EINVAL, "%s", long_name), -EINVAL);
	assert_int_equal(strlen(error.text), sizeof(error.text) - 1);
	assert_int_equal(error_set(NULL, -EIO, "%s", long_name), -EIO);
	/* What it says behind the name is still there, and no character is cut in two. */
	error_set(&error, -EIO, "a%s: why \xc3\xb6", long_name);
	assert_true(strncmp(error.text, "axx", 3) == 0 && strstr(error.text, "x ... x"));
	assert_string_equal(error.text + strlen(error.text) - 9, "x: why \xc3\xb6");
	for (size_t n = 0; n + 2 < sizeof(long_name); n += 2)
		memcpy(long_name + n, "\xc3\xb6", 2);
	for (int shift = 0; shift < 2; shift++) {
		error_set(&error, -EIO, "%.*s%s", shift, "-", long_name);
		assert_non_null(strstr(error.text, "\xc3\xb6 ... \xc3\xb6"));
	}
}

static char logged[256];
static int logged_lines;

static void remember(enum log_level level, const char *line)
{
	snprintf(logged, sizeof(logged), "%d %s", (int)level, line);
	logged_lines++;
}

static void test_log_lines_past_the_level_are_dropped(void **state)
{
	(void)state;
	logged_lines = 0;
	log_configure(remember, LOG_LEVEL_WARNING);
	log_line(LOG_LEVEL_INFO, "not wanted");
	assert_int_equal(logged_lines, 0);
	log_line(LOG_LEVEL_WARNING, "page %d", 7);
	assert_string_equal(logged, "1 page 7");
	assert_int_equal(logged_lines, 1);
	log_configure(NULL, LOG_LEVEL_INFO);
}

static void test_log_levels_have_words(void **state)
{
	enum log_level level = LOG_LEVEL_INFO;

	(void)state;
	assert_int_equal(log_level_parse("error", &level), 0);
	assert_int_equal(level, LOG_LEVEL_ERROR);
	assert_int_equal(log_level_parse("debug", &level), 0);
	assert_int_equal(level, LOG_LEVEL_DEBUG);
	assert_int_equal(log_level_parse("", &level), -EINVAL);
	assert_int_equal(log_level_parse("Info", &level), -EINVAL);
	assert_int_equal(level, LOG_LEVEL_DEBUG);
}

#define NOBODY 65534

/* Makes a file in a folder of somebody, and tells whose it is. */
static uid_t owner_of_a_file_in_a_folder_of(uid_t user)
{
	char folder[] = "/tmp/muninn-owner-XXXXXX", path[64];
	struct stat status;
	int fd;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chown(folder, user, user), 0);
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(owner_take_from_folder(fd, path), 0);
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	unlink(path);
	rmdir(folder);
	assert_int_equal(status.st_uid, status.st_gid);
	return status.st_uid;
}

static void test_what_root_makes_belongs_to_the_owner_of_the_folder(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(owner_of_a_file_in_a_folder_of(NOBODY), NOBODY);
	assert_int_equal(owner_of_a_file_in_a_folder_of(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_big_endian_puts_the_high_byte_first),
		cmocka_unit_test(test_little_endian_puts_the_low_byte_first),
		cmocka_unit_test(test_rounding_goes_up_and_keeps_multiples),
		cmocka_unit_test(test_only_powers_of_two_are_powers_of_two),
		cmocka_unit_test(test_crc32c_has_the_published_check_value),
		cmocka_unit_test(test_crc32c_of_parts_continues),
		cmocka_unit_test(test_an_error_sentence_is_cut_never_overrun),
		cmocka_unit_test(test_log_lines_past_the_level_are_dropped),
		cmocka_unit_test(test_log_levels_have_words),
		cmocka_unit_test(test_what_root_makes_belongs_to_the_owner_of_the_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
