/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Compares all that is stored with what refers to it: each page of each segment with the index, and
 * each record with the place that a look-up would search. Reads only.
 */
#include "engine/muninn/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/muninn/directory.h"
#include "engine/muninn/image_load.h"
#include "engine/muninn/lookup.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/root_find.h"
#include "engine/muninn/row.h"

/* One walk through a store. */
struct walk {
	struct muninn_store *store;
	struct record_check *check;
	struct visibility visibility; /* which records count */
	uint64_t pages_total;
	uint8_t *data, *spare; /* of a page each */
};

/* What the pages of a segment turned out to hold. */
struct tally {
	uint64_t records, bytes, first_sequence, last_sequence;
	uint32_t damaged; /* pages */
};

/* Where a record is. */
struct place {
	uint32_t row, segment, page; /* NO_SEGMENT: in a buffer */
};

/* ---- a record ---- */

/*
 * Whether a look-up for the record would read its page, if the page of the key's newest record in
 * the segment has led there. 1, 0, or an error.
 */
static int is_found(struct walk *walk, const struct place *place, const struct key_hash *hash,
		    uint64_t sequence)
{
	struct index_search search;
	uint32_t segment, page;

	index_search_begin(&search, walk->store->rows[place->row].index, hash, sequence);
	while (index_search_segment(&search, sequence - 1, &segment))
		while (segment == place->segment && index_search_page(&search, &page))
			if (page == place->page)
				return 1;
			else if (index_search_has_run(&search))
				index_search_run(&search);
	return search.result;
}

static void report_record(struct walk *walk, const struct place *place,
			  const struct record_header *header, const char *trouble)
{
	const struct record_key *key = &header->key;
	char where[96];

	if (place->segment == NO_SEGMENT)
		snprintf(where, sizeof(where), "row %u, page %u of its buffer in NVRAM", place->row,
			 place->page);
	else
		snprintf(where, sizeof(where), "row %u, segment %u, page %u of it", place->row,
			 place->segment, place->page);
	findings_add(walk->check->findings, FINDING_RECORD,
		     "%s: the record of partition index %u, identifier 0x%llx, piece 0x%x, number "
		     "%llu %s",
		     where, key->partition, (unsigned long long)key->identifier, key->piece,
		     (unsigned long long)header->sequence, trouble);
}

/* Whether the record counts. One above the committed number can't be there. */
static bool counts(struct walk *walk, const struct place *place, const struct record_header *header)
{
	if (header->sequence > walk->store->committed) {
		findings_add(
			walk->check->findings, FINDING_SEQUENCE,
			"row %u, segment %u holds a record with number %llu, but only commands "
			"up to %llu are committed",
			place->row, place->segment, (unsigned long long)header->sequence,
			(unsigned long long)walk->store->committed);
		return false;
	}
	return sequence_is_visible(&walk->visibility, header->sequence);
}

/* Whether a look-up of the record passes over its page for what is known of old records there. */
static bool is_passed_over(const struct walk *walk, const struct place *place, uint64_t sequence)
{
	return older_passes(&walk->store->older[place->segment],
			    walk->store->geometry.segment_pages, place->page, sequence - 1,
			    sequence);
}

static void check_record(struct walk *walk, const struct place *place, const struct page_view *view,
			 const struct page_record *record)
{
	struct record_header header;
	struct record_info info;
	struct key_hash hash;

	record_header_decode(record->header, &header);
	walk->check->records++;
	if (record->cut || !record_is_intact(record->header, view->serial, record->value)) {
		report_record(walk, place, &header,
			      record->cut ? "ends in a page that has not the rest of it"
					  : "fails its checksum");
		return;
	}
	hash = key_hash(&header.key, walk->store->geometry.segment_pages);
	if (row_of_key(walk->store, &header.key, &hash) != place->row) {
		report_record(walk, place, &header, "belongs to another row");
		return;
	}
	/* Of what does not count nothing need be found. */
	if (!counts(walk, place, &header))
		return;
	if (place->segment != NO_SEGMENT && is_found(walk, place, &hash, header.sequence) == 0)
		report_record(walk, place, &header, "is not where the index looks for it");
	if (place->segment != NO_SEGMENT && is_passed_over(walk, place, header.sequence))
		report_record(walk, place, &header,
			      "is not among the numbers that the index knows of its page");
	if (!walk->check->record)
		return;
	info = (struct record_info){ .sequence = header.sequence,
				     .length = header.length,
				     .flags = header.flags & (RECORD_TOMBSTONE | RECORD_ABSORB) };
	walk->check->record(walk->check->context, &header.key, &info);
}

/* Returns whether the page holds whole records up to its end. */
static bool check_records(struct walk *walk, const struct place *place,
			  const struct page_view *view, struct tally *tally)
{
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(view, &offset, &record)) {
		uint64_t sequence = record_sequence(record.header);

		check_record(walk, place, view, &record);
		tally->records++;
		tally->bytes += RECORD_HEADER_BYTES + record_length(record.header);
		tally->first_sequence = min_u64(tally->first_sequence, sequence);
		tally->last_sequence = max_u64(tally->last_sequence, sequence);
	}
	return offset == page_end(view);
}

/* ---- a sealed segment ---- */

static const char *read_trouble(int result)
{
	switch (result) {
	case -EBADMSG:
		return "fails its checksum";
	case -ENODATA:
		return "is not programmed";
	default:
		return "can't be read";
	}
}

/* Reads the page behind one behind it, where the last record ends there. */
static void read_behind(struct walk *walk, struct page_view *view)
{
	uint32_t page_bytes = walk->store->geometry.page_bytes;
	struct nand_page_io io = { .page = view->number + 1,
				   .data = walk->data + page_bytes,
				   .spare = walk->spare };
	struct page_spare spare;
	struct page_view behind;

	/* What is wrong with it is said when it is its turn. */
	if (repair_read(walk->store, NAND_CAUSE_RECOVERY, &io) ||
	    !page_spare_decode(walk->spare, page_bytes, &spare))
		return;
	behind = page_view_of(&spare, io.page, io.data);
	view->follows = page_goes_on(view, &behind);
}

static void check_page(struct walk *walk, const struct place *place,
		       const struct sealed_segment *facts, struct tally *tally)
{
	const struct muninn_geometry *geometry = &walk->store->geometry;
	uint64_t number = segment_page(geometry, place->segment) + place->page;
	struct nand_page_io io = { .page = number, .data = walk->data, .spare = walk->spare };
	int result = nand_read(walk->store->nand, NAND_CAUSE_RECOVERY, &io, 1);
	const char *trouble = result ? read_trouble(result) : NULL;
	struct page_spare spare;

	if (repair_is_for(result) && !repair_page(walk->store, NAND_CAUSE_RECOVERY, &io)) {
		findings_add(walk->check->findings, FINDING_PARITY,
			     "flash page %llu (row %u, segment %u, page %u of it) %s, and parity "
			     "has it",
			     (unsigned long long)number, place->row, place->segment, place->page,
			     trouble);
		trouble = NULL;
	}
	walk->check->pages++;
	if (!trouble && (!page_spare_decode(walk->spare, geometry->page_bytes, &spare) ||
			 spare.kind != PAGE_KIND_RECORDS || spare.row != place->row ||
			 spare.serial != facts->serial))
		trouble = "is of another segment";
	if (!trouble) {
		struct page_view view = page_view_of(&spare, number, walk->data);

		if (view.beyond)
			read_behind(walk, &view);
		if (!check_records(walk, place, &view, tally))
			trouble = "holds more than its records";
	}
	if (!trouble)
		return;
	tally->damaged++;
	findings_add(walk->check->findings, FINDING_PAGE,
		     "flash page %llu (row %u, segment %u, page %u of it) %s",
		     (unsigned long long)number, place->row, place->segment, place->page, trouble);
}

/* What the index says of a segment is what its pages say. */
static void compare_facts(struct walk *walk, uint32_t row, const struct sealed_segment *facts,
			  const struct tally *tally)
{
	/* What is missing has been said. */
	if (tally->damaged)
		return;
	if (tally->records != facts->records || tally->bytes != facts->record_bytes)
		findings_add(walk->check->findings, FINDING_SEGMENT,
			     "row %u, segment %u holds %llu records of %llu bytes, and its index "
			     "says %u of %llu",
			     row, facts->segment, (unsigned long long)tally->records,
			     (unsigned long long)tally->bytes, facts->records,
			     (unsigned long long)facts->record_bytes);
	else if (tally->records && (tally->first_sequence != facts->first_sequence ||
				    tally->last_sequence != facts->last_sequence))
		findings_add(walk->check->findings, FINDING_SEGMENT,
			     "row %u, segment %u holds numbers %llu to %llu, and its index says "
			     "%llu to %llu",
			     row, facts->segment, (unsigned long long)tally->first_sequence,
			     (unsigned long long)tally->last_sequence,
			     (unsigned long long)facts->first_sequence,
			     (unsigned long long)facts->last_sequence);
}

static void check_segment(struct walk *walk, uint32_t row, const struct sealed_segment *facts)
{
	struct tally tally = { .first_sequence = RECORD_NEWEST };
	struct place place = { .row = row, .segment = facts->segment };

	walk->check->segments++;
	for (; place.page < walk->store->geometry.segment_pages; place.page++)
		check_page(walk, &place, facts, &tally);
	compare_facts(walk, row, facts, &tally);
	if (walk->check->progress)
		walk->check->progress(walk->check->context, walk->check->pages, walk->pages_total);
}

/* ---- a row ---- */

static void check_buffer(struct walk *walk, uint32_t row, const struct buffer *buffer)
{
	struct place place = { .row = row, .segment = NO_SEGMENT };
	struct tally tally = { 0 };

	for (; place.page < walk->store->geometry.segment_pages; place.page++) {
		struct page_view view = buffer_page(buffer, place.page);

		if (!check_records(walk, &place, &view, &tally))
			findings_add(walk->check->findings, FINDING_BUFFER,
				     "row %u: page %u of its buffer in NVRAM holds more than its "
				     "records",
				     row, place.page);
	}
}

/* Segments of a row follow one another in age, which their serials tell. */
static void check_row(struct walk *walk, uint32_t number)
{
	const struct row *row = &walk->store->rows[number];
	struct index_walk segments = { 0 };
	struct sealed_segment facts;
	uint64_t serial = 0;

	while (row_index_next(row->index, &segments, &facts)) {
		if (facts.serial <= serial)
			findings_add(walk->check->findings, FINDING_INDEX,
				     "row %u: segment %u stands behind a newer one in the index",
				     number, facts.segment);
		serial = facts.serial;
		check_segment(walk, number, &facts);
	}
	check_buffer(walk, number, &row->buffer);
	if (row_has_newer(row))
		check_buffer(walk, number, &row->newer);
}

/* ---- images of the index ---- */

static uint32_t pages_of_image(const struct walk *walk, const uint8_t *entry)
{
	return run_pages(&walk->store->geometry, get_le32(entry + DIRECTORY_BYTES_AT));
}

/* Opening has read the image, or has made it again from its segments: so nothing is lost. */
static void check_image(struct walk *walk, const uint8_t *entry)
{
	uint32_t row = get_le32(entry + DIRECTORY_ROW_AT);
	uint32_t group = get_le32(entry + DIRECTORY_GROUP_AT), lost = 0;

	for (uint32_t page = 0; page < pages_of_image(walk, entry); page++, walk->check->pages++) {
		int result = image_examine_page(walk->store, NAND_CAUSE_RECOVERY, entry, page,
						walk->data);

		if (result == -EBADMSG)
			findings_add(walk->check->findings, FINDING_PARITY,
				     "flash page %llu (index, group %u of row %u) is lost, and "
				     "parity has it",
				     (unsigned long long)directory_image_page(
					     &walk->store->geometry, entry, page),
				     group, row);
		lost += result == -EIO;
	}
	if (lost)
		findings_add(walk->check->findings, FINDING_PARITY,
			     "index, group %u of row %u: %u pages of its image are lost, more than "
			     "parity has; it is made again from its segments",
			     group, row, lost);
}

static void check_images(struct walk *walk)
{
	const uint8_t *entry;
	uint32_t n = 0;

	while ((entry = directory_next(walk->store, &n)) != NULL)
		check_image(walk, entry);
}

static uint64_t pages_to_read(const struct walk *walk)
{
	const struct muninn_store *store = walk->store;
	uint64_t segments = 0, of_images = 0;
	const uint8_t *entry;
	uint32_t n = 0;

	while ((entry = directory_next(store, &n)) != NULL)
		of_images += pages_of_image(walk, entry);
	for (uint32_t segment = 0; segment < store->geometry.segments; segment++)
		segments += store->segment_rows[segment] != NO_ROW;
	return segments * store->geometry.segment_pages + of_images;
}

int check_store(struct record_store *store_, struct record_check *check)
{
	struct muninn_store *store = (struct muninn_store *)store_;
	struct walk walk = {
		.store = store,
		.check = check,
		.visibility = store_visibility(store, RECORD_NEWEST),
		.data = malloc(2 * (size_t)store->geometry.page_bytes),
		.spare = malloc(nand_geometry(store->nand)->spare_bytes),
	};
	int result = walk.data && walk.spare ? 0 : -ENOMEM;

	walk.pages_total = pages_to_read(&walk);
	if (!result)
		check_images(&walk);
	for (uint32_t number = 0; !result && number < store->geometry.rows; number++)
		check_row(&walk, number);
	free(walk.data);
	free(walk.spare);
	return result;
}

/* ---- before opening ---- */

void check_device(struct nand *nand, struct findings *findings)
{
	struct found_root found;

	if (root_find(nand, &found) == -ENOENT)
		findings_add(findings, FINDING_ROOT,
			     "the flash has no whole root, which would stand in for a lost NVRAM");
	else if (found.pages_restored)
		findings_add(findings, FINDING_PARITY,
			     "%u flash pages of root %llu are lost, and parity has them",
			     found.pages_restored, (unsigned long long)found.header.serial);
	root_found_free(&found);
}
