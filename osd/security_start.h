/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What security knows across the starts of a unit: the boot epoch, and bounds above the timestamps
 * of all accepted nonces: one for requests that have the time of the unit's clock, and one for each
 * owner of requests that are dated ahead of it. Private to osd/. docs/format.md, "Keys of OSD
 * security", has the bytes.
 */
#ifndef MUNINN_OSD_SECURITY_START_H
#define MUNINN_OSD_SECURITY_START_H

#include <stdbool.h>
#include <stdint.h>

struct osd_device;
struct osd_nonce_owner;

/*
 * The bound for all is noted so far ahead that it happens once a second at most. A request that is
 * dated further ahead of the clock gets a bound of its owner's. After a crash the unit may refuse
 * other requests for twice as long.
 */
#define OSD_NONCES_AHEAD_MS UINT64_C(1000)
/* How far ahead of the request an owner's bound is noted, which takes a transaction. */
#define OSD_NONCES_OWN_AHEAD_MS UINT64_C(10000)

/*
 * The start of a unit, inside no transaction: sets `started_ms`, the bounds and `boot_epoch` of
 * its struct osd_security, and counts the start if there is a device key. -ENOMEM, or the
 * engine's errors; a device that takes no writes is no error.
 */
int osd_security_start(struct osd_device *device);

/*
 * The unit is about to accept, at `now_ms`, a nonce with this timestamp (48 bits) of an owner.
 * After this call no later start accepts one of this owner up to `bound_ms`, which is at least the
 * timestamp. *for_all: nor one of anybody else. On any thread, inside no transaction, because it
 * may begin one and wait for the host. -EIO: the host did not store it.
 *
 * If a bound of the owner's can't be stored, because the unit takes no writes or has no place for
 * it, the one for all serves.
 */
int osd_security_raise_bound(struct osd_device *device, const struct osd_nonce_owner *owner,
			     uint64_t now_ms, uint64_t time_ms, uint64_t *bound_ms, bool *for_all);

/*
 * The end of a unit. `newest_ms`: the newest timestamp that it accepted, so the bound for all can
 * come down to it; 0: none.
 */
void osd_security_stop(struct osd_device *device, uint64_t newest_ms);

#endif
