/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Asks the service on this host over its administration socket (daemon/admin.h). */
#ifndef MUNINN_CLIENT_CTL_SERVICE_H
#define MUNINN_CLIENT_CTL_SERVICE_H

#include "client/ctl/ctl.h"

#define SERVICE_SOCKET "/run/muninn/admin"

/*
 * Sends {"do": ctl->verb, ...}; drops `request`, which has the other fields. CTL_OK, and *answer is
 * to be dropped; otherwise a code, with a message. CTL_INTERRUPTED, without one: by a signal that
 * the caller handles.
 */
int service_ask(struct ctl *ctl, json_t *request, json_t **answer);

/* The same with `count` open files that the service gets; they stay the caller's, too. */
int service_ask_handing(struct ctl *ctl, json_t *request, const int *fds, int count,
			json_t **answer);

/* Members of an answer; "" and 0 if they are missing. */
const char *service_text(const json_t *object, const char *name);
/* The `index`-th item of a list; NULL: there is none. */
const json_t *service_item(const json_t *object, const char *name, size_t index);
uint64_t service_number(const json_t *object, const char *name);

/* Of a unit that was added: where it is, and what keeps it over a restart. Drops it. */
int service_added(const struct ctl *ctl, json_t *answer);

/* An answer that has no lines, but for --json. Drops it. As ctl_print_json. */
int service_end(const struct ctl *ctl, json_t *answer);

#endif
