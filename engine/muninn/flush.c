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

#include "common/bytes.h"
#include "engine/muninn/buffer_check.h"
#include "engine/muninn/nvram.h"
#include "engine/muninn/row.h"

/*
 * May slots say that the committed number speaks of them? Not if an earlier flush has that number,
 * since when merging has moved records, which commits nothing: if this one is interrupted, they
 * would be taken for what the earlier one had made stable. They are in their old places until this
 * one is stable, and the next one with another number is for them, too.
 */
static bool has_number_of_its_own(struct muninn_store *store)
{
	uint64_t earlier;

	/* Others publish theirs without the turn. */
	pthread_mutex_lock(&store->seal_lock);
	earlier = max_u64(store->flush_begun, state_read(store, STATE_FLUSHED_AT));
	pthread_mutex_unlock(&store->seal_lock);
	store->flush_begun = store->committed;
	return store->committed > earlier;
}

uint64_t flush_begin(struct muninn_store *store)
{
	bool stamps = has_number_of_its_own(store);

	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		if (!row->unpromised)
			continue;
		row->unpromised = !stamps;
		buffer_promise(&row->buffer, store->committed, stamps);
		if (row_has_newer(row))
			buffer_promise(&row->newer, store->committed, stamps);
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

/*
 * The copy is opened on another host, or after this one has been started again, where only what a
 * flush has promised counts. So it is as behind a flush. The device itself is as if that had been
 * interrupted.
 */
void flush_copy(struct muninn_store *store, uint8_t *to)
{
	uint64_t number = flush_begin(store);

	/*
	 * What is stored without the turn, the memo and the number of a flush, has this lock. But
	 * where the ring of roots is has not: it may go on, and be erased, before the instant of
	 * the flash. Opening finds the last root wherever it is (roots_check).
	 */
	pthread_mutex_lock(&store->seal_lock);
	memcpy(to, store->nvram, store->geometry.nvram_bytes);
	pthread_mutex_unlock(&store->seal_lock);
	if (number > get_le64(to + STATE_FLUSHED_AT))
		put_le64(to + STATE_FLUSHED_AT, number);
}
