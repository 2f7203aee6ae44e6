/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Calls of EXECUTE's functions in tests. */
#ifndef MUNINN_TESTS_OSD_FUNCTION_CALL_H
#define MUNINN_TESTS_OSD_FUNCTION_CALL_H

#include "tests/osd/unit.h"
#include "wire/vendor.h"

struct function_call {
	struct call call;
	uint8_t parameters[2048];
	struct osd_item_writer writer; /* of the parameters */
};

/* Room for 16 KiB of result. Parameters are added to `writer` before it runs. Not to be moved. */
void function_of(struct function_call *call, enum osd_function function, uint64_t partition,
		 uint64_t object);
void function_run(struct unit *unit, struct function_call *call);

/* Longer than moments are apart. */
#define FUNCTION_STEP_MS 2000
/* A step later: runs a function with one number, or, tag 0, with nothing. */
void function_run_with(struct unit *unit, enum osd_function function, uint64_t partition,
		       uint64_t object, uint16_t tag, uint64_t value);
/*
 * A step later, and another one before what follows: a version of a partition or, 0, of the device,
 * with a name unless that is NULL. Its number.
 */
uint64_t function_snapshot(struct unit *unit, uint64_t partition, const char *name);

/* Text at the beginning of an object, a step later; what it says; that there is none. */
void function_write_text(struct unit *unit, uint64_t object, const char *text);
void function_expect_text(struct unit *unit, uint64_t partition, uint64_t object, const char *text);
void function_expect_absent(struct unit *unit, uint64_t partition, uint64_t object);

/* P as of a version. */
static inline uint64_t function_at_version(uint64_t version)
{
	return version << 48 | P;
}

/* 26/00, field pointer to the parameter that begins at byte `at` of Data-Out. */
#define expect_parameter(unit, at)                                                                \
	unit_expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST, at, \
			  __FILE__, __LINE__)

/* Subscribes to everything. */
void function_subscribe(struct unit *unit);

/* Of the last result, which must be whole: a number, that must be there. */
uint64_t function_number(const struct unit *unit, uint16_t tag);
bool function_has(const struct unit *unit, uint16_t tag, struct osd_item *item);
/* The n-th ENTRY. */
bool function_entry(const struct unit *unit, size_t n, struct osd_item *entry);
uint64_t entry_number(const struct osd_item *entry, uint16_t tag);
/* What CONTINUATION the result has goes into the next call. False: it is complete. */
bool function_continue(const struct unit *unit, struct function_call *call);

#endif
