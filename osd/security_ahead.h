/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Bounds of requests that were dated ahead of the unit's clock. Private to osd/.
 *
 * A start of the unit refuses what may have been accepted before it. Most requests have the time of
 * the unit's clock, and one bound for all of them is enough (security_start.h). Somebody who dates
 * requests ahead gets a bound of his own, so that after a start only he has to wait until the clock
 * is there. docs/format.md, "Keys of OSD security", has the bytes.
 */
#ifndef MUNINN_OSD_SECURITY_AHEAD_H
#define MUNINN_OSD_SECURITY_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osd/security_nonces.h"

#define OSD_AHEAD_MAX         64
#define OSD_AHEAD_MARK_BYTES  16
#define OSD_AHEAD_ENTRY_BYTES 32
#define OSD_AHEAD_BYTES_MAX   (OSD_AHEAD_MAX * OSD_AHEAD_ENTRY_BYTES)

struct osd_ahead {
	unsigned count;
	struct osd_ahead_bound {
		uint64_t partition;
		uint8_t mark[OSD_AHEAD_MARK_BYTES]; /* of a capability key; 0: the partition's */
		uint64_t bound_ms;
	} bounds[OSD_AHEAD_MAX];
};

/* The highest bound that is about the owner's requests; 0: none. */
uint64_t osd_ahead_of(const struct osd_ahead *ahead, const struct osd_nonce_owner *owner);

/*
 * Raises the bound of an owner. If there is no place for it, the partition that has most places
 * gets one bound for all its keys. False: each partition has one place only, or there is no memory.
 */
bool osd_ahead_raise(struct osd_ahead *ahead, const struct osd_nonce_owner *owner,
		     uint64_t bound_ms);

/* Takes out the bounds up to `until_ms`; returns the highest of them, 0: none. */
uint64_t osd_ahead_settle(struct osd_ahead *ahead, uint64_t until_ms);

/* Returns the bytes written. */
size_t osd_ahead_encode(const struct osd_ahead *ahead, uint8_t data[OSD_AHEAD_BYTES_MAX]);
/* -EBADMSG: of no such length. */
int osd_ahead_decode(const uint8_t *data, size_t length, struct osd_ahead *ahead);

#endif
