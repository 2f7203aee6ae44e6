/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The slow lane of rollbacks. Going back must not be used up, but each rollback leaves something
 * for as long as its history is kept: an interval in memory and on record, a step that readers
 * follow, some of a full device's last room. So beyond the limits of hidden.h, and where history is
 * locked and the room for all other ways back is used up, rollbacks go on in device time: one in
 * five seconds, a few at once, and three a minute of one partition. So no partition takes all of
 * the lane, and whoever waits a minute while nobody else goes back can do so.
 */
#ifndef MUNINN_ENGINE_HISTORY_SLOW_LANE_H
#define MUNINN_ENGINE_HISTORY_SLOW_LANE_H

#include <stdint.h>

/* Rollbacks of one partition, or of the device, in so much device time. */
#define SLOW_LANE_OF_ONE    3
#define SLOW_LANE_OF_ONE_MS 60000
/* Remembered: more than the lane allows in that time. */
#define SLOW_LANE_NOTES 32

/* A rollback that went in the lane; by its number it is found to have been taken back. */
struct slow_lane_note {
	uint64_t at, device_ms;
	uint16_t partition;
};

struct slow_lane {
	struct slow_lane_note notes[SLOW_LANE_NOTES]; /* since the engine was opened */
	uint32_t next;
};

struct engine_txn;
struct partition;

/*
 * Whether the rollback of a partition, or of the device, that the transaction is about to note may
 * go in the lane. -ETIME: not yet. -EFBIG: there are as many intervals as can be loaded.
 */
int slow_lane_check(struct engine_txn *txn, uint16_t partition);

/* It has gone there. `root`: pinned, in the state after the rollback; the caller marks its history.
 */
void slow_lane_use(struct engine_txn *txn, struct partition *root, uint16_t partition);

#endif
