/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The record about history, and what it says about which moments can be reached. */
#include "engine/history.h"

#include <assert.h>

#include "common/bytes.h"
#include "engine/locks.h"
#include "engine/objects.h"
#include "engine/times.h"

enum { PARTICULAR = 1 << 0, REMOVED = 1 << 1 };

static_assert(HISTORY_BYTES == 68 + 2 * IDSET_HEADER_BYTES, "the parts add up");

struct history history_new(uint16_t index, uint64_t created_sequence)
{
	return (struct history){
		.created_sequence = created_sequence,
		.valid_sequence = created_sequence,
		.next_version = index == RECORD_ROOT_INDEX ? ENGINE_DEVICE_VERSION_FIRST : 1,
	};
}

/* ---- the record ---- */

uint32_t history_encode(const struct history *history, uint16_t index, uint8_t *to)
{
	const struct device_history *device = &history->device;
	const struct engine_retention *retention = &history->retention;

	to[0] = HISTORY_FORMAT;
	to[1] = (history->particular ? PARTICULAR : 0) | (history->removed ? REMOVED : 0);
	put_le16(to + 2, (uint16_t)history->next_version);
	to[4] = (uint8_t)retention->kind;
	to[5] = 0;
	put_le48(to + 6, history->created_sequence);
	put_le64(to + 12, retention->keep_all_ms);
	put_le64(to + 20, retention->keep_interval_ms);
	put_le64(to + 28, retention->keep_interval_for_ms);
	put_le64(to + 36, retention->locked_until_ms);
	put_le48(to + 44, history->floor);
	put_le16(to + 50, 0);
	idset_header_encode(&history->versions, to + 52);
	idset_header_encode(&history->clones, to + 52 + IDSET_HEADER_BYTES);
	put_le64(to + 148,
		 index == RECORD_ROOT_INDEX ? device->last_version_bytes : history->written_bytes);
	put_le64(to + 156, history->valid_sequence);
	if (index != RECORD_ROOT_INDEX)
		return HISTORY_BYTES;
	put_le48(to + 164, device->reclaimed);
	put_le48(to + 170, device->all_floor);
	put_le48(to + 176, device->judged_ms);
	put_le48(to + 182, device->lossy_removed);
	put_le64(to + 188, device->locked_until_ms);
	put_le32(to + 196, device->rollbacks);
	put_le32(to + 200, device->lossy);
	put_le32(to + 204, device->particular);
	put_le32(to + 208, device->clones);
	put_le32(to + 212, device->times);
	put_le32(to + 216, device->times_first);
	put_le48(to + 220, device->slot_sequence);
	put_le48(to + 226, device->slot_ms);
	put_le64(to + 232, device->slot_bytes);
	put_le64(to + 240, device->inherited_floor);
	put_le32(to + 248, device->slot_interval_ms);
	put_le32(to + 252, device->losing);
	put_le32(to + 256, device->object_rollbacks);
	return HISTORY_DEVICE_BYTES;
}

static void decode_device(struct device_history *device, const uint8_t *from)
{
	*device = (struct device_history){
		.last_version_bytes = get_le64(from + 148),
		.slot_tells = from[0] != HISTORY_FORMAT_OLD,
		.reclaimed = get_le48(from + 164),
		.all_floor = get_le48(from + 170),
		.judged_ms = get_le48(from + 176),
		.lossy_removed = get_le48(from + 182),
		.locked_until_ms = get_le64(from + 188),
		.rollbacks = get_le32(from + 196),
		.lossy = get_le32(from + 200),
		.particular = get_le32(from + 204),
		.clones = get_le32(from + 208),
		.times = get_le32(from + 212),
		.times_first = get_le32(from + 216),
		.slot_sequence = get_le48(from + 220),
		.slot_ms = get_le48(from + 226),
		.slot_bytes = get_le64(from + 232),
		.inherited_floor = get_le64(from + 240),
		.slot_interval_ms = get_le32(from + 248),
		.losing = get_le32(from + (from[0] >= HISTORY_FORMAT_3 ? 252 : 200)),
		.object_rollbacks = from[0] >= HISTORY_FORMAT ? get_le32(from + 256) : 0,
	};
}

static uint32_t length_of(uint16_t index, uint8_t format)
{
	if (index != RECORD_ROOT_INDEX)
		return HISTORY_BYTES;
	return format < HISTORY_FORMAT ? HISTORY_DEVICE_BYTES_OLD : HISTORY_DEVICE_BYTES;
}

int history_decode(struct history *history, uint16_t index, const uint8_t *from, uint32_t length)
{
	bool of_root = index == RECORD_ROOT_INDEX;
	uint32_t first = of_root ? ENGINE_DEVICE_VERSION_FIRST : 1;
	uint32_t last = of_root ? ENGINE_DEVICE_VERSION_LAST : ENGINE_PARTITION_VERSION_LAST;
	int result;

	if (length < 1 || from[0] < HISTORY_FORMAT_OLD || from[0] > HISTORY_FORMAT ||
	    length != length_of(index, from[0]) || from[1] & ~(PARTICULAR | REMOVED) ||
	    from[4] > ENGINE_RETAIN_NONE || from[5] != 0 || get_le16(from + 50) != 0)
		return -EBADMSG;
	*history = (struct history){
		.created_sequence = get_le48(from + 6),
		.next_version = get_le16(from + 2),
		.particular = from[1] & PARTICULAR,
		.removed = from[1] & REMOVED,
		.retention = {
			.kind = (enum engine_retention_kind)from[4],
			.keep_all_ms = get_le64(from + 12),
			.keep_interval_ms = get_le64(from + 20),
			.keep_interval_for_ms = get_le64(from + 28),
			.locked_until_ms = get_le64(from + 36),
		},
		.floor = get_le48(from + 44),
		/* Format 1 has something else there: what had been put on the whole device. */
		.written_bytes = from[0] != HISTORY_FORMAT_OLD && !of_root ? get_le64(from + 148)
									    : 0,
		.valid_sequence = get_le64(from + 156),
	};
	if (history->next_version < first || history->next_version > last + 1)
		return -EBADMSG;
	if (of_root)
		decode_device(&history->device, from);
	if (history->device.rollbacks > ENGINE_ROLLBACKS_MAX ||
	    history->device.object_rollbacks > ENGINE_ROLLBACKS_MAX ||
	    history->device.losing > history->device.lossy ||
	    history->device.times_first > history->device.times)
		return -EBADMSG;
	result = idset_header_decode(&history->versions, from + 52);
	return result ? result
		      : idset_header_decode(&history->clones, from + 52 + IDSET_HEADER_BYTES);
}

static struct record_key history_key(uint16_t index)
{
	return (struct record_key){ .identifier = RECORD_ID_HISTORY, .partition = index };
}

/* The same as history_read; *put = the number with which it was put, 0: nothing is recorded. */
static int read_record(struct record_store *store, uint16_t index, struct history *history,
		       uint64_t *put)
{
	uint8_t record[HISTORY_DEVICE_BYTES];
	struct record_info info;
	int result =
		record_get(store, history_key(index), RECORD_NEWEST, record, sizeof(record), &info);

	*put = result ? 0 : info.sequence;
	if (!result)
		return history_decode(history, index, record, info.length);
	*history = history_new(index, 0);
	return result == -ENOENT ? 0 : result;
}

int history_read(struct record_store *store, uint16_t index, struct history *history)
{
	uint64_t put;

	return read_record(store, index, history, &put);
}

/*
 * *gone becomes true if a partition had been removed at `bound`, which the device went back to. Only its removal says so: its state
 * of then may not be kept, that of a partition which stayed.
 */
static int was_removed(struct engine *engine, uint16_t index, uint64_t created_sequence,
		       uint64_t bound, bool *gone)
{
	struct partition state;
	uint64_t since;
	int result = partition_found_at(engine->store, index, bound, &state, &since);

	if (!result && since > created_sequence)
		*gone = !state.id || state.created_sequence != created_sequence;
	return result;
}

/*
 * *vanished = the last rollback of the device since which a partition was not there: it had been made behind the moment that the
 * device went back to, or had been removed at that moment. The latter is looked for only behind `put`, when it was there.
 */
static int find_vanished(struct engine *engine, uint16_t index, uint64_t created_sequence,
			 uint64_t put, uint64_t *vanished)
{
	const struct timeline *timeline = &engine->timeline;
	uint32_t count, first = timeline_of(timeline, RECORD_ROOT_INDEX, &count);
	uint64_t there_at = 0;

	*vanished = timeline_vanished(timeline, created_sequence);
	while (count-- > 0) {
		const struct rollback *rollback = &timeline->list[first + count];
		bool gone = false;
		int result;

		if (rollback->at <= max_u64(*vanished, put))
			return 0;
		/* It often goes back to the same moment again. */
		if (rollback->to < created_sequence || rollback->to == there_at)
			continue;
		result = was_removed(engine, index, created_sequence, rollback->to, &gone);
		if (result)
			return result;
		if (gone)
			*vanished = rollback->at;
		there_at = rollback->to;
	}
	return 0;
}

int history_load(struct engine *engine, uint16_t index, uint64_t created_sequence,
		 struct history *history)
{
	uint64_t vanished = 0, put;
	struct history found;
	int result = read_record(engine->store, index, &found, &put);

	*history = found;
	if (result || index == RECORD_ROOT_INDEX)
		return result;
	if (found.created_sequence == created_sequence)
		result = find_vanished(engine, index, created_sequence, put, &vanished);
	else
		vanished = timeline_vanished(&engine->timeline, created_sequence);
	if (result ||
	    (found.created_sequence == created_sequence && found.valid_sequence >= vanished))
		return result;
	/*
	 * While it was gone nobody looked after what it had kept. What is recorded from now on is valid again. But clones
	 * stand on an index, whoever has it: on an earlier or a later owner, or on this one.
	 */
	*history = history_new(index, created_sequence);
	history->valid_sequence = max_u64(created_sequence, vanished);
	history->floor = vanished;
	history->clones = found.clones;
	history->versions.generation = found.versions.generation;
	return 0;
}

int history_put(const struct record_writer *writer, uint16_t index, uint16_t version,
		const struct history *history)
{
	uint8_t record[HISTORY_DEVICE_BYTES];
	uint32_t length = history_encode(history, index, record);

	return record_put(writer, history_key(index), version, RECORD_ABSORB, record, length);
}

/* ---- sets ---- */

static struct idset set_of(struct engine *engine, struct partition *partition,
			   struct idset_header *header, uint64_t identifier)
{
	return (struct idset){
		.store = engine->store,
		.nodes = &engine->nodes,
		.header = header,
		.identifier = identifier,
		.bound = RECORD_NEWEST,
		.partition = partition->index,
		.version = partition->version,
	};
}

struct idset history_versions(struct engine *engine, struct partition *partition)
{
	return set_of(engine, partition, &partition->history.versions, RECORD_ID_VERSION_SET);
}

struct idset history_clones(struct engine *engine, struct partition *partition)
{
	return set_of(engine, partition, &partition->history.clones, RECORD_ID_CLONE_SET);
}

int history_next_kept(const struct idset *set, uint64_t sequence, uint64_t *bound, uint32_t *number)
{
	uint64_t element = 0, next;
	size_t count = 0;
	bool more;
	int result =
		idset_list(set, history_element(sequence, 0), &element, 1, &count, &more, &next);

	if (result)
		return result;
	*bound = count ? element >> 16 : RECORD_NEWEST;
	if (number)
		*number = count ? (uint16_t)element : 0;
	return 0;
}

/* ---- what can be reached ---- */

const struct engine_retention *history_policy(const struct history *history,
					      const struct history *device)
{
	return history->particular ? &history->retention : &device->retention;
}

bool history_keeps_nothing(const struct engine_retention *policy)
{
	return policy->kind == ENGINE_RETAIN_NONE && !policy->keep_all_ms;
}

int history_horizon(struct engine *engine, const struct history *history,
		    const struct history *device, uint64_t created_sequence, uint64_t *horizon)
{
	const struct engine_retention *policy = history_policy(history, device);
	uint64_t floor = max_u64(history->floor, device->device.all_floor);
	uint64_t judged = device->device.judged_ms, certain = 0;
	uint64_t limit = locks_keep_all(policy, judged)       ? 0
			 : policy->kind == ENGINE_RETAIN_NONE ? engine->committed
							      : device->device.reclaimed;
	int result = 0;

	if (limit && policy->keep_all_ms) {
		if (judged > policy->keep_all_ms)
			result = times_boundary(engine, device, judged - policy->keep_all_ms,
						&certain);
		limit = min_u64(limit, certain);
	}
	if (!history->particular)
		floor = max_u64(floor, device->device.inherited_floor);
	/* What is said of the whole device holds as far as it does for every partition. */
	if (history == device) {
		limit = max_u64(limit, device->device.lossy_removed);
		/* Those that give up for room have all that is newer than this, whatever else they keep. */
		if (device->device.lossy)
			limit = max_u64(limit, device->device.reclaimed);
		if (device->device.losing)
			limit = engine->committed;
	}
	*horizon = max_u64(max_u64(limit, created_sequence), floor);
	return result;
}

uint64_t history_interval_before(const struct engine_retention *policy, uint64_t now_ms,
				 uint64_t ms)
{
	uint64_t interval = policy->keep_interval_ms;
	uint64_t kept = interval ? ms / interval * interval : 0;

	if (policy->keep_interval_for_ms < now_ms && kept < now_ms - policy->keep_interval_for_ms)
		return 0;
	return kept;
}

uint64_t history_intervals_since(const struct history *history, const struct history *device,
				 uint64_t created_sequence)
{
	uint64_t floor = max_u64(history->floor, device->device.all_floor);

	if (!history->particular)
		floor = max_u64(floor, device->device.inherited_floor);
	if (history != device)
		return max_u64(floor, created_sequence);
	/* The moments of the device are those that all partitions keep. */
	return device->device.lossy ? RECORD_NEWEST : max_u64(floor, device->device.lossy_removed);
}

int history_lower_by_interval(struct engine *engine, const struct history *history,
			      const struct history *device, uint64_t created_sequence,
			      uint64_t sequence, uint64_t *lowest)
{
	const struct engine_retention *policy = history_policy(history, device);
	uint64_t interval = policy->keep_interval_ms, judged = device->device.judged_ms;
	uint64_t ms = 0, last_ms, bound = 0;
	int result;

	sequence = max_u64(sequence, history_intervals_since(history, device, created_sequence));
	if (!interval || sequence >= *lowest)
		return 0;
	/* From when on the slot of `sequence` is over. */
	result = times_of_boundary(engine, device, slot_end(sequence), &ms, &last_ms);
	if (result && result != -ENOENT)
		return result;
	if (judged > policy->keep_interval_for_ms)
		ms = max_u64(ms, judged - policy->keep_interval_for_ms);
	ms = (ms + interval - 1) / interval * interval;
	result = times_boundary(engine, device, ms, &bound);
	if (!result && bound >= sequence && bound < *lowest)
		*lowest = bound;
	return result;
}

/* Whether a policy with intervals keeps just this bound. */
static int kept_by_interval(struct engine *engine, const struct history *history,
			    const struct history *device, uint64_t bound)
{
	const struct engine_retention *policy = history_policy(history, device);
	uint64_t ms, next_ms, kept, found;
	int result;

	if (!policy->keep_interval_ms)
		return -ENOENT;
	/* The bound ends a slot: the interval's moment lies between that and the next slot. */
	result = times_of_boundary(engine, device, bound, &ms, &next_ms);
	if (result)
		return result;
	kept = history_interval_before(policy, device->device.judged_ms, next_ms);
	if (!kept || kept < ms)
		return -ENOENT;
	result = times_boundary(engine, device, kept, &found);
	return result ? result : found == bound ? 0 : -ENOENT;
}

/* Whether a version of the set ends at `bound`. */
static int kept_by_version(struct engine *engine, struct partition *partition, uint64_t bound)
{
	struct idset versions = history_versions(engine, partition);
	uint64_t found;
	int result = history_next_kept(&versions, bound, &found, NULL);

	return result ? result : found == bound ? 0 : -ENOENT;
}

/*
 * Whether a clone stands, or is still to be seen standing, on `bound` of a partition. Its set is the index's: it may be of one
 * that had it before a rollback of the device.
 */
static int kept_by_clone(struct engine *engine, struct partition *partition, uint64_t bound)
{
	struct idset clones = history_clones(engine, partition);
	struct partition then;
	uint64_t found = 0;
	int result = history_next_kept(&clones, bound, &found, NULL);

	if (!result && found != bound)
		result = -ENOENT;
	if (!result)
		result = partition_state_of(engine->store, partition->index, bound, &then);
	if (!result && then.created_sequence != partition->created_sequence)
		result = -ENOENT;
	return result;
}

int history_keeps(struct engine *engine, struct partition *partition, uint64_t bound)
{
	struct partition *root;
	int result;

	if (bound < partition->created_sequence)
		return -ENOENT;
	result = kept_by_version(engine, partition, bound);
	if (result != -ENOENT || partition->index == RECORD_ROOT_INDEX)
		return result;
	result = partition_get(engine, 0, &root);
	if (result)
		return result;
	result = kept_by_version(engine, root, bound);
	partition_release(engine, root);
	return result == -ENOENT ? kept_by_clone(engine, partition, bound) : result;
}

int history_reaches(struct engine *engine, struct partition *partition, uint64_t bound)
{
	struct partition *root;
	uint64_t horizon;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	result = history_horizon(engine, &partition->history, &root->history,
				 partition->created_sequence, &horizon);
	if (!result && bound < horizon) {
		result = history_keeps(engine, partition, bound);
		if (result == -ENOENT &&
		    bound >= history_intervals_since(&partition->history, &root->history,
						     partition->created_sequence))
			result = kept_by_interval(engine, &partition->history, &root->history,
						  bound);
	}
	partition_release(engine, root);
	return result;
}

/* ---- what shows a moment ---- */

int history_set_shows(const struct idset *set, uint64_t from, uint64_t to, bool *shows)
{
	uint64_t bound;
	int result = history_next_kept(set, from, &bound, NULL);

	*shows |= !result && bound != RECORD_NEWEST && bound <= to;
	return result;
}

int history_shows(struct engine *engine, struct partition *partition, uint64_t from, uint64_t to,
		  bool *shows)
{
	struct idset versions = history_versions(engine, partition);
	uint64_t horizon, bound = RECORD_NEWEST;
	struct partition *root;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	result = history_horizon(engine, &partition->history, &root->history,
				 partition->created_sequence, &horizon);
	*shows |= !result && horizon <= to;
	if (!result && !*shows)
		result = history_set_shows(&versions, from, to, shows);
	if (!result && !*shows)
		result = history_lower_by_interval(engine, &partition->history, &root->history,
						   partition->created_sequence, from, &bound);
	*shows |= bound <= to;
	partition_release(engine, root);
	return result;
}
