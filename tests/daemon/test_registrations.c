/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* To which port a registration belongs, with tgtd's sessions and registrations played by the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/module/nexus.h"
#include "daemon/module/registrations.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Wants the others before it. */
#include "target.h"

/* ---- tgtd's part ---- */

enum { SESSIONS = 2 * REGISTRATIONS_MAX };

struct iscsi_session {
	int refcount;
	struct list_head slist, hlist;
	char *initiator, *initiator_alias;
	void *target;
	uint8_t isid[6];
	uint16_t tsih;
};

static struct iscsi_session sessions[SESSIONS]; /* by number */

struct iscsi_session *session_lookup_by_tsih(uint16_t tsih);
struct iscsi_session *session_lookup_by_tsih(uint16_t tsih)
{
	return tsih < SESSIONS && sessions[tsih].initiator ? &sessions[tsih] : NULL;
}

/* ---- a unit and its commands ---- */

struct scene {
	struct scsi_lu lu;
	struct target target;
	struct it_nexus logged_in[SESSIONS]; /* by number */
	struct registrations registrations;
	struct registration made[SESSIONS];
	struct it_nexus nexus;
	uint8_t cdb[16];
	struct scsi_cmd command;
};

static void log_in(struct scene *scene, uint16_t number, char *initiator, uint8_t isid)
{
	struct it_nexus *nexus = &scene->logged_in[number];

	sessions[number] = (struct iscsi_session){ .initiator = initiator, .isid = { 0x80, isid } };
	*nexus = (struct it_nexus){ .itn_id = number, .ctime = -(long)number };
	list_add_tail(&nexus->nexus_siblings, &scene->target.it_nexus_list);
}

static void log_all_out(struct scene *scene)
{
	memset(sessions, 0, sizeof(sessions));
	INIT_LIST_HEAD(&scene->target.it_nexus_list);
}

/* A command of a session. Its time is its number's opposite. */
static const struct scsi_cmd *command_of(struct scene *scene, uint16_t number, uint8_t action)
{
	scene->nexus.itn_id = number;
	scene->nexus.ctime = -(long)number;
	scene->cdb[1] = action;
	scene->command.dev = &scene->lu;
	scene->command.cmd_itn_id = number;
	scene->command.it_nexus = &scene->nexus;
	scene->command.scb = scene->cdb;
	return &scene->command;
}

/* tgtd has a registration of the session, and nobody has noted it. */
static struct registration *register_unnoted(struct scene *scene, uint16_t number)
{
	struct registration *made = &scene->made[number];

	made->nexus_id = number;
	made->ctime = -(long)number;
	list_add_tail(&made->registration_siblings, &scene->lu.registration_list);
	return made;
}

static struct registration *do_register(struct scene *scene, uint16_t number)
{
	struct registration *made = register_unnoted(scene, number);

	registrations_note(&scene->registrations, &scene->lu);
	return made;
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	log_all_out(scene);
	INIT_LIST_HEAD(&scene->lu.registration_list);
	scene->lu.tgt = &scene->target;
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	free(scene);
	return 0;
}

/* ---- tests ---- */

static void test_the_next_session_of_a_port_has_its_registration(void **state)
{
	struct scene *scene = *state;
	struct registration *made;

	log_in(scene, 1, "iqn.a", 1);
	made = do_register(scene, 1);
	for (uint16_t next = 2; next < 5; next++) {
		log_all_out(scene);
		log_in(scene, next, "iqn.a", 1);
		registrations_return(&scene->registrations, command_of(scene, next, 0));
		assert_int_equal(made->nexus_id, next);
		assert_int_equal(made->ctime, -(long)next);
	}
}

static void test_another_port_has_not(void **state)
{
	struct scene *scene = *state;
	struct registration *made;

	log_in(scene, 1, "iqn.a", 1);
	made = do_register(scene, 1);
	log_in(scene, 2, "iqn.a", 2);
	log_in(scene, 3, "iqn.ab", 1);
	for (uint16_t other = 2; other < 5; other++) /* number 4 is gone already */
		registrations_return(&scene->registrations, command_of(scene, other, 0));
	assert_int_equal(made->nexus_id, 1);
}

static void test_what_is_not_registered_any_more_does_not_come_back(void **state)
{
	struct scene *scene = *state;
	struct registration *made;

	log_in(scene, 1, "iqn.a", 1);
	made = do_register(scene, 1);
	list_del(&made->registration_siblings);
	registrations_note(&scene->registrations, &scene->lu);
	log_in(scene, 2, "iqn.b", 1);
	made = do_register(scene, 2);
	log_in(scene, 3, "iqn.a", 1);
	registrations_return(&scene->registrations, command_of(scene, 3, 0));
	assert_int_equal(made->nexus_id, 2);
	assert_int_equal(scene->made[1].nexus_id, 1);
}

/* tgtd gives numbers of sessions anew. The registration is of the one before. */
static void test_who_has_the_number_of_an_ended_session_does_not_inherit(void **state)
{
	struct scene *scene = *state;
	struct registration *made;

	log_in(scene, 1, "iqn.a", 1);
	made = register_unnoted(scene, 1);
	log_all_out(scene);
	log_in(scene, 1, "iqn.b", 1);
	scene->logged_in[1].ctime = -SESSIONS;
	log_in(scene, 2, "iqn.c", 1);
	do_register(scene, 2);
	log_all_out(scene);
	log_in(scene, 3, "iqn.b", 1);
	registrations_return(&scene->registrations, command_of(scene, 3, 0));
	assert_int_equal(made->nexus_id, 1);
	assert_int_equal(made->ctime, -1);
	log_in(scene, 4, "iqn.c", 1);
	registrations_return(&scene->registrations, command_of(scene, 4, 0));
	assert_int_equal(scene->made[2].nexus_id, 4);
}

static void test_one_more_than_there_may_be_is_refused(void **state)
{
	struct scene *scene = *state;
	const uint16_t last = REGISTRATIONS_MAX;

	for (uint16_t number = 1; number <= last; number++) {
		assert_false(registrations_refuse(&scene->registrations,
						  command_of(scene, number, PR_OUT_REGISTER)));
		log_in(scene, number, "iqn.a", (uint8_t)number);
		do_register(scene, number);
	}
	assert_true(registrations_refuse(&scene->registrations,
					 command_of(scene, last + 1, PR_OUT_REGISTER)));
	assert_true(registrations_refuse(
		&scene->registrations,
		command_of(scene, last + 1, PR_OUT_REGISTER_AND_IGNORE_EXISTING_KEY)));
	assert_true(registrations_refuse(&scene->registrations,
					 command_of(scene, 1, PR_OUT_REGISTER_AND_MOVE)));
	/* Who has one changes it or gives it up, and reserves. */
	assert_false(registrations_refuse(&scene->registrations,
					  command_of(scene, last, PR_OUT_REGISTER)));
	assert_false(registrations_refuse(&scene->registrations,
					  command_of(scene, last + 1, PR_OUT_RESERVE)));
	list_del(&scene->made[7].registration_siblings);
	registrations_note(&scene->registrations, &scene->lu);
	assert_false(registrations_refuse(&scene->registrations,
					  command_of(scene, last + 1, PR_OUT_REGISTER)));
}

/* By tgtd it is the reservation of a registration that is no more. */
static void test_a_reservation_of_all_stays_when_its_holder_is_preempted(void **state)
{
	struct scene *scene = *state;
	struct registrations_shared before;
	struct registration *holder, *other;

	for (uint16_t number = 1; number <= 3; number++) {
		log_in(scene, number, "iqn.a", (uint8_t)number);
		do_register(scene, number);
	}
	holder = &scene->made[1];
	other = &scene->made[2];
	scene->lu.pr_holder = holder;
	holder->pr_type = PR_TYPE_WRITE_EXCLUSIVE;
	before = registrations_before(&scene->lu);
	assert_null(before.holder); /* PREEMPT passes such a reservation on by itself */
	holder->pr_type = PR_TYPE_WRITE_EXCLUSIVE_ALLREG;
	before = registrations_before(&scene->lu);
	registrations_after(&before, command_of(scene, 2, PR_OUT_PREEMPT));
	assert_ptr_equal(scene->lu.pr_holder, holder);
	list_del(&holder->registration_siblings);
	holder->pr_type = 0x55; /* tgtd has freed it */
	registrations_after(&before, command_of(scene, 2, PR_OUT_PREEMPT));
	assert_ptr_equal(scene->lu.pr_holder, other);
	assert_int_equal(other->pr_type, PR_TYPE_WRITE_EXCLUSIVE_ALLREG);
	/* Who passes it on, or ends it, is left alone. */
	before = registrations_before(&scene->lu);
	scene->lu.pr_holder = NULL;
	registrations_after(&before, command_of(scene, 2, PR_OUT_RELEASE));
	assert_null(scene->lu.pr_holder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_the_next_session_of_a_port_has_its_registration, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_port_has_not, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_what_is_not_registered_any_more_does_not_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_who_has_the_number_of_an_ended_session_does_not_inherit, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_one_more_than_there_may_be_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			test_a_reservation_of_all_stays_when_its_holder_is_preempted, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
