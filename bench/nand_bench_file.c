/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The file part: one image on a drive. The file back end and fio use it in turns; fio moves blocks
 * of the size of page data, where the image has its pages, with the same depth, direct I/O and
 * registrations. Our side moves spare areas, too, and checks and seals every page. Sequential
 * writes are here, reads in nand_bench_file_reads.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/nand_bench_file.h"
#include "common/bytes.h"

enum {
	WRITE_DEPTH = 8,
	WRITE_BYTES = 1 << 20,
	WRITE_PAGES_MAX = WRITE_BYTES / 512,
	/* In the superblock: docs/format.md. */
	SUPERBLOCK_DATA_OFFSET_AT = 80,
	SUPERBLOCK_BLOCK_STRIDE_AT = 92,
};

int nand_bench_file_failed(struct error_text *error, int result, const char *what)
{
	return error_set(error, result, "%s: %s", what, strerror(-result));
}

/* ---- sequential writes ---- */

/* Fills the request with the pages from `first` on. Returns how many. */
static size_t next_request(const struct nand_bench_file *bench, struct nand_request *request,
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

/* Before each request, erases the blocks that begin in it. */
static int erase_for(struct nand *nand, const struct nand_bench_file *bench, uint64_t first,
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
static int program_pages(struct nand *nand, struct nand_queue *queue, uint8_t *memory,
			 const struct nand_bench_file *bench)
{
	static struct nand_request requests[WRITE_DEPTH];
	static struct nand_page_io pages[WRITE_DEPTH][WRITE_PAGES_MAX];
	uint64_t page_count = bench->data_bytes / bench->geometry.page_bytes;
	struct nand_request *completed;
	uint64_t turn = 0;
	int result = 0;

	for (uint64_t first = 0; first < page_count && result == 0; turn++) {
		uint32_t slot = turn % WRITE_DEPTH;
		struct nand_request *request = &requests[slot];
		size_t count;

		/* Programs complete in order, so this slot's own is the next. */
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
static int measure_program(struct nand_bench_file *bench, struct nand *nand, double *rate,
			   double *synced_rate, struct error_text *error)
{
	const struct nand_queue_options options = {
		.depth = WRITE_DEPTH,
		.request_pages = (uint32_t)min_u64(WRITE_BYTES / bench->geometry.page_bytes, 1024),
	};
	const size_t bytes = (size_t)WRITE_DEPTH * WRITE_BYTES;
	struct nand_queue *queue = NULL;
	uint8_t *memory = malloc(bytes);
	double begin;
	int result;

	if (!memory)
		return nand_bench_file_failed(error, -ENOMEM, "cannot measure programs");
	result = nand_queue_open(nand, &options, &queue, error);
	if (result < 0) {
		free(memory);
		return result;
	}
	for (size_t i = 0; i < bytes; i += 8)
		put_le64(memory + i, random_next(&bench->random));
	begin = bench_seconds();
	result = program_pages(nand, queue, memory, bench);
	*rate = (double)bench->data_bytes / (bench_seconds() - begin);
	if (result == 0)
		result = nand_sync(nand, 0, bench->geometry.blocks);
	*synced_rate = (double)bench->data_bytes / (bench_seconds() - begin);
	nand_queue_close(queue);
	free(memory);
	return result < 0
		       ? nand_bench_file_failed(error, result, "the file back end failed a program")
		       : 0;
}

/* ---- in turns with fio ---- */

struct bench_fio nand_bench_file_fio(const struct nand_bench_file *bench, bool write,
				     uint32_t block_bytes, uint32_t depth)
{
	return (struct bench_fio){
		.path = bench->options->path,
		.offset = bench->data_offset,
		.bytes = bench->stored_bytes,
		.write = write,
		.block_bytes = block_bytes,
		.depth = depth,
		.seconds = bench->options->seconds,
	};
}

int nand_bench_file_report(const struct bench_output *output, const struct bench_pair *pair,
			   struct error_text *error)
{
	double ratio = bench_pair_report(output, pair);

	return ratio >= pair->goal ? 0
				   : error_set(error, -ERANGE, "%s: %.3f of fio, the goal is %.2f",
					       pair->name, ratio, pair->goal);
}

static int compare_writes(struct nand_bench_file *bench, struct nand *nand,
			  const struct bench_output *output, struct error_text *error)
{
	struct bench_fio fio = nand_bench_file_fio(bench, true, WRITE_BYTES, WRITE_DEPTH);
	struct bench_pair pair = { .name = "file_program_1MiB",
				   .reference_name = "fio write 1 MiB",
				   .unit = "MB/s",
				   .goal = NAND_BENCH_FILE_GOAL,
				   .runs = bench->options->runs };
	struct bench_pair synced = pair;
	double operations, rate = 0, synced_rate = 0;
	int result = 0;

	synced.name = "file_program_1MiB_and_sync";
	synced.goal = 0;
	for (uint32_t run = 0; run < pair.runs; run++) {
		/*
		 * The sides take turns to be first, so that neither profits from what the other
		 * leaves.
		 */
		for (uint32_t side = 0; side < 2 && result == 0; side++)
			result = (run + side) % 2 == 0
					 ? bench_run_fio(&fio, &operations, &pair.reference[run],
							 error)
					 : measure_program(bench, nand, &rate, &synced_rate, error);
		if (result < 0)
			return result;
		pair.reference[run] /= 1e6;
		synced.reference[run] = pair.reference[run];
		pair.measured[run] = rate / 1e6;
		synced.measured[run] = synced_rate / 1e6;
	}
	bench_pair_report(output, &synced);
	return nand_bench_file_report(output, &pair, error);
}

/* ---- the image ---- */

static int find_data(struct nand_bench_file *bench, struct error_text *error)
{
	uint8_t bytes[SUPERBLOCK_BLOCK_STRIDE_AT + 4];
	int fd = open(bench->options->path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes), 0);

	if (fd >= 0)
		close(fd);
	if (got != sizeof(bytes))
		return nand_bench_file_failed(error, -EIO,
					      "cannot read the image that was just made");
	bench->data_offset = get_le64(bytes + SUPERBLOCK_DATA_OFFSET_AT);
	bench->stored_bytes =
		(uint64_t)bench->geometry.blocks * get_le32(bytes + SUPERBLOCK_BLOCK_STRIDE_AT);
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

/*
 * The first program of a fresh image: the host's file system has to find space, and to note that it
 * was written.
 */
static int measure_fresh(struct nand_bench_file *bench, struct nand *nand,
			 const struct bench_output *output, struct error_text *error)
{
	double rate = 0, synced_rate = 0;
	int result = measure_program(bench, nand, &rate, &synced_rate, error);

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

/* Leaves the image as the back end has programmed it last, because nothing of fio's may be read. */
static int program_all(struct nand_bench_file *bench, const struct bench_output *output,
		       struct error_text *error)
{
	double rate, synced_rate;
	struct nand *nand;
	int missed,
		result = nand_open_with(bench->options->path, &bench->nand_options, &nand, error);

	if (result < 0)
		return result;
	result = measure_fresh(bench, nand, output, error);
	missed = result = result < 0 ? result : compare_writes(bench, nand, output, error);
	if (result == 0 || result == -ERANGE)
		result = measure_program(bench, nand, &rate, &synced_rate, error);
	nand_abandon(nand);
	return result < 0 ? result : missed;
}

static int compare_all(struct nand_bench_file *bench, const struct bench_output *output,
		       struct error_text *error)
{
	int result = find_data(bench, error), missed;

	if (result == 0)
		result = program_all(bench, output, error);
	missed = result == -ERANGE ? result : 0;
	if (result == 0 || result == -ERANGE)
		result = nand_bench_file_reads(bench, output, error);
	return result == 0 ? missed : result;
}

int nand_bench_file(const struct nand_bench_options *options, const struct bench_output *output,
		    struct error_text *error)
{
	struct nand_bench_file bench = {
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
