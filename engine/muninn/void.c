/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Formats. A format makes everything before a sequence number void: its own. It is a transaction
 * like any other, and what it puts is the new beginning.
 *
 * Two words in NVRAM say so. The transaction stores its number in the second one, where it counts
 * once it is committed. So the store of the committed number commits the format. When that is
 * stable on the host, what is wholly void is freed, a root says so on flash, and the number moves
 * to the first word. Until then a failure of the host can still lead back to before the format.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/store.h"

void void_begin(struct muninn_store *store, uint64_t sequence)
{
	nvram_store64(store->nvram + STATE_VOID_NEXT_AT, sequence);
	store->void_before = sequence;
}

void void_take_back(struct muninn_store *store)
{
	/* Before its number can be taken for a committed one. */
	if (!void_is_unsettled(store))
		nvram_store64(store->nvram + STATE_VOID_NEXT_AT, 0);
	store->void_before = void_in_effect(store);
}

void void_recover(struct muninn_store *store)
{
	void_take_back(store);
}

/* ---- freeing ---- */

/* Takes out the columns of segments that are wholly void, and notes these. */
static void kill_columns(struct muninn_store *store, uint32_t number, bool *freed)
{
	struct row *row = &store->rows[number];

	for (uint32_t n = 0; n <= row->complete_count; n++) {
		struct table *table = n < row->complete_count ? &row->complete[n] : &row->growing;

		for (uint64_t live = table_live(table); live; live &= live - 1) {
			uint32_t column = (uint32_t)__builtin_ctzll(live);
			struct table_column facts;

			table_read_column(table, column, &facts);
			if (facts.last_sequence >= store->void_before)
				continue;
			freed[facts.segment] = true;
			store_kill_column(store, number, table, column);
		}
	}
}

/* The format is stable, so nothing leads back to what is void. */
static int free_void(struct muninn_store *store, bool *freed)
{
	const struct muninn_geometry *geometry = &store->geometry;
	int result;

	for (uint32_t number = 0; number < geometry->rows; number++)
		kill_columns(store, number, freed);
	sealing_give_up(store, &store->history_sealing);
	rows_drop_void(store, store->void_before);
	for (uint32_t number = 0; number < geometry->rows; number++)
		store_drop_empty_tables(store, number);
	/* Before the segments can be written again. */
	result = store_flush(store);
	if (result)
		return result;
	for (uint32_t segment = 0; segment < geometry->segments; segment++)
		if (freed[segment])
			space_release(&store->space, segment);
	result = aborted_prune(store);
	store_write_root(store); /* what fails is logged: NVRAM says it all */
	return result;
}

static int settle(struct muninn_store *store)
{
	bool *freed = calloc(store->geometry.segments, sizeof(*freed));
	int result = freed ? store_flush(store) : -ENOMEM;

	if (!result)
		result = free_void(store, freed);
	free(freed);
	if (result)
		return result;
	nvram_store64(store->nvram + STATE_VOID_AT, store->void_before);
	nvram_store64(store->nvram + STATE_VOID_NEXT_AT, 0);
	/* The two words say the same before that and after it, so it need not be stable. */
	return 0;
}

int void_settle(struct muninn_store *store)
{
	int result = void_is_unsettled(store) ? settle(store) : 0;

	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "the device was formatted, but what it held before can't be freed yet "
			 "(error %d); a merge or opening the unit again goes on with that",
			 -result);
	return result;
}
