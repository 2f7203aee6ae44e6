/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Calls of EXECUTE's functions, and how tests read their results. */
#include "tests/osd/function_call.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "common/bytes.h"

void function_of(struct function_call *call, enum osd_function function, uint64_t partition,
		 uint64_t object)
{
	call->call = call_of(OSD_EXECUTE, partition, object);
	call->call.cdb.address = (uint64_t)function << 48;
	call->call.data_in_capacity = 16384;
	osd_items_begin(&call->writer, call->parameters, sizeof(call->parameters));
}

void function_run(struct unit *unit, struct function_call *call)
{
	assert_false(call->writer.full);
	call_data(&call->call, call->parameters, call->writer.length);
	call->call.cdb.address =
		osd_execute_address(call->call.cdb.address >> 48, (uint32_t)call->writer.length);
	call->call.cdb.length = call->call.data_in_capacity;
	call_run(unit, &call->call);
}

void function_run_with(struct unit *unit, enum osd_function function, uint64_t partition,
		       uint64_t object, uint16_t tag, uint64_t value)
{
	struct function_call call;

	unit->now_ms += FUNCTION_STEP_MS;
	function_of(&call, function, partition, object);
	if (tag)
		osd_item_add_number(&call.writer, tag, value);
	function_run(unit, &call);
}

uint64_t function_snapshot(struct unit *unit, uint64_t partition, const char *name)
{
	struct function_call call;

	unit->now_ms += FUNCTION_STEP_MS;
	function_of(&call, OSD_FUNCTION_SNAPSHOT, partition, 0);
	if (name)
		osd_item_add_text(&call.writer, OSD_ITEM_NAME, name);
	function_run(unit, &call);
	expect_good(unit);
	unit->now_ms += FUNCTION_STEP_MS;
	return function_number(unit, OSD_ITEM_VERSION);
}

void function_subscribe(struct unit *unit)
{
	struct function_call call;

	function_of(&call, OSD_FUNCTION_SUBSCRIBE, 0, 0);
	osd_item_add_number(&call.writer, OSD_ITEM_FEATURES, OSD_FEATURES_ALL);
	function_run(unit, &call);
	expect_good(unit);
}

static const uint8_t *result(const struct unit *unit, size_t *length)
{
	assert_true(unit->command.data_in_length >= OSD_RESULT_HEAD_BYTES);
	*length = unit->command.data_in_length - OSD_RESULT_HEAD_BYTES;
	assert_int_equal(get_be32(unit->data_in), *length);
	assert_int_equal(get_be32(unit->data_in + 4), 0);
	return unit->data_in + OSD_RESULT_HEAD_BYTES;
}

bool function_has(const struct unit *unit, uint16_t tag, struct osd_item *item)
{
	size_t length;
	const uint8_t *items = result(unit, &length);
	int found = osd_item_find(items, length, tag, item);

	assert_true(found == 0 || found == -2 /* -ENOENT */);
	return found == 0;
}

uint64_t function_number(const struct unit *unit, uint16_t tag)
{
	struct osd_item item;
	uint64_t number = 0;

	assert_true(function_has(unit, tag, &item));
	assert_int_equal(osd_item_number(&item, &number), 0);
	return number;
}

bool function_entry(const struct unit *unit, size_t n, struct osd_item *entry)
{
	struct osd_item_reader reader;
	size_t length;
	const uint8_t *items = result(unit, &length);

	osd_items_read(&reader, items, length);
	while (osd_item_next(&reader, entry) == 1)
		if (entry->tag == OSD_ITEM_ENTRY && n-- == 0)
			return true;
	return false;
}

uint64_t entry_number(const struct osd_item *entry, uint16_t tag)
{
	uint64_t number = 0;

	assert_int_equal(osd_item_find_number(entry->value, entry->length, tag, &number), 0);
	return number;
}

bool function_continue(const struct unit *unit, struct function_call *call)
{
	struct osd_item_reader reader;
	struct osd_item item, old;
	struct function_call next;

	if (!function_has(unit, OSD_ITEM_CONTINUATION, &item))
		return false;
	/* Everything as before but the continuation. */
	osd_items_begin(&next.writer, next.parameters, sizeof(next.parameters));
	osd_items_read(&reader, call->parameters, call->writer.length);
	while (osd_item_next(&reader, &old) == 1)
		if (old.tag != OSD_ITEM_CONTINUATION)
			osd_item_add(&next.writer, old.tag, old.value, old.length);
	osd_item_add(&next.writer, OSD_ITEM_CONTINUATION, item.value, item.length);
	memcpy(call->parameters, next.parameters, next.writer.length);
	call->writer.length = next.writer.length;
	return true;
}

void function_write_text(struct unit *unit, uint64_t object, const char *text)
{
	unit->now_ms += FUNCTION_STEP_MS;
	unit_write(unit, object, 0, text, strlen(text));
}

void function_expect_text(struct unit *unit, uint64_t partition, uint64_t object, const char *text)
{
	struct call call = call_of(OSD_READ, partition, object);

	call.cdb.length = call.data_in_capacity = strlen(text);
	call_run(unit, &call);
	expect_good(unit);
	assert_memory_equal(unit->data_in, text, strlen(text));
}

void function_expect_absent(struct unit *unit, uint64_t partition, uint64_t object)
{
	struct call call = call_of(OSD_READ, partition, object);

	call.cdb.length = call.data_in_capacity = 1;
	call_run(unit, &call);
	assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
}
