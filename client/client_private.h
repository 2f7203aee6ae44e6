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
	uint64_t isid;
	bool subscribed;                        /* to the features of EXECUTE */
	osd_client_credential *give_credential; /* NULL: commands are not signed */
	void *credential_context;
	uint8_t security_token[OSD_SECURITY_TOKEN_BYTES];
	bool (*stop)(void); /* NULL: nobody stops it */
};

/* Does somebody want that no more commands begin? For work between them. */
bool client_is_stopped(const struct osd_client *client);

/* osd_client_inquiry, as an ORDERED command or a SIMPLE one. */
int client_inquiry(struct osd_client *client, bool ordered, struct osd_inquiry_data *inquiry,
		   struct osd_client_error *error);

/* Why osd_client_submit has refused a command; returns `result`. */
int client_not_submitted(const struct osd_client *client, int result, const char *what,
			 struct osd_client_error *error);

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
 * Runs the command and, if `value` is not NULL, gets a number of the current command page with it.
 */
int request_run_for_number(struct osd_client *client, struct osd_request *request, uint32_t number,
			   uint64_t *value, struct osd_client_error *error);
/* osd_request_extend for one further object. `error` says what goes wrong. */
int request_extend_by(struct osd_client *client, struct osd_request *request,
		      const struct osd_cdb *other, uint8_t *segment, size_t capacity,
		      struct osd_client_error *error);
/* For a command that was not sent: frees what request_prepare has made, and wipes the keys. */
void request_release(struct osd_request *request);

/*
 * Turns what the session says of a finished command into request->error and request->received.
 * `session` may be NULL if the session lives; otherwise its sentence explains results that are the
 * session's.
 */
void outcome_decode(struct osd_request *request, const struct session *session);

/* ---- security.c ---- */

/*
 * Finds the credential for a command, whose action and address are in the CDB, and puts its
 * capability there.
 */
int security_begin(const struct osd_client *client, struct osd_request *request);
/*
 * Signs the command as it is laid out, with a fresh nonce: once, and again before each repetition.
 * -ENOMEM.
 */
int security_sign(const struct osd_client *client, struct osd_request *request);
/*
 * A command does not always show whether its object is a collection. If the refused command was
 * signed for a user object, gives it a capability for a collection, once. True: sign it and send it
 * again.
 */
bool security_retype(const struct osd_client *client, struct osd_request *request);
/* Wipes the keys of a command that has ended or was never sent. Nothing can sign it again then. */
void security_forget(struct osd_request *request);
/*
 * Verifies the answer that outcome_decode has decoded, and removes what belongs to security from
 * it. If something is wrong, that becomes request->error.
 */
void security_verify(struct osd_request *request);

/* Copies the outcome to the caller of a synchronous call; returns the result. */
int outcome_give(const struct osd_client_error *outcome, struct osd_client_error *error);
/* Does an error of a command on an object tell of that object only? It is gone, or can't be read.
 */
bool outcome_concerns_object(const struct osd_client_error *error);
/*
 * For errors that belong to no command; the second for those of local files and memory. Both return
 * `result`.
 */
int outcome_set(struct osd_client_error *error, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int outcome_set_local(struct osd_client_error *error, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
