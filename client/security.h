/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Credentials of OSD security: minting, signing commands with them, verifying the answers.
 *
 * A client that was given credentials with osd_client_secure signs every command for which there is
 * one, and takes an answer for the target's only if its check values are right. What is verified:
 * with CMDRSP status and sense (of status GOOD by a value of the current command page that is asked
 * for with the command; commands that answer with attributes of several objects have no place for
 * it), with ALLDATA also everything that was received. A refusal without a value is taken as it is:
 * the target can't sign what it does not take for genuine.
 */
#ifndef MUNINN_CLIENT_SECURITY_H
#define MUNINN_CLIENT_SECURITY_H

#include "client/osd_client.h"
#include "wire/security.h"

/*
 * A capability with its key. The key is secret: who has one wipes it (OPENSSL_cleanse) when it is
 * used no more.
 */
struct osd_credential {
	enum osd_version version; /* of the commands it is for */
	uint8_t method;           /* OSD_CAPKEY... */
	uint8_t capability[OSD2_CAPABILITY_BYTES];
	uint8_t key[OSD_KEY_BYTES];
};

/* Lifetime and permissions of what osd_credential_for_command mints. */
#define OSD_CREDENTIAL_LIFETIME_MS UINT64_C(600000)
#define OSD_PERMISSIONS_ALL        0xFFFC

/*
 * Makes a credential with an authentication key: the working key that `capability` names, or the
 * key of the root or partition (docs/protocol.md says which for what). Format, algorithm and
 * descriptor type are filled in. -ENOMEM.
 */
int osd_credential_mint(enum osd_version version, struct osd_capability *capability,
			const uint8_t secret[OSD_KEY_BYTES],
			const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			struct osd_credential *credential);

/*
 * The same for one command: all permissions on what it addresses, for ten minutes. OBJECT TYPE of
 * the capability that is in the CDB already counts if there is one, otherwise what the action
 * tells.
 */
int osd_credential_for_command(const struct osd_cdb *cdb, uint8_t method, uint8_t key_version,
			       const uint8_t secret[OSD_KEY_BYTES],
			       const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			       struct osd_credential *credential);

/*
 * Extension capabilities: an authorised command that names further objects needs one for each. Adds
 * them to the continuation segment that `request` has or gets: its data, in the caller's buffer
 * `segment` of `capacity` bytes, and without command data behind it. `others`: for each further
 * object a command on it, whose credential is asked for; those without are left out. Nothing is
 * added where nothing is signed. They are signed with the request, and their keys wiped when it is
 * over: to send it again is to add them again. -EINVAL: too many or no space; the credential's
 * errors.
 */
int osd_request_extend(struct osd_client *client, struct osd_request *request, uint8_t *segment,
		       size_t capacity, const struct osd_cdb *others, size_t count);
/* Bytes that they add to a segment, its head included. */
#define OSD_REQUEST_EXTENSIONS_BYTES(count) \
	(OSD_CONTINUATION_BYTES_MIN + (count)*OSD_EXTENSION_BYTES)

/* Which key a command's credential is made with. */
enum osd_secret { OSD_SECRET_MASTER, OSD_SECRET_ROOT, OSD_SECRET_PARTITION, OSD_SECRET_WORKING };
enum osd_secret osd_secret_of_command(const struct osd_cdb *cdb);

/* Gives the credential for a command. -ENOENT: none, it is sent without; other errors refuse it. */
typedef int osd_client_credential(void *context, const struct osd_cdb *cdb,
				  struct osd_credential *credential);

/*
 * The unit's OSD SYSTEM ID, which needs no credential. Errors as of commands; -EOPNOTSUPP: not
 * told.
 */
int osd_client_system_id(struct osd_client *client, uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			 struct osd_client_error *error);

/*
 * Lets `give` (NULL: nobody again) give credentials for the commands to come; asks the target for
 * the session's security token. Errors as of commands; the client goes on as before then.
 */
int osd_client_secure(struct osd_client *client, osd_client_credential *give, void *context,
		      struct osd_client_error *error);

#endif
