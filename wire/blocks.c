/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* CDBs and parameter lists of SCSI block devices. */
#include "wire/blocks.h"

#include <string.h>

#include "common/bytes.h"

/* Where block address and count are: of READ and WRITE(6), and of CDBs of so many bytes. */
enum layout { SIX, TEN, TWELVE, SIXTEEN, COMPARE };

static const struct operation {
	uint8_t code;
	uint8_t layout;
	uint8_t action;
} operations[] = {
	{ SBC_READ_6, SIX, BLOCK_READ },
	{ SBC_WRITE_6, SIX, BLOCK_WRITE },
	{ SBC_READ_CAPACITY_10, TEN, BLOCK_CAPACITY },
	{ SBC_READ_10, TEN, BLOCK_READ },
	{ SBC_WRITE_10, TEN, BLOCK_WRITE },
	{ SBC_WRITE_AND_VERIFY_10, TEN, BLOCK_WRITE_AND_VERIFY },
	{ SBC_VERIFY_10, TEN, BLOCK_VERIFY },
	{ SBC_PRE_FETCH_10, TEN, BLOCK_PRE_FETCH },
	{ SBC_SYNCHRONIZE_CACHE_10, TEN, BLOCK_SYNCHRONIZE },
	{ SBC_WRITE_SAME_10, TEN, BLOCK_WRITE_SAME },
	{ SBC_UNMAP, TEN, BLOCK_UNMAP },
	{ SBC_READ_12, TWELVE, BLOCK_READ },
	{ SBC_WRITE_12, TWELVE, BLOCK_WRITE },
	{ SBC_WRITE_AND_VERIFY_12, TWELVE, BLOCK_WRITE_AND_VERIFY },
	{ SBC_VERIFY_12, TWELVE, BLOCK_VERIFY },
	{ SBC_READ_16, SIXTEEN, BLOCK_READ },
	{ SBC_WRITE_16, SIXTEEN, BLOCK_WRITE },
	{ SBC_COMPARE_AND_WRITE, COMPARE, BLOCK_COMPARE_AND_WRITE },
	{ SBC_ORWRITE_16, SIXTEEN, BLOCK_OR_WRITE },
	{ SBC_WRITE_AND_VERIFY_16, SIXTEEN, BLOCK_WRITE_AND_VERIFY },
	{ SBC_VERIFY_16, SIXTEEN, BLOCK_VERIFY },
	{ SBC_PRE_FETCH_16, SIXTEEN, BLOCK_PRE_FETCH },
	{ SBC_SYNCHRONIZE_CACHE_16, SIXTEEN, BLOCK_SYNCHRONIZE },
	{ SBC_WRITE_SAME_16, SIXTEEN, BLOCK_WRITE_SAME },
};

static void decode_range(const uint8_t *cdb, enum layout layout, struct block_cdb *decoded)
{
	switch (layout) {
	case SIX:
		decoded->block = get_be32(cdb) & 0x1FFFFF;
		decoded->count = cdb[4] ? cdb[4] : 256;
		break;
	case TEN:
		decoded->block = get_be32(cdb + 2);
		decoded->count = get_be16(cdb + 7);
		break;
	case TWELVE:
		decoded->block = get_be32(cdb + 2);
		decoded->count = get_be32(cdb + 6);
		break;
	case SIXTEEN:
		decoded->block = get_be64(cdb + 2);
		decoded->count = get_be32(cdb + 10);
		break;
	case COMPARE:
		decoded->block = get_be64(cdb + 2);
		decoded->count = cdb[13];
		break;
	}
}

/* Byte 1 of all but the shortest CDBs; what its bits mean hangs on the command. */
static void decode_bits(const uint8_t *cdb, struct block_cdb *decoded)
{
	uint8_t bits = cdb[1];

	switch (decoded->action) {
	case BLOCK_WRITE_SAME:
		decoded->protect = bits >> 5;
		decoded->anchor = bits & 0x10;
		decoded->unmap = bits & 0x08;
		decoded->no_data = cdb[0] == SBC_WRITE_SAME_16 && bits & 0x01;
		break;
	case BLOCK_UNMAP:
		decoded->anchor = bits & 0x01;
		break;
	case BLOCK_VERIFY:
	case BLOCK_WRITE_AND_VERIFY:
		decoded->protect = bits >> 5;
		decoded->check = bits >> 1 & 3;
		break;
	case BLOCK_PRE_FETCH:
	case BLOCK_SYNCHRONIZE:
		break;
	case BLOCK_CAPACITY:
		decoded->partial = cdb[8] & 0x01;
		break;
	default:
		decoded->protect = bits >> 5;
		decoded->fua = bits & 0x08;
		break;
	}
}

static bool decode_service_action(const uint8_t *cdb, struct block_cdb *decoded)
{
	uint8_t action = cdb[1] & 0x1F;

	if (action != SBC_READ_CAPACITY_16 && action != SBC_GET_LBA_STATUS)
		return false;
	decoded->action = action == SBC_GET_LBA_STATUS ? BLOCK_STATUS : BLOCK_CAPACITY_LONG;
	decode_range(cdb, SIXTEEN, decoded);
	return true;
}

bool block_cdb_decode(const uint8_t *cdb, struct block_cdb *decoded)
{
	*decoded = (struct block_cdb){ .block = 0 };
	if (cdb[0] == SBC_SERVICE_ACTION_IN_16)
		return decode_service_action(cdb, decoded);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		const struct operation *operation = &operations[i];

		if (operation->code != cdb[0])
			continue;
		decoded->action = (enum block_action)operation->action;
		decode_range(cdb, (enum layout)operation->layout, decoded);
		if (operation->layout != SIX)
			decode_bits(cdb, decoded);
		return true;
	}
	return false;
}

bool unmap_list_decode(const uint8_t *list, size_t length, uint32_t *descriptors)
{
	uint32_t bytes;

	*descriptors = 0;
	if (length < UNMAP_HEAD_BYTES)
		return length == 0;
	bytes = get_be16(list + 2);
	if (bytes > length - UNMAP_HEAD_BYTES)
		return false;
	*descriptors = bytes / UNMAP_DESCRIPTOR_BYTES;
	return true;
}

void unmap_descriptor_decode(const uint8_t *list, uint32_t index, uint64_t *block, uint32_t *count)
{
	const uint8_t *descriptor =
		list + UNMAP_HEAD_BYTES + (size_t)index * UNMAP_DESCRIPTOR_BYTES;

	*block = get_be64(descriptor);
	*count = get_be32(descriptor + 8);
}

void block_sense_encode(uint8_t key, uint16_t code, bool has_information, uint64_t information,
			uint8_t sense[BLOCK_SENSE_BYTES])
{
	memset(sense, 0, BLOCK_SENSE_BYTES);
	sense[0] = 0x70;
	if (has_information && information <= UINT32_MAX) {
		sense[0] |= 0x80; /* VALID */
		put_be32(sense + 3, (uint32_t)information);
	}
	sense[2] = key;
	sense[7] = BLOCK_SENSE_BYTES - 8;
	put_be16(sense + 12, code);
}
