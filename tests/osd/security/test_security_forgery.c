/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Extension capabilities that are not genuine, were made for another request, or are none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/osd/extended.h"

#define M (&secured_manager)

/* ---- what is not genuine ---- */

static void test_every_bit_is_protected(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint64_t before = secured_close(unit, secured_methods[i]);

		for (size_t bit = 0; bit < 8 * (size_t)OSD_EXTENSION_BYTES; bit++) {
			struct signed_call call =
				call_of_use(unit, &uses[USE_COPY], secured_methods[i]);
			struct encoded_call encoded;

			extend(&call, &uses[USE_COPY]);
			signed_encode(unit, &call, &encoded);
			extensions_of(&encoded, &call)[bit / 8] ^= (uint8_t)(1 << bit % 8);
			signed_execute(unit, &call, &encoded);
			assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, secured_methods[i]);
	}
}

/*
 * Whoever has a right to the destination alone can sign request and segment, but not the extension
 * capability that somebody else has sent.
 */
static void test_no_bit_can_be_changed_by_those_without_its_key(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t bit = 0; bit < 8 * (size_t)OSD_EXTENSION_BYTES; bit++) {
		struct signed_call call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);
		struct encoded_call encoded;

		extend(&call, &uses[USE_COPY]);
		signed_encode(unit, &call, &encoded);
		extensions_of(&encoded, &call)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		call.extension_count = 0;
		signed_again(unit, &call, &encoded);
		call.extension_count = 1;
		signed_execute(unit, &call, &encoded);
		/*
		 * Format, algorithm and method are looked at before the value; so is whose key it
		 * is.
		 */
		if (bit / 8 > 2 && (bit / 8 < 72 || bit / 8 >= 80))
			expect_extension_field(unit, &call, unit_layout()->check_value);
		else
			assert_int_equal(unit->command.status, SCSI_STATUS_CHECK_CONDITION);
		assert_int_equal(contents_of(unit), before);
	}
}

static void test_one_made_with_another_key_is_refused(void **state)
{
	struct unit *unit = *state;
	const uint8_t *const secrets[] = { other_working.authentication, M->root.authentication,
					   M->partition.authentication };
	uint64_t before = secured_close(unit, OSD_CMDRSP);

	for (size_t i = 0; i < 3; i++) {
		struct signed_call call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);

		extend(&call, &uses[USE_COPY])->secret = secrets[i];
		signed_run(unit, &call);
		expect_extension_field(unit, &call, unit_layout()->check_value);
		assert_int_equal(contents_of(unit), before);
	}
}

/*
 * Puts the extension capability of one request into another one, which is signed anew as far as its
 * sender can.
 */
static void move(struct unit *unit, struct signed_call *from, struct signed_call *to)
{
	struct encoded_call seen, encoded;

	signed_encode(unit, from, &seen);
	signed_encode(unit, to, &encoded);
	memcpy(extensions_of(&encoded, to), extensions_of(&seen, from), OSD_EXTENSION_BYTES);
	to->extension_count = 0;
	signed_again(unit, to, &encoded);
	to->extension_count = 1;
	signed_execute(unit, to, &encoded);
	free(seen.out);
}

static void test_none_can_be_moved_to_another_request(void **state)
{
	struct unit *unit = *state;

	for (size_t i = 0; i < SECURED_METHODS; i++) {
		uint8_t method = secured_methods[i];
		uint64_t before = secured_close(unit, method);

		for (unsigned way = 0; way < 4; way++) {
			struct signed_call seen = call_of_use(unit, &uses[USE_COPY], method);
			struct signed_call call = call_of_use(unit, &uses[USE_COPY], method);

			extend(&seen, &uses[USE_COPY]);
			/* Way 0: a later request that is the same but for its nonce. */
			if (way > 0)
				memcpy(call.nonce, seen.nonce, sizeof(call.nonce));
			if (way == 1) {
				call.call.cdb.object = call.capability.object = O + 77;
			} else if (way == 2) {
				call.call.continuation_length = 0;
				add_source(&call.call, P, SECOND, true);
			} else if (way == 3) {
				memset(call.capability.discriminator, 3, 12);
			}
			extend(&call, &uses[USE_COPY]);
			move(unit, &seen, &call);
			expect_extension_field(unit, &call, unit_layout()->check_value);
			assert_int_equal(contents_of(unit), before);
		}
		secured_reopen(unit, method);
	}
}

static void test_with_capkey_one_is_bound_to_its_nexus(void **state)
{
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CAPKEY);
	struct signed_call call = call_of_use(unit, &uses[USE_COPY], OSD_CAPKEY);
	struct encoded_call encoded;

	extend(&call, &uses[USE_COPY]);
	unit->nexus = 7;
	signed_encode(unit, &call, &encoded);
	unit->nexus = 8;
	call.extension_count = 0;
	signed_again(unit, &call, &encoded);
	call.extension_count = 1;
	signed_execute(unit, &call, &encoded);
	expect_extension_field(unit, &call, unit_layout()->check_value);
	assert_int_equal(contents_of(unit), before);
}

static void test_a_request_with_one_is_not_accepted_twice(void **state)
{
	struct unit *unit = *state;
	struct signed_call call;
	uint64_t after;

	secured_close(unit, OSD_CMDRSP);
	call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);
	extend(&call, &uses[USE_COPY]);
	signed_run(unit, &call);
	expect_good(unit);
	after = contents_of(unit);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_NONCE_NOT_UNIQUE);
	assert_int_equal(contents_of(unit), after);
}

/* ---- lists that are none ---- */

static void add_list(struct call *call, uint32_t length)
{
	static const uint8_t list[(OSD_EXTENSIONS_MAX + 1) * OSD_EXTENSION_BYTES];

	assert_true(length <= sizeof(list));
	call_descriptor(call, OSD_CONTINUATION_EXTENSION_CAPABILITIES, list, length);
}

static void test_malformed_lists_are_refused(void **state)
{
	static const uint32_t lengths[] = { 0,
					    8,
					    OSD2_CAPABILITY_BYTES,
					    OSD_EXTENSION_BYTES - 1,
					    OSD_EXTENSION_BYTES + 1,
					    (OSD_EXTENSIONS_MAX + 1) * OSD_EXTENSION_BYTES };
	struct unit *unit = *state;
	uint64_t before = secured_close(unit, OSD_CMDRSP);
	struct signed_call call;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);
		add_list(&call.call, lengths[i]);
		signed_run(unit, &call);
		expect_field(unit, FIELD_CONTINUATION);
		assert_int_equal(contents_of(unit), before);
	}
	/* One list it is. */
	call = call_of_use(unit, &uses[USE_COPY], OSD_CMDRSP);
	add_list(&call.call, OSD_EXTENSION_BYTES);
	extend(&call, &uses[USE_COPY]);
	signed_run(unit, &call);
	expect_field(unit, FIELD_CONTINUATION);
	/* A command without further objects has no place for it. */
	call = signed_call_of(unit, OSD_READ, P, O, OSD_CMDRSP);
	call.call.data_in_capacity = call.call.cdb.length = 5;
	extend(&call, &uses[USE_COPY]);
	signed_run(unit, &call);
	expect_field(unit, FIELD_CONTINUATION);
	assert_int_equal(contents_of(unit), before);
}

static void test_nosec_does_not_look_at_them(void **state)
{
	struct unit *unit = *state;
	struct call call = call_of(OSD_COPY_USER_OBJECTS, P, 0);

	add_source(&call, P, SECOND, false);
	add_list(&call, 16);
	call_run(unit, &call);
	expect_good(unit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_scene(test_every_bit_is_protected),
		with_scene(test_no_bit_can_be_changed_by_those_without_its_key),
		with_scene(test_one_made_with_another_key_is_refused),
		with_scene(test_none_can_be_moved_to_another_request),
		with_scene(test_with_capkey_one_is_bound_to_its_nexus),
		with_scene(test_a_request_with_one_is_not_accepted_twice),
		with_scene(test_malformed_lists_are_refused),
		with_scene(test_nosec_does_not_look_at_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
