/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Runs a scenario again and again, with the power failing one operation later each time. */
#include "nand/rehearsal.h"

#include <errno.h>

#include "common/bytes.h"

void nand_rehearsal_ends(const struct nand_geometry *geometry, enum nand_cut_nvram nvram,
			 struct nand_power_cut ends[NAND_REHEARSAL_ENDS])
{
	uint32_t page_bytes = geometry->page_bytes, all_bytes = page_bytes + geometry->spare_bytes;
	const struct {
		enum nand_cut_page page;
		uint32_t torn_bytes;
	} pages[NAND_REHEARSAL_ENDS] = {
		{ NAND_CUT_PAGE_ABSENT, 0 },
		{ NAND_CUT_PAGE_GARBAGE, 0 },
		{ NAND_CUT_PAGE_TORN, 0 },
		{ NAND_CUT_PAGE_TORN, 1 },
		{ NAND_CUT_PAGE_TORN, page_bytes / 2 },
		{ NAND_CUT_PAGE_TORN, page_bytes },
		{ NAND_CUT_PAGE_TORN, all_bytes - 1 },
		{ NAND_CUT_PAGE_TORN, all_bytes },
	};

	for (uint32_t i = 0; i < NAND_REHEARSAL_ENDS; i++)
		ends[i] = (struct nand_power_cut){
			.page = pages[i].page,
			.torn_bytes = pages[i].torn_bytes,
			.erase = (enum nand_cut_erase)(i % NAND_CUT_ERASES),
			.nvram = nvram,
			.seed = i + 1,
		};
}

/* One run. `*hit`: the cut came before the scenario's end. */
static int run_once(const struct nand_rehearsal *rehearsal, const struct nand_power_cut *cut,
		    bool *hit, struct error_text *error)
{
	struct nand_power_status status;
	struct nand *nand;
	int result = nand_open_memory(rehearsal->geometry, rehearsal->nvram_bytes, &nand, error);

	if (result < 0)
		return result;
	if (rehearsal->prepare)
		rehearsal->prepare(nand, rehearsal->context);
	result = nand_arm_power_cut(nand, cut, error);
	if (result == 0) {
		rehearsal->run(nand, rehearsal->context);
		nand_power_status(nand, &status);
		*hit = status.off;
		if (*hit)
			result = nand_power_on(nand);
		else
			nand_disarm_power_cut(nand);
		if (result < 0)
			error_set(error, result, "the device does not get its power back");
	}
	if (result == 0)
		rehearsal->check(nand, rehearsal->context, *hit ? cut : NULL);
	nand_abandon(nand);
	return result;
}

int nand_rehearse(const struct nand_rehearsal *rehearsal, uint64_t *runs, struct error_text *error)
{
	uint64_t stride = max_u64(rehearsal->stride, 1);

	for (size_t i = 0; i < rehearsal->ends_count; i++) {
		struct nand_power_cut cut = rehearsal->ends[i];
		uint64_t points = 0;
		bool hit = true;

		for (cut.after = 0; hit; cut.after += stride) {
			int result;

			/* What is drawn differs from cut to cut, and can be drawn again. */
			cut.seed = rehearsal->ends[i].seed + cut.after * 0x9E3779B97F4A7C15U;
			result = run_once(rehearsal, &cut, &hit, error);

			if (result < 0)
				return result;
			++*runs;
			if (++points == rehearsal->points_max)
				break;
		}
	}
	return 0;
}
