/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The byte layouts of OSD-1 and OSD-2, encoded and decoded: CDBs, buffer offsets, attribute lists,
 * continuation segments, LIST data, sense data, INQUIRY data. Used by the target (osd/) and the
 * initiator (client/).
 *
 * All functions are pure: no allocation, no state but what the caller passes. Decoders take any
 * bytes.
 */
#ifndef MUNINN_WIRE_WIRE_H
#define MUNINN_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/standard.h"

/* ---- CDBs ---- */

/* The enumerators' values only tell them apart; see osd_cdb.version. */
enum osd_version { OSD_1 = 1, OSD_2 = 2 };

/*
 * A part of Data-Out or Data-In, in bytes from the buffer's start. Length 0: absent, the offset
 * means nothing.
 */
struct osd_segment {
	uint64_t offset;
	uint32_t length;
};

/* PARTITION_ID has a version in bits 63..48. The bits below are 0 for the root. */
#define OSD_LAST_PARTITION_ID UINT64_C(0xFFFFFFFFFFFF)

static inline bool osd_names_root(uint64_t partition_id)
{
	return (partition_id & OSD_LAST_PARTITION_ID) == 0;
}

/*
 * A decoded CDB. Fields that a command does not have are 0. Several fields share bytes on the wire
 * (bytes 32..51), and the action says which of them are encoded.
 */
struct osd_cdb {
	enum osd_version version;
	uint16_t action; /* enum osd_action, the OSD-2 code for both versions */

	/* Byte 10. */
	bool dpo, fua;
	uint8_t isolation; /* OSD-2 */
	/* Byte 11. */
	enum osd_attributes_format format;
	bool immediate_tracking; /* IMMED_TR */
	bool list_attributes;    /* LIST_ATTR */
	uint8_t command_options; /* bits 3-0: sort order, REMOVE SCOPE, FCR, KEY TO SET, DH_STEP */
	uint8_t flush_scope;     /* FLUSH family: decoded from byte 10 or 11, encoded in byte 11 */
	uint8_t timestamps_control; /* byte 12: OSD_TIMESTAMPS_UPDATE or _BYPASS */
	uint8_t duplication_method; /* byte 14, COPY USER OBJECTS */

	uint64_t partition; /* PARTITION_ID; osd_names_root */
	uint64_t object; /* or collection, or the requested ID; not of SET KEY and SET MASTER KEY */

	uint64_t length;          /* LENGTH, ALLOCATION LENGTH, FORMATTED CAPACITY */
	uint64_t address;         /* STARTING BYTE ADDRESS, INITIAL OBJECT_ID, a collection's ID */
	uint16_t objects;         /* NUMBER OF USER OBJECTS of CREATE; 0 counts as 1 */
	uint32_t list_identifier; /* LIST, LIST COLLECTION */
	uint32_t continuation_length; /* OSD-2 */
	uint16_t map_type;            /* READ MAP */
	/*
	 * PERFORM SCSI COMMAND: bytes 32..47; `length` is then the allocation length in it, and not
	 * encoded.
	 */
	uint8_t embedded_cdb[16];
	/* PERFORM TASK MANAGEMENT FUNCTION: byte 39 and 40(8); `length` is in 32(2). */
	uint8_t task_function;
	uint64_t task_tag;
	uint8_t key_bytes[28]; /* SET KEY, SET MASTER KEY: CDB bytes 24..51 as they are */

	/* Get and set attributes. */
	struct osd_segment get_list;  /* list format, in Data-Out */
	struct osd_segment retrieved; /* list and page format, in Data-In: space for the answer */
	struct osd_segment
		set_data;  /* list format: the list; page format: the value; in Data-Out */
	uint32_t get_page; /* page format; 0 = get nothing */
	uint32_t set_page; /* page and CDB format; page format: 0 = set nothing */
	uint32_t set_number;
	uint16_t set_length; /* CDB format */
	uint8_t set_value[OSD_CDB_VALUE_BYTES_MAX];

	/*
	 * As on the wire; OSD-1 uses the first 80 and 40 bytes. All zero is right without security.
	 */
	uint8_t capability[OSD2_CAPABILITY_BYTES];
	uint8_t security[OSD2_SECURITY_BYTES];
};

/* Does this action exist (in any version)? Vendor actions included. For tests. */
bool osd_action_is_known(uint16_t action);

/* The standard's name, "READ"; "unknown action" for others. */
const char *osd_action_name(uint16_t action);

/*
 * Encodes; `length` (may be NULL) = 200 or 236. The offsets of segments must be what
 * osd_offset_encode returned. -EINVAL: an action, format or offset that the version can't express.
 */
int osd_cdb_encode(const struct osd_cdb *decoded, uint8_t cdb[OSD_CDB_BYTES_MAX], size_t *length);

/*
 * Decodes `length` received bytes. Checks all that can be checked without buffers or objects.
 * -EOPNOTSUPP: operation code or service action unknown (20/00).
 * -EINVAL: *bad_field = the first byte of the field at fault (24/00).
 * On error `decoded` has version, action, partition and object as far as they were received.
 */
int osd_cdb_decode(const uint8_t *cdb, size_t length, struct osd_cdb *decoded, uint16_t *bad_field);

/*
 * An OSD-1 or OSD-2 capability for NOSEC, as Linux's initiator sends it: all permissions, object
 * type and partition.
 */
void osd_capability_nosec(struct osd_cdb *decoded, enum osd_object_type type);

/* ---- buffer offsets ---- */

#define OSD_OFFSET_UNUSED 0xFFFFFFFFu

/*
 * The first offset >= `at_least` that can be expressed; `encoded` (may be NULL): its floating form.
 * UINT64_MAX: there is none. To lay out segments: offset = osd_offset_encode(version, end of the
 * segment before, NULL).
 */
uint64_t osd_offset_encode(enum osd_version version, uint64_t at_least, uint32_t *encoded);

/* -EINVAL: unused value, or an exponent that the version does not allow. */
int osd_offset_decode(enum osd_version version, uint32_t encoded, uint64_t *offset);

/* ---- attribute lists ---- */

/* Most bytes of an attribute's value. */
#define OSD_ATTRIBUTE_BYTES_MAX 65534

/*
 * Bytes of a list's head; of an entry for `length` bytes of value, padding included; of a get
 * descriptor (8).
 */
size_t osd_list_head_bytes(enum osd_version version);
size_t osd_list_entry_bytes(enum osd_version version, uint32_t length);
#define OSD_GET_DESCRIPTOR_BYTES 8

enum osd_list_role {
	OSD_LIST_TO_GET,     /* type 1; LIST LENGTH 0, as all initiators send it */
	OSD_LIST_TO_SET,     /* type 9; LIST LENGTH 0 */
	OSD_LIST_RETRIEVED,  /* type 9; LIST LENGTH = bytes behind the head */
	OSD_LIST_OF_OBJECTS, /* type E (OSD-2) or F (OSD-1); LIST LENGTH as before */
	OSD_LIST_BARE,       /* no head: what follows the head of LIST data */
};

/*
 * Writes a list into a buffer. Cuts what does not fit: a value at the buffer's end, an entry's head
 * as a whole.
 */
struct osd_list_writer {
	enum osd_version version;
	enum osd_list_role role;
	uint8_t *data;
	size_t capacity;
	size_t length;      /* bytes written; all of them are set */
	bool truncated;     /* something did not fit; nothing more is added */
	size_t object_head; /* where the head of the object in work starts */
	size_t capacity_behind_object;
};

/* Begins a list in `data`; a capacity below the head leaves length 0 and truncated set. */
void osd_list_begin(struct osd_list_writer *writer, enum osd_version version,
		    enum osd_list_role role, uint8_t *data, size_t capacity);

/* Adds a descriptor to a list of attributes to get. False: it did not fit. */
bool osd_list_add_request(struct osd_list_writer *writer, uint32_t page, uint32_t number);

/* Adds an entry to any other list. False: it was cut off or left out. */
bool osd_list_add_value(struct osd_list_writer *writer, uint32_t page, uint32_t number,
			const void *value, uint32_t length);

/*
 * Ends the list: fills in its LIST LENGTH if the role wants it. Returns the bytes of the whole
 * list.
 */
size_t osd_list_end(struct osd_list_writer *writer);

/*
 * Head of an object's entries in a list of objects and in LIST data with attributes (OSD-2: ID,
 * type, bytes of entries; 16 bytes). _begin after osd_list_begin or, for LIST data, on a writer
 * made by osd_list_begin_bare; _end fills in the length.
 */
#define OSD_LIST_OBJECT_HEAD_BYTES 16
void osd_list_begin_bare(struct osd_list_writer *writer, enum osd_version version, uint8_t *data,
			 size_t capacity);
bool osd_list_object_begin(struct osd_list_writer *writer, uint64_t object,
			   enum osd_object_type type);
void osd_list_object_end(struct osd_list_writer *writer);
/*
 * Between the two: something did not fit into the 16 bits of the entries' length, whatever the
 * space. The result of _end does not show it.
 */
bool osd_list_object_is_too_long(const struct osd_list_writer *writer);

/* OSD-1 list of created objects: ID and one entry. */
bool osd_list_add_object_value(struct osd_list_writer *writer, uint64_t object, uint32_t page,
			       uint32_t number, const void *value, uint32_t length);

struct osd_attribute {
	uint32_t page;
	uint32_t number;
	uint32_t length;      /* as the entry says; 0 = undefined */
	uint32_t present;     /* bytes of the value that are there: less at the end of a cut list */
	const uint8_t *value; /* in the list */
};

struct osd_list_reader {
	enum osd_version version;
	enum osd_list_role role;
	const uint8_t *data;
	size_t length;
	size_t position;
};

/*
 * Starts to read a list of `length` bytes. For lists to get and to set, the length is the CDB's and
 * the head's is ignored; for retrieved ones the head's LIST LENGTH counts, bounded by `length`.
 * -EMSGSIZE: shorter than the head. -EINVAL: other list type.
 */
int osd_list_read(struct osd_list_reader *reader, enum osd_version version, enum osd_list_role role,
		  const uint8_t *data, size_t length);

/*
 * The next entry; of a list to get, page and number only. Returns 1, or 0 at the end.
 * Lists to get and to set: -EMSGSIZE: the entry goes beyond the list. Retrieved lists end there
 * instead.
 */
int osd_list_next(struct osd_list_reader *reader, struct osd_attribute *attribute);

/* ---- CDB continuation segment ---- */

struct osd_piece {
	uint64_t offset; /* from STARTING BYTE ADDRESS */
	uint64_t length;
};

/* Bytes of a segment with a scatter/gather list of `count` pieces. */
#define OSD_SCATTER_GATHER_BYTES(count) (OSD_CONTINUATION_BYTES_MIN + 16 * (size_t)(count))

/*
 * Writes a continuation segment with a scatter/gather list; returns its length, 0 if `capacity` is
 * too small.
 */
size_t osd_continuation_encode(uint16_t action, const struct osd_piece *pieces, size_t count,
			       uint8_t *segment, size_t capacity);

/*
 * Adds a descriptor behind the first `length` bytes of a segment; 0 begins it. Returns its new
 * length, 0 if `capacity` is too small.
 */
size_t osd_continuation_add(uint8_t *segment, size_t length, size_t capacity, uint16_t action,
			    uint16_t type, const void *content, uint32_t content_length);

struct osd_continuation {
	const uint8_t *data;
	size_t length;
	size_t position;
};
struct osd_descriptor {
	uint16_t type;
	uint32_t length; /* of the content, without padding */
	const uint8_t *content;
};

/*
 * Starts to read a segment. -EINVAL: too short, other format or other action than `action` (as in
 * the CDB's bytes 8, 9).
 */
int osd_continuation_read(struct osd_continuation *continuation, uint16_t action,
			  const uint8_t *segment, size_t length);
/* Next descriptor: 1, 0 at the end, -EINVAL malformed. */
int osd_continuation_next(struct osd_continuation *continuation, struct osd_descriptor *descriptor);
/* Piece `index` of a scatter/gather list. */
void osd_piece_decode(const struct osd_descriptor *descriptor, size_t index,
		      struct osd_piece *piece);

/* Content of a copy user object source descriptor. */
#define OSD_COPY_SOURCE_BYTES 18
struct osd_copy_source {
	uint64_t partition, object;
	bool attributes; /* CPY_ATTR: copy them, too */
	bool freeze;     /* keep others from changing the source meanwhile */
	uint8_t time;    /* TIME OF DUPLICATION */
};
void osd_copy_source_encode(const struct osd_copy_source *source,
			    uint8_t content[OSD_COPY_SOURCE_BYTES]);
/* -EINVAL: other length. */
int osd_copy_source_decode(const struct osd_descriptor *descriptor, struct osd_copy_source *source);

/* Content of a user object descriptor: partition 8, user object 8. -EINVAL: other length. */
#define OSD_USER_OBJECT_BYTES 16
int osd_user_object_decode(const struct osd_descriptor *descriptor, uint64_t *partition,
			   uint64_t *object);

/* ---- maps: data of READ MAP and READ MAPS AND COMPARE ---- */

/* Head: ADDITIONAL LENGTH 8, of the full map. */
#define OSD_MAP_HEAD_BYTES  8
#define OSD_MAP_ENTRY_BYTES 16
struct osd_map_entry {
	uint16_t type; /* OSD_MAP_... */
	uint32_t length;
	uint64_t address;
};
void osd_map_entry_encode(const struct osd_map_entry *entry, uint8_t data[OSD_MAP_ENTRY_BYTES]);
/*
 * Entry at *position (starting at OSD_MAP_HEAD_BYTES); moves on. 1, or 0 when no further one is
 * whole in the data.
 */
int osd_map_next(const uint8_t *data, size_t length, size_t *position, struct osd_map_entry *entry);

/* ---- data of OBJECT STRUCTURE CHECK ---- */

#define OSD_CHECK_HEAD_BYTES  32
#define OSD_CHECK_ENTRY_BYTES 24
struct osd_check_head {
	uint64_t additional_length; /* bytes behind it */
	uint64_t continuation; /* what to check next: ID or byte address; 0 = all was checked */
	uint64_t objects;      /* checked, containers included */
	uint64_t pages;        /* of data read */
};
struct osd_check_entry {
	uint64_t partition, object;
	uint16_t type; /* OSD_MAP_...: what of it is damaged; OSD_MAP_ALL: not checked to its end */
};
void osd_check_head_encode(const struct osd_check_head *head, uint8_t data[OSD_CHECK_HEAD_BYTES]);
/* -EMSGSIZE: shorter than a head. */
int osd_check_head_decode(const uint8_t *data, size_t length, struct osd_check_head *head);
void osd_check_entry_encode(const struct osd_check_entry *entry,
			    uint8_t data[OSD_CHECK_ENTRY_BYTES]);
/* As osd_map_next, from OSD_CHECK_HEAD_BYTES on. */
int osd_check_next(const uint8_t *data, size_t length, size_t *position,
		   struct osd_check_entry *entry);

/* ---- LIST data ---- */

struct osd_list_head {
	uint64_t additional_length; /* bytes behind it for the full list from the initial ID */
	uint64_t continuation_id;   /* first ID that did not fit, 0 = complete */
	uint32_t identifier;        /* non-zero: more to fetch */
	uint8_t format;             /* OSD-2: OSD_LISTED_*, + 1 with attributes */
	bool containers;            /* OSD-1: ROOT (partitions) or COLTN (collections) */
	bool changed;               /* LSTCHG */
};

void osd_list_head_encode(enum osd_version version, const struct osd_list_head *head,
			  uint8_t data[OSD_LIST_HEAD_BYTES]);
/* -EMSGSIZE: shorter than a head. */
int osd_list_head_decode(enum osd_version version, const uint8_t *data, size_t length,
			 struct osd_list_head *head);

/* Do the attributes of each object stand behind its ID? */
bool osd_list_has_attributes(const struct osd_list_head *head);

/*
 * ID and attributes of the object at *position (starting at OSD_LIST_HEAD_BYTES) of LIST data;
 * moves on.
 */
struct osd_listed_object {
	uint64_t id;
	uint8_t type;                      /* with attributes only */
	struct osd_list_reader attributes; /* with attributes only: for osd_list_next */
};
/* 1, or 0 when no further object is whole in the data. */
int osd_listed_next(const struct osd_list_head *head, const uint8_t *data, size_t length,
		    size_t *position, struct osd_listed_object *object);

/* ---- sense data ---- */

#define OSD_SENSE_ATTRIBUTES_MAX 4
/* Names of sessions that prevent a command, a blank between two; what does not fit is left out. */
#define OSD_SENSE_USERS_BYTES 160

/* Descriptor-format sense data. A `has_` field says whether that descriptor is there. */
struct osd_sense {
	uint8_t key;   /* enum scsi_sense_key */
	uint16_t code; /* enum scsi_sense_code */
	bool has_object;
	uint32_t not_initiated; /* enum osd_command_function */
	uint32_t completed;
	uint64_t partition;
	uint64_t object;
	bool has_field;
	bool field_in_cdb; /* else in Data-Out */
	uint16_t field;    /* its first byte */
	bool has_information;
	uint64_t information;
	bool has_command_information;
	uint64_t command_information;
	uint8_t check_value_bytes; /* 20 (OSD-1) or 32: response integrity check value; 0 = none */
	uint8_t check_value[32];
	unsigned attributes; /* how many of the following */
	struct {
		uint32_t page, number;
	} attribute[OSD_SENSE_ATTRIBUTES_MAX];
	unsigned users; /* sessions that prevent the command, at most 65535; 0 = none */
	char user_names[OSD_SENSE_USERS_BYTES + 1]; /* of their initiators, NUL-terminated */
};

/* Most bytes that osd_sense_encode writes. */
#define OSD_SENSE_ENCODED_MAX \
	(8 + 32 + 8 + 12 + 12 + 34 + 4 + 8 * OSD_SENSE_ATTRIBUTES_MAX + 4 + OSD_SENSE_USERS_BYTES)

/*
 * Returns the bytes written. Leaves out descriptors that do not fit in `capacity` (>= 8); important
 * ones come first.
 */
size_t osd_sense_encode(const struct osd_sense *sense, uint8_t *data, size_t capacity);

/* Also takes fixed-format sense (key, code, information). -EINVAL: neither format, or too short. */
int osd_sense_decode(const uint8_t *data, size_t length, struct osd_sense *sense);

/* "ILLEGAL REQUEST", "INVALID FIELD IN CDB"; never NULL. */
const char *osd_sense_key_name(uint8_t key);
const char *osd_sense_code_name(uint16_t code);

/* ---- INQUIRY ---- */

struct osd_inquiry_data {
	uint8_t device_type;
	uint8_t qualifier; /* 0 = connected */
	uint8_t version;   /* 5 = SPC-3 */
	char vendor[9];    /* blanks at the end cut off */
	char product[17];
	char revision[5];
};

/* Standard INQUIRY data. -EMSGSIZE: less than 36 bytes. */
int osd_inquiry_decode(const uint8_t *data, size_t length, struct osd_inquiry_data *inquiry);

#endif
