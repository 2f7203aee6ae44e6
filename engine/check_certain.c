/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Looking for damage: what may be older than it was. Of a store that had to leave out damaged parts
 * it is not known which records were there, only which keys they may have had.
 */
#include "common/bytes.h"
#include "engine/check_private.h"
#include "engine/history/history.h"
#include "engine/sets/idset_node.h"

/* ---- keys ---- */

static enum record_certainty certainty(const struct checking *checking, struct record_key key)
{
	struct record_store *store = checking->engine->store;

	return store->operations->is_uncertain ? store->operations->is_uncertain(store, &key)
					       : RECORD_CERTAIN;
}

/* Whether newer records of the key may have been lost; false where all may: that is said once. */
static bool is_uncertain(struct checking *checking, struct record_key key)
{
	if (checking->all_uncertain)
		return false;
	for (uint32_t n = 0; n < checking->lineage_count; n++) {
		key.partition = checking->lineage[n];
		if (certainty(checking, key) != RECORD_CERTAIN)
			return true;
	}
	return false;
}

/* ---- the device and its partitions ---- */

/* Nodes of a set, as far as they have ever been used. */
static bool set_is_uncertain(struct checking *checking, uint16_t index, uint64_t identifier,
			     const struct idset_header *header)
{
	uint32_t parts = header->height ? header->next_node << IDSET_PART_BITS : 0;

	for (uint32_t part = 0; part < parts; part++)
		if (part % (1 << IDSET_PART_BITS) <=
			    IDSET_OPERATIONS_MAX / IDSET_OPERATIONS_PER_PART &&
		    is_uncertain(checking, key_of_node(index, identifier, part)))
			return true;
	return false;
}

/* Its state, onode, directories, and what is said of its history. */
static bool partition_is_uncertain(struct checking *checking, const struct partition *partition)
{
	uint16_t index = partition->index;

	return is_uncertain(checking, key_of_state(index)) ||
	       is_uncertain(checking, key_of_onode(index, 0)) ||
	       is_uncertain(checking, key_of_onode(index, RECORD_ID_LASTING)) ||
	       is_uncertain(checking, key_of_history(index)) ||
	       set_is_uncertain(checking, index, RECORD_ID_USER_OBJECTS,
				&partition->sets[PARTITION_USER_OBJECTS]) ||
	       set_is_uncertain(checking, index, RECORD_ID_COLLECTIONS,
				&partition->sets[PARTITION_COLLECTIONS]);
}

static bool hidden_is_uncertain(struct checking *checking, const struct partition *root)
{
	uint32_t chunks = root->history->device.hidden_chunks;

	/* How many there are is in the root's history. */
	if (is_uncertain(checking, key_of_history(root->index)))
		return true;
	/* There may be one more than is known. */
	for (uint32_t chunk = 0; chunk <= chunks; chunk++)
		if (is_uncertain(checking, key_of_table(RECORD_ID_HIDDEN, chunk)))
			return true;
	return false;
}

/* A clone may read whatever it has not written itself under its source's index, and so on. */
void check_lineage(struct checking *checking, const struct partition *partition)
{
	struct partition_origin origin = partition->origin;

	checking->lineage[0] = partition->index;
	checking->lineage_count = 1;
	while (origin.index && checking->lineage_count <= ENGINE_CLONE_DEPTH_MAX) {
		struct partition source;

		checking->lineage[checking->lineage_count++] = origin.index;
		if (partition_state_of(checking->engine->store, origin.index, origin.bound,
				       &source))
			return;
		origin = source.origin;
	}
}

/* What may be older of a partition whose state is: of a clone also which moment it stands on. */
static const char *older_state(const struct partition *partition, uint64_t id)
{
	if (!id)
		return "the newest of the list of partitions may be lost: partitions may be "
		       "missing, or there again";
	if (partition->origin.index)
		return "the newest of its state and lists may be lost: objects may be missing, or "
		       "there again, or as of another moment of what it is a clone of";
	return "the newest of its state and lists may be lost: objects may be missing, or there "
	       "again";
}

void check_partition_certain(struct checking *checking, uint64_t id)
{
	struct findings *findings = checking->check->findings;
	struct partition *partition;

	if (partition_get(checking->engine, id, &partition))
		return;
	check_lineage(checking, partition);
	if (!id && hidden_is_uncertain(checking, partition))
		findings_add(findings, FINDING_OLDER,
			     "the newest rollbacks may be lost: what they hid may be there again");
	if (partition_is_uncertain(checking, partition))
		findings_add_of(findings, FINDING_OLDER, id, 0, "%s", older_state(partition, id));
	partition_release(checking->engine, partition);
}

void check_device_certain(struct checking *checking)
{
	checking->all_uncertain = certainty(checking, key_of_state(RECORD_ROOT_INDEX)) ==
				  RECORD_ALL_UNCERTAIN;
	if (checking->all_uncertain)
		findings_add(checking->check->findings, FINDING_OLDER,
			     "the newest records of all rows may be lost: anything may be older "
			     "than it was, missing, or there again");
	check_partition_certain(checking, 0);
}

/* ---- objects ---- */

static bool chunks_are_uncertain(struct checking *checking, const struct onode *onode,
				 uint32_t first, uint64_t bytes)
{
	uint64_t chunks = divide_up(bytes, checking->engine->page_bytes);

	for (uint32_t chunk = 0; chunk < chunks; chunk++)
		if (is_uncertain(checking,
				 key_of_onode_chunk(onode->entry.key.partition,
						    onode->entry.key.identifier, first + chunk)))
			return true;
	return false;
}

static bool onode_is_uncertain(struct checking *checking, const struct onode *onode)
{
	uint64_t extent_bytes = (uint64_t)onode->extents.count * EXTENT_BYTES;

	return is_uncertain(checking, key_of_onode(onode->entry.key.partition,
						   onode->entry.key.identifier)) ||
	       chunks_are_uncertain(checking, onode, RECORD_EXTENTS_PIECE,
				    onode->head.flags & ONODE_EXTENTS_SPILLED ? extent_bytes : 0) ||
	       chunks_are_uncertain(
		       checking, onode, RECORD_ATTRIBUTES_PIECE,
		       onode->head.flags & ONODE_ATTRIBUTES_SPILLED ? onode->attributes.length : 0);
}

static bool data_is_uncertain(struct checking *checking, const struct onode *onode)
{
	for (uint32_t n = 0; n < onode->extents.count; n++) {
		const struct extent *extent = &onode->extents.list[n];

		for (uint32_t piece = 0; piece < extent->count; piece++)
			if (is_uncertain(checking, key_of_data(onode->entry.key.partition,
							       onode->entry.key.identifier,
							       extent->first + piece)))
				return true;
	}
	return false;
}

/* Only of the present: versions are not copied. */
void check_object_certain(struct checking *checking, struct engine_address address,
			  const struct onode *onode)
{
	if (address.version || checking->all_uncertain || !onode)
		return;
	if (onode_is_uncertain(checking, onode) || data_is_uncertain(checking, onode))
		findings_add_of(checking->check->findings, FINDING_OLDER, address.partition,
				address.object,
				"newer records of it may be lost: it may be older than it was, or "
				"a mixture of older and newer parts");
}
