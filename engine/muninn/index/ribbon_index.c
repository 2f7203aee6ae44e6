/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The ribbon index as an index of a store: its parts are in ribbon/. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "engine/muninn/index/index_type.h"
#include "engine/muninn/index/ribbon/group_join.h"
#include "engine/muninn/index/ribbon/growing_format.h"
#include "engine/muninn/index/ribbon_arrange.h"
#include "engine/muninn/index/ribbon_narrow.h"

struct ribbon_index_row {
	struct row_index base;
	struct ribbon_row row;
};

struct ribbon_store {
	struct index base;
	struct ribbon_shape shape;
	struct ribbon_index_row *rows;
};

struct ribbon_segment {
	struct segment_index base;
	struct ribbon_shape shape;
	struct active *active;
};

static struct ribbon_store *store_of(struct index *index)
{
	return (struct ribbon_store *)index;
}

static struct ribbon_row *row_of(struct row_index *base)
{
	return &((struct ribbon_index_row *)base)->row;
}

static const struct ribbon_row *row_in(const struct row_index *base)
{
	return &((const struct ribbon_index_row *)base)->row;
}

static struct active *active_of(struct segment_index *base)
{
	return ((struct ribbon_segment *)base)->active;
}

static const struct active *active_in(const struct segment_index *base)
{
	return ((const struct ribbon_segment *)base)->active;
}

/* ---- sizes ---- */

static struct ribbon_shape shape_of(const struct muninn_geometry *geometry)
{
	return ribbon_shape_choose(geometry->page_bytes, geometry->segment_pages,
				   geometry->record_bytes);
}

/* Groups are in memory as a whole. */
static int refuse_cache(const struct muninn_options *options, struct error_text *error)
{
	if (!options->bloom.table_cache_bytes)
		return 0;
	return error_set(error, -EINVAL,
			 "a cache for tables of the index: the ribbon index is in memory as a "
			 "whole; index = bloom has such tables");
}

static int choose(const struct muninn_options *options, struct muninn_geometry *geometry,
		  struct error_text *error)
{
	(void)geometry;
	return refuse_cache(options, error);
}

static void put_part(const struct muninn_geometry *geometry, uint8_t part[INDEX_PART_BYTES])
{
	(void)geometry;
	put_le32(part, RIBBON_VERSION);
}

static int get_part(const uint8_t part[INDEX_PART_BYTES], struct muninn_options *options,
		    struct error_text *error)
{
	(void)options;
	if (get_le32(part) >= RIBBON_VERSION_OLDEST && get_le32(part) <= RIBBON_VERSION)
		return 0;
	return error_set(error, -EPROTO,
			 "the device has version %u of the ribbon index, this program knows "
			 "versions %d to %d; use the program that formatted it",
			 get_le32(part), RIBBON_VERSION_OLDEST, RIBBON_VERSION);
}

static uint64_t image_bytes_max(const struct muninn_geometry *geometry)
{
	struct ribbon_shape shape = shape_of(geometry);

	return ribbon_image_bytes_max(&shape);
}

static uint64_t group_bytes(const struct muninn_geometry *geometry)
{
	struct ribbon_shape shape = shape_of(geometry);

	return growing_bytes(&shape);
}

static uint32_t key_pages_max(const struct muninn_geometry *geometry)
{
	return geometry->segment_pages;
}

static uint32_t image_member_at(uint32_t member)
{
	return GROUP_HEADER_BYTES + member * MEMBER_BYTES + MEMBER_SEGMENT_AT;
}

/* ---- the index of a store ---- */

static void destroy(struct index *base)
{
	struct ribbon_store *store = store_of(base);

	for (uint32_t number = 0; store->rows && number < base->geometry->rows; number++)
		ribbon_row_destroy(&store->rows[number].row);
	free(store->rows);
	free(store);
}

static int create_row(struct ribbon_store *store, uint32_t number, uint8_t *nvram)
{
	const struct muninn_geometry *geometry = store->base.geometry;
	struct ribbon_index_row *row = &store->rows[number];

	row->base = (struct row_index){ .type = &ribbon_index,
					.index = &store->base,
					.number = number };
	return ribbon_row_create(&row->row, &store->shape, number,
				 nvram + geometry->groups_at + number * geometry->group_bytes,
				 nvram + row_sum_pair_at(geometry, number));
}

static struct index *create(const struct muninn_geometry *geometry, uint8_t *nvram)
{
	struct ribbon_store *store = calloc(1, sizeof(*store));
	int result = 0;

	if (!store)
		return NULL;
	store->base = (struct index){ .type = &ribbon_index, .geometry = geometry };
	store->shape = shape_of(geometry);
	store->rows = calloc(geometry->rows, sizeof(*store->rows));
	if (!store->rows)
		result = -ENOMEM;
	for (uint32_t number = 0; !result && number < geometry->rows; number++)
		result = create_row(store, number, nvram);
	if (!result)
		return &store->base;
	destroy(&store->base);
	return NULL;
}

static int prepare(struct index *base, const struct muninn_options *options,
		   index_page_reader *read, void *context, struct error_text *error)
{
	(void)base;
	(void)read;
	(void)context;
	return refuse_cache(options, error);
}

static struct row_index *row_at(struct index *base, uint32_t row)
{
	return &store_of(base)->rows[row].base;
}

static uint64_t given(const void *memory)
{
	return malloc_usable_size((void *)(uintptr_t)memory);
}

static void count(const struct index *base, struct index_figures *figures)
{
	const struct ribbon_store *store = (const struct ribbon_store *)base;

	figures->rows_memory = given(store) + given(store->rows);
	for (uint32_t number = 0; number < base->geometry->rows; number++) {
		const struct ribbon_row *row = &store->rows[number].row;

		figures->internal_versions += row->count; /* each has bounds of its own */
		figures->bytes += ribbon_row_bytes(row);
		figures->groups_memory += ribbon_row_images_memory(row);
		figures->rows_memory += ribbon_row_other_memory(row);
	}
}

/* ---- the index of an active segment: a place is a page ---- */

static struct segment_index *segment_create(const struct muninn_geometry *geometry)
{
	struct ribbon_segment *index = calloc(1, sizeof(*index));

	if (!index)
		return NULL;
	index->base = (struct segment_index){ .type = &ribbon_index, .geometry = geometry };
	index->shape = shape_of(geometry);
	index->active = active_create(&index->shape);
	if (index->active)
		return &index->base;
	free(index);
	return NULL;
}

static void segment_destroy(struct segment_index *base)
{
	active_destroy(active_of(base));
	free(base);
}

static void segment_begin(struct segment_index *base, const struct row_index *row, uint32_t ahead,
			  uint64_t serial)
{
	(void)row;
	(void)ahead;
	(void)serial;
	active_begin(active_of(base));
}

static uint32_t first(const struct segment_index *base, const struct key_hash *hash)
{
	return active_first(active_in(base), hash);
}

static bool next(const struct segment_index *base, const struct key_hash *hash, uint32_t *place,
		 uint32_t *page)
{
	if (!active_next(active_in(base), hash, place))
		return false;
	*page = *place;
	return true;
}

static void note(struct segment_index *base, const struct key_hash *hash, uint32_t place)
{
	active_note(active_of(base), hash, place);
}

static void fill(struct segment_index *base, uint32_t page)
{
	active_fill(active_of(base), page);
}

static bool note_page(struct segment_index *base, const struct key_hash *hash, uint32_t page)
{
	return active_note_page(active_of(base), hash, page);
}

static bool find(const struct segment_index *base, const struct key_hash *hash,
		 const struct pages_up_to *wanted, uint32_t *place, uint32_t *page)
{
	if (!active_find(active_in(base), hash, wanted ? wanted->lowest : NULL,
			 wanted ? wanted->bound : 0, place))
		return false;
	*page = *place;
	return true;
}

static bool may_place(const struct muninn_geometry *geometry, const struct key_hash *hash,
		      uint64_t serial, uint32_t page)
{
	(void)geometry;
	(void)hash;
	(void)serial;
	(void)page;
	return true;
}

static bool spreads(const struct muninn_geometry *geometry)
{
	(void)geometry;
	return true;
}

static uint64_t segment_bytes(const struct segment_index *base)
{
	return active_bytes(active_in(base));
}

static uint64_t segment_memory(const struct segment_index *base)
{
	return given(base) + active_memory(active_in(base));
}

static struct arrangement *arrange(const struct muninn_geometry *geometry, uint64_t serial,
				   const struct page_view *pages, uint32_t cell_bytes)
{
	struct ribbon_shape shape = shape_of(geometry);

	return ribbon_arrange(geometry, &shape, serial, pages, cell_bytes);
}

/* With all its records in runs it has an entry for each key and page. */
static bool spans(const struct muninn_geometry *geometry, uint32_t cells)
{
	struct ribbon_shape shape = shape_of(geometry);

	return cells + geometry->segment_pages <= shape.segment_entries;
}

/* ---- a row: its growing group ---- */

static void begin(struct row_index *base, uint32_t group)
{
	ribbon_row_begin(row_of(base), group);
}

static int attach(struct row_index *base)
{
	return ribbon_row_attach(row_of(base));
}

static uint64_t sum(const struct row_index *base)
{
	return growing_sum(&row_in(base)->growing);
}

static bool is_full(const struct row_index *base)
{
	return growing_is_full(&row_in(base)->growing);
}

static void condense(struct row_index *base)
{
	ribbon_row_condense(row_of(base));
}

/* Entries of a segment whose records stay on their pages, on the heap. NULL: out of memory. */
static struct tag_entry *list_entries(const struct active *active)
{
	struct tag_entry *entries = malloc((active_count(active) + 1) * sizeof(*entries));
	uint32_t at = 0;

	for (uint32_t n = 0; entries && active_entry(active, &at, &entries[n]); n++)
		entries[n].location = location_word(entries[n].location, PLACEMENT_NONE);
	return entries;
}

static int write_listed(struct ribbon_row *row, const struct active *active,
			const struct group_member *member)
{
	struct tag_entry *entries = list_entries(active);
	int result = entries ? ribbon_row_write(row, entries, active_count(active), member)
			     : -ENOMEM;

	free(entries);
	return result;
}

static int write_segment(struct row_index *base, const struct segment_index *index,
			 const struct arrangement *arrangement,
			 const struct sealed_segment *segment)
{
	struct group_member member = {
		.segment = segment->segment,
		.records = segment->records,
		.serial = segment->serial,
		.first_sequence = segment->first_sequence,
		.last_sequence = segment->last_sequence,
		.record_bytes = (uint32_t)segment->record_bytes,
		.is_ordered = segment->is_ordered,
	};
	const struct tag_entry *entries;
	uint32_t count;

	if (!arrangement)
		return write_listed(row_of(base), active_in(index), &member);
	entries = arrangement_entries(arrangement, &count, &member.run_pages);
	member.has_runs = member.run_pages > 0;
	member.by_candidates = member.run_pages < row_in(base)->shape->segment_pages;
	return ribbon_row_write(row_of(base), entries, count, &member);
}

static void append(struct row_index *base, const uint8_t *bytes, uint32_t count)
{
	growing_append(&row_of(base)->growing, bytes, count);
}

static const uint8_t *appended(const struct row_index *base, uint32_t member, uint32_t *count)
{
	return growing_appended(&row_in(base)->growing, member, count);
}

static void commit(struct row_index *base)
{
	ribbon_row_commit(row_of(base));
}

static void take_out(struct row_index *base, uint32_t member)
{
	growing_take_out(&row_of(base)->growing, member);
}

/* All of its space: how much is used is known only of members that count. */
static const uint8_t *nvram(const struct row_index *base, uint64_t *bytes)
{
	const struct ribbon_row *row = row_in(base);

	*bytes = growing_bytes(row->shape);
	return row->growing.nvram;
}

/* ---- complete groups ---- */

static int make_image(const struct row_index *base, struct index_image *image)
{
	*image = (struct index_image){ .group = growing_number(&row_in(base)->growing) };
	return ribbon_row_make_image(row_in(base), &image->bytes, &image->length);
}

static int replace(struct row_index *base, uint32_t from, uint32_t to, const struct index_image *by)
{
	struct ribbon_image image;

	if (!by)
		return ribbon_row_replace(row_of(base), from, to, NULL);
	image = (struct ribbon_image){ .bytes = by->bytes, .length = by->length, .live = by->live };
	return ribbon_row_replace(row_of(base), from, to, &image);
}

/* All but the tags. */
static uint64_t image_kept(const struct index *base, const uint8_t *head, uint64_t *length)
{
	uint32_t tag_bytes = *length < GROUP_HEADER_BYTES ? 0 : get_le32(head + GROUP_TAGS_AT);

	(void)base;
	if (tag_bytes < *length)
		*length -= tag_bytes;
	return *length;
}

static bool read_image(const struct index_image *image, struct index_group *of_image)
{
	struct group group;

	if (!group_attach(&group, image->bytes, image->length))
		return false;
	*of_image = (struct index_group){
		.number = group.number,
		.members = group.members,
		.joins = group.joins,
	};
	return true;
}

static int check_image(const struct row_index *base, const struct index_image *image,
		       struct error_text *error)
{
	const struct ribbon_image of_row = { .bytes = image->bytes, .length = image->length };

	if (!ribbon_row_check(row_in(base), &of_row, image->group))
		return 0;
	return error_set(error, -EINVAL,
			 "index: group %u of row %u is not what the directory says; the device is "
			 "damaged",
			 image->group, base->number);
}

static_assert((int)INDEX_JOIN_MAX <= (int)GROUP_PARTS_MAX, "so many groups can become one");

/* As many as it would have if it were made again, segment by segment. */
static struct index_group most(const struct row_index *base, uint32_t number)
{
	const struct ribbon_shape *shape = row_in(base)->shape;

	return (struct index_group){
		.number = number,
		.members = ribbon_members(base->number, number),
		.entries = shape->group_entries - shape->segment_entries,
	};
}

static bool may_join(const struct row_index *base, uint32_t n, uint32_t other)
{
	const struct group *group = &row_in(base)->complete[n].group;

	return group->tag_bytes &&
	       group->locations == row_in(base)->complete[other].group.locations;
}

static int join_groups(const struct row_index *base, const struct index_join *join,
		       const struct index_image *parts, struct index_image *image)
{
	struct group_part of_ribbon[INDEX_JOIN_MAX];

	for (uint32_t n = 0; n < join->count; n++)
		of_ribbon[n] = (struct group_part){ .image = parts[n].bytes,
						    .length = parts[n].length,
						    .live = join->live[n] };
	*image = (struct index_image){ .group = join->numbers[0] };
	return group_join(row_in(base)->shape, of_ribbon, join->count, &image->bytes,
			  &image->length);
}

static int copy_image(const struct row_index *base, uint32_t n, struct index_image *image)
{
	const struct complete *complete = &row_in(base)->complete[n];

	*image = (struct index_image){ .group = complete->group.number, .live = complete->live };
	return ribbon_row_copy_image(row_in(base), n, &image->bytes, &image->length);
}

static void image_append(struct index_image *image, const uint8_t *bytes, uint32_t count)
{
	group_append(&image->bytes, &image->length, bytes, count);
}

static const uint8_t *image_appended(const struct index_image *image, uint32_t *count)
{
	struct group group;

	if (!group_attach(&group, image->bytes, image->length) || !group.appended)
		return NULL;
	*count = group.appended;
	return image->bytes + group_bytes_before_tags(&group) - group.appended;
}

static bool is_in_memory(const struct row_index *base, uint32_t n)
{
	(void)base;
	(void)n;
	return true;
}

static int refresh(struct row_index *base)
{
	return ribbon_row_finish(row_of(base));
}

/* ---- all groups ---- */

static uint32_t groups(const struct row_index *base)
{
	return row_in(base)->count;
}

static void read_group(const struct row_index *base, uint32_t n, struct index_group *group)
{
	const struct ribbon_row *row = row_in(base);
	const struct complete *complete = &row->complete[n];

	if (n == row->count)
		*group = (struct index_group){
			.number = growing_number(&row->growing),
			.members = growing_members(&row->growing),
			.live = growing_live(&row->growing),
		};
	else
		*group = (struct index_group){
			.number = complete->group.number,
			.members = complete->group.members,
			.entries = complete->group.entries,
			.joins = complete->group.joins,
			.live = get_le64(complete->live) &
				((UINT64_C(1) << complete->group.members) - 1),
			.live_word = complete->live,
		};
}

static struct sealed_segment segment_of(const struct group_member *facts, uint32_t group,
					uint32_t member)
{
	return (struct sealed_segment){
		.segment = facts->segment,
		.group = group,
		.member = member,
		.records = facts->records,
		.serial = facts->serial,
		.first_sequence = facts->first_sequence,
		.last_sequence = facts->last_sequence,
		.record_bytes = facts->record_bytes,
		.is_ordered = facts->is_ordered,
	};
}

static void read_segment(const struct row_index *base, uint32_t n, uint32_t member,
			 struct sealed_segment *segment)
{
	const struct ribbon_row *row = row_in(base);
	struct group_member facts;
	uint32_t group;

	if (n == row->count) {
		group = growing_number(&row->growing);
		growing_read_member(&row->growing, member, &facts);
	} else {
		group = row->complete[n].group.number;
		group_read_member(&row->complete[n].group, member, &facts);
	}
	*segment = segment_of(&facts, group, member);
}

static bool tell_image(const struct muninn_geometry *geometry, uint8_t *image, uint64_t length,
		       uint64_t live, const struct fields *to)
{
	struct group group;

	(void)geometry;
	if (!group_attach(&group, image, length))
		return false;
	field_flag(to, "image_intact", group_is_intact(&group, length));
	field_number(to, "member_count", group.members);
	field_number(to, "entries", group.entries);
	field_number(to, "failed_entries", group.failed);
	field_number(to, "tag_bytes", group.tag_bytes);
	if (group.tag_bytes)
		field_flag(to, "tags_intact", group_has_intact_tags(&group, length));
	field_number(to, "appended_bytes", group.appended);
	field_number(to, "joined_numbers", group.joins);
	field_number(to, "starts", group.band.shape.starts);
	field_number(to, "columns", group.band.shape.columns);
	field_number(to, "fingerprint_bits", group.band.shape.fingerprint_bits);
	field_text(to, "locations",
		   group.locations == PLACEMENT_CANDIDATES ? "candidates" : "pages");
	field_list(to, "members");
	for (uint32_t member = 0; member < group.members; member++) {
		struct group_member facts;
		struct sealed_segment segment;

		group_read_member(&group, member, &facts);
		segment = segment_of(&facts, group.number, member);
		sealed_segment_tell(&segment, live >> member & 1, to);
		field_detail(to, FIELD_FLAG, "arranged", facts.by_candidates);
		field_detail(to, FIELD_NUMBER, "run_pages", group_member_runs(&facts));
	}
	field_end(to);
	return true;
}

/* ---- search ---- */

static void search_begin(struct index_search *search, const struct row_index *row,
			 const struct key_hash *hash, uint64_t bound)
{
	search->result = 0;
	search->row = row;
	ribbon_search_begin(&search->ribbon, row_in(row), hash, bound);
}

static bool search_segment(struct index_search *search, uint64_t after, uint32_t *segment)
{
	if (!ribbon_search_segment(&search->ribbon, after, segment))
		return false;
	search->last_sequence = search->ribbon.segment.last_sequence;
	return true;
}

static bool search_page(struct index_search *search, uint32_t *page)
{
	return ribbon_search_page(&search->ribbon, page);
}

static bool search_has_run(const struct index_search *search)
{
	return ribbon_search_has_run(&search->ribbon);
}

static void search_run(struct index_search *search)
{
	ribbon_search_run(&search->ribbon);
}

/*
 * A segment with runs is arranged: the records of a key are on ascending pages by their numbers,
 * its head last, moved or not. A search begins at the head, whatever is a false hit: see "How step
 * 3 works". Of a segment without runs that is not known: pages may be where the buffer had them.
 */
static bool search_rises(const struct index_search *search)
{
	return search->ribbon.segment.has_runs;
}

static int search_narrow(struct index_search *search, enum narrow_way way, index_probe *probe,
			 void *context)
{
	return ribbon_narrow(&search->ribbon, way, probe, context);
}

/* ---- */

const struct index_type ribbon_index = {
	.sparse = RIBBON_SPARSE,
	.places_anywhere = true,

	.choose = choose,
	.put_part = put_part,
	.get_part = get_part,
	.image_bytes_max = image_bytes_max,
	.group_bytes = group_bytes,
	.key_pages_max = key_pages_max,
	.image_member_at = image_member_at,
	.tell_image = tell_image,

	.create = create,
	.destroy = destroy,
	.prepare = prepare,
	.row = row_at,
	.count = count,

	.segment_create = segment_create,
	.segment_destroy = segment_destroy,
	.segment_begin = segment_begin,
	.first = first,
	.next = next,
	.note = note,
	.fill = fill,
	.note_page = note_page,
	.find = find,
	.may_place = may_place,
	.spreads = spreads,
	.segment_bytes = segment_bytes,
	.segment_memory = segment_memory,
	.arrange = arrange,
	.spans = spans,

	.begin = begin,
	.attach = attach,
	.sum = sum,
	.is_full = is_full,
	.condense = condense,
	.write = write_segment,
	.append = append,
	.appended = appended,
	.commit = commit,
	.take_out = take_out,
	.nvram = nvram,

	.make_image = make_image,
	.replace = replace,
	.image_kept = image_kept,
	.read_image = read_image,
	.check_image = check_image,
	.refresh = refresh,
	.most = most,
	.may_join = may_join,
	.join = join_groups,
	.copy_image = copy_image,
	.image_append = image_append,
	.image_appended = image_appended,
	.is_in_memory = is_in_memory,

	.groups = groups,
	.read_group = read_group,
	.read_segment = read_segment,

	.search_begin = search_begin,
	.search_segment = search_segment,
	.search_page = search_page,
	.search_has_run = search_has_run,
	.search_run = search_run,
	.search_rises = search_rises,
	.search_narrow = search_narrow,
};
