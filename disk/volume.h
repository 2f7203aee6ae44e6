/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A volume: bytes from 0 on, of which those that nobody has written are zeros and take no space. It
 * is an unlogged partition; object ENGINE_FIRST_ID + n holds range n of the bytes. A range has so
 * many pages that an object of them never has more extents than it may, whatever is mapped. So
 * mapping and unmapping cost one onode, and overwriting costs none.
 */
#ifndef MUNINN_DISK_VOLUME_H
#define MUNINN_DISK_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "engine/engine.h"

/* Twice an object's extents, which are apart by a page at least. */
#define VOLUME_RANGE_PAGES 2048

/* What an attribute of the partition says of the volume. */
struct volume_shape {
	uint32_t block_bytes;
	uint64_t range_bytes; /* of an object */
	uint64_t bytes;
};

struct volume {
	struct engine *engine;
	uint64_t partition;
	bool is_version;           /* of the partition: can only be read */
	bool is_missing;           /* there was no such version at the opening */
	uint32_t version;          /* 0: the present */
	struct volume_shape shape; /* as it was opened */
};

/* What is wanted of a volume: as struct disk_options. */
struct volume_wanted {
	uint64_t partition;
	uint64_t bytes;
	uint32_t block_bytes;
	const char *version;
};

/*
 * Opens the volume in a partition, or a version of it, or makes it in the present. A version that
 * is not there is warned of, and never to be used: who drops one must not keep others' units from
 * being opened. -EINVAL and errors of the engine, with a sentence.
 */
int volume_open(struct engine *engine, const struct volume_wanted *wanted, struct volume *volume,
		struct error_text *error);

/*
 * Makes a volume; its partition 0: in one that the engine chooses. volume->partition and its shape
 * say what was made. -EEXIST: there is such a partition; otherwise as volume_open.
 */
int volume_create(struct engine *engine, const struct volume_wanted *wanted, struct volume *volume,
		  struct error_text *error);

/*
 * What a partition is as a volume, in a transaction: volume->partition, and version. -ENOENT: there
 * is no such partition; -ENODEV: it is no volume.
 */
int volume_look(struct engine_txn *txn, struct volume *volume);

/* A transaction on a volume. */
struct volume_work {
	const struct volume *volume;
	struct engine_txn *txn;
	uint64_t bytes; /* of the volume now: a rollback of the partition may change it */
};

/* As engine_begin. -ENODEV: the partition or its version is not the volume that was opened. */
int volume_begin(const struct volume *volume, enum engine_mode mode, struct volume_work *work);

/*
 * Commits if `result` is 0, else aborts. Returns `result`, or how the commit failed. `stable` as of
 * engine_commit.
 */
int volume_end(struct volume_work *work, int result, bool stable);

/* Of bytes inside the volume. Results are those of the engine. */
int volume_read(struct volume_work *work, uint64_t offset, void *data, uint64_t length);
int volume_write(struct volume_work *work, uint64_t offset, const void *data, uint64_t length);
/* The bytes are zeros then; whole pages of them take no space. */
int volume_clear(struct volume_work *work, uint64_t offset, uint64_t length);

/*
 * Whether the byte at `offset` takes space, and how many bytes from there on do so too: up to the
 * end of its range at most.
 */
int volume_map(struct volume_work *work, uint64_t offset, bool *mapped, uint64_t *length);

#endif
