/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the parts of the OSD client share. */
#ifndef MUNINN_CLIENT_CLIENT_PRIVATE_H
#define MUNINN_CLIENT_CLIENT_PRIVATE_H

#include "client/osd_client.h"
#include "client/security.h"

struct osd_client {
	struct session *session;
	enum osd_version version;
	uint32_t queue_depth;
	bool subscribed;                        /* to the features of EXECUTE */
	osd_client_credential *give_credential; /* NULL: commands are not signed */
	void *credential_context;
	uint8_t security_token[OSD_SECURITY_TOKEN_BYTES];
};

/*
 * Lays out buffers and encodes and signs the CDB into request->task; allocates request->scratch.
 * -EINVAL, -ENOMEM, or why there is no credential.
 */
int request_prepare(struct osd_request *request, const struct osd_client *client);
/* What the command is about. */
enum osd_object_type request_object_type(const struct osd_cdb *cdb);
/* The retrieved attributes as they came, inside `done`. -ENODATA: none. */
int request_retrieved(const struct osd_request *request, const uint8_t **list, size_t *length);
/*
 * Runs the command and asks for a number of the current command page with it, if `value` is wanted.
 */
int request_run_for_number(struct osd_client *client, struct osd_request *request, uint32_t number,
			   uint64_t *value, struct osd_client_error *error);
/* osd_request_extend by the right to one further object; what goes wrong is in `error`. */
int request_extend_by(struct osd_client *client, struct osd_request *request,
		      const struct osd_cdb *other, uint8_t *segment, size_t capacity,
		      struct osd_client_error *error);
/* Frees what request_prepare has made, and wipes the keys, when the command was not sent. */
void request_release(struct osd_request *request);

/*
 * Turns what the session says of a finished command into request->error and request->received.
 * `session` may be NULL when it lives; otherwise its sentence is taken for results that are the
 * session's.
 */
void outcome_decode(struct osd_request *request, const struct session *session);

/* ---- security.c ---- */

/*
 * Finds the credential for a command, whose action and address are in the CDB; its capability goes
 * there.
 */
int security_begin(const struct osd_client *client, struct osd_request *request);
/*
 * Signs the command as it is laid out, with a fresh nonce: once, and again before it is repeated.
 * -ENOMEM.
 */
int security_sign(const struct osd_client *client, struct osd_request *request);
/*
 * Whether an object is a collection is not always to be seen in a command: if the one that was
 * refused was signed for a user object, it gets a capability for a collection, once, and is to be
 * signed and sent again.
 */
bool security_retype(const struct osd_client *client, struct osd_request *request);
/*
 * Wipes the keys of a command that is over, or was never sent: it has none left to be signed with
 * again.
 */
void security_forget(struct osd_request *request);
/*
 * Verifies the answer that outcome_decode has decoded, and takes what belongs to security off it.
 * What is wrong becomes request->error.
 */
void security_verify(struct osd_request *request);

/* Copies to the caller of a synchronous call; returns the result. */
int outcome_give(const struct osd_client_error *outcome, struct osd_client_error *error);
/*
 * For errors that are no command's; the second for those of local files and memory. Both return
 * `result`.
 */
int outcome_set(struct osd_client_error *error, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int outcome_set_local(struct osd_client_error *error, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
