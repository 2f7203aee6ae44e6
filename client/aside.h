/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Work that a second thread does while the session's own goes on: it reads files ahead of the
 * commands that store them, and writes files behind those that fetched them. Tasks are done one by
 * one, in the order in which they were given, and come back in that order.
 *
 * Only one thread gives and takes. A task is the worker's from aside_give until aside_take.
 */
#ifndef MUNINN_CLIENT_ASIDE_H
#define MUNINN_CLIENT_ASIDE_H

#include <stdbool.h>
#include <stddef.h>

struct aside;

/* The first member of what is given. */
struct aside_task {
	struct aside_task *next;
};

/* Starts the thread. It takes no signals. `work` is called there. -ENOMEM, -EAGAIN. */
int aside_create(void (*work)(void *context, struct aside_task *task), void *context,
		 struct aside **aside);

/* Ends the thread. All tasks must have been taken. NULL is allowed. */
void aside_destroy(struct aside *aside);

void aside_give(struct aside *aside, struct aside_task *task);

/*
 * The next task that is done. NULL: the next one is not; with `wait`: all have been taken.
 */
struct aside_task *aside_take(struct aside *aside, bool wait);

/* Tasks given and not taken. */
size_t aside_outstanding(const struct aside *aside);

#endif
