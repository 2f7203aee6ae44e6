/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Encodes and decodes every structure of format.h. */
#include "engine/muninn/format.h"

#include "common/crc32c.h"

static uint32_t record_crc(const uint8_t bytes[RECORD_HEADER_BYTES], uint64_t serial,
			   const void *value, uint32_t length)
{
	uint8_t segment[8];

	put_le64(segment, serial);
	return crc32c(crc32c(crc32c(0, segment, sizeof(segment)), bytes, 24), value, length);
}

static uint32_t encode_reach(uint64_t epoch, uint64_t sequence)
{
	uint64_t begin = epoch / RECORD_REACH_STEP + (epoch % RECORD_REACH_STEP != 0);
	uint64_t own = sequence / RECORD_REACH_STEP;

	if (epoch == RECORD_EPOCH_ENDLESS)
		return RECORD_REACH_ALL;
	/* As decode_epoch tells of one that reaches nothing. */
	if (epoch > sequence)
		return (uint32_t)(epoch - sequence - 1) & RECORD_REACH_ALL;
	if (begin > own)
		return RECORD_REACH_NONE;
	return own - begin < RECORD_REACH_MAX ? (uint32_t)(own - begin) : RECORD_REACH_MAX;
}

static uint64_t decode_epoch(uint32_t reach, uint64_t sequence)
{
	if (reach == RECORD_REACH_ALL)
		return RECORD_EPOCH_ENDLESS;
	/* Also of one that reaches back to the first number or further, which nobody has put. */
	if (reach == RECORD_REACH_NONE || reach >= sequence / RECORD_REACH_STEP)
		return sequence + 1 + reach;
	return (sequence / RECORD_REACH_STEP - reach) * RECORD_REACH_STEP;
}

void record_header_encode(const struct record_header *header, uint64_t serial, const void *value,
			  uint8_t bytes[RECORD_HEADER_BYTES])
{
	assert(header->length <= MUNINN_PAGE_BYTES_MAX && header->flags < 8);
	put_le16(bytes, header->key.partition);
	put_le64(bytes + 2, header->key.identifier);
	put_le16(bytes + 10, (uint16_t)(header->key.class << RECORD_CLASS_SHIFT |
					encode_reach(header->epoch, header->sequence)));
	put_le32(bytes + 12, header->key.piece);
	put_le48(bytes + 16, header->sequence);
	put_le16(bytes + 22, (uint16_t)(header->length | header->flags << RECORD_FLAGS_SHIFT));
	put_le32(bytes + 24, record_crc(bytes, serial, value, header->length));
}

void record_header_decode(const uint8_t bytes[RECORD_HEADER_BYTES], struct record_header *header)
{
	header->key.partition = get_le16(bytes);
	header->key.identifier = get_le64(bytes + 2);
	header->key.class = (uint8_t)(get_le16(bytes + 10) >> RECORD_CLASS_SHIFT);
	header->key.piece = get_le32(bytes + 12);
	header->sequence = get_le48(bytes + 16);
	header->epoch = decode_epoch(get_le16(bytes + 10) & RECORD_REACH_ALL, header->sequence);
	header->length = (uint16_t)record_length(bytes);
	header->flags = (uint8_t)(get_le16(bytes + 22) >> RECORD_FLAGS_SHIFT);
	header->crc = get_le32(bytes + 24);
}

bool record_is_intact(const uint8_t bytes[RECORD_HEADER_BYTES], uint64_t serial, const void *value)
{
	return record_crc(bytes, serial, value, record_length(bytes)) == get_le32(bytes + 24);
}

enum { SPARE_LARGE = 1 << 0, SPARE_UNFINISHED = 1 << 1, SPARE_SPANNED = 1 << 2 };

static void encode_spanned(const struct page_spare *spare, uint8_t bytes[PAGE_SPARE_BYTES])
{
	assert(spare->kind == PAGE_KIND_RECORDS && !spare->large);
	bytes[1] |= SPARE_SPANNED;
	put_le16(bytes + 16, spare->begin);
	put_le16(bytes + 18, spare->beyond);
}

static bool decode_spanned(const uint8_t bytes[PAGE_SPARE_BYTES], uint32_t page_bytes,
			   struct page_spare *spare)
{
	spare->begin = spare->beyond = 0;
	if (!(bytes[1] & SPARE_SPANNED))
		return true;
	spare->begin = get_le16(bytes + 16);
	spare->beyond = get_le16(bytes + 18);
	return spare->kind == PAGE_KIND_RECORDS && !spare->large && spare->begin <= spare->used &&
	       spare->beyond < page_bytes && (!spare->beyond || spare->used == page_bytes);
}

void page_spare_encode(const struct page_spare *spare, uint8_t bytes[PAGE_SPARE_BYTES])
{
	bytes[0] = spare->kind;
	bytes[1] = (uint8_t)((spare->large ? SPARE_LARGE : 0) |
			     (spare->unfinished ? SPARE_UNFINISHED : 0));
	put_le16(bytes + 2, spare->row);
	put_le32(bytes + 4, spare->used);
	put_le64(bytes + 8, spare->serial);
	if (spare->kind != PAGE_KIND_ROOT) {
		memcpy(bytes + 16, spare->large_header, RECORD_HEADER_BYTES);
		if (spare->begin || spare->beyond)
			encode_spanned(spare, bytes);
		return;
	}
	memset(bytes + 16, 0, RECORD_HEADER_BYTES);
	put_le32(bytes + 16, spare->part);
	put_le32(bytes + 20, spare->parts);
}

bool page_spare_decode(const uint8_t bytes[PAGE_SPARE_BYTES], uint32_t page_bytes,
		       struct page_spare *spare)
{
	spare->kind = bytes[0];
	spare->large = bytes[1] & SPARE_LARGE;
	spare->unfinished = bytes[1] & SPARE_UNFINISHED;
	spare->row = get_le16(bytes + 2);
	spare->used = get_le32(bytes + 4);
	spare->serial = get_le64(bytes + 8);
	memcpy(spare->large_header, bytes + 16, RECORD_HEADER_BYTES);
	if (spare->kind == PAGE_KIND_ROOT) {
		spare->part = get_le32(bytes + 16);
		spare->parts = get_le32(bytes + 20);
	}
	return spare->kind >= PAGE_KIND_RECORDS && spare->kind <= PAGE_KIND_ROOT &&
	       bytes[1] <= (SPARE_LARGE | SPARE_UNFINISHED | SPARE_SPANNED) &&
	       spare->used <= page_bytes && decode_spanned(bytes, page_bytes, spare);
}

/* ---- roots ---- */

enum { ROOT_CRC_AT = ROOT_HEADER_BYTES - 4 };

void root_header_encode(const struct root_header *header, uint8_t bytes[ROOT_HEADER_BYTES])
{
	memset(bytes, 0, ROOT_HEADER_BYTES);
	put_le64(bytes, header->magic);
	put_le32(bytes + 8, MUNINN_FORMAT_VERSION);
	put_le32(bytes + 12, header->bytes);
	put_le32(bytes + ROOT_COUNT_AT, header->count);
	put_le32(bytes + 20, header->groups);
	put_le64(bytes + 24, header->serial);
	put_le64(bytes + 32, header->base);
	put_le64(bytes + 40, header->committed);
	put_le64(bytes + 48, header->sealed);
	put_le64(bytes + 56, header->next_serial);
	put_le64(bytes + 64, header->aborted_count);
	put_le64(bytes + 72, header->void_before);
}

static uint32_t root_crc(const uint8_t *bytes, uint32_t length)
{
	const uint8_t zero[4] = { 0 };
	uint32_t crc = crc32c(crc32c(0, bytes, ROOT_CRC_AT), zero, sizeof(zero));

	return crc32c(crc, bytes + ROOT_HEADER_BYTES, length - ROOT_HEADER_BYTES);
}

void root_seal(uint8_t *bytes, uint32_t length)
{
	assert(length >= ROOT_HEADER_BYTES && get_le32(bytes + 12) == length);
	put_le32(bytes + ROOT_CRC_AT, root_crc(bytes, length));
}

bool root_header_decode(const uint8_t *bytes, uint32_t length, struct root_header *header)
{
	if (length < ROOT_HEADER_BYTES)
		return false;
	*header = (struct root_header){
		.magic = get_le64(bytes),
		.bytes = get_le32(bytes + 12),
		.count = get_le32(bytes + ROOT_COUNT_AT),
		.groups = get_le32(bytes + 20),
		.serial = get_le64(bytes + 24),
		.base = get_le64(bytes + 32),
		.committed = get_le64(bytes + 40),
		.sealed = get_le64(bytes + 48),
		.next_serial = get_le64(bytes + 56),
		.aborted_count = get_le64(bytes + 64),
		.void_before = get_le64(bytes + 72),
	};
	return (header->magic == ROOT_MAGIC || header->magic == LIST_MAGIC) &&
	       get_le32(bytes + 8) == MUNINN_FORMAT_VERSION && header->bytes >= ROOT_HEADER_BYTES &&
	       header->bytes <= length &&
	       root_crc(bytes, header->bytes) == get_le32(bytes + ROOT_CRC_AT);
}

void root_kill_encode(const struct root_kill *kill, uint8_t bytes[ROOT_KILL_BYTES])
{
	put_le32(bytes, kill->segment);
	put_le16(bytes + 4, kill->row);
	put_le16(bytes + 6, kill->member);
	put_le32(bytes + 8, kill->group);
	put_le32(bytes + 12, 0);
	put_le64(bytes + 16, kill->serial);
}

void root_kill_decode(const uint8_t bytes[ROOT_KILL_BYTES], struct root_kill *kill)
{
	*kill = (struct root_kill){
		.segment = get_le32(bytes),
		.row = get_le16(bytes + 4),
		.member = get_le16(bytes + 6),
		.group = get_le32(bytes + 8),
		.serial = get_le64(bytes + 16),
	};
}
