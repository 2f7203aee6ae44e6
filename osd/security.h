/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Security methods in the way of a command. Private to osd/.
 *
 * target.c calls the functions in this order: sum_ahead before the transaction; check_command
 * before it looks anything up for the initiator; check_subject when it knows the addressed object.
 * Only then does it execute anything. Then sign_data when Data-In is complete, and sign_sense when
 * the sense data is. All of them do nothing where the method is NOSEC.
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
 * Check values over what came of Data-Out, made with a capability key. They depend on the bytes of
 * the request alone.
 */
struct osd_security_sums {
	bool known;
	uint8_t key[OSD_KEY_BYTES];
	uint8_t continuation[OSD_CHECK_VALUE_BYTES_MAX]; /* of the segment, if there is one */
	uint8_t data_out[64];                            /* ALLDATA: of the integrity information */
};

/* The same of an extension capability, by its own key. */
struct osd_extension_sum {
	bool has_key, known;
	uint8_t key[OSD_KEY_BYTES];
	uint8_t value[OSD_CHECK_VALUE_BYTES_MAX];
};

/*
 * What protects a partition that somebody names, with or without version bits: a partition's
 * lasting attributes protect that very partition, not others that had or will have its ID.
 */
struct osd_policy {
	/*
	 * Where method, keys and the rest of the policy are: of the root, of the partition as it is
	 * now, of the one that it is a snapshot of; or with version bits, of the earlier partition
	 * that they show, as it was removed.
	 */
	struct engine_address address;
	/* The version bits show no partition; what is there now protects it until that is sure. */
	bool shows_nothing;
	/* It may be a snapshot, but what it was made of does not govern it: one of them is gone. */
	bool stands_alone;
};

/* Of one command. */
struct osd_security_state {
	bool checked;       /* osd_security_check_command found nothing wrong */
	bool authenticated; /* the request's check value is right: the answer is signed with `key`
			     */
	struct osd_policy policy;
	uint8_t method; /* what protects the command: OSD_NOSEC, OSD_CAPKEY... */
	struct osd_capability capability;
	uint8_t key[OSD_KEY_BYTES]; /* the capability key */
	struct osd_security_sums sums;
	uint64_t nonce_to_note_ms; /* the nonce's timestamp, if a bound above it has to be noted
				      first; 0: it has not */
	uint64_t nonce_noted_ms;   /* the bound that was noted for its owner alone; 0: none */
	uint64_t nonce_noted_of;   /* the owner's partition */
	uint64_t integrity_offset; /* ALLDATA: where the integrity information of Data-In goes */
	uint64_t answer_data; /* if the answer has attributes: bytes of command data in Data-In */
	uint64_t answer_attributes; /* and of attributes; 0: the answer has none */
	struct osd_extension_sum
		extensions[OSD_EXTENSIONS_MAX]; /* last, because most commands do not use them */
};

/*
 * At the start of a logical unit, inside no transaction, and at its end. -ENOMEM, or the engine's
 * error.
 */
int osd_security_create(struct osd_device *device, const struct osd_options *options);
void osd_security_destroy(struct osd_device *device);

/*
 * Before the transaction of a command that others have to wait for: computes the sums over
 * Data-Out, so that the transaction only compares them. The transaction looks up the key again, and
 * computes the values itself if it is another one.
 */
void osd_security_sum_ahead(struct osd_request *request);
/*
 * Inside a transaction: checks method, key, check values, nonce, and what the capability allows. In
 * further transactions of the command, its nonce is used up and its bytes are the same; there it
 * checks that the method is still enough, and that nobody has withdrawn the capability.
 */
int osd_security_check_command(struct osd_request *request);
/*
 * After a transaction whose check has failed: if the reason was a nonce above the noted bound,
 * notes a higher bound, so that no later start accepts the nonce again. True: try the check again.
 * False: it has failed.
 */
bool osd_security_note_nonce(struct osd_request *request);
/* After osd_validate_target: checks what the capability says of the object itself. */
int osd_security_check_subject(struct osd_request *request);
/*
 * The present policy access tag of an object, also for its old versions; 0: none. `number`: which
 * tag of a partition.
 */
int osd_security_tag_of(struct osd_request *request, struct engine_address address,
			enum engine_type type, uint32_t number, uint64_t *tag);
/* CMDRSP and ALLDATA: response check value in the encoded sense data. */
void osd_security_sign_sense(struct osd_request *request);
/* At the end of a command: forgets its key. */
void osd_security_forget(struct osd_request *request);

/* The response check value of a command that ends with GOOD; all zero if the unit signs nothing. */
void osd_security_good_response(const struct osd_request *request,
				uint8_t value[OSD_CHECK_VALUE_BYTES_MAX]);

/* The token that CAPKEY commands sign. Every nexus has its own. */
int osd_security_token(const struct osd_device *device, uint64_t nexus,
		       uint8_t token[OSD_SECURITY_TOKEN_BYTES]);

/* ---- security_data.c: check values over the buffers ---- */

/*
 * Computes the check values of Data-Out with `key`; with `method` ALLDATA also that of the
 * integrity information. `sums->known`: it could.
 */
void osd_security_sum(const struct osd_request *request, uint8_t method,
		      const uint8_t key[OSD_KEY_BYTES], struct osd_security_sums *sums);
/*
 * Are continuation segment and Data-Out what was signed? Is there a place for the target's value in
 * Data-In?
 */
int osd_security_check_buffers(struct osd_request *request);
/* ALLDATA: integrity information behind the answer in Data-In. */
void osd_security_sign_data(struct osd_request *request);
const uint8_t *osd_security_nonce(const struct osd_request *request);

/* ---- security_extensions.c: a command's further objects, and the capabilities for them ---- */

/*
 * Another object than the addressed one that a command works on, with the extension capability for
 * it. `permissions` (enum osd_permission): what the command does with it. Asked before the object
 * is looked up.
 */
struct osd_further {
	bool shows_nothing; /* as of struct osd_policy */
	bool restricted;    /* `capability` says more than was checked so far */
	size_t at;          /* place of the capability in Data-Out */
	struct osd_capability capability;
};
int osd_further_check(struct osd_request *request, uint64_t partition, uint64_t object,
		      uint16_t permissions, struct osd_further *further);
/* After the object was found: checks its type, created time and policy access tag. */
int osd_further_check_found(struct osd_request *request, const struct osd_further *further,
			    struct engine_address address, const struct engine_stat *stat);

/*
 * A partition that the command reads from, version bits included: is it there, and does an
 * extension capability allow READ? If it is not there, `field` is wrong.
 */
int osd_further_find_partition(struct osd_request *request, uint64_t partition, uint16_t field);

/* The strongest method of the partitions that the extension capabilities name. */
int osd_extensions_method(const struct osd_request *request, uint8_t *method);
/* Is every extension capability genuine and valid? After the same check of the CDB's. */
int osd_extensions_check(struct osd_request *request);
/* In a further transaction of the command: has nobody withdrawn one? */
int osd_extensions_check_again(struct osd_request *request);
/*
 * Parts of osd_security_sum_ahead. The first looks up the keys, inside a transaction. The second
 * computes the check values with them, up to 4 MiB of HMAC, outside transactions.
 */
void osd_extensions_find_keys(struct osd_request *request);
void osd_extensions_sum(struct osd_request *request, uint8_t method);

/* ---- security_capability.c: does the capability allow the command? Fails with its field. ---- */

/* `at` of a capability: its place in Data-Out. This value stands for the one in the CDB. */
#define OSD_CAPABILITY_OF_CDB 0

/*
 * Fails with `field` of the CDB's capability, or with its counterpart in an extension capability.
 */
int osd_fail_capability(struct osd_request *request, size_t at, uint16_t field);
/* Format, algorithm, and a method between the two. */
int osd_capability_check_head(struct osd_request *request, const struct osd_capability *capability,
			      uint8_t least, uint8_t most, size_t at);
/* Finds the key of a capability that was made with key `name`. `bytes`: the capability, encoded. */
int osd_capability_find_key(struct osd_request *request, struct osd_key_name name,
			    const uint8_t *bytes, size_t at, uint8_t key[OSD_KEY_BYTES]);
/* Did the partition of a policy withdraw the capability, by freezing its audit value or working
 * key? */
int osd_capability_check_frozen(struct osd_request *request,
				const struct osd_capability *capability,
				struct engine_address policy);
/* Expiration and boot epoch. */
int osd_capability_check_time(struct osd_request *request, const struct osd_capability *capability,
			      size_t at);
int osd_capability_check(struct osd_request *request);
/* After osd_validate_target, which completes the address of some object IDs. */
int osd_capability_check_range(struct osd_request *request);

/*
 * security_access.c: does the list that the capability names contain the attributes of the command?
 */
int osd_capability_check_attributes(struct osd_request *request);

/* ---- security_policy.c: whose method and keys count ---- */

/* Of the root (0), or of a partition; version bits may be in `partition`. */
int osd_security_find_policy(const struct osd_request *request, uint64_t partition,
			     struct osd_policy *policy);
/* The method that a policy demands. NOSEC if there is none, or no such partition. */
int osd_security_method_at(const struct osd_request *request, const struct osd_policy *policy,
			   uint8_t *method);
/* The two together. */
int osd_security_method_of(const struct osd_request *request, uint64_t partition, uint8_t *method);
/* Is the object at an address in the partition that has the ID now? */
int osd_security_is_present(const struct osd_request *request, struct engine_address address,
			    bool *is_present);

/* ---- security_pages.c: attributes that security reads, and the pages that show them ---- */

/* How far timestamps of nonces may be from the clock, in ms, whatever partitions say. */
#define OSD_NONCE_WINDOW_MAX_MS UINT64_C(600000)
int osd_security_nonce_window(const struct osd_request *request, struct engine_address policy,
			      uint64_t *past_ms, uint64_t *future_ms);
/* A big-endian number of up to 8 bytes; 0 when the attribute is not set. */
int osd_security_number(const struct osd_request *request, struct engine_address address,
			uint32_t page, uint32_t number, uint64_t *value);
/* Is this the AUDIT of capabilities that were withdrawn? */
int osd_security_audit_is_frozen(const struct osd_request *request, struct engine_address policy,
				 const uint8_t audit[20], bool *frozen);
/* A new object takes method and policy access tag from its container. */
int osd_security_inherit(struct osd_request *request);
/* A clone or snapshot of `source` takes the source's present policy, and no keys. */
int osd_security_inherit_clone(struct osd_request *request, uint64_t source);
/* Sets the method of a partition, unless that is NOSEC. */
int osd_security_set_method(struct osd_request *request, struct engine_address partition,
			    uint8_t method);

/*
 * Vendor page of partitions: AUDIT values of refused capabilities, 20 bytes each, numbers from 1.
 */
#define OSD_PARTITION_FROZEN_AUDITS (OSD_PAGES_PARTITION + OSD_PAGES_VENDOR)
#define OSD_FROZEN_AUDITS_MAX       16

/* Can only capabilities with POL/SEC set attributes of this page? */
bool osd_page_is_security(uint32_t page);

/*
 * The attributes of policy/security pages, for the table in pages.c: the value of a computed one
 * (returns its length, 0: undefined), and whether a value may be set.
 */
bool osd_security_allows_method(const struct osd_request *request, const uint8_t *value);
bool osd_security_allows_window(const struct osd_request *request, const uint8_t *value);
uint32_t osd_security_attribute(const struct osd_request *request,
				const struct osd_subject *subject, uint32_t page, uint32_t number,
				uint8_t *value);

#endif
