/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A disk on flash in memory for the tests of this folder, and short forms of its commands. */
#ifndef MUNINN_TESTS_DISK_DRIVE_H
#define MUNINN_TESTS_DISK_DRIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "disk/disk.h"
#include "engine/engine.h"
#include "engine/history.h"
#include "engine/options.h"
#include "nand/nand.h"
#include "wire/standard.h"

enum { DRIVE_BUFFER_BYTES = 4 << 20 };

#define DRIVE_PARTITION ENGINE_FIRST_ID

struct drive {
	struct nand *nand;
	struct engine *engine;
	struct disk *disk;
	uint64_t now; /* of the engine's clock */
	struct engine_options options;
	struct disk_options disk_options;
	struct disk_command command; /* the last one */
	uint8_t cdb[16];
	uint8_t out[DRIVE_BUFFER_BYTES], in[DRIVE_BUFFER_BYTES]; /* Data-Out and Data-In */
};

/* With pages of 4096 bytes: flash of `flash_mib` MiB, and a volume of `bytes` in such blocks. */
struct drive *drive_new(uint64_t flash_mib, uint64_t bytes, uint32_t block_bytes);
void drive_free(struct drive *drive);

/* Ends the engine as a crash does, and opens what is there. */
void drive_crash(struct drive *drive);
/* The second half of it. */
void drive_open(struct drive *drive);

/* Another disk on the same device: the volume in a partition. disk_close ends it. */
struct disk *drive_open_other(struct drive *drive, uint64_t partition);

/*
 * Executes drive->cdb with so many bytes of drive->out and room in drive->in. Returns the sense
 * key, code and qualifier as 0xKCCQQ; 0: GOOD.
 */
uint32_t drive_run(struct drive *drive, size_t out, size_t in);

/* A CDB of 16 bytes: READ(16) and the like. */
uint32_t drive_range(struct drive *drive, uint8_t operation, uint8_t bits, uint64_t block,
		     uint32_t count, size_t out, size_t in);

/* UNMAP of one range. */
uint32_t drive_unmap(struct drive *drive, uint64_t block, uint32_t count);

/* WRITE(16) of blocks that say `number` all over, and READ(16) that finds them so. */
void drive_write(struct drive *drive, uint64_t block, uint32_t count, uint32_t number);
void drive_check(struct drive *drive, uint64_t block, uint32_t count, uint32_t number);

/* Fills bytes with a number. */
void drive_fill(uint8_t *bytes, size_t length, uint32_t number);

/* A version of the volume, and back to it. */
uint32_t drive_snapshot(struct drive *drive);
void drive_roll_back(struct drive *drive, uint32_t version);

/* What senses are, as drive_run returns them. */
#define SENSE(key, code) ((uint32_t)SENSE_##key << 16 | SENSE_##code)

#endif
