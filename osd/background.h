/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands with IMMED_TR. They are answered after their first transaction. A thread of the logical
 * unit does the others, one command after the other. Private to osd/.
 */
#ifndef MUNINN_OSD_BACKGROUND_H
#define MUNINN_OSD_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

struct osd_background_job;
struct osd_request;

/* Of a logical unit. The thread starts when a command needs it. */
struct osd_background {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct osd_background_job *first,
		*last; /* jobs that wait; each has a tracker, so they are few */
	bool started, stopping;
	bool by_hand; /* there is no thread: somebody calls osd_background_step */
	pthread_t thread;
};

void osd_background_init(struct osd_background *background);
/*
 * Before the first command: no thread, so that a test knows which other commands come in between.
 */
void osd_background_by_hand(struct osd_background *background);
/* By hand: the next transaction of the first job. False: there is none. */
bool osd_background_step(struct osd_background *background);
/* Waits for the transaction in work. What is not done stays in the tracking collections. */
void osd_background_destroy(struct osd_background *background);

/*
 * Takes over the rest of a command, with its tracker, if the command may be answered now. False:
 * the caller goes on with it, because it may not, or there is no memory or no thread.
 */
bool osd_background_take(struct osd_request *request);

#endif
