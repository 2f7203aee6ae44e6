/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Addresses as people write them, and URLs that must not get as far as a connection. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/login.h"
#include "client/osd_client.h"

static void expect(const char *text, uint64_t partition, uint64_t object, uint16_t version)
{
	struct osd_client_address address;

	assert_int_equal(osd_client_parse_address(text, &address, NULL), 0);
	assert_true(address.partition == partition);
	assert_true(address.object == object);
	assert_int_equal(address.version, version);
}

static void test_all_forms_are_understood(void **state)
{
	(void)state;
	expect("", 0, 0, 0);
	expect("0", 0, 0, 0);
	expect("65536", 0x10000, 0, 0);
	expect("0x10000", 0x10000, 0, 0);
	expect("0X1ABCDef", 0x1abcdef, 0, 0);
	expect("0x10000/0x10004", 0x10000, 0x10004, 0);
	expect("0x10000/65540@3", 0x10000, 0x10004, 3);
	expect("65536@0xffff", 0x10000, 0, 0xffff);
	expect("0@0x8000", 0, 0, 0x8000);
	expect("0xffffffffffff/18446744073709551615", 0xffffffffffff, UINT64_MAX, 0);
	expect("010", 10, 0, 0);
}

static void test_everything_else_is_refused_with_a_sentence(void **state)
{
	static const char *const wrong[] = {
		"x",       "-1",
		"+1",      " 1",
		"1 ",      "1/",
		"/1",      "1//2",
		"1/2/3",   "1@",
		"1@2@3",   "1@2/3",
		"0x",      "0xg",
		"1/0x",    "1.5",
		"65536@0", "65536@0x0",
		"0/5",     "0/5@1",
		"@1",      "0x1000000000000",
		"1@65536", "1/18446744073709551616",
		"1/-2",    "1@-1",
		"0x-1",    "1\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct osd_client_address address;
		struct error_text error = { "" };

		if (osd_client_parse_address(wrong[i], &address, &error) != -EINVAL ||
		    !error.text[0])
			fail_msg("'%s' was not refused", wrong[i]);
	}
}

static void test_what_is_printed_can_be_read_again(void **state)
{
	static const struct osd_client_address addresses[] = {
		{ 0, 0, 0 },
		{ 0x10000, 0, 0 },
		{ 0x10000, 0x10005, 0 },
		{ 0xffffffffffff, UINT64_MAX, 0xffff },
		{ 0x10000, 0, 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		char text[OSD_CLIENT_ADDRESS_TEXT];

		osd_client_format_address(addresses[i], text);
		expect(text, addresses[i].partition, addresses[i].object, addresses[i].version);
	}
}

static void test_a_version_stands_in_the_upper_bits_of_the_partition(void **state)
{
	struct osd_request request = { 0 };
	struct osd_client_address address = { 0x10000, 0x10005, 3 };

	(void)state;
	osd_request_address(&request, address);
	assert_true(request.cdb.partition == UINT64_C(0x0003000000010000));
	assert_true(request.cdb.object == 0x10005);
}

static void test_urls_of_other_forms_are_refused_before_connecting(void **state)
{
	static const char *const wrong[] = {
		"",
		"http://127.0.0.1/iqn.x/1",
		"iscsi:/127.0.0.1/iqn.x/1",
		"iscsi://127.0.0.1",
		"iscsi://127.0.0.1/iqn.x",
		"iscsi://127.0.0.1//1",
		"iscsi://127.0.0.1/iqn.x/",
		"iscsi://127.0.0.1/iqn.x/one",
		"iscsi://127.0.0.1/iqn.x/1x",
		"iscsi://127.0.0.1/iqn.x/-1",
		"iscsi://127.0.0.1/iqn.x/16384",
		"iscsi://127.0.0.1/iqn.x/1?header_digest",
		"iscsi://127.0.0.1/iqn.x/1?a=b&header_digest",
	};
	const struct login_options options = { .timeout_ms = 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct login_result result;
		struct error_text error = { "" };

		if (login_connect(wrong[i], &options, &result, &error) != -EINVAL || !error.text[0])
			fail_msg("'%s' was not refused: %s", wrong[i], error.text);
	}
}

static void test_a_url_that_would_be_cut_is_refused(void **state)
{
	const struct login_options options = { .timeout_ms = 1000 };
	struct login_result result;
	struct error_text error;
	char url[400];

	(void)state;
	snprintf(url, sizeof(url), "iscsi://127.0.0.1/iqn.%0300d/1", 0);
	assert_int_equal(login_connect(url, &options, &result, &error), -EINVAL);
	assert_non_null(strstr(error.text, "longer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_forms_are_understood),
		cmocka_unit_test(test_everything_else_is_refused_with_a_sentence),
		cmocka_unit_test(test_what_is_printed_can_be_read_again),
		cmocka_unit_test(test_a_version_stands_in_the_upper_bits_of_the_partition),
		cmocka_unit_test(test_urls_of_other_forms_are_refused_before_connecting),
		cmocka_unit_test(test_a_url_that_would_be_cut_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
