/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Security methods in the way of a command. Private to osd/.
 *
 * target.c calls the functions in this order: check_command before anything is looked up for the
 * initiator, check_subject when the addressed object is known, both before anything is executed;
 * seal_data when Data-In is complete; sign_sense when the sense data is. All of them do nothing
 * where the method is NOSEC.
 */
#ifndef MUNINN_OSD_SECURITY_H
#define MUNINN_OSD_SECURITY_H

#include <stdbool.h>
#include <stdint.h>

#include "osd/security_wire.h"

struct engine_address;
struct osd_device;
struct osd_options;
struct osd_request;
struct osd_security; /* of a logical unit: osd/keys.h */
struct osd_subject;

/* Of one command. */
struct osd_security_state {
	bool checked;       /* osd_security_check_command has found nothing wrong */
	bool authenticated; /* the request's check value is right: the answer is signed with `key` */
	uint64_t partition; /* whose method and keys count; 0: the root's */
	uint8_t method;     /* what protects the command: OSD_NOSEC, OSD_CAPKEY... */
	struct osd_capability capability;
	uint8_t key[OSD_KEY_BYTES]; /* the capability key */
	uint64_t seal_offset;       /* ALLDATA: where the integrity information of Data-In goes */
	uint64_t answer_data;       /* bytes of command data in Data-In, in front of attributes */
	bool has_answer_attributes;
};

/*
 * At the start of a logical unit, inside no transaction, and at its end. -ENOMEM, or the engine's
 * error.
 */
int osd_security_create(struct osd_device *device, const struct osd_options *options);
void osd_security_destroy(struct osd_device *device);

/* Inside a transaction. Method, key, check values, nonce, what the capability allows. */
int osd_security_check_command(struct osd_request *request);
/* Behind osd_validate_target: what the capability says of the object itself. */
int osd_security_check_subject(struct osd_request *request);
/*
 * A command names another object, in `partition`: fails unless that is the addressed partition or
 * has no security of its own. (In the addressed one it is the capability's GLOBAL that counts.)
 */
int osd_security_check_named(struct osd_request *request, uint64_t partition);
/* ALLDATA: integrity information behind the answer in Data-In. */
void osd_security_seal_data(struct osd_request *request);
/* CMDRSP and ALLDATA: response check value in the encoded sense data. */
void osd_security_sign_sense(struct osd_request *request);
/* At the end of a command: forgets its key. */
void osd_security_forget(struct osd_request *request);

/* The response check value of a command that ends with GOOD; all zero if nothing is signed. */
void osd_security_good_response(const struct osd_request *request,
				uint8_t value[OSD_CHECK_VALUE_BYTES_MAX]);

/* The token that commands of CAPKEY sign; every nexus has its own. */
int osd_security_token(const struct osd_device *device, uint64_t nexus,
		       uint8_t token[OSD_SECURITY_TOKEN_BYTES]);

/* ---- security_capability.c: does the capability allow the command? Fails with its field. ---- */

int osd_capability_check(struct osd_request *request);
/* Behind osd_validate_target, which completes the address of some object IDs. */
int osd_capability_check_range(struct osd_request *request);

/* ---- security_pages.c: attributes that security reads, and the pages that show them ---- */

/*
 * The partition whose method and keys protect `partition`: of a snapshot, which can't have keys of its
 * own, its source.
 */
int osd_security_governing(const struct osd_request *request, uint64_t partition,
			   uint64_t *governing);
/* Method of the root (partition 0) or of a partition as it is now; NOSEC if there is none. */
int osd_security_method_of(const struct osd_request *request, uint64_t partition, uint8_t *method);
/* How far timestamps of nonces may be from the clock, in milliseconds. */
int osd_security_nonce_window(const struct osd_request *request, uint64_t partition,
			      uint64_t *past_ms, uint64_t *future_ms);
/* A big-endian number of up to 8 bytes; 0 when the attribute is not set. */
int osd_security_number(const struct osd_request *request, struct engine_address address,
			uint32_t page, uint32_t number, uint64_t *value);
/* Is this the AUDIT of capabilities that were withdrawn? */
int osd_security_audit_is_frozen(const struct osd_request *request, uint64_t partition,
				 const uint8_t audit[20], bool *frozen);
/* What was created takes method and policy access tag from what it is in. */
int osd_security_inherit(struct osd_request *request);
/* A clone or snapshot that was made of `source` has the source's policy of now, and no keys. */
int osd_security_inherit_clone(struct osd_request *request, uint64_t source);
/* Sets the method of a partition, unless it is none. */
int osd_security_set_method(struct osd_request *request, struct engine_address partition,
			    uint8_t method);

/*
 * Vendor page of partitions: AUDIT values of capabilities that are refused, 20 bytes each, numbers
 * from 1.
 */
#define OSD_PARTITION_FROZEN_AUDITS (OSD_PAGES_PARTITION + OSD_PAGES_VENDOR)
#define OSD_FROZEN_AUDITS_MAX       16

/* Is this a page whose attributes only capabilities with POL/SEC can set? */
bool osd_page_is_security(uint32_t page);

/*
 * The attributes of policy/security pages for the table in pages.c: the value of a computed one
 * (returns its length, 0: not defined), and whether a value can be set.
 */
bool osd_security_allows_method(const uint8_t *value);
bool osd_security_allows_window(const uint8_t *value);
uint32_t osd_security_attribute(const struct osd_request *request,
				const struct osd_subject *subject, uint32_t page, uint32_t number,
				uint8_t *value);

#endif
