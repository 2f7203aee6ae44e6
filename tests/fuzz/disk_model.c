/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The model of a disk: an array of blocks. CDBs are decoded by wire/, which target `wire` tests. */
#include "tests/fuzz/disk_model.h"

#include <string.h>

#include "common/bytes.h"
#include "disk/limits.h"
#include "tests/fuzz/fuzz.h"
#include "wire/standard.h"

/* A command, and where its blocks are. */
struct wanted {
	const struct disk_command *command;
	struct block_cdb cdb;
	uint64_t length; /* of its blocks, in bytes */
	bool changes, has_range;
};

static bool changes(enum block_action action)
{
	return action == BLOCK_WRITE || action == BLOCK_WRITE_AND_VERIFY ||
	       action == BLOCK_WRITE_SAME || action == BLOCK_UNMAP ||
	       action == BLOCK_COMPARE_AND_WRITE || action == BLOCK_OR_WRITE;
}

static bool has_range(enum block_action action)
{
	return action != BLOCK_UNMAP && action != BLOCK_CAPACITY && action != BLOCK_CAPACITY_LONG &&
	       action != BLOCK_STATUS;
}

static bool is_inside(uint64_t block, uint64_t count)
{
	return block <= DISK_BLOCKS && count <= DISK_BLOCKS - block;
}

/* ---- what must be refused ---- */

/* What came of an UNMAP's list. */
static size_t listed(const struct wanted *wanted)
{
	return min_u64(wanted->cdb.count, wanted->command->data_out_length);
}

static bool is_list_wrong(const struct wanted *wanted)
{
	const uint8_t *list = wanted->command->data_out;
	uint32_t descriptors, count;
	uint64_t block;

	if (!unmap_list_decode(list, listed(wanted), &descriptors) ||
	    descriptors > DISK_UNMAP_DESCRIPTORS_MAX)
		return true;
	for (uint32_t i = 0; i < descriptors; i++) {
		unmap_descriptor_decode(list, i, &block, &count);
		if (!is_inside(block, count))
			return true;
	}
	return false;
}

/* Data-Out that is too short or too long for what is to be done with it. */
static bool is_data_wrong(const struct wanted *wanted)
{
	const struct block_cdb *cdb = &wanted->cdb;
	size_t came = wanted->command->data_out_length;

	switch (cdb->action) {
	case BLOCK_COMPARE_AND_WRITE:
		return came != 2 * wanted->length;
	case BLOCK_WRITE_SAME:
		return !cdb->no_data && came != DISK_BLOCK;
	case BLOCK_VERIFY:
		return (cdb->check == BLOCK_CHECK_ALL && came < wanted->length) ||
		       (cdb->check == BLOCK_CHECK_ONE && came < DISK_BLOCK);
	case BLOCK_UNMAP:
		return is_list_wrong(wanted);
	default:
		return false;
	}
}

static bool is_illegal(const struct wanted *wanted)
{
	const struct block_cdb *cdb = &wanted->cdb;

	return cdb->protect || cdb->anchor || cdb->check == BLOCK_CHECK_RESERVED ||
	       (cdb->action == BLOCK_WRITE_SAME && cdb->count == 0) ||
	       (cdb->action == BLOCK_CAPACITY && !cdb->partial && cdb->block != 0) ||
	       (cdb->action == BLOCK_STATUS && cdb->block >= DISK_BLOCKS) ||
	       (wanted->has_range && !is_inside(cdb->block, cdb->count)) || is_data_wrong(wanted);
}

static bool compares(const struct block_cdb *cdb)
{
	return cdb->action == BLOCK_COMPARE_AND_WRITE ||
	       (cdb->action == BLOCK_VERIFY && cdb->check != BLOCK_CHECK_NONE);
}

/* The first byte that is not what Data-Out says, of a command that compares; -1: there is none. */
static int64_t first_difference(const struct disk_model *model, const struct wanted *wanted)
{
	const struct block_cdb *cdb = &wanted->cdb;
	uint64_t period = cdb->check == BLOCK_CHECK_ONE ? DISK_BLOCK : UINT64_MAX;
	const uint8_t *found;

	if (!compares(cdb))
		return -1;
	found = model->now + cdb->block * DISK_BLOCK;
	for (uint64_t at = 0; at < wanted->length; at++)
		if (found[at] != wanted->command->data_out[at % period])
			return (int64_t)at;
	return -1;
}

static void check_failure(const struct disk_model *model, const struct wanted *wanted)
{
	const struct disk_command *command = wanted->command;
	uint8_t key = command->sense[2];
	uint16_t code = get_be16(command->sense + 12);
	bool is_protected = wanted->changes && command->write_protected;
	int64_t differs;

	fuzz_check(command->status == SCSI_STATUS_CHECK_CONDITION);
	fuzz_check(command->sense_length == BLOCK_SENSE_BYTES && command->data_in_length == 0);
	fuzz_check((command->sense[0] & 0x7F) == 0x70);
	if (is_illegal(wanted) || is_protected) {
		fuzz_check((is_illegal(wanted) && key == SENSE_ILLEGAL_REQUEST) ||
			   (is_protected && key == SENSE_DATA_PROTECT &&
			    code == SENSE_WRITE_PROTECTED));
		return;
	}
	/* There may be no space for what is to be written; else only a comparison fails. */
	if (wanted->changes && key == SENSE_DATA_PROTECT) {
		fuzz_check(code == SENSE_SPACE_ALLOCATION_FAILED_WRITE_PROTECT);
		return;
	}
	differs = first_difference(model, wanted);
	fuzz_check(differs >= 0 && key == SENSE_MISCOMPARE);
	fuzz_check(get_be32(command->sense + 3) == (uint64_t)differs);
}

/* ---- what was answered ---- */

static void check_read(const struct disk_model *model, const struct wanted *wanted)
{
	const struct disk_command *command = wanted->command;
	size_t bytes = min_u64(wanted->length, command->data_in_capacity);

	fuzz_check(command->data_in_length == wanted->length);
	fuzz_check(!bytes || memcmp(command->data_in, model->now + wanted->cdb.block * DISK_BLOCK,
				    bytes) == 0);
}

static void check_capacity(const struct wanted *wanted)
{
	const struct disk_command *command = wanted->command;
	bool is_long = wanted->cdb.action == BLOCK_CAPACITY_LONG;
	size_t length = is_long ? min_u64(32, wanted->cdb.count) : 8;
	const uint8_t *in = command->data_in;

	fuzz_check(command->data_in_length == length);
	if (min_u64(length, command->data_in_capacity) < (is_long ? 12 : 8))
		return;
	fuzz_check((is_long ? get_be64(in) : get_be32(in)) == DISK_BLOCKS - 1);
	fuzz_check(get_be32(in + (is_long ? 8 : 4)) == DISK_BLOCK);
}

static bool is_zero(const uint8_t *bytes, size_t length)
{
	return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

/* Runs of blocks follow one another; those that take no space are zeros. */
static void check_status(const struct disk_model *model, const struct wanted *wanted)
{
	const struct disk_command *command = wanted->command;
	size_t came = min_u64(command->data_in_length, command->data_in_capacity);
	uint64_t block = wanted->cdb.block;

	fuzz_check(command->data_in_length <= wanted->cdb.count);
	for (size_t at = 8; at + 16 <= came; at += 16) {
		const uint8_t *run = command->data_in + at;
		uint32_t count = get_be32(run + 8);

		fuzz_check(get_be64(run) == block && count && is_inside(block, count));
		fuzz_check(run[12] <= 1);
		fuzz_check(run[12] == 0 ||
			   is_zero(model->now + block * DISK_BLOCK, (size_t)count * DISK_BLOCK));
		block += count;
	}
}

/* ---- what is written ---- */

static void write_same(uint8_t *to, const struct wanted *wanted)
{
	static const uint8_t zeros[DISK_BLOCK];
	const uint8_t *block = wanted->cdb.no_data ? zeros : wanted->command->data_out;

	for (uint32_t n = 0; n < wanted->cdb.count; n++)
		memcpy(to + (size_t)n * DISK_BLOCK, block, DISK_BLOCK);
}

static void unmap(struct disk_model *model, const struct wanted *wanted)
{
	uint32_t descriptors, count;
	uint64_t block;

	unmap_list_decode(wanted->command->data_out, listed(wanted), &descriptors);
	for (uint32_t i = 0; i < descriptors; i++) {
		unmap_descriptor_decode(wanted->command->data_out, i, &block, &count);
		memset(model->now + block * DISK_BLOCK, 0, (size_t)count * DISK_BLOCK);
	}
}

static void apply(struct disk_model *model, const struct wanted *wanted)
{
	const struct disk_command *command = wanted->command;
	uint8_t *to = model->now + (wanted->has_range ? wanted->cdb.block * DISK_BLOCK : 0);
	size_t came = min_u64(wanted->length, command->data_out_length) / DISK_BLOCK * DISK_BLOCK;

	switch (wanted->cdb.action) {
	case BLOCK_WRITE:
	case BLOCK_WRITE_AND_VERIFY:
		if (came)
			memcpy(to, command->data_out, came);
		break;
	case BLOCK_OR_WRITE:
		for (size_t at = 0; at < came; at++)
			to[at] |= command->data_out[at];
		break;
	case BLOCK_COMPARE_AND_WRITE:
		if (wanted->length)
			memcpy(to, command->data_out + wanted->length, wanted->length);
		break;
	case BLOCK_WRITE_SAME:
		write_same(to, wanted);
		break;
	case BLOCK_UNMAP:
		unmap(model, wanted);
		break;
	default:
		break;
	}
}

static void check_success(struct disk_model *model, const struct wanted *wanted)
{
	const struct disk_command *command = wanted->command;

	fuzz_check(command->status == SCSI_STATUS_GOOD && command->sense_length == 0);
	fuzz_check(!is_illegal(wanted) && !(wanted->changes && command->write_protected));
	fuzz_check(first_difference(model, wanted) < 0);
	if (wanted->cdb.action == BLOCK_READ)
		check_read(model, wanted);
	else if (wanted->cdb.action == BLOCK_CAPACITY || wanted->cdb.action == BLOCK_CAPACITY_LONG)
		check_capacity(wanted);
	else if (wanted->cdb.action == BLOCK_STATUS)
		check_status(model, wanted);
	else
		fuzz_check(command->data_in_length == 0);
	apply(model, wanted);
}

void disk_model_check(struct disk_model *model, const struct disk_command *command)
{
	struct wanted wanted = { .command = command };

	if (!block_cdb_decode(command->cdb, &wanted.cdb)) {
		fuzz_check(command->status == SCSI_STATUS_CHECK_CONDITION);
		fuzz_check(command->sense[2] == SENSE_ILLEGAL_REQUEST);
		fuzz_check(get_be16(command->sense + 12) == SENSE_INVALID_COMMAND_OPERATION_CODE);
		return;
	}
	wanted.changes = changes(wanted.cdb.action);
	wanted.has_range = has_range(wanted.cdb.action);
	if (wanted.has_range)
		wanted.length = (uint64_t)wanted.cdb.count * DISK_BLOCK;
	if (command->status == SCSI_STATUS_GOOD)
		check_success(model, &wanted);
	else
		check_failure(model, &wanted);
}
