/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Signed commands to the target's own OSD layer, over a session; and answers that somebody has changed
 * on the way.
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
#include "nand/nand.h"
#include "osd/osd.h"
#include "tests/client/loopback.h"

#define PARTITION   0x10000
#define OBJECT      0x10005
#define KEY_VERSION 3
#define NEXUS       42

static const struct osd_client_address ADDRESS = { PARTITION, OBJECT, 0 };
static const struct osd_client_address IN_PARTITION = { PARTITION, 0, 0 };

/* ---- the target ---- */

struct target {
	struct nand *nand;
	struct engine *engine;
	struct osd_device *device;
	struct loopback *loopback;
	struct osd_client *client;
	/* What happens to answers to commands with this action; 0 = nothing. */
	uint16_t action;
	void (*change)(struct loopback_command *command);
};

static struct osd_options options = { .has_device_key = true, .device_key = { 7 } };
static uint8_t system_id[OSD_SYSTEM_ID_BYTES];

/* In the target's thread. */
static void execute(void *context, struct loopback_command *command)
{
	struct target *target = context;
	struct osd_command osd = {
		.cdb = command->cdb,
		.cdb_length = command->cdb_length,
		.data_out = command->out,
		.data_out_length = command->out_length,
		.data_in = command->in,
		.data_in_capacity = command->in_capacity,
		.nexus = NEXUS,
	};

	if (command->cdb[0] == 0x12) {
		command->in_length = (size_t)osd_inquiry(target->device, NEXUS, command->cdb,
							 command->in, command->in_capacity);
		return;
	}
	osd_execute(target->device, &osd);
	command->status = osd.status;
	command->in_length = osd.data_in_length;
	command->sense_length = osd.sense_length;
	memcpy(command->sense, osd.sense, osd.sense_length);
	if (target->change && get_be16(command->cdb + 8) == target->action)
		target->change(command);
}

static void must(int result, const struct error_text *error)
{
	if (result != 0)
		fail_msg("%d: %s", result, error->text);
}

static void open_target(struct target *target, enum osd_version version)
{
	static const uint8_t uuid[16] = { 1, 2, 3 };
	static const uint8_t head[4] = { 0x01, 0x00, 0x00, 0x10 };
	struct nand_geometry geometry = nand_geometry_default(64 << 20);
	struct engine_options engine_options = { 0 };
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	memset(target, 0, sizeof(*target));
	must(engine_nvram_bytes(&geometry, &engine_options, &nvram_bytes, &error), &error);
	must(nand_open_memory(&geometry, nvram_bytes, &target->nand, &error), &error);
	must(engine_format(target->nand, &engine_options, &error), &error);
	must(engine_open(target->nand, &engine_options, &target->engine, &error), &error);
	must(osd_device_create(target->engine, uuid, &options, &target->device), &error);
	memcpy(system_id, head, sizeof(head));
	memcpy(system_id + sizeof(head), uuid, sizeof(uuid));
	target->loopback = loopback_start(execute, target, version, &target->client);
}

static void close_target(struct target *target)
{
	loopback_stop(target->loopback, target->client);
	osd_device_destroy(target->device);
	assert_int_equal(engine_close(target->engine), 0);
	assert_int_equal(nand_close(target->nand), 0);
}

/* ---- the manager ---- */

/* Keys as struct key levels: authentication, generation. */
static uint8_t keys[4][2][OSD_KEY_BYTES];
static uint8_t method;

static int give(void *context, const struct osd_cdb *cdb, struct osd_credential *credential)
{
	uint8_t used = method;

	(void)context;
	if (cdb->action == OSD_SET_KEY && used < OSD_CMDRSP)
		used = OSD_CMDRSP;
	return osd_credential_for_command(
		cdb, used, KEY_VERSION, keys[osd_secret_of_command(cdb)][0], system_id, credential);
}

/* Sets a key from the one above it. */
static void set_key(struct osd_client *client, unsigned key_to_set)
{
	struct osd_request request = {
		.cdb = { .action = OSD_SET_KEY,
			 .partition = key_to_set == OSD_SET_ROOT_KEY ? 0 : PARTITION,
			 .command_options = (uint8_t)key_to_set },
	};
	struct osd_key_fields fields = { .key_version = KEY_VERSION, .seed = { 1, 2, 3 } };

	osd_key_fields_encode(OSD_SET_KEY, &fields, request.cdb.key_bytes);
	assert_int_equal(osd_client_run(client, &request), 0);
	assert_int_equal(osd_derive_keys(keys[key_to_set - 1][1], fields.seed, OSD_SEED_BYTES,
					 keys[key_to_set][0], keys[key_to_set][1]),
			 0);
}

static void set_method(struct osd_client *client, uint8_t value)
{
	const struct osd_client_value set = { OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD,
					      &value, 1 };

	assert_int_equal(osd_client_set_attributes(client, IN_PARTITION, &set, 1, NULL), 0);
}

/* A partition secured with `wanted`, an object in it with content; the client signs. */
static void open_secured(struct target *target, enum osd_version version, uint8_t wanted)
{
	struct osd_client *client;

	open_target(target, version);
	client = target->client;
	assert_int_equal(
		osd_initial_master_keys(options.device_key, system_id, keys[0][0], keys[0][1]), 0);
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(client, PARTITION, OBJECT, 1, NULL, NULL), 0);
	assert_int_equal(osd_client_write(client, ADDRESS, 0, "0123456789", 10, NULL), 0);
	assert_int_equal(osd_client_secure(client, give, NULL, NULL), 0);
	method = wanted == OSD_ALLDATA ? OSD_ALLDATA : OSD_CMDRSP;
	for (unsigned key = OSD_SET_ROOT_KEY; key <= OSD_SET_WORKING_KEY; key++) {
		/* The answers of the root are signed only where commands have to be. */
		set_key(client, key);
	}
	assert_int_equal(osd_client_secure(client, NULL, NULL, NULL), 0);
	set_method(client, wanted);
	assert_int_equal(osd_client_secure(client, give, NULL, NULL), 0);
	method = wanted;
}

/* ---- what works ---- */

static int count_id(void *context, uint64_t id)
{
	(*(unsigned *)context)++;
	assert_true(id >= OBJECT);
	return 0;
}

static void do_everything(struct osd_client *client)
{
	const struct osd_client_value set = { 0x10000, 1, "attribute", 9 };
	char data[16], value[16];
	uint64_t id, number, offset;
	uint32_t length;
	unsigned count = 0;
	size_t got;

	assert_int_equal(osd_client_write(client, ADDRESS, 4, "fourfive", 8, NULL), 0);
	assert_int_equal(osd_client_read(client, ADDRESS, 2, data, 8, &got, NULL), 0);
	assert_int_equal(got, 8);
	assert_memory_equal(data, "23fourfi", 8);
	assert_int_equal(osd_client_read(client, ADDRESS, 8, data, 16, &got, NULL), 0);
	assert_int_equal(got, 4);
	assert_memory_equal(data, "five", 4);
	assert_int_equal(osd_client_read(client, ADDRESS, 100, data, 16, &got, NULL), 0);
	assert_int_equal(got, 0);
	assert_int_equal(osd_client_append(client, ADDRESS, "end", 3, &offset, NULL), 0);
	assert_int_equal(offset, 12);
	assert_int_equal(osd_client_set_attributes(client, ADDRESS, &set, 1, NULL), 0);
	assert_int_equal(osd_client_get_attribute(client, ADDRESS, 0x10000, 1, value, sizeof(value),
						  &length, NULL),
			 0);
	assert_int_equal(length, 9);
	assert_memory_equal(value, "attribute", 9);
	assert_int_equal(osd_client_get_number(client, ADDRESS, OSD_USER_OBJECT_INFORMATION,
					       OSD_INFORMATION_LOGICAL_LENGTH, &number, NULL),
			 0);
	assert_int_equal(number, 15);
	assert_int_equal(osd_client_create(client, PARTITION, 0, 1, &id, NULL), 0);
	assert_int_equal(osd_client_create(client, PARTITION, 0, 3, &number, NULL), 0);
	assert_int_equal(number, id + 1);
	assert_int_equal(osd_client_list(client, IN_PARTITION, 0, count_id, &count, NULL), 0);
	assert_int_equal(count, 5);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(
			osd_client_remove(
				client, (struct osd_client_address){ PARTITION, id + i, 0 }, NULL),
			0);
	assert_int_equal(osd_client_flush(client, ADDRESS, NULL), 0);
	assert_int_equal(osd_client_truncate(client, ADDRESS, 10, NULL), 0);
}

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
	static uint8_t rooms[COMMANDS][10];
	struct target target;

	(void)state;
	open_secured(&target, OSD_2, OSD_ALLDATA);
	for (size_t i = 0; i < COMMANDS; i++) {
		requests[i] = (struct osd_request){ .cdb = { .action = OSD_READ },
						    .room = rooms[i],
						    .room_length = 10 };
		osd_request_address(&requests[i], ADDRESS);
		assert_int_equal(osd_client_submit(target.client, &requests[i]), 0);
	}
	assert_int_equal(osd_client_drain(target.client), 0);
	for (size_t i = 0; i < COMMANDS; i++) {
		assert_int_equal(requests[i].error.result, 0);
		assert_int_equal(requests[i].received, 10);
		assert_memory_equal(rooms[i], "0123456789", 10);
	}
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

	/* As tgtd does: all of the room counts as sent. */
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
