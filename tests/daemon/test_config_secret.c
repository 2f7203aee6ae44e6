/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The warning that others can read the configuration's secret: when, and with which advice. The
 * test says whom the daemon runs as, and whether the host has the group of the service.
 */
#include <grp.h>
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

#include "common/log.h"
#include "daemon/config.h"

static char path[64];
static struct stat status;          /* of that file */
static struct group *service_group; /* NULL: this host has none */
static uid_t user;                  /* whom the daemon runs as */
static char warned[512];

struct group *__wrap_getgrnam(const char *name);
struct group *__wrap_getgrnam(const char *name)
{
	assert_string_equal(name, "muninn");
	return service_group;
}

uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return user;
}

static void keep_line(enum log_level level, const char *line)
{
	assert_int_equal(level, LOG_LEVEL_WARNING);
	snprintf(warned, sizeof(warned), "%s", line);
}

static int setup(void **state)
{
	static const char text[] = "[target]\nchap_user = u\nchap_secret = 123456789012\n"
				   "[lun 1]\ntype = osd\n";
	int fd, result;

	(void)state;
	strcpy(path, "/tmp/muninn-config-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	result = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? fstat(fd, &status) : -1;
	close(fd);
	log_configure(keep_line, LOG_LEVEL_DEBUG);
	return result;
}

static int teardown(void **state)
{
	(void)state;
	log_configure(NULL, LOG_LEVEL_INFO);
	return unlink(path);
}

enum advice { NONE, SHARE_WITH_SERVICE, KEEP_FOR_OWNER };

/* What reading the file with this mode warns of. */
static void assert_advice(mode_t mode, enum advice advice)
{
	static struct config config;
	struct error_text error = { "" };
	char expected[sizeof(warned)] = "";

	if (advice == SHARE_WITH_SERVICE)
		snprintf(expected, sizeof(expected),
			 "%s holds chap_secret and others than its owner can read it: chgrp muninn "
			 "%s; chmod 640 %s",
			 path, path, path);
	if (advice == KEEP_FOR_OWNER)
		snprintf(expected, sizeof(expected),
			 "%s holds chap_secret and others than its owner can read it: chmod 600 %s",
			 path, path);
	assert_int_equal(chmod(path, mode), 0);
	warned[0] = '\0';
	assert_int_equal(config_read(path, &config, &error), 0);
	assert_string_equal(warned, expected);
}

static void test_without_the_service_s_group_the_file_is_its_owner_s(void **state)
{
	(void)state;
	user = 0;
	service_group = NULL;
	assert_advice(0600, NONE);
	assert_advice(0640, KEEP_FOR_OWNER);
	assert_advice(0604, KEEP_FOR_OWNER);
}

static void test_the_service_s_group_may_read_it_and_nobody_else(void **state)
{
	struct group group = { .gr_name = "muninn", .gr_gid = status.st_gid };

	(void)state;
	user = 0;
	service_group = &group;
	assert_advice(0600, NONE);
	assert_advice(0640, NONE);
	assert_advice(0644, SHARE_WITH_SERVICE);
	group.gr_gid = status.st_gid + 1;
	assert_advice(0640, SHARE_WITH_SERVICE);
	/* The service itself, whose file is another user's. */
	user = status.st_uid + 1;
	assert_advice(0640, SHARE_WITH_SERVICE);
}

static void test_a_user_with_a_service_and_a_file_of_its_own_keeps_it(void **state)
{
	struct group group = { .gr_name = "muninn", .gr_gid = status.st_gid + 1 };

	(void)state;
	service_group = &group;
	user = 1000;
	if (status.st_uid == 0)
		assert_int_equal(chown(path, user, status.st_gid), 0);
	else
		user = status.st_uid;
	assert_advice(0640, KEEP_FOR_OWNER);
}

#define with_file(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_file(test_without_the_service_s_group_the_file_is_its_owner_s),
		with_file(test_the_service_s_group_may_read_it_and_nobody_else),
		with_file(test_a_user_with_a_service_and_a_file_of_its_own_keeps_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
