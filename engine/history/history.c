/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The record about history, and what it says about which moments can be reached. */
#include "engine/history/history.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/locks.h"
#include "engine/history/times.h"

enum { PARTICULAR = 1 << 0, IS_CLONE = 1 << 1 };

static_assert(HISTORY_BYTES == 72 + 2 * IDSET_HEADER_BYTES, "the parts add up");

struct history history_new(uint16_t index, uint64_t created_sequence)
{
	return (struct history){
		.created_sequence = created_sequence,
		.next_version = index == RECORD_ROOT_INDEX ? ENGINE_DEVICE_VERSION_FIRST : 1,
	};
}

/* ---- the record ---- */

uint32_t history_encode(const struct history *history, uint16_t index, uint8_t *to)
{
	const struct device_history *device = &history->device;
	const struct engine_retention *retention = &history->retention;

	to[0] = HISTORY_FORMAT;
	to[1] = (history->particular ? PARTICULAR : 0) | (history->is_clone ? IS_CLONE : 0);
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
	put_le48(to + 156, history->left_from);
	put_le48(to + 162, history->left_until);
	if (index != RECORD_ROOT_INDEX)
		return HISTORY_BYTES;
	put_le48(to + 168, device->reclaimed);
	put_le48(to + 174, device->judged_ms);
	put_le48(to + 180, device->inherited_floor);
	put_le48(to + 186, device->lossy_removed);
	put_le64(to + 192, device->locked_until_ms);
	put_le32(to + 200, device->hidden_chunks);
	put_le32(to + 204, device->lossy);
	put_le32(to + 208, device->particular);
	put_le32(to + 212, device->clones);
	put_le32(to + 216, device->times);
	put_le32(to + 220, device->times_first);
	put_le48(to + 224, device->slot_sequence);
	put_le48(to + 230, device->slot_ms);
	put_le64(to + 236, device->slot_bytes);
	put_le48(to + 244, device->time_epoch_sequence);
	put_le48(to + 250, device->time_epoch_ms);
	put_le48(to + 256, device->intervals_floor);
	put_le48(to + 262, device->left_since);
	put_le48(to + 268, device->passed_ms);
	put_le48(to + 274, device->reclaimed_ms);
	put_le48(to + 280, device->spared_ms);
	put_le48(to + 286, 0);
	return HISTORY_DEVICE_BYTES;
}

static int decode_device(struct device_history *device, const uint8_t *from)
{
	*device = (struct device_history){
		.last_version_bytes = get_le64(from + 148),
		.reclaimed = get_le48(from + 168),
		.judged_ms = get_le48(from + 174),
		.inherited_floor = get_le48(from + 180),
		.lossy_removed = get_le48(from + 186),
		.locked_until_ms = get_le64(from + 192),
		.hidden_chunks = get_le32(from + 200),
		.lossy = get_le32(from + 204),
		.particular = get_le32(from + 208),
		.clones = get_le32(from + 212),
		.times = get_le32(from + 216),
		.times_first = get_le32(from + 220),
		.slot_sequence = get_le48(from + 224),
		.slot_ms = get_le48(from + 230),
		.slot_bytes = get_le64(from + 236),
		.time_epoch_sequence = get_le48(from + 244),
		.time_epoch_ms = get_le48(from + 250),
		.intervals_floor = get_le48(from + 256),
		.left_since = get_le48(from + 262),
		.passed_ms = get_le48(from + 268),
		.reclaimed_ms = get_le48(from + 274),
		.spared_ms = get_le48(from + 280),
	};
	return device->hidden_chunks > HIDDEN_CHUNKS_MAX || device->times_first > device->times
		       ? -EBADMSG
		       : 0;
}

int history_decode(struct history *history, uint16_t index, const uint8_t *from, uint32_t length)
{
	bool of_root = index == RECORD_ROOT_INDEX;
	uint32_t first = of_root ? ENGINE_DEVICE_VERSION_FIRST : 1;
	uint32_t last = of_root ? ENGINE_DEVICE_VERSION_LAST : ENGINE_PARTITION_VERSION_LAST;
	int result = 0;

	if (length < HISTORY_BYTES || from[0] != HISTORY_FORMAT ||
	    length != (of_root ? HISTORY_DEVICE_BYTES : HISTORY_BYTES) ||
	    from[1] & ~(PARTICULAR | IS_CLONE) || from[4] > ENGINE_RETAIN_NONE || from[5] != 0 ||
	    get_le16(from + 50) != 0)
		return -EBADMSG;
	*history = (struct history){
		.created_sequence = get_le48(from + 6),
		.next_version = get_le16(from + 2),
		.particular = from[1] & PARTICULAR,
		.is_clone = from[1] & IS_CLONE,
		.retention = {
			.kind = (enum engine_retention_kind)from[4],
			.keep_all_ms = get_le64(from + 12),
			.keep_interval_ms = get_le64(from + 20),
			.keep_interval_for_ms = get_le64(from + 28),
			.locked_until_ms = get_le64(from + 36),
		},
		.floor = get_le48(from + 44),
		.written_bytes = of_root ? 0 : get_le64(from + 148),
		.left_from = get_le48(from + 156),
		.left_until = get_le48(from + 162),
	};
	if (history->next_version < first || history->next_version > last + 1)
		return -EBADMSG;
	if (of_root)
		result = decode_device(&history->device, from);
	if (!result)
		result = idset_header_decode(&history->versions, from + 52);
	return result ? result
		      : idset_header_decode(&history->clones, from + 52 + IDSET_HEADER_BYTES);
}

int history_read(struct record_store *store, uint16_t index, struct history *history)
{
	uint8_t record[HISTORY_DEVICE_BYTES];
	struct record_info info;
	int result = record_get(store, key_of_history(index), RECORD_NEWEST, record, sizeof(record),
				&info);

	*history = history_new(index, 0);
	if (result)
		return result == -ENOENT ? 0 : result;
	if (info.length && record[0] != HISTORY_FORMAT)
		log_line(LOG_LEVEL_ERROR,
			 "%s: its history has format %u, and this program reads %u only: serve the "
			 "device with the program that wrote it",
			 store->device, record[0], HISTORY_FORMAT);
	return history_decode(history, index, record, info.length);
}

int history_load(struct engine *engine, uint16_t index, uint64_t created_sequence,
		 struct history *history)
{
	int result = history_read(engine->store, index, history);

	/* Only a recovery without NVRAM loses it. */
	if (!result && history->created_sequence != created_sequence)
		*history = history_new(index, created_sequence);
	return result;
}

int history_put(const struct record_writer *writer, uint16_t index, const struct history *history)
{
	uint8_t record[HISTORY_DEVICE_BYTES];
	uint32_t length = history_encode(history, index, record);

	return record_put(writer, key_of_history(index), RECORD_ABSORB, record, length);
}

/* ---- sets ---- */

static struct idset set_of(struct engine *engine, struct partition *partition,
			   struct idset_header *header, uint64_t identifier)
{
	return (struct idset){
		.store = engine->store,
		.nodes = &engine->nodes,
		.header = header,
		.first = key_of_node(partition->index, identifier, 0),
		.bound = RECORD_NEWEST,
	};
}

struct idset history_versions(struct engine *engine, struct partition *partition)
{
	return set_of(engine, partition, &partition->history->versions, RECORD_ID_VERSION_SET);
}

struct idset history_clones(struct engine *engine, struct partition *partition)
{
	return set_of(engine, partition, &partition->history->clones, RECORD_ID_CLONE_SET);
}

struct idset history_indices(struct engine *engine, struct partition *root)
{
	return history_clones(engine, root);
}

int history_next_kept(const struct idset *set, uint64_t sequence, uint64_t *bound, uint32_t *number)
{
	uint64_t element = history_element(RECORD_NEWEST, 0);
	int result = idset_next(set, history_element(sequence, 0), &element);

	if (result && result != -ENOENT)
		return result;
	*bound = element >> 16;
	if (number)
		*number = (uint16_t)element;
	return 0;
}

/* ---- what can be reached ---- */

int history_was_there(struct engine *engine, const struct partition *partition, uint64_t bound)
{
	struct partition state = { 0 };
	int result = 0;

	if (bound < partition->created_sequence)
		return -ENOENT;
	/* Nothing but a rollback of the device brings a partition back. */
	if (partition->index == RECORD_ROOT_INDEX ||
	    hidden_next_of(&engine->past->hidden, RECORD_ROOT_INDEX, 0,
			   partition->created_sequence) == RECORD_NEWEST)
		return 0;
	if (!kept_find_state(&engine->kept, partition->id, bound, &state)) {
		result = partition_state_of(engine->store, partition->index, bound, &state);
		if (!result && state.id == partition->id)
			kept_add_state(&engine->kept, bound, &state);
	}
	if (result)
		return result;
	return state.created_sequence == partition->created_sequence ? 0 : -ENOENT;
}

const struct engine_retention *history_policy(const struct engine *engine,
					      const struct history *history)
{
	return history->particular ? &history->retention : &engine->past->policy;
}

bool history_keeps_nothing(const struct engine_retention *policy)
{
	return policy->kind == ENGINE_RETAIN_NONE && !policy->keep_all_ms;
}

int history_horizon(struct engine *engine, const struct history *history,
		    const struct history *device, uint64_t *horizon)
{
	const struct engine_retention *policy = history_policy(engine, history);
	uint64_t floor = history->floor;
	uint64_t judged = device->device.judged_ms, certain = 0;
	uint64_t limit = locks_keep_all(policy, device->device.reclaimed_ms) ? 0
			 : policy->kind == ENGINE_RETAIN_NONE                ? engine->committed
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
		/*
		 * A partition whose own policy gives history up for space keeps everything from
		 * this bound on. What else it keeps does not matter to the device.
		 */
		if (device->device.lossy)
			limit = max_u64(limit, device->device.reclaimed);
	}
	*horizon = max_u64(max_u64(limit, history->created_sequence), floor);
	return result;
}

/* Whether `bound` is not before the horizon: 0 or -ENOENT. */
static int is_since_horizon(struct engine *engine, const struct history *history,
			    const struct history *device, uint64_t bound)
{
	uint64_t horizon;
	int result = history_horizon(engine, history, device, &horizon);

	if (result)
		return result;
	return bound < horizon ? -ENOENT : 0;
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

uint64_t history_intervals_since(const struct history *history, const struct history *device)
{
	uint64_t floor = history->floor;

	if (!history->particular)
		floor = max_u64(floor, device->device.inherited_floor);
	return max_u64(floor, history == device ? device->device.intervals_floor
						: history->created_sequence);
}

int history_device_oldest(struct engine *engine, const struct history *device, uint64_t *oldest)
{
	const struct engine_retention *policy = &device->retention;
	uint64_t judged = device->device.judged_ms, since, aged = 0;
	int result = history_horizon(engine, device, device, oldest);

	if (result || !policy->keep_interval_ms)
		return result;
	since = history_intervals_since(device, device);
	if (judged > policy->keep_interval_for_ms)
		result = times_boundary(engine, device, judged - policy->keep_interval_for_ms,
					&aged);
	*oldest = min_u64(*oldest, max_u64(since, aged));
	return result;
}

/*
 * The first moment of the policy's intervals >= `sequence`; RECORD_NEWEST: there is none yet. Such
 * a moment is the state at a time that is a multiple of the interval. So this goes from `sequence`
 * to the time when its slot was over, past intervals that are too old, up to the next multiple, and
 * back to a bound.
 */
static int next_interval(struct engine *engine, const struct engine_retention *policy,
			 const struct history *device, uint64_t sequence, uint64_t *found)
{
	uint64_t interval = policy->keep_interval_ms, judged = device->device.judged_ms;
	uint64_t ms = 0, last_ms, bound = 0;
	int result;

	*found = RECORD_NEWEST;
	result = times_of_boundary(engine, device, slot_end(sequence), &ms, &last_ms);
	if (result && result != -ENOENT)
		return result;
	if (judged > policy->keep_interval_for_ms)
		ms = max_u64(ms, judged - policy->keep_interval_for_ms);
	ms = (ms + interval - 1) / interval * interval;
	result = times_boundary(engine, device, ms, &bound);
	if (!result && bound >= sequence)
		*found = bound;
	return result;
}

int history_lower_by_interval(struct engine *engine, const struct history *history,
			      const struct history *device, uint64_t sequence, uint64_t *lowest)
{
	const struct engine_retention *policy = history_policy(engine, history);
	uint64_t found = RECORD_NEWEST;
	int result = 0;

	sequence = max_u64(sequence, history_intervals_since(history, device));
	if (policy->keep_interval_ms && sequence < *lowest)
		result = next_interval(engine, policy, device, sequence, &found);
	if (!result && found < *lowest)
		*lowest = found;
	return result;
}

/* Whether a policy with intervals keeps just this bound. */
static int kept_by_interval(struct engine *engine, const struct history *history,
			    const struct history *device, uint64_t bound)
{
	const struct engine_retention *policy = history_policy(engine, history);
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

/* Whether just this bound is in a set of versions or clones: 0 or -ENOENT. */
static int check_kept(struct idset set, uint64_t bound)
{
	uint64_t found = 0;
	int result = history_next_kept(&set, bound, &found, NULL);

	return result ? result : found == bound ? 0 : -ENOENT;
}

int history_keeps(struct engine *engine, struct partition *partition, uint64_t bound)
{
	struct partition *root;
	int result;

	if (bound < partition->created_sequence)
		return -ENOENT;
	result = check_kept(history_versions(engine, partition), bound);
	if (result != -ENOENT || partition->index == RECORD_ROOT_INDEX)
		return result;
	result = partition_get(engine, 0, &root);
	if (result)
		return result;
	result = check_kept(history_versions(engine, root), bound);
	partition_release(engine, root);
	return result == -ENOENT ? check_kept(history_clones(engine, partition), bound) : result;
}

int history_reaches(struct engine *engine, struct partition *partition, uint64_t bound)
{
	struct partition *root;
	int since, result = partition_get(engine, 0, &root);

	if (result)
		return result;
	since = is_since_horizon(engine, partition->history, root->history, bound);
	result = since;
	if (since == -ENOENT)
		result = history_keeps(engine, partition, bound);
	if (result == -ENOENT &&
	    bound >= history_intervals_since(partition->history, root->history))
		result = kept_by_interval(engine, partition->history, root->history, bound);
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
	uint64_t horizon = RECORD_NEWEST, bound = RECORD_NEWEST;
	struct partition *root;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	result = history_horizon(engine, partition->history, root->history, &horizon);
	*shows |= !result && horizon <= to;
	if (!result && !*shows)
		result = history_set_shows(&versions, from, to, shows);
	if (!result && !*shows)
		result = history_lower_by_interval(engine, partition->history, root->history, from,
						   &bound);
	*shows |= bound <= to;
	partition_release(engine, root);
	return result;
}
