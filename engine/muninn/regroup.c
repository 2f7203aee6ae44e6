/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes what the index says of segments again from their pages. */
#include "engine/muninn/regroup.h"

#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "engine/muninn/repair.h"

/* ---- a segment ---- */

bool regroup_read_page(struct muninn_store *store, uint64_t number, uint8_t *data,
		       struct page_spare *spare)
{
	struct nand_page_io io = { .page = number, .data = data, .spare = store->spare };

	return repair_read(store, NAND_CAUSE_RECOVERY, &io) == 0 &&
	       page_spare_decode(store->spare, store->geometry.page_bytes, spare) &&
	       spare->kind == PAGE_KIND_RECORDS && spare->row < store->geometry.rows;
}

/* Of a segment whose first page is damaged the next one is asked. */
bool regroup_ask_segment(struct muninn_store *store, uint32_t segment, struct page_spare *spare)
{
	uint64_t first = segment_page(&store->geometry, segment);

	return regroup_read_page(store, first, NULL, spare) ||
	       regroup_read_page(store, first + 1, NULL, spare);
}

/* Whether its last command was committed is known when something later is on flash. */
static void note_sequence(struct regroup *regroup, const struct sealed_segment *facts,
			  bool unfinished)
{
	if (!facts->records || facts->last_sequence < regroup->sequence_most)
		return;
	regroup->sequence_unfinished =
		unfinished ||
		(facts->last_sequence == regroup->sequence_most && regroup->sequence_unfinished);
	regroup->sequence_most = facts->last_sequence;
}

/* A page of a segment that is read from its first page to its last one. */
struct regroup_page {
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	struct page_spare spare;
	struct page_view view;
	bool is_whole; /* it could be read, and is the segment's */
};

static void read_segment_page(struct regroup *regroup, uint64_t number, uint64_t serial,
			      struct regroup_page *page)
{
	page->spare = (struct page_spare){ 0 };
	page->is_whole = regroup_read_page(regroup->store, number, page->data, &page->spare) &&
			 page->spare.serial == serial;
	page->view = page_view_of(&page->spare, number, page->data);
}

/* Leaves out the last record of a page, whose end is lost. */
static void leave_out_last(struct page_view *view)
{
	struct page_record record;
	uint32_t offset = 0;

	view->beyond = 0;
	while (page_next(view, &offset, &record))
		;
	view->used = offset;
}

/* Adds a page to the index in `buffer`. `behind`: the page behind it; NULL: there is none. */
static void index_page(struct regroup *regroup, uint32_t row, uint32_t page,
		       struct regroup_page *indexed, const struct regroup_page *behind,
		       struct buffer *buffer, struct sealed_segment *facts)
{
	struct page_view *view = &indexed->view;

	if (indexed->is_whole && view->beyond &&
	    !(behind && behind->is_whole && page_goes_on(view, &behind->view)))
		leave_out_last(view);
	if (indexed->is_whole && buffer_index_page(buffer, page, view) == page_end(view)) {
		sealed_segment_add(facts, view);
		return;
	}
	regroup->pages_damaged++;
	if (regroup->lost)
		lost_note(regroup->lost, row, page, facts->serial);
	log_line(LOG_LEVEL_ERROR, "%s: flash page %llu is damaged; its records are lost",
		 nand_path(regroup->store->nand), (unsigned long long)view->number);
}

/*
 * Builds the index of a segment in `buffer` and gathers the facts. False: it is not the row's, or
 * older than wanted.
 */
static bool index_segment(struct regroup *regroup, const struct row_index *index, uint32_t row,
			  uint32_t segment, struct buffer *buffer, struct sealed_segment *facts)
{
	const struct muninn_geometry *geometry = &regroup->store->geometry;
	uint32_t pages = geometry->segment_pages;
	struct page_spare said = { 0 };
	struct regroup_page both[2];

	if (segment >= geometry->segments || !regroup_ask_segment(regroup->store, segment, &said) ||
	    said.row != row)
		return false;
	*facts = sealed_segment_begin(segment, said.serial);
	buffer_index_begin(buffer, index, said.serial);
	read_segment_page(regroup, segment_page(geometry, segment), said.serial, &both[0]);
	for (uint32_t page = 0; page < pages; page++) {
		struct regroup_page *behind = page + 1 < pages ? &both[(page + 1) % 2] : NULL;

		if (behind)
			read_segment_page(regroup, segment_page(geometry, segment) + page + 1,
					  said.serial, behind);
		index_page(regroup, row, page, &both[page % 2], behind, buffer, facts);
	}
	note_sequence(regroup, facts, said.unfinished);
	return true;
}

void regroup_leave_out(struct regroup *regroup, uint32_t row)
{
	regroup->segments_left_out++;
	if (regroup->lost)
		lost_note(regroup->lost, row, LOST_ALL_PAGES, 0);
}

int regroup_add_segment(struct regroup *regroup, struct row_index *index, uint32_t row,
			uint32_t segment, bool live)
{
	struct muninn_store *store = regroup->store;
	/* Any buffer's memory will do: they are begun afterwards. */
	struct buffer *buffer = &store->free_buffers[0];
	struct sealed_segment facts = sealed_segment_begin(0, 0);
	int result;

	buffer_index_begin(buffer, index, facts.serial);
	if (live && !index_segment(regroup, index, row, segment, buffer, &facts)) {
		log_line(LOG_LEVEL_ERROR,
			 "%s: segment %u is not what the index says of row %u; its records are "
			 "lost",
			 nand_path(store->nand), segment, row);
		regroup_leave_out(regroup, row);
		live = false;
	}
	facts.group = row_index_growing(index);
	facts.member = row_index_members(index);
	result = row_index_write(index, buffer->index, NULL, &facts);
	if (result)
		return result;
	row_index_commit(index);
	if (!live)
		row_index_take_out(index, &facts);
	return 0;
}

/* ---- a complete group ---- */

/* Members follow one another in age; so their serials tell whether these are what they should be.
 */
static bool is_in_order(const struct row_index *index)
{
	struct index_walk walk = { 0 };
	struct sealed_segment segment;
	uint64_t serial = 0;

	while (row_index_next(index, &walk, &segment)) {
		if (segment.serial <= serial)
			return false;
		serial = segment.serial;
	}
	return true;
}

/* Until the group is full, as it was. */
static int add_members(struct regroup *regroup, struct row_index *index, uint32_t row,
		       const uint32_t members[GROUP_SEGMENTS], uint64_t live)
{
	int result = 0;

	for (uint32_t member = 0; !result && member < GROUP_SEGMENTS; member++) {
		bool is_live = live >> member & 1;
		bool is_found = members[member] != NO_SEGMENT && !row_index_is_full(index);

		if (is_live && !is_found)
			regroup_leave_out(regroup, row);
		if (!row_index_is_full(index))
			result = regroup_add_segment(regroup, index, row, members[member],
						     is_live && is_found);
	}
	return result;
}

static int refuse(const struct regroup *regroup, uint32_t row, uint32_t group,
		  struct error_text *error)
{
	return error_set(error, -EBADMSG,
			 "index: group %u of row %u: its image on flash is damaged, and it can't "
			 "be made again: %llu pages and %llu segments of it are lost, too; "
			 "muninn-fsck --repair copies the rest",
			 group, row, (unsigned long long)regroup->pages_damaged,
			 (unsigned long long)regroup->segments_left_out);
}

/* Makes it in the memory of `index`, an index of its own. */
static int make_image(struct regroup *regroup, struct index *own, uint32_t row,
		      const uint32_t members[GROUP_SEGMENTS], uint64_t *live,
		      struct index_image *image, struct error_text *error)
{
	struct row_index *index = index_row(own, row);
	uint32_t group = image->group;
	int result;

	row_index_begin(index, group);
	result = add_members(regroup, index, row, members, *live);
	if (!result && !is_in_order(index))
		regroup_leave_out(regroup, row);
	if (!result && !regroup->lost && (regroup->pages_damaged || regroup->segments_left_out))
		return refuse(regroup, row, group, error);
	*live = result ? *live : row_index_live(index);
	if (!result && !*live)
		return 1;
	if (!result)
		result = row_index_make_image(index, image);
	return result ? error_set(error, result, "out of memory while making the index again") : 0;
}

int regroup_image(struct muninn_store *store, uint32_t row, const uint32_t members[GROUP_SEGMENTS],
		  uint64_t *live, struct index_image *image, struct error_text *error)
{
	struct regroup regroup = { .store = store, .lost = store->salvaged };
	/* Of this only what the row has there is touched, and so needs memory. */
	uint8_t *nvram = calloc(1, store->geometry.nvram_bytes);
	struct index *own = nvram ? index_create(&store->geometry, nvram) : NULL;
	uint64_t begin = clock_microseconds();
	int result;

	if (own)
		result = make_image(&regroup, own, row, members, live, image, error);
	else
		result = error_set(error, -ENOMEM, "out of memory while making the index again");
	index_destroy(own);
	free(nvram);
	if (!result)
		log_line(LOG_LEVEL_WARNING,
			 "%s: index: group %u of row %u is made again from its %d segments, in "
			 "%llu ms",
			 nand_path(store->nand), image->group, row, __builtin_popcountll(*live),
			 (unsigned long long)((clock_microseconds() - begin) / 1000));
	return result;
}
