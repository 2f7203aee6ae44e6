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
	run->needs_segment = NO_SEGMENT;
	return run->needs && run->data ? 0 : -ENOMEM;
}

void merge_run_destroy(struct muninn_store *store)
{
	free(store->merge_walk.estimates);
	if (!store->merge_run)
		return;
	free(store->merge_run->needs);
	free(store->merge_run->data);
	free(store->merge_run);
}

uint64_t merge_run_segment_bytes(const struct muninn_store *store)
{
	return malloc_usable_size(store->merge_walk.estimates);
}

uint64_t merge_run_scratch_bytes(const struct muninn_store *store)
{
	return malloc_usable_size(store->merge_run) + malloc_usable_size(store->merge_run->needs) +
	       malloc_usable_size(store->merge_run->data);
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
	memset(run->finds, 0, sizeof(run->finds));
	for (uint32_t n = 0; n < MERGE_PAGES; n++)
		run->pages[n].number = NO_PAGE;
	run->list.from = run->list.to = 0;
	run->list.searches = 0;
	run->reads = 0;
	run->reads_max = reads_max;
}

/* ---- pages ---- */

static int read_page(struct merge_run *run, uint64_t number, struct merge_page *page, uint8_t *data)
{
	struct muninn_store *store = run->store;
	uint8_t spare[4096];
	struct nand_page_io io = { .page = number, .data = data, .spare = spare };
	int result = nand_read(store->nand, NAND_CAUSE_MERGE, &io, 1);

	run->reads++;
	page->number = NO_PAGE;
	if (result == -ENODATA) /* sealed segments are programmed whole: the flash lost a page */
		return -EBADMSG;
	if (result)
		return result;
	if (!page_spare_decode(spare, store->geometry.page_bytes, &page->spare) ||
	    page->spare.kind != PAGE_KIND_RECORDS)
		return -EBADMSG;
	page->number = number;
	return 0;
}

int merge_run_read_page(struct merge_run *run, uint64_t number, struct page_view *view)
{
	uint32_t page_bytes = run->store->geometry.page_bytes;
	struct merge_page *page = &run->pages[number % MERGE_PAGES];
	uint8_t *data = run->data + number % MERGE_PAGES * (uint64_t)page_bytes;
	int result = page->number == number ? 0 : read_page(run, number, page, data);

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
	while (!result && page_next(&view, &offset, &record))
		result = visit(run, &record, serial, context);
	return result;
}
