/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A device that was recovered without its NVRAM: each row is as of its last seal, that of history
 * too, so the table of times may end before the newest data. What is there is shown all the same by
 * moments and versions made from then on.
 */
#include "tests/engine/fixture.h"

#include "common/log.h"
#include "engine/objects/keys.h"
#include "engine/objects/objects.h"
#include "engine/records/access.h"
#include "nand/power.h"

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* The power fails, and NVRAM is empty when it is back. */
static void lose_nvram(struct fixture *f)
{
	const struct nand_power_cut cut = { .nvram = NAND_CUT_NVRAM_LOST };
	struct engine_options options = options_of(f);
	struct error_text error = { "" };

	assert_int_equal(nand_arm_power_cut(f->nand, &cut, &error), 0);
	assert_true(nand_power_point(f->nand));
	log_configure(discard_line, LOG_LEVEL_ERROR);
	engine_abandon(f->engine);
	log_configure(NULL, LOG_LEVEL_WARNING);
	assert_int_equal(nand_power_on(f->nand), 0);
	options.records.recover_without_nvram = true;
	if (engine_open(f->nand, &options, &f->engine, &error))
		fail_msg("%s", error.text);
}

enum { PAGES = 64 };

/* Data only: in each slot some pages, whole ones, so that their rows are sealed again and again. */
static void write_many(struct fixture *f)
{
	for (uint32_t n = 0; n < 6 * PAGES; n++)
		write_page(f, (10 + n / 8) * SECOND, n % PAGES, (char)(1 + n / PAGES));
	f->now += SECOND;
}

/* The data of the object's pages, as far as they are there. */
static void read_all(struct fixture *f, uint32_t version, char *bytes)
{
	const struct engine_address address = { .partition = PARTITION,
						.object = OBJECT,
						.version = version };
	uint64_t got = 0;

	memset(bytes, 0, (size_t)PAGES * PAGE);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_read(f->txn, address, 0, bytes, (uint64_t)PAGES * PAGE, &got), 0);
	commit(f);
	assert_true(got > 0);
}

static void check_same_as_now(struct fixture *f, uint32_t version)
{
	static char now[PAGES * PAGE], then[PAGES * PAGE];

	read_all(f, 0, now);
	read_all(f, version, then);
	assert_memory_equal(then, now, sizeof(now));
}

static void test_a_snapshot_right_after_the_recovery_has_the_newest_data(void **state)
{
	struct fixture *f = *state;

	write_many(f);
	lose_nvram(f);
	check_same_as_now(f, take_snapshot(f, PARTITION, NULL));
	check_same_as_now(f, take_snapshot(f, 0, NULL));
}

static void test_a_moment_right_after_the_recovery_has_the_newest_data(void **state)
{
	struct fixture *f = *state;

	write_many(f);
	lose_nvram(f);
	f->now += SECOND;
	check_same_as_now(f, view_at(f, f->now));
}

static void test_so_they_have_after_another_start(void **state)
{
	struct fixture *f = *state;
	uint64_t ms;

	write_many(f);
	lose_nvram(f);
	f->now += SECOND;
	ms = f->now;
	crash(f);
	check_same_as_now(f, view_at(f, ms));
	f->now += SECOND;
	check_same_as_now(f, take_snapshot(f, PARTITION, NULL));
	write_page(f, f->now + SECOND, 3, 'x');
	f->now += SECOND;
	check_same_as_now(f, view_at(f, f->now));
	check_page(f, view_at(f, f->now), 3, 'x');
}

/* ---- what is lost of the list of rollbacks ---- */

/* As if a merge had moved it to the NVRAM, which is lost. */
static void lose_rollbacks(struct fixture *f)
{
	begin(f, ENGINE_WRITE);
	assert_int_equal(record_put(&f->txn->writer, key_of_table(RECORD_ID_HIDDEN, 0),
				    RECORD_TOMBSTONE, NULL, 0),
			 0);
	commit(f);
	engine_abandon(f->engine);
}

static int open_again(struct fixture *f, bool recover)
{
	struct engine_options options = options_of(f);
	struct error_text error = { "" };
	int result;

	options.records.recover_without_nvram = recover;
	log_configure(discard_line, LOG_LEVEL_ERROR);
	result = engine_open(f->nand, &options, &f->engine, &error);
	log_configure(NULL, LOG_LEVEL_WARNING);
	return result;
}

/* What they hid is there again, and others can be made, also behind the next start. */
static void test_a_device_opens_that_has_lost_its_rollbacks(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	write_page(f, 10 * SECOND, 3, 'a');
	f->now += SECOND;
	version = take_snapshot(f, PARTITION, NULL);
	write_page(f, f->now + SECOND, 3, 'b');
	f->now += SECOND;
	roll_back(f, PARTITION, (struct engine_moment){ ENGINE_AT_VERSION, version });
	check_page(f, 0, 3, 'a');
	lose_rollbacks(f);
	assert_int_equal(open_again(f, false), -EBADMSG);
	assert_int_equal(open_again(f, true), 0);
	check_page(f, 0, 3, 'b');
	crash(f);
	check_page(f, 0, 3, 'b');
	f->now += SECOND;
	roll_back(f, PARTITION, (struct engine_moment){ ENGINE_AT_VERSION, version });
	check_page(f, 0, 3, 'a');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FLASH_TEST(test_a_snapshot_right_after_the_recovery_has_the_newest_data),
		FLASH_TEST(test_a_moment_right_after_the_recovery_has_the_newest_data),
		FLASH_TEST(test_so_they_have_after_another_start),
		FLASH_TEST(test_a_device_opens_that_has_lost_its_rollbacks),
	};

	return cmocka_run_group_tests_name("history_recovered", tests, NULL, NULL);
}
