/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Several clients, whose commands begin in the order of daemon/module/order.h, as its unit's
 * threads would begin them: a few are under way at once, each takes effect at some moment between
 * its begin and its end, and is aborted by the transport or by a command now and then. The rules of
 * SAM are judged here by what has arrived, begun and ended, not by order.c's counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/order.h"
#include "tests/sim/commands.h"
#include "tests/sim/judge.h"

enum { TASKS_MAX = 12, WORKERS = 3 };

enum state {
	ARRIVED,
	BEGUN,    /* a worker has it */
	EXECUTED, /* but not answered */
	ENDED,
	TAKEN_OUT, /* aborted before it began */
};

struct task {
	struct order_task place; /* first */
	struct sim_session *session;
	struct sim_command command;
	uint64_t tag;
	enum order_attribute attribute;
	enum state state;
	bool aborted; /* somebody has asked for that */
};

/* The tasks of a turn, by their arrival. */
struct schedule {
	struct sim_world *world;
	struct order order;
	struct task tasks[TASKS_MAX];
	uint32_t count, at_work;
	struct task *caller; /* executes a task management function */
};

static struct schedule schedule;

/* ---- what must hold ---- */

static bool is_under_way(const struct task *task)
{
	return task->state == ARRIVED || task->state == BEGUN || task->state == EXECUTED;
}

/* Of those that came before it, which would keep a task from beginning? */
static bool must_wait_for(const struct task *task, const struct task *earlier)
{
	if (!is_under_way(earlier) || task->attribute == ORDER_HEAD_OF_QUEUE)
		return false;
	return task->attribute == ORDER_ORDERED || earlier->attribute != ORDER_SIMPLE;
}

/* The task begins now: it may. */
static void check_begin(const struct task *task)
{
	assert_int_equal(task->state, ARRIVED);
	if (task->aborted)
		fail_msg("task %llu begins, but was aborted", (unsigned long long)task->tag);
	for (const struct task *other = schedule.tasks; other < schedule.tasks + schedule.count;
	     other++) {
		if (other < task && must_wait_for(task, other))
			fail_msg("task %llu begins before task %llu has ended",
				 (unsigned long long)task->tag, (unsigned long long)other->tag);
		if (other->state == ARRIVED && other->attribute == ORDER_HEAD_OF_QUEUE &&
		    task->attribute != ORDER_HEAD_OF_QUEUE)
			fail_msg("task %llu begins before HEAD OF QUEUE task %llu",
				 (unsigned long long)task->tag, (unsigned long long)other->tag);
	}
}

/* ---- aborting ---- */

/* An order_visitor. */
static bool take_out(void *context, struct order_task *place)
{
	struct task *task = (struct task *)(void *)place;

	(void)context;
	assert_int_equal(task->state, ARRIVED);
	if (!task->aborted)
		return false;
	task->state = TAKEN_OUT;
	schedule.world->report->counts.aborted++;
	return true;
}

/* Whoever was to be aborted and had not begun is gone. */
static void take_out_aborted(void)
{
	order_visit(&schedule.order, take_out, NULL);
	for (uint32_t n = 0; n < schedule.count; n++)
		assert_false(schedule.tasks[n].aborted && schedule.tasks[n].state == ARRIVED);
}

static void abort_one(struct model_run *run)
{
	struct task *task;

	if (!schedule.count)
		return;
	task = &schedule.tasks[model_run_below(run, schedule.count)];
	task->aborted = is_under_way(task);
	take_out_aborted();
}

static bool is_chosen(const struct task *task, const struct osd_task_choice *choice)
{
	return is_under_way(task) && task != schedule.caller &&
	       (choice->every_nexus || task->session->nexus == choice->nexus) &&
	       (!choice->one || task->tag == choice->tag);
}

/* As the unit's threads do it: osd_task_set.choose. */
static uint32_t choose(void *context, const struct osd_task_choice *choice, bool abort,
		       osd_task_found *found, void *found_context)
{
	uint32_t count = 0;

	(void)context;
	for (uint32_t n = 0; n < schedule.count; n++) {
		struct task *task = &schedule.tasks[n];

		if (!is_chosen(task, choice))
			continue;
		count++;
		task->aborted = task->aborted || abort;
		if (found)
			found(found_context, task->session->nexus);
	}
	if (abort)
		take_out_aborted();
	return count;
}

/* What a function should find is found before it is performed. */
static bool finds_any(const struct task *caller)
{
	const struct sim_command *command = &caller->command;
	const struct osd_task_choice choice = { .nexus = caller->session->nexus,
						.one = command->function == OSD_QUERY_TASK,
						.tag = command->tag };

	for (uint32_t n = 0; n < schedule.count; n++)
		if (is_chosen(&schedule.tasks[n], &choice))
			return true;
	return false;
}

static void check_response(const struct task *task, bool found)
{
	bool asks = task->command.function == OSD_QUERY_TASK ||
		    task->command.function == OSD_QUERY_TASK_SET;

	assert_int_equal(sim_command_response(),
			 asks && found ? OSD_TASK_FUNCTION_SUCCEEDED : OSD_TASK_FUNCTION_COMPLETE);
}

/* ---- the life of a task ---- */

static void say(const struct task *task, const char *how)
{
	struct sim_world *world = schedule.world;
	char text[120];

	sim_command_print(&task->command, text, sizeof(text));
	sim_say(world, "session %d, task %llu%s: %s", (int)(task->session - world->sessions),
		(unsigned long long)task->tag, how, text);
}

static void execute(struct task *task)
{
	struct sim_world *world = schedule.world;
	bool tasks = task->command.kind == SIM_TASKS, found;

	task->state = EXECUTED;
	if (!sim_judge_fits(world, &task->command))
		return;
	say(task, "");
	schedule.caller = task;
	found = tasks && finds_any(task);
	sim_command_execute(world, task->session, &task->command, false);
	schedule.caller = NULL;
	if (!tasks)
		return;
	world->report->counts.task_functions++;
	if (!world->unreadable)
		check_response(task, found);
}

/* Begun on arrival, and attempted there: it has ended, or is put back as if it had just arrived. */
static void attempt(struct task *task)
{
	struct sim_world *world = schedule.world;

	check_begin(task);
	schedule.at_work++;
	if (task->command.kind != SIM_TASKS && sim_judge_fits(world, &task->command)) {
		task->state = BEGUN;
		say(task, " at once");
		if (sim_command_execute(world, task->session, &task->command, true)) {
			task->state = EXECUTED;
			return;
		}
		task->state = ARRIVED;
	}
	schedule.at_work--;
	order_put_back(&schedule.order, &task->place);
}

static void arrive(struct model_run *run)
{
	static const enum order_attribute attributes[] = { ORDER_SIMPLE,  ORDER_SIMPLE,
							   ORDER_SIMPLE,  ORDER_SIMPLE,
							   ORDER_SIMPLE,  ORDER_ORDERED,
							   ORDER_ORDERED, ORDER_HEAD_OF_QUEUE };
	struct sim_world *world = schedule.world;
	struct task *task = &schedule.tasks[schedule.count];

	if (schedule.count == TASKS_MAX)
		return;
	*task = (struct task){
		.session = &world->sessions[model_run_below(run, SIM_SESSIONS)],
		.tag = run->step * TASKS_MAX + schedule.count,
		.attribute = attributes[model_run_below(run, 8)],
	};
	sim_command_make(world, &task->command);
	task->command.tag = schedule.count
				    ? schedule.tasks[model_run_below(run, schedule.count)].tag
				    : task->tag;
	schedule.count++;
	if (one_in(run, 2) && schedule.at_work < WORKERS &&
	    order_begin_at_once(&schedule.order, &task->place, task->attribute, 0))
		attempt(task);
	else if (!order_arrive(&schedule.order, &task->place, task->attribute, 0))
		world->report->counts.held_back++;
}

static void begin_next(void)
{
	struct task *task;

	if (schedule.at_work == WORKERS)
		return;
	task = (struct task *)(void *)order_take(&schedule.order);
	if (!task)
		return;
	check_begin(task);
	task->state = BEGUN;
	schedule.at_work++;
}

/* A worker goes on with one of those that it has. */
static void go_on(struct model_run *run)
{
	uint32_t start = (uint32_t)model_run_below(run, schedule.count + 1);

	for (uint32_t n = 0; n < schedule.count; n++) {
		struct task *task = &schedule.tasks[(start + n) % schedule.count];

		if (task->state == BEGUN) {
			execute(task);
			return;
		}
		if (task->state == EXECUTED) {
			task->state = ENDED;
			schedule.at_work--;
			order_end(&schedule.order, &task->place);
			return;
		}
	}
}

static void act(struct model_run *run)
{
	switch (model_run_below(run, 8)) {
	case 0:
	case 1:
	case 2:
		arrive(run);
		break;
	case 3:
	case 4:
		begin_next();
		break;
	case 5:
		if (one_in(run, 6))
			abort_one(run);
		break;
	default:
		go_on(run);
		break;
	}
}

/* Every task that has not ended does. */
static void drain(struct model_run *run)
{
	while (!order_is_empty(&schedule.order)) {
		if (!schedule.at_work && !order_has_next(&schedule.order))
			fail_msg("tasks wait, but none is at work");
		begin_next();
		go_on(run);
	}
	for (uint32_t n = 0; n < schedule.count; n++)
		assert_false(is_under_way(&schedule.tasks[n]));
}

void sim_clients_turn(struct model_run *run)
{
	memset(&schedule, 0, sizeof(schedule));
	schedule.world = sim_world_of(run);
	order_init(&schedule.order);
	run->model.bypass = false;
	sim_security_turn(schedule.world);
	for (uint64_t acts = 4 + model_run_below(run, 28); acts > 0; acts--)
		act(run);
	drain(run);
}

void sim_clients_begin(struct sim_world *world)
{
	static const struct osd_task_set tasks = { .choose = choose };

	for (int n = 0; n < SIM_SESSIONS; n++)
		world->sessions[n] =
			(struct sim_session){ .nexus = ++world->last_nexus, .to_be_told = true };
	osd_device_set_tasks(world->device, &tasks);
	world->security.is_new = true;
}
