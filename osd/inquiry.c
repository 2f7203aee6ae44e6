/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* INQUIRY data of the logical unit: standard data and vital product data pages. */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"

enum {
	VPD_SUPPORTED_PAGES = 0x00,
	VPD_UNIT_SERIAL_NUMBER = 0x80,
	VPD_DEVICE_IDENTIFICATION = 0x83,
	VPD_OSD_INFORMATION = 0xB0,
	VPD_SECURITY_TOKEN = 0xB1,
};

enum { STANDARD_BYTES = 66, INQUIRY_BYTES_MAX = 160 };

static int standard_data(uint8_t *data)
{
	/* SAM-3, iSCSI, SPC-3, OSD */
	static const uint16_t versions[] = { 0x0060, 0x0960, 0x0300, 0x0340 };

	data[0] = OSD_PERIPHERAL_DEVICE_TYPE;
	data[2] = 0x05; /* SPC-3 */
	data[3] = 0x12; /* HISUP, response data format 2 */
	data[4] = STANDARD_BYTES - 5;
	data[7] = 0x02; /* CMDQUE */
	memcpy(data + 8, OSD_VENDOR, 8);
	memcpy(data + 16, OSD_PRODUCT, 16);
	memcpy(data + 32, OSD_REVISION, 4);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		put_be16(data + 58 + 2 * i, versions[i]);
	return STANDARD_BYTES;
}

/*
 * T10 vendor designator of vendor and serial number, and a locally assigned NAA name from the UUID.
 */
static size_t identification(const struct osd_device *device, uint8_t *page)
{
	size_t serial = strlen(device->serial), at = 4;

	page[at] = 0x02;     /* ASCII */
	page[at + 1] = 0x01; /* logical unit, T10 vendor */
	page[at + 3] = (uint8_t)(8 + serial);
	memcpy(page + at + 4, OSD_VENDOR, 8);
	memcpy(page + at + 12, device->serial, serial);
	at += 12 + serial;
	page[at] = 0x01;     /* binary */
	page[at + 1] = 0x03; /* logical unit, NAA */
	page[at + 3] = 8;
	memcpy(page + at + 4, device->uuid, 8);
	page[at + 4] = (uint8_t)(0x30 | (page[at + 4] & 0x0F));
	return at + 12;
}

static int vital_product_data(const struct osd_device *device, uint64_t nexus, uint8_t code,
			      uint8_t *page)
{
	static const uint8_t supported[] = { VPD_SUPPORTED_PAGES, VPD_UNIT_SERIAL_NUMBER,
					     VPD_DEVICE_IDENTIFICATION, VPD_OSD_INFORMATION,
					     VPD_SECURITY_TOKEN };
	size_t length = 4;

	switch (code) {
	case VPD_SUPPORTED_PAGES:
		memcpy(page + 4, supported, sizeof(supported));
		length += sizeof(supported);
		break;
	case VPD_UNIT_SERIAL_NUMBER:
		memcpy(page + 4, device->serial, strlen(device->serial));
		length += strlen(device->serial);
		break;
	case VPD_DEVICE_IDENTIFICATION:
		length = identification(device, page);
		break;
	case VPD_OSD_INFORMATION:
		memcpy(page + 4, device->system_id, sizeof(device->system_id));
		length += sizeof(device->system_id);
		break;
	case VPD_SECURITY_TOKEN:
		if (osd_security_token(device, nexus, page + 4) == 0)
			length += OSD_SECURITY_TOKEN_BYTES;
		break;
	default:
		return -EINVAL;
	}
	page[0] = OSD_PERIPHERAL_DEVICE_TYPE;
	page[1] = code;
	put_be16(page + 2, (uint16_t)(length - 4));
	return (int)length;
}

int osd_inquiry(const struct osd_device *device, uint64_t nexus, const uint8_t cdb[6],
		uint8_t *data, size_t capacity)
{
	uint8_t answer[INQUIRY_BYTES_MAX] = { 0 };
	bool vital = cdb[1] & 1;
	int length;

	if (cdb[1] & ~1 || (!vital && cdb[2] != 0))
		return -EINVAL;
	length = vital ? vital_product_data(device, nexus, cdb[2], answer) : standard_data(answer);
	if (length > 0 && capacity > 0)
		memcpy(data, answer, min_u64((uint64_t)length, capacity));
	return length;
}
