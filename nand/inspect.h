/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Looking at a device without touching it: what `muninnctl nand` shows. */
#ifndef MUNINN_NAND_INSPECT_H
#define MUNINN_NAND_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "nand/nand.h"

/* In the order in which one of several blocks that share a cell of a map speaks for all. */
enum nand_block_look {
	NAND_LOOK_ERASED, /* no page programmed */
	NAND_LOOK_PARTLY,
	NAND_LOOK_FULL,
	NAND_LOOK_BAD,
	NAND_LOOK_DAMAGED, /* the record of its state is */
	NAND_LOOKS
};

const char *nand_look_name(enum nand_block_look look);

struct nand_summary {
	uint64_t blocks[NAND_LOOKS];
	uint64_t pages_programmed;
};
void nand_summarize(struct nand *nand, struct nand_summary *summary);

/* A run of neighbouring blocks as one cell of a map. */
struct nand_cell {
	uint32_t first, count; /* blocks */
	enum nand_block_look
		look;           /* the worst of them; erased, partly and full are mixed to partly */
	uint32_t fill_permille; /* programmed pages of all pages */
	uint32_t erase_count_most;
};

/* Blocks that a cell must stand for if there are to be at most `cells_max` of them (at least 1). */
uint32_t nand_cell_blocks(const struct nand_geometry *geometry, uint32_t cells_max);

/* The cell of `count` blocks from `first` on, which must exist. */
struct nand_cell nand_look_at(struct nand *nand, uint32_t first, uint32_t count);

/* One page as it is stored, whether it can be read or not. */
struct nand_page_dump {
	uint64_t page;
	uint32_t block, index; /* index: in the block */
	enum nand_block_look block_look;
	uint32_t block_erase_count;
	/* What nand_read says: 0, -ENODATA (not programmed) or -EBADMSG (damaged). */
	int verdict;
	/* What the spare area says; compared with what it should be. */
	uint32_t stored_data_crc, data_crc;
	uint32_t stored_erase_count;
	bool spare_intact;
	/*
	 * A damaged page whose program was cut off: so many bytes of data and spare area were
	 * programmed, and those behind them are as an erase leaves them.
	 */
	bool is_torn;
	uint32_t torn_bytes;
	uint8_t *data;  /* page_bytes */
	uint8_t *spare; /* spare_bytes, reserved part included */
};

/* 0, -ERANGE, -ENOMEM, -EIO. On success to be freed with nand_page_dump_free. */
int nand_dump_page(struct nand *nand, uint64_t page, struct nand_page_dump *dump);
void nand_page_dump_free(struct nand_page_dump *dump);

/*
 * The process that has the image open for writing; 0: none, or the host does not tell. Takes no
 * lock, so it disturbs nobody, and the answer may be out of date when it arrives.
 */
long nand_image_holder(const char *path);

#endif
