/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Random reads of the file part: calls and queues beside fio, in turns, and how many reads of the
 * drive a page costs. Nothing of what is read is in the host's memory: it goes past it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "bench/nand_bench_file.h"
#include "common/bytes.h"

enum {
	DEPTH_MAX = 32,
	/* The drive gets new work before much of the old has been looked at. */
	REAP_MAX = 2,
	COUNTED_READS = 4096, /* a turn, when the drive's reads are counted */
	RUN_BYTES = 1 << 20,
	RUN_PAGES_MAX = RUN_BYTES / 512,
};

/* ---- reading ---- */

/* Which pages: random ones, for a while or so many. */
struct page_source {
	uint64_t count; /* pages to choose from */
	uint64_t given;
	uint64_t wanted; /* 0: for a while */
	double end;      /* no more after this time, but at least one */
	struct random_state *random;
};

/* False: enough. */
static bool next_page(struct page_source *source, uint64_t *page)
{
	if (source->wanted ? source->given == source->wanted
			   : source->given > 0 && bench_seconds() >= source->end)
		return false;
	*page = random_below(source->random, source->count);
	source->given++;
	return true;
}

/* Without a queue: nand_read, as the engine does, of `count` pages that follow one another. */
static int read_by_calls(struct nand *nand, uint32_t count, struct page_source *source)
{
	uint32_t page_bytes = nand_geometry(nand)->page_bytes;
	uint8_t *data = malloc((size_t)count * page_bytes);
	struct nand_page_io ios[RUN_PAGES_MAX];
	int result = data ? 0 : -ENOMEM;
	uint64_t run;

	while (result == 0 && next_page(source, &run)) {
		for (uint32_t i = 0; i < count; i++)
			ios[i] = (struct nand_page_io){ .page = run * count + i,
							.data = data + (size_t)i * page_bytes };
		result = nand_read(nand, NAND_CAUSE_USER, ios, count);
	}
	free(data);
	return result;
}

/* Keeps as many under way as the queue holds, `depth`. */
static int read_by_queue(struct nand *nand, struct nand_queue *queue, uint32_t depth,
			 struct page_source *source)
{
	struct nand_request requests[DEPTH_MAX], *next[DEPTH_MAX];
	struct nand_page_io ios[DEPTH_MAX];
	uint32_t page_bytes = nand_geometry(nand)->page_bytes;
	uint8_t *memory = malloc((size_t)depth * page_bytes);
	size_t held = 0, count;
	int result = 0;

	if (!memory)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < depth && next_page(source, &ios[slot].page); slot++) {
		ios[slot].data = memory + (size_t)slot * page_bytes;
		ios[slot].spare = NULL;
		requests[slot] = (struct nand_request){ .kind = NAND_REQUEST_READ,
							.cause = NAND_CAUSE_USER,
							.pages = &ios[slot],
							.count = 1 };
		next[0] = &requests[slot];
		held += nand_submit(queue, next, 1);
	}
	while (held > 0) {
		size_t again = 0;

		count = nand_reap(queue, next, REAP_MAX, 1);
		held -= count;
		for (size_t i = 0; i < count; i++) {
			result = result < 0 ? result : next[i]->result;
			if (result == 0 && next_page(source, &ios[next[i] - requests].page))
				next[again++] = next[i];
		}
		held += nand_submit(queue, next, again);
	}
	free(memory);
	return result;
}

/* A kind of reads: through a queue of this depth, or, if it is 0, calls of so many bytes. */
struct read_kind {
	const char *name, *reference_name;
	double goal;
	uint32_t depth, call_bytes;
};

static uint32_t call_pages(const struct nand_bench_file *bench, const struct read_kind *kind)
{
	return (uint32_t)max_u64(kind->call_bytes / bench->geometry.page_bytes, 1);
}

/* Reads a second. */
static int measure(struct nand_bench_file *bench, struct nand *nand, const struct read_kind *kind,
		   struct page_source *source, double *rate, struct error_text *error)
{
	const struct nand_queue_options options = { .depth = kind->depth, .request_pages = 1 };
	struct nand_queue *queue = NULL;
	int result = kind->depth ? nand_queue_open(nand, &options, &queue, error) : 0;
	double begin;

	if (result < 0)
		return result;
	source->count = bench->data_bytes / bench->geometry.page_bytes / call_pages(bench, kind);
	source->random = &bench->random;
	begin = bench_seconds();
	source->end = begin + bench->options->seconds;
	result = kind->depth ? read_by_queue(nand, queue, kind->depth, source)
			     : read_by_calls(nand, call_pages(bench, kind), source);
	*rate = (double)source->given / (bench_seconds() - begin);
	nand_queue_close(queue);
	return result < 0 ? nand_bench_file_failed(error, result, "the file back end failed a read")
			  : 0;
}

/* ---- in turns with fio ---- */

static int compare_reads(struct nand_bench_file *bench, struct nand *nand,
			 const struct read_kind *kind, const struct bench_output *output,
			 struct error_text *error)
{
	struct bench_fio fio = nand_bench_file_fio(
		bench, false, call_pages(bench, kind) * bench->geometry.page_bytes,
		kind->depth ? kind->depth : 1);
	struct bench_pair pair = { .name = kind->name,
				   .reference_name = kind->reference_name,
				   .unit = "IOPS",
				   .goal = kind->goal,
				   .runs = bench->options->runs };
	double bytes;
	int result = 0;

	for (uint32_t run = 0; run < pair.runs; run++) {
		/*
		 * The sides take turns to be first, so that neither profits from what the other
		 * leaves.
		 */
		for (uint32_t side = 0; side < 2 && result == 0; side++) {
			struct page_source source = { 0 };

			result = (run + side) % 2 == 0
					 ? bench_run_fio(&fio, &pair.reference[run], &bytes, error)
					 : measure(bench, nand, kind, &source, &pair.measured[run],
						   error);
		}
		if (result < 0)
			return result;
	}
	return nand_bench_file_report(output, &pair, error);
}

/* ---- reads of the drive ---- */

/* Reads that the drive below a file has completed. False: the host does not tell. */
static bool drive_reads(const char *path, uint64_t *reads)
{
	struct stat status;
	char name[64];
	FILE *file;
	bool known;

	if (stat(path, &status) < 0)
		return false;
	snprintf(name, sizeof(name), "/sys/dev/block/%u:%u/stat", major(status.st_dev),
		 minor(status.st_dev));
	file = fopen(name, "r");
	known = file && fscanf(file, "%" SCNu64, reads) == 1;
	if (file)
		fclose(file);
	return known;
}

/* The least of all turns, as other programs read from the drive, too. */
static int count_drive_reads(struct nand_bench_file *bench, struct nand *nand,
			     const struct bench_output *output, struct error_text *error)
{
	static const struct read_kind kind = { .depth = DEPTH_MAX };
	static const char name[] = "file_drive_reads_a_page";
	uint64_t before, after;
	double least = 0, rate;

	for (uint32_t run = 0; run < bench->options->runs; run++) {
		struct page_source source = { .wanted = COUNTED_READS };
		double reads;
		int result;

		if (!drive_reads(bench->options->path, &before)) {
			fprintf(output->text, "%-34s not measured: no counters of the drive\n",
				name);
			return 0;
		}
		result = measure(bench, nand, &kind, &source, &rate, error);
		if (result < 0 || !drive_reads(bench->options->path, &after))
			return result;
		reads = (double)(after - before) / COUNTED_READS;
		least = run == 0 || reads < least ? reads : least;
	}
	fprintf(output->text, "%-34s %11.3f requests, at most %.2f\n", name, least,
		NAND_BENCH_DRIVE_READS_MOST);
	fprintf(output->json,
		"{\"bench\": \"%s\", \"unit\": \"requests\", \"measured\": %.3f, "
		"\"most\": %.2f}\n",
		name, least, NAND_BENCH_DRIVE_READS_MOST);
	return least <= NAND_BENCH_DRIVE_READS_MOST
		       ? 0
		       : error_set(error, -ERANGE, "%s: %.3f, at most %.2f", name, least,
				   NAND_BENCH_DRIVE_READS_MOST);
}

int nand_bench_file_reads(struct nand_bench_file *bench, const struct bench_output *output,
			  struct error_text *error)
{
	static const struct read_kind kinds[] = {
		{ "file_read_call", "fio randread depth 1", NAND_BENCH_FILE_GOAL, 0, 0 },
		{ "file_read_depth_1", "fio randread depth 1", NAND_BENCH_FILE_GOAL, 1, 0 },
		{ "file_read_depth_32", "fio randread depth 32", NAND_BENCH_READ_GOAL, DEPTH_MAX,
		  0 },
		{ "file_read_1MiB", "fio randread 1 MiB", NAND_BENCH_READ_GOAL, 0, RUN_BYTES },
	};
	struct nand *nand;
	int missed = 0;
	int result = nand_open_with(bench->options->path, &bench->nand_options, &nand, error);

	if (result < 0)
		return result;
	for (size_t i = 0; i <= sizeof(kinds) / sizeof(kinds[0]) && result == 0; i++) {
		result = i < sizeof(kinds) / sizeof(kinds[0])
				 ? compare_reads(bench, nand, &kinds[i], output, error)
				 : count_drive_reads(bench, nand, output, error);
		missed = result == -ERANGE ? result : missed;
		result = result == -ERANGE ? 0 : result;
	}
	nand_abandon(nand);
	return result < 0 ? result : missed;
}
