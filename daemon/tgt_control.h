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

/* Targets have numbers from 1 to this. */
#define TGT_TARGET_ID_MAX 255
/* In the place of a target: what counts for the discovery of targets. */
#define TGT_DISCOVERY UINT32_MAX

#define TGT_SESSION_NAME_BYTES    224
#define TGT_SESSION_ADDRESS_BYTES 64

/* Waits until tgtd answers, at most `timeout_ms`. */
int tgt_wait_ready(struct tgtd *tgtd, int timeout_ms, struct error_text *error);

/* `listens`: tgtd listens on `portal` (ADDRESS:PORT, IPv6 in brackets). */
int tgt_portal_listens(struct tgtd *tgtd, const char *portal, bool *listens,
		       struct error_text *error);
int tgt_portal_close(struct tgtd *tgtd, const char *portal, struct error_text *error);

int tgt_target_create(struct tgtd *tgtd, unsigned int target, const char *name,
		      struct error_text *error);

/*
 * Sets what the target offers in negotiations of new sessions: "KEY=VALUE" as in RFC 3720
 * chapter 12.
 */
int tgt_target_offer(struct tgtd *tgtd, unsigned int target, const char *parameter,
		     struct error_text *error);

/*
 * Adds a logical unit to a target; its number is no other one's on any target. Later requests about
 * it go to that target. No comma in `image` and `options`.
 */
int tgt_lun_create(struct tgtd *tgtd, unsigned int target, unsigned int number,
		   const struct unit_type *type, const char *image, const char *options,
		   struct error_text *error);

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
 * Lets the unit's module begin a backup of its device into files, which stay the caller's
 * (daemon/module/backup.h). As tgt_lun_ask.
 */
int tgt_lun_back_up(struct tgtd *tgtd, unsigned int number, const int *fds, int count, int *refusal,
		    struct error_text *error);

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

/*
 * Before one of these, no initiator may log in to the target. It is as good if the entry is there
 * already, and below if it is not.
 */
int tgt_allow_address(struct tgtd *tgtd, unsigned int target, const char *address,
		      struct error_text *error);
int tgt_allow_name(struct tgtd *tgtd, unsigned int target, const char *name,
		   struct error_text *error);
/* No entry any more. Sessions that are logged in stay. */
int tgt_disallow_address(struct tgtd *tgtd, unsigned int target, const char *address,
			 struct error_text *error);
int tgt_disallow_name(struct tgtd *tgtd, unsigned int target, const char *name,
		      struct error_text *error);

/* A CHAP account, which nothing is bound to yet. It is as good if the user is there already. */
int tgt_account_create(struct tgtd *tgtd, const char *user, const char *secret,
		       struct error_text *error);

/*
 * From now on initiators have to know an account of the target, of which this is one; or, outgoing,
 * the target proves that it does. `target`: or TGT_DISCOVERY. The former is as good if it is so
 * already.
 */
int tgt_account_bind(struct tgtd *tgtd, unsigned int target, const char *user, bool outgoing,
		     struct error_text *error);

/* The account is there no more, nor bound to anything. */
int tgt_account_delete(struct tgtd *tgtd, const char *user, struct error_text *error);

/* All users; *text is to be freed, and has one on each line, behind blanks. */
int tgt_accounts(struct tgtd *tgtd, char **text, struct error_text *error);

/* A connection of an initiator; there is one to a session. */
struct tgt_session {
	uint64_t number; /* tgtd's, 16 bits, which are used again */
	uint32_t connection;
	unsigned int target;
	char initiator[TGT_SESSION_NAME_BYTES];
	char address[TGT_SESSION_ADDRESS_BYTES]; /* numeric */
};

/*
 * Initiators choose texts: in the place of what is not printable ASCII a question mark, so that it
 * gets neither into JSON nor onto a terminal. Done with those of sessions already.
 */
void tgt_make_plain(char *text);

/* Those of a target, at most `capacity` of them; *count may be more. */
int tgt_sessions(struct tgtd *tgtd, unsigned int target, struct tgt_session *sessions,
		 size_t capacity, size_t *count, struct error_text *error);

/* Ends a session; the initiator may log in again. It is as good if it has gone meanwhile. */
int tgt_session_close(struct tgtd *tgtd, const struct tgt_session *session,
		      struct error_text *error);

/* Ends all connections of initiators to a target. */
int tgt_connections_close(struct tgtd *tgtd, unsigned int target, struct error_text *error);

/*
 * Removes the target with its units, which closes their images. TGT_BUSY while commands are active.
 */
int tgt_target_delete(struct tgtd *tgtd, unsigned int target, struct error_text *error);

/* Makes tgtd end, after the targets are gone. */
int tgt_shutdown(struct tgtd *tgtd, struct error_text *error);

#endif
