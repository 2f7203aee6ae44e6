/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands that wait for pages of flash on no thread. The device is a real one, with direct I/O;
 * the test plays tgtd and the kind of unit: a command needs some pages, one after the other.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/module/io_private.h"
#include "nand/nand.h"

/* Wants the others before it. */
#include "driver.h"

enum { COMMANDS = 3 * ATTEMPTS_PARKED_MAX, PAGES = 16, PAGE_BYTES = 4096 };

/* ---- tgtd's part ---- */

static struct {
	int fd;
	event_handler_t handler;
	void *data;
} watched[3];
static size_t watched_count;
static unsigned int completed;

int tgt_event_add(int fd, int events, event_handler_t handler, void *data)
{
	(void)events;
	watched[watched_count].fd = fd;
	watched[watched_count].handler = handler;
	watched[watched_count++].data = data;
	return 0;
}

void tgt_event_del(int fd)
{
	(void)fd;
}

void target_cmd_io_done(struct scsi_cmd *cmd, int result)
{
	assert_int_equal(cmd->result, result);
	cmd->tag++; /* completions of this command */
	completed++;
}

struct tgt_driver *tgt_drivers[] = { NULL };

static void turn(void)
{
	struct pollfd events[3];

	for (size_t i = 0; i < watched_count; i++)
		events[i] = (struct pollfd){ .fd = watched[i].fd, .events = POLLIN };
	assert_true(poll(events, watched_count, -1) >= 1);
	for (size_t i = 0; i < watched_count; i++)
		if (events[i].revents)
			watched[i].handler(watched[i].fd, POLLIN, watched[i].data);
}

/* ---- the kind of unit ---- */

static struct scsi_cmd commands[COMMANDS];
static struct io_threads *threads;
static struct nand *nand;
static atomic_uint executed;
static unsigned int tried;
static struct task_choice choice;
static atomic_uint chosen;

/* A command needs pages `offset`, `offset` + 1 ..., `len` of them; the manager none. */
static bool attempt(void *context, struct scsi_cmd *cmd, struct nand_stage *stage)
{
	static uint8_t data[PAGE_BYTES];

	assert_null(context);
	tried++;
	for (uint64_t page = cmd->offset; page < cmd->offset + cmd->tl; page++) {
		struct nand_page_io io = { page, data, NULL };

		if (nand_read_at_hand(nand, stage, NAND_CAUSE_USER, &io, 1))
			return false;
		assert_int_equal(data[0], page + 1);
	}
	if (cmd == &commands[0])
		return false;
	scsi_set_result(cmd, SAM_STAT_BUSY);
	return true;
}

/* Command 0 aborts others. */
static void execute(void *context, struct scsi_cmd *cmd)
{
	(void)context;
	if (cmd == &commands[0])
		chosen = io_threads_choose(threads, &choice, true, NULL, NULL);
	scsi_set_result(cmd, SAM_STAT_CHECK_CONDITION);
	atomic_fetch_add(&executed, 1);
}

static int perform(void *context, struct scsi_cmd *cmd)
{
	(void)context;
	(void)cmd;
	return SAM_STAT_GOOD;
}

static struct it_nexus session = { .ctime = -5 };
static char folder[64], path[96];
static struct nand_stages *stages;

static int set_up(void **state)
{
	struct nand_geometry geometry = nand_geometry_default(16 << 20);
	const struct nand_options options = { .backend = NAND_BACKEND_FILE };
	struct io_work work = { .execute = execute, .attempt = attempt, .perform = perform };
	uint8_t data[PAGE_BYTES] = { 0 };
	struct error_text error = { "" };

	(void)state;
	watched_count = completed = tried = 0;
	atomic_store(&executed, 0);
	memset(commands, 0, sizeof(commands));
	strcpy(folder, "/tmp/muninn-attempts-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/image", folder);
	assert_int_equal(nand_create(path, &geometry, 4096, &error), 0);
	if (nand_open_with(path, &options, &nand, &error))
		fail_msg("%s", error.text);
	for (uint64_t page = 0; page < PAGES; page++) {
		struct nand_page_io io = { page, data, NULL };

		data[0] = (uint8_t)(page + 1);
		assert_int_equal(nand_program(nand, NAND_CAUSE_USER, &io, 1), 0);
	}
	assert_int_equal(
		nand_stages_open(nand, ATTEMPTS_PARKED_MAX, &stages, &work.stages_fd, &error), 0);
	work.stages = stages;
	for (unsigned int i = 0; i < COMMANDS; i++) {
		commands[i].it_nexus = &session;
		commands[i].tl = 1;
	}
	return io_threads_start(2, &work, &threads, &error);
}

static int tear_down(void **state)
{
	char nvram[112];

	(void)state;
	io_threads_stop(threads);
	/* All stages have come back. */
	for (unsigned int i = 0; i < ATTEMPTS_PARKED_MAX; i++) {
		while (nand_stages_next(stages, true))
			;
	}
	nand_stages_close(stages);
	assert_int_equal(nand_close(nand), 0);
	snprintf(nvram, sizeof(nvram), "%s.nvram", path);
	unlink(path);
	unlink(nvram);
	return rmdir(folder);
}

static void submit(unsigned int number, uint64_t page, uint32_t pages,
		   enum order_attribute attribute)
{
	commands[number].offset = page;
	commands[number].tl = pages;
	assert_int_equal(io_threads_submit(threads, &commands[number], attribute), SAM_STAT_GOOD);
	assert_true(cmd_async(&commands[number]));
}

static void turn_until(unsigned int count)
{
	while (completed < count)
		turn();
}

static void test_a_command_is_tried_again_when_its_pages_have_come(void **state)
{
	(void)state;
	submit(1, 3, 2, ORDER_SIMPLE);
	assert_false(io_threads_are_idle(threads));
	turn_until(1);
	assert_int_equal(commands[1].result, SAM_STAT_BUSY);
	assert_int_equal(commands[1].tag, 1);
	/* Without pages, with the first, with both. */
	assert_int_equal(tried, 3);
	assert_int_equal(atomic_load(&executed), 0);
	assert_true(io_threads_are_idle(threads));
}

static void test_many_wait_at_once_and_what_is_too_much_goes_to_the_threads(void **state)
{
	unsigned int busy = 0;

	(void)state;
	for (unsigned int i = 1; i < COMMANDS; i++)
		submit(i, i % PAGES, 1, ORDER_SIMPLE);
	turn_until(COMMANDS - 1);
	for (unsigned int i = 1; i < COMMANDS; i++) {
		assert_int_equal(commands[i].tag, 1);
		busy += commands[i].result == SAM_STAT_BUSY;
	}
	assert_int_equal(busy + atomic_load(&executed), COMMANDS - 1);
	assert_true(busy >= ATTEMPTS_PARKED_MAX);
	/* And none of them is lost to those that come later. */
	for (unsigned int i = 1; i <= ATTEMPTS_PARKED_MAX; i++)
		submit(i, i % PAGES, 1, ORDER_SIMPLE);
	turn_until(COMMANDS - 1 + ATTEMPTS_PARKED_MAX);
	for (unsigned int i = 1; i <= ATTEMPTS_PARKED_MAX; i++)
		assert_int_equal(commands[i].result, SAM_STAT_BUSY);
}

static void test_what_needs_pages_again_and_again_goes_to_a_thread(void **state)
{
	(void)state;
	submit(1, 0, PAGES, ORDER_SIMPLE);
	/* Nobody can read this one. */
	submit(2, PAGES, 1, ORDER_SIMPLE);
	turn_until(2);
	assert_int_equal(commands[1].result, SAM_STAT_CHECK_CONDITION);
	assert_int_equal(commands[2].result, SAM_STAT_CHECK_CONDITION);
	assert_int_equal(atomic_load(&executed), 2);
}

static void test_what_waits_for_pages_has_begun(void **state)
{
	(void)state;
	submit(1, 3, 1, ORDER_SIMPLE);
	commands[2].tl = 0;
	submit(2, 0, 0, ORDER_ORDERED);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(atomic_load(&executed), 0);
	turn_until(2);
	assert_int_equal(commands[1].result, SAM_STAT_BUSY);
	assert_int_equal(atomic_load(&executed), 1);
}

static void test_who_aborts_what_waits_for_pages_ends_it_at_once(void **state)
{
	(void)state;
	choice = (struct task_choice){ .nexus = 5 };
	submit(1, 3, 1, ORDER_SIMPLE);
	submit(2, 4, 1, ORDER_SIMPLE);
	submit(0, 0, 0, ORDER_HEAD_OF_QUEUE);
	while (!atomic_load(&executed))
		sched_yield();
	assert_int_equal(atomic_load(&chosen), 2);
	turn_until(3);
	for (unsigned int i = 1; i <= 2; i++) {
		assert_int_equal(commands[i].result, SAM_STAT_TASK_ABORTED);
		assert_int_equal(commands[i].tag, 1);
	}
	/* Once each, and not again when the pages have come. */
	assert_int_equal(tried, 3);
	assert_true(io_threads_are_idle(threads));
}

static void test_an_initiator_that_aborts_it_ends_it_when_the_pages_have_come(void **state)
{
	struct mgmt_req request = { .function = ABORT_TASK };

	(void)state;
	submit(1, 3, 1, ORDER_SIMPLE);
	__atomic_store_n(&commands[1].mreq, &request, __ATOMIC_RELEASE);
	turn_until(1);
	assert_int_equal(commands[1].result, SAM_STAT_TASK_ABORTED);
	assert_int_equal(tried, 1);
}

static void test_a_stop_ends_what_waits_for_pages(void **state)
{
	(void)state;
	/* The tear-down stops it. */
	for (unsigned int i = 1; i <= 8; i++)
		submit(i, i, 2, ORDER_SIMPLE);
}

static int tear_down_and_count(void **state)
{
	int result = tear_down(state);

	assert_int_equal(completed, 8);
	for (unsigned int i = 1; i <= 8; i++)
		assert_int_equal(commands[i].result, SAM_STAT_BUSY);
	return result;
}

#define prepared(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		prepared(test_a_command_is_tried_again_when_its_pages_have_come),
		prepared(test_many_wait_at_once_and_what_is_too_much_goes_to_the_threads),
		prepared(test_what_needs_pages_again_and_again_goes_to_a_thread),
		prepared(test_what_waits_for_pages_has_begun),
		prepared(test_who_aborts_what_waits_for_pages_ends_it_at_once),
		prepared(test_an_initiator_that_aborts_it_ends_it_when_the_pages_have_come),
		cmocka_unit_test_setup_teardown(test_a_stop_ends_what_waits_for_pages, set_up,
						tear_down_and_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
