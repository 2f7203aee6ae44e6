/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The headers part: a huge device gets pages as the Muninn engine makes them, of records with
 * random keys. Then every block is looked at, and a sample of the pages is read and compared. The
 * cost is what the host says the process has in memory.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/nand_bench.h"
#include "bench/record_codec.h"
#include "engine/muninn/format.h"

enum { SAMPLE_PAGES = 100000, PAGE_BYTES = 4096 };

struct headers_bench {
	const struct nand_bench_options *options;
	struct nand_geometry geometry;
	struct nand *nand;
	uint32_t page_records;
	uint64_t pages; /* to be filled, from the first block on */
};

static uint64_t resident_bytes(void)
{
	unsigned long long total, resident = 0;
	FILE *from = fopen("/proc/self/statm", "re");

	if (from) {
		if (fscanf(from, "%llu %llu", &total, &resident) != 2)
			resident = 0;
		fclose(from);
	}
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Makes page `number` as the engine would program it, the same each time. Returns its records. */
static uint32_t make_page(const struct headers_bench *bench, uint64_t number, uint8_t *data,
			  uint8_t *spare)
{
	uint64_t first = number * bench->page_records;
	uint32_t count = (uint32_t)min_u64(bench->page_records, bench->options->records - first);
	struct page_spare about = { .kind = PAGE_KIND_RECORDS, .serial = number / 256 + 1 };
	struct random_state random = random_stream(bench->options->seed, number);

	for (uint32_t i = 0; i < count; i++) {
		struct record_header header = {
			.key = { .partition = 1, .identifier = random_next(&random) },
			.epoch = 1,
			.length = (uint16_t)(bench->options->record_bytes - RECORD_HEADER_BYTES),
			/* Rows fill side by side, so the sequence numbers of a page are some way
			   apart. */
			.sequence = first + i * 128 + random_below(&random, 128) + 1,
		};
		uint8_t *value = data + about.used + RECORD_HEADER_BYTES;

		record_value_make(&header.key, header.sequence, value, header.length);
		record_header_encode(&header, about.serial, value, data + about.used);
		about.used += bench->options->record_bytes;
	}
	memset(data + about.used, 0, PAGE_BYTES - about.used);
	memset(spare, 0, nand_spare_usable(&bench->geometry));
	page_spare_encode(&about, spare);
	return count;
}

static int fill(struct headers_bench *bench)
{
	uint8_t data[PAGE_BYTES], spare[4096];
	struct nand_page_io io = { 0, data, spare };
	int result = 0;

	for (uint64_t page = 0; page < bench->pages && result == 0; page++) {
		make_page(bench, page, data, spare);
		io.page = page;
		result = nand_program(bench->nand, NAND_CAUSE_USER, &io, 1);
	}
	return result;
}

/* Every block's state; counts the pages that are programmed. */
static int look_at_blocks(const struct headers_bench *bench, uint64_t *programmed)
{
	*programmed = 0;
	for (uint32_t block = 0; block < bench->geometry.blocks; block++) {
		struct nand_block_info info;
		int result = nand_block_info(bench->nand, block, &info);

		if (result < 0)
			return result;
		*programmed += info.next_page;
	}
	return 0;
}

/* -EILSEQ: a page is not what was programmed. */
static int read_sample(const struct headers_bench *bench, uint64_t *sampled)
{
	uint8_t data[PAGE_BYTES], spare[4096], expected[PAGE_BYTES], expected_spare[4096];
	struct random_state random = random_stream(bench->options->seed ^ 1, 0);
	uint64_t count = min_u64(bench->pages, SAMPLE_PAGES);
	struct nand_page_io io = { 0, data, spare };

	for (*sampled = 0; *sampled < count; ++*sampled) {
		int result;

		io.page = random_below(&random, bench->pages);
		result = nand_read(bench->nand, NAND_CAUSE_USER, &io, 1);
		if (result < 0)
			return result;
		make_page(bench, io.page, expected, expected_spare);
		if (memcmp(data, expected, PAGE_BYTES) != 0 ||
		    memcmp(spare, expected_spare, nand_spare_usable(&bench->geometry)) != 0)
			return -EILSEQ;
	}
	return 0;
}

struct headers_result {
	double fill_seconds, scan_seconds, read_seconds;
	uint64_t programmed, sampled, resident;
	struct nand_headers_usage usage;
};

static int measure(struct headers_bench *bench, struct headers_result *result)
{
	double begin = bench_seconds();
	int failure = fill(bench);

	result->fill_seconds = bench_seconds() - begin;
	if (failure < 0)
		return failure;
	begin = bench_seconds();
	failure = look_at_blocks(bench, &result->programmed);
	result->scan_seconds = bench_seconds() - begin;
	if (failure == 0 && result->programmed != bench->pages)
		failure = -EILSEQ;
	begin = bench_seconds();
	if (failure == 0)
		failure = read_sample(bench, &result->sampled);
	result->read_seconds = bench_seconds() - begin;
	result->resident = resident_bytes();
	nand_headers_usage(bench->nand, &result->usage);
	return failure;
}

static void report(const struct headers_bench *bench, const struct headers_result *result,
		   const struct bench_output *output)
{
	const struct nand_bench_options *options = bench->options;
	uint64_t pages = bench->pages;
	json_t *object = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:i, s:f, s:f, s:f, s:f}", "bench",
		"headers", "device_bytes", (json_int_t)options->device_bytes, "records",
		(json_int_t)options->records, "pages", (json_int_t)pages, "pages_packed",
		(json_int_t)result->usage.packed_pages, "pages_whole",
		(json_int_t)result->usage.whole_pages, "bytes", (json_int_t)result->usage.bytes,
		"bytes_per_page", (double)result->usage.bytes / (double)pages, "resident_bytes",
		(json_int_t)result->resident, "limit_mib", (int)options->memory_limit_mib,
		"fill_seconds", result->fill_seconds, "pages_per_second",
		(double)pages / result->fill_seconds, "scan_seconds", result->scan_seconds,
		"read_us", result->read_seconds * 1e6 / (double)result->sampled);

	if (object)
		json_dumpf(object, output->json, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
	fputc('\n', output->json);
	json_decref(object);
	fprintf(output->text,
		"headers: %llu GiB device, %llu records of %u bytes in %llu pages (%llu kept "
		"whole)\n"
		"         %.1f bytes a page, %.1f a record; %llu MiB of memory in all, limit %u\n"
		"         filled in %.1f s, all blocks looked at in %.2f s, %llu pages read back "
		"and "
		"compared, %.2f us each\n",
		(unsigned long long)(options->device_bytes >> 30),
		(unsigned long long)options->records, options->record_bytes,
		(unsigned long long)pages, (unsigned long long)result->usage.whole_pages,
		(double)result->usage.bytes / (double)pages,
		(double)result->usage.bytes / (double)options->records,
		(unsigned long long)(result->resident >> 20), options->memory_limit_mib,
		result->fill_seconds, result->scan_seconds, (unsigned long long)result->sampled,
		result->read_seconds * 1e6 / (double)result->sampled);
}

int nand_bench_headers(const struct nand_bench_options *options, const struct bench_output *output,
		       struct error_text *error)
{
	static const uint32_t page_bytes = PAGE_BYTES;
	const struct nand_payload_codec codec = record_codec(&page_bytes);
	struct headers_bench bench = {
		.options = options,
		.geometry = nand_geometry_default(options->device_bytes),
		.page_records = PAGE_BYTES / options->record_bytes,
	};
	struct headers_result measured;
	int result;

	assert(bench.page_records > 0 && bench.geometry.page_bytes == PAGE_BYTES);
	bench.pages = divide_up(options->records, bench.page_records);
	if (bench.pages > (uint64_t)bench.geometry.blocks * bench.geometry.pages_per_block)
		return error_set(error, -EINVAL,
				 "%llu records of %u bytes do not fit on a device of %llu bytes",
				 (unsigned long long)options->records, options->record_bytes,
				 (unsigned long long)options->device_bytes);
	result = nand_open_headers(&bench.geometry, 0, &codec, &bench.nand, error);
	if (result < 0)
		return result;
	result = measure(&bench, &measured);
	nand_abandon(bench.nand);
	if (result < 0)
		return error_set(error, result, "the headers device failed: %s", strerror(-result));
	report(&bench, &measured, output);
	return measured.resident >> 20 < options->memory_limit_mib
		       ? 0
		       : error_set(error, -ERANGE, "headers: %llu MiB in memory, the limit is %u",
				   (unsigned long long)(measured.resident >> 20),
				   options->memory_limit_mib);
}
