/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Frees what a format made void (void.c), after its commit is stable and nothing leads back. */
#include "engine/muninn/settle.h"

#include "common/log.h"
#include "engine/muninn/aborted.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"
#include "engine/muninn/void.h"

/* Takes out the segments that are wholly void. */
static void take_out_void(struct muninn_store *store, uint32_t number)
{
	struct index_walk walk = { 0 };
	struct sealed_segment segment;

	while (row_index_next(store->rows[number].index, &walk, &segment)) {
		if (segment.last_sequence >= store->void_before)
			continue;
		directory_take_out(store, number, &segment);
		space_hold(&store->space, segment.segment);
	}
}

/*
 * The format is stable, so nothing leads back to what is void. What was held back before is let go,
 * too: all of NVRAM is made stable, and the root names none of it.
 */
static int free_void(struct muninn_store *store)
{
	const struct muninn_geometry *geometry = &store->geometry;
	int result;

	seal_give_up(store);
	for (uint32_t number = 0; number < geometry->rows; number++)
		take_out_void(store, number);
	rows_drop_void(store, store->void_before);
	for (uint32_t number = 0; number < geometry->rows; number++)
		directory_drop_empty(store, number);
	result = flush_all(store);
	if (result)
		return result;
	result = aborted_prune(store);
	roots_supersede(store); /* what fails is logged: NVRAM says it all */
	space_let_go(&store->space, store->space.held);
	return result;
}

static int settle(struct muninn_store *store)
{
	int result;

	roots_expect(store);
	result = flush_all(store);
	if (!result)
		result = free_void(store);
	if (result)
		return result;
	state_write(store, STATE_VOID_AT, store->void_before);
	state_write(store, STATE_VOID_NEXT_AT, 0);
	/* The two words say the same before that and after it, so it need not be stable. */
	return 0;
}

int settle_format(struct muninn_store *store)
{
	int result = void_is_unsettled(store) ? settle(store) : 0;

	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "%s: the device was formatted, but what it held before can't be freed yet "
			 "(error %d); a merge or opening the unit again goes on with that",
			 nand_path(store->nand), -result);
	return result;
}
