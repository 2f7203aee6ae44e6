/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Puts hidden intervals on record and reads them. */
#include "engine/history/hidden_chunks.h"

#include <string.h>

#include "common/bytes.h"

enum { IS_FOLLOWED = 1 << 0 };

struct chunk {
	uint32_t length;
	uint8_t bytes[HIDDEN_CHUNK_BYTES];
};

/* ---- an interval ---- */

static void encode(const struct hidden_interval *interval, uint8_t *to)
{
	put_le16(to, interval->partition);
	put_le48(to + 2, interval->at);
	put_le48(to + 8, interval->to);
	if (!interval->identifier)
		return;
	put_le64(to + 14, interval->identifier);
	to[22] = interval->is_followed ? IS_FOLLOWED : 0;
}

static int decode(struct hidden_interval *interval, bool of_object, const uint8_t *from)
{
	*interval = (struct hidden_interval){
		.partition = get_le16(from),
		.at = get_le48(from + 2),
		.to = get_le48(from + 8),
		.identifier = of_object ? get_le64(from + 14) : 0,
		.is_followed = of_object && from[22] & IS_FOLLOWED,
	};
	if (interval->to >= interval->at)
		return -EBADMSG;
	return of_object && (!interval->identifier || from[22] & ~IS_FOLLOWED) ? -EBADMSG : 0;
}

/* ---- a chunk ---- */

/* Where the intervals of objects begin. */
static uint32_t objects_at(const struct chunk *chunk)
{
	return HIDDEN_CHUNK_HEAD_BYTES + chunk->bytes[0] * HIDDEN_BYTES;
}

static int read_chunk(struct record_store *store, uint32_t number, struct chunk *chunk)
{
	struct record_info info;
	int result = record_get(store, key_of_table(RECORD_ID_HIDDEN, number), RECORD_NEWEST,
				chunk->bytes, sizeof(chunk->bytes), &info);

	if (result)
		return result == -ENOENT ? -EBADMSG : result;
	chunk->length = info.length;
	if (info.length < HIDDEN_CHUNK_HEAD_BYTES || info.length > sizeof(chunk->bytes) ||
	    info.length < objects_at(chunk) ||
	    (info.length - objects_at(chunk)) % HIDDEN_OF_OBJECT_BYTES)
		return -EBADMSG;
	return 0;
}

static int put_chunk(const struct record_writer *writer, uint32_t number, const struct chunk *chunk)
{
	return record_put(writer, key_of_table(RECORD_ID_HIDDEN, number), RECORD_ABSORB,
			  chunk->bytes, chunk->length);
}

int hidden_chunk_load(struct record_store *store, uint32_t number,
		      int (*take)(void *context, const struct hidden_interval *interval),
		      void *context, uint32_t *length)
{
	struct hidden_interval interval;
	struct chunk chunk;
	int result = read_chunk(store, number, &chunk);

	for (uint32_t at = HIDDEN_CHUNK_HEAD_BYTES; !result && at < chunk.length;
	     at += hidden_bytes(&interval)) {
		result = decode(&interval, at >= objects_at(&chunk), chunk.bytes + at);
		interval.chunk = number;
		if (!result)
			result = take(context, &interval);
	}
	*length = chunk.length;
	return result;
}

static int add(const struct record_writer *writer, struct chunk *chunk,
	       const struct hidden_interval *interval)
{
	uint32_t bytes = hidden_bytes(interval);
	uint32_t at = interval->identifier ? chunk->length : objects_at(chunk);

	if (chunk->length + bytes > sizeof(chunk->bytes))
		return -EBADMSG;
	memmove(chunk->bytes + at + bytes, chunk->bytes + at, chunk->length - at);
	encode(interval, chunk->bytes + at);
	chunk->length += bytes;
	chunk->bytes[0] += !interval->identifier;
	return put_chunk(writer, interval->chunk, chunk);
}

int hidden_chunk_begin(const struct record_writer *writer, const struct hidden_interval *interval)
{
	struct chunk chunk = { .length = HIDDEN_CHUNK_HEAD_BYTES };

	return add(writer, &chunk, interval);
}

int hidden_chunk_empty(const struct record_writer *writer, uint32_t number)
{
	struct chunk chunk = { .length = HIDDEN_CHUNK_HEAD_BYTES };

	return put_chunk(writer, number, &chunk);
}

int hidden_chunk_add(const struct record_writer *writer, const struct hidden_interval *interval)
{
	struct chunk chunk;
	int result = read_chunk(writer->store, interval->chunk, &chunk);

	return result ? result : add(writer, &chunk, interval);
}

/* Reads the chunk of an interval, and finds where it is in there. */
static int find(const struct record_writer *writer, const struct hidden_interval *interval,
		struct chunk *chunk, uint32_t *at)
{
	uint32_t bytes = hidden_bytes(interval), end;
	int result = read_chunk(writer->store, interval->chunk, chunk);

	if (result)
		return result;
	*at = interval->identifier ? objects_at(chunk) : HIDDEN_CHUNK_HEAD_BYTES;
	end = interval->identifier ? chunk->length : objects_at(chunk);
	for (; *at < end; *at += bytes) {
		struct hidden_interval found;

		result = decode(&found, interval->identifier != 0, chunk->bytes + *at);
		if (result ||
		    (found.partition == interval->partition &&
		     found.identifier == interval->identifier && found.at == interval->at))
			return result;
	}
	return -EBADMSG;
}

int hidden_chunk_remove(const struct record_writer *writer, const struct hidden_interval *interval)
{
	uint32_t bytes = hidden_bytes(interval), at;
	struct chunk chunk;
	int result = find(writer, interval, &chunk, &at);

	if (result)
		return result;
	chunk.length -= bytes;
	memmove(chunk.bytes + at, chunk.bytes + at + bytes, chunk.length - at);
	chunk.bytes[0] -= !interval->identifier;
	return put_chunk(writer, interval->chunk, &chunk);
}

int hidden_chunk_change(const struct record_writer *writer, const struct hidden_interval *interval)
{
	struct chunk chunk;
	uint32_t at;
	int result = find(writer, interval, &chunk, &at);

	if (result)
		return result;
	encode(interval, chunk.bytes + at);
	return put_chunk(writer, interval->chunk, &chunk);
}
