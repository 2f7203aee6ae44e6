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
	AHEAD_PAGES = 32,    /* that are read together of the segment that is merged */
	PIECE_RECORDS = 256, /* that a piece looks at: then others have their turn */
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
	run->spares = malloc(MERGE_MISSING * (size_t)nand_spare_usable(nand_geometry(store->nand)));
	run->needs_segment = NO_SEGMENT;
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
	run->missing_count = 0;
	run->tries = run->worked = 0;
}

void merge_run_begin_piece(struct merge_run *run)
{
	memset(run->finds, 0, sizeof(run->finds));
	run->list.from = run->list.to = 0;
	run->list.searches = 0;
	run->missing_count = 0;
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

/* In pieces -EINPROGRESS: it has to be fetched. */
static int read_page(struct merge_run *run, uint64_t number)
{
	struct nand_page_io io = { .page = number,
				   .data = data_at(run, number),
				   .spare = run->spares };
	int result = -EINPROGRESS;

	if (!run->in_pieces || run->tries >= TRIES_MAX)
		result = nand_read(run->store->nand, NAND_CAUSE_MERGE, &io, 1);
	else if (!run->fetches_all)
		result = nand_read_at_hand(run->store->nand, NULL, NAND_CAUSE_MERGE, &io, 1);
	if (result == -EINPROGRESS) {
		/* What was there may be overwritten. */
		run->pages[number % MERGE_PAGES].number = NO_PAGE;
		return result;
	}
	return take_page(run, number, run->spares, result);
}

/* Whether a page is of the segment whose records are counted or moved. */
static bool is_of_victim(const struct merge_run *run, uint64_t number)
{
	uint32_t segment = (uint32_t)(number / run->store->geometry.segment_pages);

	if (run->stage == MERGE_MOVE)
		return segment == run->moving.victim.segment;
	return run->choice.counts && segment == run->choice.best.segment;
}

/* Two that have the same place are not read together: the first one is. */
static void miss(struct merge_run *run, uint64_t number)
{
	for (uint32_t n = 0; n < run->missing_count; n++)
		if (run->missing[n] % MERGE_PAGES == number % MERGE_PAGES)
			return;
	if (run->missing_count < MERGE_MISSING)
		run->missing[run->missing_count++] = number;
}

/* All of a segment that is counted or moved is needed: the pages behind one that is missing are. */
static void miss_ahead(struct merge_run *run)
{
	uint64_t first = run->missing[0];

	for (uint64_t number = first + 1; number < first + AHEAD_PAGES && is_of_victim(run, number);
	     number++)
		if (run->pages[number % MERGE_PAGES].number != number)
			miss(run, number);
}

void merge_run_fetch(struct merge_run *run)
{
	uint32_t usable = nand_spare_usable(nand_geometry(run->store->nand));
	struct nand_page_io ios[MERGE_MISSING];
	bool together;

	if (is_of_victim(run, run->missing[0]))
		miss_ahead(run);
	for (uint32_t n = 0; n < run->missing_count; n++)
		ios[n] = (struct nand_page_io){ .page = run->missing[n],
						.data = data_at(run, run->missing[n]),
						.spare = run->spares + (size_t)n * usable };
	run->tries++;
	together = nand_read(run->store->nand, NAND_CAUSE_MERGE, ios, run->missing_count) == 0;
	for (uint32_t n = 0; n < run->missing_count; n++)
		/* What can't be read with others is read by itself. */
		take_page(run, ios[n].page, ios[n].spare,
			  together ? 0 : nand_read(run->store->nand, NAND_CAUSE_MERGE, &ios[n], 1));
}

int merge_run_read_page(struct merge_run *run, uint64_t number, struct page_view *view)
{
	struct merge_page *page = &run->pages[number % MERGE_PAGES];
	uint8_t *data = data_at(run, number);
	int result = 0;

	if (page->number != number)
		result = read_page(run, number);
	if (result == -EINPROGRESS) {
		miss(run, number);
		return -EBUSY;
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
	while (!result && page_next(&view, &offset, &record)) {
		result = visit(run, &record, serial, context);
		run->worked++;
	}
	return result;
}
