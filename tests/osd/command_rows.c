/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Every command of the target with a call that succeeds. */
#include "tests/osd/command_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bytes.h"

/* What O holds. */
static const char row_data[] = "what the object of all commands holds";

/* ---- calls that need more than their target ---- */

static void fill_data_out(struct call *call)
{
	call_data(call, "data", 4);
}

static void fill_data_in(struct call *call)
{
	call->cdb.length = call->data_in_capacity = 8;
}

static void fill_list(struct call *call)
{
	call->cdb.length = call->data_in_capacity = 512;
}

static void fill_range(struct call *call)
{
	call->cdb.length = 4;
	call->cdb.address = 2;
}

static void fill_remove_contents(struct call *call)
{
	if (call->cdb.version == OSD_2)
		call->cdb.command_options = OSD_REMOVE_CONTENTS;
	else
		call->cdb.partition = P + 2; /* an empty one */
}

/* Objects whose name is not empty. */
static void fill_query(struct call *call)
{
	static const uint8_t list[20] = {
		OSD_QUERY_ALL, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, OSD_INFORMATION_USERNAME
	};

	call->cdb.length = call->data_in_capacity = 512;
	call_descriptor(call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
}

static void fill_copy(struct call *call)
{
	struct osd_copy_source source = { .partition = P, .object = O };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	osd_copy_source_encode(&source, content);
	call_descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

static void fill_map(struct call *call)
{
	call->cdb.length = call->data_in_capacity = 256;
}

static void fill_compare(struct call *call)
{
	uint8_t content[OSD_USER_OBJECT_BYTES];

	put_be64(content, P);
	put_be64(content + 8, O);
	call_descriptor(call, OSD_CONTINUATION_USER_OBJECT, content, sizeof(content));
	fill_map(call);
}

static void fill_swap(struct call *call)
{
	static const uint8_t operands[16];

	call_data(call, operands, call->cdb.action == OSD_COMPARE_AND_SWAP ? 16 : 8);
	call->cdb.length = 8;
	call->data_in_capacity = 8;
}

static void fill_conditional_set(struct call *call)
{
	call_set(call, 0xF0000010, 1, NULL, 0);
	call_set(call, 0xF0000010, 1, "new", 3);
}

static void fill_inquiry(struct call *call)
{
	call->cdb.embedded_cdb[0] = OSD_SCSI_INQUIRY;
	put_be16(call->cdb.embedded_cdb + 3, 96);
	call->data_in_capacity = 96;
}

static void fill_task_query(struct call *call)
{
	call->cdb.task_function = OSD_QUERY_TASK_SET;
	call->cdb.length = call->data_in_capacity = OSD_TASK_ANSWER_BYTES;
}

/* What command_rows_prepare duplicates of P. */
#define ROW_CLONE    (P + 3)
#define ROW_SNAPSHOT (P + 4)

static void fill_source(struct call *call)
{
	call->cdb.address = P;
}

static void fill_clone(struct call *call)
{
	call->cdb.partition = ROW_CLONE;
}

static void fill_snapshot(struct call *call)
{
	call->cdb.address = ROW_SNAPSHOT;
}

/* ---- the rows ---- */

const struct command_row command_rows[] = {
	{ OSD_OBJECT_STRUCTURE_CHECK, "any object", ROW_OBJECT, 0, fill_map },
	{ OSD_FORMAT_OSD, "the root, after formatting", ROW_ROOT, ROW_CHANGES, NULL },
	{ OSD_CREATE, "each new object", ROW_NEW_OBJECT, ROW_CHANGES, NULL },
	{ OSD_LIST, "the partition or root; with LIST_ATTR each entry", ROW_PARTITION,
	  ROW_NO_CONTINUATION, fill_list },
	{ OSD_PUNCH, "the object", ROW_OBJECT, ROW_CHANGES, fill_range },
	{ OSD_READ, "the object", ROW_OBJECT, 0, fill_data_in },
	{ OSD_WRITE, "the object", ROW_OBJECT, ROW_CHANGES, fill_data_out },
	{ OSD_APPEND, "the object", ROW_OBJECT, ROW_CHANGES, fill_data_out },
	{ OSD_FLUSH, "the object", ROW_OBJECT, ROW_NO_OPTIONS, NULL },
	{ OSD_CLEAR, "the object", ROW_OBJECT, ROW_CHANGES, fill_range },
	{ OSD_REMOVE, "the object, before it is removed", ROW_OBJECT, ROW_CHANGES | ROW_REMOVES,
	  NULL },
	{ OSD_CREATE_PARTITION, "the new partition", ROW_NEW_PARTITION, ROW_CHANGES, NULL },
	{ OSD_REMOVE_PARTITION, "the partition, before it is removed", ROW_PARTITION,
	  ROW_CHANGES | ROW_REMOVES, fill_remove_contents },
	{ OSD_COMPARE_AND_SWAP, "the object", ROW_OBJECT, ROW_CHANGES, fill_swap },
	{ OSD_GET_ATTRIBUTES, "any object; gets before sets", ROW_OBJECT, 0, NULL },
	{ OSD_SET_ATTRIBUTES, "any object", ROW_OBJECT, 0, NULL },
	{ OSD_FETCH_AND_ADD, "the object", ROW_OBJECT, ROW_CHANGES, fill_swap },
	{ OSD_CONDITIONAL_SET_ATTRIBUTES, "the object; lists only, the set list is its own",
	  ROW_OBJECT, ROW_CHANGES | ROW_OWN_LISTS, fill_conditional_set },
	{ OSD_CREATE_AND_WRITE, "the new object", ROW_NEW_OBJECT, ROW_CHANGES, fill_data_out },
	{ OSD_CREATE_COLLECTION, "the new collection", ROW_NEW_OBJECT, ROW_CHANGES, NULL },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, "the new collection", ROW_NEW_OBJECT, ROW_CHANGES,
	  NULL },
	{ OSD_REMOVE_COLLECTION, "the collection, before it is removed", ROW_COLLECTION,
	  ROW_CHANGES | ROW_REMOVES, NULL },
	{ OSD_LIST_COLLECTION, "the collection or partition; with LIST_ATTR each entry",
	  ROW_COLLECTION, ROW_NO_CONTINUATION, fill_list },
	{ OSD_QUERY, "the collection that is searched", ROW_COLLECTION, ROW_NEEDS_CONTINUATION,
	  fill_query },
	{ OSD_REMOVE_MEMBER_OBJECTS, "the collection", ROW_COLLECTION, ROW_CHANGES, NULL },
	{ OSD_GET_MEMBER_ATTRIBUTES, "each member; gets before sets", ROW_COLLECTION, ROW_OWN_LISTS,
	  NULL },
	{ OSD_SET_MEMBER_ATTRIBUTES, "each member; sets before gets", ROW_COLLECTION, ROW_OWN_LISTS,
	  NULL },
	{ OSD_COPY_USER_OBJECTS, "each new object", ROW_NEW_OBJECT,
	  ROW_CHANGES | ROW_NEEDS_CONTINUATION, fill_copy },
	{ OSD_FLUSH_COLLECTION, "the collection", ROW_COLLECTION, ROW_NO_OPTIONS, NULL },
	{ OSD_FLUSH_PARTITION, "the partition", ROW_PARTITION, ROW_NO_OPTIONS, NULL },
	{ OSD_FLUSH_OSD, "the root", ROW_ROOT, ROW_NO_OPTIONS, NULL },
	{ OSD_GENERAL_COMPARE_AND_SWAP, "the object; lists only, the set list is its own",
	  ROW_OBJECT, ROW_CHANGES | ROW_OWN_LISTS, fill_conditional_set },
	{ OSD_CREATE_CLONE, "the new partition", ROW_NEW_PARTITION, ROW_CHANGES, fill_source },
	{ OSD_CREATE_SNAPSHOT, "the new partition", ROW_NEW_PARTITION, ROW_CHANGES, fill_source },
	{ OSD_DETACH_CLONE, "the partition", ROW_PARTITION, ROW_CHANGES, fill_clone },
	{ OSD_REFRESH_SNAPSHOT_OR_CLONE, "the partition", ROW_PARTITION, ROW_CHANGES, fill_clone },
	{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, "the partition", ROW_PARTITION, ROW_CHANGES,
	  fill_snapshot },
	{ OSD_READ_MAP, "the object", ROW_OBJECT, ROW_NO_CONTINUATION, fill_map },
	{ OSD_READ_MAPS_AND_COMPARE, "the object", ROW_OBJECT, ROW_NEEDS_CONTINUATION,
	  fill_compare },
	{ OSD_PERFORM_SCSI_COMMAND, "any object", ROW_OBJECT, 0, fill_inquiry },
	{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, "any object", ROW_OBJECT, 0, fill_task_query },
};

const size_t command_row_count = sizeof(command_rows) / sizeof(command_rows[0]);

void command_rows_prepare(struct unit *unit)
{
	struct engine_txn *txn;

	unit_create_partition(unit, P + 2);
	unit_write(unit, O, 0, row_data, sizeof(row_data));
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_create(txn, P, ENGINE_COLLECTION, ROW_COLLECTION_ID, 1, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(engine_clone(txn, P, (struct engine_moment){ 0 }, ROW_CLONE, true, NULL),
			 0);
	assert_int_equal(engine_commit(txn, false), 0);
	assert_int_equal(engine_begin(unit->engine, ENGINE_WRITE, &txn), 0);
	assert_int_equal(
		engine_clone(txn, P, (struct engine_moment){ 0 }, ROW_SNAPSHOT, false, NULL), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

const struct command_row *command_row_of(uint16_t action)
{
	for (size_t i = 0; i < command_row_count; i++)
		if (command_rows[i].action == action)
			return &command_rows[i];
	fail();
	return NULL;
}

struct call command_row_call(const struct command_row *row, enum osd_version version)
{
	static const struct {
		uint64_t partition, object;
	} ids[] = {
		[ROW_ROOT] = { 0, 0 },
		[ROW_PARTITION] = { P, 0 },
		[ROW_OBJECT] = { P, O },
		[ROW_COLLECTION] = { P, ROW_COLLECTION_ID },
		[ROW_NEW_PARTITION] = { P + 1, 0 },
		[ROW_NEW_OBJECT] = { P, O + 100 },
	};
	struct call call = call_of_version(version, row->action, ids[row->target].partition,
					   ids[row->target].object);

	if (row->fill)
		row->fill(&call);
	return call;
}
