/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Threads that have names and take no signals. */
#include "common/thread.h"

#include <sched.h>
#include <signal.h>

/* It begins with the mask of who makes it. */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result == 0)
		pthread_setname_np(*thread, name);
	return -result;
}

void thread_rest(void)
{
	sched_yield();
}
