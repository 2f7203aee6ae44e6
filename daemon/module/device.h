/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A flash device that units stand on: an image with its back end, the engine on it, and a thread
 * that looks for the administrator's instructions beside the image. Knows neither tgtd nor kinds of
 * units.
 */
#ifndef MUNINN_DAEMON_MODULE_DEVICE_H
#define MUNINN_DAEMON_MODULE_DEVICE_H

#include <stdint.h>

#include "common/error.h"
#include "daemon/module/schedule.h"
#include "daemon/module/scrubber.h"
#include "engine/options.h"
#include "nand/nand.h"

struct device;

/*
 * Opens an image that muninnd has made (daemon/image.h), or takes part in it, if a unit has it open
 * already: with the options of that. Main thread, as device_close. -errno with a sentence; then
 * nothing is open.
 */
int device_open(const char *image, const struct nand_options *nand,
		const struct engine_options *engine, const struct scrub_options *scrub,
		struct device **device, struct error_text *error);

/*
 * Makes everything stable, and closes it if no other unit has it open. The caller may not use the
 * engine any more. Returns the first error; the device is gone for it in any case. NULL is allowed.
 */
int device_close(struct device *device);

/*
 * Makes and drops versions by a schedule, until it is ended. What it is `about`: schedule_begin.
 * The caller keeps `schedule`. Main thread, as device_end_schedule, which may wait for the turn.
 */
void device_begin_schedule(struct device *device, struct schedule *schedule,
			   const struct schedule_rules *rules, uint64_t about);
void device_end_schedule(struct device *device, struct schedule *schedule);

/* The device's engine, as long as the device is open. */
struct engine *device_engine(const struct device *device);

/*
 * Opens `count` stages for pages of the device (nand.h). *stages NULL: it has no use for any. As
 * nand_stages_open.
 */
int device_open_stages(const struct device *device, uint32_t count, struct nand_stages **stages,
		       int *event_fd, struct error_text *error);

/* 16 bytes, chosen when the image was made. */
const uint8_t *device_uuid(const struct device *device);

/* Its units, for what they know of one another's sessions. */
struct osd_units *device_units(const struct device *device);

/* How full it is, as of a look every two seconds. Any thread. */
struct device_fullness {
	uint64_t used_bytes, capacity_bytes; /* 0 before the first look */
	/* How often one of FULLNESS_..._PERCENT was reached or passed since it was opened. */
	uint32_t crossings;
};
void device_read_fullness(const struct device *device, struct device_fullness *fullness);

/* How its blocks are worn: of a device of more than 65,536 blocks, of so many of them, spread. */
struct device_wear {
	uint32_t page_bytes;
	uint32_t erase_count_most;
	uint64_t erase_count_mean;
	uint64_t device_bytes; /* page data of all blocks */
};
void device_read_wear(const struct device *device, struct device_wear *wear);

/* What the flash has done since the device was opened. Stops nothing. */
void device_read_counters(const struct device *device, struct nand_counters *counters);

/*
 * Begins a backup on a thread of its own (backup.h), which takes the BACKUP_FILES descriptors if it
 * succeeds. It ends when the device is closed. Not on the main thread. -EBUSY: one is under way;
 * -errno. With a sentence.
 */
int device_back_up(struct device *device, const int *fds, struct error_text *error);

/* Pages that have been read or programmed and blocks erased, since it was opened. */
uint64_t device_pages_moved(const struct device *device);

#endif
