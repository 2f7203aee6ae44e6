/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Looks up the newest record of a key, or its newest few, from the newest place to the oldest. All
 * look-ups visit the same pages. They differ in what they take from a page, and in when they have
 * enough.
 */
#include "engine/muninn/lookup.h"

#include <errno.h>

#include "engine/muninn/lookup_page.h"
#include "engine/muninn/row.h"

/* Memory for the spare areas of pages that are read together; at least one of the largest. */
#define RUN_SPARE_BYTES 65536

/* ---- where the key may be ---- */

/* What numbers records of the key have in the page. */
static struct page_numbers numbers_of_key(const struct page_view *page,
					  const struct record_key *key)
{
	struct page_numbers numbers = { .lowest = UINT64_MAX };
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record)) {
		if (!record_has_key(record.header, key))
			continue;
		numbers.lowest = min_u64(numbers.lowest, record_sequence(record.header));
		numbers.highest = max_u64(numbers.highest, record_sequence(record.header));
		numbers.records++;
	}
	return numbers;
}

/* The highest sequence number that is looked for. */
static uint64_t newest_sequence(const struct lookup *lookup)
{
	return min_u64(lookup->visibility.bound, lookup->visibility.below - 1);
}

/* Whether a page need not be read, because a look-up that looks ahead has visited it. */
static bool is_known(const struct lookup *lookup, uint64_t number)
{
	return lookup->ahead.numbers.records && lookup->ahead.page == number;
}

/* A segment whose pages are probed for an old version: see index_search_narrow. */
struct probed {
	struct lookup *lookup;
	uint64_t first_page;
	const struct older_pages *older;
	/* The last page that has something old enough, so that it is not read again. */
	uint64_t kept; /* UINT64_MAX: none */
	struct read_page *kept_page, *other_page;
};

static void keep_page(struct probed *probed, uint64_t number)
{
	struct read_page *page = probed->kept_page;

	probed->kept = number;
	probed->kept_page = probed->other_page;
	probed->other_page = page;
}

static int probe_page(void *context, uint32_t number, struct page_numbers *numbers)
{
	struct probed *probed = context;
	struct lookup *lookup = probed->lookup;
	struct read_page *page = probed->other_page;
	int result;

	/* Nothing in it is old enough, or, if it would be read, new enough, whatever it has. */
	if (older_passes(probed->older, lookup->store->geometry.segment_pages, number,
			 numbers ? lookup->after : 0, newest_sequence(lookup)))
		return 0;
	if (!numbers)
		return 1;
	if (is_known(lookup, probed->first_page + number)) {
		*numbers = lookup->ahead.numbers;
		probed->kept = UINT64_MAX;
		return 1;
	}
	result = lookup_read_page(lookup, probed->first_page + number, page);
	if (result)
		return result;
	*numbers = numbers_of_key(&page->view, lookup->key);
	result = numbers->records > 0;
	if (result && numbers->lowest <= newest_sequence(lookup))
		keep_page(probed, probed->first_page + number);
	if (!result && !lookup->run)
		count_up(&lookup->store->counters.false_positive_reads, 1);
	return result;
}

enum { FOUND = 1 };

/* The flash pages that may hold the key, from the newest to the oldest. */
struct flash_walk {
	struct index_search search;
	uint64_t first_page; /* of the segment that is being visited */
	const struct older_pages *older;
	bool in_segment;
};

static void walk_begin(struct flash_walk *walk, const struct lookup *lookup,
		       const struct row_index *index)
{
	index_search_begin(&walk->search, index, &lookup->hash, newest_sequence(lookup));
	walk->in_segment = false;
}

/* Goes on to the next segment. False: there are no more, or an error has ended the search. */
static bool walk_segment(struct flash_walk *walk, const struct lookup *lookup)
{
	uint32_t segment;

	if (!index_search_segment(&walk->search, lookup->after, &segment))
		return false;
	walk->in_segment = true;
	walk->older = &lookup->store->older[segment];
	walk->first_page = segment_page(&lookup->store->geometry, segment);
	return true;
}

/* Goes on in the segment to the next page that may have something as old as is looked for. */
static bool walk_page(struct flash_walk *walk, const struct lookup *lookup, uint32_t *page)
{
	uint32_t pages = lookup->store->geometry.segment_pages;

	while (index_search_page(&walk->search, page)) {
		if (!older_passes(walk->older, pages, *page, lookup->after,
				  newest_sequence(lookup)))
			return true;
		/* Nobody reads it to see whether it has the key. */
		if (index_search_has_run(&walk->search))
			index_search_run(&walk->search);
	}
	return false;
}

/*
 * Behind a page of a segment in which numbers rise, the pages still to come have nothing of the key
 * above the lowest number on that page. Whether that is too old: no higher than what was found, or
 * than what is looked for. Until something was found, an equal number may be a put of the same
 * command, and be wanted in place of a later one.
 */
static bool is_rest_too_old(const struct lookup *lookup, const struct page_numbers *numbers)
{
	return numbers->lowest <= lookup->after ||
	       (lookup->found && numbers->lowest == lookup->after + 1);
}

/* A page of the walk has the key: says where the walk goes on in its segment, if at all. */
static void walk_on(struct flash_walk *walk, const struct lookup *lookup,
		    const struct page_numbers *numbers)
{
	if (is_rest_too_old(lookup, numbers))
		walk->in_segment = false;
	else if (index_search_has_run(&walk->search))
		index_search_run(&walk->search);
}

/* Looks in a page for a user. *numbers: what it has of the key. 0: found. -EAGAIN: go on. */
static int visit(struct lookup *lookup, const struct page_view *view, struct page_numbers *numbers)
{
	int result;

	*numbers = numbers_of_key(view, lookup->key);
	if (!numbers->records) {
		count_up(&lookup->store->counters.false_positive_reads, 1);
		return -EAGAIN;
	}
	result = lookup->visit(lookup, view);
	if (lookup->looks_ahead && lookup->found && lookup->found_page == view->number)
		lookup->ahead = (struct visited_ahead){ view->number, *numbers, result };
	return result;
}

/* Looks in a page of the walk, which was read. 0: found. -EAGAIN: go on. */
static int search_view(struct lookup *lookup, struct flash_walk *walk, const struct page_view *view)
{
	bool rises = index_search_rises(&walk->search);
	struct page_numbers numbers = { 0 };
	int result;

	if (!lookup->run) {
		result = visit(lookup, view, &numbers);
	} else {
		if (rises)
			numbers = numbers_of_key(view, lookup->key);
		result = lookup->visit(lookup, view);
	}
	if (result == -EAGAIN && rises && numbers.records)
		walk_on(walk, lookup, &numbers);
	return result;
}

/* The walk has come to the page that was visited ahead of it. What that has is what it took. */
static int search_known(struct lookup *lookup, struct flash_walk *walk)
{
	lookup->is_ahead = false;
	if (lookup->ahead.result == -EAGAIN && index_search_rises(&walk->search))
		walk_on(walk, lookup, &lookup->ahead.numbers);
	return lookup->ahead.result;
}

/*
 * Leaves out what is too new in the segment. 0, or FOUND: the search has ended in a page that was
 * read for that; or an error.
 */
static int walk_narrow(struct flash_walk *walk, struct lookup *lookup)
{
	struct read_page pages[2];
	struct probed probed = { .lookup = lookup,
				 .first_page = walk->first_page,
				 .older = walk->older,
				 .kept = UINT64_MAX,
				 .kept_page = &pages[0],
				 .other_page = &pages[1] };
	int result = index_search_narrow(&walk->search, lookup->run ? NARROW_HALVE : NARROW_GUESS,
					 probe_page, &probed);
	uint32_t page;

	/* The pages of a merge are in its memory, which has to say when it lacks one. */
	if (result || probed.kept == UINT64_MAX || lookup->run || !walk_page(walk, lookup, &page))
		return result;
	assert(walk->first_page + page == probed.kept);
	result = search_view(lookup, walk, &probed.kept_page->view);
	return result == 0 ? FOUND : result == -EAGAIN ? 0 : result;
}

/* Goes on to the next page. -EAGAIN: there are no more. FOUND. */
static int walk_next(struct flash_walk *walk, struct lookup *lookup, uint64_t *number)
{
	uint32_t page;

	while (!walk->in_segment || !walk_page(walk, lookup, &page)) {
		int result;

		if (!walk_segment(walk, lookup))
			return walk->search.result ? walk->search.result : -EAGAIN;
		result = walk_narrow(walk, lookup);
		if (result)
			return result;
	}
	*number = walk->first_page + page;
	return 0;
}

static int search_flash_page(struct lookup *lookup, struct flash_walk *walk, uint64_t number)
{
	struct read_page page;
	int result;

	if (is_known(lookup, number))
		return search_known(lookup, walk);
	result = lookup_read_page(lookup, number, &page);
	return result ? result : search_view(lookup, walk, &page.view);
}

/*
 * A merge lacks a page of a search. One that has passed many pages goes on for long, as those of
 * keys that are put often do; so as many of its next pages are read with that one.
 */
static void note_ahead(struct lookup *lookup, struct flash_walk *walk, uint32_t passed)
{
	uint64_t number;

	for (; passed > 0 && walk_next(walk, lookup, &number) == 0; passed--)
		merge_run_note(lookup->run, number);
}

/* Looks in the pages that are left. 0: found. -EAGAIN: there is nothing more. */
static int search_flash(struct lookup *lookup, struct flash_walk *walk)
{
	uint32_t passed = 0;
	uint64_t number;
	int result;

	while ((result = walk_next(walk, lookup, &number)) == 0) {
		result = search_flash_page(lookup, walk, number);
		if (result == -EBUSY && merge_run_misses(lookup->run))
			note_ahead(lookup, walk, passed);
		if (result != -EAGAIN)
			return result;
		passed++;
	}
	return result == FOUND ? 0 : result;
}

static int search_buffer(struct lookup *lookup, const struct buffer *buffer)
{
	uint32_t place = UINT32_MAX;
	struct page_view page;

	while (buffer_next_page(buffer, &lookup->hash, newest_sequence(lookup), &place, &page)) {
		int result = lookup->visit(lookup, &page);

		if (result != -EAGAIN)
			return result;
	}
	return -EAGAIN;
}

/* Begins a look-up: looks in the buffers of the key's row. 0: found. -EAGAIN: go on to flash. */
static int search_buffers(struct lookup *lookup, struct row **row)
{
	struct muninn_store *store = lookup->store;
	int result = -EAGAIN;

	if (lookup->visibility.from)
		lookup->after = max_u64(lookup->after, lookup->visibility.from - 1);
	lookup->hash = key_hash(lookup->key, store->geometry.segment_pages);
	*row = &store->rows[row_of_key(store, lookup->key, &lookup->hash)];
	if (row_has_newer(*row))
		result = search_buffer(lookup, &(*row)->newer);
	return result == -EAGAIN ? search_buffer(lookup, &(*row)->buffer) : result;
}

/* What a search that went to its end has found. */
static int found_in_all(const struct lookup *lookup, int result)
{
	return result != -EAGAIN ? result : lookup->found ? 0 : -ENOENT;
}

/* ---- looking ahead ---- */

/* Where the version that is looked for probably is. */
struct likely {
	bool has_segment; /* one that was sealed around the bound, where `segment` stands ... */
	struct flash_walk segment;
	uint64_t below; /* ... and which has the numbers from this one on */
	/*
	 * The page of a newer segment whose old records begin closest below the bound, and end
	 * first; NO_PAGE: there is none.
	 */
	uint64_t page;
	struct older_range range;
	uint64_t page_below; /* what is new of its segment has this number or a higher one */
};

static void note_page(struct likely *likely, const struct flash_walk *walk,
		      const struct lookup *lookup, uint32_t page)
{
	struct older_range range = older_range(walk->older, lookup->store->geometry.segment_pages,
					       page, newest_sequence(lookup));
	bool is_closer =
		range.lowest > likely->range.lowest ||
		(range.lowest == likely->range.lowest && range.highest < likely->range.highest);

	if (likely->page != NO_PAGE && !is_closer)
		return;
	likely->page = walk->first_page + page;
	likely->range = range;
	likely->page_below = walk->older->below;
}

/* False: the walk begins with what is likely. */
static bool find_likely(const struct lookup *lookup, const struct row_index *index,
			struct likely *likely)
{
	struct flash_walk *walk = &likely->segment;
	bool passed = false;
	uint32_t page;

	likely->has_segment = false;
	likely->page = NO_PAGE;
	walk_begin(walk, lookup, index);
	while (walk_segment(walk, lookup)) {
		likely->below = walk->older->below;
		likely->has_segment = likely->below <= newest_sequence(lookup);
		if (likely->has_segment)
			break;
		while (walk_page(walk, lookup, &page)) {
			passed = true;
			if (!walk->older->ranges)
				break;
			note_page(likely, walk, lookup, page);
			if (index_search_has_run(&walk->search))
				index_search_run(&walk->search);
		}
	}
	return passed;
}

static uint64_t last_of(const struct likely *likely)
{
	return likely->segment.search.last_sequence;
}

/*
 * Looks in the segment that was sealed around the bound. 0: what was found is what is looked for.
 *
 * A record without the mark came to its place when its key had nothing newer. If the segment has
 * anything above the bound, all that was put between the two went to the same buffer, behind the
 * record. So it is in this segment, in newer places, which have been visited.
 */
static int look_in_segment(struct lookup *lookup, struct flash_walk *walk)
{
	bool goes_on_behind = newest_sequence(lookup) < walk->search.last_sequence;
	int result = walk_narrow(walk, lookup);
	uint32_t page;

	result = result == FOUND ? 0 : result ? result : -EAGAIN;
	while (result == -EAGAIN && walk->in_segment && walk_page(walk, lookup, &page))
		result = search_flash_page(lookup, walk, walk->first_page + page);
	return result == 0 && !goes_on_behind ? -EAGAIN : result;
}

/*
 * Looks in a page with old records, of a segment whose new ones are all above the bound. 0: as
 * above. All commands up to the bound had ended when the segment's buffer was begun, unless the one
 * just below its new ones was under way. So nothing between the record and the bound was put behind
 * the record's coming there, and what was there before would have given it the mark.
 */
static int look_in_page(struct lookup *lookup, const struct likely *likely)
{
	struct page_numbers numbers;
	struct read_page page;
	int result = lookup_read_page(lookup, likely->page, &page);

	if (!result)
		result = visit(lookup, &page.view, &numbers);
	return result == 0 && newest_sequence(lookup) + 1 >= likely->page_below ? -EAGAIN : result;
}

/* Whether the segment promises more than the page. Nothing of its time was moved while it stays. */
static bool is_in_segment(const struct likely *likely, uint64_t bound)
{
	return likely->has_segment && (likely->page == NO_PAGE || bound < last_of(likely) ||
				       likely->below > likely->range.lowest);
}

/*
 * Looks for an old version where it probably is, before the places that come first. What it finds
 * there is not the result yet, but then only places are visited that may have something newer. 0:
 * that is the result. -EAGAIN: the search begins, or goes on. -EINPROGRESS.
 */
static int look_ahead(struct lookup *lookup, const struct row_index *index)
{
	uint64_t after = lookup->after;
	struct likely likely;
	int result = -EAGAIN;

	if (lookup->run || lookup->visit != lookup_take_newest ||
	    newest_sequence(lookup) >= lookup->store->committed ||
	    !find_likely(lookup, index, &likely))
		return -EAGAIN;
	lookup->looks_ahead = true;
	if (is_in_segment(&likely, newest_sequence(lookup)))
		result = look_in_segment(lookup, &likely.segment);
	if (result == -EAGAIN && likely.page != NO_PAGE && lookup->after == after)
		result = look_in_page(lookup, &likely);
	lookup->looks_ahead = false;
	/* A page that can't be read may be one that is not needed. */
	return result == 0 || result == -EINPROGRESS ? result : -EAGAIN;
}

/* Goes through the places of the key, newest first. 0, -ENOENT: nothing was found; or an error. */
static int search(struct lookup *lookup)
{
	struct flash_walk walk;
	struct row *row;
	int result = search_buffers(lookup, &row);

	if (result == -EAGAIN)
		result = look_ahead(lookup, row->index);
	if (result == -EAGAIN) {
		walk_begin(&walk, lookup, row->index);
		result = search_flash(lookup, &walk);
	}
	return found_in_all(lookup, result);
}

int lookup_get(struct muninn_store *store, const struct record_key *key,
	       const struct visibility *visibility, struct merge_run *run, void *value,
	       uint32_t capacity, struct record_info *info)
{
	struct lookup lookup = {
		.store = store,
		.key = key,
		.visibility = *visibility,
		.run = run,
		.visit = lookup_take_newest,
		.info = info,
		.wanted = 1,
		.value = value,
		.capacity = capacity,
	};

	return search(&lookup);
}

int lookup_find_since(struct muninn_store *store, const struct record_key *key,
		      const struct visibility *visibility, uint64_t since, bool any,
		      struct merge_run *run, struct record_info *info, uint32_t *crc)
{
	struct lookup lookup = {
		.store = store,
		.key = key,
		.visibility = *visibility,
		.after = max_u64(since, 1) - 1,
		.any = any ? since + 1 : 0,
		.run = run,
		.visit = lookup_take_newest,
		.info = info,
		.wanted = 1,
		.crc = crc,
	};

	return search(&lookup);
}

int lookup_has_older(struct muninn_store *store, const struct record_key *key, uint64_t sequence,
		     struct merge_run *run)
{
	struct record_info info;
	struct lookup lookup = {
		.store = store,
		.key = key,
		.visibility = store_visibility(store, sequence),
		.run = run,
		.visit = lookup_take_newest,
		.info = &info,
		.wanted = 1,
	};

	lookup.visibility.hidden = NULL;
	lookup.visibility.ignored_tombstone = sequence;
	int result = search(&lookup);

	return result == -ENOENT ? 0 : result ? result : 1;
}

int lookup_list(struct muninn_store *store, const struct record_key *key,
		const struct visibility *visibility, struct record_info *infos, uint32_t max)
{
	struct lookup lookup = {
		.store = store,
		.key = key,
		.visibility = *visibility,
		.visit = lookup_take_several,
		.info = infos,
		.wanted = max,
	};

	if (max == 0)
		return 0;
	int result = search(&lookup);

	return result && result != -ENOENT ? result : (int)lookup.found;
}

int lookup_has_between(struct muninn_store *store, const struct record_key *key, uint64_t after,
		       uint64_t bound, struct merge_run *run)
{
	struct record_info unused;
	struct lookup lookup = {
		.store = store,
		.key = key,
		.visibility = store_visibility(store, bound),
		.after = after,
		.run = run,
		.visit = lookup_take_between,
		.info = &unused,
		.wanted = 1,
	};
	int result = search(&lookup);

	return result && result != -ENOENT ? result : (int)lookup.found;
}

/* ---- a run of pieces ---- */

/* A piece that is looked for on flash. */
struct run_piece {
	struct record_key key;
	struct lookup lookup;
	struct flash_walk walk;
	uint64_t page; /* to be looked at next */
};

struct run {
	struct muninn_store *store;
	struct record_found *found;
	uint32_t waiting_count;
	uint32_t
		waiting[RECORD_RUN_MAX]; /* pieces that a page has to be read for, in their order */
	struct run_piece pieces[RECORD_RUN_MAX];
	struct nand_page_io ios[RECORD_RUN_MAX];
	uint8_t spares[RUN_SPARE_BYTES];
};

static void wait_for_page(struct run *run, uint32_t number)
{
	run->waiting[run->waiting_count++] = number;
}

/*
 * Goes on with the pages that are left. True: the piece waits for the next one, which will be read
 * to where its value is wanted. If a value was found already, the rest of the search has pages of
 * its own, and ends here with *result.
 */
static bool go_on_to_flash(struct run *run, uint32_t number, int *result)
{
	struct run_piece *piece = &run->pieces[number];
	struct lookup *lookup = &piece->lookup;

	if (lookup->found) {
		*result = search_flash(lookup, &piece->walk);
		return false;
	}
	*result = walk_next(&piece->walk, lookup, &piece->page);
	if (*result) {
		*result = *result == FOUND ? 0 : *result;
		return false;
	}
	if (!lookup->found) {
		wait_for_page(run, number);
		return true;
	}
	/* walk_narrow has found a moved record, which does not end the search. */
	*result = search_flash_page(lookup, &piece->walk, piece->page);
	if (*result == -EAGAIN)
		*result = search_flash(lookup, &piece->walk);
	return false;
}

/* Looks in the buffers, and finds the first page on flash. */
static void begin_piece(struct run *run, uint32_t number)
{
	struct run_piece *piece = &run->pieces[number];
	struct row *row;
	int result = search_buffers(&piece->lookup, &row);

	if (result == -EAGAIN) {
		walk_begin(&piece->walk, &piece->lookup, row->index);
		if (go_on_to_flash(run, number, &result))
			return;
	}
	run->found[number].result = found_in_all(&piece->lookup, result);
}

/*
 * Looks in the page of a piece, which was read unless `io` is NULL: then the read of all pages has
 * failed, and it is read by itself.
 */
static void go_on_with_piece(struct run *run, uint32_t number, const struct nand_page_io *io)
{
	struct run_piece *piece = &run->pieces[number];
	struct lookup *lookup = &piece->lookup;
	struct page_spare spare;
	struct page_view view;
	int result;

	if (!io)
		result = search_flash_page(lookup, &piece->walk, piece->page);
	else if ((result = lookup_view_page(run->store, io, 0, &spare, &view)) == 0)
		result = search_view(lookup, &piece->walk, &view);
	if (result == -EAGAIN && go_on_to_flash(run, number, &result))
		return;
	run->found[number].result = found_in_all(lookup, result);
}

/* Reads a page for each piece that waits, as many as there is space for, in one request. */
static void read_round(struct run *run)
{
	struct muninn_store *store = run->store;
	uint32_t spare_bytes = nand_spare_usable(nand_geometry(store->nand));
	uint32_t waiting = run->waiting_count;
	uint32_t count = (uint32_t)min_u64(waiting, RUN_SPARE_BYTES / spare_bytes);
	bool failed;

	for (uint32_t n = 0; n < count; n++) {
		const struct run_piece *piece = &run->pieces[run->waiting[n]];

		run->ios[n] = (struct nand_page_io){ piece->page, piece->lookup.value,
						     run->spares + (size_t)n * spare_bytes };
	}
	failed = lookup_read_pages(store, run->ios, count) < 0;
	count_up(&store->counters.page_reads, failed ? 0 : count);
	/* Those that wait again come in front of those that have not been read for. */
	run->waiting_count = 0;
	for (uint32_t n = 0; n < count; n++)
		go_on_with_piece(run, run->waiting[n], failed ? NULL : &run->ios[n]);
	memmove(&run->waiting[run->waiting_count], &run->waiting[count],
		(waiting - count) * sizeof(run->waiting[0]));
	run->waiting_count += waiting - count;
}

void lookup_get_run(struct muninn_store *store, const struct record_key *key, uint32_t count,
		    const struct visibility *visibility, uint8_t *values, uint32_t capacity,
		    struct record_found *found)
{
	struct run run;

	assert(count <= RECORD_RUN_MAX && capacity >= store->geometry.page_bytes);
	run.store = store;
	run.found = found;
	run.waiting_count = 0;
	for (uint32_t n = 0; n < count; n++) {
		struct run_piece *piece = &run.pieces[n];

		piece->key = *key;
		piece->key.piece += n;
		piece->lookup = (struct lookup){
			.store = store,
			.key = &piece->key,
			.visibility = *visibility,
			.visit = lookup_take_newest,
			.info = &found[n].info,
			.wanted = 1,
			.value = values + (size_t)n * capacity,
			.capacity = capacity,
		};
		begin_piece(&run, n);
	}
	while (run.waiting_count > 0)
		read_round(&run);
}
