/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The I/O threads of a logical unit, with the three functions of tgtd that they call played by the
 * test.
 */
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

/* Want the others before them. */
#include "driver.h"
#include "target.h"

#define COMMANDS 1000

/* ---- tgtd's part: one watched descriptor, completions counted on the main thread ---- */

/* What tgtd watches: completions, and a timer. */
static struct watched {
	int fd; /* -1: nothing */
	event_handler_t handler;
	void *data;
} events_of_threads, timer;
static int refuse_to_watch; /* the n-th; 0: none */
static pthread_t main_thread;
static unsigned int completed;
static unsigned int batches;
static int last_result;

int tgt_event_add(int fd, int events, event_handler_t handler, void *data)
{
	struct watched *watched = events_of_threads.fd < 0 ? &events_of_threads : &timer;

	(void)events;
	if (refuse_to_watch && --refuse_to_watch == 0)
		return -ENOMEM;
	assert_int_equal(watched->fd, -1);
	*watched = (struct watched){ fd, handler, data };
	return 0;
}

void tgt_event_del(int fd)
{
	struct watched *watched = fd == timer.fd ? &timer : &events_of_threads;

	assert_int_equal(fd, watched->fd);
	watched->fd = -1;
}

void target_cmd_io_done(struct scsi_cmd *cmd, int result)
{
	assert_true(pthread_equal(pthread_self(), main_thread));
	assert_int_equal(cmd->result, result);
	cmd->tag++; /* completions of this command */
	completed++;
	last_result = result;
}

struct tgt_driver *tgt_drivers[] = { NULL };

/* One turn of tgtd's event loop. */
static void turn(void)
{
	struct pollfd event = { .fd = events_of_threads.fd, .events = POLLIN };

	assert_true(poll(&event, 1, -1) == 1);
	events_of_threads.handler(event.fd, event.revents, events_of_threads.data);
	batches++;
}

/* It is time to look for aborted commands. */
static void tick(void)
{
	timer.handler(timer.fd, POLLIN, timer.data);
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

/* What is performed on the main thread says which by its status. */
static int perform(void *context, struct scsi_cmd *cmd)
{
	assert_ptr_equal(context, &executed);
	assert_true(pthread_equal(pthread_self(), main_thread));
	atomic_fetch_add(&executed, 1);
	return (int)cmd->offset;
}

static struct scsi_cmd *commands;
static struct io_threads *threads;

static void submit(unsigned int number, enum order_attribute attribute)
{
	io_threads_submit(threads, &commands[number], attribute);
}

static int setup(void **state)
{
	(void)state;
	main_thread = pthread_self();
	completed = 0;
	batches = 0;
	refuse_to_watch = 0;
	events_of_threads.fd = -1;
	timer.fd = -1;
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

static void start_with(unsigned int count, io_execute *on_threads)
{
	const struct io_work work = { .execute = on_threads,
				      .perform = perform,
				      .context = &executed };
	struct error_text error;

	assert_int_equal(io_threads_start(count, &work, &threads, &error), 0);
}

static void start(unsigned int count)
{
	start_with(count, execute);
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
	submit(0, ORDER_SIMPLE);
	assert_true(cmd_async(&commands[0]));
	turn();
	assert_each_completed_once(1);
	assert_int_equal(last_result, SAM_STAT_CHECK_CONDITION);
	io_threads_stop(threads);
	assert_int_equal(events_of_threads.fd, -1);
	assert_int_equal(timer.fd, -1);
}

static void test_many_commands_on_many_threads_complete_once_each(void **state)
{
	(void)state;
	start(4);
	for (unsigned int i = 0; i < COMMANDS; i++)
		submit(i, ORDER_SIMPLE);
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
		submit(i, ORDER_SIMPLE);
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

/* Its first command holds a thread until it may execute. */
static void start_in_order(unsigned int count, enum order_attribute first)
{
	atomic_store(&may_execute, false);
	for (size_t i = 0; i < 8; i++)
		atomic_store(&order[i], NULL);
	start_with(count, execute_in_order);
	submit(0, first);
	while (!atomic_load(&order[0]))
		sched_yield();
}

static void test_head_of_queue_overtakes_what_has_not_begun(void **state)
{
	(void)state;
	start_in_order(1, ORDER_SIMPLE);
	submit(1, ORDER_SIMPLE);
	submit(2, ORDER_SIMPLE);
	submit(3, ORDER_HEAD_OF_QUEUE);
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_each_completed_once(4);
	assert_ptr_equal(order[1], &commands[3]);
	assert_ptr_equal(order[2], &commands[1]);
	assert_ptr_equal(order[3], &commands[2]);
}

static void test_nothing_begins_beside_an_ordered_command_but_head_of_queue(void **state)
{
	(void)state;
	start_in_order(4, ORDER_ORDERED);
	submit(1, ORDER_SIMPLE);
	submit(2, ORDER_SIMPLE);
	submit(3, ORDER_ORDERED);
	for (unsigned int i = 0; i < 1000; i++)
		sched_yield();
	/* The first one has begun and nothing else. */
	assert_ptr_equal(order[0], &commands[0]);
	submit(4, ORDER_HEAD_OF_QUEUE);
	while (atomic_load(&order[0]) == &commands[0])
		sched_yield();
	assert_ptr_equal(order[0], &commands[4]);
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_each_completed_once(5);
}

static atomic_uint begun;

/* Three of those with `offset` 1 end when three have begun. */
static void execute_together(void *context, struct scsi_cmd *cmd)
{
	if (cmd->offset == 1) {
		unsigned int together = atomic_fetch_add(&begun, 1) / 3 * 3 + 3;

		while (atomic_load(&begun) < together)
			sched_yield();
	}
	execute(context, cmd);
}

static void test_what_an_ordered_command_held_up_begins_on_all_threads(void **state)
{
	(void)state;
	atomic_store(&begun, 0);
	start_with(3, execute_together);
	for (unsigned int round = 1; round <= 50; round++) {
		atomic_store(&may_execute, false);
		submit(0, ORDER_ORDERED);
		for (unsigned int i = 1; i <= 3; i++) {
			commands[i].offset = 1;
			submit(i, ORDER_SIMPLE);
		}
		/* Threads without work have seen that there is none. */
		for (unsigned int i = 0; i < 1000; i++)
			sched_yield();
		atomic_store(&may_execute, true);
		while (completed < 4 * round)
			turn();
	}
	io_threads_stop(threads);
}

/* The initiator's task management function, as tgtd notes it in its commands. */
static struct mgmt_req abort_task;

static void abort_by_initiator(unsigned int number)
{
	abort_task = (struct mgmt_req){ .function = ABORT_TASK, .busy = 1 };
	__atomic_store_n(&commands[number].mreq, &abort_task, __ATOMIC_RELEASE);
}

static void test_an_aborted_command_that_has_not_begun_is_not_executed(void **state)
{
	(void)state;
	abort_by_initiator(0);
	start(1);
	submit(0, ORDER_SIMPLE);
	turn();
	assert_int_equal(completed, 1);
	assert_int_equal(atomic_load(&executed), 0);
	assert_int_equal(last_result, SAM_STAT_TASK_ABORTED);
	io_threads_stop(threads);
}

static void test_an_aborted_command_does_not_wait_for_its_turn(void **state)
{
	(void)state;
	start_in_order(2, ORDER_SIMPLE);
	submit(1, ORDER_ORDERED);
	submit(2, ORDER_SIMPLE);
	tick();
	assert_int_equal(completed, 0);
	for (unsigned int i = 0; i < 1000; i++)
		sched_yield();
	abort_by_initiator(1);
	tick();
	assert_int_equal(completed, 1);
	assert_int_equal(commands[1].tag, 1);
	assert_int_equal(last_result, SAM_STAT_TASK_ABORTED);
	/* It existed, whatever tgtd thinks of commands that it has handed over. */
	assert_int_equal(abort_task.function, ABORT_TASK_SET);
	/* What waited for it begins. */
	while (atomic_load(&order[0]) == &commands[0])
		sched_yield();
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_int_equal(completed, 3);
	assert_int_equal(atomic_load(&executed), 2);
}

static void test_a_command_that_is_aborted_when_it_has_begun_does_not_exist_any_more(void **state)
{
	(void)state;
	start_in_order(1, ORDER_SIMPLE);
	abort_by_initiator(0);
	tick();
	assert_int_equal(completed, 0);
	atomic_store(&may_execute, true);
	turn();
	assert_int_equal(last_result, SAM_STAT_CHECK_CONDITION);
	assert_int_equal(abort_task.function, ABORT_TASK);
	io_threads_stop(threads);
}

/* ---- commands of the main thread ---- */

static void test_what_the_main_thread_performs_is_performed_at_once_in_its_turn(void **state)
{
	(void)state;
	start_in_order(1, ORDER_SIMPLE);
	commands[1].offset = SAM_STAT_BUSY;
	assert_int_equal(io_threads_perform(threads, &commands[1], ORDER_SIMPLE), SAM_STAT_BUSY);
	assert_int_equal(io_threads_perform(threads, &commands[1], ORDER_HEAD_OF_QUEUE),
			 SAM_STAT_BUSY);
	assert_false(cmd_async(&commands[1]));
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_int_equal(completed, 1);
	assert_int_equal(atomic_load(&executed), 3);
}

static void test_what_the_main_thread_performs_waits_for_its_turn(void **state)
{
	(void)state;
	start_in_order(2, ORDER_SIMPLE);
	commands[1].offset = SAM_STAT_BUSY;
	assert_int_equal(io_threads_perform(threads, &commands[1], ORDER_ORDERED), SAM_STAT_GOOD);
	assert_true(cmd_async(&commands[1]));
	submit(2, ORDER_SIMPLE);
	assert_int_equal(io_threads_perform(threads, &commands[3], ORDER_SIMPLE), SAM_STAT_GOOD);
	assert_int_equal(io_threads_perform(threads, &commands[4], ORDER_SIMPLE), SAM_STAT_GOOD);
	abort_by_initiator(4);
	tick();
	assert_int_equal(completed, 1);
	assert_int_equal(commands[4].result, SAM_STAT_TASK_ABORTED);
	atomic_store(&may_execute, true);
	while (completed < 5)
		turn();
	assert_int_equal(commands[1].result, SAM_STAT_BUSY);
	assert_int_equal(commands[3].result, SAM_STAT_GOOD);
	assert_int_equal(atomic_load(&executed), 4);
	io_threads_stop(threads);
}

static void test_a_stop_performs_what_waits_for_its_turn(void **state)
{
	(void)state;
	start_in_order(2, ORDER_SIMPLE);
	for (unsigned int i = 1; i < 8; i++) {
		if (i % 2)
			io_threads_perform(threads, &commands[i], ORDER_ORDERED);
		else
			submit(i, ORDER_ORDERED);
	}
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_each_completed_once(8);
}

/* ---- attempts on the main thread ---- */

/* Commands with `offset` 1 end at once, others have to wait for something. */
static bool attempt(void *context, struct scsi_cmd *cmd, struct nand_stage *stage)
{
	assert_null(stage);
	assert_ptr_equal(context, &executed);
	assert_true(pthread_equal(pthread_self(), main_thread));
	if (cmd->offset != 1)
		return false;
	scsi_set_result(cmd, SAM_STAT_BUSY);
	return true;
}

static void start_with_attempts(unsigned int count, io_execute *on_threads, io_attempt *attempts)
{
	const struct io_work work = {
		.execute = on_threads, .attempt = attempts, .perform = perform, .context = &executed
	};
	struct error_text error;

	assert_int_equal(io_threads_start(count, &work, &threads, &error), 0);
}

static void test_what_need_not_wait_ends_at_once(void **state)
{
	(void)state;
	start_with_attempts(1, execute, attempt);
	commands[0].offset = 1;
	assert_int_equal(io_threads_submit(threads, &commands[0], ORDER_SIMPLE), SAM_STAT_BUSY);
	assert_false(cmd_async(&commands[0]));
	assert_true(io_threads_are_idle(threads));
	/* Not even an ORDERED one waits for it. */
	assert_int_equal(io_threads_submit(threads, &commands[0], ORDER_ORDERED), SAM_STAT_BUSY);
	assert_int_equal(io_threads_submit(threads, &commands[1], ORDER_SIMPLE), SAM_STAT_GOOD);
	assert_true(cmd_async(&commands[1]));
	turn();
	assert_int_equal(completed, 1);
	assert_int_equal(commands[1].result, SAM_STAT_CHECK_CONDITION);
	assert_int_equal(atomic_load(&executed), 1);
	io_threads_stop(threads);
}

static void test_what_waits_for_its_turn_is_not_tried(void **state)
{
	(void)state;
	atomic_store(&may_execute, false);
	start_with_attempts(2, execute, attempt);
	submit(0, ORDER_ORDERED);
	commands[1].offset = 1;
	assert_int_equal(io_threads_submit(threads, &commands[1], ORDER_SIMPLE), SAM_STAT_GOOD);
	assert_true(cmd_async(&commands[1]));
	atomic_store(&may_execute, true);
	while (completed < 2)
		turn();
	assert_each_completed_once(2);
	io_threads_stop(threads);
}

/* ---- task management: command 0 manages the others ---- */

/* What the manager is to do, and what came of it. */
static struct task_choice choice;
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

/* Numbered 5 and 6, as nexus.h has them. */
static struct it_nexus sessions[] = { { .ctime = -5 }, { .ctime = -6 } };

static void begin_managing(unsigned int count)
{
	atomic_store(&may_execute, false);
	atomic_store(&has_managed, false);
	atomic_store(&order[0], NULL);
	found_count = 0;
	choice = (struct task_choice){ .nexus = 5 };
	for (unsigned int i = 0; i < 8; i++) {
		commands[i].it_nexus = &sessions[0];
		commands[i].state = 0;
		commands[i].result = -1;
	}
	start_with(count, execute_or_manage);
}

/* Occupies one thread. */
static void occupy(struct scsi_cmd *cmd)
{
	io_threads_submit(threads, cmd, ORDER_SIMPLE);
	while (atomic_load(&order[0]) != cmd)
		sched_yield();
}

static void submit_manager(struct scsi_cmd *cmd)
{
	cmd->offset = 1;
	io_threads_submit(threads, cmd, ORDER_HEAD_OF_QUEUE);
}

static void test_aborted_tasks_that_have_not_begun_end_without_being_executed(void **state)
{
	(void)state;
	abort_them = true;
	begin_managing(2);
	occupy(&commands[1]);
	occupy(&commands[2]);
	for (unsigned int i = 3; i < 6; i++)
		submit(i, i == 3 ? ORDER_ORDERED : ORDER_SIMPLE);
	commands[5].it_nexus = &sessions[1];
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
	begin_managing(2);
	occupy(&commands[1]);
	submit_manager(&commands[0]);
	while (!atomic_load(&has_managed))
		sched_yield();
	/* It has done all it can, and is not done. */
	assert_int_equal(chosen, 1);
	for (unsigned int i = 0; i < 1000; i++)
		sched_yield();
	assert_int_equal(commands[0].tag, 0);
	assert_int_equal(
		poll(&(struct pollfd){ .fd = events_of_threads.fd, .events = POLLIN }, 1, 0), 0);
	atomic_store(&may_execute, true);
	while (completed < 2)
		turn();
	assert_int_equal(commands[0].result, SAM_STAT_GOOD);
	assert_int_equal(commands[1].result, SAM_STAT_CHECK_CONDITION);
	io_threads_stop(threads);
}

/* Command 0 manages while the main thread tries command 1, which has to wait or not. */
static atomic_bool is_trying;

static void manage_attempt(void *context, struct scsi_cmd *cmd)
{
	assert_ptr_equal(cmd, &commands[0]);
	while (!atomic_load(&is_trying))
		sched_yield();
	execute_or_manage(context, cmd);
}

static bool attempt_beside_manager(void *context, struct scsi_cmd *cmd, struct nand_stage *stage)
{
	if (cmd == &commands[0])
		return false;
	atomic_store(&is_trying, true);
	while (!atomic_load(&has_managed))
		sched_yield();
	return cmd->state == 1 ? false : attempt(context, cmd, stage);
}

static void try_beside_manager(bool has_to_wait)
{
	atomic_store(&is_trying, false);
	atomic_store(&has_managed, false);
	found_count = 0;
	choice = (struct task_choice){ .nexus = 5 };
	commands[0].it_nexus = commands[1].it_nexus = &sessions[0];
	commands[1].state = has_to_wait;
	commands[1].offset = 1;
	start_with_attempts(1, manage_attempt, attempt_beside_manager);
	submit_manager(&commands[0]);
}

static void test_who_aborts_an_attempt_finds_it(void **state)
{
	(void)state;
	abort_them = true;
	try_beside_manager(false);
	assert_int_equal(io_threads_submit(threads, &commands[1], ORDER_HEAD_OF_QUEUE),
			 SAM_STAT_BUSY);
	turn();
	assert_int_equal(chosen, 1);
	assert_int_equal(commands[0].result, SAM_STAT_GOOD);
	io_threads_stop(threads);
}

static void test_an_aborted_attempt_that_has_to_wait_does_not_begin_again(void **state)
{
	(void)state;
	abort_them = true;
	try_beside_manager(true);
	assert_int_equal(io_threads_submit(threads, &commands[1], ORDER_HEAD_OF_QUEUE),
			 SAM_STAT_TASK_ABORTED);
	assert_false(cmd_async(&commands[1]));
	turn();
	assert_int_equal(chosen, 1);
	assert_true(io_threads_are_idle(threads));
	io_threads_stop(threads);
}

static void test_queries_count_and_neither_end_nor_wait(void **state)
{
	(void)state;
	abort_them = false;
	begin_managing(2);
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
	submit(3, ORDER_SIMPLE);
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
		begin_managing(4);
		found_count = 0;
		for (unsigned int i = 0; i < 4; i++)
			submit_manager(&commands[i]);
		while (completed < 4)
			turn();
		io_threads_stop(threads);
	}
}

static void test_what_waits_for_its_turn_is_aborted_before_it(void **state)
{
	(void)state;
	abort_them = true;
	begin_managing(2);
	occupy(&commands[1]);
	submit(2, ORDER_ORDERED);
	submit(3, ORDER_SIMPLE);
	submit(4, ORDER_SIMPLE);
	commands[1].it_nexus = &sessions[1];
	commands[3].it_nexus = &sessions[1];
	submit_manager(&commands[0]);
	while (completed < 3)
		turn();
	assert_int_equal(chosen, 2);
	assert_int_equal(commands[0].result, SAM_STAT_GOOD);
	assert_int_equal(commands[2].result, SAM_STAT_TASK_ABORTED);
	assert_int_equal(commands[4].result, SAM_STAT_TASK_ABORTED);
	/* Nothing is in front of the other session's any more. */
	while (atomic_load(&order[0]) != &commands[3])
		sched_yield();
	atomic_store(&may_execute, true);
	while (completed < 5)
		turn();
	assert_int_equal(commands[3].result, SAM_STAT_CHECK_CONDITION);
	io_threads_stop(threads);
}

static void test_a_stop_finishes_what_is_queued(void **state)
{
	(void)state;
	atomic_store(&may_execute, false);
	start(2);
	for (unsigned int i = 0; i < 100; i++)
		submit(i, ORDER_SIMPLE);
	assert_int_equal(completed, 0);
	atomic_store(&may_execute, true);
	io_threads_stop(threads);
	assert_each_completed_once(100);
}

static void test_threads_that_tgtd_cannot_watch_do_not_start(void **state)
{
	const struct io_work work = { .execute = execute, .perform = perform };
	struct error_text error;

	(void)state;
	for (int refused = 1; refused <= 2; refused++) {
		refuse_to_watch = refused;
		assert_int_equal(io_threads_start(2, &work, &threads, &error), -ENOMEM);
		assert_string_equal(error.text, "tgtd could not watch one more descriptor");
		assert_int_equal(events_of_threads.fd, -1);
	}
}

#define prepared(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		prepared(test_a_command_comes_back_with_its_status),
		prepared(test_many_commands_on_many_threads_complete_once_each),
		prepared(test_commands_that_are_done_together_complete_in_one_batch),
		prepared(test_head_of_queue_overtakes_what_has_not_begun),
		prepared(test_nothing_begins_beside_an_ordered_command_but_head_of_queue),
		prepared(test_what_an_ordered_command_held_up_begins_on_all_threads),
		prepared(test_an_aborted_command_that_has_not_begun_is_not_executed),
		prepared(test_an_aborted_command_does_not_wait_for_its_turn),
		prepared(test_a_command_that_is_aborted_when_it_has_begun_does_not_exist_any_more),
		prepared(test_what_the_main_thread_performs_is_performed_at_once_in_its_turn),
		prepared(test_what_the_main_thread_performs_waits_for_its_turn),
		prepared(test_a_stop_performs_what_waits_for_its_turn),
		prepared(test_what_need_not_wait_ends_at_once),
		prepared(test_what_waits_for_its_turn_is_not_tried),
		prepared(test_who_aborts_an_attempt_finds_it),
		prepared(test_an_aborted_attempt_that_has_to_wait_does_not_begin_again),
		prepared(test_aborted_tasks_that_have_not_begun_end_without_being_executed),
		prepared(test_who_aborts_is_answered_behind_what_had_begun),
		prepared(test_queries_count_and_neither_end_nor_wait),
		prepared(test_two_that_abort_each_other_both_end),
		prepared(test_what_waits_for_its_turn_is_aborted_before_it),
		prepared(test_a_stop_finishes_what_is_queued),
		prepared(test_threads_that_tgtd_cannot_watch_do_not_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
