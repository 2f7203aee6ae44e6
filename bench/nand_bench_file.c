/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The file part: one image on a drive, used in turns by the file back end and by fio, the latter on the image's page
 * data alone, with the same block size, depth, direct I/O and registrations. Our side checks and seals every page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/nand_bench.h"
#include "bench/random.h"
#include "common/bytes.h"

enum {
	DEPTH_MAX = 32,
	REAP_MAX =
		4, /* so that the drive has work again before all that is there has been looked at */
	WRITE_DEPTH = 8,
	WRITE_BYTES = 1 << 20,
	WRITE_PAGES_MAX = WRITE_BYTES / 512,
	/* In the superblock: docs/format.md. */
	SUPERBLOCK_DATA_OFFSET_AT = 80,
};

struct file_bench {
	const struct nand_bench_options *options;
	struct nand_geometry geometry;
	struct nand_options nand_options;
	uint64_t data_offset, data_bytes;
	struct random_state random;
};

static int failed(struct error_text *error, int result, const char *what)
{
	return error_set(error, result, "%s: %s", what, strerror(-result));
}

static int open_device(const struct file_bench *bench, struct nand **nand, struct error_text *error)
{
	return nand_open_with(bench->options->path, &bench->nand_options, nand, error);
}

/* ---- sequential writes ---- */

/* Fills the request with the pages from `first` on. Returns how many. */
static size_t next_request(const struct file_bench *bench, struct nand_request *request,
			   struct nand_page_io *pages, uint8_t *data, uint64_t first)
{
	uint64_t left = bench->data_bytes / bench->geometry.page_bytes - first;
	size_t count = min_u64(WRITE_BYTES / bench->geometry.page_bytes, left);

	for (size_t i = 0; i < count; i++)
		pages[i] = (struct nand_page_io){ first + i, data + i * bench->geometry.page_bytes,
						  NULL };
	*request = (struct nand_request){ .kind = NAND_REQUEST_PROGRAM,
					  .cause = NAND_CAUSE_USER,
					  .pages = pages,
					  .count = count };
	return count;
}

/* Erases before each request the blocks that begin in it. */
static int erase_for(struct nand *nand, const struct file_bench *bench, uint64_t first,
		     size_t count)
{
	uint32_t block_pages = bench->geometry.pages_per_block;
	int result = 0;

	for (uint64_t block = divide_up(first, block_pages);
	     block * block_pages < first + count && result == 0; block++)
		result = nand_erase(nand, NAND_CAUSE_USER, (uint32_t)block);
	return result;
}

/* The whole device, in requests of 1 MiB, as many at once as fio has. */
static int program_pages(struct nand *nand, struct nand_queue *queue,
			 const struct file_bench *bench)
{
	static struct nand_request requests[WRITE_DEPTH];
	static struct nand_page_io pages[WRITE_DEPTH][WRITE_PAGES_MAX];
	uint64_t page_count = bench->data_bytes / bench->geometry.page_bytes;
	uint8_t *memory = nand_queue_memory(queue);
	struct nand_request *completed;
	uint64_t turn = 0;
	int result = 0;

	for (uint64_t first = 0; first < page_count && result == 0; turn++) {
		uint32_t slot = turn % WRITE_DEPTH;
		struct nand_request *request = &requests[slot];
		size_t count;

		/* Programs complete in order, so the slot's own is the next. */
		if (turn >= WRITE_DEPTH && nand_reap(queue, &completed, 1, 1) == 1)
			result = completed->result;
		count = next_request(bench, request, pages[slot],
				     memory + (size_t)slot * WRITE_BYTES, first);
		if (result == 0)
			result = erase_for(nand, bench, first, count);
		if (result == 0)
			nand_submit(queue, &request, 1);
		first += count;
	}
	while (nand_reap(queue, &completed, 1, 1) == 1)
		result = result < 0 ? result : completed->result;
	return result;
}

/* Bytes of page data a second: until all are complete, and until they are stable. */
static int measure_program(struct file_bench *bench, double *rate, double *synced_rate,
			   struct error_text *error)
{
	const struct nand_queue_options options = {
		.depth = WRITE_DEPTH,
		.request_pages = (uint32_t)min_u64(WRITE_BYTES / bench->geometry.page_bytes, 1024),
		.memory_bytes = (size_t)WRITE_DEPTH * WRITE_BYTES,
	};
	struct nand_queue *queue = NULL;
	struct nand *nand;
	double begin;
	int result = open_device(bench, &nand, error);

	if (result < 0)
		return result;
	result = nand_queue_open(nand, &options, &queue, error);
	if (result == 0) {
		uint8_t *memory = nand_queue_memory(queue);

		for (size_t i = 0; i < options.memory_bytes; i += 8)
			put_le64(memory + i, random_next(&bench->random));
		begin = nand_bench_seconds();
		result = program_pages(nand, queue, bench);
		*rate = (double)bench->data_bytes / (nand_bench_seconds() - begin);
		if (result == 0)
			result = nand_sync(nand, 0, bench->geometry.blocks);
		*synced_rate = (double)bench->data_bytes / (nand_bench_seconds() - begin);
		if (result < 0)
			failed(error, result, "the file back end failed a program");
	}
	nand_queue_close(queue);
	nand_abandon(nand);
	return result;
}

/* ---- random reads ---- */

struct reader {
	struct nand *nand;
	struct nand_queue *queue;
	uint32_t depth;
	uint64_t pages;
	struct nand_request requests[DEPTH_MAX];
	struct nand_page_io ios[DEPTH_MAX];
};

static void start_read(struct reader *reader, uint32_t slot, struct random_state *random)
{
	struct nand_request *request = &reader->requests[slot];

	reader->ios[slot].page = random_below(random, reader->pages);
	nand_submit(reader->queue, &request, 1);
}

/* `depth` reads under way for so many seconds; operations a second. */
static int read_pages(struct reader *reader, const struct file_bench *bench,
		      struct random_state *random, double *rate)
{
	uint8_t *memory = nand_queue_memory(reader->queue);
	struct nand_request *completed[DEPTH_MAX];
	double begin = nand_bench_seconds(), now = begin;
	uint64_t operations = 0;
	int result = 0;

	for (uint32_t slot = 0; slot < reader->depth; slot++) {
		reader->ios[slot].data = memory + (size_t)slot * bench->geometry.page_bytes;
		reader->requests[slot] = (struct nand_request){ .kind = NAND_REQUEST_READ,
								.cause = NAND_CAUSE_USER,
								.pages = &reader->ios[slot],
								.count = 1 };
		start_read(reader, slot, random);
	}
	do {
		size_t count = nand_reap(reader->queue, completed, REAP_MAX, 1);
		size_t submitted = 0;

		for (size_t i = 0; i < count; i++) {
			result = result < 0 ? result : completed[i]->result;
			reader->ios[completed[i] - reader->requests].page =
				random_below(random, reader->pages);
		}
		operations += count;
		now = nand_bench_seconds();
		while (submitted < count)
			submitted += nand_submit(reader->queue, completed + submitted,
						 count - submitted);
	} while (result == 0 && now - begin < bench->options->seconds);
	*rate = (double)operations / (now - begin);
	return result;
}

/* Depth 1 without a queue: nand_read, as the engine does. */
static int read_by_calls(struct nand *nand, const struct file_bench *bench,
			 struct random_state *random, double *rate)
{
	uint8_t *data = aligned_alloc(4096, align_up(bench->geometry.page_bytes, 4096));
	uint64_t pages = bench->data_bytes / bench->geometry.page_bytes, operations = 0;
	double begin = nand_bench_seconds(), now = begin;
	struct nand_page_io io = { .data = data };
	int result = data ? 0 : -ENOMEM;

	while (result == 0 && (operations == 0 || now - begin < bench->options->seconds)) {
		io.page = random_below(random, pages);
		result = nand_read(nand, NAND_CAUSE_USER, &io, 1);
		now = nand_bench_seconds();
		operations++;
	}
	*rate = (double)operations / (now - begin);
	free(data);
	return result;
}

/* `depth` 0: by nand_read. */
static int measure_read(struct file_bench *bench, uint32_t depth, double *rate,
			struct error_text *error)
{
	const struct nand_queue_options options = {
		.depth = depth,
		.request_pages = 1,
		.memory_bytes = (size_t)depth * bench->geometry.page_bytes,
	};
	struct reader reader = { .depth = depth,
				 .pages = bench->data_bytes / bench->geometry.page_bytes };
	int result = open_device(bench, &reader.nand, error);

	if (result < 0)
		return result;
	if (depth == 0) {
		result = read_by_calls(reader.nand, bench, &bench->random, rate);
	} else {
		result = nand_queue_open(reader.nand, &options, &reader.queue, error);
		if (result == 0)
			result = read_pages(&reader, bench, &bench->random, rate);
		nand_queue_close(reader.queue);
	}
	nand_abandon(reader.nand);
	return result < 0 ? failed(error, result, "the file back end failed a read") : 0;
}

/* ---- in turns with fio ---- */

static struct nand_bench_fio fio_of(const struct file_bench *bench, bool write, uint32_t depth)
{
	return (struct nand_bench_fio){
		.path = bench->options->path,
		.offset = bench->data_offset,
		.bytes = bench->data_bytes,
		.write = write,
		.block_bytes = write ? WRITE_BYTES : bench->geometry.page_bytes,
		.depth = depth,
		.seconds = bench->options->seconds,
	};
}

static int compare_writes(struct file_bench *bench, const struct nand_bench_output *output,
			  struct error_text *error)
{
	struct nand_bench_fio fio = fio_of(bench, true, WRITE_DEPTH);
	struct nand_bench_pair pair = { .name = "file_program_1MiB",
					.reference_name = "fio write 1 MiB",
					.unit = "MB/s",
					.goal = 0.9,
					.runs = bench->options->runs };
	struct nand_bench_pair synced = pair;
	double operations, rate, synced_rate;

	synced.name = "file_program_1MiB_and_sync";
	synced.goal = 0;
	for (uint32_t run = 0; run < pair.runs; run++) {
		int result = nand_bench_run_fio(&fio, &operations, &pair.reference[run], error);

		if (result == 0)
			result = measure_program(bench, &rate, &synced_rate, error);
		if (result < 0)
			return result;
		pair.reference[run] /= 1e6;
		synced.reference[run] = pair.reference[run];
		pair.measured[run] = rate / 1e6;
		synced.measured[run] = synced_rate / 1e6;
	}
	rate = nand_bench_report(output, &pair);
	nand_bench_report(output, &synced);
	return rate >= pair.goal ? 0
				 : error_set(error, -ERANGE, "%s: %.3f of fio, the goal is %.2f",
					     pair.name, rate, pair.goal);
}

/* `depth` 0: calls of nand_read, beside fio at depth 1. */
static int compare_reads(struct file_bench *bench, uint32_t depth, const char *name,
			 const struct nand_bench_output *output, struct error_text *error)
{
	struct nand_bench_fio fio = fio_of(bench, false, depth ? depth : 1);
	struct nand_bench_pair pair = { .name = name,
					.reference_name = depth == DEPTH_MAX
								  ? "fio randread depth 32"
								  : "fio randread depth 1",
					.unit = "IOPS",
					.goal = 0.9,
					.runs = bench->options->runs };
	double bytes, ratio;

	for (uint32_t run = 0; run < pair.runs; run++) {
		int result = nand_bench_run_fio(&fio, &pair.reference[run], &bytes, error);

		if (result == 0)
			result = measure_read(bench, depth, &pair.measured[run], error);
		if (result < 0)
			return result;
	}
	ratio = nand_bench_report(output, &pair);
	return ratio >= pair.goal ? 0
				  : error_set(error, -ERANGE, "%s: %.3f of fio, the goal is %.2f",
					      pair.name, ratio, pair.goal);
}

/* ---- the image ---- */

static int find_data(struct file_bench *bench, struct error_text *error)
{
	uint8_t bytes[8];
	int fd = open(bench->options->path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes), SUPERBLOCK_DATA_OFFSET_AT);

	if (fd >= 0)
		close(fd);
	if (got != sizeof(bytes))
		return failed(error, -EIO, "cannot read the image that was just made");
	bench->data_offset = get_le64(bytes);
	bench->data_bytes = (uint64_t)bench->geometry.blocks * bench->geometry.pages_per_block *
			    bench->geometry.page_bytes;
	return 0;
}

static void remove_image(const char *path)
{
	char nvram[4096];

	snprintf(nvram, sizeof(nvram), "%s.nvram", path);
	unlink(nvram);
	unlink(path);
}

/* The first program of a fresh image: the host's file system has to find room and to note that it is written. */
static int measure_fresh(struct file_bench *bench, const struct nand_bench_output *output,
			 struct error_text *error)
{
	double rate, synced_rate;
	int result = measure_program(bench, &rate, &synced_rate, error);

	if (result < 0)
		return result;
	fprintf(output->text, "%-34s %11.1f MB/s    and %.1f MB/s with the sync\n",
		"file_program_fresh_image", rate / 1e6, synced_rate / 1e6);
	fprintf(output->json,
		"{\"bench\": \"file_program_fresh_image\", \"unit\": \"MB/s\", \"measured\": %.1f, "
		"\"synced\": %.1f}\n",
		rate / 1e6, synced_rate / 1e6);
	return 0;
}

static int compare_all(struct file_bench *bench, const struct nand_bench_output *output,
		       struct error_text *error)
{
	int result = find_data(bench, error), missed = 0;

	if (result == 0)
		result = measure_fresh(bench, output, error);
	if (result < 0)
		return result;
	result = compare_writes(bench, output, error);
	missed = result == -ERANGE ? result : missed;
	if (result == 0 || result == -ERANGE)
		result = compare_reads(bench, 0, "file_read_call", output, error);
	missed = result == -ERANGE ? result : missed;
	if (result == 0 || result == -ERANGE)
		result = compare_reads(bench, 1, "file_read_depth_1", output, error);
	missed = result == -ERANGE ? result : missed;
	if (result == 0 || result == -ERANGE)
		result = compare_reads(bench, DEPTH_MAX, "file_read_depth_32", output, error);
	return result == 0 ? missed : result;
}

int nand_bench_file(const struct nand_bench_options *options,
		    const struct nand_bench_output *output, struct error_text *error)
{
	struct file_bench bench = {
		.options = options,
		.geometry = nand_geometry_default(options->file_bytes),
		.nand_options = { .backend = NAND_BACKEND_FILE, .io = NAND_IO_URING },
		.random = random_stream(options->seed, 1),
	};
	int result = nand_create(options->path, &bench.geometry, 0, error);

	if (result < 0)
		return result;
	result = compare_all(&bench, output, error);
	remove_image(options->path);
	return result;
}
