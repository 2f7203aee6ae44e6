/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * LIST: partitions of the root, user objects of a partition. LIST COLLECTION: collections of a
 * partition, members of a collection.
 *
 * The target keeps no state to continue a list. The list identifier tells which command changed the
 * list last, so the next part can say whether the list is still the same. listings.h remembers how
 * many IDs remain; otherwise the target counts them again.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* IDs that one call of the engine lists. */
#define BATCH 256

int osd_check_list(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	/* The only order is by ascending IDs, and attributes come in list format. */
	if (cdb->command_options != 0 ||
	    (cdb->list_attributes && cdb->format != OSD_ATTRIBUTES_LIST))
		return osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
	return 0;
}

/* INITIAL OBJECT_ID as an engine's ID: the first one that is not below it. */
uint64_t osd_first_id(const struct osd_request *request)
{
	uint64_t wire = request->cdb.address;
	struct osd_object_id id;

	if (request->subject.stat.type == ENGINE_ROOT || request->layout == OSD_LAYOUT_FLAT)
		return wire;
	if (osd_object_id_decode(request->layout, wire & ~(uint64_t)UINT32_MAX, &id) != 0)
		return ENGINE_FIRST_ID;
	return id.object + ((uint32_t)wire != 0);
}

struct listing {
	struct osd_request *request;
	enum engine_list what;
	struct osd_list_writer writer; /* what follows the head */
	uint64_t ids;                  /* written */
	uint64_t next;                 /* first ID that was not, 0 = none */
};

/* Partitions have the same ID on the wire and in the engine. */
static uint64_t wire_id(const struct listing *listing, uint64_t id)
{
	return listing->what == ENGINE_LIST_PARTITIONS ? id : osd_wire_object(listing->request, id);
}

/*
 * The right to list the root is none to look into partitions: their attributes are shown only to a
 * request that is protected as well as they are. If that can't be judged, they are closed.
 */
static bool shows_attributes(const struct listing *listing, struct engine_address entry)
{
	const struct osd_request *request = listing->request;
	uint8_t method;

	if (request->cdb.get_list.length == 0)
		return false;
	return listing->what != ENGINE_LIST_PARTITIONS ||
	       (osd_security_method_of(request, osd_wire_partition(entry), &method) == 0 &&
		method <= request->security.method);
}

/*
 * Adds the entry of one object with the attributes that the get list names. -ENOSPC: it does not
 * fit, and nothing was added.
 */
static int add_with_attributes(struct listing *listing, uint64_t id)
{
	struct osd_request *request = listing->request;
	struct osd_list_writer before = listing->writer;
	struct engine_address address = request->subject.address;
	struct osd_subject subject;
	int result;

	if (listing->what == ENGINE_LIST_PARTITIONS)
		address.partition = id;
	else
		address.object = id;
	result = osd_open(request, address, &subject);
	/* Tracking collections keep the IDs of objects that are gone. */
	if (result == -ENOENT &&
	    (listing->what == ENGINE_LIST_MEMBERS || request->subject.stat.is_between))
		return 0;
	if (result != 0)
		return osd_result(request, result, 0);
	if (osd_list_object_begin(&listing->writer, wire_id(listing, id),
				  osd_wire_type(subject.stat.type))) {
		if (shows_attributes(listing, address) &&
		    osd_answer_list(request, &subject, &listing->writer) != 0)
			return -EINVAL;
		osd_list_object_end(&listing->writer);
	}
	osd_close(&subject);
	if (listing->writer.truncated) {
		listing->writer = before;
		return -ENOSPC;
	}
	return 0;
}

static int add_id(struct listing *listing, uint64_t id)
{
	struct osd_list_writer *writer = &listing->writer;

	if (listing->request->cdb.list_attributes)
		return add_with_attributes(listing, id);
	if (writer->capacity - writer->length < 8)
		return -ENOSPC;
	put_be64(writer->data + writer->length, wire_id(listing, id));
	writer->length += 8;
	return 0;
}

/*
 * Entries with attributes take a look at their object each. Where these are many, the list ends
 * although there is space, and goes on as one without space does.
 */
static bool has_looked_enough(const struct listing *listing)
{
	const struct osd_request *request = listing->request;

	return request->cdb.list_attributes &&
	       (listing->ids >= request->device->portions.entries ||
		request->attribute_visits >= OSD_ATTRIBUTE_VISITS_PORTION ||
		(listing->ids > 0 && osd_has_worked_enough(request)));
}

/* Fills the buffer; listing->next says where it ended. */
static int fill(struct listing *listing)
{
	struct osd_request *request = listing->request;
	uint64_t ids[BATCH];
	size_t count;

	do {
		int result = engine_object_list(request->subject.object, listing->what,
						listing->next, ids, BATCH, &count, &listing->next);

		if (result != 0)
			return osd_result(request, result, OSD_FIELD_PARTITION);
		for (size_t i = 0; i < count; i++) {
			result = has_looked_enough(listing) ? -ENOSPC : add_id(listing, ids[i]);
			if (result == -ENOSPC) {
				listing->next = ids[i];
				return 0;
			}
			if (result != 0)
				return result;
			listing->ids++;
		}
	} while (listing->next != 0);
	return 0;
}

/* The list identifier of a list that this command changed last; never 0. */
static uint32_t identifier_of(uint64_t sequence)
{
	uint32_t folded = (uint32_t)(sequence ^ sequence >> 32);

	return folded != 0 ? folded : 1;
}

static struct osd_listing_key key_of(const struct listing *listing, uint64_t sequence,
				     uint64_t next)
{
	return (struct osd_listing_key){ listing->request->subject.address, listing->what, sequence,
					 next };
}

/* IDs from the initial one to the list's end, and the list's identifier. */
static int count_ids(struct listing *listing, uint64_t *total, uint32_t *identifier)
{
	struct osd_request *request = listing->request;
	struct osd_listings *listings = &request->device->listings;
	struct engine_object *object = request->subject.object;
	struct osd_listing_key key;
	uint64_t sequence;
	int result = engine_object_list_sequence(object, listing->what, &sequence);

	if (result != 0)
		return osd_result(request, result, OSD_FIELD_PARTITION);
	*identifier = identifier_of(sequence);
	*total = listing->ids;
	/* A list with attributes does not say how many IDs remain. */
	if (listing->next == 0 || request->cdb.list_attributes)
		return 0;
	key = key_of(listing, sequence, osd_first_id(request));
	if (!osd_listings_find(listings, &key, total))
		result = engine_object_list_count(object, listing->what, key.next, total);
	if (result != 0)
		return osd_result(request, result, OSD_FIELD_PARTITION);
	key.next = listing->next;
	if (*total > listing->ids)
		osd_listings_note(listings, &key, *total - listing->ids);
	return 0;
}

static uint8_t list_format(const struct listing *listing)
{
	uint8_t format = listing->what == ENGINE_LIST_PARTITIONS    ? OSD_LISTED_PARTITIONS
			 : listing->what == ENGINE_LIST_COLLECTIONS ? OSD_LISTED_COLLECTIONS
								    : OSD_LISTED_USER_OBJECTS;

	return format + (listing->request->cdb.list_attributes ? 1 : 0);
}

/*
 * Length of the full list. With attributes only the end of the list shows it: until then all ones.
 */
static uint64_t additional_length(const struct listing *listing, uint64_t total)
{
	if (!listing->request->cdb.list_attributes)
		return OSD_LIST_HEAD_BYTES - 8 + 8 * total;
	return listing->next == 0 ? OSD_LIST_HEAD_BYTES - 8 + listing->writer.length : UINT64_MAX;
}

static enum engine_list what_to_list(const struct osd_request *request)
{
	switch (request->subject.stat.type) {
	case ENGINE_ROOT:
		return ENGINE_LIST_PARTITIONS;
	case ENGINE_COLLECTION:
		return ENGINE_LIST_MEMBERS;
	default:
		return request->cdb.action == OSD_LIST ? ENGINE_LIST_USER_OBJECTS
						       : ENGINE_LIST_COLLECTIONS;
	}
}

/* The type of the entries that have attributes. */
static enum engine_type type_of_entries(enum engine_list what)
{
	switch (what) {
	case ENGINE_LIST_PARTITIONS:
		return ENGINE_PARTITION;
	case ENGINE_LIST_COLLECTIONS:
		return ENGINE_COLLECTION;
	default:
		return ENGINE_USER_OBJECT;
	}
}

int osd_list(struct osd_request *request)
{
	struct osd_command *command = request->command;
	size_t space = request->in_data_length, head_space = min_u64(space, OSD_LIST_HEAD_BYTES);
	struct listing listing = {
		.request = request,
		.what = what_to_list(request),
		.next = osd_first_id(request),
	};
	uint8_t head_bytes[OSD_LIST_HEAD_BYTES];
	struct osd_list_head head = { .containers = listing.what == ENGINE_LIST_PARTITIONS ||
						    listing.what == ENGINE_LIST_COLLECTIONS };
	uint32_t identifier = 0, claimed = request->cdb.list_identifier;
	uint64_t total;

	/* Also when the list has no entries. */
	if (request->cdb.list_attributes &&
	    osd_check_gets(request, type_of_entries(listing.what)) != 0)
		return -EINVAL;
	if (space == 0)
		return 0;
	osd_list_begin_bare(&listing.writer, OSD_2, command->data_in + head_space,
			    space - head_space);
	if (fill(&listing) != 0 || count_ids(&listing, &total, &identifier) != 0)
		return -EINVAL;
	head.format = list_format(&listing);
	head.additional_length = additional_length(&listing, total);
	head.continuation_id = wire_id(&listing, listing.next);
	head.identifier = listing.next != 0 ? identifier : 0;
	head.changed = claimed != 0 && claimed != identifier;
	osd_list_head_encode(request->cdb.version, &head, head_bytes);
	memcpy(command->data_in, head_bytes, head_space);
	command->data_in_length = head_space + listing.writer.length;
	return 0;
}
