/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A thread with a list of tasks: first those that are done, then those to do. Each side sleeps only
 * when it has nothing to do, and is woken only when it sleeps: most tasks take less time than a
 * wake-up.
 */
#include "client/aside.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/thread.h"

struct aside {
	pthread_t thread;
	void (*work)(void *context, struct aside_task *task);
	void *context;
	size_t outstanding; /* the giver's own */

	pthread_mutex_t mutex;
	pthread_cond_t given, done;
	struct aside_task *first, *last; /* of all; `last` counts when there is a first one */
	struct aside_task *todo;         /* those before it are done */
	bool worker_sleeps, giver_sleeps, stopping;
};

/* Under the mutex. NULL: the thread ends. */
static struct aside_task *next_task(struct aside *aside)
{
	while (!aside->todo && !aside->stopping) {
		aside->worker_sleeps = true;
		pthread_cond_wait(&aside->given, &aside->mutex);
		aside->worker_sleeps = false;
	}
	return aside->todo;
}

static void *run(void *context)
{
	struct aside *aside = context;
	struct aside_task *task;

	pthread_mutex_lock(&aside->mutex);
	while ((task = next_task(aside)) != NULL) {
		pthread_mutex_unlock(&aside->mutex);
		aside->work(aside->context, task);
		pthread_mutex_lock(&aside->mutex);
		aside->todo = task->next;
		if (aside->giver_sleeps)
			pthread_cond_signal(&aside->done);
	}
	pthread_mutex_unlock(&aside->mutex);
	return NULL;
}

int aside_create(void (*work)(void *context, struct aside_task *task), void *context,
		 struct aside **aside)
{
	struct aside *created = calloc(1, sizeof(*created));
	int result;

	if (!created)
		return -ENOMEM;
	created->work = work;
	created->context = context;
	pthread_mutex_init(&created->mutex, NULL);
	pthread_cond_init(&created->given, NULL);
	pthread_cond_init(&created->done, NULL);
	result = thread_start(&created->thread, "muninn-aside", run, created);
	if (result < 0)
		free(created);
	else
		*aside = created;
	return result;
}

void aside_destroy(struct aside *aside)
{
	if (!aside)
		return;
	assert(aside->outstanding == 0);
	pthread_mutex_lock(&aside->mutex);
	aside->stopping = true;
	pthread_cond_signal(&aside->given);
	pthread_mutex_unlock(&aside->mutex);
	pthread_join(aside->thread, NULL);
	pthread_cond_destroy(&aside->given);
	pthread_cond_destroy(&aside->done);
	pthread_mutex_destroy(&aside->mutex);
	free(aside);
}

void aside_give(struct aside *aside, struct aside_task *task)
{
	bool wake;

	aside->outstanding++;
	task->next = NULL;
	pthread_mutex_lock(&aside->mutex);
	if (aside->first)
		aside->last->next = task;
	else
		aside->first = task;
	aside->last = task;
	if (!aside->todo)
		aside->todo = task;
	wake = aside->worker_sleeps;
	pthread_mutex_unlock(&aside->mutex);
	if (wake)
		pthread_cond_signal(&aside->given);
}

struct aside_task *aside_take(struct aside *aside, bool wait)
{
	struct aside_task *task;

	if (aside->outstanding == 0)
		return NULL;
	pthread_mutex_lock(&aside->mutex);
	while (wait && aside->first == aside->todo) {
		aside->giver_sleeps = true;
		pthread_cond_wait(&aside->done, &aside->mutex);
		aside->giver_sleeps = false;
	}
	task = aside->first == aside->todo ? NULL : aside->first;
	if (task)
		aside->first = task->next;
	pthread_mutex_unlock(&aside->mutex);
	if (task)
		aside->outstanding--;
	return task;
}

size_t aside_outstanding(const struct aside *aside)
{
	return aside->outstanding;
}
