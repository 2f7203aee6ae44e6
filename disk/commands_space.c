/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Commands about the size of the disk and about which blocks take space. */
#include <string.h>

#include "common/bytes.h"
#include "disk/commands.h"

/* Copies an answer as far as there is space: the CDB's allocation length, and Data-In. */
static int give(struct disk_request *request, const uint8_t *answer, size_t length,
		uint32_t allocated)
{
	struct disk_command *command = request->command;

	command->data_in_length = min_u64(length, allocated);
	length = min_u64(command->data_in_length, command->data_in_capacity);
	if (length)
		memcpy(command->data_in, answer, length);
	return 0;
}

/* ---- READ CAPACITY ---- */

int disk_capacity(struct disk_request *request)
{
	uint64_t last = request->work.bytes / request->block_bytes - 1;
	uint8_t answer[8];

	put_be32(answer, (uint32_t)min_u64(last, UINT32_MAX));
	put_be32(answer + 4, request->block_bytes);
	return give(request, answer, sizeof(answer), sizeof(answer));
}

int disk_capacity_long(struct disk_request *request)
{
	uint8_t answer[32] = { 0 };

	put_be64(answer, request->work.bytes / request->block_bytes - 1);
	put_be32(answer + 8, request->block_bytes);
	/* LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT */
	answer[13] = (uint8_t)__builtin_ctz(request->disk->page_blocks);
	answer[14] = 0xC0; /* LBPME, LBPRZ: thin; unmapped blocks read as zeros */
	return give(request, answer, sizeof(answer), request->cdb.count);
}

/* ---- GET LBA STATUS ---- */

enum { STATUS_HEAD_BYTES = 8, STATUS_DESCRIPTOR_BYTES = 16 };
enum { STATUS_MAPPED = 0, STATUS_DEALLOCATED = 1 };

/* A run of blocks that are all mapped, or all not. */
struct run {
	uint64_t offset, length; /* in bytes */
	bool mapped;
};

/*
 * The run that begins at `offset`, over as many ranges as `ranges` allows, by which it is lowered.
 * Runs are of whole pages, and so of whole blocks.
 */
static int find_run(struct disk_request *request, uint64_t offset, uint32_t *ranges,
		    struct run *run)
{
	uint64_t end = request->work.bytes;
	int result = 0;

	*run = (struct run){ .offset = offset };
	while (!result && offset < end && *ranges) {
		bool mapped;
		uint64_t length;

		result = volume_map(&request->work, offset, &mapped, &length);
		if (result || (run->length && mapped != run->mapped))
			break;
		--*ranges;
		run->mapped = mapped;
		length = min_u64(length, end - offset);
		run->length += length;
		offset += length;
	}
	return result;
}

static void put_descriptor(uint8_t *to, const struct run *run, uint32_t block_bytes)
{
	memset(to, 0, STATUS_DESCRIPTOR_BYTES);
	put_be64(to, run->offset / block_bytes);
	put_be32(to + 8, (uint32_t)min_u64(run->length / block_bytes, UINT32_MAX));
	to[12] = run->mapped ? STATUS_MAPPED : STATUS_DEALLOCATED;
}

/* Tells of the first block for certain, and of what follows as far as one command looks. */
int disk_status(struct disk_request *request)
{
	uint8_t answer[STATUS_HEAD_BYTES + DISK_STATUS_RUNS_MAX * STATUS_DESCRIPTOR_BYTES] = { 0 };
	uint32_t ranges = DISK_STATUS_RANGES_MAX, allocated = request->cdb.count;
	/* There is always a first descriptor, even if it is cut. */
	uint64_t space = max_u64(STATUS_HEAD_BYTES + STATUS_DESCRIPTOR_BYTES,
				 min_u64(sizeof(answer), allocated));
	uint64_t offset = request->cdb.block * request->block_bytes;
	size_t length = STATUS_HEAD_BYTES;
	int result = 0;

	if (request->cdb.block >= request->work.bytes / request->block_bytes)
		return disk_fail(request, SENSE_ILLEGAL_REQUEST,
				 SENSE_LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);
	while (!result && offset < request->work.bytes && ranges &&
	       length + STATUS_DESCRIPTOR_BYTES <= space) {
		struct run run;

		result = find_run(request, offset, &ranges, &run);
		if (result)
			return result;
		put_descriptor(answer + length, &run, request->block_bytes);
		length += STATUS_DESCRIPTOR_BYTES;
		offset += run.length;
	}
	put_be32(answer, (uint32_t)length - 4);
	return give(request, answer, length, allocated);
}

/* ---- UNMAP ---- */

static int check_descriptors(struct disk_request *request, uint32_t descriptors)
{
	uint64_t blocks = request->work.bytes / request->block_bytes, all = 0;

	for (uint32_t i = 0; i < descriptors; i++) {
		uint64_t block;
		uint32_t count;

		unmap_descriptor_decode(request->command->data_out, i, &block, &count);
		if (block > blocks || count > blocks - block)
			return disk_fail(request, SENSE_ILLEGAL_REQUEST,
					 SENSE_LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);
		all += count;
	}
	if (descriptors > DISK_UNMAP_DESCRIPTORS_MAX || all > DISK_UNMAP_MAX / request->block_bytes)
		return disk_fail(request, SENSE_ILLEGAL_REQUEST,
				 SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	return 0;
}

/* All of it or nothing: the descriptors are checked before the first one is carried out. */
int disk_unmap(struct disk_request *request)
{
	struct disk_command *command = request->command;
	uint64_t listed = min_u64(request->cdb.count, command->data_out_length);
	uint32_t descriptors;
	int result;

	command->data_out_used = request->cdb.count;
	if (!unmap_list_decode(command->data_out, listed, &descriptors))
		return disk_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_LIST_LENGTH_ERROR);
	result = check_descriptors(request, descriptors);
	for (uint32_t i = 0; !result && i < descriptors; i++) {
		uint64_t block;
		uint32_t count;

		unmap_descriptor_decode(command->data_out, i, &block, &count);
		result = volume_clear(&request->work, block * request->block_bytes,
				      (uint64_t)count * request->block_bytes);
	}
	return result;
}
