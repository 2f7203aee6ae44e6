/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reads what `status` answers (admin_verbs.h). NULL for an object is allowed: then nothing is
 * known.
 */
#ifndef MUNINN_DAEMON_FACTS_H
#define MUNINN_DAEMON_FACTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/module/latency.h"

/* 0 and "" where it is not told. */
uint64_t facts_number(const json_t *object, const char *name);
const char *facts_text(const json_t *object, const char *name);

/* Has the unit answered? */
bool facts_is_known(const json_t *unit);

/*
 * Whether a unit of an answer stands for its device: it is the first one that has told of it. What
 * is of the device is told for it.
 */
bool facts_is_of_device(const json_t *status, const json_t *unit);
/* How a unit's device is called. */
void facts_device_name(const json_t *unit, char *name, size_t bytes);

/* How long a unit's commands took; `name`: latency_reads and so on. False: it is not told. */
bool facts_latency(const json_t *unit, const char *name, struct latency *latency);

#endif
