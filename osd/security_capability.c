/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a capability says, in the CDB or among the extension capabilities: which key it was made
 * with, and whether it is valid. What the CDB's capability allows: the command, its attributes and
 * its range.
 */
#include <errno.h>

#include <openssl/crypto.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/functions.h"
#include "osd/keys.h"

/* ---- every capability ---- */

int osd_fail_capability(struct osd_request *request, size_t at, uint16_t field)
{
	if (at == OSD_CAPABILITY_OF_CDB)
		return osd_fail_field(request, field);
	osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
	request->sense.has_field = true;
	request->sense.field = (uint16_t)(at + field - OSD_FIELD_CAPABILITY_FORMAT);
	return -EINVAL;
}

int osd_capability_check_head(struct osd_request *request, const struct osd_capability *capability,
			      uint8_t least, uint8_t most, size_t at)
{
	uint8_t format = request->cdb.version == OSD_1 ? OSD_CAPABILITY_OSD1 : OSD_CAPABILITY_OSD2;

	if (capability->format != format)
		return osd_fail_capability(request, at, OSD_FIELD_CAPABILITY_FORMAT);
	if (capability->algorithm != OSD_INTEGRITY_HMAC_SHA1)
		return osd_fail_capability(request, at, OSD_FIELD_KEY_VERSION);
	if (capability->method < least || capability->method > most)
		return osd_fail_capability(request, at, OSD_FIELD_SECURITY_METHOD);
	return 0;
}

int osd_capability_find_key(struct osd_request *request, struct osd_key_name name,
			    const uint8_t *bytes, size_t at, uint8_t key[OSD_KEY_BYTES])
{
	struct osd_key secret;
	int result = osd_key_find(request, name, &secret);

	if (result == 0)
		result = osd_capability_key(request->cdb.version, secret.authentication, bytes,
					    request->device->system_id, key);
	OPENSSL_cleanse(&secret, sizeof(secret));
	if (result == -ENOENT || result == -EBADMSG)
		return osd_fail_capability(request, at, OSD_FIELD_KEY_VERSION);
	return osd_result(request, result, 0);
}

int osd_capability_check_frozen(struct osd_request *request,
				const struct osd_capability *capability,
				struct engine_address policy)
{
	uint64_t frozen_keys;
	bool frozen;
	int result = osd_security_number(request, policy, OSD_PARTITION_SECURITY,
					 OSD_SECURITY_FROZEN_KEYS, &frozen_keys);

	if (result == 0)
		result = osd_security_audit_is_frozen(request, policy, capability->audit, &frozen);
	if (result != 0)
		return osd_result(request, result, 0);
	if (frozen)
		return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_AUDIT_VALUE_FROZEN);
	if (frozen_keys >> capability->key_version & 1)
		return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_SECURITY_WORKING_KEY_FROZEN);
	return 0;
}

int osd_capability_check_time(struct osd_request *request, const struct osd_capability *capability,
			      size_t at)
{
	if (capability->expires_ms != 0 && capability->expires_ms < engine_txn_time(request->txn))
		return osd_fail_capability(request, at, OSD_FIELD_EXPIRATION);
	if (capability->boot_epoch != 0 &&
	    capability->boot_epoch != request->device->security->boot_epoch)
		return osd_fail_capability(request, at,
					   osd_security_layout(request->cdb.version)->boot_epoch);
	return 0;
}

/* ---- permission bits ---- */

static int look_at_set(void *context, const struct osd_attribute *attribute)
{
	uint16_t *needed = context;

	if (osd_page_is_security(attribute->page))
		*needed |= OSD_PERMISSION_POL_SEC;
	/* Cutting data off, or adding zeros, is writing. */
	if (attribute->page == OSD_USER_OBJECT_INFORMATION &&
	    attribute->number == OSD_INFORMATION_LOGICAL_LENGTH)
		*needed |= OSD_PERMISSION_WRITE;
	return 0;
}

/*
 * Does the command get anything but the current command page, which tells only of the command
 * itself?
 */
static bool gets_attributes(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	struct osd_list_reader reader;
	struct osd_attribute asked;

	if (cdb->format == OSD_ATTRIBUTES_PAGE)
		return cdb->get_page != 0 && cdb->get_page != OSD_PAGE_CURRENT_COMMAND;
	if (cdb->format != OSD_ATTRIBUTES_LIST || cdb->get_list.length == 0)
		return false;
	if (osd_list_read(&reader, cdb->version, OSD_LIST_TO_GET,
			  request->command->data_out + cdb->get_list.offset,
			  cdb->get_list.length) != 0)
		return true;
	while (osd_list_next(&reader, &asked) == 1)
		if (asked.page != OSD_PAGE_CURRENT_COMMAND)
			return true;
	return false;
}

/*
 * Does the command name further objects? Each needs an extension capability (osd_further_check).
 * Sources of snapshots and clones are not among them: for those the command needs GLOBAL, because
 * it is about partitions.
 */
static bool names_objects(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	if (request->entry->flags & (OSD_COPIES | OSD_NAMES_OBJECT))
		return true;
	return (cdb->action == OSD_QUERY || cdb->action == OSD_CREATE_USER_TRACKING_COLLECTION) &&
	       cdb->address != 0;
}

/*
 * Does the command reach more than the object that the capability names: what is in it (other than
 * a collection's members), or other initiators' commands?
 */
static bool reaches_more(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	if (cdb->action == OSD_PERFORM_TASK_MANAGEMENT_FUNCTION)
		return cdb->task_function == OSD_CLEAR_TASK_SET ||
		       cdb->task_function == OSD_LOGICAL_UNIT_RESET;
	if (cdb->action == OSD_EXECUTE && osd_function_code(cdb) == OSD_FUNCTION_SEARCH)
		return cdb->object == 0;
	return cdb->action == OSD_LIST && osd_names_root(cdb->partition);
}

static uint16_t permissions_needed(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	uint16_t needed = request->entry->permissions;

	if (osd_has_sets(request)) {
		needed |= OSD_PERMISSION_SET_ATTR;
		/* A malformed list is refused before anything of it is set. */
		osd_each_set(request, look_at_set, &needed);
	}
	if (gets_attributes(request))
		needed |= OSD_PERMISSION_GET_ATTR;
	if (names_objects(request))
		needed |= OSD_PERMISSION_M_OBJECT;
	if (reaches_more(request))
		needed |= OSD_PERMISSION_GLOBAL;
	if (cdb->action == OSD_REMOVE_PARTITION && cdb->version == OSD_2 &&
	    (cdb->command_options & 7) == OSD_REMOVE_CONTENTS)
		needed |= OSD_PERMISSION_GBL_REM;
	return needed;
}

static int check_permissions(struct osd_request *request)
{
	uint16_t granted = request->security.capability.permissions;
	uint16_t needed = permissions_needed(request);
	bool key_command = request->cdb.action == OSD_SET_KEY ||
			   request->cdb.action == OSD_SET_MASTER_KEY;

	/* Either of two bits is enough for keys. */
	if (key_command && granted & (OSD_PERMISSION_DEV_MGMT | OSD_PERMISSION_POL_SEC))
		granted |= OSD_PERMISSION_DEV_MGMT | OSD_PERMISSION_POL_SEC;
	if (request->entry->permissions == 0 || (granted & needed) != needed)
		return osd_fail_field(request, OSD_FIELD_PERMISSIONS);
	return 0;
}

/* ---- the object ---- */

/* The object type that the command is about. 0: user object or collection, which is known later. */
static uint8_t type_needed(const struct osd_request *request)
{
	switch (request->entry->target) {
	case OSD_TARGET_ROOT:
		return OSD_TYPE_ROOT;
	case OSD_TARGET_PARTITION:
	case OSD_TARGET_NEW_PARTITION:
		return OSD_TYPE_PARTITION;
	case OSD_TARGET_USER_OBJECT:
	case OSD_TARGET_NEW_USER_OBJECT:
		return OSD_TYPE_USER_OBJECT;
	case OSD_TARGET_COLLECTION:
	case OSD_TARGET_NEW_COLLECTION:
		return OSD_TYPE_COLLECTION;
	case OSD_TARGET_PARTITION_OR_COLLECTION:
		return request->cdb.object == 0 ? OSD_TYPE_PARTITION : OSD_TYPE_COLLECTION;
	case OSD_TARGET_ROOT_OR_PARTITION:
		return osd_names_root(request->cdb.partition) ? OSD_TYPE_ROOT : OSD_TYPE_PARTITION;
	default:
		break;
	}
	if (request->cdb.object != 0)
		return 0;
	return osd_names_root(request->cdb.partition) ? OSD_TYPE_ROOT : OSD_TYPE_PARTITION;
}

static bool is_container(uint8_t type)
{
	return type == OSD_TYPE_ROOT || type == OSD_TYPE_PARTITION;
}

static int check_object(struct osd_request *request)
{
	const struct osd_security_layout *layout = osd_security_layout(request->cdb.version);
	const struct osd_capability *capability = &request->security.capability;
	uint8_t type = type_needed(request), given = capability->object_type;
	bool fits = type ? given == type
			 : given == OSD_TYPE_USER_OBJECT || given == OSD_TYPE_COLLECTION;

	if (!fits)
		return osd_fail_field(request, OSD_FIELD_OBJECT_TYPE);
	if (capability->descriptor_type != osd_descriptor_type(request->cdb.version, given))
		return osd_fail_field(request, OSD_FIELD_DESCRIPTOR_TYPE);
	if (capability->partition != request->cdb.partition)
		return osd_fail_field(request, layout->partition);
	if (capability->object != (is_container(given) ? 0 : request->cdb.object))
		return osd_fail_field(request, layout->object);
	return 0;
}

/* ---- the range ---- */

static bool is_inside(const struct osd_capability *capability, uint64_t start, uint64_t length)
{
	return start >= capability->range_start &&
	       start - capability->range_start <= capability->range_length &&
	       length <= capability->range_length - (start - capability->range_start);
}

static int look_for_length(void *context, const struct osd_attribute *attribute)
{
	(void)context;
	return attribute->page == OSD_USER_OBJECT_INFORMATION &&
	       attribute->number == OSD_INFORMATION_LOGICAL_LENGTH;
}

/* Does the command stay in the range, or touch no data? Refuses what it can't tell. */
static bool respects_range(const struct osd_request *request)
{
	const struct osd_capability *capability = &request->security.capability;
	const struct osd_cdb *cdb = &request->cdb;

	if (osd_each_set(request, look_for_length, NULL) != 0)
		return false;
	switch (cdb->action) {
	case OSD_GET_ATTRIBUTES:
	case OSD_SET_ATTRIBUTES:
	case OSD_FLUSH:
		return true;
	case OSD_READ:
	case OSD_WRITE:
	case OSD_CLEAR:
		break;
	default:
		return false;
	}
	if (!request->pieces.content)
		return is_inside(capability, cdb->address, cdb->length);
	for (size_t i = 0; i < request->pieces.length / 16; i++) {
		struct osd_piece piece;

		osd_piece_decode(&request->pieces, i, &piece);
		/*
		 * validate.c has checked that the sum, first page of a packed ID included, fits in
		 * 64 bits.
		 */
		if (!is_inside(capability, cdb->address + piece.offset, piece.length))
			return false;
	}
	return true;
}

int osd_capability_check(struct osd_request *request)
{
	const struct osd_capability *capability = &request->security.capability;

	if (osd_capability_check_time(request, capability, OSD_CAPABILITY_OF_CDB) != 0)
		return -EINVAL;
	if (check_object(request) != 0 || check_permissions(request) != 0)
		return -EINVAL;
	return osd_capability_check_attributes(request);
}

int osd_capability_check_range(struct osd_request *request)
{
	if (request->security.capability.range_length == 0 || respects_range(request))
		return 0;
	return osd_fail_field(request, osd_security_layout(request->cdb.version)->range);
}
