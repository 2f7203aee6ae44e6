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

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_commands_of_several_threads_do_not_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
