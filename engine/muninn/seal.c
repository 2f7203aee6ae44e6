/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Seals a row's buffer: programs it to a segment (seal_program.c), and adds that to the index.
 *
 * The order in which things reach the host's storage: the segment, then what the index says of it,
 * then the word that makes it count. Only then may the buffer be used again. So the host's power
 * may fail at any moment, and what a flush promised is still found. Where nothing was promised only
 * the segment is synced: an index on storage never names pages that are not there.
 */
#include "engine/muninn/seal.h"

#include <errno.h>

#include "common/log.h"
#include "engine/muninn/image.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal_program.h"
#include "engine/muninn/sealing.h"
#include "engine/records/rooms.h"

/*
 * On a device with few rows history's row waits for so many segments, not for one of each row:
 * segments that are programmed half empty shall be few.
 */
enum { SEALED_BESIDE_HISTORY_MIN = 16 };

static bool is_history(const struct muninn_store *store, uint32_t number)
{
	return number == history_row(&store->geometry);
}

/* ---- the segment ---- */

/* The erase or a program has failed. 0: there is another segment. */
static int replace_segment(struct muninn_store *store, struct sealing *sealing, int result)
{
	if (!sealing->erased) {
		space_prepared(&store->space, sealing->segment, result, 0);
	} else {
		log_line(LOG_LEVEL_WARNING,
			 "%s: segment %u is retired: programming failed (error %d)",
			 nand_path(store->nand), sealing->segment, -result);
		store->space.retired++;
	}
	sealing->erased = false;
	sealing->segment = NO_SEGMENT;
	result = space_reserve(&store->space, &sealing->segment);
	if (result)
		sealing->segment = NO_SEGMENT;
	return result;
}

/* ---- the index ---- */

/* The whole of the growing group, or its page with the word that makes its last segment count. */
static struct nand_nvram_range group_range(const struct muninn_store *store, uint32_t number,
					   bool whole)
{
	uint64_t bytes, at;
	const uint8_t *group = row_index_nvram(store->rows[number].index, &bytes);

	at = (uint64_t)(group - store->nvram);
	return (struct nand_nvram_range){ at, at + (whole ? bytes : NVRAM_PAGE) };
}

static int run_column(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	const struct nand_nvram_range both[] = { { 0, NVRAM_PAGE },
						 group_range(store, number, true) };

	(void)budget;
	*complete = true;
	return nand_nvram_sync_ranges(store->nand, both, 2);
}

static int run_member(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	const struct nand_nvram_range word = group_range(store, number, false);
	int result = nand_nvram_sync_ranges(store->nand, &word, 1);

	(void)budget;
	*complete = true;
	if (result)
		log_line(
			LOG_LEVEL_ERROR,
			"%s: NVRAM can't be made stable (error %d); flushed data may not survive a "
			"power failure of this host",
			nand_path(store->nand), -result);
	return 0;
}

/* The segment counts, so the buffer does not any more. */
static int end_member(struct muninn_store *store, uint32_t number, int result)
{
	struct sealing *sealing = &store->rows[number].sealing;

	store->segment_rows[sealing->segment] = (uint16_t)number;
	sealing->segment = NO_SEGMENT;
	sealing->stage = SEAL_NONE;
	row_end_buffer(store, number);
	return result;
}

/* Makes the segment count. */
static int end_column(struct muninn_store *store, uint32_t number, int result)
{
	struct row *row = &store->rows[number];
	struct sealing *sealing = &row->sealing;

	if (result)
		return result;
	if (sealing->facts.last_sequence > store->committed)
		store->sealed_running = true;
	store_note_older(store, sealing->segment, &sealing->older);
	sealing->older = (struct older_pages){ 0 };
	row_index_commit(row->index);
	count_up(&store->counters.sealed_records, sealing->facts.records);
	count_up(&store->counters.sealed_record_bytes, sealing->facts.record_bytes);
	store->root_outdated = true;
	store->sealed_beside_history = is_history(store, number) ? 0
								 : store->sealed_beside_history + 1;
	sealing->stage = SEAL_MEMBER;
	return row->buffer.promised ? 0 : end_member(store, number, 0);
}

/* What is known of its old records. */
static void append_ranges(struct row_index *index, const struct older_pages *older)
{
	uint8_t stored[OLDER_STORED_MAX];
	uint32_t bytes = older_stored(older);

	if (!bytes)
		return;
	older_put(older, row_index_members(index), stored);
	row_index_append(index, stored, bytes);
}

/* Tells the index of a segment that is stable. */
static int end_program(struct muninn_store *store, uint32_t number, int result)
{
	struct row *row = &store->rows[number];
	struct sealing *sealing = &row->sealing;

	/* The host is full, or has failed; the flash is not broken. */
	if (result && (result == -ENOSPC || result == -ENOMEM ||
		       (sealing->erased && sealing->pages == store->geometry.segment_pages)))
		return result;
	if (result)
		return replace_segment(store, sealing, result);
	sealing->facts.segment = sealing->segment;
	result = row_index_write(row->index, row->buffer.index, sealing->arrangement,
				 &sealing->facts);
	if (result)
		return result;
	older_end(&sealing->older);
	append_ranges(row->index, &sealing->older);
	arrangement_destroy(sealing->arrangement);
	sealing->arrangement = NULL;
	space_prepared(&store->space, sealing->segment, 0, sealing->erasures);
	/*
	 * Before the segment counts, so that recovery knows of records that were never committed.
	 */
	if (sealing->facts.last_sequence > state_read(store, STATE_SEALED_AT))
		state_write(store, STATE_SEALED_AT, sealing->facts.last_sequence);
	sealing->stage = SEAL_COLUMN;
	return row->buffer.promised ? 0 : end_column(store, number, 0);
}

/* ---- the image of a full group, and the root or list that follows it ---- */

/* What is new of a row's next segment came after all that is in its last one. 0: not known. */
static uint64_t new_from(const struct row_index *index)
{
	struct sealed_segment last;

	return row_index_read_last(index, &last, 1) == 1 ? last.last_sequence + 1 : 0;
}

static int begin_program(struct muninn_store *store, uint32_t number)
{
	struct sealing *sealing = &store->rows[number].sealing;
	int result = 0;

	if (sealing->segment == NO_SEGMENT)
		result = space_reserve(&store->space, &sealing->segment);
	if (result) {
		sealing->segment = NO_SEGMENT;
		return result;
	}
	sealing->erased = false;
	sealing->committed = store->committed;
	older_begin(&sealing->older, new_from(store->rows[number].index));
	sealing->stage = SEAL_PROGRAM;
	return 0;
}

static int run_build(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	(void)number;
	(void)budget;
	*complete = true;
	return image_make(store);
}

static int run_image(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	(void)number;
	return image_run(store, budget, complete);
}

static int run_entry(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	(void)number;
	(void)budget;
	image_sync_entry(store);
	*complete = true;
	return 0;
}

static int run_group(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	(void)budget;
	*complete = true;
	if (store->rows[number].sealing.joins)
		return image_sync_parts(store);
	image_sync_group(store, number);
	return 0;
}

/* Not so when somebody else has ended it. */
static bool root_is_its_own(const struct muninn_store *store, const struct sealing *sealing)
{
	return roots_are_under_way(store) && store->root_writing.serial == sealing->root_serial;
}

static int run_root(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete)
{
	(void)number;
	return roots_run(store, budget, complete);
}

/*
 * An image has failed and is given up. Groups are as well off without one in their place: only the
 * segment counts then. Unless space was lacking it would fail again.
 */
static int end_failed(struct muninn_store *store, uint32_t number, int result)
{
	struct row *row = &store->rows[number];

	if (!row->sealing.joins)
		return result;
	if (result == -ENOSPC)
		return begin_program(store, number);
	row->keeps_groups = true;
	log_line(LOG_LEVEL_INFO,
		 "%s: index: groups of row %u can't be joined (error %d); they take more memory",
		 nand_path(store->nand), number, -result);
	return begin_program(store, number);
}

static int end_build(struct muninn_store *store, uint32_t number, int result)
{
	result = image_place(store, result);
	store->rows[number].sealing.stage = SEAL_IMAGE;
	return result ? end_failed(store, number, result) : 0;
}

static int end_image(struct muninn_store *store, uint32_t number, int result)
{
	if (result) {
		result = image_failed(store, result);
		return result ? end_failed(store, number, result) : 0;
	}
	image_list(store);
	store->rows[number].sealing.stage = SEAL_ENTRY;
	return 0;
}

static int end_entry(struct muninn_store *store, uint32_t number, int result)
{
	struct sealing *sealing = &store->rows[number].sealing;
	const uint8_t *entry = store->image_writing.entry;

	sealing->entry = image_count(store) ? entry : NULL;
	sealing->stage = sealing->entry ? SEAL_LISTED : SEAL_GROUP;
	return result;
}

/*
 * Groups have given their place to one. A list of changes names segments by their numbers in
 * groups, which are others now: so a root follows, before anything is merged away.
 */
static int end_join(struct muninn_store *store, uint32_t number, uint64_t held_from)
{
	struct sealing *sealing = &store->rows[number].sealing;

	sealing->held_from = held_from;
	sealing->held_to = store->space.held;
	sealing->root_serial = roots_begin(store) ? 0 : store->root_writing.serial;
	return 0;
}

static int end_listed(struct muninn_store *store, uint32_t number, int result)
{
	uint64_t held = store->space.held;

	result = image_replace(store);
	store->rows[number].sealing.stage = SEAL_GROUP;
	if (result)
		return end_failed(store, number, result);
	return store->rows[number].sealing.joins ? end_join(store, number, held) : 0;
}

/*
 * No root names any more what groups had that have given their place to one. Behind what a merge
 * holds back it waits for that.
 */
static void let_go(struct muninn_store *store, const struct sealing *sealing)
{
	if (store->space.let_go >= sealing->held_from) {
		space_let_go(&store->space, sealing->held_to);
		return;
	}
	if (store->ready_to != sealing->held_from)
		store->ready_from = sealing->held_from;
	store->ready_to = sealing->held_to;
}

static int end_root(struct muninn_store *store, uint32_t number, int result)
{
	const struct sealing *sealing = &store->rows[number].sealing;

	/* What fails is logged: NVRAM says it all. */
	if (root_is_its_own(store, sealing))
		roots_end(store, result);
	if (sealing->joins && sealing->root_serial && store->root_serial >= sealing->root_serial)
		let_go(store, sealing);
	return begin_program(store, number);
}

static int end_group(struct muninn_store *store, uint32_t number, int result)
{
	struct sealing *sealing = &store->rows[number].sealing;

	if (sealing->joins && sealing->entry) {
		/* It is not stable that they have ended. */
		if (result)
			sealing->held_to = sealing->held_from;
		sealing->stage = SEAL_ROOT;
		return 0;
	}
	/*
	 * Before the next group gets a segment, so that no root with its list lacks more than one
	 * group can hold.
	 */
	if (!sealing->entry || roots_begin_group(store, number, sealing->entry))
		return begin_program(store, number);
	sealing->root_serial = store->root_writing.serial;
	sealing->stage = SEAL_ROOT;
	return 0;
}

/* Begins with a row's older buffer. No image is under way. */
static int begin(struct muninn_store *store, uint32_t number)
{
	struct sealing *sealing = &store->rows[number].sealing;
	struct row_index *index = store->rows[number].index;

	sealing->ran = false;
	sealing->entry = NULL;
	sealing->joins = false;
	if (!row_index_is_full(index)) {
		sealing->joins = image_begin_join(store, number);
		sealing->stage = SEAL_BUILD;
		return sealing->joins ? 0 : begin_program(store, number);
	}
	if (row_index_live(index)) {
		sealing->stage = SEAL_BUILD;
		return image_begin(store, number);
	}
	image_skip(store, number);
	sealing->stage = SEAL_GROUP;
	return 0;
}

/* ---- from stage to stage ---- */

static const struct {
	/* Beside everything. *complete: the stage is over; errors end it, too. */
	int (*run)(struct muninn_store *store, uint32_t number, uint32_t *budget, bool *complete);
	/* In turn, with the result of that: goes on to another stage, or stays in this one. */
	int (*end)(struct muninn_store *store, uint32_t number, int result);
} stages[] = {
	[SEAL_BUILD] = { run_build, end_build },        [SEAL_IMAGE] = { run_image, end_image },
	[SEAL_ENTRY] = { run_entry, end_entry },        [SEAL_LISTED] = { run_entry, end_listed },
	[SEAL_GROUP] = { run_group, end_group },        [SEAL_ROOT] = { run_root, end_root },
	[SEAL_PROGRAM] = { seal_program, end_program }, [SEAL_COLUMN] = { run_column, end_column },
	[SEAL_MEMBER] = { run_member, end_member },
};

static void run(struct muninn_store *store, uint32_t number, uint32_t *budget)
{
	struct sealing *sealing = &store->rows[number].sealing;
	bool complete = false;

	sealing->result = stages[sealing->stage].run(store, number, budget, &complete);
	sealing->ran = complete || sealing->result;
}

/* In turn: ends what has run. An error: the buffer waits again, as if nothing had begun. */
static int advance(struct muninn_store *store, uint32_t number)
{
	struct sealing *sealing = &store->rows[number].sealing;
	int result = 0;

	if (sealing->stage == SEAL_ROOT && !root_is_its_own(store, sealing)) {
		sealing->ran = true;
		sealing->result = 0;
	}
	if (sealing->stage == SEAL_NONE || !sealing->ran)
		return 0;
	sealing->ran = false;
	result = stages[sealing->stage].end(store, number, sealing->result);
	if (result)
		sealing->stage = SEAL_NONE;
	return result;
}

/* In turn: goes on until `until` has been reached, or all is done, or the budget used up. */
static int drive(struct muninn_store *store, uint32_t number, enum seal_stage until,
		 uint32_t *budget)
{
	struct sealing *sealing = &store->rows[number].sealing;
	int result;

	sealing_pause(store, sealing);
	result = advance(store, number);
	while (!result && sealing->stage != SEAL_NONE && sealing->stage < until) {
		run(store, number, budget);
		if (!sealing->ran)
			break;
		result = advance(store, number);
	}
	return result;
}

void seal_end_image(struct muninn_store *store)
{
	uint32_t all = UINT32_MAX;

	if (store->image_writing.entry)
		drive(store, store->image_writing.row, SEAL_ROOT, &all);
}

static int begin_or_go_on(struct muninn_store *store, uint32_t number, uint32_t *budget)
{
	struct sealing *sealing = &store->rows[number].sealing;
	int result = 0;

	if (sealing->stage == SEAL_NONE) {
		if (row_index_is_full(store->rows[number].index))
			seal_end_image(store);
		result = begin(store, number);
		if (result)
			sealing->stage = SEAL_NONE;
	}
	return result ? result : drive(store, number, SEAL_STAGES, budget);
}

int seal_row(struct muninn_store *store, uint32_t number)
{
	uint32_t all = UINT32_MAX;

	return begin_or_go_on(store, number, &all);
}

void seal_settle_group(struct muninn_store *store, uint32_t number)
{
	struct sealing *sealing = &store->rows[number].sealing;
	uint32_t all = UINT32_MAX;

	sealing_pause(store, sealing);
	if (sealing->stage == SEAL_LISTED || sealing->stage == SEAL_GROUP)
		drive(store, number, SEAL_ROOT, &all);
}

static void give_up(struct muninn_store *store, uint32_t number)
{
	struct sealing *sealing = &store->rows[number].sealing;
	uint32_t all = UINT32_MAX;

	seal_settle_group(store, number);
	if (sealing->stage == SEAL_MEMBER)
		drive(store, number, SEAL_STAGES, &all);
	if (sealing->stage >= SEAL_BUILD && sealing->stage <= SEAL_ENTRY)
		image_give_up(store);
	sealing->stage = SEAL_NONE;
}

void seal_give_up(struct muninn_store *store)
{
	roots_finish(store);
	for (uint32_t number = 0; number < store->geometry.rows; number++)
		give_up(store, number);
}

/* ---- what waits ---- */

/* Whether history's row is to be sealed although it is not full. */
static bool is_due(const struct muninn_store *store)
{
	const struct row *row = &store->rows[history_row(&store->geometry)];

	return store->sealed_beside_history >=
		       max_u64(store->geometry.hashed_rows, SEALED_BESIDE_HISTORY_MIN) &&
	       !row_has_newer(row) && store->free_buffer_count && buffer_used_bytes(&row->buffer);
}

/* Whether a row's older buffer may be sealed now, behind those who put to it. */
static bool may_seal(const struct muninn_store *store, uint32_t number)
{
	const struct row *row = &store->rows[number];
	bool needs_image = row_index_is_full(row->index);

	if (!row_has_newer(row) || row->sealing.driven)
		return false;
	if (row->sealing.stage == SEAL_NONE && needs_image && store->image_writing.entry)
		return false;
	/* From there on only commands that put something seal it, each from its own room. */
	return row->sealing.segment != NO_SEGMENT ||
	       room_has_segment(store->geometry.room_kept, RECORD_ROOM_FREE, store->space.count);
}

/* History's row, or the one that waits longest. */
static uint32_t choose_row(const struct muninn_store *store)
{
	uint32_t best = history_row(&store->geometry);

	if (may_seal(store, best))
		return best;
	best = NO_ROW;
	for (uint32_t number = 0; store->waiting && number < store->geometry.hashed_rows; number++)
		if (may_seal(store, number) &&
		    (best == NO_ROW ||
		     store->rows[number].newer.serial < store->rows[best].newer.serial))
			best = number;
	return best;
}

/* Writers meet the same error again and again; it is logged once, until something else comes. */
static void tell(struct muninn_store *store, int result)
{
	if (result && result != store->seal_error_logged)
		log_line(LOG_LEVEL_WARNING,
			 "%s: full buffers can't be written to flash yet (error %d); their records "
			 "stay in NVRAM",
			 nand_path(store->nand), -result);
	store->seal_error_logged = result;
}

static void seal_history(struct muninn_store *store, uint32_t pages)
{
	uint32_t number = history_row(&store->geometry);
	struct row *row = &store->rows[number];

	if (pages > RECORD_CATCH_UP_FEW && is_due(store))
		row_take_newer(store, number);
	if (!may_seal(store, number))
		return;
	if (pages > RECORD_CATCH_UP_FEW && buffer_is_half_full(&row->newer))
		pages = UINT32_MAX;
	tell(store, begin_or_go_on(store, number, &pages));
}

void seal_catch_up(struct muninn_store *store, uint32_t pages)
{
	assert(store->sequence == 0);
	seal_history(store, pages);
}

/* ---- by a thread ---- */

/* Whether a thread is about an image. Its next step is told to all that wait for that. */
static bool image_is_driven(const struct muninn_store *store)
{
	return store->image_writing.entry && store->rows[store->image_writing.row].sealing.driven;
}

bool seal_is_held_up(const struct muninn_store *store)
{
	return store->held_up && image_is_driven(store) &&
	       store->space.count <= store->held_up_free;
}

int seal_take(struct muninn_store *store)
{
	struct sealing *sealing;
	uint32_t number;
	int result = 0;

	assert(store->sequence == 0);
	if (is_due(store))
		row_take_newer(store, history_row(&store->geometry));
	number = choose_row(store);
	store->held_up = number == NO_ROW && image_is_driven(store);
	store->held_up_free = store->space.count;
	if (number == NO_ROW)
		return -EAGAIN;
	sealing = &store->rows[number].sealing;
	if (sealing->stage == SEAL_NONE)
		result = begin(store, number);
	if (result) {
		sealing->stage = SEAL_NONE;
		tell(store, result);
		return result;
	}
	sealing->driven = true;
	sealing_offer(store, sealing);
	return (int)number;
}

void seal_run(struct muninn_store *store, uint32_t number)
{
	struct sealing *sealing = &store->rows[number].sealing;
	uint32_t all = UINT32_MAX;

	if (!sealing_claim(store, sealing))
		return;
	if (!sealing->ran)
		run(store, number, &all);
	sealing_ran(store, sealing);
}

int seal_step(struct muninn_store *store, uint32_t number)
{
	struct sealing *sealing = &store->rows[number].sealing;
	int result;

	sealing_pause(store, sealing);
	store->held_up = false;
	result = advance(store, number);
	if (!result && sealing->stage != SEAL_NONE) {
		sealing_offer(store, sealing);
		return 1;
	}
	sealing->driven = false;
	tell(store, result);
	return result;
}
