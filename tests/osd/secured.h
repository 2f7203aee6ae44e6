/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A unit with keys, and commands that are signed as an initiator with a credential does. Signing
 * stands on wire/security.h, whose computations test_security_vectors.c holds against answers
 * from elsewhere.
 */
#ifndef MUNINN_TESTS_OSD_SECURED_H
#define MUNINN_TESTS_OSD_SECURED_H

#include "tests/osd/unit.h"
#include "wire/security.h"

struct key_pair {
	uint8_t authentication[OSD_KEY_BYTES];
	uint8_t generation[OSD_KEY_BYTES];
};

/* What a security manager knows of the unit. */
struct manager {
	uint8_t device_key[32];
	uint8_t system_id[OSD_SYSTEM_ID_BYTES];
	struct key_pair master, root, partition, working[OSD_WORKING_KEYS];
	uint64_t nonces; /* made so far */
};

/* The working key that credentials of signed_call_of are made with. */
#define KEY_VERSION 5

/* A capability, and the authentication key that its capability key is made with. */
struct granted {
	struct osd_capability capability;
	const uint8_t *secret;
};

/* A command and what it is signed with. Tests change what they like before it is executed. */
struct signed_call {
	struct call call;
	struct osd_capability capability;
	const uint8_t *secret;
	uint8_t nonce[OSD_NONCE_BYTES];
	struct granted extensions[4]; /* extension capabilities, in the continuation segment */
	size_t extension_count;
};

/* Gives the unit a device key (its device is opened anew), and the manager its initial keys. */
void secured_open(struct unit *unit, struct manager *manager);
/* Closes and opens the device as a new start of the daemon does; `device_key` NULL: without. */
void secured_restart(struct unit *unit, const uint8_t *device_key);

/* SET KEY of root, partition P and working key KEY_VERSION; they must succeed. */
void secured_set_keys(struct unit *unit, struct manager *manager);
void secured_set_method(struct unit *unit, uint64_t partition, uint8_t method);
/*
 * SET KEY of partition and working key KEY_VERSION of a further partition; `working` = the latter.
 */
void secured_set_keys_of(struct unit *unit, uint64_t partition, uint8_t fill,
			 struct key_pair *working);

/* Secures partition P, and takes that back with a credential. The first returns contents_of. */
uint64_t secured_close(struct unit *unit, uint8_t method);
void secured_reopen(struct unit *unit, uint8_t method);
/* CAPKEY, CMDRSP, ALLDATA. */
#define SECURED_METHODS 3
extern const uint8_t secured_methods[SECURED_METHODS];

/* Places of security's fields in the CDBs of the test's version. */
const struct osd_security_layout *unit_layout(void);

/*
 * cmocka set-up: as unit_set_up_with_object, with keys and 4096 bytes 'x' in O; security is off.
 * *state is the unit, secured_manager its manager.
 */
int secured_set_up(void **state);
int secured_set_up_osd1(void **state);
extern struct manager secured_manager;
#define with_keys(test) cmocka_unit_test_setup_teardown(test, secured_set_up, unit_tear_down)
#define with_keys_in_both(test) \
	{ #test " (OSD-1)", test, secured_set_up_osd1, unit_tear_down, NULL }, with_keys(test)

/*
 * A call of the test's version with the credential for it: this object, this method, all
 * permissions, a fresh nonce; by the working key, of the root by the root key.
 */
struct signed_call signed_call_of(struct unit *unit, uint16_t action, uint64_t partition,
				  uint64_t object, uint8_t method);
/* A WRITE of `text` to object O of P. */
struct signed_call signed_write(struct unit *unit, uint8_t method, const char *text);
/*
 * Adds an extension capability for another object (object 0: a partition) by the working key of P,
 * with the call's method. It may be changed until the call is encoded.
 */
struct granted *signed_extend(struct signed_call *signed_call, uint64_t partition, uint64_t object,
			      uint8_t type, uint16_t permissions);
/* SET KEY with an identifier and a seed of bytes `fill`; `to` = the keys it gives. */
struct signed_call signed_set_key(struct unit *unit, unsigned key_to_set, uint64_t partition,
				  uint8_t version, uint8_t fill, struct key_pair *to);

/*
 * Signs anew what has been encoded, after a test has changed it: request, segment and extension
 * capabilities.
 */
void signed_again(struct unit *unit, struct signed_call *signed_call, struct encoded_call *encoded);
/* What a client gets with a capability, and signs by: whoever has it may do what that says. */
void capability_key(enum osd_version version, const struct osd_capability *capability,
		    const uint8_t *secret, uint8_t key[OSD_KEY_BYTES]);
/* Where the list of extension capabilities is in an encoded call. */
uint8_t *extensions_of(const struct encoded_call *encoded, const struct signed_call *signed_call);

/*
 * Each makes a capability, before it is signed, one that does not allow a WRITE to O: the first
 * thing wrong is its field.
 */
void change_algorithm(struct osd_capability *capability);
void change_key_version(struct osd_capability *capability);
void let_expire(struct osd_capability *capability);
void change_created_time(struct osd_capability *capability);
void change_descriptor(struct osd_capability *capability);
void change_tag(struct osd_capability *capability);
void restrict_attributes(struct osd_capability *capability);
void change_epoch(struct osd_capability *capability);

/* Encodes and signs; between this and signed_execute tests may damage what is sent. */
void signed_encode(struct unit *unit, struct signed_call *signed_call,
		   struct encoded_call *encoded);
/*
 * Executes, frees `encoded`. Of what the unit answers to a request that it took for genuine, the
 * check values are verified.
 */
void signed_execute(struct unit *unit, struct signed_call *signed_call,
		    struct encoded_call *encoded);
void signed_run(struct unit *unit, struct signed_call *signed_call);
/* A fresh nonce, with the time of the unit's clock. */
void fresh_nonce(struct unit *unit, uint8_t nonce[OSD_NONCE_BYTES]);

/* Whether the last answer was signed. */
bool answer_is_signed(const struct unit *unit);

/*
 * What is on the unit: hash over root, partition P, what is in it, attributes and data of O, past
 * security. Changes with every command that did something.
 */
uint64_t contents_of(struct unit *unit);

#endif
