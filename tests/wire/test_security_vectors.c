/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Capabilities, check values and keys against answers that tests/wire/security_vectors.py worked
 * out from the documentation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/wire/security_vectors.h"
#include "wire/keys_exchange.h"
#include "wire/security.h"

static void fill(uint8_t *bytes, size_t length, unsigned start)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(start + 7 * i);
}

#define PATTERN(name, length, start) \
	uint8_t name[length];        \
	fill(name, length, start)

/* The key of the tests that follow. */
static void capability_key(enum osd_version version, uint8_t key[OSD_KEY_BYTES])
{
	PATTERN(secret, OSD_KEY_BYTES, 1);
	PATTERN(system_id, OSD_SYSTEM_ID_BYTES, 50);

	assert_int_equal(
		osd_capability_key(version, secret,
				   version == OSD_1 ? vector_capability_1 : vector_capability_2,
				   system_id, key),
		0);
}

static const uint8_t *vector_of(enum osd_version version, const uint8_t *first,
				const uint8_t *second)
{
	return version == OSD_1 ? first : second;
}

#define VECTOR(version, name) vector_of(version, vector_##name##_1, vector_##name##_2)

static const uint8_t *nonce_of(enum osd_version version)
{
	return VECTOR(version, cdb) + osd_security_layout(version)->nonce;
}

static void test_a_capability_has_the_layout_of_its_version(void **state)
{
	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		struct osd_capability capability;
		uint8_t encoded[OSD2_CAPABILITY_BYTES];
		PATTERN(audit, 20, 31);
		PATTERN(discriminator, 12, 77);

		osd_capability_decode(version, VECTOR(version, capability), &capability);
		assert_int_equal(capability.format, version);
		assert_int_equal(capability.key_version, 5);
		assert_int_equal(capability.algorithm, OSD_INTEGRITY_HMAC_SHA1);
		assert_int_equal(capability.method, OSD_ALLDATA);
		assert_int_equal(capability.expires_ms, 0x018BCFE56FFF);
		assert_memory_equal(capability.audit, audit, 20);
		assert_memory_equal(capability.discriminator, discriminator, 12);
		assert_int_equal(capability.created_ms, 0x018BCFE56801);
		assert_int_equal(capability.object_type, OSD_TYPE_USER_OBJECT);
		assert_int_equal(capability.permissions, OSD_PERMISSION_READ |
								 OSD_PERMISSION_WRITE |
								 OSD_PERMISSION_GET_ATTR);
		assert_int_equal(capability.descriptor_type, OSD_DESCRIPTOR_OBJECT);
		assert_int_equal(capability.policy_tag, 0x01020304);
		assert_int_equal(capability.partition, 0x10000);
		assert_int_equal(capability.object, 0x10005);
		assert_int_equal(capability.boot_epoch, version == OSD_1 ? 0 : 9);
		assert_int_equal(capability.range_length, version == OSD_1 ? 0 : 4096);
		assert_int_equal(capability.range_start, version == OSD_1 ? 0 : 512);
		osd_capability_encode(version, &capability, encoded);
		assert_memory_equal(encoded, VECTOR(version, capability),
				    osd_security_layout(version)->capability_bytes);
	}
}

static void test_a_capability_key_is_that_of_its_credential(void **state)
{
	uint8_t key[OSD_KEY_BYTES];

	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		capability_key(version, key);
		assert_memory_equal(key, VECTOR(version, capability_key), OSD_KEY_BYTES);
	}
}

static void test_request_check_values(void **state)
{
	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		const struct osd_security_layout *layout = osd_security_layout(version);
		uint8_t key[OSD_KEY_BYTES], value[OSD_CHECK_VALUE_BYTES], cdb[OSD2_CDB_BYTES];
		PATTERN(token, OSD_SECURITY_TOKEN_BYTES, 90);

		capability_key(version, key);
		assert_int_equal(osd_token_check_value(key, token, value), 0);
		assert_memory_equal(value, VECTOR(version, token_value), sizeof(value));
		memcpy(cdb, VECTOR(version, cdb),
		       version == OSD_1 ? OSD1_CDB_BYTES : OSD2_CDB_BYTES);
		/* What is in its own field does not count. */
		memset(cdb + layout->check_value, 0xAA, layout->check_value_bytes);
		assert_int_equal(osd_request_check_value(version, key, cdb, value), 0);
		assert_memory_equal(value, VECTOR(version, request_value), sizeof(value));
	}
}

static void test_response_check_values(void **state)
{
	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		struct osd_sense sense = { .key = SENSE_ILLEGAL_REQUEST,
					   .code = SENSE_INVALID_FIELD_IN_CDB };
		uint8_t key[OSD_KEY_BYTES], value[OSD_CHECK_VALUE_BYTES], data[64];
		size_t length, bytes;

		capability_key(version, key);
		assert_int_equal(
			osd_response_check_value(key, nonce_of(version), 0, NULL, 0, value), 0);
		assert_memory_equal(value, VECTOR(version, response_good), sizeof(value));
		sense.check_value_bytes = version == OSD_1 ? 20 : 32;
		length = osd_sense_encode(&sense, data, sizeof(data));
		assert_int_equal(
			osd_response_check_value(key, nonce_of(version), 2, data, length, value),
			0);
		assert_memory_equal(value, VECTOR(version, response_check_condition),
				    sizeof(value));
		assert_ptr_equal(osd_sense_check_value_place(data, length, &bytes), data + 10);
		assert_int_equal(bytes, sense.check_value_bytes);
	}
}

static void test_sense_data_without_check_value_has_no_place_for_it(void **state)
{
	static const uint8_t lengths_beyond[] = { 0x72, 5, 0x24, 0, 0, 0, 0, 34, 7, 32, 0, 0 };
	uint8_t data[64];
	struct osd_sense sense = { .key = SENSE_ILLEGAL_REQUEST, .has_object = true };
	size_t length = osd_sense_encode(&sense, data, sizeof(data)), bytes;

	(void)state;
	assert_null(osd_sense_check_value_place(data, length, &bytes));
	memcpy(data, lengths_beyond, sizeof(lengths_beyond));
	assert_null(osd_sense_check_value_place(data, sizeof(lengths_beyond), &bytes));
	assert_null(osd_sense_check_value_place(data, 3, &bytes));
}

static void test_integrity_information_of_data(void **state)
{
	PATTERN(data_out, 5, 1);
	PATTERN(sets, 24, 2);
	PATTERN(gets, 16, 3);
	PATTERN(data_in, 16, 4);
	PATTERN(retrieved, 32, 5);
	const struct iovec out[] = { { data_out, 5 }, { sets, 24 }, { gets, 16 } };
	const struct iovec in[] = { { data_in, 16 }, { retrieved, 32 } };
	const struct osd_integrity_lengths out_lengths = { 5, 24, 16 }, in_lengths = { 16, 0, 32 };

	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++) {
		uint8_t key[OSD_KEY_BYTES], information[64];

		capability_key(version, key);
		memset(information, 0xAA, sizeof(information));
		assert_int_equal(osd_data_out_integrity(version, key, nonce_of(version),
							&out_lengths, out, 3, information),
				 0);
		assert_int_equal(osd_data_out_integrity_bytes(version), version == OSD_1 ? 44 : 56);
		assert_memory_equal(information, VECTOR(version, data_out),
				    osd_data_out_integrity_bytes(version));
		assert_int_equal(osd_data_in_integrity(version, key, nonce_of(version), &in_lengths,
						       in, 2, information),
				 0);
		assert_int_equal(osd_data_in_integrity_bytes(version), version == OSD_1 ? 36 : 48);
		assert_memory_equal(information, VECTOR(version, data_in),
				    osd_data_in_integrity_bytes(version));
	}
}

static void test_check_value_of_a_continuation_segment(void **state)
{
	uint8_t segment[48] = { 1, 0, 0x88, 0x85 }, value[OSD_CHECK_VALUE_BYTES];
	PATTERN(secret, OSD_KEY_BYTES, 1);

	(void)state;
	memset(segment + 8, 0xAA, 32);
	assert_int_equal(osd_continuation_check_value(secret, nonce_of(OSD_2), segment,
						      sizeof(segment), value),
			 0);
	assert_memory_equal(value, vector_continuation_value, sizeof(value));
}

static void test_check_values_of_extension_capabilities(void **state)
{
	/* Behind head, source and the list's own head. */
	enum { LIST = 40 + 32 + 8 };
	uint8_t segment[sizeof(vector_extended_segment)], cdb[OSD2_CDB_BYTES];
	uint8_t value[OSD_CHECK_VALUE_BYTES];
	PATTERN(secret, OSD_KEY_BYTES, 1);
	PATTERN(token, OSD_SECURITY_TOKEN_BYTES, 90);

	(void)state;
	memcpy(segment, vector_extended_segment, sizeof(segment));
	memcpy(cdb, vector_cdb_2, sizeof(cdb));
	/* What is in the fields of check values does not count. */
	memset(cdb + 184, 0xAA, 32);
	memset(segment + 8, 0xBB, 32);
	memset(segment + LIST + 104, 0xCC, 32);
	memset(segment + LIST + 136 + 104, 0xDD, 32);
	assert_int_equal(osd_extension_check_value(secret, NULL, cdb, segment, sizeof(segment),
						   segment + LIST, 2, value),
			 0);
	assert_memory_equal(value, vector_extension_value, sizeof(value));
	assert_int_equal(osd_extension_check_value(secret, token, cdb, segment, sizeof(segment),
						   segment + LIST, 2, value),
			 0);
	assert_memory_equal(value, vector_extension_token_value, sizeof(value));
}

static void test_keys_from_a_seed_and_from_the_device_key(void **state)
{
	uint8_t authentication[OSD_KEY_BYTES], generation[OSD_KEY_BYTES];
	PATTERN(secret, OSD_KEY_BYTES, 1);
	PATTERN(seed, OSD_SEED_BYTES, 200);
	PATTERN(device_key, 32, 11);
	PATTERN(system_id, OSD_SYSTEM_ID_BYTES, 50);

	(void)state;
	assert_int_equal(osd_derive_keys(secret, seed, sizeof(seed), authentication, generation),
			 0);
	assert_memory_equal(authentication, vector_derived_authentication, OSD_KEY_BYTES);
	assert_memory_equal(generation, vector_derived_generation, OSD_KEY_BYTES);
	assert_int_equal(osd_initial_master_keys(device_key, system_id, authentication, generation),
			 0);
	assert_memory_equal(authentication, vector_initial_authentication, OSD_KEY_BYTES);
	assert_memory_equal(generation, vector_initial_generation, OSD_KEY_BYTES);
}

/* ---- Diffie-Hellman ---- */

static void test_both_sides_of_an_exchange_get_the_known_secret(void **state)
{
	struct osd_dh_pair pair = { .group = OSD_DH_GROUP_2048 };
	uint8_t shared[OSD_DH_BYTES_MAX];

	(void)state;
	fill(pair.secret, sizeof(pair.secret), 21);
	assert_int_equal(osd_dh_share(&pair, vector_dh_public, shared), 0);
	assert_memory_equal(shared, vector_dh_shared, sizeof(vector_dh_shared));
}

static void test_fresh_pairs_agree_and_differ(void **state)
{
	static const uint8_t groups[] = { OSD_DH_GROUP_2048, OSD_DH_GROUP_3072 };

	(void)state;
	for (size_t i = 0; i < sizeof(groups); i++) {
		uint8_t group = groups[i];
		struct osd_dh_pair mine, yours;
		uint8_t a[OSD_DH_BYTES_MAX], b[OSD_DH_BYTES_MAX];

		assert_int_equal(osd_dh_begin(group, &mine), 0);
		assert_int_equal(osd_dh_begin(group, &yours), 0);
		assert_memory_not_equal(mine.own, yours.own, osd_dh_bytes(group));
		assert_int_equal(osd_dh_share(&mine, yours.own, a), 0);
		assert_int_equal(osd_dh_share(&yours, mine.own, b), 0);
		assert_memory_equal(a, b, osd_dh_bytes(group));
	}
	assert_int_equal(osd_dh_begin(13, &(struct osd_dh_pair){ 0 }), -EINVAL);
}

static void test_numbers_that_give_a_secret_away_are_refused(void **state)
{
	struct osd_dh_pair pair;
	uint8_t number[256] = { 0 }, shared[OSD_DH_BYTES_MAX];

	(void)state;
	assert_int_equal(osd_dh_begin(OSD_DH_GROUP_2048, &pair), 0);
	assert_int_equal(osd_dh_share(&pair, number, shared), -EINVAL);
	number[255] = 1;
	assert_int_equal(osd_dh_share(&pair, number, shared), -EINVAL);
	memcpy(number, vector_dh_prime, sizeof(number));
	assert_int_equal(osd_dh_share(&pair, number, shared), -EINVAL);
	number[255]--;
	assert_int_equal(osd_dh_share(&pair, number, shared), -EINVAL);
	number[255]--;
	assert_int_equal(osd_dh_share(&pair, number, shared), 0);
}

static void test_lists_of_the_exchange(void **state)
{
	uint8_t list[OSD_CHANGE_MASTER_BYTES_MAX];
	const uint8_t *number, *other;
	size_t length = osd_seed_encode(OSD_DH_GROUP_2048, vector_dh_public, list);

	(void)state;
	assert_int_equal(length, 4 + 256);
	assert_memory_equal(list, "\0\0\1\0", 4);
	assert_int_equal(osd_seed_decode(list, length, OSD_DH_GROUP_2048, &number), 0);
	assert_ptr_equal(number, list + 4);
	for (size_t shorter = 0; shorter < length; shorter++)
		assert_int_equal(osd_seed_decode(list, shorter, OSD_DH_GROUP_2048, &number),
				 -EINVAL);
	assert_int_equal(osd_seed_decode(list, length, OSD_DH_GROUP_3072, &number), -EINVAL);
	assert_int_equal(osd_seed_decode(list, length, 13, &number), -EINVAL);

	length = osd_change_master_encode(OSD_DH_GROUP_2048, vector_dh_public, vector_dh_shared,
					  list);
	assert_int_equal(length, 8 + 512);
	assert_int_equal(osd_change_master_decode(list, length, OSD_DH_GROUP_2048, &number, &other),
			 0);
	assert_memory_equal(number, vector_dh_public, 256);
	assert_memory_equal(other, vector_dh_shared, 256);
	assert_int_equal(
		osd_change_master_decode(list, length - 1, OSD_DH_GROUP_2048, &number, &other),
		-EINVAL);
}

static void test_comparing_tells_any_difference(void **state)
{
	uint8_t a[32] = { 0 }, b[32] = { 0 };

	(void)state;
	assert_true(osd_check_values_equal(a, b, sizeof(a)));
	for (size_t i = 0; i < 8 * sizeof(a); i++) {
		b[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(osd_check_values_equal(a, b, sizeof(a)));
		b[i / 8] = 0;
	}
}

static void test_the_known_answers_are_those_of_their_script(void **state)
{
	(void)state;
	if (system("tests/wire/security_vectors.py --check") != 0)
		fail_msg(
			"run `tests/wire/security_vectors.py --write` from the top of the sources");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_capability_has_the_layout_of_its_version),
		cmocka_unit_test(test_a_capability_key_is_that_of_its_credential),
		cmocka_unit_test(test_request_check_values),
		cmocka_unit_test(test_response_check_values),
		cmocka_unit_test(test_sense_data_without_check_value_has_no_place_for_it),
		cmocka_unit_test(test_integrity_information_of_data),
		cmocka_unit_test(test_check_value_of_a_continuation_segment),
		cmocka_unit_test(test_check_values_of_extension_capabilities),
		cmocka_unit_test(test_keys_from_a_seed_and_from_the_device_key),
		cmocka_unit_test(test_both_sides_of_an_exchange_get_the_known_secret),
		cmocka_unit_test(test_fresh_pairs_agree_and_differ),
		cmocka_unit_test(test_numbers_that_give_a_secret_away_are_refused),
		cmocka_unit_test(test_lists_of_the_exchange),
		cmocka_unit_test(test_comparing_tells_any_difference),
		cmocka_unit_test(test_the_known_answers_are_those_of_their_script),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
