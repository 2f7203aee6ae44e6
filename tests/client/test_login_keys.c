/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What is learnt from a target's login responses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/login_keys.h"
#include "common/bytes.h"

static void make_response(uint8_t bhs[48])
{
	memset(bhs, 0, 48);
	bhs[0] = ISCSI_LOGIN_RESPONSE;
	bhs[1] = 0x87;
	put_be32(bhs + 24, 41);
	put_be32(bhs + 28, 1000);
	put_be32(bhs + 32, 1031);
}

/*
 * Notes one response with these keys (NUL between them) in a fresh outcome that offers the usual.
 */
static int note(struct login_outcome *outcome, const char *keys, size_t length)
{
	struct error_text error = { "" };
	uint8_t bhs[48];
	int result;

	make_response(bhs);
	login_outcome_begin(outcome, true, false);
	result = login_outcome_note(outcome, bhs, (const uint8_t *)keys, length, &error);
	assert_int_equal(result < 0, error.text[0] != '\0');
	return result;
}
#define NOTE(outcome, keys) note(outcome, keys, sizeof(keys))

static void test_a_silent_target_leaves_the_defaults(void **state)
{
	struct login_outcome outcome;

	(void)state;
	assert_int_equal(NOTE(&outcome, ""), 0);
	assert_true(outcome.parameters.immediate_data);
	assert_true(outcome.parameters.initial_r2t);
	assert_int_equal(outcome.parameters.first_burst_bytes, 65536);
	assert_int_equal(outcome.parameters.max_burst_bytes, 262144);
	assert_int_equal(outcome.parameters.target_segment_bytes, 8192);
	assert_int_equal(outcome.parameters.initiator_segment_bytes, 262144);
}

static void test_numbering_goes_on_where_the_login_ends(void **state)
{
	struct login_outcome outcome;

	(void)state;
	assert_int_equal(NOTE(&outcome, ""), 0);
	assert_int_equal(outcome.parameters.exp_stat_sn, 42);
	assert_int_equal(outcome.parameters.cmd_sn, 1000);
	assert_int_equal(outcome.parameters.max_cmd_sn, 1031);
}

static void test_answers_are_taken(void **state)
{
	struct login_outcome outcome;

	(void)state;
	assert_int_equal(
		NOTE(&outcome,
		     "TargetPortalGroupTag=1\0HeaderDigest=None\0DataDigest=None\0InitialR2T=No\0"
		     "ImmediateData=No\0MaxBurstLength=131072\0FirstBurstLength=4096\0"
		     "MaxRecvDataSegmentLength=0x4000\0DataPDUInOrder=Yes\0IFMarker=No\0"),
		0);
	assert_false(outcome.parameters.immediate_data);
	assert_false(outcome.parameters.initial_r2t);
	assert_int_equal(outcome.parameters.first_burst_bytes, 4096);
	assert_int_equal(outcome.parameters.max_burst_bytes, 131072);
	assert_int_equal(outcome.parameters.target_segment_bytes, 16384);
}

static void test_a_target_cannot_grant_more_than_was_offered(void **state)
{
	struct error_text error;
	struct login_outcome outcome;
	uint8_t bhs[48];
	static const char keys[] = "ImmediateData=Yes\0InitialR2T=No\0MaxBurstLength="
				   "16777215\0FirstBurstLength=16777215";

	(void)state;
	make_response(bhs);
	login_outcome_begin(&outcome, false, true);
	assert_int_equal(
		login_outcome_note(&outcome, bhs, (const uint8_t *)keys, sizeof(keys), &error), 0);
	assert_false(outcome.parameters.immediate_data);
	assert_true(outcome.parameters.initial_r2t);
	assert_int_equal(outcome.parameters.max_burst_bytes, 262144);
	assert_int_equal(outcome.parameters.first_burst_bytes, 262144);
}

static void test_a_first_burst_is_never_longer_than_a_burst(void **state)
{
	struct login_outcome outcome;

	(void)state;
	assert_int_equal(NOTE(&outcome, "MaxBurstLength=4096"), 0);
	assert_int_equal(outcome.parameters.first_burst_bytes, 4096);
}

static void test_what_was_not_offered_is_refused(void **state)
{
	struct login_outcome outcome;

	(void)state;
	assert_int_equal(NOTE(&outcome, "HeaderDigest=CRC32C"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "DataDigest=CRC32C"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "DataPDUInOrder=No"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "ErrorRecoveryLevel=2"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "MaxOutstandingR2T=8"), -EPROTO);
}

static void test_values_out_of_range_are_refused(void **state)
{
	struct login_outcome outcome;

	(void)state;
	assert_int_equal(NOTE(&outcome, "MaxBurstLength=511"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "MaxBurstLength=16777216"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "MaxRecvDataSegmentLength=0"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "MaxRecvDataSegmentLength=-512"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "MaxRecvDataSegmentLength=99999999999999999999"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "MaxRecvDataSegmentLength="), -EPROTO);
	assert_int_equal(NOTE(&outcome, "ImmediateData=Maybe"), -EPROTO);
	assert_int_equal(NOTE(&outcome, "no equals sign"), -EPROTO);
}

static void test_text_without_an_end_is_read_within_its_length(void **state)
{
	static const char keys[] = { 'M', 'a', 'x', 'B', 'u', 'r', 's', 't', 'L', 'e',
				     'n', 'g', 't', 'h', '=', '4', '0', '9', '6' };
	struct login_outcome outcome;

	(void)state;
	assert_int_equal(note(&outcome, keys, sizeof(keys)), 0);
	assert_int_equal(outcome.parameters.max_burst_bytes, 4096);
}

static void test_a_refusal_is_noted_with_its_reason(void **state)
{
	struct login_outcome outcome;
	uint8_t bhs[48];

	(void)state;
	make_response(bhs);
	bhs[36] = 2;
	bhs[37] = 3;
	login_outcome_begin(&outcome, true, true);
	assert_int_equal(login_outcome_note(&outcome, bhs, (const uint8_t *)"", 0, NULL), 0);
	assert_int_equal(outcome.status_class, 2);
	assert_int_equal(outcome.status_detail, 3);
}

static void test_something_else_than_a_login_response_is_refused(void **state)
{
	struct error_text error;
	struct login_outcome outcome;
	uint8_t bhs[48] = { 'S', 'S', 'H', '-' };

	(void)state;
	login_outcome_begin(&outcome, true, true);
	assert_int_equal(login_outcome_note(&outcome, bhs, (const uint8_t *)"", 0, &error),
			 -EPROTO);
	assert_non_null(strstr(error.text, "iSCSI port"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_silent_target_leaves_the_defaults),
		cmocka_unit_test(test_numbering_goes_on_where_the_login_ends),
		cmocka_unit_test(test_answers_are_taken),
		cmocka_unit_test(test_a_target_cannot_grant_more_than_was_offered),
		cmocka_unit_test(test_a_first_burst_is_never_longer_than_a_burst),
		cmocka_unit_test(test_what_was_not_offered_is_refused),
		cmocka_unit_test(test_values_out_of_range_are_refused),
		cmocka_unit_test(test_text_without_an_end_is_read_within_its_length),
		cmocka_unit_test(test_a_refusal_is_noted_with_its_reason),
		cmocka_unit_test(test_something_else_than_a_login_response_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
