/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* SET MASTER KEY: an exchange of numbers, and a key that follows from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/osd/secured.h"
#include "wire/keys_exchange.h"

#define M (&secured_manager)

static bool has_identifier(struct unit *unit, uint8_t fill)
{
	uint8_t value[7], expected[7];

	memset(expected, fill, sizeof(expected));
	return unit_get(unit, 0, 0, OSD_ROOT_SECURITY, OSD_SECURITY_MASTER_KEY_IDENTIFIER, value,
			7) == 7 &&
	       memcmp(value, expected, sizeof(value)) == 0;
}

struct exchange {
	struct osd_dh_pair pair;
	uint8_t device[OSD_DH_BYTES_MAX];
	uint8_t list[OSD_CHANGE_MASTER_BYTES_MAX];
};

static struct signed_call master_call(struct unit *unit, unsigned step, const uint8_t *list,
				      size_t length, uint32_t room)
{
	struct signed_call call = signed_call_of(unit, OSD_SET_MASTER_KEY, 0, 0, OSD_ALLDATA);
	struct osd_key_fields fields = { .dh_group = OSD_DH_GROUP_2048,
					 .parameter_length = (uint32_t)length,
					 .allocation_length = room };

	memset(fields.identifier, 0x99, sizeof(fields.identifier));
	osd_key_fields_encode(OSD_SET_MASTER_KEY, &fields, call.call.cdb.key_bytes);
	call.call.cdb.command_options = (uint8_t)step;
	call.call.data = list;
	call.call.data_length = length;
	call.call.data_in_capacity = room;
	call.secret = M->master.authentication;
	return call;
}

/* The first step; leaves the list of the second in `exchange`. Returns its length. */
static size_t exchange_seeds(struct unit *unit, struct exchange *exchange)
{
	struct signed_call call;
	const uint8_t *number;
	size_t length;

	assert_int_equal(osd_dh_begin(OSD_DH_GROUP_2048, &exchange->pair), 0);
	length = osd_seed_encode(OSD_DH_GROUP_2048, exchange->pair.own, exchange->list);
	call = master_call(unit, OSD_SEED_EXCHANGE, exchange->list, length, 512);
	signed_run(unit, &call);
	expect_good(unit);
	assert_int_equal(osd_seed_decode(unit->data_in, 260, OSD_DH_GROUP_2048, &number), 0);
	memcpy(exchange->device, number, 256);
	return osd_change_master_encode(OSD_DH_GROUP_2048, exchange->pair.own, exchange->device,
					exchange->list);
}

static void test_the_master_key_is_changed_in_two_steps(void **state)
{
	struct unit *unit = *state;
	struct exchange exchange;
	struct key_pair next;
	uint8_t shared[OSD_DH_BYTES_MAX];
	struct signed_call call;
	size_t length = exchange_seeds(unit, &exchange);

	assert_true(has_identifier(unit, 0));
	assert_int_equal(osd_dh_share(&exchange.pair, exchange.device, shared), 0);
	assert_int_equal(osd_derive_keys(M->master.generation, shared, 256, next.authentication,
					 next.generation),
			 0);
	call = master_call(unit, OSD_CHANGE_MASTER_KEY, exchange.list, length, 0);
	signed_run(unit, &call);
	shows_good(unit, SET_MASTER_KEY, "CHANGE MASTER KEY; all other keys become invalid");
	assert_true(has_identifier(unit, 0x99));
	/* The old one opens nothing any more, the root key is gone. */
	call = signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 1, &M->root);
	signed_run(unit, &call);
	expect_field(unit, osd_security_layout(unit_version)->check_value);
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, P, 0, 1, &M->partition);
	signed_run(unit, &call);
	expect_field(unit, 81);
	M->master = next;
	secured_restart(unit, M->device_key);
	secured_set_keys(unit, M);
}

/* GET ATTRIBUTES of the root by another session: is it told that keys have changed? */
static bool is_told(struct unit *unit)
{
	struct call call = call_of(OSD_GET_ATTRIBUTES, 0, 0);
	uint64_t nexus = unit->nexus;

	unit->nexus = 77;
	call_run(unit, &call);
	unit->nexus = nexus;
	return unit->command.status == SCSI_STATUS_CHECK_CONDITION &&
	       unit_sense(unit).code == SENSE_PARAMETERS_CHANGED;
}

static void test_others_are_told_of_a_new_master_key_and_not_of_seeds(void **state)
{
	struct unit *unit = *state;
	struct exchange exchange;
	struct signed_call call;
	size_t length;

	assert_false(is_told(unit));
	length = exchange_seeds(unit, &exchange);
	assert_false(is_told(unit));
	call = master_call(unit, OSD_CHANGE_MASTER_KEY, exchange.list, length, 0);
	signed_run(unit, &call);
	expect_good(unit);
	assert_true(is_told(unit));
	assert_false(is_told(unit));
}

static void test_an_exchange_is_used_once_and_soon(void **state)
{
	struct unit *unit = *state;
	struct exchange exchange;
	struct signed_call call;
	uint64_t before = contents_of(unit);
	size_t length;

	/* None under way. */
	memset(&exchange, 1, sizeof(exchange));
	call = master_call(unit, OSD_CHANGE_MASTER_KEY, exchange.list, 520, 0);
	signed_run(unit, &call);
	shows_sense(unit, SET_MASTER_KEY, "CHANGE MASTER KEY without SEED EXCHANGE before it",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	/* Too late. */
	length = exchange_seeds(unit, &exchange);
	unit->now_ms += 10001;
	call = master_call(unit, OSD_CHANGE_MASTER_KEY, exchange.list, length, 0);
	signed_run(unit, &call);
	shows_sense(unit, SET_MASTER_KEY, "more than 10 s behind SEED EXCHANGE", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	/* Other numbers than were exchanged: the exchange is over. */
	length = exchange_seeds(unit, &exchange);
	exchange.list[300] ^= 1;
	call = master_call(unit, OSD_CHANGE_MASTER_KEY, exchange.list, length, 0);
	signed_run(unit, &call);
	shows_sense(unit, SET_MASTER_KEY, "other numbers than were exchanged", ILLEGAL_REQUEST,
		    INVALID_FIELD_IN_PARAMETER_LIST);
	exchange.list[300] ^= 1;
	call = master_call(unit, OSD_CHANGE_MASTER_KEY, exchange.list, length, 0);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	assert_int_equal(contents_of(unit), before);
}

static void test_the_exchange_refuses_bad_numbers_groups_and_methods(void **state)
{
	struct unit *unit = *state;
	struct exchange exchange;
	struct signed_call call;
	static const uint8_t zero[256];
	uint8_t list[4 + 256];
	uint64_t before = contents_of(unit);
	size_t length = osd_seed_encode(OSD_DH_GROUP_2048, zero, list);

	assert_int_equal(length, sizeof(list));
	/* Zero is found out when the secret would be made. */
	call = master_call(unit, OSD_SEED_EXCHANGE, list, length, 512);
	signed_run(unit, &call);
	shows_good(unit, SET_MASTER_KEY, "SEED EXCHANGE");
	memcpy(exchange.device, unit->data_in + 4, 256);
	length = osd_change_master_encode(OSD_DH_GROUP_2048, list + 4, exchange.device,
					  exchange.list);
	call = master_call(unit, OSD_CHANGE_MASTER_KEY, exchange.list, length, 0);
	signed_run(unit, &call);
	expect_sense(unit, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	call = master_call(unit, OSD_SEED_EXCHANGE, list, sizeof(list), 512);
	call.call.cdb.key_bytes[0] = 2;
	signed_run(unit, &call);
	shows_field(unit, SET_MASTER_KEY, "a DH group that is not supported", 24);
	call = master_call(unit, OSD_SEED_EXCHANGE, list, sizeof(list), 512);
	call.call.cdb.key_bytes[0] = OSD_DH_GROUP_3072;
	signed_run(unit, &call);
	shows_sense(unit, SET_MASTER_KEY, "a number of another length than the group's",
		    ILLEGAL_REQUEST, INVALID_FIELD_IN_PARAMETER_LIST);
	call = master_call(unit, 2, list, sizeof(list), 512);
	signed_run(unit, &call);
	shows_field(unit, SET_MASTER_KEY, "DH_STEP 2 or 3", 11);
	call = master_call(unit, OSD_SEED_EXCHANGE, list, sizeof(list), 512);
	call.capability.method = OSD_CMDRSP;
	signed_run(unit, &call);
	shows_field(unit, SET_MASTER_KEY, "a method below ALLDATA", 82);
	call = master_call(unit, OSD_SEED_EXCHANGE, list, sizeof(list), 512);
	call.secret = M->root.authentication;
	signed_run(unit, &call);
	shows_fields(unit, SET_MASTER_KEY, "signed with another key than the master key", 160, 184);
	/* More parameters than came. */
	call = master_call(unit, OSD_SEED_EXCHANGE, list, sizeof(list), 512);
	put_be32(call.call.cdb.key_bytes + 8, 5000);
	signed_run(unit, &call);
	shows_field(unit, SET_MASTER_KEY, "more parameter data than Data-Out", 32);
	assert_int_equal(contents_of(unit), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_keys_in_both(test_the_master_key_is_changed_in_two_steps),
		with_keys_in_both(test_others_are_told_of_a_new_master_key_and_not_of_seeds),
		with_keys_in_both(test_an_exchange_is_used_once_and_soon),
		with_keys_in_both(test_the_exchange_refuses_bad_numbers_groups_and_methods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
