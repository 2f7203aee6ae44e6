/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Task management requests that take each other's places. The test plays tgtd, as its target.c does
 * it: one request a command, counted down by the command's end.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/requests.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Want the others before them. */
#include "driver.h"
#include "target.h"

enum { COMMANDS = 8, REQUESTS = 64, ROUNDS = 2000 };

static int results[REQUESTS + 1]; /* by request: what it was answered; 1 = not yet */
static int answered;

static int answer(struct mgmt_req *request)
{
	assert_in_range(request->mid, 1, REQUESTS);
	assert_int_equal(results[request->mid], 1);
	assert_int_equal(request->busy, 0);
	results[request->mid] = request->result;
	answered++;
	return 0;
}

static struct tgt_driver driver = { .mgmt_end_notify = answer };
struct tgt_driver *tgt_drivers[] = { &driver, NULL };

static struct target target;
static struct it_nexus nexus;
static struct scsi_lu watched, other;
static struct scsi_cmd commands[COMMANDS];
static unsigned int ended;

static void stock_done(struct target *of, struct scsi_cmd *cmd)
{
	assert_ptr_equal(of, &target);
	list_del(&cmd->c_hlist);
	ended++;
}

static void begin(int number, struct scsi_lu *lu)
{
	commands[number] = (struct scsi_cmd){ .c_target = &target, .dev = lu };
	list_add_tail(&commands[number].c_hlist, &nexus.cmd_list);
}

static void end(int number)
{
	struct scsi_cmd *cmd = &commands[number];
	struct mgmt_req *request = cmd->mreq;

	if (request && !--request->busy) {
		request->result = 0;
		answer(request);
		free(request);
	}
	cmd->dev->cmd_done(&target, cmd);
}

/* A request for these commands (bits) comes, and tgtd acts on it. */
static void ask(int id, unsigned int numbers)
{
	struct mgmt_req *request = calloc(1, sizeof(*request));

	requests_arrive();
	request->mid = (uint64_t)id;
	results[id] = 1;
	for (int number = 0; number < COMMANDS; number++) {
		if (!(numbers >> number & 1))
			continue;
		commands[number].mreq = request;
		request->busy++;
	}
}

static int setup(void **state)
{
	(void)state;
	memset(results, 0, sizeof(results));
	answered = 0;
	ended = 0;
	INIT_LIST_HEAD(&driver.target_list);
	INIT_LIST_HEAD(&target.it_nexus_list);
	INIT_LIST_HEAD(&nexus.cmd_list);
	list_add_tail(&target.lld_siblings, &driver.target_list);
	list_add_tail(&nexus.nexus_siblings, &target.it_nexus_list);
	watched = other = (struct scsi_lu){ .cmd_done = stock_done };
	requests_watch(&watched);
	for (int number = 0; number < COMMANDS; number++)
		begin(number, &watched);
	return 0;
}

static void test_a_request_that_another_takes_the_place_of_is_rejected(void **state)
{
	(void)state;
	ask(1, 1);
	ask(2, 1);
	assert_int_equal(answered, 0);
	requests_look();
	assert_int_equal(results[1], -ECANCELED);
	assert_int_equal(results[2], 1);
	end(0);
	assert_int_equal(results[2], 0);
	assert_int_equal(ended, 1);
}

static void test_that_the_command_ends_at_once_changes_nothing(void **state)
{
	(void)state;
	ask(1, 1);
	ask(2, 1);
	ask(3, 1);
	end(0);
	assert_int_equal(results[1], -ECANCELED);
	assert_int_equal(results[2], -ECANCELED);
	assert_int_equal(results[3], 0);
}

static void test_a_request_keeps_the_places_that_it_has_not_lost(void **state)
{
	(void)state;
	ask(1, 7);
	ask(2, 1);
	ask(3, 2);
	requests_look();
	assert_int_equal(answered, 0);
	end(0);
	end(1);
	assert_int_equal(results[1], 1);
	end(2);
	assert_int_equal(results[1], 0);
	assert_int_equal(answered, 3);
}

/* Its commands end without the module's knowledge. */
static void test_a_request_for_a_unit_of_somebody_else_too_is_left_alone(void **state)
{
	(void)state;
	end(0);
	begin(0, &other);
	ask(1, 3);
	requests_look();
	requests_look();
	end(0);
	requests_look();
	assert_int_equal(answered, 0);
	end(1);
	requests_look();
	assert_int_equal(results[1], 0);
	assert_int_equal(answered, 1);
}

static void test_every_request_is_answered_once_in_whatever_order(void **state)
{
	uint32_t seed = 1;
	int asked = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		seed = seed * 1103515245 + 12345;
		unsigned int dice = seed >> 16;
		int number = (int)(dice >> 4 & 7);

		if (dice % 4 == 0) {
			end(number);
			begin(number, &watched);
		} else if (dice % 4 == 1) {
			requests_look();
		} else if (asked < REQUESTS && dice >> 8) {
			ask(++asked, dice >> 8 & 0xff ? dice >> 8 & 0xff : 1);
		}
	}
	assert_int_equal(asked, REQUESTS);
	for (int number = 0; number < COMMANDS; number++)
		end(number);
	assert_int_equal(answered, REQUESTS);
	for (int id = 1; id <= REQUESTS; id++)
		assert_int_not_equal(results[id], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_request_that_another_takes_the_place_of_is_rejected,
				       setup),
		cmocka_unit_test_setup(test_that_the_command_ends_at_once_changes_nothing, setup),
		cmocka_unit_test_setup(test_a_request_keeps_the_places_that_it_has_not_lost, setup),
		cmocka_unit_test_setup(test_a_request_for_a_unit_of_somebody_else_too_is_left_alone,
				       setup),
		cmocka_unit_test_setup(test_every_request_is_answered_once_in_whatever_order,
				       setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
