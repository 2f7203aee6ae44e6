/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Answers what muninnd asks of a unit over tgtd's control socket. */
#include "daemon/module/control.h"

#include <signal.h>
#include <string.h>

#include "common/log.h"
#include "daemon/module/unit.h"
#include "engine/engine.h"

#define PREFIX "muninn="

static void *flush(void *context)
{
	struct unit *unit = context;
	struct control *control = &unit->control;

	control->result = engine_flush_beside(device_engine(unit->device));
	__atomic_store_n(&control->flushed, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The thread takes no signals: tgtd's main thread reads its own through a signalfd. */
static int start_flusher(struct unit *unit)
{
	sigset_t all, before;
	int result;

	unit->control.flushed = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&unit->control.flusher, NULL, flush, unit);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	unit->control.flushing = result == 0;
	return -result;
}

void control_end(struct unit *unit)
{
	if (!unit->control.flushing)
		return;
	pthread_join(unit->control.flusher, NULL);
	unit->control.flushing = false;
}

static tgtadm_err answer_flush(struct unit *unit)
{
	struct control *control = &unit->control;

	if (!control->flushing)
		return start_flusher(unit) ? TGTADM_NOMEM : TGTADM_LUN_ACTIVE;
	if (!__atomic_load_n(&control->flushed, __ATOMIC_ACQUIRE))
		return TGTADM_LUN_ACTIVE;
	control_end(unit);
	if (!control->result)
		return TGTADM_SUCCESS;
	log_line(LOG_LEVEL_ERROR, "the host could not store what was acknowledged: %s",
		 strerror(-control->result));
	return TGTADM_UNKNOWN_ERR;
}

/* On an I/O thread: waits for the engine's turn, as every command does. */
static void reach_engine(void *context)
{
	struct unit *unit = context;
	struct engine_statistics statistics;

	engine_read_statistics(device_engine(unit->device), &statistics);
}

/*
 * A command may run for long, and all threads be busy with such ones. They read and program pages
 * meanwhile, which threads that hang do not.
 */
static tgtadm_err answer_probe(struct unit *unit)
{
	uint64_t before = unit->control.pages_moved;
	bool answered = io_threads_probe(unit->threads, reach_engine);

	unit->control.pages_moved = device_pages_moved(unit->device);
	return answered || unit->control.pages_moved != before ? TGTADM_SUCCESS : TGTADM_LUN_ACTIVE;
}

static tgtadm_err answer(struct unit *unit, const char *word)
{
	/* Without an image there is nothing to do, and nothing under way. */
	if (!unit->device)
		return TGTADM_SUCCESS;
	if (!strcmp(word, "flush"))
		return answer_flush(unit);
	if (!strcmp(word, "idle"))
		return io_threads_are_idle(unit->threads) ? TGTADM_SUCCESS : TGTADM_LUN_ACTIVE;
	if (!strcmp(word, "probe"))
		return answer_probe(unit);
	return TGTADM_UNKNOWN_PARAM;
}

static tgtadm_err configure(struct scsi_lu *lu, char *params)
{
	struct unit *unit = unit_of(lu);

	if (params && !strncmp(params, PREFIX, strlen(PREFIX)))
		return answer(unit, params + strlen(PREFIX));
	return unit->control.stock_config(lu, params);
}

void control_attach(struct unit *unit, struct scsi_lu *lu)
{
	unit->control.stock_config = lu->dev_type_template.lu_config;
	lu->dev_type_template.lu_config = configure;
}
