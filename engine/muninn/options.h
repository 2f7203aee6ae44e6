/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Options of the Muninn store; 0 = default everywhere. */
#ifndef MUNINN_ENGINE_MUNINN_OPTIONS_H
#define MUNINN_ENGINE_MUNINN_OPTIONS_H

#include "engine/muninn/index/bloom_options.h"
#include "engine/muninn/index/index_options.h"

/* A `parity`: the most; there is none. */
#define MUNINN_PARITY_MAX  16
#define MUNINN_PARITY_NONE UINT32_MAX

struct muninn_options {
	/* Fixed at format; stored in the device. */
	uint32_t rows; /* active segments, power of two 1..4096; default by device size: 128 from 16
			  GiB, twice as many for each doubling from 128 GiB on */
	uint32_t segment_pages; /* power of two 8..4096, multiple of the erase block; default 256 */
	uint32_t record_bytes;  /* expected mean record with header, sizes the index; default 1024
				 */
	/*
	 * Lost pages of each 128 of a segment that can be made again, at most 16; it takes a part
	 * of the spare areas (parity.h). Default 1 where they have room for that, otherwise none.
	 */
	uint32_t parity;
	enum index_kind index;
	struct bloom_options bloom; /* for that index */
};

#endif
