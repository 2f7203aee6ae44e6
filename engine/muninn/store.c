/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* An open store: its memory, and which records count in it. */
#include "engine/muninn/store.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/merge_run.h"
#include "engine/muninn/repair.h"
#include "engine/muninn/sealing.h"

static void free_row(struct row *row)
{
	buffer_destroy(&row->buffer);
	buffer_destroy(&row->newer);
	older_forget(&row->sealing.older);
}

void store_free(struct muninn_store *store)
{
	for (uint32_t number = 0; store->rows && number < store->geometry.rows; number++)
		free_row(&store->rows[number]);
	free(store->image_writing.image.bytes);
	free(store->image_writing.ranges);
	free(store->image_writing.parts);
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		buffer_destroy(&store->free_buffers[n]);
	free(store->free_buffers);
	free(store->touched);
	space_destroy(&store->space);
	index_destroy(store->index);
	sealing_destroy(store);
	free(store->rows);
	free(store->images);
	free(store->segment_rows);
	for (uint32_t number = 0; store->older && number < store->geometry.segments; number++)
		older_forget(&store->older[number]);
	free(store->older);
	merge_run_destroy(store);
	free(store->spare);
	free(store->root);
	free(store->list);
	repair_destroy(store);
	parity_destroy(&store->parity);
	free(store->lost.places);
	free(store);
}

int store_allocate(struct muninn_store *store, struct error_text *error)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint64_t bytes;

	store->nvram = nand_nvram(store->nand, &bytes);
	if (bytes < geometry->nvram_bytes)
		return error_set(
			error, -EINVAL,
			"the device has %llu bytes of NVRAM, the engine needs %llu; create the"
			" image again with the configured rows",
			(unsigned long long)bytes, (unsigned long long)geometry->nvram_bytes);
	store->rows = calloc(geometry->rows, sizeof(*store->rows));
	store->index = index_create(geometry, store->nvram);
	store->touched = calloc(geometry->rows, sizeof(*store->touched));
	store->free_buffers = calloc(geometry->buffers, sizeof(*store->free_buffers));
	store->images = calloc(geometry->segments, sizeof(*store->images));
	store->segment_rows = malloc(geometry->segments * sizeof(*store->segment_rows));
	store->older = calloc(geometry->segments, sizeof(*store->older));
	store->spare = calloc(1, nand_spare_usable(nand_geometry(store->nand)));
	store->root = calloc(run_pages(geometry, geometry->root_bytes_max), geometry->page_bytes);
	store->list = calloc(run_pages(geometry, 1), geometry->page_bytes);
	if (merge_run_create(store) || !store->rows || !store->index || !store->free_buffers ||
	    !store->touched || !store->images || !store->segment_rows || !store->older ||
	    !store->spare || parity_create(&store->parity, &geometry->parity) ||
	    repair_create(store) || sealing_create(store) || !store->root || !store->list)
		return error_set(error, -ENOMEM, "out of memory for %u rows",
				 geometry->hashed_rows);
	for (uint32_t number = 0; number < geometry->rows; number++)
		store->rows[number] = (struct row){ .index = index_row(store->index, number),
						    .sealing.segment = NO_SEGMENT };
	memset(store->segment_rows, 0xff, geometry->segments * sizeof(*store->segment_rows));
	/* The last is taken first: a new store gives row n buffer n. */
	for (uint32_t number = geometry->buffers; number-- > 0; store->free_buffer_count++)
		if (buffer_create(&store->free_buffers[store->free_buffer_count], geometry,
				  store->nand, number))
			return error_set(error, -ENOMEM,
					 "out of memory for the index of %u buffers",
					 geometry->buffers);
	return 0;
}

void store_forget_older(struct muninn_store *store, uint32_t segment)
{
	store->older_bytes -= older_memory(&store->older[segment]);
	older_forget(&store->older[segment]);
}

void store_note_older(struct muninn_store *store, uint32_t segment, const struct older_pages *older)
{
	store_forget_older(store, segment);
	store->older[segment] = *older;
	store->older_bytes += older_memory(older);
}

int store_refuse_nvram(const struct muninn_store *store, const char *what, uint64_t at,
		       uint64_t bytes, uint64_t other, struct error_text *error)
{
	uint64_t first = NAND_NVRAM_FILE_AT + at;

	return error_set(
		error, -EINVAL,
		"%s.nvram: bytes %llu to %llu, which hold %s, contradict byte %llu: one of "
		"both is damaged, or older than the rest; put the right file back",
		nand_path(store->nand), (unsigned long long)first,
		(unsigned long long)(first + bytes - 1), what,
		(unsigned long long)(NAND_NVRAM_FILE_AT + other));
}

void muninn_formatted_options(const struct record_store *store_, struct record_options *records,
			      struct muninn_options *options)
{
	const struct muninn_store *store = (const struct muninn_store *)(const void *)store_;
	int result;

	records->over_provision_permille = store->geometry.over_provision_permille;
	/* That is the header which the store was opened with. */
	result = index_get_part(store->geometry.index, store->nvram + NVRAM_INDEX_PART_AT, options,
				NULL);
	assert(!result);
	options->rows = store->geometry.hashed_rows;
	options->segment_pages = store->geometry.segment_pages;
	options->record_bytes = store->geometry.record_bytes;
	options->parity = store->geometry.parity.losses ? store->geometry.parity.losses
							: MUNINN_PARITY_NONE;
}

/* With more everything counts as lost. */
enum { LOST_MAX = 4096 };

void lost_note(struct lost *lost, uint32_t row, uint32_t page, uint64_t serial)
{
	if (lost->all)
		return;
	if (!lost->places)
		lost->places = calloc(LOST_MAX, sizeof(*lost->places));
	if (!lost->places || lost->count == LOST_MAX)
		lost->all = true;
	else
		lost->places[lost->count++] =
			(struct lost_place){ .row = row, .page = page, .serial = serial };
}

struct visibility store_visibility(const struct muninn_store *store, uint64_t bound)
{
	return (struct visibility){
		.bound = bound,
		.below = RECORD_NEWEST + 1,
		.from = store->void_before,
		.hidden = store->hidden,
		.aborted = store->nvram + NVRAM_ABORTED_AT,
		.aborted_count = state_read(store, STATE_ABORTED_COUNT_AT),
	};
}
