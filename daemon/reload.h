/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Takes up the configuration file anew while tgtd serves. All of it is checked first; a wrong file
 * changes nothing. What is wrong with devices that the reload does not touch is told, and refuses
 * nothing. Then units come and go, disks grow, access lists and CHAP accounts change, and what
 * counts for this process alone. The rest counts from the next start on.
 */
#ifndef MUNINN_DAEMON_RELOAD_H
#define MUNINN_DAEMON_RELOAD_H

#include <jansson.h>

#include "daemon/server.h"

/* Arrays of sentences. */
struct reload_report {
	json_t *done;    /* what has changed */
	json_t *left;    /* what could not be done, and why */
	json_t *restart; /* what needs a restart, or would make it fail */
};

/* With a sentence, and nothing has changed: -EINVAL, the file is wrong; -EIO, as this host is. */
int reload(struct server *server, struct reload_report *report, struct error_text *error);

#endif
