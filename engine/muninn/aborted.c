/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Sequence numbers that never count although sealed segments may hold records with them: commands
 * that were aborted or cut off by a crash, and all that a failure of the host took back. A list of
 * ranges in NVRAM, ascending.
 */
#include "engine/muninn/aborted.h"

#include <errno.h>

#include "engine/muninn/nvram.h"

static uint8_t *range_at(const struct muninn_store *store, uint64_t n)
{
	return store->nvram + NVRAM_ABORTED_AT + n * ABORTED_RANGE_BYTES;
}

static uint64_t range_first(const struct muninn_store *store, uint64_t n)
{
	return get_le64(range_at(store, n));
}

static uint64_t range_last(const struct muninn_store *store, uint64_t n)
{
	return get_le64(range_at(store, n) + 8);
}

/* Word 0 or 1 of range n. */
static uint64_t sum_range_word(uint64_t n, uint32_t word, uint64_t value)
{
	return sum_word(2 * n + word, value);
}

static uint64_t sum_until(const struct muninn_store *store, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t n = 0; n < count; n++)
		sum ^= sum_range_word(n, 0, range_first(store, n)) ^
		       sum_range_word(n, 1, range_last(store, n));
	return sum;
}

uint64_t aborted_sum(const struct muninn_store *store)
{
	return sum_until(store,
			 min_u64(state_read(store, STATE_ABORTED_COUNT_AT), MUNINN_ABORTED_MAX));
}

static void set_word(struct muninn_store *store, uint64_t n, uint32_t word, uint64_t value)
{
	uint8_t *pair = store_sum(store, SUM_ABORTED), *at = range_at(store, n) + 8 * word;
	bool counts = n < state_read(store, STATE_ABORTED_COUNT_AT);

	sum_begin(pair,
		  counts ? sum_range_word(n, word, get_le64(at)) ^ sum_range_word(n, word, value)
			 : 0);
	nvram_store64(at, value);
	sum_end(pair);
}

static void set_range(struct muninn_store *store, uint64_t n, uint64_t first, uint64_t last)
{
	/* Between the two stores the range holds nothing. */
	set_word(store, n, 0, first);
	set_word(store, n, 1, last);
}

static void set_count(struct muninn_store *store, uint64_t count)
{
	uint8_t *pair = store_sum(store, SUM_ABORTED);

	sum_begin_whole(pair, sum_until(store, count));
	state_write(store, STATE_ABORTED_COUNT_AT, count);
	sum_end(pair);
}

bool aborted_has_room(const struct muninn_store *store, enum record_room room)
{
	uint64_t left = room <= RECORD_ROOM_FREE ? MUNINN_ABORTED_KEPT : 0;

	return state_read(store, STATE_ABORTED_COUNT_AT) + left < MUNINN_ABORTED_MAX;
}

int aborted_refuse(struct error_text *error)
{
	return error_set(error, -EINVAL,
			 "the numbers of %d interrupted commands are on record, and there is no "
			 "space for one more: bring back the image and its .nvram from a copy",
			 MUNINN_ABORTED_MAX);
}

void aborted_skip_to(struct muninn_store *store, uint64_t last)
{
	uint64_t count = state_read(store, STATE_ABORTED_COUNT_AT);
	uint64_t first = store->committed + 1;

	assert(last >= first);
	if (count && range_last(store, count - 1) >= store->committed) {
		/* Nothing has been committed since the last one: it grows. */
		if (range_last(store, count - 1) < last)
			set_word(store, count - 1, 1, last);
	} else {
		assert(count < MUNINN_ABORTED_MAX);
		set_range(store, count, first, last);
		set_count(store, count + 1);
	}
	state_write(store, STATE_COMMITTED_AT, last);
	store->committed = last;
	store->root_outdated = true;
}

void aborted_take_back(struct muninn_store *store, uint64_t last)
{
	uint64_t count = min_u64(state_read(store, STATE_ABORTED_COUNT_AT), MUNINN_ABORTED_MAX);
	uint64_t kept = 0;

	while (kept < count && range_first(store, kept) <= last &&
	       (kept == 0 || range_first(store, kept) > range_last(store, kept - 1)))
		kept++;
	/*
	 * An outage that another one interrupted has made this range longer: it ended with `last`.
	 */
	if (kept && range_last(store, kept - 1) > last)
		set_word(store, kept - 1, 1, last);
	set_count(store, kept);
}

/* Whether a sealed segment may hold records with numbers of a range. */
static bool is_in_use(const struct muninn_store *store, uint64_t first, uint64_t last)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct index_walk walk = { 0 };
		struct sealed_segment segment;

		while (row_index_next(store->rows[number].index, &walk, &segment))
			if (segment.first_sequence <= last && segment.last_sequence >= first)
				return true;
	}
	return false;
}

/*
 * Moves a range down, and makes that stable, before its old entry is written over. So the list
 * holds all ranges that are needed at every moment, some of them twice.
 */
int aborted_prune(struct muninn_store *store)
{
	uint64_t count = state_read(store, STATE_ABORTED_COUNT_AT);
	uint64_t kept = 0;
	int result = 0;

	for (uint64_t n = 0; !result && n < count; n++) {
		if (!is_in_use(store, range_first(store, n), range_last(store, n)))
			continue;
		if (n != kept) {
			set_range(store, kept, range_first(store, n), range_last(store, n));
			result = nand_nvram_sync(store->nand,
						 (uint64_t)(range_at(store, kept) - store->nvram),
						 ABORTED_RANGE_BYTES);
		}
		kept++;
	}
	if (!result)
		set_count(store, kept);
	return result;
}
