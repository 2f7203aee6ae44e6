/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The index of a row: its growing table, its complete ones, and the segments in them. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "common/crc32c.h"
#include "engine/muninn/index/bloom.h"

/* ---- the index of a store ---- */

static void destroy_row(struct row_index *row)
{
	for (uint32_t n = 0; n < row->complete_count; n++)
		free(row->complete[n].image);
	free(row->complete);
	free(row->bounds.versions);
}

void index_destroy(struct index *index)
{
	if (!index)
		return;
	for (uint32_t number = 0; index->rows && number < index->geometry->rows; number++)
		destroy_row(&index->rows[number]);
	table_cache_destroy(index->cache);
	free(index->rows);
	free(index);
}

struct index *index_create(const struct muninn_geometry *geometry, uint8_t *nvram)
{
	struct index *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->geometry = geometry;
	index->version_tables = 1;
	index->rows = calloc(geometry->rows, sizeof(*index->rows));
	if (!index->rows) {
		index_destroy(index);
		return NULL;
	}
	for (uint32_t number = 0; number < geometry->rows; number++)
		index->rows[number] = (struct row_index){
			.index = index,
			.number = number,
			.nvram = nvram + geometry->groups_at + number * geometry->group_bytes,
			.growing.sum = nvram + row_sum_pair_at(geometry, number),
		};
	return index;
}

static int read_page(void *context, const struct table *table, uint32_t page, uint8_t *data)
{
	const struct index *index = context;

	return index->read(index->context, get_le32(table->image + TABLE_ROW_AT),
			   table_index(table), table->live_word, page, data);
}

int index_prepare(struct index *index, const struct muninn_options *options,
		  index_page_reader *read, void *context, struct error_text *error)
{
	uint64_t bytes = options->bloom.table_cache_bytes;

	index->read = read;
	index->context = context;
	index->version_tables = (uint32_t)max_u64(options->bloom.internal_version_tables, 1);
	if (!bytes)
		return 0;
	if (bytes < BLOOM_TABLE_CACHE_MIN)
		return error_set(error, -ERANGE,
				 "a cache of %llu bytes for tables is too small: at least %llu",
				 (unsigned long long)bytes,
				 (unsigned long long)BLOOM_TABLE_CACHE_MIN);
	index->cache = table_cache_create(bytes, index->geometry->page_bytes, read_page, index);
	return index->cache ? 0 : error_set(error, -ENOMEM, "out of memory for a cache of tables");
}

struct row_index *index_row(struct index *index, uint32_t row)
{
	return &index->rows[row];
}

static uint64_t given(const void *memory)
{
	return malloc_usable_size((void *)(uintptr_t)memory);
}

static uint64_t segments_in(const struct table *table)
{
	return (uint64_t)__builtin_popcountll(table_live(table));
}

void index_count(const struct index *index, struct index_figures *figures)
{
	*figures = (struct index_figures){ .cache_memory = table_cache_bytes(index->cache),
					   .rows_memory = given(index) + given(index->rows) };
	for (uint32_t number = 0; number < index->geometry->rows; number++) {
		const struct row_index *row = &index->rows[number];

		figures->groups += row->complete_count;
		figures->internal_versions += row->bounds.count;
		figures->segments += segments_in(&row->growing);
		figures->rows_memory += given(row->complete) + given(row->bounds.versions);
		for (uint32_t n = 0; n < row->complete_count; n++) {
			figures->segments += segments_in(&row->complete[n]);
			figures->bytes += table_memory_bytes(&row->complete[n]);
			figures->groups_memory += given(row->complete[n].image);
		}
		/* One without columns is of no key. */
		if (table_columns(&row->growing))
			figures->bytes += row->growing.image_bytes;
	}
	figures->bytes += figures->cache_memory;
	table_cache_counters(index->cache, &figures->reads, &figures->reads_missed);
}

/* ---- the growing table ---- */

void row_index_begin(struct row_index *row, uint32_t group)
{
	table_begin(&row->growing, row->index->geometry, row->nvram, row->number, group);
}

bool row_index_attach(struct row_index *row)
{
	return table_attach(&row->growing, row->index->geometry, row->nvram, row->number);
}

uint64_t row_index_sum(const struct row_index *row)
{
	return table_sum(&row->growing);
}

uint32_t row_index_growing(const struct row_index *row)
{
	return table_index(&row->growing);
}

uint32_t row_index_members(const struct row_index *row)
{
	return table_columns(&row->growing);
}

uint64_t row_index_live(const struct row_index *row)
{
	return table_live(&row->growing);
}

void row_index_read_member(const struct row_index *row, uint32_t member,
			   struct sealed_segment *segment)
{
	table_read_column(&row->growing, member, segment);
}

void row_index_write(struct row_index *row, const struct segment_index *index,
		     const struct sealed_segment *segment)
{
	table_write_column(&row->growing, index, segment);
}

void row_index_commit(struct row_index *row)
{
	table_commit_column(&row->growing);
}

const uint8_t *row_index_nvram(const struct row_index *row, uint64_t *bytes)
{
	*bytes = row->growing.image_bytes;
	return row->growing.image;
}

/* ---- complete tables ---- */

int row_index_make_image(const struct row_index *row, struct index_image *image)
{
	const struct table *table = &row->growing;
	uint8_t *bytes = malloc(table->image_bytes);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, table->image, table->image_bytes);
	put_le64(bytes + TABLE_LIVE_AT, 0);
	put_le32(bytes + TABLE_CRC_AT, 0);
	put_le32(bytes + TABLE_CRC_AT, crc32c(0, bytes, table->image_bytes));
	*image = (struct index_image){
		.bytes = bytes,
		.length = table->image_bytes,
		.group = table_index(table),
	};
	return 0;
}

uint32_t index_image_member_at(uint32_t member)
{
	return TABLE_HEADER_BYTES + member * COLUMN_BYTES + COLUMN_SEGMENT_AT;
}

uint64_t index_image_kept(const struct index *index, uint64_t length)
{
	return index->cache ? min_u64(table_bits_offset(), length) : length;
}

int row_index_check_image(const struct row_index *row, const struct index_image *image,
			  struct error_text *error)
{
	uint64_t kept = index_image_kept(row->index, image->length);
	struct table table = { .sum = NULL };

	if (image->length < table_bits_offset() ||
	    !table_attach(&table, row->index->geometry, image->bytes, row->number) ||
	    table.image_bytes != image->length)
		return error_set(error, -EINVAL,
				 "index: group %u of row %u does not have this device's shape",
				 image->group, row->number);
	uint32_t crc = get_le32(image->bytes + TABLE_CRC_AT);
	bool intact = true;

	/* Of a table that is not in memory, every page is checked when it is read. */
	if (kept == image->length) {
		put_le32(image->bytes + TABLE_CRC_AT, 0);
		intact = crc32c(0, image->bytes, image->length) == crc;
		put_le32(image->bytes + TABLE_CRC_AT, crc);
	}
	if (!intact || table_index(&table) != image->group ||
	    table_columns(&table) != GROUP_SEGMENTS)
		return error_set(
			error, -EINVAL,
			"index: group %u of row %u is not what the directory says (%s); the "
			"device is damaged",
			image->group, row->number, intact ? "another group" : "checksum");
	return 0;
}

/* How many complete tables have lower numbers. */
static uint32_t tables_below(const struct row_index *row, uint32_t number)
{
	uint32_t low = 0, high = row->complete_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table_index(&row->complete[middle]) < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * A complete table of an image whose bytes are on flash: header and columns stay in memory when
 * there is a cache for the rest.
 */
static struct table make_complete(const struct row_index *row, const struct index_image *image)
{
	struct table table = { .sum = NULL };
	uint8_t *head;

	/* Only what this device has written, or row_index_check_image has looked at, comes here. */
	bool attached = table_attach(&table, row->index->geometry, image->bytes, row->number);

	assert(attached && table_index(&table) == image->group);
	table.live_word = image->live;
	head = row->index->cache ? realloc(table.image, table_bits_offset()) : NULL;
	if (head) {
		table.image = head;
		table.source = table_cache_source(row->index->cache);
	}
	return table;
}

int row_index_replace(struct row_index *row, uint32_t first, uint32_t last,
		      const struct index_image *by)
{
	uint32_t from = tables_below(row, first), to = tables_below(row, last + 1);
	uint32_t added = by ? 1 : 0;

	assert(first <= last && (!by || (by->group >= first && by->group <= last)));
	if (added > to - from) {
		struct table *grown =
			realloc(row->complete, (row->complete_count + 1) * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		row->complete = grown;
	}
	for (uint32_t n = from; n < to; n++)
		free(row->complete[n].image);
	if (row->complete_count > to)
		memmove(&row->complete[from + added], &row->complete[to],
			(row->complete_count - to) * sizeof(*row->complete));
	row->complete_count = row->complete_count - (to - from) + added;
	if (by)
		row->complete[from] = make_complete(row, by);
	return 0;
}

void row_index_refresh(struct row_index *row)
{
	bounds_refresh(&row->bounds, row->complete, row->complete_count,
		       row->index->version_tables);
}

bool row_index_has(const struct row_index *row, uint32_t group)
{
	uint32_t n = tables_below(row, group);

	return n < row->complete_count && table_index(&row->complete[n]) == group;
}

bool row_index_newest(const struct row_index *row, uint32_t *group)
{
	if (!row->complete_count)
		return false;
	*group = table_index(&row->complete[row->complete_count - 1]);
	return true;
}

uint32_t row_index_groups(const struct row_index *row)
{
	return row->complete_count;
}

uint8_t *row_index_empty_group(const struct row_index *row, uint32_t *group)
{
	for (uint32_t n = 0; n < row->complete_count; n++)
		if (!table_live(&row->complete[n])) {
			*group = table_index(&row->complete[n]);
			return row->complete[n].live_word;
		}
	return NULL;
}

/* ---- segments ---- */

/* Table n from the oldest; the growing one is the last. */
static const struct table *table_at(const struct row_index *row, uint32_t n)
{
	return n < row->complete_count ? &row->complete[n] : &row->growing;
}

bool row_index_next(const struct row_index *row, struct index_walk *walk,
		    struct sealed_segment *segment)
{
	for (; walk->at <= row->complete_count; walk->at++, walk->member = 0) {
		const struct table *table = table_at(row, walk->at);
		uint32_t columns = table_columns(table);
		uint64_t live = walk->all ? UINT64_MAX : table_live(table);

		while (walk->member < columns) {
			uint32_t member = walk->member++;

			if (!(live >> member & 1))
				continue;
			table_read_column(table, member, segment);
			return true;
		}
	}
	return false;
}

void row_index_find(const struct row_index *row, uint32_t number, struct sealed_segment *segment)
{
	struct index_walk walk = { 0 };

	while (row_index_next(row, &walk, segment))
		if (segment->segment == number)
			return;
	assert(!"a sealed segment is in a group of its row");
	abort();
}

uint8_t *row_index_live_word(const struct row_index *row, const struct sealed_segment *segment)
{
	uint32_t n = tables_below(row, segment->group);

	return n < row->complete_count ? row->complete[n].live_word : NULL;
}

void row_index_take_out(struct row_index *row, const struct sealed_segment *segment)
{
	uint32_t n = tables_below(row, segment->group);
	struct table *table = n < row->complete_count ? &row->complete[n] : &row->growing;

	assert(table_index(table) == segment->group);
	table_kill_column(table, segment->member);
}

uint64_t row_index_last_serial(const struct row_index *row)
{
	struct index_walk walk = { .all = true };
	struct sealed_segment segment;
	uint64_t serial = 0;

	while (row_index_next(row, &walk, &segment))
		serial = max_u64(serial, segment.serial);
	return serial;
}

uint32_t row_index_read_last(const struct row_index *row, struct sealed_segment *segments,
			     uint32_t max)
{
	const struct table *table = &row->growing;
	uint32_t columns, count;

	if (table_columns(table) == 0 && row->complete_count)
		table = &row->complete[row->complete_count - 1];
	columns = table_columns(table);
	count = columns < max ? columns : max;
	for (uint32_t n = 0; n < count; n++)
		table_read_column(table, columns - count + n, &segments[n]);
	return count;
}

bool row_index_find_sparse(const struct row_index *row, struct sealed_segment *segment)
{
	for (uint32_t n = 0; n < row->complete_count; n++) {
		uint64_t live = table_live(&row->complete[n]);

		if (!live || __builtin_popcountll(live) > GROUP_SPARSE)
			continue;
		table_read_column(&row->complete[n], (uint32_t)__builtin_ctzll(live), segment);
		return true;
	}
	return false;
}

void row_index_estimate(const struct row_index *row, uint32_t n,
			void (*note)(void *context, const struct sealed_segment *segment,
				     uint32_t live_permille),
			void *context)
{
	const struct table *table = &row->complete[n];
	uint32_t live_permille[GROUP_SEGMENTS];

	overlap_estimate(row->index->geometry, table, row->complete_count - n, &row->growing,
			 live_permille);
	for (uint64_t live = table_live(table); live; live &= live - 1) {
		uint32_t column = (uint32_t)__builtin_ctzll(live);
		struct sealed_segment segment;

		table_read_column(table, column, &segment);
		note(context, &segment, live_permille[column]);
	}
}

/* ---- search ---- */

/* Of index_search.next. */
enum { NOT_BEGUN = INT32_MAX, IN_GROWING = INT32_MAX - 1 };

void index_search_begin(struct index_search *search, const struct row_index *row,
			const struct key_hash *hash, uint64_t bound)
{
	search->result = 0;
	search->row = row;
	search->next = NOT_BEGUN;
	search->table.hash = hash;
	search->table.bound = bound;
	search->table.columns = 0;
	search->table.result = 0;
}

/* Goes on to the next older table that may have something. False: there is none. */
static bool begin_table(struct index_search *search, uint64_t after)
{
	const struct row_index *row = search->row;
	const struct table *table = &row->growing;

	if (search->next == NOT_BEGUN) {
		search->next = IN_GROWING;
	} else {
		if (search->next == IN_GROWING) {
			search->next =
				bounds_find(&row->bounds, row->complete_count, search->table.bound);
			search->oldest = after ? bounds_find_after(&row->bounds, after) : 0;
		}
		if (search->next <= search->oldest)
			return false;
		table = &row->complete[--search->next];
	}
	table_search_begin(&search->table, table, search->table.hash, search->table.bound);
	return true;
}

bool index_search_segment(struct index_search *search, uint64_t after, uint32_t *segment)
{
	if (search->next == NOT_BEGUN)
		begin_table(search, after);
	do {
		search->table.after = after;
		if (table_search_segment(&search->table, segment))
			return true;
		search->result = search->table.result;
	} while (!search->result && begin_table(search, after));
	return false;
}

bool index_search_page(struct index_search *search, uint32_t *page)
{
	return table_search_page(&search->table, page);
}

int index_search_narrow(struct index_search *search, int (*probe)(void *context, uint32_t page),
			void *context)
{
	return table_search_narrow(&search->table, search->table.bound, probe, context);
}
