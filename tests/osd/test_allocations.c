/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands on a unit that has been at work for a while allocate no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/osd/unit.h"
#include "wire/envelope.h"

/* Sanitizers have allocators of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define COUNTS 0
#else
#define COUNTS 1
#endif

/* Volatile: the compiler knows what malloc does, and takes it not to look at them. */
static volatile bool counting;
static volatile unsigned allocations;

#if COUNTS
/* glibc's, under the names by which it calls them itself. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

void *malloc(size_t bytes)
{
	allocations = allocations + counting;
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	allocations = allocations + counting;
	return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
	allocations = allocations + counting;
	return __libc_realloc(memory, bytes);
}
#endif

/* How often executing the call asks for memory. It must succeed. */
static unsigned count(struct unit *unit, struct call call)
{
	static uint8_t in[65536];
	struct encoded_call encoded;
	struct osd_command command;

	call_encode(&call, &encoded);
	assert_in_range(encoded.in_capacity, 0, sizeof(in));
	command = (struct osd_command){
		.cdb = encoded.cdb,
		.cdb_length = encoded.cdb_length,
		.data_out = encoded.out,
		.data_out_length = encoded.out_length,
		.data_in = in,
		.data_in_capacity = encoded.in_capacity,
	};
	allocations = 0;
	counting = true;
	osd_execute(unit->device, &command);
	counting = false;
	free(encoded.out);
	assert_int_equal(command.status, SCSI_STATUS_GOOD);
	return allocations;
}

/* The same of SEND and FETCH. */
static unsigned count_in_envelope(struct unit *unit, struct call call)
{
	static uint8_t in[65536], out[65536];
	struct encoded_call encoded;
	struct envelope_letter letter;
	uint8_t cdb[ENVELOPE_CDB_BYTES];
	struct osd_command command = { .cdb = cdb, .cdb_length = sizeof(cdb), .data_out = out };

	call_encode(&call, &encoded);
	letter = (struct envelope_letter){ encoded.cdb, encoded.cdb_length, encoded.out_length };
	command.data_out_length = ENVELOPE_HEAD_BYTES + encoded.out_length;
	assert_in_range(command.data_out_length, 0, sizeof(out));
	envelope_letter_encode(&letter, out);
	memcpy(out + ENVELOPE_HEAD_BYTES, encoded.out, encoded.out_length);
	free(encoded.out);
	envelope_cdb_encode(
		&(struct envelope_cdb){ ENVELOPE_SEND, 7, (uint32_t)command.data_out_length }, cdb);
	allocations = 0;
	counting = true;
	osd_execute(unit->device, &command);
	counting = false;
	assert_int_equal(command.status, SCSI_STATUS_GOOD);
	envelope_cdb_encode(&(struct envelope_cdb){ ENVELOPE_FETCH, 7, sizeof(in) }, cdb);
	command = (struct osd_command){
		.cdb = cdb, .cdb_length = sizeof(cdb), .data_in = in, .data_in_capacity = sizeof(in)
	};
	counting = true;
	osd_execute(unit->device, &command);
	counting = false;
	assert_int_equal(command.status, SCSI_STATUS_GOOD);
	assert_int_equal(in[1], SCSI_STATUS_GOOD);
	return allocations;
}

static struct call write_of(uint64_t address, uint64_t bytes)
{
	static const uint8_t data[8192] = { 1 };
	struct call call = call_of(OSD_WRITE, P, O);

	call.cdb.address = address;
	call_data(&call, data, bytes);
	return call;
}

static struct call read_of(uint64_t address, uint64_t bytes)
{
	struct call call = call_of(OSD_READ, P, O);

	call.cdb.address = address;
	call.cdb.length = call.data_in_capacity = bytes;
	return call;
}

static struct call attribute(uint16_t action, uint32_t number)
{
	struct call call = call_of(action, P, O);

	if (action == OSD_SET_ATTRIBUTES)
		call_set_number(&call, OSD_PAGES_APPLICATION, number, 7);
	else
		call_get(&call, OSD_PAGES_APPLICATION, number);
	return call;
}

static struct call list_of_objects(void)
{
	struct call call = call_of(OSD_LIST, P, 0);

	call.cdb.length = call.data_in_capacity = 4096;
	return call;
}

/* The malloc above is the one that the target calls. */
static void allocations_are_counted(void **state)
{
	void *volatile memory;

	(void)state;
	if (!COUNTS)
		skip();
	allocations = 0;
	counting = true;
	memory = malloc(10);
	counting = false;
	assert_int_equal(allocations, 1);
	free(memory);
}

static void commands_on_a_warm_unit_allocate_nothing(void **state)
{
	struct unit *unit = *state;

	if (!COUNTS)
		skip();
	for (uint64_t i = 0; i < 50; i++)
		unit_create(unit, P, O + 1 + i);
	for (int round = 0; round < 2; round++) {
		bool warm = round == 1;

		for (uint32_t i = 0; i < 4; i++) {
			unsigned most = warm ? 0 : UINT32_MAX;

			/* Whole pages, and parts of them, whose rest is read. */
			assert_in_range(count(unit, write_of(i * 4096, 8192)), 0, most);
			assert_in_range(count(unit, write_of(i * 4096 + 10, 100)), 0, most);
			assert_in_range(count(unit, read_of(i * 4096 + 10, 8000)), 0, most);
			assert_in_range(count(unit, attribute(OSD_SET_ATTRIBUTES, i)), 0, most);
			assert_in_range(count(unit, attribute(OSD_GET_ATTRIBUTES, i)), 0, most);
			assert_in_range(count(unit, list_of_objects()), 0, most);
			assert_in_range(count_in_envelope(unit, write_of(i * 4096, 8192)), 0, most);
			assert_in_range(count_in_envelope(unit, read_of(i * 4096 + 10, 8000)), 0,
					most);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_object(allocations_are_counted),
		with_object(commands_on_a_warm_unit_allocate_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
