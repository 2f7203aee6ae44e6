/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The disk: how a command is checked, gets its transaction, and ends. One transaction is one
 * command, so whatever happens all of its blocks are new, or all are old.
 */
#include "disk/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/bytes.h"
#include "disk/commands.h"
#include "disk/volumes.h"

/* ---- life ---- */

/* A name that no other volume or version has, of this device or another one. */
static void name_disk(struct disk *disk, const uint8_t uuid[16], const struct disk_options *options)
{
	uint8_t of[24 + DISK_VERSION_MAX];
	size_t length = strlen(options->version);

	memcpy(of, uuid, 16);
	put_be64(of + 16, disk->volume.partition);
	memcpy(of + 24, options->version, length);
	put_be64(disk->naa, XXH3_64bits(of, 24 + length));
	inquiry_name_local(disk->naa);
	if (options->serial[0]) {
		snprintf(disk->serial, sizeof(disk->serial), "%s", options->serial);
		return;
	}
	for (size_t i = 0; i < sizeof(disk->naa); i++)
		snprintf(disk->serial + 2 * i, 3, "%02x", disk->naa[i]);
}

int disk_open(struct engine *engine, const uint8_t uuid[16], const struct disk_options *options,
	      struct disk **disk, struct error_text *error)
{
	struct disk *new = calloc(1, sizeof(*new));
	const struct volume_wanted wanted = {
		.partition = options->partition ? options->partition : ENGINE_FIRST_ID,
		.bytes = options->bytes,
		.block_bytes = options->block_bytes,
		.version = options->version,
	};
	int result;

	if (!new)
		return error_set(error, -ENOMEM, "out of memory");
	result = volume_open(engine, &wanted, &new->volume, error);
	if (result) {
		free(new);
		return result;
	}
	new->page_blocks = engine_page_bytes(engine) / new->volume.shape.block_bytes;
	name_disk(new, uuid, options);
	*disk = new;
	return 0;
}

void disk_close(struct disk *disk)
{
	free(disk);
}

uint64_t disk_partition(const struct disk *disk)
{
	return disk->volume.partition;
}

bool disk_is_version(const struct disk *disk)
{
	return disk->volume.is_version;
}

bool disk_is_read_only(const struct disk *disk)
{
	return disk->volume.is_version || volumes_is_read_only(&disk->volume);
}

void disk_grown(struct disk *disk, uint64_t bytes)
{
	__atomic_store_n(&disk->volume.shape.bytes, bytes, __ATOMIC_RELAXED);
}

uint64_t disk_bytes(const struct disk *disk)
{
	return __atomic_load_n(&disk->volume.shape.bytes, __ATOMIC_RELAXED);
}

uint32_t disk_block_bytes(const struct disk *disk)
{
	return disk->volume.shape.block_bytes;
}

/* ---- the kinds of commands ---- */

enum {
	CHANGES = 1 << 0,   /* writes or unmaps */
	FREES = 1 << 1,     /* must work on a full device */
	HAS_RANGE = 1 << 2, /* names blocks */
	TRANSFERS = 1 << 3, /* at most DISK_TRANSFER_MAX */
	IS_SHORT = 1 << 4,  /* with few blocks it is worth an attempt */
	IS_STABLE = 1 << 5, /* what it does is stable at its end */
};

static const struct kind {
	disk_command_call *call; /* NULL: its checks are all */
	unsigned flags;
} kinds[BLOCK_ACTIONS] = {
	[BLOCK_READ] = { disk_read, HAS_RANGE | TRANSFERS | IS_SHORT },
	[BLOCK_WRITE] = { disk_write, CHANGES | HAS_RANGE | TRANSFERS | IS_SHORT },
	[BLOCK_WRITE_AND_VERIFY] = { disk_write_and_verify,
				     CHANGES | HAS_RANGE | TRANSFERS | IS_STABLE },
	[BLOCK_VERIFY] = { disk_verify, HAS_RANGE | TRANSFERS },
	[BLOCK_PRE_FETCH] = { NULL, HAS_RANGE },
	[BLOCK_SYNCHRONIZE] = { NULL, HAS_RANGE | IS_STABLE },
	[BLOCK_WRITE_SAME] = { disk_write_same, CHANGES | HAS_RANGE | TRANSFERS },
	[BLOCK_UNMAP] = { disk_unmap, CHANGES | FREES },
	[BLOCK_COMPARE_AND_WRITE] = { disk_compare_and_write, CHANGES | HAS_RANGE | IS_SHORT },
	[BLOCK_OR_WRITE] = { disk_or_write, CHANGES | HAS_RANGE | TRANSFERS },
	[BLOCK_CAPACITY] = { disk_capacity, 0 },
	[BLOCK_CAPACITY_LONG] = { disk_capacity_long, 0 },
	[BLOCK_STATUS] = { disk_status, 0 },
};

/* Copying so much takes no longer than handing a command over to a thread. */
enum { SHORT_BYTES_MAX = 65536 };

/* ---- how a command fails ---- */

static const struct {
	int error;
	uint8_t key;
	uint16_t code;
} error_table[] = {
	{ ENODEV, SENSE_NOT_READY, SENSE_MANUAL_INTERVENTION_REQUIRED },
	{ ENOSPC, SENSE_DATA_PROTECT, SENSE_SPACE_ALLOCATION_FAILED_WRITE_PROTECT },
	{ EOVERFLOW, SENSE_DATA_PROTECT, SENSE_SYSTEM_RESOURCE_FAILURE },
	{ EROFS, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED },
	{ EBADMSG, SENSE_MEDIUM_ERROR, SENSE_UNRECOVERED_READ_ERROR },
};

int disk_fail(struct disk_request *request, uint8_t key, uint16_t code)
{
	assert(request->key == SENSE_NO_SENSE && key != SENSE_NO_SENSE);
	request->key = key;
	request->code = code;
	return -ECANCELED;
}

/* Gives an error of the engine its sense. */
static void take_error(struct disk_request *request, int result)
{
	request->key = SENSE_HARDWARE_ERROR;
	request->code = SENSE_INTERNAL_TARGET_FAILURE;
	for (size_t i = 0; i < sizeof(error_table) / sizeof(error_table[0]); i++)
		if (error_table[i].error == -result) {
			request->key = error_table[i].key;
			request->code = error_table[i].code;
		}
}

/* Status, sense and lengths of a command that has ended so. */
static void answer(struct disk_request *request, int result)
{
	struct disk_command *command = request->command;

	if (!result)
		return;
	command->data_in_length = 0;
	/* Nothing was wrong with it, and nothing of it has happened: it may be sent again. */
	if (result == -ENOMEM) {
		command->status = SCSI_STATUS_BUSY;
		return;
	}
	if (request->key == SENSE_NO_SENSE)
		take_error(request, result);
	block_sense_encode(request->key, request->code, request->has_information,
			   request->information, command->sense);
	command->sense_length = BLOCK_SENSE_BYTES;
	command->status = SCSI_STATUS_CHECK_CONDITION;
}

/* ---- checks ---- */

static int refuse_field(struct disk_request *request)
{
	return disk_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_CDB);
}

static int check_fields(struct disk_request *request)
{
	const struct block_cdb *cdb = &request->cdb;

	/* There is no protection information. */
	if (cdb->protect || cdb->anchor || cdb->check == BLOCK_CHECK_RESERVED)
		return refuse_field(request);
	if (cdb->action == BLOCK_WRITE_SAME && cdb->count == 0)
		return refuse_field(request);
	if (cdb->action == BLOCK_CAPACITY && !cdb->partial && cdb->block)
		return refuse_field(request);
	return 0;
}

/* Before the transaction: what needs no look at the volume. */
static int check_request(struct disk_request *request, const struct kind *kind)
{
	int result = check_fields(request);

	if (result)
		return result;
	if (kind->flags & TRANSFERS && request->length > DISK_TRANSFER_MAX)
		return refuse_field(request);
	if (kind->flags & CHANGES &&
	    (request->command->write_protected || disk_is_version(request->disk)))
		return disk_fail(request, SENSE_DATA_PROTECT, SENSE_WRITE_PROTECTED);
	return 0;
}

/* SYNCHRONIZE CACHE and PRE-FETCH of 0 blocks go to the end, from wherever. */
static int check_range(struct disk_request *request)
{
	uint64_t blocks = request->work.bytes / request->block_bytes;
	const struct block_cdb *cdb = &request->cdb;

	if (cdb->block > blocks || cdb->count > blocks - cdb->block)
		return disk_fail(request, SENSE_ILLEGAL_REQUEST,
				 SENSE_LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);
	return 0;
}

/* ---- execution ---- */

static enum engine_mode mode_of(unsigned flags)
{
	return flags & FREES ? ENGINE_FREE : flags & CHANGES ? ENGINE_WRITE : ENGINE_READ;
}

static int run_in_transaction(struct disk_request *request, disk_command_call *call, unsigned flags)
{
	int result = volume_begin(&request->disk->volume, mode_of(flags), &request->work);

	if (result)
		return result;
	/* A rollback of the partition may have changed it. */
	if (request->work.bytes != disk_bytes(request->disk))
		disk_grown(request->disk, request->work.bytes);
	if (flags & HAS_RANGE)
		result = check_range(request);
	if (!result && call)
		result = call(request);
	return volume_end(&request->work, result, request->stable);
}

static int run(struct disk_request *request, const struct kind *kind)
{
	int result = check_request(request, kind);

	return result ? result : run_in_transaction(request, kind->call, kind->flags);
}

/* False: it is no command of a disk. */
static bool take(struct disk *disk, struct disk_command *command, struct disk_request *request)
{
	unsigned flags;

	command->status = SCSI_STATUS_GOOD;
	command->sense_length = 0;
	command->data_in_length = command->data_out_used = 0;
	*request = (struct disk_request){ .disk = disk,
					  .command = command,
					  .block_bytes = disk->volume.shape.block_bytes };
	if (!block_cdb_decode(command->cdb, &request->cdb))
		return false;
	flags = kinds[request->cdb.action].flags;
	if (flags & HAS_RANGE) {
		request->offset = request->cdb.block * request->block_bytes;
		request->length = (uint64_t)request->cdb.count * request->block_bytes;
	}
	request->stable = flags & IS_STABLE || (flags & CHANGES && command->write_through) ||
			  request->cdb.fua;
	return true;
}

void disk_execute(struct disk *disk, struct disk_command *command)
{
	struct disk_request request;
	int result;

	if (take(disk, command, &request))
		result = run(&request, &kinds[request.cdb.action]);
	else
		result = disk_fail(&request, SENSE_ILLEGAL_REQUEST,
				   SENSE_INVALID_COMMAND_OPERATION_CODE);
	answer(&request, result);
}

bool disk_execute_at_once(struct disk *disk, struct disk_command *command, struct nand_stage *stage)
{
	struct disk_request request;
	const struct kind *kind;
	int result;

	if (!take(disk, command, &request))
		return false;
	kind = &kinds[request.cdb.action];
	if (!(kind->flags & IS_SHORT) || request.stable || request.length > SHORT_BYTES_MAX)
		return false;
	engine_attempt_begin(stage);
	result = run(&request, kind);
	engine_attempt_end();
	return result == 0;
}
