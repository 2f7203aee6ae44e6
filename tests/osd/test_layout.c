/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Object IDs in flat and packed partitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/unit.h"

#define PACKED UINT64_C(0x10007)
#define ID(identifier, version, page) \
	((uint64_t)(identifier) << 32 | (uint64_t)(uint16_t)(version) << 16 | (page))

static void set_up_packed(struct unit *unit)
{
	struct call call = call_of(OSD_CREATE_PARTITION, PACKED, 0);
	uint8_t layout = OSD_LAYOUT_PACKED;

	call_set(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1);
	call_run(unit, &call);
	expect_good(unit);
}

static void write_at(struct unit *unit, uint64_t object, uint64_t address, const char *text)
{
	struct call call = call_of(OSD_WRITE, PACKED, object);

	call_data(&call, text, strlen(text));
	call.cdb.address = address;
	call_run(unit, &call);
}

static void expect_text(struct unit *unit, uint64_t object, uint64_t address, const char *text)
{
	struct call call = call_of(OSD_READ, PACKED, object);

	call.cdb.address = address;
	call.cdb.length = call.data_in_capacity = strlen(text);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, text, strlen(text));
}

static void test_a_packed_object_is_created_listed_written_and_read_by_its_id(void **state)
{
	struct unit *unit = *state;
	struct call call;

	set_up_packed(unit);
	unit_create(unit, PACKED, ID(5, 0, 0));
	unit_create(unit, PACKED, 0); /* the target chooses the next identifier */
	call = call_of(OSD_LIST, PACKED, 0);
	call.cdb.length = call.data_in_capacity = 256;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit->command.data_in_length, 24 + 16);
	assert_true(get_be64(unit->data_in + 24) == ID(5, 0, 0));
	assert_true(get_be64(unit->data_in + 32) == ID(6, 0, 0));
	/* From an ID behind the first one's beginning on. */
	call.cdb.address = ID(5, 0, 1);
	call_run(unit, &call);
	assert_int_equal(unit->command.data_in_length, 24 + 8);
	assert_true(get_be64(unit->data_in + 24) == ID(6, 0, 0));

	write_at(unit, ID(5, 0, 3), 10, "three pages and ten bytes in");
	expect_good(unit);
	expect_text(unit, ID(5, 0, 0), 3 * 4096 + 10, "three pages and ten bytes in");
	expect_text(unit, ID(5, 0, 2), 4096 + 10, "three pages and ten bytes in");
	assert_true(unit_get_number(unit, PACKED, ID(5, 0, 0), OSD_USER_OBJECT_INFORMATION,
				    OSD_INFORMATION_OBJECT_ID) == ID(5, 0, 0));
}

static void test_the_first_page_counts_for_commands_on_data_and_for_no_others(void **state)
{
	struct unit *unit = *state;
	struct call call;

	set_up_packed(unit);
	unit_create(unit, PACKED, ID(5, 0, 0));
	write_at(unit, ID(5, 0, 0), 0, "first page");
	write_at(unit, ID(5, 0, 1), 0, "second page");
	call = call_of(OSD_CLEAR, PACKED, ID(5, 0, 1));
	call.cdb.length = 7;
	call_run(unit, &call);
	expect_good(unit);
	expect_text(unit, ID(5, 0, 0), 0, "first page");
	call = call_of(OSD_PUNCH, PACKED, ID(5, 0, 1));
	call.cdb.length = 7;
	call_run(unit, &call);
	shows_good(unit, PUNCH, "from the first page of a packed ID on");
	expect_text(unit, ID(5, 0, 0), 0, "first page");
	expect_text(unit, ID(5, 0, 1), 0, "page");
	/* As in a flat partition, more than there is cuts the object off. */
	call.cdb.length = UINT64_MAX;
	call.cdb.address = 2;
	call_run(unit, &call);
	expect_good(unit);
	assert_int_equal(unit_get_number(unit, PACKED, ID(5, 0, 0), OSD_USER_OBJECT_INFORMATION,
					 OSD_INFORMATION_LOGICAL_LENGTH),
			 4096 + 2);
	call.cdb.address = UINT64_MAX;
	call_run(unit, &call);
	expect_field(unit, 40);
	call = call_of(OSD_READ_MAP, PACKED, ID(5, 0, 1));
	call.cdb.length = call.data_in_capacity = 64;
	call_run(unit, &call);
	expect_field(unit, 30);
	call = call_of(OSD_APPEND, PACKED, ID(5, 0, 1));
	call_run(unit, &call);
	expect_field(unit, 30);
}

/* The object's end is at page 65536; the pointer is to what would have moved it beyond that. */
static void test_an_object_has_one_version_at_a_time(void **state)
{
	struct unit *unit = *state;
	struct engine_txn *txn;
	uint32_t version;
	struct call call;

	set_up_packed(unit);
	unit_create(unit, PACKED, ID(5, 0, 0));
	write_at(unit, ID(5, 0, 0), 0, "then");
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_snapshot(txn, PACKED, NULL, &version), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	expect_text(unit, ID(5, version, 0), 0, "then");
	call = call_of(OSD_READ, (uint64_t)version << 48 | PACKED, ID(5, version, 0));
	call.cdb.length = call.data_in_capacity = 4;
	call_run(unit, &call);
	expect_field(unit, 28);
	call.cdb.object = ID(5, -1, 0);
	call_run(unit, &call);
	expect_field(unit, 28);
	call.cdb.object = ID(5, 0, 0);
	call_run(unit, &call);
	expect_good(unit);
}

static void test_what_makes_a_packed_object_too_long_is_pointed_at(void **state)
{
	struct unit *unit = *state;
	struct osd_copy_source source = { P, O, false, false, 0 };
	uint8_t content[OSD_COPY_SOURCE_BYTES];
	struct call call;

	set_up_packed(unit);
	unit_create(unit, PACKED, ID(5, 0, 0));
	write_at(unit, ID(5, 0, 0xFFFF), 4095, "x");
	expect_good(unit);
	call = call_of(OSD_APPEND, PACKED, ID(5, 0, 0));
	call_data(&call, "x", 1);
	call_run(unit, &call);
	shows_field(unit, APPEND, "beyond the last page of a packed ID", 32);
	write_at(unit, ID(5, 0, 0xFFFF), 4096, "x");
	shows_field(unit, WRITE, "beyond the last page of a packed ID", 40);
	call = call_of(OSD_CLEAR, PACKED, ID(5, 0, 0xFFFF));
	call.cdb.length = 4097;
	call_run(unit, &call);
	shows_field(unit, CLEAR, "beyond the last page of a packed ID", 40);
	call = call_of(OSD_CREATE_AND_WRITE, PACKED, 0);
	call_data(&call, "x", 1);
	call.cdb.address = 65536 * 4096ULL;
	call_run(unit, &call);
	shows_field(unit, CREATE_AND_WRITE, "beyond the last page of a packed ID", 40);
	call = call_of(OSD_SET_ATTRIBUTES, PACKED, ID(5, 0, 0));
	call_set_number(&call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
			65536 * 4096ULL + 1);
	call_run(unit, &call);
	shows_sense(unit, SET_ATTRIBUTES, "a logical length beyond the last page of a packed ID",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(unit_sense(unit).attribute[0].number, OSD_INFORMATION_LOGICAL_LENGTH);
	unit_create_partition(unit, P);
	unit_create(unit, P, O);
	unit_write(unit, O, 65536 * 4096ULL, "x", 1);
	call = call_of(OSD_COPY_USER_OBJECTS, PACKED, 0);
	osd_copy_source_encode(&source, content);
	call_descriptor(&call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	call_run(unit, &call);
	shows_field(unit, COPY_USER_OBJECTS, "beyond the last page of a packed ID", 48);
}

static void test_what_a_packed_id_cannot_name_is_refused(void **state)
{
	struct unit *unit = *state;
	struct call call;

	set_up_packed(unit);
	unit_create(unit, PACKED, ID(5, 0, 0));
	/* The object's end is at page 65536. */
	write_at(unit, ID(5, 0, 0xFFFF), 4090, "123456");
	expect_good(unit);
	write_at(unit, ID(5, 0, 0xFFFF), 4090, "1234567");
	expect_field(unit, 40);
	/* Versions are read-only and not created; a page is no object. */
	write_at(unit, ID(5, -1, 0), 0, "x");
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	call = call_of(OSD_CREATE, PACKED, ID(6, 1, 0));
	call_run(unit, &call);
	expect_sense(unit, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	call = call_of(OSD_CREATE, PACKED, ID(6, 0, 1));
	call_run(unit, &call);
	expect_field(unit, 30);
	call = call_of(OSD_REMOVE, PACKED, ID(5, 0, 1));
	call_run(unit, &call);
	expect_field(unit, 30);
	call = call_of(OSD_REMOVE, PACKED, ID(0, 0, 1));
	call_run(unit, &call);
	expect_field(unit, 24);
}

static void test_packed_identifiers_go_on_in_a_gap_behind_the_highest(void **state)
{
	struct unit *unit = *state;
	const uint16_t actions[] = { OSD_CREATE, OSD_CREATE_COLLECTION };

	set_up_packed(unit);
	unit_create(unit, PACKED, ID(UINT32_MAX, 0, 0));
	for (uint32_t i = 0; i < 2; i++) {
		struct call call = call_of(actions[i], PACKED, 0);

		call_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID);
		call_run(unit, &call);
		expect_good(unit);
		assert_true(get_be64(unit_retrieved(unit, &call, 0).value) == ID(1 + i, 0, 0));
	}
}

static void test_pieces_of_a_packed_object_do_not_wrap_around(void **state)
{
	struct unit *unit = *state;
	const uint16_t actions[] = { OSD_WRITE, OSD_READ };

	set_up_packed(unit);
	unit_create(unit, PACKED, ID(5, 0, 0));
	write_at(unit, ID(5, 0, 0), 0, "start");
	expect_good(unit);
	for (size_t i = 0; i < 2; i++) {
		/* Together with the first page of the ID the piece would begin at 0. */
		struct call call = call_of(actions[i], PACKED, ID(5, 0, 1));

		if (actions[i] == OSD_WRITE)
			call_data(&call, "zz", 2);
		call.cdb.length = 0;
		call_piece(&call, UINT64_MAX - 4095, 2);
		call.data_in_capacity = actions[i] == OSD_READ ? 2 : 0;
		call_run(unit, &call);
		expect_field(unit, 40);
	}
	expect_text(unit, ID(5, 0, 0), 0, "start");
	/* The same piece from page 0 on is only too far. */
	for (uint16_t page = 0; page < 2; page++) {
		struct call call = call_of(OSD_WRITE, PACKED, ID(5, 0, page));

		call_data(&call, "zz", 2);
		call.cdb.length = 0;
		call_piece(&call, page == 0 ? UINT64_MAX - 4095 : 4096, 2);
		call_run(unit, &call);
		if (page == 0)
			expect_field(unit, 40);
		else
			expect_good(unit);
	}
	expect_text(unit, ID(5, 0, 2), 0, "zz");
}

static void test_a_packed_collection_at_work_is_not_copied(void **state)
{
	struct unit *unit = *state;
	struct call call;

	set_up_packed(unit);
	call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, PACKED, ID(7, 0, 0));
	call_run(unit, &call);
	expect_good(unit);
	unit->device->trackers.entries[0] =
		(struct osd_tracker){ PACKED, 0x10006, OSD_SET_MEMBER_ATTRIBUTES, false };
	call = call_of(OSD_CREATE_USER_TRACKING_COLLECTION, PACKED, ID(8, 0, 0));
	call.cdb.address = ID(7, 0, 0);
	call_run(unit, &call);
	expect_field(unit, 40);
	unit->device->trackers.entries[0] = (struct osd_tracker){ 0 };
}

static void test_the_layout_is_chosen_once(void **state)
{
	struct unit *unit = *state;
	uint8_t layout = OSD_LAYOUT_FLAT;
	struct call call;

	set_up_packed(unit);
	call = call_of(OSD_SET_ATTRIBUTES, PACKED, 0);
	call_set(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	call = call_of(OSD_CREATE_PARTITION, PACKED + 1, 0);
	layout = 2;
	call_set(&call, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1);
	call_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(
		unit_get(unit, PACKED, 0, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1), 1);
	assert_int_equal(layout, OSD_LAYOUT_PACKED);
	/* Also where it was not. */
	assert_int_equal(unit_get(unit, P, 0, OSD_MUNINN_PARTITION, OSD_MUNINN_LAYOUT, &layout, 1),
			 1);
	assert_int_equal(layout, OSD_LAYOUT_FLAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_a_packed_object_is_created_listed_written_and_read_by_its_id),
		with_unit(test_the_first_page_counts_for_commands_on_data_and_for_no_others),
		with_unit(test_an_object_has_one_version_at_a_time),
		with_unit(test_what_makes_a_packed_object_too_long_is_pointed_at),
		with_unit(test_what_a_packed_id_cannot_name_is_refused),
		with_unit(test_packed_identifiers_go_on_in_a_gap_behind_the_highest),
		with_unit(test_pieces_of_a_packed_object_do_not_wrap_around),
		with_unit(test_a_packed_collection_at_work_is_not_copied),
		with_object(test_the_layout_is_chosen_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
