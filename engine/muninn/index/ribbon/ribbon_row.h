/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The ribbon index of a row: its growing group, its complete ones in the order of age, and the
 * exact table of what no ribbon has. Most of a long growing group is in sections, ribbons in memory
 * alone, which take less than the exact table.
 */
#ifndef MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ROW_H
#define MUNINN_ENGINE_MUNINN_INDEX_RIBBON_ROW_H

#include "common/mapped_memory.h"
#include "engine/muninn/index/ribbon/section.h"

/* A complete group. */
struct complete {
	struct group group; /* of an image among the row's, without its failed entries */
	uint8_t *live;      /* a bit for each member that is there, in NVRAM */
	uint64_t first_sequence, last_sequence;
};

struct ribbon_row {
	const struct ribbon_shape *shape;
	struct growing growing;
	struct complete *complete; /* the oldest first */
	uint32_t count;
	/* Of the growing group: its first members, the oldest first; images are among the row's. */
	struct section sections[RIBBON_SECTIONS];
	uint32_t section_count;
	struct mapped_memory images; /* of complete groups and sections (row_images.h) */
	uint64_t images_used;
	struct section made; /* the next one; it counts when a member does that is written then */
	/*
	 * Of the failed entries of complete groups and sections, and all of other members of the
	 * growing group. Segments are numbered RIBBON_MEMBERS x the group's place + member; the
	 * growing group's place is behind that of the last complete one.
	 */
	struct exact *exact;
	struct exact *next;    /* what it will be when the member counts that has been written */
	bool next_has_section; /* the one that has been made */
	bool grows_in_exact;   /* false: the growing group's entries are not in there yet */
};

/* ---- the row ---- */

/* A row without groups; the growing one must then begin or be taken up. -ENOMEM. */
int ribbon_row_create(struct ribbon_row *row, const struct ribbon_shape *shape, uint32_t number,
		      uint8_t *nvram, uint8_t *sum);
void ribbon_row_destroy(struct ribbon_row *row);

/* What a row needs in memory, NVRAM apart; what the allocator gave for its images and the rest. */
uint64_t ribbon_row_bytes(const struct ribbon_row *row);
uint64_t ribbon_row_images_memory(const struct ribbon_row *row);
uint64_t ribbon_row_other_memory(const struct ribbon_row *row);

/* ---- its growing group ---- */

/* Begins group `number`. */
void ribbon_row_begin(struct ribbon_row *row, uint32_t number);

/*
 * Takes up what is in NVRAM. -EINVAL: that is no group of this row. It can't be searched before
 * ribbon_row_finish, which comes when all complete groups are there: the exact table is written
 * with the growing group's entries only then, not for each of them. -ENOMEM.
 */
int ribbon_row_attach(struct ribbon_row *row);
int ribbon_row_finish(struct ribbon_row *row);

/*
 * Makes a section of members that are in none, if there are as many as it takes. It may run beside
 * everything but ribbon_row_begin, _write and _commit, which use it. Without memory there is none.
 */
void ribbon_row_condense(struct ribbon_row *row);

/*
 * Writes a member, whose `count` entries of keys have words for locations; those of its runs are
 * behind them (growing_write). ribbon_row_commit makes it count. -ENOMEM: it can't count.
 */
int ribbon_row_write(struct ribbon_row *row, const struct tag_entry *entries, uint32_t count,
		     const struct group_member *member);
void ribbon_row_commit(struct ribbon_row *row);

/*
 * The image of the growing group, on the heap. Nothing of the row is changed, and only bits of live
 * members may change meanwhile. -ENOMEM.
 */
int ribbon_row_make_image(const struct ribbon_row *row, uint8_t **image, uint64_t *length);

/* ---- its complete groups ---- */

/* An image that comes to a row. */
struct ribbon_image {
	uint8_t *bytes; /* on the heap; the row takes it over */
	uint64_t length;
	uint8_t *live;
};

/*
 * Whether an image is one of the row that can be taken: -EINVAL. Every byte is looked at.
 */
int ribbon_row_check(const struct ribbon_row *row, const struct ribbon_image *image,
		     uint32_t number);

/*
 * Replaces the complete groups at the places from `from` on that are below `to` by `by`, whose
 * number fits there; NULL: by none. If that is the growing group's, the row has to begin the next
 * one at once. -ENOMEM: nothing has changed; not when there is no `by`, or when it
 * is a copy of the only one that goes. Only then may a member have been written that is to count
 * yet: otherwise it has to be written again.
 */
int ribbon_row_replace(struct ribbon_row *row, uint32_t from, uint32_t to,
		       const struct ribbon_image *by);

/*
 * The image of a complete group by its place, on the heap, as it may be written to flash: its
 * failed entries need not be in the order that they had there, and it has no tags, and nothing
 * appended. -ENOMEM.
 */
int ribbon_row_copy_image(const struct ribbon_row *row, uint32_t place, uint8_t **image,
			  uint64_t *length);

#endif
