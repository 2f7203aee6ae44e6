/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the service tells Prometheus, in its text format: made of what `status` answers
 * (admin_verbs.h), by one table of names.
 */
#ifndef MUNINN_DAEMON_METRICS_H
#define MUNINN_DAEMON_METRICS_H

#include <jansson.h>
#include <stdint.h>

#include "daemon/config.h"

/* The text, to be freed. NULL: no memory. `status` NULL: there is no answer. */
char *metrics_text(const json_t *status);

/*
 * Whether a unit of an answer stands for its device: it is the first one that has told of it. What
 * is of the device is told for it.
 */
bool metrics_is_of_device(const json_t *status, const json_t *unit);
/* How a unit's device is called. */
void metrics_device_name(const json_t *unit, char *name, size_t bytes);

#endif
