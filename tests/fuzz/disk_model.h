/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the blocks of the disk target's disk are, and what a command must answer, by the words of
 * SBC-3: without ranges, objects or records.
 */
#ifndef MUNINN_TESTS_FUZZ_DISK_MODEL_H
#define MUNINN_TESTS_FUZZ_DISK_MODEL_H

#include "disk/disk.h"

/* Pages of 512 bytes: a range of the volume has 2,048 of them. */
enum { DISK_BLOCK = 512, DISK_RANGE = 2048, DISK_BLOCKS = DISK_RANGE + 64 };

struct disk_model {
	uint8_t now[DISK_BLOCKS * DISK_BLOCK];
	uint8_t then[DISK_BLOCKS * DISK_BLOCK]; /* in the last version that was kept */
};

/*
 * Holds a command that has been executed against the model: status, sense and lengths, all of
 * Data-In, and whether it had to succeed. Then the model holds what the command has written.
 */
void disk_model_check(struct disk_model *model, const struct disk_command *command);

#endif
