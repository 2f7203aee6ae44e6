/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Looking for damage from the client's side: against the target itself, behind a loopback session.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/check.h"
#include "common/log.h"
#include "nand/faults.h"
#include "tests/client/local_target.h"

#define PARTITION UINT64_C(0x10000)
#define OBJECT    UINT64_C(0x10000)
enum { OBJECTS = 300, OBJECT_BYTES = 100000 };

struct fixture {
	struct local_target target;
	struct osd_client *client; /* the target's */
	uint64_t damaged[OBJECTS];
	size_t count;
};

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void fill(struct fixture *f)
{
	static uint8_t data[OBJECT_BYTES];
	struct osd_client_error error;

	memset(data, 'x', sizeof(data));
	assert_int_equal(osd_client_create_partition(f->client, PARTITION, -1, NULL, &error), 0);
	for (uint64_t i = 0; i < OBJECTS; i++)
		assert_int_equal(osd_client_create_and_write(f->client, PARTITION, OBJECT + i, data,
							     sizeof(data), NULL, &error),
				 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	log_configure(no_log, LOG_LEVEL_ERROR);
	local_target_serve(&f->target, 128 << 20);
	f->client = f->target.client;
	fill(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	local_target_close(&f->target);
	free(f);
	return 0;
}

/* ---- what was found ---- */

static int keep(void *context, struct osd_client_address address, uint16_t type)
{
	struct fixture *f = context;

	assert_int_equal(address.partition, PARTITION);
	assert_int_equal(type, OSD_MAP_DAMAGED_DATA);
	assert_true(f->count < OBJECTS);
	f->damaged[f->count++] = address.object;
	return 0;
}

static int stop_at_first(void *context, struct osd_client_address address, uint16_t type)
{
	(void)address;
	(void)type;
	(*(unsigned *)context)++;
	return -ECANCELED;
}

static void damage(struct fixture *f, double share)
{
	struct nand_faults faults = nand_faults_default();
	struct error_text error;

	faults.on = 1 << NAND_FAULT_UNREADABLE;
	faults.unreadable = share;
	assert_int_equal(nand_set_faults(f->target.nand, &faults, &error), 0);
}

static bool can_be_read(struct fixture *f, uint64_t object)
{
	static uint8_t data[OBJECT_BYTES];
	struct osd_client_address address = { .partition = PARTITION, .object = object };
	size_t got;

	return osd_client_read(f->client, address, 0, data, sizeof(data), &got, NULL) == 0;
}

struct found_ranges {
	uint64_t offset[64], length[64];
	size_t count;
};

static int keep_range(void *context, uint64_t offset, uint64_t length)
{
	struct found_ranges *found = context;

	assert_true(found->count < 64 && length > 0);
	assert_true(found->count == 0 ||
		    offset > found->offset[found->count - 1] + found->length[found->count - 1]);
	found->offset[found->count] = offset;
	found->length[found->count++] = length;
	return 0;
}

/* Whether a byte can be read. */
static bool is_there(struct fixture *f, struct osd_client_address address, uint64_t offset)
{
	uint8_t byte;
	size_t got;

	return osd_client_read(f->client, address, offset, &byte, 1, &got, NULL) == 0;
}

static void test_damaged_ranges_are_those_that_can_t_be_read(void **state)
{
	struct fixture *f = *state;
	size_t ranges = 0;

	damage(f, 0.05);
	for (uint64_t n = 0; n < 40; n++) {
		struct osd_client_address address = { .partition = PARTITION,
						      .object = OBJECT + n };
		struct found_ranges found = { .count = 0 };
		size_t next = 0;

		/* The object's own record is lost. */
		if (osd_client_check_ranges(f->client, address, keep_range, &found, NULL))
			continue;
		for (uint64_t offset = 0; offset < OBJECT_BYTES; offset += 512) {
			next += next < found.count &&
				offset >= found.offset[next] + found.length[next];
			assert_int_equal(is_there(f, address, offset),
					 next == found.count || offset < found.offset[next]);
		}
		ranges += found.count;
	}
	assert_true(ranges > 20);
}

static void test_a_sound_unit_checks_clean(void **state)
{
	struct fixture *f = *state;
	struct osd_client_address root = { 0 }, partition = { .partition = PARTITION };
	struct osd_client_checked checked = { 0 };

	assert_int_equal(osd_client_check(f->client, root, keep, f, &checked, NULL), 0);
	assert_int_equal(checked.objects, 2);
	assert_int_equal(osd_client_check(f->client, partition, keep, f, &checked, NULL), 0);
	assert_int_equal(checked.objects, 2 + 1 + OBJECTS);
	assert_int_equal(checked.pages, OBJECTS * 25);
	assert_int_equal(f->count, 0);
}

/* More than the report of one command has space for. */
static void test_every_damaged_object_is_found_over_several_commands(void **state)
{
	struct fixture *f = *state;
	struct osd_client_address partition = { .partition = PARTITION };
	struct osd_client_checked checked = { 0 };
	size_t next = 0;

	damage(f, 0.05);
	assert_int_equal(osd_client_check(f->client, partition, keep, f, &checked, NULL), 0);
	assert_in_range(f->count, 171, OBJECTS);
	for (uint64_t object = OBJECT; object < OBJECT + OBJECTS; object++) {
		bool is_damaged = next < f->count && f->damaged[next] == object;

		assert_int_equal(can_be_read(f, object), !is_damaged);
		next += is_damaged;
	}
	assert_int_equal(next, f->count);
}

static void test_one_object_is_checked_by_itself(void **state)
{
	struct fixture *f = *state;
	struct osd_client_address address = { .partition = PARTITION, .object = OBJECT + 7 };
	struct osd_client_checked checked = { 0 };
	struct osd_client_error error;

	assert_int_equal(osd_client_check(f->client, address, keep, f, &checked, &error), 0);
	assert_int_equal(checked.objects, 1);
	assert_int_equal(checked.pages, 25);
	damage(f, 1);
	assert_int_equal(osd_client_check(f->client, address, keep, f, &checked, &error), 0);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->damaged[0], OBJECT + 7);
	address.object = OBJECT + OBJECTS;
	assert_int_equal(osd_client_check(f->client, address, keep, f, &checked, &error), -ENOENT);
}

static void test_a_check_ends_when_the_caller_has_seen_enough(void **state)
{
	struct fixture *f = *state;
	struct osd_client_address partition = { .partition = PARTITION };
	struct osd_client_checked checked = { 0 };
	unsigned seen = 0;

	damage(f, 1);
	assert_int_equal(
		osd_client_check(f->client, partition, stop_at_first, &seen, &checked, NULL),
		-ECANCELED);
	assert_int_equal(seen, 1);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_sound_unit_checks_clean),
		TEST(test_damaged_ranges_are_those_that_can_t_be_read),
		TEST(test_every_damaged_object_is_found_over_several_commands),
		TEST(test_one_object_is_checked_by_itself),
		TEST(test_a_check_ends_when_the_caller_has_seen_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
