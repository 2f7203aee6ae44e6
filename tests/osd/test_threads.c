/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Several commands at once on one logical unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/unit.h"

#define THREADS 4
#define ROUNDS  200

struct worker {
	struct osd_device *device;
	uint64_t object; /* its own */
	unsigned failures;
};

/* Executes on the worker's own buffers; helpers with assertions belong to the main thread. */
static bool run(struct worker *worker, struct osd_cdb *decoded, const uint8_t *out,
		size_t out_length, uint8_t *in, size_t in_capacity)
{
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	struct osd_command command = {
		.cdb = cdb,
		.data_out = out,
		.data_out_length = out_length,
		.data_in = in,
		.data_in_capacity = in_capacity,
	};

	if (osd_cdb_encode(decoded, cdb, &command.cdb_length) != 0)
		return false;
	if (!osd_execute_at_once(worker->device, &command, NULL))
		osd_execute(worker->device, &command);
	return command.status == SCSI_STATUS_GOOD;
}

/* Writes data and an attribute that belong together, and reads them back together. */
static void *work(void *argument)
{
	struct worker *worker = argument;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct osd_cdb write = { .version = OSD_2,
					 .action = OSD_WRITE,
					 .format = OSD_ATTRIBUTES_CDB,
					 .partition = P,
					 .object = worker->object,
					 .length = 512,
					 .set_page = 0x10000,
					 .set_number = 1,
					 .set_length = 4 };
		struct osd_cdb read = { .version = OSD_2,
					.action = OSD_READ,
					.format = OSD_ATTRIBUTES_LIST,
					.partition = P,
					.object = worker->object,
					.length = 512,
					.get_list = { 0, 16 },
					.retrieved = { 512, 32 } };
		struct osd_cdb list = { .version = OSD_2,
					.action = OSD_LIST,
					.format = OSD_ATTRIBUTES_LIST,
					.partition = P,
					.length = 512 };
		struct osd_cdb root = { .version = OSD_2,
					.action = OSD_GET_ATTRIBUTES,
					.format = OSD_ATTRIBUTES_LIST,
					.get_list = { 0, 16 },
					.retrieved = { 0, 512 } };
		uint8_t data[512], in[1024], gets[16] = { OSD_LIST_TYPE_GET };
		bool good;

		memset(data, (int)round, sizeof(data));
		put_be32(write.set_value, round);
		good = run(worker, &write, data, sizeof(data), NULL, 0);
		put_be32(gets + 8, 0x10000);
		put_be32(gets + 12, 1);
		good = good && run(worker, &read, gets, sizeof(gets), in, sizeof(in)) &&
		       memcmp(in, data, sizeof(data)) == 0 && get_be32(in + 512 + 24) == round;
		put_be32(gets + 8, OSD_ROOT_INFORMATION);
		put_be32(gets + 12, OSD_ATTRIBUTE_ALL);
		good = good && run(worker, &root, gets, sizeof(gets), in, sizeof(in)) &&
		       run(worker, &list, NULL, 0, in, sizeof(in)) &&
		       get_be64(in) == OSD_LIST_HEAD_BYTES - 8 + 8 * THREADS;
		worker->failures += !good;
	}
	return NULL;
}

static void test_commands_of_several_threads_do_not_mix(void **state)
{
	struct unit *unit = *state;
	struct worker workers[THREADS];
	pthread_t threads[THREADS];

	unit_create_partition(unit, P);
	for (size_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ unit->device, O + i, 0 };
		unit_create(unit, P, O + i);
	}
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].failures, 0);
	}
}

/* ---- one object, changed by all ---- */

/* A command without data or with `out`; true when it was GOOD. */
static bool change(struct worker *worker, struct osd_cdb *cdb, const uint8_t *out, size_t length,
		   uint8_t *in, size_t room)
{
	cdb->version = OSD_2;
	cdb->partition = P;
	cdb->object = O;
	return run(worker, cdb, out, length, in, room);
}

/*
 * Sets an attribute of its own, writes a range of its own, and adds to a number of all: each in
 * commands that the other workers know nothing of.
 */
static void *share(void *argument)
{
	struct worker *worker = argument;
	uint32_t self = (uint32_t)(worker->object - O);
	uint64_t last = 0;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		struct osd_cdb set = { .action = OSD_SET_ATTRIBUTES,
				       .format = OSD_ATTRIBUTES_CDB,
				       .isolation = (uint8_t)(round % 2 ? OSD_ISOLATION_NONE
									: OSD_ISOLATION_RANGE),
				       .set_page = 0x10000,
				       .set_number = self + 1,
				       .set_length = 4 };
		struct osd_cdb write = { .action = OSD_WRITE,
					 .format = OSD_ATTRIBUTES_LIST,
					 .length = 100,
					 .address = self * UINT64_C(100) };
		struct osd_cdb add = { .action = OSD_FETCH_AND_ADD,
				       .format = OSD_ATTRIBUTES_LIST,
				       .length = 8 };
		uint8_t data[100], one[8] = { [7] = 1 }, before[8];
		bool good;

		memset(data, (int)round, sizeof(data));
		put_be32(set.set_value, round);
		good = change(worker, &set, NULL, 0, NULL, 0) &&
		       change(worker, &write, data, sizeof(data), NULL, 0) &&
		       change(worker, &add, one, sizeof(one), before, sizeof(before));
		/* The number only grows, by one for each of the others meanwhile. */
		good = good && (round == 1 || get_be64(before) > last);
		last = get_be64(before);
		worker->failures += !good;
	}
	return NULL;
}

static void test_no_change_of_one_thread_undoes_that_of_another(void **state)
{
	struct unit *unit = *state;
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct call call;

	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	for (size_t i = 0; i < THREADS; i++)
		workers[i] = (struct worker){ unit->device, O + i, 0 };
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, share, &workers[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].failures, 0);
	}
	assert_int_equal(
		unit_get_number(unit, P, O, OSD_USER_OBJECT_ATOMICS, OSD_ATOMICS_FETCH_AND_ADD),
		THREADS * ROUNDS);
	call = call_of(OSD_READ, P, O);
	call.cdb.length = call.data_in_capacity = THREADS * 100;
	call_run(unit, &call);
	expect_good(unit);
	for (size_t i = 0; i < THREADS * 100; i++)
		assert_int_equal(unit->data_in[i], ROUNDS);
	for (uint32_t i = 0; i < THREADS; i++) {
		uint8_t value[4];

		assert_int_equal(unit_get(unit, P, O, 0x10000, i + 1, value, 4), 4);
		assert_int_equal(get_be32(value), ROUNDS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_commands_of_several_threads_do_not_mix),
		with_unit(test_no_change_of_one_thread_undoes_that_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
