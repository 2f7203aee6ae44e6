/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The I/O threads of a logical unit, with the three functions of tgtd that they call played by the test. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/io_threads.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

#define COMMANDS 1000

/* ---- tgtd's part: one watched descriptor, completions counted on the main thread ---- */

static int watched_fd = -1;
static event_handler_t watched_handler;
static void *watched_data;
static bool refuse_to_watch;
static pthread_t main_thread;
static unsigned int completed;
static unsigned int batches;
static int last_result;

int tgt_event_add(int fd, int events, event_handler_t handler, void *data)
{
	(void)events;
	if (refuse_to_watch)
		return -ENOMEM;
	watched_fd = fd;
	watched_handler = handler;
	watched_data = data;
	return 0;
}

void tgt_event_del(int fd)
{
	assert_int_equal(fd, watched_fd);
	watched_fd = -1;
}

void target_cmd_io_done(struct scsi_cmd *cmd, int result)
{
	assert_true(pthread_equal(pthread_self(), main_thread));
	assert_int_equal(cmd->result, result);
	cmd->tag++; /* completions of this command */
	completed++;
	last_result = result;
}

/* One turn of tgtd's event loop. */
static void turn(void)
{
	struct pollfd event = { .fd = watched_fd, .events = POLLIN };

	assert_true(poll(&event, 1, -1) == 1);
	watched_handler(watched_fd, event.revents, watched_data);
	batches++;
}

/* ---- our part ---- */

static atomic_uint executed;
static atomic_bool may_execute;

static void execute(void *context, struct scsi_cmd *cmd)
{
	sigset_t blocked;

	assert_ptr_equal(context, &executed);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	assert_true(sigismember(&blocked, SIGUSR2));
	while (!atomic_load(&may_execute))
		sched_yield();
	atomic_fetch_add(&executed, 1);
	scsi_set_result(cmd, SAM_STAT_CHECK_CONDITION);
}

static struct scsi_cmd *commands;
static struct io_threads *threads;

static int setup(void **state)
{
	(void)state;
	main_thread = pthread_self();
	completed = 0;
	batches = 0;
	refuse_to_watch = false;
	atomic_store(&executed, 0);
	atomic_store(&may_execute, true);
	commands = calloc(COMMANDS, sizeof(*commands));
	return commands ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(commands);
	return 0;
}

static void start(unsigned int count)
{
	struct error_text error;

	assert_int_equal(io_threads_start(count, execute, &executed, NULL, &threads, &error), 0);
}

static void assert_each_completed_once(unsigned int count)
{
	assert_int_equal(completed, count);
	assert_int_equal(atomic_load(&executed), count);
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(commands[i].tag, 1);
}

static void test_a_command_comes_back_with_its_status(void **state)
{
	(void)state;
	start(1);
	io_threads_submit(threads, &commands[0]);
	assert_true(cmd_async(&commands[0]));
	turn();
	assert_each_completed_once(1);
	assert_int_equal(last_result, SAM_STAT_CHECK_CONDITION);
	io_threads_stop(threads);
	assert_int_equal(watched_fd, -1);
}

static void test_many_commands_on_many_threads_complete_once_each(void **state)
{
	(void)state;
	start(4);
	for (unsigned int i = 0; i < COMMANDS; i++)
		io_threads_submit(threads, &commands[i]);
	while (completed < COMMANDS)
		turn();
	assert_each_completed_once(COMMANDS);
	io_threads_stop(threads);
}

static void test_commands_that_are_done_together_complete_in_one_batch(void **state)
{
	(void)state;
	start(1);
	for (unsigned int i = 0; i < COMMANDS; i++)
		io_threads_submit(threads, &commands[i]);
	while (atomic_load(&executed) < COMMANDS)
		sched_yield();
	turn();
	assert_true(completed >= COMMANDS - 1);
	if (completed < COMMANDS)
		turn(); /* the last one was executed, but not yet done */
	assert_each_completed_once(COMMANDS);
	io_threads_stop(threads);
}

/* The order in which a single thread executes: its first command waits until all are there. */
static _Atomic(struct scsi_cmd *) order[8];

static void execute_in_order(void *context, struct scsi_cmd *cmd)
{
	atomic_store(&order[atomic_load(&executed) % 8], cmd);
	execute(context, cmd);
}

static void test_head_of_queue_overtakes_what_has_not_begun(void **state)
{
	struct error_text error;

	(void)state;
	atomic_store(&may_execute, false);
	assert_int_equal(io_threads_start(1, execute_in_order, &executed, NULL, &threads, &error),
			 0);
	for (unsigned int i = 0; i < 4; i++) {
		commands[i].attribute = i == 3 ? MSG_HEAD_TAG : MSG_SIMPLE_TAG;
		io_threads_submit(threads, &commands[i]);
		/* The first one has begun. */
		while (i == 0 && !atomic_load(&order[0]))
			sched_yield();
	}
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_each_completed_once(4);
	assert_ptr_equal(order[0], &commands[0]);
	assert_ptr_equal(order[1], &commands[3]);
	assert_ptr_equal(order[2], &commands[1]);
	assert_ptr_equal(order[3], &commands[2]);
}

static void test_an_aborted_command_that_has_not_begun_is_not_executed(void **state)
{
	int request;

	(void)state;
	__atomic_store_n(&commands[0].mreq, (struct mgmt_req *)(void *)&request, __ATOMIC_RELEASE);
	start(1);
	io_threads_submit(threads, &commands[0]);
	turn();
	assert_int_equal(completed, 1);
	assert_int_equal(atomic_load(&executed), 0);
	assert_int_equal(last_result, SAM_STAT_TASK_ABORTED);
	io_threads_stop(threads);
}

/* ---- task management: command 0 manages the others ---- */

/* What the manager is to do, and what came of it. */
static struct osd_task_choice choice;
static bool abort_them;
static atomic_uint chosen;
static uint64_t found_nexuses[8];
static unsigned int found_count;
static atomic_bool has_managed;

static void note_found(void *context, uint64_t nexus)
{
	assert_ptr_equal(context, &found_count);
	found_nexuses[found_count++ % 8] = nexus;
}

/* Commands with `offset` 1 manage, the others wait until they may execute. */
static void execute_or_manage(void *context, struct scsi_cmd *cmd)
{
	if (cmd->offset == 1) {
		chosen = io_threads_choose(threads, &choice, abort_them, note_found, &found_count);
		atomic_store(&has_managed, true);
		atomic_fetch_add(&executed, 1);
		scsi_set_result(cmd, SAM_STAT_GOOD);
		return;
	}
	atomic_store(&order[0], cmd);
	execute(context, cmd);
}

static void begin_managing(unsigned int count, struct tgt_cmd_queue *held_back)
{
	struct error_text error;

	atomic_store(&may_execute, false);
	atomic_store(&has_managed, false);
	atomic_store(&order[0], NULL);
	found_count = 0;
	choice = (struct osd_task_choice){ .nexus = 5 };
	for (unsigned int i = 0; i < 8; i++) {
		commands[i].cmd_itn_id = 5;
		commands[i].state = 0;
		commands[i].result = -1;
	}
	assert_int_equal(
		io_threads_start(count, execute_or_manage, &executed, held_back, &threads, &error),
		0);
}

/* Occupies one thread. */
static void occupy(struct scsi_cmd *cmd)
{
	io_threads_submit(threads, cmd);
	while (atomic_load(&order[0]) != cmd)
		sched_yield();
}

static void submit_manager(struct scsi_cmd *cmd)
{
	cmd->offset = 1;
	cmd->attribute = MSG_HEAD_TAG;
	io_threads_submit(threads, cmd);
}

static void test_aborted_tasks_that_have_not_begun_end_without_being_executed(void **state)
{
	(void)state;
	abort_them = true;
	begin_managing(2, NULL);
	occupy(&commands[1]);
	occupy(&commands[2]);
	for (unsigned int i = 3; i < 6; i++)
		io_threads_submit(threads, &commands[i]);
	commands[5].cmd_itn_id = 6; /* of another session */
	submit_manager(&commands[0]);
	/* The manager gets a thread when one of the two has ended. */
	atomic_store(&may_execute, true);
	while (completed < 6)
		turn();
	assert_int_equal(commands[0].result, SAM_STAT_GOOD);
	assert_int_equal(commands[3].result, SAM_STAT_TASK_ABORTED);
	assert_int_equal(commands[4].result, SAM_STAT_TASK_ABORTED);
	assert_int_equal(commands[5].result, SAM_STAT_CHECK_CONDITION);
	assert_in_range(chosen, 2, 3);
	assert_int_equal(found_count, chosen);
	assert_int_equal(found_nexuses[0], 5);
	io_threads_stop(threads);
}

static void test_who_aborts_is_answered_behind_what_had_begun(void **state)
{
	(void)state;
	abort_them = true;
	begin_managing(2, NULL);
	occupy(&commands[1]);
	submit_manager(&commands[0]);
	while (!atomic_load(&has_managed))
		sched_yield();
	/* It has done all it can, and is not done. */
	assert_int_equal(chosen, 1);
	for (unsigned int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(commands[0].tag, 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = watched_fd, .events = POLLIN }, 1, 0), 0);
	atomic_store(&may_execute, true);
	while (completed < 2)
		turn();
	assert_int_equal(commands[0].result, SAM_STAT_GOOD);
	assert_int_equal(commands[1].result, SAM_STAT_CHECK_CONDITION);
	io_threads_stop(threads);
}

static void test_queries_count_and_neither_end_nor_wait(void **state)
{
	(void)state;
	abort_them = false;
	begin_managing(2, NULL);
	commands[2].tag = htobe32(77);
	occupy(&commands[1]);
	choice.one = true;
	choice.tag = 77;
	/* Is overtaken: the manager is at the head of the queue. */
	submit_manager(&commands[0]);
	turn();
	assert_int_equal(chosen, 0);
	assert_int_equal(commands[0].tag, 1);
	commands[3].offset = 1;
	choice.one = false;
	io_threads_submit(threads, &commands[3]);
	turn();
	assert_int_equal(chosen, 1);
	atomic_store(&may_execute, true);
	while (completed < 3)
		turn();
	assert_int_equal(commands[1].result, SAM_STAT_CHECK_CONDITION);
	io_threads_stop(threads);
}

static void test_two_that_abort_each_other_both_end(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 200; round++) {
		abort_them = true;
		completed = 0;
		begin_managing(4, NULL);
		found_count = 0;
		for (unsigned int i = 0; i < 4; i++)
			submit_manager(&commands[i]);
		while (completed < 4)
			turn();
		io_threads_stop(threads);
	}
}

static void test_what_tgtd_holds_back_is_aborted_when_its_turn_comes(void **state)
{
	struct tgt_cmd_queue held_back;

	(void)state;
	INIT_LIST_HEAD(&held_back.queue);
	for (unsigned int i = 2; i < 5; i++)
		list_add_tail(&commands[i].qlist, &held_back.queue);
	abort_them = true;
	begin_managing(1, &held_back);
	commands[3].cmd_itn_id = 6;
	submit_manager(&commands[0]);
	while (completed < 1)
		turn();
	assert_int_equal(chosen, 2);
	assert_int_equal(commands[0].result, SAM_STAT_GOOD);
	atomic_store(&may_execute, true);
	for (unsigned int i = 2; i < 5; i++) {
		list_del(&commands[i].qlist);
		io_threads_submit(threads, &commands[i]);
	}
	while (completed < 4)
		turn();
	assert_int_equal(commands[2].result, SAM_STAT_TASK_ABORTED);
	assert_int_equal(commands[3].result, SAM_STAT_CHECK_CONDITION);
	assert_int_equal(commands[4].result, SAM_STAT_TASK_ABORTED);
	io_threads_stop(threads);
}

static void test_what_comes_behind_an_ordered_command_is_handed_back_to_tgtd_once(void **state)
{
	struct tgt_cmd_queue held_back = { .active_cmd = 5 };
	struct error_text error;

	(void)state;
	INIT_LIST_HEAD(&held_back.queue);
	assert_int_equal(io_threads_start(1, execute, &executed, &held_back, &threads, &error), 0);
	atomic_store(&may_execute, true);
	commands[0].attribute = MSG_ORDERED_TAG;
	set_cmd_queued(&commands[0]);
	list_add_tail(&commands[0].qlist, &held_back.queue);
	commands[1].attribute = MSG_SIMPLE_TAG;
	io_threads_submit(threads, &commands[1]);
	/* tgtd counts it now, and again when it hands it over in its turn. */
	assert_int_equal(held_back.active_cmd, 4);
	assert_true(cmd_queued(&commands[1]) && cmd_async(&commands[1]));
	assert_ptr_equal(commands[0].qlist.next, &commands[1].qlist);
	commands[2].attribute = MSG_HEAD_TAG;
	io_threads_submit(threads, &commands[2]);
	while (completed < 1)
		turn();
	for (unsigned int i = 0; i < 2; i++) {
		list_del(&commands[i].qlist);
		io_threads_submit(threads, &commands[i]);
	}
	while (completed < 3)
		turn();
	assert_int_equal(held_back.active_cmd, 4);
	assert_true(list_empty(&held_back.queue));
	assert_int_equal(atomic_load(&executed), 3);
	io_threads_stop(threads);
}

static void test_a_stop_does_not_wait_for_who_searches_what_tgtd_holds_back(void **state)
{
	struct tgt_cmd_queue held_back;

	(void)state;
	INIT_LIST_HEAD(&held_back.queue);
	abort_them = true;
	begin_managing(2, &held_back);
	submit_manager(&commands[0]);
	submit_manager(&commands[1]);
	io_threads_stop(threads);
	assert_int_equal(completed, 2);
}

static void test_a_stop_finishes_what_is_queued(void **state)
{
	(void)state;
	atomic_store(&may_execute, false);
	start(2);
	for (unsigned int i = 0; i < 100; i++)
		io_threads_submit(threads, &commands[i]);
	assert_int_equal(completed, 0);
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_each_completed_once(100);
}

static void test_threads_that_tgtd_cannot_watch_do_not_start(void **state)
{
	struct error_text error;

	(void)state;
	refuse_to_watch = true;
	assert_int_equal(io_threads_start(2, execute, &executed, NULL, &threads, &error), -ENOMEM);
	assert_string_equal(error.text, "tgtd could not watch one more descriptor");
}

#define prepared(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		prepared(test_a_command_comes_back_with_its_status),
		prepared(test_many_commands_on_many_threads_complete_once_each),
		prepared(test_commands_that_are_done_together_complete_in_one_batch),
		prepared(test_head_of_queue_overtakes_what_has_not_begun),
		prepared(test_an_aborted_command_that_has_not_begun_is_not_executed),
		prepared(test_aborted_tasks_that_have_not_begun_end_without_being_executed),
		prepared(test_who_aborts_is_answered_behind_what_had_begun),
		prepared(test_queries_count_and_neither_end_nor_wait),
		prepared(test_two_that_abort_each_other_both_end),
		prepared(test_what_tgtd_holds_back_is_aborted_when_its_turn_comes),
		prepared(test_what_comes_behind_an_ordered_command_is_handed_back_to_tgtd_once),
		prepared(test_a_stop_does_not_wait_for_who_searches_what_tgtd_holds_back),
		prepared(test_a_stop_finishes_what_is_queued),
		prepared(test_threads_that_tgtd_cannot_watch_do_not_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
