/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The OSD unit among tgtd's sessions: whose command it is. The functions of tgtd that are called
 * are played by the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/module/osd_unit.h"
#include "daemon/module/unit.h"
#include "osd/osd.h"
#include "tests/daemon/device_image.h"
#include "wire/envelope.h"
#include "wire/security.h"
#include "wire/wire.h"

/* Want the others before them. */
#include "driver.h"
#include "target.h"

/* ---- tgtd's part ---- */

int tgt_event_add(int fd, int wanted, event_handler_t handler, void *data)
{
	(void)fd;
	(void)wanted;
	(void)handler;
	(void)data;
	return 0;
}

void tgt_event_del(int fd)
{
	(void)fd;
}

void target_cmd_io_done(struct scsi_cmd *cmd, int result)
{
	(void)cmd;
	(void)result;
	fail();
}

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
	(void)asc;
}

void sense_data_build(struct scsi_cmd *cmd, uint8_t key, uint16_t asc)
{
	(void)cmd;
	(void)key;
	(void)asc;
	fail();
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
	return cmd->dev->dev_type_template.ops[cmd->scb[0]].cmd_perform(7, cmd);
}

static int stock_perform(int host_no, struct scsi_cmd *cmd)
{
	(void)host_no;
	(void)cmd;
	return SAM_STAT_GOOD;
}

/* ---- the unit ---- */

static struct device_image image;
static struct target target;
static struct scsi_lu *lu;

static int setup(void **state)
{
	struct error_text error = { "" };
	uint64_t bytes = 0;

	(void)state;
	device_image_make(&image);
	INIT_LIST_HEAD(&target.device_list);
	INIT_LIST_HEAD(&target.it_nexus_list);
	lu = calloc(1, sizeof(*lu) + sizeof(struct unit));
	assert_non_null(lu);
	lu->tgt = &target;
	lu->lun = 1;
	lu->cmd_perform = stock_arrive;
	lu->dev_type_template.type = TYPE_OSD;
	for (size_t i = 0; i < NR_SCSI_OPCODES; i++)
		lu->dev_type_template.ops[i].cmd_perform = stock_perform;
	if (unit_attach(lu, &osd_unit, NULL, &error) ||
	    unit_open(unit_of(lu), image.path, &bytes, &error))
		fail_msg("%s", error.text);
	assert_true(bytes > 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(unit_close(unit_of(lu)), 0);
	free(lu);
	device_image_remove(&image);
	return 0;
}

/* A login: tgtd numbers sessions with 16 bits and notes the second. */
static struct it_nexus_lu_info session;

static struct it_nexus login(uint64_t number)
{
	return (struct it_nexus){ .itn_id = number, .ctime = time(NULL), .host_no = 7 };
}

/* What commands of CAPKEY sign: VPD page B1. */
static void read_token(struct it_nexus *nexus, uint8_t token[OSD_SECURITY_TOKEN_BYTES])
{
	uint8_t cdb[6] = { INQUIRY, 1, 0xB1, 0, 255 }, answer[255] = { 0 };
	struct scsi_cmd cmd = {
		.scb = cdb,
		.scb_len = sizeof(cdb),
		.dev = lu,
		.dev_id = lu->lun,
		.itn_lu_info = &session,
		.c_target = &target,
		.it_nexus = nexus,
		.cmd_itn_id = nexus->itn_id,
		.attribute = MSG_SIMPLE_TAG,
	};

	scsi_set_in_buffer(&cmd, answer);
	scsi_set_in_length(&cmd, sizeof(answer));
	assert_int_equal(lu->cmd_perform(1, &cmd), SAM_STAT_GOOD);
	memcpy(token, answer + 4, OSD_SECURITY_TOKEN_BYTES);
}

static int compare_tokens(const void *left, const void *right)
{
	return memcmp(left, right, OSD_SECURITY_TOKEN_BYTES);
}

/* The same number, address and second as of a session that has ended; more than 16 bits count. */
static void test_no_later_session_has_the_token_of_an_earlier_one(void **state)
{
	enum { LOGINS = 70000 };
	static uint8_t tokens[LOGINS][OSD_SECURITY_TOKEN_BYTES];
	const uint8_t none[OSD_SECURITY_TOKEN_BYTES] = { 0 };

	(void)state;
	for (size_t i = 0; i < LOGINS; i++) {
		struct it_nexus nexus = login(3);

		read_token(&nexus, tokens[i]);
	}
	qsort(tokens, LOGINS, sizeof(tokens[0]), compare_tokens);
	assert_memory_not_equal(tokens[0], none, sizeof(none));
	for (size_t i = 1; i < LOGINS; i++)
		assert_memory_not_equal(tokens[i], tokens[i - 1], sizeof(tokens[i]));
}

static void test_a_session_keeps_its_token(void **state)
{
	uint8_t mine[OSD_SECURITY_TOKEN_BYTES], others[OSD_SECURITY_TOKEN_BYTES],
		again[OSD_SECURITY_TOKEN_BYTES];
	struct it_nexus me = login(3), other = login(4);

	(void)state;
	read_token(&me, mine);
	read_token(&other, others);
	read_token(&me, again);
	assert_memory_equal(mine, again, sizeof(mine));
	assert_memory_not_equal(mine, others, sizeof(mine));
}

/* ---- who uses a partition ---- */

#define P UINT64_C(0x10000)

static void enter(struct it_nexus *nexus, uint64_t number, char *info)
{
	*nexus = login(number);
	nexus->info = info;
	list_add_tail(&nexus->nexus_siblings, &target.it_nexus_list);
}

/* An OSD command without data, as it arrives and is executed; its sense. */
static struct osd_sense run(struct it_nexus *nexus, uint16_t action, uint64_t partition,
			    uint64_t source)
{
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = action,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = partition,
				   .address = source };
	uint8_t cdb[OSD_CDB_BYTES_MAX];
	struct osd_sense sense = { 0 };
	size_t length;
	struct scsi_cmd cmd = {
		.scb = cdb,
		.dev = lu,
		.dev_id = lu->lun,
		.itn_lu_info = &session,
		.c_target = &target,
		.it_nexus = nexus,
		.cmd_itn_id = nexus->itn_id,
		.attribute = MSG_SIMPLE_TAG,
	};

	assert_int_equal(osd_cdb_encode(&decoded, cdb, &length), 0);
	cmd.scb_len = (int)length;
	assert_int_equal(lu->cmd_perform(1, &cmd), SAM_STAT_GOOD);
	osd_unit.execute(unit_of(lu), &cmd);
	if (scsi_get_result(&cmd) != SAM_STAT_GOOD)
		assert_int_equal(osd_sense_decode(cmd.sense_buffer, (size_t)cmd.sense_len, &sense),
				 0);
	return sense;
}

static void test_a_session_uses_a_partition_until_it_logs_out(void **state)
{
	char mine[] = "            Initiator: iqn.me alias: me\n",
	     others[] = "            Initiator: iqn.other alias: none\n";
	struct it_nexus me, other;
	struct osd_sense sense;

	(void)state;
	enter(&me, 3, mine);
	enter(&other, 4, others);
	assert_int_equal(run(&me, OSD_CREATE_PARTITION, P, 0).key, 0);
	assert_int_equal(run(&me, OSD_CREATE_CLONE, P + 1, P).key, 0);
	assert_int_equal(run(&other, OSD_GET_ATTRIBUTES, P + 1, 0).key, 0);
	sense = run(&me, OSD_REFRESH_SNAPSHOT_OR_CLONE, P + 1, 0);
	assert_int_equal(sense.code, SENSE_MEDIUM_REMOVAL_PREVENTED);
	assert_int_equal(sense.users, 1);
	assert_string_equal(sense.user_names, "iqn.other");

	list_del(&other.nexus_siblings);
	assert_int_equal(run(&me, OSD_REFRESH_SNAPSHOT_OR_CLONE, P + 1, 0).key, 0);
}

static void test_an_initiator_that_tgtd_does_not_name_is_counted(void **state)
{
	char unknown[] = "something else";
	struct it_nexus me, other, another;
	struct osd_sense sense;

	(void)state;
	enter(&me, 3, NULL);
	enter(&other, 4, unknown);
	enter(&another, 5, NULL);
	assert_int_equal(run(&me, OSD_CREATE_PARTITION, P, 0).key, 0);
	assert_int_equal(run(&me, OSD_CREATE_CLONE, P + 1, P).key, 0);
	assert_int_equal(run(&other, OSD_GET_ATTRIBUTES, P + 1, 0).key, 0);
	assert_int_equal(run(&another, OSD_GET_ATTRIBUTES, P + 1, 0).key, 0);
	sense = run(&me, OSD_REFRESH_SNAPSHOT_OR_CLONE, P + 1, 0);
	assert_int_equal(sense.users, 2);
	assert_string_equal(sense.user_names, "");
}

static void test_sessions_that_came_and_went_leave_a_mounted_one_its_place(void **state)
{
	char name[] = "            Initiator: iqn.mounted alias: none\n";
	struct it_nexus mounted, passing;

	(void)state;
	enter(&mounted, 3, name);
	assert_int_equal(run(&mounted, OSD_CREATE_PARTITION, P, 0).key, 0);
	assert_int_equal(run(&mounted, OSD_CREATE_CLONE, P + 1, P).key, 0);
	assert_int_equal(run(&mounted, OSD_GET_ATTRIBUTES, P + 1, 0).key, 0);
	/* More than the unit remembers at a time. */
	for (uint64_t number = 4; number < 600; number++) {
		enter(&passing, number, NULL);
		assert_int_equal(run(&passing, OSD_GET_ATTRIBUTES, 0, 0).key, 0);
		list_del(&passing.nexus_siblings);
	}
	enter(&passing, 700, NULL);
	assert_string_equal(run(&passing, OSD_REFRESH_SNAPSHOT_OR_CLONE, P + 1, 0).user_names,
			    "iqn.mounted");
}

/* ---- envelopes ---- */

static struct scsi_cmd command_of(struct it_nexus *nexus, uint8_t cdb[ENVELOPE_CDB_BYTES])
{
	return (struct scsi_cmd){
		.scb = cdb,
		.scb_len = ENVELOPE_CDB_BYTES,
		.dev = lu,
		.dev_id = lu->lun,
		.itn_lu_info = &session,
		.c_target = &target,
		.it_nexus = nexus,
		.cmd_itn_id = nexus->itn_id,
		.attribute = MSG_SIMPLE_TAG,
	};
}

/* GET ATTRIBUTES of P, without any, as a letter. */
static void send_letter(struct it_nexus *nexus, uint64_t tag)
{
	struct osd_cdb decoded = { .version = OSD_2,
				   .action = OSD_GET_ATTRIBUTES,
				   .format = OSD_ATTRIBUTES_LIST,
				   .partition = P };
	const struct envelope_cdb send = { ENVELOPE_SEND, tag, ENVELOPE_HEAD_BYTES };
	uint8_t inside[OSD_CDB_BYTES_MAX], letter[ENVELOPE_HEAD_BYTES], cdb[ENVELOPE_CDB_BYTES];
	struct envelope_letter content = { .cdb = inside };
	struct scsi_cmd cmd = command_of(nexus, cdb);

	assert_int_equal(osd_cdb_encode(&decoded, inside, &content.cdb_length), 0);
	envelope_letter_encode(&content, letter);
	envelope_cdb_encode(&send, cdb);
	scsi_set_data_dir(&cmd, DATA_WRITE);
	scsi_set_out_buffer(&cmd, letter);
	scsi_set_out_length(&cmd, sizeof(letter));
	assert_int_equal(lu->cmd_perform(1, &cmd), SAM_STAT_GOOD);
	assert_int_equal(scsi_get_out_resid(&cmd), 0);
}

static int fetch_answer(struct it_nexus *nexus, uint64_t tag, uint8_t in[ENVELOPE_HEAD_BYTES])
{
	const struct envelope_cdb fetch = { ENVELOPE_FETCH, tag, ENVELOPE_HEAD_BYTES };
	uint8_t cdb[ENVELOPE_CDB_BYTES];
	struct scsi_cmd cmd = command_of(nexus, cdb);

	envelope_cdb_encode(&fetch, cdb);
	scsi_set_data_dir(&cmd, DATA_READ);
	scsi_set_in_buffer(&cmd, in);
	scsi_set_in_length(&cmd, ENVELOPE_HEAD_BYTES);
	return lu->cmd_perform(1, &cmd);
}

static void test_a_letter_is_that_of_its_session(void **state)
{
	char name[] = "            Initiator: iqn.me alias: me\n";
	struct it_nexus me, other, next;
	uint8_t in[ENVELOPE_HEAD_BYTES];
	struct envelope_answer answer;

	(void)state;
	enter(&me, 3, name);
	enter(&other, 4, name);
	assert_int_equal(run(&me, OSD_CREATE_PARTITION, P, 0).key, 0);
	send_letter(&me, 7);
	assert_int_equal(fetch_answer(&other, 7, in), SAM_STAT_CHECK_CONDITION);
	assert_int_equal(fetch_answer(&me, 7, in), SAM_STAT_GOOD);
	assert_int_equal(envelope_answer_decode(in, sizeof(in), &answer), 0);
	assert_int_equal(answer.status, SAM_STAT_GOOD);
	assert_int_equal(fetch_answer(&me, 7, in), SAM_STAT_CHECK_CONDITION);

	/* It ends with its session: at the latest when the next one comes. */
	send_letter(&me, 8);
	list_del(&me.nexus_siblings);
	enter(&next, 5, name);
	assert_int_equal(fetch_answer(&next, 8, in), SAM_STAT_CHECK_CONDITION);
	assert_int_equal(fetch_answer(&me, 8, in), SAM_STAT_CHECK_CONDITION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_no_later_session_has_the_token_of_an_earlier_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_session_keeps_its_token, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_session_uses_a_partition_until_it_logs_out,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_initiator_that_tgtd_does_not_name_is_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_sessions_that_came_and_went_leave_a_mounted_one_its_place, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_a_letter_is_that_of_its_session, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
