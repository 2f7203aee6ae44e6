/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Signed commands to the target's own OSD layer, over a session; and answers that somebody has
 * changed on the way.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/collections.h"
#include "client/security.h"
#include "common/bytes.h"
#include "tests/client/secured_target.h"

/* ---- what works ---- */

static void test_signed_commands_do_what_others_do(void **state)
{
	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++)
		for (unsigned wanted = OSD_CAPKEY; wanted <= OSD_ALLDATA; wanted++) {
			struct target target;

			open_secured(&target, version, (uint8_t)wanted);
			do_everything(target.client);
			close_target(&target);
		}
}

static void test_many_signed_commands_may_be_in_flight(void **state)
{
	enum { COMMANDS = 64 };
	static struct osd_request requests[COMMANDS];
	static uint8_t buffers[COMMANDS][10];
	struct target target;

	(void)state;
	open_secured(&target, OSD_2, OSD_ALLDATA);
	for (size_t i = 0; i < COMMANDS; i++) {
		requests[i] = (struct osd_request){ .cdb = { .action = OSD_READ },
						    .buffer = buffers[i],
						    .buffer_length = 10 };
		osd_request_address(&requests[i], ADDRESS);
		assert_int_equal(osd_client_submit(target.client, &requests[i]), 0);
	}
	assert_int_equal(osd_client_drain(target.client), 0);
	for (size_t i = 0; i < COMMANDS; i++) {
		assert_int_equal(requests[i].error.result, 0);
		assert_int_equal(requests[i].received, 10);
		assert_memory_equal(buffers[i], "0123456789", 10);
	}
	close_target(&target);
}

/* ---- keys ---- */

static void expect_no_key(const struct osd_request *request)
{
	static const uint8_t none[OSD_KEY_BYTES];

	assert_memory_equal(request->security.key, none, sizeof(none));
	for (size_t i = 0; i < OSD_REQUEST_EXTENSIONS_MAX; i++)
		assert_memory_equal(request->extensions[i].key, none, sizeof(none));
}

/* As osd_request_done: whoever is told of the end finds no key any more. */
static void count_without_key(struct osd_request *request)
{
	(*(unsigned *)request->context)++;
	expect_no_key(request);
}

static struct osd_request request_to_read(uint8_t *buffer, unsigned *done)
{
	struct osd_request request = { .cdb = { .action = OSD_READ },
				       .buffer = buffer,
				       .buffer_length = 10,
				       .done = count_without_key,
				       .context = done };

	osd_request_address(&request, ADDRESS);
	return request;
}

static void test_a_command_that_is_over_has_no_key_left(void **state)
{
	(void)state;
	for (unsigned wanted = OSD_CAPKEY; wanted <= OSD_ALLDATA; wanted++) {
		struct target target;
		unsigned done = 0;
		uint8_t buffer[10];
		struct osd_request request;

		open_secured(&target, OSD_2, (uint8_t)wanted);
		request = request_to_read(buffer, &done);
		assert_int_equal(osd_client_run(target.client, &request), 0);
		assert_int_equal(request.security.method, wanted);
		/* One that is refused, and one that is not even sent. */
		request = request_to_read(buffer, &done);
		request.cdb.object++;
		assert_int_equal(osd_client_run(target.client, &request), -ENOENT);
		assert_int_equal(done, 2);
		request = request_to_read(buffer, &done);
		request.buffer_length = (size_t)INT32_MAX;
		request.gets = &(struct osd_client_value){ 1, 1, NULL, 8 };
		request.get_count = 1;
		assert_int_equal(osd_client_submit(target.client, &request), -EINVAL);
		expect_no_key(&request);
		close_target(&target);
	}
}

static void test_keys_of_further_objects_do_not_outlive_the_command(void **state)
{
	const struct osd_cdb other = { .action = OSD_READ,
				       .partition = PARTITION,
				       .object = OBJECT };
	struct osd_copy_source copy = { .partition = PARTITION, .object = OBJECT };
	uint8_t content[OSD_COPY_SOURCE_BYTES], segment[512] = { 0 };
	static const uint8_t none[OSD_KEY_BYTES];
	struct osd_request request = {
		.cdb = { .action = OSD_COPY_USER_OBJECTS, .partition = PARTITION }, .data = segment
	};
	struct target target;

	(void)state;
	open_secured(&target, OSD_2, OSD_ALLDATA);
	osd_copy_source_encode(&copy, content);
	request.data_length =
		osd_continuation_add(segment, 0, sizeof(segment), OSD_COPY_USER_OBJECTS,
				     OSD_CONTINUATION_COPY_SOURCE, content, sizeof(content));
	request.cdb.continuation_length = (uint32_t)request.data_length;
	assert_int_equal(
		osd_request_extend(target.client, &request, segment, sizeof(segment), &other, 1),
		0);
	assert_memory_not_equal(request.extensions[0].key, none, sizeof(none));
	assert_int_equal(osd_client_run(target.client, &request), 0);
	expect_no_key(&request);
	/* Nor those for which there is no space. */
	request.extension_count = 0;
	assert_int_equal(osd_request_extend(target.client, &request, segment, request.data_length,
					    &other, 1),
			 -EINVAL);
	expect_no_key(&request);
	close_target(&target);
}

/* ---- what is refused ---- */

static int give_nothing(void *context, const struct osd_cdb *cdb, struct osd_credential *credential)
{
	(void)context;
	(void)cdb;
	(void)credential;
	return -ENOENT;
}

static int give_wrong(void *context, const struct osd_cdb *cdb, struct osd_credential *credential)
{
	int result = give(context, cdb, credential);

	credential->key[0] ^= 1;
	return result;
}

/* Credentials for all but reading. */
static int give_but_reads(void *context, const struct osd_cdb *cdb,
			  struct osd_credential *credential)
{
	return cdb->action == OSD_READ ? -ENOENT : give(context, cdb, credential);
}

static int give_wrong_reads(void *context, const struct osd_cdb *cdb,
			    struct osd_credential *credential)
{
	return cdb->action == OSD_READ ? give_wrong(context, cdb, credential)
				       : give(context, cdb, credential);
}

static void test_wrong_credentials_are_no_access(void **state)
{
	struct target target;
	struct osd_client_error error;
	char data[4];
	size_t got;

	(void)state;
	open_secured(&target, OSD_2, OSD_CMDRSP);
	assert_int_equal(osd_client_secure(target.client, give_nothing, NULL, NULL), 0);
	assert_int_equal(osd_client_read(target.client, ADDRESS, 0, data, 4, &got, &error),
			 -EACCES);
	assert_non_null(strstr(error.sentence.text, "needs a credential"));
	assert_int_equal(osd_client_secure(target.client, give_wrong, NULL, NULL), 0);
	assert_int_equal(osd_client_read(target.client, ADDRESS, 0, data, 4, &got, &error),
			 -EACCES);
	assert_non_null(strstr(error.sentence.text, "another key"));
	assert_int_equal(osd_client_secure(target.client, give, NULL, NULL), 0);
	method = OSD_CAPKEY;
	assert_int_equal(osd_client_read(target.client, ADDRESS, 0, data, 4, &got, &error),
			 -EACCES);
	assert_non_null(strstr(error.sentence.text, "stronger"));
	close_target(&target);
}

/* ---- answers that are not the target's ---- */

static void change_first_byte(struct loopback_command *command)
{
	command->in[0] ^= 1;
}

static void change_last_byte(struct loopback_command *command)
{
	/* Of the check value: OSD-2's field ends with 12 zeros. */
	command->in[command->in_length - 13] ^= 1;
}

static void change_padding_of_the_value(struct loopback_command *command)
{
	command->in[command->in_length - 1] ^= 1;
}

static void cut_data(struct loopback_command *command)
{
	command->in_length -= 1;
}

static void leave_data_out(struct loopback_command *command)
{
	command->in_length = 0;
}

static void change_sense(struct loopback_command *command)
{
	command->sense[3] ^= 1;
}

static void call_it_good(struct loopback_command *command)
{
	command->status = 0;
	command->sense_length = 0;
}

static void forge_recovered_error(struct loopback_command *command)
{
	const struct osd_sense sense = { .key = SENSE_RECOVERED_ERROR,
					 .code = SENSE_READ_PAST_END_OF_USER_OBJECT,
					 .has_information = true,
					 .information = 2 };

	loopback_fail(command, &sense);
}

static void forge_end_of_object(struct loopback_command *command)
{
	const struct osd_sense sense = { .key = SENSE_ILLEGAL_REQUEST,
					 .code = SENSE_INVALID_FIELD_IN_CDB,
					 .has_field = true,
					 .field_in_cdb = true,
					 .field = 40 };

	command->in_length = 0;
	loopback_fail(command, &sense);
}

static void test_changed_answers_are_found_out(void **state)
{
	const struct {
		uint8_t method;
		uint64_t offset; /* of the READ: 0 is GOOD, others fail or cross the end */
		void (*change)(struct loopback_command *command);
	} cases[] = {
		{ OSD_ALLDATA, 0, change_first_byte },
		{ OSD_ALLDATA, 0, change_last_byte },
		{ OSD_ALLDATA, 0, change_padding_of_the_value },
		{ OSD_ALLDATA, 0, cut_data },
		{ OSD_ALLDATA, 0, leave_data_out },
		{ OSD_ALLDATA, 0, forge_recovered_error },
		{ OSD_ALLDATA, 0, forge_end_of_object },
		{ OSD_CMDRSP, 0, leave_data_out },
		{ OSD_CMDRSP, 0, forge_recovered_error },
		{ OSD_CMDRSP, 0, forge_end_of_object },
		{ OSD_CMDRSP, 6, change_sense },
		{ OSD_CMDRSP, 50, call_it_good },
		{ OSD_ALLDATA, 6, change_sense },
		{ OSD_ALLDATA, 50, call_it_good },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct osd_client_error error;
		struct target target;
		char data[8];
		size_t got;

		open_secured(&target, OSD_2, cases[i].method);
		target.action = OSD_READ;
		target.change = cases[i].change;
		assert_int_equal(osd_client_read(target.client, ADDRESS, cases[i].offset, data, 8,
						 &got, &error),
				 -EBADMSG);
		assert_int_equal(got, 0);
		assert_non_null(strstr(error.sentence.text, "not signed"));
		target.change = NULL;
		assert_int_equal(osd_client_read(target.client, ADDRESS, 0, data, 8, &got, &error),
				 0);
		close_target(&target);
	}
}

static int ignore_id(void *context, uint64_t id)
{
	(void)context;
	(void)id;
	return 0;
}

static void test_who_wants_signatures_is_not_content_without(void **state)
{
	struct target target;
	char data[8];
	size_t got;

	(void)state;
	open_secured(&target, OSD_2, OSD_NOSEC);
	/* Nothing is demanded, but the target has the key. */
	for (unsigned wanted = OSD_CAPKEY; wanted <= OSD_ALLDATA; wanted++) {
		method = (uint8_t)wanted;
		assert_int_equal(osd_client_read(target.client, ADDRESS, 0, data, 8, &got, NULL),
				 0);
		assert_int_equal(osd_client_list(target.client, (struct osd_client_address){ 0 }, 0,
						 ignore_id, NULL, NULL),
				 0);
	}
	method = OSD_CMDRSP;
	assert_int_equal(osd_client_secure(target.client, give_wrong, NULL, NULL), 0);
	assert_int_equal(osd_client_read(target.client, ADDRESS, 0, data, 8, &got, NULL), -EBADMSG);
	close_target(&target);
}

/* ---- further objects, collections ---- */

static uint64_t copied_length(struct osd_client *client, uint64_t object)
{
	uint64_t length = 0;

	assert_int_equal(osd_client_get_number(client,
					       (struct osd_client_address){ PARTITION, object, 0 },
					       OSD_USER_OBJECT_INFORMATION,
					       OSD_INFORMATION_LOGICAL_LENGTH, &length, NULL),
			 0);
	return length;
}

static void test_commands_with_further_objects_get_capabilities_for_them(void **state)
{
	enum { SNAPSHOT = PARTITION + 1 };

	(void)state;
	for (unsigned wanted = OSD_CAPKEY; wanted <= OSD_ALLDATA; wanted++) {
		struct target target;
		struct osd_client *client;
		uint64_t copy, collection, tracking, snapshot = 0;

		open_secured(&target, OSD_2, (uint8_t)wanted);
		client = target.client;
		assert_int_equal(osd_client_copy(client, ADDRESS, PARTITION, 0, &copy, NULL), 0);
		assert_int_equal(copied_length(client, copy), 10);
		assert_int_equal(
			osd_client_create_collection(client, PARTITION, 0, &collection, NULL), 0);
		assert_int_equal(osd_client_create_tracking_collection(client, PARTITION, 0,
								       collection, &tracking, NULL),
				 0);
		assert_int_equal(
			osd_client_clone(client, IN_PARTITION, SNAPSHOT, false, &snapshot, NULL),
			0);
		assert_int_equal(snapshot, SNAPSHOT);
		close_target(&target);
	}
}

static void test_without_the_right_to_a_further_object_it_is_not_used(void **state)
{
	struct osd_client_error error;
	struct target target;

	(void)state;
	open_secured(&target, OSD_2, OSD_CMDRSP);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(osd_client_secure(target.client,
						   i == 0 ? give_but_reads : give_wrong_reads, NULL,
						   NULL),
				 0);
		assert_int_equal(
			osd_client_copy(target.client, ADDRESS, PARTITION, 0, NULL, &error),
			-EACCES);
		assert_non_null(
			strstr(error.sentence.text, i == 0 ? "does not permit" : "another key"));
	}
	close_target(&target);
}

static void test_attributes_of_a_collection_are_signed_as_its_own(void **state)
{
	const struct osd_client_value set = { 0xF0000010, 1, "attribute", 9 };
	struct osd_client_address collection = IN_PARTITION;
	char value[16];

	(void)state;
	for (enum osd_version version = OSD_1; version <= OSD_2; version++)
		for (unsigned wanted = OSD_CAPKEY; wanted <= OSD_ALLDATA; wanted++) {
			struct target target;

			open_secured(&target, version, (uint8_t)wanted);
			assert_int_equal(osd_client_create_collection(target.client, PARTITION, 0,
								      &collection.object, NULL),
					 0);
			assert_int_equal(
				osd_client_set_attributes(target.client, collection, &set, 1, NULL),
				0);
			assert_int_equal(osd_client_get_attribute(target.client, collection,
								  0xF0000010, 1, value,
								  sizeof(value), NULL, NULL),
					 0);
			assert_memory_equal(value, "attribute", 9);
			close_target(&target);
		}
}

/* A unit attention is answered before a command is looked at; it is signed again. */
static unsigned attentions;

static void interrupt_once(struct loopback_command *command)
{
	const struct osd_sense sense = { .key = SENSE_UNIT_ATTENTION,
					 .code = SENSE_POWER_ON_RESET };

	/* As tgtd does: all of the buffer counts as sent. */
	if (attentions++ == 0) {
		command->in_length = command->in_capacity;
		loopback_fail(command, &sense);
	}
}

static void test_a_repeated_command_has_a_nonce_of_its_own(void **state)
{
	struct target target;
	char data[8];
	size_t got;

	(void)state;
	attentions = 0;
	open_secured(&target, OSD_2, OSD_ALLDATA);
	target.action = OSD_READ;
	target.change = interrupt_once;
	assert_int_equal(osd_client_read(target.client, ADDRESS, 0, data, 8, &got, NULL), 0);
	assert_int_equal(got, 8);
	assert_int_equal(attentions, 2);
	close_target(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signed_commands_do_what_others_do),
		cmocka_unit_test(test_many_signed_commands_may_be_in_flight),
		cmocka_unit_test(test_a_command_that_is_over_has_no_key_left),
		cmocka_unit_test(test_keys_of_further_objects_do_not_outlive_the_command),
		cmocka_unit_test(test_wrong_credentials_are_no_access),
		cmocka_unit_test(test_changed_answers_are_found_out),
		cmocka_unit_test(test_who_wants_signatures_is_not_content_without),
		cmocka_unit_test(test_a_repeated_command_has_a_nonce_of_its_own),
		cmocka_unit_test(test_commands_with_further_objects_get_capabilities_for_them),
		cmocka_unit_test(test_without_the_right_to_a_further_object_it_is_not_used),
		cmocka_unit_test(test_attributes_of_a_collection_are_signed_as_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
