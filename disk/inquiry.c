/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* INQUIRY data of the disk: standard data and vital product data pages. */
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "disk/commands.h"

enum {
	VPD_BLOCK_LIMITS = 0xB0,
	VPD_BLOCK_DEVICE_CHARACTERISTICS = 0xB1,
	VPD_LOGICAL_BLOCK_PROVISIONING = 0xB2,
};

enum { INQUIRY_BYTES_MAX = 96 };

static const struct inquiry inquiry = {
	.device_type = SBC_PERIPHERAL_DEVICE_TYPE,
	.version = 0x06, /* SPC-4 */
	.bytes = INQUIRY_BYTES_MAX,
	.product = "VOLUME          ",
	.versions = { 0x00A0, 0x0960, 0x0460, 0x04C0 }, /* SAM-5, iSCSI, SPC-4, SBC-3 */
};

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

static size_t provisioning(const struct disk *disk, uint8_t *page)
{
	page[4] = disk_threshold_exponent(disk);
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
		return inquiry_identification(disk->serial, disk->naa, page);
	case VPD_BLOCK_LIMITS:
		return block_limits(disk, page);
	case VPD_BLOCK_DEVICE_CHARACTERISTICS:
		return characteristics(page);
	case VPD_LOGICAL_BLOCK_PROVISIONING:
		return provisioning(disk, page);
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
	length = vital ? vital_product_data(disk, cdb[2], answer)
		       : inquiry_standard(&inquiry, answer);
	if (!length)
		return -EINVAL;
	if (vital)
		inquiry_page_head(&inquiry, cdb[2], length, answer);
	if (capacity)
		memcpy(data, answer, min_u64(length, capacity));
	return (int)length;
}
