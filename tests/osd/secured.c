/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A unit with keys, and commands that are signed as an initiator signs them. */
#include "tests/osd/secured.h"
#include "osd/execute.h"
#include "osd/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "common/bytes.h"

struct manager secured_manager;

static const uint8_t uuid[16] = { 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

/* ---- the unit ---- */

void secured_restart(struct unit *unit, const uint8_t *device_key)
{
	struct osd_options options = { .has_device_key = device_key != NULL };

	if (device_key)
		memcpy(options.device_key, device_key, sizeof(options.device_key));
	/* That takes a while, and what has been signed before is not accepted behind it. */
	if (unit->device->security->nonces)
		unit->now_ms++;
	osd_device_destroy(unit->device);
	assert_int_equal(osd_device_create(unit->engine, uuid, &options, &unit->device), 0);
}

void secured_open(struct unit *unit, struct manager *manager)
{
	memset(manager, 0, sizeof(*manager));
	for (size_t i = 0; i < sizeof(manager->device_key); i++)
		manager->device_key[i] = (uint8_t)(0xC0 + i);
	secured_restart(unit, manager->device_key);
	assert_int_equal(unit_get(unit, 0, 0, OSD_ROOT_INFORMATION, OSD_ROOT_SYSTEM_ID,
				  manager->system_id, sizeof(manager->system_id)),
			 OSD_SYSTEM_ID_BYTES);
	assert_int_equal(osd_initial_master_keys(manager->device_key, manager->system_id,
						 manager->master.authentication,
						 manager->master.generation),
			 0);
}

void secured_set_keys(struct unit *unit, struct manager *manager)
{
	struct signed_call call =
		signed_set_key(unit, OSD_SET_ROOT_KEY, 0, 0, 0x11, &manager->root);

	signed_run(unit, &call);
	expect_good(unit);
	call = signed_set_key(unit, OSD_SET_PARTITION_KEY, P, 0, 0x22, &manager->partition);
	signed_run(unit, &call);
	expect_good(unit);
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 0x33,
			      &manager->working[KEY_VERSION]);
	signed_run(unit, &call);
	expect_good(unit);
}

void secured_set_method(struct unit *unit, uint64_t partition, uint8_t method)
{
	unit_set(unit, partition, 0, partition ? OSD_PARTITION_SECURITY : OSD_ROOT_SECURITY,
		 OSD_SECURITY_DEFAULT_METHOD, &method, 1);
}

void secured_set_keys_of(struct unit *unit, uint64_t partition, uint8_t fill,
			 struct key_pair *working)
{
	struct key_pair of_p = secured_manager.partition;
	struct signed_call call = signed_set_key(unit, OSD_SET_PARTITION_KEY, partition, 0, fill,
						 &secured_manager.partition);

	signed_run(unit, &call);
	expect_good(unit);
	call = signed_set_key(unit, OSD_SET_WORKING_KEY, partition, KEY_VERSION,
			      (uint8_t)(fill + 1), working);
	signed_run(unit, &call);
	expect_good(unit);
	secured_manager.partition = of_p;
}

const uint8_t secured_methods[SECURED_METHODS] = { OSD_CAPKEY, OSD_CMDRSP, OSD_ALLDATA };

uint64_t secured_close(struct unit *unit, uint8_t method)
{
	secured_set_method(unit, P, method);
	return contents_of(unit);
}

void secured_reopen(struct unit *unit, uint8_t method)
{
	struct signed_call call = signed_call_of(unit, OSD_SET_ATTRIBUTES, P, 0, method);
	uint8_t off = OSD_NOSEC;

	call_set(&call.call, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, &off, 1);
	signed_run(unit, &call);
	expect_good(unit);
}

const struct osd_security_layout *unit_layout(void)
{
	return osd_security_layout(unit_version);
}

static int set_up(void **state)
{
	struct unit *unit = *state;
	uint8_t data[4096];

	secured_open(unit, &secured_manager);
	secured_set_keys(unit, &secured_manager);
	memset(data, 'x', sizeof(data));
	unit_write(unit, O, 0, data, sizeof(data));
	return 0;
}

int secured_set_up(void **state)
{
	unit_set_up_with_object(state);
	return set_up(state);
}

int secured_set_up_osd1(void **state)
{
	unit_set_up_with_object_osd1(state);
	return set_up(state);
}

/* ---- calls ---- */

void fresh_nonce(struct unit *unit, uint8_t nonce[OSD_NONCE_BYTES])
{
	put_be48(nonce, unit->now_ms);
	put_be48(nonce + 6, ++secured_manager.nonces);
}

static struct osd_capability capability_of(uint64_t partition, uint64_t object, uint8_t type,
					   uint8_t method)
{
	return (struct osd_capability){
		.format = unit_version == OSD_1 ? OSD_CAPABILITY_OSD1 : OSD_CAPABILITY_OSD2,
		.key_version = KEY_VERSION,
		.algorithm = OSD_INTEGRITY_HMAC_SHA1,
		.method = method,
		.expires_ms = UNIT_CLOCK + 3600000,
		.object_type = type,
		.permissions = 0xFFFC,
		.descriptor_type = osd_descriptor_type(unit_version, type),
		.partition = partition,
		.object = object,
	};
}

struct signed_call signed_call_of(struct unit *unit, uint16_t action, uint64_t partition,
				  uint64_t object, uint8_t method)
{
	bool of_root = osd_names_root(partition) || action == OSD_CREATE_PARTITION ||
		       action == OSD_REMOVE_PARTITION;
	uint8_t type = osd_names_root(partition) ? OSD_TYPE_ROOT : OSD_TYPE_PARTITION;
	struct signed_call made = { .call = call_of(action, partition, object) };

	if (object != 0 || action == OSD_CREATE)
		type = OSD_TYPE_USER_OBJECT;
	made.capability = capability_of(partition, object, type, method);
	made.secret = of_root ? secured_manager.root.authentication
			      : secured_manager.working[KEY_VERSION].authentication;
	fresh_nonce(unit, made.nonce);
	return made;
}

struct signed_call signed_write(struct unit *unit, uint8_t method, const char *text)
{
	struct signed_call call = signed_call_of(unit, OSD_WRITE, P, O, method);

	call_data(&call.call, text, strlen(text));
	return call;
}

struct granted *signed_extend(struct signed_call *signed_call, uint64_t partition, uint64_t object,
			      uint8_t type, uint16_t permissions)
{
	struct granted *added = &signed_call->extensions[signed_call->extension_count++];

	assert_true(signed_call->extension_count <= 4);
	added->capability = capability_of(partition, object, type, signed_call->capability.method);
	added->capability.permissions = permissions;
	added->secret = secured_manager.working[KEY_VERSION].authentication;
	return added;
}

struct signed_call signed_set_key(struct unit *unit, unsigned key_to_set, uint64_t partition,
				  uint8_t version, uint8_t fill, struct key_pair *to)
{
	struct manager *manager = &secured_manager;
	const struct key_pair *const above[] = { NULL, &manager->master, &manager->root,
						 &manager->partition };
	struct signed_call made = signed_call_of(unit, OSD_SET_KEY, partition, 0, OSD_CMDRSP);
	struct osd_key_fields fields = { .key_version = version };

	memset(fields.identifier, fill, sizeof(fields.identifier));
	memset(fields.seed, fill, sizeof(fields.seed));
	osd_key_fields_encode(OSD_SET_KEY, &fields, made.call.cdb.key_bytes);
	made.call.cdb.command_options = (uint8_t)key_to_set;
	made.secret = above[key_to_set]->authentication;
	assert_int_equal(osd_derive_keys(above[key_to_set]->generation, fields.seed,
					 sizeof(fields.seed), to->authentication, to->generation),
			 0);
	return made;
}

/* ---- signing ---- */

void capability_key(enum osd_version version, const struct osd_capability *capability,
		    const uint8_t *secret, uint8_t key[OSD_KEY_BYTES])
{
	uint8_t bytes[OSD2_CAPABILITY_BYTES];

	osd_capability_encode(version, capability, bytes);
	assert_int_equal(osd_capability_key(version, secret, bytes, secured_manager.system_id, key),
			 0);
}

static void signed_key(const struct signed_call *signed_call, uint8_t key[OSD_KEY_BYTES])
{
	capability_key(signed_call->call.cdb.version, &signed_call->capability, signed_call->secret,
		       key);
}

/* Integrity information at the end of Data-Out, and a place for the target's in Data-In. */
static void add_integrity(struct signed_call *signed_call, const uint8_t *key,
			  struct encoded_call *encoded)
{
	const struct osd_cdb *cdb = &signed_call->call.cdb;
	const struct osd_security_layout *layout = osd_security_layout(cdb->version);
	const struct osd_integrity_lengths lengths = { signed_call->call.data_length,
						       cdb->set_data.length, cdb->get_list.length };
	const struct iovec pieces[] = {
		{ encoded->out + cdb->continuation_length, lengths.data },
		{ encoded->out + cdb->set_data.offset, lengths.sets },
		{ encoded->out + cdb->get_list.offset, lengths.gets },
	};
	uint32_t at;

	if (encoded->in_capacity > 0) {
		encoded->in_capacity = osd_offset_encode(cdb->version, encoded->in_capacity, &at) +
				       osd_data_in_integrity_bytes(cdb->version);
		put_be32(encoded->cdb + layout->data_in_offset, at);
	}
	if (lengths.data + lengths.sets + lengths.gets == 0)
		return;
	encoded->out_length = osd_offset_encode(cdb->version, encoded->out_length, &at);
	put_be32(encoded->cdb + layout->data_out_offset, at);
	assert_int_equal(osd_data_out_integrity(cdb->version, key, signed_call->nonce, &lengths,
						pieces, 3, encoded->out + encoded->out_length),
			 0);
	encoded->out_length += osd_data_out_integrity_bytes(cdb->version);
}

static void security_token(struct unit *unit, uint8_t token[OSD_SECURITY_TOKEN_BYTES])
{
	static const uint8_t inquiry[6] = { 0x12, 1, 0xB1, 0, 64, 0 };
	uint8_t page[64];

	assert_int_equal(osd_inquiry(unit->device, unit->nexus, inquiry, page, sizeof(page)),
			 4 + OSD_SECURITY_TOKEN_BYTES);
	memcpy(token, page + 4, OSD_SECURITY_TOKEN_BYTES);
}

static void sign_request(struct unit *unit, struct signed_call *signed_call, const uint8_t *key,
			 struct encoded_call *encoded)
{
	enum osd_version version = signed_call->call.cdb.version;
	uint8_t token[OSD_SECURITY_TOKEN_BYTES], value[OSD_CHECK_VALUE_BYTES];

	if (signed_call->capability.method == OSD_CAPKEY) {
		security_token(unit, token);
		assert_int_equal(osd_token_check_value(key, token, value), 0);
	} else {
		assert_int_equal(osd_request_check_value(version, key, encoded->cdb, value), 0);
	}
	memcpy(encoded->cdb + osd_security_layout(version)->check_value, value, sizeof(value));
}

/* The extension capabilities as a descriptor, without their check values. */
static void add_extensions(const struct signed_call *signed_call, struct call *call)
{
	uint8_t list[4 * OSD_EXTENSION_BYTES] = { 0 };

	for (size_t i = 0; i < signed_call->extension_count; i++)
		osd_capability_encode(OSD_2, &signed_call->extensions[i].capability,
				      list + i * OSD_EXTENSION_BYTES);
	call_descriptor(call, OSD_CONTINUATION_EXTENSION_CAPABILITIES, list,
			(uint32_t)(signed_call->extension_count * OSD_EXTENSION_BYTES));
}

uint8_t *extensions_of(const struct encoded_call *encoded, const struct signed_call *signed_call)
{
	/* They are the last descriptor. */
	return encoded->out + get_be32(encoded->cdb + 48) -
	       signed_call->extension_count * OSD_EXTENSION_BYTES;
}

static void sign_extensions(struct unit *unit, const struct signed_call *signed_call,
			    struct encoded_call *encoded)
{
	bool by_token = signed_call->capability.method == OSD_CAPKEY;
	uint8_t *list = extensions_of(encoded, signed_call), token[OSD_SECURITY_TOKEN_BYTES];

	if (by_token)
		security_token(unit, token);
	for (size_t i = 0; i < signed_call->extension_count; i++) {
		uint8_t key[OSD_KEY_BYTES];

		capability_key(OSD_2, &signed_call->extensions[i].capability,
			       signed_call->extensions[i].secret, key);
		assert_int_equal(
			osd_extension_check_value(
				key, by_token ? token : NULL, encoded->cdb, encoded->out,
				get_be32(encoded->cdb + 48), list, signed_call->extension_count,
				list + i * OSD_EXTENSION_BYTES + OSD_EXTENSION_CHECK_VALUE),
			0);
	}
}

static void sign_continuation(const struct signed_call *signed_call, const uint8_t *key,
			      struct encoded_call *encoded)
{
	uint8_t value[OSD_CHECK_VALUE_BYTES];

	assert_int_equal(osd_continuation_check_value(key, signed_call->nonce, encoded->out,
						      get_be32(encoded->cdb + 48), value),
			 0);
	memcpy(encoded->out + OSD_CONTINUATION_CHECK_VALUE, value, sizeof(value));
}

void signed_again(struct unit *unit, struct signed_call *signed_call, struct encoded_call *encoded)
{
	uint8_t key[OSD_KEY_BYTES];

	signed_key(signed_call, key);
	sign_extensions(unit, signed_call, encoded);
	if (signed_call->call.cdb.continuation_length > 0)
		sign_continuation(signed_call, key, encoded);
	sign_request(unit, signed_call, key, encoded);
}

void signed_encode(struct unit *unit, struct signed_call *signed_call, struct encoded_call *encoded)
{
	const struct osd_security_layout *layout =
		osd_security_layout(signed_call->call.cdb.version);
	struct call call = signed_call->call;
	uint8_t key[OSD_KEY_BYTES];

	signed_key(signed_call, key);
	osd_capability_encode(call.cdb.version, &signed_call->capability, call.cdb.capability);
	if (signed_call->extension_count > 0)
		add_extensions(signed_call, &call);
	call_encode(&call, encoded);
	signed_call->call.cdb = call.cdb;
	memcpy(encoded->cdb + layout->nonce, signed_call->nonce, OSD_NONCE_BYTES);
	put_be32(encoded->cdb + layout->data_in_offset, OSD_OFFSET_UNUSED);
	put_be32(encoded->cdb + layout->data_out_offset, OSD_OFFSET_UNUSED);
	if (signed_call->capability.method == OSD_ALLDATA)
		add_integrity(signed_call, key, encoded);
	signed_again(unit, signed_call, encoded);
}

/* ---- answers ---- */

static uint8_t *answer_place(const struct unit *unit, size_t *bytes)
{
	return osd_sense_check_value_place((uint8_t *)unit->command.sense,
					   unit->command.sense_length, bytes);
}

bool answer_is_signed(const struct unit *unit)
{
	size_t bytes;

	return answer_place(unit, &bytes) != NULL;
}

static void verify_sense(struct unit *unit, const struct signed_call *signed_call,
			 const uint8_t *key)
{
	uint8_t sense[OSD_SENSE_BYTES_MAX], value[OSD_CHECK_VALUE_BYTES];
	size_t bytes;
	uint8_t *place = answer_place(unit, &bytes);

	if (!place)
		return;
	assert_int_equal(bytes, osd_security_layout(unit->version)->check_value_bytes);
	memcpy(sense, unit->command.sense, unit->command.sense_length);
	memset(sense + (place - unit->command.sense), 0, bytes);
	assert_int_equal(osd_response_check_value(key, signed_call->nonce, unit->command.status,
						  sense, unit->command.sense_length, value),
			 0);
	assert_memory_equal(place, value, sizeof(value));
}

/* ALLDATA: the information behind Data-In, for the lengths that it says. */
static void verify_data_in(struct unit *unit, const struct signed_call *signed_call,
			   const uint8_t *key)
{
	const struct osd_cdb *cdb = &signed_call->call.cdb;
	size_t bytes = osd_data_in_integrity_bytes(cdb->version);
	uint8_t expected[64], *information;
	struct osd_integrity_lengths lengths;

	if (unit->command.data_in_length == 0)
		return;
	information = unit->data_in + unit->command.data_in_length - bytes;
	lengths = (struct osd_integrity_lengths){ .data = get_be64(information),
						  .gets = get_be64(information + 8) };
	assert_true(lengths.data <= signed_call->call.data_in_capacity);
	assert_true(signed_call->call.has_gets || lengths.gets == 0);
	assert_true(lengths.data + lengths.gets > 0);
	const struct iovec pieces[] = { { unit->data_in, lengths.data },
					{ unit->data_in + cdb->retrieved.offset, lengths.gets } };

	assert_int_equal(osd_data_in_integrity(cdb->version, key, signed_call->nonce, &lengths,
					       pieces, 2, expected),
			 0);
	assert_memory_equal(information, expected, bytes);
	/* Nothing that was in the buffer before goes out in front of it. */
	size_t end = lengths.gets ? cdb->retrieved.offset + lengths.gets : lengths.data;

	for (; unit->data_in + end < information; end++)
		assert_int_equal(unit->data_in[end], 0);
}

void signed_execute(struct unit *unit, struct signed_call *signed_call,
		    struct encoded_call *encoded)
{
	uint8_t key[OSD_KEY_BYTES];

	signed_key(signed_call, key);
	unit_execute(unit, encoded->cdb, encoded->cdb_length, encoded->out, encoded->out_length,
		     encoded->in_capacity);
	free(encoded->out);
	verify_sense(unit, signed_call, key);
	if (signed_call->capability.method == OSD_ALLDATA)
		verify_data_in(unit, signed_call, key);
}

void signed_run(struct unit *unit, struct signed_call *signed_call)
{
	struct encoded_call encoded;

	signed_encode(unit, signed_call, &encoded);
	signed_execute(unit, signed_call, &encoded);
}

/* ---- capabilities for something else ---- */

void change_algorithm(struct osd_capability *capability)
{
	capability->algorithm = 2;
}

void change_key_version(struct osd_capability *capability)
{
	capability->key_version = 0;
}

void let_expire(struct osd_capability *capability)
{
	capability->expires_ms = UNIT_CLOCK - 1;
}

void change_created_time(struct osd_capability *capability)
{
	capability->created_ms = UNIT_CLOCK + 1;
}

void change_descriptor(struct osd_capability *capability)
{
	capability->descriptor_type = OSD_DESCRIPTOR_PARTITION;
}

void change_tag(struct osd_capability *capability)
{
	capability->policy_tag = 77;
}

void restrict_attributes(struct osd_capability *capability)
{
	capability->attributes_access = 1;
}

void change_epoch(struct osd_capability *capability)
{
	capability->boot_epoch = 999;
}

/* ---- what is on the unit ---- */

static void hash_attributes(struct engine_txn *txn, struct engine_address address,
			    XXH64_state_t *hash)
{
	uint8_t value[256];
	uint32_t page = 0, number = 0, length;

	while (engine_attribute_next(txn, address, &page, &number, value, sizeof(value), &length) ==
	       0) {
		XXH64_update(hash, &page, sizeof(page));
		XXH64_update(hash, &number, sizeof(number));
		XXH64_update(hash, value, min_u64(length, sizeof(value)));
		if (++number == 0)
			break;
	}
}

uint64_t contents_of(struct unit *unit)
{
	static const struct engine_address addresses[] = { { 0 },
							   { .partition = P },
							   { .partition = P, .object = O } };
	XXH64_state_t *hash = XXH64_createState();
	struct engine_txn *txn;
	uint8_t data[8192] = { 0 };
	uint64_t got = 0, result;

	XXH64_reset(hash, 0);
	assert_int_equal(engine_begin(unit->engine, ENGINE_READ, &txn), 0);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct engine_stat stat;

		if (engine_stat(txn, addresses[i], &stat) != 0)
			continue;
		XXH64_update(hash, &stat.length, sizeof(stat.length));
		XXH64_update(hash, &stat.members, sizeof(stat.members));
		if (addresses[i].partition != 0)
			XXH64_update(hash, &stat.modified_sequence, sizeof(stat.modified_sequence));
		XXH64_update(hash, stat.times_ms, sizeof(stat.times_ms));
		hash_attributes(txn, addresses[i], hash);
	}
	if (engine_read(txn, addresses[2], 0, data, sizeof(data), &got) == 0)
		XXH64_update(hash, data, got);
	engine_abort(txn);
	result = XXH64_digest(hash);
	XXH64_freeState(hash);
	return result;
}
