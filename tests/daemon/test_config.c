/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The configuration file: every key, every refusal with its line, and the documented example. */
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

static struct config config;
static struct error_text error;
static char path[64];

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/muninn-config-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static int read_bytes(const char *text, size_t bytes)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
	error.text[0] = '\0';
	return config_read(path, &config, &error);
}

static int read_text(const char *text)
{
	return read_bytes(text, strlen(text));
}

/* Reading and completing `text` fails, and the sentence is FILE, then `rest`. */
static void assert_refused(const char *text, const char *rest)
{
	char expected[512];
	int result = read_text(text);

	if (!result)
		result = config_complete(&config, &error);
	assert_int_equal(result, -EINVAL);
	snprintf(expected, sizeof(expected), "%s%s", path, rest);
	if (strncmp(error.text, expected, strlen(expected)))
		fail_msg("refused with '%s' instead of '%s'", error.text, expected);
}

static void test_one_unit_is_enough_and_the_rest_is_default(void **state)
{
	struct config defaults;

	(void)state;
	assert_int_equal(read_text("[lun 3]\ntype = osd\n"), 0);
	config_defaults(&defaults);
	assert_int_equal(config.lun_count, 1);
	assert_int_equal(config.luns[0].number, 3);
	assert_string_equal(config.luns[0].image, "lun3.img");
	assert_int_equal(config.luns[0].size_bytes, UINT64_C(8) << 30);
	assert_string_equal(config.targets[0].name, defaults.targets[0].name);
	assert_int_equal(config.portals[0].port, 3260);
}

static void test_every_key_gets_to_its_place(void **state)
{
	(void)state;
	assert_int_equal(
		read_text(
			"[daemon]\nstate_dir = /s\nrun_dir=/r\ntgtd = /t\nmodule = /m\n"
			"allocator = /a\n"
			"log_level = debug\nstop_timeout = 7\nwatchdog = 8\n"
			"[target]\nname = iqn.2014-06.x:y\nportal = 192.0.2.1:99\n"
			"allow_address = 192.0.2.0/24, ::1 10.0.0.1\n"
			"allow_name = iqn.2014-06.h:a,iqn.2014-06.h:b\n"
			"chap_user = u\nchap_secret = 123456789012\n"
			"[limits]\nconnections = 5\nconnections_per_address = 4\n"
			"login_timeout = 3\nstall_timeout = 2\ncommands = 128\n"
			"transfer = 2M\nsession_memory = 3M\nmemory = 4M\n"
			"[nand]\nbackend = file\npage_bytes = 2048\nspare_bytes = 512\n"
			"pages_per_block = 128\nchannels = 2\ndies_per_channel = 3\n"
			"[engine]\nengine = muninn\nrows = 16\nsegment_pages = 512\nrecord_bytes = "
			"2048\n"
			"fpr_millionths = 7\nfpr_factor_permille = 1020\n"
			"over_provision_permille = 50\nhot_rows = finalise\nparity = 0\n"
			"[lun 5]\ntype = osd\nimage = /i\nnvram = /pmem/n\nsize = 3M\nthreads = 4\n"
			"onode_cache = 11\ndirectory_cache = 12\nversion_cache = 13\nserial = s5\n"
			"key_file = device.key\n"
			"durability = host\nmerge = manual\nrecover_without_nvram = "
			"yes\ntables = demand:64\nlayout = packed\nhistory_interval = 0\n"
			"inline_bytes = 0\nscrub_days = 0\nscrub_rate = 10\n"
			"system_id = 0000000000000000000000000000000000000001\n"),
		0);
	assert_string_equal(config.state_dir, "/s");
	assert_string_equal(config.run_dir, "/r");
	assert_string_equal(config.tgtd, "/t");
	assert_string_equal(config.module, "/m");
	assert_string_equal(config.allocator, "/a");
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(config.stop_timeout, 7);
	assert_int_equal(config.watchdog, 8);
	assert_string_equal(config.targets[0].name, "iqn.2014-06.x:y");
	assert_string_equal(config.portals[0].address, "192.0.2.1");
	assert_int_equal(config.portals[0].port, 99);
	assert_int_equal(config.targets[0].allow_addresses, 3);
	assert_string_equal(config.targets[0].allow_address[0], "192.0.2.0/24");
	assert_string_equal(config.targets[0].allow_address[1], "::1");
	assert_string_equal(config.targets[0].allow_address[2], "10.0.0.1");
	assert_int_equal(config.targets[0].allow_names, 2);
	assert_string_equal(config.targets[0].allow_name[1], "iqn.2014-06.h:b");
	assert_string_equal(config.targets[0].chap.user, "u");
	assert_string_equal(config.targets[0].chap.secret, "123456789012");
	assert_int_equal(config.limits.connections, 5);
	assert_int_equal(config.limits.connections_per_address, 4);
	assert_int_equal(config.limits.login_timeout, 3);
	assert_int_equal(config.limits.stall_timeout, 2);
	assert_int_equal(config.limits.commands, 128);
	assert_int_equal(config.limits.transfer, 2 << 20);
	assert_int_equal(config.limits.session_memory, 3 << 20);
	assert_int_equal(config.limits.memory, 4 << 20);
	assert_int_equal(config.luns[0].geometry.page_bytes, 2048);
	assert_int_equal(config.luns[0].geometry.spare_bytes, 512);
	assert_int_equal(config.luns[0].geometry.pages_per_block, 128);
	assert_int_equal(config.luns[0].geometry.channels, 2);
	assert_int_equal(config.luns[0].geometry.dies_per_channel, 3);
	assert_int_equal(config.luns[0].options.engine.muninn.rows, 16);
	assert_int_equal(config.luns[0].options.engine.muninn.segment_pages, 512);
	assert_int_equal(config.luns[0].options.engine.muninn.record_bytes, 2048);
	assert_int_equal(config.luns[0].options.engine.muninn.bloom.fpr_millionths, 7);
	assert_int_equal(config.luns[0].options.engine.muninn.bloom.fpr_factor_permille, 1020);
	assert_int_equal(config.luns[0].options.engine.records.over_provision_permille, 50);
	assert_true(config.luns[0].options.engine.muninn.parity == MUNINN_PARITY_NONE);
	assert_int_equal(config.luns[0].options.engine.muninn.bloom.hot_rows,
			 BLOOM_HOT_ROWS_FINALISE);
	assert_ptr_equal(config.luns[0].type, &unit_types[UNIT_TYPE_OSD]);
	assert_string_equal(config.luns[0].image, "/i");
	assert_string_equal(config.luns[0].nvram, "/pmem/n");
	assert_int_equal(config.luns[0].size_bytes, 3 << 20);
	assert_int_equal(config.luns[0].options.threads, 4);
	assert_int_equal(config.luns[0].options.engine.onode_cache_entries, 11);
	assert_int_equal(config.luns[0].options.engine.directory_cache_nodes, 12);
	assert_int_equal(config.luns[0].options.engine.version_cache_entries, 13);
	assert_true(config.luns[0].options.engine.stable_commits);
	assert_true(config.luns[0].options.engine.merge_manual);
	assert_int_equal(config.luns[0].options.osd.layout, 1);
	assert_int_equal(config.luns[0].options.engine.history_interval_ms, ENGINE_EVERY_COMMAND);
	assert_int_equal(config.luns[0].options.engine.inline_bytes, ENGINE_INLINE_NONE);
	assert_int_equal(config.luns[0].options.scrub.days, 0);
	assert_int_equal(config.luns[0].options.scrub.rate, 10);
	assert_true(config.luns[0].options.engine.records.recover_without_nvram);
	assert_true(config.luns[0].options.engine.muninn.bloom.table_cache_bytes == 64 << 20);
	assert_int_equal(config.luns[0].options.nand.backend, NAND_BACKEND_FILE);
	assert_string_equal(config.luns[0].options.engine.store, "muninn");
	assert_string_equal(config.luns[0].options.osd.serial, "s5");
	assert_string_equal(config.luns[0].options.key_file, "device.key");
	assert_int_equal(config.luns[0].options.osd.system_id[19], 1);
}

static void test_nand_and_engine_are_for_all_units_and_a_unit_is_stronger(void **state)
{
	(void)state;
	/* Wherever the sections stand. */
	assert_int_equal(read_text("[lun 1]\nbackend = mmap\nonode_cache = 3\nrows = 4\n"
				   "merge = auto\npage_bytes = 2048\n"
				   "[nand]\nbackend = file\npage_bytes = 2048\n"
				   "[engine]\nonode_cache = 7\nrows = 16\nmerge = manual\n"
				   "durability = host\n"
				   "[lun 2]\ntype = osd\n"),
			 0);
	assert_int_equal(config.luns[0].options.nand.backend, NAND_BACKEND_MMAP);
	assert_int_equal(config.luns[0].geometry.page_bytes, 2048);
	assert_int_equal(config.luns[0].options.engine.onode_cache_entries, 3);
	assert_int_equal(config.luns[0].options.engine.muninn.rows, 4);
	assert_false(config.luns[0].options.engine.merge_manual);
	assert_true(config.luns[0].options.engine.stable_commits);
	assert_int_equal(config.luns[1].options.nand.backend, NAND_BACKEND_FILE);
	assert_int_equal(config.luns[1].geometry.page_bytes, 2048);
	assert_int_equal(config.luns[1].options.engine.onode_cache_entries, 7);
	assert_int_equal(config.luns[1].options.engine.muninn.rows, 16);
	assert_true(config.luns[1].options.engine.merge_manual);
	assert_true(config.luns[1].options.engine.stable_commits);
}

/* Each key of [nand] and [engine], with a good value and a bad one, there and in [lun N]. */
static void test_each_key_of_nand_and_engine_is_checked_in_both_places(void **state)
{
	static const struct {
		const char *section, *key, *good, *bad, *reason;
	} keys[] = {
		{ "nand", "backend", "file", "zoned", "'zoned' is neither mmap nor file" },
		{ "nand", "page_bytes", "512", "511", "'511' is not a whole number" },
		{ "nand", "spare_bytes", "64", "63", "'63' is not a whole number" },
		{ "nand", "pages_per_block", "8", "7", "'7' is not a whole number" },
		{ "nand", "channels", "64", "65", "'65' is not a whole number" },
		{ "nand", "dies_per_channel", "64", "0", "'0' is not a whole number" },
		{ "engine", "engine", "muninn", "kaml", "'kaml' is no engine; there is: muninn" },
		{ "engine", "index", "ribbon", "trie", "'trie' is neither bloom nor ribbon" },
		{ "engine", "rows", "0", "4097", "'4097' is not a whole number" },
		{ "engine", "segment_pages", "8", "4097", "'4097' is not a whole number" },
		{ "engine", "record_bytes", "1024", "65537", "'65537' is not a whole number" },
		{ "engine", "fpr_millionths", "500", "500001", "'500001' is not a whole number" },
		{ "engine", "fpr_factor_permille", "1010", "4001", "'4001' is not" },
		{ "engine", "over_provision_permille", "100", "901", "'901' is not" },
		{ "engine", "parity", "16", "17", "'17' is not a whole number" },
		{ "engine", "hot_rows", "spread", "cold", "'cold' is neither spread nor finalise" },
		{ "engine", "onode_cache", "0", "16777217", "'16777217' is not" },
		{ "engine", "directory_cache", "1", "x", "'x' is not a whole number" },
		{ "engine", "version_cache", "1", "-1", "'-1' is not a whole number" },
		{ "engine", "durability", "host", "disk", "'disk' is neither process nor host" },
		{ "engine", "merge", "manual", "never", "'never' is neither auto nor manual" },
		{ "engine", "tables", "demand:1", "demand:0", "'0' is not a whole number" },
		{ "engine", "history_interval", "0", "86400001", "'86400001' is not" },
		{ "engine", "inline_bytes", "0", "4097", "'4097' is not a whole number" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char text[128], rest[128];

		snprintf(text, sizeof(text), "[%s]\n%s = %s\n[lun 1]\n%s = %s\n", keys[i].section,
			 keys[i].key, keys[i].good, keys[i].key, keys[i].good);
		if (read_text(text))
			fail_msg("%s", error.text);
		snprintf(rest, sizeof(rest), ":2: %s: %s", keys[i].key, keys[i].reason);
		snprintf(text, sizeof(text), "[%s]\n%s = %s\n[lun 1]\ntype = osd\n",
			 keys[i].section, keys[i].key, keys[i].bad);
		assert_refused(text, rest);
		snprintf(text, sizeof(text), "[lun 1]\n%s = %s\n", keys[i].key, keys[i].bad);
		assert_refused(text, rest);
		snprintf(text, sizeof(text), "[target]\n%s = %s\n", keys[i].key, keys[i].good);
		snprintf(rest, sizeof(rest), ":2: [target] has no key %s; it belongs to [%s]",
			 keys[i].key, keys[i].section);
		assert_refused(text, rest);
	}
}

static void test_a_key_of_all_units_is_set_once(void **state)
{
	(void)state;
	assert_refused("[nand]\nbackend = mmap\nbackend = file\n",
		       ":3: backend is set twice in [nand]");
	assert_refused("[lun 1]\nbackend = mmap\nbackend = file\n",
		       ":3: backend is set twice in [lun 1]");
	assert_refused("[nand]\nsize = 8G\n", ":2: [nand] has no key size; it belongs to [lun N]");
	assert_refused("[engine]\nbackend = file\n",
		       ":2: [engine] has no key backend; it belongs to [nand]");
	assert_refused("[lun 1]\ncolour = blue\n",
		       ":2: [lun 1] has no key colour; it has type, device, target, threads, "
		       "layout, serial, "
		       "key_file, system_id, partition, volume_size, block_size, version, "
		       "snapshot_schedule, image, nvram, size, "
		       "recover_without_nvram, and all of [nand] and [engine]");
}

static void test_an_ipv6_portal_is_written_in_brackets(void **state)
{
	(void)state;
	assert_int_equal(read_text("[target]\nportal = [::1]:3261\n[lun 1]\ntype = osd\n"), 0);
	assert_string_equal(config.portals[0].address, "::1");
	assert_int_equal(config.portals[0].port, 3261);
	assert_refused("[target]\nportal = ::1:3261\n", ":2: portal: '::1' is not an IPv4 address");
}

static void test_errors_tell_file_line_and_reason(void **state)
{
	(void)state;
	assert_refused("\n# comment\n[target]\ncolour = blue\n", ":4: [target] has no key colour");
	assert_refused("port = 1\n", ":1: port stands before the first [section]");
	assert_refused("[tarjet]\nname = x\n", ":2: section [tarjet] is unknown");
	assert_refused("[lun 0]\ntype = osd\n", ":2: section [lun 0] is unknown");
	assert_refused("[lun 256]\ntype = osd\n", ":2: section [lun 256] is unknown");
	assert_refused("[lun x]\ntype = osd\n", ":2: section [lun x] is unknown");
	assert_refused("[lun 1]\nsize\n", ":2: neither [section] nor KEY = VALUE");
	assert_refused("[lun 1\n", ":1: neither [section] nor KEY = VALUE");
	assert_refused("[lun 1\nsize = 1G\n", ":1: neither [section] nor KEY = VALUE");
	assert_refused("[lun 1]\ntype = osd\ntype = osd\n", ":3: type is set twice in [lun 1]");
	assert_refused("[limits]\nconnections = 0\n", ":2: connections: ");
	assert_refused("[limits]\ncommands = 127\n", ":2: commands: ");
	assert_refused("[limits]\ntransfer = 2G\n", ":2: transfer: 2G: 1M at least, 1024M at most");
	assert_refused("[limits]\nmemory = much\n", ":2: memory: 'much' is not a size");
	assert_refused("[target]\nmemory = 1G\n", ":2: [target] has no key memory; it belongs to");
	assert_refused("[limits]\ntransfer = 512M\n[lun 1]\ntype = osd\n",
		       ": [limits] transfer may not be above session_memory");
	assert_refused("[limits]\nmemory = 128M\n[lun 1]\ntype = osd\n",
		       ": [limits] transfer may not be above session_memory");
	assert_refused("[lun 1]\ntype = tape\n", ":2: type: 'tape' is not a type of logical unit");
}

static void test_sections_without_keys_are_not_passed_over(void **state)
{
	(void)state;
	assert_refused("[lun 1]\ntype = osd\n\n[lun 2]\n# size = 8G\n",
		       ":4: [lun 2] is empty; write type = osd below it, or remove it");
	assert_refused("[lun 2]\n\n[lun 1]\ntype = osd\n", ":1: [lun 2] is empty");
	assert_refused("  [lun 2] ; soon\n[daemon]\n[lun 1]\ntype = osd\n", ":1: [lun 2] is empty");
	assert_refused("[lun 1]\ntype = osd\n[lun 2]", ":3: [lun 2] is empty");
	assert_refused("[lun 1]\ntype = osd\n[lun 1]\n", ":3: [lun 1] is empty");
	assert_refused("[lunn 2]\n[lun 1]\ntype = osd\n", ":1: section [lunn 2] is unknown");
	assert_int_equal(read_text("[daemon]\n[target]\n; nothing\n[lun 1]\ntype = osd\n[nand]\n"),
			 0);
	assert_int_equal(config.lun_count, 1);
}

static void test_a_misplaced_key_is_told_where_it_belongs(void **state)
{
	(void)state;
	assert_refused("[target]\ncolour = blue\n",
		       ":2: [target] has no key colour; it has name, allow_address, allow_name, "
		       "chap_user, chap_secret, chap_secret_file, mutual_user, mutual_secret, "
		       "mutual_secret_file, portal, discovery_user");
	assert_refused("[target]\nsize = 8G\n",
		       ":2: [target] has no key size; it belongs to [lun N]");
	assert_refused("[lun 1]\nportal = 127.0.0.1:3260\n",
		       ":2: [lun 1] has no key portal; it belongs to [target]");
}

static void test_values_outside_of_their_limits_are_refused(void **state)
{
	(void)state;
	assert_refused("[daemon]\nstate_dir = var/lib\n",
		       ":2: state_dir: 'var/lib' is not an absolute path");
	assert_refused(
		"[daemon]\nallocator = tcmalloc\n",
		":2: allocator: 'tcmalloc' is neither jemalloc nor system nor the absolute path "
		"of a library");
	assert_refused("[daemon]\nlog_level = loud\n", ":2: log_level: 'loud' is not");
	assert_refused("[target]\nname = muninn\n", ":2: name: 'muninn' is not an iSCSI name");
	assert_refused("[target]\nportal = 127.0.0.1\n", ":2: portal: '127.0.0.1' is not");
	assert_refused("[target]\nportal = host:3260\n", ":2: portal: 'host' is not an IPv4");
	assert_refused("[target]\nportal = 127.0.0.1:0\n", ":2: portal: '0' is not a whole number");
	assert_refused("[target]\nallow_address = 10.0.0.0/33\n", ":2: allow_address: '33' is not");
	assert_refused("[target]\nallow_address = ,\n", ":2: allow_address: the value is empty");
	assert_refused("[target]\nchap_secret = short\n",
		       ":2: chap_secret: the secret must have 12 to 63 characters");
	assert_refused("[nand]\npage_bytes = 100\n", ":2: page_bytes: '100' is not a whole number");
	assert_refused("[lun 1]\nsize = 8X\n", ":2: size: '8X' is not a size");
	assert_refused("[lun 1]\nsize = 1K\n", ":2: size: size 1K: 1M at least");
	assert_refused("[lun 1]\nimage = a,b\n", ":2: image: 'a,b': no comma is possible here");
}

static void test_a_refused_secret_is_not_repeated(void **state)
{
	(void)state;
	assert_int_equal(read_text("[target]\nchap_secret = hunter,hunter,\n"), -EINVAL);
	assert_null(strstr(error.text, "hunter"));
}

static void test_what_only_the_whole_shows_is_checked(void **state)
{
	(void)state;
	assert_refused(
		"[target]\nchap_user = u\n[lun 1]\ntype = osd\n",
		": [target] chap_user and chap_secret belong together; chap_secret is missing");
	assert_refused("[lun 1]\nimage = x\n[lun 2]\n\nimage = x\n",
		       ":5: logical units 1 and 2 have the same image");
	assert_refused("[lun 1]\nnvram = /n\n[lun 2]\n\nnvram = /n\n",
		       ":5: logical units 1 and 2 have the same NVRAM file /n; each needs its own");
	assert_refused("[lun 1]\nnvram = /i\n[lun 2]\n\nimage = /i\n",
		       ":5: /i can't be both an image and an NVRAM file");
	assert_refused("[lun 1]\nimage = /i\n[lun 2]\n\nnvram = /i\n",
		       ":5: /i can't be both an image and an NVRAM file");
	assert_refused("[lun 1]\nimage = /i\nnvram = /i\n",
		       ":2: /i can't be both an image and an NVRAM file");
	assert_refused("[lun 1]\nnvram = n\n", ":2: nvram: 'n' is not an absolute path");
	assert_refused("[target]\nname = iqn.2014-06.x:y\n", ": there is no logical unit");
}

static void test_a_nul_byte_is_refused_with_its_line(void **state)
{
#define WITH_NUL(text)                 \
	{                              \
		text, sizeof(text) - 1 \
	}
	static const struct {
		const char *text;
		size_t bytes;
	} rows[] = {
		WITH_NUL("[lun 1]\n\0type = osd\n"),          /* at the beginning of a line */
		WITH_NUL("[lun 1]\nsize = 8G\0size = 9G\n"),  /* inside */
		WITH_NUL("[lun 1]\nsize = 8G\0\n[lun 2]\n"),  /* at its end */
		WITH_NUL("[lun 1]\nsize = 8G\0size = 9G"),    /* in a last line without an end */
		WITH_NUL("[lun 1]\n# one\0two\nsize = 8X\n"), /* in a comment, before another error
							       */
	};
#undef WITH_NUL
	char expected[512];

	(void)state;
	snprintf(expected, sizeof(expected),
		 "%s:2: there is a NUL byte in the line: remove it, or save the file as UTF-8 text",
		 path);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(read_bytes(rows[i].text, rows[i].bytes), -EINVAL);
		assert_string_equal(error.text, expected);
	}
}

static void test_a_line_that_is_too_long_is_refused(void **state)
{
	static char text[8192];

	(void)state;
	strcpy(text, "[lun 1]\nimage = ");
	memset(text + strlen(text), 'x', 6000);
	assert_refused(text, ":2: the line is longer than");
}

static void test_a_line_of_the_longest_length_is_read(void **state)
{
	static char text[8192];

	(void)state;
	strcpy(text, "[lun 1]\nimage = ");
	memset(text + strlen(text), 'x', 4000);
	assert_int_equal(read_text(text), 0);
	assert_int_equal(strlen(config.luns[0].image), 4000);
}

static void test_a_missing_file_is_named(void **state)
{
	(void)state;
	assert_int_equal(config_read("/nonexistent.conf", &config, &error), -ENOENT);
	assert_string_equal(error.text,
			    "/nonexistent.conf: No such file or directory; --config names "
			    "another file, --defaults does without");
}

static void test_images_get_absolute_names_in_the_state_folder(void **state)
{
	char here[PATH_MAX], expected[PATH_MAX + 32];

	(void)state;
	assert_int_equal(read_text("[daemon]\nstate_dir = /s\n[lun 1]\nimage = a.img\n[lun "
				   "2]\nimage = /b.img\n"),
			 0);
	assert_int_equal(config_complete(&config, &error), 0);
	assert_string_equal(config.luns[0].image, "/s/a.img");
	assert_string_equal(config.luns[1].image, "/b.img");

	strcpy(config.run_dir, "run");
	assert_int_equal(config_complete(&config, &error), 0);
	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(expected, sizeof(expected), "%s/run", here);
	assert_string_equal(config.run_dir, expected);
}

static void test_everybody_may_log_in_unless_somebody_is_named(void **state)
{
	(void)state;
	assert_int_equal(read_text("[lun 1]\ntype = osd\n"), 0);
	assert_int_equal(config_complete(&config, &error), 0);
	assert_int_equal(config.targets[0].allow_addresses, 1);
	assert_string_equal(config.targets[0].allow_address[0], "ALL");
	assert_int_equal(read_text("[target]\nallow_name = iqn.2014-06.h:a\n[lun 1]\ntype = osd\n"),
			 0);
	assert_int_equal(config_complete(&config, &error), 0);
	assert_int_equal(config.targets[0].allow_addresses, 0);
}

static void test_sizes_have_binary_suffixes(void **state)
{
	uint64_t bytes;

	(void)state;
	assert_int_equal(lun_option_size("1048576", &bytes, &error), 0);
	assert_int_equal(bytes, 1 << 20);
	assert_int_equal(lun_option_size("2048k", &bytes, &error), 0);
	assert_int_equal(bytes, 2 << 20);
	assert_int_equal(lun_option_size("8G", &bytes, &error), 0);
	assert_int_equal(bytes, UINT64_C(8) << 30);
	assert_int_equal(lun_option_size("1024T", &bytes, &error), 0);
	assert_int_equal(bytes, UINT64_C(1) << 50);
	assert_int_equal(lun_option_size("1025T", &bytes, &error), -EINVAL);
	assert_int_equal(lun_option_size("18446744073709551615T", &bytes, &error), -EINVAL);
	assert_int_equal(lun_option_size("-8G", &bytes, &error), -EINVAL);
	assert_int_equal(lun_option_size("8GG", &bytes, &error), -EINVAL);
	assert_int_equal(lun_option_size("G", &bytes, &error), -EINVAL);
	assert_int_equal(lun_option_size("", &bytes, &error), -EINVAL);
}

/* Copies conf/muninn.conf to `path`; with every key set when `all`. */
static void copy_example(bool all)
{
	FILE *example = fopen("conf/muninn.conf", "r"), *copy = fopen(path, "w");
	char line[4096], key[64];

	assert_non_null(example);
	assert_non_null(copy);
	while (fgets(line, sizeof(line), example)) {
		bool set = line[0] == '#' && sscanf(line, "#%63[a-z_] =", key) == 1 &&
			   strchr(line, '=') == line + strlen(key) + 2 &&
			   strcmp(key, "device") != 0 && /* in place of keys that are shown, too */
			   strcmp(key, "version") != 0;

		assert_true(fputs(all && set ? line + 1 : line, copy) >= 0);
	}
	assert_int_equal(fclose(copy), 0);
	fclose(example);
}

static void test_the_example_is_the_default_configuration(void **state)
{
	static struct config defaults;

	(void)state;
	copy_example(false);
	assert_int_equal(config_read(path, &config, &error), 0);
	config_defaults(&defaults);
	config_add_default_lun(&defaults);
	strcpy(defaults.source, config.source);
	config.luns[0].line = 0;
	assert_memory_equal(&config, &defaults, sizeof(config));
}

static void test_the_example_shows_the_built_in_values(void **state)
{
	static struct config defaults;

	(void)state;
	copy_example(true);
	assert_int_equal(config_read(path, &config, &error), 0);
	config_defaults(&defaults);
	config_add_default_lun(&defaults);
	assert_string_equal(config.state_dir, defaults.state_dir);
	assert_string_equal(config.run_dir, defaults.run_dir);
	assert_string_equal(config.tgtd, defaults.tgtd);
	assert_string_equal(config.module, defaults.module);
	assert_string_equal(config.allocator, defaults.allocator);
	assert_int_equal(config.log_level, defaults.log_level);
	assert_string_equal(config.targets[0].name, defaults.targets[0].name);
	assert_string_equal(config.portals[0].address, defaults.portals[0].address);
	assert_int_equal(config.portals[0].port, defaults.portals[0].port);
	assert_memory_equal(&config.luns[0].geometry, &defaults.luns[0].geometry,
			    sizeof(config.luns[0].geometry));
	assert_int_equal(config.luns[0].options.nand.backend, NAND_BACKEND_MMAP);
	assert_int_equal(config.luns[0].options.engine.history_interval_ms, 1000);
	config.luns[0].options.engine.history_interval_ms = 0; /* the engine's default is 1000 */
	assert_string_equal(config.luns[0].options.engine.store, engine_store_name(0));
	config.luns[0].options.engine.store = NULL; /* so is that one */
	assert_int_equal(config.luns[0].options.engine.inline_bytes, 1024);
	config.luns[0].options.engine.inline_bytes = 0; /* and that one */
	assert_memory_equal(&config.luns[0].options.engine, &defaults.luns[0].options.engine,
			    sizeof(config.luns[0].options.engine));
	assert_memory_equal(&config.luns[0].options.scrub, &defaults.luns[0].options.scrub,
			    sizeof(config.luns[0].options.scrub));
	assert_string_equal(config.luns[0].image, defaults.luns[0].image);
	assert_int_equal(config.luns[0].size_bytes, defaults.luns[0].size_bytes);
	assert_int_equal(config.luns[0].options.threads, defaults.luns[0].options.threads);
}

static void test_the_example_has_every_key(void **state)
{
	const char *key;

	(void)state;
	copy_example(true);
	for (size_t i = 0; (key = config_key_name(i)); i++) {
		FILE *file = fopen(path, "r");
		char line[4096], name[64];
		bool found = false;

		assert_non_null(file);
		while (!found && fgets(line, sizeof(line), file))
			found = sscanf(line + (line[0] == '#'), "%63[a-z_] =", name) == 1 &&
				!strcmp(name, key);
		fclose(file);
		if (!found)
			fail_msg("conf/muninn.conf does not show %s", key);
	}
}

#define with_file(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_file(test_one_unit_is_enough_and_the_rest_is_default),
		with_file(test_every_key_gets_to_its_place),
		with_file(test_nand_and_engine_are_for_all_units_and_a_unit_is_stronger),
		with_file(test_each_key_of_nand_and_engine_is_checked_in_both_places),
		with_file(test_a_key_of_all_units_is_set_once),
		with_file(test_an_ipv6_portal_is_written_in_brackets),
		with_file(test_errors_tell_file_line_and_reason),
		with_file(test_sections_without_keys_are_not_passed_over),
		with_file(test_a_misplaced_key_is_told_where_it_belongs),
		with_file(test_values_outside_of_their_limits_are_refused),
		with_file(test_a_refused_secret_is_not_repeated),
		with_file(test_what_only_the_whole_shows_is_checked),
		with_file(test_a_nul_byte_is_refused_with_its_line),
		with_file(test_a_line_that_is_too_long_is_refused),
		with_file(test_a_line_of_the_longest_length_is_read),
		with_file(test_a_missing_file_is_named),
		with_file(test_images_get_absolute_names_in_the_state_folder),
		with_file(test_everybody_may_log_in_unless_somebody_is_named),
		with_file(test_sizes_have_binary_suffixes),
		with_file(test_the_example_is_the_default_configuration),
		with_file(test_the_example_shows_the_built_in_values),
		with_file(test_the_example_has_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
