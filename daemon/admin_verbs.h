/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What administrators can ask of the service: {"do": VERB, ...} in, {"ok": {...}} or
 * {"error": {"kind": ..., "message": ...}} out. The verbs are those of muninnctl; kinds are the
 * names of its exit codes.
 */
#ifndef MUNINN_DAEMON_ADMIN_VERBS_H
#define MUNINN_DAEMON_ADMIN_VERBS_H

#include <jansson.h>
#include <stdbool.h>

#include "daemon/server.h"

/* Who asks. */
struct admin_caller {
	const char *who; /* for the log */
	bool is_owner;   /* root, or the service's own user: he can read the images anyway */
	const int *fds;  /* that came with the request */
	int fd_count;
};

/*
 * Carries out a request, and returns the answer; NULL: no memory. `request` NULL: it was no JSON.
 */
json_t *admin_carry_out(struct server *server, const json_t *request,
			const struct admin_caller *caller);

/* ---- between the files of verbs ---- */

struct admin_request {
	struct server *server;
	const json_t *fields;
	const struct admin_caller *caller;
	json_t *ok; /* what the verb answers is put here */
	struct error_text error;
};

/* Returns 0, or -errno with a sentence, whose kind is admin_kind's. */
typedef int admin_verb(struct admin_request *request);

admin_verb admin_lun_add, admin_lun_rm, admin_lun_resize;
admin_verb admin_volume_ls, admin_volume_create, admin_volume_rm, admin_volume_resize,
	admin_volume_expose;
admin_verb admin_device_backup, admin_device_grow;

/* A number of a request. -EINVAL with a sentence: it is missing, or no number. */
int admin_number(struct admin_request *request, const char *name, uint64_t *number);
/* A text; NULL: it is missing. */
const char *admin_text(const struct admin_request *request, const char *name);
bool admin_flag(const struct admin_request *request, const char *name);

/* Turns the result of a request to tgtd or to the module into -errno. */
int admin_result(int result, int refusal);
/* Asks a unit (tgt_lun_ask); *answer is to be freed. -errno with a sentence. */
int admin_ask(struct admin_request *request, unsigned int lun, const char *question, char **answer);

/*
 * -EBUSY with a sentence that names them, if sessions use the unit; -errno. A session uses a unit
 * from its first command to it until it logs out.
 */
int admin_check_unused(struct server *server, unsigned int lun, struct error_text *error);

/* How many sessions use the unit. -errno with a sentence. */
int admin_count_users(struct server *server, unsigned int lun, size_t *count,
		      struct error_text *error);

/* Logs a change, and who has made it. */
void admin_log(const struct admin_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
