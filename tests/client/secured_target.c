/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A target with keys and a secured partition, and a client that signs for it. */
#include "tests/client/secured_target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/bytes.h"

#define KEY_VERSION 3
#define NEXUS       42

/* ---- the target ---- */

FILE *record_of_targets;

static struct osd_options options = { .has_device_key = true, .device_key = { DEVICE_KEY_BYTE_0 } };
static uint8_t system_id[OSD_SYSTEM_ID_BYTES];

static void write_hex(FILE *file, const char *name, const uint8_t *bytes, size_t length)
{
	fprintf(file, "\"%s\": \"", name);
	for (size_t i = 0; i < length; i++)
		fprintf(file, "%02x", bytes[i]);
	fprintf(file, "\", ");
}

/* What went over the wire, before anybody changes it. */
static void record(FILE *file, const struct loopback_command *command)
{
	fputc('{', file);
	write_hex(file, "cdb", command->cdb, command->cdb_length);
	write_hex(file, "out", command->out, command->out_length);
	write_hex(file, "in", command->in, command->in_length);
	write_hex(file, "sense", command->sense, command->sense_length);
	fprintf(file, "\"status\": %u}\n", command->status);
}

/* In the target's thread. */
static void execute(void *context, struct loopback_command *command)
{
	struct target *target = context;

	if (command->cdb[0] == 0x12) {
		command->in_length = (size_t)osd_inquiry(target->unit.device, NEXUS, command->cdb,
							 command->in, command->in_capacity);
		if (target->record)
			record(target->record, command);
		return;
	}
	local_target_execute(&target->unit, NEXUS, command);
	if (target->record)
		record(target->record, command);
	if (target->change && get_be16(command->cdb + 8) == target->action)
		target->change(command);
}

void open_target(struct target *target, enum osd_version version)
{
	static const uint8_t uuid[16] = { 1, 2, 3 };
	static const uint8_t head[4] = { 0x01, 0x00, 0x00, 0x10 };

	memset(target, 0, sizeof(*target));
	target->record = record_of_targets;
	local_target_open(&target->unit, 64 << 20, uuid, &options);
	memcpy(system_id, head, sizeof(head));
	memcpy(system_id + sizeof(head), uuid, sizeof(uuid));
	local_target_start(&target->unit, version, execute, target);
	target->client = target->unit.client;
}

void close_target(struct target *target)
{
	local_target_close(&target->unit);
}

/* ---- the manager ---- */

/* Keys as struct key levels: authentication, generation. */
static uint8_t keys[4][2][OSD_KEY_BYTES];
uint8_t method;

int give(void *context, const struct osd_cdb *cdb, struct osd_credential *credential)
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

void open_secured(struct target *target, enum osd_version version, uint8_t wanted)
{
	struct osd_client *client;

	open_target(target, version);
	client = target->client;
	assert_int_equal(
		osd_initial_master_keys(options.device_key, system_id, keys[0][0], keys[0][1]), 0);
	assert_int_equal(osd_client_create_partition(client, PARTITION, -1, NULL, NULL), 0);
	assert_int_equal(osd_client_create(client, PARTITION, OBJECT, 1, NULL, NULL, NULL), 0);
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

/* ---- commands ---- */

static int count_id(void *context, uint64_t id)
{
	(*(unsigned *)context)++;
	assert_true(id >= OBJECT);
	return 0;
}

void do_everything(struct osd_client *client)
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
	assert_int_equal(osd_client_create(client, PARTITION, 0, 1, &id, NULL, NULL), 0);
	assert_int_equal(osd_client_create(client, PARTITION, 0, 3, &number, NULL, NULL), 0);
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
