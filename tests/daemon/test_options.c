/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The options of a logical unit as tgtd hands them to the module. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/options.h"

static struct lun_options options;
static struct error_text error;

static void assert_refused(const char *text, const char *reason)
{
	error.text[0] = '\0';
	assert_int_equal(lun_options_parse(text, &options, &error), -EINVAL);
	if (!strstr(error.text, reason))
		fail_msg("'%s' refused with '%s', which does not say '%s'", text, error.text,
			 reason);
}

static void test_nothing_means_defaults(void **state)
{
	(void)state;
	assert_int_equal(lun_options_parse(";;", &options, &error), 0);
	assert_int_equal(options.threads, LUN_THREADS_DEFAULT);
	assert_int_equal(lun_options_parse(NULL, &options, &error), 0);
	assert_int_equal(options.threads, LUN_THREADS_DEFAULT);
	assert_int_equal(options.engine.onode_cache_entries, 0);
	assert_int_equal(options.engine.directory_cache_nodes, 0);
	assert_string_equal(options.osd.serial, "");
	assert_false(options.engine.stable_commits);
	assert_false(options.engine.merge_manual);
	assert_int_equal(options.nand.backend, NAND_BACKEND_MMAP);
	assert_false(options.nand.read_only);
	assert_null(options.engine.store);
}

static void test_choices_take_their_two_words_only(void **state)
{
	(void)state;
	assert_int_equal(lun_options_parse("durability=process;merge=auto", &options, &error), 0);
	assert_false(options.engine.stable_commits);
	assert_false(options.engine.merge_manual);
	assert_refused("durability=disk", "option durability: 'disk' is neither process nor host");
	assert_refused("merge=", "option merge: '' is neither auto nor manual");
	assert_refused("backend=zoned", "option backend: 'zoned' is neither mmap nor file");
	assert_refused("engine=pink", "option engine: 'pink' is no engine; there is: muninn");
	assert_refused("layout=wide", "option layout: 'wide' is neither flat nor packed");
}

static void test_every_option_gets_to_its_place(void **state)
{
	(void)state;
	assert_int_equal(
		lun_options_parse(
			"threads=7;backend=file;engine=muninn;tables=demand:64;onode_cache=100;"
			"directory_cache=50;version_cache=25;serial=A-1;"
			"durability=host;merge=manual;recover_without_nvram=yes;layout="
			"packed;history_interval=250;inline_bytes=512;scrub_days=7;scrub_rate=50;"
			"partition=0x20001;volume_size=3G;block_size=4096;"
			"version=before;snapshot_schedule=daily:3 0x20002 hourly:24;"
			"system_id=000102030405060708090a0b0c0d0e0f1011FDfe",
			&options, &error),
		0);
	assert_int_equal(options.threads, 7);
	assert_int_equal(options.nand.backend, NAND_BACKEND_FILE);
	assert_string_equal(options.engine.store, "muninn");
	assert_true(options.engine.muninn.bloom.table_cache_bytes == UINT64_C(64) << 20);
	assert_int_equal(options.engine.onode_cache_entries, 100);
	assert_int_equal(options.engine.directory_cache_nodes, 50);
	assert_int_equal(options.engine.version_cache_entries, 25);
	assert_true(options.engine.stable_commits);
	assert_true(options.engine.merge_manual);
	assert_int_equal(options.osd.layout, 1);
	assert_int_equal(options.engine.history_interval_ms, 250);
	assert_int_equal(options.engine.inline_bytes, 512);
	assert_int_equal(options.scrub.days, 7);
	assert_int_equal(options.scrub.rate, 50);
	assert_true(options.engine.records.recover_without_nvram);
	assert_string_equal(options.osd.serial, "A-1");
	assert_int_equal(options.disk.partition, 0x20001);
	assert_true(options.disk.bytes == UINT64_C(3) << 30);
	assert_int_equal(options.disk.block_bytes, 4096);
	assert_string_equal(options.schedule, "daily:3 0x20002 hourly:24");
	for (uint8_t i = 0; i < 18; i++)
		assert_int_equal(options.osd.system_id[i], i);
	assert_int_equal(options.osd.system_id[18], 0xfd);
	assert_int_equal(options.osd.system_id[19], 0xfe);
}

/* What muninnd writes is what the module reads. */
static void assert_written(const char *text)
{
	char written[LUN_OPTIONS_TEXT_BYTES];
	struct lun_options again;

	if (lun_options_parse(text, &options, &error))
		fail_msg("%s", error.text);
	lun_options_write(&options, written);
	assert_string_equal(written, text);
	assert_int_equal(lun_options_parse(written, &again, &error), 0);
	assert_memory_equal(&again, &options, sizeof(options));
}

static void test_options_are_written_as_they_are_read_and_defaults_not_at_all(void **state)
{
	char longest[LUN_OPTIONS_TEXT_BYTES];
	int length;

	(void)state;
	assert_written("");
	assert_written("backend=file");
	assert_written("history_interval=0");
	assert_written("history_interval=250;serial=A-1");
	assert_written("inline_bytes=0");
	assert_written("scrub_days=0");
	assert_written("partition=65536;volume_size=1048576;block_size=512");
	assert_written("tables=demand:1048576");
	length = snprintf(longest, sizeof(longest),
			  "threads=64;backend=file;engine=muninn;onode_cache=16777216;directory_"
			  "cache=16777216;"
			  "version_cache=16777216;durability=host;merge=manual;"
			  "recover_without_nvram=yes;tables=demand:1048576;"
			  "history_interval=86400000;inline_bytes=4096;scrub_days=3650;"
			  "scrub_rate=1000000;layout=packed;"
			  "serial=123456789012345678901234567890123456;key_file=");
	memset(longest + length, 'k', LUN_PATH_BYTES - 1);
	length += LUN_PATH_BYTES - 1;
	length +=
		snprintf(longest + length, sizeof(longest) - (size_t)length,
			 ";partition=281474976710655;volume_size=1125899906842624;block_size=4096"
			 ";version=v23456789012345678901234567890123456789012345678901234567890123"
			 ";snapshot_schedule=");
	memset(longest + length, ' ', SCHEDULE_TEXT_BYTES - 9);
	strcpy(longest + length + SCHEDULE_TEXT_BYTES - 9,
	       "hourly:1;system_id=000102030405060708090a0b0c0d0e0f1011fdfe");
	assert_written(longest);
	assert_int_equal(
		lun_options_parse("threads=2;merge=auto;backend=mmap;tables=ram", &options, &error),
		0);
	lun_options_write(&options, longest);
	assert_string_equal(longest, "");
}

static void test_a_history_interval_of_0_makes_every_command_a_moment(void **state)
{
	(void)state;
	assert_int_equal(lun_options_parse("history_interval=0", &options, &error), 0);
	assert_int_equal(options.engine.history_interval_ms, ENGINE_EVERY_COMMAND);
	assert_refused("history_interval=86400001", "from 0 to 86400000");
}

static void test_inline_bytes_of_0_keep_no_data_in_onodes(void **state)
{
	(void)state;
	assert_int_equal(lun_options_parse("inline_bytes=0", &options, &error), 0);
	assert_int_equal(options.engine.inline_bytes, ENGINE_INLINE_NONE);
	assert_refused("inline_bytes=4097", "from 0 to 4096");
}

static void test_numbers_outside_of_their_limits_are_refused(void **state)
{
	(void)state;
	assert_refused("threads=0", "option threads: '0' is not a whole number from 1 to 64");
	assert_refused("threads=65", "from 1 to 64");
	assert_refused("threads=-1", "from 1 to 64");
	assert_refused("threads= 2", "from 1 to 64");
	assert_refused("threads=2x", "from 1 to 64");
	assert_refused("threads=", "from 1 to 64");
	assert_refused("threads=18446744073709551617", "from 1 to 64");
	assert_refused("onode_cache=16777217", "option onode_cache");
	assert_refused("directory_cache=16777217", "option directory_cache");
	assert_refused("version_cache=16777217", "option version_cache");
}

static void test_unknown_options_and_missing_values_are_named(void **state)
{
	(void)state;
	assert_refused(
		"colour=blue",
		"unknown option 'colour'; known are threads, backend, engine, onode_cache, "
		"directory_cache, version_cache, durability, merge, recover_without_nvram, "
		"tables, history_interval, inline_bytes, scrub_days, scrub_rate, layout, "
		"serial, key_file, partition, volume_size, block_size, version, snapshot_schedule "
		"and system_id");
	assert_refused("threads", "option 'threads' has no value");
	assert_refused("threads=2;serial", "option 'serial' has no value");
}

static void test_serial_numbers_fit_their_field(void **state)
{
	const char *longest = "serial=123456789012345678901234567890123456";
	const char *too_long = "serial=1234567890123456789012345678901234567";

	(void)state;
	assert_int_equal(lun_options_parse(longest, &options, &error), 0);
	assert_int_equal(strlen(options.osd.serial), 36);
	assert_refused(too_long, "1 to 36 characters");
	assert_refused("serial=", "1 to 36 characters");
	assert_refused("serial=a b", "no space");
	assert_refused("serial=a,b", "no space");
}

static void test_the_device_key_is_a_path(void **state)
{
	(void)state;
	assert_int_equal(lun_options_parse("key_file=/etc/muninn/device.key", &options, &error), 0);
	assert_string_equal(options.key_file, "/etc/muninn/device.key");
	assert_false(options.osd.has_device_key);
	assert_refused("key_file=", "a path of 1 to 1023 bytes");
	assert_refused("key_file=/a,b", "without , and ;");
}

static void test_system_ids_have_forty_hexadecimal_digits(void **state)
{
	(void)state;
	assert_refused("system_id=0011", "40 hexadecimal digits");
	assert_refused("system_id=000102030405060708090a0b0c0d0e0f1011121g",
		       "40 hexadecimal digits");
	assert_refused("system_id=000102030405060708090a0b0c0d0e0f101112131",
		       "40 hexadecimal digits");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_means_defaults),
		cmocka_unit_test(test_every_option_gets_to_its_place),
		cmocka_unit_test(test_choices_take_their_two_words_only),
		cmocka_unit_test(test_options_are_written_as_they_are_read_and_defaults_not_at_all),
		cmocka_unit_test(test_inline_bytes_of_0_keep_no_data_in_onodes),
		cmocka_unit_test(test_a_history_interval_of_0_makes_every_command_a_moment),
		cmocka_unit_test(test_numbers_outside_of_their_limits_are_refused),
		cmocka_unit_test(test_unknown_options_and_missing_values_are_named),
		cmocka_unit_test(test_serial_numbers_fit_their_field),
		cmocka_unit_test(test_the_device_key_is_a_path),
		cmocka_unit_test(test_system_ids_have_forty_hexadecimal_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
