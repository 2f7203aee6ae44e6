/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The thread that looks for instructions of the administrator beside an image. */
#include "daemon/module/attendant.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common/thread.h"

#define PERIOD_NS 500000000L

struct attendant {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ends;
	void (*look)(void *context);
	void *context;
};

static struct timespec next_look(void)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	next.tv_nsec += PERIOD_NS;
	if (next.tv_nsec >= 1000000000L) {
		next.tv_nsec -= 1000000000L;
		next.tv_sec++;
	}
	return next;
}

static void *attend(void *context)
{
	struct attendant *attendant = context;

	pthread_mutex_lock(&attendant->lock);
	while (!attendant->ends) {
		struct timespec next;
		int result = 0;

		pthread_mutex_unlock(&attendant->lock);
		attendant->look(attendant->context);
		next = next_look();
		pthread_mutex_lock(&attendant->lock);
		while (!attendant->ends && result == 0)
			result = pthread_cond_timedwait(&attendant->changed, &attendant->lock,
							&next);
	}
	pthread_mutex_unlock(&attendant->lock);
	return NULL;
}

static void destroy(struct attendant *attendant)
{
	pthread_cond_destroy(&attendant->changed);
	pthread_mutex_destroy(&attendant->lock);
	free(attendant);
}

int attendant_start(void (*look)(void *context), void *context, struct attendant **attendant)
{
	struct attendant *new = calloc(1, sizeof(*new));
	pthread_condattr_t attributes;
	int result;

	if (!new)
		return -ENOMEM;
	new->look = look;
	new->context = context;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&new->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&new->lock, NULL);
	result = thread_start(&new->thread, "muninn-unit", attend, new);
	if (result)
		destroy(new);
	else
		*attendant = new;
	return result;
}

void attendant_stop(struct attendant *attendant)
{
	if (!attendant)
		return;
	pthread_mutex_lock(&attendant->lock);
	attendant->ends = true;
	pthread_cond_signal(&attendant->changed);
	pthread_mutex_unlock(&attendant->lock);
	pthread_join(attendant->thread, NULL);
	destroy(attendant);
}
