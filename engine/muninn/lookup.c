/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Looks up the newest record of a key, or its newest few, from the newest place to the oldest. All
 * look-ups visit the same pages. They differ in what they take from a page, and in when they have
 * enough.
 */
#include "engine/muninn/lookup.h"

#include <errno.h>

#include "common/log.h"
#include "engine/muninn/row.h"

/* A lookup in progress. */
struct lookup {
	struct muninn_store *store;
	const struct record_key *key;
	struct key_hash hash;
	struct visibility visibility;
	uint64_t after;        /* only what may hold higher numbers than this is searched */
	struct merge_run *run; /* that it is made for; NULL: a user waits for it */
	/*
	 * Looks for the key in a page. 0: the search ends. -EAGAIN: it goes on to older places.
	 * -EBADMSG.
	 */
	int (*visit)(struct lookup *lookup, const struct page_view *page);
	struct record_info *info; /* of the newest found so far; an array when records are listed */
	uint32_t found, wanted;   /* of them */
	uint8_t *value;
	uint32_t capacity;
};

/* ---- what is done with a page: the newest record ---- */

static struct record_info describe(const struct record_header *header)
{
	return (struct record_info){
		.sequence = header->sequence,
		.length = header->length,
		.flags = header->flags & (RECORD_TOMBSTONE | RECORD_ABSORB),
	};
}

/*
 * Takes the newest record of the page if it is newer than what was found before. A place tells how
 * old its records are, so the first record found is the newest. Only a RECORD_MOVED one does not
 * end the search.
 */
static int take_newest(struct lookup *lookup, const struct page_view *page)
{
	struct record_header header;
	struct page_record found;

	if (!page_find(page, lookup->key, &lookup->visibility, &found))
		return -EAGAIN;
	record_header_decode(found.header, &header);
	int result = header.flags & RECORD_MOVED ? -EAGAIN : 0;

	if (lookup->found && lookup->info->sequence >= header.sequence)
		return result;
	if (!record_is_intact(found.header, page->serial, found.value))
		return -EBADMSG;
	lookup->found = 1;
	*lookup->info = describe(&header);
	/*
	 * A moved record says nothing about other places, but only newer ones are of interest now.
	 */
	lookup->after = max_u64(lookup->after, header.sequence - 1);
	uint32_t copied = header.length < lookup->capacity ? header.length : lookup->capacity;

	if (copied)
		memcpy(lookup->value, found.value, copied);
	return result;
}

/* ---- what is done with a page: several records of the key ---- */

/*
 * Inserts a record into the list, newest first, unless one of the same command is there already.
 */
static void insert_found(struct lookup *lookup, const struct record_header *header)
{
	uint32_t at = lookup->found;

	while (at > 0 && lookup->info[at - 1].sequence < header->sequence)
		at--;
	if ((at > 0 && lookup->info[at - 1].sequence == header->sequence) || at == lookup->wanted)
		return;
	if (lookup->found < lookup->wanted)
		lookup->found++;
	memmove(&lookup->info[at + 1], &lookup->info[at],
		(lookup->found - at - 1) * sizeof(lookup->info[0]));
	lookup->info[at] = describe(header);
}

/*
 * Adds the records of the key in the page to the list. The search ends when the list is full and
 * the page has a record that was not moved and is no newer than the last one of the list: older
 * places hold only older records.
 */
static int take_several(struct lookup *lookup, const struct page_view *page)
{
	const uint8_t *headers[MUNINN_PAGE_BYTES_MAX / RECORD_HEADER_BYTES + 1];
	struct record_header header;
	struct page_record record;
	uint32_t offset = 0, count = 0;
	uint64_t oldest = RECORD_NEWEST + 1;

	while (page_next(page, &offset, &record))
		if (record_has_key(record.header, lookup->key)) {
			if (!record_is_intact(record.header, page->serial, record.value))
				return -EBADMSG;
			headers[count++] = record.header;
		}
	/* Backwards: of one command's puts the last one counts. */
	while (count-- > 0) {
		record_header_decode(headers[count], &header);
		if (!(header.flags & RECORD_MOVED))
			oldest = min_u64(oldest, header.sequence);
		if (record_is_visible(&lookup->visibility, lookup->key, header.sequence))
			insert_found(lookup, &header);
	}
	return lookup->found == lookup->wanted && lookup->info[lookup->found - 1].sequence >= oldest
		       ? 0
		       : -EAGAIN;
}

/* ---- what is done with a page: whether anything is between two numbers ---- */

static int take_between(struct lookup *lookup, const struct page_view *page)
{
	struct record_header header;
	struct page_record record;
	uint32_t offset = 0;
	bool passed = false;

	while (page_next(page, &offset, &record)) {
		if (!record_has_key(record.header, lookup->key))
			continue;
		if (!record_is_intact(record.header, page->serial, record.value))
			return -EBADMSG;
		record_header_decode(record.header, &header);
		/* What is in older places is older than this. */
		passed |= header.sequence <= lookup->after && !(header.flags & RECORD_MOVED);
		if (header.sequence > lookup->after &&
		    sequence_is_visible(&lookup->visibility, header.sequence))
			lookup->found = 1;
	}
	return lookup->found || passed ? 0 : -EAGAIN;
}

/* ---- what is done with a page: all records between two numbers ---- */

struct gathering {
	struct lookup lookup;
	int (*take)(void *context, const struct page_view *page, const struct page_record *record);
	void *context;
};

static int take_all(struct lookup *lookup, const struct page_view *page)
{
	struct gathering *gathering = (struct gathering *)(void *)lookup;
	struct page_record records[MUNINN_PAGE_BYTES_MAX / RECORD_HEADER_BYTES + 1];
	struct page_record record;
	uint32_t offset = 0, count = 0;

	while (page_next(page, &offset, &record))
		if (record_has_key(record.header, lookup->key) &&
		    record_sequence(record.header) > lookup->after &&
		    record_sequence(record.header) <= lookup->visibility.bound)
			records[count++] = record;
	/* Backwards: of one command's puts the last one counts. */
	while (count-- > 0) {
		int result = gathering->take(gathering->context, page, &records[count]);

		if (result)
			return result;
	}
	return -EAGAIN;
}

/* ---- where the key may be ---- */

static bool page_has_key(const struct page_view *page, const struct record_key *key)
{
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(page, &offset, &record))
		if (record_has_key(record.header, key))
			return true;
	return false;
}

/* A page, and memory for it. */
struct read_page {
	struct page_view view;
	struct page_spare spare;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	uint8_t spare_bytes[4096];
};

static int read_page(struct lookup *lookup, uint64_t number, struct read_page *page)
{
	struct muninn_store *store = lookup->store;
	struct nand_page_io io = { .page = number, .data = page->data, .spare = page->spare_bytes };

	if (lookup->run)
		return merge_run_read_more(lookup->run, number, &page->view);
	int result = nand_read(store->nand, NAND_CAUSE_USER, &io, 1);

	count_up(&store->counters.page_reads, 1);
	if (result == -ENODATA) /* sealed segments are programmed whole: the flash lost a page */
		result = -EBADMSG;
	if (!result &&
	    (!page_spare_decode(page->spare_bytes, store->geometry.page_bytes, &page->spare) ||
	     page->spare.kind != PAGE_KIND_RECORDS))
		result = -EBADMSG;
	if (result) {
		log_line(LOG_LEVEL_ERROR, "%s: flash page %llu can't be read (error %d)",
			 nand_path(store->nand), (unsigned long long)number, -result);
		return result;
	}
	page->view = (struct page_view){
		.serial = page->spare.serial,
		.data = page->data,
		.used = page->spare.used,
		.large_header = page->spare.large ? page->spare.large_header : NULL,
	};
	return 0;
}

/* Looks in one flash page. 0: found. -EAGAIN: go on. */
static int search_flash_page(struct lookup *lookup, uint64_t number)
{
	struct read_page page;
	int result = read_page(lookup, number, &page);

	if (result)
		return result;
	if (!lookup->run && !page_has_key(&page.view, lookup->key)) {
		count_up(&lookup->store->counters.false_positive_reads, 1);
		return -EAGAIN;
	}
	return lookup->visit(lookup, &page.view);
}

/* The highest sequence number that is looked for. */
static uint64_t newest_sequence(const struct lookup *lookup)
{
	return min_u64(lookup->visibility.bound, lookup->visibility.below - 1);
}

/* A segment whose pages are probed. */
struct probed {
	struct lookup *lookup;
	uint64_t first_page;
};

/* Whether a page has a record of the key that is old enough; see index_search_narrow. */
static int is_as_old(void *context, uint32_t number)
{
	const struct probed *probed = context;
	struct lookup *lookup = probed->lookup;
	struct page_record record;
	struct read_page page;
	uint32_t offset = 0;
	int found = 2;
	int result = read_page(lookup, probed->first_page + number, &page);

	while (!result && found != 1 && page_next(&page.view, &offset, &record))
		if (record_has_key(record.header, lookup->key))
			found = record_sequence(record.header) <= newest_sequence(lookup);
	return result ? result : found;
}

static int search_segment(struct lookup *lookup, struct index_search *search, uint32_t segment)
{
	struct probed probed = { .lookup = lookup,
				 .first_page = segment_page(&lookup->store->geometry, segment) };
	int result = index_search_narrow(search, is_as_old, &probed);
	uint32_t page;

	if (result)
		return result;
	while (index_search_page(search, &page)) {
		result = search_flash_page(lookup, probed.first_page + page);
		if (result != -EAGAIN)
			return result;
	}
	return -EAGAIN;
}

static int search_sealed(struct lookup *lookup, const struct row_index *index)
{
	struct index_search search;
	uint32_t segment;

	index_search_begin(&search, index, &lookup->hash, newest_sequence(lookup));
	while (index_search_segment(&search, lookup->after, &segment)) {
		int result = search_segment(lookup, &search, segment);

		if (result != -EAGAIN)
			return result;
	}
	return search.result ? search.result : -EAGAIN;
}

static int search_buffer(struct lookup *lookup, const struct buffer *buffer)
{
	uint32_t place = UINT32_MAX;
	struct page_view page;

	while (buffer_next_page(buffer, &lookup->hash, &place, &page)) {
		int result = lookup->visit(lookup, &page);

		if (result != -EAGAIN)
			return result;
	}
	return -EAGAIN;
}

/* Goes through the places of the key, newest first. 0, -ENOENT: nothing was found; or an error. */
static int search(struct lookup *lookup)
{
	struct muninn_store *store = lookup->store;
	struct row *row;
	int result;

	if (lookup->visibility.from)
		lookup->after = max_u64(lookup->after, lookup->visibility.from - 1);
	lookup->hash = key_hash(lookup->key, store->geometry.segment_pages);
	row = &store->rows[row_of_key(store, lookup->key, &lookup->hash)];
	result = row_has_newer(row) ? search_buffer(lookup, &row->newer) : -EAGAIN;
	if (result == -EAGAIN)
		result = search_buffer(lookup, &row->buffer);
	if (result == -EAGAIN)
		result = search_sealed(lookup, row->index);
	if (result == -EAGAIN)
		result = lookup->found ? 0 : -ENOENT;
	return result;
}

int lookup_gather(struct muninn_store *store, const struct record_key *key, uint64_t from,
		  uint64_t to, struct merge_run *run,
		  int (*take)(void *context, const struct page_view *page,
			      const struct page_record *record),
		  void *context)
{
	struct gathering gathering = {
		.lookup = { .store = store,
			    .key = key,
			    .visibility = { .bound = to, .below = RECORD_NEWEST + 1 },
			    .after = from - 1,
			    .run = run,
			    .visit = take_all },
		.take = take,
		.context = context,
	};
	int result = search(&gathering.lookup);

	return result == -ENOENT ? 0 : result;
}

int lookup_get_since(struct muninn_store *store, const struct record_key *key,
		     const struct visibility *visibility, uint64_t since, struct merge_run *run,
		     void *value, uint32_t capacity, struct record_info *info)
{
	struct lookup lookup = {
		.store = store,
		.key = key,
		.visibility = *visibility,
		.after = max_u64(since, 1) - 1,
		.run = run,
		.visit = take_newest,
		.info = info,
		.wanted = 1,
		.value = value,
		.capacity = capacity,
	};

	return search(&lookup);
}

int lookup_get(struct muninn_store *store, const struct record_key *key,
	       const struct visibility *visibility, struct merge_run *run, void *value,
	       uint32_t capacity, struct record_info *info)
{
	return lookup_get_since(store, key, visibility, 0, run, value, capacity, info);
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
		.visit = take_newest,
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
		.visit = take_several,
		.info = infos,
		.wanted = max,
	};

	if (max == 0)
		return 0;
	int result = search(&lookup);

	return result && result != -ENOENT ? result : (int)lookup.found;
}

int lookup_has_between(struct muninn_store *store, const struct record_key *key, uint64_t after,
		       uint64_t bound)
{
	struct record_info unused;
	struct lookup lookup = {
		.store = store,
		.key = key,
		.visibility = store_visibility(store, bound),
		.after = after,
		.visit = take_between,
		.info = &unused,
		.wanted = 1,
	};
	int result = search(&lookup);

	return result && result != -ENOENT ? result : (int)lookup.found;
}
