/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the index says of sealed segments, made again from their pages: for growing groups when the
 * NVRAM is lost, and for a complete group when its image on flash is.
 */
#ifndef MUNINN_ENGINE_MUNINN_REGROUP_H
#define MUNINN_ENGINE_MUNINN_REGROUP_H

#include "engine/muninn/store.h"

/* What was found while segments were added to groups. */
struct regroup {
	struct muninn_store *store;
	struct lost *lost;        /* of a device that is salvaged: what is lost is noted there */
	uint64_t sequence_most;   /* highest sequence number of any segment ... */
	bool sequence_unfinished; /* ... and whether its command was under way when that was
				     sealed */
	uint64_t pages_damaged, segments_left_out;
};

/* Reads a page of records, `data` may be NULL. False: it is none, or lost. */
bool regroup_read_page(struct muninn_store *store, uint64_t number, uint8_t *data,
		       struct page_spare *spare);

/* What a page of a segment says of it. */
bool regroup_ask_segment(struct muninn_store *store, uint32_t segment, struct page_spare *spare);

/* A segment of a row can't be added. */
void regroup_leave_out(struct regroup *regroup, uint32_t row);

/*
 * Adds a segment to the group that `index` grows; one without records where `live` is false.
 * -ENOMEM.
 */
int regroup_add_segment(struct regroup *regroup, struct row_index *index, uint32_t row,
			uint32_t segment, bool live);

/*
 * Makes the image of complete group image->group of a row. `members`: its segments, NO_SEGMENT
 * where that is unknown; *live: which of them are there. What is lost of these is noted, and taken
 * out of *live, if the device is salvaged; else -EBADMSG with a sentence. 1: nothing is left.
 */
int regroup_image(struct muninn_store *store, uint32_t row, const uint32_t members[GROUP_SEGMENTS],
		  uint64_t *live, struct index_image *image, struct error_text *error);

#endif
