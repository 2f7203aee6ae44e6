/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A SCSI disk (SBC-3) on an engine: a volume, which is a partition of objects that each hold a
 * range of its bytes, and the commands that read and write its blocks. Knows nothing of tgt, iSCSI
 * or sockets. What every SCSI device answers (mode pages, reservations, unit attentions) is the
 * caller's.
 */
#ifndef MUNINN_DISK_DISK_H
#define MUNINN_DISK_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "engine/engine.h"
#include "wire/blocks.h"
#include "wire/status.h"

#define DISK_SERIAL_MAX 36
/* A kept version of a partition: its name, which begins with a letter, or its number. */
#define DISK_VERSION_MAX 63

/* The largest disk; the smallest has one block. */
#define DISK_BYTES_MAX (UINT64_C(1) << 50)

struct disk_options {
	uint64_t partition; /* that is the volume; 0: ENGINE_FIRST_ID */
	/*
	 * Bytes of the volume. A new one has them from the beginning (0: three quarters of what the
	 * device offers); one that is there grows to them, and never shrinks (0: as it is).
	 */
	uint64_t bytes;
	uint32_t block_bytes;             /* 512 or 4096; 0: as it is, 512 of a new one */
	char serial[DISK_SERIAL_MAX + 1]; /* "": by the device's UUID and the partition */
	/*
	 * "": the present. Else the volume is as it was in this version of its partition, and can
	 * only be read. `bytes` is 0 then.
	 */
	char version[DISK_VERSION_MAX + 1];
};

struct disk;

/*
 * Opens the volume. That of the present is made if there is no such partition. -EINVAL: the
 * partition is no volume, or not of these options; -ENOMEM, errors of the engine; with a sentence.
 * A disk of a version that is not there is never ready. The disk uses the engine but does not own
 * it.
 */
int disk_open(struct engine *engine, const uint8_t uuid[16], const struct disk_options *options,
	      struct disk **disk, struct error_text *error);
void disk_close(struct disk *disk);

/* Of the volume as it was opened. */
uint64_t disk_partition(const struct disk *disk);
/* Is it a version, which can only be read? */
bool disk_is_version(const struct disk *disk);
/* Can it only be read, for that reason or because it is a clone that can't be written? */
bool disk_is_read_only(const struct disk *disk);
uint64_t disk_bytes(const struct disk *disk);
uint32_t disk_block_bytes(const struct disk *disk);

/*
 * The present size of the volume, after it has grown: for what the caller tells of the disk. Each
 * command notes it by itself, too.
 */
void disk_grown(struct disk *disk, uint64_t bytes);

/* ---- volumes of a device, with or without disks on them ---- */

struct disk_volume {
	uint64_t partition;
	uint64_t bytes;
	uint32_t block_bytes;
	uint64_t used_bytes; /* of the present: blocks that take space */
	uint64_t source;     /* of a clone; 0: it is none, or that is gone */
	bool is_read_only;   /* a clone that can't be written */
};

/*
 * The first volume whose partition is >= `from`. -ENOENT: there is none. Others of the device's
 * partitions are passed over.
 */
int disk_volume_next(struct engine *engine, uint64_t from, struct disk_volume *volume);

/*
 * Makes a volume; `partition` 0: in one that the engine chooses, `bytes` and `block_bytes` 0: as in
 * struct disk_options. *made says which. -EEXIST, -EINVAL, errors of the engine; with a sentence.
 */
int disk_volume_create(struct engine *engine, uint64_t partition, uint64_t bytes,
		       uint32_t block_bytes, struct disk_volume *made, struct error_text *error);

/* Removes a volume that no disk is on. -ENOENT, -ENODEV: no volume; -EPERM: its history is locked.
 */
int disk_volume_remove(struct engine *engine, uint64_t partition, struct error_text *error);

/* Lets a volume grow. *bytes becomes what it has then: whole blocks. -EINVAL: it would shrink. */
int disk_volume_grow(struct engine *engine, uint64_t partition, uint64_t *bytes,
		     struct error_text *error);

/*
 * A new volume that is as another one was at a moment, and *clone, where it is. Nothing is copied.
 */
struct engine_moment;
int disk_volume_clone(struct engine *engine, uint64_t partition, const struct engine_moment *moment,
		      bool writable, uint64_t *clone, struct error_text *error);

/*
 * The number of a volume's version, by that or its name (struct disk_options). -ENOENT: there is
 * none; with a sentence.
 */
int disk_volume_version(struct engine *engine, uint64_t partition, const char *text,
			uint32_t *version, struct error_text *error);

/* ---- commands ---- */

/* One command. The caller owns all buffers and keeps them until disk_execute returns. */
struct disk_command {
	const uint8_t *cdb; /* 16 bytes at least */
	const uint8_t *data_out;
	size_t data_out_length; /* bytes received from the initiator */
	uint8_t *data_in;
	size_t data_in_capacity; /* bytes that the initiator has space for */
	bool write_through;      /* what it writes becomes stable before it ends */
	bool write_protected;    /* it may not change anything */

	/* Results. */
	uint8_t status;
	uint8_t sense[BLOCK_SENSE_BYTES];
	size_t sense_length;
	/*
	 * Bytes that the command has for the initiator, and describes of Data-Out, for the
	 * residuals: either may be more than there is space, or came.
	 */
	size_t data_in_length, data_out_used;
};

/* Executes one command. Thread-safe. Never fails: see `status`. */
void disk_execute(struct disk *disk, struct disk_command *command);

/*
 * Executes the command if it is short and nothing in it has to wait, as osd_execute_at_once. False:
 * nothing has happened, and the command is still to be executed.
 */
struct nand_stage;
bool disk_execute_at_once(struct disk *disk, struct disk_command *command,
			  struct nand_stage *stage);

/*
 * Standard INQUIRY data (cdb[1] bit 0 clear) or a VPD page: at most `capacity` bytes into `data`;
 * returns the full length, or -EINVAL for a page that does not exist.
 */
int disk_inquiry(const struct disk *disk, const uint8_t cdb[6], uint8_t *data, size_t capacity);

/* ---- the space below it ---- */

/* Of the device, which disks share. */
struct disk_space {
	uint64_t used_bytes, capacity_bytes;
};

/*
 * LOG SENSE: the page of logical block provisioning, and that of the pages that there are. As
 * disk_inquiry.
 */
int disk_log_sense(const struct disk_space *space, const uint8_t cdb[10], uint8_t *data,
		   size_t capacity);

/*
 * The mode page of logical block provisioning (1Ch/02h) behind its header: initiators are warned
 * when no more bytes than one of these are available.
 */
#define DISK_THRESHOLDS           2
#define DISK_THRESHOLD_PAGE_BYTES 28
void disk_threshold_page(const uint64_t available_bytes[DISK_THRESHOLDS],
			 uint8_t page[DISK_THRESHOLD_PAGE_BYTES]);

#endif
