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

static struct emptied *emptied_of(const struct muninn_store *store)
{
	return &store->merge_run->emptied;
}

bool emptied_are_under_way(const struct muninn_store *store)
{
	return emptied_of(store)->stage != EMPTIED_NONE;
}

int emptied_take_result(struct muninn_store *store)
{
	int result = emptied_of(store)->result;

	emptied_of(store)->result = 0;
	return result;
}

void emptied_begin(struct muninn_store *store)
{
	const struct merge_run *run = store->merge_run;
	struct emptied *emptied = emptied_of(store);

	assert(!emptied_are_under_way(store));
	memcpy(emptied->segments, run->batch, run->count * sizeof(*run->batch));
	emptied->count = run->count;
	emptied->void_before = run->void_before;
	emptied->result = 0;
	emptied->way.ran = false;
	roots_expect(store);
	emptied->number = flush_begin(store);
	emptied->stage = EMPTIED_MOVED;
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

/* What was moved is stable. */
static void take_out_all(struct muninn_store *store, struct emptied *emptied)
{
	for (uint32_t n = 0; n < emptied->count; n++) {
		seal_settle_group(store, emptied->segments[n].row);
		emptied->kills[n] = take_out(store, &emptied->segments[n]);
	}
	emptied->held = store->space.held;
	emptied->root_serial = state_read(store, STATE_ROOT_SERIAL_AT);
	emptied->stage = EMPTIED_OUT;
}

/* Not those that a root is without: segments may have other numbers in their groups since. */
static uint32_t count_kills(struct muninn_store *store, const struct emptied *emptied)
{
	roots_finish(store);
	return store->root_serial >= emptied->root_serial ? 0 : emptied->count;
}

/* That they are out is stable. */
static void let_go(struct muninn_store *store, struct emptied *emptied)
{
	/* What fails is logged: NVRAM says it all. */
	roots_write_kills(store, emptied->kills, count_kills(store, emptied));
	if (store->ready_from <= emptied->held && store->ready_to > emptied->held)
		emptied->held = store->ready_to;
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
	emptied->way.result = emptied->stage == EMPTIED_MOVED ? flush_end(store, emptied->number)
							      : sync_index(store);
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
	if (emptied->stage == EMPTIED_MOVED && emptied->void_before != store->void_before)
		emptied->result = -EAGAIN;
	if (emptied->result)
		emptied->stage = EMPTIED_NONE;
	else if (emptied->stage == EMPTIED_MOVED)
		take_out_all(store, emptied);
	else
		let_go(store, emptied);
}

/* ---- who is about them ---- */

void emptied_finish(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	sealing_pause(store, &emptied->way);
	advance(store, emptied);
	while (emptied_are_under_way(store)) {
		run(store, emptied);
		advance(store, emptied);
	}
}

bool emptied_go_on(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	if (!sealing_is_running(store, &emptied->way)) {
		sealing_pause(store, &emptied->way);
		advance(store, emptied);
		if (emptied_are_under_way(store))
			sealing_offer(store, &emptied->way);
	}
	return emptied_are_under_way(store);
}

bool emptied_wait(const struct muninn_store *store)
{
	return emptied_are_under_way(store) && !emptied_of(store)->way.driven;
}

bool emptied_take(struct muninn_store *store)
{
	struct emptied *emptied = emptied_of(store);

	if (!emptied_wait(store))
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

	if (emptied_go_on(store))
		return 1;
	emptied->way.driven = false;
	return 0;
}
