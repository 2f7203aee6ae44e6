/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * nand_read and nand_program on back ends that have many pages under way. Each call takes one of
 * the device's own queues while it runs. So its pages move together, and threads do not wait for
 * one another.
 */
#include <errno.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/calls.h"

static struct nand_queue *take_queue(struct nand *nand)
{
	const struct nand_queue_options options = { .depth = 1 };
	struct nand_call_queues *calls = &nand->calls;
	struct nand_queue *queue = NULL;
	struct error_text error;

	pthread_mutex_lock(&calls->lock);
	while (calls->idle_count == 0 && calls->opened == NAND_CALL_QUEUES_MAX)
		pthread_cond_wait(&calls->returned, &calls->lock);
	if (calls->idle_count > 0)
		queue = calls->idle[--calls->idle_count];
	else
		calls->opened++;
	pthread_mutex_unlock(&calls->lock);
	if (queue || nand_queue_open(nand, &options, &queue, &error) == 0)
		return queue;
	log_line(LOG_LEVEL_ERROR, "%s", error.text);
	pthread_mutex_lock(&calls->lock);
	calls->opened--;
	pthread_cond_signal(&calls->returned);
	pthread_mutex_unlock(&calls->lock);
	return NULL;
}

static void return_queue(struct nand *nand, struct nand_queue *queue)
{
	struct nand_call_queues *calls = &nand->calls;

	pthread_mutex_lock(&calls->lock);
	calls->idle[calls->idle_count++] = queue;
	pthread_cond_signal(&calls->returned);
	pthread_mutex_unlock(&calls->lock);
}

int nand_call(struct nand *nand, const struct nand_request *wanted, size_t count)
{
	struct nand_queue *queue = take_queue(nand);
	struct nand_request request = *wanted;
	int result = 0;

	if (!queue)
		return -EIO;
	while (count > 0 && result == 0) {
		struct nand_request *submitted = &request, *completed;

		request.count = min_u64(count, NAND_REQUEST_PAGES);
		nand_submit(queue, &submitted, 1);
		nand_reap(queue, &completed, 1, 1);
		result = request.result;
		request.pages += request.count;
		count -= request.count;
	}
	return_queue(nand, queue);
	return result;
}

void nand_calls_close(struct nand *nand)
{
	struct nand_call_queues *calls = &nand->calls;

	while (calls->idle_count > 0)
		nand_queue_close(calls->idle[--calls->idle_count]);
	pthread_cond_destroy(&calls->returned);
	pthread_mutex_destroy(&calls->lock);
}
