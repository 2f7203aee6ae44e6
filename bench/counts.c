/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sums up what a device has counted by cause. */
#include "bench/counts.h"

struct counts counts_read(struct engine *engine, struct nand *nand)
{
	struct engine_statistics statistics;
	struct nand_counters counters;
	struct counts counts = { 0 };

	nand_read_counters(nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		counts.reads += counters.by_cause[cause].pages_read;
		counts.programs += counters.by_cause[cause].pages_programmed;
	}
	if (!engine)
		return counts;
	engine_read_statistics(engine, &statistics);
	counts.record_bytes = statistics.record_bytes_put;
	return counts;
}
