/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lays out a segment: chains of versions, heads to their candidates, older ones to runs. */
#include "engine/muninn/index/ribbon/layout.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "engine/muninn/index/ribbon/ribbon_hash.h"

#define NO_RECORD UINT32_MAX

/* Keys whose records fill the pages of runs together. */
enum { RUNS_ACTIVE = 16 };

/* Heads are placed by size, the largest first, in steps of so many bytes. */
enum { SIZE_STEP = 32, SIZE_CLASSES = MUNINN_PAGE_BYTES_MAX / SIZE_STEP + 1 };

struct layout {
	uint32_t pages_max, records_max;
	uint32_t slots; /* of the table of heads that are in use */
	struct layout_shape shape;
	struct layout_record *records;
	uint32_t count;
	struct placement *placement;
	struct placement_item *items; /* heads, by the number of their record */
	uint32_t *heads;              /* a hash table of keys: their heads */
	uint32_t *order;              /* heads in the order of placing; then records by page */
	uint32_t *begins;             /* of each page in it */
	struct run_entry *runs;
	uint32_t run_count;
};

/* ---- memory ---- */

static uint32_t slots_for(uint32_t records_max)
{
	uint32_t slots = 16;

	while (slots < 2 * records_max)
		slots *= 2;
	return slots;
}

struct layout *layout_create(uint32_t pages_max, uint32_t records_max)
{
	struct layout *layout = calloc(1, sizeof(*layout));

	if (!layout)
		return NULL;
	layout->pages_max = pages_max;
	layout->records_max = records_max;
	layout->placement = placement_create(pages_max, records_max);
	layout->items = malloc(records_max * sizeof(*layout->items));
	layout->heads = malloc(slots_for(records_max) * sizeof(*layout->heads));
	layout->order = malloc(records_max * sizeof(*layout->order));
	layout->begins = malloc((pages_max + 1) * sizeof(*layout->begins));
	layout->runs = malloc(records_max * sizeof(*layout->runs));
	if (layout->placement && layout->items && layout->heads && layout->order &&
	    layout->begins && layout->runs)
		return layout;
	layout_destroy(layout);
	return NULL;
}

void layout_destroy(struct layout *layout)
{
	if (!layout)
		return;
	placement_destroy(layout->placement);
	free(layout->items);
	free(layout->heads);
	free(layout->order);
	free(layout->begins);
	free(layout->runs);
	free(layout);
}

uint64_t layout_bytes(uint32_t pages_max, uint32_t records_max)
{
	return sizeof(struct layout) + placement_bytes(pages_max, records_max) +
	       records_max * (sizeof(struct placement_item) + sizeof(uint32_t) +
			      sizeof(struct run_entry)) +
	       (uint64_t)slots_for(records_max) * sizeof(uint32_t) +
	       (pages_max + 1) * sizeof(uint32_t);
}

/* ---- chains: the versions of each key, the newest first ---- */

static uint64_t sequence_of(const struct layout *layout, uint32_t number)
{
	return record_sequence(layout->records[number].header);
}

/* What a record takes of a page. One with its header in the spare area takes all of it. */
static uint32_t bytes_of(const struct layout *layout, uint32_t number)
{
	uint32_t bytes = RECORD_HEADER_BYTES + record_length(layout->records[number].header);

	return (uint32_t)min_u64(bytes, layout->shape.page_bytes);
}

static bool have_one_key(const struct layout *layout, uint32_t a, uint32_t b)
{
	const struct layout_record *records = layout->records;
	struct record_header header;

	if (records[a].hash.key != records[b].hash.key)
		return false;
	record_header_decode(records[a].header, &header);
	return record_has_key(records[b].header, &header.key);
}

/* The slot of a record's key: where its head is, or will be. */
static uint32_t *slot_of(const struct layout *layout, uint32_t number)
{
	uint32_t slot = (uint32_t)layout->records[number].hash.key & (layout->slots - 1);

	while (layout->heads[slot] != NO_RECORD &&
	       !have_one_key(layout, layout->heads[slot], number))
		slot = (slot + 1) & (layout->slots - 1);
	return &layout->heads[slot];
}

/* Before the first one that is not newer. Mostly that is the head. */
static void add_to_chain(struct layout *layout, uint32_t number)
{
	uint32_t *link = slot_of(layout, number);

	while (*link != NO_RECORD && sequence_of(layout, *link) > sequence_of(layout, number))
		link = &layout->records[*link].older;
	layout->records[number].older = *link;
	*link = number;
}

static void make_chains(struct layout *layout)
{
	layout->slots = slots_for(layout->count);
	for (uint32_t slot = 0; slot < layout->slots; slot++)
		layout->heads[slot] = NO_RECORD;
	for (uint32_t number = 0; number < layout->count; number++) {
		layout->records[number].is_head = false;
		layout->records[number].has_older = false;
		layout->records[number].page = LAYOUT_CARRIED;
		layout->records[number].candidate = PLACEMENT_NONE;
	}
	for (uint32_t number = 0; number < layout->count; number++)
		add_to_chain(layout, number);
	for (uint32_t slot = 0; slot < layout->slots; slot++)
		if (layout->heads[slot] != NO_RECORD)
			layout->records[layout->heads[slot]].is_head = true;
}

static bool is_multiple(const struct layout *layout, uint32_t head)
{
	return layout->records[head].older != NO_RECORD;
}

/* ---- runs ---- */

/* A key whose older records are being put into runs. */
struct cursor {
	uint32_t next;  /* of them */
	uint32_t entry; /* of the directory, for its page ... */
	uint32_t page;  /* ... which is this one; UINT32_MAX: it has none yet */
};

/* Pages of runs are filled one after the other, from a few keys at a time. */
struct filling {
	struct layout *layout;
	bool counts_only;
	uint32_t head; /* where the next key is looked for */
	uint32_t page; /* from 0 */
	uint32_t used; /* bytes of it */
	uint32_t active_count;
	struct cursor active[RUNS_ACTIVE];
};

static bool next_key(struct filling *filling)
{
	const struct layout *layout = filling->layout;

	while (filling->head < layout->count) {
		uint32_t head = filling->head++;

		if (!layout->records[head].is_head || !is_multiple(layout, head))
			continue;
		filling->active[filling->active_count++] =
			(struct cursor){ .next = layout->records[head].older, .page = UINT32_MAX };
		return true;
	}
	return false;
}

/*
 * The first key if its next record fits the page, so that records of a key stay together. Else the
 * largest record that fits. Each key goes on where it was, so the ranges of numbers that its pages
 * hold follow each other.
 */
static struct cursor *choose_cursor(struct filling *filling)
{
	const struct layout *layout = filling->layout;
	uint32_t left = layout->shape.page_bytes - filling->used, most = 0;
	struct cursor *best = NULL;

	for (uint32_t n = 0; n < filling->active_count; n++) {
		uint32_t bytes = bytes_of(layout, filling->active[n].next);

		if (bytes > left || bytes <= most)
			continue;
		if (n == 0)
			return &filling->active[0];
		best = &filling->active[n];
		most = bytes;
	}
	return best;
}

static void take_record(struct filling *filling, struct cursor *cursor)
{
	struct layout *layout = filling->layout;
	struct layout_record *record = &layout->records[cursor->next];

	filling->used += bytes_of(layout, cursor->next);
	if (cursor->page != filling->page)
		cursor->entry = layout->run_count++;
	cursor->page = filling->page;
	if (!filling->counts_only) {
		/*
		 * From the last page down: who goes through the pages in their order meets the
		 * records of a key in theirs.
		 */
		record->page = (uint16_t)(layout->shape.pages - 1 - filling->page);
		layout->runs[cursor->entry] =
			(struct run_entry){ .tag = tag_of(&record->hash),
					    .oldest = record_sequence(record->header),
					    .page = record->page };
	}
	cursor->next = record->older;
	if (cursor->next != NO_RECORD)
		return;
	filling->active_count--;
	memmove(cursor, cursor + 1,
		(size_t)(filling->active + filling->active_count - cursor) * sizeof(*cursor));
}

/* Puts the older records of all keys into runs. Returns how many pages these take. */
static uint32_t fill_runs(struct layout *layout, bool counts_only)
{
	struct filling filling = { .layout = layout, .counts_only = counts_only };

	layout->run_count = 0;
	for (;;) {
		struct cursor *cursor;

		while (filling.active_count < RUNS_ACTIVE && next_key(&filling))
			;
		if (!filling.active_count)
			return filling.page + (filling.used != 0);
		cursor = choose_cursor(&filling);
		if (cursor) {
			take_record(&filling, cursor);
			continue;
		}
		filling.page++;
		filling.used = 0;
	}
}

/* Pages of the tail that the runs of all keys take, with their directory. */
static uint32_t count_tail(struct layout *layout, struct layout_result *result)
{
	uint32_t pages = fill_runs(layout, true);

	result->directory_pages = (uint32_t)divide_up(
		layout->run_count, run_entries_of_page(layout->shape.page_bytes));
	result->tail_pages = pages + result->directory_pages;
	return result->tail_pages;
}

/* ---- more than the tail can take ---- */

/* Of heads with older records, which are in the segment only with their heads. */
static uint64_t multiple_bytes(const struct layout *layout)
{
	uint64_t bytes = 0;

	for (uint32_t number = 0; number < layout->count; number++)
		if (layout->records[number].is_head && is_multiple(layout, number))
			bytes += bytes_of(layout, number);
	return bytes;
}

static uint32_t chain_length(const struct layout *layout, uint32_t head)
{
	uint32_t length = 0;

	for (uint32_t number = head; number != NO_RECORD; number = layout->records[number].older)
		length++;
	return length;
}

static uint32_t longest_chain(const struct layout *layout)
{
	uint32_t most = 0;

	for (uint32_t head = 0; head < layout->count; head++)
		if (layout->records[head].is_head)
			most = (uint32_t)max_u64(most, chain_length(layout, head));
	return most;
}

/* Carries the newest records of a key, a part of them but not all. Returns their bytes. */
static uint64_t carry_newest(struct layout *layout, uint32_t head, uint32_t records)
{
	uint64_t bytes = 0;

	for (; records && is_multiple(layout, head); records--) {
		bytes += bytes_of(layout, head);
		layout->records[head].is_head = false;
		head = layout->records[head].older;
		layout->records[head].is_head = true;
	}
	return bytes;
}

/*
 * Heads with older records need a candidate page each, and the tail leaves them few pages where a
 * few keys fill nearly all of the buffer. Then the newest records of the longest chains are
 * carried.
 */
static void shorten_tail(struct layout *layout, struct layout_result *result)
{
	uint64_t page_bytes = layout->shape.page_bytes;

	for (;;) {
		uint64_t tail = count_tail(layout, result) * page_bytes;
		uint64_t heads = multiple_bytes(layout);
		/* A sixteenth more, since no candidates of all of them are free. */
		int64_t lacking = (int64_t)(tail + heads + heads / 16) -
				  (int64_t)(layout->shape.pages * page_bytes);
		uint32_t length = longest_chain(layout);

		if (lacking <= 0 || length < 2)
			return;
		for (uint32_t head = 0; head < layout->count && lacking > 0; head++) {
			const struct layout_record *record = &layout->records[head];

			if (record->is_head && chain_length(layout, head) > length / 2)
				lacking -= (int64_t)carry_newest(layout, head, length / 64 + 1);
		}
	}
}

/* ---- heads ---- */

static uint32_t class_of(const struct layout *layout, uint32_t number)
{
	return SIZE_CLASSES - 1 - bytes_of(layout, number) / SIZE_STEP;
}

/* Heads that are placed first, or the others, by their size. Returns how many. */
static uint32_t order_heads(struct layout *layout, bool first, uint32_t at)
{
	uint32_t begins[SIZE_CLASSES + 1] = { 0 };

	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t number = 0; number < layout->count; number++) {
			const struct layout_record *record = &layout->records[number];
			uint32_t class = class_of(layout, number);

			if (!record->is_head ||
			    (record->was_carried || is_multiple(layout, number)) != first)
				continue;
			if (pass)
				layout->order[at + begins[class]++] = number;
			else
				begins[class + 1]++;
		}
		for (uint32_t class = 0; !pass && class < SIZE_CLASSES; class ++)
			begins[class + 1] += begins[class];
	}
	/* The last class has moved to its end. */
	return begins[SIZE_CLASSES - 1];
}

static void make_item(struct layout *layout, uint32_t number, uint32_t head_pages)
{
	struct placement_item *item = &layout->items[number];

	item->bytes = bytes_of(layout, number);
	for (uint32_t candidate = 0; candidate < PLACEMENT_CANDIDATES; candidate++)
		item->pages[candidate] = (uint16_t)candidate_page(
			&layout->records[number].hash, layout->shape.serial, candidate, head_pages);
}

static void place_heads(struct layout *layout, struct layout_result *result)
{
	uint32_t head_pages = layout->shape.pages - result->tail_pages;
	uint32_t count;

	for (uint32_t number = 0; number < layout->count; number++)
		make_item(layout, number, head_pages);
	placement_begin(layout->placement, head_pages, layout->shape.page_bytes, layout->items,
			layout->count);
	count = order_heads(layout, true, 0);
	count += order_heads(layout, false, count);
	for (uint32_t n = 0; n < count; n++)
		placement_add(layout->placement, layout->order[n]);
	for (uint32_t n = 0; n < count; n++) {
		uint32_t number = layout->order[n];
		const struct placement_item *item = &layout->items[number];
		struct layout_record *record = &layout->records[number];

		record->is_head = item->candidate != PLACEMENT_NONE;
		record->candidate = item->candidate;
		if (record->is_head)
			record->page = item->pages[item->candidate];
		result->heads += record->is_head;
	}
}

/* ---- the tail ---- */

/* By tag, and of a tag the newest first. */
static bool comes_before(const struct run_entry *first, const struct run_entry *second)
{
	return first->tag != second->tag ? first->tag < second->tag
					 : first->oldest > second->oldest;
}

/* Lets entry `at` of a heap sink to where it belongs. */
static void sink(struct run_entry *runs, uint32_t at, uint32_t count)
{
	struct run_entry sinking = runs[at];

	for (uint32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
		if (child + 1 < count && comes_before(&runs[child], &runs[child + 1]))
			child++;
		if (!comes_before(&sinking, &runs[child]))
			break;
		runs[at] = runs[child];
		at = child;
	}
	runs[at] = sinking;
}

/* A heap sort: it needs no memory. */
static void sort_runs(struct run_entry *runs, uint32_t count)
{
	for (uint32_t at = count / 2; at-- > 0;)
		sink(runs, at, count);
	for (uint32_t end = count; end-- > 1;) {
		struct run_entry last = runs[0];

		runs[0] = runs[end];
		runs[end] = last;
		sink(runs, 0, end);
	}
}

/* Carries a key whose head has found a place. False: there is none with older records. */
static bool give_up_key(struct layout *layout, struct layout_result *result)
{
	for (uint32_t number = layout->count; number-- > 0;) {
		struct layout_record *record = &layout->records[number];

		if (!record->is_head || !is_multiple(layout, number))
			continue;
		record->is_head = false;
		record->page = LAYOUT_CARRIED;
		record->candidate = PLACEMENT_NONE;
		result->heads--;
		return true;
	}
	return false;
}

static void place_runs(struct layout *layout, struct layout_result *result)
{
	struct layout_result needed = { 0 };

	/* Fewer keys may fill pages worse than all of them, though hardly ever. */
	while (count_tail(layout, &needed) > result->tail_pages)
		if (!give_up_key(layout, result))
			break;
	result->directory_pages = needed.directory_pages;
	fill_runs(layout, false);
	for (uint32_t number = 0; number < layout->count; number++)
		if (layout->records[number].is_head)
			layout->records[number].has_older = is_multiple(layout, number);
	sort_runs(layout->runs, layout->run_count);
}

/* ---- pages ---- */

/* Records by page, in the order of their numbers: of equal numbers in a page the last one counts.
 */
static void sort_by_page(struct layout *layout, struct layout_result *result)
{
	uint32_t pages = layout->shape.pages;

	memset(layout->begins, 0, (pages + 1) * sizeof(*layout->begins));
	for (uint32_t number = 0; number < layout->count; number++) {
		if (layout->records[number].page == LAYOUT_CARRIED)
			result->carried++;
		else
			layout->begins[layout->records[number].page]++;
	}
	for (uint32_t page = 1; page <= pages; page++)
		layout->begins[page] += layout->begins[page - 1];
	for (uint32_t number = layout->count; number-- > 0;)
		if (layout->records[number].page != LAYOUT_CARRIED)
			layout->order[--layout->begins[layout->records[number].page]] = number;
}

uint32_t layout_page_records(const struct layout *layout, uint32_t page, const uint32_t **records)
{
	*records = layout->order + layout->begins[page];
	return layout->begins[page + 1] - layout->begins[page];
}

void layout_solve(struct layout *layout, const struct layout_shape *shape,
		  struct layout_record *records, uint32_t count, struct layout_result *result)
{
	assert(count <= layout->records_max && shape->pages <= layout->pages_max);
	layout->shape = *shape;
	layout->records = records;
	layout->count = count;
	*result = (struct layout_result){ 0 };
	make_chains(layout);
	shorten_tail(layout, result);
	place_heads(layout, result);
	place_runs(layout, result);
	sort_by_page(layout, result);
}

/* ---- the directory of runs ---- */

uint32_t layout_put_directory(const struct layout *layout, uint32_t number, uint8_t *bytes)
{
	uint32_t most = run_entries_of_page(layout->shape.page_bytes), first = number * most, n;

	for (n = 0; n < most && first + n < layout->run_count; n++) {
		const struct run_entry *entry = &layout->runs[first + n];

		put_le32(bytes + n * RUN_ENTRY_BYTES, entry->tag);
		put_le48(bytes + n * RUN_ENTRY_BYTES + 4, entry->oldest);
		put_le16(bytes + n * RUN_ENTRY_BYTES + 10, entry->page);
	}
	return n * RUN_ENTRY_BYTES;
}

struct run_entry run_entry_at(const uint8_t *bytes, uint32_t n)
{
	const uint8_t *at = bytes + (uint64_t)n * RUN_ENTRY_BYTES;

	return (struct run_entry){ .tag = get_le32(at),
				   .oldest = get_le48(at + 4),
				   .page = get_le16(at + 10) };
}

uint32_t run_directory_find(const uint8_t *bytes, uint32_t count, uint32_t tag, uint64_t bound)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct run_entry entry = run_entry_at(bytes, middle);

		if (entry.tag < tag || (entry.tag == tag && entry.oldest > bound))
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && run_entry_at(bytes, low).tag == tag ? low : count;
}
