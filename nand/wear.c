/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads the erase counts of a device's blocks. */
#include "nand/wear.h"

#include <math.h>

#include "common/bytes.h"
#include "nand/page.h"

void nand_read_wear(struct nand *nand, struct nand_wear *wear)
{
	double squares = 0;

	*wear = (struct nand_wear){ .least = UINT32_MAX, .bucket_width = 1 };
	for (uint32_t block = 0; block < nand->geometry.blocks; block++) {
		struct nand_block_word word;

		if (!nand_word_load(nand, block, &word))
			continue;
		wear->blocks++;
		wear->bad += word.bad;
		wear->erases += word.erase_count;
		squares += (double)word.erase_count * word.erase_count;
		wear->least = word.erase_count < wear->least ? word.erase_count : wear->least;
		wear->most = word.erase_count > wear->most ? word.erase_count : wear->most;
	}
	if (wear->blocks == 0) {
		wear->least = 0;
		return;
	}
	wear->mean = (double)wear->erases / (double)wear->blocks;
	wear->deviation = sqrt(fmax(0, squares / (double)wear->blocks - wear->mean * wear->mean));
	wear->bucket_width = (wear->most - wear->least) / NAND_WEAR_BUCKETS + 1;
	for (uint32_t block = 0; block < nand->geometry.blocks; block++) {
		struct nand_block_word word;

		/* Erased meanwhile by someone: in the last bucket. */
		if (nand_word_load(nand, block, &word) && word.erase_count >= wear->least)
			wear->buckets[min_u64((word.erase_count - wear->least) / wear->bucket_width,
					      NAND_WEAR_BUCKETS - 1)]++;
	}
}
