/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The status page: one HTML document that stands by itself, without scripts. */
#ifndef MUNINN_DAEMON_PAGE_H
#define MUNINN_DAEMON_PAGE_H

#include <jansson.h>

struct trend;

/*
 * The document, to be freed. NULL: no memory. `status` is an answer of `status` (admin_verbs.h)
 * with maps (flash_map.h) and, as "logins", the sessions of `session ls`; NULL: there is no answer.
 * `trend` may be NULL.
 */
char *page_text(const json_t *status, const struct trend *trend);

#endif
