/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Packs the pages of the Muninn engine into a few bytes for the NAND's headers back end. */
#include "bench/record_codec.h"

#include <string.h>

#include "engine/muninn/format.h"

enum {
	LARGE_RECORD = 255, /* instead of a number of records */
	SAME_OWNER = 1 << 3,
	SAME_PIECE = 1 << 4,
	SAME_LENGTH = 1 << 5,
	OWNER_BYTES = 2 + 1 + 6,
	PACKED_RECORD_MAX = 1 + OWNER_BYTES + 8 + 4 + 2 + 10,
};

/* ---- numbers ---- */

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		*to++ = (uint8_t)(value | 128);
	*to++ = (uint8_t)value;
	return to;
}

/* NULL: it does not end before `end`. */
static const uint8_t *get_varint(const uint8_t *from, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; from < end && shift < 64; shift += 7) {
		*value |= (uint64_t)(*from & 127) << shift;
		if (*from++ < 128)
			return from;
	}
	return NULL;
}

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ (UINT64_C(0) - (value & 1));
}

static unsigned bytes_of(uint64_t value)
{
	return value == 0 ? 1 : (unsigned)(71 - __builtin_clzll(value)) / 8;
}

/* ---- records ---- */

static uint8_t *pack_record(uint8_t *to, const struct record_header *header,
			    const struct record_header *before)
{
	unsigned identifier_bytes = bytes_of(header->key.identifier);
	uint8_t *shape = to++;
	uint8_t identifier[8];

	*shape = (uint8_t)(identifier_bytes - 1);
	if (header->key.partition == before->key.partition &&
	    header->key.class == before->key.class && header->epoch == before->epoch) {
		*shape |= SAME_OWNER;
	} else {
		put_le16(to, header->key.partition);
		to[2] = header->key.class;
		put_le48(to + 3, header->epoch);
		to += OWNER_BYTES;
	}
	put_le64(identifier, header->key.identifier);
	memcpy(to, identifier, identifier_bytes);
	to += identifier_bytes;
	if (header->key.piece == before->key.piece) {
		*shape |= SAME_PIECE;
	} else {
		put_le32(to, header->key.piece);
		to += 4;
	}
	if (header->length == before->length && header->flags == before->flags) {
		*shape |= SAME_LENGTH;
	} else {
		put_le16(to, (uint16_t)(header->length | header->flags << RECORD_FLAGS_SHIFT));
		to += 2;
	}
	return put_varint(to, zigzag(header->sequence - before->sequence));
}

/* `header` is the record before, and becomes the next one. NULL: `from` ends too early. */
static const uint8_t *unpack_record(const uint8_t *from, const uint8_t *end,
				    struct record_header *header)
{
	uint8_t shape, identifier[8] = { 0 };
	unsigned identifier_bytes;
	uint64_t difference;

	if (end - from < 1)
		return NULL;
	shape = *from++;
	identifier_bytes = (shape & 7) + 1;
	if (end - from < (shape & SAME_OWNER ? 0 : OWNER_BYTES) + (int)identifier_bytes +
				 (shape & SAME_PIECE ? 0 : 4) + (shape & SAME_LENGTH ? 0 : 2))
		return NULL;
	if (!(shape & SAME_OWNER)) {
		header->key.partition = get_le16(from);
		header->key.class = from[2];
		header->epoch = get_le48(from + 3);
		from += OWNER_BYTES;
	}
	memcpy(identifier, from, identifier_bytes);
	header->key.identifier = get_le64(identifier);
	from += identifier_bytes;
	if (!(shape & SAME_PIECE)) {
		header->key.piece = get_le32(from);
		from += 4;
	}
	if (!(shape & SAME_LENGTH)) {
		header->length = get_le16(from) & RECORD_LENGTH_MASK;
		header->flags = (uint8_t)(get_le16(from) >> RECORD_FLAGS_SHIFT);
		from += 2;
	}
	from = get_varint(from, end, &difference);
	header->sequence += unzigzag(difference);
	return from;
}

/* ---- pages ---- */

/* What the spare area says; false: not a page of records. */
static bool read_spare(const uint8_t *spare, uint32_t page_bytes, struct page_spare *decoded)
{
	return page_spare_decode(spare, page_bytes, decoded) && decoded->kind == PAGE_KIND_RECORDS;
}

/*
 * Behind the last record a page holds what its buffer held before: zeros, or records of an earlier
 * segment, which stand at the same offsets if all have one size. Only regenerating the page shows
 * which.
 */
static bool may_be_left_over(const struct record_header *header, uint32_t at, uint32_t page_bytes)
{
	return header->sequence != 0 && at + RECORD_HEADER_BYTES + header->length <= page_bytes;
}

static bool pack(void *context, uint64_t page, const uint8_t *data, const uint8_t *spare,
		 uint8_t *to, size_t capacity, size_t *bytes)
{
	const uint32_t page_bytes = *(const uint32_t *)context;
	struct record_header before = { 0 }, header;
	struct page_spare decoded;
	uint8_t *next = to + 1;
	uint32_t at = 0;

	(void)page;
	if (capacity < 1 || !read_spare(spare, page_bytes, &decoded))
		return false;
	/* A part of a record can't be made again from its header alone: kept whole. */
	if (decoded.begin || decoded.beyond)
		return false;
	to[0] = 0;
	*bytes = 1;
	if (decoded.large) {
		to[0] = LARGE_RECORD;
		return true;
	}
	while (at + RECORD_HEADER_BYTES <= page_bytes) {
		record_header_decode(data + at, &header);
		if (at >= decoded.used && !may_be_left_over(&header, at, page_bytes))
			break;
		if (to[0] == LARGE_RECORD - 1 || (size_t)(next - to) + PACKED_RECORD_MAX > capacity)
			return false;
		next = pack_record(next, &header, &before);
		to[0]++;
		at += RECORD_HEADER_BYTES + header.length;
		before = header;
	}
	*bytes = (size_t)(next - to);
	return true;
}

static bool unpack_large(const uint8_t *spare, uint32_t page_bytes, uint8_t *data)
{
	struct record_header header;
	struct page_spare decoded;

	if (!read_spare(spare, page_bytes, &decoded) || !decoded.large)
		return false;
	record_header_decode(decoded.large_header, &header);
	if (header.length > page_bytes)
		return false;
	record_value_make(&header.key, header.sequence, data, header.length);
	memset(data + header.length, 0, page_bytes - header.length);
	return true;
}

static bool unpack(void *context, uint64_t page, const uint8_t *from, size_t bytes,
		   const uint8_t *spare, uint8_t *data)
{
	const uint32_t page_bytes = *(const uint32_t *)context;
	const uint8_t *end = from + bytes;
	struct record_header header = { 0 };
	struct page_spare decoded;
	uint32_t at = 0, count;

	(void)page;
	if (bytes < 1 || !read_spare(spare, page_bytes, &decoded))
		return false;
	count = *from++;
	if (count == LARGE_RECORD)
		return unpack_large(spare, page_bytes, data);
	for (; count > 0; count--) {
		uint8_t *value = data + at + RECORD_HEADER_BYTES;

		from = unpack_record(from, end, &header);
		if (!from || header.length > MUNINN_PAGE_BYTES_MAX ||
		    at + RECORD_HEADER_BYTES + header.length > page_bytes)
			return false;
		record_value_make(&header.key, header.sequence, value, header.length);
		record_header_encode(&header, decoded.serial, value, data + at);
		at += RECORD_HEADER_BYTES + header.length;
	}
	memset(data + at, 0, page_bytes - at);
	return from == end;
}

struct nand_payload_codec record_codec(const uint32_t *page_bytes)
{
	return (struct nand_payload_codec){
		.context = (void *)(uintptr_t)page_bytes,
		.pack = pack,
		.unpack = unpack,
	};
}
