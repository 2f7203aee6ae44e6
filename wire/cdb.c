/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* CDBs and the floating buffer offsets in them. */
#include <errno.h>

#include "common/bytes.h"
#include "wire/wire.h"

/*
 * The layout of bytes 32..51 (of keys: 24..51). Every layout but the first three also has LENGTH
 * and the address.
 */
enum cdb_layout {
	LAYOUT_CREATE, /* number of user objects */
	LAYOUT_KEY,    /* own layout, from byte 24 */
	LAYOUT_LIST,   /* list identifier instead of the continuation length */
	LAYOUT_MAP,    /* map type instead of the continuation length */
	LAYOUT_RANGE,
	LAYOUT_FLUSH, /* as RANGE; flush scope in byte 10 or 11 */
	LAYOUT_SWAP,  /* as RANGE; an answer also without a list of attributes to get */
	LAYOUT_SCSI,  /* an embedded CDB */
	LAYOUT_TASK,  /* a task management function, and a tag */
};

struct action_entry {
	uint16_t action;
	bool in_osd1;
	enum cdb_layout layout;
	const char *name;
};

static const struct action_entry action_table[] = {
	{ OSD_OBJECT_STRUCTURE_CHECK, false, LAYOUT_RANGE, "OBJECT STRUCTURE CHECK" },
	{ OSD_FORMAT_OSD, true, LAYOUT_RANGE, "FORMAT OSD" },
	{ OSD_CREATE, true, LAYOUT_CREATE, "CREATE" },
	{ OSD_LIST, true, LAYOUT_LIST, "LIST" },
	{ OSD_PUNCH, false, LAYOUT_RANGE, "PUNCH" },
	{ OSD_READ, true, LAYOUT_RANGE, "READ" },
	{ OSD_WRITE, true, LAYOUT_RANGE, "WRITE" },
	{ OSD_APPEND, true, LAYOUT_RANGE, "APPEND" },
	{ OSD_FLUSH, true, LAYOUT_FLUSH, "FLUSH" },
	{ OSD_CLEAR, false, LAYOUT_RANGE, "CLEAR" },
	{ OSD_REMOVE, true, LAYOUT_RANGE, "REMOVE" },
	{ OSD_CREATE_PARTITION, true, LAYOUT_RANGE, "CREATE PARTITION" },
	{ OSD_REMOVE_PARTITION, true, LAYOUT_RANGE, "REMOVE PARTITION" },
	{ OSD_COMPARE_AND_SWAP, false, LAYOUT_RANGE, "COMPARE AND SWAP" },
	{ OSD_GET_ATTRIBUTES, true, LAYOUT_RANGE, "GET ATTRIBUTES" },
	{ OSD_SET_ATTRIBUTES, true, LAYOUT_RANGE, "SET ATTRIBUTES" },
	{ OSD_FETCH_AND_ADD, false, LAYOUT_RANGE, "FETCH AND ADD" },
	{ OSD_CONDITIONAL_SET_ATTRIBUTES, false, LAYOUT_SWAP, "CONDITIONAL SET ATTRIBUTES" },
	{ OSD_CREATE_AND_WRITE, true, LAYOUT_RANGE, "CREATE AND WRITE" },
	{ OSD_COPY_USER_OBJECTS, false, LAYOUT_RANGE, "COPY USER OBJECTS" },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, false, LAYOUT_RANGE,
	  "CREATE USER TRACKING COLLECTION" },
	{ OSD_CREATE_COLLECTION, true, LAYOUT_RANGE, "CREATE COLLECTION" },
	{ OSD_REMOVE_COLLECTION, true, LAYOUT_RANGE, "REMOVE COLLECTION" },
	{ OSD_LIST_COLLECTION, true, LAYOUT_LIST, "LIST COLLECTION" },
	{ OSD_SET_KEY, true, LAYOUT_KEY, "SET KEY" },
	{ OSD_SET_MASTER_KEY, true, LAYOUT_KEY, "SET MASTER KEY" },
	{ OSD_FLUSH_COLLECTION, true, LAYOUT_FLUSH, "FLUSH COLLECTION" },
	{ OSD_FLUSH_PARTITION, true, LAYOUT_FLUSH, "FLUSH PARTITION" },
	{ OSD_FLUSH_OSD, true, LAYOUT_FLUSH, "FLUSH OSD" },
	{ OSD_QUERY, false, LAYOUT_RANGE, "QUERY" },
	{ OSD_REMOVE_MEMBER_OBJECTS, false, LAYOUT_RANGE, "REMOVE MEMBER OBJECTS" },
	{ OSD_GET_MEMBER_ATTRIBUTES, false, LAYOUT_RANGE, "GET MEMBER ATTRIBUTES" },
	{ OSD_SET_MEMBER_ATTRIBUTES, false, LAYOUT_RANGE, "SET MEMBER ATTRIBUTES" },
	{ OSD_GENERAL_COMPARE_AND_SWAP, false, LAYOUT_SWAP, "GENERAL COMPARE AND SWAP" },
	{ OSD_CREATE_CLONE, false, LAYOUT_RANGE, "CREATE CLONE" },
	{ OSD_CREATE_SNAPSHOT, false, LAYOUT_RANGE, "CREATE SNAPSHOT" },
	{ OSD_DETACH_CLONE, false, LAYOUT_RANGE, "DETACH CLONE" },
	{ OSD_REFRESH_SNAPSHOT_OR_CLONE, false, LAYOUT_RANGE, "REFRESH SNAPSHOT OR CLONE" },
	{ OSD_RESTORE_PARTITION_FROM_SNAPSHOT, false, LAYOUT_RANGE,
	  "RESTORE PARTITION FROM SNAPSHOT" },
	{ OSD_READ_MAP, false, LAYOUT_MAP, "READ MAP" },
	{ OSD_READ_MAPS_AND_COMPARE, false, LAYOUT_RANGE, "READ MAPS AND COMPARE" },
	{ OSD_PERFORM_SCSI_COMMAND, true, LAYOUT_SCSI, "PERFORM SCSI COMMAND" },
	{ OSD_PERFORM_TASK_MANAGEMENT_FUNCTION, true, LAYOUT_TASK,
	  "PERFORM TASK MANAGEMENT FUNCTION" },
};

static const struct action_entry vendor_entry = { OSD_VENDOR_FIRST, true, LAYOUT_RANGE,
						  "vendor action" };

static const struct action_entry *find_action(uint16_t action)
{
	if (action >= OSD_VENDOR_FIRST && action <= OSD_VENDOR_LAST)
		return &vendor_entry;
	for (size_t i = 0; i < sizeof(action_table) / sizeof(action_table[0]); i++)
		if (action_table[i].action == action)
			return &action_table[i];
	return NULL;
}

bool osd_action_is_known(uint16_t action)
{
	return find_action(action) != NULL;
}

const char *osd_action_name(uint16_t action)
{
	const struct action_entry *entry = find_action(action);

	return entry ? entry->name : "unknown action";
}

/* The service action on the wire. */
static uint16_t action_to_wire(enum osd_version version, uint16_t action)
{
	if (version == OSD_2 || action >= OSD_VENDOR_FIRST)
		return action;
	if (action == OSD_PERFORM_SCSI_COMMAND || action == OSD_PERFORM_TASK_MANAGEMENT_FUNCTION)
		return action + 2;
	return action - OSD2_ACTION_OFFSET;
}

/*
 * Finds version and OSD-2 code of an action on the wire. The CDB's length tells the versions of
 * vendor actions apart.
 */
static void action_from_wire(uint16_t wire, size_t cdb_length, struct osd_cdb *decoded)
{
	decoded->version = OSD_2;
	decoded->action = wire;
	if (wire >= 0x8800 && wire < 0x8880) {
		decoded->version = OSD_1;
		decoded->action = wire + OSD2_ACTION_OFFSET;
	} else if (wire == OSD_PERFORM_SCSI_COMMAND + 2 ||
		   wire == OSD_PERFORM_TASK_MANAGEMENT_FUNCTION + 2) {
		decoded->version = OSD_1;
		decoded->action = wire - 2;
	} else if (wire >= OSD_VENDOR_FIRST && wire <= OSD_VENDOR_LAST &&
		   cdb_length < OSD2_CDB_BYTES) {
		decoded->version = OSD_1;
	}
}

/* ---- buffer offsets ---- */

/* offset = mantissa << (exponent + 8), 28 bits of mantissa */
#define MANTISSA_MAX 0x0FFFFFFFu

static int shift_min(enum osd_version version)
{
	return version == OSD_1 ? 8 : 3;
}

/* OSD-1's exponent has no sign. */
static int shift_max(enum osd_version version)
{
	return version == OSD_1 ? 23 : 15;
}

uint64_t osd_offset_encode(enum osd_version version, uint64_t at_least, uint32_t *encoded)
{
	for (int shift = shift_min(version); shift <= shift_max(version); shift++) {
		uint64_t unit = UINT64_C(1) << shift;
		uint32_t exponent = (uint32_t)(shift - 8) & 0xF;
		uint64_t mantissa;

		if (at_least > UINT64_MAX - unit)
			break;
		mantissa = (at_least + unit - 1) >> shift;
		/*
		 * The largest mantissa with the largest exponent field means that there is no
		 * offset.
		 */
		if (mantissa > MANTISSA_MAX ||
		    (exponent << 28 | (uint32_t)mantissa) == OSD_OFFSET_UNUSED)
			continue;
		/* Linux writes offset 0 without exponent. */
		if (encoded)
			*encoded = mantissa == 0 ? 0 : exponent << 28 | (uint32_t)mantissa;
		return mantissa << shift;
	}
	return UINT64_MAX;
}

int osd_offset_decode(enum osd_version version, uint32_t encoded, uint64_t *offset)
{
	int exponent = encoded >> 28;

	if (encoded == OSD_OFFSET_UNUSED)
		return -EINVAL;
	if (version == OSD_2 && exponent >= 8)
		exponent -= 16;
	if (exponent + 8 < shift_min(version))
		return -EINVAL;
	*offset = (uint64_t)(encoded & MANTISSA_MAX) << (exponent + 8);
	return 0;
}

/* ---- encoding ---- */

static int put_offset(enum osd_version version, const struct osd_segment *segment, uint32_t absent,
		      uint8_t *to)
{
	uint32_t encoded = absent;

	if (segment->length != 0 &&
	    osd_offset_encode(version, segment->offset, &encoded) != segment->offset)
		return -EINVAL;
	put_be32(to, encoded);
	return 0;
}

static int encode_attributes(const struct osd_cdb *decoded, uint8_t *cdb)
{
	enum osd_version version = decoded->version;

	switch (decoded->format) {
	case OSD_ATTRIBUTES_LIST:
		put_be32(cdb + 52, decoded->get_list.length);
		put_be32(cdb + 60, decoded->retrieved.length);
		put_be32(cdb + 68, decoded->set_data.length);
		if (put_offset(version, &decoded->get_list, OSD_OFFSET_UNUSED, cdb + 56) != 0 ||
		    put_offset(version, &decoded->retrieved, OSD_OFFSET_UNUSED, cdb + 64) != 0)
			return -EINVAL;
		return put_offset(version, &decoded->set_data, OSD_OFFSET_UNUSED, cdb + 72);
	case OSD_ATTRIBUTES_PAGE:
		put_be32(cdb + 52, decoded->get_page);
		put_be32(cdb + 56, decoded->retrieved.length);
		put_be32(cdb + 64, decoded->set_page);
		put_be32(cdb + 68, decoded->set_number);
		put_be32(cdb + 72, decoded->set_data.length);
		if (put_offset(version, &decoded->retrieved, 0, cdb + 60) != 0)
			return -EINVAL;
		return put_offset(version, &decoded->set_data, 0, cdb + 76);
	case OSD_ATTRIBUTES_CDB:
		if (version == OSD_1 || decoded->set_length > OSD_CDB_VALUE_BYTES_MAX)
			return -EINVAL;
		put_be32(cdb + 52, decoded->set_page);
		put_be32(cdb + 56, decoded->set_number);
		put_be16(cdb + 60, decoded->set_length);
		memcpy(cdb + 62, decoded->set_value, decoded->set_length);
		return 0;
	}
	return -EINVAL;
}

/* Bytes 24..51. */
static void encode_fields(const struct osd_cdb *decoded, enum cdb_layout layout, uint8_t *cdb)
{
	size_t length_at = decoded->version == OSD_1 ? 36 : 32;
	size_t address_at = decoded->version == OSD_1 ? 44 : 40;
	size_t identifier_at = decoded->version == OSD_1 ? 32 : 48;

	if (layout == LAYOUT_KEY) {
		memcpy(cdb + 24, decoded->key_bytes, sizeof(decoded->key_bytes));
		return;
	}
	put_be64(cdb + 24, decoded->object);
	if (layout == LAYOUT_CREATE) {
		put_be16(cdb + length_at, decoded->objects);
	} else if (layout == LAYOUT_SCSI) {
		memcpy(cdb + 32, decoded->embedded_cdb, sizeof(decoded->embedded_cdb));
	} else if (layout == LAYOUT_TASK) {
		put_be16(cdb + 32, (uint16_t)min_u64(decoded->length, UINT16_MAX));
		cdb[39] = decoded->task_function;
		put_be64(cdb + 40, decoded->task_tag);
	} else {
		put_be64(cdb + length_at, decoded->length);
		put_be64(cdb + address_at, decoded->address);
	}
	if (layout == LAYOUT_LIST)
		put_be32(cdb + identifier_at, decoded->list_identifier);
	else if (layout == LAYOUT_MAP)
		put_be16(cdb + 48, decoded->map_type);
	else if (decoded->version == OSD_2)
		put_be32(cdb + 48, decoded->continuation_length);
}

int osd_cdb_encode(const struct osd_cdb *decoded, uint8_t cdb[OSD_CDB_BYTES_MAX], size_t *length)
{
	const struct action_entry *entry = find_action(decoded->action);
	bool first = decoded->version == OSD_1;

	if (!entry || (first && !entry->in_osd1))
		return -EINVAL;
	memset(cdb, 0, OSD_CDB_BYTES_MAX);
	cdb[0] = OSD_OPERATION_CODE;
	cdb[7] = first ? OSD1_ADDITIONAL_CDB_LENGTH : OSD2_ADDITIONAL_CDB_LENGTH;
	put_be16(cdb + 8, action_to_wire(decoded->version, decoded->action));
	cdb[10] = (uint8_t)(decoded->dpo << 4 | decoded->fua << 3 | (decoded->isolation & 7));
	cdb[11] = (uint8_t)((unsigned)decoded->immediate_tracking << 7 |
			    decoded->list_attributes << 6 | (decoded->command_options & 0x0F) |
			    decoded->format);
	if (entry->layout == LAYOUT_FLUSH)
		cdb[11] |= decoded->flush_scope & 3;
	cdb[12] = decoded->timestamps_control;
	cdb[14] = decoded->duplication_method;
	put_be64(cdb + 16, decoded->partition);
	encode_fields(decoded, entry->layout, cdb);
	if (encode_attributes(decoded, cdb) != 0)
		return -EINVAL;
	memcpy(cdb + 80, decoded->capability,
	       first ? OSD1_CAPABILITY_BYTES : OSD2_CAPABILITY_BYTES);
	if (first)
		memcpy(cdb + 80 + OSD1_CAPABILITY_BYTES, decoded->security, OSD1_SECURITY_BYTES);
	else
		memcpy(cdb + 80 + OSD2_CAPABILITY_BYTES, decoded->security, OSD2_SECURITY_BYTES);
	if (length)
		*length = first ? OSD1_CDB_BYTES : OSD2_CDB_BYTES;
	return 0;
}

/* ---- decoding ---- */

/* Length at `length_at`, offset at `offset_at`. Ignores the offset of an absent segment. */
static int get_segment(enum osd_version version, const uint8_t *cdb, uint16_t length_at,
		       uint16_t offset_at, struct osd_segment *segment, uint16_t *bad_field)
{
	segment->length = get_be32(cdb + length_at);
	if (segment->length != 0 &&
	    osd_offset_decode(version, get_be32(cdb + offset_at), &segment->offset) != 0) {
		*bad_field = offset_at;
		return -EINVAL;
	}
	return 0;
}

static int decode_list_format(const uint8_t *cdb, bool always_answers, struct osd_cdb *decoded,
			      uint16_t *bad_field)
{
	enum osd_version version = decoded->version;

	if (get_segment(version, cdb, 52, 56, &decoded->get_list, bad_field) != 0 ||
	    get_segment(version, cdb, 68, 72, &decoded->set_data, bad_field) != 0)
		return -EINVAL;
	if (decoded->get_list.length == 0 && !always_answers)
		return 0; /* nothing to retrieve, whatever space there is */
	return get_segment(version, cdb, 60, 64, &decoded->retrieved, bad_field);
}

static int decode_page_format(const uint8_t *cdb, struct osd_cdb *decoded, uint16_t *bad_field)
{
	enum osd_version version = decoded->version;

	decoded->get_page = get_be32(cdb + 52);
	if (decoded->get_page != 0 &&
	    get_segment(version, cdb, 56, 60, &decoded->retrieved, bad_field) != 0)
		return -EINVAL;
	decoded->set_page = get_be32(cdb + 64);
	if (decoded->set_page == 0)
		return 0;
	decoded->set_number = get_be32(cdb + 68);
	return get_segment(version, cdb, 72, 76, &decoded->set_data, bad_field);
}

static int decode_cdb_format(const uint8_t *cdb, struct osd_cdb *decoded, uint16_t *bad_field)
{
	decoded->set_page = get_be32(cdb + 52);
	decoded->set_number = get_be32(cdb + 56);
	decoded->set_length = get_be16(cdb + 60);
	if (decoded->set_length > OSD_CDB_VALUE_BYTES_MAX)
		*bad_field = 60;
	else if (decoded->set_page == OSD_PAGE_ALL)
		*bad_field = 52;
	else if (decoded->set_number == OSD_ATTRIBUTE_ALL)
		*bad_field = 56;
	else if (decoded->set_page == 0 && (decoded->set_number != 0 || decoded->set_length != 0))
		*bad_field = 52; /* all zero means that nothing is set */
	else {
		memcpy(decoded->set_value, cdb + 62, decoded->set_length);
		return 0;
	}
	return -EINVAL;
}

static int decode_attributes(const uint8_t *cdb, enum cdb_layout layout, struct osd_cdb *decoded,
			     uint16_t *bad_field)
{
	decoded->format = cdb[11] & 0x30;
	switch (decoded->format) {
	case OSD_ATTRIBUTES_LIST:
		return decode_list_format(cdb, layout == LAYOUT_SWAP, decoded, bad_field);
	case OSD_ATTRIBUTES_PAGE:
		return decode_page_format(cdb, decoded, bad_field);
	case OSD_ATTRIBUTES_CDB:
		if (decoded->version == OSD_2)
			return decode_cdb_format(cdb, decoded, bad_field);
		break;
	}
	*bad_field = 11;
	return -EINVAL;
}

/* ALLOCATION LENGTH of the embedded commands that this target knows. */
static uint32_t embedded_allocation_length(const uint8_t cdb[16])
{
	if (cdb[0] == OSD_SCSI_INQUIRY)
		return get_be16(cdb + 3);
	if (cdb[0] == OSD_SCSI_MAINTENANCE_IN)
		return get_be32(cdb + 6);
	return cdb[0] == OSD_SCSI_REQUEST_SENSE ? cdb[4] : 0;
}

/* Bytes 24..51. */
static int decode_fields(const uint8_t *cdb, enum cdb_layout layout, struct osd_cdb *decoded,
			 uint16_t *bad_field)
{
	size_t length_at = decoded->version == OSD_1 ? 36 : 32;
	size_t address_at = decoded->version == OSD_1 ? 44 : 40;
	size_t identifier_at = decoded->version == OSD_1 ? 32 : 48;

	if (layout == LAYOUT_KEY) {
		decoded->object = 0;
		memcpy(decoded->key_bytes, cdb + 24, sizeof(decoded->key_bytes));
		return 0;
	}
	if (layout == LAYOUT_CREATE) {
		decoded->objects = get_be16(cdb + length_at);
	} else if (layout == LAYOUT_SCSI) {
		memcpy(decoded->embedded_cdb, cdb + 32, sizeof(decoded->embedded_cdb));
		decoded->length = embedded_allocation_length(decoded->embedded_cdb);
	} else if (layout == LAYOUT_TASK) {
		decoded->length = get_be16(cdb + 32);
		decoded->task_function = cdb[39];
		decoded->task_tag = get_be64(cdb + 40);
	} else {
		decoded->length = get_be64(cdb + length_at);
		decoded->address = get_be64(cdb + address_at);
	}
	if (layout == LAYOUT_LIST)
		decoded->list_identifier = get_be32(cdb + identifier_at);
	else if (layout == LAYOUT_MAP)
		decoded->map_type = get_be16(cdb + 48);
	else if (decoded->version == OSD_2)
		decoded->continuation_length = get_be32(cdb + 48);
	if (decoded->continuation_length % 8 != 0 ||
	    (decoded->continuation_length != 0 &&
	     decoded->continuation_length < OSD_CONTINUATION_BYTES_MIN)) {
		*bad_field = 48;
		return -EINVAL;
	}
	return 0;
}

static void decode_options(const uint8_t *cdb, enum cdb_layout layout, struct osd_cdb *decoded)
{
	decoded->dpo = cdb[10] & 0x10;
	decoded->fua = cdb[10] & 0x08;
	decoded->immediate_tracking = cdb[11] & 0x80;
	decoded->list_attributes = decoded->version == OSD_2 && cdb[11] & 0x40;
	if (layout == LAYOUT_FLUSH) {
		/*
		 * The initiators disagree about the byte. Neither uses the other one's for anything
		 * else here.
		 */
		decoded->flush_scope = (cdb[10] | cdb[11]) & 3;
	} else {
		decoded->command_options = cdb[11] & 0x0F;
		decoded->isolation = decoded->version == OSD_2 ? cdb[10] & 7 : 0;
	}
	decoded->timestamps_control = cdb[12];
	decoded->duplication_method = cdb[14];
}

/* Does ADDITIONAL CDB LENGTH fit the version and the bytes that came? */
static bool length_is_right(const uint8_t *cdb, size_t length, enum osd_version version)
{
	if (version == OSD_2)
		return length >= OSD2_CDB_BYTES && cdb[7] == OSD2_ADDITIONAL_CDB_LENGTH;
	return length >= OSD1_CDB_BYTES &&
	       (cdb[7] == OSD1_ADDITIONAL_CDB_LENGTH || cdb[7] == OSD2_ADDITIONAL_CDB_LENGTH);
}

int osd_cdb_decode(const uint8_t *cdb, size_t length, struct osd_cdb *decoded, uint16_t *bad_field)
{
	const struct action_entry *entry;

	memset(decoded, 0, sizeof(*decoded));
	decoded->version = OSD_2;
	*bad_field = 7;
	if (length == 0 || cdb[0] != OSD_OPERATION_CODE)
		return -EOPNOTSUPP;
	if (length < 10)
		return -EINVAL;
	action_from_wire(get_be16(cdb + 8), length, decoded);
	if (length >= 32) {
		decoded->partition = get_be64(cdb + 16);
		decoded->object = get_be64(cdb + 24);
	}
	entry = find_action(decoded->action);
	if (!entry || (decoded->version == OSD_1 && !entry->in_osd1))
		return -EOPNOTSUPP;
	if (!length_is_right(cdb, length, decoded->version))
		return -EINVAL;
	decode_options(cdb, entry->layout, decoded);
	if (decoded->timestamps_control != OSD_TIMESTAMPS_UPDATE &&
	    decoded->timestamps_control != OSD_TIMESTAMPS_BYPASS) {
		*bad_field = 12;
		return -EINVAL;
	}
	if (decoded->version == OSD_1) {
		memcpy(decoded->capability, cdb + 80, OSD1_CAPABILITY_BYTES);
		memcpy(decoded->security, cdb + 80 + OSD1_CAPABILITY_BYTES, OSD1_SECURITY_BYTES);
	} else {
		memcpy(decoded->capability, cdb + 80, OSD2_CAPABILITY_BYTES);
		memcpy(decoded->security, cdb + 80 + OSD2_CAPABILITY_BYTES, OSD2_SECURITY_BYTES);
	}
	if (decode_fields(cdb, entry->layout, decoded, bad_field) != 0)
		return -EINVAL;
	return decode_attributes(cdb, entry->layout, decoded, bad_field);
}

void osd_capability_nosec(struct osd_cdb *decoded, enum osd_object_type type)
{
	uint8_t *capability = decoded->capability;
	unsigned descriptor = OSD_DESCRIPTOR_OBJECT;

	memset(capability, 0, sizeof(decoded->capability));
	capability[0] = OSD_CAPABILITY_OSD1;
	capability[2] = OSD_NOSEC;
	capability[48] = (uint8_t)type;
	/* All that OSD-1 knows. */
	put_be16(capability + 49, 0xFFE0);
	if (type == OSD_TYPE_ROOT || type == OSD_TYPE_PARTITION)
		descriptor = OSD_DESCRIPTOR_PARTITION;
	else if (type == OSD_TYPE_COLLECTION && decoded->version == OSD_2)
		descriptor = OSD_DESCRIPTOR_COLLECTION;
	capability[55] = (uint8_t)(descriptor << 4);
	/*
	 * OSD-2's place; Linux's initiator leaves the rest of the object descriptor zero in both
	 * versions.
	 */
	put_be64(capability + 72, decoded->partition);
}
