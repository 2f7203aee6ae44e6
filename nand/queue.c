/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Queues: many pages under way at once, with the rules and checks of page.c at both ends of each page's way.
 *
 * A request takes a slot. Its pages set out one by one until one may not; neighbours on flash share a transfer. Where
 * page data move at once anyway, that is done in nand_submit. With a model of time, a request whose data have arrived
 * is complete when the flash would be done with it; in virtual time requests complete in that order alone.
 *
 * Programs end in the order in which they were submitted, whatever order their data arrive in: so a block's pages
 * become valid in order, and what counts as programmed never has a hole, also if the process dies between.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/lab.h"
#include "nand/page.h"

#define QUEUE_DEPTH_MAX   4096
#define REQUEST_PAGES_MAX 1024 /* as many vectors as the host takes in one transfer */
#define TRANSFERS_MIN     64   /* under way at once, however few the requests */

struct slot;

struct slot_transfer {
	struct nand_transfer transfer;
	struct slot *slot;
	uint32_t first_page, pages; /* of the request */
};

struct page_state {
	struct nand_page_way way;
	int error;
};

/* A request under way. */
struct slot {
	struct nand_request *request;
	struct nand_timed timed;
	struct slot *following_timed;
	bool measured;
	bool arrived; /* nothing is under way any more, the result is there */
	struct page_state *pages;
	struct iovec *vectors;
	struct slot_transfer *transfers;
	uint8_t *copies;  /* room for data that do not begin where the host wants them */
	uint32_t set_out; /* pages that are or were under way */
	int stop;         /* why the page after them was not */
	uint32_t transfers_used;
	uint32_t transfers_left; /* unfinished; one more while the request is being submitted */
	struct slot *following;
};

struct nand_queue {
	struct nand *nand;
	uint32_t depth, request_pages, alignment;
	uint32_t held; /* requests submitted and not reaped */
	uint32_t transfers_held, transfers_max;
	struct nand_mover *mover; /* NULL: everything is done at once */
	struct slot *slots, *free;
	struct slot *first_program, **last_program; /* in the order of submission */
	struct slot *first_timed; /* ordered by the time at which the flash is done */
	struct nand_request *first_completed, **last_completed;
	uint32_t completed;
	struct nand_mapping memory;        /* the caller's region */
	struct nand_mapping copies, state; /* what the slots point to */
};

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

/* Does a model say when the flash is done? */
static bool is_modelled(const struct slot *slot)
{
	return slot->timed.generation != 0 && !slot->measured;
}

/* The result of a request; it is complete unless the flash still takes its time. */
static void settle(struct nand_queue *queue, struct slot *slot, int result, size_t done)
{
	slot->request->result = result;
	slot->request->done = done;
	slot->arrived = true;
	if (!is_modelled(slot)) {
		complete(queue, slot->request);
		release(queue, slot);
	}
}

/* All pages of the request have been given their times. */
static void insert_timed(struct nand_queue *queue, struct slot *slot)
{
	struct slot **at = &queue->first_timed;

	while (*at && (*at)->timed.completion_ns <= slot->timed.completion_ns)
		at = &(*at)->following_timed;
	slot->following_timed = *at;
	*at = slot;
}

/* The times of a request's pages: when they set out if they are modelled, when they have been moved if measured. */
static void time_pages(struct nand_queue *queue, struct slot *slot)
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

/* Where the data of a page were moved: in the caller's buffer or in the copy. */
static uint8_t *moved_data(const struct nand_queue *queue, const struct slot *slot, uint32_t page)
{
	void *data = slot->request->pages[page].data;

	return (uintptr_t)data % queue->alignment == 0
		       ? data
		       : slot->copies + (size_t)page * queue->nand->geometry.page_bytes;
}

static int finish_read_page(struct nand_queue *queue, struct slot *slot, uint32_t page)
{
	const struct nand_page_io *io = &slot->request->pages[page];
	struct nand *nand = queue->nand;
	uint8_t spare[NAND_SPARE_BYTES_MAX];

	if (slot->pages[page].error < 0)
		return slot->pages[page].error;
	if (io->data && moved_data(queue, slot, page) != io->data)
		memcpy(io->data, moved_data(queue, slot, page), nand->geometry.page_bytes);
	memcpy(spare, nand->backend->async->spare(nand, io->page), nand->geometry.spare_bytes);
	return nand_page_read_finish(nand, io, &slot->pages[page].way, spare);
}

static void finish_read(struct nand_queue *queue, struct slot *slot)
{
	const struct nand_geometry *geometry = &queue->nand->geometry;
	struct nand_request *request = slot->request;
	uint64_t pages = 0, bytes = 0;
	int result = 0;
	size_t done = 0;

	for (uint32_t i = 0; i < slot->set_out; i++) {
		bool moved = slot->pages[i].error == 0;

		pages += moved;
		bytes += moved ? geometry->spare_bytes +
					 (request->pages[i].data ? geometry->page_bytes : 0)
			       : 0;
		if (result == 0)
			result = finish_read_page(queue, slot, i);
		done += result == 0;
	}
	if (result == 0)
		result = slot->stop;
	if (slot->measured)
		time_pages(queue, slot);
	nand_count_read(queue->nand, request->cause, pages, bytes, result);
	settle(queue, slot, result, done);
}

/* The data have arrived; those of all pages before, too. */
static int finish_program_page(struct nand_queue *queue, struct slot *slot, uint32_t page)
{
	struct nand_page_way *way = &slot->pages[page].way;
	struct nand *nand = queue->nand;
	uint32_t index = way->index;

	if (slot->pages[page].error < 0)
		return slot->pages[page].error;
	/* Not the next one: a page before it failed after this one had set out. */
	if (!nand_word_load(nand, way->block, &way->word) || way->word.next_page != index)
		return -EIO;
	nand_page_program_finish(nand, way);
	return 0;
}

static void finish_program(struct nand_queue *queue, struct slot *slot)
{
	struct nand *nand = queue->nand;
	int result = 0;
	size_t done = 0;

	for (uint32_t i = 0; i < slot->set_out; i++) {
		if (result == 0)
			result = finish_program_page(queue, slot, i);
		done += result == 0;
		atomic_fetch_sub_explicit(&nand->on_the_way[slot->pages[i].way.block], 1,
					  memory_order_relaxed);
	}
	if (result == 0)
		result = slot->stop;
	if (slot->measured)
		time_pages(queue, slot);
	nand_count_programmed(nand, slot->request->cause, done);
	settle(queue, slot, result, done);
}

/* Nothing of a request is under way any more. */
static void arrived(struct nand_queue *queue, struct slot *slot)
{
	if (slot->request->kind == NAND_REQUEST_READ) {
		finish_read(queue, slot);
		return;
	}
	while (queue->first_program && queue->first_program->transfers_left == 0) {
		slot = queue->first_program;
		queue->first_program = slot->following;
		if (!queue->first_program)
			queue->last_program = &queue->first_program;
		finish_program(queue, slot);
	}
}

/* Takes a finished transfer from the mover. False: there is none. */
static bool collect(struct nand_queue *queue, bool wait)
{
	struct nand_transfer *transfer;
	struct slot_transfer *mine;
	struct slot *slot;

	if (queue->transfers_held == 0)
		return false;
	transfer = queue->mover->operations->next(queue->mover, wait);
	if (!transfer)
		return false;
	queue->transfers_held--;
	mine = (struct slot_transfer *)transfer;
	slot = mine->slot;
	if (transfer->result < 0) {
		log_line(LOG_LEVEL_ERROR,
			 "%s: the host could not %s pages %" PRIu64 " to %" PRIu64 ": %s",
			 queue->nand->path, transfer->write ? "write" : "read",
			 slot->request->pages[mine->first_page].page,
			 slot->request->pages[mine->first_page].page + mine->pages - 1,
			 strerror(-transfer->result));
		for (uint32_t i = 0; i < mine->pages; i++)
			slot->pages[mine->first_page + i].error = -EIO;
	}
	if (--slot->transfers_left == 0)
		arrived(queue, slot);
	return true;
}

/* ---- the beginning of a request ---- */

/* May the page set out? Then says so to all that follow. */
static int set_out(struct nand_queue *queue, struct slot *slot, uint32_t page)
{
	const struct nand_page_io *io = &slot->request->pages[page];
	struct page_state *state = &slot->pages[page];
	struct nand *nand = queue->nand;
	int result;

	state->error = 0;
	if (slot->request->kind == NAND_REQUEST_READ) {
		result = nand_page_read_begin(nand, io, &state->way);
		if (result == 0)
			nand->backend->async->expect(nand, io->page);
		return result;
	}
	if (nand->read_only)
		return -EROFS;
	result = nand_page_program_begin(nand, io, &state->way);
	if (result == 0)
		atomic_fetch_add_explicit(&nand->on_the_way[state->way.block], 1,
					  memory_order_relaxed);
	return result;
}

/* Stores the spare areas of a program's pages while their data are under way. They mean nothing before the pages count. */
static void seal_all(struct nand_queue *queue, struct slot *slot)
{
	struct nand *nand = queue->nand;
	uint8_t spare[NAND_SPARE_BYTES_MAX];

	queue->mover->operations->flush(queue->mover);
	for (uint32_t i = 0; i < slot->set_out; i++) {
		const struct nand_page_io *io = &slot->request->pages[i];

		nand_page_seal(nand, io, &slot->pages[i].way, spare);
		memcpy(nand->backend->async->spare(nand, io->page), spare,
		       nand->geometry.spare_bytes);
	}
}

static void start(struct nand_queue *queue, struct slot_transfer *transfer)
{
	while (queue->transfers_held == queue->transfers_max)
		collect(queue, true);
	queue->transfers_held++;
	transfer->slot->transfers_left++;
	queue->mover->operations->start(queue->mover, &transfer->transfer);
}

/* Adds a page that has set out to `transfer` if it continues it. */
static bool extend(const struct nand_queue *queue, struct slot_transfer *transfer, uint32_t page)
{
	const struct nand_geometry *geometry = &queue->nand->geometry;
	const struct nand_page_io *ios = transfer->slot->request->pages;
	uint32_t end = transfer->first_page + transfer->pages;
	struct iovec *last = &transfer->transfer.vectors[transfer->transfer.count - 1];
	uint8_t *data = moved_data(queue, transfer->slot, page);

	if (page != end || ios[page].page != ios[end - 1].page + 1)
		return false;
	if (data == (uint8_t *)last->iov_base + last->iov_len) {
		last->iov_len += geometry->page_bytes;
	} else {
		last[1] = (struct iovec){ data, geometry->page_bytes };
		transfer->transfer.count++;
	}
	transfer->transfer.bytes += geometry->page_bytes;
	transfer->pages++;
	return true;
}

/* The vectors of a transfer stand where those of one vector a page would, so that none runs into another's. */
static struct slot_transfer *new_transfer(struct nand_queue *queue, struct slot *slot,
					  uint32_t page)
{
	const struct nand_geometry *geometry = &queue->nand->geometry;
	struct slot_transfer *transfer = &slot->transfers[slot->transfers_used++];

	slot->vectors[page] = (struct iovec){ moved_data(queue, slot, page), geometry->page_bytes };
	*transfer = (struct slot_transfer){
		.transfer = {
			.offset = queue->nand->layout.data_offset +
				  slot->request->pages[page].page * geometry->page_bytes,
			.bytes = geometry->page_bytes,
			.vectors = &slot->vectors[page],
			.count = 1,
			.write = slot->request->kind == NAND_REQUEST_PROGRAM,
		},
		.slot = slot,
		.first_page = page,
		.pages = 1,
	};
	return transfer;
}

static void set_out_all(struct nand_queue *queue, struct slot *slot)
{
	struct nand_request *request = slot->request;
	struct slot_transfer *open = NULL;

	for (slot->set_out = 0; slot->set_out < request->count; slot->set_out++) {
		uint32_t page = slot->set_out;
		const struct nand_page_io *io = &request->pages[page];

		slot->stop = set_out(queue, slot, page);
		if (slot->stop < 0)
			break;
		if (!io->data)
			continue;
		if (request->kind == NAND_REQUEST_PROGRAM &&
		    moved_data(queue, slot, page) != io->data)
			memcpy(moved_data(queue, slot, page), io->data,
			       queue->nand->geometry.page_bytes);
		if (open && extend(queue, open, page))
			continue;
		if (open)
			start(queue, open);
		open = new_transfer(queue, slot, page);
	}
	if (open)
		start(queue, open);
}

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

static void move_while_the_caller_goes_on(struct nand_queue *queue, struct slot *slot)
{
	if (slot->request->kind == NAND_REQUEST_PROGRAM) {
		*queue->last_program = slot;
		queue->last_program = &slot->following;
	}
	set_out_all(queue, slot);
	if (slot->request->kind == NAND_REQUEST_PROGRAM)
		seal_all(queue, slot);
	if (is_modelled(slot)) {
		time_pages(queue, slot);
		insert_timed(queue, slot);
	}
	if (--slot->transfers_left == 0)
		arrived(queue, slot);
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

	if (is_modelled(slot))
		insert_timed(queue, slot);
	settle(queue, slot, result, done);
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
			move_while_the_caller_goes_on(queue, take_slot(queue, request));
		} else {
			move_at_once(queue, take_slot(queue, request));
		}
	}
	if (queue->mover)
		queue->mover->operations->flush(queue->mover);
	return taken;
}

/* Completes the request that the flash is done with first. False: there is none, or none yet and `wait` is not set. */
static bool complete_timed(struct nand_queue *queue, bool wait)
{
	struct slot *slot = queue->first_timed;

	while (slot && !slot->arrived)
		if (!collect(queue, wait))
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

		if (!complete_timed(queue, wait) && !collect(queue, wait))
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

static int map_slots(struct nand_queue *queue, struct error_text *error)
{
	uint64_t pages = queue->request_pages;
	uint64_t state_bytes =
		sizeof(struct page_state) + sizeof(struct iovec) + sizeof(struct slot_transfer);
	uint64_t copy_bytes = pages * queue->nand->geometry.page_bytes;
	int result = nand_map(&queue->state, NAND_MAP_PRIVATE, -1, 0,
			      queue->depth * pages * state_bytes, "a queue", error);

	/* Only touched for data that have to be copied. */
	if (result == 0)
		result = nand_map(&queue->copies, NAND_MAP_PRIVATE, -1, 0,
				  queue->depth * copy_bytes, "a queue", error);
	if (result < 0)
		return result;
	for (uint32_t i = 0; i < queue->depth; i++) {
		struct slot *slot = &queue->slots[i];
		uint8_t *state = queue->state.at + i * pages * state_bytes;

		slot->transfers = (struct slot_transfer *)(void *)state;
		slot->vectors = (struct iovec *)(slot->transfers + pages);
		slot->pages = (struct page_state *)(slot->vectors + pages);
		slot->copies = queue->copies.at + i * copy_bytes;
	}
	return 0;
}

/* What is made known to the kernel: the caller's region; of a queue without, for a caller's single request, the copies. */
static int open_mover(struct nand_queue *queue, struct error_text *error)
{
	const struct nand_backend_async *async = queue->nand->backend->async;
	const struct nand_mapping *known = queue->memory.at ? &queue->memory : &queue->copies;
	int result = map_slots(queue, error);

	if (result < 0)
		return result;
	if (!queue->memory.at && queue->depth > 1)
		known = &queue->memory;
	queue->alignment = async->alignment(queue->nand);
	queue->transfers_max = (uint32_t)max_u64(queue->depth, TRANSFERS_MIN);
	result = async->open_mover(queue->nand, queue->transfers_max, known->at, known->bytes,
				   &queue->mover);
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
	made->depth = options->depth;
	made->request_pages = options->request_pages ? options->request_pages : NAND_REQUEST_PAGES;
	made->last_program = &made->first_program;
	made->last_completed = &made->first_completed;
	made->slots = calloc(made->depth, sizeof(*made->slots));
	if (!made->slots)
		result = error_set(error, -ENOMEM, "%s: no memory for a queue", nand->path);
	for (uint32_t i = 0; i < made->depth && result == 0; i++)
		release(made, &made->slots[i]);
	if (result == 0 && options->memory_bytes > 0)
		result = nand_map(&made->memory, NAND_MAP_PRIVATE, -1, 0, options->memory_bytes,
				  "a queue's memory", error);
	if (result == 0 && nand->backend->async)
		result = open_mover(made, error);
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
	while (collect(queue, true))
		;
	if (queue->mover)
		queue->mover->operations->close(queue->mover);
	nand_unmap(&queue->memory);
	nand_unmap(&queue->copies);
	nand_unmap(&queue->state);
	free(queue->slots);
	free(queue);
}

void *nand_queue_memory(struct nand_queue *queue)
{
	return queue->memory.at;
}
