/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Queues: many pages under way at once. The rules and checks of page.c stand at both ends of each
 * page's way.
 *
 * A request takes a slot, and has it until it is complete. Where page data move at once anyway,
 * nand_submit moves them; else request.c has them moved. With a model of time, a request whose data
 * have arrived is complete when the flash would be done with it; in virtual time requests complete
 * in that order alone.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/bytes.h"
#include "nand/request.h"

#define QUEUE_DEPTH_MAX   4096
#define REQUEST_PAGES_MAX 1024
#define TRANSFERS_MIN     64 /* under way at once, however few the requests */

#define LARGE_PAGE_BYTES     (UINT64_C(2) << 20)
#define REGISTERED_BYTES_MAX (UINT64_C(8) << 20) /* of a queue's buffers */

/* ---- the end of a request ---- */

static void complete(struct nand_queue *queue, struct nand_request *request)
{
	request->following = NULL;
	*queue->last_completed = request;
	queue->last_completed = &request->following;
	queue->completed++;
}

static void release(struct nand_queue *queue, struct slot *slot)
{
	slot->following = queue->free;
	queue->free = slot;
}

void nand_slot_settle(struct nand_queue *queue, struct slot *slot, int result, size_t done)
{
	slot->request->result = result;
	slot->request->done = done;
	slot->arrived = true;
	if (!nand_slot_is_modelled(slot)) {
		complete(queue, slot->request);
		release(queue, slot);
	}
}

void nand_slot_insert_timed(struct nand_queue *queue, struct slot *slot)
{
	struct slot **at = &queue->first_timed;

	while (*at && (*at)->timed.completion_ns <= slot->timed.completion_ns)
		at = &(*at)->following_timed;
	slot->following_timed = *at;
	*at = slot;
}

void nand_slot_time_pages(struct nand_queue *queue, struct slot *slot)
{
	const struct nand_request *request = slot->request;
	const struct nand_geometry *geometry = &queue->nand->geometry;
	bool is_read = request->kind == NAND_REQUEST_READ;
	uint32_t count = slot->set_out;

	if (slot->timed.generation == 0)
		return;
	/* What the flash finds it could not program has taken its time, too. */
	if (!is_read && slot->stop == -EIO)
		count++;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t block = (uint32_t)(request->pages[i].page / geometry->pages_per_block);
		uint64_t bytes = geometry->spare_bytes;

		if (request->pages[i].data)
			bytes += geometry->page_bytes;
		/* Each page is under way from the beginning. */
		if (slot->measured)
			slot->timed.completion_ns = slot->timed.arrival_ns;
		nand_timed_page(queue->nand, &slot->timed, is_read ? NAND_READ : NAND_PROGRAM,
				block, bytes);
	}
}

/* ---- the beginning of a request ---- */

/* Takes a slot for a request that the flash begins with now. */
static struct slot *take_slot(struct nand_queue *queue, struct nand_request *request)
{
	struct slot *slot = queue->free;

	assert(slot);
	queue->free = slot->following;
	slot->request = request;
	slot->following = NULL;
	slot->arrived = false;
	slot->set_out = 0;
	slot->stop = 0;
	slot->transfers_used = 0;
	slot->transfers_left = 1;
	nand_timed_begin(queue->nand, &slot->timed);
	slot->measured = slot->timed.generation && nand_timed_measures(queue->nand);
	return slot;
}

static void move_at_once(struct nand_queue *queue, struct slot *slot)
{
	struct nand_request *request = slot->request;
	size_t done = 0;
	int result = request->kind == NAND_REQUEST_READ
			     ? nand_read_each(queue->nand, &slot->timed, request->cause,
					      request->pages, request->count, &done)
			     : nand_program_each(queue->nand, &slot->timed, request->cause,
						 request->pages, request->count, &done);

	if (nand_slot_is_modelled(slot))
		nand_slot_insert_timed(queue, slot);
	nand_slot_settle(queue, slot, result, done);
}

size_t nand_submit(struct nand_queue *queue, struct nand_request *const *requests, size_t count)
{
	size_t taken = 0;

	for (; taken < count && queue->held < queue->depth; taken++) {
		struct nand_request *request = requests[taken];

		queue->held++;
		if (request->count == 0 || request->count > queue->request_pages) {
			request->result = -EINVAL;
			request->done = 0;
			complete(queue, request);
		} else if (queue->mover) {
			nand_request_begin(queue, take_slot(queue, request));
		} else {
			move_at_once(queue, take_slot(queue, request));
		}
	}
	if (!queue->holds)
		nand_queue_flush(queue);
	return taken;
}

void nand_queue_flush(struct nand_queue *queue)
{
	if (queue->mover)
		queue->mover->operations->flush(queue->mover);
}

/* ---- the caller takes what is complete ---- */

/*
 * Completes the request that the flash is done with first. False: there is none, or none yet and
 * `wait` is not set.
 */
static bool complete_timed(struct nand_queue *queue, bool wait)
{
	struct slot *slot = queue->first_timed;

	while (slot && !slot->arrived)
		if (!nand_request_collect(queue, wait))
			return false;
	if (!slot || (!wait && slot->timed.completion_ns > nand_timed_now(queue->nand)))
		return false;
	nand_timed_end(queue->nand, &slot->timed);
	queue->first_timed = slot->following_timed;
	complete(queue, slot->request);
	release(queue, slot);
	return true;
}

size_t nand_reap(struct nand_queue *queue, struct nand_request **completed, size_t most,
		 size_t least)
{
	size_t count = 0;

	least = min_u64(least, most);
	while (queue->completed < most) {
		bool wait = queue->completed < least;

		if (!complete_timed(queue, wait) && !nand_request_collect(queue, wait))
			break;
	}
	while (count < most && queue->first_completed) {
		completed[count] = queue->first_completed;
		queue->first_completed = completed[count]->following;
		count++;
	}
	if (!queue->first_completed)
		queue->last_completed = &queue->first_completed;
	queue->completed -= (uint32_t)count;
	queue->held -= (uint32_t)count;
	return count;
}

/* ---- the life of a queue ---- */

/*
 * What a page by itself takes at most. It begins anywhere in a unit, but at multiples of the
 * greatest power of two that divides the stride.
 */
static uint32_t buffer_bytes(const struct nand *nand, const struct nand_units *units)
{
	uint32_t unit = (uint32_t)max_u64(units->read, units->write);
	uint32_t stride = nand->layout.page_stride, step = stride & -stride;

	return (uint32_t)align_up(step < unit ? stride - step + unit : stride,
				  NAND_BLOCK_ALIGNMENT);
}

/*
 * The buffers take large pages of the host's memory if it has some: what is in one piece there is
 * one segment for the drive.
 */
static int map_slots(struct nand_queue *queue, struct error_text *error)
{
	uint64_t pages = queue->request_pages;
	uint64_t state_bytes = sizeof(struct page_state) + sizeof(struct slot_transfer);
	uint64_t slot_bytes = pages * queue->buffer_bytes;
	int result = nand_map(&queue->state, NAND_MAP_PRIVATE, -1, 0,
			      queue->depth * pages * state_bytes, "a queue", error);

	if (result == 0)
		result = nand_map(&queue->buffers, NAND_MAP_PRIVATE, -1, 0,
				  align_up(queue->depth * slot_bytes, LARGE_PAGE_BYTES), "a queue",
				  error);
	if (result < 0)
		return result;
	(void)madvise(queue->buffers.at, queue->buffers.bytes, MADV_HUGEPAGE);
	for (uint32_t i = 0; i < queue->depth; i++) {
		struct slot *slot = &queue->slots[i];
		uint8_t *state = queue->state.at + i * pages * state_bytes;

		slot->transfers = (struct slot_transfer *)(void *)state;
		slot->pages = (struct page_state *)(slot->transfers + pages);
		slot->buffers = queue->buffers.at + i * slot_bytes;
	}
	return 0;
}

/* Buffers that are not too large are registered with the kernel, which keeps them in memory. */
static int open_mover(struct nand_queue *queue, int event_fd, struct error_text *error)
{
	const struct nand_backend_async *async = queue->nand->backend->async;
	struct nand_mover_options options = { .event_fd = event_fd };
	int result;

	queue->units = async->units(queue->nand);
	queue->buffer_bytes = buffer_bytes(queue->nand, &queue->units);
	result = map_slots(queue, error);
	if (result < 0)
		return result;
	queue->transfers_max = (uint32_t)max_u64(queue->depth, TRANSFERS_MIN);
	options.depth = queue->transfers_max;
	options.memory_bytes = queue->buffers.bytes;
	if (options.memory_bytes <= REGISTERED_BYTES_MAX)
		options.memory = queue->buffers.at;
	result = async->open_mover(queue->nand, &options, &queue->mover);
	return result < 0 ? error_set(error, result, "%s: cannot make a queue of %u requests: %s",
				      queue->nand->path, queue->depth, strerror(-result))
			  : 0;
}

int nand_queue_open(struct nand *nand, const struct nand_queue_options *options,
		    struct nand_queue **queue, struct error_text *error)
{
	struct nand_queue *made;
	int result = 0;

	*queue = NULL;
	if (options->depth < 1 || options->depth > QUEUE_DEPTH_MAX ||
	    options->request_pages > REQUEST_PAGES_MAX)
		return error_set(error, -EINVAL,
				 "a queue holds 1 to %d requests of at most %d pages, not %u of %u",
				 QUEUE_DEPTH_MAX, REQUEST_PAGES_MAX, options->depth,
				 options->request_pages);
	made = calloc(1, sizeof(*made));
	if (!made)
		return error_set(error, -ENOMEM, "%s: no memory for a queue", nand->path);
	made->nand = nand;
	made->holds = options->holds;
	made->depth = options->depth;
	made->request_pages = options->request_pages ? options->request_pages : NAND_REQUEST_PAGES;
	made->last_program = &made->first_program;
	made->last_completed = &made->first_completed;
	made->slots = calloc(made->depth, sizeof(*made->slots));
	if (!made->slots)
		result = error_set(error, -ENOMEM, "%s: no memory for a queue", nand->path);
	for (uint32_t i = 0; i < made->depth && result == 0; i++)
		release(made, &made->slots[i]);
	if (result == 0 && nand->backend->async)
		result = open_mover(made, options->event_fd, error);
	if (result < 0) {
		nand_queue_close(made);
		return result;
	}
	*queue = made;
	return 0;
}

void nand_queue_close(struct nand_queue *queue)
{
	if (!queue)
		return;
	while (nand_request_collect(queue, true))
		;
	if (queue->mover)
		queue->mover->operations->close(queue->mover);
	nand_unmap(&queue->buffers);
	nand_unmap(&queue->state);
	free(queue->slots);
	free(queue);
}
