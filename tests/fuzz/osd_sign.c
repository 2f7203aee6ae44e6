/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Signs commands of the osd target, or forges their signatures. */
#include "tests/fuzz/osd_sign.h"

#include <string.h>

#include "common/bytes.h"
#include "tests/fuzz/osd_access.h"
#include "tests/fuzz/osd_permissions.h"
#include "wire/security.h"
#include "wire/vendor.h"

/* ---- signing ---- */

/* One command on its way to being signed. */
struct signing {
	struct osd_fuzz_unit *unit;
	struct osd_input_command *input;
	struct osd_cdb cdb;
	const struct osd_security_layout *layout;
	uint64_t nexus;
	uint8_t method;
	uint16_t permissions;
	unsigned access;            /* list of allowed attributes; 0: all are */
	uint8_t key[OSD_KEY_BYTES]; /* of the capability */
	uint64_t range_start, range_length;
	uint8_t nonce[OSD_NONCE_BYTES];
};

static uint8_t object_type(const struct osd_cdb *cdb)
{
	switch (cdb->action) {
	case OSD_FORMAT_OSD:
	case OSD_FLUSH_OSD:
		return OSD_TYPE_ROOT;
	case OSD_CREATE_PARTITION:
	case OSD_CREATE_CLONE:
	case OSD_CREATE_SNAPSHOT:
		return OSD_TYPE_PARTITION;
	case OSD_CREATE:
	case OSD_CREATE_AND_WRITE:
	case OSD_COPY_USER_OBJECTS:
		return OSD_TYPE_USER_OBJECT;
	case OSD_CREATE_COLLECTION:
	case OSD_CREATE_USER_TRACKING_COLLECTION:
		return OSD_TYPE_COLLECTION;
	default:
		break;
	}
	if (cdb->partition == 0)
		return OSD_TYPE_ROOT;
	if (cdb->object == 0)
		return OSD_TYPE_PARTITION;
	if ((cdb->action >= OSD_REMOVE_COLLECTION && cdb->action <= OSD_LIST_COLLECTION) ||
	    (cdb->action >= OSD_QUERY && cdb->action <= OSD_SET_MEMBER_ATTRIBUTES) ||
	    cdb->object == OSD_SCENE_COLLECTION)
		return OSD_TYPE_COLLECTION;
	return OSD_TYPE_USER_OBJECT;
}

/* The capability for this command, and the key that goes with it. */
static void give_capability(struct signing *signing, const uint8_t *secret)
{
	const struct osd_cdb *cdb = &signing->cdb;
	struct osd_options options;
	uint8_t *bytes = signing->input->cdb + OSD_FIELD_CAPABILITY_FORMAT;
	struct osd_capability capability = {
		.format = cdb->version == OSD_1 ? OSD_CAPABILITY_OSD1 : OSD_CAPABILITY_OSD2,
		.key_version = OSD_KEYS_VERSION,
		.algorithm = OSD_INTEGRITY_HMAC_SHA1,
		.method = signing->method,
		.object_type = object_type(cdb),
		.permissions = signing->permissions,
		.attributes_access = signing->access,
		.range_start = signing->range_start,
		.range_length = signing->range_length,
		.partition = cdb->partition,
		.object = cdb->object,
	};

	if (capability.object_type == OSD_TYPE_ROOT || capability.object_type == OSD_TYPE_PARTITION)
		capability.object = 0;
	capability.descriptor_type = osd_descriptor_type(cdb->version, capability.object_type);
	osd_keys_options(&options);
	osd_capability_encode(cdb->version, &capability, bytes);
	fuzz_check(osd_capability_key(cdb->version, secret, bytes, options.system_id,
				      signing->key) == 0);
}

/* Bytes of command data in Data-Out. */
static uint64_t data_bytes(const struct osd_cdb *cdb)
{
	struct osd_key_fields fields;

	switch (cdb->action) {
	case OSD_WRITE:
	case OSD_APPEND:
	case OSD_CREATE_AND_WRITE:
		return cdb->length;
	case OSD_EXECUTE:
		return (uint32_t)cdb->address;
	case OSD_COMPARE_AND_SWAP:
		return 16;
	case OSD_FETCH_AND_ADD:
		return 8;
	case OSD_SET_MASTER_KEY:
		osd_key_fields_decode(OSD_SET_MASTER_KEY, cdb->key_bytes, &fields);
		return fields.parameter_length;
	default:
		return 0;
	}
}

/* ALLDATA: the integrity information behind Data-Out, and the place of the target's. */
static void add_integrity(struct signing *signing)
{
	struct osd_input_command *input = signing->input;
	const struct osd_cdb *cdb = &signing->cdb;
	const struct osd_integrity_lengths lengths = { data_bytes(cdb), cdb->set_data.length,
						       cdb->get_list.length };
	const uint64_t offsets[] = { cdb->continuation_length, cdb->set_data.offset,
				     cdb->get_list.offset };
	const uint64_t bytes[] = { lengths.data, lengths.sets, lengths.gets };
	struct iovec pieces[3];
	uint64_t end = osd_offset_encode(cdb->version, input->out_length, NULL);
	uint32_t at;

	if (input->in_capacity > 0 && input->in_capacity < 8192) {
		input->in_capacity =
			(uint16_t)(osd_offset_encode(cdb->version, input->in_capacity, &at) +
				   osd_data_in_integrity_bytes(cdb->version));
		put_be32(input->cdb + signing->layout->data_in_offset, at);
	}
	for (int i = 0; i < 3; i++) {
		uint64_t offset = bytes[i] ? offsets[i] : 0;

		if (bytes[i] > input->out_length || offset > input->out_length - bytes[i])
			return;
		pieces[i] = (struct iovec){ input->out + offset, bytes[i] };
	}
	if (lengths.data + lengths.sets + lengths.gets == 0 ||
	    end + osd_data_out_integrity_bytes(cdb->version) > OSD_INPUT_OUT_KEPT_MAX)
		return;
	input->out_length = (uint16_t)osd_offset_encode(cdb->version, input->out_length, &at);
	put_be32(input->cdb + signing->layout->data_out_offset, at);
	fuzz_check(osd_data_out_integrity(cdb->version, signing->key, signing->nonce, &lengths,
					  pieces, 3, input->out + input->out_length) == 0);
	input->out_length =
		(uint16_t)(input->out_length + osd_data_out_integrity_bytes(cdb->version));
	input->out_kept = input->out_length;
}

static void get_token(const struct signing *signing, uint8_t token[OSD_SECURITY_TOKEN_BYTES])
{
	static const uint8_t inquiry[6] = { 0x12, 1, 0xB1, 0, 64, 0 };
	uint8_t page[64];

	fuzz_check(osd_inquiry(signing->unit->device, signing->nexus, inquiry, page,
			       sizeof(page)) == 4 + OSD_SECURITY_TOKEN_BYTES);
	memcpy(token, page + 4, OSD_SECURITY_TOKEN_BYTES);
}

static void add_check_value(struct signing *signing)
{
	uint8_t value[OSD_CHECK_VALUE_BYTES], token[OSD_SECURITY_TOKEN_BYTES];

	if (signing->method == OSD_CAPKEY) {
		get_token(signing, token);
		fuzz_check(osd_token_check_value(signing->key, token, value) == 0);
	} else {
		fuzz_check(osd_request_check_value(signing->cdb.version, signing->key,
						   signing->input->cdb, value) == 0);
	}
	memcpy(signing->input->cdb + signing->layout->check_value, value, sizeof(value));
}

/* ---- extension capabilities ---- */

/* The list of a command's extension capabilities; 0: it has none, or a malformed one. */
static size_t find_extensions(struct osd_input_command *input, const struct osd_cdb *cdb,
			      uint8_t **list)
{
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	size_t count;

	if (cdb->version != OSD_2 || cdb->continuation_length > input->out_length ||
	    osd_continuation_read(&continuation, cdb->action, input->out,
				  cdb->continuation_length) != 0)
		return 0;
	while (osd_continuation_next(&continuation, &descriptor) == 1) {
		if (descriptor.type != OSD_CONTINUATION_EXTENSION_CAPABILITIES)
			continue;
		count = descriptor.length / OSD_EXTENSION_BYTES;
		*list = input->out + (descriptor.content - input->out);
		return descriptor.length % OSD_EXTENSION_BYTES == 0 && count <= OSD_EXTENSIONS_MAX
			       ? count
			       : 0;
	}
	return 0;
}

/* Completes each for its IDs and type, and gives it its check value. */
static void sign_extensions(struct signing *signing)
{
	struct osd_input_command *input = signing->input;
	uint8_t token[OSD_SECURITY_TOKEN_BYTES], *list;
	size_t count = find_extensions(input, &signing->cdb, &list);
	const uint8_t *secret = signing->unit->keys.pairs[OSD_KEYS_WORKING].authentication;
	struct osd_options options;

	osd_keys_options(&options);
	get_token(signing, token);
	for (size_t i = 0; i < count; i++) {
		struct osd_capability capability;
		uint8_t *bytes = list + i * OSD_EXTENSION_BYTES;

		osd_capability_decode(OSD_2, bytes, &capability);
		capability.format = OSD_CAPABILITY_OSD2;
		capability.key_version = OSD_KEYS_VERSION;
		capability.algorithm = OSD_INTEGRITY_HMAC_SHA1;
		capability.method = signing->method;
		capability.permissions = 0xFFFC;
		capability.descriptor_type = osd_descriptor_type(OSD_2, capability.object_type);
		osd_capability_encode(OSD_2, &capability, bytes);
		memset(bytes + OSD_EXTENSION_CHECK_VALUE, 0, OSD_CHECK_VALUE_BYTES_MAX);
	}
	for (size_t i = 0; i < count; i++) {
		uint8_t *bytes = list + i * OSD_EXTENSION_BYTES, key[OSD_KEY_BYTES];

		fuzz_check(osd_capability_key(OSD_2, secret, bytes, options.system_id, key) == 0);
		fuzz_check(osd_extension_check_value(
				   key, signing->method == OSD_CAPKEY ? token : NULL, input->cdb,
				   input->out, signing->cdb.continuation_length, list, count,
				   bytes + OSD_EXTENSION_CHECK_VALUE) == 0);
	}
	if (count > 0 && input->flags & OSD_INPUT_FORGE && input->fill & 1) {
		uint32_t bit = input->fill * 7919U % (uint32_t)(count * OSD_EXTENSION_BYTES * 8);

		list[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
}

/* All of Data-Out into the input, so that it can be summed up. */
static bool make_whole(struct osd_input_command *input)
{
	if (input->out_length > OSD_INPUT_OUT_KEPT_MAX)
		return false;
	memset(input->out + input->out_kept, input->fill,
	       (size_t)(input->out_length - input->out_kept));
	input->out_kept = input->out_length;
	return true;
}

static void sign_with(struct signing *signing, const uint8_t *secret, uint32_t serial)
{
	struct osd_input_command *input = signing->input;
	size_t continuation = signing->cdb.continuation_length;
	uint8_t value[OSD_CHECK_VALUE_BYTES];

	signing->layout = osd_security_layout(signing->cdb.version);
	give_capability(signing, secret);
	put_be48(signing->nonce, signing->unit->now_ms);
	put_be48(signing->nonce + 6, serial);
	memcpy(input->cdb + signing->layout->nonce, signing->nonce, OSD_NONCE_BYTES);
	put_be32(input->cdb + signing->layout->data_in_offset, OSD_OFFSET_UNUSED);
	put_be32(input->cdb + signing->layout->data_out_offset, OSD_OFFSET_UNUSED);
	if (signing->method == OSD_ALLDATA)
		add_integrity(signing);
	sign_extensions(signing);
	if (continuation > 0 && continuation <= input->out_length) {
		fuzz_check(osd_continuation_check_value(signing->key, signing->nonce, input->out,
							continuation, value) == 0);
		memcpy(input->out + OSD_CONTINUATION_CHECK_VALUE, value, sizeof(value));
	}
	add_check_value(signing);
}

/* The last three bytes of the permissions, all of whose bits are reserved. */
enum {
	RANGE_AT = OSD_FIELD_PERMISSIONS + 2,
	ACCESS_AT = OSD_FIELD_PERMISSIONS + 3,
	RESTRICTION_AT = OSD_FIELD_PERMISSIONS + 4
};

bool osd_sign_restricts(const struct osd_input_command *input)
{
	return input->cdb[RESTRICTION_AT] != 0 || input->cdb[ACCESS_AT] != 0 ||
	       input->cdb[RANGE_AT] != 0;
}

/*
 * All, but for one if the input says so: of those that the command needs if it is known what they
 * are.
 */
static uint16_t choose_permissions(const struct osd_input_command *input)
{
	uint16_t needed = osd_permissions_of(input);
	unsigned bit = input->cdb[RESTRICTION_AT] % 16;

	if (input->cdb[RESTRICTION_AT] == 0)
		return 0xFFFC;
	for (unsigned i = 0; i < 16 && needed != 0 && !(needed >> bit & 1); i++)
		bit = (bit + 1) % 16;
	return (uint16_t)(0xFFFC & ~(1U << bit));
}

/* Some hundreds of bytes from some hundred on. */
static void choose_range(const struct osd_input_command *input, struct signing *signing)
{
	signing->range_start = 128U * (input->cdb[RANGE_AT] & 7U);
	signing->range_length = 128U * (input->cdb[RANGE_AT] >> 3);
}

/* The key whose capabilities the command takes. */
static enum osd_keys_level level_of(const struct osd_cdb *cdb)
{
	unsigned level = cdb->command_options & 3;

	if (cdb->action == OSD_SET_MASTER_KEY)
		return OSD_KEYS_MASTER;
	/* The level above what is set. */
	if (cdb->action == OSD_SET_KEY)
		return level == 0 ? OSD_KEYS_MASTER : (enum osd_keys_level)(level - 1);
	/* The root's for the root and for which partitions there are. */
	return cdb->partition == 0 || cdb->action == OSD_CREATE_PARTITION ||
			       cdb->action == OSD_REMOVE_PARTITION ||
			       cdb->action == OSD_CREATE_CLONE || cdb->action == OSD_CREATE_SNAPSHOT
		       ? OSD_KEYS_ROOT
		       : OSD_KEYS_WORKING;
}

/* Is the command to be signed with the master key that was replaced? */
static bool takes_former_key(const struct osd_fuzz_unit *unit,
			     const struct osd_input_command *input, enum osd_keys_level level)
{
	return unit->keys.has_former_master && level == OSD_KEYS_MASTER &&
	       input->flags & OSD_INPUT_FORGE && input->fill & 1;
}

struct osd_sign_limits osd_sign(struct osd_fuzz_unit *unit, struct osd_input_command *input,
				uint64_t nexus, uint32_t serial)
{
	struct signing signing = { .unit = unit,
				   .input = input,
				   .nexus = nexus,
				   .method = input->cdb[OSD_FIELD_SECURITY_METHOD] % 4,
				   .access = input->cdb[ACCESS_AT] % (OSD_ACCESS_LISTS + 2),
				   .permissions = choose_permissions(input) };
	struct osd_sign_limits limits = { 0 };
	const struct osd_keys *keys = &unit->keys;
	enum osd_keys_level level;
	uint16_t bad_field;

	if (input->flags & OSD_INPUT_COMPLETE)
		osd_keys_complete(keys, input);
	if (osd_cdb_decode(input->cdb, input->cdb_length, &signing.cdb, &bad_field) != 0 ||
	    signing.method == OSD_NOSEC || !make_whole(input))
		return limits;
	if (signing.cdb.version == OSD_1)
		signing.access = 0;
	else
		choose_range(input, &signing);
	level = level_of(&signing.cdb);
	limits.former_key = takes_former_key(unit, input, level);
	sign_with(&signing,
		  limits.former_key ? keys->former_master.authentication
				    : keys->pairs[level].authentication,
		  serial);
	limits.lacking = (uint16_t)(0xFFFC & ~signing.permissions);
	limits.access = signing.access;
	limits.range_start = signing.range_start;
	limits.range_length = signing.range_length;
	return limits;
}

void osd_sign_forge(struct osd_input_command *input)
{
	struct osd_cdb cdb;
	uint16_t bad_field;
	uint32_t capability_bits, bit;
	uint8_t *list;

	if (osd_cdb_decode(input->cdb, input->cdb_length, &cdb, &bad_field) != 0 ||
	    (input->flags & OSD_INPUT_SIGN && input->fill & 1 &&
	     find_extensions(input, &cdb, &list) > 0))
		return;
	capability_bits = 8U * osd_security_layout(cdb.version)->capability_bytes;
	bit = input->fill * 7919U % (capability_bits + 8 * OSD_CHECK_VALUE_BYTES);
	if (bit < capability_bits)
		bit += 8 * OSD_FIELD_CAPABILITY_FORMAT;
	else
		bit += 8U * osd_security_layout(cdb.version)->check_value - capability_bits;
	input->cdb[bit / 8] ^= (uint8_t)(1U << bit % 8);
}

/* ---- the scene ---- */

/* Executes a command of the scene, which must succeed. */
static void execute(struct osd_fuzz_unit *unit, struct osd_input_command *input)
{
	struct osd_command command = { .cdb = input->cdb,
				       .cdb_length = input->cdb_length,
				       .data_out = input->out_length ? input->out : NULL,
				       .data_out_length = input->out_length,
				       .nexus = 1 };

	osd_execute(unit->device, &command);
	fuzz_check(command.status == SCSI_STATUS_GOOD);
}

static void set_key(struct osd_fuzz_unit *unit, enum osd_keys_level level)
{
	static struct osd_input_command input;
	struct signing signing = { .unit = unit,
				   .input = &input,
				   .nexus = 1,
				   .method = OSD_CMDRSP,
				   .permissions = 0xFFFC };
	struct osd_key_fields fields;
	size_t length;

	memset(&input, 0, sizeof(input));
	osd_keys_fields(level, &fields);
	signing.cdb =
		(struct osd_cdb){ .version = OSD_2,
				  .action = OSD_SET_KEY,
				  .format = OSD_ATTRIBUTES_LIST,
				  .command_options = (uint8_t)level,
				  .partition = level == OSD_KEYS_ROOT ? 0 : OSD_SCENE_PARTITION };
	osd_key_fields_encode(OSD_SET_KEY, &fields, signing.cdb.key_bytes);
	fuzz_check(osd_cdb_encode(&signing.cdb, input.cdb, &length) == 0);
	input.cdb_length = (uint16_t)length;
	/* The nonces of inputs have lower serial numbers. */
	sign_with(&signing, unit->keys.pairs[level - 1].authentication,
		  0xFFFF0000U + (uint32_t)level);
	execute(unit, &input);
}

/* An attribute of the first partition, from the CDB. */
static void set_attribute(struct osd_fuzz_unit *unit, uint32_t page, uint32_t number,
			  const uint8_t *value, uint16_t bytes)
{
	static struct osd_input_command input;
	struct osd_cdb cdb = { .version = OSD_2,
			       .action = OSD_SET_ATTRIBUTES,
			       .format = OSD_ATTRIBUTES_CDB,
			       .partition = OSD_SCENE_PARTITION,
			       .set_page = page,
			       .set_number = number,
			       .set_length = bytes };
	size_t length;

	memset(&input, 0, sizeof(input));
	memcpy(cdb.set_value, value, bytes);
	fuzz_check(osd_cdb_encode(&cdb, input.cdb, &length) == 0);
	input.cdb_length = (uint16_t)length;
	execute(unit, &input);
}

void osd_sign_secure(struct osd_fuzz_unit *unit)
{
	uint8_t list[OSD_ACCESS_LIST_BYTES], method = OSD_CAPKEY;

	for (enum osd_keys_level level = OSD_KEYS_ROOT; level < OSD_KEYS_LEVELS; level++)
		set_key(unit, level);
	for (unsigned number = 1; number <= OSD_ACCESS_LISTS; number++) {
		osd_access_list(number, list);
		set_attribute(unit, OSD_PARTITION_ATTRIBUTES_ACCESS, number, list, sizeof(list));
	}
	set_attribute(unit, OSD_PARTITION_SECURITY, OSD_SECURITY_DEFAULT_METHOD, &method, 1);
}
