/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes what an engine keeps in memory of its history, and learns it from the records. */
#include "engine/history/past.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/moments.h"

/*
 * What is put again leaves reading as it was, and none of the rollbacks on record is used up for
 * it: worth it for so little that it takes no time.
 */
#define PIECES_PUT_AGAIN 64
/* Everybody waits for it: four records for each piece that was there then. */
#define PIECES_PUT_MAX 4096

/* From here on opening warns that sequence numbers come to an end. */
#define SEQUENCES_WARNED_AT (RECORD_NEWEST / 10 * 9)

static void forget_views(void *past)
{
	memset(((struct past *)past)->views, 0, sizeof(((struct past *)past)->views));
}

int past_open(struct engine *engine)
{
	struct past *past = calloc(1, sizeof(*past));

	if (!past)
		return -ENOMEM;
	past->pieces_put_again = PIECES_PUT_AGAIN;
	past->pieces_put_max = PIECES_PUT_MAX;
	pthread_mutex_init(&past->views_mutex, NULL);
	merger_init(&past->merger);
	stale_register(&engine->memories, past, forget_views, STALE_NOTES);
	engine->past = past;
	return 0;
}

void past_close(struct engine *engine)
{
	struct past *past = engine->past;

	if (!past)
		return;
	hidden_free(&past->hidden);
	merger_destroy(&past->merger);
	pthread_mutex_destroy(&past->views_mutex);
	free(past);
}

/* Nothing here grows with the number of versions. */
int past_learn(struct engine *engine)
{
	struct record_statistics statistics = { 0 };
	struct history device;
	int result = history_read(engine->store, RECORD_ROOT_INDEX, &device);

	if (!result)
		result = hidden_load(engine, device.device.hidden_chunks);
	if (result)
		return result;
	engine->store->operations->set_hidden(engine->store, &engine->past->hidden.asked);
	engine->store->operations->statistics(engine->store, &statistics);
	/* What was committed behind the slot in the table put nothing. */
	engine->committed =
		min_u64(statistics.committed_sequence, slot_end(device.device.slot_sequence));
	engine->committed_ms = device.device.slot_ms;
	device_time_go_on(engine, device.device.passed_ms);
	if (engine->committed > SEQUENCES_WARNED_AT)
		log_line(LOG_LEVEL_WARNING,
			 "%s: %" PRIu64
			 " %% of the device's sequence numbers are used; copy its objects to a new "
			 "device before none are left",
			 engine->store->device, engine->committed / (RECORD_NEWEST / 100));
	engine->put_bytes = device.device.slot_bytes;
	engine->slot_over = true;
	engine->past->policy = device.retention;
	engine->past->kept_since.known = false;
	engine->past->views_next = views_begin(engine_time_now(engine));
	return 0;
}
