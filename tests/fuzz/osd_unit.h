/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The logical unit that the osd target's commands go to: a small flash in memory, as if new for
 * each input.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_UNIT_H
#define MUNINN_TESTS_FUZZ_OSD_UNIT_H

#include "nand/nand.h"
#include "osd/osd.h"
#include "tests/fuzz/osd_keys.h"

struct osd_fuzz_unit {
	struct nand *nand;
	struct engine *engine;
	struct osd_device *device;
	uint64_t now_ms; /* the unit's clock */
	/*
	 * Of scenes that have a version: when the partition was made, and what its version 1 holds.
	 */
	uint64_t version_created, version_digest;
	struct osd_keys keys; /* what the security manager has */
	bool worn;            /* programs and erases may have failed: the flash may take no more */
	uint8_t damage;       /* the choice of osd_damage.h; 0: none */
	uint64_t horizon;     /* of the scene LOCKED: the earliest moment of its first partition */
};

/* Aborts when it cannot be made: that is a mistake of the harness. */
void osd_fuzz_unit_open(struct osd_fuzz_unit *unit, enum osd_scene scene);
void osd_fuzz_unit_close(struct osd_fuzz_unit *unit);

/* The target's process dies and comes back. */
void osd_fuzz_unit_restart(struct osd_fuzz_unit *unit);

/* Frees a segment, if there is one that is worth it. */
void osd_fuzz_unit_merge(struct osd_fuzz_unit *unit);

/*
 * A step of each of those that go on in the background: a merge, a command that was answered before
 * its end.
 */
void osd_fuzz_unit_step(struct osd_fuzz_unit *unit);

/*
 * Until when the retention of the device and of its first partition are locked; 0: not, or there is
 * none.
 */
struct osd_fuzz_locks {
	uint64_t until_ms[2];
};
struct osd_fuzz_locks osd_fuzz_unit_locks(struct osd_fuzz_unit *unit);

/*
 * Of the scene LOCKED: is the retention of its first partition locked as it was, and all of the
 * history there that was?
 */
bool osd_fuzz_unit_is_locked(struct osd_fuzz_unit *unit);

/*
 * Transactions that were committed since the target's start: unchanged when nothing was executed.
 * Cheap.
 */
uint64_t osd_fuzz_unit_commits(const struct osd_fuzz_unit *unit);

/*
 * A number for everything that the unit holds: partitions, objects, data, attributes and times, but
 * not those of accesses, which a crash may lose. Of large objects only beginning and end count, of
 * many only the first ones.
 */
uint64_t osd_fuzz_unit_digest(struct osd_fuzz_unit *unit);

/*
 * The same of the objects in version 1 of the scene's partition, which has clones besides; 0: that
 * version is no more.
 */
uint64_t osd_fuzz_unit_version_digest(struct osd_fuzz_unit *unit);

#endif
