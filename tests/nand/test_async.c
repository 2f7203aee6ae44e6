/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Queues on every kind of device: what they return, in what order, how much they hold, and what
 * they count.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nand/timing.h"
#include "tests/nand/fixture.h"

enum { PAGES = 128, BLOCK_PAGES = 8 };

/* A request of some pages with space for what is read or programmed. */
struct work {
	struct nand_request request;
	struct nand_page_io pages[16];
	uint8_t *data; /* a page each */
	uint8_t spares[16][128];
};

static void work_setup(struct work *work, enum nand_request_kind kind, uint64_t first, size_t count)
{
	memset(work, 0, sizeof(*work));
	work->data = aligned_alloc(4096, count * 4096);
	assert_non_null(work->data);
	for (size_t i = 0; i < count; i++)
		work->pages[i] =
			(struct nand_page_io){ first + i, work->data + i * 4096, work->spares[i] };
	work->request = (struct nand_request){
		.kind = kind,
		.cause = NAND_CAUSE_USER,
		.pages = work->pages,
		.count = count,
		.owner = work,
		.result = 12345,
	};
}

static void work_fill(struct nand *nand, struct work *work, uint32_t generation)
{
	for (size_t i = 0; i < work->request.count; i++)
		fill_page(nand, work->pages[i].page, generation, work->pages[i].data,
			  work->pages[i].spare);
}

static void assert_work_holds(struct nand *nand, const struct work *work, uint32_t generation)
{
	uint8_t data[4096], spare[128];

	for (size_t i = 0; i < work->request.done; i++) {
		fill_page(nand, work->pages[i].page, generation, data, spare);
		assert_memory_equal(work->pages[i].data, data, 4096);
		assert_memory_equal(work->pages[i].spare, spare,
				    nand_spare_usable(&nand->geometry));
	}
}

static struct nand_queue *open_queue(struct nand *nand, uint32_t depth)
{
	const struct nand_queue_options options = { .depth = depth, .request_pages = 16 };
	struct error_text error = { "" };
	struct nand_queue *queue;

	if (nand_queue_open(nand, &options, &queue, &error) < 0)
		fail_msg("nand_queue_open: %s", error.text);
	return queue;
}

static int setup(void **state)
{
	*state = open_small();
	return 0;
}

static int teardown(void **state)
{
	return nand_close(*state);
}

static int setup_programmed(void **state)
{
	*state = open_small();
	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(program_filled(*state, page, 1), 0);
	return 0;
}

static bool submit(struct nand_queue *queue, struct work *work)
{
	struct nand_request *request = &work->request;

	return nand_submit(queue, &request, 1) == 1;
}

static struct work *reap(struct nand_queue *queue)
{
	struct nand_request *request;

	return nand_reap(queue, &request, 1, 1) == 1 ? request->owner : NULL;
}

/* Programs the whole device through a queue, then reads it through the queue in another order. */
static void test_what_is_programmed_through_a_queue_is_read_through_it(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct work works[16];
	size_t reaped = 0;

	for (size_t i = 0; i < 16; i++) {
		work_setup(&works[i], NAND_REQUEST_PROGRAM, i * BLOCK_PAGES, BLOCK_PAGES);
		work_fill(nand, &works[i], 3);
		while (!submit(queue, &works[i]))
			assert_ptr_equal(reap(queue), &works[reaped++]);
	}
	while (reaped < 16)
		assert_ptr_equal(reap(queue), &works[reaped++]);
	assert_null(reap(queue));
	for (size_t i = 0; i < 16; i++) {
		assert_int_equal(works[i].request.result, 0);
		assert_int_equal(works[i].request.done, BLOCK_PAGES);
		free(works[i].data);
		/* Backwards, across blocks, every second page. */
		work_setup(&works[i], NAND_REQUEST_READ, 0, 8);
		for (size_t k = 0; k < 8; k++)
			works[i].pages[k].page = PAGES - 1 - (i + k * 16);
	}
	for (size_t i = 0; i < 16;) {
		i += submit(queue, &works[i]);
		if (i % 8 == 0)
			while (reap(queue))
				;
	}
	for (size_t i = 0; i < 16; i++) {
		assert_int_equal(works[i].request.result, 0);
		assert_work_holds(nand, &works[i], 3);
		free(works[i].data);
	}
	nand_queue_close(queue);
	for (uint64_t page = 0; page < PAGES; page++)
		assert_int_equal(read_filled(nand, page, 3), 0);
}

static void test_pages_of_a_block_may_be_submitted_one_behind_the_other(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct work works[8];

	for (size_t i = 0; i < 8; i++) {
		work_setup(&works[i], NAND_REQUEST_PROGRAM, i, 1);
		work_fill(nand, &works[i], 1);
		assert_true(submit(queue, &works[i]));
	}
	for (size_t i = 0; i < 8; i++) {
		assert_ptr_equal(reap(queue), &works[i]);
		assert_int_equal(works[i].request.result, 0);
		free(works[i].data);
	}
	nand_queue_close(queue);
	for (uint64_t page = 0; page < 8; page++)
		assert_int_equal(read_filled(nand, page, 1), 0);
}

static void test_rules_hold_for_requests(void **state)
{
	static const uint64_t first_pages[] = { 0, 0, 2, 8, 127, 128 };
	static const int results[] = { 0, -EPERM, -EPERM, -EPERM, -EPERM, -ERANGE };
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct nand_counters counters;
	struct work works[6];

	assert_int_equal(nand_mark_bad(nand, 1), 0);
	for (size_t i = 0; i < 6; i++) {
		work_setup(&works[i], NAND_REQUEST_PROGRAM, first_pages[i], 1);
		work_fill(nand, &works[i], 1);
		assert_true(submit(queue, &works[i]));
	}
	for (size_t i = 0; i < 6; i++) {
		assert_ptr_equal(reap(queue), &works[i]);
		assert_int_equal(works[i].request.result, results[i]);
		assert_int_equal(works[i].request.done, results[i] == 0);
		free(works[i].data);
	}
	nand_queue_close(queue);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.rule_violations, 4);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 1);
}

static void test_a_request_stops_at_its_first_failing_page(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 4);
	struct nand_counters counters;
	struct work program, read;

	work_setup(&program, NAND_REQUEST_PROGRAM, 0, 8);
	work_fill(nand, &program, 1);
	program.pages[5].page = 7;
	assert_true(submit(queue, &program));
	assert_ptr_equal(reap(queue), &program);
	assert_int_equal(program.request.result, -EPERM);
	assert_int_equal(program.request.done, 5);
	work_setup(&read, NAND_REQUEST_READ, 2, 6);
	assert_true(submit(queue, &read));
	assert_ptr_equal(reap(queue), &read);
	assert_int_equal(read.request.result, -ENODATA);
	assert_int_equal(read.request.done, 3);
	assert_work_holds(nand, &read, 1);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 5);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_read, 3);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].bytes_read, 3 * (4096 + 128));
	free(program.data);
	free(read.data);
	nand_queue_close(queue);
}

static void test_a_queue_holds_no_more_than_its_depth(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 3);
	struct nand_request *requests[5], *completed[5];
	struct work works[5];

	for (size_t i = 0; i < 5; i++) {
		work_setup(&works[i], NAND_REQUEST_READ, i * 16, 16);
		requests[i] = &works[i].request;
	}
	assert_int_equal(nand_submit(queue, requests, 5), 3);
	assert_int_equal(nand_submit(queue, requests + 3, 2), 0);
	/* Completed requests are held until they are reaped. */
	assert_int_equal(nand_reap(queue, completed, 2, 2), 2);
	assert_int_equal(nand_submit(queue, requests + 3, 2), 2);
	assert_int_equal(nand_submit(queue, requests, 1), 0);
	assert_int_equal(nand_reap(queue, completed, 5, 5), 3);
	assert_int_equal(nand_reap(queue, completed, 5, 5), 0);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(works[i].request.result, 0);
		assert_work_holds(nand, &works[i], 1);
		free(works[i].data);
	}
	nand_queue_close(queue);
}

static void test_limits_of_a_queue_are_checked(void **state)
{
	static const struct nand_queue_options wrong[] = {
		{ .depth = 0 },
		{ .depth = 4097 },
		{ .depth = 1, .request_pages = 1025 },
	};
	struct nand *nand = *state;
	struct nand_queue *queue;
	struct work work;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error_text error = { "" };

		assert_int_equal(nand_queue_open(nand, &wrong[i], &queue, &error), -EINVAL);
		assert_null(queue);
		assert_non_null(strstr(error.text, "1 to 4096 requests"));
	}
	queue = open_queue(nand, 4);
	work_setup(&work, NAND_REQUEST_READ, 0, 1);
	for (size_t count = 0; count <= 17; count += 17) {
		work.request.count = count;
		assert_true(submit(queue, &work));
		assert_ptr_equal(reap(queue), &work);
		assert_int_equal(work.request.result, -EINVAL);
	}
	free(work.data);
	nand_queue_close(queue);
	nand_queue_close(NULL);
}

static void test_data_may_be_anywhere_in_memory(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 4);
	struct work works[2];

	for (size_t i = 0; i < 2; i++) {
		work_setup(&works[i], NAND_REQUEST_READ, i * 8 + 1, 4);
		free(works[i].data);
		works[i].data = malloc(5 * 4096);
		for (size_t k = 0; k < 4; k++) /* odd addresses; not in order */
			works[i].pages[k].data = i == 0 ? works[i].data + k * 4096 + 1 + k
							: works[i].data + (k ^ 1) * 4096;
		assert_true(submit(queue, &works[i]));
	}
	while (reap(queue))
		;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(works[i].request.result, 0);
		assert_int_equal(works[i].request.done, 4);
		assert_work_holds(nand, &works[i], 1);
		free(works[i].data);
	}
	nand_queue_close(queue);
}

/* By a call, which on a file goes another way than through a queue. */
static void test_one_page_is_read_to_anywhere_in_memory(void **state)
{
	static const size_t offsets[] = { 0, 1, 7, 64, 511, 512, 4095 };
	struct nand *nand = *state;
	uint8_t *memory = aligned_alloc(4096, 3 * 4096), data[4096], spare[112], read_spare[112];

	assert_non_null(memory);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct nand_page_io io = { 9 + i, memory + offsets[i], read_spare };

		fill_page(nand, io.page, 1, data, spare);
		memset(memory, 0xEE, 3 * 4096);
		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, &io, 1), 0);
		assert_memory_equal(io.data, data, 4096);
		assert_memory_equal(read_spare, spare, sizeof(spare));
		/* And nothing beside it. */
		for (size_t k = 0; k < 3 * 4096; k++)
			assert_true((k >= offsets[i] && k < offsets[i] + 4096) ||
				    memory[k] == 0xEE);
	}
	free(memory);
}

static void test_data_and_spare_areas_are_read_alone(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 4);
	struct nand_counters before, after;
	uint8_t data[4096], spare[128];
	struct work work;

	nand_read_counters(nand, &before);
	work_setup(&work, NAND_REQUEST_READ, 4, 3);
	work.pages[0].data = NULL;
	work.pages[1].spare = NULL;
	work.pages[2].data = NULL;
	assert_true(submit(queue, &work));
	assert_ptr_equal(reap(queue), &work);
	assert_int_equal(work.request.result, 0);
	fill_page(nand, 4, 1, data, spare);
	assert_memory_equal(work.pages[0].spare, spare, 112);
	fill_page(nand, 5, 1, data, spare);
	assert_memory_equal(work.pages[1].data, data, 4096);
	fill_page(nand, 6, 1, data, spare);
	assert_memory_equal(work.pages[2].spare, spare, 112);
	nand_read_counters(nand, &after);
	assert_int_equal(after.by_cause[NAND_CAUSE_USER].bytes_read -
				 before.by_cause[NAND_CAUSE_USER].bytes_read,
			 4096 + 3 * 128);
	free(work.data);
	nand_queue_close(queue);
}

static void test_damage_is_found_in_requests(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 4);
	struct nand_counters counters;
	struct work works[3];

	raw_flip_data(nand, 2, 100, 1);
	raw_flip_spare(nand, 9, 100, 1);
	for (size_t i = 0; i < 3; i++) {
		work_setup(&works[i], NAND_REQUEST_READ, i * 8, 4);
		assert_true(submit(queue, &works[i]));
	}
	while (reap(queue))
		;
	assert_int_equal(works[0].request.result, -EBADMSG);
	assert_int_equal(works[0].request.done, 2);
	assert_int_equal(works[1].request.result, -EBADMSG);
	assert_int_equal(works[1].request.done, 1);
	assert_int_equal(works[2].request.result, 0);
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.uncorrectable_reads, 2);
	for (size_t i = 0; i < 3; i++)
		free(works[i].data);
	nand_queue_close(queue);
}

/*
 * The erase comes while the read is under way, or after it has been done: both are an answer,
 * damage is none.
 */
static void test_a_read_that_an_erase_overtakes_is_no_damage(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 4);
	struct nand_counters counters;
	struct work work;

	for (uint32_t life = 1; life < 20; life++) {
		work_setup(&work, NAND_REQUEST_READ, 0, 4);
		assert_true(submit(queue, &work));
		assert_int_equal(nand_erase(nand, NAND_CAUSE_MERGE, 0), 0);
		for (uint64_t page = 0; page < 4; page++)
			assert_int_equal(program_filled(nand, page, life + 1), 0);
		assert_ptr_equal(reap(queue), &work);
		if (work.request.result != 0)
			assert_int_equal(work.request.result, -ENODATA);
		else
			assert_work_holds(nand, &work, life);
		free(work.data);
	}
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.uncorrectable_reads, 0);
	nand_queue_close(queue);
}

static void test_a_queue_is_closed_with_requests_in_it(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct work works[8];

	for (size_t i = 0; i < 8; i++) {
		work_setup(&works[i], NAND_REQUEST_READ, i * 16, 16);
		assert_true(submit(queue, &works[i]));
	}
	nand_queue_close(queue);
	for (size_t i = 0; i < 8; i++)
		free(works[i].data);
}

/* ---- threads, each with its queue ---- */

struct worker {
	struct nand *nand;
	uint32_t number;
	_Atomic int failures;
};

static void run_one(struct worker *worker, struct nand_queue *queue, struct work *work)
{
	if (!submit(queue, work) || reap(queue) != work || work->request.result != 0)
		atomic_fetch_add(&worker->failures, 1);
}

static void *churn(void *argument)
{
	enum { LIVES = 5 };
	struct worker *worker = argument;
	struct nand_queue *queue = open_queue(worker->nand, 4);
	struct work work;

	for (uint32_t life = 1; life <= LIVES; life++) {
		for (uint32_t i = 0; i < 4; i++) {
			uint32_t block = i * 4 + worker->number;

			if (nand_erase(worker->nand, NAND_CAUSE_MERGE, block) < 0)
				atomic_fetch_add(&worker->failures, 1);
			work_setup(&work, NAND_REQUEST_PROGRAM, (uint64_t)block * 8, 8);
			work_fill(worker->nand, &work, life);
			run_one(worker, queue, &work);
			work.request.kind = NAND_REQUEST_READ;
			memset(work.data, 0, 8 * 4096);
			run_one(worker, queue, &work);
			assert_work_holds(worker->nand, &work, life);
			free(work.data);
		}
	}
	nand_queue_close(queue);
	return NULL;
}

static void test_calls_of_several_pages_use_one_queue_again(void **state)
{
	struct nand *nand = *state;
	struct work work;

	work_setup(&work, NAND_REQUEST_READ, 0, 4);
	for (int call = 0; call < 3; call++)
		assert_int_equal(nand_read(nand, NAND_CAUSE_USER, work.pages, 4), 0);
	assert_int_equal(nand->calls.opened, nand->backend->async ? 1 : 0);
	assert_int_equal(nand->calls.idle_count, nand->calls.opened);
	free(work.data);
}

static void test_threads_with_a_queue_each_do_not_disturb_one_another(void **state)
{
	struct nand *nand = *state;
	struct nand_counters counters;
	struct worker workers[4];
	pthread_t threads[4];

	for (uint32_t i = 0; i < 4; i++) {
		workers[i] = (struct worker){ .nand = nand, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, churn, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].failures, 0);
	}
	nand_read_counters(nand, &counters);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_programmed, 4 * 4 * 5 * 8);
	assert_int_equal(counters.by_cause[NAND_CAUSE_USER].pages_read, 4 * 4 * 5 * 8);
}

/* ---- with a model of time ---- */

static void set_virtual_time(struct nand *nand, uint32_t read_ns)
{
	const struct nand_timing timing = {
		.mode = NAND_TIMING_VIRTUAL,
		.page_read_ns = read_ns,
		.page_program_ns = 10 * read_ns,
	};

	assert_int_equal(nand_set_timing(nand, &timing, NULL), 0);
}

/* Two dies: blocks 0, 2, 4 are on the first, 1, 3, 5 on the second. */
static void test_in_virtual_time_requests_complete_when_the_flash_is_done(void **state)
{
	static const uint64_t pages[] = { 0, 16, 32, 8 };
	static const size_t order[] = { 0, 3, 1, 2 };
	static const uint64_t done_ns[] = { 1000, 1000, 2000, 3000 };
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct work works[4];

	set_virtual_time(nand, 1000);
	for (size_t i = 0; i < 4; i++) {
		work_setup(&works[i], NAND_REQUEST_READ, pages[i], 1);
		assert_true(submit(queue, &works[i]));
	}
	for (size_t i = 0; i < 4; i++) {
		assert_ptr_equal(reap(queue), &works[order[i]]);
		assert_int_equal(nand_now_ns(nand), done_ns[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		assert_work_holds(nand, &works[i], 1);
		free(works[i].data);
	}
	nand_queue_close(queue);
}

static void test_in_virtual_time_nothing_completes_before_it_is_waited_for(void **state)
{
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct nand_request *completed;
	struct work work;

	set_virtual_time(nand, 1000);
	work_setup(&work, NAND_REQUEST_READ, 0, 1);
	assert_true(submit(queue, &work));
	assert_int_equal(nand_reap(queue, &completed, 1, 0), 0);
	nand_advance_ns(nand, 999);
	assert_int_equal(nand_reap(queue, &completed, 1, 0), 0);
	nand_advance_ns(nand, 1);
	while (nand_reap(queue, &completed, 1, 0) == 0)
		; /* the host's part takes the host's time */
	assert_int_equal(nand_now_ns(nand), 1000);
	free(work.data);
	nand_queue_close(queue);
}

/* Pages of a program follow one another on their die, and each takes its time once. */
static void test_in_virtual_time_a_program_takes_what_its_pages_take(void **state)
{
	static const uint64_t first[] = { 0, 3, 8 };
	static const uint64_t done_ns[] = { 10000, 30000, 40000 };
	static const size_t order[] = { 2, 0, 1 };
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct work works[3];

	set_virtual_time(nand, 1000);
	for (size_t i = 0; i < 3; i++) {
		work_setup(&works[i], NAND_REQUEST_PROGRAM, first[i], i == 0 ? 3 : 1);
		work_fill(nand, &works[i], 1);
		assert_true(submit(queue, &works[i]));
	}
	for (size_t i = 0; i < 3; i++) {
		assert_ptr_equal(reap(queue), &works[order[i]]);
		assert_int_equal(works[order[i]].request.result, 0);
		assert_int_equal(nand_now_ns(nand), done_ns[i]);
	}
	for (size_t i = 0; i < 3; i++)
		free(works[i].data);
	nand_queue_close(queue);
}

static void test_in_virtual_time_only_what_is_moved_takes_the_channel(void **state)
{
	struct nand_timing timing = { .mode = NAND_TIMING_VIRTUAL, .transfer_ps_per_byte = 1000 };
	struct nand *nand = *state;
	struct nand_queue *queue = open_queue(nand, 8);
	struct work whole, spare;

	assert_int_equal(nand_set_timing(nand, &timing, NULL), 0);
	work_setup(&whole, NAND_REQUEST_READ, 0, 2);
	work_setup(&spare, NAND_REQUEST_READ, 8, 1); /* on another channel */
	spare.pages[0].data = NULL;
	assert_true(submit(queue, &whole));
	assert_true(submit(queue, &spare));
	assert_ptr_equal(reap(queue), &spare);
	assert_int_equal(nand_now_ns(nand), 128);
	assert_ptr_equal(reap(queue), &whole);
	assert_int_equal(nand_now_ns(nand), 2 * (4096 + 128));
	free(whole.data);
	free(spare.data);
	nand_queue_close(queue);
}

#define ON_ERASED(test)     cmocka_unit_test_setup_teardown(test, setup, teardown)
#define ON_PROGRAMMED(test) cmocka_unit_test_setup_teardown(test, setup_programmed, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_ERASED(test_what_is_programmed_through_a_queue_is_read_through_it),
		ON_ERASED(test_pages_of_a_block_may_be_submitted_one_behind_the_other),
		ON_ERASED(test_rules_hold_for_requests),
		ON_ERASED(test_a_request_stops_at_its_first_failing_page),
		ON_PROGRAMMED(test_a_queue_holds_no_more_than_its_depth),
		ON_PROGRAMMED(test_limits_of_a_queue_are_checked),
		ON_PROGRAMMED(test_data_may_be_anywhere_in_memory),
		ON_PROGRAMMED(test_one_page_is_read_to_anywhere_in_memory),
		ON_PROGRAMMED(test_data_and_spare_areas_are_read_alone),
		ON_PROGRAMMED(test_damage_is_found_in_requests),
		ON_PROGRAMMED(test_a_read_that_an_erase_overtakes_is_no_damage),
		ON_PROGRAMMED(test_a_queue_is_closed_with_requests_in_it),
		ON_PROGRAMMED(test_calls_of_several_pages_use_one_queue_again),
		ON_ERASED(test_threads_with_a_queue_each_do_not_disturb_one_another),
		ON_PROGRAMMED(test_in_virtual_time_requests_complete_when_the_flash_is_done),
		ON_PROGRAMMED(test_in_virtual_time_nothing_completes_before_it_is_waited_for),
		ON_PROGRAMMED(test_in_virtual_time_only_what_is_moved_takes_the_channel),
		ON_ERASED(test_in_virtual_time_a_program_takes_what_its_pages_take),
	};

	return RUN_ON_ALL_DEVICES(tests, NULL, NULL);
}
