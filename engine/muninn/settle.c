/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Frees what a format made void (void.c), after its commit is stable and nothing leads back. */
#include "engine/muninn/settle.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/aborted.h"
#include "engine/muninn/directory.h"
#include "engine/muninn/flush.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/roots.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"
#include "engine/muninn/void.h"

/* Takes out the segments that are wholly void, and notes them. */
static void take_out_void(struct muninn_store *store, uint32_t number, bool *freed)
{
	struct index_walk walk = { 0 };
	struct sealed_segment segment;

	while (row_index_next(store->rows[number].index, &walk, &segment)) {
		if (segment.last_sequence >= store->void_before)
			continue;
		freed[segment.segment] = true;
		directory_take_out(store, number, &segment);
	}
}

/* The format is stable, so nothing leads back to what is void. */
static int free_void(struct muninn_store *store, bool *freed)
{
	const struct muninn_geometry *geometry = &store->geometry;
	int result;

	seal_give_up(store);
	for (uint32_t number = 0; number < geometry->rows; number++)
		take_out_void(store, number, freed);
	rows_drop_void(store, store->void_before);
	for (uint32_t number = 0; number < geometry->rows; number++)
		directory_drop_empty(store, number);
	/* Before the segments can be written again. */
	result = flush_all(store);
	if (result)
		return result;
	for (uint32_t segment = 0; segment < geometry->segments; segment++)
		if (freed[segment])
			space_release(&store->space, segment);
	result = aborted_prune(store);
	roots_write(store); /* what fails is logged: NVRAM says it all */
	return result;
}

static int settle(struct muninn_store *store)
{
	bool *freed = calloc(store->geometry.segments, sizeof(*freed));
	int result = freed ? flush_all(store) : -ENOMEM;

	if (!result)
		result = free_void(store, freed);
	free(freed);
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
