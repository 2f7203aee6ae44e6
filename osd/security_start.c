/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a unit with a device key knows of its earlier starts: how many there were (the boot epoch),
 * and bounds above the timestamps of all accepted nonces. Boot epoch and the bound for all are in
 * the engine's memo, which the unit can write when it can write nothing else: on a full device, or
 * when numbers are used up. The boot epoch is an attribute, too, which shows that the memo was
 * lost. So are the bounds of requests that were dated ahead.
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

/* Reads the boot epoch (0: none) and the bounds of what was dated ahead. */
static int read_attributes(struct osd_device *device, uint16_t *epoch)
{
	struct engine_txn *txn;
	int result = engine_begin(device->engine, ENGINE_READ, &txn);

	if (result != 0)
		return result;
	device->security->started_ms = engine_txn_time(txn);
	result = osd_boot_epoch_read(txn, epoch);
	if (result == 0)
		result = osd_ahead_read(txn, &device->security->ahead);
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
	int result = read_attributes(device, &stored);

	if (result != 0 || !security->has_device_key)
		return result;
	security->nonces_bound_ms = memo & BOUND_MAX;
	osd_ahead_settle(&security->ahead, security->nonces_bound_ms);
	security->ahead_at_start = security->ahead;
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

/* ---- raising bounds ---- */

static int raise_for_all(struct osd_device *device, uint64_t bound_ms)
{
	struct osd_security *security = device->security;
	uint64_t raised_ms = min_u64(bound_ms, BOUND_MAX);
	int result;

	if (raised_ms <= security->nonces_bound_ms)
		return 0;
	result = engine_set_memo(device->engine, memo_of(security->boot_epoch, raised_ms), true);
	if (result == 0)
		security->nonces_bound_ms = raised_ms;
	return result;
}

static int store_ahead(struct osd_device *device, const struct osd_ahead *ahead)
{
	struct engine_txn *txn;
	int result = engine_begin(device->engine, ENGINE_WRITE, &txn);

	if (result != 0)
		return result;
	result = osd_ahead_write(txn, ahead);
	if (result == 0)
		return engine_commit(txn, true);
	engine_abort(txn);
	return result;
}

/*
 * Bounds that the clock has passed are no longer worth a place: the bound for all takes them in,
 * and nobody has to wait for it.
 */
static int raise_for_owner(struct osd_device *device, const struct osd_nonce_owner *owner,
			   uint64_t now_ms, uint64_t bound_ms)
{
	struct osd_security *security = device->security;
	struct osd_ahead raised = security->ahead;
	uint64_t settled_ms = osd_ahead_settle(&raised, now_ms);
	int result;

	if (!osd_ahead_raise(&raised, owner, min_u64(bound_ms, BOUND_MAX)))
		return -ENOSPC;
	result = raise_for_all(device, settled_ms);
	if (result == 0)
		result = store_ahead(device, &raised);
	security->nonces_least_ms = max_u64(security->nonces_least_ms, settled_ms);
	if (result == 0)
		security->ahead = raised;
	return result;
}

int osd_security_raise_bound(struct osd_device *device, const struct osd_nonce_owner *owner,
			     uint64_t now_ms, uint64_t time_ms, uint64_t *bound_ms, bool *for_all)
{
	struct osd_security *security = device->security;
	int result = 0;

	/*
	 * If several come at the same time, the first one waits for the host, and the others for
	 * it.
	 */
	pthread_mutex_lock(&security->memo_lock);
	*for_all = time_ms <= max_u64(security->nonces_bound_ms, now_ms + OSD_NONCES_AHEAD_MS);
	if (!*for_all && time_ms > osd_ahead_of(&security->ahead, owner))
		*for_all = raise_for_owner(device, owner, now_ms,
					   time_ms + OSD_NONCES_OWN_AHEAD_MS) != 0;
	if (*for_all && time_ms > security->nonces_bound_ms)
		result = raise_for_all(device, time_ms + OSD_NONCES_AHEAD_MS);
	*bound_ms = *for_all ? security->nonces_bound_ms : osd_ahead_of(&security->ahead, owner);
	pthread_mutex_unlock(&security->memo_lock);
	return result;
}

void osd_security_stop(struct osd_device *device, uint64_t newest_ms)
{
	struct osd_security *security = device->security;
	uint64_t bound_ms = max_u64(newest_ms, security->nonces_least_ms);

	/*
	 * Closing the engine makes this stable. If that fails, the old bound refuses a little more.
	 * What was dated ahead has bounds of its own.
	 */
	if (newest_ms != 0 && bound_ms < security->nonces_bound_ms)
		engine_set_memo(device->engine, memo_of(security->boot_epoch, bound_ms), false);
}
