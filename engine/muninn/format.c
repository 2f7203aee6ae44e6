/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/muninn/format.h"

#include "common/crc32c.h"

static uint32_t record_crc(const uint8_t bytes[RECORD_HEADER_BYTES], uint64_t serial,
			   const void *value, uint32_t length)
{
	uint8_t segment[8];

	put_le64(segment, serial);
	return crc32c(crc32c(crc32c(0, segment, sizeof(segment)), bytes, 24), value, length);
}

void record_header_encode(const struct record_header *header, uint64_t serial, const void *value,
			  uint8_t bytes[RECORD_HEADER_BYTES])
{
	assert(header->length <= MUNINN_PAGE_BYTES_MAX && header->flags < 8);
	put_le16(bytes, header->key.partition);
	put_le64(bytes + 2, header->key.identifier);
	put_le16(bytes + 10, header->version);
	put_le32(bytes + 12, header->key.piece);
	put_le48(bytes + 16, header->sequence);
	put_le16(bytes + 22, (uint16_t)(header->length | header->flags << RECORD_FLAGS_SHIFT));
	put_le32(bytes + 24, record_crc(bytes, serial, value, header->length));
}

void record_header_decode(const uint8_t bytes[RECORD_HEADER_BYTES], struct record_header *header)
{
	header->key.partition = get_le16(bytes);
	header->key.identifier = get_le64(bytes + 2);
	header->version = get_le16(bytes + 10);
	header->key.piece = get_le32(bytes + 12);
	header->sequence = get_le48(bytes + 16);
	header->length = (uint16_t)record_length(bytes);
	header->flags = (uint8_t)(get_le16(bytes + 22) >> RECORD_FLAGS_SHIFT);
	header->crc = get_le32(bytes + 24);
}

bool record_is_intact(const uint8_t bytes[RECORD_HEADER_BYTES], uint64_t serial, const void *value)
{
	return record_crc(bytes, serial, value, record_length(bytes)) == get_le32(bytes + 24);
}

void page_spare_encode(const struct page_spare *spare, uint8_t bytes[PAGE_SPARE_BYTES])
{
	bytes[0] = spare->kind;
	bytes[1] = spare->large;
	put_le16(bytes + 2, 0);
	put_le32(bytes + 4, spare->used);
	put_le64(bytes + 8, spare->serial);
	memcpy(bytes + 16, spare->large_header, RECORD_HEADER_BYTES);
}

bool page_spare_decode(const uint8_t bytes[PAGE_SPARE_BYTES], uint32_t page_bytes,
		       struct page_spare *spare)
{
	spare->kind = bytes[0];
	spare->large = bytes[1] != 0;
	spare->used = get_le32(bytes + 4);
	spare->serial = get_le64(bytes + 8);
	memcpy(spare->large_header, bytes + 16, RECORD_HEADER_BYTES);
	return (spare->kind == PAGE_KIND_RECORDS || spare->kind == PAGE_KIND_TABLE) &&
	       bytes[1] <= 1 && spare->used <= page_bytes;
}
