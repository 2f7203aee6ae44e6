/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Programs pages that the caller waits for: one by one, or in runs of neighbours where the back end
 * writes those at once.
 *
 * All pages of a run set out before any of them is written, and become valid in order behind that.
 * So if the process dies in between, none of the run has been programmed.
 */
#include <errno.h>

#include "common/bytes.h"
#include "nand/lab.h"
#include "nand/page.h"

#define SPARE_BYTES_MAX 16384 /* of a run; at least one page's */

_Static_assert(SPARE_BYTES_MAX >= NAND_SPARE_BYTES_MAX, "a run has a page");

struct run {
	struct nand_page_way ways[NAND_RUN_PAGES];
	uint8_t spares[SPARE_BYTES_MAX];
	uint32_t count;
};

/* How many pages a run may have. */
static uint32_t most_pages(const struct nand *nand)
{
	const struct nand_geometry *geometry = &nand->geometry;

	/* Pages with gaps between them are no run; a power cut leaves pages one by one. */
	if (!nand->backend->write_run || nand_feature_is_on(nand, NAND_FEATURE_POWER) ||
	    nand->layout.page_stride != geometry->page_bytes + geometry->spare_bytes)
		return 1;
	return (uint32_t)min_u64(NAND_RUN_PAGES, SPARE_BYTES_MAX / geometry->spare_bytes);
}

static void set_out(struct nand *nand, const struct nand_page_way *way)
{
	if (nand->on_the_way)
		atomic_fetch_add_explicit(&nand->on_the_way[way->block], 1, memory_order_relaxed);
}

static void arrive(struct nand *nand, const struct nand_page_way *way)
{
	if (nand->on_the_way)
		atomic_fetch_sub_explicit(&nand->on_the_way[way->block], 1, memory_order_relaxed);
}

/* Whether `page` is of the same block as the one in front of it. */
static bool is_next(const struct nand *nand, uint64_t before, uint64_t page)
{
	return page == before + 1 && page % nand->geometry.pages_per_block != 0;
}

/*
 * Begins with as many of `count` pages as can be written at once. The error of the page that may
 * not be programmed, or 0.
 */
static int begin(struct nand *nand, const struct nand_page_io *pages, size_t count, struct run *run)
{
	uint32_t spare_bytes = nand->geometry.spare_bytes;

	for (run->count = 0; run->count < count; run->count++) {
		const struct nand_page_io *io = &pages[run->count];
		struct nand_page_way *way = &run->ways[run->count];
		int result;

		if (run->count > 0 && !is_next(nand, io[-1].page, io->page))
			break;
		result = nand_page_program_begin(nand, io, way);
		if (result < 0)
			return result;
		set_out(nand, way);
		nand_page_seal(nand, io, way, run->spares + (size_t)run->count * spare_bytes);
	}
	return 0;
}

static int write_run(struct nand *nand, const struct nand_page_io *pages, struct run *run,
		     uint32_t *done)
{
	int result;

	*done = 0;
	if (run->count == 0)
		return 0;
	if (run->count > 1)
		return nand->backend->write_run(nand, pages, run->spares, run->count, done);
	result = nand->backend->write(nand, pages[0].page, pages[0].data, run->spares);
	*done = result == 0;
	return result;
}

/* The first `done` pages have been written. */
static void finish(struct nand *nand, const struct run *run, uint32_t done)
{
	for (uint32_t i = 0; i < run->count; i++) {
		if (i < done)
			nand_page_program_finish(nand, &run->ways[i]);
		arrive(nand, &run->ways[i]);
	}
}

/* Counts the time of `count` pages of a run, all of which were under way from its beginning. */
static void time_pages(struct nand *nand, struct nand_timed *timed,
		       const struct nand_page_io *pages, uint32_t count)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t began_ns = timed->completion_ns;

	if (timed->generation == 0)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (nand_timed_measures(nand))
			timed->completion_ns = began_ns;
		nand_timed_page(nand, timed, NAND_PROGRAM,
				(uint32_t)(pages[i].page / geometry->pages_per_block),
				geometry->page_bytes + geometry->spare_bytes);
	}
}

int nand_program_each(struct nand *nand, struct nand_timed *timed, enum nand_cause cause,
		      const struct nand_page_io *pages, size_t count, size_t *done)
{
	uint32_t most = most_pages(nand);
	int result = 0;

	*done = 0;
	if (nand->read_only)
		return -EROFS;
	while (*done < count && result == 0) {
		uint32_t written;
		struct run run;
		int stop = begin(nand, pages + *done, min_u64(count - *done, most), &run);

		result = write_run(nand, pages + *done, &run, &written);
		finish(nand, &run, written);
		result = result < 0 ? result : stop;
		/* What the flash finds it could not program has taken its time, too. */
		time_pages(nand, timed, pages + *done, written + (result == -EIO));
		*done += written;
	}
	nand_count_programmed(nand, cause, *done);
	return result;
}
