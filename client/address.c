/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Addresses as people write them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/osd_client.h"

#define PARTITION_MAX UINT64_C(0xFFFFFFFFFFFF)

/* Decimal or 0x…, no sign, no blanks; stops at the first other character. */
static int parse_number(const char **text, uint64_t limit, uint64_t *value)
{
	const char *from = *text;
	bool hexadecimal = from[0] == '0' && (from[1] == 'x' || from[1] == 'X');
	const char *digits = hexadecimal ? from + 2 : from;
	char *end;

	/* strtoull takes blanks and signs, and a lone 0x. */
	if (!((digits[0] >= '0' && digits[0] <= '9') ||
	      (hexadecimal && ((digits[0] | 0x20) >= 'a' && (digits[0] | 0x20) <= 'f'))))
		return -EINVAL;
	errno = 0;
	*value = strtoull(digits, &end, hexadecimal ? 16 : 10);
	if (errno || *value > limit)
		return -ERANGE;
	*text = end;
	return 0;
}

int osd_client_parse_address(const char *text, struct osd_client_address *address,
			     struct error_text *error)
{
	const char *at = text;
	uint64_t version = 0;
	int result = 0;

	*address = (struct osd_client_address){ 0 };
	if (*at)
		result = parse_number(&at, PARTITION_MAX, &address->partition);
	if (result == 0 && *at == '/') {
		at++;
		result = parse_number(&at, UINT64_MAX, &address->object);
	}
	if (result == 0 && *at == '@') {
		at++;
		result = parse_number(&at, UINT16_MAX, &version);
		if (result == 0 && version == 0)
			result = -EINVAL;
		address->version = (uint16_t)version;
	}
	if (result == -ERANGE)
		return error_set(error, -EINVAL,
				 "address '%.80s': a number is too large (partition 48 bits, "
				 "object 64, version 16)",
				 text);
	if (result < 0 || *at)
		return error_set(error, -EINVAL,
				 "address '%.80s' is not PID[/OID][@VERSION]; for instance "
				 "0x10000/0x10004 or 65536@3",
				 text);
	if (address->partition == 0 && address->object)
		return error_set(error, -EINVAL,
				 "address '%.80s': partition 0 is the root; it has no objects",
				 text);
	return 0;
}

const char *osd_client_format_address(struct osd_client_address address,
				      char text[OSD_CLIENT_ADDRESS_TEXT])
{
	int used = snprintf(text, OSD_CLIENT_ADDRESS_TEXT, "0x%" PRIx64, address.partition);

	if (address.object)
		used += snprintf(text + used, (size_t)(OSD_CLIENT_ADDRESS_TEXT - used),
				 "/0x%" PRIx64, address.object);
	if (address.version)
		snprintf(text + used, (size_t)(OSD_CLIENT_ADDRESS_TEXT - used), "@%u",
			 address.version);
	return text;
}
