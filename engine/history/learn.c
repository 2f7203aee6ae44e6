/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What an engine learns of its history from the records, when it is opened and after a format. */
#include <inttypes.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/times.h"
#include "engine/objects/objects.h"

/* From here on opening warns that sequence numbers come to an end. */
#define SEQUENCES_WARNED_AT (RECORD_NEWEST / 10 * 9)

/* Learns where history stands. Nothing here grows with the number of versions. */
int engine_learn_history(struct engine *engine)
{
	struct record_statistics statistics = { 0 };
	struct history device;
	int result = history_read(engine->store, RECORD_ROOT_INDEX, &device);

	if (!result)
		result = hidden_load(engine, device.device.hidden);
	if (result)
		return result;
	engine->store->operations->set_timeline(engine->store, &engine->hidden.asked);
	engine->store->operations->statistics(engine->store, &statistics);
	/* What was committed behind the slot in the table put nothing. */
	engine->committed =
		min_u64(statistics.committed_sequence, slot_end(device.device.slot_sequence));
	engine->committed_ms = device.device.slot_ms;
	if (engine->committed > SEQUENCES_WARNED_AT)
		log_line(LOG_LEVEL_WARNING,
			 "%" PRIu64
			 " %% of the moments that the device can tell apart are used up; "
			 "begin a new one with a copy of it before none are left",
			 engine->committed / (RECORD_NEWEST / 100));
	engine->put_bytes = device.device.slot_bytes;
	engine->policy = device.retention;
	engine->slot_over = true;
	engine->views_next = views_begin(engine_time_now(engine));
	return 0;
}
