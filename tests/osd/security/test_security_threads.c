/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Signed commands side by side: each is checked for itself, and of two with one nonce one is
 * executed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"

enum { THREADS = 4, COMMANDS = 200 };

struct worker {
	pthread_t thread;
	struct osd_device *device;
	struct encoded_call *calls;
	unsigned good, not_unique, wrong_value, other;
};

static void run_one(struct worker *worker, const struct encoded_call *call)
{
	uint8_t data_in[4096];
	struct osd_command command = {
		.cdb = call->cdb,
		.cdb_length = call->cdb_length,
		.data_out = call->out,
		.data_out_length = call->out_length,
		.data_in = data_in,
		.data_in_capacity = call->in_capacity,
	};
	struct osd_sense sense = { 0 };

	osd_execute(worker->device, &command);
	if (command.status != SCSI_STATUS_GOOD)
		osd_sense_decode(command.sense, command.sense_length, &sense);
	if (command.status == SCSI_STATUS_GOOD)
		worker->good++;
	else if (sense.code == SENSE_NONCE_NOT_UNIQUE)
		worker->not_unique++;
	else if (sense.field == unit_layout()->check_value)
		worker->wrong_value++;
	else
		worker->other++;
}

static void *work(void *context)
{
	struct worker *worker = context;

	for (size_t i = 0; i < COMMANDS; i++)
		run_one(worker, &worker->calls[i]);
	return NULL;
}

static void encode(struct unit *unit, bool writes, struct encoded_call *call)
{
	static const uint8_t data[16384];
	struct signed_call made =
		signed_call_of(unit, writes ? OSD_WRITE : OSD_READ, P, O, OSD_ALLDATA);

	if (writes)
		call_data(&made.call, data, sizeof(data));
	else
		made.call.cdb.length = made.call.data_in_capacity = 64;
	signed_encode(unit, &made, call);
	assert_true(call->in_capacity <= 4096);
}

/*
 * `lists` lists of READs or WRITEs, which the threads share in turn; `meanwhile` (may be NULL) is
 * done in this one. Adds up what became of all.
 */
static struct worker run_all(struct unit *unit, size_t lists, bool writes,
			     void (*meanwhile)(struct unit *unit))
{
	static struct encoded_call calls[THREADS][COMMANDS];
	struct worker workers[THREADS] = { 0 }, sum = { 0 };

	for (size_t i = 0; i < lists; i++)
		for (size_t j = 0; j < COMMANDS; j++)
			encode(unit, writes, &calls[i][j]);
	for (size_t i = 0; i < THREADS; i++) {
		workers[i].device = unit->device;
		workers[i].calls = calls[i % lists];
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	if (meanwhile)
		meanwhile(unit);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		sum.good += workers[i].good;
		sum.not_unique += workers[i].not_unique;
		sum.wrong_value += workers[i].wrong_value;
		sum.other += workers[i].other;
	}
	for (size_t i = 0; i < lists; i++)
		for (size_t j = 0; j < COMMANDS; j++)
			free(calls[i][j].out);
	return sum;
}

static void test_commands_of_several_threads_are_all_accepted(void **state)
{
	struct unit *unit = *state;
	struct worker sum;

	secured_set_method(unit, P, OSD_ALLDATA);
	for (unsigned writes = 0; writes < 2; writes++) {
		sum = run_all(unit, THREADS, writes, NULL);
		assert_int_equal(sum.good, THREADS * COMMANDS);
	}
}

static void change_working_key(struct unit *unit)
{
	struct signed_call call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 0x66,
						 &secured_manager.working[KEY_VERSION]);

	call.capability.method = OSD_ALLDATA;
	signed_run(unit, &call);
	expect_good(unit);
}

/*
 * What was summed up before a command's turn came does not let it in when the key was changed
 * meanwhile.
 */
static void test_no_command_is_executed_with_a_key_that_was_changed(void **state)
{
	struct unit *unit = *state;
	struct encoded_call late;
	struct worker sum, last = { .device = unit->device };

	secured_set_method(unit, P, OSD_ALLDATA);
	encode(unit, true, &late);
	sum = run_all(unit, THREADS, true, change_working_key);
	assert_int_equal(sum.good + sum.wrong_value, THREADS * COMMANDS);
	assert_int_equal(sum.not_unique + sum.other, 0);
	run_one(&last, &late);
	assert_int_equal(last.wrong_value, 1);
	free(late.out);
}

static void test_a_nonce_wins_once_however_many_threads_use_it(void **state)
{
	struct unit *unit = *state;
	struct worker sum;

	secured_set_method(unit, P, OSD_ALLDATA);
	sum = run_all(unit, 1, false, NULL);
	assert_int_equal(sum.good, COMMANDS);
	assert_int_equal(sum.not_unique, (THREADS - 1) * COMMANDS);
	assert_int_equal(sum.other, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys(test_commands_of_several_threads_are_all_accepted),
		with_keys(test_no_command_is_executed_with_a_key_that_was_changed),
		with_keys(test_a_nonce_wins_once_however_many_threads_use_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
