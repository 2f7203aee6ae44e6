/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Credentials of OSD security: minting, signing commands with them, verifying the answers.
 *
 * After osd_client_secure a client signs every command that it has a credential for, and accepts an
 * answer only if its check values are right. With CMDRSP they cover status and sense. For status
 * GOOD the command also gets a value of the current command page; commands that answer with
 * attributes of several objects have no place for it. With ALLDATA they also cover everything that
 * was received. A refusal without a value is accepted: the target can't sign an answer to a command
 * that it does not take for genuine.
 */
#ifndef MUNINN_CLIENT_SECURITY_H
#define MUNINN_CLIENT_SECURITY_H

#include "client/osd_client.h"
#include "wire/security.h"

/* A capability with its key. The key is secret: its owner wipes it (OPENSSL_cleanse) after use. */
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
 * key of the root or partition (docs/protocol.md says which for what). Fills in format, algorithm
 * and descriptor type. -ENOMEM.
 */
int osd_credential_mint(enum osd_version version, struct osd_capability *capability,
			const uint8_t secret[OSD_KEY_BYTES],
			const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			struct osd_credential *credential);

/*
 * The same for one command: all permissions on what it addresses, for ten minutes. If the
 * capability in the CDB has an OBJECT TYPE already, that counts; otherwise the action tells it.
 */
int osd_credential_for_command(const struct osd_cdb *cdb, uint8_t method, uint8_t key_version,
			       const uint8_t secret[OSD_KEY_BYTES],
			       const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			       struct osd_credential *credential);

/*
 * Extension capabilities: a signed command that names further objects needs one for each. Adds them
 * to the continuation segment of `request`, or makes one in the caller's buffer `segment` of
 * `capacity` bytes; there is no command data behind it.
 *
 * `others`: for each further object a command on it, for which a credential is asked. Objects
 * without a credential are left out, and nothing is added if nothing is signed. They are signed
 * with the request, and their keys wiped at its end: to send it again, add them again. -EINVAL: too
 * many, or no space; the credential's errors.
 */
int osd_request_extend(struct osd_client *client, struct osd_request *request, uint8_t *segment,
		       size_t capacity, const struct osd_cdb *others, size_t count);
/* Bytes that they add to a segment, its head included. */
#define OSD_REQUEST_EXTENSIONS_BYTES(count) \
	(OSD_CONTINUATION_BYTES_MIN + (count)*OSD_EXTENSION_BYTES)

/* Which key a command's credential is made with. */
enum osd_secret { OSD_SECRET_MASTER, OSD_SECRET_ROOT, OSD_SECRET_PARTITION, OSD_SECRET_WORKING };
enum osd_secret osd_secret_of_command(const struct osd_cdb *cdb);

/*
 * Gives the credential for a command. -ENOENT: there is none, so the command goes unsigned. Other
 * errors refuse the command.
 */
typedef int osd_client_credential(void *context, const struct osd_cdb *cdb,
				  struct osd_credential *credential);

/*
 * The unit's OSD SYSTEM ID, which needs no credential. Errors as of commands; -EOPNOTSUPP: not
 * told.
 */
int osd_client_system_id(struct osd_client *client, uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			 struct osd_client_error *error);

/*
 * From now on `give` (NULL: nobody) gives credentials for commands. Asks the target for the
 * session's security token. Errors as of commands; the client then goes on as before.
 */
int osd_client_secure(struct osd_client *client, osd_client_credential *give, void *context,
		      struct osd_client_error *error);

#endif
