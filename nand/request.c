/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The way of a request where pages move while the caller goes on. Its pages set out one by one
 * until one may not. Neighbours on flash share a transfer. When all that set out have arrived, they
 * are checked and counted.
 *
 * Programs end in the order of submission, whatever order their data arrive in. So a block's pages
 * become valid in order, and what counts as programmed never has a hole, also if the process dies
 * in between.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "nand/request.h"
#include "nand/space.h"

/* ---- the end of a request ---- */

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

/* Logs it. Returns what its pages end with. */
static int failed_transfer(struct nand *nand, const struct nand_request *request,
			   const struct slot_transfer *mine, const struct nand_transfer *transfer)
{
	uint64_t first = request->pages[mine->first_page].page;

	if (transfer->write)
		return nand_space_failed(nand, (uint32_t)(first / nand->geometry.pages_per_block),
					 transfer->result);
	log_line(LOG_LEVEL_ERROR,
		 "%s: the host could not read pages %" PRIu64 " to %" PRIu64 ": %s", nand->path,
		 first, request->pages[mine->first_page + mine->pages - 1].page,
		 strerror(-transfer->result));
	return -EIO;
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
	mine = (struct slot_transfer *)transfer;
	slot = mine->slot;
	if (transfer->result < 0) {
		int result = failed_transfer(queue->nand, slot->request, mine, transfer);

		for (uint32_t i = 0; i < mine->pages; i++)
			slot->pages[mine->first_page + i].error = result;
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

/*
 * Stores the spare areas of a program's pages while their data are under way. They mean nothing
 * before the pages count.
 */
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
		nand_request_collect(queue, true);
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

/*
 * The vectors of a transfer stand where those of one vector a page would, so that none runs into
 * another's.
 */
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

void nand_request_begin(struct nand_queue *queue, struct slot *slot)
{
	if (slot->request->kind == NAND_REQUEST_PROGRAM) {
		*queue->last_program = slot;
		queue->last_program = &slot->following;
	}
	set_out_all(queue, slot);
	if (slot->request->kind == NAND_REQUEST_PROGRAM)
		seal_all(queue, slot);
	if (nand_slot_is_modelled(slot)) {
		nand_slot_time_pages(queue, slot);
		nand_slot_insert_timed(queue, slot);
	}
	if (--slot->transfers_left == 0)
		arrived(queue, slot);
}
