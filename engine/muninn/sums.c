/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Compares what is in NVRAM with the sums of it, and makes the sums anew. */
#include "engine/muninn/sums.h"

#include <errno.h>
#include <stdio.h>

#include "engine/muninn/aborted.h"
#include "engine/muninn/buffer_check.h"
#include "engine/muninn/directory.h"

/*
 * The two that are missing change without the turn, beside the others. The place of the last root
 * is looked for when the flash does not confirm it. What was flushed counts after a failure of the
 * host alone, when sums tell nothing.
 */
static const uint32_t state_words[] = {
	STATE_COMMITTED_AT,     STATE_SEALED_AT,      STATE_NEXT_SERIAL_AT, STATE_VOID_AT,
	STATE_ABORTED_COUNT_AT, STATE_ROOT_SERIAL_AT, STATE_VOID_NEXT_AT,   STATE_KILLS_AHEAD_AT,
};

static uint64_t state_sum(const struct muninn_store *store)
{
	uint64_t sum = 0;

	for (size_t n = 0; n < sizeof(state_words) / sizeof(state_words[0]); n++)
		sum ^= sum_word(state_words[n], state_read(store, state_words[n]));
	return sum;
}

static uint64_t memo_sum(const struct muninn_store *store)
{
	return sum_word(0, state_read(store, NVRAM_MEMO_AT));
}

/* What the first page and what follows it hold. */
static const struct {
	enum nvram_sum sum;
	uint64_t (*compute)(const struct muninn_store *store);
	const char *what;
	uint64_t at, end; /* 0: up to the sums */
} structures[] = {
	{ SUM_STATE, state_sum, "the state words", STATE_AT, STATE_KILLS_AHEAD_AT + 8 },
	{ SUM_MEMO, memo_sum, "the memo", NVRAM_MEMO_AT, NVRAM_MEMO_AT + 8 },
	{ SUM_ABORTED, aborted_sum, "aborted sequence numbers", NVRAM_ABORTED_AT,
	  NVRAM_DIRECTORY_AT },
	{ SUM_DIRECTORY, directory_sum, "the table directory", NVRAM_DIRECTORY_AT, 0 },
};

enum { STRUCTURES = sizeof(structures) / sizeof(structures[0]) };

/* ---- buffers ---- */

/* All of them are in the list of free ones before they are given to their rows. */
static int check_buffer(struct muninn_store *store, const struct buffer *buffer,
			struct error_text *error)
{
	char what[64];

	if (sum_accept(buffer->sum, buffer_sum(buffer)))
		return 0;
	snprintf(what, sizeof(what), "the headers of buffer %llu",
		 (unsigned long long)((buffer->area_at - store->geometry.buffers_at) /
				      store->geometry.buffer_bytes));
	return store_refuse_nvram(store, what, buffer->area_at, store->geometry.slots_at,
				  (uint64_t)(buffer->sum - store->nvram), error);
}

static void set_buffer(const struct buffer *buffer)
{
	if (buffer->area)
		sum_set(buffer->sum, buffer_sum(buffer));
}

/* ---- all of them ---- */

int sums_check(struct muninn_store *store, struct error_text *error)
{
	int result = 0;

	for (size_t n = 0; n < STRUCTURES; n++) {
		uint8_t *pair = store_sum(store, structures[n].sum);
		uint64_t end = structures[n].end ? structures[n].end : store->geometry.sums_at;

		if (!sum_accept(pair, structures[n].compute(store)))
			return store_refuse_nvram(store, structures[n].what, structures[n].at,
						  end - structures[n].at,
						  (uint64_t)(pair - store->nvram), error);
	}
	for (uint32_t n = 0; !result && n < store->free_buffer_count; n++)
		result = check_buffer(store, &store->free_buffers[n], error);
	return result;
}

static uint8_t *group_pair(const struct muninn_store *store, uint32_t row)
{
	return store->nvram + row_sum_pair_at(&store->geometry, row);
}

int sums_check_group(struct muninn_store *store, uint32_t row, struct error_text *error)
{
	const struct row_index *index = store->rows[row].index;
	uint64_t bytes;
	char what[64];

	if (sum_accept(group_pair(store, row), row_index_sum(index)))
		return 0;
	snprintf(what, sizeof(what), "the growing group of row %u", row);
	const uint8_t *group = row_index_nvram(index, &bytes);

	return store_refuse_nvram(store, what, (uint64_t)(group - store->nvram), bytes,
				  row_sum_pair_at(&store->geometry, row), error);
}

void sums_set_clean(struct muninn_store *store, uint64_t clean)
{
	nvram_store64(store->nvram + NVRAM_CLEAN_AT, clean);
	nvram_store64(store->nvram + store->geometry.sums_at + SUMS_CLEAN_AT, clean);
}

void sums_set(struct muninn_store *store)
{
	sums_set_clean(store, 0);
	for (size_t n = 0; n < STRUCTURES; n++)
		sum_set(store_sum(store, structures[n].sum), structures[n].compute(store));
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		sum_set(group_pair(store, number), row_index_sum(store->rows[number].index));
		set_buffer(&store->rows[number].buffer);
		set_buffer(&store->rows[number].newer);
	}
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		set_buffer(&store->free_buffers[n]);
}
