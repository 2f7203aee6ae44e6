/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps the table of slots: which sequence number was committed when. */
#include "engine/history/times.h"

#include <stdio.h>
#include <time.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/past.h"

/* Chunks that one transaction drops. */
#define CHUNKS_FORGOTTEN_MAX 64

void times_entry_encode(const struct times_entry *entry, uint8_t *to)
{
	put_le48(to, entry->sequence);
	put_le48(to + 6, entry->ms);
	put_le48(to + 12, entry->before_sequence);
	put_le48(to + 18, entry->before_ms);
	put_le64(to + 24, entry->put_bytes);
}

void times_entry_decode(struct times_entry *entry, const uint8_t *from)
{
	*entry = (struct times_entry){
		.sequence = get_le48(from),
		.ms = get_le48(from + 6),
		.before_sequence = get_le48(from + 12),
		.before_ms = get_le48(from + 18),
		.put_bytes = get_le64(from + 24),
	};
}

/* ---- looking up ---- */

/* A walk over the table that remembers the chunk it read last. */
struct times_reader {
	struct engine *engine;
	const struct device_history *device;
	uint32_t chunk; /* + 1; 0: none read */
	uint32_t length;
	bool of_any_time_epoch; /* entries are as they were recorded */
	uint8_t record[TIMES_CHUNK_ENTRIES * TIMES_ENTRY_BYTES];
};

/* Earlier times become the beginning of the time epoch, so that the times of the table rise. */
static void take_into_time_epoch(const struct device_history *device, struct times_entry *entry)
{
	if (entry->sequence < device->time_epoch_sequence)
		entry->ms = device->time_epoch_ms;
	if (entry->before_sequence < device->time_epoch_sequence)
		entry->before_ms = device->time_epoch_ms;
}

static int read_entry(struct times_reader *reader, uint32_t index, struct times_entry *entry)
{
	uint32_t chunk = index / TIMES_CHUNK_ENTRIES;
	uint32_t at = index % TIMES_CHUNK_ENTRIES * TIMES_ENTRY_BYTES;

	if (reader->chunk != chunk + 1) {
		struct record_info info;
		int result = record_get(reader->engine->store, key_of_table(RECORD_ID_TIMES, chunk),
					RECORD_NEWEST, reader->record, sizeof(reader->record),
					&info);

		if (result)
			return result == -ENOENT ? -EBADMSG : result;
		reader->chunk = chunk + 1;
		reader->length = info.length;
	}
	if (at + TIMES_ENTRY_BYTES > reader->length)
		return -EBADMSG;
	times_entry_decode(entry, reader->record + at);
	if (!reader->of_any_time_epoch)
		take_into_time_epoch(reader->device, entry);
	return 0;
}

enum order { BY_SEQUENCE, BY_TIME, BY_BYTES };

static uint64_t value_of(const struct times_entry *entry, enum order order)
{
	return order == BY_SEQUENCE ? entry->sequence
	       : order == BY_TIME   ? entry->ms
				    : entry->put_bytes;
}

/*
 * How many entries there are, from the table's first one on, whose value is not above `limit`; all
 * of them rise.
 */
static int count_up_to(struct times_reader *reader, enum order order, uint64_t limit,
		       uint32_t *count)
{
	uint32_t low = reader->device->times_first, high = reader->device->times;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct times_entry entry;
		int result = read_entry(reader, middle, &entry);

		if (result)
			return result;
		if (value_of(&entry, order) <= limit)
			low = middle + 1;
		else
			high = middle;
	}
	*count = low;
	return 0;
}

/* The slots at a place in the table. */
struct place {
	struct times_reader reader;
	uint32_t count; /* of the slots up to it */
	/*
	 * The last of these, all zero if there is none, and the one behind it: behind the last of
	 * all that is the one that will follow the present.
	 */
	struct times_entry last, next;
};

/* Goes to where `count` slots are behind. */
static int go_to(struct place *place, uint32_t count)
{
	const struct engine *engine = place->reader.engine;
	int result = 0;

	place->count = count;
	place->last = (struct times_entry){ 0 };
	if (count > place->reader.device->times_first)
		result = read_entry(&place->reader, count - 1, &place->last);
	if (result)
		return result;
	if (count < place->reader.device->times)
		return read_entry(&place->reader, count, &place->next);
	place->next = (struct times_entry){
		.ms = UINT64_MAX,
		.before_sequence = engine->committed,
		.before_ms = engine->committed_ms,
		.put_bytes = engine->put_bytes,
	};
	return 0;
}

/* Finds the place behind the slots whose value is not above `limit`. */
static int find(struct engine *engine, const struct history *device, enum order order,
		uint64_t limit, struct place *place)
{
	uint32_t count = device->device.times;
	int result = 0;

	place->reader = (struct times_reader){ .engine = engine, .device = &device->device };
	if (order != BY_TIME || limit < engine->committed_ms)
		result = count_up_to(&place->reader, order, limit, &count);
	return result ? result : go_to(place, count);
}

/*
 * The end of the `count`-th slot; 0: history begins later. Nothing lies between it and the next
 * slot that is in the table. If nothing that is committed lies behind it, what follows is to begin
 * a slot; while none may be begun, it is the end of the slot before.
 */
static int end_of(struct times_reader *reader, uint32_t count, uint64_t *bound)
{
	struct times_entry entry;
	int result;

	*bound = 0;
	for (; count > reader->device->times_first && count <= reader->device->times; count--) {
		result = read_entry(reader, count - 1, &entry);
		if (result)
			return result;
		if (slot_end(entry.sequence) < reader->engine->committed ||
		    slots_end_present(reader->engine) == 0) {
			*bound = slot_end(entry.sequence);
			return 0;
		}
	}
	return 0;
}

int times_boundary(struct engine *engine, const struct history *device, uint64_t ms,
		   uint64_t *bound)
{
	struct place place;
	int result = find(engine, device, BY_TIME, ms, &place);

	*bound = 0;
	if (result)
		return result;
	return end_of(&place.reader, place.next.before_ms <= ms ? place.count : place.count - 1,
		      bound);
}

int times_boundary_of(struct engine *engine, const struct history *device, uint64_t sequence,
		      uint64_t *bound)
{
	struct place place;
	int result = find(engine, device, BY_SEQUENCE, sequence, &place);
	bool is_over;

	*bound = 0;
	if (result)
		return result;
	is_over = sequence == slot_end(sequence) || place.next.before_sequence <= sequence;
	return end_of(&place.reader, is_over ? place.count : place.count - 1, bound);
}

int times_of_boundary(struct engine *engine, const struct history *device, uint64_t bound,
		      uint64_t *ms, uint64_t *last_ms)
{
	struct place place;
	int result = find(engine, device, BY_SEQUENCE, bound, &place);

	if (result)
		return result;
	if (place.last.sequence == 0)
		return -ENOENT;
	*ms = place.next.before_ms;
	*last_ms = place.next.ms - 1;
	return 0;
}

int times_first_boundary(struct engine *engine, const struct history *device, uint64_t *ms)
{
	struct place place = { .reader = { .engine = engine, .device = &device->device } };
	int result;

	if (device->device.times == device->device.times_first)
		return -ENOENT;
	result = go_to(&place, device->device.times_first + 1);
	if (!result)
		*ms = place.next.before_ms;
	return result;
}

int times_of(struct engine *engine, const struct history *device, uint64_t sequence, uint64_t *ms)
{
	struct times_reader reader = { .engine = engine,
				       .device = &device->device,
				       .of_any_time_epoch = true };
	struct times_entry entry = { 0 };
	uint32_t count = 0;
	int result = count_up_to(&reader, BY_SEQUENCE, sequence, &count);

	if (!result && count > device->device.times_first)
		result = read_entry(&reader, count - 1, &entry);
	*ms = entry.ms;
	return result;
}

int times_boundary_after(struct engine *engine, const struct history *device, uint64_t sequence,
			 uint64_t bytes, uint64_t *bound)
{
	uint32_t count = 0, last = device->device.times;
	struct place place;
	int result = find(engine, device, BY_SEQUENCE, sequence, &place);

	*bound = 0;
	if (!result)
		result = count_up_to(&place.reader, BY_BYTES, place.next.put_bytes + bytes, &count);
	if (result)
		return result;
	if (count <= place.count)
		count = place.count < last ? place.count + 1 : last;
	return end_of(&place.reader, count, bound);
}

int times_put_since(struct engine *engine, const struct history *device, uint64_t bound,
		    uint64_t *bytes)
{
	struct place place;
	int result = find(engine, device, BY_SEQUENCE, bound, &place);

	if (!result)
		*bytes = engine->put_bytes - min_u64(engine->put_bytes, place.next.put_bytes);
	return result;
}

/* ---- changing ---- */

/* Adds an entry behind the last one. */
static int append(struct engine_txn *txn, struct partition *root, const struct times_entry *entry)
{
	struct device_history *device = &root->history->device;
	uint32_t chunk = device->times / TIMES_CHUNK_ENTRIES;
	uint32_t at = device->times % TIMES_CHUNK_ENTRIES * TIMES_ENTRY_BYTES;
	uint8_t record[TIMES_CHUNK_ENTRIES * TIMES_ENTRY_BYTES];
	struct record_info info;
	int result = 0;

	if (at)
		result = record_get(txn->engine->store, key_of_table(RECORD_ID_TIMES, chunk),
				    RECORD_NEWEST, record, sizeof(record), &info);
	/*
	 * The chunk may be longer: a recovery without NVRAM may have found this record of a
	 * command, and not the one of the history.
	 */
	if (result == -ENOENT || (at && !result && info.length < at))
		result = -EBADMSG;
	if (result)
		return result;
	times_entry_encode(entry, record + at);
	result = record_put(&txn->writer, key_of_table(RECORD_ID_TIMES, chunk), RECORD_ABSORB,
			    record, at + TIMES_ENTRY_BYTES);
	if (result)
		return result;
	device->times++;
	device->slot_sequence = entry->sequence;
	device->slot_ms = entry->ms;
	device->slot_bytes = entry->put_bytes;
	partition_mark_history(txn, root);
	return 0;
}

static void format_time(uint64_t ms, char text[32])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;

	snprintf(text, 32, "?");
	if (gmtime_r(&seconds, &parts))
		strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* Warns once until the clock has caught up. */
static void watch_clock(struct engine *engine, uint64_t now_ms)
{
	bool behind = now_ms + TIMES_BEHIND_MS < engine->committed_ms;
	char now[32], last[32];

	if (behind && !engine->past->clock_behind) {
		format_time(now_ms, now);
		format_time(engine->committed_ms, last);
		log_line(LOG_LEVEL_WARNING,
			 "%s: the clock says %s, but the last command is on record as of %s. "
			 "Commands get that time until the clock has passed it. If the clock is "
			 "wrong, set "
			 "it. If it is right, begin a new time epoch with `muninnctl time-epoch` "
			 "on this host",
			 engine->store->device, now, last);
	}
	engine->past->clock_behind = behind;
}

int times_note(struct engine_txn *txn)
{
	struct engine *engine = txn->engine;
	struct partition *root;
	int result;

	/*
	 * What is noted for merging, or of versions and policies, may be noted every second on a
	 * full device, and must not grow by it.
	 */
	if (!txn->is_moment)
		return 0;
	result = partition_get(engine, 0, &root);
	if (result)
		return result;
	if (root->history->device.times == 0 ||
	    slot_begin(root->history->device.slot_sequence) != slot_begin(txn->sequence)) {
		struct times_entry entry = {
			.sequence = txn->sequence,
			.ms = txn->time_ms,
			.put_bytes = engine->put_bytes,
		};

		/*
		 * A format begins time anew: what was there before, maybe by a clock that was
		 * ahead, is no more.
		 */
		if (!txn->formats) {
			entry.before_sequence = engine->committed;
			entry.before_ms = engine->committed_ms;
		}
		/* Neither does a time epoch go on from there. */
		if (!txn->formats && !txn->begins_time_epoch) {
			watch_clock(engine, txn->time_ms);
			entry.ms = max_u64(entry.ms, engine->committed_ms);
		}
		result = append(txn, root, &entry);
	}
	partition_release(engine, root);
	return result;
}

/* Notes the slot of `*committed`, which has no entry. */
static int note_found(struct engine_txn *txn, struct partition *root, void *committed)
{
	struct engine *engine = txn->engine;
	const struct times_entry entry = {
		.sequence = *(const uint64_t *)committed,
		.ms = max_u64(txn->time_ms, engine->committed_ms),
		.before_sequence = engine->committed,
		.before_ms = engine->committed_ms,
		.put_bytes = engine->put_bytes,
	};

	return append(txn, root, &entry);
}

int times_note_found(struct engine *engine, uint64_t committed)
{
	uint64_t ms = max_u64(engine_time_now(engine), engine->committed_ms);
	int result;

	if (committed <= engine->committed)
		return 0;
	result = engine_aside(engine, note_found, &committed);
	if (result)
		return result;
	engine->committed = committed;
	engine->committed_ms = ms;
	return 0;
}

int times_forget(struct engine_txn *txn, struct partition *root, uint64_t sequence)
{
	struct device_history *device = &root->history->device;
	struct times_reader reader = { .engine = txn->engine, .device = device };
	uint32_t count = 0, forgotten = 0;
	int result = count_up_to(&reader, BY_SEQUENCE, sequence, &count);

	/* The slot that the sequence number is in, and the one before it, are still asked for. */
	while (!result && forgotten < CHUNKS_FORGOTTEN_MAX &&
	       device->times_first + TIMES_CHUNK_ENTRIES + 2 <= count) {
		uint32_t chunk = device->times_first / TIMES_CHUNK_ENTRIES;

		result = record_put(&txn->writer, key_of_table(RECORD_ID_TIMES, chunk),
				    RECORD_TOMBSTONE, NULL, 0);
		if (result)
			break;
		device->times_first = (chunk + 1) * TIMES_CHUNK_ENTRIES;
		partition_mark_history(txn, root);
		forgotten++;
	}
	return result;
}
