/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The Diffie-Hellman exchange of SET MASTER KEY and its parameter lists, for target and initiator.
 * Groups are those of RFC 3526 by their numbers there. Functions return 0, -EINVAL or -ENOMEM.
 */
#ifndef MUNINN_WIRE_KEYS_EXCHANGE_H
#define MUNINN_WIRE_KEYS_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

enum { OSD_DH_GROUP_2048 = 14, OSD_DH_GROUP_3072 = 15 };
#define OSD_DH_BYTES_MAX    384
#define OSD_DH_SECRET_BYTES 64

/* Bytes of a group's numbers; 0: not supported. */
size_t osd_dh_bytes(uint8_t group);

struct osd_dh_pair {
	uint8_t group;
	uint8_t secret[OSD_DH_SECRET_BYTES];
	uint8_t own[OSD_DH_BYTES_MAX]; /* public; osd_dh_bytes(group) of it */
};

/* A fresh pair. -EINVAL: group not supported. */
int osd_dh_begin(uint8_t group, struct osd_dh_pair *pair);

/* The secret that both sides share. -EINVAL: the peer's number is not one of the group's. */
int osd_dh_share(const struct osd_dh_pair *pair, const uint8_t *peer,
		 uint8_t shared[OSD_DH_BYTES_MAX]);

/* ---- parameter lists: layouts in docs/protocol.md ---- */

/* Longest of each. */
#define OSD_SEED_BYTES_MAX          (4 + OSD_DH_BYTES_MAX)
#define OSD_CHANGE_MASTER_BYTES_MAX (8 + 2 * OSD_DH_BYTES_MAX)

/*
 * Step SEED EXCHANGE: in Data-Out the initiator's number, in Data-In the target's. Returns the
 * length.
 */
size_t osd_seed_encode(uint8_t group, const uint8_t *number, uint8_t *list);
/*
 * `number` points into the list. -EINVAL: the list does not fit the group, or there is no such
 * group.
 */
int osd_seed_decode(const uint8_t *list, size_t length, uint8_t group, const uint8_t **number);

/* Step CHANGE MASTER KEY, Data-Out: both numbers, the initiator's first. */
size_t osd_change_master_encode(uint8_t group, const uint8_t *application, const uint8_t *device,
				uint8_t *list);
int osd_change_master_decode(const uint8_t *list, size_t length, uint8_t group,
			     const uint8_t **application, const uint8_t **device);

#endif
