/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The attributes of policy/security pages, for security itself and for initiators. */
#include <errno.h>

#include <openssl/crypto.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/facts.h"
#include "osd/keys.h"

/* How far from the clock timestamps of nonces may be, unless a partition says otherwise. */
#define NONCE_WINDOW_MS UINT64_C(60000)
/* Nonces remembered for all partitions together, or as many as the attribute can say. */
#define NONCE_LIST_DEPTH UINT16_MAX

/* Limits that no page of policy reaches. */
enum { POLICY_VALUES_MAX = 64, POLICY_BYTES_MAX = 80 };

/* ---- what security asks ---- */

int osd_security_number(const struct osd_request *request, struct engine_address address,
			uint32_t page, uint32_t number, uint64_t *value)
{
	uint8_t bytes[8];
	uint32_t length;
	int result = osd_attribute_at(request->txn, address, page, number, bytes, sizeof(bytes),
				      &length);

	*value = 0;
	if (result != 0)
		return result == -ENOENT ? 0 : result;
	if (length > sizeof(bytes))
		return -EBADMSG;
	for (uint32_t i = 0; i < length; i++)
		*value = *value << 8 | bytes[i];
	return 0;
}

int osd_security_nonce_window(const struct osd_request *request, struct engine_address policy,
			      uint64_t *past_ms, uint64_t *future_ms)
{
	int result = 0;

	*past_ms = *future_ms = 0;
	if (policy.partition != 0) {
		result = osd_security_number(request, policy, OSD_PARTITION_SECURITY,
					     OSD_SECURITY_OLDEST_NONCE, past_ms);
		if (result == 0)
			result = osd_security_number(request, policy, OSD_PARTITION_SECURITY,
						     OSD_SECURITY_NEWEST_NONCE, future_ms);
	}
	*past_ms = *past_ms ? *past_ms : NONCE_WINDOW_MS;
	*future_ms = *future_ms ? *future_ms : NONCE_WINDOW_MS;
	return result;
}

int osd_security_audit_is_frozen(const struct osd_request *request, struct engine_address policy,
				 const uint8_t audit[20], bool *frozen)
{
	uint32_t page = OSD_PARTITION_FROZEN_AUDITS, number = 1, length;
	uint8_t value[20];

	*frozen = false;
	for (unsigned i = 0; i < OSD_FROZEN_AUDITS_MAX && !*frozen; i++, number++) {
		int result = osd_attribute_next_at(request->txn, policy, &page, &number, value,
						   sizeof(value), &length);

		if (result == -ENOENT || page != OSD_PARTITION_FROZEN_AUDITS)
			return 0;
		if (result != 0)
			return result;
		*frozen = length == sizeof(value) && memcmp(value, audit, sizeof(value)) == 0;
	}
	return 0;
}

static int copy_value(struct osd_request *request, struct engine_address from, uint32_t from_page,
		      uint32_t from_number, uint32_t to_page, uint32_t to_number, uint64_t count)
{
	uint8_t value[8];
	uint32_t length;
	int result = osd_attribute_at(request->txn, from, from_page, from_number, value,
				      sizeof(value), &length);

	if (result == -ENOENT)
		return 0;
	for (uint64_t i = 0; i < count && result == 0; i++)
		result = osd_set_created(request, i, to_page, to_number, value, length);
	return osd_result(request, result, 0);
}

int osd_security_inherit(struct osd_request *request)
{
	struct engine_address root = { 0 };
	struct engine_address partition = { .partition = request->subject.address.partition };

	if (request->subject.address.object == 0)
		return copy_value(request, root, OSD_ROOT_SECURITY,
				  OSD_SECURITY_PARTITION_DEFAULT_METHOD, OSD_PARTITION_SECURITY,
				  OSD_SECURITY_DEFAULT_METHOD, 1);
	return copy_value(request, partition, OSD_PARTITION_SECURITY,
			  OSD_SECURITY_USER_OBJECT_POLICY_ACCESS_TAG, OSD_USER_OBJECT_SECURITY,
			  OSD_SECURITY_POLICY_ACCESS_TAG, request->created);
}

/* Copies the attributes of a page from `from` to `to`. */
static int copy_page(struct osd_request *request, struct engine_address from,
		     struct engine_address to, uint32_t page)
{
	uint8_t value[POLICY_BYTES_MAX];
	uint32_t found = page, number = 0, length;

	for (unsigned count = 0; count < POLICY_VALUES_MAX; count++, number++) {
		int result = osd_attribute_next_at(request->txn, from, &found, &number, value,
						   sizeof(value), &length);

		if (result == -ENOENT || (result == 0 && found != page))
			return 0;
		if (result == 0 && length <= sizeof(value))
			result =
				osd_attribute_set_at(request->txn, to, page, number, value, length);
		if (result != 0 || number == UINT32_MAX)
			return result;
	}
	return 0;
}

int osd_security_set_method(struct osd_request *request, struct engine_address partition,
			    uint8_t method)
{
	if (method == OSD_NOSEC)
		return 0;
	return osd_result(request,
			  osd_attribute_set_at(request->txn, partition, OSD_PARTITION_SECURITY,
					       OSD_SECURITY_DEFAULT_METHOD, &method, 1),
			  0);
}

int osd_security_inherit_clone(struct osd_request *request, uint64_t source)
{
	struct engine_address clone = request->subject.address, from;
	uint8_t method = OSD_NOSEC;
	struct osd_policy policy;
	int result = osd_security_find_policy(request, source, &policy);

	from = policy.address;
	if (result == 0)
		result = osd_security_method_at(request, &policy, &method);
	if (result == 0)
		result = copy_page(request, from, clone, OSD_PARTITION_SECURITY);
	if (result == 0)
		result = copy_page(request, from, clone, OSD_PARTITION_FROZEN_AUDITS);
	if (result == 0)
		result = copy_page(request, from, clone, OSD_PARTITION_ATTRIBUTES_ACCESS);
	if (result != 0)
		return osd_result(request, result, 0);
	return osd_security_set_method(request, clone, method);
}

bool osd_page_is_security(uint32_t page)
{
	return page == OSD_ROOT_SECURITY || page == OSD_PARTITION_SECURITY ||
	       page == OSD_COLLECTION_SECURITY || page == OSD_USER_OBJECT_SECURITY ||
	       page == OSD_PARTITION_FROZEN_AUDITS || page == OSD_PARTITION_ATTRIBUTES_ACCESS;
}

/* A bit for each method that the unit can check. */
static uint16_t supported_methods(const struct osd_request *request)
{
	return request->device->security->has_device_key
		       ? 1u << OSD_NOSEC | 1u << OSD_CAPKEY | 1u << OSD_CMDRSP | 1u << OSD_ALLDATA
		       : 1u << OSD_NOSEC;
}

/* With any other method nobody could use the partition, nor take the method back. */
bool osd_security_allows_method(const struct osd_request *request, const uint8_t *value)
{
	return value[0] <= OSD_ALLDATA && supported_methods(request) >> value[0] & 1;
}

bool osd_security_allows_window(const struct osd_request *request, const uint8_t *value)
{
	(void)request;
	return get_be48(value) > 0 && get_be48(value) <= OSD_NONCE_WINDOW_MAX_MS;
}

/* ---- what is shown ---- */

static uint32_t time48(uint8_t *value, uint64_t milliseconds)
{
	put_be48(value, milliseconds);
	return 6;
}

static uint32_t identifier_of(const struct osd_request *request, struct osd_key_name name,
			      uint8_t *value)
{
	struct osd_key key;
	int result = osd_key_find(request, name, &key);

	if (result == 0)
		memcpy(value, key.identifier, OSD_KEY_IDENTIFIER_BYTES);
	OPENSSL_cleanse(&key, sizeof(key));
	return result == 0 ? OSD_KEY_IDENTIFIER_BYTES : 0;
}

static uint32_t method_of(const struct osd_request *request, uint64_t partition, uint8_t *value)
{
	/* Shows nothing if it can't be read. */
	return osd_security_method_of(request, partition, value) == 0 ? 1 : 0;
}

static uint32_t root_attribute(const struct osd_request *request, uint32_t number, uint8_t *value)
{
	static const uint8_t groups[] = { OSD_DH_GROUP_2048, OSD_DH_GROUP_3072 };
	const struct osd_security *security = request->device->security;
	struct engine_address root = { 0 };
	uint64_t stored;

	switch (number) {
	case OSD_SECURITY_DEFAULT_METHOD:
		return method_of(request, 0, value);
	case OSD_SECURITY_OLDEST_NONCE:
	case OSD_SECURITY_NEWEST_NONCE:
		return time48(value, OSD_NONCE_WINDOW_MAX_MS);
	case OSD_SECURITY_PARTITION_DEFAULT_METHOD:
		if (osd_security_number(request, root, OSD_ROOT_SECURITY, number, &stored) != 0)
			return 0;
		value[0] = (uint8_t)stored;
		return 1;
	case OSD_SECURITY_SUPPORTED_METHODS:
		put_be16(value, supported_methods(request));
		return 2;
	case OSD_SECURITY_BOOT_EPOCH:
		put_be16(value, security->boot_epoch);
		return security->boot_epoch ? 2 : 0;
	case OSD_SECURITY_ADJUSTABLE_CLOCK:
		return time48(value, engine_txn_time(request->txn));
	case OSD_SECURITY_MASTER_KEY_IDENTIFIER:
		return identifier_of(request, (struct osd_key_name){ .kind = OSD_KEY_MASTER },
				     value);
	case OSD_SECURITY_ROOT_KEY_IDENTIFIER:
		return identifier_of(request, (struct osd_key_name){ .kind = OSD_KEY_ROOT }, value);
	case OSD_SECURITY_ALGORITHMS:
		value[0] = OSD_INTEGRITY_HMAC_SHA1;
		return 1;
	default:
		value[0] = groups[number - OSD_SECURITY_DH_GROUPS];
		return 1;
	}
}

static uint32_t partition_attribute(const struct osd_request *request, uint64_t partition,
				    uint32_t number, uint8_t *value)
{
	struct osd_key_name name = { .kind = OSD_KEY_PARTITION };
	struct osd_policy policy;
	uint64_t past, future;

	if (osd_security_find_policy(request, partition, &policy) != 0)
		return 0;
	name.partition = policy.address.partition;
	name.shown_by = policy.address.version;
	switch (number) {
	case OSD_SECURITY_DEFAULT_METHOD:
		return method_of(request, partition, value);
	case OSD_SECURITY_OLDEST_NONCE:
	case OSD_SECURITY_NEWEST_NONCE:
		if (osd_security_nonce_window(request, policy.address, &past, &future) != 0)
			return 0;
		return time48(value, number == OSD_SECURITY_OLDEST_NONCE ? past : future);
	case OSD_SECURITY_NONCE_LIST_DEPTH:
		put_be16(value, NONCE_LIST_DEPTH);
		return 2;
	case OSD_SECURITY_PARTITION_KEY_IDENTIFIER:
		return identifier_of(request, name, value);
	default:
		name.kind = OSD_KEY_WORKING;
		name.version = (uint8_t)(number - OSD_SECURITY_WORKING_KEY_IDENTIFIERS);
		return identifier_of(request, name, value);
	}
}

uint32_t osd_security_attribute(const struct osd_request *request,
				const struct osd_subject *subject, uint32_t page, uint32_t number,
				uint8_t *value)
{
	if (page == OSD_ROOT_SECURITY)
		return root_attribute(request, number, value);
	return partition_attribute(request, osd_wire_partition(subject->address), number, value);
}
