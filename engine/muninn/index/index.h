/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the store needs from an index: where the records of a key may be. index_type.h is what an
 * index provides for that; a device is formatted with one of them.
 *
 * Placement: a key has pages in a segment that it may be put to, in a fixed order. The index of an
 * active segment says which of them come next and which hold the key.
 *
 * Sealed segments: the index of a row knows them in groups of up to GROUP_SEGMENTS that follow each
 * other in age. The newest group grows in NVRAM, segment by segment. A full one, which may have
 * fewer, becomes a complete
 * group: the store writes its image to flash, and says where that is in its directory. A search
 * goes through the groups from the newest to the oldest.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_INDEX_H
#define MUNINN_ENGINE_MUNINN_INDEX_INDEX_H

#include "common/fields.h"
#include "engine/muninn/geometry.h"
#include "engine/muninn/hash.h"
#include "engine/muninn/index/bloom_search.h"
#include "engine/muninn/index/ribbon/ribbon_search.h"
#include "engine/muninn/page.h"

/* ---- sizes ---- */

/*
 * Chooses the index and its sizes for a geometry with pages, segments and rows. -EINVAL with a
 * sentence.
 */
int index_choose(const struct muninn_options *options, struct muninn_geometry *geometry,
		 struct error_text *error);

/*
 * What the static header says of the index; its options as they are there. -EPROTO with a sentence:
 * the part is that of another version of the index.
 */
void index_put_part(const struct muninn_geometry *geometry, uint8_t part[INDEX_PART_BYTES]);
int index_get_part(enum index_kind kind, const uint8_t part[INDEX_PART_BYTES],
		   struct muninn_options *options, struct error_text *error);

/* Whether the number in a static header is that of an index. */
bool index_is_known(uint32_t kind);

/* Bytes of the largest group's image; what a row needs of NVRAM for its growing group. */
uint64_t index_image_bytes_max(const struct muninn_geometry *geometry);
uint64_t index_group_bytes(const struct muninn_geometry *geometry);

/*
 * A complete group with so few segments left, or fewer, is merged away: bounds groups and the
 * directory. A full group has more of them.
 */
uint32_t index_sparse(const struct muninn_geometry *geometry);

/* Most pages of a segment that the records of one key can be in. */
uint32_t index_key_pages_max(const struct muninn_geometry *geometry);

/* ---- the index of a store ---- */

struct index;
struct row_index;

/*
 * Reads a page of a complete group's image, which `live` belongs to, into `data`. 0, -EBADMSG,
 * -EIO.
 */
typedef int index_page_reader(void *context, uint32_t row, uint32_t group, const uint8_t *live,
			      uint32_t page, uint8_t *data);

/*
 * Indices of all rows, which must then begin or attach; their part of NVRAM is at `nvram` +
 * geometry->groups_at. NULL: out of memory. NULL may be destroyed.
 */
struct index *index_create(const struct muninn_geometry *geometry, uint8_t *nvram);
void index_destroy(struct index *index);

/*
 * Takes up the options of run time, before any group is loaded: images may stay on flash, to be
 * read by `read`. -ERANGE, -ENOMEM with a sentence.
 */
int index_prepare(struct index *index, const struct muninn_options *options,
		  index_page_reader *read, void *context, struct error_text *error);

struct row_index *index_row(struct index *index, uint32_t row);

/* What there is of it. */
struct index_figures {
	uint64_t segments;            /* sealed ones that it knows */
	uint64_t groups;              /* complete ones */
	uint64_t internal_versions;   /* runs of complete groups that share bounds */
	uint64_t bytes;               /* of what look-ups need, in memory and NVRAM */
	uint64_t groups_memory;       /* what the allocator gave for complete groups, ... */
	uint64_t cache_memory;        /* ... for a cache of those on flash, ... */
	uint64_t rows_memory;         /* ... and for the rest */
	uint64_t reads, reads_missed; /* pages asked of that cache; those of them not in it */
};

void index_count(struct index *index, struct index_figures *figures);

/* ---- a sealed segment ---- */

struct sealed_segment {
	uint32_t segment;
	uint32_t group, member; /* number of the group in its row, its own number in the group */
	uint32_t records;
	uint64_t serial;
	uint64_t first_sequence, last_sequence;
	uint64_t record_bytes;
	bool is_ordered; /* no record in it is one that merge moved, so the places of a key are in
			    the order of its numbers */
};

/* What is known of a segment without records; takes those of a page into account. */
struct sealed_segment sealed_segment_begin(uint32_t segment, uint64_t serial);
void sealed_segment_add(struct sealed_segment *segment, const struct page_view *page);

/* Tells them, in a row of a list. `is_live`: it has not been merged away. */
void sealed_segment_tell(const struct sealed_segment *segment, bool is_live,
			 const struct fields *to);

/* ---- the index of an active segment ---- */

struct segment_index;

/* NULL: out of memory. NULL may be destroyed. */
struct segment_index *segment_index_create(const struct muninn_geometry *geometry);
void segment_index_destroy(struct segment_index *index);

/*
 * Empties it, for segment `serial`, which is sealed next in a row, or (`ahead` 1) after the next
 * one.
 */
void segment_index_begin(struct segment_index *index, const struct row_index *row, uint32_t ahead,
			 uint64_t serial);

/*
 * The pages that a key may be put to, oldest first: *place begins with segment_index_first and is
 * added one to for each further call. False: there are no more.
 */
uint32_t segment_index_first(const struct segment_index *index, const struct key_hash *hash);
bool segment_index_next(const struct segment_index *index, const struct key_hash *hash,
			uint32_t *place, uint32_t *page);

/* The key has been put to the page of `place`. */
void segment_index_note(struct segment_index *index, const struct key_hash *hash, uint32_t place);

/* The page takes no more records: other keys may pass it over. */
void segment_index_fill(struct segment_index *index, uint32_t page);

/* The key is found in a page, in any order of pages. False: that is none of its pages. */
bool segment_index_note_page(struct segment_index *index, const struct key_hash *hash,
			     uint32_t page);

/* Pages that have anything as old as a bound. */
struct pages_up_to {
	const uint64_t *lowest; /* of each page: nothing in it has a lower number */
	uint64_t bound;
};

/*
 * The pages that may hold the key, newest first: *place begins with UINT32_MAX. `wanted`: others
 * are passed over; NULL: none is. False: there are no more.
 */
bool segment_index_find(const struct segment_index *index, const struct key_hash *hash,
			const struct pages_up_to *wanted, uint32_t *place, uint32_t *page);

/*
 * Whether a key may be put to a page of a segment with `serial`, if not as one of those that are
 * put again and again.
 */
bool index_may_place(const struct muninn_geometry *geometry, const struct key_hash *hash,
		     uint64_t serial, uint32_t page);

/* Whether keys that are put again and again may be put to any page. */
bool index_spreads(const struct muninn_geometry *geometry);

/* Whether every key may be put to any page behind the last one that has it. */
bool index_places_anywhere(const struct muninn_geometry *geometry);

/* Bytes that it needs; bytes that the allocator gave, 0 for NULL. */
uint64_t segment_index_bytes(const struct segment_index *index);
uint64_t segment_index_memory(const struct segment_index *index);

/* ---- the records of a segment that is sealed ---- */

/* Where they go, if not to the pages of the buffer that they are in. */
struct arrangement;

/* Whether the index ever arranges them. */
bool index_arranges(const struct muninn_geometry *geometry);

/* Whether it does so with any segment of so many cells. */
bool index_spans(const struct muninn_geometry *geometry, uint32_t cells);

/*
 * Arranges the records of all pages of a full buffer for segment `serial`, which spans its pages
 * if the buffer had cells (span.h). These pages outlive the arrangement, and stay as they are.
 * NULL: the records stay where they are, because that is better, or they fit no other way, or there
 * is no memory; with cells only that. NULL may be destroyed.
 */
struct arrangement *index_arrange(const struct muninn_geometry *geometry, uint64_t serial,
				  const struct page_view *pages, uint32_t cell_bytes);
void arrangement_destroy(struct arrangement *arrangement);

/* A page of the segment, in `data`, a page's bytes; a large record stays where it is. */
struct page_view arrangement_page(const struct arrangement *arrangement, uint32_t page,
				  uint8_t *data);

/* ---- a row: its growing group ---- */

/*
 * Begins group `group` in NVRAM: no segments. Crash-safe: the store of the number comes last.
 */
void row_index_begin(struct row_index *row, uint32_t group);

/*
 * Takes up what is in NVRAM. -EINVAL: that is no group of this row with this geometry. -ENOMEM. One
 * without segments has to begin again.
 */
int row_index_attach(struct row_index *row);

/* The sum of what is in NVRAM; its pair there is row_sum_pair_at. */
uint64_t row_index_sum(const struct row_index *row);

/* Its number; segments that have been added to it; those of them that are there, a bit each. */
uint32_t row_index_growing(const struct row_index *row);
uint32_t row_index_members(const struct row_index *row);
uint64_t row_index_live(const struct row_index *row);

/* It takes no more segments: its image is to be made, or the next group begins. */
bool row_index_is_full(const struct row_index *row);

/* A segment that has been added to it, whether or not it is still there. */
void row_index_read_member(const struct row_index *row, uint32_t member,
			   struct sealed_segment *segment);

/*
 * Makes what the group takes in memory smaller; it counts with the next segment that is written. It
 * may run beside everything that does not write to this group, make it count or begin one.
 */
void row_index_condense(struct row_index *row);

/*
 * Writes what its index says of a segment that has been programmed, to a group that is not full.
 * `arrangement`: of its records; NULL: they are where the index has them. -ENOMEM: nothing has
 * changed that counts.
 */
int row_index_write(struct row_index *row, const struct segment_index *index,
		    const struct arrangement *arrangement, const struct sealed_segment *segment);

/*
 * Keeps `count` bytes, which are the store's, with the segment that has been written, as long as
 * the growing group has room for them. row_index_appended gives what is kept with a segment that
 * counts: *count bytes in NVRAM, or NULL and 0. An index without a place for them keeps none.
 */
void row_index_append(struct row_index *row, const uint8_t *bytes, uint32_t count);
const uint8_t *row_index_appended(const struct row_index *row, uint32_t member, uint32_t *count);

/* Makes that segment count: one store, within the first page of the row's NVRAM. */
void row_index_commit(struct row_index *row);

/* What of NVRAM the group needs. */
const uint8_t *row_index_nvram(const struct row_index *row, uint64_t *bytes);

/* ---- a row: its complete groups ---- */

struct index_image {
	uint8_t *bytes; /* on the heap */
	uint64_t length;
	uint32_t group;
	bool stays;    /* all of it in memory, because flash does not have it */
	uint8_t *live; /* a word in NVRAM with a bit for each segment that is there, changed by one
			  store each; 0 in the image */
};

/*
 * The image of the growing group, which is full, without a live word. Beside everything: only live
 * words of the row may change meanwhile. One image of the store at a time. -ENOMEM.
 */
int row_index_make_image(const struct row_index *row, struct index_image *image);

/*
 * Replaces the complete groups with the numbers `first` to `last`, as far as there are any, by the
 * one of `by`, which has one of these numbers and so their place in age; NULL: by none. Takes over
 * the image, which is one of this row, and may keep only a part of it in memory. row_index_refresh
 * has to follow when the live word of `by` counts. -ENOMEM: nothing has changed; not when there is
 * no `by`, or when it is a copy of the only one that goes. In these two cases a segment may have
 * been written to the growing group that does not count yet.
 */
int row_index_replace(struct row_index *row, uint32_t first, uint32_t last,
		      const struct index_image *by);

/*
 * Complete groups of a row that follow each other in age, of which one group shall take the place:
 * merging has left so few of their segments.
 */
enum { INDEX_JOIN_MAX = 8 };

struct index_join {
	uint32_t count; /* 0: none */
	uint32_t numbers[INDEX_JOIN_MAX];
	uint64_t live[INDEX_JOIN_MAX]; /* their segments that the new group has, a bit each */
};

/* Finds those that are worth it most. False: there are none. */
bool row_index_find_join(const struct row_index *row, struct index_join *join);

/*
 * The image of the group that takes their place, without a live word, of their whole images as they
 * are on flash. Beside everything: nothing of the row is touched. -EINVAL: they are not what they
 * should be. -EFBIG: what is left of them is too much for one group. -ENOMEM.
 */
int row_index_join(const struct row_index *row, const struct index_join *join,
		   const struct index_image *parts, struct index_image *image);

/* The live word of that group: those of its segments that the row still has in these groups. */
uint64_t row_index_join_live(const struct row_index *row, const struct index_join *join);

/* The live word of a complete group. */
uint8_t *row_index_group_live_word(const struct row_index *row, uint32_t group);

/*
 * What an image is to a row that may have a group with one of its numbers, because the process
 * ended when another image had taken the place of one, or of several, and not all of these had
 * ended.
 */
enum index_double {
	DOUBLE_NONE,     /* there is no such group */
	DOUBLE_COPY,     /* a copy of group *other */
	DOUBLE_OUTDATED, /* group *other has taken its place */
	DOUBLE_NEWER,    /* it has taken the place of group *other, and perhaps of more */
};

enum index_double row_index_find_double(const struct row_index *row,
					const struct index_image *image, uint32_t *other);

/*
 * The image of a complete group, on the heap, as it is written to flash, with its live word, and
 * with nothing appended.
 * -ENOMEM, and the errors of reading.
 */
int row_index_copy_image(const struct row_index *row, uint32_t group, struct index_image *image);

/*
 * Puts `count` bytes, which are the store's, behind a whole image, and covers them by its checksum.
 * row_index_replace drops them. Nothing is added without memory, or by an index without a place for
 * them; index_image_appended gives what was: bytes in the image, or NULL.
 */
void index_image_append(const struct index *index, struct index_image *image, const uint8_t *bytes,
			uint32_t count);
const uint8_t *index_image_appended(const struct index *index, const struct index_image *image,
				    uint32_t *count);

/* Whether all of a complete group's image is in memory. */
bool row_index_is_in_memory(const struct row_index *row, uint32_t group);

/* Where an image says, in 4 bytes, which segment a member of the group is. */
uint32_t index_image_member_at(const struct muninn_geometry *geometry, uint32_t member);

/*
 * Bytes at the beginning of an image of *length, whose first page begins at `head`, that
 * row_index_replace needs. *length becomes that of the image without what only joins need.
 * row_index_check_image: whether those that were read from flash are what they should be: -EINVAL
 * with a sentence.
 */
uint64_t index_image_kept(const struct index *index, const uint8_t *head, uint64_t *length);
int row_index_check_image(const struct row_index *row, const struct index_image *image,
			  struct error_text *error);

/*
 * Tells what an image says: of the group, and of each segment in it. `length` bytes are there; what
 * of them flash has lost is zeros, but the header must not be. `live`: a bit for each segment that
 * has not been merged away. False: that is no image of this geometry and length.
 */
bool index_tell_image(const struct muninn_geometry *geometry, uint8_t *image, uint64_t length,
		      uint64_t live, const struct fields *to);

/*
 * Finds again which groups are old enough for what, after the complete ones have changed. Nothing
 * is searched between row_index_attach and this. -ENOMEM: only then.
 */
int row_index_refresh(struct row_index *row);

/* Number of the newest complete group; false: there is none. Whether there is one of a number. */
bool row_index_newest(const struct row_index *row, uint32_t *group);
bool row_index_has(const struct row_index *row, uint32_t group);

uint32_t row_index_groups(const struct row_index *row);

/* A complete group without segments; its live word. NULL: there is none. */
uint8_t *row_index_empty_group(const struct row_index *row, uint32_t *group);

/* ---- a row: all its segments ---- */

struct index_walk {
	bool all; /* segments that have been taken out, too */
	uint32_t at, member;
};

/* Goes through the segments of a row from the oldest; a walk begins with zeros. False: the end. */
bool row_index_next(const struct row_index *row, struct index_walk *walk,
		    struct sealed_segment *segment);

/* The live word of the complete group that a segment is in; NULL: it is in the growing one. */
uint8_t *row_index_live_word(const struct row_index *row, const struct sealed_segment *segment);

/* A segment that must be there. */
void row_index_find(const struct row_index *row, uint32_t number, struct sealed_segment *segment);

/* Takes a segment out, by one store. */
void row_index_take_out(struct row_index *row, const struct sealed_segment *segment);

/* The highest serial of a segment; 0: it has none. */
uint64_t row_index_last_serial(const struct row_index *row);

/* Segments that were sealed last, as many as the newest group has; taken out ones, too. */
uint32_t row_index_read_last(const struct row_index *row, struct sealed_segment *segments,
			     uint32_t max);

/* A segment of a complete group that has only index_sparse of them or fewer. False: there is none.
 */
bool row_index_find_sparse(const struct row_index *row, struct sealed_segment *segment);

/*
 * How much of each segment of complete group `n`, from 0, is still live, per mille, as far as the
 * index tells without a read of records. An index that can't tell notes nothing.
 */
void row_index_estimate(const struct row_index *row, uint32_t n,
			void (*note)(void *context, const struct sealed_segment *segment,
				     uint32_t live_permille),
			void *context);

/* ---- search ---- */

/*
 * Walks the flash pages that may hold a key with a number up to `bound`, newest first. `result`: 0,
 * or the error that ended the walk; the rest is the index's own.
 */
struct index_search {
	int result;
	const struct row_index *row;
	uint64_t last_sequence; /* of the segment that was gone on to */
	uint32_t next, oldest;  /* groups still to search */
	union {
		struct table_search table;   /* of the Bloom index */
		struct ribbon_search ribbon; /* of the ribbon index */
	};
};

void index_search_begin(struct index_search *search, const struct row_index *row,
			const struct key_hash *hash, uint64_t bound);

/*
 * Goes on to the next segment that may have anything of the key with a number above `after`. False:
 * there are no more, or `result` says why not.
 */
bool index_search_segment(struct index_search *search, uint64_t after, uint32_t *segment);

/* Goes on to the next page of that segment, the newest first. False: there are no more. */
bool index_search_page(struct index_search *search, uint32_t *page);

/*
 * Whether older records of the key may be in a run, which is not gone through yet: pages of this
 * segment that search_page gives only behind index_search_run. That is called when the page which
 * it gave last has the key, and something older is looked for.
 */
bool index_search_has_run(const struct index_search *search);
void index_search_run(struct index_search *search);

/*
 * Whether the numbers of a key rise with the pages of this segment, of records that merge moved,
 * too. So behind a page that has the key there is nothing newer of it in the segment.
 */
bool index_search_rises(const struct index_search *search);

/*
 * Leaves out pages of the segment that hold only what is newer than the bound, as far as few probes
 * tell. An error of the probe ends this.
 */
int index_search_narrow(struct index_search *search, enum narrow_way way, index_probe *probe,
			void *context);

#endif
