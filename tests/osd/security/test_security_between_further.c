/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a session changes of keys and tags of a further object while another one's command works on
 * it: its extension capability counts as long as the command runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "tests/osd/withdrawals.h"

#define VERSION_OF_MATCHES 9
static struct key_pair matches_key;

static void change_key_of_matches(struct unit *unit)
{
	withdraw_key(unit, VERSION_OF_MATCHES);
}

static void change_tag_of_matches(struct unit *unit)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG };

	members_set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
			   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
}

static struct signed_call query_with_extension(struct unit *unit)
{
	struct signed_call call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, VERSION_OF_MATCHES,
						 0x44, &matches_key);
	struct granted *granted;

	signed_run(unit, &call);
	expect_good(unit);
	call = members_query(unit, MATCHES);
	granted = signed_extend(&call, P, MATCHES, OSD_TYPE_COLLECTION, OSD_PERMISSION_WRITE);
	granted->secret = matches_key.authentication;
	granted->capability.key_version = VERSION_OF_MATCHES;
	granted->capability.policy_tag = TAG + 1;
	return call;
}

/* Before the first transaction, whose values have been summed up, or a later one. */
static void test_an_extension_capability_counts_as_long_as_the_command_runs(void **state)
{
	static changing *const changes[] = { change_key_of_matches, change_tag_of_matches };

	for (size_t n = 0; n < 6; n++) {
		static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };
		unsigned batches = n / 2;
		struct unit *unit;
		struct signed_call query;

		members_begin(state, 1000);
		unit = *state;
		members_set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
				   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
		query = query_with_extension(unit);
		stepped_run_signed(unit, &query, 1 + batches, changes[n % 2]);
		assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
		assert_int_equal(unit_sense(unit).code, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
		assert_int_equal(members_of(unit, P, MATCHES), batches * 256);
		/* Where nobody withdraws anything it goes to its end. */
		query = members_query(unit, MATCHES);
		signed_extend(&query, P, MATCHES, OSD_TYPE_COLLECTION, OSD_PERMISSION_WRITE);
		signed_run(unit, &query);
		expect_good(unit);
		assert_int_equal(members_of(unit, P, MATCHES), 1000);
		unit_tear_down(state);
	}
}

static void test_so_it_does_in_the_background(void **state)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };
	static changing *const changes[] = { NULL, change_key_of_matches, change_tag_of_matches };

	for (size_t i = 0; i < 3; i++) {
		struct unit *unit;
		struct signed_call query;

		members_begin(state, 1000);
		unit = *state;
		unit_create_partition(unit, OTHER);
		members_fill(unit, OTHER, 2 * BATCH);
		members_set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
				   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
		query = query_with_extension(unit);
		query.call.cdb.immediate_tracking = true;
		unit->device->background.started = true;
		signed_run(unit, &query);
		expect_good(unit);
		if (changes[i])
			changes[i](unit);
		members_let_go(unit);
		assert_int_equal(members_of(unit, P, MATCHES), changes[i] ? 256 : 1000);
		assert_int_equal(members_ended_status(unit, MATCHES),
				 changes[i] ? SCSI_STATUS_CHECK_CONDITION : SCSI_STATUS_GOOD);
		unit_tear_down(state);
	}
}

static void change_bound(struct unit *unit)
{
	struct osd_command *command = stepped_command();

	(void)unit;
	for (size_t i = 0; i + 4 < command->data_out_length; i++)
		if (memcmp(command->data_out + i, "bound", 5) == 0)
			((uint8_t *)command->data_out)[i] = 'B';
}

/*
 * Others wait while a command has its turn, so what it has sent has been summed up before: changed
 * then, it is not noticed. Here by a tool that initiators do not have.
 */
static void test_nothing_long_is_summed_up_in_a_command_s_turn(void **state)
{
	static const uint8_t tag[4] = { 0, 0, 0, TAG + 1 };
	struct unit *unit;
	struct signed_call query;
	uint8_t list[25] = { 0x01, 0, 0, 0, 0, 0, 0, 17 };

	members_begin(state, 10);
	unit = *state;
	members_set_signed(unit, MATCHES, OSD_TYPE_COLLECTION, OSD_COLLECTION_SECURITY,
			   OSD_SECURITY_POLICY_ACCESS_TAG, tag, sizeof(tag));
	query = query_with_extension(unit);
	query.call.continuation_length = 0;
	put_be32(list + 8, PAGE);
	put_be32(list + 12, 1);
	put_be16(list + 16, 5);
	memcpy(list + 18, "bound", 5);
	call_descriptor(&query.call, OSD_CONTINUATION_QUERY_LIST, list, sizeof(list));
	stepped_run_signed(unit, &query, 1, change_bound);
	expect_good(unit);
	unit_tear_down(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_extension_capability_counts_as_long_as_the_command_runs),
		cmocka_unit_test(test_so_it_does_in_the_background),
		cmocka_unit_test(test_nothing_long_is_summed_up_in_a_command_s_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
