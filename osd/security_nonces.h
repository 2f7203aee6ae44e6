/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The nonces of accepted requests, so that no request is accepted twice. Private to osd/.
 *
 * Memory is bounded: a full list takes only nonces that are newer than its oldest one, and forgets
 * that. So a forgotten nonce can never come back.
 *
 * A floor keeps out nonces from before the unit's start, of which the list knows nothing. The owner
 * of the list notes a bound above the accepted timestamps, on the device, and the next start begins
 * with it as its floor. The bound may lie in the future.
 */
#ifndef MUNINN_OSD_SECURITY_NONCES_H
#define MUNINN_OSD_SECURITY_NONCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/security.h"

struct osd_nonces;

/*
 * Remembers `capacity` (1..2^24) nonces, 28 bytes each, and none older than `floor_ms`. `noted_ms`:
 * the noted bound. -ENOMEM.
 */
int osd_nonces_create(size_t capacity, uint64_t floor_ms, uint64_t noted_ms,
		      struct osd_nonces **nonces);
void osd_nonces_destroy(struct osd_nonces *nonces);

/*
 * Takes a nonce whose timestamp (its first 6 bytes, ms since 1970) is in oldest_ms..newest_ms.
 * -ERANGE: it is not, or it is older than what the list remembers. -EEXIST: it was taken before.
 * -EAGAIN: it is above the noted bound, so note a higher one first. Thread-safe.
 */
int osd_nonces_take(struct osd_nonces *nonces, const uint8_t nonce[OSD_NONCE_BYTES],
		    uint64_t oldest_ms, uint64_t newest_ms);

/* A bound is noted now. Thread-safe. */
void osd_nonces_noted(struct osd_nonces *nonces, uint64_t noted_ms);

/* The newest timestamp that was taken; 0: none. Thread-safe. */
uint64_t osd_nonces_newest(struct osd_nonces *nonces);

#endif
