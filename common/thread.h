/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Threads beside those that a program has for its signals: tgtd's main thread reads its own through
 * a signalfd, and muninnctl's is to be interrupted by ^C.
 */
#ifndef MUNINN_COMMON_THREAD_H
#define MUNINN_COMMON_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that takes no signals. The caller joins it. name: what top -H and perf show, at
 * most 15 bytes. 0, -EAGAIN or another -errno.
 */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *context), void *context);

/*
 * By who works behind others, between two small parts of that: whoever waits for the processor has
 * it first. Otherwise Linux lets him wait for some milliseconds.
 */
void thread_rest(void);

#endif
