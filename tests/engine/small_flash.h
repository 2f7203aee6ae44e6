/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The shape of the small devices that tests stand on: soon written, and soon full. */
#ifndef MUNINN_TESTS_ENGINE_SMALL_FLASH_H
#define MUNINN_TESTS_ENGINE_SMALL_FLASH_H

#include "nand/nand.h"

/* A struct nand_geometry of so many blocks of 4 KiB. */
#define SMALL_FLASH(count)                                                                     \
	{                                                                                      \
		.page_bytes = 512, .spare_bytes = 64, .pages_per_block = 8, .blocks = (count), \
		.channels = 1, .dies_per_channel = 1                                           \
	}

#endif
