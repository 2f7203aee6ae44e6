/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A logical unit in memory, and calls of its commands. Buffers are handed over in allocations of
 * exactly their size, so that the address sanitizer sees every byte too far, and Data-In is filled
 * with garbage before.
 */
#ifndef MUNINN_TESTS_OSD_UNIT_H
#define MUNINN_TESTS_OSD_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "osd/osd.h"
#include "tests/engine/by_address.h"
#include "wire/wire.h"

/* The partition and object that most tests use. */
#define P UINT64_C(0x10000)
#define O UINT64_C(0x10005)

/* What UNIT_CLOCK starts with: milliseconds since 1970. */
#define UNIT_CLOCK UINT64_C(1700000000000)

struct unit {
	struct nand *nand;
	struct engine *engine;
	struct engine_options options; /* of the engine; the clock is the unit's */
	struct osd_device *device;
	uint64_t now_ms;            /* the device's clock */
	uint64_t jumped_ms;         /* by how much it was set while no time passed */
	struct osd_command command; /* the last one, with its results */
	uint8_t *data_in;
	uint8_t garbage;
	uint64_t nexus;        /* of the commands to come */
	const char *initiator; /* its name */
	uint16_t action;       /* of the last command, and its version */
	enum osd_version version;
};

/* An empty device with room for `bytes`. */
void unit_open(struct unit *unit, uint64_t bytes);
/* An empty device of that geometry, for tests of many pages. */
void unit_open_on(struct unit *unit, const struct nand_geometry *geometry);
/* The same with these options of the engine, but for its clock. */
void unit_open_with(struct unit *unit, const struct nand_geometry *geometry,
		    const struct engine_options *options);
void unit_close(struct unit *unit);
/* The service ends as by a crash, and starts again. Sessions are new. */
void unit_crash(struct unit *unit);

/*
 * cmocka set-up and tear-down: a unit of 64 MiB in *state; the second with partition P and object
 * O.
 */
int unit_set_up(void **state);
int unit_set_up_with_object(void **state);
int unit_tear_down(void **state);
#define with_unit(test) cmocka_unit_test_setup_teardown(test, unit_set_up, unit_tear_down)
#define with_object(test) \
	cmocka_unit_test_setup_teardown(test, unit_set_up_with_object, unit_tear_down)

/*
 * The same, twice: with the CDBs of OSD-1 and of OSD-2. call_of makes calls of the version that
 * unit_version says; in tests of with_unit and with_object that is OSD-2.
 */
int unit_set_up_osd1(void **state);
int unit_set_up_with_object_osd1(void **state);
#define with_unit_in_both(test) \
	{ #test " (OSD-1)", test, unit_set_up_osd1, unit_tear_down, NULL }, with_unit(test)
#define with_object_in_both(test)                                                       \
	{ #test " (OSD-1)", test, unit_set_up_with_object_osd1, unit_tear_down, NULL }, \
		with_object(test)
extern enum osd_version unit_version;

/*
 * unit_execute sends commands that fit in envelopes, which changes nothing else. False at first;
 * UNIT_ENVELOPES in the environment has the same effect.
 */
extern bool unit_in_envelopes;
/* Executes raw bytes; afterwards unit->command has the results. */
void unit_execute(struct unit *unit, const uint8_t *cdb, size_t cdb_length, const void *data_out,
		  size_t data_out_length, size_t data_in_capacity);

/* ---- calls: a command with its data and attributes, laid out as an initiator does ---- */

struct call {
	struct osd_cdb cdb;
	const void *data;
	size_t data_length;
	struct osd_piece pieces[8];
	size_t piece_count;
	uint8_t continuation[9216]; /* a segment of another kind than pieces make */
	size_t continuation_length;
	uint8_t sets[4096], gets[4096]; /* lists */
	struct osd_list_writer set_writer, get_writer;
	bool has_sets, has_gets;
	size_t data_in_capacity; /* for command data */
	size_t retrieved_capacity;
	size_t cut_data_out; /* bytes left out at the end of Data-Out */
};

/* A call in list format; call_of in the test's version. */
struct call call_of(uint16_t action, uint64_t partition, uint64_t object);
struct call call_of_version(enum osd_version version, uint16_t action, uint64_t partition,
			    uint64_t object);
void call_set(struct call *call, uint32_t page, uint32_t number, const void *value,
	      uint32_t length);
void call_set_number(struct call *call, uint32_t page, uint32_t number, uint64_t value);
void call_get(struct call *call, uint32_t page, uint32_t number);
/* Adds a descriptor to a CDB continuation segment. */
void call_descriptor(struct call *call, uint16_t type, const void *content, uint32_t length);
void call_piece(struct call *call, uint64_t offset, uint64_t length);
/* Adds a descriptor to the CDB continuation segment. */
void call_descriptor(struct call *call, uint16_t type, const void *content, uint32_t length);
/* Data-Out of `length` bytes; also sets LENGTH. */
void call_data(struct call *call, const void *data, size_t length);
void call_run(struct unit *unit, struct call *call);

/* What call_run executes. The caller frees `out`, which has room for 16 KiB behind the data. */
struct encoded_call {
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	size_t cdb_length;
	uint8_t *out;
	size_t out_length;
	size_t in_capacity;
};
void call_encode(struct call *call, struct encoded_call *encoded);

/* Calls that most tests need; they must succeed. */
void unit_create_partition(struct unit *unit, uint64_t partition);
void unit_create(struct unit *unit, uint64_t partition, uint64_t object);
void unit_write(struct unit *unit, uint64_t object, uint64_t address, const void *data,
		size_t length);
uint64_t unit_get_number(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
			 uint32_t number);
void unit_set(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
	      uint32_t number, const void *value, uint32_t length);
/* The same with a number of 8 bytes. */
void unit_set_number(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		     uint32_t number, uint64_t value);
/* Zeros, also more than the sets of a call have room for. */
void unit_try_set_long(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		       uint32_t number, uint32_t length);
void unit_set_long(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		   uint32_t number, uint32_t length);
/* Length of a stored or computed attribute, 0 = not defined; copies at most `capacity` bytes. */
uint32_t unit_get(struct unit *unit, uint64_t partition, uint64_t object, uint32_t page,
		  uint32_t number, void *value, size_t capacity);

/* ---- what the last command answered ---- */

#define expect_good(unit)             unit_expect_good(unit, __FILE__, __LINE__)
#define expect_sense(unit, key, code) unit_expect_sense(unit, key, code, -1, __FILE__, __LINE__)
#define expect_field(unit, field)                                                         \
	unit_expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB, field, \
			  __FILE__, __LINE__)

void unit_expect_good(struct unit *unit, const char *file, int line);
/* `field` < 0: no field pointer is expected. An error transfers nothing. */
void unit_expect_sense(struct unit *unit, uint8_t key, uint16_t code, int field, const char *file,
		       int line);
struct osd_sense unit_sense(const struct unit *unit);

/* ---- rows of the table of commands ---- */

/*
 * What the last command did is a row of the table of commands in docs/protocol.md: ACTION is the
 * name of an enum osd_action without OSD_, CONDITION a string literal that says when the command
 * ends so, CODE and KEY are names without SENSE_. scripts/command-table reads these lines, in test
 * functions; here they check that it was this command and that it ended so.
 */
#define shows_good(unit, ACTION, condition)                        \
	do {                                                       \
		unit_expect_action(unit, OSD_##ACTION, condition); \
		expect_good(unit);                                 \
	} while (0)
#define shows_field(unit, ACTION, condition, field)                \
	do {                                                       \
		unit_expect_action(unit, OSD_##ACTION, condition); \
		expect_field(unit, field);                         \
	} while (0)
/* A field whose place differs between the versions. */
#define shows_fields(unit, ACTION, condition, field_osd1, field_osd2) \
	shows_field(unit, ACTION, condition, unit_version == OSD_1 ? (field_osd1) : (field_osd2))
#define shows_sense(unit, ACTION, condition, KEY, CODE)            \
	do {                                                       \
		unit_expect_action(unit, OSD_##ACTION, condition); \
		expect_sense(unit, SENSE_##KEY, SENSE_##CODE);     \
	} while (0)
/* 55/00 that names the field that asks for more than there can be. */
#define shows_resource(unit, ACTION, condition, field)                                        \
	do {                                                                                  \
		unit_expect_action(unit, OSD_##ACTION, condition);                            \
		unit_expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_SYSTEM_RESOURCE_FAILURE, \
				  (field), __FILE__, __LINE__);                               \
	} while (0)

void unit_expect_action(const struct unit *unit, uint16_t action, const char *condition);

/* Entry `index` of the list retrieved by `call`; fails the test if there is none. */
struct osd_attribute unit_retrieved(struct unit *unit, const struct call *call, size_t index);
size_t unit_retrieved_count(struct unit *unit, const struct call *call);

#endif
