/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Carries on commands that were answered after their first transaction. */
#include "osd/background.h"

#include <stdlib.h>
#include <string.h>

#include "common/thread.h"
#include "osd/execute.h"

/* A command, with copies of the buffers that the caller takes back after the answer. */
struct osd_background_job {
	struct osd_background_job *next;
	struct osd_request request;
	struct osd_command command;
	uint8_t no_data_in[1];
	uint8_t bytes[]; /* Data-Out, then the CDB */
};

void osd_background_init(struct osd_background *background)
{
	*background = (struct osd_background){ .mutex = PTHREAD_MUTEX_INITIALIZER,
					       .changed = PTHREAD_COND_INITIALIZER };
}

static void job_free(struct osd_background_job *job)
{
	osd_security_forget(&job->request);
	free(job);
}

/* ---- the thread ---- */

static bool is_stopping(struct osd_background *background)
{
	bool stopping;

	pthread_mutex_lock(&background->mutex);
	stopping = background->stopping;
	pthread_mutex_unlock(&background->mutex);
	return stopping;
}

/* Nobody waits for the status, so it goes into the tracking page. */
static void end(struct osd_background_job *job)
{
	struct osd_request *request = &job->request;

	osd_finish(request);
	osd_damage_settle(request);
	osd_tracking_end(request);
	job_free(job);
}

/* Goes on until the command has ended, or the unit closes. */
static void run(struct osd_background *background, struct osd_background_job *job)
{
	while (!is_stopping(background) && osd_run_once(&job->request) && job->request.more)
		;
	end(job);
}

/* The next job; NULL: the unit closes. */
static struct osd_background_job *next_job(struct osd_background *background)
{
	struct osd_background_job *job = NULL;

	pthread_mutex_lock(&background->mutex);
	while (!background->stopping && !background->first)
		pthread_cond_wait(&background->changed, &background->mutex);
	if (!background->stopping) {
		job = background->first;
		background->first = job->next;
	}
	pthread_mutex_unlock(&background->mutex);
	return job;
}

static void *work(void *context)
{
	struct osd_background *background = context;
	struct osd_background_job *job;

	while ((job = next_job(background)))
		run(background, job);
	return NULL;
}

void osd_background_by_hand(struct osd_background *background)
{
	background->by_hand = true;
}

bool osd_background_step(struct osd_background *background)
{
	struct osd_background_job *job = background->first;

	if (!job)
		return false;
	if (osd_run_once(&job->request) && job->request.more)
		return true;
	background->first = job->next;
	end(job);
	return true;
}

void osd_background_destroy(struct osd_background *background)
{
	pthread_mutex_lock(&background->mutex);
	background->stopping = true;
	pthread_cond_signal(&background->changed);
	pthread_mutex_unlock(&background->mutex);
	if (background->started)
		pthread_join(background->thread, NULL);
	while (background->first) {
		struct osd_background_job *job = background->first;

		background->first = job->next;
		job_free(job);
	}
	pthread_mutex_destroy(&background->mutex);
	pthread_cond_destroy(&background->changed);
}

/* ---- handing over ---- */

/*
 * Retrieved attributes are part of the answer. So a command that gets any is answered at its end.
 */
static bool may_be_taken(const struct osd_request *request)
{
	return request->cdb.immediate_tracking && request->tracking.partition != 0 &&
	       !osd_has_gets(request);
}

static struct osd_background_job *make_job(const struct osd_request *request)
{
	const struct osd_command *command = request->command;
	size_t out = command->data_out_length;
	struct osd_background_job *job = malloc(sizeof(*job) + out + command->cdb_length);

	if (!job)
		return NULL;
	job->next = NULL;
	job->request = *request;
	job->request.command = &job->command;
	job->command = (struct osd_command){
		.cdb = job->bytes + out,
		.cdb_length = command->cdb_length,
		.data_out = job->bytes,
		.data_out_length = out,
		.data_in = job->no_data_in,
		.nexus = command->nexus,
	};
	if (out > 0)
		memcpy(job->bytes, command->data_out, out);
	memcpy(job->bytes + out, command->cdb, command->cdb_length);
	/*
	 * They point into Data-Out. Later transactions only look at the query list and the
	 * extension capabilities.
	 */
	if (request->query.content)
		job->request.query.content =
			job->bytes + (request->query.content - command->data_out);
	if (request->extensions.content)
		job->request.extensions.content =
			job->bytes + (request->extensions.content - command->data_out);
	job->request.pieces = (struct osd_descriptor){ 0 };
	job->request.other = (struct osd_descriptor){ 0 };
	job->request.descriptors = (struct osd_continuation){ 0 };
	return job;
}

bool osd_background_take(struct osd_request *request)
{
	struct osd_background *background = &request->device->background;
	struct osd_background_job *job = may_be_taken(request) ? make_job(request) : NULL;
	bool taken;

	if (!job)
		return false;
	pthread_mutex_lock(&background->mutex);
	if (!background->started && !background->by_hand)
		background->started =
			thread_start(&background->thread, "muninn-work", work, background) == 0;
	taken = background->started || background->by_hand;
	if (taken) {
		if (background->first)
			background->last->next = job;
		else
			background->first = job;
		background->last = job;
		pthread_cond_signal(&background->changed);
	}
	pthread_mutex_unlock(&background->mutex);
	if (!taken) {
		job_free(job);
		return false;
	}
	/* The tracker is the job's now. */
	request->tracking = (struct osd_tracking){ 0 };
	request->more = false;
	return true;
}
