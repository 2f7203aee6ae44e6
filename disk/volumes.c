/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The volumes of a device, as an administrator sees them: with or without disks on them. */
#include "disk/volumes.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "disk/disk.h"
#include "engine/history.h"

/* Partitions that one look of a list takes. */
#define PARTITIONS_AT_ONCE 256

/* -ENOENT and -ENODEV have sentences of their own. */
static int explain(uint64_t partition, int result, struct error_text *error)
{
	if (!result)
		return 0;
	if (result == -ENOENT)
		return error_set(error, result, "there is no partition 0x%" PRIx64, partition);
	if (result == -ENODEV)
		return error_set(error, result, "partition 0x%" PRIx64 " is not a volume",
				 partition);
	if (result == -EPERM)
		return error_set(error, result, "the history of partition 0x%" PRIx64 " is locked",
				 partition);
	return error_set(error, result, "the volume in partition 0x%" PRIx64 ": %s", partition,
			 strerror(-result));
}

static int end(struct engine_txn *txn, int result)
{
	if (!result)
		return engine_commit(txn, true);
	engine_abort(txn);
	return result;
}

/* -ENODEV: the partition is no volume. */
static int describe(struct engine_txn *txn, uint64_t partition, struct disk_volume *volume)
{
	struct volume looked = { .partition = partition };
	struct engine_clone clone = { .writable = true };
	struct engine_object *object;
	struct engine_stat stat;
	int result = volume_look(txn, &looked);

	if (!result)
		result = engine_open_object(txn, (struct engine_address){ .partition = partition },
					    &object);
	if (result)
		return result;
	result = engine_object_stat(object, &stat);
	engine_close_object(object);
	if (!result && engine_clone_get(txn, partition, &clone) == -ENOENT)
		clone = (struct engine_clone){ .writable = true };
	*volume = (struct disk_volume){
		.partition = partition,
		.bytes = looked.shape.bytes,
		.block_bytes = looked.shape.block_bytes,
		.used_bytes = stat.used_bytes,
		.source = clone.source,
		.is_read_only = !clone.writable,
	};
	return result;
}

/* Of the partitions of one look. -ENOENT: none is a volume; *next says where to go on, 0: nowhere.
 */
static int next_of(struct engine_txn *txn, uint64_t from, uint64_t *next,
		   struct disk_volume *volume)
{
	uint64_t ids[PARTITIONS_AT_ONCE];
	struct engine_object *root;
	size_t count = 0;
	int result = engine_open_object(txn, (struct engine_address){ 0 }, &root);

	if (result)
		return result;
	result = engine_object_list(root, ENGINE_LIST_PARTITIONS, from, ids, PARTITIONS_AT_ONCE,
				    &count, next);
	engine_close_object(root);
	for (size_t i = 0; !result && i < count; i++) {
		result = describe(txn, ids[i], volume);
		if (!result)
			return 0;
		if (result == -ENODEV)
			result = 0;
	}
	return result ? result : -ENOENT;
}

int disk_volume_next(struct engine *engine, uint64_t from, struct disk_volume *volume)
{
	uint64_t next = from;
	int result = -ENOENT;

	/* A transaction for each look: others get their turn in between. */
	while (result == -ENOENT && next) {
		struct engine_txn *txn;

		result = engine_begin(engine, ENGINE_READ, &txn);
		if (result)
			return result;
		from = next;
		next = 0;
		result = next_of(txn, from, &next, volume);
		engine_abort(txn);
	}
	return result;
}

bool volumes_is_read_only(const struct volume *volume)
{
	struct engine_clone clone = { .writable = true };
	struct engine_txn *txn;

	if (!(engine_capabilities(volume->engine) & ENGINE_HAS_CLONES) ||
	    engine_begin(volume->engine, ENGINE_READ, &txn))
		return false;
	if (engine_clone_get(txn, volume->partition, &clone))
		clone.writable = true;
	engine_abort(txn);
	return !clone.writable;
}

int disk_volume_create(struct engine *engine, uint64_t partition, uint64_t bytes,
		       uint32_t block_bytes, struct disk_volume *made, struct error_text *error)
{
	const struct volume_wanted wanted = { partition, bytes, block_bytes, "" };
	struct volume volume;
	int result = volume_create(engine, &wanted, &volume, error);

	if (!result)
		*made = (struct disk_volume){
			.partition = volume.partition,
			.bytes = volume.shape.bytes,
			.block_bytes = volume.shape.block_bytes,
		};
	return result;
}

int disk_volume_remove(struct engine *engine, uint64_t partition, struct error_text *error)
{
	struct volume volume = { .partition = partition };
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_FREE, &txn);

	if (result)
		return explain(partition, result, error);
	result = volume_look(txn, &volume);
	if (!result)
		result = engine_partition_remove(txn, partition, true);
	return explain(partition, end(txn, result), error);
}

int disk_volume_grow(struct engine *engine, uint64_t partition, uint64_t *bytes,
		     struct error_text *error)
{
	const struct volume_wanted wanted = { partition, *bytes, 0, "" };
	struct volume volume = { .partition = partition };
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_READ, &txn);

	/* Opening makes what is missing. */
	if (!result) {
		result = volume_look(txn, &volume);
		engine_abort(txn);
	}
	if (result)
		return explain(partition, result, error);
	if (*bytes < volume.shape.bytes)
		return error_set(error, -EINVAL,
				 "the volume in partition 0x%" PRIx64 " has %" PRIu64
				 " bytes; it can grow, not shrink",
				 partition, volume.shape.bytes);
	result = volume_open(engine, &wanted, &volume, error);
	*bytes = volume.shape.bytes;
	return result;
}

/* Would it stand for the present, so that a slip in a number looks like success? */
static bool is_to_come(const struct engine_txn *txn, const struct engine_moment *moment)
{
	return (moment->kind == ENGINE_AT_TIME && moment->value > engine_txn_time(txn)) ||
	       (moment->kind == ENGINE_AT_SEQUENCE && moment->value > engine_txn_sequence_max(txn));
}

int disk_volume_clone(struct engine *engine, uint64_t partition, const struct engine_moment *moment,
		      bool writable, uint64_t *clone, struct error_text *error)
{
	struct volume volume = { .partition = partition };
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_WRITE, &txn);

	if (result)
		return explain(partition, result, error);
	result = volume_look(txn, &volume);
	if (result) {
		engine_abort(txn);
		return explain(partition, result, error);
	}
	if (is_to_come(txn, moment)) {
		engine_abort(txn);
		return error_set(error, -ENOENT,
				 "partition 0x%" PRIx64 " has no such moment: it is still to come",
				 partition);
	}
	result = end(txn, engine_clone(txn, partition, *moment, 0, writable, clone));
	if (result == -ENOENT || result == -ESTALE || result == -ENODATA)
		return error_set(error, -ENOENT,
				 "partition 0x%" PRIx64 " has no such moment: its history does not "
				 "reach back so far",
				 partition);
	return explain(partition, result, error);
}

int disk_volume_version(struct engine *engine, uint64_t partition, const char *text,
			uint32_t *version, struct error_text *error)
{
	struct volume volume = { .partition = partition };
	struct engine_txn *txn;
	int result = engine_begin(engine, ENGINE_READ, &txn);

	if (result)
		return explain(partition, result, error);
	if (isdigit((unsigned char)text[0])) /* above 32 bits it is none, as the highest one */
		volume.version = (uint32_t)min_u64(strtoull(text, NULL, 0), UINT32_MAX);
	else
		result = engine_version_find(txn, partition, text, &volume.version);
	if (!result)
		result = volume_look(txn, &volume);
	engine_abort(txn);
	if (result == -ENOENT)
		return error_set(error, result, "partition 0x%" PRIx64 " has no version '%s'",
				 partition, text);
	*version = volume.version;
	return explain(partition, result, error);
}
