/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Transfers that arrive in an order, or fail, as the test says: a mover that holds them until it is
 * told which one is next. What counts as programmed must never have a hole, whatever the host does
 * first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bytes.h"
#include "nand/faults.h"
#include "nand/timing.h"
#include "tests/nand/fixture.h"

enum { HELD_MAX = 64 };

/* The transfers under way, in the order in which they were started, and which `next` returns. */
static struct {
	struct nand_transfer *held[HELD_MAX];
	uint32_t count, started;
	uint32_t next; /* index in `held` */
	bool released; /* it may arrive */
	int result;    /* its fate; 0: it is moved */
	int fd;
} host;

static void held_start(struct nand_mover *mover, struct nand_transfer *transfer)
{
	(void)mover;
	assert_true(host.count < HELD_MAX);
	host.held[host.count++] = transfer;
	host.started++;
}

static void held_flush(struct nand_mover *mover)
{
	(void)mover;
}

static struct nand_transfer *held_next(struct nand_mover *mover, bool wait)
{
	struct nand_transfer *transfer;

	(void)mover;
	if (!host.released && wait)
		host.next = 0;
	else if (!host.released)
		return NULL;
	assert_true(host.next < host.count);
	transfer = host.held[host.next];
	transfer->result = host.result ? host.result : nand_transfer_by_hand(host.fd, transfer, 0);
	host.count--;
	memmove(&host.held[host.next], &host.held[host.next + 1],
		(host.count - host.next) * sizeof(host.held[0]));
	host.released = false;
	host.result = 0;
	return transfer;
}

static void held_close(struct nand_mover *mover)
{
	(void)mover;
	assert_int_equal(host.count, 0);
}

static const struct nand_mover_operations held_operations = {
	.start = held_start,
	.flush = held_flush,
	.next = held_next,
	.close = held_close,
};
static struct nand_mover held_mover = { &held_operations };

static int open_held(struct nand *nand, const struct nand_mover_options *options,
		     struct nand_mover **mover)
{
	(void)nand;
	(void)options;
	*mover = &held_mover;
	return 0;
}

static struct nand_backend_async held_async;
static struct nand_backend held_backend;
static const struct nand_backend *real_backend;

static int failing_fetch(struct nand *nand, uint64_t offset, uint8_t *to, uint64_t bytes)
{
	(void)nand;
	(void)offset;
	memset(to, 0, bytes);
	return -EIO;
}

/* Pages of two units each, so that none has to wait for another. */
static const struct nand_geometry apart_geometry = { 4096, 4096, 8, 16, 2, 1, 0 };

struct device {
	struct nand *nand;
	struct nand_queue *queue;
	struct nand_request requests[8];
	struct nand_page_io pages[8][8];
	size_t completed;
	uint8_t *data; /* a page for each page of each request */
};

static int setup_with(void **state, const struct nand_geometry *geometry)
{
	const struct nand_queue_options options = { .depth = 8, .request_pages = 8 };
	struct device *device = calloc(1, sizeof(*device));

	test_device = TEST_DEVICE_FILE_THREADS;
	memset(&host, 0, sizeof(host));
	device->nand = open_device(geometry);
	host.fd = device->nand->image_fd;
	real_backend = device->nand->backend;
	held_backend = *real_backend;
	held_async = *held_backend.async;
	held_async.open_mover = open_held;
	held_async.fetch = failing_fetch;
	held_backend.async = &held_async;
	device->nand->backend = &held_backend;
	assert_int_equal(nand_queue_open(device->nand, &options, &device->queue, NULL), 0);
	device->nand->backend = real_backend;
	device->data =
		aligned_alloc(4096, sizeof(device->pages) / sizeof(device->pages[0][0]) * 4096);
	*state = device;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, &apart_geometry);
}

/* Of 4096 + 128 bytes: each page but the first begins in the unit in which the last one ends. */
static int setup_sharing(void **state)
{
	return setup_with(state, &small_geometry);
}

static int teardown(void **state)
{
	struct device *device = *state;

	nand_queue_close(device->queue);
	assert_int_equal(nand_close(device->nand), 0);
	free(device->data);
	free(device);
	return 0;
}

static void submit(struct device *device, size_t number, enum nand_request_kind kind,
		   uint64_t first, size_t count)
{
	struct nand_request *request = &device->requests[number];

	for (size_t i = 0; i < count; i++) {
		uint8_t *data = device->data + (number * 8 + i) * 4096;
		uint8_t spare[NAND_SPARE_BYTES_MAX];

		device->pages[number][i] = (struct nand_page_io){ first + i, data, NULL };
		fill_page(device->nand, first + i, 1, data, spare);
	}
	*request = (struct nand_request){
		.kind = kind, .pages = device->pages[number], .count = count, .result = 12345
	};
	assert_int_equal(nand_submit(device->queue, &request, 1), 1);
}

/* The held transfer number `index` arrives, with this result. */
static void arrive(struct device *device, uint32_t index, int result)
{
	struct nand_request *completed[8];

	host.next = index;
	host.result = result;
	host.released = true;
	device->completed += nand_reap(device->queue, completed, 8, 0);
	assert_false(host.released);
}

/* The data of the page are those that submit gave it. */
static void assert_programmed(struct device *device, uint64_t page)
{
	uint8_t data[4096], expected[4096], spare[NAND_SPARE_BYTES_MAX];
	struct nand_page_io io = { page, data, NULL };

	fill_page(device->nand, page, 1, expected, spare);
	assert_int_equal(nand_read(device->nand, NAND_CAUSE_USER, &io, 1), 0);
	assert_memory_equal(data, expected, sizeof(data));
}

static uint32_t next_page(struct device *device, uint32_t block)
{
	struct nand_block_info info;

	assert_int_equal(nand_block_info(device->nand, block, &info), 0);
	return info.next_page;
}

static void test_a_page_does_not_count_before_those_in_front_of_it(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 1);
	submit(device, 1, NAND_REQUEST_PROGRAM, 1, 1);
	submit(device, 2, NAND_REQUEST_PROGRAM, 2, 1);
	arrive(device, 2, 0);
	arrive(device, 1, 0);
	assert_int_equal(next_page(device, 0), 0);
	assert_int_equal(device->completed, 0);
	arrive(device, 0, 0);
	assert_int_equal(next_page(device, 0), 3);
	assert_int_equal(device->completed, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(device->requests[i].result, 0);
}

static void test_a_page_under_way_cannot_be_read(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 1);
	assert_int_equal(read_filled(device->nand, 0, 1), -ENODATA);
	arrive(device, 0, 0);
	assert_int_equal(next_page(device, 0), 1);
	assert_int_equal(device->completed, 1);
}

static void test_after_a_failed_program_no_page_of_the_block_under_way_counts(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 2);
	submit(device, 1, NAND_REQUEST_PROGRAM, 2, 1);
	submit(device, 2, NAND_REQUEST_PROGRAM, 3, 1);
	submit(device, 3, NAND_REQUEST_PROGRAM, 8, 1); /* of another block */
	log_capture();
	arrive(device, 3, 0);
	arrive(device, 2, 0);
	arrive(device, 1, -ENOSPC);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 4);
	assert_int_equal(device->requests[0].result, 0);
	assert_int_equal(device->requests[1].result, -ENOSPC);
	assert_int_equal(device->requests[2].result, -EIO);
	assert_int_equal(device->requests[3].result, 0);
	assert_non_null(strstr(log_captured(), "no space for block 0 on the host's file system"));
	assert_int_equal(next_page(device, 0), 2);
	assert_int_equal(next_page(device, 1), 1);
	/* The block goes on where it stands. */
	submit(device, 0, NAND_REQUEST_PROGRAM, 2, 3);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 5);
	assert_int_equal(device->requests[0].result, 0);
	assert_int_equal(next_page(device, 0), 5);
}

/* The flash finds that a page cannot be programmed while one before it is still under way. */
static void test_a_block_that_turned_bad_stays_bad_when_an_earlier_page_arrives(void **state)
{
	struct device *device = *state;
	struct nand_faults faults;
	struct nand_block_info info;

	log_capture();
	assert_int_equal(nand_faults_parse("program-at=2", &faults, NULL), 0);
	assert_int_equal(nand_set_faults(device->nand, &faults, NULL), 0);
	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 1);
	submit(device, 1, NAND_REQUEST_PROGRAM, 1, 1);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 2);
	assert_int_equal(device->requests[0].result, 0);
	assert_int_equal(device->requests[1].result, -EIO);
	assert_int_equal(nand_block_info(device->nand, 0, &info), 0);
	assert_int_equal(info.state, NAND_BLOCK_BAD);
	assert_int_equal(info.next_page, 1);
	assert_int_equal(nand_read(device->nand, NAND_CAUSE_USER, &device->pages[0][0], 1), 0);
}

static void test_a_failed_transfer_is_an_error_of_its_pages(void **state)
{
	struct device *device = *state;
	struct nand_counters counters;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 8);
	arrive(device, 0, 0);
	submit(device, 1, NAND_REQUEST_READ, 0, 4);
	submit(device, 2, NAND_REQUEST_READ, 4, 4);
	arrive(device, 0, -EIO);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 3);
	assert_int_equal(device->requests[1].result, -EIO);
	assert_int_equal(device->requests[1].done, 0);
	assert_int_equal(device->requests[2].result, 0);
	/* What did not arrive was not read. */
	nand_read_counters(device->nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_read, 4);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].bytes_read,
			 4 * (4096 + device->nand->geometry.spare_bytes));
}

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void test_a_page_was_under_way_since_its_request_was_submitted(void **state)
{
	const struct nand_timing measured = { .mode = NAND_TIMING_MEASURED };
	struct device *device = *state;
	struct histogram_snapshot latency;
	uint64_t until_ns;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 4);
	arrive(device, 0, 0);
	assert_int_equal(nand_set_timing(device->nand, &measured, NULL), 0);
	submit(device, 1, NAND_REQUEST_READ, 0, 4);
	until_ns = host_ns() + 1000000;
	while (host_ns() < until_ns)
		;
	arrive(device, 0, 0);
	nand_latency(device->nand, NAND_READ, &latency);
	assert_int_equal(latency.count, 4);
	assert_true(latency.least_ns >= 1000000);
}

static void test_a_block_is_not_erased_while_pages_of_it_are_under_way(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 1);
	assert_int_equal(nand_erase(device->nand, NAND_CAUSE_USER, 0), -EPERM);
	assert_int_equal(nand_erase(device->nand, NAND_CAUSE_USER, 1), 0);
	arrive(device, 0, 0);
	assert_int_equal(nand_erase(device->nand, NAND_CAUSE_USER, 0), 0);
	assert_int_equal(device->completed, 1);
}

static void test_a_block_is_not_programmed_past_the_queue(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 1);
	assert_int_equal(program_filled(device->nand, 0, 1), -EPERM);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 1);
}

static void test_neighbours_share_a_transfer(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 8);
	assert_int_equal(host.started, 1);
	assert_int_equal(host.held[0]->bytes, 8 * 8192);
	arrive(device, 0, 0);
	for (int i = 0; i < 4; i++)
		device->pages[1][i] = (struct nand_page_io){ (uint64_t)(i == 3 ? 6 : i),
							     device->data + (7 - 2 * i) * 4096,
							     NULL };
	device->requests[1] = (struct nand_request){ .kind = NAND_REQUEST_READ,
						     .pages = device->pages[1],
						     .count = 4 };
	host.started = 0;
	assert_int_equal(
		nand_submit(device->queue, &(struct nand_request *){ &device->requests[1] }, 1), 1);
	assert_int_equal(host.started, 2);
	assert_int_equal(host.held[0]->bytes, 3 * 8192);
	assert_int_equal(host.held[1]->bytes, 8192);
	arrive(device, 1, 0);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 2);
	assert_int_equal(device->requests[1].result, 0);
}

static void test_an_overtaken_read_has_no_data(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 1);
	arrive(device, 0, 0);
	submit(device, 1, NAND_REQUEST_READ, 0, 1);
	assert_int_equal(nand_erase(device->nand, NAND_CAUSE_MERGE, 0), 0);
	assert_int_equal(program_filled(device->nand, 0, 2), 0);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 2);
	assert_int_equal(device->requests[1].result, -ENODATA);
}

/* ---- pages that share a unit of the file ---- */

static void test_a_page_and_its_spare_area_are_one_transfer_of_few_units(void **state)
{
	struct device *device = *state;
	uint32_t unit = real_backend->async->units(device->nand).read;
	uint64_t first = device->nand->layout.data_offset;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 8);
	assert_int_equal(host.started, 1);
	assert_int_equal(host.held[0]->offset, first);
	assert_int_equal(host.held[0]->bytes, 36864); /* 8 * 4224 in units of 4096 */
	arrive(device, 0, 0);
	submit(device, 1, NAND_REQUEST_READ, 1, 1);
	assert_int_equal(host.started, 2);
	assert_int_equal(host.held[0]->offset, align_down(first + 4224, unit));
	assert_int_equal(host.held[0]->bytes, align_up(first + 8448, unit) - host.held[0]->offset);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 2);
	assert_int_equal(device->requests[1].result, 0);
}

static void test_a_program_waits_for_the_page_before_in_its_unit(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 1);
	submit(device, 1, NAND_REQUEST_PROGRAM, 8, 1); /* a block shares no unit with another */
	assert_int_equal(host.count, 2);
	submit(device, 2, NAND_REQUEST_PROGRAM, 1, 2);
	assert_int_equal(host.started, 3);
	assert_int_equal(host.count, 1);
	assert_int_equal(next_page(device, 0), 1);
	arrive(device, 0, 0);
	assert_int_equal(device->completed, 3);
	for (uint64_t page = 0; page < 3; page++)
		assert_programmed(device, page);
}

static void test_what_is_in_front_of_a_program_is_kept_or_the_program_fails(void **state)
{
	struct device *device = *state;

	submit(device, 0, NAND_REQUEST_PROGRAM, 0, 3);
	arrive(device, 0, 0);
	log_capture();
	device->nand->backend = &held_backend;
	submit(device, 1, NAND_REQUEST_PROGRAM, 3, 2);
	device->nand->backend = real_backend;
	while (host.count > 0)
		arrive(device, 0, 0);
	assert_non_null(strstr(log_captured(), "the host could not write to block 0"));
	assert_int_equal(device->requests[1].result, -EIO);
	assert_int_equal(device->requests[1].done, 0);
	assert_int_equal(next_page(device, 0), 3);
	submit(device, 2, NAND_REQUEST_PROGRAM, 3, 5);
	arrive(device, 0, 0);
	assert_int_equal(device->requests[2].result, 0);
	for (uint64_t page = 0; page < 8; page++)
		assert_programmed(device, page);
}

#define HELD(test)    cmocka_unit_test_setup_teardown(test, setup, teardown)
#define SHARING(test) cmocka_unit_test_setup_teardown(test, setup_sharing, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HELD(test_a_page_does_not_count_before_those_in_front_of_it),
		HELD(test_a_page_under_way_cannot_be_read),
		HELD(test_after_a_failed_program_no_page_of_the_block_under_way_counts),
		HELD(test_a_block_that_turned_bad_stays_bad_when_an_earlier_page_arrives),
		HELD(test_a_failed_transfer_is_an_error_of_its_pages),
		HELD(test_a_page_was_under_way_since_its_request_was_submitted),
		HELD(test_a_block_is_not_erased_while_pages_of_it_are_under_way),
		HELD(test_a_block_is_not_programmed_past_the_queue),
		HELD(test_neighbours_share_a_transfer),
		HELD(test_an_overtaken_read_has_no_data),
		SHARING(test_a_page_and_its_spare_area_are_one_transfer_of_few_units),
		SHARING(test_a_program_waits_for_the_page_before_in_its_unit),
		SHARING(test_what_is_in_front_of_a_program_is_kept_or_the_program_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
