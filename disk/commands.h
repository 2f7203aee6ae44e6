/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the files of the disk's commands share. */
#ifndef MUNINN_DISK_COMMANDS_H
#define MUNINN_DISK_COMMANDS_H

#include "disk/disk.h"
#include "disk/limits.h"
#include "disk/volume.h"
#include "wire/inquiry.h"
#include "wire/standard.h"

struct disk {
	struct volume volume;
	uint32_t page_blocks;            /* blocks of a page of flash */
	uint8_t naa[INQUIRY_NAME_BYTES]; /* the name of the volume */
	char serial[DISK_SERIAL_MAX + 1];
};

/* A command that is being executed. */
struct disk_request {
	struct disk *disk;
	struct disk_command *command;
	struct block_cdb cdb;
	uint32_t block_bytes;
	uint64_t offset, length; /* of its blocks, in bytes */
	struct volume_work work; /* its transaction */
	bool stable;             /* with its end */

	/* Why it failed. */
	uint8_t key; /* SENSE_NO_SENSE: it has not, or by an error of the engine */
	uint16_t code;
	bool has_information;
	uint64_t information;
};

/* Fails a request that has not failed. Returns an error, which says nothing more. */
int disk_fail(struct disk_request *request, uint8_t key, uint16_t code);

/* VPD page B2: how many blocks a count of the space below the disk stands for, as a power of 2. */
uint8_t disk_threshold_exponent(const struct disk *disk);

/* ---- commands, in the request's transaction: 0, an error of the engine, or of disk_fail ---- */

typedef int disk_command_call(struct disk_request *request);

disk_command_call disk_read, disk_write, disk_write_and_verify, disk_verify, disk_compare_and_write,
	disk_or_write, disk_write_same, disk_unmap, disk_capacity, disk_capacity_long, disk_status;

#endif
