/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Arguments behind the URL. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/ctl.h"
#include "client/ctl/places.h"

int ctl_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	struct ctl_place place;
	int code = ctl_place(ctl, index, &place);

	if (code == CTL_OK)
		code = ctl_find_file(ctl, &place);
	*address = place.address;
	return code;
}

int ctl_object_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && !address->object)
		return ctl_fail(ctl, CTL_USAGE,
				"%s needs the address of an object, PID/OID; '%s' names none",
				ctl->verb,
				index < ctl->argument_count ? ctl->arguments[index] : "");
	return code;
}

int ctl_partition_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && (!address->partition || address->object))
		return ctl_fail(ctl, CTL_USAGE, "%s needs a partition, PID; '%s' is %s", ctl->verb,
				index < ctl->argument_count ? ctl->arguments[index] : "",
				address->object ? "an object" : "the device");
	return code;
}

int ctl_present(const struct ctl *ctl, int code, struct osd_client_address address)
{
	if (code == CTL_OK && address.version)
		return ctl_fail(
			ctl, CTL_DENIED,
			"%s: the past can only be read; leave @MOMENT out, or `rollback` to "
			"it",
			ctl->verb);
	return code;
}

int ctl_partition_to_change(struct ctl *ctl, struct osd_client_address *address)
{
	int code = ctl_partition_address(ctl, 0, address);

	code = ctl_present(ctl, code, *address);
	return code == CTL_OK ? ctl_connect(ctl) : code;
}

/* Does this code of one argument end the work on all of them? */
static bool ends_all(enum ctl_exit code)
{
	return code == CTL_CONNECTION || code == CTL_LOCAL || code == CTL_INTERRUPTED;
}

/* Marks those that are not there. Without a connection nobody can have said so. */
static int check_objects(struct ctl *ctl, int first, ctl_object_call *check, void *context,
			 bool *missing)
{
	struct osd_client_address address;

	for (int i = first; i < ctl->argument_count; i++) {
		int code = ctl_object_address(ctl, i, &address);

		if (code == CTL_OK && check)
			code = check(ctl, i, address, context);
		missing[i] = code == CTL_NOT_FOUND && ctl->client;
		if (code != CTL_OK && !missing[i])
			return code;
	}
	return CTL_OK;
}

int ctl_for_each_object(struct ctl *ctl, int first, ctl_object_call *check, ctl_object_call *act,
			void *context, int *done)
{
	bool *missing = calloc((size_t)ctl->argument_count + 1, sizeof(*missing)), failed = false;
	struct osd_client_address address;
	int code;

	*done = 0;
	if (!missing)
		return ctl_fail(ctl, CTL_LOCAL, "%s: out of memory", ctl->verb);
	code = check_objects(ctl, first, check, context, missing);
	if (code == CTL_OK)
		code = ctl_connect(ctl);
	for (int i = first; i < ctl->argument_count && code == CTL_OK; i++) {
		int result = CTL_NOT_FOUND;

		if (!missing[i])
			result = ctl_object_address(ctl, i, &address);
		if (result == CTL_OK)
			result = act(ctl, i, address, context);
		*done += result == CTL_OK;
		failed |= result != CTL_OK;
		if (ends_all(result) || ctl->argument_count == first + 1)
			code = result;
	}
	free(missing);
	return code == CTL_OK && failed ? CTL_FAILED : code;
}

int ctl_scope_address(struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && address->version)
		return ctl_fail(ctl, CTL_USAGE, "%s is about history as a whole; leave @MOMENT out",
				ctl->verb);
	if (code == CTL_OK && address->object)
		return ctl_fail(
			ctl, CTL_USAGE,
			"%s needs a partition, PID, or 0 for the whole device; '%s' is neither",
			ctl->verb, ctl->arguments[index]);
	return code;
}

int ctl_parse_number(const char *text, uint64_t limit, uint64_t *value)
{
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	/* strtoull would take blanks and a sign. */
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &end, hexadecimal ? 16 : 10);
	return errno || *end || *value > limit ? -EINVAL : 0;
}

int ctl_parse_size(const char *text, uint64_t *value)
{
	static const char units[] = "KMGT";
	char digits[32];
	size_t length = strlen(text);
	const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
	unsigned shift = unit && *unit ? 10 * (unsigned)(unit - units + 1) : 0;

	length -= shift > 0;
	if (length == 0 || length >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (ctl_parse_number(digits, UINT64_MAX >> shift, value) < 0)
		return -EINVAL;
	*value <<= shift;
	return 0;
}

int ctl_size(const struct ctl *ctl, int index, const char *what, uint64_t *value)
{
	if (ctl_parse_size(ctl->arguments[index], value) < 0)
		return ctl_fail(
			ctl, CTL_USAGE,
			"%s '%s' is no number of bytes; for instance 4096, 0x1000, 64K, 10M, 1G",
			what, ctl->arguments[index]);
	return CTL_OK;
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;

	return found ? (int)(found - digits) : -1;
}

int ctl_parse_hex(const char *text, uint8_t *bytes, size_t *length)
{
	size_t digits = strlen(text);

	if (digits % 2)
		return -EINVAL;
	for (size_t i = 0; i < digits; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		bytes[i / 2] = (uint8_t)(high << 4 | low);
	}
	*length = digits / 2;
	return 0;
}
