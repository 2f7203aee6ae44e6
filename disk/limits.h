/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How much one command does: others wait for its transaction. VPD page B0 tells it to initiators.
 */
#ifndef MUNINN_DISK_LIMITS_H
#define MUNINN_DISK_LIMITS_H

#include <stdint.h>

/* Bytes that a command transfers, compares, or writes again and again. */
#define DISK_TRANSFER_MAX (UINT32_C(16) << 20)

/* What transfers best: a segment of flash. */
#define DISK_TRANSFER_OPTIMAL (UINT32_C(1) << 20)

/* Bytes that all descriptors of an UNMAP have together, and how many there may be. */
#define DISK_UNMAP_MAX             (UINT32_C(1) << 29)
#define DISK_UNMAP_DESCRIPTORS_MAX 256

/* Blocks of a COMPARE AND WRITE: its CDB has a byte for them. */
#define DISK_COMPARE_BLOCKS_MAX 255

/* GET LBA STATUS looks at so many ranges of the volume, and tells of so many runs. */
#define DISK_STATUS_RANGES_MAX 128
#define DISK_STATUS_RUNS_MAX   256

#endif
