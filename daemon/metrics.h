/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the service tells Prometheus, in its text format: made of what `status` answers
 * (admin_verbs.h), by one table of names.
 */
#ifndef MUNINN_DAEMON_METRICS_H
#define MUNINN_DAEMON_METRICS_H

#include <jansson.h>

/* The text, to be freed. NULL: no memory. `status` NULL: there is no answer. */
char *metrics_text(const json_t *status);

#endif
