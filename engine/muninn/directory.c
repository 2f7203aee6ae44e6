/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Complete tables: their images on flash, the directory in NVRAM that says where, their copies in
 * memory.
 *
 * Images are written one behind the other through segments of their own. Which segments those are,
 * and where the last one ends, follows from the directory and the flash itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/crc32c.h"
#include "common/log.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/store.h"

enum { IMAGE_ATTEMPTS = 4 };

static uint8_t *entry_at(const struct muninn_store *store, uint64_t entry)
{
	return store->nvram + NVRAM_DIRECTORY_AT + entry * store->geometry.directory_entry_bytes;
}

/* The flash page of an image's n-th page. */
static uint64_t image_page(const struct muninn_store *store, const uint8_t *entry, uint32_t page)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t position = get_le32(entry + DIRECTORY_FIRST_PAGE_AT) + page;
	uint32_t segment =
		get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * (position / geometry->segment_pages));

	return segment_page(geometry, segment) + position % geometry->segment_pages;
}

static uint32_t entry_segments(const struct muninn_store *store, const uint8_t *entry)
{
	uint64_t pages =
		divide_up(get_le32(entry + DIRECTORY_BYTES_AT), store->geometry.page_bytes);

	return (uint32_t)divide_up(get_le32(entry + DIRECTORY_FIRST_PAGE_AT) + pages,
				   store->geometry.segment_pages);
}

uint32_t store_directory_used(const struct muninn_store *store)
{
	uint32_t used = 0;

	for (uint32_t number = 0; number < store->geometry.rows; number++)
		used += store->rows[number].complete_count;
	return used;
}

static bool entry_in_use(const uint8_t *entry)
{
	return get_le64(entry + DIRECTORY_LIVE_AT) != 0;
}

static uint8_t *free_entry(const struct muninn_store *store)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++)
		if (!entry_in_use(entry_at(store, entry)))
			return entry_at(store, entry);
	return NULL;
}

/*
 * Counts (by = 1) or no longer counts (-1) an image in the segments that it touches; gives back
 * those without any.
 */
static void refer_to_segments(struct muninn_store *store, const uint8_t *entry, int by)
{
	for (uint32_t n = 0; n < entry_segments(store, entry); n++) {
		uint32_t segment = get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n);

		store->images[segment] = (uint16_t)(store->images[segment] + by);
		if (store->images[segment] == 0) {
			if (segment == store->metadata_segment)
				store->metadata_segment = NO_SEGMENT;
			space_release(&store->space, segment);
		}
	}
}

/* ---- writing ---- */

/* Chooses the pages for an image of `bytes` and describes them in `entry`. */
static int allocate_image(struct muninn_store *store, uint32_t bytes, uint8_t *entry)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t segments, n = 0;

	if (store->metadata_segment == NO_SEGMENT ||
	    store->metadata_page == geometry->segment_pages) {
		store->metadata_segment = NO_SEGMENT;
		store->metadata_page = 0;
	}
	put_le32(entry + DIRECTORY_BYTES_AT, bytes);
	put_le32(entry + DIRECTORY_FIRST_PAGE_AT, store->metadata_page);
	segments = entry_segments(store, entry);
	assert(segments <= geometry->image_segments_max);
	if (store->metadata_segment != NO_SEGMENT)
		put_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n++, store->metadata_segment);
	for (; n < segments; n++) {
		int result = space_take(&store->space, &store->metadata_segment);

		if (result) {
			store->metadata_segment = NO_SEGMENT;
			return result;
		}
		put_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n, store->metadata_segment);
	}
	return 0;
}

static uint32_t image_pages(const struct muninn_store *store, const struct table *table)
{
	return (uint32_t)divide_up(table->image_bytes, store->geometry.page_bytes);
}

static int program_image_page(struct muninn_store *store, const struct image_writing *writing)
{
	const struct muninn_geometry *geometry = &store->geometry;
	const struct table *table = &writing->table;
	uint64_t offset = (uint64_t)writing->pages * geometry->page_bytes;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	struct page_spare spare = {
		.kind = PAGE_KIND_TABLE,
		.used = (uint32_t)min_u64(geometry->page_bytes, table->image_bytes - offset),
		.serial = (uint64_t)get_le32(table->image + TABLE_ROW_AT) << 32 |
			  table_index(table),
	};
	struct nand_page_io io = {
		.page = image_page(store, writing->entry, writing->pages),
		.data = data,
		.spare = store->spares,
	};

	memset(data, 0, geometry->page_bytes);
	memcpy(data, table->image + offset, spare.used);
	page_spare_encode(&spare, store->spares);
	int result = nand_program(store->nand, NAND_CAUSE_INDEX, &io, 1);

	if (!result)
		store->metadata_page = (uint32_t)(io.page % geometry->segment_pages) + 1;
	return result;
}

/*
 * Finds a place for the image, whose segments count as used from now on. What a place that failed
 * holds stays out of use.
 */
static int place_image(struct muninn_store *store, struct image_writing *writing)
{
	int result = -EIO;

	if (writing->attempts++ < IMAGE_ATTEMPTS)
		result =
			allocate_image(store, (uint32_t)writing->table.image_bytes, writing->entry);
	writing->pages = 0;
	if (!result) {
		refer_to_segments(store, writing->entry, 1);
		return 0;
	}
	free(writing->table.image);
	*writing = (struct image_writing){ 0 };
	return result;
}

/* Begins to write a row's growing table. On an error there is none on its way. */
static int begin_image(struct muninn_store *store, uint32_t number, struct image_writing *writing)
{
	struct table copy = store->rows[number].growing;
	uint8_t *entry = free_entry(store);

	if (!entry)
		return -ENOSPC;
	copy.live_word = entry + DIRECTORY_LIVE_AT;
	copy.image = malloc(copy.image_bytes);
	if (!copy.image)
		return -ENOMEM;
	memcpy(copy.image, store->rows[number].growing.image, copy.image_bytes);
	put_le64(copy.image + TABLE_LIVE_AT, 0);
	put_le32(copy.image + TABLE_CRC_AT, 0);
	put_le32(copy.image + TABLE_CRC_AT, crc32c(0, copy.image, copy.image_bytes));
	*writing = (struct image_writing){ .table = copy, .entry = entry, .row = number };
	return place_image(store, writing);
}

static int sync_image(struct muninn_store *store, const uint8_t *entry)
{
	int result = 0;

	for (uint32_t n = 0; !result && n < entry_segments(store, entry); n++)
		result = nand_sync(store->nand,
				   get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n) *
					   store->geometry.segment_blocks,
				   store->geometry.segment_blocks);
	return result;
}

/*
 * Programs at most *budget pages of the image; on a failing block tries elsewhere. On an error
 * there is none on its way.
 */
static int program_image(struct muninn_store *store, struct image_writing *writing,
			 uint32_t *budget)
{
	while (writing->pages < image_pages(store, &writing->table) && *budget) {
		int result = program_image_page(store, writing);

		--*budget;
		writing->pages++;
		if (!result)
			continue;
		log_line(LOG_LEVEL_WARNING,
			 "table image: segment %u is retired: programming failed (error %d)",
			 store->metadata_segment, -result);
		for (uint32_t n = 0; n < entry_segments(store, writing->entry); n++)
			store->images[get_le32(writing->entry + DIRECTORY_SEGMENTS_AT + 4 * n)]--;
		store->metadata_segment = NO_SEGMENT;
		result = place_image(store, writing);
		if (result)
			return result;
	}
	return 0;
}

/* Adds a complete table in memory to its row; takes over `image`. */
static int add_complete(struct row *row, const struct table *table)
{
	struct table *grown = realloc(row->complete, (row->complete_count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	row->complete = grown;
	row->complete[row->complete_count++] = *table;
	return 0;
}

static int sync_entry(struct muninn_store *store, const uint8_t *entry)
{
	return nand_nvram_sync(store->nand, (uint64_t)(entry - store->nvram),
			       store->geometry.directory_entry_bytes);
}

/*
 * Of a table whose image is on flash, header and columns stay in memory when there is a cache for
 * the rest.
 */
static void keep_head(struct muninn_store *store, struct table *table)
{
	uint8_t *head = store->table_cache ? realloc(table->image, table_bits_offset()) : NULL;

	if (!head)
		return;
	table->image = head;
	table->source = table_cache_source(store->table_cache);
}

void store_forget_image(struct muninn_store *store)
{
	free(store->history_image.table.image);
	store->history_image = (struct image_writing){ 0 };
}

/* An entry, or a table that has begun anew, could not be synced. */
static void tell_unstable(int result)
{
	log_line(LOG_LEVEL_ERROR,
		 "the tables in NVRAM can't be made stable (error %d); flushed data may not survive"
		 " a power failure of this host",
		 -result);
}

/*
 * Begins the next table of a row. That is made stable at once: otherwise a failure of the host
 * could bring back the beginning of the one before, although that is complete, has been merged
 * away, or has been followed by others.
 */
static void begin_next_table(struct muninn_store *store, uint32_t number)
{
	struct row *row = &store->rows[number];
	int result;

	table_begin(&row->growing, &store->geometry, row->growing.image, number,
		    table_index(&row->growing) + 1);
	result = nand_nvram_sync(store->nand, (uint64_t)(row->growing.image - store->nvram),
				 NVRAM_PAGE);
	if (result)
		tell_unstable(result);
	row_refresh_bounds(store, row);
}

/* An image is on flash: it becomes a complete table of its row, which begins the next one. */
static int end_image(struct muninn_store *store, struct image_writing *writing)
{
	struct row *row = &store->rows[writing->row];
	uint64_t live = table_live(&row->growing);
	uint8_t *entry = writing->entry;
	int result = sync_image(store, entry);

	if (!result && live)
		result = add_complete(row, &writing->table);
	if (result)
		return result;
	if (!live) {
		/* All of it has been merged away meanwhile. */
		refer_to_segments(store, entry, -1);
		free(writing->table.image);
	} else {
		keep_head(store, &row->complete[row->complete_count - 1]);
		put_le32(entry + DIRECTORY_ROW_AT, writing->row);
		put_le32(entry + DIRECTORY_INDEX_AT, table_index(&row->growing));
		/* What the live word speaks of is stable before it. */
		result = sync_entry(store, entry);
		nvram_store64(entry + DIRECTORY_LIVE_AT, live);
		if (!result)
			result = sync_entry(store, entry);
		if (result)
			tell_unstable(result);
	}
	begin_next_table(store, writing->row);
	*writing = (struct image_writing){ 0 };
	return 0;
}

/* Begins or goes on to write a row's table. */
static int write_image(struct muninn_store *store, uint32_t number, struct image_writing *writing,
		       uint32_t *budget)
{
	int result = writing->table.image ? 0 : begin_image(store, number, writing);

	if (!result)
		result = program_image(store, writing, budget);
	if (!result && writing->pages == image_pages(store, &writing->table))
		result = end_image(store, writing);
	return result;
}

/* Of history's row, with at most *budget page programs. */
static int complete_history(struct muninn_store *store, uint32_t *budget)
{
	uint32_t number = history_row(&store->geometry);
	int result = write_image(store, number, &store->history_image, budget);

	if (!result && !store->history_image.table.image)
		store_begin_root(store); /* what fails is logged: NVRAM says it all */
	return result;
}

int store_complete_table(struct muninn_store *store, uint32_t number, uint32_t *budget)
{
	struct image_writing writing = { 0 };
	int result = 0;

	assert(table_columns(&store->rows[number].growing) == MUNINN_COLUMNS);
	if (number == history_row(&store->geometry) &&
	    (store->history_image.table.image || table_live(&store->rows[number].growing)))
		return complete_history(store, budget);
	if (!table_live(&store->rows[number].growing)) {
		begin_next_table(store, number);
		return 0;
	}
	/* Images lie one behind the other. */
	if (store->history_image.table.image)
		result = complete_history(store, budget);
	if (!result)
		result = write_image(store, number, &writing, budget);
	if (result) {
		if (writing.table.image)
			refer_to_segments(store, writing.entry, -1);
		free(writing.table.image);
		return result;
	}
	store_write_root(store); /* what fails is logged: NVRAM says it all */
	return 0;
}

/* ---- taking away ---- */

void store_kill_column(struct muninn_store *store, uint32_t number, struct table *table,
		       uint32_t column)
{
	struct table_column facts;

	table_read_column(table, column, &facts);
	table_kill_column(table, column);
	store->segment_rows[facts.segment] = NO_ROW;
	store_merge_forget(store, facts.segment);
	store->counters.sealed_records -= facts.records;
	store->counters.sealed_record_bytes -= facts.record_bytes;
	store->rows[number].unsynced = true;
}

void store_drop_empty_tables(struct muninn_store *store, uint32_t number)
{
	struct row *row = &store->rows[number];
	uint32_t kept = 0;

	for (uint32_t n = 0; n < row->complete_count; n++) {
		struct table table = row->complete[n];

		if (table_live(&table)) {
			row->complete[kept++] = table;
			continue;
		}
		refer_to_segments(store, table.live_word - DIRECTORY_LIVE_AT, -1);
		free(table.image);
	}
	row->complete_count = kept;
	row_refresh_bounds(store, row);
}

/* ---- loading ---- */

int store_read_table_page(void *context, const struct table *table, uint32_t page, uint8_t *data)
{
	const struct muninn_store *store = context;
	const uint8_t *entry = table->live_word - DIRECTORY_LIVE_AT;
	uint64_t serial = (uint64_t)get_le32(table->image + TABLE_ROW_AT) << 32 |
			  table_index(table);
	uint8_t spare_bytes[4096];
	struct page_spare spare;
	struct nand_page_io io = { .page = image_page(store, entry, page),
				   .data = data,
				   .spare = spare_bytes };
	int result = nand_read(store->nand, NAND_CAUSE_INDEX, &io, 1);

	if (!result && (!page_spare_decode(spare_bytes, store->geometry.page_bytes, &spare) ||
			spare.kind != PAGE_KIND_TABLE || spare.serial != serial))
		result = -EBADMSG;
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "table %u of row %u: flash page %llu can't be read (error %d)",
			 table_index(table), get_le32(table->image + TABLE_ROW_AT),
			 (unsigned long long)io.page, -result);
	return result == -ENODATA ? -EBADMSG : result;
}

/* The first `bytes` of an image. */
static int read_image(struct muninn_store *store, const uint8_t *entry, uint8_t *image,
		      uint32_t bytes, struct error_text *error)
{
	uint32_t page_bytes = store->geometry.page_bytes;
	uint8_t data[MUNINN_PAGE_BYTES_MAX];

	for (uint32_t page = 0; (uint64_t)page * page_bytes < bytes; page++) {
		uint64_t offset = (uint64_t)page * page_bytes;
		struct nand_page_io io = { .page = image_page(store, entry, page), .data = data };
		int result = nand_read(store->nand, NAND_CAUSE_RECOVERY, &io, 1);

		if (result)
			return error_set(
				error, result,
				"table %u of row %u: flash page %llu can't be read (error %d); the"
				" device is damaged",
				get_le32(entry + DIRECTORY_INDEX_AT),
				get_le32(entry + DIRECTORY_ROW_AT), (unsigned long long)io.page,
				-result);
		memcpy(image + offset, data, min_u64(page_bytes, bytes - offset));
	}
	return 0;
}

static int check_image(const uint8_t *entry, const struct table *table, struct error_text *error)
{
	uint32_t row = get_le32(entry + DIRECTORY_ROW_AT);
	uint32_t index = get_le32(entry + DIRECTORY_INDEX_AT);
	uint32_t crc = get_le32(table->image + TABLE_CRC_AT);
	bool intact = true;

	/* Of a table that is not in memory, every page is checked when it is read. */
	if (!table->source) {
		put_le32(table->image + TABLE_CRC_AT, 0);
		intact = crc32c(0, table->image, table->image_bytes) == crc;
		put_le32(table->image + TABLE_CRC_AT, crc);
	}
	if (!intact || table_index(table) != index || table_columns(table) != MUNINN_COLUMNS)
		return error_set(
			error, -EINVAL,
			"table %u of row %u is not what the directory says (%s); the device is"
			" damaged",
			index, row, intact ? "another table" : "checksum");
	return 0;
}

/* Loads the table of one directory entry and marks its segments. */
static int load_table(struct muninn_store *store, uint8_t *entry, bool *in_use,
		      struct error_text *error)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t row = get_le32(entry + DIRECTORY_ROW_AT);
	uint32_t bytes = get_le32(entry + DIRECTORY_BYTES_AT);
	struct table table;
	uint8_t *image;
	int result;

	if (row >= geometry->rows || bytes < table_bits_offset() ||
	    bytes > geometry->image_bytes_max ||
	    get_le32(entry + DIRECTORY_FIRST_PAGE_AT) >= geometry->segment_pages)
		return error_set(error, -EINVAL, "the table directory in NVRAM is corrupt");
	for (uint32_t n = 0; n < entry_segments(store, entry); n++) {
		uint32_t segment = get_le32(entry + DIRECTORY_SEGMENTS_AT + 4 * n);

		if (segment >= geometry->segments)
			return error_set(error, -EINVAL,
					 "the table directory in NVRAM names segment %u of %u",
					 segment, geometry->segments);
		in_use[segment] = true;
		store->images[segment]++;
	}
	uint32_t kept = store->table_cache ? (uint32_t)table_bits_offset() : bytes;

	image = malloc(kept);
	if (!image)
		return error_set(error, -ENOMEM, "out of memory while loading tables");
	result = read_image(store, entry, image, kept, error);
	if (!result && (!table_attach(&table, geometry, image, row) || table.image_bytes != bytes))
		result = error_set(error, -EINVAL,
				   "table %u of row %u does not have this device's shape",
				   get_le32(entry + DIRECTORY_INDEX_AT), row);
	table.source = table_cache_source(store->table_cache);
	if (!result)
		result = check_image(entry, &table, error);
	table.live_word = entry + DIRECTORY_LIVE_AT;
	if (!result)
		result = add_complete(&store->rows[row], &table);
	if (result)
		free(image);
	return result;
}

/*
 * Images go on where an image segment has most space. Pages that a crash left there without an
 * entry are skipped.
 */
static int find_metadata_end(struct muninn_store *store)
{
	store->metadata_segment = NO_SEGMENT;
	store->metadata_page = store->geometry.segment_pages;
	for (uint32_t segment = 0; segment < store->geometry.segments; segment++) {
		uint32_t end;
		int result = store->images[segment]
				     ? segment_end(store->nand, store->geometry.segment_blocks,
						   segment, &end)
				     : 0;

		if (result)
			return result;
		if (store->images[segment] && end < store->metadata_page) {
			store->metadata_segment = segment;
			store->metadata_page = end;
		}
	}
	return 0;
}

static int by_index(const void *a, const void *b)
{
	uint32_t first = table_index(a), second = table_index(b);

	return first < second ? -1 : first > second;
}

int store_load_tables(struct muninn_store *store, bool *in_use, struct error_text *error)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++) {
		int result = entry_in_use(entry_at(store, entry))
				     ? load_table(store, entry_at(store, entry), in_use, error)
				     : 0;

		if (result)
			return result;
	}
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		if (row->complete_count)
			qsort(row->complete, row->complete_count, sizeof(*row->complete), by_index);
	}
	return find_metadata_end(store)
		       ? error_set(error, -EIO, "the flash's block table can't be read")
		       : 0;
}

uint32_t store_copy_directory(const struct muninn_store *store, uint8_t *to)
{
	uint32_t count = 0;

	for (uint32_t n = 0; n < store->geometry.directory_entries; n++) {
		if (!entry_in_use(entry_at(store, n)))
			continue;
		memcpy(to + (uint64_t)count++ * store->geometry.directory_entry_bytes,
		       entry_at(store, n), store->geometry.directory_entry_bytes);
	}
	return count;
}

void store_restore_directory(struct muninn_store *store, const uint8_t *from, uint32_t count)
{
	uint32_t bytes = store->geometry.directory_entry_bytes;

	assert(count <= store->geometry.directory_entries);
	memcpy(entry_at(store, 0), from, (uint64_t)count * bytes);
	for (uint32_t n = count; n < store->geometry.directory_entries; n++)
		nvram_store64(entry_at(store, n) + DIRECTORY_LIVE_AT, 0);
}

void store_empty_directory(struct muninn_store *store)
{
	for (uint32_t entry = 0; entry < store->geometry.directory_entries; entry++)
		nvram_store64(entry_at(store, entry) + DIRECTORY_LIVE_AT, 0);
}

void store_drop_tables(struct muninn_store *store)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		for (uint32_t n = 0; n < row->complete_count; n++)
			free(row->complete[n].image);
		free(row->complete);
		row->complete = NULL;
		row->complete_count = 0;
		free(row->bounds.versions);
		row->bounds = (struct table_bounds){ 0 };
	}
	if (store->images)
		memset(store->images, 0, store->geometry.segments * sizeof(*store->images));
	store_forget_image(store);
	table_cache_clear(store->table_cache);
	store->metadata_segment = NO_SEGMENT;
	store->metadata_page = 0;
}
