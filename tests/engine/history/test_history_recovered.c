/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A device that was recovered without its NVRAM: each row is as of its last seal, that of history
 * too, so the table of times may end before the newest data. What is there is shown all the same by
 * moments and versions made from then on.
 */
#include "tests/engine/device_fixture.h"

#include "common/log.h"
#include "nand/power.h"

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* The power fails, and NVRAM is empty when it is back. */
static void lose_nvram(struct device *device)
{
	const struct nand_power_cut cut = { .nvram = NAND_CUT_NVRAM_LOST };
	struct engine_options options = options_of(device);
	struct error_text error = { "" };

	assert_int_equal(nand_arm_power_cut(device->nand, &cut, &error), 0);
	assert_true(nand_power_point(device->nand));
	log_configure(discard_line, LOG_LEVEL_ERROR);
	engine_abandon(device->engine);
	log_configure(NULL, LOG_LEVEL_WARNING);
	assert_int_equal(nand_power_on(device->nand), 0);
	options.records.recover_without_nvram = true;
	if (engine_open(device->nand, &options, &device->engine, &error))
		fail_msg("%s", error.text);
}

enum { PAGES = 64 };

/* Data only: in each slot some pages, whole ones, so that their rows are sealed again and again. */
static void write_many(struct device *device)
{
	for (uint32_t n = 0; n < 6 * PAGES; n++)
		write_page(device, (10 + n / 8) * SECOND, n % PAGES, (char)(1 + n / PAGES));
	device->now += SECOND;
}

/* The data of the object's pages, as far as they are there. */
static void read_all(struct device *device, uint32_t version, char *bytes)
{
	const struct engine_address address = { .partition = PARTITION,
						.object = OBJECT,
						.version = version };
	uint64_t got = 0;

	memset(bytes, 0, (size_t)PAGES * PAGE);
	begin(device, ENGINE_READ);
	assert_int_equal(engine_read(device->txn, address, 0, bytes, (uint64_t)PAGES * PAGE, &got),
			 0);
	commit(device);
	assert_true(got > 0);
}

static void check_same_as_now(struct device *device, uint32_t version)
{
	static char now[PAGES * PAGE], then[PAGES * PAGE];

	read_all(device, 0, now);
	read_all(device, version, then);
	assert_memory_equal(then, now, sizeof(now));
}

static void test_a_snapshot_right_after_the_recovery_has_the_newest_data(void **state)
{
	struct device *device = *state;

	write_many(device);
	lose_nvram(device);
	check_same_as_now(device, take_snapshot(device, PARTITION));
	check_same_as_now(device, take_snapshot(device, 0));
}

static void test_a_moment_right_after_the_recovery_has_the_newest_data(void **state)
{
	struct device *device = *state;

	write_many(device);
	lose_nvram(device);
	device->now += SECOND;
	check_same_as_now(device, view_at(device, device->now));
}

static void test_so_they_have_after_another_start(void **state)
{
	struct device *device = *state;
	uint64_t ms;

	write_many(device);
	lose_nvram(device);
	device->now += SECOND;
	ms = device->now;
	crash(device);
	check_same_as_now(device, view_at(device, ms));
	device->now += SECOND;
	check_same_as_now(device, take_snapshot(device, PARTITION));
	write_page(device, device->now + SECOND, 3, 'x');
	device->now += SECOND;
	check_same_as_now(device, view_at(device, device->now));
	check_page(device, view_at(device, device->now), 3, 'x');
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_snapshot_right_after_the_recovery_has_the_newest_data),
		TEST(test_a_moment_right_after_the_recovery_has_the_newest_data),
		TEST(test_so_they_have_after_another_start),
	};

	return cmocka_run_group_tests_name("history_recovered", tests, NULL, NULL);
}
