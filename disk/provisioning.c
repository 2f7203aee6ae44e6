/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What the disk tells of the space below it (SBC-3, 4.7 and 6): how much there is, and when
 * initiators are warned. Its unit is the threshold set, 1 MiB, so that 32 bits count the largest
 * device.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "disk/commands.h"

#define THRESHOLD_SET_BYTES (UINT64_C(1) << 20)

enum { LOG_SUPPORTED_PAGES = 0x00, LOG_LOGICAL_BLOCK_PROVISIONING = 0x0C };
enum { PARAMETER_AVAILABLE = 1, PARAMETER_USED = 2 };
enum { LOG_HEAD_BYTES = 4, PARAMETER_BYTES = 12 };
/* Binary numbers in a list; of all that share the device. */
enum { PARAMETER_IS_BINARY_LIST = 0x03, SCOPE_SHARED = 0x02 };

/* Of a threshold's first byte: it is soft, and reached when what there is falls to it. */
enum { THRESHOLD_ENABLED = 0x80 };
enum { THRESHOLD_OF_AVAILABLE = 0x01 };
enum { THRESHOLD_HEAD_BYTES = 12, THRESHOLD_BYTES = 8 };
static_assert(DISK_THRESHOLD_PAGE_BYTES == THRESHOLD_HEAD_BYTES + DISK_THRESHOLDS * THRESHOLD_BYTES,
	      "all of the page");

uint8_t disk_threshold_exponent(const struct disk *disk)
{
	return (uint8_t)__builtin_ctzll(THRESHOLD_SET_BYTES / disk->volume.shape.block_bytes);
}

static uint32_t sets_of(uint64_t bytes)
{
	return (uint32_t)min_u64(bytes / THRESHOLD_SET_BYTES, UINT32_MAX);
}

void disk_threshold_page(const uint64_t available_bytes[DISK_THRESHOLDS],
			 uint8_t page[DISK_THRESHOLD_PAGE_BYTES])
{
	memset(page, 0, DISK_THRESHOLD_PAGE_BYTES); /* SITUA 0: each initiator is told */
	for (size_t i = 0; i < DISK_THRESHOLDS; i++) {
		uint8_t *threshold = page + THRESHOLD_HEAD_BYTES + i * THRESHOLD_BYTES;

		threshold[0] = THRESHOLD_ENABLED;
		threshold[1] = THRESHOLD_OF_AVAILABLE;
		put_be32(threshold + 4, sets_of(available_bytes[i]));
	}
}

static size_t put_parameter(uint8_t *to, uint16_t code, uint64_t bytes)
{
	put_be16(to, code);
	to[2] = PARAMETER_IS_BINARY_LIST;
	to[3] = PARAMETER_BYTES - 4;
	put_be32(to + 4, sets_of(bytes));
	to[8] = SCOPE_SHARED;
	return PARAMETER_BYTES;
}

/* Parameters from `first` on; returns the length of all. */
static size_t put_space(const struct disk_space *space, uint16_t first, uint8_t *to)
{
	uint64_t used = min_u64(space->used_bytes, space->capacity_bytes);
	size_t length = 0;

	if (first <= PARAMETER_AVAILABLE)
		length += put_parameter(to, PARAMETER_AVAILABLE, space->capacity_bytes - used);
	if (first <= PARAMETER_USED)
		length += put_parameter(to + length, PARAMETER_USED, used);
	return length;
}

int disk_log_sense(const struct disk_space *space, const uint8_t cdb[10], uint8_t *data,
		   size_t capacity)
{
	uint8_t answer[LOG_HEAD_BYTES + 2 * PARAMETER_BYTES] = { 0 };
	uint8_t code = cdb[2] & 0x3F;
	uint16_t first = get_be16(cdb + 5);
	size_t length = LOG_HEAD_BYTES;

	/* Nothing is saved, and there are no subpages. */
	if (cdb[1] & 1 || cdb[3])
		return -EINVAL;
	if (code == LOG_SUPPORTED_PAGES && first == 0) {
		answer[length++] = LOG_SUPPORTED_PAGES;
		answer[length++] = LOG_LOGICAL_BLOCK_PROVISIONING;
	} else if (code == LOG_LOGICAL_BLOCK_PROVISIONING && first <= PARAMETER_USED) {
		length += put_space(space, first, answer + length);
	} else {
		return -EINVAL;
	}
	answer[0] = code;
	put_be16(answer + 2, (uint16_t)(length - LOG_HEAD_BYTES));
	if (capacity)
		memcpy(data, answer, min_u64(length, capacity));
	return (int)length;
}
