/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The administration socket: ADMIN_SOCKET in the run directory, where muninnctl asks the service on
 * its own host. A connection is one request and one answer: a JSON object each, on one line. Who
 * may ask is root, the service's own user, and members of admin_group; the kernel says who it is.
 *
 * Everything is bounded: connections, the bytes of a request, the time until it has come and until
 * the answer is taken. Who is not allowed takes no place. One request after the other is carried
 * out (admin_verbs.h).
 */
#ifndef MUNINN_DAEMON_ADMIN_H
#define MUNINN_DAEMON_ADMIN_H

#include <stdint.h>

#include "common/error.h"

#define ADMIN_SOCKET "admin"

struct admin;
struct server;

/*
 * Begins to listen; requests are carried out on `server`, whose signals wake admin_fd too. -errno
 * with a sentence. The current directory is the run directory.
 */
int admin_open(struct server *server, struct admin **admin, struct error_text *error);
/* NULL: nothing happens. */
void admin_close(struct admin *admin);

/* Lets members of admin_group connect, or nobody but root and the service. */
struct config;
int admin_open_to_group(const struct config *config);

/* Readable: there is something to do, or one of the server's signals has come. */
int admin_fd(const struct admin *admin);
/* After how long admin_serve wants to be called in any case: somebody is too slow. */
int64_t admin_wait_ms(const struct admin *admin);
/*
 * Does what is to be done, without waiting for who asks. Carries out one request at most, so that
 * the caller can look after tgtd between two.
 */
void admin_serve(struct admin *admin);

#endif
