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
#include "engine/muninn/void.h"

#include "engine/muninn/nvram.h"

uint64_t void_in_effect(const struct muninn_store *store)
{
	return void_is_unsettled(store) ? state_read(store, STATE_VOID_NEXT_AT)
					: state_read(store, STATE_VOID_AT);
}

bool void_is_unsettled(const struct muninn_store *store)
{
	uint64_t next = state_read(store, STATE_VOID_NEXT_AT);

	return next && next <= store->committed;
}

void void_begin(struct muninn_store *store, uint64_t sequence)
{
	state_write(store, STATE_VOID_NEXT_AT, sequence);
	store->void_before = sequence;
}

void void_take_back(struct muninn_store *store)
{
	/* Before its number can be taken for a committed one. */
	if (!void_is_unsettled(store))
		state_write(store, STATE_VOID_NEXT_AT, 0);
	store->void_before = void_in_effect(store);
}

void void_recover(struct muninn_store *store)
{
	void_take_back(store);
}
