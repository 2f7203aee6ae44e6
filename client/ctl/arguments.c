/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Arguments behind the URL. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/ctl.h"

int ctl_address(const struct ctl *ctl, int index, struct osd_client_address *address)
{
	struct error_text error;

	if (index >= ctl->argument_count) {
		*address = (struct osd_client_address){ 0 };
		return CTL_OK;
	}
	if (osd_client_parse_address(ctl->arguments[index], address, &error) < 0)
		return ctl_fail(ctl, CTL_USAGE, "%s", error.text);
	return CTL_OK;
}

int ctl_object_address(const struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && !address->object)
		return ctl_fail(ctl, CTL_USAGE,
				"%s needs the address of an object, PID/OID; '%s' names none",
				ctl->verb,
				index < ctl->argument_count ? ctl->arguments[index] : "");
	return code;
}

int ctl_partition_address(const struct ctl *ctl, int index, struct osd_client_address *address)
{
	int code = ctl_address(ctl, index, address);

	if (code == CTL_OK && (!address->partition || address->object))
		return ctl_fail(
			ctl, CTL_USAGE, "%s needs the address of a partition, PID; '%s' names none",
			ctl->verb, index < ctl->argument_count ? ctl->arguments[index] : "");
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
