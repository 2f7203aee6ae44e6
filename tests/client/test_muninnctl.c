/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The command itself: help, and exit codes and messages of what goes wrong before there is a
 * target.
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include <cmocka.h>

#include "client/ctl/ctl.h"
#include "tests/client/muninnctl_path.h"

static char program[4096];
static char output[65536];
static char closed_url[128];

static int find_program(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int fd;

	(void)state;
	muninnctl_path(program);
	/* A port that nobody listens at: bound, and kept. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	snprintf(closed_url, sizeof(closed_url), "iscsi://127.0.0.1:%u/iqn.2026-01.test:x/1",
		 ntohs(address.sin_port));
	return 0;
}

/*
 * Runs with arguments as a shell reads them; `output` gets both of its outputs. Returns the exit
 * code.
 */
static int run(const char *arguments)
{
	char command[8192];
	size_t length;
	FILE *pipe;
	int status;

	snprintf(command, sizeof(command), "U=%s; %s %s 2>&1 </dev/null", closed_url, program,
		 arguments);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	length = fread(output, 1, sizeof(output) - 1, pipe);
	output[length] = '\0';
	status = pclose(pipe);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const char *arguments, int code, const char *word)
{
	int result = run(arguments);

	if (result != code || !strstr(output, word))
		fail_msg("muninnctl %s: exit code %d instead of %d, or '%s' is not in: %s",
			 arguments, result, code, word, output);
}

static void test_help_names_every_verb_and_every_exit_code(void **state)
{
	static const char *const verbs[] = {
		"info",        "discover",      "format",     "mkpart",    "rmpart",    "ls",
		"stat",        "create",        "put",        "append",    "get",       "cat",
		"rm",          "truncate",      "clear",      "punch",     "attr get",  "attr set",
		"attr ls",     "import",        "export",     "flush",     "check",     "cp",
		"nand create", "nand info",     "nand map",   "nand wear", "nand dump", "nand cut",
		"nand grow",   "device backup", "device grow"
	};
	char arguments[64];

	(void)state;
	expect("--help", CTL_OK, "Exit codes");
	expect("--help", CTL_OK, "130 interrupted");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		expect("--help", CTL_OK, verbs[i]);
		snprintf(arguments, sizeof(arguments), "%s --help", verbs[i]);
		expect(arguments, CTL_OK, "Example");
		assert_non_null(strstr(output, verbs[i]));
		expect("-h", CTL_OK, "11 data is not as stored");
	}
}

static void test_wrong_usage_is_2_and_says_what_is_wrong(void **state)
{
	(void)state;
	expect("", CTL_USAGE, "verb is missing");
	expect("fly $U", CTL_USAGE, "'fly' is no verb");
	expect("attr", CTL_USAGE, "behind 'attr' one of these is missing");
	expect("attr fly $U", CTL_USAGE, "is no verb");
	expect("ls", CTL_USAGE, "URL is missing");
	expect("ls $U 1 2", CTL_USAGE, "too many arguments");
	expect("get $U", CTL_USAGE, "too few arguments");
	expect("ls --fly $U", CTL_USAGE, "--fly: there is no such option");
	/* What one verb has, another one does not pass over. */
	expect("rm $U 0x10000/0x10000 --dry-run", CTL_USAGE, "rm: --dry-run is no option of this");
	expect("rollback $U 0x10000 1 --dry-run", CTL_USAGE, "--dry-run is no option of this");
	expect("put $U 0x10000 --length 5", CTL_USAGE, "--length is no option of this verb");
	expect("stat $U -l", CTL_USAGE, "stat: --long is no option of this verb");
	expect("ls $U -l --yes --quiet --timeout 1", CTL_CONNECTION, "");
	expect("ls $U --long docs: --recursive", CTL_CONNECTION, "");
	expect("drop $U 0x10000 --keep-weekly 3 --dry-run", CTL_CONNECTION, "");
	expect("ls $U --timeout", CTL_USAGE, "needs a value");
	expect("ls $U --timeout 0", CTL_USAGE, "from 1 to");
	expect("ls $U --queue-depth 5000", CTL_USAGE, "from 1 to 1024");
	expect("ls $U --chunk 1", CTL_USAGE, "--chunk");
	expect("ls $U --chunk 1Q", CTL_USAGE, "--chunk");
	expect("ls http://127.0.0.1/", CTL_USAGE, "iscsi://");
	expect("ls iscsi://127.0.0.1/x", CTL_USAGE, "parse");
	expect("import $U 0x10000", CTL_USAGE, "needs a directory");
	expect("import $U 0x10000 --clean --dry-run", CTL_USAGE, "no --dry-run");
	expect("import $U 0x10000 --clean --update", CTL_USAGE, "need a directory");
}

static void test_wrong_addresses_are_found_before_connecting(void **state)
{
	(void)state;
	expect("ls $U 1x", CTL_USAGE, "PID[/OID][@VERSION]");
	expect("ls $U 0x10000/1", CTL_USAGE, "objects contain nothing");
	expect("get $U 0x10000", CTL_USAGE, "address of an object");
	expect("cat $U 0x10000/1 0x10000", CTL_USAGE, "address of an object");
	expect("rm $U 0x10000/1 1x", CTL_USAGE, "PID[/OID]");
	expect("rm $U 0x10000/1 _x", CTL_USAGE, "neither with an ID");
	expect("rm $U 0x10000:a", CTL_USAGE, "can only be read");
	expect("get $U :a", CTL_USAGE, "missing before the colon");
	expect("ls $U 0:", CTL_USAGE, "device has no paths");
	expect("key mint keyring docs", CTL_USAGE, "asks no target");
	expect("mkpart $U 0x10000/1", CTL_USAGE, "needs a partition, PID");
	expect("rmpart $U 0", CTL_USAGE, "needs a partition, PID");
	expect("put $U 0", CTL_USAGE, "address of a partition");
	expect("put $U 0x10000 --replace", CTL_USAGE, "--replace");
	expect("put $U 0x10000/1 --replace --offset 1", CTL_USAGE, "either");
	expect("create $U 0x10000/1 --count 2", CTL_USAGE, "--count");
	expect("import $U 0x10000@3 /tmp", CTL_DENIED, "only be read");
	expect("rmpart $U 0x10000@3 --contents", CTL_DENIED, "only be read");
	expect("retention $U 0x10000 lock-until=-1h", CTL_USAGE, "lies in the past");
	expect("retention $U 0x10000 lock-until=2020-01-31", CTL_USAGE, "lies in the past");
	expect("retention $U 0x10000 lock-until=2099-11-31", CTL_USAGE, "there is no such day");
	expect("retention $U 0x10000 lock-until=3", CTL_USAGE, "is no time");
	expect("ls $U 0x10000@2026-06-31", CTL_USAGE, "there is no such day");
	expect("truncate $U 0x10000/1 many", CTL_USAGE, "number of bytes");
	expect("clear $U 0x10000/1 1 -5", CTL_USAGE, "no number is negative here");
	expect("clear $U 0x10000/1 1 5X", CTL_USAGE, "number of bytes");
	expect("attr get $U 0x10000/1 x 1", CTL_USAGE, "page 'x'");
	expect("attr get $U 0x10000/1 1 0x100000000", CTL_USAGE, "number '0x100000000'");
	expect("attr set $U 0x10000/1 1 9", CTL_USAGE, "VALUE");
	expect("attr set $U 0x10000/1 1 9 abc --hex", CTL_USAGE, "even number");
	expect("attr set $U 0x10000/1 1 9 0g --hex", CTL_USAGE, "hexadecimal");
	expect("attr set $U 0x10000/1 1 9 x --number", CTL_USAGE, "no number");
	expect("attr set $U 0x10000/1 1 9 x --remove", CTL_USAGE, "VALUE");
	expect("attr set $U 0x10000/1 1 9 ''", CTL_USAGE, "--remove makes it undefined");
	expect("attr set $U 0x10000/1 1 9 '' --hex", CTL_USAGE, "--remove makes it undefined");
	expect("attr set $U 0x10000/1 1 9 --file /dev/null", CTL_USAGE,
	       "--remove makes it undefined");
	expect("attr set $U 0x10000/1 1 9 --remove --file x", CTL_USAGE, "only one");
	expect("attr set $U 0x10000/1 1 9 --file /nowhere", CTL_LOCAL, "/nowhere");
}

static void test_no_target_is_6(void **state)
{
	(void)state;
	expect("ls $U", CTL_CONNECTION, "Connection refused");
	expect("discover $U", CTL_CONNECTION, "Connection refused");
	expect("put $U 0x10000", CTL_CONNECTION, "is the target running");
	expect("export $U 0x10000 /tmp/x", CTL_CONNECTION, "Connection refused");
}

static void test_errors_are_json_when_asked_for(void **state)
{
	json_error_t error;
	json_t *object;

	(void)state;
	assert_int_equal(run("ls --json $U"), CTL_CONNECTION);
	object = json_loads(output, 0, &error);
	assert_non_null(object);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(object, "error"), "code")),
		CTL_CONNECTION);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(object, "error"), "name")),
		"connection");
	json_decref(object);
	/* Also when the option stands behind the one that is wrong. */
	assert_int_equal(run("ls --fly $U --json"), CTL_USAGE);
	object = json_loads(output, 0, &error);
	assert_non_null(object);
	json_decref(object);
}

static void test_the_url_may_come_from_the_environment(void **state)
{
	(void)state;
	expect("ls", CTL_USAGE, "URL is missing, and MUNINN_URL is not set");
	setenv("MUNINN_URL", closed_url, 1);
	expect("ls", CTL_CONNECTION, "127.0.0.1");
	expect("ls 0x10000", CTL_CONNECTION, "127.0.0.1");
	expect("get 0x10000", CTL_USAGE, "address of an object");
	expect("get", CTL_USAGE, "too few arguments");
	/* One that is given is stronger. */
	expect("ls iscsi://127.0.0.1/x", CTL_USAGE, "parse");
	/* It is no image. */
	expect("nand info", CTL_USAGE, "the IMAGE is missing; the form is");
	setenv("MUNINN_URL", "http://x", 1);
	expect("ls $U", CTL_CONNECTION, "127.0.0.1");
	expect("ls", CTL_USAGE, "iscsi://");
	unsetenv("MUNINN_URL");
}

static void test_help_is_a_verb_too(void **state)
{
	(void)state;
	expect("help", CTL_OK, "Exit codes");
	expect("help ls", CTL_OK, "muninnctl ls URL");
	expect("help attr get", CTL_OK, "muninnctl attr get URL");
	expect("help attr", CTL_OK, "attr set       set an attribute");
	expect("attr --help", CTL_OK, "attr ls        list attributes");
	expect("attr fly --help", CTL_USAGE, "'attr fly' is no verb");
	expect("fly --help", CTL_USAGE, "'fly' is no verb");
	expect("help fly", CTL_USAGE, "'fly' is no verb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_help_names_every_verb_and_every_exit_code),
		cmocka_unit_test(test_wrong_usage_is_2_and_says_what_is_wrong),
		cmocka_unit_test(test_wrong_addresses_are_found_before_connecting),
		cmocka_unit_test(test_no_target_is_6),
		cmocka_unit_test(test_errors_are_json_when_asked_for),
		cmocka_unit_test(test_the_url_may_come_from_the_environment),
		cmocka_unit_test(test_help_is_a_verb_too),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
