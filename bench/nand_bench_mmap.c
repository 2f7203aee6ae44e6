/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The mmap part: a device in memory, programmed and read a block a call. Beside it memcpy(3) copies
 * the same pages from the same buffer to memory of the same size and kind, and back. Everything has
 * been touched before it is measured.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "bench/nand_bench.h"
#include "bench/random.h"
#include "common/bytes.h"

enum { PAGES_MAX = 64, SLICE_BLOCKS = 32 };

struct mmap_bench {
	struct nand *nand;
	const struct nand_geometry *geometry;
	uint8_t *copy;   /* as large as the device */
	uint8_t *buffer; /* a block */
	uint64_t bytes;
};

/* Memory as the device's own: large pages where the host has them. */
static uint8_t *map(uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	(void)madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

/* A slice of the device: some blocks. */
struct slice {
	uint32_t first_block, blocks;
};

/*
 * Processor time of this thread. The time of others on the machine would count for one side or the
 * other.
 */
static double processor_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double copy_slice(const struct mmap_bench *bench, struct slice slice, bool write)
{
	uint64_t page_bytes = bench->geometry->page_bytes;
	uint64_t block_bytes = page_bytes * bench->geometry->pages_per_block;
	uint64_t end = (slice.first_block + slice.blocks) * block_bytes;
	double begin = processor_seconds();

	for (uint64_t at = slice.first_block * block_bytes; at < end; at += page_bytes) {
		uint8_t *page = bench->buffer + at % block_bytes;

		if (write)
			memcpy(bench->copy + at, page, page_bytes);
		else
			memcpy(page, bench->copy + at, page_bytes);
		/* The compiler must not join or drop copies. */
		__asm__ volatile("" : : "r"(page) : "memory");
	}
	return processor_seconds() - begin;
}

/* Adds the time to `seconds`. 0 or an error of the device. */
static int move_slice(const struct mmap_bench *bench, struct slice slice, bool write,
		      double *seconds)
{
	uint32_t pages = bench->geometry->pages_per_block;
	struct nand_page_io io[PAGES_MAX];
	double begin = processor_seconds();
	int result = 0;

	for (uint32_t i = 0; i < slice.blocks && result == 0; i++) {
		uint32_t block = slice.first_block + i;

		for (uint32_t k = 0; k < pages; k++)
			io[k] = (struct nand_page_io){
				(uint64_t)block * pages + k,
				bench->buffer + (size_t)k * bench->geometry->page_bytes, NULL
			};
		if (write)
			result = nand_erase(bench->nand, NAND_CAUSE_USER, block);
		if (result == 0)
			result = write ? nand_program(bench->nand, NAND_CAUSE_USER, io, pages)
				       : nand_read(bench->nand, NAND_CAUSE_USER, io, pages);
	}
	*seconds += processor_seconds() - begin;
	return result;
}

/* The whole device once, copies and flash in turns of a few milliseconds. */
static int move_all(const struct mmap_bench *bench, bool write, double *copied, double *moved)
{
	int result = 0;

	*copied = *moved = 0;
	for (uint32_t block = 0; block < bench->geometry->blocks && result == 0;
	     block += SLICE_BLOCKS) {
		struct slice slice = { block, (uint32_t)min_u64(SLICE_BLOCKS,
								bench->geometry->blocks - block) };

		*copied += copy_slice(bench, slice, write);
		result = move_slice(bench, slice, write, moved);
	}
	return result;
}

/* Program and read, in turns with copies there and back. Rates are of bytes moved, in MB/s. */
static int measure(const struct mmap_bench *bench, uint32_t runs, struct bench_pair pairs[3],
		   struct error_text *error)
{
	for (int i = 0; i < 3; i++)
		pairs[i].runs = runs;
	for (uint32_t run = 0; run < runs; run++) {
		double copied[2], moved[2];

		for (int read = 0; read < 2; read++) {
			int result = move_all(bench, !read, &copied[read], &moved[read]);

			if (result < 0)
				return error_set(error, result,
						 "the device in memory failed a %s: %s",
						 read ? "read" : "program", strerror(-result));
			pairs[read].reference[run] = (double)bench->bytes / copied[read] / 1e6;
			pairs[read].measured[run] = (double)bench->bytes / moved[read] / 1e6;
		}
		pairs[2].reference[run] = 2 * (double)bench->bytes / (copied[0] + copied[1]) / 1e6;
		pairs[2].measured[run] = 2 * (double)bench->bytes / (moved[0] + moved[1]) / 1e6;
	}
	return 0;
}

static void bench_close(struct mmap_bench *bench)
{
	if (bench->nand)
		nand_abandon(bench->nand);
	if (bench->copy)
		munmap(bench->copy, bench->bytes);
	free(bench->buffer);
}

static int bench_open(struct mmap_bench *bench, uint64_t bytes, uint64_t seed,
		      struct error_text *error)
{
	struct nand_geometry geometry = nand_geometry_default(bytes);
	struct random_state random = random_stream(seed, 0);
	uint64_t block_bytes = (uint64_t)geometry.page_bytes * geometry.pages_per_block;
	double copied, moved;
	int result = nand_open_memory(&geometry, 0, &bench->nand, error);

	if (result < 0)
		return result;
	bench->geometry = nand_geometry(bench->nand);
	bench->bytes = block_bytes * geometry.blocks;
	bench->copy = map(bench->bytes);
	bench->buffer = aligned_alloc(4096, block_bytes);
	if (!bench->copy || !bench->buffer)
		return error_set(error, -ENOMEM, "no memory for %llu bytes",
				 (unsigned long long)bench->bytes);
	for (uint64_t i = 0; i < block_bytes; i += 8)
		memcpy(bench->buffer + i, &(uint64_t){ random_next(&random) }, 8);
	if (move_all(bench, true, &copied, &moved) < 0)
		return error_set(error, -EIO, "the device in memory failed a program");
	return 0;
}

/* The same device without large pages, to tell what they do. */
static int measure_small_pages(const struct nand_bench_options *options, struct bench_pair *pair,
			       struct error_text *error)
{
	struct bench_pair pairs[3] = { 0 };
	struct mmap_bench bench = { 0 };
	int result;

	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		return error_set(error, -errno, "cannot switch large pages off: %s",
				 strerror(errno));
	result = bench_open(&bench, options->mmap_bytes, options->seed, error);
	if (result == 0)
		result = measure(&bench, options->runs, pairs, error);
	bench_close(&bench);
	(void)prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	memcpy(pair->reference, pairs[2].measured, sizeof(pair->reference));
	return result;
}

int nand_bench_mmap(const struct nand_bench_options *options, const struct bench_output *output,
		    struct error_text *error)
{
	struct bench_pair pairs[3] = {
		{ .name = "mmap_program", .reference_name = "memcpy" },
		{ .name = "mmap_read", .reference_name = "memcpy" },
		{ .name = "mmap_program_and_read", .reference_name = "memcpy", .goal = 0.6 },
	};
	struct bench_pair huge = { .name = "mmap_large_pages",
				   .reference_name = "mmap without large pages",
				   .unit = "MB/s",
				   .runs = options->runs };
	struct mmap_bench bench = { 0 };
	double ratio = 0;
	int result = bench_open(&bench, options->mmap_bytes, options->seed, error);

	for (int i = 0; i < 3; i++)
		pairs[i].unit = "MB/s";
	if (result == 0)
		result = measure(&bench, options->runs, pairs, error);
	bench_close(&bench);
	if (result == 0)
		result = measure_small_pages(options, &huge, error);
	if (result < 0)
		return result;
	memcpy(huge.measured, pairs[2].measured, sizeof(huge.measured));
	for (int i = 0; i < 3; i++)
		ratio = bench_pair_report(output, &pairs[i]);
	bench_pair_report(output, &huge);
	return ratio >= pairs[2].goal
		       ? 0
		       : error_set(error, -ERANGE, "mmap: %.3f of memcpy, the goal is %.2f", ratio,
				   pairs[2].goal);
}
