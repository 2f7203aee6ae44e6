/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The nonces of requests that were accepted, so that no request is accepted twice. Private to osd/.
 *
 * Memory is bounded: a full list takes only nonces that are newer than the oldest that it has,
 * which goes then. So a forgotten nonce can never come back. A floor keeps out nonces from before
 * the unit's start, of which nothing is known: whoever owns the list notes, where it lasts, a bound
 * above the timestamps that are taken, which may lie in the future, and begins with it.
 */
#ifndef MUNINN_OSD_SECURITY_NONCES_H
#define MUNINN_OSD_SECURITY_NONCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/security.h"

struct osd_nonces;

/*
 * Remembers `capacity` (1..2^24) nonces, 28 bytes each; none older than `floor_ms`. `noted_ms`: the
 * bound that is noted. -ENOMEM.
 */
int osd_nonces_create(size_t capacity, uint64_t floor_ms, uint64_t noted_ms,
		      struct osd_nonces **nonces);
void osd_nonces_destroy(struct osd_nonces *nonces);

/*
 * Takes a nonce whose timestamp (its first 6 bytes, milliseconds since 1970) is in
 * oldest_ms..newest_ms. -ERANGE: it is not, or older than what is remembered; -EEXIST: it was taken
 * before; -EAGAIN: it is newer than the bound, so a higher one has to be noted first.
 * Thread-safe.
 */
int osd_nonces_take(struct osd_nonces *nonces, const uint8_t nonce[OSD_NONCE_BYTES],
		    uint64_t oldest_ms, uint64_t newest_ms);

/* A bound is noted now. Thread-safe. */
void osd_nonces_noted(struct osd_nonces *nonces, uint64_t noted_ms);

/* The newest timestamp that was taken; 0: none. Thread-safe. */
uint64_t osd_nonces_newest(struct osd_nonces *nonces);

#endif
