/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* attr get, attr set, attr ls. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/ctl.h"
#include "client/manifest.h"
#include "common/bytes.h"

/* Space for all attributes of an object. */
#define LIST_BYTES (1U << 20)
/* Bytes of a value that `attr ls` shows. */
#define SHOWN_BYTES 48U

static int number_argument(struct ctl *ctl, int index, const char *what, uint32_t *number)
{
	uint64_t value;

	if (ctl_parse_number(ctl->arguments[index], UINT32_MAX, &value) < 0)
		return ctl_fail(ctl, CTL_USAGE,
				"attribute %s '%s' is no number from 0 to 0xffffffff", what,
				ctl->arguments[index]);
	*number = (uint32_t)value;
	return CTL_OK;
}

/* ADDRESS PAGE NUMBER */
static int attribute_arguments(struct ctl *ctl, struct osd_client_address *address, uint32_t *page,
			       uint32_t *number)
{
	int code = ctl_address(ctl, 0, address);

	if (code == CTL_OK)
		code = number_argument(ctl, 1, "page", page);
	return code == CTL_OK ? number_argument(ctl, 2, "number", number) : code;
}

/* ---- values ---- */

static bool is_text(const uint8_t *value, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (value[i] < 0x20 || value[i] > 0x7e)
			return false;
	return length > 0;
}

static json_t *json_attribute(uint32_t page, uint32_t number, const uint8_t *value,
			      uint32_t present, uint32_t length)
{
	char *hex = malloc(2 * (size_t)present + 1);
	json_t *object;

	if (!hex)
		return NULL;
	manifest_hex(value, present, hex);
	object = json_pack("{s:s,s:o,s:o,s:I}", "hex", hex, "page", ctl_json_id(page), "number",
			   ctl_json_id(number), "length", (json_int_t)length);
	if (object && is_text(value, present))
		json_object_set_new(object, "text", json_stringn((const char *)value, present));
	free(hex);
	return object;
}

static void print_value(const uint8_t *value, uint32_t present)
{
	if (is_text(value, present)) {
		printf("%.*s", (int)present, (const char *)value);
		return;
	}
	for (uint32_t i = 0; i < present; i++)
		printf("%02x", value[i]);
}

/* ---- get ---- */

static int print_attribute(const struct ctl *ctl, uint32_t page, uint32_t number,
			   const uint8_t *value, uint32_t length)
{
	if (ctl->options->json)
		return ctl_print_json(stdout, json_attribute(page, number, value, length, length));
	if (ctl->options->raw) {
		fwrite(value, 1, length, stdout);
	} else {
		print_value(value, length);
		putchar('\n');
	}
	return ctl_end_output(ctl);
}

int verb_attr_get(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	uint32_t page = 0, number = 0, length = 0;
	uint8_t *value;
	int code = attribute_arguments(ctl, &address, &page, &number);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	value = malloc(OSD_ATTRIBUTE_BYTES_MAX);
	if (!value)
		return ctl_fail(ctl, CTL_LOCAL, "out of memory");
	if (osd_client_get_attribute(ctl->client, address, page, number, value,
				     OSD_ATTRIBUTE_BYTES_MAX, &length, &error) < 0)
		code = ctl_fail_command(ctl, &error);
	else
		code = print_attribute(ctl, page, number, value, length);
	free(value);
	return code;
}

/* ---- set ---- */

struct value {
	uint8_t bytes[OSD_ATTRIBUTE_BYTES_MAX + 1];
	size_t length;
};

static int value_of_hex(const struct ctl *ctl, const char *text, struct value *value)
{
	size_t length = strlen(text);

	if (length % 2 || length / 2 > OSD_ATTRIBUTE_BYTES_MAX)
		return ctl_fail(ctl, CTL_USAGE,
				"--hex: '%.32s' is not an even number of digits, 131068 at most",
				text);
	if (ctl_parse_hex(text, value->bytes, &value->length) < 0)
		return ctl_fail(ctl, CTL_USAGE,
				"--hex: '%.32s' has something that is no hexadecimal digit", text);
	return CTL_OK;
}

static int value_of_file(const struct ctl *ctl, const char *name, struct value *value)
{
	FILE *file = fopen(name, "re");

	if (!file)
		return ctl_fail(ctl, CTL_LOCAL, "%s: %s", name, strerror(errno));
	value->length = fread(value->bytes, 1, sizeof(value->bytes), file);
	if (ferror(file)) {
		fclose(file);
		return ctl_fail(ctl, CTL_LOCAL, "%s can't be read", name);
	}
	fclose(file);
	if (value->length > OSD_ATTRIBUTE_BYTES_MAX)
		return ctl_fail(ctl, CTL_USAGE, "%s is longer than an attribute may be, %u bytes",
				name, OSD_ATTRIBUTE_BYTES_MAX);
	return CTL_OK;
}

static int take_value(const struct ctl *ctl, struct value *value)
{
	const struct ctl_options *options = ctl->options;
	const char *text = ctl->argument_count > 3 ? ctl->arguments[3] : NULL;
	uint64_t number;

	if (options->text + options->hexadecimal + options->number + options->remove +
		    (options->from_file != NULL) >
	    1)
		return ctl_fail(ctl, CTL_USAGE,
				"attr set: only one of --text, --hex, --number, --file and "
				"--remove");
	if ((options->remove || options->from_file) != (text == NULL))
		return ctl_fail(ctl, CTL_USAGE,
				"attr set: a VALUE is wanted, or --file or --remove instead of it");
	if (options->remove)
		return CTL_OK;
	if (options->from_file)
		return value_of_file(ctl, options->from_file, value);
	if (options->hexadecimal)
		return value_of_hex(ctl, text, value);
	if (options->number) {
		if (ctl_parse_size(text, &number) < 0)
			return ctl_fail(ctl, CTL_USAGE, "--number: '%s' is no number", text);
		put_be64(value->bytes, number);
		value->length = 8;
		return CTL_OK;
	}
	value->length = strlen(text);
	if (value->length > OSD_ATTRIBUTE_BYTES_MAX)
		return ctl_fail(ctl, CTL_USAGE, "attr set: the value is longer than %u bytes",
				OSD_ATTRIBUTE_BYTES_MAX);
	memcpy(value->bytes, text, value->length);
	return CTL_OK;
}

int verb_attr_set(struct ctl *ctl)
{
	struct osd_client_address address;
	struct osd_client_error error;
	struct osd_client_value set = { 0 };
	struct value *value;
	int code = attribute_arguments(ctl, &address, &set.page, &set.number);

	code = ctl_present(ctl, code, address);
	if (code != CTL_OK)
		return code;
	value = calloc(1, sizeof(*value));
	if (!value)
		return ctl_fail(ctl, CTL_LOCAL, "out of memory");
	code = take_value(ctl, value);
	/* On the wire, no bytes stand for an attribute that is undefined. */
	if (code == CTL_OK && value->length == 0 && !ctl->options->remove)
		code = ctl_fail(ctl, CTL_USAGE,
				"attr set: the value is empty, and an attribute can't be; --remove "
				"makes it undefined");
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK) {
		set.value = value->bytes;
		set.length = (uint32_t)value->length;
		if (osd_client_set_attributes(ctl->client, address, &set, 1, &error) < 0)
			code = ctl_fail_command(ctl, &error);
	}
	free(value);
	if (code == CTL_OK && ctl->options->json)
		return ctl_print_json(stdout,
				      json_pack("{s:o,s:o,s:I}", "page", ctl_json_id(set.page),
						"number", ctl_json_id(set.number), "length",
						(json_int_t)set.length));
	return code;
}

/* ---- ls ---- */

struct listing {
	json_t *array;
	bool cut;
};

#define TEXT_BYTES_MIN 4 /* so many characters, then zeros: taken for a text, not for a number */

/*
 * Names of pages are texts with zeros behind them: the length of the text. Otherwise that of the
 * whole value.
 */
static uint32_t without_zeros(const uint8_t *value, uint32_t length)
{
	uint32_t text = length;

	while (text > 0 && value[text - 1] == 0)
		text--;
	return text >= TEXT_BYTES_MIN && is_text(value, text) ? text : length;
}

static int take(void *context, const struct osd_attribute *attribute)
{
	struct listing *listing = context;
	uint32_t shown = (uint32_t)min_u64(attribute->present, SHOWN_BYTES);

	listing->cut = listing->cut || attribute->present < attribute->length;
	if (listing->array) {
		json_array_append_new(listing->array,
				      json_attribute(attribute->page, attribute->number,
						     attribute->value, attribute->present,
						     attribute->length));
		return 0;
	}
	printf("0x%08x 0x%08x %5u  ", attribute->page, attribute->number, attribute->length);
	print_value(attribute->value, without_zeros(attribute->value, shown));
	puts(shown < attribute->length ? "..." : "");
	return 0;
}

int verb_attr_ls(struct ctl *ctl)
{
	struct osd_client_value get = { .page = OSD_PAGE_ALL,
					.number = OSD_ATTRIBUTE_ALL,
					.length = LIST_BYTES };
	struct listing listing = { 0 };
	struct osd_client_address address;
	struct osd_client_error error;
	int code = ctl_address(ctl, 0, &address);

	if (code == CTL_OK && ctl->argument_count > 1)
		code = number_argument(ctl, 1, "page", &get.page);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	listing.array = ctl->options->json ? json_array() : NULL;
	if (osd_client_get_attributes(ctl->client, address, &get, 1, take, &listing, &error) < 0) {
		json_decref(listing.array);
		return ctl_fail_command(ctl, &error);
	}
	if (listing.cut)
		ctl_warn("there are more attributes than this list shows");
	return listing.array ? ctl_print_json(stdout, listing.array) : ctl_end_output(ctl);
}
