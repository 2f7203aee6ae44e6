/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Versions that are kept: their records, their names, and the set of their bounds. */
#ifndef MUNINN_ENGINE_HISTORY_VERSIONS_H
#define MUNINN_ENGINE_HISTORY_VERSIONS_H

#include "engine/history/past.h"

/* The record of a version without its name. */
#define VERSION_HEAD_BYTES 36

struct version_record {
	uint64_t sequence; /* the bound: everything up to it belongs to the version */
	uint64_t time_ms;
	uint64_t used_bytes, objects;
	uint64_t written_bytes;
	char name[ENGINE_VERSION_NAME_MAX + 1];
};

/* Encodes into `to`, VERSION_HEAD_BYTES + ENGINE_VERSION_NAME_MAX bytes; returns the length. */
uint32_t version_encode(const struct version_record *record, uint8_t *to);

/* -EBADMSG. */
int version_decode(struct version_record *record, const uint8_t *from, uint32_t length);

/* Reads a kept version of a current partition, of the root: of the device. -ENOENT. */
int version_read(struct engine *engine, struct partition *partition, uint32_t number,
		 struct version_record *record);

/* How many kept versions of a scope have a bound before `sequence`. */
int versions_before(struct engine *engine, struct partition *partition, uint64_t sequence,
		    uint64_t *count);

/*
 * Counts the kept versions of the device at which a current partition, not the root, was gone.
 * -EIO, -EBADMSG.
 */
int versions_missed(struct engine *engine, struct partition *root,
		    const struct partition *partition, uint64_t *missed);

static inline bool version_is_of_device(uint32_t number)
{
	return number >= ENGINE_DEVICE_VERSION_FIRST && number <= ENGINE_DEVICE_VERSION_LAST;
}

#endif
