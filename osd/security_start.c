/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a unit with a device key knows of its earlier starts: how many there were (the boot epoch),
 * and a bound above the timestamps of all accepted nonces. Both are in the engine's memo, which the
 * unit can write when it can write nothing else: on a full device, or when numbers are used up. The
 * boot epoch is an attribute, too, which shows that the memo was lost.
 */
#include "osd/security_start.h"

#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "osd/execute.h"

/* The memo: boot epoch, bound. */
#define BOUND_BITS 48
#define BOUND_MAX  ((UINT64_C(1) << BOUND_BITS) - 1)

static uint64_t memo_of(uint16_t epoch, uint64_t bound_ms)
{
	return (uint64_t)epoch << BOUND_BITS | min_u64(bound_ms, BOUND_MAX);
}

/* The boot epoch of the attribute; 0: none. */
static int read_attribute(struct osd_device *device, uint16_t *epoch)
{
	struct engine_txn *txn;
	int result = engine_begin(device->engine, ENGINE_READ, &txn);

	if (result != 0)
		return result;
	device->security->started_ms = engine_txn_time(txn);
	result = osd_boot_epoch_read(txn, epoch);
	engine_abort(txn);
	return result;
}

/*
 * A device that takes no writes opens too: it is there to be read, and the memo has the boot epoch.
 */
static int write_attribute(struct osd_device *device, uint16_t epoch)
{
	struct engine_txn *txn;
	int result = engine_begin(device->engine, ENGINE_RESCUE, &txn);

	if (result == 0) {
		result = osd_boot_epoch_write(txn, epoch);
		if (result == 0)
			result = engine_commit(txn, false);
		else
			engine_abort(txn);
	}
	return result == -ENOSPC || result == -EOVERFLOW ? 0 : result;
}

/*
 * The memo was lost, and with it which nonces were accepted. Accepts none that may have been, if
 * the clock is right.
 */
static void bound_lost(struct osd_security *security)
{
	security->nonces_bound_ms = security->started_ms + OSD_NONCE_WINDOW_MAX_MS;
	log_line(LOG_LEVEL_WARNING,
		 "it is not known which signed requests were accepted before, because the NVRAM "
		 "was lost: for %llu s the unit refuses requests signed by CMDRSP and ALLDATA",
		 (unsigned long long)(OSD_NONCE_WINDOW_MAX_MS / 1000));
}

/* If the clock was set back, genuine requests look like ones from before the start. */
static void warn_of_clock(const struct osd_security *security)
{
	uint64_t ahead_ms = security->nonces_bound_ms -
			    min_u64(security->nonces_bound_ms, security->started_ms);

	if (ahead_ms > OSD_NONCES_AHEAD_MS)
		log_line(LOG_LEVEL_WARNING,
			 "the clock is %llu s behind the newest signed request that was accepted: "
			 "until then "
			 "requests signed by CMDRSP and ALLDATA are refused; check the clock",
			 (unsigned long long)(ahead_ms / 1000));
}

int osd_security_start(struct osd_device *device)
{
	struct osd_security *security = device->security;
	uint64_t memo = engine_memo(device->engine);
	uint16_t before = (uint16_t)(memo >> BOUND_BITS), stored;
	int result = read_attribute(device, &stored);

	if (result != 0 || !security->has_device_key)
		return result;
	security->nonces_bound_ms = memo & BOUND_MAX;
	if (before == 0 && stored != 0)
		bound_lost(security);
	else
		warn_of_clock(security);
	before = before ? before : stored;
	security->boot_epoch = before == UINT16_MAX ? 1
						    : before + 1; /* 0 in a capability means any */
	result = engine_set_memo(device->engine,
				 memo_of(security->boot_epoch, security->nonces_bound_ms), true);
	return result != 0 ? result : write_attribute(device, security->boot_epoch);
}

int osd_security_raise_bound(struct osd_device *device, uint64_t time_ms, uint64_t *bound_ms)
{
	struct osd_security *security = device->security;
	int result = 0;

	/*
	 * If several come at the same time, the first one waits for the host, and the others for
	 * it.
	 */
	pthread_mutex_lock(&security->memo_lock);
	if (time_ms > security->nonces_bound_ms) {
		uint64_t raised_ms = min_u64(time_ms + OSD_NONCES_AHEAD_MS, BOUND_MAX);

		result = engine_set_memo(device->engine, memo_of(security->boot_epoch, raised_ms),
					 true);
		if (result == 0)
			security->nonces_bound_ms = raised_ms;
	}
	*bound_ms = security->nonces_bound_ms;
	pthread_mutex_unlock(&security->memo_lock);
	return result;
}

void osd_security_stop(struct osd_device *device, uint64_t newest_ms)
{
	struct osd_security *security = device->security;

	/*
	 * Closing the engine makes this stable. If that fails, the old bound refuses a little more.
	 */
	if (newest_ms != 0)
		engine_set_memo(device->engine, memo_of(security->boot_epoch, newest_ms), false);
}
