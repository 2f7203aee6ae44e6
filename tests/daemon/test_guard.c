/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The guard before tgtd: what correct initiators send passes, byte by byte too; what they may not
 * send is refused with its reason; memory is counted and comes back. The test plays both sides.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "daemon/module/guard.h"

enum { READS = 0x40, WRITES = 0x20, FINAL = 0x80, IMMEDIATE = 0x40, TAG = 0x77, MIB = 1 << 20 };

static struct guard_shared shared;
static struct guard guard;
static uint32_t number; /* CmdSN of the next command */
static size_t piece;    /* bytes that come at once */
static const uint8_t zeros[MIB];

static bool comes(const void *from, size_t bytes)
{
	const uint8_t *next = from;
	bool ended = false, passes = true;

	for (size_t at = 0; passes && at < bytes; at += piece) {
		size_t some = min_u64(piece, bytes - at);

		passes = guard_came(&guard, next + at, some, &ended);
	}
	return passes;
}

static bool send_with(uint8_t header[GUARD_HEADER_BYTES], const void *segments,
		      size_t segment_bytes, const void *data, size_t data_bytes)
{
	put_be32(header + 4, (uint32_t)(segment_bytes / 4) << 24 | (uint32_t)data_bytes);
	return comes(header, GUARD_HEADER_BYTES) && comes(segments, segment_bytes) &&
	       comes(data, data_bytes) && comes(zeros, align_up(data_bytes, 4) - data_bytes);
}

static void answer(uint8_t opcode, uint8_t flags, uint32_t tag, uint32_t at40, uint32_t at44)
{
	uint8_t header[GUARD_HEADER_BYTES] = { opcode, flags };

	put_be32(header + 16, tag);
	put_be32(header + 20, 0x1234); /* transfer tag */
	put_be32(header + 40, at40);
	put_be32(header + 44, at44);
	guard_went(&guard, header, sizeof(header));
}

static bool login(const char *keys, size_t bytes, const char *answered, size_t answered_bytes)
{
	uint8_t header[GUARD_HEADER_BYTES] = { 0x43, 0x87 };
	uint8_t back[GUARD_HEADER_BYTES] = { 0x23, 0x87 };

	put_be32(header + 24, number);
	if (!send_with(header, zeros, 0, keys, bytes))
		return false;
	put_be32(back + 4, (uint32_t)answered_bytes);
	guard_went(&guard, back, sizeof(back));
	guard_went(&guard, (const uint8_t *)answered, answered_bytes);
	guard_went(&guard, zeros, align_up(answered_bytes, 4) - answered_bytes);
	return true;
}

#define LOGIN(keys, answered) login(keys, sizeof(keys) - 1, answered, sizeof(answered) - 1)

static const char offers[] =
	"InitiatorName=iqn.2014-06.local.host:a\0SessionType=Normal\0"
	"TargetName=iqn.2014-06.local.muninn:osd\0MaxRecvDataSegmentLength=65536\0";
static const char agreed[] = "TargetPortalGroupTag=1\0MaxRecvDataSegmentLength=262144\0"
			     "FirstBurstLength=65536\0InitialR2T=No\0";

static void begin(void)
{
	guard_end(&guard);
	guard_begin(&guard, &shared);
	number = 100;
}

static void begin_session(void)
{
	begin();
	assert_true(LOGIN(offers, agreed));
	assert_int_equal(guard.phase, GUARD_FULL);
	assert_string_equal(guard.name, "iqn.2014-06.local.host:a");
}

/* A command with `immediate` bytes of data. */
static bool command(uint32_t tag, uint8_t flags, uint32_t length, uint32_t immediate)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_COMMAND, flags };

	put_be32(header + 16, tag);
	put_be32(header + 20, length);
	put_be32(header + 24, number++);
	return send_with(header, zeros, 0, zeros, immediate);
}

static bool data_out(uint32_t tag, uint32_t transfer_tag, uint32_t offset, uint32_t bytes,
		     uint8_t flags)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_DATA_OUT, flags };

	put_be32(header + 16, tag);
	put_be32(header + 20, transfer_tag);
	put_be32(header + 40, offset);
	return send_with(header, zeros, 0, zeros, bytes);
}

static bool request(uint8_t opcode, uint8_t function, uint32_t tag, uint32_t word)
{
	uint8_t header[GUARD_HEADER_BYTES] = { opcode, (uint8_t)(FINAL | function) };

	put_be32(header + 16, tag);
	put_be32(header + 20, word);
	put_be32(header + 24, number);
	return send_with(header, zeros, 0, zeros, 0);
}

static int setup(void **state)
{
	(void)state;
	limits_default(&shared.limits);
	shared.bytes = 0;
	guard_begin(&guard, &shared);
	piece = SIZE_MAX / 2;
	begin_session();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	guard_end(&guard);
	return shared.bytes ? -1 : 0;
}

/* ---- what passes ---- */

static void test_a_bidirectional_command_of_exofs_passes_and_its_memory_comes_back(void **state)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_COMMAND, FINAL | READS | WRITES };
	uint8_t segments[4 + 220 + 8] = { 0, 221, 1 };

	(void)state;
	for (size_t at_once = 1; at_once < 64; at_once += 9) {
		piece = at_once;
		put_be16(segments + 224, 5);
		segments[226] = 2;
		put_be32(segments + 228, 4097);
		put_be32(header + 16, TAG);
		put_be32(header + 20, 1000);
		put_be32(header + 24, number++);
		assert_true(send_with(header, segments, sizeof(segments), zeros, 1000));
		assert_true(guard_is_between(&guard));
		assert_int_equal(shared.bytes, 1000 + 4100);
		answer(GUARD_RESPONSE, FINAL, TAG, 0, 0);
		assert_int_equal(shared.bytes, 0);
		assert_int_equal(guard.tasks.count, 0);
	}
}

static void test_data_comes_unsolicited_then_as_it_is_asked_for(void **state)
{
	(void)state;
	assert_true(command(TAG, WRITES, 200001, 8192));
	assert_true(guard_waits(&guard));
	assert_true(data_out(TAG, GUARD_TAG_NONE, 8192, 40000, 0));
	assert_true(data_out(TAG, GUARD_TAG_NONE, 48192, 65536 - 48192, FINAL));
	answer(GUARD_R2T, FINAL, TAG, 65536, 100000);
	assert_true(data_out(TAG, 0x1234, 65536, 60000, 0));
	assert_true(data_out(TAG, 0x1234, 125536, 40000, FINAL));
	answer(GUARD_R2T, FINAL, TAG, 165536, 200001 - 165536);
	assert_true(data_out(TAG, 0x1234, 165536, 200001 - 165536, FINAL));
	assert_false(guard_waits(&guard));
	answer(GUARD_RESPONSE, FINAL, TAG, 0, 0);
	assert_int_equal(shared.bytes, 0);
}

static void test_status_with_data_in_ends_a_command_and_data_alone_does_not(void **state)
{
	(void)state;
	assert_true(command(TAG, FINAL | READS, 512, 0));
	answer(GUARD_DATA_IN, 0, TAG, 0, 0);
	assert_int_equal(guard.tasks.count, 1);
	answer(GUARD_DATA_IN, FINAL | 1, TAG, 0, 0);
	assert_int_equal(guard.tasks.count, 0);
	assert_true(command(TAG, FINAL | READS, 512, 0));
}

static void test_parts_are_followed_with_digests(void **state)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_COMMAND, FINAL | WRITES };
	bool ended;

	(void)state;
	begin();
	assert_true(LOGIN(offers, "HeaderDigest=CRC32C\0DataDigest=CRC32C\0"));
	put_be32(header + 4, 10);
	put_be32(header + 16, TAG);
	put_be32(header + 20, 10);
	put_be32(header + 24, number);
	for (size_t i = 0; i < 4; i++) {
		static const size_t parts[] = { GUARD_HEADER_BYTES, 4, 12, 4 };

		assert_int_equal(guard_missing(&guard), parts[i]);
		assert_true(guard_came(&guard, i ? zeros : header, parts[i], &ended));
		assert_int_equal(ended, i == 3);
	}
}

static void test_a_tag_comes_again_while_an_aborted_command_waits_for_data(void **state)
{
	(void)state;
	assert_true(command(TAG, FINAL | WRITES, 8192, 0));
	answer(GUARD_R2T, FINAL, TAG, 0, 8192);
	assert_true(request(IMMEDIATE | GUARD_TASK_MANAGEMENT, 1, 5, TAG));
	assert_true(command(TAG, FINAL | WRITES, 4096, 4096));
	assert_false(data_out(TAG, 0x1234, 0, 8192, FINAL));
	assert_string_equal(guard.reason, "data that tgtd has not asked for");
}

static void test_a_discovery_asks_for_texts_and_a_session_does_not(void **state)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_TEXT_REQUEST, FINAL };

	(void)state;
	begin();
	assert_true(LOGIN("InitiatorName=a\0SessionType=Discovery\0", "a=b\0"));
	assert_int_equal(guard.phase, GUARD_DISCOVERY);
	assert_true(send_with(header, zeros, 0, "SendTargets=All", 16));
	assert_false(command(TAG, FINAL, 0, 0));
}

/* ---- what does not ---- */

static void assert_reason(bool passes, const char *reason)
{
	assert_false(passes);
	if (strncmp(guard.reason, reason, strlen(reason)))
		fail_msg("'%s' in place of '%s'", guard.reason, reason);
	begin_session();
}

static void test_each_rule_for_commands_has_its_reason(void **state)
{
	(void)state;
	assert_reason(command(TAG, FINAL | READS, 0x7fffffff, 0), "a transfer of 2147483647 bytes");
	assert_reason(command(GUARD_TAG_NONE, FINAL | READS, 8, 0), "a command without a task tag");
	assert_reason(command(TAG, FINAL | READS, 8, 8), "PDU 01 with a data segment");
	assert_reason(command(TAG, FINAL | WRITES, 8, 12), "immediate data of 12 bytes, and 8 may");
	assert_reason(command(TAG, WRITES, 8, 8), "a command says that more data comes");
	assert_reason(command(TAG, FINAL | WRITES, MIB, 262148), "a data segment of 262148 bytes");
	number++;
	assert_reason(command(TAG, FINAL, 0, 0), "CmdSN 101 in place of 100");
	assert_true(command(TAG, FINAL | READS, 8, 0));
	assert_reason(command(TAG, FINAL | READS, 8, 0), "a second command with task tag 00000077");
}

static void test_each_rule_for_data_has_its_reason(void **state)
{
	(void)state;
	assert_reason(data_out(TAG, 1, 0, 8, FINAL), "data for no command");
	assert_true(command(TAG, FINAL | WRITES, 8192, 0));
	assert_reason(data_out(TAG, 0x1234, 0, 8, FINAL), "data that tgtd has not asked for");
	assert_true(command(TAG, FINAL | WRITES, 8192, 0));
	answer(GUARD_R2T, FINAL, TAG, 0, 4096);
	assert_reason(data_out(TAG, 0x1234, 0, 4100, FINAL), "4100 bytes of data at offset 0");
	assert_true(command(TAG, FINAL | WRITES, 8192, 0));
	answer(GUARD_R2T, FINAL, TAG, 0, 8192);
	assert_reason(data_out(TAG, 0x1234, 4, 8, FINAL), "data at offset 4 in place of 0");
	assert_true(command(TAG, WRITES, 8, 4));
	assert_true(data_out(TAG, GUARD_TAG_NONE, 4, 4, FINAL));
	assert_reason(data_out(TAG, GUARD_TAG_NONE, 8, 0, FINAL), "unsolicited data that nobody");
}

static void test_padding_stays_inside_of_the_buffer(void **state)
{
	(void)state;
	assert_true(command(TAG, WRITES, 8, 5));
	assert_reason(data_out(TAG, GUARD_TAG_NONE, 5, 3, FINAL), "data whose padding");
	assert_true(command(TAG, WRITES, 9, 5));
	assert_true(data_out(TAG, GUARD_TAG_NONE, 5, 4, FINAL));
}

static bool login_request(const char *keys, size_t bytes, uint8_t flags)
{
	uint8_t header[GUARD_HEADER_BYTES] = { IMMEDIATE | GUARD_LOGIN_REQUEST, flags };

	return send_with(header, zeros, 0, keys, bytes);
}

/* What it says of single keys: tests/e2e/test_guard.py. */
static void test_a_text_is_no_longer_than_tgtd_s_buffer(void **state)
{
	enum { MOST = 8192, KEY = 256, LAST = MOST - KEY };
	static char text[MOST + 4];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t at = 0; at < MOST; at += KEY) {
		text[at + 40] = '=';
		text[at + KEY - 1] = 0;
	}
	text[MOST + 1] = '=';
	text[MOST + 3] = 0;
	begin();
	assert_true(login_request(text, MOST, 4));
	begin();
	assert_reason(login_request(text, MOST + 4, 4), "a text of 8196 bytes");
	begin();
	assert_reason(login_request(text, LAST, 0x44), "a text in several PDUs");
}

/* ---- limits ---- */

static void test_a_session_goes_on_at_its_limits_only_while_it_waits_for_data(void **state)
{
	(void)state;
	shared.limits.session_memory = shared.limits.transfer = MIB;
	assert_true(guard_may_go_on(&guard));
	assert_true(command(1, FINAL | READS, MIB, 0));
	assert_false(guard_may_go_on(&guard));
	answer(GUARD_RESPONSE, FINAL, 1, 0, 0);
	assert_true(guard_may_go_on(&guard));
	assert_true(command(2, FINAL | WRITES, MIB, 0));
	assert_true(guard_may_go_on(&guard));
	assert_true(command(3, FINAL | WRITES, MIB, 0));
	assert_true(command(4, FINAL | WRITES, MIB, 0));
	assert_reason(command(5, FINAL | WRITES, MIB, 0), "the session's commands are too large");
}

static void test_as_many_commands_as_there_may_be_are_counted_and_forgotten(void **state)
{
	uint32_t most = shared.limits.commands = 128;

	(void)state;
	begin_session();
	for (int round = 0; round < 3; round++) {
		for (uint32_t tag = 0; tag < most; tag++) {
			assert_true(guard_may_go_on(&guard));
			assert_true(command(tag * 0x10001, FINAL | READS, 8, 0));
		}
		assert_false(guard_may_go_on(&guard));
		for (uint32_t tag = most; tag > 0; tag--)
			answer(GUARD_RESPONSE, FINAL, (tag - 1) * 0x10001, 0, 0);
		assert_int_equal(guard.tasks.count, 0);
	}
	for (uint32_t tag = 0; tag < 2 * most; tag++)
		assert_true(command(tag, FINAL | WRITES, 8, 0));
	assert_reason(command(9999, FINAL | WRITES, 8, 0),
		      "more than 256 commands are not answered");
}

static void test_all_sessions_share_memory(void **state)
{
	struct guard other;

	(void)state;
	shared.limits.session_memory = shared.limits.memory = shared.limits.transfer = MIB;
	for (uint32_t tag = 1; tag <= 3; tag++)
		assert_true(command(tag, FINAL | WRITES, MIB, 0));
	/* Another session, with the first one's limits and memory. */
	other = guard;
	guard_begin(&guard, &shared);
	number = 100;
	assert_true(LOGIN(offers, agreed));
	assert_false(guard_may_go_on(&guard));
	assert_false(command(1, FINAL | READS, 4, 0));
	assert_string_equal(guard.reason, "all sessions' commands are too large together");
	guard_end(&other);
	assert_true(guard_may_go_on(&guard));
	begin_session();
	assert_true(command(1, FINAL | READS, 4, 0));
}

static bool ping(uint32_t tag, uint32_t bytes)
{
	uint8_t header[GUARD_HEADER_BYTES] = { IMMEDIATE | GUARD_NOP_OUT, FINAL };

	put_be32(header + 16, tag);
	put_be32(header + 20, GUARD_TAG_NONE);
	return send_with(header, zeros, 0, zeros, bytes);
}

static void test_requests_that_are_no_commands_are_counted_too(void **state)
{
	uint32_t most = shared.limits.commands = 128;

	(void)state;
	begin_session();
	for (uint32_t at = 0; at < most; at++) {
		assert_true(guard_may_go_on(&guard));
		assert_true(at % 2 ? ping(at, 0)
				   : request(IMMEDIATE | GUARD_TASK_MANAGEMENT, 1, at, TAG));
	}
	assert_false(guard_may_go_on(&guard));
	answer(GUARD_TASK_MANAGEMENT_RESPONSE, FINAL, 0, 0, 0);
	assert_true(guard_may_go_on(&guard));
	answer(GUARD_NOP_IN, FINAL, 1, 0, 0);
	for (uint32_t at = most - 2; at < 2 * most; at++)
		assert_true(ping(at, 0));
	assert_reason(ping(9999, 0), "more than 256 requests are not answered");
	for (uint32_t at = 0; at < most; at++)
		assert_true(ping(GUARD_TAG_NONE, 0));
	assert_reason(ping(GUARD_TAG_NONE, 0), "too many requests without an answer");
}

static void test_the_data_of_pings_counts_as_memory_until_it_has_gone_back(void **state)
{
	uint8_t back[GUARD_HEADER_BYTES] = { GUARD_NOP_IN, FINAL };

	(void)state;
	shared.limits.session_memory = shared.limits.transfer = 8192;
	assert_true(ping(1, 8192));
	assert_int_equal(shared.bytes, 8192);
	assert_false(guard_may_go_on(&guard));
	put_be32(back + 4, 8192);
	put_be32(back + 16, 1);
	guard_went(&guard, back, sizeof(back));
	guard_went(&guard, zeros, 8192);
	assert_int_equal(shared.bytes, 0);
	for (uint32_t tag = 1; tag <= 3; tag++)
		assert_true(ping(tag, 8192));
	assert_reason(ping(4, 8192), "the session's commands are too large together");
}

static void test_limits_come_back_from_their_text_and_no_other_text_is_taken(void **state)
{
	struct limits limits, read;
	char text[LIMITS_TEXT_BYTES];

	(void)state;
	memset(&limits, 0, sizeof(limits));
	memset(&read, 0, sizeof(read));
	limits_default(&limits);
	limits.memory = UINT64_C(1) << 40;
	limits.login_timeout = 3600;
	limits_write(&limits, text);
	assert_int_equal(limits_read(text, &read), 0);
	assert_memory_equal(&read, &limits, sizeof(limits));
	strcat(text, " 1");
	assert_int_equal(limits_read(text, &read), -EINVAL);
	assert_int_equal(limits_read("1 2 3", &read), -EINVAL);
	assert_int_equal(limits_read("1 2 3 4 0 6 7 8", &read), -EINVAL);
	assert_int_equal(limits_read("1 2 3 4 4097 6 7 8", &read), -EINVAL);
}

int main(void)
{
#define with_session(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		with_session(
			test_a_bidirectional_command_of_exofs_passes_and_its_memory_comes_back),
		with_session(test_data_comes_unsolicited_then_as_it_is_asked_for),
		with_session(test_status_with_data_in_ends_a_command_and_data_alone_does_not),
		with_session(test_parts_are_followed_with_digests),
		with_session(test_a_tag_comes_again_while_an_aborted_command_waits_for_data),
		with_session(test_a_discovery_asks_for_texts_and_a_session_does_not),
		with_session(test_each_rule_for_commands_has_its_reason),
		with_session(test_each_rule_for_data_has_its_reason),
		with_session(test_padding_stays_inside_of_the_buffer),
		with_session(test_a_text_is_no_longer_than_tgtd_s_buffer),
		with_session(test_a_session_goes_on_at_its_limits_only_while_it_waits_for_data),
		with_session(test_as_many_commands_as_there_may_be_are_counted_and_forgotten),
		with_session(test_all_sessions_share_memory),
		with_session(test_requests_that_are_no_commands_are_counted_too),
		with_session(test_the_data_of_pings_counts_as_memory_until_it_has_gone_back),
		with_session(test_limits_come_back_from_their_text_and_no_other_text_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
