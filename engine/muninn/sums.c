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

static uint8_t *group_pair(const struct muninn_store *store, uint32_t row)
{
	return store->nvram + row_sum_pair_at(&store->geometry, row);
}

/* ---- comparing ---- */

static int check_structure(const struct muninn_store *store, size_t n, struct error_text *error)
{
	const uint8_t *pair = store_sum(store, structures[n].sum);
	uint64_t end = structures[n].end ? structures[n].end : store->geometry.sums_at;

	if (sum_fits(pair, structures[n].compute(store)))
		return 0;
	return store_refuse_nvram(store, structures[n].what, structures[n].at,
				  end - structures[n].at, (uint64_t)(pair - store->nvram), error);
}

static int check_group(const struct muninn_store *store, uint32_t row, struct error_text *error)
{
	const struct row_index *index = store->rows[row].index;
	const uint8_t *group;
	uint64_t bytes;
	char what[64];

	if (sum_fits(group_pair(store, row), row_index_sum(index)))
		return 0;
	group = row_index_nvram(index, &bytes);
	snprintf(what, sizeof(what), "the growing group of row %u", row);
	return store_refuse_nvram(store, what, (uint64_t)(group - store->nvram), bytes,
				  row_sum_pair_at(&store->geometry, row), error);
}

/* Its headers, and its records if a row has it. */
static int check_buffer(const struct muninn_store *store, const struct buffer *buffer,
			struct error_text *error)
{
	const struct muninn_geometry *geometry = &store->geometry;
	uint64_t number = (buffer->area_at - geometry->buffers_at) / geometry->buffer_bytes;
	struct buffer_damage damage;
	char what[64];

	if (!sum_fits(buffer->sum, buffer_sum(buffer))) {
		snprintf(what, sizeof(what), "the headers of buffer %llu",
			 (unsigned long long)number);
		return store_refuse_nvram(store, what, buffer->area_at, geometry->slots_at,
					  (uint64_t)(buffer->sum - store->nvram), error);
	}
	if (buffer_row(buffer) >= geometry->rows || buffer_is_whole(buffer, &damage))
		return 0;
	snprintf(what, sizeof(what), "records of row %u", buffer_row(buffer));
	return store_refuse_nvram(store, what, damage.at, damage.bytes, damage.header_at, error);
}

bool sums_check_numbers(const struct muninn_store *store)
{
	return sum_fits(store_sum(store, SUM_STATE), state_sum(store)) &&
	       sum_fits(store_sum(store, SUM_ABORTED), aborted_sum(store));
}

int sums_check_others(const struct muninn_store *store, struct error_text *error)
{
	int result = 0;

	for (size_t n = 0; !result && n < STRUCTURES; n++)
		result = check_structure(store, n, error);
	for (uint32_t number = 0; !result && number < store->geometry.rows; number++)
		result = check_group(store, number, error);
	return result;
}

int sums_check(const struct muninn_store *store, struct error_text *error)
{
	int result = sums_check_others(store, error);

	/* All of them are in the list of free ones before they are given to their rows. */
	for (uint32_t n = 0; !result && n < store->free_buffer_count; n++)
		result = check_buffer(store, &store->free_buffers[n], error);
	return result;
}

/* ---- making them again ---- */

static void set_buffer(const struct buffer *buffer, bool all)
{
	if (buffer->area && (all || !sum_is_settled(buffer->sum)))
		sum_set(buffer->sum, buffer_sum(buffer));
}

static void set(struct muninn_store *store, bool all)
{
	for (size_t n = 0; n < STRUCTURES; n++) {
		uint8_t *pair = store_sum(store, structures[n].sum);

		if (all || !sum_is_settled(pair))
			sum_set(pair, structures[n].compute(store));
	}
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		const struct row *row = &store->rows[number];

		if (all || !sum_is_settled(group_pair(store, number)))
			sum_set(group_pair(store, number), row_index_sum(row->index));
		set_buffer(&row->buffer, all);
		set_buffer(&row->newer, all);
	}
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		set_buffer(&store->free_buffers[n], all);
}

void sums_settle(struct muninn_store *store)
{
	set(store, false);
}

void sums_set(struct muninn_store *store)
{
	sums_set_clean(store, 0);
	set(store, true);
}

void sums_set_clean(struct muninn_store *store, uint64_t clean)
{
	nvram_store64(store->nvram + NVRAM_CLEAN_AT, clean);
	nvram_store64(store->nvram + store->geometry.sums_at + SUMS_CLEAN_AT, clean);
}
