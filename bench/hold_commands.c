/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The commands of `muninn-bench hold`, each as large as it can be. */
#include <stdlib.h>
#include <string.h>

#include "bench/hold_bench.h"
#include "common/bytes.h"
#include "wire/vendor.h"

/* An attribute that the commands set and get. */
#define PAGE 0xF0000010u

/* ---- parts of a command ---- */

static uint8_t *reserve(struct hold_call *call, size_t bytes)
{
	size_t capacity = call->out_length + bytes;

	if (!call->out || capacity > call->out_capacity) {
		call->out = realloc(call->out, max_u64(capacity, 1));
		if (!call->out)
			abort();
		call->out_capacity = capacity;
	}
	return call->out + call->out_length;
}

/* Adds bytes to Data-Out where an offset can name them. */
static struct osd_segment add(struct hold_call *call, const void *bytes, size_t length)
{
	uint64_t offset = osd_offset_encode(OSD_2, call->out_length, NULL);
	struct osd_segment segment = { offset, (uint32_t)length };

	memset(reserve(call, offset - call->out_length), 0, offset - call->out_length);
	call->out_length = offset;
	memcpy(reserve(call, length), bytes, length);
	call->out_length += length;
	return segment;
}

static void set_list(struct hold_call *call, uint32_t attributes, uint32_t bytes)
{
	size_t capacity = 8 + (size_t)attributes * (24 + bytes);
	uint8_t *list = calloc(1, capacity), *value = calloc(1, bytes);
	struct osd_list_writer writer;

	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_SET, list, capacity);
	for (uint32_t n = 1; n <= attributes; n++)
		osd_list_add_value(&writer, PAGE, n, value, bytes);
	call->cdb.set_data = add(call, list, writer.length);
	free(list);
	free(value);
}

static void get_list(struct hold_call *call, uint32_t page, uint32_t number, uint64_t bytes)
{
	struct osd_list_writer writer;
	uint8_t list[16];

	osd_list_begin(&writer, OSD_2, OSD_LIST_TO_GET, list, sizeof(list));
	osd_list_add_request(&writer, page, number);
	call->cdb.get_list = add(call, list, writer.length);
	call->cdb.retrieved.offset = osd_offset_encode(OSD_2, call->in_length, NULL);
	call->cdb.retrieved.length = (uint32_t)bytes;
}

static void descriptor(struct hold_call *call, uint16_t type, const void *content, uint32_t length)
{
	uint8_t segment[256];
	size_t bytes = osd_continuation_add(segment, 0, sizeof(segment), call->cdb.action, type,
					    content, length);

	add(call, segment, bytes);
	call->cdb.continuation_length = (uint32_t)bytes;
}

static void allocate(const struct hold_scene *scene, struct hold_call *call)
{
	call->cdb.length = call->in_length = scene->answer_bytes;
}

void hold_call_begin(struct hold_call *call, uint16_t action, uint64_t object)
{
	*call = (struct hold_call){ .cdb = { .version = OSD_2,
					     .action = action,
					     .format = OSD_ATTRIBUTES_LIST,
					     .partition = HOLD_PARTITION,
					     .object = object } };
}

/* ---- data ---- */

static void range(struct hold_call *call, uint16_t action, uint64_t object, uint64_t offset,
		  uint64_t length)
{
	hold_call_begin(call, action, object);
	call->cdb.address = offset;
	call->cdb.length = length;
}

static void fill_read(struct hold_scene *scene, struct hold_call *call)
{
	range(call, OSD_READ, HOLD_LARGE, 0, scene->answer_bytes);
	call->in_length = scene->answer_bytes;
}

/* As much as one command may write. */
static void write_most(struct hold_scene *scene, struct hold_call *call, uint16_t action,
		       uint64_t object)
{
	range(call, action, object, 0, OSD_WRITE_BYTES_MAX);
	call->data = scene->data;
}

static void fill_write(struct hold_scene *scene, struct hold_call *call)
{
	write_most(scene, call, OSD_WRITE, HOLD_LARGE);
}

/* Each page is read too. */
static void fill_write_between(struct hold_scene *scene, struct hold_call *call)
{
	struct osd_piece *pieces;
	uint32_t count = (uint32_t)min_u64(OSD_WRITE_BYTES_MAX, scene->object_bytes) / 4096;
	size_t bytes;

	hold_call_begin(call, OSD_WRITE, HOLD_LARGE);
	pieces = calloc(count, sizeof(*pieces));
	for (uint32_t n = 0; n < count; n++)
		pieces[n] = (struct osd_piece){ n * UINT64_C(4096) + 100, 8 };
	bytes = osd_continuation_encode(OSD_WRITE, pieces, count, reserve(call, 65536), 65536);
	call->out_length = bytes;
	call->cdb.continuation_length = (uint32_t)bytes;
	free(pieces);
	call->cdb.length = UINT64_C(8) * count;
	memset(reserve(call, call->cdb.length), 'p', call->cdb.length);
	call->out_length += call->cdb.length;
}

static void fill_append(struct hold_scene *scene, struct hold_call *call)
{
	write_most(scene, call, OSD_APPEND, HOLD_APPENDED);
}

static void fill_create_and_write(struct hold_scene *scene, struct hold_call *call)
{
	write_most(scene, call, OSD_CREATE_AND_WRITE, HOLD_FREE);
}

static void fill_clear(struct hold_scene *scene, struct hold_call *call)
{
	range(call, OSD_CLEAR, HOLD_OLD, 100, scene->object_bytes - 200);
}

static void fill_copy(struct hold_scene *scene, struct hold_call *call)
{
	struct osd_copy_source source = { .partition = HOLD_PARTITION, .object = HOLD_LARGE };
	uint8_t content[OSD_COPY_SOURCE_BYTES];

	(void)scene;
	osd_copy_source_encode(&source, content);
	hold_call_begin(call, OSD_COPY_USER_OBJECTS, HOLD_FREE + 1);
	descriptor(call, OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
}

static void fill_punch(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	range(call, OSD_PUNCH, HOLD_FREE, 100, 4000);
}

static void fill_remove(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_REMOVE, HOLD_FREE + 1);
}

static void fill_map(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_READ_MAP, HOLD_LARGE);
	allocate(scene, call);
}

static void fill_compare(struct hold_scene *scene, struct hold_call *call)
{
	uint8_t content[OSD_USER_OBJECT_BYTES];

	hold_call_begin(call, OSD_READ_MAPS_AND_COMPARE, HOLD_LARGE);
	put_be64(content, HOLD_PARTITION);
	put_be64(content + 8, HOLD_OLD);
	descriptor(call, OSD_CONTINUATION_USER_OBJECT, content, sizeof(content));
	allocate(scene, call);
}

static void fill_check(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_OBJECT_STRUCTURE_CHECK, HOLD_LARGE);
	allocate(scene, call);
}

static void fill_check_partition(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_OBJECT_STRUCTURE_CHECK, 0);
	allocate(scene, call);
}

/* ---- objects, attributes, collections ---- */

static void fill_create(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_CREATE, 0);
	call->cdb.objects = (uint16_t)min_u64(scene->options->members, OSD_CREATE_OBJECTS_MAX);
}

static void fill_set(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_SET_ATTRIBUTES, HOLD_LARGE);
	set_list(call, 4096, 200);
}

static void fill_get(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_GET_ATTRIBUTES, HOLD_LARGE);
	get_list(call, OSD_ATTRIBUTE_ALL, OSD_ATTRIBUTE_ALL, scene->answer_bytes);
}

static void fill_list(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_LIST, 0);
	allocate(scene, call);
}

static void fill_list_attributes(struct hold_scene *scene, struct hold_call *call)
{
	fill_list(scene, call);
	call->cdb.list_attributes = true;
	get_list(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 0);
	call->cdb.retrieved = (struct osd_segment){ 0 };
}

static void fill_list_collection(struct hold_scene *scene, struct hold_call *call)
{
	fill_list_attributes(scene, call);
	call->cdb.action = OSD_LIST_COLLECTION;
	call->cdb.object = HOLD_COLLECTION;
}

static void criterion(struct hold_call *call)
{
	uint8_t list[20] = { OSD_QUERY_ALL, 0, 0, 0, 0, 0, 0, 12 };

	put_be32(list + 8, OSD_USER_OBJECT_INFORMATION);
	put_be32(list + 12, OSD_INFORMATION_LOGICAL_LENGTH);
	descriptor(call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
}

static void fill_query(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_QUERY, HOLD_COLLECTION);
	criterion(call);
	allocate(scene, call);
}

static void fill_query_collect(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_QUERY, HOLD_COLLECTION);
	criterion(call);
	call->cdb.address = HOLD_TRACKING;
}

static void fill_get_members(struct hold_scene *scene, struct hold_call *call)
{
	hold_call_begin(call, OSD_GET_MEMBER_ATTRIBUTES, HOLD_PART);
	get_list(call, OSD_USER_OBJECT_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH,
		 scene->answer_bytes);
}

static void fill_set_members(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_SET_MEMBER_ATTRIBUTES, HOLD_PART);
	set_list(call, 1, 8);
}

static void fill_set_tracked(struct hold_scene *scene, struct hold_call *call)
{
	fill_set_members(scene, call);
	call->cdb.object = HOLD_TRACKING;
}

static void fill_track(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_CREATE_USER_TRACKING_COLLECTION, HOLD_TRACKED);
	call->cdb.address = HOLD_COLLECTION;
}

static void fill_remove_tracked(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_REMOVE_MEMBER_OBJECTS, HOLD_TRACKED);
}

static void fill_remove_members(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_REMOVE_MEMBER_OBJECTS, HOLD_PART);
}

static void fill_remove_collection(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_REMOVE_COLLECTION, HOLD_COLLECTION);
	call->cdb.command_options = OSD_FORCE_COLLECTION_REMOVAL;
}

/* ---- history ---- */

/* With one number or bytes as its parameter; tag 0: none. */
static void function(struct hold_scene *scene, struct hold_call *call, enum osd_function code,
		     uint64_t object, uint16_t tag, uint64_t number)
{
	struct osd_item_writer writer;
	uint8_t items[256];

	hold_call_begin(call, OSD_EXECUTE, object);
	osd_items_begin(&writer, items, sizeof(items));
	if (tag == OSD_ITEM_PATTERN || tag == OSD_ITEM_REGEX)
		osd_item_add_text(&writer, tag, "(never|here)");
	else if (tag == OSD_ITEM_FROM)
		osd_item_open(&writer, tag);
	if (tag == OSD_ITEM_FROM) {
		osd_item_add_number(&writer, OSD_ITEM_SEQUENCE, number);
		osd_item_end(&writer);
	} else if (tag && tag != OSD_ITEM_PATTERN && tag != OSD_ITEM_REGEX) {
		osd_item_add_number(&writer, tag, number);
	}
	/* The others who wait use the partition. */
	if (code == OSD_FUNCTION_ROLLBACK && !object)
		osd_item_add_number(&writer, OSD_ITEM_FORCE, 1);
	add(call, items, writer.length);
	call->cdb.address = osd_execute_address(code, (uint32_t)writer.length);
	allocate(scene, call);
}

#define FUNCTION(what, code, object, tag, number)                                 \
	static void fill_##what(struct hold_scene *scene, struct hold_call *call) \
	{                                                                         \
		function(scene, call, OSD_FUNCTION_##code, object, tag, number);  \
	}
FUNCTION(snapshot, SNAPSHOT, 0, 0, 0)
FUNCTION(versions, VERSIONS, 0, 0, 0)
FUNCTION(log, LOG, HOLD_MODIFIED, 0, 0)
FUNCTION(diff, DIFF, 0, OSD_ITEM_FROM, scene->sequence)
FUNCTION(search, SEARCH, 0, OSD_ITEM_PATTERN, 0)
FUNCTION(search_expression, SEARCH, 0, OSD_ITEM_REGEX, 0)
FUNCTION(checksum, CHECKSUM, HOLD_LARGE, 0, 0)
FUNCTION(undo, UNDO, HOLD_MODIFIED, OSD_ITEM_MODIFICATIONS,
	 min_u64(scene->options->modifications, OSD_MODIFICATIONS_MAX))
FUNCTION(rollback_object, ROLLBACK, HOLD_OLD, OSD_ITEM_SEQUENCE, scene->sequence)
FUNCTION(rollback, ROLLBACK, 0, OSD_ITEM_VERSION, 1)
FUNCTION(drop, DROP, 0, OSD_ITEM_VERSION, 1)
FUNCTION(retention, RETENTION, 0, 0, 0)
FUNCTION(set_retention, SET_RETENTION, 0, OSD_ITEM_KEEP_ALL, 1000)

static void fill_clone(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_CREATE_CLONE, 0);
	call->cdb.partition = HOLD_PARTITION + 1;
	call->cdb.address = HOLD_PARTITION;
}

static void fill_refresh(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_REFRESH_SNAPSHOT_OR_CLONE, 0);
	call->cdb.partition = HOLD_PARTITION + 1;
}

static void fill_detach(struct hold_scene *scene, struct hold_call *call)
{
	fill_refresh(scene, call);
	call->cdb.action = OSD_DETACH_CLONE;
}

static void fill_create_snapshot(struct hold_scene *scene, struct hold_call *call)
{
	fill_clone(scene, call);
	call->cdb.action = OSD_CREATE_SNAPSHOT;
	call->cdb.partition = HOLD_PARTITION + 2;
}

static void fill_restore(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_RESTORE_PARTITION_FROM_SNAPSHOT, 0);
	call->cdb.command_options = OSD_FORCE_USERS;
	call->cdb.address = HOLD_PARTITION + 2;
}

static void fill_remove_partition(struct hold_scene *scene, struct hold_call *call)
{
	fill_refresh(scene, call);
	call->cdb.action = OSD_REMOVE_PARTITION;
	call->cdb.command_options = OSD_REMOVE_CONTENTS;
}

static void fill_flush(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_FLUSH_OSD, 0);
	call->cdb.partition = 0;
	call->cdb.format = OSD_ATTRIBUTES_LIST;
}

static void fill_merge(struct hold_scene *scene, struct hold_call *call)
{
	function(scene, call, OSD_FUNCTION_MERGE, 0, OSD_ITEM_ACTION, OSD_MERGE_START);
	call->cdb.partition = 0;
}

/* The other thread's object goes with it. */
static void fill_format(struct hold_scene *scene, struct hold_call *call)
{
	(void)scene;
	hold_call_begin(call, OSD_FORMAT_OSD, 0);
	call->cdb.partition = 0;
}

const struct hold_command hold_commands[] = {
	{ "READ", fill_read },
	{ "READ MAP", fill_map },
	{ "READ MAPS AND COMPARE", fill_compare },
	{ "OBJECT STRUCTURE CHECK", fill_check },
	{ "OBJECT STRUCTURE CHECK, partition", fill_check_partition },
	{ "SEARCH, pattern", fill_search },
	{ "SEARCH, expression", fill_search_expression },
	{ "CHECKSUM", fill_checksum },
	{ "SET ATTRIBUTES", fill_set },
	{ "GET ATTRIBUTES", fill_get },
	{ "LIST", fill_list },
	{ "LIST, attributes", fill_list_attributes },
	{ "LIST COLLECTION, attributes", fill_list_collection },
	{ "QUERY", fill_query },
	{ "QUERY, collected", fill_query_collect },
	{ "GET MEMBER ATTRIBUTES", fill_get_members },
	{ "SET MEMBER ATTRIBUTES", fill_set_members },
	{ "SET MEMBER ATTRIBUTES, tracking", fill_set_tracked },
	{ "CREATE USER TRACKING COLLECTION", fill_track },
	{ "LOG", fill_log },
	{ "DIFF", fill_diff },
	{ "SNAPSHOT", fill_snapshot },
	{ "VERSIONS", fill_versions },
	{ "RETENTION", fill_retention },
	{ "UNDO", fill_undo },
	{ "ROLLBACK, object", fill_rollback_object },
	{ "WRITE", fill_write },
	{ "WRITE, pieces", fill_write_between },
	{ "APPEND", fill_append },
	{ "CREATE AND WRITE", fill_create_and_write },
	{ "CLEAR", fill_clear },
	{ "COPY USER OBJECTS", fill_copy },
	{ "PUNCH", fill_punch },
	{ "REMOVE", fill_remove },
	{ "CREATE", fill_create },
	{ "REMOVE MEMBER OBJECTS", fill_remove_members },
	{ "REMOVE MEMBER OBJECTS, tracking", fill_remove_tracked },
	{ "ROLLBACK, partition", fill_rollback },
	{ "CREATE CLONE", fill_clone },
	{ "REFRESH SNAPSHOT OR CLONE", fill_refresh },
	{ "DETACH CLONE", fill_detach },
	{ "CREATE SNAPSHOT", fill_create_snapshot },
	{ "RESTORE PARTITION FROM SNAPSHOT", fill_restore },
	{ "REMOVE PARTITION", fill_remove_partition },
	{ "REMOVE COLLECTION", fill_remove_collection },
	{ "DROP", fill_drop },
	{ "SET RETENTION", fill_set_retention },
	{ "MERGE", fill_merge },
	{ "FLUSH OSD", fill_flush },
	{ "FORMAT OSD", fill_format },
};

const size_t hold_command_count = sizeof(hold_commands) / sizeof(hold_commands[0]);
