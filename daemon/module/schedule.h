/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Versions that the device makes and drops by itself, as an administrator says: "hourly:24
 * daily:30" keeps one of each hour of the last 24 versions of that kind, and one of each day. The
 * device's attendant calls it, so it needs neither a thread nor a timer. What has been done is told
 * by the versions alone: their names say of which hour or day they are.
 */
#ifndef MUNINN_DAEMON_MODULE_SCHEDULE_H
#define MUNINN_DAEMON_MODULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "wire/vendor.h"

/* The longest text, and how many partitions and versions of a kind it can name. */
#define SCHEDULE_TEXT_BYTES 512
#define SCHEDULE_RULES_MAX  16
#define SCHEDULE_KEEP_MAX   1000

struct engine;

/* How many versions of each kind are kept of a partition; 0: none is made, and none is dropped. */
struct schedule_rule {
	uint64_t partition; /* 0: what the text is about: the device, or the disk's partition */
	uint16_t keep[OSD_SCHEDULE_KINDS];
};

struct schedule_rules {
	unsigned int count;
	struct schedule_rule rule[SCHEDULE_RULES_MAX];
};

/*
 * Words with blanks in between: KIND:NUMBER for the device or the disk, then again behind the ID of
 * a partition for that. Kinds are in osd_schedule_words. -EINVAL with a sentence.
 */
int schedule_parse(const char *text, struct schedule_rules *rules, struct error_text *error);

struct schedule {
	struct schedule *next; /* for the owner of a list of them */
	const char *image;     /* for messages */
	struct schedule_rules rules;
	struct schedule_state {
		/* By kind: of which hour, day or the like the last version is; 0: not looked yet.
		 */
		uint64_t done[OSD_SCHEDULE_KINDS];
		uint64_t retry_ms; /* after a failure: not before, by the engine's clock */
		int error;         /* the last one, so that it is logged once */
		bool is_locked;    /* as above */
	} state[SCHEDULE_RULES_MAX];
};

/* `partition`: that rules without one are about. `image` has to last. */
void schedule_begin(struct schedule *schedule, const struct schedule_rules *rules,
		    uint64_t partition, const char *image);

/*
 * Does what is due: of each kind whose present hour or day has no version yet it makes one, whether
 * or not earlier ones were missed, and drops those of the kind beyond their number, the oldest
 * first. Waits for the turn.
 */
void schedule_look(struct schedule *schedule, struct engine *engine);

#endif
