/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Passes calls on to the index that a device was formatted with. */
#include <assert.h>
#include <errno.h>

#include "engine/muninn/index/index_type.h"

static const struct index_type *type_of(enum index_kind kind)
{
	static const struct index_type *const types[] = {
		[INDEX_BLOOM] = &bloom_index,
		[INDEX_RIBBON] = &ribbon_index,
	};

	return kind < sizeof(types) / sizeof(types[0]) ? types[kind] : NULL;
}

static const struct index_type *type_for(const struct muninn_geometry *geometry)
{
	const struct index_type *type = type_of(geometry->index);

	assert(type);
	return type;
}

/* ---- sizes ---- */

int index_choose(const struct muninn_options *options, struct muninn_geometry *geometry,
		 struct error_text *error)
{
	geometry->index = options->index ? options->index : INDEX_DEFAULT;
	if (!index_is_known(geometry->index))
		return error_set(error, -EINVAL, "index %u is not known",
				 (unsigned int)geometry->index);
	return type_for(geometry)->choose(options, geometry, error);
}

bool index_is_known(uint32_t kind)
{
	return type_of((enum index_kind)kind) != NULL;
}

void index_put_part(const struct muninn_geometry *geometry, uint8_t part[INDEX_PART_BYTES])
{
	memset(part, 0, INDEX_PART_BYTES);
	type_for(geometry)->put_part(geometry, part);
}

int index_get_part(enum index_kind kind, const uint8_t part[INDEX_PART_BYTES],
		   struct muninn_options *options, struct error_text *error)
{
	const struct index_type *type = type_of(kind);

	assert(type);
	options->index = kind;
	return type->get_part(part, options, error);
}

uint64_t index_image_bytes_max(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->image_bytes_max(geometry);
}

uint64_t index_group_bytes(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->group_bytes(geometry);
}

uint32_t index_sparse(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->sparse;
}

uint32_t index_key_pages_max(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->key_pages_max(geometry);
}

uint32_t index_image_member_at(const struct muninn_geometry *geometry, uint32_t member)
{
	return type_for(geometry)->image_member_at(member);
}

bool index_tell_image(const struct muninn_geometry *geometry, uint8_t *image, uint64_t length,
		      uint64_t live, const struct fields *to)
{
	return type_for(geometry)->tell_image(geometry, image, length, live, to);
}

/* ---- the index of a store ---- */

struct index *index_create(const struct muninn_geometry *geometry, uint8_t *nvram)
{
	return type_for(geometry)->create(geometry, nvram);
}

void index_destroy(struct index *index)
{
	if (index)
		index->type->destroy(index);
}

int index_prepare(struct index *index, const struct muninn_options *options,
		  index_page_reader *read, void *context, struct error_text *error)
{
	return index->type->prepare(index, options, read, context, error);
}

struct row_index *index_row(struct index *index, uint32_t row)
{
	return index->type->row(index, row);
}

/* Adds what is in the groups of a row. */
static void count_row(const struct row_index *row, struct index_figures *figures)
{
	uint32_t complete = row->type->groups(row);
	struct index_group group;

	figures->groups += complete;
	for (uint32_t n = 0; n <= complete; n++) {
		row->type->read_group(row, n, &group);
		figures->segments += (uint64_t)__builtin_popcountll(group.live);
	}
}

void index_count(struct index *index, struct index_figures *figures)
{
	*figures = (struct index_figures){ 0 };
	for (uint32_t number = 0; number < index->geometry->rows; number++)
		count_row(index_row(index, number), figures);
	index->type->count(index, figures);
}

/* ---- the index of an active segment ---- */

struct segment_index *segment_index_create(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->segment_create(geometry);
}

void segment_index_destroy(struct segment_index *index)
{
	if (index)
		index->type->segment_destroy(index);
}

void segment_index_begin(struct segment_index *index, const struct row_index *row, uint32_t ahead,
			 uint64_t serial)
{
	index->type->segment_begin(index, row, ahead, serial);
}

uint32_t segment_index_first(const struct segment_index *index, const struct key_hash *hash)
{
	return index->type->first(index, hash);
}

bool segment_index_next(const struct segment_index *index, const struct key_hash *hash,
			uint32_t *place, uint32_t *page)
{
	return index->type->next(index, hash, place, page);
}

void segment_index_note(struct segment_index *index, const struct key_hash *hash, uint32_t place)
{
	index->type->note(index, hash, place);
}

void segment_index_fill(struct segment_index *index, uint32_t page)
{
	if (index->type->fill)
		index->type->fill(index, page);
}

bool segment_index_note_page(struct segment_index *index, const struct key_hash *hash,
			     uint32_t page)
{
	return index->type->note_page(index, hash, page);
}

bool segment_index_find(const struct segment_index *index, const struct key_hash *hash,
			const struct pages_up_to *wanted, uint32_t *place, uint32_t *page)
{
	return index->type->find(index, hash, wanted, place, page);
}

bool index_may_place(const struct muninn_geometry *geometry, const struct key_hash *hash,
		     uint64_t serial, uint32_t page)
{
	return type_for(geometry)->may_place(geometry, hash, serial, page);
}

bool index_spreads(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->spreads(geometry);
}

bool index_places_anywhere(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->places_anywhere;
}

uint64_t segment_index_bytes(const struct segment_index *index)
{
	return index->type->segment_bytes(index);
}

uint64_t segment_index_memory(const struct segment_index *index)
{
	return index ? index->type->segment_memory(index) : 0;
}

/* ---- the records of a segment that is sealed ---- */

bool index_arranges(const struct muninn_geometry *geometry)
{
	return type_for(geometry)->arrange != NULL;
}

bool index_spans(const struct muninn_geometry *geometry, uint32_t cells)
{
	return index_arranges(geometry) && type_for(geometry)->spans(geometry, cells);
}

struct arrangement *index_arrange(const struct muninn_geometry *geometry, uint64_t serial,
				  const struct page_view *pages, uint32_t cell_bytes)
{
	return index_arranges(geometry)
		       ? type_for(geometry)->arrange(geometry, serial, pages, cell_bytes)
		       : NULL;
}

/* ---- a row: its growing group ---- */

void row_index_begin(struct row_index *row, uint32_t group)
{
	row->type->begin(row, group);
}

int row_index_attach(struct row_index *row)
{
	return row->type->attach(row);
}

uint64_t row_index_sum(const struct row_index *row)
{
	return row->type->sum(row);
}

bool row_index_is_full(const struct row_index *row)
{
	return row->type->is_full(row);
}

void row_index_condense(struct row_index *row)
{
	if (row->type->condense)
		row->type->condense(row);
}

int row_index_write(struct row_index *row, const struct segment_index *index,
		    const struct arrangement *arrangement, const struct sealed_segment *segment)
{
	return row->type->write(row, index, arrangement, segment);
}

void row_index_append(struct row_index *row, const uint8_t *bytes, uint32_t count)
{
	if (row->type->append)
		row->type->append(row, bytes, count);
}

const uint8_t *row_index_appended(const struct row_index *row, uint32_t member, uint32_t *count)
{
	*count = 0;
	return row->type->appended ? row->type->appended(row, member, count) : NULL;
}

void row_index_commit(struct row_index *row)
{
	row->type->commit(row);
}

const uint8_t *row_index_nvram(const struct row_index *row, uint64_t *bytes)
{
	return row->type->nvram(row, bytes);
}

/* ---- a row: its complete groups ---- */

int row_index_make_image(const struct row_index *row, struct index_image *image)
{
	return row->type->make_image(row, image);
}

uint64_t index_image_kept(const struct index *index, const uint8_t *head, uint64_t *length)
{
	return index->type->image_kept(index, head, length);
}

int row_index_check_image(const struct row_index *row, const struct index_image *image,
			  struct error_text *error)
{
	return row->type->check_image(row, image, error);
}

void index_image_append(const struct index *index, struct index_image *image, const uint8_t *bytes,
			uint32_t count)
{
	if (count && index->type->image_append)
		index->type->image_append(image, bytes, count);
}

const uint8_t *index_image_appended(const struct index *index, const struct index_image *image,
				    uint32_t *count)
{
	*count = 0;
	return index->type->image_appended ? index->type->image_appended(image, count) : NULL;
}

int row_index_refresh(struct row_index *row)
{
	return row->type->refresh(row);
}

/* ---- search ---- */

void index_search_begin(struct index_search *search, const struct row_index *row,
			const struct key_hash *hash, uint64_t bound)
{
	row->type->search_begin(search, row, hash, bound);
}

bool index_search_segment(struct index_search *search, uint64_t after, uint32_t *segment)
{
	return search->row->type->search_segment(search, after, segment);
}

bool index_search_page(struct index_search *search, uint32_t *page)
{
	return search->row->type->search_page(search, page);
}

bool index_search_has_run(const struct index_search *search)
{
	const struct index_type *type = search->row->type;

	return type->search_has_run && type->search_has_run(search);
}

void index_search_run(struct index_search *search)
{
	search->row->type->search_run(search);
}

bool index_search_rises(const struct index_search *search)
{
	const struct index_type *type = search->row->type;

	return type->search_rises && type->search_rises(search);
}

int index_search_narrow(struct index_search *search, enum narrow_way way, index_probe *probe,
			void *context)
{
	return search->row->type->search_narrow(search, way, probe, context);
}
