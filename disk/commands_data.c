/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands that transfer or compare blocks. What an initiator sends of a block in part is not
 * written: each block is old or new. If it sends less than the CDB says, the rest of the blocks
 * stay as they are, and the residual tells.
 */
#include <string.h>

#include "common/bytes.h"
#include "disk/commands.h"

/* What is compared or changed at once, on the stack. */
enum { CHUNK_BYTES = 4096 };

/* From `offset` on: up to the next multiple, so that whole pages are written where they can be. */
static uint64_t chunk_at(uint64_t offset, uint64_t length)
{
	return min_u64(length, CHUNK_BYTES - offset % CHUNK_BYTES);
}

/* Whole blocks that came of the `length` bytes that the command describes. */
static uint64_t whole_blocks(const struct disk_request *request, uint64_t length)
{
	uint64_t came = min_u64(length, request->command->data_out_length);

	return came / request->block_bytes * request->block_bytes;
}

int disk_read(struct disk_request *request)
{
	struct disk_command *command = request->command;

	command->data_in_length = request->length;
	return volume_read(&request->work, request->offset, command->data_in,
			   min_u64(request->length, command->data_in_capacity));
}

int disk_write(struct disk_request *request)
{
	struct disk_command *command = request->command;

	command->data_out_used = request->length;
	return volume_write(&request->work, request->offset, command->data_out,
			    whole_blocks(request, request->length));
}

/* ---- comparing ---- */

/* Fails with the offset of the first byte that differs. */
static int miscompare(struct disk_request *request, uint64_t offset)
{
	request->has_information = true;
	request->information = offset;
	return disk_fail(request, SENSE_MISCOMPARE, SENSE_MISCOMPARE_DURING_VERIFY_OPERATION);
}

/* Compares `length` bytes at the request's offset with Data-Out, every `period` bytes of it anew.
 */
static int compare(struct disk_request *request, uint64_t length, uint64_t period)
{
	const uint8_t *wanted = request->command->data_out;
	uint8_t found[CHUNK_BYTES];

	for (uint64_t at = 0; at < length;) {
		uint64_t from = at % period;
		uint64_t bytes = chunk_at(request->offset + at, length - at);
		int result;

		bytes = min_u64(bytes, period - from);
		result = volume_read(&request->work, request->offset + at, found, bytes);
		if (result)
			return result;
		for (uint64_t i = 0; i < bytes; i++)
			if (found[i] != wanted[from + i])
				return miscompare(request, at + i);
		at += bytes;
	}
	return 0;
}

/* Only looks whether all of it can be read. */
static int read_through(struct disk_request *request)
{
	uint8_t found[CHUNK_BYTES];
	int result = 0;

	for (uint64_t at = 0; !result && at < request->length;) {
		uint64_t bytes = chunk_at(request->offset + at, request->length - at);

		result = volume_read(&request->work, request->offset + at, found, bytes);
		at += bytes;
	}
	return result;
}

int disk_verify(struct disk_request *request)
{
	struct disk_command *command = request->command;
	bool is_one = request->cdb.check == BLOCK_CHECK_ONE;

	if (request->cdb.check == BLOCK_CHECK_NONE)
		return read_through(request);
	/* To compare no blocks none needs to come. */
	command->data_out_used = is_one ? min_u64(request->length, request->block_bytes)
					: request->length;
	/* What did not come can't be found to be the same. */
	if (command->data_out_length < command->data_out_used)
		return disk_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB);
	return compare(request, request->length, is_one ? request->block_bytes : UINT64_MAX);
}

/*
 * Reads back what the transaction has put, before its end: afterwards others may have written to
 * the same blocks. What is not as it was sent is undone.
 */
int disk_write_and_verify(struct disk_request *request)
{
	int result = disk_write(request);

	if (result)
		return result;
	if (request->cdb.check == BLOCK_CHECK_NONE)
		return read_through(request);
	return compare(request, whole_blocks(request, request->length), UINT64_MAX);
}

/* Data-Out: what must be there, then what is written. */
int disk_compare_and_write(struct disk_request *request)
{
	struct disk_command *command = request->command;
	int result;

	command->data_out_used = 2 * request->length;
	if (command->data_out_length != 2 * request->length)
		return disk_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB);
	result = compare(request, request->length, UINT64_MAX);
	/* Of no blocks there may be no Data-Out. */
	return result || !request->length
		       ? result
		       : volume_write(&request->work, request->offset,
				      command->data_out + request->length, request->length);
}

/* ---- writing what is made here ---- */

int disk_or_write(struct disk_request *request)
{
	struct disk_command *command = request->command;
	uint64_t length = whole_blocks(request, request->length);
	uint8_t data[CHUNK_BYTES];
	int result = 0;

	command->data_out_used = request->length;
	for (uint64_t at = 0; !result && at < length;) {
		uint64_t bytes = chunk_at(request->offset + at, length - at);

		result = volume_read(&request->work, request->offset + at, data, bytes);
		for (uint64_t i = 0; i < bytes; i++)
			data[i] |= command->data_out[at + i];
		if (!result)
			result = volume_write(&request->work, request->offset + at, data, bytes);
		at += bytes;
	}
	return result;
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* Writes one block again and again. A chunk has whole blocks, so it begins like each of them. */
static int write_again(struct disk_request *request, const uint8_t *block)
{
	uint8_t data[CHUNK_BYTES];
	int result = 0;

	for (size_t at = 0; at < CHUNK_BYTES; at += request->block_bytes)
		memcpy(data + at, block, request->block_bytes);
	for (uint64_t at = 0; !result && at < request->length;) {
		uint64_t bytes = chunk_at(request->offset + at, request->length - at);

		result = volume_write(&request->work, request->offset + at, data, bytes);
		at += bytes;
	}
	return result;
}

/*
 * With UNMAP zeros take no space afterwards; blocks of something else are written all the same,
 * because unmapped blocks read as zeros.
 */
int disk_write_same(struct disk_request *request)
{
	static const uint8_t zeros[CHUNK_BYTES];
	struct disk_command *command = request->command;
	const uint8_t *block = request->cdb.no_data ? zeros : command->data_out;

	if (!request->cdb.no_data) {
		command->data_out_used = request->block_bytes;
		if (command->data_out_length != request->block_bytes)
			return disk_fail(request, SENSE_ILLEGAL_REQUEST,
					 SENSE_INVALID_FIELD_IN_CDB);
	}
	if (request->cdb.unmap && is_zero(block, request->block_bytes))
		return volume_clear(&request->work, request->offset, request->length);
	return write_again(request, block);
}
