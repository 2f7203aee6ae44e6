/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Bytes, checksums, error sentences and log lines. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
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
#include "common/mapped_memory.h"
#include "common/owner.h"
#include "common/thread.h"

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

/* A folder of somebody that is `folder`/mine, beside one of root, `folder`/other. */
struct scene {
	char folder[64], mine[80], other[80], file[96];
};

static void make_scene(struct scene *scene, uid_t user)
{
	strcpy(scene->folder, "/tmp/muninn-owner-XXXXXX");
	assert_non_null(mkdtemp(scene->folder));
	snprintf(scene->mine, sizeof(scene->mine), "%s/mine", scene->folder);
	snprintf(scene->other, sizeof(scene->other), "%s/other", scene->folder);
	snprintf(scene->file, sizeof(scene->file), "%s/file", scene->mine);
	assert_int_equal(mkdir(scene->mine, 0755), 0);
	assert_int_equal(mkdir(scene->other, 0755), 0);
	assert_int_equal(chown(scene->mine, user, user), 0);
}

/* Fails where a file is left that the test does not know. */
static void remove_scene(const struct scene *scene)
{
	unlink(scene->file);
	assert_int_equal(rmdir(scene->mine), 0);
	assert_int_equal(rmdir(scene->other), 0);
	assert_int_equal(rmdir(scene->folder), 0);
}

static int open_folder(const struct scene *scene)
{
	const char *name;
	int folder = owner_open_folder(scene->file, &name);

	assert_true(folder >= 0);
	assert_string_equal(name, "file");
	return folder;
}

/* Makes the file, and tells whose it is. */
static uid_t make_file(int folder)
{
	struct stat status;
	int fd = owner_make_file(folder, "file", O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	assert_int_equal(status.st_uid, status.st_gid);
	assert_int_equal(status.st_mode & 0777, 0600);
	return status.st_uid;
}

static void test_what_root_makes_belongs_to_the_owner_of_the_folder(void **state)
{
	static const uid_t users[] = { NOBODY, 0 };
	struct scene scene;
	int folder;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t n = 0; n < sizeof(users) / sizeof(users[0]); n++) {
		make_scene(&scene, users[n]);
		folder = open_folder(&scene);
		assert_int_equal(make_file(folder), users[n]);
		assert_int_equal(owner_make_file(folder, "file", O_WRONLY, 0600), -EEXIST);
		assert_int_equal(owner_sync_folder(folder), 0);
		close(folder);
		remove_scene(&scene);
	}
}

/* The folder's path becomes a link to one of root, as soon as the folder is open, and back. */
static void test_a_folder_that_becomes_a_link_gives_nothing_away(void **state)
{
	struct scene scene;
	char aside[80], other[96];
	int folder;

	(void)state;
	if (geteuid() != 0)
		skip();
	make_scene(&scene, NOBODY);
	snprintf(aside, sizeof(aside), "%s/aside", scene.folder);
	snprintf(other, sizeof(other), "%s/file", scene.other);
	folder = open_folder(&scene);
	assert_int_equal(rename(scene.mine, aside), 0);
	assert_int_equal(symlink("other", scene.mine), 0);
	assert_int_equal(make_file(folder), NOBODY);
	assert_int_equal(access(other, F_OK), -1);
	close(folder);
	/* The other way round: what is made in root's folder stays root's. */
	folder = open_folder(&scene);
	assert_int_equal(unlink(scene.mine), 0);
	assert_int_equal(rename(aside, scene.mine), 0);
	assert_int_equal(make_file(folder), 0);
	close(folder);
	assert_int_equal(unlink(other), 0);
	remove_scene(&scene);
}

static void test_no_file_is_made_where_a_link_leads(void **state)
{
	struct scene scene;
	int folder;

	(void)state;
	if (geteuid() != 0)
		skip();
	make_scene(&scene, NOBODY);
	assert_int_equal(symlink("../other/file", scene.file), 0);
	folder = open_folder(&scene);
	assert_int_equal(owner_make_file(folder, "file", O_WRONLY, 0600), -EEXIST);
	close(folder);
	remove_scene(&scene);
}

static void test_every_path_has_a_folder_and_a_name(void **state)
{
	static const char *const paths[] = { "name", "./name", "/name", "/tmp/name", "/tmp//name" };
	struct stat found, wanted;
	const char *name;
	int folder;

	(void)state;
	for (size_t n = 0; n < sizeof(paths) / sizeof(paths[0]); n++) {
		folder = owner_open_folder(paths[n], &name);
		assert_true(folder >= 0);
		assert_string_equal(name, "name");
		assert_int_equal(fstat(folder, &found), 0);
		assert_int_equal(stat(n < 2 ? "." : n == 2 ? "/" : "/tmp", &wanted), 0);
		assert_true(found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino);
		close(folder);
	}
	assert_int_equal(owner_open_folder("/dev/null/name", &name), -ENOTDIR);
	assert_int_equal(owner_open_folder("/none/name", &name), -ENOENT);
}

/* What pthread_sigmask says of the calling thread. */
static void *tell_mask(void *context)
{
	pthread_sigmask(SIG_SETMASK, NULL, context);
	return NULL;
}

struct told {
	sem_t named;
	sigset_t mask;
	char name[16];
};

static void *tell(void *context)
{
	struct told *told = context;

	sem_wait(&told->named);
	tell_mask(&told->mask);
	pthread_getname_np(pthread_self(), told->name, sizeof(told->name));
	return NULL;
}

static void test_a_thread_has_a_name_and_takes_no_signals_and_its_maker_still_does(void **state)
{
	sigset_t before, after;
	struct told told;
	pthread_t thread;

	(void)state;
	sem_init(&told.named, 0, 0);
	tell_mask(&before);
	assert_int_equal(thread_start(&thread, "muninn-fifteen-", tell, &told), 0);
	sem_post(&told.named);
	assert_int_equal(pthread_join(thread, NULL), 0);
	sem_destroy(&told.named);
	assert_string_equal(told.name, "muninn-fifteen-");
	tell_mask(&after);
	assert_false(sigismember(&before, SIGINT));
	assert_true(sigismember(&told.mask, SIGINT));
	assert_true(sigismember(&told.mask, SIGTERM));
	assert_false(sigismember(&after, SIGINT));
}

/* ---- mapped memory ---- */

static void fill(struct mapped_memory *memory)
{
	for (uint64_t n = 0; n < memory->bytes; n++)
		memory->at[n] = (uint8_t)(n / 7 + 1);
}

static void test_mapped_memory_keeps_what_it_has_and_gives_pages_back(void **state)
{
	static const uint64_t sizes[] = { 1, 5000, 300000, 299000, 40000, 4096, 4097, 900000 };
	uint64_t before = mapped_all(), had = 0;
	struct mapped_memory memory = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(mapped_resize(&memory, sizes[i]), 0);
		assert_int_equal(memory.bytes, sizes[i]);
		assert_int_equal(memory.mapped, mapped_pages(sizes[i]));
		assert_int_equal(mapped_all(), before + memory.mapped);
		for (uint64_t n = 0; n < had && n < sizes[i]; n++)
			assert_int_equal(memory.at[n], (uint8_t)(n / 7 + 1));
		fill(&memory);
		had = sizes[i];
	}
	/* More than there is. */
	assert_int_equal(mapped_resize(&memory, UINT64_C(1) << 60), -ENOMEM);
	assert_int_equal(memory.bytes, had);
	assert_int_equal(memory.at[had - 1], (uint8_t)((had - 1) / 7 + 1));
	mapped_end(&memory);
	mapped_end(&memory);
	assert_int_equal(mapped_all(), before);
}

static void test_new_mapped_memory_is_zero(void **state)
{
	struct mapped_memory memory = { 0 };

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(mapped_resize(&memory, 20000), 0);
		for (uint64_t n = 0; n < memory.bytes; n++)
			assert_int_equal(memory.at[n], 0);
		fill(&memory);
		assert_int_equal(mapped_resize(&memory, 0), 0);
		assert_null(memory.at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_memory_keeps_what_it_has_and_gives_pages_back),
		cmocka_unit_test(test_new_mapped_memory_is_zero),
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
		cmocka_unit_test(test_a_folder_that_becomes_a_link_gives_nothing_away),
		cmocka_unit_test(test_no_file_is_made_where_a_link_leads),
		cmocka_unit_test(test_every_path_has_a_folder_and_a_name),
		cmocka_unit_test(
			test_a_thread_has_a_name_and_takes_no_signals_and_its_maker_still_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
