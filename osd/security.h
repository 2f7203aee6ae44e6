/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Security methods in the way of a command. Private to osd/.
 *
 * target.c calls the functions in this order: sum_ahead before the transaction; check_command
 * before anything is looked up for the initiator, check_subject when the addressed object is known,
 * both before anything is executed; seal_data when Data-In is complete; sign_sense when the sense
 * data is. All of them do nothing where the method is NOSEC.
 */
#ifndef MUNINN_OSD_SECURITY_H
#define MUNINN_OSD_SECURITY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "osd/keys.h"
#include "wire/security.h"

struct osd_device;
struct osd_options;
struct osd_request;
struct osd_security; /* of a logical unit: osd/keys.h */
struct osd_subject;

/*
 * Check values over what came of Data-Out, by a capability key. They are a matter of the request's
 * bytes alone.
 */
struct osd_security_sums {
	bool known;
	uint8_t key[OSD_KEY_BYTES];
	uint8_t continuation[OSD_CHECK_VALUE_BYTES_MAX]; /* of the segment, if there is one */
	uint8_t data_out[64];                            /* ALLDATA: the integrity information */
};

/* The same of an extension capability, by its own key. */
struct osd_extension_sum {
	bool has_key, known;
	uint8_t key[OSD_KEY_BYTES];
	uint8_t value[OSD_CHECK_VALUE_BYTES_MAX];
};

/* Of one command. */
struct osd_security_state {
	bool checked;       /* osd_security_check_command has found nothing wrong */
	bool authenticated; /* the request's check value is right: the answer is signed with `key`
			     */
	uint64_t partition; /* whose method and keys count; 0: the root's */
	uint8_t method;     /* what protects the command: OSD_NOSEC, OSD_CAPKEY... */
	struct osd_capability capability;
	uint8_t key[OSD_KEY_BYTES]; /* the capability key */
	struct osd_security_sums sums;
	uint64_t nonce_to_note_ms; /* the nonce's timestamp, which has to be noted before it can be
				      taken; 0: none */
	uint64_t seal_offset;      /* ALLDATA: where the integrity information of Data-In goes */
	uint64_t answer_data; /* of an answer with attributes: bytes of command data in Data-In */
	uint64_t answer_attributes; /* and of attributes; 0: it has none */
	struct osd_extension_sum extensions[OSD_EXTENSIONS_MAX]; /* last: of most commands unused */
};

/*
 * At the start of a logical unit, inside no transaction, and at its end. -ENOMEM, or the engine's
 * error.
 */
int osd_security_create(struct osd_device *device, const struct osd_options *options);
void osd_security_destroy(struct osd_device *device);

/*
 * Before the transaction of a command that others have to wait for: sums Data-Out up, so that
 * inside of it the values need only be compared. The key is looked up there again; with another one
 * the values are computed there.
 */
void osd_security_sum_ahead(struct osd_request *request);
/*
 * Inside a transaction. Method, key, check values, nonce, what the capability allows. In the
 * further transactions of a command, whose nonce is used up and whose bytes are what they were:
 * that its method is still enough, and that it has not been withdrawn.
 */
int osd_security_check_command(struct osd_request *request);
/*
 * Behind a transaction whose check has failed: notes that nonces as new as the request's are taken
 * from now on, so that none is a second time after a start. True: that was why, and the check can
 * be tried again. False: it has failed.
 */
bool osd_security_note_nonce(struct osd_request *request);
/* Behind osd_validate_target: what the capability says of the object itself. */
int osd_security_check_subject(struct osd_request *request);
/*
 * The policy access tag of an object as it is now, of old versions too; 0: none. `number`: which of
 * a partition's.
 */
int osd_security_tag_of(struct osd_request *request, struct engine_address address,
			enum engine_type type, uint32_t number, uint64_t *tag);
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

/* ---- security_data.c: check values over the buffers ---- */

/*
 * Those of Data-Out by `key`; with `method` ALLDATA also the integrity information. `sums->known`:
 * they could be computed.
 */
void osd_security_sum(const struct osd_request *request, uint8_t method,
		      const uint8_t key[OSD_KEY_BYTES], struct osd_security_sums *sums);
/*
 * Continuation segment and Data-Out are what was signed, and there is a place for the target's
 * value in Data-In.
 */
int osd_security_check_buffers(struct osd_request *request);
/* ALLDATA: integrity information behind the answer in Data-In. */
void osd_security_seal_data(struct osd_request *request);
const uint8_t *osd_security_nonce(const struct osd_request *request);

/* ---- security_extensions.c: a command's further objects, and the capabilities for them ---- */

/*
 * Another object than the addressed one that a command works on, with the extension capability for
 * it. Asked for before the object is looked up; `permissions` (enum osd_permission) is what the
 * command does with it.
 */
struct osd_further {
	bool restricted; /* `capability` says more than what has been checked */
	size_t at;       /* of the capability in Data-Out */
	struct osd_capability capability;
};
int osd_further_check(struct osd_request *request, uint64_t partition, uint64_t object,
		      uint16_t permissions, struct osd_further *further);
/* The object has been found: its type, created time and policy access tag. */
int osd_further_check_found(struct osd_request *request, const struct osd_further *further,
			    struct engine_address address, const struct engine_stat *stat);

/*
 * A partition that the command reads from, version bits included: is it there, and does an
 * extension capability allow READ? That there is none is an error of `field`.
 */
int osd_further_find_partition(struct osd_request *request, uint64_t partition, uint16_t field);

/* The strongest method of the partitions that the extension capabilities name. */
int osd_extensions_method(const struct osd_request *request, uint8_t *method);
/* Is every extension capability genuine and valid? Behind the same check of the CDB's. */
int osd_extensions_check(struct osd_request *request);
/* In a further transaction of the command: has none been withdrawn? */
int osd_extensions_check_again(struct osd_request *request);
/*
 * Of osd_security_sum_ahead: looks up the keys, inside a transaction; and computes the check values
 * that they make, which is up to 4 MiB of HMAC, inside none.
 */
void osd_extensions_find_keys(struct osd_request *request);
void osd_extensions_sum(struct osd_request *request, uint8_t method);

/* ---- security_capability.c: does the capability allow the command? Fails with its field. ---- */

/* `at` of a capability: its place in Data-Out; that of the CDB is at */
#define OSD_CAPABILITY_OF_CDB 0

/*
 * What is wrong is `field` of the CDB's capability, or its counterpart in an extension capability.
 */
int osd_fail_capability(struct osd_request *request, size_t at, uint16_t field);
/* Format, algorithm, and a method between the two. */
int osd_capability_check_head(struct osd_request *request, const struct osd_capability *capability,
			      uint8_t least, uint8_t most, size_t at);
/* The key of a capability that was made with key `name`. `bytes`: encoded. */
int osd_capability_find_key(struct osd_request *request, struct osd_key_name name,
			    const uint8_t *bytes, size_t at, uint8_t key[OSD_KEY_BYTES]);
/* Was the capability withdrawn by audit value or working key, which `partition` has frozen? */
int osd_capability_check_frozen(struct osd_request *request,
				const struct osd_capability *capability, uint64_t partition);
/* Expiration and boot epoch. */
int osd_capability_check_time(struct osd_request *request, const struct osd_capability *capability,
			      size_t at);
int osd_capability_check(struct osd_request *request);
/* Behind osd_validate_target, which completes the address of some object IDs. */
int osd_capability_check_range(struct osd_request *request);

/* security_access.c: does the list that the capability names have the attributes of the command? */
int osd_capability_check_attributes(struct osd_request *request);

/* ---- security_pages.c: attributes that security reads, and the pages that show them ---- */

/*
 * The partition whose method and keys protect `partition`: of a snapshot, which can't have keys of
 * its own, its source.
 */
int osd_security_governing(const struct osd_request *request, uint64_t partition,
			   uint64_t *governing);
/*
 * Method of the root (partition 0) or of a partition as it is now, also of its versions; with the
 * bits of a version in `partition` of one that was removed, too. NOSEC if there is none.
 */
int osd_security_method_of(const struct osd_request *request, uint64_t partition, uint8_t *method);
/*
 * How far timestamps of nonces may be from the clock, in milliseconds; and how far at most,
 * whatever partitions say.
 */
#define OSD_NONCE_WINDOW_MAX_MS UINT64_C(600000)
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
