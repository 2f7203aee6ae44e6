/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * From the host's caches to its storage: what a flush promises.
 *
 * A flush takes the committed number in turn, and says to the buffers that what they hold is about
 * to be promised. Then it syncs the NVRAM beside everything, and publishes the number. Each page
 * of the NVRAM gets to the storage as it is at some moment of that. So from the moment when the
 * number is taken, everything behaves as if it were promised already: a buffer that is sealed stays
 * until the index is stable, and its pages drop nothing that the number speaks of. So what two
 * numbers speak of is there, whichever of them the host's failure leaves.
 */
#include "engine/muninn/flush.h"

#include "engine/muninn/buffer_check.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/row.h"

uint64_t flush_begin(struct muninn_store *store)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		if (!row->unpromised)
			continue;
		row->unpromised = false;
		buffer_promise(&row->buffer, store->committed);
		if (row_has_newer(row))
			buffer_promise(&row->newer, store->committed);
	}
	return store->committed;
}

int flush_sync(struct muninn_store *store)
{
	return nand_nvram_sync(store->nand, NVRAM_PAGE, store->geometry.nvram_bytes - NVRAM_PAGE);
}

int flush_publish(struct muninn_store *store, uint64_t number)
{
	/* One that began later may have been quicker. */
	pthread_mutex_lock(&store->seal_lock);
	if (number > state_read(store, STATE_FLUSHED_AT))
		nvram_store64(store->nvram + STATE_FLUSHED_AT, number);
	pthread_mutex_unlock(&store->seal_lock);
	return nand_nvram_sync(store->nand, 0, NVRAM_PAGE);
}

int flush_end(struct muninn_store *store, uint64_t number)
{
	int result = flush_sync(store);

	return result ? result : flush_publish(store, number);
}

int flush_all(struct muninn_store *store)
{
	return flush_end(store, flush_begin(store));
}
