/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Encodes capabilities and computes check values and keys, for target and initiator. */
#include "wire/security.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "common/bytes.h"

const struct osd_security_layout *osd_security_layout(enum osd_version version)
{
	static const struct osd_security_layout layouts[] = {
		{ .check_value = 160,
		  .check_value_bytes = 20,
		  .nonce = 180,
		  .data_in_offset = 192,
		  .data_out_offset = 196,
		  .capability_bytes = OSD1_CAPABILITY_BYTES,
		  .policy_tag = 136,
		  .partition = 140,
		  .object = 148 },
		{ .check_value = 184,
		  .check_value_bytes = 32,
		  .nonce = 216,
		  .data_in_offset = 228,
		  .data_out_offset = 232,
		  .capability_bytes = OSD2_CAPABILITY_BYTES,
		  .attributes_access = 136,
		  .policy_tag = 140,
		  .boot_epoch = 144,
		  .partition = 152,
		  .object = 160,
		  .range = 168 },
	};

	return &layouts[version == OSD_1 ? 0 : 1];
}

/* ---- capabilities ---- */

enum { CAPABILITY_AT = OSD_FIELD_CAPABILITY_FORMAT };

void osd_capability_encode(enum osd_version version, const struct osd_capability *capability,
			   uint8_t bytes[OSD2_CAPABILITY_BYTES])
{
	const struct osd_security_layout *layout = osd_security_layout(version);

	memset(bytes, 0, layout->capability_bytes);
	bytes[0] = capability->format & 0x0F;
	bytes[1] = (uint8_t)(capability->key_version << 4 | (capability->algorithm & 0x0F));
	bytes[2] = capability->method & 0x0F;
	put_be48(bytes + 4, capability->expires_ms);
	memcpy(bytes + 10, capability->audit, sizeof(capability->audit));
	memcpy(bytes + 30, capability->discriminator, sizeof(capability->discriminator));
	put_be48(bytes + 42, capability->created_ms);
	bytes[48] = capability->object_type;
	put_be16(bytes + 49, capability->permissions);
	bytes[55] = (uint8_t)(capability->descriptor_type << 4);
	put_be32(bytes + layout->policy_tag - CAPABILITY_AT, capability->policy_tag);
	put_be64(bytes + layout->partition - CAPABILITY_AT, capability->partition);
	put_be64(bytes + layout->object - CAPABILITY_AT, capability->object);
	if (version == OSD_1)
		return;
	put_be32(bytes + layout->attributes_access - CAPABILITY_AT, capability->attributes_access);
	put_be16(bytes + layout->boot_epoch - CAPABILITY_AT, capability->boot_epoch);
	put_be64(bytes + layout->range - CAPABILITY_AT, capability->range_length);
	put_be64(bytes + layout->range - CAPABILITY_AT + 8, capability->range_start);
}

void osd_capability_decode(enum osd_version version, const uint8_t bytes[OSD2_CAPABILITY_BYTES],
			   struct osd_capability *capability)
{
	const struct osd_security_layout *layout = osd_security_layout(version);

	*capability = (struct osd_capability){
		.format = bytes[0] & 0x0F,
		.key_version = bytes[1] >> 4,
		.algorithm = bytes[1] & 0x0F,
		.method = bytes[2] & 0x0F,
		.expires_ms = get_be48(bytes + 4),
		.created_ms = get_be48(bytes + 42),
		.object_type = bytes[48],
		.permissions = get_be16(bytes + 49),
		.descriptor_type = bytes[55] >> 4,
		.policy_tag = get_be32(bytes + layout->policy_tag - CAPABILITY_AT),
		.partition = get_be64(bytes + layout->partition - CAPABILITY_AT),
		.object = get_be64(bytes + layout->object - CAPABILITY_AT),
	};
	memcpy(capability->audit, bytes + 10, sizeof(capability->audit));
	memcpy(capability->discriminator, bytes + 30, sizeof(capability->discriminator));
	if (version == OSD_1)
		return;
	capability->attributes_access = get_be32(bytes + layout->attributes_access - CAPABILITY_AT);
	capability->boot_epoch = get_be16(bytes + layout->boot_epoch - CAPABILITY_AT);
	capability->range_length = get_be64(bytes + layout->range - CAPABILITY_AT);
	capability->range_start = get_be64(bytes + layout->range - CAPABILITY_AT + 8);
}

uint8_t osd_descriptor_type(enum osd_version version, enum osd_object_type type)
{
	if (type == OSD_TYPE_ROOT || type == OSD_TYPE_PARTITION)
		return OSD_DESCRIPTOR_PARTITION;
	if (type == OSD_TYPE_COLLECTION && version == OSD_2)
		return OSD_DESCRIPTOR_COLLECTION;
	return OSD_DESCRIPTOR_OBJECT;
}

/* ---- check values ---- */

/*
 * A context with the digest chosen and no key: looking up the algorithms takes longer than most
 * check values.
 */
static EVP_MAC_CTX *hmac_sha1;

static void prepare_hmac(void)
{
	OSSL_PARAM parameters[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA1", 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *algorithm = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);

	if (algorithm)
		hmac_sha1 = EVP_MAC_CTX_new(algorithm);
	EVP_MAC_free(algorithm);
	if (hmac_sha1 && EVP_MAC_CTX_set_params(hmac_sha1, parameters) != 1) {
		EVP_MAC_CTX_free(hmac_sha1);
		hmac_sha1 = NULL;
	}
}

/* HMAC-SHA1 over the pieces. */
static int hmac(const uint8_t *key, size_t key_bytes, const struct iovec *pieces, size_t count,
		uint8_t value[OSD_CHECK_VALUE_BYTES])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	EVP_MAC_CTX *context;
	size_t written;
	bool good;

	pthread_once(&once, prepare_hmac);
	context = hmac_sha1 ? EVP_MAC_CTX_dup(hmac_sha1) : NULL;
	good = context && EVP_MAC_init(context, key, key_bytes, NULL) == 1;
	for (size_t i = 0; good && i < count; i++)
		good = pieces[i].iov_len == 0 ||
		       EVP_MAC_update(context, pieces[i].iov_base, pieces[i].iov_len) == 1;
	good = good && EVP_MAC_final(context, value, &written, OSD_CHECK_VALUE_BYTES) == 1;
	EVP_MAC_CTX_free(context);
	return good ? 0 : -ENOMEM;
}

int osd_check_value(const uint8_t key[OSD_KEY_BYTES], const struct iovec *pieces, size_t count,
		    uint8_t value[OSD_CHECK_VALUE_BYTES])
{
	return hmac(key, OSD_KEY_BYTES, pieces, count, value);
}

bool osd_check_values_equal(const uint8_t *a, const uint8_t *b, size_t bytes)
{
	return CRYPTO_memcmp(a, b, bytes) == 0;
}

static struct iovec piece(const void *bytes, size_t length)
{
	return (struct iovec){ (void *)bytes, length };
}

int osd_capability_key(enum osd_version version, const uint8_t secret[OSD_KEY_BYTES],
		       const uint8_t *capability, const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
		       uint8_t key[OSD_KEY_BYTES])
{
	const struct iovec pieces[] = {
		piece(capability, osd_security_layout(version)->capability_bytes),
		piece(system_id, OSD_SYSTEM_ID_BYTES),
	};

	return osd_check_value(secret, pieces, 2, key);
}

int osd_token_check_value(const uint8_t key[OSD_KEY_BYTES],
			  const uint8_t token[OSD_SECURITY_TOKEN_BYTES],
			  uint8_t value[OSD_CHECK_VALUE_BYTES])
{
	const struct iovec pieces[] = { piece(token, OSD_SECURITY_TOKEN_BYTES) };

	return osd_check_value(key, pieces, 1, value);
}

static const uint8_t zeros[OSD_CHECK_VALUE_BYTES_MAX];

int osd_request_check_value(enum osd_version version, const uint8_t key[OSD_KEY_BYTES],
			    const uint8_t *cdb, uint8_t value[OSD_CHECK_VALUE_BYTES])
{
	const struct osd_security_layout *layout = osd_security_layout(version);
	size_t behind = (size_t)layout->check_value + layout->check_value_bytes;
	size_t length = version == OSD_1 ? OSD1_CDB_BYTES : OSD2_CDB_BYTES;
	const struct iovec pieces[] = {
		piece(cdb, layout->check_value),
		piece(zeros, layout->check_value_bytes),
		piece(cdb + behind, length - behind),
	};

	return osd_check_value(key, pieces, 3, value);
}

int osd_continuation_check_value(const uint8_t key[OSD_KEY_BYTES],
				 const uint8_t nonce[OSD_NONCE_BYTES], const uint8_t *segment,
				 size_t length, uint8_t value[OSD_CHECK_VALUE_BYTES])
{
	const struct iovec pieces[] = {
		piece(nonce, OSD_NONCE_BYTES),
		piece(segment, OSD_CONTINUATION_CHECK_VALUE),
		piece(zeros, OSD_CHECK_VALUE_BYTES_MAX),
		piece(segment + OSD_CONTINUATION_HEAD_BYTES, length - OSD_CONTINUATION_HEAD_BYTES),
	};

	assert(length >= OSD_CONTINUATION_HEAD_BYTES);
	return osd_check_value(key, pieces, 4, value);
}

int osd_extension_check_value(const uint8_t key[OSD_KEY_BYTES], const uint8_t *token,
			      const uint8_t *cdb, const uint8_t *segment, size_t length,
			      const uint8_t *list, size_t count,
			      uint8_t value[OSD_CHECK_VALUE_BYTES])
{
	const struct osd_security_layout *layout = osd_security_layout(OSD_2);
	size_t behind = (size_t)layout->check_value + layout->check_value_bytes, used = 6;
	const uint8_t *from = segment + OSD_CONTINUATION_HEAD_BYTES;
	struct iovec pieces[7 + 2 * OSD_EXTENSIONS_MAX] = {
		piece(token, token ? OSD_SECURITY_TOKEN_BYTES : 0),
		piece(cdb, layout->check_value),
		piece(zeros, layout->check_value_bytes),
		piece(cdb + behind, OSD2_CDB_BYTES - behind),
		piece(segment, OSD_CONTINUATION_CHECK_VALUE),
		piece(zeros, OSD_CHECK_VALUE_BYTES_MAX),
	};

	assert(count > 0 && count <= OSD_EXTENSIONS_MAX && list >= from &&
	       list + count * OSD_EXTENSION_BYTES <= segment + length);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *field = list + i * OSD_EXTENSION_BYTES + OSD_EXTENSION_CHECK_VALUE;

		pieces[used++] = piece(from, (size_t)(field - from));
		pieces[used++] = piece(zeros, OSD_CHECK_VALUE_BYTES_MAX);
		from = field + OSD_CHECK_VALUE_BYTES_MAX;
	}
	pieces[used++] = piece(from, (size_t)(segment + length - from));
	return osd_check_value(key, pieces, used, value);
}

int osd_response_check_value(const uint8_t key[OSD_KEY_BYTES], const uint8_t nonce[OSD_NONCE_BYTES],
			     uint8_t status, const uint8_t *sense, size_t sense_length,
			     uint8_t value[OSD_CHECK_VALUE_BYTES])
{
	const struct iovec pieces[] = {
		piece(nonce, OSD_NONCE_BYTES),
		piece(&status, 1),
		piece(sense, sense_length),
	};

	return osd_check_value(key, pieces, 3, value);
}

uint8_t *osd_sense_check_value_place(uint8_t *sense, size_t length, size_t *bytes)
{
	size_t at = 8;

	while (at + 2 <= length && at + 2 + sense[at + 1] <= length) {
		*bytes = sense[at + 1];
		if (sense[at] == SENSE_DESCRIPTOR_OSD_RESPONSE_CHECK_VALUE &&
		    *bytes >= OSD_CHECK_VALUE_BYTES)
			return sense + at + 2;
		at += 2 + *bytes;
	}
	return NULL;
}

/* ---- integrity information ---- */

static size_t check_value_bytes(enum osd_version version)
{
	return osd_security_layout(version)->check_value_bytes;
}

size_t osd_data_out_integrity_bytes(enum osd_version version)
{
	return 24 + check_value_bytes(version);
}

size_t osd_data_in_integrity_bytes(enum osd_version version)
{
	return 16 + check_value_bytes(version);
}

/* Adds the check value behind `numbers` bytes of lengths, which are in place. */
static int add_integrity(enum osd_version version, const uint8_t key[OSD_KEY_BYTES],
			 const uint8_t nonce[OSD_NONCE_BYTES], size_t numbers,
			 const struct iovec *parts, size_t count, uint8_t *information)
{
	struct iovec pieces[8] = { piece(nonce, OSD_NONCE_BYTES), piece(information, numbers) };

	assert(count <= 6);
	for (size_t i = 0; i < count; i++)
		pieces[2 + i] = parts[i];
	memset(information + numbers, 0, check_value_bytes(version));
	return osd_check_value(key, pieces, 2 + count, information + numbers);
}

int osd_data_out_integrity(enum osd_version version, const uint8_t key[OSD_KEY_BYTES],
			   const uint8_t nonce[OSD_NONCE_BYTES],
			   const struct osd_integrity_lengths *lengths, const struct iovec *pieces,
			   size_t count, uint8_t *information)
{
	put_be64(information, lengths->data);
	put_be64(information + 8, lengths->sets);
	put_be64(information + 16, lengths->gets);
	return add_integrity(version, key, nonce, 24, pieces, count, information);
}

int osd_data_in_integrity(enum osd_version version, const uint8_t key[OSD_KEY_BYTES],
			  const uint8_t nonce[OSD_NONCE_BYTES],
			  const struct osd_integrity_lengths *lengths, const struct iovec *pieces,
			  size_t count, uint8_t *information)
{
	put_be64(information, lengths->data);
	put_be64(information + 8, lengths->gets);
	return add_integrity(version, key, nonce, 16, pieces, count, information);
}

/* ---- keys ---- */

int osd_derive_keys(const uint8_t generation[OSD_KEY_BYTES], const uint8_t *seed,
		    size_t seed_length, uint8_t new_authentication[OSD_KEY_BYTES],
		    uint8_t new_generation[OSD_KEY_BYTES])
{
	uint8_t last = seed[seed_length - 1] ^ 1;
	const struct iovec as_it_is[] = { piece(seed, seed_length) };
	const struct iovec last_bit_inverted[] = { piece(seed, seed_length - 1), piece(&last, 1) };
	int result = osd_check_value(generation, as_it_is, 1, new_authentication);

	if (result == 0)
		result = osd_check_value(generation, last_bit_inverted, 2, new_generation);
	return result;
}

int osd_initial_master_keys(const uint8_t device_key[32],
			    const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			    uint8_t authentication[OSD_KEY_BYTES],
			    uint8_t generation[OSD_KEY_BYTES])
{
	static const char *const labels[] = { "muninn initial master authentication key",
					      "muninn initial master generation key" };
	uint8_t *const keys[] = { authentication, generation };
	int result = 0;

	for (size_t i = 0; i < 2 && result == 0; i++) {
		const struct iovec pieces[] = { piece(labels[i], strlen(labels[i])),
						piece(system_id, OSD_SYSTEM_ID_BYTES) };

		result = hmac(device_key, 32, pieces, 2, keys[i]);
	}
	return result;
}

void osd_key_fields_encode(uint16_t action, const struct osd_key_fields *fields,
			   uint8_t key_bytes[28])
{
	memset(key_bytes, 0, 28);
	key_bytes[0] = action == OSD_SET_KEY ? fields->key_version & 0x0F : fields->dh_group;
	memcpy(key_bytes + 1, fields->identifier, OSD_KEY_IDENTIFIER_BYTES);
	if (action == OSD_SET_KEY) {
		memcpy(key_bytes + 8, fields->seed, OSD_SEED_BYTES);
		return;
	}
	put_be32(key_bytes + 8, fields->parameter_length);
	put_be32(key_bytes + 12, fields->allocation_length);
}

void osd_key_fields_decode(uint16_t action, const uint8_t key_bytes[28],
			   struct osd_key_fields *fields)
{
	*fields = (struct osd_key_fields){ .key_version = key_bytes[0] & 0x0F };
	memcpy(fields->identifier, key_bytes + 1, OSD_KEY_IDENTIFIER_BYTES);
	if (action == OSD_SET_KEY) {
		memcpy(fields->seed, key_bytes + 8, OSD_SEED_BYTES);
		return;
	}
	fields->key_version = 0;
	fields->dh_group = key_bytes[0];
	fields->parameter_length = get_be32(key_bytes + 8);
	fields->allocation_length = get_be32(key_bytes + 12);
}
