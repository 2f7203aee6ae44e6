/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* INQUIRY data that all kinds of units have. */
#include "wire/inquiry.h"

#include <string.h>

#include "common/bytes.h"

size_t inquiry_standard(const struct inquiry *inquiry, uint8_t *data)
{
	data[0] = inquiry->device_type;
	data[2] = inquiry->version;
	data[3] = 0x12; /* HISUP, response data format 2 */
	data[4] = inquiry->bytes - 5;
	data[7] = 0x02; /* CMDQUE */
	memcpy(data + 8, INQUIRY_VENDOR, 8);
	memcpy(data + 16, inquiry->product, 16);
	memcpy(data + 32, INQUIRY_REVISION, 4);
	for (size_t i = 0; i < sizeof(inquiry->versions) / sizeof(inquiry->versions[0]); i++)
		put_be16(data + 58 + 2 * i, inquiry->versions[i]);
	return inquiry->bytes;
}

void inquiry_name_local(uint8_t name[INQUIRY_NAME_BYTES])
{
	name[0] = (uint8_t)(0x30 | (name[0] & 0x0F));
}

size_t inquiry_identification(const char *serial, const uint8_t name[INQUIRY_NAME_BYTES],
			      uint8_t *page)
{
	size_t length = strlen(serial), at = 4;

	page[at] = 0x02;     /* ASCII */
	page[at + 1] = 0x01; /* logical unit, T10 vendor */
	page[at + 3] = (uint8_t)(8 + length);
	memcpy(page + at + 4, INQUIRY_VENDOR, 8);
	memcpy(page + at + 12, serial, length);
	at += 12 + length;
	page[at] = 0x01;     /* binary */
	page[at + 1] = 0x03; /* logical unit, NAA */
	page[at + 3] = INQUIRY_NAME_BYTES;
	memcpy(page + at + 4, name, INQUIRY_NAME_BYTES);
	return at + 4 + INQUIRY_NAME_BYTES;
}

void inquiry_page_head(const struct inquiry *inquiry, uint8_t code, size_t length, uint8_t *page)
{
	page[0] = inquiry->device_type;
	page[1] = code;
	put_be16(page + 2, (uint16_t)(length - 4));
}
