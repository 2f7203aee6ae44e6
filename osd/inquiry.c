/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* INQUIRY data of the logical unit: standard data and vital product data pages. */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/execute.h"

enum {
	VPD_OSD_INFORMATION = 0xB0,
	VPD_SECURITY_TOKEN = 0xB1,
};

enum { STANDARD_BYTES = 66, INQUIRY_BYTES_MAX = 160 };

static const struct inquiry inquiry = {
	.device_type = OSD_PERIPHERAL_DEVICE_TYPE,
	.version = 0x05, /* SPC-3 */
	.bytes = STANDARD_BYTES,
	.product = OSD_PRODUCT,
	.versions = { 0x0060, 0x0960, 0x0300, 0x0340 }, /* SAM-3, iSCSI, SPC-3, OSD */
};

static int vital_product_data(const struct osd_device *device, uint64_t nexus, uint8_t code,
			      uint8_t *page)
{
	static const uint8_t supported[] = { VPD_SUPPORTED_PAGES, VPD_UNIT_SERIAL_NUMBER,
					     VPD_DEVICE_IDENTIFICATION, VPD_OSD_INFORMATION,
					     VPD_SECURITY_TOKEN };
	uint8_t name[INQUIRY_NAME_BYTES];
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
		memcpy(name, device->uuid, sizeof(name));
		inquiry_name_local(name);
		length = inquiry_identification(device->serial, name, page);
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
	inquiry_page_head(&inquiry, code, length, page);
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
	length = vital ? vital_product_data(device, nexus, cdb[2], answer)
		       : (int)inquiry_standard(&inquiry, answer);
	if (length > 0 && capacity > 0)
		memcpy(data, answer, min_u64((uint64_t)length, capacity));
	return length;
}
