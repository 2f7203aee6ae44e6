/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Sense data and INQUIRY data. */
#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "wire/wire.h"

enum { SENSE_HEAD_BYTES = 8 };

/* ---- encoding ---- */

struct sense_writer {
	uint8_t *data;
	size_t capacity;
	size_t length;
};

/* Appends a zeroed descriptor of `bytes`; NULL if there is no space. */
static uint8_t *add_descriptor(struct sense_writer *writer, uint8_t type, size_t bytes)
{
	uint8_t *descriptor = writer->data + writer->length;

	if (writer->capacity - writer->length < bytes)
		return NULL;
	memset(descriptor, 0, bytes);
	descriptor[0] = type;
	descriptor[1] = (uint8_t)(bytes - 2);
	writer->length += bytes;
	return descriptor;
}

static void add_number(struct sense_writer *writer, uint8_t type, uint64_t value)
{
	uint8_t *descriptor = add_descriptor(writer, type, 12);

	if (!descriptor)
		return;
	if (type == SENSE_DESCRIPTOR_INFORMATION)
		descriptor[2] = 0x80; /* VALID */
	put_be64(descriptor + 4, value);
}

static void add_object(struct sense_writer *writer, const struct osd_sense *sense)
{
	uint8_t *descriptor = add_descriptor(writer, SENSE_DESCRIPTOR_OSD_OBJECT, 32);

	if (!descriptor)
		return;
	put_be32(descriptor + 8, sense->not_initiated);
	put_be32(descriptor + 12, sense->completed);
	put_be64(descriptor + 16, sense->partition);
	put_be64(descriptor + 24, sense->object);
}

static void add_field(struct sense_writer *writer, const struct osd_sense *sense)
{
	uint8_t *descriptor = add_descriptor(writer, SENSE_DESCRIPTOR_SENSE_KEY_SPECIFIC, 8);

	if (!descriptor)
		return;
	descriptor[4] = sense->field_in_cdb ? 0xC0 : 0x80; /* SKSV, C/D */
	put_be16(descriptor + 5, sense->field);
}

static void add_check_value(struct sense_writer *writer, const struct osd_sense *sense)
{
	uint8_t *descriptor = add_descriptor(writer, SENSE_DESCRIPTOR_OSD_RESPONSE_CHECK_VALUE,
					     2 + (size_t)sense->check_value_bytes);

	if (descriptor)
		memcpy(descriptor + 2, sense->check_value, sense->check_value_bytes);
}

static void add_attributes(struct sense_writer *writer, const struct osd_sense *sense)
{
	uint8_t *descriptor = add_descriptor(writer, SENSE_DESCRIPTOR_OSD_ATTRIBUTE,
					     4 + 8 * (size_t)sense->attributes);

	if (!descriptor)
		return;
	for (unsigned i = 0; i < sense->attributes; i++) {
		put_be32(descriptor + 4 + 8 * i, sense->attribute[i].page);
		put_be32(descriptor + 8 + 8 * i, sense->attribute[i].number);
	}
}

static void add_users(struct sense_writer *writer, const struct osd_sense *sense)
{
	size_t length = strlen(sense->user_names);
	uint8_t *descriptor = add_descriptor(writer, SENSE_DESCRIPTOR_USERS, 4 + length);

	if (!descriptor)
		return;
	put_be16(descriptor + 2, (uint16_t)min_u64(sense->users, UINT16_MAX));
	memcpy(descriptor + 4, sense->user_names, length);
}

size_t osd_sense_encode(const struct osd_sense *sense, uint8_t *data, size_t capacity)
{
	struct sense_writer writer = { data, min_u64(capacity, 252), SENSE_HEAD_BYTES };

	assert(capacity >= SENSE_HEAD_BYTES && sense->check_value_bytes <= 32 &&
	       sense->attributes <= OSD_SENSE_ATTRIBUTES_MAX);
	memset(data, 0, SENSE_HEAD_BYTES);
	data[0] = 0x72;
	data[1] = sense->key;
	put_be16(data + 2, sense->code);
	/* Linux keeps 96 bytes: what it acts on comes first. */
	if (sense->has_object)
		add_object(&writer, sense);
	if (sense->has_field)
		add_field(&writer, sense);
	if (sense->has_information)
		add_number(&writer, SENSE_DESCRIPTOR_INFORMATION, sense->information);
	if (sense->has_command_information)
		add_number(&writer, SENSE_DESCRIPTOR_COMMAND_INFORMATION,
			   sense->command_information);
	if (sense->check_value_bytes > 0)
		add_check_value(&writer, sense);
	if (sense->attributes > 0)
		add_attributes(&writer, sense);
	if (sense->users > 0)
		add_users(&writer, sense);
	data[7] = (uint8_t)(writer.length - SENSE_HEAD_BYTES);
	return writer.length;
}

/* ---- decoding ---- */

/* A name ends at what is no printable ASCII, because people will read it on a terminal. */
static void decode_users(const uint8_t *descriptor, size_t bytes, struct osd_sense *sense)
{
	size_t length = 0, most = min_u64(bytes - 4, OSD_SENSE_USERS_BYTES);

	while (length < most && descriptor[4 + length] >= ' ' && descriptor[4 + length] <= '~')
		length++;
	sense->users = get_be16(descriptor + 2);
	memcpy(sense->user_names, descriptor + 4, length);
	sense->user_names[length] = '\0';
}

static void decode_descriptor(const uint8_t *descriptor, size_t bytes, struct osd_sense *sense)
{
	switch (descriptor[0]) {
	case SENSE_DESCRIPTOR_INFORMATION:
		if (bytes >= 12) {
			sense->has_information = true;
			sense->information = get_be64(descriptor + 4);
		}
		break;
	case SENSE_DESCRIPTOR_COMMAND_INFORMATION:
		if (bytes >= 12) {
			sense->has_command_information = true;
			sense->command_information = get_be64(descriptor + 4);
		}
		break;
	case SENSE_DESCRIPTOR_SENSE_KEY_SPECIFIC:
		if (bytes >= 8 && descriptor[4] & 0x80) {
			sense->has_field = true;
			sense->field_in_cdb = descriptor[4] & 0x40;
			sense->field = get_be16(descriptor + 5);
		}
		break;
	case SENSE_DESCRIPTOR_OSD_OBJECT:
		if (bytes >= 32) {
			sense->has_object = true;
			sense->not_initiated = get_be32(descriptor + 8);
			sense->completed = get_be32(descriptor + 12);
			sense->partition = get_be64(descriptor + 16);
			sense->object = get_be64(descriptor + 24);
		}
		break;
	case SENSE_DESCRIPTOR_OSD_RESPONSE_CHECK_VALUE:
		sense->check_value_bytes = (uint8_t)min_u64(bytes - 2, sizeof(sense->check_value));
		memcpy(sense->check_value, descriptor + 2, sense->check_value_bytes);
		break;
	case SENSE_DESCRIPTOR_OSD_ATTRIBUTE:
		for (size_t at = 4; at + 8 <= bytes && sense->attributes < OSD_SENSE_ATTRIBUTES_MAX;
		     at += 8) {
			sense->attribute[sense->attributes].page = get_be32(descriptor + at);
			sense->attribute[sense->attributes].number = get_be32(descriptor + at + 4);
			sense->attributes++;
		}
		break;
	case SENSE_DESCRIPTOR_USERS:
		if (bytes >= 4)
			decode_users(descriptor, bytes, sense);
		break;
	default:
		break;
	}
}

static int decode_fixed(const uint8_t *data, size_t length, struct osd_sense *sense)
{
	if (length < 14)
		return -EINVAL;
	sense->key = data[2] & 0x0F;
	sense->code = get_be16(data + 12);
	sense->has_information = data[0] & 0x80;
	sense->information = get_be32(data + 3);
	if (length >= 18 && data[15] & 0x80) {
		sense->has_field = true;
		sense->field_in_cdb = data[15] & 0x40;
		sense->field = get_be16(data + 16);
	}
	return 0;
}

int osd_sense_decode(const uint8_t *data, size_t length, struct osd_sense *sense)
{
	size_t end, position = SENSE_HEAD_BYTES;
	uint8_t response = length > 0 ? data[0] & 0x7F : 0;

	*sense = (struct osd_sense){ 0 };
	if (response == 0x70 || response == 0x71)
		return decode_fixed(data, length, sense);
	if ((response != 0x72 && response != 0x73) || length < SENSE_HEAD_BYTES)
		return -EINVAL;
	sense->key = data[1] & 0x0F;
	sense->code = get_be16(data + 2);
	end = min_u64(length, SENSE_HEAD_BYTES + (size_t)data[7]);
	while (end - position >= 2) {
		size_t bytes = 2 + (size_t)data[position + 1];

		if (bytes > end - position)
			break;
		decode_descriptor(data + position, bytes, sense);
		position += bytes;
	}
	return 0;
}

/* ---- names ---- */

const char *osd_sense_key_name(uint8_t key)
{
	static const char *const names[16] = {
		"NO SENSE",       "RECOVERED ERROR", "NOT READY",      "MEDIUM ERROR",
		"HARDWARE ERROR", "ILLEGAL REQUEST", "UNIT ATTENTION", "DATA PROTECT",
		"BLANK CHECK",    "VENDOR SPECIFIC", "COPY ABORTED",   "ABORTED COMMAND",
		"reserved key",   "VOLUME OVERFLOW", "MISCOMPARE",     "COMPLETED",
	};

	return names[key & 0x0F];
}

const char *osd_sense_code_name(uint16_t code)
{
	static const struct {
		uint16_t code;
		const char *name;
	} names[] = {
		{ SENSE_NONE, "NO ADDITIONAL SENSE INFORMATION" },
		{ SENSE_WRITE_ERROR, "WRITE ERROR" },
		{ SENSE_UNRECOVERED_READ_ERROR, "UNRECOVERED READ ERROR" },
		{ SENSE_PARAMETER_LIST_LENGTH_ERROR, "PARAMETER LIST LENGTH ERROR" },
		{ SENSE_INVALID_COMMAND_OPERATION_CODE, "INVALID COMMAND OPERATION CODE" },
		{ SENSE_INVALID_FIELD_IN_CDB, "INVALID FIELD IN CDB" },
		{ SENSE_SECURITY_AUDIT_VALUE_FROZEN, "SECURITY AUDIT VALUE FROZEN" },
		{ SENSE_SECURITY_WORKING_KEY_FROZEN, "SECURITY WORKING KEY FROZEN" },
		{ SENSE_NONCE_NOT_UNIQUE, "NONCE NOT UNIQUE" },
		{ SENSE_NONCE_TIMESTAMP_OUT_OF_RANGE, "NONCE TIMESTAMP OUT OF RANGE" },
		{ SENSE_INVALID_FIELD_IN_PARAMETER_LIST, "INVALID FIELD IN PARAMETER LIST" },
		{ SENSE_PARAMETER_NOT_SUPPORTED, "PARAMETER NOT SUPPORTED" },
		{ SENSE_PARAMETER_VALUE_INVALID, "PARAMETER VALUE INVALID" },
		{ SENSE_INVALID_DATA_OUT_BUFFER_INTEGRITY_CHECK_VALUE,
		  "INVALID DATA-OUT BUFFER INTEGRITY CHECK VALUE" },
		{ SENSE_WRITE_PROTECTED, "WRITE PROTECTED" },
		{ SENSE_CONDITIONAL_WRITE_PROTECT, "CONDITIONAL WRITE PROTECT" },
		{ SENSE_COMMAND_SEQUENCE_ERROR, "COMMAND SEQUENCE ERROR" },
		{ SENSE_MEDIUM_MAY_HAVE_CHANGED,
		  "NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED" },
		{ SENSE_PARAMETERS_CHANGED, "PARAMETERS CHANGED" },
		{ SENSE_POWER_ON_RESET, "POWER ON, RESET, OR BUS DEVICE RESET OCCURRED" },
		{ SENSE_PARTITION_OR_COLLECTION_CONTAINS_USER_OBJECTS,
		  "PARTITION OR COLLECTION CONTAINS USER OBJECTS" },
		{ SENSE_READ_PAST_END_OF_USER_OBJECT, "READ PAST END OF USER OBJECT" },
		{ SENSE_INTERNAL_TARGET_FAILURE, "INTERNAL TARGET FAILURE" },
		{ SENSE_MEDIUM_REMOVAL_PREVENTED, "MEDIUM REMOVAL PREVENTED" },
		{ SENSE_SYSTEM_RESOURCE_FAILURE, "SYSTEM RESOURCE FAILURE" },
		{ SENSE_INSUFFICIENT_RESOURCES, "INSUFFICIENT RESOURCES" },
		{ SENSE_QUOTA_ERROR, "QUOTA ERROR" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code)
			return names[i].name;
	return "other additional sense code";
}

/* ---- INQUIRY ---- */

/* Copies a blank-filled field as a string. */
static void copy_blank_filled(char *to, const uint8_t *from, size_t bytes)
{
	memcpy(to, from, bytes);
	to[bytes] = '\0';
	while (bytes > 0 && (to[bytes - 1] == ' ' || to[bytes - 1] == '\0'))
		to[--bytes] = '\0';
}

int osd_inquiry_decode(const uint8_t *data, size_t length, struct osd_inquiry_data *inquiry)
{
	if (length < 36)
		return -EMSGSIZE;
	inquiry->device_type = data[0] & 0x1F;
	inquiry->qualifier = data[0] >> 5;
	inquiry->version = data[2];
	copy_blank_filled(inquiry->vendor, data + 8, 8);
	copy_blank_filled(inquiry->product, data + 16, 16);
	copy_blank_filled(inquiry->revision, data + 32, 4);
	return 0;
}
