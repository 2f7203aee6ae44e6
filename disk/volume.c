/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Volumes on partitions: what is written where, and the attribute that says what a volume is. */
#include "disk/volume.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history.h"
#include "wire/standard.h"

/*
 * The attribute: on a page of partitions that is the vendor's, so that initiators of an OSD unit
 * can't set it. It is part of history, as is all else of the volume.
 */
#define SHAPE_PAGE (OSD_PAGES_PARTITION + OSD_PAGES_VENDOR + 1)

enum { SHAPE_NUMBER = 1, SHAPE_FORMAT = 1, SHAPE_BYTES = 24 };
enum { BLOCK_BYTES_DEFAULT = 512 };

static struct engine_address address_of(const struct volume *volume, uint64_t object)
{
	return (struct engine_address){ .partition = volume->partition,
					.object = object,
					.version = volume->version };
}

/* ---- what a volume is ---- */

static void shape_encode(const struct volume_shape *shape, uint8_t to[SHAPE_BYTES])
{
	put_be32(to, SHAPE_FORMAT);
	put_be32(to + 4, shape->block_bytes);
	put_be64(to + 8, shape->range_bytes);
	put_be64(to + 16, shape->bytes);
}

static int shape_decode(const uint8_t from[SHAPE_BYTES], uint32_t length,
			struct volume_shape *shape)
{
	if (length != SHAPE_BYTES || get_be32(from) != SHAPE_FORMAT)
		return -EBADMSG;
	shape->block_bytes = get_be32(from + 4);
	shape->range_bytes = get_be64(from + 8);
	shape->bytes = get_be64(from + 16);
	return (shape->block_bytes == 512 || shape->block_bytes == 4096) && shape->range_bytes &&
			       shape->range_bytes % shape->block_bytes == 0 && shape->bytes &&
			       shape->bytes % shape->block_bytes == 0
		       ? 0
		       : -EBADMSG;
}

/* -ENOENT: there is no partition; -ENODEV: it is no volume. */
static int shape_read(struct engine_txn *txn, const struct volume *volume,
		      struct volume_shape *shape)
{
	struct engine_object *partition;
	uint8_t value[SHAPE_BYTES];
	uint32_t length = 0;
	int result = engine_open_object(txn, address_of(volume, 0), &partition);

	if (result)
		return result;
	result = engine_object_attribute_get(partition, SHAPE_PAGE, SHAPE_NUMBER, value,
					     sizeof(value), &length);
	if (!result)
		result = shape_decode(value, length, shape);
	engine_close_object(partition);
	return result == -ENOENT ? -ENODEV : result;
}

static int shape_write(struct engine_txn *txn, const struct volume *volume,
		       const struct volume_shape *shape)
{
	struct engine_object *partition;
	uint8_t value[SHAPE_BYTES];
	int result = engine_open_object(txn, address_of(volume, 0), &partition);

	if (result)
		return result;
	shape_encode(shape, value);
	result = engine_object_attribute_set(partition, SHAPE_PAGE, SHAPE_NUMBER, value,
					     sizeof(value));
	engine_close_object(partition);
	return result;
}

/* ---- opening ---- */

/* Three quarters of what the device offers, for a new volume of which nothing else is said. */
static uint64_t bytes_by_device(struct engine *engine)
{
	struct engine_statistics statistics;
	uint64_t mebibyte = UINT64_C(1) << 20;

	engine_read_statistics(engine, &statistics);
	return max_u64(statistics.capacity_bytes / 4 * 3 / mebibyte * mebibyte, mebibyte);
}

static int make(struct engine_txn *txn, struct volume *volume, const struct volume_wanted *wanted,
		struct error_text *error)
{
	struct volume_shape *shape = &volume->shape;
	uint32_t page_bytes = engine_page_bytes(volume->engine);
	int result;

	shape->block_bytes = wanted->block_bytes ? wanted->block_bytes : BLOCK_BYTES_DEFAULT;
	if (shape->block_bytes > page_bytes)
		return error_set(error, -EINVAL,
				 "blocks of %" PRIu32 " bytes do not fit into the device's pages, "
				 "which have %" PRIu32,
				 shape->block_bytes, page_bytes);
	shape->range_bytes = (uint64_t)VOLUME_RANGE_PAGES * page_bytes;
	shape->bytes = wanted->bytes / shape->block_bytes * shape->block_bytes;
	result = engine_partition_create(txn, volume->partition, &volume->partition);
	if (!result)
		result = engine_partition_unlog(txn, volume->partition);
	return result ? result : shape_write(txn, volume, shape);
}

/* Lets a volume that is there grow to what is wanted. */
static int adapt(struct engine_txn *txn, struct volume *volume, const struct volume_wanted *wanted,
		 struct error_text *error)
{
	struct volume_shape *shape = &volume->shape;
	uint64_t bytes = wanted->bytes / shape->block_bytes * shape->block_bytes;

	if (wanted->block_bytes && wanted->block_bytes != shape->block_bytes)
		return error_set(error, -EINVAL,
				 "the volume in partition 0x%" PRIx64 " has blocks of %" PRIu32
				 " bytes, which do not change",
				 volume->partition, shape->block_bytes);
	if (!bytes || bytes == shape->bytes)
		return 0;
	if (bytes < shape->bytes) {
		/* It may have grown since somebody wrote that down: a disk comes back all the same.
		 */
		log_line(LOG_LEVEL_WARNING,
			 "the volume in partition 0x%" PRIx64 " has %" PRIu64
			 " bytes, more than volume_size says: it stays so",
			 volume->partition, shape->bytes);
		return 0;
	}
	shape->bytes = bytes;
	return shape_write(txn, volume, shape);
}

static int open_in(struct engine_txn *txn, struct volume *volume,
		   const struct volume_wanted *wanted, struct error_text *error)
{
	int result = shape_read(txn, volume, &volume->shape);

	if (result == -ENOENT)
		return make(txn, volume, wanted, error);
	if (result == -ENODEV)
		return error_set(error, -EINVAL, "partition 0x%" PRIx64 " is not a volume",
				 volume->partition);
	return result ? result : adapt(txn, volume, wanted, error);
}

/* Of the present: in one transaction, so that nobody makes another volume in between. */
static int open_present(struct volume *volume, const struct volume_wanted *wanted,
			struct error_text *error)
{
	struct volume_wanted complete = *wanted;
	struct engine_txn *txn;
	int result = engine_begin(volume->engine, ENGINE_READ, &txn);

	if (result)
		return result;
	result = shape_read(txn, volume, &volume->shape);
	engine_abort(txn);
	if (result == -ENOENT && !wanted->bytes)
		complete.bytes = bytes_by_device(volume->engine);
	result = engine_begin(volume->engine, ENGINE_WRITE, &txn);
	if (result)
		return result;
	result = open_in(txn, volume, &complete, error);
	if (!result)
		return engine_commit(txn, false);
	engine_abort(txn);
	return result;
}

/* -ENOENT: there is no such version. */
static int find_version(struct engine_txn *txn, struct volume *volume, const char *text)
{
	if (!isdigit((unsigned char)text[0]))
		return engine_version_find(txn, volume->partition, text, &volume->version);
	volume->version = (uint32_t)strtoul(text, NULL, 10);
	return 0;
}

/* Without the version: as small as a volume can be. Its blocks are never seen. */
static void miss_version(struct volume *volume, const char *version, const char *why)
{
	volume->is_missing = true;
	volume->shape = (struct volume_shape){ .block_bytes = BLOCK_BYTES_DEFAULT,
					       .range_bytes = BLOCK_BYTES_DEFAULT,
					       .bytes = BLOCK_BYTES_DEFAULT };
	log_line(LOG_LEVEL_WARNING,
		 "partition 0x%" PRIx64 " %s version '%s': the disk of it is not ready",
		 volume->partition, why, version);
}

static int open_version(struct volume *volume, const struct volume_wanted *wanted)
{
	struct engine_txn *txn;
	int result = engine_begin(volume->engine, ENGINE_READ, &txn);

	if (result)
		return result;
	volume->is_version = true;
	result = find_version(txn, volume, wanted->version);
	if (!result)
		result = shape_read(txn, volume, &volume->shape);
	engine_abort(txn);
	if (result != -ENOENT && result != -ENODEV)
		return result;
	miss_version(volume, wanted->version, result == -ENOENT ? "has no" : "is no volume in");
	return 0;
}

int volume_open(struct engine *engine, const struct volume_wanted *wanted, struct volume *volume,
		struct error_text *error)
{
	int result;

	*volume = (struct volume){ .engine = engine, .partition = wanted->partition };
	error->text[0] = '\0';
	result = wanted->version[0] ? open_version(volume, wanted)
				    : open_present(volume, wanted, error);
	if (result && !error->text[0])
		error_set(error, result, "the volume in partition 0x%" PRIx64 ": %s",
			  wanted->partition, strerror(-result));
	return result;
}

int volume_look(struct engine_txn *txn, struct volume *volume)
{
	return shape_read(txn, volume, &volume->shape);
}

int volume_create(struct engine *engine, const struct volume_wanted *wanted, struct volume *volume,
		  struct error_text *error)
{
	struct volume_wanted complete = *wanted;
	struct engine_txn *txn;
	int result;

	*volume = (struct volume){ .engine = engine, .partition = wanted->partition };
	error->text[0] = '\0';
	if (!wanted->bytes)
		complete.bytes = bytes_by_device(engine);
	result = engine_begin(engine, ENGINE_WRITE, &txn);
	if (!result) {
		result = make(txn, volume, &complete, error);
		if (result)
			engine_abort(txn);
		else
			result = engine_commit(txn, true);
	}
	if (result == -EEXIST)
		error_set(error, result, "there is a partition 0x%" PRIx64 " already",
			  wanted->partition);
	else if (result && !error->text[0])
		error_set(error, result, "a new volume: %s", strerror(-result));
	return result;
}

/* ---- transactions ---- */

int volume_begin(const struct volume *volume, enum engine_mode mode, struct volume_work *work)
{
	struct volume_shape shape;
	int result = volume->is_missing ? -ENODEV : engine_begin(volume->engine, mode, &work->txn);

	if (result)
		return result;
	work->volume = volume;
	result = shape_read(work->txn, volume, &shape);
	if (result == -ENOENT || (!result && (shape.block_bytes != volume->shape.block_bytes ||
					      shape.range_bytes != volume->shape.range_bytes)))
		result = -ENODEV;
	if (result)
		engine_abort(work->txn);
	else
		work->bytes = shape.bytes;
	return result;
}

int volume_end(struct volume_work *work, int result, bool stable)
{
	if (!result)
		return engine_commit(work->txn, stable);
	engine_abort(work->txn);
	return result;
}

/* ---- ranges ---- */

/* The part of a range of bytes that is in one object. */
struct part {
	uint64_t object;
	uint64_t offset, length; /* in the object */
};

static struct part part_at(const struct volume *volume, uint64_t offset, uint64_t length)
{
	uint64_t range_bytes = volume->shape.range_bytes;
	uint64_t at = offset % range_bytes;

	return (struct part){ .object = ENGINE_FIRST_ID + offset / range_bytes,
			      .offset = at,
			      .length = min_u64(length, range_bytes - at) };
}

/* *object NULL: nothing was ever written to it. */
static int open_part(struct volume_work *work, const struct part *part,
		     struct engine_object **object)
{
	int result = engine_open_object(work->txn, address_of(work->volume, part->object), object);

	if (result == -ENOENT) {
		*object = NULL;
		result = 0;
	}
	return result;
}

/*
 * An object has its whole length from the beginning. So no write changes that, and none finds the
 * object small enough to be stored in its onode once a page of it is full.
 */
static int make_part(struct volume_work *work, const struct part *part,
		     struct engine_object **object)
{
	int result = engine_create(work->txn, work->volume->partition, ENGINE_USER_OBJECT,
				   part->object, 1, NULL);

	if (!result)
		result = open_part(work, part, object);
	return result ? result : engine_object_truncate(*object, work->volume->shape.range_bytes);
}

static int read_part(struct volume_work *work, const struct part *part, uint8_t *data)
{
	struct engine_object *object;
	uint64_t got = 0;
	int result = open_part(work, part, &object);

	if (!result && object)
		result = engine_object_read(object, part->offset, data, part->length, &got);
	if (!result)
		memset(data + got, 0, part->length - got);
	engine_close_object(object);
	return result;
}

static int write_part(struct volume_work *work, const struct part *part, const uint8_t *data)
{
	struct engine_object *object;
	int result = open_part(work, part, &object);

	if (!result && !object)
		result = make_part(work, part, &object);
	if (!result)
		result = engine_object_write(object, part->offset, data, part->length);
	engine_close_object(object);
	return result;
}

/*
 * The run at `offset` of an object: whether it takes space, and its length, `most` at most. There
 * is nothing behind the end of an object, which an initiator of an OSD unit may have truncated.
 */
static int map_run(struct engine_object *object, uint64_t offset, uint64_t most, bool *mapped,
		   uint64_t *length)
{
	struct engine_extent extent;
	uint32_t budget = VOLUME_RANGE_PAGES;
	int result = engine_object_map(object, offset, false, &budget, &extent);

	if (result == -ENOENT) {
		extent = (struct engine_extent){ .kind = ENGINE_EXTENT_HOLE, .length = most };
		result = 0;
	}
	if (result)
		return result;
	*mapped = extent.kind != ENGINE_EXTENT_HOLE;
	*length = min_u64(extent.length, most);
	return 0;
}

/* What is clear already is left alone: a file system clears much that nobody has written. */
static int clear_part(struct volume_work *work, const struct part *part)
{
	struct engine_object *object;
	int result = open_part(work, part, &object);
	uint64_t length = part->length;
	bool mapped = false;

	if (!result && object)
		result = map_run(object, part->offset, part->length, &mapped, &length);
	if (!result && (mapped || length < part->length))
		result = engine_object_clear(object, part->offset, part->length);
	engine_close_object(object);
	return result;
}

int volume_read(struct volume_work *work, uint64_t offset, void *data, uint64_t length)
{
	uint8_t *to = data;
	int result = 0;

	while (!result && length) {
		struct part part = part_at(work->volume, offset, length);

		result = read_part(work, &part, to);
		to += part.length;
		offset += part.length;
		length -= part.length;
	}
	return result;
}

int volume_write(struct volume_work *work, uint64_t offset, const void *data, uint64_t length)
{
	const uint8_t *from = data;
	int result = 0;

	while (!result && length) {
		struct part part = part_at(work->volume, offset, length);

		result = write_part(work, &part, from);
		from += part.length;
		offset += part.length;
		length -= part.length;
	}
	return result;
}

int volume_clear(struct volume_work *work, uint64_t offset, uint64_t length)
{
	int result = 0;

	while (!result && length) {
		struct part part = part_at(work->volume, offset, length);

		result = clear_part(work, &part);
		offset += part.length;
		length -= part.length;
	}
	return result;
}

int volume_map(struct volume_work *work, uint64_t offset, bool *mapped, uint64_t *length)
{
	struct part part = part_at(work->volume, offset, UINT64_MAX);
	struct engine_object *object;
	int result = open_part(work, &part, &object);

	*mapped = false;
	*length = part.length;
	if (!result && object)
		result = map_run(object, part.offset, part.length, mapped, length);
	engine_close_object(object);
	return result;
}
