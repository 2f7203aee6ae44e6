/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Capabilities, integrity check values and keys of both standards: layouts and computations, for
 * target and initiator. Which bytes go into each value, and in which order, is in
 * docs/protocol.md, "Security".
 *
 * Keys are 20 bytes. Check values are HMAC-SHA1, 20 bytes; OSD-2's fields have 32, of which the
 * last 12 are zero. Functions that compute return 0 or -ENOMEM.
 */
#ifndef MUNINN_WIRE_SECURITY_H
#define MUNINN_WIRE_SECURITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/wire.h"

#define OSD_KEY_BYTES            20
#define OSD_SYSTEM_ID_BYTES      20
#define OSD_SEED_BYTES           20
#define OSD_KEY_IDENTIFIER_BYTES 7
#define OSD_SECURITY_TOKEN_BYTES 16
#define OSD_NONCE_BYTES          12
#define OSD_WORKING_KEYS         16
/* Bytes of a check value that are computed, and of the larger field that it stands in. */
#define OSD_CHECK_VALUE_BYTES     20
#define OSD_CHECK_VALUE_BYTES_MAX 32

/* INTEGRITY CHECK VALUE ALGORITHM. */
enum { OSD_INTEGRITY_HMAC_SHA1 = 1 };

/* KEY TO SET of SET KEY; DH_STEP of SET MASTER KEY. */
enum { OSD_SET_ROOT_KEY = 1, OSD_SET_PARTITION_KEY = 2, OSD_SET_WORKING_KEY = 3 };
enum { OSD_SEED_EXCHANGE = 0, OSD_CHANGE_MASTER_KEY = 1 };

/* ---- where things are in a CDB ---- */

struct osd_security_layout {
	uint16_t check_value; /* REQUEST INTEGRITY CHECK VALUE */
	uint16_t check_value_bytes;
	uint16_t nonce;
	uint16_t data_in_offset, data_out_offset;
	uint16_t capability_bytes;
	/* Fields of the object descriptor; 0 = not in this version. */
	uint16_t attributes_access, policy_tag, boot_epoch, partition, object, range;
};
const struct osd_security_layout *osd_security_layout(enum osd_version version);

/* Fields of a capability that both versions have at the same place of the CDB. */
enum {
	OSD_FIELD_CAPABILITY_FORMAT = 80,
	OSD_FIELD_KEY_VERSION = 81,
	OSD_FIELD_SECURITY_METHOD = 82,
	OSD_FIELD_EXPIRATION = 84,
	OSD_FIELD_CREATED_TIME = 122,
	OSD_FIELD_OBJECT_TYPE = 128,
	OSD_FIELD_PERMISSIONS = 129,
	OSD_FIELD_DESCRIPTOR_TYPE = 135,
};

/* ---- capabilities ---- */

/* What a version does not have is 0 after decoding and ignored by encoding. */
struct osd_capability {
	uint8_t format;      /* OSD_CAPABILITY_OSD1, OSD_CAPABILITY_OSD2 */
	uint8_t key_version; /* 0..15, which working key */
	uint8_t algorithm;   /* OSD_INTEGRITY_HMAC_SHA1 */
	uint8_t method;      /* OSD_NOSEC... */
	uint64_t expires_ms; /* since 1970; 0 = never */
	uint8_t audit[20];
	uint8_t discriminator[12];
	uint64_t created_ms;        /* created time of the object; 0 = any */
	uint8_t object_type;        /* enum osd_object_type */
	uint16_t permissions;       /* enum osd_permission */
	uint8_t descriptor_type;    /* OSD_DESCRIPTOR_OBJECT... */
	uint32_t policy_tag;        /* 0 = any */
	uint64_t partition;         /* as in the CDB, bits of a version included */
	uint64_t object;            /* as in the CDB; 0 of root and partitions */
	uint32_t attributes_access; /* OSD-2 */
	uint16_t boot_epoch;        /* OSD-2; 0 = any */
	uint64_t range_length;      /* OSD-2; 0 = the whole object */
	uint64_t range_start;       /* OSD-2 */
};

/* `bytes`: 80 of OSD-1, 104 of OSD-2 are written. */
void osd_capability_encode(enum osd_version version, const struct osd_capability *capability,
			   uint8_t bytes[OSD2_CAPABILITY_BYTES]);
void osd_capability_decode(enum osd_version version, const uint8_t bytes[OSD2_CAPABILITY_BYTES],
			   struct osd_capability *capability);

/* DESCRIPTOR TYPE that a version has for an object type. */
uint8_t osd_descriptor_type(enum osd_version version, enum osd_object_type type);

/* ---- check values ---- */

/* HMAC-SHA1 over `count` pieces, one behind the other. */
int osd_check_value(const uint8_t key[OSD_KEY_BYTES], const struct iovec *pieces, size_t count,
		    uint8_t value[OSD_CHECK_VALUE_BYTES]);

/* Takes the same time wherever the values differ. */
bool osd_check_values_equal(const uint8_t *a, const uint8_t *b, size_t bytes);

/* The capability key of a credential. `secret`: an authentication key. */
int osd_capability_key(enum osd_version version, const uint8_t secret[OSD_KEY_BYTES],
		       const uint8_t *capability, const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
		       uint8_t key[OSD_KEY_BYTES]);

/* Request integrity check value of CAPKEY. */
int osd_token_check_value(const uint8_t key[OSD_KEY_BYTES],
			  const uint8_t token[OSD_SECURITY_TOKEN_BYTES],
			  uint8_t value[OSD_CHECK_VALUE_BYTES]);

/* Of CMDRSP and ALLDATA. `cdb` is 200 or 236 bytes; what its field holds does not matter. */
int osd_request_check_value(enum osd_version version, const uint8_t key[OSD_KEY_BYTES],
			    const uint8_t *cdb, uint8_t value[OSD_CHECK_VALUE_BYTES]);

/*
 * ---- extension capabilities: content of descriptor FFEE, for the further objects of a command
 * ----
 */

/*
 * Capability and check value, as in the CDB from byte 80 on. So places in it are CDB fields less
 * 80.
 */
#define OSD_EXTENSION_BYTES       (OSD2_CAPABILITY_BYTES + OSD_CHECK_VALUE_BYTES_MAX)
#define OSD_EXTENSION_CHECK_VALUE OSD2_CAPABILITY_BYTES
/* Each check value covers the whole segment, so more of them would keep a target busy. */
#define OSD_EXTENSIONS_MAX 64

/*
 * Check value of one of `count` (1..OSD_EXTENSIONS_MAX) extension capabilities at `list`, inside
 * the continuation segment of `length` bytes. `key`: its capability key; `token`: the nexus's
 * security token with CAPKEY, otherwise NULL; `cdb`: 236 bytes. The contents of check value fields
 * do not matter, so this comes before the values of segment and request.
 */
int osd_extension_check_value(const uint8_t key[OSD_KEY_BYTES], const uint8_t *token,
			      const uint8_t *cdb, const uint8_t *segment, size_t length,
			      const uint8_t *list, size_t count,
			      uint8_t value[OSD_CHECK_VALUE_BYTES]);

/* Of a CDB continuation segment; what its field holds does not matter. */
int osd_continuation_check_value(const uint8_t key[OSD_KEY_BYTES],
				 const uint8_t nonce[OSD_NONCE_BYTES], const uint8_t *segment,
				 size_t length, uint8_t value[OSD_CHECK_VALUE_BYTES]);

/*
 * Response integrity check value. `sense` (length 0 with status GOOD) holds zeros where the value
 * will be, see osd_sense_check_value_place.
 */
int osd_response_check_value(const uint8_t key[OSD_KEY_BYTES], const uint8_t nonce[OSD_NONCE_BYTES],
			     uint8_t status, const uint8_t *sense, size_t sense_length,
			     uint8_t value[OSD_CHECK_VALUE_BYTES]);

/* The place of the check value in encoded sense data, and its bytes; NULL: it has none. */
uint8_t *osd_sense_check_value_place(uint8_t *sense, size_t length, size_t *bytes);

/* ---- integrity information behind the data, of ALLDATA ---- */

/* Bytes of each used part of a buffer: the numbers that the information begins with. */
struct osd_integrity_lengths {
	uint64_t data;
	uint64_t sets; /* Data-Out only */
	uint64_t gets; /* Data-Out: the get list; Data-In: retrieved attributes */
};

/* Bytes of the information: numbers and check value. */
size_t osd_data_out_integrity_bytes(enum osd_version version);
size_t osd_data_in_integrity_bytes(enum osd_version version);

/*
 * Writes the information. `pieces`: the used bytes of the parts, in the order of the lengths, and
 * with these lengths.
 */
int osd_data_out_integrity(enum osd_version version, const uint8_t key[OSD_KEY_BYTES],
			   const uint8_t nonce[OSD_NONCE_BYTES],
			   const struct osd_integrity_lengths *lengths, const struct iovec *pieces,
			   size_t count, uint8_t *information);
int osd_data_in_integrity(enum osd_version version, const uint8_t key[OSD_KEY_BYTES],
			  const uint8_t nonce[OSD_NONCE_BYTES],
			  const struct osd_integrity_lengths *lengths, const struct iovec *pieces,
			  size_t count, uint8_t *information);

/* ---- keys ---- */

/* SET KEY: the two keys that a seed gives under the generation key of the level above. */
int osd_derive_keys(const uint8_t generation[OSD_KEY_BYTES], const uint8_t *seed,
		    size_t seed_length, uint8_t new_authentication[OSD_KEY_BYTES],
		    uint8_t new_generation[OSD_KEY_BYTES]);

/* The master keys of a unit whose master key was never set, from its device key. */
int osd_initial_master_keys(const uint8_t device_key[32],
			    const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			    uint8_t authentication[OSD_KEY_BYTES],
			    uint8_t generation[OSD_KEY_BYTES]);

/* SET KEY and SET MASTER KEY: fields in CDB bytes 24..51 (struct osd_cdb.key_bytes). */
struct osd_key_fields {
	uint8_t key_version; /* SET KEY */
	uint8_t identifier[OSD_KEY_IDENTIFIER_BYTES];
	uint8_t seed[OSD_SEED_BYTES]; /* SET KEY */
	uint8_t dh_group;             /* SET MASTER KEY, SEED EXCHANGE */
	uint32_t parameter_length;    /* SET MASTER KEY: bytes of Data-Out */
	uint32_t allocation_length;   /* SET MASTER KEY: space in Data-In */
};
void osd_key_fields_encode(uint16_t action, const struct osd_key_fields *fields,
			   uint8_t key_bytes[28]);
void osd_key_fields_decode(uint16_t action, const uint8_t key_bytes[28],
			   struct osd_key_fields *fields);

#endif
