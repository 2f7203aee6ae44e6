/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What takes the space of the devices and where, and their newest versions, for the status page and
 * the metrics. The module looks for that at pages of flash, so it is asked now and then only.
 */
#ifndef MUNINN_DAEMON_FLASH_MAP_H
#define MUNINN_DAEMON_FLASH_MAP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct server;

#define FLASH_MAP_LASTS_MS 600000 /* where there is no newer one */

struct flash_maps {
	json_t *known; /* by image: { "asked_ms", "answered_ms", "map" } */
};

/*
 * Adds to an answer of `status` what is known of each device, as "map" of the unit that stands for
 * it (facts.h). Asks first for some of what is missing or old, if it may.
 */
void flash_maps_add(struct flash_maps *maps, struct server *server, json_t *status, bool may_ask);
void flash_maps_end(struct flash_maps *maps);

/*
 * The module's answer (module/questions.h) as an object: numbers, "stretches": an array of arrays
 * of numbers, "versions": objects.
 */
json_t *flash_map_read(const char *answer);

#endif
