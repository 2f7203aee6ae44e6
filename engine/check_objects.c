/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Looking for damage: user objects, collections, attributes, and what no directory has. */
#include <errno.h>
#include <inttypes.h>

#include "common/bytes.h"
#include "engine/check_private.h"

/* ---- attributes ---- */

void check_attributes(struct checking *checking, struct engine_address address)
{
	uint32_t page = 0, number = 0, length;
	struct engine_object *object;
	int result = engine_open_object(checking->txn, address, &object);

	if (result)
		return; /* has been said */
	while ((result = engine_object_attribute_next(object, &page, &number, checking->value,
						      ENGINE_ATTRIBUTE_BYTES_MAX, &length)) == 0)
		if (++number == 0 && ++page == 0)
			break;
	engine_close_object(object);
	if (result && result != -ENOENT)
		findings_add_of(checking->check->findings, FINDING_ATTRIBUTE, address.partition,
				address.object, "its attributes from page 0x%x, number %u on: %s",
				page, number, check_trouble(result));
}

/* ---- user objects ---- */

/* Reads all data, and names what can't be read. */
static void check_data(struct checking *checking, struct engine_address address,
		       struct engine_object *object, uint64_t length)
{
	struct engine_check *check = checking->check;
	struct engine_extent extent = { 0 };

	for (uint64_t offset = 0; offset < length; offset += extent.length) {
		uint32_t budget = UINT32_MAX;
		int result = engine_object_map(object, offset, true, &budget, &extent);

		if (result || extent.length == 0) {
			findings_add_of(check->findings, FINDING_OBJECT, address.partition,
					address.object, "its data from byte %" PRIu64 " on %s",
					offset, check_trouble(result ? result : -EBADMSG));
			return;
		}
		if (extent.kind == ENGINE_EXTENT_DATA)
			check->data_bytes += extent.length;
		else if (extent.kind == ENGINE_EXTENT_DAMAGED)
			findings_add_of(check->findings, FINDING_DATA, address.partition,
					address.object,
					"bytes %" PRIu64 " to %" PRIu64 " are damaged", offset,
					offset + extent.length - 1);
	}
}

static int open_checked(struct checking *checking, struct engine_address address,
			enum engine_type type, struct engine_object **object,
			struct engine_stat *stat)
{
	int result = engine_open_object(checking->txn, address, object);

	if (!result) {
		result = engine_object_stat(*object, stat);
		if (!result && stat->type != type)
			result = -EBADMSG;
		if (result)
			engine_close_object(*object);
	}
	if (result)
		findings_add_of(checking->check->findings, FINDING_OBJECT, address.partition,
				address.object, "what is stored of it %s", check_trouble(result));
	return result;
}

void check_object(struct checking *checking, struct engine_address address, uint64_t *used)
{
	struct engine_object *object;
	struct engine_stat stat;

	if (open_checked(checking, address, ENGINE_USER_OBJECT, &object, &stat))
		return;
	*used += stat.used_bytes;
	check_object_certain(checking, address, object->target.onode);
	check_data(checking, address, object, stat.length);
	engine_close_object(object);
	check_attributes(checking, address);
	checking->check->objects += !address.version;
}

/* ---- collections ---- */

void check_collection(struct checking *checking, struct engine_address address)
{
	struct engine_object *object;
	struct engine_stat stat;
	uint64_t members;

	if (open_checked(checking, address, ENGINE_COLLECTION, &object, &stat))
		return;
	check_object_certain(checking, address, object->target.onode);
	engine_close_object(object);
	members =
		check_list(checking, address, ENGINE_LIST_MEMBERS, FINDING_COLLECTION, NULL, NULL);
	if (members != CHECK_UNKNOWN && members != stat.members)
		findings_add_of(checking->check->findings, FINDING_COLLECTION, address.partition,
				address.object, "it lists %" PRIu64 " members, and counts %" PRIu64,
				members, stat.members);
	check_attributes(checking, address);
	checking->check->collections += !address.version;
}

/* ---- what no directory has ---- */

/* Whether it is what is found under its key now. */
static bool is_present(struct checking *checking, const struct record_key *key,
		       const struct record_info *info)
{
	struct record_info newest;
	int result = record_get(checking->engine->store, *key, RECORD_NEWEST, NULL, 0, &newest);

	return result == 0 && newest.sequence == info->sequence;
}

/* The type of an object of a partition that is there now; -ENOENT: it is not one of its objects. */
static int type_of(struct checking *checking, const struct partition *partition,
		   uint64_t identifier)
{
	struct onode *onode;
	int result = onode_load(checking->engine->store, partition->index, identifier,
				RECORD_NEWEST, partition_objects_since(partition), 0, &onode);

	if (result)
		return result;
	result = (int)onode->head.type;
	onode_free(onode);
	return result;
}

static void look_in_directory(struct checking *checking, struct partition *partition,
			      uint64_t identifier)
{
	struct engine_address address = { .partition = partition->id, .object = identifier };
	int type = type_of(checking, partition, identifier), found;
	uint64_t used = 0;
	struct idset set;

	if (type != ENGINE_USER_OBJECT && type != ENGINE_COLLECTION)
		return;
	set = partition_set(checking->engine, partition,
			    type == ENGINE_COLLECTION ? PARTITION_COLLECTIONS
						      : PARTITION_USER_OBJECTS,
			    RECORD_NEWEST);
	found = idset_contains(&set, identifier);
	if (found == 1)
		return;
	check_lineage(checking, partition);
	check_member(checking, address, (enum engine_type)type);
	if (type == ENGINE_COLLECTION)
		check_collection(checking, address);
	else
		check_object(checking, address, &used);
	/* A directory that can't be read is a finding of its own. */
	if (found == 0)
		findings_add_of(checking->check->findings, FINDING_ORPHAN, address.partition,
				address.object, "it is stored, but the directory does not have it");
}

void check_orphan(struct checking *checking, const struct record_key *key,
		  const struct record_info *info)
{
	uint64_t owner = checking->owners[key->partition];
	struct partition *partition;

	if (key->piece != RECORD_ONODE_PIECE || key->identifier < ENGINE_FIRST_ID ||
	    info->flags & RECORD_TOMBSTONE || !owner || !is_present(checking, key, info))
		return;
	if (partition_get(checking->engine, owner, &partition))
		return;
	look_in_directory(checking, partition, key->identifier);
	partition_release(checking->engine, partition);
}
