/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What happens to segments that a merge has emptied. */
#include "engine/muninn/emptied.h"

#include <errno.h>

#include "engine/muninn/directory.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/merge_run.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"
#include "engine/muninn/sealing.h"
#include "engine/records/rooms.h"

/* Segments that are taken out at once. */
enum { PART = 16 };

static struct emptied *emptied_of(const struct muninn_store *store)
{
	return &store->merge_run->emptied;
}

/* ---- gathering ---- */

bool emptied_are_under_way(const struct muninn_store *store)
{
	return emptied_of(store)->stage != EMPTIED_NONE;
}

bool emptied_have_work(const struct muninn_store *store)
{
	return emptied_are_under_way(store) && emptied_of(store)->stage != EMPTIED_WAIT;
}

bool emptied_are_gathered(const struct muninn_store *store)
{
	return emptied_of(store)->gathered.count > 0;
}

uint32_t emptied_aim(const struct muninn_store *store)
{
	return emptied_of(store)->are_left ? store->geometry.emptied_aim : 0;
}

uint32_t emptied_count(const struct muninn_store *store)
{
	const struct emptied *emptied = emptied_of(store);

	return (emptied_are_under_way(store) ? emptied->leaving.count : 0) +
	       emptied->gathered.count;
}

void emptied_gather(struct muninn_store *store, bool are_left)
{
	const struct merge_run *run = store->merge_run;
	struct emptied_set *set = &emptied_of(store)->gathered;

	emptied_of(store)->are_left |= are_left;
	/* What a format made void is gone. */
	if (set->void_before != run->void_before)
		set->count = 0;
	set->void_before = run->void_before;
	assert(set->count + run->count <= emptied_max(&store->geometry));
	memcpy(set->segments + set->count, run->batch, run->count * sizeof(*run->batch));
	set->count += run->count;
}

bool emptied_are_due(const struct muninn_store *store)
{
	/* Half of them are gathered while the others leave. */
	return emptied_are_gathered(store) &&
	       (emptied_of(store)->gathered.count >= store->geometry.emptied_aim / 2 ||
		emptied_are_urgent(store));
}

bool emptied_are_urgent(const struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint32_t spare = geometry->room_kept[RECORD_ROOM_WRITE] + geometry->hashed_rows / 2;

	return emptied_of(store)->gathered.count >= geometry->emptied_aim ||
	       store->space.count < spare;
}

void emptied_begin(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);
	struct emptied_set set = emptied->leaving;

	if (emptied_are_under_way(store) || !emptied_are_gathered(store))
		return;
	emptied->leaving = emptied->gathered;
	emptied->gathered = set;
	emptied->gathered.count = emptied->taken = 0;
	emptied->result = 0;
	emptied->way.ran = false;
	emptied->number = flush_begin(store);
	emptied->stage = EMPTIED_WAIT;
}

/* They need not wait any more until the buffers are sealed. */
static void press(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	if (emptied->stage != EMPTIED_WAIT)
		return;
	roots_expect(store);
	flush_look(store, &emptied->promised);
	emptied->stage = EMPTIED_MOVED;
}

int emptied_take_result(struct muninn_store *store)
{
	int result = emptied_of(store)->result;

	emptied_of(store)->result = 0;
	return result;
}

/* ---- the stages ---- */

/*
 * Takes a segment out of its row's index, and its group too when that was the last one. Both are
 * held back. */
static struct root_kill take_out(struct muninn_store *store, const struct victim *victim)
{
	struct sealed_segment segment;

	row_index_find(store->rows[victim->row].index, victim->segment, &segment);
	directory_take_out(store, victim->row, &segment);
	space_hold(&store->space, segment.segment);
	directory_drop_empty(store, victim->row);
	return (struct root_kill){
		.segment = segment.segment,
		.row = (uint16_t)victim->row,
		.member = (uint16_t)segment.member,
		.group = segment.group,
		.serial = segment.serial,
	};
}

/* What was moved is stable. Others have their turn between two parts. */
static void take_some_out(struct muninn_store *store, struct emptied *emptied)
{
	for (uint32_t n = 0; n < PART && emptied->taken < emptied->leaving.count; n++) {
		const struct victim *victim = &emptied->leaving.segments[emptied->taken];

		seal_settle_group(store, victim->row);
		emptied->kills[emptied->taken++] = take_out(store, victim);
	}
	emptied->held = store->space.held;
	emptied->stage = emptied->taken < emptied->leaving.count ? EMPTIED_TAKING : EMPTIED_OUT;
}

/* That they are out is stable. */
static void let_go(struct muninn_store *store, struct emptied *emptied)
{
	/* What fails is logged: NVRAM says it all. */
	roots_write_kills(store, emptied->kills, emptied->taken);
	space_let_go(&store->space, emptied->held);
	emptied->stage = EMPTIED_NONE;
}

/*
 * All of NVRAM but the buffers: what these hold was made stable before, and what has come since
 * waits for somebody's flush.
 */
static int sync_index(const struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;
	const struct nand_nvram_range index[] = { { 0, geometry->buffers_at },
						  { geometry->groups_at, geometry->nvram_bytes } };

	return nand_nvram_sync_ranges(store->nand, index, 2);
}

/* Beside everything. */
static void run(struct muninn_store *store, struct emptied *emptied)
{
	int result = 0;

	if (emptied->stage == EMPTIED_MOVED)
		result = flush_end_promised(store, emptied->number, &emptied->promised);
	else if (emptied->stage == EMPTIED_OUT)
		result = sync_index(store);
	emptied->way.result = result;
	emptied->way.ran = true;
}

/* In turn: what follows it. After an error the segments stay where they are, or held back. */
static void advance(struct muninn_store *store, struct emptied *emptied)
{
	if (!emptied->way.ran)
		return;
	emptied->way.ran = false;
	emptied->result = emptied->way.result;
	/* A format takes everything away. */
	if (emptied->stage != EMPTIED_OUT && emptied->leaving.void_before != store->void_before)
		emptied->result = -EAGAIN;
	/* What is not out stays where it is: all that was needed of it is somewhere else, too. */
	if (emptied->result)
		emptied->gathered.count = 0;
	if (emptied->result)
		emptied->stage = EMPTIED_NONE;
	else if (emptied->stage == EMPTIED_OUT)
		let_go(store, emptied);
	else
		take_some_out(store, emptied);
}

/* ---- who is about them ---- */

void emptied_finish(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	sealing_pause(store, &emptied->way);
	do {
		advance(store, emptied);
		if (!emptied_are_under_way(store))
			emptied_begin(store);
		press(store);
		if (emptied_are_under_way(store))
			run(store, emptied);
	} while (emptied_are_under_way(store));
}

bool emptied_go_on(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	if (!sealing_is_running(store, &emptied->way)) {
		sealing_pause(store, &emptied->way);
		advance(store, emptied);
		press(store);
		if (emptied_are_under_way(store))
			sealing_offer(store, &emptied->way);
	}
	return emptied_are_under_way(store);
}

bool emptied_take(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	if (!emptied_have_work(store) || emptied->way.driven)
		return false;
	emptied->way.driven = true;
	if (!sealing_is_running(store, &emptied->way))
		sealing_offer(store, &emptied->way);
	return true;
}

void emptied_run(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	if (!sealing_claim(store, &emptied->way)) {
		sealing_wait(store, &emptied->way);
		return;
	}
	if (!emptied->way.ran)
		run(store, emptied);
	sealing_ran(store, &emptied->way);
}

int emptied_step(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	/* Somebody else may have ended them, and begun with the next. */
	if (emptied_have_work(store) && emptied_go_on(store))
		return 1;
	emptied->way.driven = false;
	return 0;
}
