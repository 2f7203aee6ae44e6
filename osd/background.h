/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands with IMMED_TR that are answered after their first transaction and do the others on a
 * thread of the logical unit, one command after the other. Private to osd/.
 */
#ifndef MUNINN_OSD_BACKGROUND_H
#define MUNINN_OSD_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

struct osd_background_job;
struct osd_request;

/* Of a logical unit. The thread is started when it is needed. */
struct osd_background {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct osd_background_job *first,
		*last; /* that wait; each has a tracker, so they are few */
	bool started, stopping;
	bool by_hand; /* there is no thread: somebody calls osd_background_step */
	pthread_t thread;
};

void osd_background_init(struct osd_background *background);
/*
 * Before the first command: nothing goes on by itself, so that it is known what other commands come
 * in between.
 */
void osd_background_by_hand(struct osd_background *background);
/* By hand: the next transaction of the first job. False: there is none. */
bool osd_background_step(struct osd_background *background);
/* Waits for the transaction in work. What has not been done stays in the tracking collections. */
void osd_background_destroy(struct osd_background *background);

/*
 * Takes the rest of a command over, tracker included, if it is one that may be answered now: false,
 * and it goes on where it is, if not, or if there is no memory or thread for it.
 */
bool osd_background_take(struct osd_request *request);

#endif
