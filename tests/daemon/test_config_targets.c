/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Several targets, portals and CHAP accounts; secrets in files of their own. */
#include <errno.h>
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

#include "daemon/config.h"
#include "daemon/secrets.h"

#define UNIT    "[lun 1]\ntype = osd\n"
#define SECRET  "twelve-or-more"
#define CHAP    "chap_user = u\nchap_secret = " SECRET "\n"
#define MUTUAL  "mutual_user = m\nmutual_secret = another-of-twelve\n"
#define ON_SIDE "[lun 2]\ntype = osd\ntarget = side\n"

static struct config config;
static struct error_text error;
static char folder[64];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/muninn-targets-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/secret", folder);
	unlink(path);
	unsetenv("CREDENTIALS_DIRECTORY");
	return rmdir(folder);
}

static void write_secret(const char *text, mode_t mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/secret", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* Reads a text, FOLDER in which is the folder, up to its secrets. */
static int read_text(const char *words)
{
	static struct config_file file;
	const char *at = strstr(words, "FOLDER");
	char text[1024];
	int result;

	if (at)
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - words), words, folder,
			 at + strlen("FOLDER"));
	else
		snprintf(text, sizeof(text), "%s", words);
	strcpy(file.source, "FILE");
	file.text = text;
	file.bytes = strlen(text);
	error.text[0] = '\0';
	result = config_parse(&file, NULL, &config, &error);
	if (!result)
		result = config_complete(&config, &error);
	return result ? result : secrets_load(&config, &error);
}

static void assert_read(const char *text)
{
	if (read_text(text))
		fail_msg("%s", error.text);
}

static void assert_refused(const char *text, int result, const char *reason)
{
	assert_int_equal(read_text(text), result);
	if (!strstr(error.text, reason))
		fail_msg("'%s' is not in: %s", reason, error.text);
}

static void test_units_are_on_the_target_that_they_name(void **state)
{
	(void)state;
	assert_read("[target side]\nallow_name = iqn.x:a\n" UNIT ON_SIDE);
	assert_int_equal(config.target_count, 2);
	assert_string_equal(config.targets[0].name, "iqn.2014-06.local.muninn:osd");
	assert_string_equal(config.targets[1].name, "iqn.2014-06.local.muninn:side");
	assert_string_equal(config.luns[0].target, "");
	assert_string_equal(config.luns[1].target, "side");
	/* Each has lists of its own. */
	assert_string_equal(config.targets[0].allow_address[0], "ALL");
	assert_int_equal(config.targets[1].allow_addresses, 0);
	assert_int_equal(config.targets[1].allow_names, 1);
}

static void test_target_is_not_served_without_a_unit(void **state)
{
	(void)state;
	assert_read("[target]\nportal = 10.0.0.1:1\n[target side]\nname = iqn.x:s\n" ON_SIDE);
	assert_int_equal(config.target_count, 1);
	assert_string_equal(config.targets[0].name, "iqn.x:s");
	assert_string_equal(config.portals[0].address, "10.0.0.1");
	/* But its rules are not dropped without a word. */
	assert_refused("[target]\n" CHAP "[target side]\nname = iqn.x:s\n" ON_SIDE, -EINVAL,
		       "FILE: [target] says who may log in, and no logical unit is on it");
	assert_refused("[target]\nallow_name = iqn.x:a\n[target side]\nname = iqn.x:s\n" ON_SIDE,
		       -EINVAL, "[target] says who may log in, and no logical unit is on it");
}

static void test_targets_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	assert_refused(UNIT ON_SIDE, -EINVAL, "FILE:4: there is no section [target side]");
	assert_refused("[target side]\nname = iqn.x:s\n" UNIT, -EINVAL,
		       "FILE:2: no logical unit has target = side");
	assert_refused("[target side]\nname = iqn.2014-06.local.muninn:osd\n" UNIT ON_SIDE, -EINVAL,
		       "two targets have the name iqn.2014-06.local.muninn:osd");
	assert_refused("[target side]\n" UNIT ON_SIDE, -EINVAL,
		       "FILE:1: [target side] is empty; write name = NAME below it");
	assert_refused("[target a/b]\nname = iqn.x:s\n" UNIT, -EINVAL, "a name has 1 to 42");
	assert_refused("[target side]\nportal = 10.0.0.1:1\n" UNIT ON_SIDE, -EINVAL,
		       "[target side] has no key portal; it belongs to [target]");
	assert_refused("[daemon]\nchap_user = u\n" UNIT, -EINVAL,
		       "it belongs to [target] or [target NAME]");
	assert_refused("[target side]\nname = iqn.x:s\nname = iqn.x:s\n" UNIT ON_SIDE, -EINVAL,
		       "name is set twice in [target side]");
}

static void test_there_are_as_many_targets_as_there_is_room_for(void **state)
{
	static struct config_file file;
	char text[4096] = UNIT;

	(void)state;
	for (int i = 0; i < CONFIG_TARGETS_MAX; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "[target t%d]\nname = iqn.x:%d\n", i, i);
	}
	strcpy(file.source, "FILE");
	file.text = text;
	file.bytes = strlen(text);
	assert_int_equal(config_parse(&file, NULL, &config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "more than 16 targets"));
}

static void test_portals_have_the_form_that_tgtd_shows(void **state)
{
	char text[CONFIG_PORTALS_BYTES];

	(void)state;
	assert_read("[target]\nportal = 127.0.0.1:1, [0:0::1]:2\n" UNIT);
	config_portals(&config, "portal=", text);
	assert_string_equal(text, "portal=127.0.0.1:1,portal=[::1]:2");
	assert_refused("[target]\nportal = [::1]:2 [0::1]:2\n" UNIT, -EINVAL,
		       "portal has [::1]:2 twice");
	assert_refused("[target]\nportal = 0.0.0.0:2, 127.0.0.1:2\n" UNIT, -EINVAL,
		       "portal has 0.0.0.0:2 and 127.0.0.1:2, and one has all addresses");
	assert_refused("[target]\nportal = [::1]:2 [::]:2\n" UNIT, -EINVAL,
		       "portal has [::1]:2 and [::]:2, and one has all addresses");
	assert_read("[target]\nportal = 0.0.0.0:2, [::]:2, 127.0.0.1:3\n" UNIT);
	assert_refused("[daemon]\nmetrics = 127.0.0.1:2\n[target]\nportal = 0.0.0.0:2\n" UNIT,
		       -EINVAL, "[daemon] metrics has 127.0.0.1:2, where 0.0.0.0:2 is");
	assert_refused("[daemon]\nmetrics = 10.0.0.1:2\n[target]\nportal = 10.0.0.1:2\n" UNIT,
		       -EINVAL, "[daemon] metrics has 10.0.0.1:2, where 10.0.0.1:2 is");
	assert_read("[daemon]\nmetrics = 127.0.0.1:2\n[target]\nportal = 10.0.0.1:2\n" UNIT);
	assert_refused("[target]\nportal = 10.0.0.1:1 10.0.0.1:2 10.0.0.1:3 10.0.0.1:4 10.0.0.1:5 "
		       "10.0.0.1:6 10.0.0.1:7 10.0.0.1:8 10.0.0.1:9\n" UNIT,
		       -EINVAL, "more than 8 portals");
}

static void test_accounts_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	assert_read("[target]\n" CHAP MUTUAL UNIT);
	assert_refused("[target]\n" MUTUAL UNIT, -EINVAL, "[target] mutual_user needs chap_user");
	assert_refused("[target]\nchap_secret = " SECRET "\n" UNIT, -EINVAL,
		       "chap_user is missing");
	assert_refused("[target]\ndiscovery_user = d\n" UNIT, -EINVAL,
		       "discovery_secret is missing");
	assert_refused("[target]\n" CHAP "chap_secret_file = /s\n" UNIT, -EINVAL,
		       "[target] has chap_secret and chap_secret_file: one of them");
	assert_refused("[target]\n" CHAP "mutual_user = m\nmutual_secret = " SECRET "\n" UNIT,
		       -EINVAL, "mutual_secret must be another one than chap_secret");
	assert_refused("[target]\n" CHAP "[target side]\nchap_user = u\n"
		       "chap_secret = another-of-twelve\n" UNIT ON_SIDE,
		       -EINVAL, "user u has two secrets");
	assert_read("[target]\n" CHAP "[target side]\n" CHAP UNIT ON_SIDE);
}

static void test_a_secret_is_read_from_its_file(void **state)
{
	(void)state;
	write_secret(SECRET "\n", 0600);
	assert_read("[target]\nchap_user = u\nchap_secret_file = FOLDER/secret\n" UNIT);
	assert_string_equal(config.targets[0].chap.secret, SECRET);
	write_secret("another-of-twelve", 0400);
	assert_read("[target]\n" CHAP "mutual_user = m\nmutual_secret_file = FOLDER/secret\n" UNIT);
	assert_string_equal(config.targets[0].mutual.secret, "another-of-twelve");
	assert_read("[target]\ndiscovery_user = d\ndiscovery_secret_file = FOLDER/secret\n" UNIT);
	assert_string_equal(config.discovery.secret, "another-of-twelve");
}

static void test_a_file_that_is_no_secret_is_refused(void **state)
{
	static const char text[] =
		"[target]\nchap_user = u\nchap_secret_file = FOLDER/secret\n" UNIT;

	(void)state;
	assert_refused(text, -ENOENT, "[target] chap_secret_file: ");
	write_secret(SECRET, 0640);
	assert_refused(text, -EACCES, "others than its owner can use this secret: chmod 600");
	write_secret("short\n", 0600);
	assert_refused(text, -EBADMSG, "the secret must have 12 to 63 characters");
	write_secret(SECRET "\n" SECRET "\n", 0600);
	assert_refused(text, -EBADMSG, "not printable ASCII");
	assert_null(strstr(error.text, SECRET));
	assert_refused("[target]\nchap_user = u\nchap_secret_file = FOLDER\n" UNIT, -EISDIR,
		       "is no file");
}

static void test_a_name_without_a_folder_is_a_credential_of_systemd(void **state)
{
	static const char text[] = "[target]\nchap_user = u\nchap_secret_file = secret\n" UNIT;

	(void)state;
	assert_refused(text, -ENOENT, "systemd has given none: LoadCredential=secret:FILE");
	assert_int_equal(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
	assert_refused(text, -ENOENT, "/secret: No such file");
	/* Whose mode is that of a list. */
	write_secret(SECRET "\n", 0440);
	assert_read(text);
	assert_string_equal(config.targets[0].chap.secret, SECRET);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_folder(test_units_are_on_the_target_that_they_name),
		in_folder(test_target_is_not_served_without_a_unit),
		in_folder(test_targets_that_do_not_fit_are_refused),
		in_folder(test_there_are_as_many_targets_as_there_is_room_for),
		in_folder(test_portals_have_the_form_that_tgtd_shows),
		in_folder(test_accounts_that_do_not_fit_are_refused),
		in_folder(test_a_secret_is_read_from_its_file),
		in_folder(test_a_file_that_is_no_secret_is_refused),
		in_folder(test_a_name_without_a_folder_is_a_credential_of_systemd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
