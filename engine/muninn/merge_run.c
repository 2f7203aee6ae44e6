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
#include "engine/muninn/repair.h"

enum {
	PIECE_RECORDS = 256,     /* that a piece looks at: then others have their turn ... */
	PIECE_RECORDS_LEAST = 2, /* ... or behind so few, if they wait for it */
	/* With so many tries pages are read one by one: they may take each other's places. */
	TRIES_MAX = 64,
	NO_CHAIN = UINT16_MAX,
};

/* ---- memory ---- */

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
	run->spares = malloc(max_u64(MERGE_MISSING, geometry->segment_pages) *
			     nand_spare_usable(nand_geometry(store->nand)));
	run->ios = malloc(max_u64(MERGE_MISSING, geometry->segment_pages) * sizeof(*run->ios));
	run->segment = (struct merge_segment){
		.number = NO_SEGMENT,
		.data = malloc(geometry->segment_pages * (size_t)geometry->page_bytes),
		.spares = malloc(geometry->segment_pages * sizeof(*run->segment.spares)),
		.results = malloc(geometry->segment_pages * sizeof(*run->segment.results)),
	};
	run->needs_segment = NO_SEGMENT;
	return run->needs && run->data && run->spares && run->ios && run->segment.data &&
			       run->segment.spares && run->segment.results
		       ? 0
		       : -ENOMEM;
}

void merge_run_destroy(struct muninn_store *store)
{
	free(store->merge_walk.estimates);
	if (!store->merge_run)
		return;
	free(store->merge_run->needs);
	free(store->merge_run->data);
	free(store->merge_run->spares);
	free(store->merge_run->ios);
	free(store->merge_run->segment.data);
	free(store->merge_run->segment.spares);
	free(store->merge_run->segment.results);
	free(store->merge_run);
}

uint64_t merge_run_segment_bytes(const struct muninn_store *store)
{
	return malloc_usable_size(store->merge_walk.estimates);
}

uint64_t merge_run_scratch_bytes(const struct muninn_store *store)
{
	struct merge_run *run = store->merge_run;

	return malloc_usable_size(run) + malloc_usable_size(run->needs) +
	       malloc_usable_size(run->data) + malloc_usable_size(run->spares) +
	       malloc_usable_size(run->ios) + malloc_usable_size(run->segment.data) +
	       malloc_usable_size(run->segment.spares) + malloc_usable_size(run->segment.results);
}

void merge_run_forget(struct muninn_store *store, uint32_t segment)
{
	if (store->merge_walk.estimates)
		store->merge_walk.estimates[segment] = UINT16_MAX;
}

static void forget_pages(struct merge_run *run)
{
	for (uint32_t n = 0; n < MERGE_PAGES; n++) {
		run->pages[n].number = NO_PAGE;
		run->chains[n] = NO_CHAIN;
	}
	run->empty = 0;
	run->segment.number = NO_SEGMENT;
}

/*
 * Forgets what was found where others may have put something since. What they put, and roll back,
 * has higher numbers than what was committed.
 */
static void forget_finds(struct merge_run *run)
{
	for (uint32_t n = 0; n < MERGE_FINDS; n++)
		if (!run->finds[n].lasts)
			run->finds[n].sequence = 0;
}

void merge_run_begin(struct merge_run *run, const struct record_keep *keep,
		     struct record_merge *merge, uint64_t reads_max)
{
	run->keep = keep;
	run->merge = merge;
	run->stage = MERGE_CHOOSE;
	run->choice = (struct merge_choice){ 0 };
	run->needs_segment = NO_SEGMENT;
	run->counted = NO_SEGMENT;
	run->count = 0;
	run->result = 0;
	run->tried_again = false;
	run->void_before = run->store->void_before;
	forget_pages(run);
	memset(run->finds, 0, sizeof(run->finds));
	run->reads = 0;
	run->reads_max = reads_max;
	run->tries = 0;
	merge_run_begin_piece(run);
}

void merge_run_begin_piece(struct merge_run *run)
{
	if (run->in_pieces)
		forget_finds(run);
	run->missing_count = 0;
	run->missing_segment = NO_SEGMENT;
	run->misses = false;
	run->worked = 0;
}

bool merge_run_has_done_enough(const struct merge_run *run)
{
	const uint32_t *awaited = run->merge->awaited;

	if (!run->in_pieces || run->worked < PIECE_RECORDS_LEAST)
		return false;
	return run->worked >= PIECE_RECORDS ||
	       (awaited && __atomic_load_n(awaited, __ATOMIC_RELAXED));
}

void merge_run_got_ahead(struct merge_run *run)
{
	run->tries = 0;
}

/* ---- pages that were read ---- */

static uint8_t *data_at(const struct merge_run *run, uint32_t place)
{
	return run->data + place * (uint64_t)run->store->geometry.page_bytes;
}

/* Its place; NO_CHAIN: it was not read, or too long ago. */
static uint32_t find_page(const struct merge_run *run, uint64_t number)
{
	uint32_t place = run->chains[number % MERGE_PAGES];

	while (place != NO_CHAIN && run->pages[place].number != number)
		place = run->pages[place].following;
	return place;
}

/* Makes a place empty. */
static void drop_page(struct merge_run *run, uint32_t place)
{
	struct merge_page *page = &run->pages[place];
	uint16_t *link = &run->chains[page->number % MERGE_PAGES];

	if (page->number == NO_PAGE)
		return;
	while (*link != place)
		link = &run->pages[*link].following;
	*link = page->following;
	page->number = NO_PAGE;
}

/* What the run makes of the spare area of a page that was read with `result`. */
static int decode_spare(const struct merge_run *run, const uint8_t *from, int result,
			struct page_spare *spare)
{
	if (result == -ENODATA) /* sealed segments are programmed whole: the flash lost a page */
		return -EBADMSG;
	if (!result && (!page_spare_decode(from, run->store->geometry.page_bytes, spare) ||
			spare->kind != PAGE_KIND_RECORDS))
		return -EBADMSG;
	return result;
}

/* Remembers the page that was read with `result` to an empty place. */
static int keep_page(struct merge_run *run, uint32_t place, uint64_t number, const uint8_t *spare,
		     int result)
{
	struct merge_page *page = &run->pages[place];
	uint16_t *chain = &run->chains[number % MERGE_PAGES];

	run->reads++;
	result = decode_spare(run, spare, result, &page->spare);
	if (result)
		return result;
	page->number = number;
	page->following = *chain;
	*chain = (uint16_t)place;
	page->has_data = true;
	return 0;
}

/* The page in the empty place stays: the next place is emptied. */
static void go_on_in_ring(struct merge_run *run)
{
	run->empty = (run->empty + 1) % MERGE_PAGES;
	drop_page(run, run->empty);
}

/* -EINPROGRESS: it has to be fetched. */
static int read_page(struct merge_run *run, uint64_t number)
{
	struct nand_page_io io = { .page = number,
				   .data = data_at(run, run->empty),
				   .spare = run->spares };
	bool waits = run->tries >= TRIES_MAX;
	int result = -EINPROGRESS;

	if (!waits && !run->fetches_all)
		result = nand_read_at_hand(run->store->nand, NULL, NAND_CAUSE_MERGE, &io, 1);
	if (repair_is_for(result)) {
		/* That reads many others: without the turn, unless it was in vain before. */
		waits = repair_is_lost(run->store,
				       (uint32_t)(number / run->store->geometry.segment_pages));
		result = -EINPROGRESS;
	}
	if (waits)
		result = repair_read(run->store, NAND_CAUSE_MERGE, &io);
	if (result == -EINPROGRESS)
		return result;
	result = keep_page(run, run->empty, number, run->spares, result);
	if (!result)
		go_on_in_ring(run);
	return result;
}

static void miss(struct merge_run *run, uint64_t number)
{
	run->misses = true;
	for (uint32_t n = 0; n < run->missing_count; n++)
		if (run->missing[n] == number)
			return;
	if (run->missing_count < MERGE_MISSING)
		run->missing[run->missing_count++] = number;
}

/* ---- what is missing ---- */

/* Whether a page is of the segment that was read at once. */
static bool is_in_segment(const struct merge_run *run, uint64_t number)
{
	return run->segment.number != NO_SEGMENT &&
	       number / run->store->geometry.segment_pages == run->segment.number;
}

/* Reads pages together, or, where that fails, each by itself. */
static int read_pages(const struct merge_run *run, uint32_t count)
{
	return nand_read(run->store->nand, NAND_CAUSE_MERGE, run->ios, count);
}

static int read_by_itself(const struct merge_run *run, int together, uint32_t n)
{
	return together ? repair_read(run->store, NAND_CAUSE_MERGE, &run->ios[n]) : 0;
}

static uint32_t page_in_segment(const struct merge_run *run, uint64_t number)
{
	return (uint32_t)(number % run->store->geometry.segment_pages);
}

static uint8_t *segment_data_at(const struct merge_run *run, uint64_t number)
{
	return run->segment.data +
	       page_in_segment(run, number) * (size_t)run->store->geometry.page_bytes;
}

/* What has become of the n-th read of pages of the segment. */
static int take_segment_page(struct merge_run *run, uint32_t n, int result)
{
	uint32_t page = page_in_segment(run, run->ios[n].page);

	result = decode_spare(run, run->ios[n].spare, result, &run->segment.spares[page]);
	run->segment.results[page] = result;
	return result;
}

/* Whether the spare areas of so many pages of run->ios are at hand; reads them. */
static bool read_spares(struct merge_run *run, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++) {
		run->ios[n].data = NULL;
		if (nand_read_at_hand(run->store->nand, NULL, NAND_CAUSE_MERGE, &run->ios[n], 1))
			return false;
	}
	return true;
}

/*
 * Reads the headers of a segment if they are at hand. Returns of how many pages more is needed:
 * these are the first ones of run->ios then.
 */
static uint32_t fetch_headers(struct merge_run *run, uint32_t pages)
{
	uint32_t count = 0;

	run->segment.by_headers = read_spares(run, pages);
	for (uint32_t n = 0; n < pages; n++) {
		uint32_t page = page_in_segment(run, run->ios[n].page);

		if (run->segment.by_headers && take_segment_page(run, n, 0) == 0 &&
		    run->segment.spares[page].large)
			run->segment.results[page] = -EINPROGRESS;
		else
			run->ios[count++] = run->ios[n];
	}
	return count;
}

static void fetch_segment(struct merge_run *run)
{
	const struct muninn_geometry *geometry = &run->store->geometry;
	uint64_t first = segment_page(geometry, run->missing_segment);
	uint32_t usable = nand_spare_usable(nand_geometry(run->store->nand));
	uint32_t count = geometry->segment_pages;
	int together = 0;

	for (uint32_t n = 0; n < count; n++)
		run->ios[n] = (struct nand_page_io){ .page = first + n,
						     .spare = run->spares + n * (size_t)usable };
	run->reads += count;
	if (run->segment.by_headers)
		count = fetch_headers(run, count);
	for (uint32_t n = 0; n < count; n++)
		run->ios[n].data = segment_data_at(run, run->ios[n].page);
	if (count)
		together = read_pages(run, count);
	for (uint32_t n = 0; n < count; n++)
		take_segment_page(run, n, read_by_itself(run, together, n));
	run->segment.number = run->missing_segment;
}

static void fetch_pages(struct merge_run *run)
{
	uint32_t usable = nand_spare_usable(nand_geometry(run->store->nand));
	uint32_t place = run->empty;
	int together;

	for (uint32_t n = 0; n < run->missing_count; n++) {
		bool in_segment = is_in_segment(run, run->missing[n]);

		run->ios[n] = (struct nand_page_io){
			.page = run->missing[n],
			.data = in_segment ? segment_data_at(run, run->missing[n])
					   : data_at(run, place),
			.spare = run->spares + n * (size_t)usable
		};
		if (in_segment)
			continue;
		drop_page(run, place);
		place = (place + 1) % MERGE_PAGES;
	}
	run->tries++;
	together = read_pages(run, run->missing_count);
	for (uint32_t n = 0; n < run->missing_count; n++) {
		if (is_in_segment(run, run->missing[n])) {
			take_segment_page(run, n, read_by_itself(run, together, n));
			continue;
		}
		keep_page(run, run->empty, run->missing[n], run->ios[n].spare,
			  read_by_itself(run, together, n));
		run->empty = (run->empty + 1) % MERGE_PAGES;
	}
	drop_page(run, run->empty);
}

bool merge_run_has_segment(struct merge_run *run, uint32_t segment)
{
	if (run->segment.number == segment)
		return true;
	run->missing_segment = segment;
	return false;
}

/* ---- looking at pages ---- */

static struct page_view view_of(const struct page_spare *spare, uint64_t number,
				const uint8_t *data)
{
	struct page_view view = page_view_of(spare, number, data);

	view.checked = true;
	return view;
}

/* -EINPROGRESS: without its data, which were not read. */
static int view_in_segment(const struct merge_run *run, uint64_t number, struct page_view *view)
{
	uint32_t page = page_in_segment(run, number);
	int result = run->segment.results[page];

	if (!result || result == -EINPROGRESS)
		*view = view_of(&run->segment.spares[page], number,
				result ? NULL : segment_data_at(run, number));
	return result;
}

static void note_repeats(struct merge_run *run)
{
	const struct muninn_geometry *geometry = &run->store->geometry;
	uint64_t first = segment_page(geometry, run->segment.number);
	struct page_view view;

	repeats_begin(&run->segment.repeats);
	for (uint32_t n = 0; n < geometry->segment_pages; n++) {
		int result = view_in_segment(run, first + n, &view);

		if (!result || result == -EINPROGRESS)
			repeats_note(&run->segment.repeats, &view);
		else
			repeats_note_lost(&run->segment.repeats);
	}
}

void merge_run_fetch(struct merge_run *run)
{
	if (run->missing_segment != NO_SEGMENT) {
		fetch_segment(run);
		note_repeats(run);
	}
	if (run->missing_count)
		fetch_pages(run);
}

bool merge_run_is_last_put(const struct merge_run *run, const struct record_key *key,
			   uint64_t sequence)
{
	return run->visited == run->counted && run->counted == run->segment.number &&
	       sequence < run->counted_most &&
	       !repeats_may_have(&run->segment.repeats, key, sequence);
}

static int view_outside(struct merge_run *run, uint64_t number, struct page_view *view)
{
	uint32_t place = find_page(run, number);
	int result = 0;

	if (place != NO_CHAIN && !run->pages[place].has_data) {
		drop_page(run, place);
		place = NO_CHAIN;
	}
	if (place == NO_CHAIN) {
		place = run->empty;
		result = read_page(run, number);
	}
	if (!result)
		*view = view_of(&run->pages[place].spare, number, data_at(run, place));
	return result;
}

int merge_run_read_page(struct merge_run *run, uint64_t number, struct page_view *view)
{
	bool in_segment = is_in_segment(run, number);
	int result = in_segment ? view_in_segment(run, number, view)
				: view_outside(run, number, view);

	if (result == -EINPROGRESS) {
		miss(run, number);
		return -EBUSY;
	}
	return result;
}

void merge_run_note(struct merge_run *run, uint64_t number)
{
	if (!is_in_segment(run, number) && find_page(run, number) == NO_CHAIN)
		miss(run, number);
}

void merge_run_note_data(struct merge_run *run, uint64_t number)
{
	miss(run, number);
}

int merge_run_read_more(struct merge_run *run, uint64_t number, struct page_view *view)
{
	if (run->reads >= run->reads_max && !is_in_segment(run, number) &&
	    find_page(run, number) == NO_CHAIN)
		return -EBUSY;
	return merge_run_read_page(run, number, view);
}

/* Whether the header of a page is there without its data. */
static bool view_header(const struct merge_run *run, uint64_t number, struct page_view *view)
{
	uint32_t place;

	if (is_in_segment(run, number))
		return view_in_segment(run, number, view) == -EINPROGRESS;
	place = find_page(run, number);
	if (place == NO_CHAIN || run->pages[place].has_data)
		return false;
	*view = view_of(&run->pages[place].spare, number, NULL);
	return true;
}

/* Reads the spare area of a page if it may have a header and is at hand, to run->spares. */
static bool read_spare(struct merge_run *run, uint64_t number)
{
	struct nand_page_io io = { .page = number, .spare = run->spares };

	return run->is_large && !run->fetches_all && !merge_run_has_read_enough(run) &&
	       !is_in_segment(run, number) && find_page(run, number) == NO_CHAIN &&
	       nand_read_at_hand(run->store->nand, NULL, NAND_CAUSE_MERGE, &io, 1) == 0;
}

bool merge_run_read_header(struct merge_run *run, uint64_t number, struct page_view *view)
{
	if (view_header(run, number, view))
		return true;
	if (!read_spare(run, number))
		return false;
	/*
	 * It counts twice, since nothing of it is remembered: counted once, a merge keeps on at
	 * segments that take many look-ups, and each WRITE costs half as many programs again.
	 */
	run->reads += 2;
	if (decode_spare(run, run->spares, 0, &run->header) != 0 || !run->header.large)
		return false;
	*view = view_of(&run->header, number, NULL);
	return true;
}

/* The same, remembered: a page that is visited may be visited again. */
static bool visit_header(struct merge_run *run, uint64_t number, struct page_view *view)
{
	if (!view_header(run, number, view)) {
		if (!read_spare(run, number) ||
		    keep_page(run, run->empty, number, run->spares, 0) != 0)
			return false;
		if (!run->pages[run->empty].spare.large) {
			drop_page(run, run->empty);
			return false;
		}
		run->pages[run->empty].has_data = false;
		go_on_in_ring(run);
	}
	return view_header(run, number, view);
}

/* A page that is visited, and the beginning of the one behind it. */
struct visited {
	struct page_view view;
	uint8_t data[2 * MUNINN_PAGE_BYTES_MAX], large_header[RECORD_HEADER_BYTES];
};

/* Reads a page of a segment, which stays if that fails; `before`: the one that goes on there. */
static int read_of_segment(struct merge_run *run, uint64_t number, const struct page_view *before,
			   struct page_view *view)
{
	int result = merge_run_read_page(run, number, view);

	if (!result && before && !page_goes_on(before, view))
		result = -EBADMSG;
	if (result && !merge_run_misses(run))
		log_line(LOG_LEVEL_ERROR,
			 "%s: merge: flash page %llu can't be read (error %d); segment %u stays",
			 nand_path(run->store->nand), (unsigned long long)number, -result,
			 (uint32_t)(number / run->store->geometry.segment_pages));
	return result;
}

/* Other pages take its place while its records are judged. */
static void copy_page(struct visited *visited)
{
	struct page_view *view = &visited->view;

	if (view->data)
		view->data = memcpy(visited->data, view->data, view->used);
	if (view->large_header)
		view->large_header = memcpy(visited->large_header, view->large_header,
					    sizeof(visited->large_header));
}

/* With its records as a whole. */
static int read_visited(struct merge_run *run, uint64_t number, struct visited *visited)
{
	struct page_view behind;
	int result = 0;

	if (!visit_header(run, number, &visited->view))
		result = read_of_segment(run, number, NULL, &visited->view);
	if (!result && !is_in_segment(run, number))
		copy_page(visited);
	if (result || !visited->view.beyond)
		return result;
	result = read_of_segment(run, number + 1, &visited->view, &behind);
	if (!result && !is_in_segment(run, number))
		memcpy(visited->data + visited->view.used, behind.data, behind.begin);
	visited->view.follows = true;
	return result;
}

int merge_run_visit_page(struct merge_run *run, uint32_t segment, uint32_t page,
			 record_visitor *visit, void *context)
{
	struct visited visited;
	struct page_record record;
	uint32_t offset = 0;
	int result =
		read_visited(run, segment_page(&run->store->geometry, segment) + page, &visited);

	run->visited = segment;
	while (!result && page_next(&visited.view, &offset, &record))
		result = visit(run, &record, visited.view.serial, context);
	return result;
}
