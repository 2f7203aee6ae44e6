/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The order of one logical unit's tasks, by their attributes (SAM-3, 8.6):
 *
 *   HEAD OF QUEUE   may begin at once, ahead of all that have not begun
 *   ORDERED         may begin when all that came before it and all HEAD OF QUEUE ones have ended
 *   SIMPLE          may begin when all ORDERED ones that came before it and all HEAD OF QUEUE ones
 * have ended
 *
 * A task arrives, may begin (is `enabled`) at once or later, begins when somebody takes it, and
 * ends; one that has not begun can be taken out instead. What may not begin yet is dormant, in
 * order of arrival: behind one that may not begin nothing else may but HEAD OF QUEUE, so counters
 * of what is enabled say what the first of them waits for.
 *
 * Knows neither threads nor tgtd: the caller locks, and owns the tasks, which are linked here from
 * their arrival until they begin. Nothing is allocated, and no call but order_visit takes longer
 * for more tasks, except by what it enables.
 */
#ifndef MUNINN_DAEMON_MODULE_ORDER_H
#define MUNINN_DAEMON_MODULE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum order_attribute { ORDER_SIMPLE, ORDER_ORDERED, ORDER_HEAD_OF_QUEUE };

/* Two words, so that it fits where a list link does. */
struct order_task {
	struct order_task *next;
	uint8_t attribute;   /* enum order_attribute */
	uint8_t kind;        /* the caller's own */
	uint32_t arrived_us; /* the caller's own, which nothing here touches */
};

struct order_queue {
	struct order_task *first;
	struct order_task *last; /* undefined when there is no first one */
};

struct order {
	struct order_queue enabled; /* may begin and have not, HEAD OF QUEUE first */
	struct order_queue dormant; /* may not begin yet, the oldest first */
	/*
	 * By attribute: may begin or have begun, and have not ended. Of ORDERED ones there is one
	 * at most.
	 */
	uint32_t active[ORDER_HEAD_OF_QUEUE + 1];
};

/* For a unit without tasks. */
void order_init(struct order *order);

/* Have all tasks that arrived ended? */
bool order_is_empty(const struct order *order);

/* A task arrives, and keeps `kind`. True: it may begin, and order_take gives it. */
bool order_arrive(struct order *order, struct order_task *task, enum order_attribute attribute,
		  uint8_t kind);

/* A task arrives and begins at once, if it may. False: it may not, and nothing has happened. */
bool order_begin_at_once(struct order *order, struct order_task *task,
			 enum order_attribute attribute, uint8_t kind);

/* The next task that may begin; with this call it has begun. NULL: there is none. */
struct order_task *order_take(struct order *order);

/* A task that has begun has done nothing so far: order_take gives it again. */
void order_put_back(struct order *order, struct order_task *task);

/* Is there a task that order_take gives? */
bool order_has_next(const struct order *order);

/* A task that has begun ends. True: others may begin now. */
bool order_end(struct order *order, const struct order_task *task);

/*
 * Shall the task, which has not begun, be taken out as if it had ended? Must not call anything of
 * this file.
 */
typedef bool order_visitor(void *context, struct order_task *task);

/*
 * Shows every task that has not begun: first those that may begin, then the oldest first. True:
 * others may begin now.
 */
bool order_visit(struct order *order, order_visitor *visitor, void *context);

#endif
