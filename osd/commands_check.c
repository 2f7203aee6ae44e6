/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * OBJECT STRUCTURE CHECK: reads everything that an object consists of, and reports what is damaged.
 *
 * Of a user object it reads onode, attributes and data; of a collection onode, attributes and
 * members; of a partition its own onode, its directories and every object in them; of the root its
 * own onode, the table of partitions and the state of each partition. One command reads a bounded
 * amount and says where to go on.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* IDs that one call of the engine lists. */
#define BATCH 64

struct check {
	struct osd_request *request;
	struct osd_check_head head;
	size_t written; /* bytes in Data-In, of entries: behind the head */
	uint32_t budget;
	uint32_t found;      /* damage of any kind */
	bool full;           /* no space for a further entry */
	uint64_t used_bytes; /* of the objects checked */
};

int osd_check_structure_check(struct osd_request *request)
{
	/* Without space for the head nobody would learn what the check found. */
	return request->in_data_length >= OSD_CHECK_HEAD_BYTES
		       ? 0
		       : osd_fail_field(request, osd_length_field(request));
}

/* Has the command looked at as many objects as it may? */
static bool has_looked_enough(const struct check *check)
{
	return check->head.objects >= check->request->device->portions.entries ||
	       osd_has_worked_enough(check->request);
}

static void report(struct check *check, struct engine_address address, uint16_t type)
{
	struct osd_request *request = check->request;
	struct osd_check_entry entry = { osd_wire_partition(address),
					 osd_wire_object(request, address.object), type };

	if (type != OSD_MAP_ALL) {
		check->found++;
		osd_damage_note(&request->device->damage, entry.partition, entry.object,
				type == OSD_MAP_DAMAGED_ATTRIBUTES ? OSD_DAMAGE_ATTRIBUTES
								   : OSD_DAMAGE_CONTENT,
				request->time_ms, true);
	}
	if (request->in_data_length - check->written < OSD_CHECK_ENTRY_BYTES) {
		check->full = true;
		return;
	}
	osd_check_entry_encode(&entry, request->command->data_in + check->written);
	check->written += OSD_CHECK_ENTRY_BYTES;
}

/* The check has read `address` to its end and found nothing since `found`: it is whole. */
static void settle(struct check *check, struct engine_address address, uint32_t found)
{
	if (check->found == found)
		osd_damage_clear(&check->request->device->damage, osd_wire_partition(address),
				 osd_wire_object(check->request, address.object));
}

/* A result that means damage goes into the report and is no error. */
static int damage(struct check *check, struct engine_address address, uint16_t type, int result)
{
	if (result == -EBADMSG) {
		report(check, address, type);
		return 0;
	}
	return result;
}

/* ---- user objects ---- */

/*
 * Data of a user object from `offset` on. Returns 1 if the budget ended before the data, and sets
 * *offset to that place.
 */
static int check_data(struct check *check, const struct osd_subject *object, uint64_t *offset)
{
	struct engine_extent extent;
	bool damaged = false;
	int result;

	do {
		uint32_t before = check->budget;

		result = engine_object_map(object->object, *offset, true, &check->budget, &extent);
		check->head.pages += before - check->budget;
		if (result == 0)
			*offset = extent.offset + extent.length;
		if (result == 0 && extent.kind == ENGINE_EXTENT_DAMAGED && !damaged) {
			damaged = true;
			report(check, object->address, OSD_MAP_DAMAGED_DATA);
		}
	} while (result == 0);
	if (result == -EAGAIN)
		return 1;
	return result == -ENOENT ? 0 : result;
}

/* The directory of a collection holds as many IDs as the collection says. */
static int check_collection(struct check *check, const struct osd_subject *object)
{
	uint64_t count = 0;
	int result = engine_object_list_count(object->object, ENGINE_LIST_MEMBERS, 1, &count);

	if (result == 0 && count != object->stat.members)
		result = -EBADMSG;
	return damage(check, object->address, OSD_MAP_DAMAGED_DIRECTORY, result);
}

/*
 * A user object or collection; reading its facts reads its attributes, too. Returns 1 as check_data
 * does, and then keeps nothing of the object.
 */
static int check_member(struct check *check, struct engine_address address)
{
	struct check before = *check;
	struct osd_subject object;
	uint64_t offset = 0;
	int result = osd_open(check->request, address, &object);

	if (result == -ENOENT && check->request->subject.stat.is_between)
		return 0;
	if (result == -ENOENT)
		result = -EBADMSG; /* the ID came out of the directory */
	check->head.objects++;
	if (result != 0)
		return damage(check, address, OSD_MAP_DAMAGED_ATTRIBUTES, result);
	check->used_bytes += object.stat.used_bytes;
	if (object.stat.type == ENGINE_USER_OBJECT)
		result = check_data(check, &object, &offset);
	else
		result = check_collection(check, &object);
	osd_close(&object);
	if (result == 0)
		settle(check, address, before.found);
	if (result == 1) {
		*check = before;
		check->budget = 0;
	}
	return result;
}

/* ---- partitions ---- */

/* A directory of a partition, read from ID to ID. */
struct directory {
	enum engine_list what;
	uint64_t ids[BATCH];
	size_t count, position;
	uint64_t next; /* first ID behind those, 0 = none */
};

static int fill(struct check *check, struct directory *directory)
{
	int result = 0;

	while (directory->position == directory->count && directory->next != 0 && result == 0) {
		directory->position = 0;
		result = engine_object_list(check->request->subject.object, directory->what,
					    directory->next, directory->ids, BATCH,
					    &directory->count, &directory->next);
	}
	return result;
}

/* The lowest ID in either directory; 0 = none. */
static int next_member(struct check *check, struct directory directories[2], uint64_t *id)
{
	struct directory *lowest = NULL;

	*id = 0;
	for (int i = 0; i < 2; i++) {
		struct directory *directory = &directories[i];
		int result = fill(check, directory);

		if (result != 0)
			return result;
		if (directory->position < directory->count &&
		    (!lowest ||
		     directory->ids[directory->position] < lowest->ids[lowest->position]))
			lowest = directory;
	}
	if (lowest)
		*id = lowest->ids[lowest->position++];
	return 0;
}

/* An object that is too large for one command: it has to be checked by itself. */
static void leave_out(struct check *check, struct engine_address address)
{
	check->budget = check->request->device->portions.pages;
	check->head.objects++;
	report(check, address, OSD_MAP_ALL);
}

/* If all members were read, the partition's totals must be theirs. */
static void check_totals(struct check *check)
{
	const struct osd_subject *subject = &check->request->subject;

	if (check->request->cdb.address == 0 && check->written == OSD_CHECK_HEAD_BYTES &&
	    !subject->stat.is_between &&
	    (subject->stat.members != check->head.objects - 1 ||
	     subject->stat.used_bytes != check->used_bytes))
		report(check, subject->address, OSD_MAP_DAMAGED_DIRECTORY);
}

static int check_members(struct check *check)
{
	bool collections = osd_has(check->request->device, ENGINE_HAS_COLLECTIONS);
	uint64_t first = max_u64(osd_first_id(check->request), 1), id;
	struct directory directories[2] = {
		{ .what = ENGINE_LIST_USER_OBJECTS, .next = first },
		{ .what = ENGINE_LIST_COLLECTIONS, .next = collections ? first : 0 },
	};
	struct engine_address address = check->request->subject.address;
	int result;

	while ((result = next_member(check, directories, &id)) == 0 && id != 0) {
		bool is_first = check->head.objects == 1;

		address.object = id;
		result = check_member(check, address);
		if (result == 1 && is_first) {
			leave_out(check, address);
			result = 0;
		}
		if (result != 0)
			break;
		if (check->full || has_looked_enough(check))
			break;
	}
	if (result < 0)
		return damage(check, check->request->subject.address, OSD_MAP_DAMAGED_DIRECTORY,
			      result);
	/*
	 * An object without space in the report, or read in part, comes again; otherwise the next
	 * one.
	 */
	if (id != 0)
		check->head.continuation =
			osd_wire_object(check->request, result == 1 || check->full ? id : id + 1);
	else
		check_totals(check);
	return 0;
}

/* ---- the root ---- */

static int check_partitions(struct check *check)
{
	struct directory table = { .what = ENGINE_LIST_PARTITIONS,
				   .next = max_u64(check->request->cdb.address, 1) };
	struct engine_address root = check->request->subject.address, address = root;
	struct engine_stat stat;
	int result = fill(check, &table);

	while (result == 0 && table.position < table.count && !check->full &&
	       !has_looked_enough(check)) {
		address.partition = table.ids[table.position];
		result = damage(check, address, OSD_MAP_DAMAGED_ATTRIBUTES,
				osd_stat_at(check->request, address, &stat));
		if (check->full)
			break;
		table.position++;
		check->head.objects++;
		if (result == 0)
			result = fill(check, &table);
	}
	if (result != 0)
		return damage(check, root, OSD_MAP_DAMAGED_DIRECTORY, result);
	if (table.position < table.count)
		check->head.continuation = table.ids[table.position];
	return 0;
}

/* ---- the command ---- */

static int check_subject(struct check *check)
{
	const struct osd_subject *subject = &check->request->subject;
	uint64_t offset = check->request->cdb.address;
	int result;

	switch (subject->stat.type) {
	case ENGINE_ROOT:
		return check_partitions(check);
	case ENGINE_PARTITION:
		return check_members(check);
	case ENGINE_USER_OBJECT:
		result = check_data(check, subject, &offset);
		if (result == 1)
			check->head.continuation = offset;
		return result == 1 ? 0 : result;
	case ENGINE_COLLECTION:
		return check_collection(check, subject);
	}
	return 0;
}

int osd_object_structure_check(struct osd_request *request)
{
	struct osd_command *command = request->command;
	struct check check = {
		.request = request,
		.head = { .objects = 1 }, /* the subject has been read to get here */
		.written = OSD_CHECK_HEAD_BYTES,
		.budget = request->device->portions.pages,
	};
	int result = check_subject(&check);

	if (result != 0)
		return osd_result(request, result, OSD_FIELD_OBJECT);
	if (request->cdb.address == 0 && check.head.continuation == 0)
		settle(&check, request->subject.address, 0);
	check.head.additional_length = check.written - 8;
	osd_check_head_encode(&check.head, command->data_in);
	command->data_in_length = check.written;
	return 0;
}
