/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How worn a device is: the erase counts of its blocks, which are kept for ever in the block table.
 */
#ifndef MUNINN_NAND_WEAR_H
#define MUNINN_NAND_WEAR_H

#include <stdint.h>

struct nand;

#define NAND_WEAR_BUCKETS 16

struct nand_wear {
	uint64_t blocks; /* counted: those whose state is not damaged, bad ones too */
	uint64_t bad;
	uint64_t erases; /* of all of them */
	uint32_t least, most;
	double mean, deviation; /* standard deviation over the blocks */
	/* Bucket i: erase counts from least + i * bucket_width on, bucket_width of them. */
	uint32_t bucket_width;
	uint64_t buckets[NAND_WEAR_BUCKETS];
};

/*
 * Goes through all blocks; others may use the device meanwhile. All zero if no block could be
 * counted.
 */
void nand_read_wear(struct nand *nand, struct nand_wear *wear);

#endif
