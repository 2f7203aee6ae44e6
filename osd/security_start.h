/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What security knows across the starts of a unit: the boot epoch, and a bound above the timestamps
 * of all accepted nonces. Private to osd/. docs/format.md, "Keys of OSD security", has the bytes.
 */
#ifndef MUNINN_OSD_SECURITY_START_H
#define MUNINN_OSD_SECURITY_START_H

#include <stdint.h>

struct osd_device;

/*
 * A bound is noted so far ahead that it happens once a second at most. After a crash the unit may
 * refuse requests for as long.
 */
#define OSD_NONCES_AHEAD_MS UINT64_C(1000)

/*
 * The start of a unit, inside no transaction: sets `started_ms`, `nonces_bound_ms` and `boot_epoch`
 * of its struct osd_security, and counts the start if there is a device key. -ENOMEM, or the
 * engine's errors; a device that takes no writes is no error.
 */
int osd_security_start(struct osd_device *device);

/*
 * The unit is about to accept a nonce with this timestamp (48 bits). After this call no later start
 * accepts one up to `bound_ms`, which is at least the timestamp. On any thread, inside no
 * transaction, because it may wait for the host. -EIO: the host did not store it.
 */
int osd_security_raise_bound(struct osd_device *device, uint64_t time_ms, uint64_t *bound_ms);

/*
 * The end of a unit. `newest_ms`: the newest timestamp that it accepted, so the bound can come down
 * to it; 0: none.
 */
void osd_security_stop(struct osd_device *device, uint64_t newest_ms);

#endif
