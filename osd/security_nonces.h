/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The nonces of requests that were accepted, so that no request is accepted twice. Private to osd/.
 *
 * Each capability key has a list of its own, and the lists belong to partitions. All share one
 * memory. What has to be forgotten for something new is taken from the partition that has more than
 * its share of it, and there from a list that has at least the average. So nobody loses anything to
 * others who have more. What is forgotten can't come back, and that hits its owner alone:
 *
 *   a nonce is forgotten      the oldest of its list, which takes only newer ones from then on
 *   a list is forgotten       the one of its partition whose newest nonce is the oldest; new lists
 *                             of the partition take only newer ones from then on
 *   a partition is forgotten  likewise, of all partitions
 *
 * A floor for all keeps out nonces from before the unit's start, of which nothing is known: whoever
 * owns the memory notes, where it lasts, a bound above the timestamps that are taken, and begins
 * with it. For nonces that are dated ahead, an owner has a bound of his own.
 */
#ifndef MUNINN_OSD_SECURITY_NONCES_H
#define MUNINN_OSD_SECURITY_NONCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/security.h"

struct osd_nonces;

/* Whose request it is. */
struct osd_nonce_owner {
	uint64_t partition; /* whose keys protect the request; 0: the root's */
	const uint8_t *key; /* OSD_KEY_BYTES: its capability key */
	uint64_t noted_ms;  /* the bound that is noted for this owner alone, if the caller knows */
};

/* Partitions that have lists at the same time. */
#define OSD_NONCE_PARTITIONS_MAX 1024

/*
 * Remembers `capacity` (2..2^24) nonces in half as many lists, together 80 bytes for each nonce;
 * none older than `floor_ms`. `noted_ms`: the bound that is noted. -ENOMEM.
 */
int osd_nonces_create(size_t capacity, uint64_t floor_ms, uint64_t noted_ms,
		      struct osd_nonces **nonces);
void osd_nonces_destroy(struct osd_nonces *nonces);

/*
 * Takes a nonce whose timestamp (its first 6 bytes, milliseconds since 1970) is in
 * oldest_ms..newest_ms. -ERANGE: it is not, or older than what is remembered; -EEXIST: its owner
 * has sent it before; -EAGAIN: it is newer than the bound for all and than the owner's own, so a
 * higher one has to be noted first.
 * Thread-safe.
 */
int osd_nonces_take(struct osd_nonces *nonces, const struct osd_nonce_owner *owner,
		    const uint8_t nonce[OSD_NONCE_BYTES], uint64_t oldest_ms, uint64_t newest_ms);

/* A bound for all is noted now. Thread-safe. */
void osd_nonces_noted(struct osd_nonces *nonces, uint64_t noted_ms);

/* The newest timestamp that was taken; 0: none. Thread-safe. */
uint64_t osd_nonces_newest(struct osd_nonces *nonces);

#endif
