/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The way of a request where pages move while the caller goes on. Its pages set out one by one
 * until one may not. Neighbours on flash share a transfer, from or to the buffers of the slot: of
 * what is moved, the caller wants some here and some there. When all that set out have arrived,
 * they are checked and counted.
 *
 * Programs end in the order of submission, whatever order their data arrive in. So a block's pages
 * become valid in order, and what counts as programmed never has a hole, also if the process dies
 * in between.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/request.h"
#include "nand/space.h"

_Static_assert(NAND_MOVE_ALIGNMENT % NAND_BLOCK_ALIGNMENT == 0, "programs can move from there");

/* ---- the end of a request ---- */

static int finish_read_page(struct nand_queue *queue, struct slot *slot, uint32_t page)
{
	const struct nand_page_io *io = &slot->request->pages[page];
	const struct page_state *state = &slot->pages[page];
	uint32_t page_bytes = queue->nand->geometry.page_bytes;

	if (state->error < 0)
		return state->error;
	if (io->data)
		memcpy(io->data, state->spare - page_bytes, page_bytes);
	return nand_page_read_finish(queue->nand, io, &state->way, state->spare);
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
		nand_slot_time_pages(queue, slot);
	nand_count_read(queue->nand, request->cause, pages, bytes, result);
	nand_slot_settle(queue, slot, result, done);
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
		nand_slot_time_pages(queue, slot);
	nand_count_programmed(nand, slot->request->cause, done);
	nand_slot_settle(queue, slot, result, done);
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

/* Logs it. Its pages end with an error. */
static void failed_transfer(struct nand *nand, const struct slot_transfer *mine)
{
	const struct nand_page_io *ios = mine->slot->request->pages + mine->first_page;
	uint64_t first = ios[0].page, last = ios[mine->pages - 1].page;
	int result = -EIO;

	if (mine->transfer.write)
		result = nand_space_failed(nand, (uint32_t)(first / nand->geometry.pages_per_block),
					   mine->transfer.result);
	else
		log_line(LOG_LEVEL_ERROR,
			 "%s: the host could not read pages %" PRIu64 " to %" PRIu64 ": %s",
			 nand->path, first, last, strerror(-mine->transfer.result));
	for (uint32_t i = 0; i < mine->pages; i++)
		mine->slot->pages[mine->first_page + i].error = result;
}

/* Takes a finished transfer from the mover. False: there is none. */
bool nand_request_collect(struct nand_queue *queue, bool wait)
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
	queue->writes_held -= transfer->write;
	mine = (struct slot_transfer *)transfer;
	slot = mine->slot;
	if (transfer->result < 0)
		failed_transfer(queue->nand, mine);
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
	if (slot->request->kind == NAND_REQUEST_READ)
		return nand_page_read_begin(nand, io, &state->way);
	if (nand->read_only)
		return -EROFS;
	result = nand_page_program_begin(nand, io, &state->way);
	if (result == 0)
		atomic_fetch_add_explicit(&nand->on_the_way[state->way.block], 1,
					  memory_order_relaxed);
	return result;
}

/* Waits until no write of the queue is under way. */
static void wait_for_writes(struct nand_queue *queue)
{
	while (queue->writes_held > 0)
		nand_request_collect(queue, true);
}

/* A transfer has all its pages. */
static void start(struct nand_queue *queue, struct slot_transfer *mine)
{
	struct nand_transfer *transfer = &mine->transfer;

	transfer->bytes =
		align_up(transfer->bytes, transfer->write ? queue->units.write : queue->units.read);
	while (queue->transfers_held == queue->transfers_max)
		nand_request_collect(queue, true);
	queue->transfers_held++;
	queue->writes_held += transfer->write;
	mine->slot->transfers_left++;
	queue->mover->operations->start(queue->mover, transfer);
}

/* Adds a page that has set out to `transfer` if it continues it. */
static bool extend(const struct nand_queue *queue, struct slot_transfer *transfer, uint32_t page)
{
	const struct nand_layout *layout = &queue->nand->layout;
	const struct nand_geometry *geometry = &queue->nand->geometry;
	const struct nand_page_io *ios = transfer->slot->request->pages;
	struct page_state *states = transfer->slot->pages;
	uint32_t last = page - 1;

	if (!ios[last].data || !ios[page].data ||
	    nand_page_offset(layout, geometry, ios[page].page) !=
		    nand_page_offset(layout, geometry, ios[last].page) + layout->page_stride)
		return false;
	states[page].spare = states[last].spare + layout->page_stride;
	transfer->transfer.bytes += layout->page_stride;
	transfer->pages++;
	return true;
}

/*
 * Whether a program can be moved from where the caller has it: in whole units of the file. If one
 * of its pages may not set out then, what moves of that with the page before is of no account.
 */
static bool moves_in_place(const struct nand_queue *queue, const struct nand_request *request)
{
	const struct nand_layout *layout = &queue->nand->layout;
	const struct nand_geometry *geometry = &queue->nand->geometry;
	uint64_t first = nand_page_offset(layout, geometry, request->pages[0].page);
	uint64_t last = nand_page_offset(layout, geometry, request->pages[request->count - 1].page);
	uint64_t bytes = request->count * layout->page_stride;

	/* Between blocks there may be a gap; a power cut leaves pages one by one. */
	return request->whole && request->kind == NAND_REQUEST_PROGRAM &&
	       first % queue->units.write == 0 && bytes % queue->units.write == 0 &&
	       last + layout->page_stride == first + bytes &&
	       (uintptr_t)request->pages[0].data % NAND_MOVE_ALIGNMENT == 0 &&
	       !nand_feature_is_on(queue->nand, NAND_FEATURE_POWER);
}

/*
 * Gets the unit of the file in which a program's first page begins: in front of it there is the end
 * of the page before, which may be under way itself. False: it can't be read, and the page ends
 * with an error.
 */
static bool fetch_front(struct nand_queue *queue, struct slot_transfer *mine)
{
	struct nand_transfer *transfer = &mine->transfer;

	wait_for_writes(queue);
	transfer->result = queue->nand->backend->async->fetch(queue->nand, transfer->offset,
							      transfer->memory, queue->units.write);
	if (transfer->result < 0)
		failed_transfer(queue->nand, mine);
	return transfer->result == 0;
}

/*
 * Begins a transfer with a page. Its memory begins where that of the page by itself would, so that
 * no transfer runs into another's. NULL: the page ends with an error.
 */
static struct slot_transfer *new_transfer(struct nand_queue *queue, struct slot *slot,
					  uint32_t page)
{
	const struct nand_geometry *geometry = &queue->nand->geometry;
	const struct nand_page_io *io = &slot->request->pages[page];
	struct slot_transfer *transfer = &slot->transfers[slot->transfers_used++];
	bool write = slot->request->kind == NAND_REQUEST_PROGRAM;
	uint64_t data = nand_page_offset(&queue->nand->layout, geometry, io->page);
	uint64_t spare = data + geometry->page_bytes;
	uint64_t first =
		align_down(io->data ? data : spare, write ? queue->units.write : queue->units.read);
	uint8_t *memory = slot->in_place ? io->data
					 : slot->buffers + (size_t)page * queue->buffer_bytes;

	slot->pages[page].spare = memory + (spare - first);
	*transfer = (struct slot_transfer){
		.transfer = {
			.offset = first,
			.bytes = spare + geometry->spare_bytes - first,
			.memory = memory,
			.write = write,
		},
		.slot = slot,
		.first_page = page,
		.pages = 1,
	};
	return !write || first == data || fetch_front(queue, transfer) ? transfer : NULL;
}

/* Copies what is to be programmed to the slot's buffers, unless it is in place, and seals it. */
static void fill(const struct nand_queue *queue, struct slot *slot, uint32_t page)
{
	const struct nand_page_io *io = &slot->request->pages[page];
	uint32_t page_bytes = queue->nand->geometry.page_bytes;
	struct page_state *state = &slot->pages[page];

	nand_page_seal(queue->nand, io, &state->way, state->spare);
	if (!slot->in_place)
		memcpy(state->spare - page_bytes, io->data, page_bytes);
}

static void set_out_all(struct nand_queue *queue, struct slot *slot)
{
	struct nand_request *request = slot->request;
	bool write = request->kind == NAND_REQUEST_PROGRAM;
	struct slot_transfer *open = NULL;

	slot->in_place = moves_in_place(queue, request);
	for (slot->set_out = 0; slot->set_out < request->count; slot->set_out++) {
		uint32_t page = slot->set_out;

		/* What a power cut leaves of this page comes behind the pages before. */
		if (write && open && nand_feature_is_on(queue->nand, NAND_FEATURE_POWER)) {
			start(queue, open);
			wait_for_writes(queue);
			open = NULL;
		}
		slot->stop = set_out(queue, slot, page);
		if (slot->stop < 0)
			break;
		if (!open || !extend(queue, open, page)) {
			if (open)
				start(queue, open);
			open = new_transfer(queue, slot, page);
		}
		if (write && open)
			fill(queue, slot, page);
	}
	if (open)
		start(queue, open);
}

void nand_request_begin(struct nand_queue *queue, struct slot *slot)
{
	if (slot->request->kind == NAND_REQUEST_PROGRAM) {
		*queue->last_program = slot;
		queue->last_program = &slot->following;
	}
	set_out_all(queue, slot);
	/* The drive has work while the next request is sealed. */
	if (slot->request->kind == NAND_REQUEST_PROGRAM)
		queue->mover->operations->flush(queue->mover);
	if (nand_slot_is_modelled(slot)) {
		nand_slot_time_pages(queue, slot);
		nand_slot_insert_timed(queue, slot);
	}
	if (--slot->transfers_left == 0)
		arrived(queue, slot);
}
