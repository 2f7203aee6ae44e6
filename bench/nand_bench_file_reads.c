/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Random reads of the file part: calls and queues beside fio, in turns. Also reads whose spare area
 * is not in the host's memory, beside the same reads when it is.
 *
 * The device is opened once, and its spare areas are read before the first turn, because a busy
 * store has used them. Both sides read whole pages anywhere, the same pages of the same file, so
 * many at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/nand_bench_file.h"
#include "common/bytes.h"

enum {
	DEPTH_MAX = 32,
	/* The drive gets new work before much of the old has been looked at. */
	REAP_MAX = 2,
	COLD_READS_MAX = 4096, /* a turn, each at another place of the spare areas */
	HOST_PAGE_BYTES = 4096,
};

/* ---- reading ---- */

/* Which pages: those of a list, or random ones for a while. */
struct page_source {
	const uint64_t *list; /* NULL: random */
	uint64_t count;       /* of the list, or of the device */
	uint64_t given;
	double end; /* after this time no more random ones, but at least one */
	struct random_state *random;
};

/* False: enough. */
static bool next_page(struct page_source *source, uint64_t *page)
{
	if (source->list) {
		if (source->given == source->count)
			return false;
		*page = source->list[source->given];
	} else {
		if (source->given > 0 && bench_seconds() >= source->end)
			return false;
		*page = random_below(source->random, source->count);
	}
	source->given++;
	return true;
}

/* Without a queue: nand_read, as the engine does. */
static int read_by_calls(struct nand *nand, struct page_source *source)
{
	uint32_t page_bytes = nand_geometry(nand)->page_bytes;
	uint8_t *data = aligned_alloc(4096, align_up(page_bytes, 4096));
	struct nand_page_io io = { .data = data };
	int result = data ? 0 : -ENOMEM;

	while (result == 0 && next_page(source, &io.page))
		result = nand_read(nand, NAND_CAUSE_USER, &io, 1);
	free(data);
	return result;
}

/* Keeps as many under way as the queue holds, `depth`. */
static int read_by_queue(struct nand *nand, struct nand_queue *queue, uint32_t depth,
			 struct page_source *source)
{
	struct nand_request requests[DEPTH_MAX], *next[DEPTH_MAX];
	struct nand_page_io ios[DEPTH_MAX];
	uint8_t *memory = nand_queue_memory(queue);
	size_t held = 0, count;
	int result = 0;

	for (uint32_t slot = 0; slot < depth && next_page(source, &ios[slot].page); slot++) {
		ios[slot].data = memory + (size_t)slot * nand_geometry(nand)->page_bytes;
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
	return result;
}

/* Reads a second. `depth` 0: by nand_read. */
static int measure(struct nand *nand, uint32_t depth, struct page_source *source, double *rate,
		   struct error_text *error)
{
	const struct nand_queue_options options = {
		.depth = depth,
		.request_pages = 1,
		.memory_bytes = (size_t)depth * nand_geometry(nand)->page_bytes,
	};
	struct nand_queue *queue = NULL;
	int result = depth ? nand_queue_open(nand, &options, &queue, error) : 0;
	double begin;

	if (result < 0)
		return result;
	begin = bench_seconds();
	source->end += begin;
	result = depth ? read_by_queue(nand, queue, depth, source) : read_by_calls(nand, source);
	*rate = (double)source->given / (bench_seconds() - begin);
	nand_queue_close(queue);
	return result < 0 ? nand_bench_file_failed(error, result, "the file back end failed a read")
			  : 0;
}

/* ---- in turns with fio ---- */

static uint64_t pages_of(const struct nand_bench_file *bench)
{
	return bench->data_bytes / bench->geometry.page_bytes;
}

static int measure_random(struct nand_bench_file *bench, struct nand *nand, uint32_t depth,
			  double *rate, struct error_text *error)
{
	struct page_source source = { .count = pages_of(bench),
				      .end = bench->options->seconds,
				      .random = &bench->random };

	return measure(nand, depth, &source, rate, error);
}

/* `depth` 0: calls of nand_read, beside fio at depth 1. */
static int compare_reads(struct nand_bench_file *bench, struct nand *nand, uint32_t depth,
			 const char *name, const struct bench_output *output,
			 struct error_text *error)
{
	struct bench_fio fio =
		nand_bench_file_fio(bench, false, bench->geometry.page_bytes, depth ? depth : 1);
	struct bench_pair pair = { .name = name,
				   .reference_name = depth == DEPTH_MAX ? "fio randread depth 32"
									: "fio randread depth 1",
				   .unit = "IOPS",
				   .goal = NAND_BENCH_FILE_GOAL,
				   .runs = bench->options->runs };
	double bytes;
	int result = 0;

	for (uint32_t run = 0; run < pair.runs; run++) {
		/*
		 * The sides take turns to be first, so that neither profits from what the other
		 * leaves.
		 */
		for (uint32_t side = 0; side < 2 && result == 0; side++)
			result = (run + side) % 2 == 0
					 ? bench_run_fio(&fio, &pair.reference[run], &bytes, error)
					 : measure_random(bench, nand, depth, &pair.measured[run],
							  error);
		if (result < 0)
			return result;
	}
	return nand_bench_file_report(output, &pair, error);
}

/* Looks at the spare areas of all pages. */
static int look_at_spares(struct nand_bench_file *bench, struct nand *nand,
			  struct error_text *error)
{
	int result = 0;

	for (uint64_t page = 0; page < pages_of(bench) && result == 0; page++) {
		struct nand_page_io io = { .page = page };

		result = nand_read(nand, NAND_CAUSE_USER, &io, 1);
	}
	return result < 0 ? nand_bench_file_failed(error, result, "the file back end failed a read")
			  : 0;
}

static int compare_with_fio(struct nand_bench_file *bench, const struct bench_output *output,
			    struct error_text *error)
{
	static const struct {
		uint32_t depth;
		const char *name;
	} kinds[] = { { 0, "file_read_call" },
		      { 1, "file_read_depth_1" },
		      { DEPTH_MAX, "file_read_depth_32" } };
	struct nand *nand;
	int missed = 0;
	int result = nand_open_with(bench->options->path, &bench->nand_options, &nand, error);

	if (result < 0)
		return result;
	result = look_at_spares(bench, nand, error);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && result == 0; i++) {
		result = compare_reads(bench, nand, kinds[i].depth, kinds[i].name, output, error);
		if (result == -ERANGE) {
			missed = result;
			result = 0;
		}
	}
	nand_abandon(nand);
	return result < 0 ? result : missed;
}

/* ---- spare areas that the host has not in memory ---- */

/*
 * Makes the host forget the spare areas, which no device may have open. Returns how many bytes of
 * them it kept nevertheless.
 */
static int forget_spares(const struct nand_bench_file *bench, uint64_t *kept)
{
	uint64_t bytes = pages_of(bench) * bench->geometry.spare_bytes;
	int fd = open(bench->options->path, O_RDONLY | O_CLOEXEC);
	unsigned char *resident = malloc(divide_up(bytes, HOST_PAGE_BYTES));
	void *at = MAP_FAILED;
	int result = resident ? 0 : -ENOMEM;

	*kept = 0;
	if (fd < 0 || (result == 0 && fdatasync(fd) < 0))
		result = -errno;
	if (result == 0)
		result = -posix_fadvise(fd, (off_t)bench->spare_offset, (off_t)bytes,
					POSIX_FADV_DONTNEED);
	if (result == 0)
		at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)bench->spare_offset);
	if (result == 0 && (at == MAP_FAILED || mincore(at, bytes, resident) < 0))
		result = -errno;
	for (uint64_t i = 0; result == 0 && i < bytes / HOST_PAGE_BYTES; i++)
		*kept += resident[i] & 1 ? HOST_PAGE_BYTES : 0;
	if (at != MAP_FAILED)
		munmap(at, bytes);
	if (fd >= 0)
		close(fd);
	free(resident);
	return result;
}

/* One page of each of `count` host pages of spare areas, which are all different. */
static void choose_pages(struct nand_bench_file *bench, uint64_t *list, uint64_t count)
{
	uint64_t neighbours = max_u64(HOST_PAGE_BYTES / bench->geometry.spare_bytes, 1);
	uint64_t places = pages_of(bench) / neighbours, left = count;

	/* Takes each place with the chance that makes the number right. They ascend, so shuffle. */
	for (uint64_t place = 0; place < places && left > 0; place++)
		if (random_below(&bench->random, places - place) < left)
			list[count - left--] =
				place * neighbours + random_below(&bench->random, neighbours);
	for (uint64_t i = count; i > 1; i--) {
		uint64_t other = random_below(&bench->random, i), page = list[i - 1];

		list[i - 1] = list[other];
		list[other] = page;
	}
}

/* Reads the same pages twice on a device that was just opened. */
static int measure_cold(struct nand_bench_file *bench, uint32_t depth, double *cold, double *warm,
			struct error_text *error)
{
	static uint64_t list[COLD_READS_MAX];
	uint64_t places = pages_of(bench) * bench->geometry.spare_bytes / HOST_PAGE_BYTES;
	struct page_source first = { .list = list, .count = min_u64(COLD_READS_MAX, places / 2) };
	struct page_source again = first;
	struct nand *nand;
	uint64_t kept;
	int result = forget_spares(bench, &kept);

	if (result < 0)
		return nand_bench_file_failed(error, result, "cannot drop the spare areas");
	if (kept > places * HOST_PAGE_BYTES / 100)
		return error_set(error, -EBUSY,
				 "the host keeps %llu bytes of spare areas in memory: is the file "
				 "on a memory file system?",
				 (unsigned long long)kept);
	choose_pages(bench, list, first.count);
	result = nand_open_with(bench->options->path, &bench->nand_options, &nand, error);
	if (result < 0)
		return result;
	result = measure(nand, depth, &first, cold, error);
	if (result == 0)
		result = measure(nand, depth, &again, warm, error);
	nand_abandon(nand);
	return result;
}

static int compare_cold(struct nand_bench_file *bench, uint32_t depth, const char *name,
			const struct bench_output *output, struct error_text *error)
{
	struct bench_pair pair = { .name = name,
				   .reference_name = "with it in memory",
				   .unit = "IOPS",
				   .runs = bench->options->runs };

	for (uint32_t run = 0; run < pair.runs; run++) {
		struct error_text why;
		int result =
			measure_cold(bench, depth, &pair.measured[run], &pair.reference[run], &why);

		/* Nothing can be measured there. It is no error of the device. */
		if (result == -EBUSY) {
			fprintf(output->text, "%-34s not measured: %s\n", name, why.text);
			return 0;
		}
		if (result < 0)
			return error_set(error, result, "%s", why.text);
	}
	return nand_bench_file_report(output, &pair, error);
}

int nand_bench_file_reads(struct nand_bench_file *bench, const struct bench_output *output,
			  struct error_text *error)
{
	int result = compare_with_fio(bench, output, error), missed = result;

	if (result == 0 || result == -ERANGE)
		result = compare_cold(bench, 0, "file_read_call_cold_spare", output, error);
	if (result == 0)
		result = compare_cold(bench, DEPTH_MAX, "file_read_depth_32_cold_spare", output,
				      error);
	return result < 0 ? result : missed;
}
