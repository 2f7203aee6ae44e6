/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A mover made of threads that call pread(2) and pwrite(2), for hosts where io_uring is switched
 * off. Slower: each transfer is handed over twice.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/thread.h"
#include "nand/mover.h"

#define IO_THREADS_MAX 16

struct transfer_list {
	struct nand_transfer *first, **end;
};

struct io_threads {
	struct nand_mover mover;
	int fd, event_fd;
	uint32_t depth, held;
	struct transfer_list started; /* not handed over yet */

	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t work, news;
	struct transfer_list waiting, finished;
	bool closing;

	uint32_t thread_count;
	pthread_t threads[IO_THREADS_MAX];
};

int nand_transfer_by_hand(int fd, const struct nand_transfer *transfer, uint64_t done)
{
	while (done < transfer->bytes) {
		uint8_t *at = transfer->memory + done;
		uint64_t left = transfer->bytes - done;
		off_t offset = (off_t)(transfer->offset + done);
		ssize_t moved = transfer->write ? pwrite(fd, at, left, offset)
						: pread(fd, at, left, offset);

		if (moved < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (moved == 0)
			return -EIO;
		done += moved > 0 ? (uint64_t)moved : 0;
	}
	return 0;
}

static void list_clear(struct transfer_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void list_append(struct transfer_list *list, struct nand_transfer *transfer)
{
	transfer->following = NULL;
	*list->end = transfer;
	list->end = &transfer->following;
}

static struct nand_transfer *list_take(struct transfer_list *list)
{
	struct nand_transfer *transfer = list->first;

	if (transfer) {
		list->first = transfer->following;
		if (!list->first)
			list->end = &list->first;
	}
	return transfer;
}

static struct io_threads *threads_of(struct nand_mover *mover)
{
	return (struct io_threads *)mover;
}

/* Somebody who watches a descriptor has something to take. */
static void tell(const struct io_threads *threads)
{
	const uint64_t one = 1;

	/* Fails only when the counter overflows, and then the event is pending anyway. */
	if (threads->event_fd && write(threads->event_fd, &one, sizeof(one)) != sizeof(one))
		return;
}

static void *work(void *argument)
{
	struct io_threads *threads = argument;

	pthread_mutex_lock(&threads->lock);
	for (;;) {
		struct nand_transfer *transfer = list_take(&threads->waiting);

		if (!transfer && threads->closing)
			break;
		if (!transfer) {
			pthread_cond_wait(&threads->work, &threads->lock);
			continue;
		}
		pthread_mutex_unlock(&threads->lock);
		transfer->result = nand_transfer_by_hand(threads->fd, transfer, 0);
		pthread_mutex_lock(&threads->lock);
		list_append(&threads->finished, transfer);
		pthread_cond_signal(&threads->news);
		tell(threads);
	}
	pthread_mutex_unlock(&threads->lock);
	return NULL;
}

static void threads_start(struct nand_mover *mover, struct nand_transfer *transfer)
{
	struct io_threads *threads = threads_of(mover);

	assert(threads->held < threads->depth);
	threads->held++;
	list_append(&threads->started, transfer);
}

static void threads_flush(struct nand_mover *mover)
{
	struct io_threads *threads = threads_of(mover);
	struct nand_transfer *transfer;

	if (!threads->started.first)
		return;
	pthread_mutex_lock(&threads->lock);
	while ((transfer = list_take(&threads->started))) {
		list_append(&threads->waiting, transfer);
		pthread_cond_signal(&threads->work);
	}
	pthread_mutex_unlock(&threads->lock);
}

static struct nand_transfer *threads_next(struct nand_mover *mover, bool wait)
{
	struct io_threads *threads = threads_of(mover);
	struct nand_transfer *transfer;

	if (wait)
		threads_flush(mover);
	assert(!wait || threads->held > 0);
	pthread_mutex_lock(&threads->lock);
	while (!(transfer = list_take(&threads->finished)) && wait)
		pthread_cond_wait(&threads->news, &threads->lock);
	pthread_mutex_unlock(&threads->lock);
	threads->held -= transfer ? 1 : 0;
	return transfer;
}

static void threads_close(struct nand_mover *mover)
{
	struct io_threads *threads = threads_of(mover);

	assert(threads->held == 0);
	pthread_mutex_lock(&threads->lock);
	threads->closing = true;
	pthread_cond_broadcast(&threads->work);
	pthread_mutex_unlock(&threads->lock);
	for (uint32_t i = 0; i < threads->thread_count; i++)
		pthread_join(threads->threads[i], NULL);
	pthread_cond_destroy(&threads->work);
	pthread_cond_destroy(&threads->news);
	pthread_mutex_destroy(&threads->lock);
	free(threads);
}

static const struct nand_mover_operations threads_operations = {
	.start = threads_start,
	.flush = threads_flush,
	.next = threads_next,
	.close = threads_close,
};

int nand_io_threads_open(const struct nand_mover_options *options, struct nand_mover **mover)
{
	uint32_t wanted = (uint32_t)min_u64(options->depth, IO_THREADS_MAX);
	struct io_threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	threads->mover.operations = &threads_operations;
	threads->fd = options->fd;
	threads->event_fd = options->event_fd;
	threads->depth = options->depth;
	list_clear(&threads->started);
	list_clear(&threads->waiting);
	list_clear(&threads->finished);
	pthread_mutex_init(&threads->lock, NULL);
	pthread_cond_init(&threads->work, NULL);
	pthread_cond_init(&threads->news, NULL);
	while (threads->thread_count < wanted &&
	       thread_start(&threads->threads[threads->thread_count], "muninn-flash", work,
			    threads) == 0)
		threads->thread_count++;
	/* Fewer than wanted are slower, none are no use. */
	if (threads->thread_count == 0) {
		threads_close(&threads->mover);
		return -EAGAIN;
	}
	*mover = &threads->mover;
	return 0;
}
