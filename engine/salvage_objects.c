/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Copying what is whole: user objects, collections, attributes. */
#include <errno.h>

#include "common/bytes.h"
#include "engine/objects/handles.h"
#include "engine/salvage_private.h"

/* An object of the old device and its copy. */
struct pair {
	struct engine_object *from, *to;
};

static int open_pair(struct salvaging *salvaging, struct engine_address address, struct pair *pair)
{
	int result = engine_open_object(salvaging->read, address, &pair->from);

	if (result)
		return result;
	result = engine_open_object(salvaging->write, address, &pair->to);
	if (result)
		engine_close_object(pair->from);
	return result;
}

static void close_pair(const struct pair *pair)
{
	engine_close_object(pair->to);
	engine_close_object(pair->from);
}

/* ---- attributes ---- */

static int copy_attribute(struct salvaging *salvaging, const struct pair *pair, uint32_t page,
			  uint32_t number, uint32_t length)
{
	bool is_object = engine_object_address(pair->from).object != 0;
	int result;

	salvaging->put += length + ATTRIBUTE_OVERHEAD;
	if (!is_object || page != ENGINE_MEMBERSHIPS_PAGE || length != 8)
		return engine_object_attribute_set(pair->to, page, number, salvaging->buffer,
						   length);
	result = engine_object_membership_set(pair->to, number, get_be64(salvaging->buffer));
	if (result == -EINVAL) /* an attribute of a collection, or one whose collection is lost */
		result = engine_object_attribute_set(pair->to, page, number, salvaging->buffer,
						     length);
	return result == -EINVAL || result == -EEXIST ? 0 : result;
}

/* Those that can't be read the check has named. */
static int copy_attributes(struct salvaging *salvaging, const struct pair *pair)
{
	uint32_t page = 0, number = 0, length;
	int result = 0;

	while (!result) {
		result = engine_object_attribute_next(pair->from, &page, &number, salvaging->buffer,
						      SALVAGE_BYTES, &length);
		if (result && result != -ENOENT && page <= ENGINE_MEMBERSHIPS_PAGE) {
			/* It is told by a collection that is damaged. */
			page = ENGINE_MEMBERSHIPS_PAGE + 1;
			number = 0;
			result = 0;
			continue;
		}
		if (result)
			return 0;
		result = copy_attribute(salvaging, pair, page, number, length);
		if (++number == 0 && ++page == 0)
			break;
	}
	return result;
}

/* Times as they were, the created one too, which no call sets. */
static int copy_times(const struct pair *pair)
{
	struct engine_stat stat;
	int result = engine_object_stat(pair->from, &stat);

	for (int which = ENGINE_TIME_CREATED + 1; !result && which < ENGINE_TIMES; which++)
		result = engine_object_set_time(pair->to, (enum engine_time)which,
						stat.times_ms[which]);
	if (!result)
		pair->to->target.onode->head.times_ms[ENGINE_TIME_CREATED] =
			stat.times_ms[ENGINE_TIME_CREATED];
	return result;
}

int salvage_attributes(struct salvaging *salvaging, struct engine_address address)
{
	struct pair pair;
	int result = salvage_begin(salvaging);

	if (!result)
		result = open_pair(salvaging, address, &pair);
	if (result)
		return salvage_failed(salvaging, address, "its attributes", result);
	result = copy_attributes(salvaging, &pair);
	if (!result)
		result = copy_times(&pair);
	close_pair(&pair);
	return salvage_failed(salvaging, address, "its attributes", result);
}

/* ---- data ---- */

/* Copies a range of data. What can't be read of it, which the check has named, stays a hole. */
static int copy_range(struct salvaging *salvaging, const struct pair *pair, uint64_t offset,
		      uint64_t length)
{
	uint64_t got = 0;
	int result = engine_object_read(pair->from, offset, salvaging->buffer, length, &got);

	if (result == -EBADMSG)
		return 0;
	if (!result)
		result = engine_object_write(pair->to, offset, salvaging->buffer, got);
	salvaging->salvage->data_bytes += result ? 0 : got;
	salvaging->put += got;
	return result;
}

/*
 * Copies the run of one kind at *offset, or its beginning, as far as one transaction takes it, and
 * goes on behind it.
 */
static int copy_run(struct salvaging *salvaging, const struct pair *pair, uint64_t *offset)
{
	struct engine_extent extent;
	uint32_t budget = SALVAGE_COMMIT_BYTES / SALVAGE_BYTES;
	int result = engine_object_map(pair->from, *offset, true, &budget, &extent);
	uint64_t end = *offset + (result ? 0 : extent.length);

	if (extent.kind != ENGINE_EXTENT_DATA && !result)
		*offset = end;
	while (!result && *offset < end) {
		uint64_t length = min_u64(end - *offset, SALVAGE_BYTES);

		result = copy_range(salvaging, pair, *offset, length);
		*offset += length;
	}
	return result;
}

/*
 * In as many transactions as it takes. The object has its length from the beginning, so that it is
 * never taken for a whole one that is shorter.
 */
static int copy_data(struct salvaging *salvaging, struct engine_address address, uint64_t length)
{
	uint64_t offset = 0;
	struct pair pair;
	int result = 0;

	while (!result && offset < length) {
		result = salvage_begin(salvaging);
		if (!result)
			result = open_pair(salvaging, address, &pair);
		if (result)
			return result;
		while (!result && offset < length && salvaging->put < SALVAGE_COMMIT_BYTES)
			result = copy_run(salvaging, &pair, &offset);
		close_pair(&pair);
	}
	return result;
}

static int create(struct salvaging *salvaging, struct engine_address address, enum engine_type type)
{
	int result = salvage_begin(salvaging);

	salvaging->put += engine_page_bytes(salvaging->to);
	return result ? result
		      : engine_create(salvaging->write, address.partition, type, address.object, 1,
				      NULL);
}

/* What the check could not open is not there to be copied, and has been named. */
static int stat_of(struct salvaging *salvaging, struct engine_address address,
		   struct engine_stat *stat)
{
	struct engine_object *object;
	int result = engine_open_object(salvaging->read, address, &object);

	if (!result) {
		result = engine_object_stat(object, stat);
		engine_close_object(object);
	}
	return result;
}

static int set_length(struct salvaging *salvaging, struct engine_address address, uint64_t length)
{
	struct pair pair;
	int result = open_pair(salvaging, address, &pair);

	if (result)
		return result;
	result = engine_object_truncate(pair.to, length);
	close_pair(&pair);
	return result;
}

int salvage_object(struct salvaging *salvaging, struct engine_address address)
{
	struct engine_stat stat;
	int result;

	if (stat_of(salvaging, address, &stat) || stat.type != ENGINE_USER_OBJECT)
		return 0;
	result = create(salvaging, address, ENGINE_USER_OBJECT);
	if (!result)
		result = set_length(salvaging, address, stat.length);
	if (!result)
		result = copy_data(salvaging, address, stat.length);
	if (result)
		return salvage_failed(salvaging, address, "all of it", result);
	salvaging->salvage->objects++;
	return salvage_attributes(salvaging, address);
}

/* ---- collections ---- */

int salvage_collection(struct salvaging *salvaging, struct engine_address address)
{
	struct engine_stat stat;
	int result;

	if (stat_of(salvaging, address, &stat) || stat.type != ENGINE_COLLECTION)
		return 0;
	result = create(salvaging, address, ENGINE_COLLECTION);
	if (result)
		return salvage_failed(salvaging, address, "the collection", result);
	salvaging->salvage->collections++;
	return salvage_attributes(salvaging, address);
}

static int copy_members(struct salvaging *salvaging, const struct pair *pair)
{
	uint64_t *ids = (uint64_t *)(void *)salvaging->buffer, next = 1;
	int result = 0;

	while (!result && next) {
		uint64_t first = next;
		size_t count = 0;

		/* Where the list ends before its end, the check has named it. */
		if (engine_object_list(pair->from, ENGINE_LIST_MEMBERS, first, ids,
				       SALVAGE_BYTES / sizeof(*ids) / 64, &count, &next) ||
		    (next && next <= first))
			return 0;
		for (size_t n = 0; !result && n < count; n++) {
			result = engine_object_member_insert(pair->to, ids[n]);
			result = result == -EEXIST ? 0 : result;
		}
	}
	return result;
}

int salvage_members(struct salvaging *salvaging, struct engine_address address)
{
	struct pair pair;
	int result = salvage_commit(salvaging);

	if (!result)
		result = salvage_begin(salvaging);
	if (result)
		return result;
	if (open_pair(salvaging, address, &pair))
		return 0;
	result = copy_members(salvaging, &pair);
	close_pair(&pair);
	return salvage_failed(salvaging, address, "its members", result);
}
