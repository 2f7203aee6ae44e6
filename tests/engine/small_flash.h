/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The shape of the small devices that tests stand on: soon written, and soon full. */
#ifndef MUNINN_TESTS_ENGINE_SMALL_FLASH_H
#define MUNINN_TESTS_ENGINE_SMALL_FLASH_H

#include "nand/nand.h"

/* A struct nand_geometry of so many blocks of 4 KiB. With larger spare areas these have parity. */
#define SMALL_FLASH(count) SMALL_FLASH_WITH_SPARE(count, 64)
#define SMALL_FLASH_WITH_SPARE(count, spare)                                     \
	{                                                                        \
		.page_bytes = 512, .spare_bytes = (spare), .pages_per_block = 8, \
		.blocks = (count), .channels = 1, .dies_per_channel = 1          \
	}

#endif
