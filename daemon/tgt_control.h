/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Requests to a running tgtd over its control socket: what `tgtadm` does, without secrets in the
 * process list.
 *
 * All return 0; TGT_REFUSED (tgtd said no) or TGT_BUSY (commands are active: try again) with a
 * sentence; or a negative errno with a sentence when tgtd did not answer (-ESRCH: it has ended;
 * -ETIMEDOUT: not within tgtd.answer_ms).
 */
#ifndef MUNINN_DAEMON_TGT_CONTROL_H
#define MUNINN_DAEMON_TGT_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/log.h"
#include "daemon/module/unit_type.h"
#include "daemon/tgtd.h"

enum { TGT_REFUSED = 1, TGT_BUSY = 2 };

/* There is one target, and this is its number. */
#define TGT_TARGET_ID 1

#define TGT_SESSION_NAME_BYTES    224
#define TGT_SESSION_ADDRESS_BYTES 64

/* Waits until tgtd answers, at most `timeout_ms`. */
int tgt_wait_ready(struct tgtd *tgtd, int timeout_ms, struct error_text *error);

/* `listens`: tgtd listens on `portal` (ADDRESS:PORT, IPv6 in brackets). */
int tgt_portal_listens(struct tgtd *tgtd, const char *portal, bool *listens,
		       struct error_text *error);
int tgt_portal_close(struct tgtd *tgtd, const char *portal, struct error_text *error);

int tgt_target_create(struct tgtd *tgtd, const char *name, struct error_text *error);

/*
 * Sets what the target offers in negotiations of new sessions: "KEY=VALUE" as in RFC 3720
 * chapter 12.
 */
int tgt_target_offer(struct tgtd *tgtd, const char *parameter, struct error_text *error);

/* Adds a logical unit. No comma in `image` and `options`. */
int tgt_lun_create(struct tgtd *tgtd, unsigned int number, const struct unit_type *type,
		   const char *image, const char *options, struct error_text *error);

/* Removes a logical unit, and closes its image. TGT_BUSY: commands of it are under way. */
int tgt_lun_delete(struct tgtd *tgtd, unsigned int number, struct error_text *error);

/*
 * Asks the unit's module for something that has an answer: daemon/module/questions.h. *answer is to
 * be freed; NULL if the result is not 0. TGT_REFUSED with the module's own sentence, and its -errno
 * in *refusal. Waits for the answer as long as tgtd.answer_ms.
 */
int tgt_lun_ask(struct tgtd *tgtd, unsigned int number, const char *question, char **answer,
		int *refusal, struct error_text *error);

/*
 * Makes what the unit has acknowledged stable, beside its commands. TGT_BUSY: this is under way, or
 * has just begun; call again.
 */
int tgt_lun_flush(struct tgtd *tgtd, unsigned int number, struct error_text *error);

/* The modules of all units log lines up to this level from now on; any unit takes the request. */
int tgt_lun_log(struct tgtd *tgtd, unsigned int number, enum log_level level,
		struct error_text *error);

/* TGT_BUSY: since the last call the unit has done nothing that shows that it is alive. */
int tgt_lun_probe(struct tgtd *tgtd, unsigned int number, struct error_text *error);

/* TGT_BUSY: commands of the unit are under way. */
int tgt_lun_is_idle(struct tgtd *tgtd, unsigned int number, struct error_text *error);

/* Before one of these, no initiator may log in to the target. */
int tgt_allow_address(struct tgtd *tgtd, const char *address, struct error_text *error);
int tgt_allow_name(struct tgtd *tgtd, const char *name, struct error_text *error);
/* No entry any more. Sessions that are logged in stay. */
int tgt_disallow_address(struct tgtd *tgtd, const char *address, struct error_text *error);
int tgt_disallow_name(struct tgtd *tgtd, const char *name, struct error_text *error);

/* Initiators have to know this CHAP account from now on. */
int tgt_require_account(struct tgtd *tgtd, const char *user, const char *secret,
			struct error_text *error);

/* The account is there no more. */
int tgt_forget_account(struct tgtd *tgtd, const char *user, struct error_text *error);

/* A connection of an initiator; there is one to a session. */
struct tgt_session {
	uint64_t number; /* tgtd's, 16 bits, which are used again */
	uint32_t connection;
	char initiator[TGT_SESSION_NAME_BYTES];
	char address[TGT_SESSION_ADDRESS_BYTES]; /* numeric */
};

/*
 * Initiators choose texts: in the place of what is not printable ASCII a question mark, so that it
 * gets neither into JSON nor onto a terminal. Done with those of sessions already.
 */
void tgt_make_plain(char *text);

/* At most `capacity` of them; *count may be more. */
int tgt_sessions(struct tgtd *tgtd, struct tgt_session *sessions, size_t capacity, size_t *count,
		 struct error_text *error);

/* Ends a session; the initiator may log in again. It is as good if it has gone meanwhile. */
int tgt_session_close(struct tgtd *tgtd, const struct tgt_session *session,
		      struct error_text *error);

/* Ends all connections of initiators. */
int tgt_connections_close(struct tgtd *tgtd, struct error_text *error);

/*
 * Removes the target with its units, which closes their images. TGT_BUSY while commands are active.
 */
int tgt_target_delete(struct tgtd *tgtd, struct error_text *error);

/* Makes tgtd end, after the target is gone. */
int tgt_shutdown(struct tgtd *tgtd, struct error_text *error);

#endif
