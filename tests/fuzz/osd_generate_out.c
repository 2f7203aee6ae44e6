/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Data-Out of the commands that osd_generate.c makes: lists of attributes, descriptors, parameters.
 */
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/fuzz/osd_generate.h"
#include "wire/security.h"
#include "wire/vendor.h"
#include "wire/wire.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool osd_generate_is_of_collection(uint16_t action)
{
	return action == OSD_CREATE_COLLECTION || action == OSD_REMOVE_COLLECTION ||
	       action == OSD_LIST_COLLECTION || action == OSD_FLUSH_COLLECTION ||
	       action == OSD_CREATE_USER_TRACKING_COLLECTION ||
	       (action >= OSD_QUERY && action <= OSD_SET_MEMBER_ATTRIBUTES);
}

/* First page of the type of what a CDB addresses, more or less. */
static uint32_t first_page(const struct osd_cdb *cdb)
{
	if (cdb->action == OSD_FORMAT_OSD || cdb->action == OSD_FLUSH_OSD || cdb->partition == 0)
		return OSD_PAGES_ROOT;
	if (cdb->action == OSD_CREATE_PARTITION || cdb->action == OSD_REMOVE_PARTITION ||
	    cdb->action == OSD_FLUSH_PARTITION || cdb->action == OSD_LIST ||
	    (cdb->action >= OSD_CREATE_CLONE && cdb->action <= OSD_RESTORE_PARTITION_FROM_SNAPSHOT))
		return OSD_PAGES_PARTITION;
	if (osd_generate_is_of_collection(cdb->action))
		return OSD_PAGES_COLLECTION;
	if (cdb->action != OSD_GET_ATTRIBUTES && cdb->action != OSD_SET_ATTRIBUTES)
		return OSD_PAGES_USER_OBJECT;
	if (cdb->object == 0)
		return OSD_PAGES_PARTITION;
	return cdb->object == OSD_SCENE_COLLECTION ? OSD_PAGES_COLLECTION : OSD_PAGES_USER_OBJECT;
}

static uint32_t any_page(struct fuzz_random *random, const struct osd_cdb *cdb)
{
	static const uint32_t odd[] = { 0xC0000000, 0xF0000000, 0xF0000001, 0xF0000003,
					0xFFFFFFFE, 0xFFFFFFFF, 0x10000,    0x20000000 };

	switch (fuzz_below(random, 12)) {
	case 0:
		return odd[fuzz_below(random, COUNT(odd))];
	case 1:
		return fuzz_below(random, 5) * 0x30000000U + fuzz_below(random, 8);
	case 2:
	case 3:
		return OSD_PAGE_CURRENT_COMMAND;
	case 4:
	case 5:
	case 6:
		return first_page(cdb) + OSD_PAGES_APPLICATION + fuzz_below(random, 2);
	default:
		return first_page(cdb) + fuzz_below(random, 7);
	}
}

static uint32_t any_attribute(struct fuzz_random *random)
{
	static const uint32_t some[] = {
		0x9,     0xA,     0xB,     0x10,    0x80,    0x81,       0x82,       0x84,
		0xC0,    0xC1,    0xD1,    0xD2,    0x100,   0x110,      0x111,      0x120,
		0x121,   0x122,   0x123,   0x10001, 0x10002, 0x10081,    0x20002,    0x7000000,
		0x40000, 0x40001, 0x4FFFF, 0x50000, 0x80000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF,
	};

	return fuzz_below(random, 2) ? fuzz_below(random, 8)
				     : some[fuzz_below(random, COUNT(some))];
}

/* ---- Data-Out ---- */

/* A place in Data-Out that an offset can name; 0: there is none left. */
static size_t next_place(const struct osd_input_command *command, const struct osd_cdb *cdb)
{
	uint64_t place = osd_offset_encode(cdb->version, command->out_length, NULL);

	return place + 512 <= OSD_INPUT_OUT_KEPT_MAX ? place : 0;
}

void osd_generate_ends_at(struct osd_input_command *command, size_t end)
{
	command->out_length = (uint16_t)end;
	command->out_kept = (uint16_t)end;
}

/* What an attribute is compared with, and its new value. */
static void add_operands(struct fuzz_random *random, struct osd_list_writer *writer)
{
	uint32_t number = fuzz_below(random, 3);
	uint8_t value[8];

	for (int i = 0; i < 2; i++) {
		memset(value, fuzz_below(random, 2) ? 'd' : 0, sizeof(value));
		osd_list_add_value(writer, 0x10000, number, value,
				   fuzz_below(random, 3) ? sizeof(value) : 0);
	}
}

/*
 * One of the attributes of the standard that can be set, of the type of what the CDB addresses, to
 * something that may do.
 */
static void add_settable(struct fuzz_random *random, struct osd_list_writer *writer,
			 const struct osd_cdb *cdb)
{
	static const struct {
		uint32_t page, number, length; /* the page from the first one of its type on */
	} settable[] = {
		{ OSD_PAGE_INFORMATION, OSD_INFORMATION_USERNAME, 8 },
		{ OSD_PAGE_INFORMATION, OSD_INFORMATION_LOGICAL_LENGTH, 8 },
		{ OSD_PAGE_INFORMATION, OSD_ROOT_DEFAULT_ISOLATION, 1 },
		{ OSD_PAGE_INFORMATION, OSD_INFORMATION_SNAPSHOT_METHOD, 4 },
		{ OSD_PAGE_INFORMATION, OSD_INFORMATION_CLONE_TIME, 4 },
		{ OSD_PAGE_QUOTAS, OSD_QUOTA_MAXIMUM_LENGTH, 8 },
		{ OSD_PAGE_QUOTAS, OSD_QUOTA_CAPACITY, 8 },
		{ OSD_PAGE_QUOTAS, OSD_QUOTA_OBJECT_COUNT, 8 },
		{ OSD_PAGE_QUOTAS, OSD_QUOTA_COLLECTIONS_PER_OBJECT, 4 },
		{ OSD_PAGE_TIMESTAMPS, OSD_TIME_DATA_MODIFIED, 6 },
		{ OSD_PAGE_TIMESTAMPS, OSD_TIME_BYPASS, 1 },
		{ OSD_PAGE_POLICY_SECURITY, OSD_SECURITY_DEFAULT_METHOD, 1 },
		{ OSD_PAGE_POLICY_SECURITY, OSD_SECURITY_NEWEST_NONCE, 6 },
		{ OSD_PAGE_POLICY_SECURITY, OSD_SECURITY_FROZEN_KEYS, 2 },
		{ OSD_PAGE_POLICY_SECURITY, OSD_SECURITY_PARTITION_DEFAULT_METHOD, 1 },
		{ OSD_PAGE_POLICY_SECURITY, OSD_SECURITY_POLICY_ACCESS_TAG, 4 },
		{ OSD_PAGE_POLICY_SECURITY, OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG, 4 },
		{ OSD_MUNINN_PARTITION - OSD_PAGES_PARTITION, OSD_MUNINN_LAYOUT, 1 },
		{ OSD_PAGES_VENDOR, 1, 20 },
	};
	static const uint8_t lasts[] = { 0, 1, 2, 3, 0x20, 0x7F, 0xFD, 0xFF };
	uint32_t which = fuzz_below(random, COUNT(settable));
	uint8_t value[20] = { 0 };

	value[settable[which].length - 1] = lasts[fuzz_below(random, COUNT(lasts))];
	osd_list_add_value(writer, first_page(cdb) + settable[which].page, settable[which].number,
			   value, settable[which].length);
}

static void add_sets(struct fuzz_random *random, struct osd_input_command *command,
		     struct osd_cdb *cdb)
{
	size_t place = next_place(command, cdb);
	struct osd_list_writer writer;
	uint8_t value[64];

	if (place == 0 && command->out_length != 0)
		return;
	osd_list_begin(&writer, cdb->version, OSD_LIST_TO_SET, command->out + place, 512);
	if (cdb->action == OSD_CONDITIONAL_SET_ATTRIBUTES ||
	    cdb->action == OSD_GENERAL_COMPARE_AND_SWAP)
		add_operands(random, &writer);
	if (fuzz_below(random, 4) == 0)
		add_settable(random, &writer, cdb);
	for (uint32_t i = fuzz_below(random, 4); i > 0; i--) {
		static const uint32_t lengths[] = { 0, 1, 2, 4, 6, 8, 8, 8, 20, 64 };

		put_be64(value, osd_input_number(random));
		memset(value + 8, (int)fuzz_below(random, 256), sizeof(value) - 8);
		osd_list_add_value(&writer, any_page(random, cdb), any_attribute(random), value,
				   lengths[fuzz_below(random, COUNT(lengths))]);
	}
	cdb->set_data = (struct osd_segment){ place, (uint32_t)osd_list_end(&writer) };
	osd_generate_ends_at(command, place + cdb->set_data.length);
}

static void add_gets(struct fuzz_random *random, struct osd_input_command *command,
		     struct osd_cdb *cdb)
{
	size_t place = next_place(command, cdb);
	struct osd_list_writer writer;

	if (place == 0 && command->out_length != 0)
		return;
	osd_list_begin(&writer, cdb->version, OSD_LIST_TO_GET, command->out + place, 512);
	for (uint32_t i = fuzz_below(random, 6); i > 0; i--)
		osd_list_add_request(&writer, any_page(random, cdb), any_attribute(random));
	cdb->get_list = (struct osd_segment){ place, (uint32_t)osd_list_end(&writer) };
	cdb->retrieved =
		(struct osd_segment){ fuzz_below(random, 2) * 2048, fuzz_below(random, 2048) };
	osd_generate_ends_at(command, place + cdb->get_list.length);
}

static void add_page_format(struct fuzz_random *random, struct osd_input_command *command,
			    struct osd_cdb *cdb)
{
	size_t place = next_place(command, cdb);

	cdb->format = OSD_ATTRIBUTES_PAGE;
	cdb->get_page = any_page(random, cdb);
	cdb->retrieved =
		(struct osd_segment){ fuzz_below(random, 2) * 2048, fuzz_below(random, 512) };
	cdb->set_page = fuzz_below(random, 2) ? any_page(random, cdb) : 0;
	cdb->set_number = any_attribute(random);
	if (place == 0 && command->out_length != 0)
		return;
	cdb->set_data = (struct osd_segment){ place, fuzz_below(random, 40) };
	put_be64(command->out + place, osd_input_number(random));
	osd_generate_ends_at(command, place + cdb->set_data.length);
}

void osd_generate_attributes(struct fuzz_random *random, struct osd_input_command *command,
			     struct osd_cdb *cdb)
{
	switch (fuzz_below(random, 6)) {
	case 0:
		add_page_format(random, command, cdb);
		break;
	case 1:
		if (cdb->version == OSD_1)
			break;
		cdb->format = OSD_ATTRIBUTES_CDB;
		cdb->set_page = any_page(random, cdb);
		cdb->set_number = any_attribute(random);
		cdb->set_length = (uint16_t)fuzz_below(random, OSD_CDB_VALUE_BYTES_MAX + 1);
		put_be64(cdb->set_value, osd_input_number(random));
		break;
	default:
		if (fuzz_below(random, 2))
			add_sets(random, command, cdb);
		if (fuzz_below(random, 2))
			add_gets(random, command, cdb);
		break;
	}
}

/* ---- continuation segments ---- */

static uint32_t add_query(struct fuzz_random *random, uint8_t *content)
{
	uint32_t length = 4;

	put_be32(content,
		 fuzz_below(random, 8) ? fuzz_below(random, 2) << 24 : fuzz_below(random, 9));
	do {
		uint8_t *criterion = content + length;
		uint64_t least = osd_input_number(random);

		/* Length of the rest, page, number, least value, greatest value. */
		put_be16(criterion, 0);
		put_be16(criterion + 2, 28);
		put_be32(criterion + 4, fuzz_below(random, 2) ? 1 : 0x10000);
		put_be32(criterion + 8, fuzz_below(random, 2) ? 0x82 : fuzz_below(random, 4));
		put_be16(criterion + 12, 8);
		put_be64(criterion + 14, fuzz_below(random, 2) ? 0 : least);
		put_be16(criterion + 22, 8);
		put_be64(criterion + 24, fuzz_below(random, 2) ? UINT64_MAX : least);
		length += 32;
	} while (length < 120 && fuzz_below(random, 2));
	return (uint32_t)align_up(length, 8);
}

static uint32_t add_pieces(struct fuzz_random *random, uint8_t *content)
{
	uint32_t length = 0;

	for (uint32_t i = fuzz_below(random, 4); i > 0; i--, length += 16) {
		put_be64(content + length, fuzz_below(random, 4) ? fuzz_below(random, 3000)
								 : osd_input_number(random));
		put_be64(content + length + 8, fuzz_below(random, 200));
	}
	return length;
}

/* One descriptor at `at`; where the next one begins. */
static size_t add_descriptor(struct fuzz_random *random, struct osd_input_command *command,
			     size_t at, uint16_t type)
{
	uint8_t *content = command->out + at + 8;
	uint32_t length;

	memset(command->out + at, 0, 8 + 128);
	switch (type) {
	case OSD_CONTINUATION_SCATTER_GATHER:
		length = add_pieces(random, content);
		break;
	case OSD_CONTINUATION_QUERY_LIST:
		length = add_query(random, content);
		break;
	case OSD_CONTINUATION_EXTENSION_CAPABILITIES:
		length = OSD_EXTENSION_BYTES * fuzz_below(random, 2);
		break;
	default:
		/* The object that is named; of a copy also what of it. */
		put_be64(content, osd_generate_partition(random));
		put_be64(content + 8, fuzz_below(random, 4)
					      ? OSD_SCENE_OBJECT + fuzz_below(random, 4)
					      : osd_generate_object(random));
		put_be16(content + 16, (uint16_t)(fuzz_below(random, 4) << 8));
		length = type == OSD_CONTINUATION_COPY_SOURCE ? OSD_COPY_SOURCE_BYTES
							      : OSD_USER_OBJECT_BYTES;
		break;
	}
	put_be16(command->out + at, type);
	command->out[at + 3] = (uint8_t)(align_up(length, 8) - length);
	put_be32(command->out + at + 4, length);
	return at + 8 + align_up(length, 8);
}

/* IDs and type of what an extension capability is for; osd_sign.c completes it. */
static void name_object(uint8_t *bytes, uint64_t partition, uint64_t object, uint8_t type)
{
	memset(bytes, 0, OSD_EXTENSION_BYTES);
	bytes[48] = type;
	put_be64(bytes + 72, partition);
	put_be64(bytes + 80, object);
}

/* Extension capabilities for what the command names, in its descriptors and in the CDB. */
static size_t add_extensions(struct fuzz_random *random, struct osd_input_command *command,
			     const struct osd_cdb *cdb, size_t end)
{
	uint8_t *list = command->out + end + 8;
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	uint32_t length = 0;

	if (osd_continuation_read(&continuation, cdb->action, command->out, end) != 0)
		return end;
	while (osd_continuation_next(&continuation, &descriptor) == 1 && length < 400)
		if (descriptor.type == OSD_CONTINUATION_COPY_SOURCE ||
		    descriptor.type == OSD_CONTINUATION_USER_OBJECT) {
			name_object(list + length, get_be64(descriptor.content),
				    get_be64(descriptor.content + 8), OSD_TYPE_USER_OBJECT);
			length += OSD_EXTENSION_BYTES;
		}
	if (length == 0) {
		name_object(list, cdb->partition, cdb->address, OSD_TYPE_COLLECTION);
		length = OSD_EXTENSION_BYTES;
	}
	if (fuzz_below(random, 16) == 0)
		length += fuzz_below(random, 8);
	memset(command->out + end, 0, 8);
	put_be16(command->out + end, OSD_CONTINUATION_EXTENSION_CAPABILITIES);
	put_be32(command->out + end + 4, length);
	command->out[end + 3] = (uint8_t)(align_up(length, 8) - length);
	return end + 8 + align_up(length, 8);
}

/* The descriptor that a command takes; 0: none. */
static uint16_t descriptor_of(uint16_t action)
{
	switch (action) {
	case OSD_READ:
	case OSD_WRITE:
	case OSD_CREATE_AND_WRITE:
		return OSD_CONTINUATION_SCATTER_GATHER;
	case OSD_QUERY:
		return OSD_CONTINUATION_QUERY_LIST;
	case OSD_COPY_USER_OBJECTS:
		return OSD_CONTINUATION_COPY_SOURCE;
	case OSD_READ_MAPS_AND_COMPARE:
		return OSD_CONTINUATION_USER_OBJECT;
	case OSD_CREATE_USER_TRACKING_COLLECTION:
	case OSD_REMOVE_MEMBER_OBJECTS:
	case OSD_GET_MEMBER_ATTRIBUTES:
	case OSD_SET_MEMBER_ATTRIBUTES:
		return OSD_CONTINUATION_EXTENSION_CAPABILITIES;
	default:
		return 0;
	}
}

void osd_generate_continuation(struct fuzz_random *random, struct osd_input_command *command,
			       struct osd_cdb *cdb)
{
	uint16_t type = descriptor_of(cdb->action);
	bool needed = type == OSD_CONTINUATION_QUERY_LIST || type == OSD_CONTINUATION_COPY_SOURCE ||
		      type == OSD_CONTINUATION_USER_OBJECT;
	size_t end = OSD_CONTINUATION_HEAD_BYTES;

	if (cdb->version != OSD_2 || type == 0 || fuzz_below(random, 16) >= (needed ? 15U : 5U))
		return;
	memset(command->out, 0, OSD_CONTINUATION_HEAD_BYTES);
	command->out[0] = OSD_CONTINUATION_FORMAT;
	put_be16(command->out + 2, cdb->action);
	do
		end = add_descriptor(random, command, end, type);
	while (type == OSD_CONTINUATION_COPY_SOURCE && end < 200 && fuzz_below(random, 3) == 0);
	if (fuzz_below(random, 2))
		end = add_extensions(random, command, cdb, end);
	cdb->continuation_length = (uint32_t)end;
	if (type == OSD_CONTINUATION_SCATTER_GATHER) {
		cdb->length = 0;
		for (size_t at = OSD_CONTINUATION_BYTES_MIN; at + 16 <= end; at += 16)
			cdb->length += get_be64(command->out + at + 8);
	}
	osd_generate_ends_at(command, end);
}

/* ---- parameters of EXECUTE ---- */

static void add_moment(struct fuzz_random *random, struct osd_item_writer *writer)
{
	switch (fuzz_below(random, 5)) {
	case 0:
		osd_item_add_number(writer, OSD_ITEM_VERSION, 1 + fuzz_below(random, 3));
		break;
	case 1:
		osd_item_add_number(writer, OSD_ITEM_SEQUENCE, fuzz_below(random, 20));
		break;
	case 2:
		osd_item_add_number(writer, OSD_ITEM_TIME,
				    UINT64_C(1700000000000) + fuzz_below(random, 50));
		break;
	case 3:
		osd_item_add_text(writer, OSD_ITEM_NAME, fuzz_below(random, 2) ? "scene" : "a");
		break;
	default:
		break;
	}
}

static void add_item(struct fuzz_random *random, struct osd_item_writer *writer)
{
	static const uint16_t numbers[] = {
		OSD_ITEM_FEATURES,     OSD_ITEM_LENGTH,        OSD_ITEM_OFFSET,
		OSD_ITEM_OBJECT,       OSD_ITEM_PARTITION,     OSD_ITEM_COUNT,
		OSD_ITEM_KIND,         OSD_ITEM_MODIFICATIONS, OSD_ITEM_LOCK_UNTIL,
		OSD_ITEM_KEEP_ALL,     OSD_ITEM_KEEP_INTERVAL, OSD_ITEM_KEEP_INTERVAL_FOR,
		OSD_ITEM_CONTINUATION, OSD_ITEM_ACTION,
	};
	static const char *const patterns[] = {
		"d", "changed", "[a-z]+d", "(d*)*x", "^d.{3}$", ""
	};

	switch (fuzz_below(random, 6)) {
	case 0:
		osd_item_add_text(writer, OSD_ITEM_PATTERN, patterns[fuzz_below(random, 6)]);
		break;
	case 1:
		osd_item_add_text(writer, OSD_ITEM_REGEX, patterns[fuzz_below(random, 6)]);
		break;
	case 2:
		osd_item_open(writer, fuzz_below(random, 2) ? OSD_ITEM_FROM : OSD_ITEM_TO);
		add_moment(random, writer);
		osd_item_end(writer);
		break;
	case 3:
		osd_item_add_number(writer, numbers[fuzz_below(random, COUNT(numbers))],
				    osd_input_number(random));
		break;
	default:
		add_moment(random, writer);
		break;
	}
}

/* A regular expression, or nearly one: something of everything that there is in them. */
static const char *any_expression(struct fuzz_random *random, char text[64])
{
	static const char *const parts[] = {
		"d",   "ch", ".",    "(",    ")",     "|",    "^",           "$",       "*",
		"+",   "?",  "{2}",  "{,3}", "{1,3}", "{0,}", "{2",          "\\w",     "\\S",
		"\\.", "[",  "[^d]", "[]d]", "[a-c]", "[^",   "[[:alpha:]]", "[[.d.]]", "[[=d=]-e]",
	};
	size_t length = 0;

	for (uint32_t count = 1 + fuzz_below(random, 7); count > 0 && length < 64; count--)
		length += (size_t)snprintf(text + length, 64 - length, "%s",
					   parts[fuzz_below(random, COUNT(parts))]);
	return text;
}

/* What to search for, and sometimes where to go on. */
static void add_search(struct fuzz_random *random, struct osd_item_writer *writer)
{
	static const char *const patterns[] = { "d", "dd", "changed", "[a-c]h", "x*d{3}", "^c|e$" };
	char text[64];
	const char *pattern = fuzz_below(random, 2) ? any_expression(random, text)
						    : patterns[fuzz_below(random, COUNT(patterns))];
	osd_item_add_text(writer, fuzz_below(random, 2) ? OSD_ITEM_PATTERN : OSD_ITEM_REGEX,
			  pattern);
}

/*
 * Where an answer before might have ended: objects and offsets, and what the function has beside.
 */
static void add_continuation(struct fuzz_random *random, enum osd_function function,
			     struct osd_item_writer *writer)
{
	uint8_t place[40] = { 0 };
	uint32_t length;

	switch (function) {
	case OSD_FUNCTION_CHECKSUM:
		length = 40;
		break;
	case OSD_FUNCTION_DIFF:
		length = 28;
		break;
	case OSD_FUNCTION_LOG:
		length = 16;
		break;
	default:
		length = 24;
		break;
	}
	put_be64(place, function == OSD_FUNCTION_CHECKSUM ? 64ULL * fuzz_below(random, 24)
							  : osd_generate_object(random));
	put_be64(place + 8, osd_input_number(random));
	put_be64(place + 16, fuzz_below(random, 4));
	place[27] = (uint8_t)fuzz_below(random, 8);
	osd_item_add(writer, OSD_ITEM_CONTINUATION, place, length);
}

void osd_generate_parameters(struct fuzz_random *random, struct osd_input_command *command,
			     struct osd_cdb *cdb)
{
	static const uint16_t functions[] = {
		OSD_FUNCTION_FEATURES,   OSD_FUNCTION_SUBSCRIBE, OSD_FUNCTION_SUBSCRIBE,
		OSD_FUNCTION_STATISTICS, OSD_FUNCTION_SNAPSHOT,  OSD_FUNCTION_SNAPSHOT,
		OSD_FUNCTION_VERSIONS,   OSD_FUNCTION_DROP,      OSD_FUNCTION_VIEW,
		OSD_FUNCTION_ROLLBACK,   OSD_FUNCTION_UNDO,      OSD_FUNCTION_LOG,
		OSD_FUNCTION_DIFF,       OSD_FUNCTION_RETENTION, OSD_FUNCTION_SET_RETENTION,
		OSD_FUNCTION_SEARCH,     OSD_FUNCTION_SEARCH,    OSD_FUNCTION_CHECKSUM,
		OSD_FUNCTION_MERGE,      OSD_FUNCTION_SPACE,
	};
	enum osd_function function = functions[fuzz_below(random, COUNT(functions))];
	struct osd_item_writer writer;

	osd_items_begin(&writer, command->out, 512);
	if (function == OSD_FUNCTION_SUBSCRIBE)
		osd_item_add_number(&writer, OSD_ITEM_FEATURES, OSD_FEATURES_ALL);
	else if (function == OSD_FUNCTION_SEARCH)
		add_search(random, &writer);
	else if (function == OSD_FUNCTION_SET_RETENTION && fuzz_below(random, 2))
		osd_item_add_number(&writer, OSD_ITEM_LOCK_UNTIL,
				    UINT64_C(1700000000000) + fuzz_below(random, 100000));
	else if (function == OSD_FUNCTION_MERGE)
		osd_item_add_number(&writer, OSD_ITEM_ACTION, fuzz_below(random, 3));
	for (uint32_t i = fuzz_below(random, 6) / 2; i > 0; i--)
		add_item(random, &writer);
	if (fuzz_below(random, 5) == 0)
		add_continuation(random, function, &writer);
	cdb->address = osd_execute_address(function, (uint32_t)writer.length);
	cdb->length = function == OSD_FUNCTION_SPACE ? OSD_SPACE_BYTES_MIN : 2048;
	osd_generate_ends_at(command, writer.length);
}
