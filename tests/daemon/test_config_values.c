/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Each key of the configuration: values that it takes, the nearest ones that it refuses, and the
 * limits that docs/configuration.md shows for it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config.h"
#include "daemon/config_keys.h"

#define VALUES_MAX  4
#define DIGITS_20   "00000000000000000000"
#define FORTY_THREE "sssssssssssssssssssssssssssssssssssssssssss"
#define SIXTY_FOUR  "ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss"

/* `shown`: how the table of the documentation gives the limits; NULL: there are none to give. */
static const struct row {
	const char *section, *key;
	const char *good[VALUES_MAX], *bad[VALUES_MAX];
	const char *shown;
} rows[] = {
	{ "daemon", "state_dir", { "/s" }, { "s", "" }, NULL },
	{ "daemon", "run_dir", { "/r" }, { "r", "/a,b" }, NULL },
	{ "daemon", "tgtd", { "/t" }, { "t" }, NULL },
	{ "daemon", "module", { "/m" }, { "m" }, NULL },
	{ "daemon",
	  "allocator",
	  { "jemalloc", "system", "/a.so" },
	  { "tcmalloc" },
	  "jemalloc, system, or the path of a library" },
	{ "daemon", "log_level", { "error", "debug" }, { "loud" }, "error, warning, info, debug" },
	{ "daemon", "stop_timeout", { "1", "3600" }, { "0", "3601", "1s" }, "1..3600" },
	{ "daemon", "watchdog", { "1", "300" }, { "0", "301" }, "1..300" },
	{ "daemon",
	  "admin_group",
	  { "wheel" },
	  { "a,b", "a b", SIXTY_FOUR },
	  "a group of the host" },
	{ "daemon",
	  "metrics",
	  { "127.0.0.1:1", "[::1]:65535" },
	  { "127.0.0.1", ":1", "127.0.0.1:1, [::1]:1", "127.0.0.1:0" },
	  "one ADDRESS:PORT, numeric" },
	{ "target NAME",
	  "name",
	  { "iqn.2014-06.x:y", "eui.1" },
	  { "x", "iqn.a b" },
	  "223 letters" },
	{ "target",
	  "portal",
	  { "127.0.0.1:1", "[::1]:65535", "127.0.0.1:1, [::1]:1 10.0.0.1:2" },
	  { "127.0.0.1", "host:1, [::1]:1", "::1:3260", "127.0.0.1:65536" },
	  "ADDRESS:PORT, numeric; 8 of them" },
	{ "target", "discovery_user", { "u" }, { "a,b", "a b", SIXTY_FOUR }, "both or none" },
	{ "target",
	  "discovery_secret",
	  { "123456789012" },
	  { "12345678901", "1234567890,2", SIXTY_FOUR },
	  "12 to 63 characters" },
	{ "target",
	  "discovery_secret_file",
	  { "/s", "s" },
	  { "a/b", "../s", "" },
	  "or a credential" },
	{ "target NAME",
	  "allow_address",
	  { "ALL", "10.0.0.1", "10.0.0.0/32, ::/128" },
	  { "10.0.0.0/33", "::/129", "host", "," },
	  "32 of each" },
	{ "target NAME", "allow_name", { "iqn.a", "iqn.a,iqn.b" }, { "a", "," }, "32 of each" },
	{ "target NAME", "chap_user", { "u" }, { "a,b", "a b", SIXTY_FOUR }, "both or none" },
	{ "target NAME",
	  "chap_secret",
	  { "123456789012" },
	  { "12345678901", "1234567890,2", SIXTY_FOUR },
	  "12 to 63 characters" },
	{ "target NAME",
	  "chap_secret_file",
	  { "/s", "s" },
	  { "a/b", "../s", "" },
	  "or a credential" },
	{ "target NAME", "mutual_user", { "u" }, { "a,b", "a b", SIXTY_FOUR }, "both or none" },
	{ "target NAME",
	  "mutual_secret",
	  { "123456789012" },
	  { "12345678901", "1234567890,2", SIXTY_FOUR },
	  "12 to 63 characters" },
	{ "target NAME",
	  "mutual_secret_file",
	  { "/s", "s" },
	  { "a/b", "../s", "" },
	  "or a credential" },
	{ "limits", "connections", { "1", "4096" }, { "0", "4097" }, "1..4096" },
	{ "limits", "connections_per_address", { "1", "4096" }, { "0", "4097" }, "1..4096" },
	{ "limits", "login_timeout", { "1", "3600" }, { "0", "3601" }, "1..3600" },
	{ "limits", "stall_timeout", { "1", "3600" }, { "0", "3601" }, "1..3600" },
	{ "limits", "commands", { "128", "4096" }, { "127", "4097" }, "128..4096" },
	{ "limits", "transfer", { "1M", "1024M" }, { "1048575", "1025M" }, "1M..1024M" },
	{ "limits", "session_memory", { "1M", "1T" }, { "1048575", "1025G" }, "1M..1T" },
	{ "limits", "memory", { "1M", "1T" }, { "1048575", "1025G" }, "1M..1T" },
	{ "nand", "backend", { "mmap", "file" }, { "zoned" }, "mmap, file" },
	{ "nand",
	  "page_bytes",
	  { "512", "4096" },
	  { "256", "8192", "5000", "0" },
	  "power of two 512..4096" },
	{ "nand", "spare_bytes", { "64", "4096" }, { "63", "4097" }, "64..4096" },
	{ "nand", "pages_per_block", { "8", "1024" }, { "7", "1025" }, "8..1024" },
	{ "nand", "channels", { "1", "64" }, { "0", "65" }, "1..64" },
	{ "nand", "dies_per_channel", { "1", "64" }, { "0", "65" }, "1..64" },
	{ "engine", "engine", { "muninn" }, { "pink", "" }, "muninn" },
	{ "engine", "index", { "bloom", "ribbon" }, { "trie", "" }, "bloom, ribbon" },
	{ "engine", "rows", { "0", "1", "4096" }, { "3", "8192" }, "power of two 1..4096" },
	{ "engine",
	  "segment_pages",
	  { "0", "8", "4096" },
	  { "4", "100", "8192" },
	  "power of two 8..4096" },
	{ "engine", "record_bytes", { "0", "64", "4096" }, { "63", "4097" }, "64..4096" },
	{ "engine", "fpr_millionths", { "0", "1", "500000" }, { "500001" }, "1..500000" },
	{ "engine",
	  "fpr_factor_permille",
	  { "0", "1000", "4000" },
	  { "999", "4001" },
	  "1000..4000" },
	{ "engine", "over_provision_permille", { "0", "900" }, { "901" }, "1..900" },
	{ "engine", "parity", { "auto", "0", "16" }, { "17", "none" }, "auto, 0..16" },
	{ "engine", "hot_rows", { "spread", "finalise" }, { "hot" }, "spread, finalise" },
	{ "engine", "onode_cache", { "0", "16777216" }, { "16777217" }, "up to 16777216" },
	{ "engine", "directory_cache", { "0", "16777216" }, { "16777217" }, "up to 16777216" },
	{ "engine", "version_cache", { "0", "16777216" }, { "16777217" }, "up to 16777216" },
	{ "engine", "durability", { "process", "host" }, { "disk" }, "process, host" },
	{ "engine", "merge", { "auto", "manual" }, { "never" }, "auto, manual" },
	{ "engine",
	  "tables",
	  { "ram", "demand:1" },
	  { "flash", "demand", "demand:0" },
	  "ram, demand:MIB" },
	{ "engine", "history_interval", { "0", "86400000" }, { "86400001" }, "0 ms to a day" },
	{ "engine", "inline_bytes", { "0", "4096" }, { "4097" }, "0..4096" },
	{ "engine", "scrub_days", { "0", "3650" }, { "3651" }, "0..3650" },
	{ "engine", "scrub_rate", { "1", "1000000" }, { "0", "1000001" }, "1..1000000" },
	{ "lun", "type", { "osd", "disk" }, { "tape" }, "osd, disk" },
	{ "lun", "target", { "t", "a.b-c_d:1" }, { "a/b", "", FORTY_THREE }, "42 letters" },
	{ "lun", "device", { "d", "a.b-c_d:1" }, { "a/b", "", FORTY_THREE }, "42 letters" },
	{ "device", "image", { "i", "/i" }, { "a,b", "" }, "no comma" },
	{ "device", "nvram", { "/n" }, { "n", "/a,b" }, "absolute, no comma" },
	{ "device",
	  "size",
	  { "1M", "1024T", "1048576" },
	  { "1048575", "1025T", "1X" },
	  "1M..1024T" },
	{ "lun", "threads", { "1", "64" }, { "0", "65" }, "1..64" },
	{ "device", "recover_without_nvram", { "no", "yes" }, { "maybe" }, "no, yes" },
	{ "lun", "layout", { "flat", "packed" }, { "round" }, "flat, packed" },
	{ "lun", "key_file", { "k", "/k" }, { "a,b", "a;b", "" }, "64 hexadecimal digits" },
	{ "lun", "serial", { "s" }, { "a;b", "a b", "", SIXTY_FOUR }, "36 characters" },
	{ "lun",
	  "system_id",
	  { DIGITS_20 DIGITS_20 },
	  { DIGITS_20, DIGITS_20 "0000000000000000000x" },
	  "40 hexadecimal digits" },
	{ "lun",
	  "partition",
	  { "0x10000", "65536", "0xFFFFFFFFFFFF" },
	  { "0xFFFF", "0x1000000000000", "-1" },
	  "0x10000..0xFFFFFFFFFFFF" },
	{ "lun", "volume_size", { "1M", "1024T" }, { "1048575", "1025T" }, "1M..1024T" },
	{ "lun", "block_size", { "512", "4096" }, { "1024" }, "512, 4096" },
	{ "lun",
	  "version",
	  { "1", "61439", "before-2.0" },
	  { "0", "61440", "2x", SIXTY_FOUR },
	  "a name, 1..61439" },
	{ "lun",
	  "snapshot_schedule",
	  { "minutely:1 hourly:24 daily:30 weekly:8 monthly:1000", "0x10000 daily:1" },
	  { "yearly:1", "daily:0", "daily:1001", "0xFFFF daily:1" },
	  "1 to 1000" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* What reading a file with one value for the key says. */
static int read_value(const struct row *row, const char *value, struct error_text *error)
{
	static struct config config;
	char path[] = "/tmp/muninn-config-XXXXXX";
	bool of_unit = !strcmp(row->section, "lun") || !strcmp(row->section, "device");
	int fd = mkstemp(path), result;
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	assert_true(fprintf(file, "[%s]\n%s = %s\n%s", of_unit ? "lun 1" : row->section, row->key,
			    value, of_unit ? "" : "[lun 1]\ntype = osd\n") > 0);
	assert_int_equal(fclose(file), 0);
	result = config_read(path, &config, error);
	assert_int_equal(unlink(path), 0);
	return result;
}

static bool has_row(const struct config_key *key)
{
	for (size_t i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].key, key->name) && !strcmp(rows[i].section, key->section))
			return rows[i].good[0] && rows[i].bad[0];
	return false;
}

static void test_each_key_has_a_row(void **state)
{
	(void)state;
	assert_int_equal(ROWS, config_key_count);
	for (size_t i = 0; i < config_key_count; i++)
		if (!has_row(&config_keys[i]))
			fail_msg("[%s] %s has no row", config_keys[i].section, config_keys[i].name);
}

static void test_each_key_takes_values_up_to_its_limits(void **state)
{
	struct error_text error;

	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (size_t j = 0; j < VALUES_MAX && rows[i].good[j]; j++)
			if (read_value(&rows[i], rows[i].good[j], &error))
				fail_msg("%s = %s: %s", rows[i].key, rows[i].good[j], error.text);
}

static void test_each_key_refuses_values_beyond_its_limits(void **state)
{
	struct error_text error;
	char expected[80];

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		snprintf(expected, sizeof(expected), ":2: %s: ", rows[i].key);
		for (size_t j = 0; j < VALUES_MAX && rows[i].bad[j]; j++) {
			if (read_value(&rows[i], rows[i].bad[j], &error) != -EINVAL)
				fail_msg("%s = %s is taken", rows[i].key, rows[i].bad[j]);
			if (!strstr(error.text, expected))
				fail_msg("%s = %s: %s", rows[i].key, rows[i].bad[j], error.text);
		}
	}
}

/* Looks for the line of a table whose first column names the key. */
static bool find_in_table(FILE *page, const char *key, char *line, int bytes)
{
	char quoted[80];

	snprintf(quoted, sizeof(quoted), "`%s`", key);
	rewind(page);
	while (fgets(line, bytes, page)) {
		const char *at = strstr(line, quoted), *end = strstr(line + 1, " |");

		if (line[0] == '|' && at && end && at < end)
			return true;
	}
	return false;
}

static void test_the_documentation_shows_these_limits(void **state)
{
	FILE *page = fopen("docs/configuration.md", "r");
	char line[512];

	(void)state;
	assert_non_null(page);
	for (size_t i = 0; i < ROWS; i++) {
		if (!find_in_table(page, rows[i].key, line, sizeof(line)))
			fail_msg("docs/configuration.md has no row for %s", rows[i].key);
		if (rows[i].shown && !strstr(line, rows[i].shown))
			fail_msg("'%s' is not in: %s", rows[i].shown, line);
	}
	fclose(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_key_has_a_row),
		cmocka_unit_test(test_each_key_takes_values_up_to_its_limits),
		cmocka_unit_test(test_each_key_refuses_values_beyond_its_limits),
		cmocka_unit_test(test_the_documentation_shows_these_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
