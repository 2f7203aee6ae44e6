/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A fixed number of tasks in a hash table with chains, the newest first. */
#include "daemon/module/guard_tasks.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int guard_tasks_init(struct guard_tasks *tasks, uint32_t room)
{
	uint32_t buckets = 1;

	assert(room > 0 && room <= GUARD_TASKS_MAX);
	while (buckets < room)
		buckets *= 2;
	*tasks = (struct guard_tasks){
		.all = calloc(room, sizeof(*tasks->all)),
		.buckets = calloc(buckets, sizeof(*tasks->buckets)),
		.room = room,
		.bucket_mask = buckets - 1,
	};
	if (!tasks->all || !tasks->buckets) {
		guard_tasks_release(tasks);
		return -ENOMEM;
	}
	for (uint32_t i = room; i > 0; i--) {
		tasks->all[i - 1].next = tasks->free;
		tasks->free = (uint16_t)i;
	}
	return 0;
}

void guard_tasks_release(struct guard_tasks *tasks)
{
	free(tasks->all);
	free(tasks->buckets);
	memset(tasks, 0, sizeof(*tasks));
}

/* Initiators count tags up, or have a place of a table in their low bits. */
static uint16_t *bucket_of(const struct guard_tasks *tasks, uint32_t tag)
{
	return &tasks->buckets[(tag * UINT32_C(2654435761) >> 16) & tasks->bucket_mask];
}

struct guard_task *guard_tasks_add(struct guard_tasks *tasks, uint32_t tag)
{
	uint16_t place = tasks->free, *bucket;
	struct guard_task *task;

	if (!place)
		return NULL;
	task = &tasks->all[place - 1];
	tasks->free = task->next;
	bucket = bucket_of(tasks, tag);
	*task = (struct guard_task){ .tag = tag, .next = *bucket };
	*bucket = place;
	tasks->count++;
	return task;
}

static struct guard_task *at(const struct guard_tasks *tasks, uint16_t place)
{
	return place ? &tasks->all[place - 1] : NULL;
}

struct guard_task *guard_tasks_find(const struct guard_tasks *tasks, uint32_t tag)
{
	struct guard_task *task;

	if (!tasks->count)
		return NULL;
	task = at(tasks, *bucket_of(tasks, tag));
	while (task && task->tag != tag)
		task = at(tasks, task->next);
	return task;
}

void guard_tasks_set(struct guard_tasks *tasks, struct guard_task *task, enum guard_data data)
{
	tasks->waiting -= task->data != GUARD_DATA_COMPLETE;
	tasks->waiting += data != GUARD_DATA_COMPLETE;
	task->data = (uint8_t)data;
}

void guard_tasks_remove(struct guard_tasks *tasks, struct guard_task *task)
{
	uint16_t place = (uint16_t)(task - tasks->all + 1), *link = bucket_of(tasks, task->tag);

	while (*link != place)
		link = &tasks->all[*link - 1].next;
	*link = task->next;
	guard_tasks_set(tasks, task, GUARD_DATA_COMPLETE);
	task->next = tasks->free;
	tasks->free = place;
	tasks->count--;
}

void guard_tasks_abort(struct guard_tasks *tasks, bool one, uint32_t tag)
{
	for (uint32_t i = 0; i <= tasks->bucket_mask && tasks->count; i++) {
		struct guard_task *task = at(tasks, tasks->buckets[i]);

		for (; task; task = at(tasks, task->next))
			task->aborted |= !one || task->tag == tag;
	}
}
