/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Prints attributes of an object under their names, as text and as JSON. */
#include "client/ctl/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/manifest.h"
#include "common/bytes.h"

#define FACTS_MAX       16U
#define VALUE_BYTES_MAX 256U

struct printing {
	const struct fact *facts;
	size_t count;
	json_t *object; /* NULL: print */
};

static uint64_t number_of(const struct osd_attribute *attribute)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < attribute->present; i++)
		value = value << 8 | attribute->value[i];
	return value;
}

/* Up to the first NUL, without blanks at the end; NULL when out of memory. */
static char *text_of(const struct osd_attribute *attribute)
{
	char *text = strndup((const char *)attribute->value, attribute->present);
	size_t length = text ? strlen(text) : 0;

	while (length > 0 && text[length - 1] == ' ')
		text[--length] = '\0';
	return text;
}

static void hex_of(const struct osd_attribute *attribute, char hex[2 * VALUE_BYTES_MAX + 1])
{
	manifest_hex(attribute->value, min_u64(attribute->present, VALUE_BYTES_MAX), hex);
}

static void add_json(json_t *object, const struct fact *fact, const struct osd_attribute *attribute)
{
	char hex[2 * VALUE_BYTES_MAX + 1], time[CTL_TIME_TEXT], *text;
	json_t *value = NULL;

	switch (fact->kind) {
	case FACT_TEXT:
		text = text_of(attribute);
		if (text)
			ctl_json_with_text(object, fact->name, text);
		free(text);
		return;
	case FACT_HEX:
		hex_of(attribute, hex);
		value = json_string(hex);
		break;
	case FACT_SIZE:
	case FACT_NUMBER:
		value = json_integer((json_int_t)min_u64(number_of(attribute), INT64_MAX));
		break;
	case FACT_TIME:
		value = json_string(ctl_format_time(number_of(attribute), time));
		break;
	}
	json_object_set_new(object, fact->name, value);
}

static void print(const struct fact *fact, const struct osd_attribute *attribute)
{
	char hex[2 * VALUE_BYTES_MAX + 1], size[CTL_SIZE_TEXT], time[CTL_TIME_TEXT], *text;

	printf("%-20s ", fact->name);
	switch (fact->kind) {
	case FACT_TEXT:
		text = text_of(attribute);
		ctl_print_text(text ? text : "");
		free(text);
		break;
	case FACT_HEX:
		hex_of(attribute, hex);
		printf("%s", hex);
		break;
	case FACT_SIZE:
		printf("%" PRIu64 " (%s)", number_of(attribute),
		       ctl_format_size(number_of(attribute), size));
		break;
	case FACT_NUMBER:
		printf("%" PRIu64, number_of(attribute));
		break;
	case FACT_TIME:
		printf("%s", ctl_format_time(number_of(attribute), time));
		break;
	}
	putchar('\n');
}

static int take(void *context, const struct osd_attribute *attribute)
{
	struct printing *printing = context;

	/* Leaves out undefined attributes. */
	if (attribute->length == 0 || attribute->present < attribute->length)
		return 0;
	for (size_t i = 0; i < printing->count; i++) {
		if (printing->facts[i].number != attribute->number)
			continue;
		if (printing->object)
			add_json(printing->object, &printing->facts[i], attribute);
		else
			print(&printing->facts[i], attribute);
	}
	return 0;
}

int facts_print(const struct ctl *ctl, struct osd_client_address address, uint32_t page,
		const struct fact *facts, size_t count, json_t *object)
{
	struct osd_client_value gets[FACTS_MAX] = { 0 };
	json_t *own = ctl->options->json && !object ? json_object() : NULL;
	struct printing printing = { .facts = facts,
				     .count = count,
				     .object = object ? object : own };
	struct osd_client_error error;

	for (size_t i = 0; i < count; i++)
		gets[i] = (struct osd_client_value){
			.page = page,
			.number = facts[i].number,
			.length = VALUE_BYTES_MAX,
		};
	if (osd_client_get_attributes(ctl->client, address, gets, count, take, &printing, &error) <
	    0) {
		json_decref(own);
		return ctl_fail_command(ctl, &error);
	}
	if (own)
		return ctl_print_json(stdout, own);
	return object ? CTL_OK : ctl_end_output(ctl);
}
