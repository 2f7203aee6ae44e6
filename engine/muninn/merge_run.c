/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The memory of a merge, and the pages that it has read. The memory lasts as long as the store, so
 * that a merge on a host that is short of memory does not fail.
 */
#include "engine/muninn/merge_run.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "common/log.h"

enum {
	FETCH_PAGES = 32,   /* that are read together of the segment that is merged */
	PIECE_RECORDS = 64, /* that a piece looks at: then others have their turn */
	/* With so many tries pages are read in turn: each of two may take the place of the other.
	 */
	TRIES_MAX = 64,
};

/* ---- memory ---- */

/* A step without a common divisor visits every segment. */
static uint32_t walk_step(uint32_t segments)
{
	for (uint32_t step = (uint32_t)(segments * 0.618);; step++) {
		uint32_t a = segments, b = step;

		while (b) {
			uint32_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return step;
	}
}

int merge_run_create(struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;
	struct merge_run *run = calloc(1, sizeof(*run));

	store->merge_walk =
		(struct merge_walk){ .step = walk_step(geometry->segments), .read_factor = 1 };
	store->merge_run = run;
	if (!run)
		return -ENOMEM;
	run->store = store;
	run->needs = malloc(segment_records_max(geometry));
	run->data = malloc(MERGE_PAGES * (size_t)geometry->page_bytes);
	run->spares = malloc(FETCH_PAGES * (size_t)nand_spare_usable(nand_geometry(store->nand)));
	run->needs_segment = NO_SEGMENT;
	run->missing = NO_PAGE;
	return run->needs && run->data && run->spares ? 0 : -ENOMEM;
}

void merge_run_destroy(struct muninn_store *store)
{
	free(store->merge_walk.estimates);
	if (!store->merge_run)
		return;
	free(store->merge_run->needs);
	free(store->merge_run->data);
	free(store->merge_run->spares);
	free(store->merge_run);
}

uint64_t merge_run_segment_bytes(const struct muninn_store *store)
{
	return malloc_usable_size(store->merge_walk.estimates);
}

uint64_t merge_run_scratch_bytes(const struct muninn_store *store)
{
	return malloc_usable_size(store->merge_run) + malloc_usable_size(store->merge_run->needs) +
	       malloc_usable_size(store->merge_run->data) +
	       malloc_usable_size(store->merge_run->spares);
}

void merge_run_forget(struct muninn_store *store, uint32_t segment)
{
	if (store->merge_walk.estimates)
		store->merge_walk.estimates[segment] = UINT16_MAX;
}

void merge_run_begin(struct merge_run *run, const struct record_keep *keep,
		     struct record_merge *merge, uint64_t reads_max)
{
	run->keep = keep;
	run->merge = merge;
	run->stage = MERGE_CHOOSE;
	run->choice = (struct merge_choice){ 0 };
	run->needs_segment = NO_SEGMENT;
	run->count = 0;
	run->result = 0;
	run->void_before = run->store->void_before;
	memset(run->finds, 0, sizeof(run->finds));
	for (uint32_t n = 0; n < MERGE_PAGES; n++)
		run->pages[n].number = NO_PAGE;
	run->list.from = run->list.to = 0;
	run->list.searches = 0;
	run->reads = 0;
	run->reads_max = reads_max;
	run->missing = NO_PAGE;
	run->tries = run->worked = 0;
}

void merge_run_begin_piece(struct merge_run *run)
{
	memset(run->finds, 0, sizeof(run->finds));
	run->list.from = run->list.to = 0;
	run->list.searches = 0;
	run->missing = NO_PAGE;
	run->worked = 0;
}

bool merge_run_has_done_enough(const struct merge_run *run)
{
	return run->in_pieces && run->worked >= PIECE_RECORDS;
}

void merge_run_got_ahead(struct merge_run *run)
{
	run->tries = 0;
}

/* ---- pages ---- */

static uint8_t *data_at(const struct merge_run *run, uint64_t number)
{
	return run->data + number % MERGE_PAGES * (uint64_t)run->store->geometry.page_bytes;
}

/* Takes a page into the run's pages that was read with `result`. */
static int take_page(struct merge_run *run, uint64_t number, const uint8_t *spare, int result)
{
	struct merge_page *page = &run->pages[number % MERGE_PAGES];

	run->reads++;
	page->number = NO_PAGE;
	if (result == -ENODATA) /* sealed segments are programmed whole: the flash lost a page */
		return -EBADMSG;
	if (result)
		return result;
	if (!page_spare_decode(spare, run->store->geometry.page_bytes, &page->spare) ||
	    page->spare.kind != PAGE_KIND_RECORDS)
		return -EBADMSG;
	page->number = number;
	return 0;
}

static int read_page(struct merge_run *run, uint64_t number)
{
	struct nand_page_io io = { .page = number,
				   .data = data_at(run, number),
				   .spare = run->spares };
	int result = nand_read(run->store->nand, NAND_CAUSE_MERGE, &io, 1);

	return take_page(run, number, run->spares, result);
}

/* Pages that are read together, from `number` on: of the segment that is merged they are needed. */
static uint32_t fetch_count(const struct merge_run *run, uint64_t number)
{
	uint32_t pages = run->store->geometry.segment_pages;
	const struct victim *victim = run->stage == MERGE_MOVE ? &run->moving.victim
							       : &run->choice.best;

	if ((run->stage != MERGE_MOVE && !run->choice.counts) || number / pages != victim->segment)
		return 1;
	return (uint32_t)min_u64(FETCH_PAGES, pages - number % pages);
}

void merge_run_fetch(struct merge_run *run)
{
	uint32_t usable = nand_spare_usable(nand_geometry(run->store->nand));
	uint32_t count = fetch_count(run, run->missing);
	struct nand_page_io ios[FETCH_PAGES];

	for (uint32_t n = 0; n < count; n++)
		ios[n] = (struct nand_page_io){ .page = run->missing + n,
						.data = data_at(run, run->missing + n),
						.spare = run->spares + (size_t)n * usable };
	run->tries++;
	/* What can't be read with others is read by itself. */
	if (count > 1 && nand_read(run->store->nand, NAND_CAUSE_MERGE, ios, count) == 0)
		for (uint32_t n = 0; n < count; n++)
			take_page(run, ios[n].page, ios[n].spare, 0);
	else
		read_page(run, run->missing);
}

int merge_run_read_page(struct merge_run *run, uint64_t number, struct page_view *view)
{
	struct merge_page *page = &run->pages[number % MERGE_PAGES];
	uint8_t *data = data_at(run, number);
	int result = 0;

	if (page->number != number) {
		if (run->in_pieces && run->tries < TRIES_MAX) {
			run->missing = number;
			return -EBUSY;
		}
		result = read_page(run, number);
	}
	if (result)
		return result;
	*view = (struct page_view){
		.serial = page->spare.serial,
		.data = data,
		.used = page->spare.used,
		.large_header = page->spare.large ? page->spare.large_header : NULL,
	};
	return 0;
}

int merge_run_read_more(struct merge_run *run, uint64_t number, struct page_view *view)
{
	if (run->reads >= run->reads_max && run->pages[number % MERGE_PAGES].number != number)
		return -EBUSY;
	return merge_run_read_page(run, number, view);
}

int merge_run_visit_page(struct merge_run *run, uint32_t segment, uint32_t page,
			 record_visitor *visit, void *context)
{
	uint8_t data[MUNINN_PAGE_BYTES_MAX], large_header[RECORD_HEADER_BYTES];
	uint64_t number = segment_page(&run->store->geometry, segment) + page;
	struct page_record record;
	struct page_view view;
	uint32_t offset = 0;
	int result = merge_run_read_page(run, number, &view);

	if (result && merge_run_misses(run))
		return result;
	if (result) {
		log_line(LOG_LEVEL_ERROR,
			 "%s: merge: flash page %llu can't be read (error %d); segment %u stays",
			 nand_path(run->store->nand), (unsigned long long)number, -result, segment);
		return result;
	}
	/* Other pages take its place while its records are judged. */
	uint64_t serial = view.serial;

	memcpy(data, view.data, view.used);
	view.data = data;
	if (view.large_header)
		view.large_header = memcpy(large_header, view.large_header, sizeof(large_header));
	run->missing = NO_PAGE;
	while (!result && page_next(&view, &offset, &record)) {
		result = visit(run, &record, serial, context);
		run->worked++;
	}
	/* What went on without it does not miss it. */
	if (!result)
		run->missing = NO_PAGE;
	return result;
}
