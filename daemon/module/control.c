/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Answers what muninnd asks of a unit over tgtd's control socket. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* tgt's headers, behind it, redefine what the standard library's need. */
#include "daemon/module/control.h"

#include "common/log.h"
#include "common/thread.h"
#include "daemon/module/questions.h"
#include "daemon/module/unit.h"
#include "engine/engine.h"

#define PREFIX "muninn="
#define ASK    "ask "
#define LOG    "log "

static void *work(void *context)
{
	struct unit *unit = context;
	struct control *control = &unit->control;

	if (control->question[0])
		control->result = question_answer(unit, control->question, &control->answer,
						  &control->reason);
	else
		control->result = engine_flush_beside(device_engine(unit->device));
	__atomic_store_n(&control->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static int start_worker(struct unit *unit, const char *question)
{
	struct control *control = &unit->control;
	int result;

	control->done = false;
	control->answer = NULL;
	control->reason.text[0] = '\0';
	snprintf(control->question, sizeof(control->question), "%s", question);
	result = thread_start(&control->worker, "muninn-control", work, unit);
	control->working = result == 0;
	return result;
}

static void end_worker(struct control *control)
{
	if (!control->working)
		return;
	pthread_join(control->worker, NULL);
	control->working = false;
}

void control_end(struct unit *unit)
{
	end_worker(&unit->control);
	free(unit->control.answer);
	unit->control.answer = NULL;
}

/* 1: the worker has ended with this question, or flush; 0: it is at work, or another one. -errno.
 */
static int worker_is_done(struct unit *unit, const char *question)
{
	struct control *control = &unit->control;

	if (!control->working)
		return start_worker(unit, question);
	if (!__atomic_load_n(&control->done, __ATOMIC_ACQUIRE))
		return 0;
	end_worker(control);
	if (strcmp(control->question, question) == 0)
		return 1;
	/* Nobody waits for that any more. */
	free(control->answer);
	return start_worker(unit, question);
}

static tgtadm_err answer_flush(struct unit *unit)
{
	int done = worker_is_done(unit, "");

	if (done <= 0)
		return done ? TGTADM_NOMEM : TGTADM_LUN_ACTIVE;
	if (!unit->control.result)
		return TGTADM_SUCCESS;
	log_line(LOG_LEVEL_ERROR, "the host could not store what was acknowledged: %s",
		 strerror(-unit->control.result));
	return TGTADM_UNKNOWN_ERR;
}

/* Leaves an answer for muninnd, which takes it away. */
static tgtadm_err leave_answer(int result, const char *text)
{
	int fd = open(CONTROL_ANSWER_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		      0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file)
		return TGTADM_UNKNOWN_ERR;
	fprintf(file, "%d%c%.*s", result, result ? ' ' : '\n', (int)CONTROL_ANSWER_BYTES_MAX - 16,
		text ? text : "");
	return fclose(file) ? TGTADM_UNKNOWN_ERR : TGTADM_SUCCESS;
}

/* On the main thread, after what the question may have changed. */
static tgtadm_err answer_question(struct unit *unit, const char *question)
{
	struct control *control = &unit->control;
	tgtadm_err answered;
	int done;

	if (question_is_of_main(question)) {
		char *text = question_use(unit);

		answered = text ? leave_answer(0, text) : TGTADM_NOMEM;
		free(text);
		return answered;
	}
	done = worker_is_done(unit, question);
	if (done <= 0)
		return done ? TGTADM_NOMEM : TGTADM_LUN_ACTIVE;
	if (!control->result && unit->kind->grown)
		unit->kind->grown(unit);
	answered = leave_answer(control->result,
				control->result ? control->reason.text : control->answer);
	free(control->answer);
	control->answer = NULL;
	return answered;
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

static tgtadm_err answer_log(const char *word)
{
	enum log_level level;

	if (log_level_parse(word, &level))
		return TGTADM_INVALID_REQUEST;
	log_set_level(level);
	return TGTADM_SUCCESS;
}

static tgtadm_err answer(struct unit *unit, const char *word)
{
	if (!strncmp(word, LOG, strlen(LOG)))
		return answer_log(word + strlen(LOG));
	/* Without an image there is nothing to do, and nothing under way. */
	if (!unit->device)
		return TGTADM_SUCCESS;
	if (!strcmp(word, "flush"))
		return answer_flush(unit);
	if (!strcmp(word, "idle"))
		return io_threads_are_idle(unit->threads) ? TGTADM_SUCCESS : TGTADM_LUN_ACTIVE;
	if (!strcmp(word, "probe"))
		return answer_probe(unit);
	if (!strncmp(word, ASK, strlen(ASK)))
		return answer_question(unit, word + strlen(ASK));
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
