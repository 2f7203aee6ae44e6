/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * However fast commands come that begin slots, a device that is open all the time lasts 68 years;
 * and when they come too fast, a second is enough until there is a slot for going back.
 */
#include <stdio.h>

#include "common/log.h"
#include "engine/history/times.h"
#include "engine/objects/objects.h"
#include "tests/engine/fixture.h"

#define YEAR_MS (366 * UINT64_C(86400000))

static const struct engine_moment the_present = { .kind = ENGINE_NOW };

/* How many slots were begun. */
static uint64_t begun(const struct fixture *f)
{
	return f->engine->committed >> RECORD_SLOT_BITS;
}

/* How many may be begun now. A crash takes back some of the device's time, but not what it was. */
static uint64_t allowed(const struct fixture *f)
{
	return slots_allowed(DEVICE_TIME_FIRST + f->now);
}

/* Lets all but so many of the slots be used that may be. */
static void leave(struct fixture *f, uint64_t slots)
{
	f->engine->committed = (allowed(f) - slots) << RECORD_SLOT_BITS;
	put_text(f, object(OBJECT), "one");
	assert_in_range(begun(f), allowed(f) - slots, allowed(f) - slots + 1);
}

/* Of a random test; MUNINN_SEED chooses another one. */
static uint64_t seed_of(uint64_t otherwise)
{
	const char *text = getenv("MUNINN_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : otherwise;

	printf("MUNINN_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static int try_snapshot(struct fixture *f, uint32_t *version)
{
	begin(f, ENGINE_HISTORY);
	return end(f, engine_snapshot(f->txn, PARTITION, NULL, version));
}

static int try_view(struct fixture *f, struct engine_moment moment)
{
	uint32_t version;

	begin(f, ENGINE_READ);
	return end(f, engine_view_open(f->txn, PARTITION, moment, &version));
}

static void test_a_device_lasts_longer_than_a_working_life(void **state)
{
	(void)state;
	assert_true(slots_allowed(DEVICE_TIME_FIRST + 65 * YEAR_MS) < slot_begin(RECORD_NEWEST) >>
		    RECORD_SLOT_BITS);
	assert_true(slots_allowed(2000) == SLOTS_AT_ONCE + SLOTS_IN_TWO_SECONDS);
	/* More than one a second, which is what a device uses that is written to all the time. */
	assert_true(slots_allowed(1000 * YEAR_MS) - SLOTS_AT_ONCE > 1000 * YEAR_MS / 1000);
}

static void test_what_needs_a_slot_is_refused_and_writes_go_on(void **state)
{
	struct fixture *f = *state;
	uint32_t version, snapshots = 0;
	uint64_t last;

	make_text_object(f);
	version = take_snapshot(f, PARTITION, NULL);
	leave(f, 10);
	while (try_snapshot(f, NULL) == 0)
		assert_true(++snapshots < 12);
	assert_true(snapshots > 5);
	assert_int_equal(try_snapshot(f, NULL), -ETIME);
	assert_int_equal(try_view(f, the_present), -ETIME);
	assert_int_equal(try_view(f, at_time(f->now)), -ETIME);
	assert_int_equal(try_view(f, at_sequence(f->engine->committed)), -ETIME);
	/* The past is there; and each command that does not need a slot goes on in the last one. */
	assert_int_equal(try_view(f, at_number(version)), 0);
	f->engine->options.history_interval_ms = ENGINE_EVERY_COMMAND;
	last = begun(f);
	for (int n = 0; n < 100; n++)
		put_text(f, object(OBJECT), n % 2 ? "odd" : "even");
	check_text(f, object(OBJECT), "odd");
	assert_in_range(begun(f), last, last + 1);
	for (snapshots = 0, f->now += 2 * SECOND; try_snapshot(f, NULL) == 0; snapshots++)
		assert_true(snapshots < SLOTS_IN_TWO_SECONDS + 1);
	assert_true(snapshots > 0);
}

/* How often it was said that they come too fast. */
static uint32_t warnings;

static void count_warnings(enum log_level level, const char *line)
{
	warnings += level == LOG_LEVEL_WARNING && strstr(line, "faster than the device's life");
}

static void use_all(struct fixture *f)
{
	leave(f, 3);
	while (try_snapshot(f, NULL) == 0)
		;
	assert_int_equal(try_snapshot(f, NULL), -ETIME);
}

static void test_it_is_said_once_an_hour(void **state)
{
	const uint64_t hour = 3600 * SECOND;
	struct fixture *f = *state;

	make_text_object(f);
	warnings = 0;
	log_configure(count_warnings, LOG_LEVEL_WARNING);
	use_all(f);
	assert_int_equal(warnings, 1);
	f->now += hour - 1;
	use_all(f);
	assert_int_equal(warnings, 1);
	f->now++;
	use_all(f);
	assert_int_equal(warnings, 2);
	f->now += hour - 1;
	use_all(f);
	log_configure(NULL, LOG_LEVEL_INFO);
	assert_int_equal(warnings, 2);
}

static void test_going_back_waits_a_second_at_most(void **state)
{
	struct fixture *f = *state;
	uint32_t version;

	make_text_object(f);
	version = take_snapshot(f, PARTITION, NULL);
	leave(f, 10);
	for (int round = 0; round < 10; round++) {
		/* Others take as many as they get. */
		while (try_snapshot(f, NULL) == 0)
			put_text(f, object(OBJECT), "two");
		assert_int_equal(try_view(f, the_present), -ETIME);
		assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_number(version)), 0);
		check_text(f, object(OBJECT), "one");
		/* Also if those go back all the time. */
		while (try_rollback(f, ENGINE_HISTORY, PARTITION, at_number(version)) == 0)
			put_text(f, object(OBJECT), "two");
		f->now += SECOND;
		assert_int_equal(try_rollback(f, ENGINE_HISTORY, PARTITION, at_number(version)), 0);
		check_text(f, object(OBJECT), "one");
		f->now += 3 * SECOND;
	}
}

enum { TEXTS = 40, TEXT_BYTES = 24 };

/* OBJECT as of a view. */
static void read_at(struct fixture *f, uint32_t view, char text[TEXT_BYTES])
{
	const struct engine_address address = at_version(object(OBJECT), view);
	uint64_t length;

	memset(text, 0, TEXT_BYTES);
	begin(f, ENGINE_READ);
	assert_int_equal(engine_read(f->txn, address, 0, text, TEXT_BYTES - 1, &length), 0);
	commit(f);
}

/* A number for a moment that the view was given shows the same ever after. */
static void test_moments_that_were_given_stay_exact_when_slots_are_short(void **state)
{
	struct fixture *f = *state;
	char given[TEXTS][TEXT_BYTES], text[TEXT_BYTES];
	uint32_t views[TEXTS] = { 0 };
	int refused = 0;

	make_text_object(f);
	leave(f, 3);
	for (int n = 0; n < TEXTS; n++) {
		int result;

		snprintf(text, sizeof(text), "text %d", n);
		put_text(f, object(OBJECT), text);
		f->now += 100;
		begin(f, ENGINE_READ);
		result = end(f, engine_view_open(f->txn, PARTITION,
						 n % 2 ? at_time(f->now - 1) : the_present,
						 &views[n]));
		assert_true(result == 0 || result == -ETIME);
		refused += result != 0;
		if (result)
			views[n] = 0;
		else
			read_at(f, views[n], given[n]);
		/* The present is what was given for it. */
		assert_true(result || strcmp(given[n], text) == 0);
	}
	assert_in_range(refused, TEXTS / 2, TEXTS - 3);
	for (int n = 0; n < TEXTS; n++)
		if (views[n]) {
			read_at(f, views[n], text);
			assert_string_equal(text, given[n]);
		}
}

/*
 * A policy judges what is too old by ends of slots, and merging drops what it gives up. While the
 * present slot can't be ended, what lies before it stays, since there will be more in that slot.
 */
static void test_a_slot_that_can_not_end_gives_nothing_up(void **state)
{
	struct fixture *f = *state;
	struct engine_merge_result total = { 0 };
	uint64_t bound;
	uint32_t view;

	memory_store_merge(f->memory);
	make_text_object(f);
	set_policy(f, PARTITION, 100, 0, 0);
	leave(f, 5);
	while (slots_check(f->engine, SLOT_KEEP) == 0) {
		put_text(f, object(OBJECT), "before");
		try_view(f, the_present);
	}
	/* The next one from its first millisecond on. */
	while (slots_check(f->engine, SLOT_KEEP))
		f->now++;
	begin(f, ENGINE_READ);
	assert_int_equal(engine_moment_resolve(f->txn, PARTITION, the_present, &bound), 0);
	commit(f);
	put_text(f, object(OBJECT), "after");
	f->now += 150;
	assert_int_equal(slots_check(f->engine, SLOT_KEEP), -ETIME);
	engine_merge(f->engine, &total);
	put_text(f, object(OBJECT), "in the same slot");
	assert_true(slot_begin(f->engine->committed) == bound + 1);
	view = try_view_of(f, PARTITION, at_sequence(bound));
	assert_int_not_equal(view, 0);
	check_text(f, at_version(object(OBJECT), view), "before");
	/* When it has ended, the policy counts on. */
	f->now += 2 * SECOND;
	put_text(f, object(OBJECT), "later");
	f->now += 2 * SECOND;
	engine_merge(f->engine, &total);
	assert_int_equal(try_view_of(f, PARTITION, at_sequence(bound)), 0);
	check_text(f, object(OBJECT), "later");
}

/* Whatever is sent, and however often the device is opened anew. */
static void test_no_commands_begin_more_slots_than_may_be(void **state)
{
	struct fixture *f = *state;
	uint64_t z = seed_of(1);
	uint32_t refused = 0, crashes = 0;

	make_text_object(f);
	leave(f, 100);
	for (uint32_t n = 0; n < 20000; n++) {
		int result = 0;

		z = z * UINT64_C(6364136223846793005) + 1442695040888963407;
		switch (z >> 60) {
		case 0:
		case 1:
			result = try_snapshot(f, NULL);
			break;
		case 2:
			result = try_rollback(f, ENGINE_HISTORY, PARTITION, at_time(f->now - 500));
			break;
		case 3:
			result = try_rollback(f, ENGINE_HISTORY, 0, at_time(f->now));
			break;
		case 4:
			result = try_view(f, the_present);
			break;
		case 5:
			result = try_view(f, at_time(f->now));
			break;
		case 6:
			set_kind(f, PARTITION,
				 z >> 59 & 1 ? ENGINE_RETAIN_NONE : ENGINE_RETAIN_ALL);
			break;
		case 7:
			if ((z >> 40) % 50)
				break;
			crash(f);
			crashes++;
			break;
		case 8:
			if ((z >> 40) % 50)
				break;
			result = engine_reformat(f->engine);
			if (!result)
				make_text_object(f);
			break;
		case 9:
			f->now += (z >> 40) % 100;
			break;
		default:
			begin(f, ENGINE_WRITE);
			end(f, engine_write(f->txn, object(OBJECT), 0, "ten bytes.", 10));
			break;
		}
		refused += result == -ETIME;
		/* An opening, and a format, end the slot before them without being asked. */
		assert_true(begun(f) <= allowed(f) + crashes + 1);
	}
	assert_true(refused > 1000);
	printf("%u of 20000 commands refused, %u crashes\n", refused, crashes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_device_lasts_longer_than_a_working_life),
		TEST(test_what_needs_a_slot_is_refused_and_writes_go_on),
		TEST(test_it_is_said_once_an_hour),
		TEST(test_going_back_waits_a_second_at_most),
		TEST(test_moments_that_were_given_stay_exact_when_slots_are_short),
		TEST(test_a_slot_that_can_not_end_gives_nothing_up),
		TEST(test_no_commands_begin_more_slots_than_may_be),
	};

	return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
