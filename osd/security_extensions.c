/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Extension capabilities, which allow a command to work on other objects than the addressed one.
 * The capability in the CDB is about the addressed object alone. Each other object that the command
 * names needs a capability of its own. The check value of that one shows that the sender has its
 * key, and is good for this request only.
 */
#include <errno.h>

#include <openssl/crypto.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* Extension capabilities in the segment; 0 also when the list is malformed. */
static size_t count_of(const struct osd_request *request)
{
	uint32_t length = request->extensions.length;

	if (!request->extensions.content || length % OSD_EXTENSION_BYTES != 0 ||
	    length / OSD_EXTENSION_BYTES > OSD_EXTENSIONS_MAX)
		return 0;
	return length / OSD_EXTENSION_BYTES;
}

static const uint8_t *extension(const struct osd_request *request, size_t index,
				struct osd_capability *capability)
{
	const uint8_t *bytes = request->extensions.content + index * OSD_EXTENSION_BYTES;

	osd_capability_decode(OSD_2, bytes, capability);
	return bytes;
}

int osd_extensions_method(const struct osd_request *request, uint8_t *method)
{
	*method = OSD_NOSEC;
	for (size_t i = 0; i < count_of(request); i++) {
		struct osd_capability capability;
		uint8_t own;
		int result;

		extension(request, i, &capability);
		result = osd_security_method_of(request, capability.partition, &own);
		if (result != 0)
			return result;
		*method = (uint8_t)max_u64(*method, own);
	}
	return 0;
}

/* ---- is it genuine? ---- */

/* Computes the check value with the sum's key. */
static void compute_value(const struct osd_request *request, uint8_t method,
			  struct osd_extension_sum *sum)
{
	const struct osd_command *command = request->command;
	bool by_token = method == OSD_CAPKEY;
	uint8_t token[OSD_SECURITY_TOKEN_BYTES];
	int result = by_token ? osd_security_token(request->device, command->nexus, token) : 0;

	memset(sum->value, 0, sizeof(sum->value));
	if (result == 0)
		result = osd_extension_check_value(sum->key, by_token ? token : NULL, command->cdb,
						   command->data_out, request->out_data,
						   request->extensions.content, count_of(request),
						   sum->value);
	sum->known = result == 0;
}

/* The name of the key that signs commands on its object. */
static int name_key(const struct osd_request *request, const struct osd_capability *capability,
		    struct osd_policy *policy, struct osd_key_name *name)
{
	int result = osd_security_find_policy(request, capability->partition, policy);

	*name = (struct osd_key_name){ .kind = OSD_KEY_ROOT };
	if (policy->address.partition != 0)
		*name = (struct osd_key_name){ OSD_KEY_WORKING, policy->address.partition,
					       capability->key_version, policy->address.version };
	return result;
}

void osd_extensions_find_keys(struct osd_request *request)
{
	for (size_t i = 0; i < count_of(request); i++) {
		struct osd_extension_sum *sum = &request->security.extensions[i];
		struct osd_capability capability;
		const uint8_t *bytes = extension(request, i, &capability);
		struct osd_policy policy;
		struct osd_key_name name;
		struct osd_key secret;

		sum->has_key = name_key(request, &capability, &policy, &name) == 0 &&
			       osd_key_find(request, name, &secret) == 0 &&
			       osd_capability_key(OSD_2, secret.authentication, bytes,
						  request->device->system_id, sum->key) == 0;
		OPENSSL_cleanse(&secret, sizeof(secret));
	}
}

void osd_extensions_sum(struct osd_request *request, uint8_t method)
{
	for (size_t i = 0; i < count_of(request); i++)
		if (request->security.extensions[i].has_key)
			compute_value(request, method, &request->security.extensions[i]);
}

/* Does it have the check value that `key` makes? */
static int check_value(struct osd_request *request, size_t index, const uint8_t *bytes,
		       const uint8_t key[OSD_KEY_BYTES])
{
	struct osd_extension_sum *sum = &request->security.extensions[index];

	/* The key is another one than a moment ago, or nothing was computed yet. */
	if (!sum->known || !osd_check_values_equal(sum->key, key, OSD_KEY_BYTES)) {
		memcpy(sum->key, key, OSD_KEY_BYTES);
		compute_value(request, request->security.method, sum);
	}
	if (!sum->known)
		return osd_result(request, -ENOMEM, 0);
	if (osd_check_values_equal(sum->value, bytes + OSD_EXTENSION_CHECK_VALUE,
				   sizeof(sum->value)))
		return 0;
	return osd_fail_capability(request, (size_t)(bytes - request->command->data_out),
				   osd_security_layout(OSD_2)->check_value);
}

/*
 * Was it made with the key that signs commands on its object, for this request, and not withdrawn?
 */
static int check_genuine(struct osd_request *request, size_t index,
			 const struct osd_capability *capability, const uint8_t *bytes)
{
	struct osd_policy policy;
	struct osd_key_name name;
	uint8_t key[OSD_KEY_BYTES];
	int result = name_key(request, capability, &policy, &name);

	if (result != 0)
		return osd_result(request, result, 0);
	result = osd_capability_find_key(request, name, bytes,
					 (size_t)(bytes - request->command->data_out), key);
	if (result == 0)
		result = check_value(request, index, bytes, key);
	OPENSSL_cleanse(key, sizeof(key));
	if (result == 0 && name.kind == OSD_KEY_WORKING)
		result = osd_capability_check_frozen(request, capability, policy.address);
	return result;
}

/* Checks what can change while the command is under way: demanded methods, keys, withdrawals. */
static int check_standing(struct osd_request *request, size_t index,
			  const struct osd_capability *capability, const uint8_t *bytes)
{
	uint8_t least;
	int result = osd_security_method_of(request, capability->partition, &least);

	if (result != 0)
		return osd_result(request, result, 0);
	/*
	 * The CDB's capability says how the request is protected. An extension can't ask for more.
	 */
	if (osd_capability_check_head(request, capability, (uint8_t)max_u64(least, OSD_CAPKEY),
				      request->security.method,
				      (size_t)(bytes - request->command->data_out)) != 0)
		return -EINVAL;
	return check_genuine(request, index, capability, bytes);
}

static int check_extension(struct osd_request *request, size_t index)
{
	const struct osd_security_layout *layout = osd_security_layout(OSD_2);
	struct osd_capability capability;
	const uint8_t *bytes = extension(request, index, &capability);
	size_t at = (size_t)(bytes - request->command->data_out);

	if (check_standing(request, index, &capability, bytes) != 0 ||
	    osd_capability_check_time(request, &capability, at) != 0)
		return -EINVAL;
	if (capability.descriptor_type != osd_descriptor_type(OSD_2, capability.object_type))
		return osd_fail_capability(request, at, OSD_FIELD_DESCRIPTOR_TYPE);
	if (capability.attributes_access != 0)
		return osd_fail_capability(request, at, layout->attributes_access);
	/* Commands use the whole of their further objects. */
	if (capability.range_length != 0)
		return osd_fail_capability(request, at, layout->range);
	return 0;
}

int osd_extensions_check(struct osd_request *request)
{
	size_t count = count_of(request);

	if (!request->extensions.content)
		return 0;
	if (count == 0)
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	for (size_t i = 0; i < count; i++)
		if (check_extension(request, i) != 0)
			return -EINVAL;
	return 0;
}

int osd_extensions_check_again(struct osd_request *request)
{
	for (size_t i = 0; i < count_of(request); i++) {
		struct osd_capability capability;
		const uint8_t *bytes = extension(request, i, &capability);

		if (check_standing(request, i, &capability, bytes) != 0)
			return -EINVAL;
	}
	return 0;
}

/* ---- what it is needed for ---- */

int osd_further_check(struct osd_request *request, uint64_t partition, uint64_t object,
		      uint16_t permissions, struct osd_further *further)
{
	struct osd_policy policy;
	uint8_t method;
	int result = osd_security_find_policy(request, partition, &policy);

	if (result == 0)
		result = osd_security_method_at(request, &policy, &method);
	if (result != 0)
		return osd_result(request, result, 0);
	*further = (struct osd_further){ .shows_nothing = policy.shows_nothing };
	if (method == OSD_NOSEC)
		return 0;
	/* If no method is demanded of the command, nobody has checked the list. */
	for (size_t i = 0; request->security.method != OSD_NOSEC && i < count_of(request); i++) {
		const uint8_t *bytes = extension(request, i, &further->capability);

		if (further->capability.partition != partition ||
		    further->capability.object != object)
			continue;
		further->restricted = true;
		further->at = (size_t)(bytes - request->command->data_out);
		if ((further->capability.permissions & permissions) != permissions)
			return osd_fail_capability(request, further->at, OSD_FIELD_PERMISSIONS);
		return 0;
	}
	return osd_fail_field(request, OSD_FIELD_PERMISSIONS);
}

int osd_further_find_partition(struct osd_request *request, uint64_t partition, uint16_t field)
{
	struct engine_address address = osd_address(partition, 0);
	struct osd_further further = { .shows_nothing = true };
	struct engine_stat stat;
	int result;

	if (osd_check_version(request, address, field) != 0 ||
	    osd_further_check(request, partition, 0, OSD_PERMISSION_READ, &further) != 0)
		return -EINVAL;
	result = osd_stat_at(request, address, &stat);
	if (result != 0)
		return osd_result(request, result, field);
	return osd_further_check_found(request, &further, address, &stat);
}

int osd_further_check_found(struct osd_request *request, const struct osd_further *further,
			    struct engine_address address, const struct engine_stat *stat)
{
	const struct osd_capability *capability = &further->capability;
	uint64_t tag;

	/* As in osd_security_check_subject. */
	if (further->shows_nothing)
		return osd_fail_field(request, OSD_FIELD_PERMISSIONS);
	if (!further->restricted)
		return 0;
	if (capability->object_type != osd_wire_type(stat->type))
		return osd_fail_capability(request, further->at, OSD_FIELD_OBJECT_TYPE);
	if (capability->created_ms != 0 &&
	    capability->created_ms != stat->times_ms[ENGINE_TIME_CREATED])
		return osd_fail_capability(request, further->at, OSD_FIELD_CREATED_TIME);
	if (capability->policy_tag == 0)
		return 0;
	if (osd_security_tag_of(request, address, stat->type, OSD_SECURITY_POLICY_ACCESS_TAG,
				&tag) != 0)
		return -EINVAL;
	return tag == capability->policy_tag
		       ? 0
		       : osd_fail_capability(request, further->at,
					     osd_security_layout(OSD_2)->policy_tag);
}
