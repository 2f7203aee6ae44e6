/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes lost pages again from the others of their group, and knows what lost any: segments, images
 * of the index, the root.
 */
#include "engine/muninn/repair.h"

#include <malloc.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/page.h"

/* What is known of a segment. */
enum {
	SEGMENT_WAITS = 1, /* to be moved */
	SEGMENT_LOST = 2,  /* has a page that is lost for good; read without the lock */
};

struct repair {
	pthread_mutex_t lock; /* of all the rest */
	/* A group of pages. NULL: there is no parity. */
	struct nand_page_io *ios;
	uint8_t *data, *spares, *scratch;
	uint8_t *segments; /* marks of each */
	uint32_t waiting;  /* segments that do */
	uint32_t next;     /* the first one of these, or one before it */
	uint64_t *images;  /* to be written anew: row << 32 | group, in that order */
	uint32_t image_count;
	bool root; /* another one is to be written */
	uint64_t pages_repaired, pages_lost;
};

/* ---- memory ---- */

static int create_group(struct repair *repair, struct muninn_store *store)
{
	const struct parity_shape *shape = &store->geometry.parity;
	uint32_t usable = nand_spare_usable(nand_geometry(store->nand));

	repair->ios = calloc(shape->group_pages, sizeof(*repair->ios));
	/* Of a run the pages of parity, too. */
	repair->data = malloc((size_t)(shape->group_pages + shape->losses) * shape->page_bytes);
	repair->spares = malloc((size_t)shape->group_pages * usable);
	repair->scratch = malloc(parity_scratch_bytes(shape));
	if (!repair->ios || !repair->data || !repair->spares || !repair->scratch)
		return -ENOMEM;
	for (uint32_t n = 0; n < shape->group_pages; n++) {
		repair->ios[n].data = repair->data + (size_t)n * shape->page_bytes;
		repair->ios[n].spare = repair->spares + (size_t)n * usable;
	}
	return 0;
}

int repair_create(struct muninn_store *store)
{
	struct repair *repair = calloc(1, sizeof(*repair));

	store->repair = repair;
	if (!repair)
		return -ENOMEM;
	pthread_mutex_init(&repair->lock, NULL);
	repair->segments = calloc(store->geometry.segments, sizeof(*repair->segments));
	repair->images = calloc(store->geometry.directory_entries, sizeof(*repair->images));
	if (!repair->segments || !repair->images)
		return -ENOMEM;
	return store->geometry.parity.losses ? create_group(repair, store) : 0;
}

void repair_destroy(struct muninn_store *store)
{
	struct repair *repair = store->repair;

	if (!repair)
		return;
	pthread_mutex_destroy(&repair->lock);
	free(repair->ios);
	free(repair->data);
	free(repair->spares);
	free(repair->scratch);
	free(repair->segments);
	free(repair->images);
	free(repair);
}

uint64_t repair_memory(const struct muninn_store *store)
{
	const struct repair *repair = store->repair;

	return malloc_usable_size(store->repair) + malloc_usable_size(repair->ios) +
	       malloc_usable_size(repair->data) + malloc_usable_size(repair->spares) +
	       malloc_usable_size(repair->scratch) + malloc_usable_size(repair->segments) +
	       malloc_usable_size(repair->images);
}

/* ---- segments that lost pages; under the lock ---- */

static bool is(const struct repair *repair, uint32_t segment, uint8_t mark)
{
	return __atomic_load_n(&repair->segments[segment], __ATOMIC_RELAXED) & mark;
}

static void set(struct repair *repair, uint32_t segment, uint8_t mark, bool value)
{
	uint8_t marks = (uint8_t)((repair->segments[segment] & ~mark) | (value ? mark : 0));

	repair->waiting -= repair->segments[segment] & SEGMENT_WAITS;
	repair->waiting += marks & SEGMENT_WAITS;
	__atomic_store_n(&repair->segments[segment], marks, __ATOMIC_RELAXED);
}

static void note_repaired(struct muninn_store *store, uint64_t page)
{
	struct repair *repair = store->repair;
	uint32_t segment = (uint32_t)(page / store->geometry.segment_pages);

	repair->pages_repaired++;
	if (is(repair, segment, SEGMENT_WAITS | SEGMENT_LOST))
		return;
	set(repair, segment, SEGMENT_WAITS, true);
	log_line(LOG_LEVEL_WARNING,
		 "%s: flash page %llu was lost and is made again from parity; what is in segment "
		 "%u is to be moved",
		 nand_path(store->nand), (unsigned long long)page, segment);
}

static void note_lost(struct muninn_store *store, uint64_t page)
{
	store->repair->pages_lost++;
	set(store->repair, (uint32_t)(page / store->geometry.segment_pages), SEGMENT_LOST, true);
}

bool repair_next(struct muninn_store *store, uint32_t *segment)
{
	struct repair *repair = store->repair;

	pthread_mutex_lock(&repair->lock);
	bool found = repair->waiting != 0;

	while (found && !is(repair, repair->next, SEGMENT_WAITS))
		repair->next = (repair->next + 1) % store->geometry.segments;
	*segment = repair->next;
	pthread_mutex_unlock(&repair->lock);
	return found;
}

uint32_t repair_waiting(struct muninn_store *store)
{
	const struct repair *repair = store->repair;

	pthread_mutex_lock(&store->repair->lock);
	uint32_t count = repair->waiting + repair->image_count + repair->root;

	pthread_mutex_unlock(&store->repair->lock);
	return count;
}

void repair_give_up(struct muninn_store *store, uint32_t segment)
{
	pthread_mutex_lock(&store->repair->lock);
	set(store->repair, segment, SEGMENT_WAITS, false);
	set(store->repair, segment, SEGMENT_LOST, true);
	pthread_mutex_unlock(&store->repair->lock);
}

bool repair_try_again(struct muninn_store *store)
{
	bool any = false;

	pthread_mutex_lock(&store->repair->lock);
	for (uint32_t segment = 0; segment < store->geometry.segments; segment++) {
		any |= is(store->repair, segment, SEGMENT_LOST);
		set(store->repair, segment, SEGMENT_LOST, false);
	}
	pthread_mutex_unlock(&store->repair->lock);
	return any;
}

void repair_forget(struct muninn_store *store, uint32_t segment)
{
	pthread_mutex_lock(&store->repair->lock);
	set(store->repair, segment, SEGMENT_WAITS | SEGMENT_LOST, false);
	pthread_mutex_unlock(&store->repair->lock);
}

bool repair_is_lost(const struct muninn_store *store, uint32_t segment)
{
	return is(store->repair, segment, SEGMENT_LOST);
}

void repair_count(struct muninn_store *store, uint64_t *repaired, uint64_t *lost)
{
	pthread_mutex_lock(&store->repair->lock);
	*repaired = store->repair->pages_repaired;
	*lost = store->repair->pages_lost;
	pthread_mutex_unlock(&store->repair->lock);
}

/* ---- images and roots that lost pages ---- */

static uint32_t find_image(const struct repair *repair, uint64_t image)
{
	uint32_t n = 0;

	while (n < repair->image_count && repair->images[n] != image)
		n++;
	return n;
}

void repair_note_image(struct muninn_store *store, uint32_t row, uint32_t group, uint64_t page)
{
	struct repair *repair = store->repair;
	uint64_t image = (uint64_t)row << 32 | group;

	pthread_mutex_lock(&repair->lock);
	/* There are as many as entries of the directory, or those of ended ones are still noted. */
	bool is_new = repair->image_count < store->geometry.directory_entries &&
		      find_image(repair, image) == repair->image_count;

	if (is_new)
		repair->images[repair->image_count++] = image;
	pthread_mutex_unlock(&repair->lock);
	if (is_new)
		log_line(LOG_LEVEL_WARNING,
			 "%s: index: flash page %llu was lost, of group %u of row %u; its image is "
			 "to be written anew",
			 nand_path(store->nand), (unsigned long long)page, group, row);
}

bool repair_next_image(struct muninn_store *store, uint32_t *row, uint32_t *group)
{
	struct repair *repair = store->repair;

	pthread_mutex_lock(&repair->lock);
	bool found = repair->image_count != 0;

	*row = (uint32_t)(repair->images[0] >> 32);
	*group = (uint32_t)repair->images[0];
	pthread_mutex_unlock(&repair->lock);
	return found;
}

void repair_end_image(struct muninn_store *store, uint32_t row, uint32_t group)
{
	struct repair *repair = store->repair;

	pthread_mutex_lock(&repair->lock);
	uint32_t n = find_image(repair, (uint64_t)row << 32 | group);

	if (n < repair->image_count) {
		repair->image_count--;
		memmove(&repair->images[n], &repair->images[n + 1],
			(repair->image_count - n) * sizeof(repair->images[0]));
	}
	pthread_mutex_unlock(&repair->lock);
}

static bool set_root(struct muninn_store *store, bool root)
{
	pthread_mutex_lock(&store->repair->lock);
	bool before = store->repair->root;

	store->repair->root = root;
	pthread_mutex_unlock(&store->repair->lock);
	return before;
}

void repair_note_root(struct muninn_store *store, uint64_t page)
{
	if (!set_root(store, true))
		log_line(LOG_LEVEL_WARNING,
			 "%s: flash page %llu was lost, of the root of the device; it is to be "
			 "written anew",
			 nand_path(store->nand), (unsigned long long)page);
}

bool repair_next_root(struct muninn_store *store)
{
	pthread_mutex_lock(&store->repair->lock);
	bool root = store->repair->root;

	pthread_mutex_unlock(&store->repair->lock);
	return root;
}

void repair_end_root(struct muninn_store *store)
{
	set_root(store, false);
}

/* ---- a group; under the lock ---- */

/* Reads all pages of a group but one. Returns how many are lost, that one too. */
static uint32_t read_group(struct muninn_store *store, enum nand_cause cause, uint64_t first,
			   uint32_t wanted, uint32_t *lost)
{
	struct repair *repair = store->repair;
	uint32_t pages = store->geometry.parity.group_pages, count = 0;
	bool whole;

	for (uint32_t n = 0; n < pages; n++)
		repair->ios[n].page = first + n;
	whole = nand_read(store->nand, cause, repair->ios, wanted) == 0 &&
		nand_read(store->nand, cause, &repair->ios[wanted + 1], pages - wanted - 1) == 0;
	for (uint32_t n = 0; n < pages; n++)
		if (n == wanted ||
		    (!whole && nand_read(store->nand, cause, &repair->ios[n], 1) != 0)) {
			if (count < PARITY_GROUP_PAGES_MAX)
				lost[count] = n;
			count++;
		}
	return count;
}

/*
 * Whether all records of a page are what was put: each has a sum of its own, which includes the
 * serial. One that ends in a page of another group is left to who reads it.
 */
static bool records_are_intact(const struct page_view *view)
{
	struct page_record record;
	uint32_t offset = 0;

	while (page_next(view, &offset, &record))
		if (!record.cut && !record_is_intact(record.header, view->serial, record.value))
			return false;
	return offset == page_end(view);
}

/* A page of the group; the next one is behind it in memory. */
static bool view_in_group(const struct muninn_store *store, uint32_t page, struct page_spare *spare,
			  struct page_view *view)
{
	const struct nand_page_io *io = &store->repair->ios[page];

	if (!page_spare_decode(io->spare, store->geometry.page_bytes, spare) ||
	    spare->kind != PAGE_KIND_RECORDS)
		return false;
	*view = page_view_of(spare, io->page, io->data);
	view->follows = page + 1 < store->geometry.parity.group_pages;
	return true;
}

/* Whether a page that was made again is what was put. Another page says which segment it is. */
static bool is_page_of(const struct muninn_store *store, uint32_t page, uint32_t other)
{
	struct page_spare spare, said;
	struct page_view view, saying;

	if (!view_in_group(store, page, &spare, &view) ||
	    !view_in_group(store, other, &said, &saying) || spare.serial != said.serial ||
	    spare.row != said.row || !records_are_intact(&view))
		return false;
	/* It may have the end of a record of the page before. */
	return !view.begin || page == 0 ||
	       (view_in_group(store, page - 1, &said, &saying) && page_goes_on(&saying, &view) &&
		records_are_intact(&saying));
}

/* The first page that is not among the lost ones, which are ascending. */
static uint32_t first_whole(const uint32_t *lost, uint32_t count)
{
	uint32_t page = 0;

	while (page < count && lost[page] == page)
		page++;
	return page;
}

static int make_again(struct muninn_store *store, enum nand_cause cause,
		      const struct nand_page_io *io)
{
	const struct parity_shape *shape = &store->geometry.parity;
	struct repair *repair = store->repair;
	uint32_t wanted = (uint32_t)(io->page % shape->group_pages);
	const struct nand_page_io *own = &repair->ios[wanted];
	uint32_t lost[PARITY_GROUP_PAGES_MAX];
	uint32_t count = read_group(store, cause, io->page - wanted, wanted, lost);

	if (parity_restore(&store->parity, repair->ios, lost, count, repair->scratch) ||
	    !is_page_of(store, wanted, first_whole(lost, count)))
		return -EBADMSG;
	if (io->data)
		memcpy(io->data, own->data, shape->page_bytes);
	memset(io->spare, 0, nand_spare_usable(nand_geometry(store->nand)));
	memcpy(io->spare, own->spare, shape->head_bytes);
	return 0;
}

int repair_page(struct muninn_store *store, enum nand_cause cause, const struct nand_page_io *io)
{
	int result = -EBADMSG;

	pthread_mutex_lock(&store->repair->lock);
	if (store->geometry.parity.losses)
		result = make_again(store, cause, io);
	if (!result)
		note_repaired(store, io->page);
	else
		note_lost(store, io->page);
	pthread_mutex_unlock(&store->repair->lock);
	return result;
}

int repair_read(struct muninn_store *store, enum nand_cause cause, const struct nand_page_io *io)
{
	int result = nand_read(store->nand, cause, io, 1);

	return repair_is_for(result) ? repair_page(store, cause, io) : result;
}

/* ---- a page of a run ---- */

/* Reads all pages of its group but that one, with their parities; then makes it again. */
static int make_run_page(struct muninn_store *store, uint32_t pages, uint32_t page,
			 repair_reader *read, void *context, uint8_t *data)
{
	const struct parity_shape *shape = &store->geometry.parity;
	struct repair *repair = store->repair;
	bool lost[PARITY_GROUP_PAGES_MAX + PARITY_LOSSES_MAX];
	uint32_t group = page < pages ? page / shape->group_pages : (page - pages) / shape->losses;
	uint32_t first, count, more;

	first = group * shape->group_pages;
	count = (uint32_t)min_u64(pages - first, shape->group_pages);
	more = pages + group * shape->losses;
	for (uint32_t n = 0; n < count + shape->losses; n++) {
		uint32_t number = n < count ? first + n : more + (n - count);

		lost[n] = number == page ||
			  read(context, number, repair->data + (size_t)n * shape->page_bytes) != 0;
	}
	if (parity_run_restore(&store->parity, repair->data, count, lost, repair->scratch))
		return -EBADMSG;
	if (page < pages)
		memcpy(data, repair->data + (size_t)(page - first) * shape->page_bytes,
		       shape->page_bytes);
	return 0;
}

int repair_run_page(struct muninn_store *store, uint32_t pages, uint32_t page, repair_reader *read,
		    void *context, uint8_t *data)
{
	int result = -EBADMSG;

	pthread_mutex_lock(&store->repair->lock);
	if (store->geometry.parity.losses)
		result = make_run_page(store, pages, page, read, context, data);
	store->repair->pages_repaired += result == 0;
	store->repair->pages_lost += result != 0;
	pthread_mutex_unlock(&store->repair->lock);
	return result;
}
