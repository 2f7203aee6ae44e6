/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Holds the moment that a command looks at in several transactions. */
#include "osd/moment.h"

#include "osd/execute.h"

bool osd_moment_is_there(const struct osd_request *request)
{
	const struct osd_moment *held = &request->moment;
	struct engine_moment moment = { ENGINE_AT_VERSION, held->view };
	uint64_t bound;

	return held->view != 0 &&
	       engine_moment_resolve(request->txn, held->partition, moment, &bound) == 0 &&
	       bound == held->bound;
}

void osd_moment_release(struct osd_request *request)
{
	struct osd_moment *held = &request->moment;

	if (held->view != 0)
		engine_view_release(request->txn, held->partition, held->view, held->bound);
	held->view = 0;
}

bool osd_moment_hold(struct osd_request *request, uint64_t partition)
{
	struct osd_moment *held = &request->moment;

	held->partition = partition;
	if (!osd_has(request->device, ENGINE_HAS_VERSIONS) ||
	    engine_view_hold(request->txn, partition, &held->view, &held->bound) != 0)
		held->view = 0;
	if (osd_moment_is_there(request))
		return true;
	osd_moment_release(request);
	return false;
}

void osd_moment_end(struct osd_request *request)
{
	/* If there is no memory for it, the number ends as all do that nobody uses. */
	if (request->moment.view == 0 ||
	    engine_begin(request->device->engine, ENGINE_READ, &request->txn) != 0)
		return;
	osd_moment_release(request);
	engine_abort(request->txn);
}
