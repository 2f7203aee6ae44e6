/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads what `status` answers. */
#include "daemon/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t facts_number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

const char *facts_text(const json_t *object, const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value ? value : "";
}

bool facts_is_known(const json_t *unit)
{
	return unit && !json_object_get(unit, "trouble");
}

bool facts_is_of_device(const json_t *status, const json_t *unit)
{
	const json_t *units = json_object_get(status, "units");

	for (size_t i = 0; facts_is_known(unit) && i < json_array_size(units); i++) {
		const json_t *each = json_array_get(units, i);

		if (facts_is_known(each) &&
		    !strcmp(facts_text(each, "image"), facts_text(unit, "image")))
			return each == unit;
	}
	return false;
}

void facts_device_name(const json_t *unit, char *name, size_t bytes)
{
	const char *device = facts_text(unit, "device");

	if (device[0])
		snprintf(name, bytes, "%s", device);
	else
		snprintf(name, bytes, "lun%" PRIu64, facts_number(unit, "lun"));
}

bool facts_latency(const json_t *unit, const char *name, struct latency *latency)
{
	const char *text = facts_text(unit, name);
	char *end;

	latency->sum_us = strtoull(text, &end, 10);
	for (int class = 0; class < LATENCY_CLASSES; class ++) {
		if (*end != ' ')
			return false;
		latency->count[class] = strtoull(end, &end, 10);
	}
	return *end == '\0';
}
