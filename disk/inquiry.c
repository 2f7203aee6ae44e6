/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* INQUIRY data of the disk: standard data and vital product data pages. */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "disk/commands.h"

enum {
	VPD_SUPPORTED_PAGES = 0x00,
	VPD_UNIT_SERIAL_NUMBER = 0x80,
	VPD_DEVICE_IDENTIFICATION = 0x83,
	VPD_BLOCK_LIMITS = 0xB0,
	VPD_BLOCK_DEVICE_CHARACTERISTICS = 0xB1,
	VPD_LOGICAL_BLOCK_PROVISIONING = 0xB2,
};

enum { STANDARD_BYTES = 96, INQUIRY_BYTES_MAX = 96 };

#define DISK_VENDOR   "MUNINN  "
#define DISK_PRODUCT  "VOLUME          "
#define DISK_REVISION "0001"

static size_t standard_data(uint8_t *data)
{
	/* SAM-5, iSCSI, SPC-4, SBC-3 */
	static const uint16_t versions[] = { 0x00A0, 0x0960, 0x0460, 0x04C0 };

	data[0] = SBC_PERIPHERAL_DEVICE_TYPE;
	data[2] = 0x06; /* SPC-4 */
	data[3] = 0x12; /* HISUP, response data format 2 */
	data[4] = STANDARD_BYTES - 5;
	data[7] = 0x02; /* CMDQUE */
	memcpy(data + 8, DISK_VENDOR, 8);
	memcpy(data + 16, DISK_PRODUCT, 16);
	memcpy(data + 32, DISK_REVISION, 4);
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		put_be16(data + 58 + 2 * i, versions[i]);
	return STANDARD_BYTES;
}

/* A T10 vendor designator of vendor and serial number, and the volume's name. */
static size_t identification(const struct disk *disk, uint8_t *page)
{
	size_t serial = strlen(disk->serial), at = 4;

	page[at] = 0x02;     /* ASCII */
	page[at + 1] = 0x01; /* logical unit, T10 vendor */
	page[at + 3] = (uint8_t)(8 + serial);
	memcpy(page + at + 4, DISK_VENDOR, 8);
	memcpy(page + at + 12, disk->serial, serial);
	at += 12 + serial;
	page[at] = 0x01;     /* binary */
	page[at + 1] = 0x03; /* logical unit, NAA */
	page[at + 3] = sizeof(disk->naa);
	memcpy(page + at + 4, disk->naa, sizeof(disk->naa));
	return at + 4 + sizeof(disk->naa);
}

/* How much one command does (limits.h), and that pages of flash are what is written best. */
static size_t block_limits(const struct disk *disk, uint8_t *page)
{
	uint32_t block = disk->volume.shape.block_bytes;

	page[4] = 0x01; /* WSNZ: no WRITE SAME of 0 blocks */
	page[5] = DISK_COMPARE_BLOCKS_MAX;
	put_be16(page + 6, (uint16_t)disk->page_blocks);
	put_be32(page + 8, DISK_TRANSFER_MAX / block);
	put_be32(page + 12, DISK_TRANSFER_OPTIMAL / block);
	put_be32(page + 20, DISK_UNMAP_MAX / block);
	put_be32(page + 24, DISK_UNMAP_DESCRIPTORS_MAX);
	put_be32(page + 28, disk->page_blocks);
	put_be32(page + 32, UINT32_C(1) << 31); /* the granularity counts from block 0 */
	put_be64(page + 36, DISK_TRANSFER_MAX / block);
	return 64;
}

static size_t characteristics(uint8_t *page)
{
	put_be16(page + 4, 1); /* it does not rotate */
	return 64;
}

static size_t provisioning(uint8_t *page)
{
	page[5] = 0xE4; /* LBPU, LBPWS, LBPWS10, LBPRZ */
	page[6] = 0x02; /* thin */
	return 8;
}

/* 0: there is no such page. */
static size_t vital_product_data(const struct disk *disk, uint8_t code, uint8_t *page)
{
	static const uint8_t supported[] = { VPD_SUPPORTED_PAGES,
					     VPD_UNIT_SERIAL_NUMBER,
					     VPD_DEVICE_IDENTIFICATION,
					     VPD_BLOCK_LIMITS,
					     VPD_BLOCK_DEVICE_CHARACTERISTICS,
					     VPD_LOGICAL_BLOCK_PROVISIONING };

	switch (code) {
	case VPD_SUPPORTED_PAGES:
		memcpy(page + 4, supported, sizeof(supported));
		return 4 + sizeof(supported);
	case VPD_UNIT_SERIAL_NUMBER:
		memcpy(page + 4, disk->serial, strlen(disk->serial));
		return 4 + strlen(disk->serial);
	case VPD_DEVICE_IDENTIFICATION:
		return identification(disk, page);
	case VPD_BLOCK_LIMITS:
		return block_limits(disk, page);
	case VPD_BLOCK_DEVICE_CHARACTERISTICS:
		return characteristics(page);
	case VPD_LOGICAL_BLOCK_PROVISIONING:
		return provisioning(page);
	default:
		return 0;
	}
}

int disk_inquiry(const struct disk *disk, const uint8_t cdb[6], uint8_t *data, size_t capacity)
{
	uint8_t answer[INQUIRY_BYTES_MAX] = { 0 };
	bool vital = cdb[1] & 1;
	size_t length;

	if (cdb[1] & ~1 || (!vital && cdb[2] != 0))
		return -EINVAL;
	length = vital ? vital_product_data(disk, cdb[2], answer) : standard_data(answer);
	if (!length)
		return -EINVAL;
	if (vital) {
		answer[0] = SBC_PERIPHERAL_DEVICE_TYPE;
		answer[1] = cdb[2];
		put_be16(answer + 2, (uint16_t)(length - 4));
	}
	if (capacity)
		memcpy(data, answer, min_u64(length, capacity));
	return (int)length;
}
