/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Flushes beside transactions, in parts. */
#include "tests/engine/muninn/flusher.h"

#include "common/bytes.h"
#include "engine/muninn/flush.h"

static uint32_t below(struct flusher *flusher, uint32_t limit)
{
	flusher->random += UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(hash_mix(flusher->random) % limit);
}

static int sync_part(struct flusher *flusher, struct muninn_store *store, uint32_t part)
{
	uint64_t all = store->geometry.nvram_bytes - NVRAM_PAGE;
	uint64_t bytes = divide_up(divide_up(all, FLUSHER_PARTS), NVRAM_PAGE) * NVRAM_PAGE;
	uint64_t from = min_u64(part * bytes, all);

	flusher->left &= ~(1U << part);
	return nand_nvram_sync(store->nand, NVRAM_PAGE + from, min_u64(bytes, all - from));
}

int flusher_act(struct flusher *flusher, struct muninn_store *store, uint64_t committed,
		uint64_t *flushed)
{
	uint32_t part = below(flusher, FLUSHER_PARTS);
	int result = 0;

	/* Between two flushes buffers fill that no flush has promised. */
	if (below(flusher, flusher->under_way ? 2 : 12))
		return 0;
	if (!flusher->under_way) {
		flusher->under_way = true;
		flusher->number = flush_begin(store);
		flusher->committed = committed;
		flusher->left = (1U << FLUSHER_PARTS) - 1;
	} else if (flusher->left) {
		while (!(flusher->left & 1U << part))
			part = (part + 1) % FLUSHER_PARTS;
		result = sync_part(flusher, store, part);
	} else {
		result = flush_publish(store, flusher->number);
		flusher->under_way = false;
		flusher->finished += !result;
		if (!result)
			*flushed = max_u64(*flushed, flusher->committed);
	}
	return result;
}
