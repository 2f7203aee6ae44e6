/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* ENVELOPE byte by byte: the examples of docs/protocol.md, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/envelope.h"

/* SEND of 276 bytes with the tag 0x1122334455667788, and FETCH with space for 288. */
static const uint8_t send[] = { 0xC0, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
				0x77, 0x88, 0x00, 0x00, 0x01, 0x14, 0x00, 0x00 };
static const uint8_t fetch[] = { 0xC1, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
				 0x77, 0x88, 0x00, 0x00, 0x01, 0x20, 0x00, 0x00 };
/* The beginning of a letter with a CDB of 236 bytes and 4 bytes of Data-Out. */
static const uint8_t letter_head[] = { 0x01, 0x00, 0x00, 0xEC, 0x00, 0x00, 0x00, 0x04,
				       0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00 };
/* Of an answer: CHECK CONDITION, 8 bytes of sense data, 16 of Data-In, 4 of Data-Out used. */
static const uint8_t answer_head[] = { 0x01, 0x02, 0x00, 0x08, 0x00, 0x00, 0x00, 0x10,
				       0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00 };
static const uint8_t sense[] = { 0x72, 0x05, 0x24, 0x00, 0x00, 0x00, 0x00, 0x00 };

static void expect_cdb(const uint8_t *bytes, uint8_t operation, uint32_t length)
{
	const struct envelope_cdb cdb = { operation, UINT64_C(0x1122334455667788), length };
	uint8_t encoded[ENVELOPE_CDB_BYTES];
	struct envelope_cdb decoded;
	uint16_t field;

	envelope_cdb_encode(&cdb, encoded);
	assert_memory_equal(encoded, bytes, ENVELOPE_CDB_BYTES);
	assert_int_equal(envelope_cdb_decode(bytes, ENVELOPE_CDB_BYTES, &decoded, &field), 0);
	assert_int_equal(decoded.operation, operation);
	assert_int_equal(decoded.tag, cdb.tag);
	assert_int_equal(decoded.length, length);
}

static void test_the_documented_cdbs_encode_and_decode(void **state)
{
	(void)state;
	expect_cdb(send, ENVELOPE_SEND, 276);
	expect_cdb(fetch, ENVELOPE_FETCH, 288);
}

static void expect_bad_cdb(size_t at, uint8_t value, uint16_t field)
{
	uint8_t bytes[ENVELOPE_CDB_BYTES];
	struct envelope_cdb decoded;
	uint16_t found = 0xFFFF;

	memcpy(bytes, send, sizeof(bytes));
	bytes[at] = value;
	assert_int_equal(envelope_cdb_decode(bytes, sizeof(bytes), &decoded, &found), -EINVAL);
	assert_int_equal(found, field);
}

static void test_a_wrong_cdb_names_its_field(void **state)
{
	struct envelope_cdb decoded;
	uint16_t field;

	(void)state;
	expect_bad_cdb(0, 0xC2, 0);
	expect_bad_cdb(1, 1, 1);
	expect_bad_cdb(14, 1, 14);
	/* Less than a head. */
	expect_bad_cdb(12, 0, 10);
	for (size_t length = 0; length < ENVELOPE_CDB_BYTES; length++)
		assert_int_equal(envelope_cdb_decode(send, length, &decoded, &field), -EINVAL);
}

static void test_the_documented_letter_encodes_and_decodes(void **state)
{
	uint8_t cdb[236] = { 0x7F }, bytes[ENVELOPE_HEAD_BYTES];
	const struct envelope_letter letter = { cdb, sizeof(cdb), 4 };
	struct envelope_letter decoded;
	uint16_t field;

	(void)state;
	cdb[235] = 0xAA;
	memset(bytes, 0x5A, sizeof(bytes));
	envelope_letter_encode(&letter, bytes);
	assert_memory_equal(bytes, letter_head, sizeof(letter_head));
	assert_memory_equal(bytes + 16, cdb, sizeof(cdb));
	assert_int_equal(envelope_letter_decode(bytes, sizeof(bytes) + 4, &decoded, &field), 0);
	assert_int_equal(decoded.cdb_length, 236);
	assert_int_equal(decoded.data_length, 4);
	assert_ptr_equal(decoded.cdb, bytes + 16);
}

/* A letter without data, one byte of whose head is changed. */
static void expect_bad_letter(size_t at, uint8_t value, uint16_t field)
{
	static const uint8_t cdb[200] = { 0x7F };
	const struct envelope_letter letter = { cdb, sizeof(cdb), 0 };
	uint8_t bytes[ENVELOPE_HEAD_BYTES];
	struct envelope_letter decoded;
	uint16_t found = 0xFFFF;

	envelope_letter_encode(&letter, bytes);
	bytes[at] = value;
	assert_int_equal(envelope_letter_decode(bytes, sizeof(bytes), &decoded, &found), -EINVAL);
	assert_int_equal(found, field);
}

static void test_a_wrong_letter_names_its_field(void **state)
{
	(void)state;
	expect_bad_letter(0, 2, 0);
	expect_bad_letter(1, 1, 1);
	expect_bad_letter(3, 0, 2);     /* no CDB */
	expect_bad_letter(2, 1, 2);     /* a CDB longer than its place */
	expect_bad_letter(7, 1, 4);     /* more data than came */
	expect_bad_letter(8, 1, 8);     /* what is reserved */
	expect_bad_letter(15, 1, 15);   /* the same */
	expect_bad_letter(216, 1, 216); /* behind the CDB */
	expect_bad_letter(271, 1, 271);
}

static void test_the_documented_answer_encodes_and_decodes(void **state)
{
	const struct envelope_answer answer = { 0x02, sense, sizeof(sense), 16, 4 };
	uint8_t bytes[ENVELOPE_HEAD_BYTES];
	struct envelope_answer decoded;

	(void)state;
	memset(bytes, 0x5A, sizeof(bytes));
	envelope_answer_encode(&answer, bytes);
	assert_memory_equal(bytes, answer_head, sizeof(answer_head));
	assert_memory_equal(bytes + 16, sense, sizeof(sense));
	for (size_t i = 16 + sizeof(sense); i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0);
	assert_int_equal(envelope_answer_decode(bytes, sizeof(bytes) + 16, &decoded), 0);
	assert_int_equal(decoded.status, 0x02);
	assert_int_equal(decoded.sense_length, sizeof(sense));
	assert_memory_equal(decoded.sense, sense, sizeof(sense));
	assert_int_equal(decoded.data_length, 16);
	assert_int_equal(decoded.data_out_used, 4);
}

static void test_an_answer_that_lies_about_its_lengths_is_none(void **state)
{
	const struct envelope_answer answer = { 0x00, NULL, 0, 16, 0 };
	uint8_t bytes[ENVELOPE_HEAD_BYTES];
	struct envelope_answer decoded;

	(void)state;
	envelope_answer_encode(&answer, bytes);
	assert_int_equal(envelope_answer_decode(bytes, sizeof(bytes) + 15, &decoded), -EINVAL);
	assert_int_equal(envelope_answer_decode(bytes, sizeof(bytes) - 1, &decoded), -EINVAL);
	bytes[2] = 1; /* 256 bytes of sense data are as many as there may be */
	assert_int_equal(envelope_answer_decode(bytes, sizeof(bytes) + 16, &decoded), 0);
	bytes[3] = 1;
	assert_int_equal(envelope_answer_decode(bytes, sizeof(bytes) + 16, &decoded), -EINVAL);
	bytes[2] = bytes[3] = 0;
	bytes[0] = 0;
	assert_int_equal(envelope_answer_decode(bytes, sizeof(bytes) + 16, &decoded), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_documented_cdbs_encode_and_decode),
		cmocka_unit_test(test_a_wrong_cdb_names_its_field),
		cmocka_unit_test(test_the_documented_letter_encodes_and_decodes),
		cmocka_unit_test(test_a_wrong_letter_names_its_field),
		cmocka_unit_test(test_the_documented_answer_encodes_and_decodes),
		cmocka_unit_test(test_an_answer_that_lies_about_its_lengths_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
