/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Decides which task of a logical unit may begin, by the task attributes. */
#include "daemon/module/order.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

static void add_first(struct order_queue *queue, struct order_task *task)
{
	task->next = queue->first;
	if (!queue->first)
		queue->last = task;
	queue->first = task;
}

static void add_last(struct order_queue *queue, struct order_task *task)
{
	task->next = NULL;
	if (queue->first)
		queue->last->next = task;
	else
		queue->first = task;
	queue->last = task;
}

static struct order_task *take_first(struct order_queue *queue)
{
	struct order_task *task = queue->first;

	if (task)
		queue->first = task->next;
	return task;
}

/* May the oldest dormant task begin, or one that arrives when there is none? */
static bool may_begin(const struct order *order, enum order_attribute attribute)
{
	if (attribute == ORDER_HEAD_OF_QUEUE)
		return true;
	if (order->active[ORDER_HEAD_OF_QUEUE] || order->active[ORDER_ORDERED])
		return false;
	return attribute == ORDER_SIMPLE || !order->active[ORDER_SIMPLE];
}

static bool may_begin_on_arrival(const struct order *order, enum order_attribute attribute)
{
	return (attribute == ORDER_HEAD_OF_QUEUE || !order->dormant.first) &&
	       may_begin(order, attribute);
}

/* Returns whether there was any. */
static bool enable_dormant(struct order *order)
{
	bool any = false;

	while (order->dormant.first && may_begin(order, order->dormant.first->attribute)) {
		struct order_task *task = take_first(&order->dormant);

		order->active[task->attribute]++;
		add_last(&order->enabled, task);
		any = true;
	}
	return any;
}

void order_init(struct order *order)
{
	memset(order, 0, sizeof(*order));
}

bool order_is_empty(const struct order *order)
{
	for (size_t i = 0; i <= ORDER_HEAD_OF_QUEUE; i++)
		if (order->active[i])
			return false;
	/* With nothing active, the oldest dormant task would be enabled. */
	assert(!order->dormant.first && !order->enabled.first);
	return true;
}

static void set_up(struct order_task *task, enum order_attribute attribute, uint8_t kind)
{
	task->next = NULL;
	task->attribute = (uint8_t)attribute;
	task->kind = kind;
}

bool order_begin_at_once(struct order *order, struct order_task *task,
			 enum order_attribute attribute, uint8_t kind)
{
	if (!may_begin_on_arrival(order, attribute))
		return false;
	set_up(task, attribute, kind);
	order->active[attribute]++;
	return true;
}

bool order_arrive(struct order *order, struct order_task *task, enum order_attribute attribute,
		  uint8_t kind)
{
	bool enabled = order_begin_at_once(order, task, attribute, kind);

	if (enabled) {
		order_put_back(order, task);
		return true;
	}
	set_up(task, attribute, kind);
	add_last(&order->dormant, task);
	return false;
}

void order_put_back(struct order *order, struct order_task *task)
{
	if (task->attribute == ORDER_HEAD_OF_QUEUE)
		add_first(&order->enabled, task);
	else
		add_last(&order->enabled, task);
}

bool order_has_next(const struct order *order)
{
	return order->enabled.first != NULL;
}

struct order_task *order_take(struct order *order)
{
	return take_first(&order->enabled);
}

bool order_end(struct order *order, const struct order_task *task)
{
	assert(order->active[task->attribute] > 0);
	order->active[task->attribute]--;
	return enable_dormant(order);
}

bool order_visit(struct order *order, order_visitor *visitor, void *context)
{
	struct order_queue *queues[] = { &order->enabled, &order->dormant };

	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
		struct order_task *task = queues[i]->first;

		queues[i]->first = NULL;
		while (task) {
			struct order_task *next = task->next;
			uint8_t attribute = task->attribute;

			if (!visitor(context, task))
				add_last(queues[i], task);
			else if (queues[i] == &order->enabled)
				order->active[attribute]--;
			task = next;
		}
	}
	return enable_dormant(order);
}
