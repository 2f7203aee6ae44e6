/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes, finds, names and drops kept versions. */
#include "engine/history/versions.h"

#include "common/bytes.h"
#include "common/crc32c.h"
#include "engine/history/locks.h"
#include "engine/history/standing.h"
#include "engine/history/times.h"

/* Pieces that a name may have: by its hash, and the next ones. */
#define NAME_PIECES 8

/* ---- records ---- */

uint32_t version_encode(const struct version_record *record, uint8_t *to)
{
	size_t name = strlen(record->name);

	put_le48(to, record->sequence);
	put_le48(to + 6, record->time_ms);
	put_le64(to + 12, record->used_bytes);
	put_le64(to + 20, record->objects);
	put_le64(to + 28, record->written_bytes);
	memcpy(to + VERSION_HEAD_BYTES, record->name, name);
	return VERSION_HEAD_BYTES + (uint32_t)name;
}

int version_decode(struct version_record *record, const uint8_t *from, uint32_t length)
{
	uint32_t name = length - VERSION_HEAD_BYTES;

	if (length < VERSION_HEAD_BYTES || name > ENGINE_VERSION_NAME_MAX)
		return -EBADMSG;
	*record = (struct version_record){
		.sequence = get_le48(from),
		.time_ms = get_le48(from + 6),
		.used_bytes = get_le64(from + 12),
		.objects = get_le64(from + 20),
		.written_bytes = get_le64(from + 28),
	};
	memcpy(record->name, from + VERSION_HEAD_BYTES, name);
	return 0;
}

/* Whether a number can be one of a version of a partition, or of the device. */
static bool is_number_of(const struct partition *partition, uint32_t number)
{
	return partition->index == RECORD_ROOT_INDEX
		       ? version_is_of_device(number)
		       : number >= 1 && number <= ENGINE_PARTITION_VERSION_LAST;
}

int version_read(struct engine *engine, struct partition *partition, uint32_t number,
		 struct version_record *record)
{
	struct idset versions = history_versions(engine, partition);
	uint8_t bytes[VERSION_HEAD_BYTES + ENGINE_VERSION_NAME_MAX];
	struct record_info info;
	int result;

	if (!is_number_of(partition, number))
		return -ENOENT;
	result = record_get(engine->store, key_of_version(partition->index, number), RECORD_NEWEST,
			    bytes, sizeof(bytes), &info);
	if (!result)
		result = version_decode(record, bytes, info.length);
	if (result)
		return result;
	/* An earlier owner of the index may have left the record, or this one before it went. */
	result = idset_contains(&versions, history_element(record->sequence, number));
	return result < 0 ? result : result ? 0 : -ENOENT;
}

static int put_version(struct engine_txn *txn, const struct partition *partition, uint32_t number,
		       const struct version_record *record)
{
	uint8_t bytes[VERSION_HEAD_BYTES + ENGINE_VERSION_NAME_MAX];

	return record_put(&txn->writer, key_of_version(partition->index, number), 0, bytes,
			  version_encode(record, bytes));
}

/* ---- names ---- */

static struct record_key name_key(const struct partition *partition, const char *name, uint32_t n)
{
	uint32_t hash = crc32c(0, name, strlen(name)) * NAME_PIECES;

	return key_of_version_name(partition->index, (hash & (ENGINE_PIECES_MAX - 1)) + n);
}

/* The version that a piece of the names leads to, if that has this name. */
static int read_name(struct engine *engine, struct partition *partition, const char *name,
		     uint32_t n, uint32_t *number)
{
	struct version_record version;
	struct record_info info;
	uint8_t record[2];
	int result = record_get(engine->store, name_key(partition, name, n), RECORD_NEWEST, record,
				sizeof(record), &info);

	*number = 0;
	if (!result && info.length != sizeof(record))
		result = -EBADMSG;
	if (result)
		return result;
	*number = get_le16(record);
	result = version_read(engine, partition, *number, &version);
	if (!result && strcmp(version.name, name) != 0)
		return -EAGAIN;
	return result;
}

/*
 * The version of a name. -ENOENT, then *place = a piece that the name can have; NAME_PIECES: there
 * is none.
 */
static int find_name(struct engine *engine, struct partition *partition, const char *name,
		     uint32_t *number, uint32_t *place)
{
	*place = NAME_PIECES;
	for (uint32_t n = 0; n < NAME_PIECES; n++) {
		int result = read_name(engine, partition, name, n, number);

		if (result == 0) {
			*place = n;
			return 0;
		}
		if (result == -ENOENT && *place == NAME_PIECES)
			*place = n;
		if (result != -ENOENT && result != -EAGAIN)
			return result;
	}
	return -ENOENT;
}

/* Notes the name of version `number`, which is about to be made. */
static int add_name(struct engine_txn *txn, struct partition *partition, const char *name,
		    uint32_t number)
{
	uint8_t record[2];
	uint32_t taken, place;
	int result = find_name(txn->engine, partition, name, &taken, &place);

	if (result != -ENOENT)
		return result ? result : -EEXIST;
	if (place == NAME_PIECES)
		return -EEXIST; /* eight others have its hash: as good as taken */
	put_le16(record, (uint16_t)number);
	return record_put(&txn->writer, name_key(partition, name, place), 0, record,
			  sizeof(record));
}

static int drop_name(struct engine_txn *txn, struct partition *partition, const char *name)
{
	uint32_t number, place;
	int result = find_name(txn->engine, partition, name, &number, &place);

	if (result)
		return result == -ENOENT ? 0 : result;
	return record_put(&txn->writer, name_key(partition, name, place), RECORD_TOMBSTONE, NULL,
			  0);
}

/* ---- numbers ---- */

/* The first and the last number of a partition's versions, or of the device's. */
static void range_of(const struct partition *partition, uint32_t *first, uint32_t *last)
{
	bool of_device = partition->index == RECORD_ROOT_INDEX;

	*first = of_device ? ENGINE_DEVICE_VERSION_FIRST : 1;
	*last = of_device ? ENGINE_DEVICE_VERSION_LAST : ENGINE_PARTITION_VERSION_LAST;
}

/*
 * The first number from `from` on, and then from the beginning, that no kept version has; there is
 * one.
 */
static int search_free(const struct idset *versions, uint32_t first, uint32_t last, uint32_t from,
		       uint32_t *number)
{
	uint8_t taken[(UINT16_MAX + 1) / 8] = { 0 }; /* a bit for each number */
	struct idset_walk walk = idset_walk_from(versions, 0);
	uint32_t count = last - first + 1;
	uint64_t element;
	int found;

	while ((found = idset_walk(&walk, &element)) > 0)
		taken[(uint16_t)element / 8] |= (uint8_t)(1 << (uint16_t)element % 8);
	if (found)
		return found;
	for (uint32_t tried = 0; tried < count; tried++) {
		uint32_t next = first + (from - first + tried) % count;

		if (!(taken[next / 8] >> next % 8 & 1)) {
			*number = next;
			return 0;
		}
	}
	/* The set has fewer elements than there are numbers, so it is damaged. */
	return -EBADMSG;
}

/*
 * Chooses the number of a new version: the one behind the last given, so that the number of a
 * dropped one comes again as late as possible. -EFBIG: kept versions have all of them.
 */
static int choose_number(struct engine *engine, struct partition *partition, uint32_t *number)
{
	struct idset versions = history_versions(engine, partition);
	struct version_record record;
	uint32_t first, last, next = partition->history->next_version;
	int result;

	range_of(partition, &first, &last);
	if (versions.header->count > last - first)
		return -EFBIG;
	*number = next > last ? first : next;
	result = version_read(engine, partition, *number, &record);
	if (result == -ENOENT)
		return 0;
	return result ? result : search_free(&versions, first, last, *number, number);
}

/* ---- snapshots ---- */

/* What was put in a partition, or on the whole device, since its last version. */
static uint64_t bytes_since(const struct engine *engine, const struct partition *partition)
{
	if (partition->index != RECORD_ROOT_INDEX)
		return written_since(engine, partition);
	/* A crash may have taken some of the count back. */
	return engine->put_bytes -
	       min_u64(engine->put_bytes, partition->history->device.last_version_bytes);
}

/* Makes a version. The transaction is the first of its slot and has changed nothing. */
static int make_version(struct engine_txn *txn, struct partition *partition, const char *name,
			uint32_t *made)
{
	struct history *history = partition->history;
	struct idset versions = history_versions(txn->engine, partition);
	struct version_record record = {
		.sequence = slot_end(txn->engine->committed),
		.time_ms = txn->time_ms,
		.written_bytes = bytes_since(txn->engine, partition),
	};
	uint32_t number, first, last;
	int result = choose_number(txn->engine, partition, &number);

	if (!result)
		result = partitions_limit_dirty(txn);
	if (partition->index != RECORD_ROOT_INDEX) {
		record.used_bytes = partition->used_bytes;
		record.objects = partition->sets[PARTITION_USER_OBJECTS].count;
	}
	if (name)
		strncpy(record.name, name, ENGINE_VERSION_NAME_MAX);
	if (!result && name)
		result = add_name(txn, partition, name, number);
	if (!result)
		result = put_version(txn, partition, number, &record);
	if (!result)
		result = idset_insert(&versions, &txn->writer,
				      history_element(record.sequence, number));
	if (result)
		return result;
	if (made)
		*made = number;
	range_of(partition, &first, &last);
	history->next_version = number == last ? first : number + 1;
	if (partition->index == RECORD_ROOT_INDEX) {
		history->device.last_version_bytes = txn->engine->put_bytes;
	} else {
		written_restart(txn->engine, partition);
		partition->version = (uint16_t)history->next_version;
	}
	txn->is_moment = true;
	partition_mark_history(txn, partition);
	return 0;
}

/* In the slot that a snapshot has for itself. */
static int keep_partition(struct engine_txn *txn, uint64_t id, const char *name, uint32_t *version)
{
	struct partition *partition;
	int result = partition_get(txn->engine, id, &partition);

	if (result)
		return result;
	result = partition_is_read_only(partition) ? -EROFS
						   : make_version(txn, partition, name, version);
	partition_release(txn->engine, partition);
	return result;
}

static int begin_snapshot(struct engine_txn *txn, const char *name)
{
	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if (name && (*name == '\0' || strlen(name) > ENGINE_VERSION_NAME_MAX))
		return -EINVAL;
	return txn_begin_slot(txn, SLOT_KEEP);
}

int engine_snapshot(struct engine_txn *txn, uint64_t id, const char *name, uint32_t *version)
{
	int result = begin_snapshot(txn, name);

	return result ? result : keep_partition(txn, id, name, version);
}

static bool is_group(const uint64_t *ids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ids[i] == 0)
			return false;
		for (size_t j = 0; j < i; j++)
			if (ids[i] == ids[j])
				return false;
	}
	return true;
}

/* What one puts for its version is in no partition, so the others are still as they were. */
int engine_snapshot_group(struct engine_txn *txn, const uint64_t *ids, size_t count,
			  const char *name, uint32_t *versions)
{
	int result = is_group(ids, count) ? begin_snapshot(txn, name) : -EINVAL;

	for (size_t i = 0; !result && i < count; i++)
		result = keep_partition(txn, ids[i], name, &versions[i]);
	return result;
}

/* ---- listing ---- */

/* The first element of a scope's set of versions from `from` on; UINT64_MAX: there is none. */
static int next_element(struct engine *engine, struct partition *partition, uint64_t from,
			uint64_t *element)
{
	struct idset versions = history_versions(engine, partition);
	int result = idset_next(&versions, from, element);

	if (result == -ENOENT)
		*element = UINT64_MAX;
	return result == -ENOENT ? 0 : result;
}

static int describe(struct engine *engine, struct partition *partition, uint64_t element,
		    struct engine_version *version)
{
	struct version_record record;
	int result = version_read(engine, partition, (uint16_t)element, &record);

	if (result)
		return result == -ENOENT ? -EBADMSG : result;
	*version = (struct engine_version){
		.version = (uint16_t)element,
		.position = element,
		.sequence = record.sequence,
		.time_ms = record.time_ms,
		.used_bytes = record.used_bytes,
		.objects = record.objects,
		.written_bytes = record.written_bytes,
	};
	memcpy(version->name, record.name, sizeof(version->name));
	return 0;
}

/*
 * Of the versions of the device from element `*of_device` on, the first one at which a partition
 * was there.
 */
static int skip_missed(struct engine *engine, struct partition *root,
		       const struct partition *partition, uint64_t *of_device)
{
	int result = 0;

	while (!result && *of_device != UINT64_MAX) {
		uint64_t bound = *of_device >> 16;

		result = history_was_there(engine, partition, bound);
		if (result != -ENOENT)
			return result;
		result = next_element(engine, root,
				      history_element(hidden_next_of(&engine->past->hidden,
								     RECORD_ROOT_INDEX, 0, bound),
						      0),
				      of_device);
	}
	return result;
}

/* The next version of a partition, its own or the device's, whichever is older. */
static int next_version(struct engine *engine, struct partition *root, struct partition *partition,
			uint64_t from, struct engine_version *version)
{
	/* Versions of the device that are older than the partition are none of it. */
	uint64_t of_device, own = UINT64_MAX,
			    since = history_element(partition->created_sequence, 0);
	int result = next_element(engine, root, max_u64(from, since), &of_device);

	if (!result && partition != root)
		result = next_element(engine, partition, from, &own);
	if (!result && of_device < own)
		result = skip_missed(engine, root, partition, &of_device);
	if (result)
		return result;
	if (own == UINT64_MAX && of_device == UINT64_MAX)
		return -ENOENT;
	return own < of_device ? describe(engine, partition, own, version)
			       : describe(engine, root, of_device, version);
}

int engine_version_next(struct engine_txn *txn, uint64_t id, uint64_t from,
			struct engine_version *version)
{
	struct partition_pair pair;
	int result = partition_get_pair(txn->engine, id, &pair);

	if (result)
		return result;
	result = next_version(txn->engine, pair.root, pair.partition, from, version);
	partition_release_pair(txn->engine, &pair);
	return result;
}

int engine_version_next_own(struct engine_txn *txn, uint64_t id, uint64_t from,
			    struct engine_version *version)
{
	struct partition_pair pair;
	uint64_t own = UINT64_MAX;
	int result = partition_get_pair(txn->engine, id, &pair);

	if (result)
		return result;
	result = next_element(txn->engine, pair.partition, from, &own);
	if (!result && own == UINT64_MAX)
		result = -ENOENT;
	if (!result)
		result = describe(txn->engine, pair.partition, own, version);
	partition_release_pair(txn->engine, &pair);
	return result;
}

int engine_version_find(struct engine_txn *txn, uint64_t id, const char *name, uint32_t *version)
{
	struct engine *engine = txn->engine;
	struct partition_pair pair;
	uint32_t place;
	int result = partition_get_pair(engine, id, &pair);

	if (result)
		return result;
	result = find_name(engine, pair.partition, name, version, &place);
	if (result == -ENOENT && pair.partition != pair.root)
		result = find_name(engine, pair.root, name, version, &place);
	partition_release_pair(engine, &pair);
	return result;
}

int versions_before(struct engine *engine, struct partition *partition, uint64_t sequence,
		    uint64_t *count)
{
	struct idset versions = history_versions(engine, partition);
	uint64_t behind;
	int result = idset_count(&versions, history_element(sequence, 0), &behind);

	*count = versions.header->count - behind;
	return result;
}

/*
 * Between two rollbacks of the device a partition can go, but not come back. Finds the number from
 * which on versions do not have it, between `first` and the next rollback at `next`.
 */
static int find_gap(struct engine *engine, const struct partition *partition,
		    const struct idset *versions, uint64_t first, uint64_t next, uint64_t *gap)
{
	*gap = next;
	while (first < *gap) {
		uint64_t middle = first + (*gap - first) / 2, bound;
		int result = history_next_kept(versions, middle, &bound, NULL);

		if (!result && bound < *gap)
			result = history_was_there(engine, partition, bound);
		if (result && result != -ENOENT)
			return result;
		if (!result && bound < *gap)
			first = bound + 1;
		else
			*gap = middle;
	}
	return 0;
}

int versions_missed(struct engine *engine, struct partition *root,
		    const struct partition *partition, uint64_t *missed)
{
	struct idset versions = history_versions(engine, root);
	uint64_t first = partition->created_sequence, next;
	int result = 0;

	*missed = 0;
	/* Since the last rollback it has been there, or it would not be now. */
	for (; !result; first = next) {
		uint64_t gap, of_gap = 0, behind = 0;

		next = hidden_next_of(&engine->past->hidden, RECORD_ROOT_INDEX, 0, first);
		if (next == RECORD_NEWEST)
			break;
		result = find_gap(engine, partition, &versions, first, next, &gap);
		if (!result)
			result = idset_count(&versions, history_element(gap, 0), &of_gap);
		if (!result)
			result = idset_count(&versions, history_element(next, 0), &behind);
		*missed += of_gap - behind;
	}
	return result;
}

/* ---- dropping ---- */

/* A version goes: the next one, or the one to come, counts what was written for it. */
static int hand_over(struct engine_txn *txn, struct partition *partition, uint64_t bound,
		     uint64_t written_bytes)
{
	struct idset versions = history_versions(txn->engine, partition);
	struct version_record next;
	uint32_t number;
	int result = history_next_kept(&versions, bound, &bound, &number);

	if (result)
		return result;
	if (bound == RECORD_NEWEST) {
		struct device_history *device = &partition->history->device;

		if (partition->index != RECORD_ROOT_INDEX)
			partition->history->written_bytes += written_bytes;
		else
			device->last_version_bytes -=
				min_u64(device->last_version_bytes, written_bytes);
		return 0;
	}
	result = version_read(txn->engine, partition, number, &next);
	if (result)
		return result;
	next.written_bytes += written_bytes;
	return put_version(txn, partition, number, &next);
}

static int drop_version(struct engine_txn *txn, struct partition *partition, uint32_t number)
{
	struct engine *engine = txn->engine;
	struct idset versions = history_versions(engine, partition);
	struct version_record record;
	int result = version_read(engine, partition, number, &record);

	if (!result)
		result = partitions_limit_dirty(txn);
	if (!result)
		result = standing_release(txn, partition, record.sequence);
	if (!result)
		result = idset_remove(&versions, &txn->writer,
				      history_element(record.sequence, number));
	if (result)
		return result;
	txn->changed = txn->forgets_states = true;
	partition_mark_history(txn, partition);
	if (record.name[0])
		result = drop_name(txn, partition, record.name);
	if (!result)
		result = record_put(&txn->writer, key_of_version(partition->index, number),
				    RECORD_TOMBSTONE, NULL, 0);
	return result ? result : hand_over(txn, partition, record.sequence, record.written_bytes);
}

int engine_version_drop(struct engine_txn *txn, uint64_t id, uint32_t version)
{
	struct engine *engine = txn->engine;
	struct partition *partition;
	int result;

	if (txn->mode == ENGINE_READ)
		return -EROFS;
	if ((id == 0) != version_is_of_device(version))
		return id && version_is_of_device(version) ? -EINVAL : -ENOENT;
	result = partition_get(engine, id, &partition);
	if (result)
		return result;
	txn_raise_room(txn, RECORD_ROOM_RESCUE);
	if (id == 0)
		result = locks_check_all(txn);
	else if (locks_hold(txn, partition->history))
		result = -EPERM;
	if (!result)
		result = drop_version(txn, partition, version);
	partition_release(engine, partition);
	return result;
}
