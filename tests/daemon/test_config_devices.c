/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Devices that units share, and the keys of disks, in the configuration file. */
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

/* Reads and completes a file with this text. */
static int read_text(const char *text)
{
	char path[] = "/tmp/muninn-devices-XXXXXX";
	int fd = mkstemp(path), result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	error.text[0] = '\0';
	result = config_read(path, &config, &error);
	if (!result)
		result = config_complete(&config, &error);
	unlink(path);
	return result;
}

static void assert_refused(const char *text, const char *reason)
{
	assert_int_equal(read_text(text), -EINVAL);
	if (!strstr(error.text, reason))
		fail_msg("refused with '%s' instead of '%s'", error.text, reason);
}

#define POOL "[device pool]\nsize = 16G\n"

static void test_units_have_what_their_device_has(void **state)
{
	(void)state;
	/* Wherever the sections stand. */
	if (read_text("[daemon]\nstate_dir = /s\n"
		      "[lun 1]\ntype = osd\ndevice = pool\n"
		      "[lun 2]\ntype = disk\ndevice = pool\nthreads = 5\npartition = 0x20000\n"
		      "volume_size = 100G\nblock_size = 4096\nserial = d2\n"
		      "[device pool]\nsize = 16G\nbackend = file\nonode_cache = 77\n"
		      "nvram = /pmem/n\nrecover_without_nvram = yes\n"
		      "[engine]\nmerge = manual\nonode_cache = 5\nscrub_days = 3\n"
		      "[lun 3]\ntype = disk\n"))
		fail_msg("%s", error.text);
	for (int i = 0; i < 2; i++) {
		const struct lun_config *lun = &config.luns[i];

		assert_string_equal(lun->image, "/s/pool.img");
		assert_string_equal(lun->nvram, "/pmem/n");
		assert_int_equal(lun->size_bytes, UINT64_C(16) << 30);
		assert_int_equal(lun->options.nand.backend, NAND_BACKEND_FILE);
		assert_int_equal(lun->options.engine.onode_cache_entries, 77);
		assert_true(lun->options.engine.merge_manual);
		assert_true(lun->options.engine.records.recover_without_nvram);
		assert_int_equal(lun->options.scrub.days, 3);
		assert_int_equal(config_is_first_of_device(&config, lun), i == 0);
	}
	assert_int_equal(config.luns[0].options.threads, LUN_THREADS_DEFAULT);
	assert_int_equal(config.luns[1].options.threads, 5);
	assert_int_equal(config.luns[1].options.disk.partition, 0x20000);
	assert_true(config.luns[1].options.disk.bytes == UINT64_C(100) << 30);
	assert_int_equal(config.luns[1].options.disk.block_bytes, 4096);
	assert_ptr_equal(config.luns[1].type, &unit_types[UNIT_TYPE_DISK]);
	/* One with a device of its own has that. */
	assert_string_equal(config.luns[2].image, "/s/lun3.img");
	assert_int_equal(config.luns[2].options.engine.onode_cache_entries, 5);
	assert_true(config_is_first_of_device(&config, &config.luns[2]));
}

static void test_what_is_of_a_device_stands_with_it(void **state)
{
	static const char *const keys[] = { "size = 8G",      "image = x",
					    "nvram = /n",     "recover_without_nvram = yes",
					    "backend = file", "rows = 4" };

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text), POOL "[lun 1]\ndevice = pool\n%s\n", keys[i]);
		assert_refused(text, "belongs to [device pool]");
	}
	assert_refused(POOL "threads = 2\n", "[device pool] has no key threads; it belongs to "
					     "[lun N]");
	assert_refused(POOL "colour = red\n", "[device pool] has no key colour; it has image, "
					      "nvram, size, recover_without_nvram, and all of "
					      "[nand] and [engine]");
}

static void test_names_of_devices_are_checked(void **state)
{
	(void)state;
	assert_refused("[lun 1]\ntype = disk\ndevice = pool\n",
		       "there is no section [device pool]");
	assert_refused(POOL "[lun 1]\ntype = disk\n", "no logical unit has device = pool");
	assert_refused(POOL "[device pool]\nsize = 8G\n", "size is set twice in [device pool]");
	assert_refused("[device a b]\nsize = 8G\n", "section [device a b]: a name has");
	assert_refused("[device ]\nsize = 8G\n", "section [device");
	assert_refused("[device pool]\n[lun 1]\ntype = osd\n", "[device pool] is empty");
	assert_refused("[lun 1]\ndevice = a/b\n", "'a/b' is no name of a device");
}

/* Names that differ in the last character that counts are two devices. */
static void test_names_of_devices_are_never_cut(void **state)
{
#define FORTY_ONE "a23456789012345678901234567890123456789.1"
	(void)state;
	assert_int_equal(read_text("[device " FORTY_ONE "x]\nsize = 1G\n"
				   "[device " FORTY_ONE "y]\nsize = 2G\n"
				   "[lun 1]\ndevice = " FORTY_ONE "y\n"
				   "[lun 2]\ndevice = " FORTY_ONE "x\n"),
			 0);
	assert_int_equal(config.device_count, 2);
	assert_int_equal(config.luns[0].size_bytes, UINT64_C(2) << 30);
	assert_int_equal(config.luns[1].size_bytes, UINT64_C(1) << 30);
	assert_refused("[lun 1]\ntype = osd\n[device " FORTY_ONE "xx]\nsize = 1G\n",
		       ":3: a section's name has 49 characters at most");
	assert_refused("[lun 1]\ndevice = " FORTY_ONE "xx\n", "is no name of a device: 1 to 42");
#undef FORTY_ONE
}

static void test_units_of_a_device_do_not_collide(void **state)
{
	(void)state;
	assert_refused(POOL "[lun 1]\ndevice = pool\n[lun 2]\ndevice = pool\n",
		       "logical units 1 and 2 are both OSDs on device pool");
	assert_refused(POOL "[lun 1]\ntype = disk\ndevice = pool\n[lun 2]\ntype = disk\n"
			    "device = pool\npartition = 0x10000\n",
		       "logical units 1 and 2 are both partition 0x10000 of device pool");
	assert_refused("[device a]\nimage = x.img\n[device b]\nimage = x.img\n"
		       "[lun 1]\ndevice = a\n[lun 2]\ndevice = b\n",
		       "have the same image");
	assert_refused("[lun 1]\nimage = x.img\n[lun 2]\ntype = disk\nimage = x.img\n",
		       "each needs its own, or both name one [device NAME]");
}

static void test_keys_of_disks_are_checked(void **state)
{
	(void)state;
	assert_refused("[lun 1]\ntype = osd\nvolume_size = 1G\n", "are of units with type = disk");
	assert_refused("[lun 1]\ntype = disk\nkey_file = k\n", "are of units with type = osd");
	assert_refused("[lun 1]\ntype = disk\nlayout = packed\n", "are of units with type = osd");
	assert_refused("[lun 1]\nsystem_id = 0000000000000000000000000000000000000001\n"
		       "type = disk\n",
		       "key_file, layout and system_id are of units with type = osd");
	assert_refused("[lun 1]\ntype = disk\npartition = 0xFFFF\n", "'0xFFFF' is no partition ID");
	assert_refused("[lun 1]\ntype = disk\npartition = 0x1000000000000\n", "no partition ID");
	assert_refused("[lun 1]\ntype = disk\npartition = ten\n", "no partition ID");
	assert_refused("[lun 1]\ntype = disk\nvolume_size = 1000\n", "1M at least");
	assert_refused("[lun 1]\ntype = osd\nversion = 3\n", "are of units with type = disk");
	assert_refused("[lun 1]\ntype = disk\nversion = 3\nblock_size = 512\n",
		       "volume_size and block_size are not possible");
	assert_refused("[lun 1]\ntype = disk\nblock_size = 1024\n", "neither 512 nor 4096");
}

static void test_schedules_are_checked(void **state)
{
	(void)state;
	assert_refused("[lun 1]\ntype = disk\nsnapshot_schedule = 0x10000 daily:1\n",
		       "partition IDs are for units with type = osd");
	assert_refused(POOL "[lun 1]\ntype = disk\ndevice = pool\nversion = v\n"
			    "snapshot_schedule = daily:1\n",
		       "a disk with version never changes");
	assert_refused(POOL "[lun 1]\ntype = osd\ndevice = pool\nsnapshot_schedule = "
			    "daily:1 0x10002 daily:1\n"
			    "[lun 2]\ntype = disk\ndevice = pool\npartition = 0x10002\n"
			    "snapshot_schedule = hourly:1\n",
		       "logical units 1 and 2 both have a snapshot_schedule for partition 0x10002 "
		       "of device pool");
	assert_int_equal(
		read_text(POOL "[lun 1]\ntype = osd\ndevice = pool\nsnapshot_schedule = daily:1\n"
			       "[lun 2]\ntype = disk\ndevice = pool\npartition = 0x10002\n"
			       "snapshot_schedule = hourly:1\n"
			       "[lun 3]\ntype = disk\nsnapshot_schedule = hourly:1\n"),
		0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units_have_what_their_device_has),
		cmocka_unit_test(test_what_is_of_a_device_stands_with_it),
		cmocka_unit_test(test_names_of_devices_are_checked),
		cmocka_unit_test(test_names_of_devices_are_never_cut),
		cmocka_unit_test(test_units_of_a_device_do_not_collide),
		cmocka_unit_test(test_keys_of_disks_are_checked),
		cmocka_unit_test(test_schedules_are_checked),
	};

	return cmocka_run_group_tests_name("devices in the configuration", tests, NULL, NULL);
}
