/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Everything that a signing client and the target say to each other is verified by a program that
 * shares nothing with them: verify_signed.py knows docs/protocol.md, the device key, and what went
 * over the wire.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/collections.h"
#include "tests/client/secured_target.h"

/* Commands whose continuation segments have capabilities and other descriptors. */
static void use_further_objects(struct osd_client *client)
{
	uint64_t made, collection;

	assert_int_equal(osd_client_copy(client, ADDRESS, PARTITION, 0, &made, NULL), 0);
	assert_int_equal(osd_client_create_collection(client, PARTITION, 0, &collection, NULL), 0);
	assert_int_equal(osd_client_create_tracking_collection(client, PARTITION, 0, collection,
							       &made, NULL),
			 0);
	assert_int_equal(osd_client_clone(client, IN_PARTITION, PARTITION + 1, false, NULL, NULL),
			 0);
}

static void be_refused(struct osd_client *client)
{
	static const struct osd_client_address nothing = { PARTITION, OBJECT + 1000, 0 };
	char data[4];
	size_t got;

	assert_int_equal(osd_client_read(client, nothing, 0, data, sizeof(data), &got, NULL),
			 -ENOENT);
}

static void test_another_program_agrees_about_every_value(void **state)
{
	char path[] = "/tmp/muninn-signed-XXXXXX", command[256];
	int fd = mkstemp(path), result;

	(void)state;
	assert_true(fd >= 0);
	record_of_targets = fdopen(fd, "w");
	assert_non_null(record_of_targets);
	for (enum osd_version version = OSD_1; version <= OSD_2; version++)
		for (unsigned wanted = OSD_CAPKEY; wanted <= OSD_ALLDATA; wanted++) {
			struct target target;

			open_secured(&target, version, (uint8_t)wanted);
			do_everything(target.client);
			be_refused(target.client);
			if (version == OSD_2)
				use_further_objects(target.client);
			close_target(&target);
		}
	assert_int_equal(fclose(record_of_targets), 0);
	record_of_targets = NULL;
	snprintf(command, sizeof(command),
		 "tests/client/verify_signed.py %02x%062x 01000010%s%026x %s >/dev/null",
		 DEVICE_KEY_BYTE_0, 0, UUID_BYTES_0_TO_2, 0, path);
	result = system(command);
	unlink(path);
	assert_int_equal(result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_program_agrees_about_every_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
