/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Decodes single pages. A page of records says all by itself. A page of an image says which group
 * it is of; which part of the image it is follows from the directory. A page of a root says which
 * part it is, and the others are in the ring.
 */
#include "engine/muninn/dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/muninn/directory.h"
#include "engine/muninn/header.h"
#include "engine/muninn/index/index.h"
#include "engine/muninn/root_find.h"

struct muninn_dump {
	struct nand *nand;
	dump_key_teller *tell_key;
	bool has_geometry;
	struct muninn_geometry geometry;
	/* The directory: entries `stride` bytes apart, in NVRAM or in the root. */
	const uint8_t *entries;
	uint32_t entry_count, stride;
	const char *named_by;
	uint8_t *entry; /* the one that a page belongs to: NVRAM may change meanwhile */
	struct found_root root;
	struct error_text trouble;
};

/* ---- what the device says of itself ---- */

static void take_nvram(struct muninn_dump *dump, const uint8_t *nvram)
{
	dump->has_geometry = true;
	dump->entries = nvram + NVRAM_DIRECTORY_AT;
	dump->entry_count = dump->geometry.directory_entries;
	dump->stride = dump->geometry.directory_entry_bytes;
	dump->named_by = "NVRAM";
}

static void take_root(struct muninn_dump *dump, const char *why)
{
	const struct root_header *header = &dump->root.header;

	dump->has_geometry = true;
	dump->geometry = dump->root.geometry;
	dump->entries = dump->root.entries;
	dump->entry_count = dump->root.entry_count;
	dump->stride = dump->geometry.root_entry_bytes;
	dump->named_by = "root";
	error_set(&dump->trouble, 0, "%s; what pages of the index are is told by root %llu", why,
		  (unsigned long long)header->serial);
}

static int find_geometry(struct muninn_dump *dump, struct error_text *error)
{
	struct error_text why;
	uint64_t bytes;
	const uint8_t *nvram = nand_nvram(dump->nand, &bytes);
	int result = bytes < NVRAM_PAGE ? error_set(&why, -ENODEV, "the NVRAM has no header")
					: header_read(nvram, dump->nand, &dump->geometry, &why);

	if (result == -EPROTO)
		return error_set(error, result, "%s", why.text);
	if (!result && bytes >= dump->geometry.nvram_bytes) {
		take_nvram(dump, nvram);
		return 0;
	}
	result = root_find(dump->nand, &dump->root);
	if (!result)
		take_root(dump, why.text);
	else if (result == -ENOENT)
		error_set(&dump->trouble, 0,
			  "%s, and there is no whole root; segments and parts of the index are not "
			  "told",
			  why.text);
	return result == -ENOENT ? 0 : result;
}

int muninn_dump_begin(struct nand *nand, dump_key_teller *tell_key, struct muninn_dump **to,
		      struct error_text *error)
{
	struct muninn_dump *dump = calloc(1, sizeof(*dump));
	int result = dump ? 0 : -ENOMEM;

	*to = NULL;
	if (!result) {
		dump->nand = nand;
		dump->tell_key = tell_key;
		result = find_geometry(dump, error);
	}
	if (!result && dump->has_geometry) {
		dump->entry = malloc(dump->geometry.root_entry_bytes);
		result = dump->entry ? 0 : -ENOMEM;
	}
	if (!result)
		*to = dump;
	else
		muninn_dump_end(dump);
	return result == -ENOMEM ? error_set(error, result, "out of memory") : result;
}

void muninn_dump_end(struct muninn_dump *dump)
{
	if (!dump)
		return;
	root_found_free(&dump->root);
	free(dump->entry);
	free(dump);
}

const char *muninn_dump_trouble(const struct muninn_dump *dump)
{
	return dump->trouble.text[0] ? dump->trouble.text : NULL;
}

/* ---- what all pages have ---- */

static void tell_kind(const struct fields *to, const char *kind, const char *holds)
{
	field_text(to, "kind", kind);
	field_text(to, "holds", holds);
}

static void tell_place(const struct muninn_dump *dump, uint64_t page, const struct fields *to)
{
	if (!dump->has_geometry)
		return;
	field_number(to, "segment", page / dump->geometry.segment_pages);
	field_number(to, "segment_page", page % dump->geometry.segment_pages);
}

/* ---- records ---- */

/* For people a letter each. */
static void tell_flags(uint8_t flags, const struct fields *to)
{
	char text[4] = "";
	size_t length = 0;

	if (flags & RECORD_ABSORB)
		text[length++] = 'A';
	if (flags & RECORD_MOVED)
		text[length++] = 'M';
	if (flags & RECORD_TOMBSTONE)
		text[length++] = 'T';
	field_text(to, "flags", text);
	field_detail(to, FIELD_FLAG, "absorb", (flags & RECORD_ABSORB) != 0);
	field_detail(to, FIELD_FLAG, "moved", (flags & RECORD_MOVED) != 0);
	field_detail(to, FIELD_FLAG, "tombstone", (flags & RECORD_TOMBSTONE) != 0);
}

static void tell_record(const struct muninn_dump *dump, uint64_t at,
			const struct page_record *record, bool is_intact, const struct fields *to)
{
	struct record_header header;

	record_header_decode(record->header, &header);
	field_row(to);
	field_number(to, "at", at);
	field_number(to, "length", header.length);
	field_number(to, "sequence", header.sequence);
	field_flag(to, "intact", is_intact);
	tell_flags(header.flags, to);
	dump->tell_key(to, &header.key);
	field_detail(to, FIELD_NUMBER, "partition_index", header.key.partition);
	field_detail(to, FIELD_HEX, "identifier", header.key.identifier);
	field_detail(to, FIELD_HEX, "piece", header.key.piece);
	field_detail(to, FIELD_NUMBER, "class", header.key.class);
	field_detail(to, FIELD_NUMBER, "epoch", header.epoch);
	field_detail(to, FIELD_NUMBER, "crc32c", header.crc);
}

/* Goes through the records; `to` NULL: counts them only. Returns how many; adds damaged ones. */
static uint32_t walk_records(const struct muninn_dump *dump, const struct page_view *view,
			     uint32_t *damaged, uint32_t *end, const struct fields *to)
{
	struct page_record record;
	uint32_t offset = 0, at = view->begin, count = 0;

	for (; page_next(view, &offset, &record); at = offset, count++) {
		bool is_intact = !record.cut &&
				 record_is_intact(record.header, view->serial, record.value);

		*damaged += !is_intact;
		if (to)
			tell_record(dump, at, &record, is_intact, to);
	}
	*end = offset;
	return count;
}

/* Whether the page behind one is the one that its last record ends in; it is put behind its data.
 */
static bool read_behind(const struct muninn_dump *dump, const struct page_view *view, uint8_t *data)
{
	uint32_t page_bytes = nand_geometry(dump->nand)->page_bytes;
	uint8_t bytes[4096];
	struct nand_page_io io = { .page = view->number + 1,
				   .data = data + page_bytes,
				   .spare = bytes };
	struct page_spare spare;
	struct page_view behind;

	if (nand_read(dump->nand, NAND_CAUSE_RECOVERY, &io, 1) ||
	    !page_spare_decode(bytes, page_bytes, &spare))
		return false;
	behind = page_view_of(&spare, io.page, io.data);
	return page_goes_on(view, &behind);
}

static void tell_records(const struct muninn_dump *dump, const struct nand_page_dump *page,
			 const struct page_spare *spare, enum dump_depth depth,
			 const struct fields *to)
{
	uint8_t data[2 * MUNINN_PAGE_BYTES_MAX];
	struct page_view view = page_view_of(spare, page->page, data);
	uint32_t damaged = 0, again = 0, end, count;
	char holds[96];

	memcpy(data, page->data, nand_geometry(dump->nand)->page_bytes);
	view.follows = view.beyond && read_behind(dump, &view, data);
	count = walk_records(dump, &view, &damaged, &end, NULL);

	snprintf(holds, sizeof(holds), damaged ? "%u record%s, %u damaged" : "%u record%s", count,
		 count == 1 ? "" : "s", damaged);
	tell_kind(to, "records", holds);
	field_number(to, "row", spare->row);
	field_number(to, "serial", spare->serial);
	tell_place(dump, page->page, to);
	field_number(to, "used_bytes", spare->used);
	if (depth == DUMP_BRIEF)
		return;
	field_flag(to, "large", spare->large);
	field_flag(to, "unfinished", spare->unfinished);
	if (dump->has_geometry)
		field_number(to, "parity_share_bytes", dump->geometry.parity.share_bytes);
	/* Records that a damaged length hides. */
	field_number(to, "bytes_without_record", page_end(&view) - end);
	field_number(to, "bytes_of_record_before", view.begin);
	field_number(to, "bytes_in_page_behind", view.beyond);
	field_list(to, "records");
	walk_records(dump, &view, &again, &end, to);
	field_end(to);
}

/* ---- images of the index ---- */

static uint32_t entry_pages(const struct muninn_dump *dump)
{
	return run_pages(&dump->geometry, get_le32(dump->entry + DIRECTORY_BYTES_AT));
}

/* Copies the entry whose image has the page, and says which page of it. False: there is none. */
static bool find_entry(const struct muninn_dump *dump, uint64_t page, uint64_t serial,
		       uint32_t *part)
{
	struct error_text why;

	for (uint32_t n = 0; n < dump->entry_count; n++) {
		memcpy(dump->entry, dump->entries + (uint64_t)n * dump->stride,
		       dump->geometry.root_entry_bytes);
		if (get_le64(dump->entry + DIRECTORY_LIVE_AT) == 0 ||
		    get_le32(dump->entry + DIRECTORY_ROW_AT) != serial >> 32 ||
		    get_le32(dump->entry + DIRECTORY_GROUP_AT) != (uint32_t)serial ||
		    directory_check_entry(&dump->geometry, dump->entry, &why))
			continue;
		for (*part = 0; *part < entry_pages(dump); ++*part)
			if (directory_image_page(&dump->geometry, dump->entry, *part) == page)
				return true;
	}
	return false;
}

/* Reads an image; what is lost of it is zeros, and counted. */
static void read_image(const struct muninn_dump *dump, uint8_t *image, uint32_t *lost)
{
	uint32_t bytes = get_le32(dump->entry + DIRECTORY_BYTES_AT);

	for (uint32_t part = 0; part < run_pages_own(&dump->geometry, bytes); part++) {
		struct nand_page_io io = {
			.page = directory_image_page(&dump->geometry, dump->entry, part),
			.data = image + (uint64_t)part * dump->geometry.page_bytes,
		};

		if (nand_read(dump->nand, NAND_CAUSE_RECOVERY, &io, 1) == 0)
			continue;
		memset(io.data, 0, dump->geometry.page_bytes);
		++*lost;
	}
}

static void tell_image(const struct muninn_dump *dump, const struct fields *to)
{
	uint32_t bytes = get_le32(dump->entry + DIRECTORY_BYTES_AT), lost = 0;
	uint64_t live = get_le64(dump->entry + DIRECTORY_LIVE_AT);
	uint8_t *image = calloc(run_pages_own(&dump->geometry, bytes), dump->geometry.page_bytes);
	bool is_told = false;

	field_text(to, "index_kind", index_kind_name(dump->geometry.index));
	if (image) {
		read_image(dump, image, &lost);
		field_number(to, "image_pages_lost", lost);
		is_told = index_tell_image(&dump->geometry, image, bytes, live, to);
	}
	if (!is_told)
		field_text(to, "image",
			   image ? "its header is lost or damaged" : "no memory to read it");
	free(image);
}

static void tell_group(const struct muninn_dump *dump, const struct nand_page_dump *page,
		       const struct page_spare *spare, enum dump_depth depth,
		       const struct fields *to)
{
	uint32_t row = (uint32_t)(spare->serial >> 32), group = (uint32_t)spare->serial;
	uint32_t part = 0, own = 0;
	bool is_named = dump->has_geometry && find_entry(dump, page->page, spare->serial, &part);
	char holds[96];

	if (is_named)
		own = run_pages_own(&dump->geometry, get_le32(dump->entry + DIRECTORY_BYTES_AT));
	if (!is_named)
		snprintf(holds, sizeof(holds), "group %u, of an image that nothing names", group);
	else if (part < own)
		snprintf(holds, sizeof(holds), "group %u, page %u of %u", group, part + 1, own);
	else
		snprintf(holds, sizeof(holds), "group %u, parity %u of %u", group, part - own + 1,
			 entry_pages(dump) - own);
	tell_kind(to, is_named && part >= own ? "index parity" : "index", holds);
	field_number(to, "row", row);
	field_number(to, "group", group);
	tell_place(dump, page->page, to);
	field_number(to, "used_bytes", spare->used);
	if (depth == DUMP_BRIEF || !is_named)
		return;
	field_text(to, "named_by", dump->named_by);
	field_number(to, "image_part", part);
	field_number(to, "image_bytes", get_le32(dump->entry + DIRECTORY_BYTES_AT));
	field_number(to, "image_pages", own);
	field_number(to, "image_parity_pages", entry_pages(dump) - own);
	field_number(to, "image_first_page", directory_image_page(&dump->geometry, dump->entry, 0));
	if (depth == DUMP_WHOLE || part == 0)
		tell_image(dump, to);
}

/* ---- roots ---- */

static void tell_header(const struct root_header *header, const struct fields *to)
{
	field_number(to, "bytes", header->bytes);
	field_number(to, "committed", header->committed);
	field_number(to, "sealed", header->sealed);
	field_number(to, "next_serial", header->next_serial);
	field_number(to, "void_before", header->void_before);
	field_number(to, "aborted_ranges", header->aborted_count);
}

/* What the device was formatted with: the static header in the root. */
static void tell_geometry(const struct muninn_geometry *geometry, const struct fields *to)
{
	field_number(to, "hashed_rows", geometry->hashed_rows);
	field_number(to, "segment_pages", geometry->segment_pages);
	field_number(to, "record_bytes", geometry->record_bytes);
	field_number(to, "over_provision_permille", geometry->over_provision_permille);
	field_text(to, "index_kind", index_kind_name(geometry->index));
	field_number(to, "parity", geometry->parity.losses);
	field_number(to, "ring_segments", geometry->root_segments);
}

static void tell_aborted(const struct found_root *found, const struct fields *to)
{
	const uint8_t *at = found->bytes + root_aborted_at();

	field_list(to, "aborted");
	for (uint64_t n = 0; n < found->header.aborted_count; n++, at += ABORTED_RANGE_BYTES) {
		field_row(to);
		field_number(to, "first", get_le64(at));
		field_number(to, "last", get_le64(at + 8));
	}
	field_end(to);
}

static void tell_entry(const struct muninn_geometry *geometry, const uint8_t *entry,
		       const struct fields *to)
{
	struct error_text why;

	field_row(to);
	field_number(to, "row", get_le32(entry + DIRECTORY_ROW_AT));
	field_number(to, "group", get_le32(entry + DIRECTORY_GROUP_AT));
	field_number(to, "image_bytes", get_le32(entry + DIRECTORY_BYTES_AT));
	if (directory_check_entry(geometry, entry, &why) == 0)
		field_number(to, "first_page", directory_image_page(geometry, entry, 0));
	field_hex(to, "live", get_le64(entry + DIRECTORY_LIVE_AT));
}

static void tell_directory(const struct found_root *found, const struct fields *to)
{
	const struct muninn_geometry *geometry = &found->geometry;
	const uint8_t *at = found->bytes + root_entries_at(&found->header);

	field_list(to, "directory");
	for (uint32_t n = 0; n < found->header.count; n++, at += geometry->root_entry_bytes)
		tell_entry(geometry, at, to);
	field_end(to);
}

static void tell_rows(const struct found_root *found, const struct fields *to)
{
	const uint8_t *rows = found->bytes + root_rows_at(&found->geometry, &found->header);
	const uint8_t *at = rows;

	field_list(to, "rows");
	for (uint32_t row = 0; row < found->geometry.rows; row++, at += root_row_bytes(at)) {
		field_row(to);
		field_number(to, "row", row);
		field_number(to, "growing_group", get_le32(at + ROOT_ROW_GROUP_AT));
		field_number(to, "members", get_le32(at + ROOT_ROW_MEMBERS_AT));
		field_hex(to, "live", get_le64(at + ROOT_ROW_LIVE_AT));
		field_number(to, "buffer_serial", get_le64(at + ROOT_ROW_SERIAL_AT));
	}
	field_end(to);
	at = rows;
	field_list(to, "growing");
	for (uint32_t row = 0; row < found->geometry.rows; row++, at += root_row_bytes(at))
		for (uint32_t n = 0; n < get_le32(at + ROOT_ROW_MEMBERS_AT); n++) {
			field_row(to);
			field_number(to, "row", row);
			field_number(to, "group", get_le32(at + ROOT_ROW_GROUP_AT));
			field_number(to, "member", n);
			field_number(to, "segment", get_le32(at + ROOT_ROW_BYTES + 4 * n));
			field_flag(to, "live", get_le64(at + ROOT_ROW_LIVE_AT) >> n & 1);
		}
	field_end(to);
}

static void tell_list(const struct found_root *found, const struct fields *to)
{
	field_number(to, "base", found->list_header.base);
	tell_header(&found->list_header, to);
	field_list(to, "kills");
	for (uint32_t n = 0; n < found->list_header.count; n++) {
		struct root_kill kill;

		root_read_kill(found->list, n, &kill);
		field_row(to);
		field_number(to, "row", kill.row);
		field_number(to, "group", kill.group);
		field_number(to, "member", kill.member);
		field_number(to, "segment", kill.segment);
		field_number(to, "serial", kill.serial);
	}
	field_end(to);
	field_list(to, "groups");
	for (uint32_t n = 0; n < found->list_header.groups; n++) {
		const uint8_t *group =
			root_list_group(&found->geometry, found->list, found->list_header.count, n);

		tell_entry(&found->geometry, group + ROOT_GROUP_ENTRY_AT, to);
		field_number(to, "buffer_serial", get_le64(group + ROOT_GROUP_SERIAL_AT));
	}
	field_end(to);
}

static void tell_whole_root(const struct muninn_dump *dump, uint64_t serial,
			    const struct fields *to)
{
	struct found_root found;
	int result = root_find_serial(dump->nand, serial, &found);

	field_flag(to, "whole", result == 0);
	field_number(to, "pages_lost", found.pages_missing);
	if (!result && found.list) {
		tell_list(&found, to);
	} else if (!result) {
		tell_header(&found.header, to);
		tell_geometry(&found.geometry, to);
		tell_aborted(&found, to);
		tell_directory(&found, to);
		tell_rows(&found, to);
	}
	root_found_free(&found);
}

static void tell_root(const struct muninn_dump *dump, const struct nand_page_dump *page,
		      const struct page_spare *spare, enum dump_depth depth,
		      const struct fields *to)
{
	bool is_parity = spare->part >= spare->parts;
	bool is_list = !is_parity && spare->part == 0 && get_le64(page->data) == LIST_MAGIC;
	unsigned long long serial = spare->serial;
	char holds[96];

	if (is_parity)
		snprintf(holds, sizeof(holds), "root %llu, parity %u", serial,
			 spare->part - spare->parts + 1);
	else if (is_list)
		snprintf(holds, sizeof(holds), "list of changes %llu", serial);
	else
		snprintf(holds, sizeof(holds), "root %llu, page %u of %u", serial, spare->part + 1,
			 spare->parts);
	tell_kind(to, is_parity ? "root parity" : is_list ? "list" : "root", holds);
	field_number(to, "serial", serial);
	tell_place(dump, page->page, to);
	field_number(to, "used_bytes", spare->used);
	if (depth == DUMP_BRIEF)
		return;
	field_number(to, "part", spare->part);
	field_number(to, "parts", spare->parts);
	if (depth == DUMP_WHOLE || spare->part == 0)
		tell_whole_root(dump, serial, to);
}

/* ---- any page ---- */

void muninn_dump_page(struct muninn_dump *dump, const struct nand_page_dump *page,
		      enum dump_depth depth, const struct fields *to)
{
	uint32_t page_bytes = nand_geometry(dump->nand)->page_bytes;
	struct page_spare spare;

	if (page->verdict == -ENODATA) {
		field_text(to, "kind", "erased");
		tell_place(dump, page->page, to);
		return;
	}
	if (page_bytes > MUNINN_PAGE_BYTES_MAX ||
	    !page_spare_decode(page->spare, page_bytes, &spare)) {
		tell_kind(to, page->verdict ? "unreadable" : "foreign",
			  page->verdict ? "its spare area says nothing" : "no page of this engine");
		tell_place(dump, page->page, to);
		return;
	}
	switch ((enum page_kind)spare.kind) {
	case PAGE_KIND_RECORDS:
		tell_records(dump, page, &spare, depth, to);
		break;
	case PAGE_KIND_GROUP:
		tell_group(dump, page, &spare, depth, to);
		break;
	case PAGE_KIND_ROOT:
		tell_root(dump, page, &spare, depth, to);
		break;
	}
}
