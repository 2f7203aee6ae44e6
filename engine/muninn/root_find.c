/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Finds the newest root on a device about which nothing else is known.
 *
 * The first page of a segment of the ring begins a root. A root holds the device's static header,
 * and so tells where the other segments of the ring are. Within each of them pages are in the order
 * of their serials: the last ones tell where to look. How far a segment is programmed is known
 * without a read. A root that is not whole is passed over for the one before it.
 */
#include "engine/muninn/root_find.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/header.h"
#include "engine/records/space.h"

/*
 * Pages of a segment of the ring that have not been looked at. `spare` belongs to the last one, if
 * `known`.
 */
struct cursor {
	uint32_t end;
	bool known;
	struct page_spare spare;
};

struct search {
	struct nand *nand;
	struct found_root *found;
	struct cursor *cursors;
	uint8_t *spare_bytes;
	struct parity parity; /* of the device that was found */
	uint8_t *scratch;
};

/* `data` may be NULL. False: it can't be read, or is no page of a root. */
static bool read_page(struct search *search, uint64_t page, uint8_t *data, struct page_spare *spare)
{
	struct nand_page_io io = { .page = page, .data = data, .spare = search->spare_bytes };

	search->found->pages_read++;
	return nand_read(search->nand, NAND_CAUSE_RECOVERY, &io, 1) == 0 &&
	       page_spare_decode(search->spare_bytes, nand_geometry(search->nand)->page_bytes,
				 spare) &&
	       spare->kind == PAGE_KIND_ROOT;
}

/*
 * Takes the geometry from a page that begins a root, in a segment of the ring that this describes.
 */
static bool read_geometry(struct search *search, uint64_t page)
{
	struct muninn_geometry *geometry = &search->found->geometry;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	struct page_spare spare;
	struct error_text why;

	return read_page(search, page, data, &spare) && spare.part == 0 &&
	       get_le64(data) == ROOT_MAGIC &&
	       header_read_of_root(data + ROOT_HEADER_BYTES, search->nand, geometry, &why) == 0 &&
	       page / geometry->segment_pages < geometry->root_segments;
}

/*
 * Where the first page of all is lost, a later root in the same segment tells, or the first page of
 * another one. A new device has two roots in its first segment. One page after the other, so that
 * these are found before what an earlier format with another ring has left.
 */
static bool find_geometry(struct search *search)
{
	const struct nand_geometry *nand = nand_geometry(search->nand);
	uint64_t pages = (uint64_t)nand->blocks * nand->pages_per_block;

	if (nand->page_bytes > MUNINN_PAGE_BYTES_MAX)
		return false;
	pages = min_u64(pages, MUNINN_SEGMENT_PAGES_MAX + 1);
	for (uint64_t page = 0; page < pages; page++)
		if (read_geometry(search, page))
			return true;
	return false;
}

static uint64_t last_page(const struct search *search, const struct cursor *cursor)
{
	uint32_t segment = (uint32_t)(cursor - search->cursors);

	return segment_page(&search->found->geometry, segment) + cursor->end - 1;
}

/* Looks at the last page that is left. False: there is none. */
static bool look(struct search *search, struct cursor *cursor)
{
	for (; !cursor->known && cursor->end; cursor->end -= !cursor->known)
		cursor->known = read_page(search, last_page(search, cursor), NULL, &cursor->spare);
	return cursor->known;
}

static void pass(struct cursor *cursor)
{
	cursor->known = false;
	cursor->end--;
}

/*
 * The cursor at the highest serial; NULL: all pages have been looked at. Of a root through several
 * segments it is the one at the last part, where the ring goes on.
 */
static struct cursor *newest(struct search *search)
{
	struct cursor *best = NULL;

	for (uint32_t n = 0; n < search->found->geometry.root_segments; n++) {
		struct cursor *cursor = &search->cursors[n];

		if (look(search, cursor) &&
		    (!best || root_page_is_behind(&cursor->spare, &best->spare)))
			best = cursor;
	}
	return best;
}

/*
 * Makes missing pages again, as far as that is needed. Those of parity may be missing because the
 * power failed before they were written.
 */
static bool restore(struct search *search, uint8_t *bytes, uint32_t parts, uint32_t all,
		    const bool *missing)
{
	uint32_t own = 0, more = 0;

	for (uint32_t part = 0; part < all; part++) {
		own += part < parts && missing[part];
		more += part >= parts && missing[part];
	}
	if (own && parity_run_restore(&search->parity, bytes, parts, missing, search->scratch))
		return false;
	search->found->pages_missing += own + more;
	search->found->pages_restored += own;
	return true;
}

/* Reads all pages with the serial that is wanted, and passes them. NULL: too many are missing. */
static uint8_t *gather(struct search *search, const struct page_spare *wanted)
{
	const struct muninn_geometry *geometry = &search->found->geometry;
	uint64_t serial = wanted->serial;
	uint32_t parts = wanted->parts;
	bool fits = parts > 0 && parts <= run_pages_own(geometry, geometry->root_bytes_max);
	uint32_t all = fits ? parts + parity_run_more(&geometry->parity, parts) : 0;
	uint8_t *bytes = fits ? calloc(all, geometry->page_bytes) : NULL;
	bool *missing = fits ? malloc(all * sizeof(*missing)) : NULL;

	if (missing)
		memset(missing, true, all * sizeof(*missing));
	for (uint32_t n = 0; n < geometry->root_segments; n++) {
		struct cursor *cursor = &search->cursors[n];

		for (; look(search, cursor) && cursor->spare.serial == serial; pass(cursor)) {
			uint32_t part = cursor->spare.part;

			if (!bytes || !missing || part >= all || !missing[part] ||
			    !read_page(search, last_page(search, cursor),
				       bytes + (uint64_t)part * geometry->page_bytes,
				       &cursor->spare))
				continue;
			missing[part] = false;
		}
	}
	if (bytes && (!missing || !restore(search, bytes, parts, all, missing))) {
		free(bytes);
		bytes = NULL;
	}
	free(missing);
	return bytes;
}

/* Whether a root's parts lie within it. */
static bool root_is_sound(const struct muninn_geometry *geometry, const uint8_t *bytes,
			  const struct root_header *header)
{
	uint64_t at;

	if (header->aborted_count > MUNINN_ABORTED_MAX ||
	    header->count > geometry->directory_entries)
		return false;
	at = root_rows_at(geometry, header);
	for (uint32_t row = 0; row < geometry->rows; row++) {
		if (at + ROOT_ROW_BYTES > header->bytes)
			return false;
		if (get_le32(bytes + at + ROOT_ROW_MEMBERS_AT) > GROUP_SEGMENTS)
			return false;
		at += root_row_bytes(bytes + at);
	}
	return at == header->bytes;
}

/* Whether a list's parts lie within it. */
static bool list_is_sound(const struct muninn_geometry *geometry, const uint8_t *bytes,
			  const struct root_header *header)
{
	if (header->bytes != root_list_bytes(geometry, header->count, header->groups))
		return false;
	for (uint32_t n = 0; n < header->groups; n++) {
		const uint8_t *group = root_list_group(geometry, bytes, header->count, n);

		if (get_le32(group + ROOT_GROUP_ENTRY_AT + DIRECTORY_ROW_AT) >= geometry->rows)
			return false;
	}
	return true;
}

static void forget_list(struct found_root *found)
{
	free(found->list);
	found->list = NULL;
}

/* Takes over `bytes`: a root, or the newest list of one. False: they are of no use. */
static bool take(struct found_root *found, uint8_t *bytes, const struct root_header *header)
{
	if (header->magic == LIST_MAGIC) {
		if ((found->list && header->base == found->list_header.base) ||
		    !list_is_sound(&found->geometry, bytes, header))
			return false;
		/* The root of a newer list is lost: it has been passed. */
		if (found->list) {
			found->lost = found->list_header.base;
			forget_list(found);
		}
		found->list = bytes;
		found->list_header = *header;
		return true;
	}
	if (!root_is_sound(&found->geometry, bytes, header))
		return false;
	found->bytes = bytes;
	found->header = *header;
	return true;
}

/* Reads the root or list that a cursor is at, and passes it. */
static void read_one(struct search *search, const struct cursor *cursor)
{
	struct page_spare spare = cursor->spare;
	uint8_t *bytes = gather(search, &spare);
	struct root_header header;

	if (!bytes ||
	    !root_header_decode(bytes, spare.parts * search->found->geometry.page_bytes, &header) ||
	    header.serial != spare.serial || !take(search->found, bytes, &header))
		free(bytes);
}

/* What the directory had when the list was written, and what has been merged away since the root.
 */
static int gather_entries(struct found_root *found)
{
	const struct muninn_geometry *geometry = &found->geometry;
	uint32_t groups = found->list ? found->list_header.groups : 0;
	uint64_t bytes = geometry->root_entry_bytes;
	uint64_t count = (uint64_t)found->header.count + groups;
	uint8_t *to = malloc(count * bytes + 1);

	if (!to)
		return -ENOMEM;
	memcpy(to, found->bytes + root_entries_at(&found->header), found->header.count * bytes);
	found->entries = to;
	found->entry_count = (uint32_t)count;
	to += found->header.count * bytes;
	for (uint32_t n = 0; n < groups; n++, to += bytes)
		memcpy(to,
		       root_list_group(geometry, found->list, found->list_header.count, n) +
			       ROOT_GROUP_ENTRY_AT,
		       bytes);
	return 0;
}

/*
 * The newest root, and the newest list of changes that goes with it. Goes from the highest serial
 * down: lists are newer than the root that they continue, so they come first.
 */
static int find_newest(struct search *search)
{
	struct found_root *found = search->found;
	struct cursor *cursor;

	while (!found->bytes && (cursor = newest(search)) != NULL) {
		if (found->serial_most == 0) {
			found->serial_most = cursor->spare.serial;
			found->segment = (uint32_t)(cursor - search->cursors);
		}
		read_one(search, cursor);
	}
	if (found->bytes && found->list && found->list_header.base != found->header.serial) {
		found->lost = found->list_header.base;
		forget_list(found);
	}
	if (!found->bytes)
		return -ENOENT;
	return gather_entries(found);
}

static int find_serial(struct search *search, uint64_t serial)
{
	const struct found_root *found = search->found;
	struct cursor *cursor;

	while (!found->bytes && !found->list && (cursor = newest(search)) != NULL &&
	       cursor->spare.serial >= serial)
		if (cursor->spare.serial == serial)
			read_one(search, cursor);
		else
			pass(cursor);
	return found->bytes || found->list ? 0 : -ENOENT;
}

/* Finds the ring, and puts the cursors at the ends of its segments. -ENOENT, -ENOMEM. */
static int begin(struct search *search)
{
	struct nand *nand = search->nand;
	struct found_root *found = search->found;
	int result = -ENOMEM;

	*found = (struct found_root){ .bytes = NULL };
	search->spare_bytes = malloc(nand_spare_usable(nand_geometry(nand)));
	if (search->spare_bytes)
		result = find_geometry(search) ? 0 : -ENOENT;
	if (!result) {
		search->cursors = calloc(found->geometry.root_segments, sizeof(*search->cursors));
		result = search->cursors ? 0 : -ENOMEM;
	}
	if (!result) {
		search->scratch = malloc(parity_scratch_bytes(&found->geometry.parity));
		result = parity_create(&search->parity, &found->geometry.parity);
		result = search->scratch ? result : -ENOMEM;
	}
	for (uint32_t n = 0; !result && n < found->geometry.root_segments; n++)
		if (segment_end(nand, found->geometry.segment_blocks, n, &search->cursors[n].end))
			search->cursors[n].end = 0;
	return result;
}

/* Also of one that has not begun. */
static void end(struct search *search)
{
	parity_destroy(&search->parity);
	free(search->scratch);
	free(search->cursors);
	free(search->spare_bytes);
}

int root_find(struct nand *nand, struct found_root *found)
{
	struct search search = { .nand = nand, .found = found };
	int result = begin(&search);

	if (!result)
		result = find_newest(&search);
	end(&search);
	return result;
}

int root_find_serial(struct nand *nand, uint64_t serial, struct found_root *found)
{
	struct search search = { .nand = nand, .found = found };
	int result = begin(&search);

	if (!result)
		result = find_serial(&search, serial);
	end(&search);
	return result;
}

void root_found_free(struct found_root *found)
{
	free(found->bytes);
	free(found->entries);
	found->bytes = found->entries = NULL;
	forget_list(found);
}
