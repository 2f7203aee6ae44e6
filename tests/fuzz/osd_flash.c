/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Remembers what a flash in memory held, and puts it back. */
#include "tests/fuzz/osd_flash.h"

#include <stdlib.h>
#include <string.h>

#include "nand/private.h"
#include "tests/fuzz/fuzz.h"

#define WORD_BYTES sizeof(uint64_t)

struct osd_flash_state {
	struct nand *nand;
	uint8_t *table, *pages, *nvram; /* copies of the mappings */
	struct nand_counters counters;
	bool dirty;
};

static uint8_t *copy_of(const struct nand_mapping *mapping)
{
	uint8_t *copy = fuzz_exact(mapping->bytes, 0);

	memcpy(copy, mapping->at, mapping->bytes);
	return copy;
}

struct osd_flash_state *osd_flash_remember(struct nand *nand)
{
	struct osd_flash_state *state = calloc(1, sizeof(*state));

	fuzz_check(state != NULL);
	state->nand = nand;
	state->table = copy_of(&nand->table);
	state->pages = copy_of(&nand->pages);
	state->nvram = copy_of(&nand->nvram);
	nand_read_counters(nand, &state->counters);
	state->dirty = nand->dirty;
	return state;
}

static void restore_block(const struct osd_flash_state *state, size_t block)
{
	const struct nand *nand = state->nand;
	size_t at = block * nand->layout.block_stride;

	memcpy(nand->table.at + block * WORD_BYTES, state->table + block * WORD_BYTES, WORD_BYTES);
	memcpy(nand->pages.at + at, state->pages + at, nand->layout.block_stride);
}

static void restore_counters(const struct osd_flash_state *state)
{
	const struct nand_counters *from = &state->counters;
	struct nand *nand = state->nand;

	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		struct nand_cause_counters *to = &nand->by_cause[cause];

		to->pages_read = from->by_cause[cause].pages_read;
		to->pages_programmed = from->by_cause[cause].pages_programmed;
		to->blocks_erased = from->by_cause[cause].blocks_erased;
		to->bytes_read = from->by_cause[cause].bytes_read;
		to->bytes_programmed = from->by_cause[cause].bytes_programmed;
	}
	nand->rule_violations = from->rule_violations;
	nand->uncorrectable_reads = from->uncorrectable_reads;
	nand->image_syncs = from->image_syncs;
	nand->nvram_sync_requests = from->nvram_sync_requests;
	nand->nvram_syncs = from->nvram_syncs;
	nand->nvram_bytes_synced = from->nvram_bytes_synced;
	nand->dirty = state->dirty;
}

void osd_flash_restore(const struct osd_flash_state *state)
{
	const struct nand *nand = state->nand;

	/*
	 * The word of a block changes whenever one of its pages does: it counts programs and
	 * erases.
	 */
	for (size_t block = 0; block < nand->geometry.blocks; block++)
		if (memcmp(nand->table.at + block * WORD_BYTES, state->table + block * WORD_BYTES,
			   WORD_BYTES) != 0)
			restore_block(state, block);
	memcpy(nand->nvram.at, state->nvram, nand->nvram.bytes);
	restore_counters(state);
}
