/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The index of a row: its growing table, its complete ones, and the segments in them. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "common/crc32c.h"
#include "engine/muninn/index/bloom.h"

/* ---- the index of a store ---- */

static void destroy_row(struct bloom_row *row)
{
	for (uint32_t n = 0; n < row->complete_count; n++)
		free(row->complete[n].image);
	free(row->complete);
	free(row->bounds.versions);
}

static void destroy(struct index *base)
{
	struct bloom_store *index = bloom_store_of(base);

	for (uint32_t number = 0; index->rows && number < base->geometry->rows; number++)
		destroy_row(&index->rows[number]);
	table_cache_destroy(index->cache);
	free(index->rows);
	free(index);
}

static struct index *create(const struct muninn_geometry *geometry, uint8_t *nvram)
{
	struct bloom_store *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->base = (struct index){ .type = &bloom_index, .geometry = geometry };
	index->version_tables = 1;
	index->rows = calloc(geometry->rows, sizeof(*index->rows));
	if (!index->rows) {
		destroy(&index->base);
		return NULL;
	}
	for (uint32_t number = 0; number < geometry->rows; number++)
		index->rows[number] = (struct bloom_row){
			.base = { .type = &bloom_index, .index = &index->base, .number = number },
			.nvram = nvram + geometry->groups_at + number * geometry->group_bytes,
			.growing.sum = nvram + row_sum_pair_at(geometry, number),
		};
	return &index->base;
}

static int read_page(void *context, const struct table *table, uint32_t page, uint8_t *data)
{
	const struct bloom_store *index = context;

	return index->read(index->context, get_le32(table->image + TABLE_ROW_AT),
			   table_index(table), table->live_word, page, data);
}

static int prepare(struct index *base, const struct muninn_options *options,
		   index_page_reader *read, void *context, struct error_text *error)
{
	struct bloom_store *index = bloom_store_of(base);
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
	index->cache = table_cache_create(bytes, base->geometry->page_bytes, read_page, index);
	return index->cache ? 0 : error_set(error, -ENOMEM, "out of memory for a cache of tables");
}

static struct row_index *row_at(struct index *base, uint32_t row)
{
	return &bloom_store_of(base)->rows[row].base;
}

static uint64_t given(const void *memory)
{
	return malloc_usable_size((void *)(uintptr_t)memory);
}

static void count(const struct index *base, struct index_figures *figures)
{
	const struct bloom_store *index = bloom_store_in(base);

	figures->cache_memory = table_cache_bytes(index->cache);
	figures->rows_memory = given(index) + given(index->rows);
	for (uint32_t number = 0; number < base->geometry->rows; number++) {
		const struct bloom_row *row = &index->rows[number];

		figures->internal_versions += row->bounds.count;
		figures->rows_memory += given(row->complete) + given(row->bounds.versions);
		for (uint32_t n = 0; n < row->complete_count; n++) {
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

static void begin(struct row_index *base, uint32_t group)
{
	struct bloom_row *row = bloom_row_of(base);

	table_begin(&row->growing, base->index->geometry, row->nvram, base->number, group);
}

static int attach(struct row_index *base)
{
	struct bloom_row *row = bloom_row_of(base);

	return table_attach(&row->growing, base->index->geometry, row->nvram, base->number)
		       ? 0
		       : -EINVAL;
}

static uint64_t sum(const struct row_index *base)
{
	return table_sum(&bloom_row_in(base)->growing);
}

static bool is_full(const struct row_index *base)
{
	return table_columns(&bloom_row_in(base)->growing) == GROUP_SEGMENTS;
}

static int write_segment(struct row_index *base, const struct segment_index *index,
			 const struct arrangement *arrangement,
			 const struct sealed_segment *segment)
{
	(void)arrangement;
	table_write_column(&bloom_row_of(base)->growing, bloom_segment_in(index), segment);
	return 0;
}

static void commit(struct row_index *base)
{
	table_commit_column(&bloom_row_of(base)->growing);
}

static void take_out(struct row_index *base, uint32_t member)
{
	table_kill_column(&bloom_row_of(base)->growing, member);
}

static const uint8_t *nvram(const struct row_index *base, uint64_t *bytes)
{
	const struct bloom_row *row = bloom_row_in(base);

	*bytes = row->growing.image_bytes;
	return row->growing.image;
}

/* ---- complete tables ---- */

/* The live word may change meanwhile. */
static int make_image(const struct row_index *base, struct index_image *image)
{
	const struct table *table = &bloom_row_in(base)->growing;
	uint8_t *bytes = malloc(table->image_bytes);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, table->image, TABLE_LIVE_AT);
	put_le64(bytes + TABLE_LIVE_AT, 0);
	memcpy(bytes + TABLE_LIVE_AT + 8, table->image + TABLE_LIVE_AT + 8,
	       table->image_bytes - TABLE_LIVE_AT - 8);
	put_le32(bytes + TABLE_CRC_AT, 0);
	put_le32(bytes + TABLE_CRC_AT, crc32c(0, bytes, table->image_bytes));
	*image = (struct index_image){
		.bytes = bytes,
		.length = table->image_bytes,
		.group = table_index(table),
	};
	return 0;
}

static uint32_t image_member_at(uint32_t member)
{
	return TABLE_HEADER_BYTES + member * COLUMN_BYTES + COLUMN_SEGMENT_AT;
}

static uint64_t kept_of(const struct index *base, uint64_t length)
{
	return bloom_store_in(base)->cache ? min_u64(table_bits_offset(), length) : length;
}

static uint64_t image_kept(const struct index *base, const uint8_t *head, uint64_t *length)
{
	(void)head;
	return kept_of(base, *length);
}

static int check_image(const struct row_index *row, const struct index_image *image,
		       struct error_text *error)
{
	uint64_t kept = kept_of(row->index, image->length);
	struct table table = { .sum = NULL };

	if (image->length < table_bits_offset() ||
	    !table_attach(&table, row->index->geometry, image->bytes, row->number) ||
	    table.image_bytes != image->length)
		return error_set(error, -EINVAL,
				 "index: group %u of row %u does not have this device's shape",
				 image->group, row->number);
	/* Of a table that is not in memory, every page is checked when it is read. */
	bool intact = kept < image->length || table_image_is_intact(image->bytes, image->length);

	if (!intact || table_index(&table) != image->group ||
	    table_columns(&table) != GROUP_SEGMENTS)
		return error_set(
			error, -EINVAL,
			"index: group %u of row %u is not what the directory says (%s); the "
			"device is damaged",
			image->group, row->number, intact ? "another group" : "checksum");
	return 0;
}

/*
 * A complete table of an image whose bytes are on flash: header and columns stay in memory when
 * there is a cache for the rest.
 */
static struct table make_complete(const struct row_index *row, const struct index_image *image)
{
	struct table_cache *cache = bloom_store_of(row->index)->cache;
	struct table table = { .sum = NULL };
	uint8_t *head;

	/* Only what this device has written, or check_image has looked at, comes here. */
	bool attached = table_attach(&table, row->index->geometry, image->bytes, row->number);

	assert(attached && table_index(&table) == image->group);
	table.live_word = image->live;
	head = cache && !image->stays ? realloc(table.image, table_bits_offset()) : NULL;
	if (head) {
		table.image = head;
		table.source = table_cache_source(cache);
	}
	return table;
}

static int replace(struct row_index *base, uint32_t from, uint32_t to, const struct index_image *by)
{
	struct bloom_row *row = bloom_row_of(base);
	uint32_t added = by ? 1 : 0;

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
		row->complete[from] = make_complete(base, by);
	return 0;
}

static int copy_image(const struct row_index *base, uint32_t n, struct index_image *image)
{
	const struct table *table = &bloom_row_in(base)->complete[n];
	uint8_t *bytes = malloc(table->image_bytes);
	int result = bytes ? table_read_bytes(table, 0, bytes, (uint32_t)table->image_bytes)
			   : -ENOMEM;

	*image = (struct index_image){
		.bytes = bytes,
		.length = table->image_bytes,
		.group = table_index(table),
		.live = table->live_word,
	};
	if (result)
		free(bytes);
	return result;
}

static bool is_in_memory(const struct row_index *base, uint32_t n)
{
	return !bloom_row_in(base)->complete[n].source;
}

static int refresh(struct row_index *base)
{
	struct bloom_row *row = bloom_row_of(base);

	bounds_refresh(&row->bounds, row->complete, row->complete_count,
		       bloom_store_of(base->index)->version_tables);
	return 0;
}

static void estimate(const struct row_index *base, uint32_t n,
		     uint32_t live_permille[GROUP_SEGMENTS])
{
	const struct bloom_row *row = bloom_row_in(base);

	overlap_estimate(base->index->geometry, &row->complete[n], row->complete_count - n,
			 &row->growing, live_permille);
}

/* ---- all groups ---- */

/* Table n from the oldest; the growing one is the last. */
static const struct table *table_at(const struct bloom_row *row, uint32_t n)
{
	return n < row->complete_count ? &row->complete[n] : &row->growing;
}

static uint32_t groups(const struct row_index *base)
{
	return bloom_row_in(base)->complete_count;
}

static void read_group(const struct row_index *base, uint32_t n, struct index_group *group)
{
	const struct bloom_row *row = bloom_row_in(base);
	const struct table *table = table_at(row, n);

	*group = (struct index_group){
		.number = table_index(table),
		.members = table_columns(table),
		.live = table_live(table),
		.live_word = n < row->complete_count ? table->live_word : NULL,
	};
}

static void read_segment(const struct row_index *base, uint32_t n, uint32_t member,
			 struct sealed_segment *segment)
{
	table_read_column(table_at(bloom_row_in(base), n), member, segment);
}

/* ---- search ---- */

/* Of index_search.next. */
enum { NOT_BEGUN = INT32_MAX, IN_GROWING = INT32_MAX - 1 };

static void search_begin(struct index_search *search, const struct row_index *row,
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
	const struct bloom_row *row = bloom_row_in(search->row);
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

static bool search_segment(struct index_search *search, uint64_t after, uint32_t *segment)
{
	if (search->next == NOT_BEGUN)
		begin_table(search, after);
	do {
		search->table.after = after;
		if (table_search_segment(&search->table, segment)) {
			search->last_sequence = table_search_last(&search->table);
			return true;
		}
		search->result = search->table.result;
	} while (!search->result && begin_table(search, after));
	return false;
}

static bool search_page(struct index_search *search, uint32_t *page)
{
	return table_search_page(&search->table, page);
}

static int search_narrow(struct index_search *search, enum narrow_way way, index_probe *probe,
			 void *context)
{
	return table_search_narrow(&search->table, way, probe, context);
}

/* ---- */

const struct index_type bloom_index = {
	.sparse = 16,

	.choose = bloom_choose,
	.put_part = bloom_put_part,
	.get_part = bloom_get_part,
	.image_bytes_max = bloom_image_bytes_max,
	.group_bytes = bloom_image_bytes_max,
	.key_pages_max = bloom_key_pages_max,
	.image_member_at = image_member_at,
	.tell_image = bloom_tell_image,

	.create = create,
	.destroy = destroy,
	.prepare = prepare,
	.row = row_at,
	.count = count,

	.segment_create = bloom_segment_create,
	.segment_destroy = bloom_segment_destroy,
	.segment_begin = bloom_segment_begin,
	.first = bloom_segment_first,
	.next = bloom_segment_next,
	.note = bloom_segment_note,
	.note_page = bloom_segment_note_page,
	.find = bloom_segment_find,
	.may_place = bloom_may_place,
	.spreads = bloom_spreads,
	.segment_bytes = bloom_segment_bytes,
	.segment_memory = bloom_segment_memory,

	.begin = begin,
	.attach = attach,
	.sum = sum,
	.is_full = is_full,
	.write = write_segment,
	.commit = commit,
	.take_out = take_out,
	.nvram = nvram,

	.make_image = make_image,
	.replace = replace,
	.image_kept = image_kept,
	.check_image = check_image,
	.refresh = refresh,
	.copy_image = copy_image,
	.is_in_memory = is_in_memory,
	.estimate = estimate,

	.groups = groups,
	.read_group = read_group,
	.read_segment = read_segment,

	.search_begin = search_begin,
	.search_segment = search_segment,
	.search_page = search_page,
	.search_narrow = search_narrow,
};
