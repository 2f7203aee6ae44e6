/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The status page: one HTML document without scripts, pictures or anything from elsewhere. */
#ifndef MUNINN_DAEMON_PAGE_H
#define MUNINN_DAEMON_PAGE_H

#include <jansson.h>

/* Made of an answer of `status` (NULL: there is none). To be freed. NULL: no memory. */
char *page_text(const json_t *status);

#endif
