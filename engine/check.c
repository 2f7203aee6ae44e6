/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Looking for damage: the steps, and partitions. */
#include "engine/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check_private.h"
#include "engine/muninn/muninn.h"

/* IDs that are listed at once. */
#define LISTED 64

const char *check_trouble(int result)
{
	switch (result) {
	case -EBADMSG:
		return "is damaged";
	case -ENOENT:
		return "is missing";
	case -EIO:
		return "can't be read";
	default:
		return strerror(-result);
	}
}

static const char *list_name(enum engine_list what)
{
	switch (what) {
	case ENGINE_LIST_PARTITIONS:
		return "partitions";
	case ENGINE_LIST_COLLECTIONS:
		return "collections";
	case ENGINE_LIST_MEMBERS:
		return "members";
	default:
		return "user objects";
	}
}

/* The next few IDs of a list. A damaged one may not end. */
static int list_some(struct checking *checking, struct engine_address address,
		     enum engine_list what, uint64_t *next, uint64_t ids[LISTED], size_t *listed)
{
	struct engine_object *object;
	uint64_t first = *next;
	int result = engine_open_object(checking->txn, address, &object);

	if (result)
		return result;
	result = engine_object_list(object, what, first, ids, LISTED, listed, next);
	engine_close_object(object);
	return !result && *next && *next <= first ? -EBADMSG : result;
}

uint64_t check_list(struct checking *checking, struct engine_address address, enum engine_list what,
		    enum finding_kind kind, check_visitor *visit, void *context)
{
	struct engine_address member = address;
	uint64_t ids[LISTED], next = 1, count = 0;

	while (next) {
		uint64_t first = next;
		size_t listed = 0;
		int result = list_some(checking, address, what, &next, ids, &listed);

		if (result) {
			findings_add_of(checking->check->findings, kind, address.partition,
					address.object, "the list of %s from 0x%" PRIx64 " on %s",
					list_name(what), first, check_trouble(result));
			return CHECK_UNKNOWN;
		}
		for (size_t n = 0; visit && n < listed; n++) {
			*(what == ENGINE_LIST_PARTITIONS ? &member.partition : &member.object) =
				ids[n];
			visit(checking, member, context);
		}
		count += listed;
	}
	return count;
}

void check_tell(struct checking *checking, const char *step, uint64_t done, uint64_t total)
{
	if (checking->check->progress)
		checking->check->progress(checking->check->context, step, done, total);
}

void check_member(struct checking *checking, struct engine_address address, enum engine_type type)
{
	if (checking->check->member)
		checking->check->member(checking->check->context, address, type);
}

/* ---- partitions ---- */

/* What the walk through a partition adds up. */
struct members {
	uint64_t used, done, total;
};

static void visit_object(struct checking *checking, struct engine_address address, void *context)
{
	struct members *members = context;

	check_object(checking, address, &members->used);
	check_member(checking, address, ENGINE_USER_OBJECT);
	check_tell(checking, "objects", ++members->done, members->total);
}

static void visit_collection(struct checking *checking, struct engine_address address,
			     void *context)
{
	(void)context;
	check_collection(checking, address);
	check_member(checking, address, ENGINE_COLLECTION);
}

static void compare_counts(struct checking *checking, struct engine_address address,
			   const struct engine_stat *stat, uint64_t objects, uint64_t collections,
			   uint64_t used)
{
	struct findings *findings = checking->check->findings;

	if (collections != CHECK_UNKNOWN && collections != stat->collections)
		findings_add_of(findings, FINDING_COUNT, address.partition, 0,
				"it lists %" PRIu64 " collections, and counts %" PRIu64,
				collections, stat->collections);
	if (objects != CHECK_UNKNOWN && collections != CHECK_UNKNOWN &&
	    objects + collections != stat->members)
		findings_add_of(findings, FINDING_COUNT, address.partition, 0,
				"it lists %" PRIu64 " objects, and counts %" PRIu64,
				objects + collections, stat->members);
	if (objects != CHECK_UNKNOWN && used != stat->used_bytes)
		findings_add_of(findings, FINDING_COUNT, address.partition, 0,
				"its objects use %" PRIu64 " bytes, and it counts %" PRIu64, used,
				stat->used_bytes);
}

static int stat_of(struct checking *checking, struct engine_address address,
		   struct engine_stat *stat)
{
	struct engine_object *object;
	int result = engine_open_object(checking->txn, address, &object);

	if (result)
		return result;
	result = engine_object_stat(object, stat);
	engine_close_object(object);
	return result;
}

void check_partition(struct checking *checking, struct engine_address address, void *context)
{
	struct engine_check *check = checking->check;
	struct engine_stat stat;
	struct members members = { 0 };
	uint64_t objects, collections, findings;
	int result = stat_of(checking, address, &stat);

	(void)context;
	if (result) {
		findings_add_of(check->findings, FINDING_PARTITION, address.partition, 0,
				"its state %s", check_trouble(result));
		return;
	}
	check_member(checking, address, ENGINE_PARTITION);
	/* Before its objects, whose records are where this looks. */
	if (!address.version)
		check_partition_certain(checking, address.partition);
	findings = check->findings->count;
	members.total = stat.members - stat.collections;
	check_attributes(checking, address);
	objects = check_list(checking, address, ENGINE_LIST_USER_OBJECTS, FINDING_DIRECTORY,
			     visit_object, &members);
	collections = check_list(checking, address, ENGINE_LIST_COLLECTIONS, FINDING_DIRECTORY,
				 visit_collection, NULL);
	/* Objects that can't be opened have been named. */
	if (check->findings->count == findings)
		compare_counts(checking, address, &stat, objects, collections, members.used);
	if (address.version)
		return;
	check->partitions++;
	check_versions(checking, address.partition);
	check_clone(checking, address.partition);
}

/* ---- the device ---- */

/* Which partition has an index now. */
static void note_owner(struct checking *checking, struct engine_address address, void *context)
{
	struct partition *partition;
	int result = partition_get(checking->engine, address.partition, &partition);

	(void)context;
	if (result)
		return;
	if (checking->owners[partition->index])
		findings_add_of(checking->check->findings, FINDING_PARTITION, address.partition, 0,
				"it has the same index, %u, as partition 0x%" PRIx64,
				partition->index, checking->owners[partition->index]);
	checking->owners[partition->index] = address.partition;
	partition_release(checking->engine, partition);
}

static void take_record(void *checking, const struct record_key *key,
			const struct record_info *info)
{
	check_orphan(checking, key, info);
}

static void take_progress(void *checking, uint64_t done, uint64_t total)
{
	check_tell(checking, "records", done, total);
}

static int check_records(struct checking *checking)
{
	struct record_store *store = checking->engine->store;
	struct record_check check = {
		.findings = checking->check->findings,
		.context = checking,
		.record = take_record,
		.progress = take_progress,
	};
	int result = store->operations->check ? store->operations->check(store, &check) : 0;

	checking->check->segments = check.segments;
	checking->check->pages = check.pages;
	checking->check->records = check.records;
	return result;
}

static int check_device(struct checking *checking)
{
	const struct engine_address root = { 0 };
	struct findings *findings = checking->check->findings;
	struct engine_stat stat;
	int result = stat_of(checking, root, &stat);
	uint64_t listed;

	if (result) {
		findings_add(findings, FINDING_STORE, "the state of the root %s",
			     check_trouble(result));
		return -EBADMSG;
	}
	check_device_certain(checking);
	check_list(checking, root, ENGINE_LIST_PARTITIONS, FINDING_STORE, note_owner, NULL);
	result = check_records(checking);
	if (result)
		return result;
	check_attributes(checking, root);
	check_versions(checking, 0);
	listed = check_list(checking, root, ENGINE_LIST_PARTITIONS, FINDING_STORE, check_partition,
			    NULL);
	if (listed != CHECK_UNKNOWN && listed != stat.members)
		findings_add(findings, FINDING_COUNT,
			     "the device lists %" PRIu64 " partitions, and counts %" PRIu64, listed,
			     stat.members);
	return 0;
}

int engine_check(struct engine *engine, struct engine_check *check)
{
	struct checking checking = {
		.engine = engine,
		.check = check,
		.owners = calloc(UINT16_MAX + 1, sizeof(*checking.owners)),
		.value = malloc(ENGINE_ATTRIBUTE_BYTES_MAX),
	};
	int result = checking.owners && checking.value ? 0 : -ENOMEM;

	if (!result)
		result = engine_begin(engine, ENGINE_READ, &checking.txn);
	if (!result) {
		result = check_device(&checking);
		engine_abort(checking.txn);
	}
	free(checking.owners);
	free(checking.value);
	return result;
}

void engine_examine(struct nand *nand, struct findings *findings)
{
	/* All kinds of stores that there are are asked by name only when there is a second one. */
	if (strcmp(nand_contents(nand), muninn_store_type.name) == 0)
		muninn_store_type.examine(nand, findings);
}

bool engine_header_geometry(const uint8_t header[ENGINE_HEADER_BYTES],
			    struct nand_geometry *geometry)
{
	*geometry = nand_geometry_default(0);
	return muninn_header_geometry(header, geometry);
}
