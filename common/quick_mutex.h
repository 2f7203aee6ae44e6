/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Mutexes for what takes less time than to sleep. */
#ifndef MUNINN_COMMON_QUICK_MUTEX_H
#define MUNINN_COMMON_QUICK_MUTEX_H

#include <pthread.h>

/*
 * A mutex over a few instructions that many threads come to: who finds it locked tries some times
 * before he sleeps.
 */
static inline void quick_mutex_init(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

#endif
