/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What every logical unit has, whatever its kind: a kind of the test's own stands in the place of
 * OSD, and the functions of tgtd that are called are played by the test.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/unit.h"
#include "tests/daemon/device_image.h"

/* Want the others before them. */
#include "driver.h"
#include "target.h"

/* ---- tgtd's part ---- */

static struct watched {
	int fd; /* 0: nothing */
	event_handler_t handler;
	void *data;
} events[2];
static int refuse_to_watch; /* the n-th; 0: none */
static pthread_t main_thread;
static unsigned int completed;
static int last_result;

int tgt_event_add(int fd, int wanted, event_handler_t handler, void *data)
{
	(void)wanted;
	if (refuse_to_watch && --refuse_to_watch == 0)
		return -ENOMEM;
	events[events[0].fd != 0] = (struct watched){ fd, handler, data };
	return 0;
}

void tgt_event_del(int fd)
{
	for (size_t i = 0; i < 2; i++)
		if (events[i].fd == fd)
			events[i] = (struct watched){ 0 };
}

void target_cmd_io_done(struct scsi_cmd *cmd, int result)
{
	(void)cmd;
	assert_true(pthread_equal(pthread_self(), main_thread));
	completed++;
	last_result = result;
}

static unsigned int forgotten; /* unit attentions of a login */

/* No command has a registration that is looked for. */
struct iscsi_session *session_lookup_by_tsih(uint16_t tsih);
struct iscsi_session *session_lookup_by_tsih(uint16_t tsih)
{
	(void)tsih;
	return NULL;
}

void ua_sense_clear(struct it_nexus_lu_info *info, uint16_t asc)
{
	(void)info;
	assert_int_equal(asc, ASC_POWERON_RESET);
	forgotten++;
}

static uint8_t last_key;

void sense_data_build(struct scsi_cmd *cmd, uint8_t key, uint16_t asc)
{
	(void)asc;
	cmd->sense_len = 18;
	last_key = key;
}

int target_cmd_perform(int tid, struct scsi_cmd *cmd)
{
	(void)tid;
	(void)cmd;
	return 0;
}

struct tgt_driver *tgt_drivers[] = { NULL };

/* As tgtd's own function of a unit: hands the command to that of its operation code. */
static int stock_arrive(int tid, struct scsi_cmd *cmd)
{
	(void)tid;
	assert_int_equal(cmd->attribute, MSG_SIMPLE_TAG);
	return cmd->dev->dev_type_template.ops[cmd->scb[0]].cmd_perform(7, cmd);
}

static unsigned int stock_performed;

static int stock_perform(int host_no, struct scsi_cmd *cmd)
{
	(void)cmd;
	assert_int_equal(host_no, 7);
	stock_performed++;
	return SAM_STAT_GOOD;
}

/* tgtd's function of READ(10) on a disk: hands it to the backing store. */
static int stock_submit(int host_no, struct scsi_cmd *cmd)
{
	(void)host_no;
	return unit_submit(cmd);
}

/* One turn of tgtd's event loop. */
static void turn(void)
{
	struct pollfd event = { .fd = events[0].fd, .events = POLLIN };

	assert_true(poll(&event, 1, -1) == 1);
	events[0].handler(event.fd, event.revents, events[0].data);
}

/* ---- a kind of unit ---- */

static unsigned int opened, closed, executed;
static int opening_fails;
static struct engine *engine_seen;

#define PLAIN_BYTES UINT64_C(0x123400) /* neither the device's nor the engine's */

static int open_plain(struct unit *unit, uint64_t *bytes, struct error_text *error)
{
	opened++;
	assert_null(unit->threads);
	engine_seen = device_engine(unit->device);
	if (opening_fails)
		return error_set(error, opening_fails, "the kind can't be opened");
	unit->state = &opened;
	*bytes = PLAIN_BYTES;
	return 0;
}

static void close_plain(struct unit *unit)
{
	closed++;
	assert_ptr_equal(unit->state, &opened);
	assert_null(unit->threads);
	assert_non_null(device_engine(unit->device));
	unit->state = NULL;
}

static void execute_plain(struct unit *unit, struct scsi_cmd *cmd)
{
	assert_ptr_equal(unit->state, &opened);
	assert_false(pthread_equal(pthread_self(), main_thread));
	__atomic_fetch_add(&executed, 1, __ATOMIC_RELAXED);
	scsi_set_result(cmd, SAM_STAT_BUSY);
}

static int perform_plain(struct unit *unit, struct scsi_cmd *cmd)
{
	assert_ptr_equal(unit->state, &opened);
	assert_true(pthread_equal(pthread_self(), main_thread));
	return cmd->scb[0] == INQUIRY ? SAM_STAT_CONDITION_MET : unit_perform_stock(unit, cmd);
}

static const uint8_t operations[] = { TEST_UNIT_READY, INQUIRY, READ_10 };
static const uint8_t on_threads[] = { READ_10 };

static const struct unit_type plain_type = { "disk", TYPE_DISK, "plain" };
static struct unit_kind plain = {
	.type = &plain_type,
	.operations = operations,
	.operation_count = sizeof(operations),
	.on_threads = on_threads,
	.on_threads_count = sizeof(on_threads),
	.open = open_plain,
	.close = close_plain,
	.execute = execute_plain,
	.perform = perform_plain,
};

/* ---- the unit ---- */

static struct device_image image;
static struct target target;
static struct scsi_lu *lu;
static struct it_nexus nexus = { .host_no = 7 };
static struct it_nexus_lu_info session;
static uint64_t session_number;

static int setup(void **state)
{
	(void)state;
	main_thread = pthread_self();
	memset(events, 0, sizeof(events));
	plain.tells_power_on = true;
	session_number = 3;
	refuse_to_watch = opening_fails = 0;
	completed = forgotten = stock_performed = opened = closed = executed = 0;
	device_image_make(&image);
	INIT_LIST_HEAD(&target.device_list);
	lu = calloc(1, sizeof(*lu) + sizeof(struct unit));
	assert_non_null(lu);
	lu->tgt = &target;
	lu->lun = 1;
	lu->cmd_perform = stock_arrive;
	lu->dev_type_template.type = TYPE_DISK;
	for (size_t i = 0; i < NR_SCSI_OPCODES; i++)
		lu->dev_type_template.ops[i].cmd_perform = stock_perform;
	lu->dev_type_template.ops[READ_10].cmd_perform = stock_submit;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(events[0].fd, 0);
	assert_int_equal(events[1].fd, 0);
	free(lu);
	device_image_remove(&image);
	return 0;
}

static void attach(const char *options)
{
	struct error_text error = { "" };

	if (unit_attach(lu, &plain, options, &error))
		fail_msg("%s", error.text);
}

static void open_unit(const char *options)
{
	struct error_text error = { "" };
	uint64_t bytes = 0;

	attach(options);
	if (unit_open(unit_of(lu), image.path, &bytes, &error))
		fail_msg("%s", error.text);
	assert_true(bytes == PLAIN_BYTES);
}

static void close_unit(void)
{
	assert_int_equal(unit_close(unit_of(lu)), 0);
}

struct command {
	struct scsi_cmd cmd;
	uint8_t cdb[16];
};

static int arrive(struct command *command, uint8_t operation, int attribute)
{
	memset(command, 0, sizeof(*command));
	command->cdb[0] = operation;
	command->cmd.scb = command->cdb;
	command->cmd.scb_len = 10;
	command->cmd.dev = lu;
	command->cmd.dev_id = lu->lun;
	command->cmd.c_target = &target;
	command->cmd.it_nexus = &nexus;
	command->cmd.itn_lu_info = &session;
	command->cmd.cmd_itn_id = session_number;
	command->cmd.attribute = attribute;
	return lu->cmd_perform(1, &command->cmd);
}

static void test_its_own_commands_run_on_threads_and_the_others_on_the_main_thread(void **state)
{
	struct command read, inquiry, ready;

	(void)state;
	open_unit("threads=3");
	assert_int_equal(opened, 1);
	assert_ptr_equal(engine_seen, device_engine(unit_of(lu)->device));
	assert_int_equal(arrive(&read, READ_10, MSG_SIMPLE_TAG), SAM_STAT_GOOD);
	assert_true(cmd_async(&read.cmd));
	while (completed < 1)
		turn();
	assert_int_equal(executed, 1);
	assert_int_equal(last_result, SAM_STAT_BUSY);
	assert_int_equal(arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG), SAM_STAT_CONDITION_MET);
	assert_int_equal(stock_performed, 0);
	assert_int_equal(arrive(&ready, TEST_UNIT_READY, MSG_SIMPLE_TAG), SAM_STAT_GOOD);
	assert_int_equal(stock_performed, 1);
	assert_int_equal(executed, 1);
	close_unit();
	assert_int_equal(closed, 1);
}

static void test_tgtd_sees_simple_commands_only_and_the_order_is_kept(void **state)
{
	struct command read, inquiry;

	(void)state;
	open_unit("threads=1");
	arrive(&read, READ_10, MSG_ORDERED_TAG);
	/* Its turn comes when the ORDERED one has ended. */
	arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG);
	assert_int_equal(read.cmd.attribute, MSG_SIMPLE_TAG);
	while (completed < 2 && cmd_async(&inquiry.cmd))
		turn();
	assert_int_equal(executed, 1);
	close_unit();
}

static void test_the_kind_says_whether_new_sessions_are_told_of_a_power_on(void **state)
{
	struct command inquiry;

	(void)state;
	open_unit(NULL);
	arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG);
	assert_int_equal(forgotten, 0);
	plain.tells_power_on = false;
	session_number = 4;
	arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG);
	arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG);
	/* Of one session, once. */
	assert_int_equal(forgotten, 1);
	close_unit();
}

/* tgtd begins with its numbers anew after 65,535 logins, whoever sent commands to this unit. */
static void test_a_new_session_with_the_number_of_an_old_one_is_new(void **state)
{
	struct command inquiry;

	(void)state;
	plain.tells_power_on = false;
	open_unit(NULL);
	arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG);
	assert_int_equal(forgotten, 1);
	nexus = (struct it_nexus){ .host_no = 7, .ctime = 1000 };
	arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG);
	assert_int_equal(forgotten, 2);
	arrive(&inquiry, INQUIRY, MSG_SIMPLE_TAG);
	assert_int_equal(forgotten, 2);
	close_unit();
}

static void test_a_unit_without_its_image_is_not_ready_and_can_be_opened_again(void **state)
{
	struct command command;
	struct error_text error;
	uint64_t bytes;

	(void)state;
	attach(NULL);
	assert_int_equal(arrive(&command, READ_10, MSG_SIMPLE_TAG), SAM_STAT_CHECK_CONDITION);
	assert_int_equal(last_key, NOT_READY);
	assert_int_equal(arrive(&command, INQUIRY, MSG_SIMPLE_TAG), SAM_STAT_GOOD);
	assert_int_equal(stock_performed, 1);
	close_unit();
	for (int round = 1; round <= 2; round++) {
		assert_int_equal(unit_open(unit_of(lu), image.path, &bytes, &error), 0);
		assert_int_equal(arrive(&command, READ_10, MSG_SIMPLE_TAG), SAM_STAT_GOOD);
		/* What has arrived is executed first. */
		close_unit();
		assert_int_equal(executed, round);
		assert_int_equal(completed, round);
		assert_int_equal(closed, round);
	}
	assert_int_equal(arrive(&command, READ_10, MSG_SIMPLE_TAG), SAM_STAT_CHECK_CONDITION);
}

/* Opening fails, with nothing left open: the image can be opened by others. */
static void assert_open_fails(const char *path, int result, const char *reason)
{
	const struct nand_options nand = { 0 };
	const struct engine_options engine = { 0 };
	struct error_text error = { "" };
	struct device *device;
	uint64_t bytes;

	assert_int_equal(unit_open(unit_of(lu), path, &bytes, &error), result);
	assert_non_null(strstr(error.text, reason));
	assert_null(unit_of(lu)->device);
	assert_null(unit_of(lu)->threads);
	assert_null(unit_of(lu)->state);
	assert_int_equal(device_open(image.path, &nand, &engine, &(struct scrub_options){ 0 },
				     &device, &error),
			 0);
	assert_int_equal(device_close(device), 0);
}

static void test_whatever_fails_while_it_opens_nothing_stays_open(void **state)
{
	(void)state;
	attach("threads=2");
	assert_open_fails("/nonexistent/image", -ENOENT, "/nonexistent/image");
	assert_int_equal(opened, 0);
	opening_fails = -EPERM;
	assert_open_fails(image.path, -EPERM, "the kind can't be opened");
	assert_int_equal(opened, 1);
	assert_int_equal(closed, 0);
	opening_fails = 0;
	for (int nth = 1; nth <= 2; nth++) {
		refuse_to_watch = nth;
		assert_open_fails(image.path, -ENOMEM, "tgtd could not watch");
		assert_int_equal(closed, nth);
	}
}

static void test_wrong_types_and_options_are_refused(void **state)
{
	struct error_text error = { "" };

	(void)state;
	assert_int_equal(unit_attach(lu, &plain, "backend=zoned", &error), -EINVAL);
	assert_string_equal(error.text, "bsopts: option backend: 'zoned' is neither mmap nor file");
	assert_ptr_equal(lu->cmd_perform, stock_arrive);
	lu->dev_type_template.type = TYPE_TAPE;
	assert_int_equal(unit_attach(lu, &plain, NULL, &error), -EINVAL);
	assert_string_equal(error.text, "this backing store serves device type disk");
	assert_ptr_equal(lu->cmd_perform, stock_arrive);
}

static void test_options_get_to_the_device(void **state)
{
	(void)state;
	open_unit("backend=file;onode_cache=100");
	assert_int_equal(unit_of(lu)->options.nand.backend, NAND_BACKEND_FILE);
	close_unit();
}

#define with_unit(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_unit(test_its_own_commands_run_on_threads_and_the_others_on_the_main_thread),
		with_unit(test_tgtd_sees_simple_commands_only_and_the_order_is_kept),
		with_unit(test_the_kind_says_whether_new_sessions_are_told_of_a_power_on),
		with_unit(test_a_new_session_with_the_number_of_an_old_one_is_new),
		with_unit(test_a_unit_without_its_image_is_not_ready_and_can_be_opened_again),
		with_unit(test_whatever_fails_while_it_opens_nothing_stays_open),
		with_unit(test_wrong_types_and_options_are_refused),
		with_unit(test_options_get_to_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
