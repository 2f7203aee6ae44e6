/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The parts of the simulation of merging, which only they see. */
#ifndef MUNINN_BENCH_MERGE_MODEL_PRIVATE_H
#define MUNINN_BENCH_MERGE_MODEL_PRIVATE_H

#include "bench/distribution.h"
#include "bench/merge_model.h"

/* As in the engine: muninn/choose.c, muninn/merge.c, muninn/merge_run.h, history/merge.c. */
enum {
	PAGES = 256, /* of a segment */
	GROUP = 24,  /* segments */
	SPARSE = 8,
	CANDIDATES = 16,
	OLD_CANDIDATES = 4,
	OLD_BITS = 10,
	SAMPLED_PAGES = 4,
	CLOSER_PAGES = 8,
	SURE_RECORDS = 16,
	CLOSER_CHOICES = 16,
	GOOD_ENOUGH_PERMILLE = 100,
	COUNTED_PERMILLE_MAX = 500,
	READS = 6144,
	READS_PERMILLE = 666,
	REMEMBERED_PAGES = 512,
	SEGMENTS_AT_ONCE = 8,
	LIVE_PERMILLE_AUTOMATIC = 700,
	LIVE_PERMILLE_CHEAP = 200,
	HISTORY_MUCH_PERMILLE = 375,
	HISTORY_LITTLE_PERMILLE = 125,
	FUTILE_STEPS = 2,
	RECLAIM_PART = 16,
	PUT_PART = 16,
};

enum {
	MARK_SEGMENTS = 10, /* of the mark at which merging begins, beside a tenth and the rows */
	CHOSEN_MAX = 64,
	SAMPLED_GROUPS = 4,
	QUESTIONS = 1000, /* for the past */
	STEPS_MAX = 4096, /* of merging in vain, until the device counts as full */
};

#define NONE  UINT32_MAX
#define NEVER UINT32_MAX

struct record {
	uint32_t key, put, ended; /* numbers of updates; NEVER: it is the newest */
};

struct segment {
	uint32_t row, group, before, behind; /* in the order of the row */
	uint32_t used, first, last;          /* records; the lowest and the highest number */
	bool sealed, chosen;
	struct record *records;
};

struct group {
	uint32_t row, before, behind;
	uint32_t first, members, sealed; /* its oldest segment; those left; all that it ever had */
	uint64_t entries;
	bool complete;
};

struct model_row {
	uint32_t oldest, newest;             /* sealed segments */
	uint32_t oldest_group, newest_group; /* the last one grows */
	uint32_t active, apart;              /* buffers */
	uint32_t put;                        /* to the first since it was gathered */
};

struct place {
	uint32_t segment, at;
};

struct model {
	const struct merge_model_options *options;
	struct sampler sampler;
	struct random_state random;
	uint64_t draws;
	uint32_t segment_records, keys, sealed_max, now, horizon;
	struct segment *segments;
	uint32_t segment_count, sealed, *unused, unused_count;
	struct group *groups;
	uint32_t group_count, groups_used, *free_groups, free_group_count;
	uint64_t entries;
	struct model_row *rows;
	struct place *newest;          /* of each key */
	uint32_t *seen, seen_now;      /* keys, while entries are counted */
	uint64_t *read_at, page_reads; /* when each page was read last */
	uint32_t cursor, walk_step, old_row, closer_choices;
	/* Of a step. */
	uint32_t chosen[CHOSEN_MAX], chosen_count;
	uint64_t reads, step_began;
	uint32_t taken;
	uint32_t futile;
	/* Results. */
	uint64_t programs, merge_reads, freed, moved, aside;
	uint32_t transient;
};

struct candidate {
	uint32_t segment, permille;
	bool is_sampled, is_sure;
};

/* ---- merge_model_rows.c ---- */

/* The key of the next update. */
uint32_t model_draw_key(struct model *model);

/* Whether merging must keep a record. */
bool model_is_needed(const struct model *model, const struct record *record);

/* An empty segment for a row. */
uint32_t model_take_segment(struct model *model, uint32_t row);

/* Gives a sealed segment its place, before `behind`; NONE: the newest of its row. */
void model_link_segment(struct model *model, uint32_t number, uint32_t behind);

/* The reverse. */
void model_unlink_segment(struct model *model, uint32_t number);

/* An empty group of a row, before `behind`; NONE: the newest. */
uint32_t model_take_group(struct model *model, uint32_t row_number, uint32_t behind);

/* A key has one entry in a segment. */
uint32_t model_count_entries(struct model *model, const struct segment *segment);

/* A segment, with its entries, to a group. */
void model_add_member(struct model *model, uint32_t group_number, uint32_t number);

/* A segment that is freed. */
void model_drop_member(struct model *model, uint32_t number);

/* Programs the pages of a segment. */
void model_count_seal(struct model *model, uint32_t number);

/* Also adds it to the group that grows. */
void model_seal(struct model *model, uint32_t number);

/* Puts a record to a segment that has space. */
void model_append(struct model *model, uint32_t number, const struct record *record);

/* Puts it to a buffer of a row, which is sealed when it is full. */
void model_append_to(struct model *model, uint32_t *buffer, uint32_t number,
		     const struct record *record);

/* An update. */
void model_put(struct model *model, uint32_t key);

/* ---- merge_model_choose.c ---- */

/* Reads and judges a segment. `known`: what is chosen has been read. */
uint32_t model_count_needed(struct model *model, uint32_t number, bool known);

/* By so many pages of it. */
uint32_t model_sample(struct model *model, uint32_t number, uint32_t pages);

/* Any that is sealed and not chosen, or NONE. */
uint32_t model_next_segment(struct model *model, uint32_t of_row);

/* Notes a segment that is freed when the step ends. */
void model_take(struct model *model, uint32_t number);

/* As choose.c does, by samples; of_row: NONE or a row. False: none is worth it. */
bool model_choose(struct model *model, uint32_t of_row, uint32_t most);

/* ---- merge_model_ways.c ---- */

/* Frees what was chosen, from a number on. */
void model_free_chosen(struct model *model, uint32_t from);

/* Chooses and moves up to `wanted` segments, each for itself. */
bool model_step_single(struct model *model, uint32_t wanted, uint32_t most);

/* The same, several of a row together. */
bool model_step_batch(struct model *model, uint32_t wanted, uint32_t most);

/* A group or two, or a part of one. */
bool model_step_group(struct model *model, uint32_t most);

#endif
