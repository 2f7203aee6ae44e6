/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads pages of flash for look-ups, and takes from a page what is wanted of a key. */
#include "engine/muninn/lookup_page.h"

#include <errno.h>

#include "common/log.h"
#include "engine/muninn/repair.h"
#include "engine/records/waiting.h"

/* ---- reading ---- */

int lookup_read_pages(struct muninn_store *store, const struct nand_page_io *ios, uint32_t count)
{
	int result;

	if (may_wait())
		return nand_read(store->nand, NAND_CAUSE_USER, ios, count);
	if (has_missed()) /* whatever is read now is of no use any more */
		return -EINPROGRESS;
	result = nand_read_at_hand(store->nand, waiting_stage, NAND_CAUSE_USER, ios, count);
	return result == -EINPROGRESS ? would_wait() : result;
}

int lookup_view_page(const struct muninn_store *store, const struct nand_page_io *io, int result,
		     struct page_spare *spare, struct page_view *view)
{
	if (result == -EINPROGRESS)
		return result;
	if (result == -ENODATA) /* sealed segments are programmed whole: the flash lost a page */
		result = -EBADMSG;
	if (!result && (!page_spare_decode(io->spare, store->geometry.page_bytes, spare) ||
			spare->kind != PAGE_KIND_RECORDS))
		result = -EBADMSG;
	if (result) {
		log_line(LOG_LEVEL_ERROR, "%s: flash page %llu can't be read (error %d)",
			 nand_path(store->nand), (unsigned long long)io->page, -result);
		return result;
	}
	*view = page_view_of(spare, io->page, io->data);
	view->checked = true;
	return 0;
}

/*
 * A record that has a page for itself has its header in the spare area. Of one like it a merge
 * wants no more than the header, so it neither copies nor sums up the page.
 */
static bool read_header(const struct lookup *lookup, uint64_t number, struct page_view *view)
{
	return lookup->visit == lookup_take_newest && !lookup->capacity &&
	       merge_run_read_header(lookup->run, number, view);
}

int lookup_read_page(struct lookup *lookup, uint64_t number, struct read_page *page)
{
	struct muninn_store *store = lookup->store;
	struct nand_page_io io = { .page = number, .data = page->data, .spare = page->spare_bytes };

	if (lookup->run && read_header(lookup, number, &page->view))
		return 0;
	if (lookup->run)
		return merge_run_read_more(lookup->run, number, &page->view);
	int result = lookup_read_pages(store, &io, 1);

	if (repair_is_for(result))
		result = may_wait() ? repair_read(store, NAND_CAUSE_USER, &io) : would_wait();

	count_up(&store->counters.page_reads, result != -EINPROGRESS);
	return lookup_view_page(store, &io, result, &page->spare, &page->view);
}

/* ---- a record that ends in the page behind its own ---- */

/* Makes a record whole, in a page's bytes at `value`. -EBADMSG, or the error of the read. */
static int make_whole(struct lookup *lookup, const struct page_view *page,
		      struct page_record *record, uint8_t *value)
{
	uint32_t first = record_length(record->header) - record->cut;
	struct read_page behind;
	int result = lookup_read_page(lookup, page->number + 1, &behind);

	if (result)
		return result;
	if (!page_goes_on(page, &behind.view))
		return -EBADMSG;
	memcpy(value, record->value, first);
	memcpy(value + first, behind.view.data, record->cut);
	record->value = value;
	record->cut = 0;
	return record_is_intact(record->header, page->serial, value) ? 0 : -EBADMSG;
}

/* Only pages of flash have records that are not whole here, and these are checked. */
static bool is_sound(const struct page_view *page, const struct page_record *record)
{
	return page->checked || record_is_intact(record->header, page->serial, record->value);
}

/* ---- what is done with a page: the newest record ---- */

static struct record_info describe(const struct record_header *header)
{
	return (struct record_info){
		.sequence = header->sequence,
		.length = header->length,
		.flags = header->flags & (RECORD_TOMBSTONE | RECORD_ABSORB),
	};
}

/* Whether a number takes the place of what was found. */
static bool is_wanted(const struct lookup *lookup, uint64_t sequence)
{
	uint64_t found = lookup->info->sequence;

	return sequence > found || (sequence == found && lookup->is_ahead && !lookup->looks_ahead);
}

/*
 * Takes the newest record of the page if it is newer than what was found before. A place tells how
 * old its records are, so the first record found is the newest. Only a RECORD_MOVED one does not
 * end the search, unless it will do.
 */
int lookup_take_newest(struct lookup *lookup, const struct page_view *page)
{
	uint8_t whole[MUNINN_PAGE_BYTES_MAX];
	struct record_header header;
	struct page_record found;

	if (!page_find(page, lookup->key, &lookup->visibility, &found))
		return -EAGAIN;
	record_header_decode(found.header, &header);
	bool will_do = lookup->any && header.sequence >= lookup->any;
	int result = header.flags & RECORD_MOVED && !will_do ? -EAGAIN : 0;

	if (lookup->found && !is_wanted(lookup, header.sequence))
		return result;
	int whole_result = found.cut && lookup->capacity ? make_whole(lookup, page, &found, whole)
							 : 0;

	if (whole_result)
		return whole_result;
	if (!is_sound(page, &found))
		return -EBADMSG;
	lookup->found = 1;
	lookup->found_page = page->number;
	lookup->is_ahead = lookup->looks_ahead;
	*lookup->info = describe(&header);
	if (lookup->crc)
		*lookup->crc = header.crc;
	/*
	 * A moved record says nothing about other places, but only newer ones are of interest now.
	 */
	lookup->after = max_u64(lookup->after, header.sequence - 1);
	uint32_t copied = header.length < lookup->capacity ? header.length : lookup->capacity;

	/* The page may have been read to where the value is wanted. */
	if (copied && found.value != lookup->value)
		memmove(lookup->value, found.value, copied);
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
int lookup_take_several(struct lookup *lookup, const struct page_view *page)
{
	const uint8_t *headers[MUNINN_PAGE_BYTES_MAX / RECORD_HEADER_BYTES + 1];
	struct record_header header;
	struct page_record record;
	uint32_t offset = 0, count = 0;
	uint64_t oldest = RECORD_NEWEST + 1;

	while (page_next(page, &offset, &record))
		if (record_has_key(record.header, lookup->key)) {
			if (!is_sound(page, &record))
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

int lookup_take_between(struct lookup *lookup, const struct page_view *page)
{
	struct record_header header;
	struct page_record record;
	uint32_t offset = 0;
	bool passed = false;

	while (page_next(page, &offset, &record)) {
		if (!record_has_key(record.header, lookup->key))
			continue;
		if (!is_sound(page, &record))
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
