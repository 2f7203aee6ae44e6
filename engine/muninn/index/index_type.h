/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What an index has to provide, and what all indices share. Private to this folder.
 *
 * The functions are those of index.h with the same names, which say what they do. index.c passes
 * calls on; row_groups.c does what needs nothing but the segments of each group.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_INDEX_TYPE_H
#define MUNINN_ENGINE_MUNINN_INDEX_INDEX_TYPE_H

#include "engine/muninn/index/index.h"

/* A group of a row. */
struct index_group {
	uint32_t number, members;
	uint32_t entries; /* of all members of a complete group, where they are counted */
	uint32_t joins;   /* numbers, from its own on, whose groups it took the place of; 0: none */
	uint64_t live;    /* a bit for each member that is there */
	uint8_t *live_word; /* of a complete group; NULL: it is the growing one */
};

struct index_type {
	uint32_t sparse;      /* see row_index_find_sparse */
	bool places_anywhere; /* see index_places_anywhere */

	/* Sizes. */
	int (*choose)(const struct muninn_options *options, struct muninn_geometry *geometry,
		      struct error_text *error);
	void (*put_part)(const struct muninn_geometry *geometry, uint8_t part[INDEX_PART_BYTES]);
	int (*get_part)(const uint8_t part[INDEX_PART_BYTES], struct muninn_options *options,
			struct error_text *error);
	uint64_t (*image_bytes_max)(const struct muninn_geometry *geometry);
	uint64_t (*group_bytes)(const struct muninn_geometry *geometry);
	uint32_t (*key_pages_max)(const struct muninn_geometry *geometry);
	uint32_t (*image_member_at)(uint32_t member);
	bool (*tell_image)(const struct muninn_geometry *geometry, uint8_t *image, uint64_t length,
			   uint64_t live, const struct fields *to);

	/* The index of a store. */
	struct index *(*create)(const struct muninn_geometry *geometry, uint8_t *nvram);
	void (*destroy)(struct index *index);
	int (*prepare)(struct index *index, const struct muninn_options *options,
		       index_page_reader *read, void *context, struct error_text *error);
	struct row_index *(*row)(struct index *index, uint32_t row);
	/* Of `figures`, segments and complete groups are not counted here. */
	void (*count)(const struct index *index, struct index_figures *figures);

	/* The index of an active segment. */
	struct segment_index *(*segment_create)(const struct muninn_geometry *geometry);
	void (*segment_destroy)(struct segment_index *index);
	void (*segment_begin)(struct segment_index *index, const struct row_index *row,
			      uint32_t ahead, uint64_t serial);
	uint32_t (*first)(const struct segment_index *index, const struct key_hash *hash);
	bool (*next)(const struct segment_index *index, const struct key_hash *hash,
		     uint32_t *place, uint32_t *page);
	void (*note)(struct segment_index *index, const struct key_hash *hash, uint32_t place);
	void (*fill)(struct segment_index *index, uint32_t page); /* NULL: it passes nothing over */
	bool (*note_page)(struct segment_index *index, const struct key_hash *hash, uint32_t page);
	bool (*find)(const struct segment_index *index, const struct key_hash *hash,
		     const struct pages_up_to *wanted, uint32_t *place, uint32_t *page);
	bool (*may_place)(const struct muninn_geometry *geometry, const struct key_hash *hash,
			  uint64_t serial, uint32_t page);
	bool (*spreads)(const struct muninn_geometry *geometry);
	uint64_t (*segment_bytes)(const struct segment_index *index);
	uint64_t (*segment_memory)(const struct segment_index *index);

	/* NULL: the index never arranges records. */
	struct arrangement *(*arrange)(const struct muninn_geometry *geometry, uint64_t serial,
				       const struct page_view *pages, uint32_t cell_bytes);
	bool (*spans)(const struct muninn_geometry *geometry, uint32_t cells);

	/* A row: its growing group. */
	void (*begin)(struct row_index *row, uint32_t group);
	int (*attach)(struct row_index *row);
	uint64_t (*sum)(const struct row_index *row);
	bool (*is_full)(const struct row_index *row);
	void (*condense)(struct row_index *row); /* NULL: there is nothing to do */
	int (*write)(struct row_index *row, const struct segment_index *index,
		     const struct arrangement *arrangement, const struct sealed_segment *segment);
	/* NULL: there is no place for that. */
	void (*append)(struct row_index *row, const uint8_t *bytes, uint32_t count);
	const uint8_t *(*appended)(const struct row_index *row, uint32_t member, uint32_t *count);
	void (*commit)(struct row_index *row);
	void (*take_out)(struct row_index *row, uint32_t member);
	const uint8_t *(*nvram)(const struct row_index *row, uint64_t *bytes);

	/* A row: its complete groups. */
	int (*make_image)(const struct row_index *row, struct index_image *image);
	/* Those from place `from` on that are below `to`. */
	int (*replace)(struct row_index *row, uint32_t from, uint32_t to,
		       const struct index_image *by);
	uint64_t (*image_kept)(const struct index *index, const uint8_t *head, uint64_t *length);
	/* What an image says of its group. NULL: none ever takes the place of another one. */
	bool (*read_image)(const struct index_image *image, struct index_group *group);
	int (*check_image)(const struct row_index *row, const struct index_image *image,
			   struct error_text *error);
	int (*refresh)(struct row_index *row);
	/*
	 * What a group with that number has at most. A segment has as many entries as others of its
	 * group, more or less. NULL: no group takes the place of others.
	 */
	struct index_group (*most)(const struct row_index *row, uint32_t number);
	/* Whether complete group `n` could be a part of a group together with group `other`. */
	bool (*may_join)(const struct row_index *row, uint32_t n, uint32_t other);
	int (*join)(const struct row_index *row, const struct index_join *join,
		    const struct index_image *parts, struct index_image *image);
	/* Of complete group `n`. */
	int (*copy_image)(const struct row_index *row, uint32_t n, struct index_image *image);
	/* NULL: there is no place for that. */
	void (*image_append)(struct index_image *image, const uint8_t *bytes, uint32_t count);
	const uint8_t *(*image_appended)(const struct index_image *image, uint32_t *count);
	bool (*is_in_memory)(const struct row_index *row, uint32_t n);
	/*
	 * For each live member of complete group `n` how much of it is, per mille. NULL: the index
	 * does not tell.
	 */
	void (*estimate)(const struct row_index *row, uint32_t n,
			 uint32_t live_permille[GROUP_SEGMENTS]);

	/*
	 * A row: all its groups. Complete ones have numbers from 0, the oldest first; the growing
	 * one is behind them.
	 */
	uint32_t (*groups)(const struct row_index *row);
	void (*read_group)(const struct row_index *row, uint32_t n, struct index_group *group);
	void (*read_segment)(const struct row_index *row, uint32_t n, uint32_t member,
			     struct sealed_segment *segment);

	/* Search. */
	void (*search_begin)(struct index_search *search, const struct row_index *row,
			     const struct key_hash *hash, uint64_t bound);
	bool (*search_segment)(struct index_search *search, uint64_t after, uint32_t *segment);
	bool (*search_page)(struct index_search *search, uint32_t *page);
	bool (*search_has_run)(const struct index_search *search); /* NULL: there are no runs */
	void (*search_run)(struct index_search *search);
	bool (*search_rises)(const struct index_search *search); /* NULL: not known */
	int (*search_narrow)(struct index_search *search, enum narrow_way way, index_probe *probe,
			     void *context);
};

extern const struct index_type bloom_index, ribbon_index;

/* What each index's own structures begin with. */
struct index {
	const struct index_type *type;
	const struct muninn_geometry *geometry;
};

struct row_index {
	const struct index_type *type;
	struct index *index; /* of all rows */
	uint32_t number;
};

struct segment_index {
	const struct index_type *type;
	const struct muninn_geometry *geometry;
};

#endif
