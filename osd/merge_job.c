/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * MERGE: a merge of the whole device in a thread of its own, one at a time; or a repair, which
 * reads all that is stored and merges only what is beside lost pages.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "common/thread.h"
#include "osd/functions.h"

/* Steps in a row that free nothing, after which the merge ends: a walk over all segments. */
#define FUTILE_STEPS_MAX 4096

/* Pages that a step of a repair reads. */
#define REPAIR_PAGES 256

struct osd_merge_job {
	pthread_mutex_t lock; /* guards all the rest */
	struct engine *engine;
	pthread_t thread;
	bool joinable; /* there is a thread to wait for */
	bool by_hand;  /* there is never one */
	bool running, cancelled;
	int result; /* of the last one: 0, or why it ended early */
	uint64_t steps;
	uint32_t futile; /* steps in a row that freed nothing */
	struct engine_merge_result freed;
	uint64_t sealed;   /* segments with data at the beginning */
	bool repairs;      /* it is a repair ... */
	bool has_read_all; /* ... which only merges any more */
	struct engine_scrub scrub;
	uint32_t permille; /* progress; never less than before */
};

struct osd_merge_job *osd_merge_job_create(struct engine *engine)
{
	struct osd_merge_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	pthread_mutex_init(&job->lock, NULL);
	job->engine = engine;
	return job;
}

/*
 * A merge frees each segment of its beginning at most once. When it has freed more than there were,
 * it is done: what others write meanwhile is work for the next one.
 */
static bool go_on(struct osd_merge_job *job)
{
	bool goes_on;

	pthread_mutex_lock(&job->lock);
	goes_on = !job->cancelled && job->futile < FUTILE_STEPS_MAX;
	if (job->repairs)
		goes_on &= !job->has_read_all || engine_damaged(job->engine);
	else
		goes_on &= job->freed.segments_freed <= job->sealed;
	pthread_mutex_unlock(&job->lock);
	return goes_on;
}

/*
 * Nobody knows the number of steps before. Half of the progress is freeing, at most all segments of
 * the beginning. The other half is the last walk, which finds nothing more. With the lock held.
 */
static void note_progress(struct osd_merge_job *job)
{
	uint64_t freed = min_u64(job->freed.segments_freed, job->sealed);
	uint32_t permille = (uint32_t)(job->sealed ? freed * 500 / job->sealed : 0);

	if (job->repairs)
		permille = job->has_read_all
				   ? 999
				   : (uint32_t)(job->scrub.position * 999 / job->scrub.end);
	else if (job->futile > 0)
		permille = 500 + job->futile * 499 / FUTILE_STEPS_MAX;
	if (permille > job->permille)
		job->permille = permille;
}

/* Reads some pages, and moves what is beside one that was lost. As engine_merge. */
static int repair_once(struct osd_merge_job *job, struct engine_merge_result *step)
{
	struct engine_scrub scrub = job->scrub;
	bool reads = !job->has_read_all;
	int result = 0;

	scrub.pages = REPAIR_PAGES;
	if (reads)
		result = engine_scrub(job->engine, &scrub);
	if (result == 0 && engine_damaged(job->engine))
		result = engine_mend(job->engine, step);
	pthread_mutex_lock(&job->lock);
	job->scrub = scrub;
	job->has_read_all |= scrub.position == 0;
	pthread_mutex_unlock(&job->lock);
	/* Such a segment stays as it is. What finds no space waits until all has been read. */
	return result == -EBADMSG || (reads && result == -ENOSPC) ? 0 : result;
}

/* 0, or why there is no next step. */
static int merge_once(struct osd_merge_job *job)
{
	struct engine_merge_result step = { 0 };
	int result = job->repairs ? repair_once(job, &step) : engine_merge(job->engine, &step);

	pthread_mutex_lock(&job->lock);
	job->futile = result == -EAGAIN ? job->futile + 1 : 0;
	job->steps++;
	job->freed.segments_freed += step.segments_freed;
	job->freed.records_moved += step.records_moved;
	job->freed.records_dropped += step.records_dropped;
	note_progress(job);
	pthread_mutex_unlock(&job->lock);
	return result == -EAGAIN ? 0 : result;
}

static void end(struct osd_merge_job *job, int result)
{
	pthread_mutex_lock(&job->lock);
	job->result = result;
	job->running = false;
	pthread_mutex_unlock(&job->lock);
	if (result != 0)
		log_line(LOG_LEVEL_WARNING, "merge: ended early: %s", strerror(-result));
}

static void *merge(void *context)
{
	struct osd_merge_job *job = context;
	int result = 0;

	while (result == 0 && go_on(job))
		result = merge_once(job);
	end(job, result);
	return NULL;
}

void osd_merge_job_by_hand(struct osd_merge_job *job)
{
	job->by_hand = true;
}

bool osd_merge_job_step(struct osd_merge_job *job)
{
	int result;

	if (!job->running)
		return false;
	result = merge_once(job);
	if (result != 0 || !go_on(job))
		end(job, result);
	return true;
}

static void wait_for_end(struct osd_merge_job *job)
{
	if (job->joinable)
		pthread_join(job->thread, NULL);
	job->joinable = false;
}

static int start(struct osd_merge_job *job, uint64_t sealed, bool repairs)
{
	int result = 0;

	pthread_mutex_lock(&job->lock);
	if (!job->running) {
		wait_for_end(job); /* the thread needs the lock no longer */
		job->cancelled = false;
		job->result = 0;
		job->steps = 0;
		job->futile = 0;
		job->freed = (struct engine_merge_result){ 0 };
		job->sealed = sealed;
		job->repairs = repairs;
		job->has_read_all = false;
		job->scrub = (struct engine_scrub){ .end = 1 };
		job->permille = 0;
		job->running = true;
		if (!job->by_hand) {
			result = thread_start(&job->thread, "muninn-job", merge, job);
			job->joinable = result == 0;
		}
		job->running = result == 0;
	}
	pthread_mutex_unlock(&job->lock);
	return result;
}

static void cancel(struct osd_merge_job *job)
{
	pthread_mutex_lock(&job->lock);
	job->cancelled = true;
	pthread_mutex_unlock(&job->lock);
}

void osd_merge_job_destroy(struct osd_merge_job *job)
{
	if (!job)
		return;
	cancel(job);
	wait_for_end(job);
	pthread_mutex_destroy(&job->lock);
	free(job);
}

static void answer(struct osd_request *request, struct osd_merge_job *job)
{
	struct osd_item_writer writer;
	enum osd_merge_state state = OSD_MERGE_IDLE;
	uint32_t permille = 1000;

	osd_result_begin(request, &writer);
	pthread_mutex_lock(&job->lock);
	if (job->running)
		state = OSD_MERGE_RUNNING;
	else if (job->result != 0)
		state = OSD_MERGE_FAILED;
	/* A merge that failed stays where it was. */
	if (state != OSD_MERGE_IDLE)
		permille = job->permille;
	osd_item_add_number(&writer, OSD_ITEM_STATE, state);
	if (state == OSD_MERGE_FAILED)
		osd_item_add_number(&writer, OSD_ITEM_SENSE, osd_sense_of(job->result));
	osd_item_add_number(&writer, OSD_ITEM_COUNT, job->steps);
	osd_item_add_number(&writer, OSD_ITEM_FREED, job->freed.segments_freed);
	osd_item_add_number(&writer, OSD_ITEM_MOVED, job->freed.records_moved);
	osd_item_add_number(&writer, OSD_ITEM_DROPPED, job->freed.records_dropped);
	if (job->repairs) {
		osd_item_add_number(&writer, OSD_ITEM_READ, job->scrub.read);
		osd_item_add_number(&writer, OSD_ITEM_REPAIRED, job->scrub.repaired);
		osd_item_add_number(&writer, OSD_ITEM_LOST, job->scrub.lost);
	}
	pthread_mutex_unlock(&job->lock);
	osd_item_add_number(&writer, OSD_ITEM_PROGRESS, permille);
	osd_result_end(request, &writer, NULL, 0, -1);
}

int osd_function_merge(struct osd_request *request)
{
	struct osd_merge_job *job = request->device->merge_job;
	uint64_t action;
	int result = 0;

	if (osd_parameter_number(request, OSD_ITEM_ACTION, OSD_MERGE_PROGRESS, &action) != 0)
		return -EINVAL;
	switch (action) {
	case OSD_MERGE_PROGRESS:
		break;
	case OSD_MERGE_START:
	case OSD_MERGE_REPAIR:
		result =
			start(job, request->statistics.segments_sealed, action == OSD_MERGE_REPAIR);
		break;
	case OSD_MERGE_CANCEL:
		cancel(job);
		break;
	default:
		return osd_fail_parameter(request, OSD_ITEM_ACTION);
	}
	if (result != 0)
		return osd_fail(request, SENSE_HARDWARE_ERROR, SENSE_INTERNAL_TARGET_FAILURE);
	answer(request, job);
	return 0;
}
