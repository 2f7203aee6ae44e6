/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What security knows across the starts of a unit: the boot epoch, and a bound above the timestamps
 * of all nonces that were taken. Private to osd/. docs/format.md, "Keys of OSD security", has the
 * bytes.
 */
#ifndef MUNINN_OSD_SECURITY_START_H
#define MUNINN_OSD_SECURITY_START_H

#include <stdint.h>

struct osd_device;

/*
 * Bounds of timestamps are noted so far ahead that it happens once a second at most. After a crash
 * requests may be refused as long.
 */
#define OSD_NONCES_AHEAD_MS UINT64_C(1000)

/*
 * The start of a unit, inside no transaction: `started_ms`, `nonces_bound_ms` and `boot_epoch` of
 * its struct osd_security. With a device key it is counted. -ENOMEM, or the engine's errors; that
 * nothing can be put any more is none.
 */
int osd_security_start(struct osd_device *device);

/*
 * A nonce with this timestamp (of 48 bits) is going to be taken: none up to `bound_ms`, which is
 * not below it, is taken after another start, whatever ended this one. On any thread, inside no
 * transaction, since it may wait for the host. -EIO: the host did not store it.
 */
int osd_security_raise_bound(struct osd_device *device, uint64_t time_ms, uint64_t *bound_ms);

/*
 * The end of a unit. `newest_ms`: the newest timestamp of a nonce that it took, above which the
 * bound need not be; 0: none.
 */
void osd_security_stop(struct osd_device *device, uint64_t newest_ms);

#endif
