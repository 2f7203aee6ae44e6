/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Asks for maps of devices, and keeps them for a while. */
#include "daemon/flash_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/facts.h"
#include "daemon/server.h"
#include "daemon/tgt_control.h"
#include "daemon/units.h"

#define ASK_AGAIN_MS 60000 /* a look costs some reads of flash */
#define ASK_MS       2000  /* a device that is busy for longer holds up nobody */
#define ASK_ALL_MS   500   /* behind that the other devices have to wait for the next time */
#define NAME_BYTES   128

/* ---- reading an answer ---- */

/* Only whole lines count. */
static void read_stretch(json_t *map, const char *line)
{
	uint64_t value[5];

	if (sscanf(line, "stretch %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
		   &value[0], &value[1], &value[2], &value[3], &value[4]) == 5)
		json_array_append_new(json_object_get(map, "stretches"),
				      json_pack("[I,I,I,I,I]", (json_int_t)value[0],
						(json_int_t)value[1], (json_int_t)value[2],
						(json_int_t)value[3], (json_int_t)value[4]));
}

static void read_version(json_t *map, const char *line)
{
	uint64_t partition, version, time_ms, written, used;
	char name[NAME_BYTES];
	int length = 0;
	json_t *text;

	if (sscanf(line, "version %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%n",
		   &partition, &version, &time_ms, &written, &used, &length) != 5)
		return;
	snprintf(name, sizeof(name), "%s", line[length] ? line + length + 1 : "");
	text = json_string(name);
	if (!text) {
		tgt_make_plain(name);
		text = json_string(name);
	}
	json_array_append_new(json_object_get(map, "versions"),
			      json_pack("{s:I,s:I,s:I,s:I,s:I,s:o}", "partition",
					(json_int_t)partition, "version", (json_int_t)version,
					"time_ms", (json_int_t)time_ms, "written_bytes",
					(json_int_t)written, "used_bytes", (json_int_t)used, "name",
					text));
}

static void read_number(json_t *map, const char *line)
{
	char name[64];
	uint64_t value;

	if (sscanf(line, "%63s %" SCNu64, name, &value) == 2)
		json_object_set_new(map, name, json_integer((json_int_t)value));
}

json_t *flash_map_read(const char *answer)
{
	json_t *map = json_pack("{s:[],s:[]}", "stretches", "versions");
	char *copy = strdup(answer), *rest = copy, *line;

	while (copy && (line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "stretch ", 8))
			read_stretch(map, line);
		else if (!strncmp(line, "version ", 8))
			read_version(map, line);
		else
			read_number(map, line);
	}
	free(copy);
	return map;
}

/* ---- asking ---- */

/* What is known stays for a while where there is no answer. */
static void ask(struct flash_maps *maps, struct server *server, const json_t *unit)
{
	const char *image = facts_text(unit, "image");
	json_t *known = json_object_get(maps->known, image), *map = NULL;
	int answer_ms = server->tgtd.answer_ms, refusal, result;
	int64_t answered_ms = (int64_t)facts_number(known, "answered_ms");
	struct error_text error;
	char *answer = NULL;

	if (answer_ms > ASK_MS)
		server->tgtd.answer_ms = ASK_MS;
	result = tgt_lun_ask(&server->tgtd, (unsigned int)facts_number(unit, "lun"), "map", &answer,
			     &refusal, &error);
	server->tgtd.answer_ms = answer_ms;
	if (!result) {
		map = flash_map_read(answer);
		answered_ms = clock_ms();
	} else {
		map = json_incref(json_object_get(known, "map"));
	}
	free(answer);
	json_object_set_new(maps->known, image,
			    json_pack("{s:I,s:I,s:o*}", "asked_ms", (json_int_t)clock_ms(),
				      "answered_ms", (json_int_t)answered_ms, "map", map));
}

static bool is_old(const json_t *known)
{
	return !known || clock_ms() - (int64_t)facts_number(known, "asked_ms") >= ASK_AGAIN_MS;
}

/* NULL: none that still counts. */
static json_t *map_of(const json_t *known)
{
	if (clock_ms() - (int64_t)facts_number(known, "answered_ms") >= FLASH_MAP_LASTS_MS)
		return NULL;
	return json_object_get(known, "map");
}

/* Of devices that are not served any more nothing is known. */
static void forget_others(struct flash_maps *maps, const json_t *units)
{
	json_t *kept = json_object();

	for (size_t i = 0; i < json_array_size(units); i++) {
		const char *image = facts_text(json_array_get(units, i), "image");
		json_t *known = json_object_get(maps->known, image);

		if (known)
			json_object_set(kept, image, known);
	}
	json_decref(maps->known);
	maps->known = kept;
}

/* Where nobody but the administrator merges, writes do not get the space of what is old. */
static bool gives_way(const struct server *server, const json_t *unit)
{
	const struct lun_config *lun = units_find(server, (unsigned int)facts_number(unit, "lun"));

	return !lun || !lun->options.engine.merge_manual;
}

/* For the metrics, beside what the unit has told itself. */
static void add_numbers(const struct server *server, json_t *unit, const json_t *map)
{
	static const char *const names[] = { "live_bytes", "kept_bytes", "history_bytes",
					     "reclaimable_bytes", "device_versions" };
	uint64_t used = facts_number(unit, "used_bytes");
	uint64_t capacity = facts_number(unit, "capacity_bytes"), goes = 0;

	if (!json_object_get(map, "live_bytes"))
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		json_object_set(unit, names[i], json_object_get(map, names[i]));
	json_object_set_new(unit, "gives_way", json_boolean(gives_way(server, unit)));
	if (gives_way(server, unit))
		goes = facts_number(map, "history_bytes") + facts_number(map, "reclaimable_bytes");
	used -= goes < used ? goes : used;
	json_object_set_new(unit, "available_bytes",
			    json_integer((json_int_t)(capacity > used ? capacity - used : 0)));
}

void flash_maps_add(struct flash_maps *maps, struct server *server, json_t *status, bool may_ask)
{
	json_t *units = json_object_get(status, "units"), *unit;
	int64_t began_ms = clock_ms();

	forget_others(maps, units);
	for (size_t i = 0; (unit = json_array_get(units, i)); i++) {
		const char *image = facts_text(unit, "image");
		json_t *map;

		if (!facts_is_of_device(status, unit))
			continue;
		if (may_ask && is_old(json_object_get(maps->known, image)) &&
		    server_tgtd_runs(server) && clock_ms() - began_ms < ASK_ALL_MS)
			ask(maps, server, unit);
		map = map_of(json_object_get(maps->known, image));
		if (map)
			json_object_set(unit, "map", map);
		add_numbers(server, unit, map);
	}
}

void flash_maps_end(struct flash_maps *maps)
{
	json_decref(maps->known);
	maps->known = NULL;
}
