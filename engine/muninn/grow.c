/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes a device larger. Rows, segments, the ring of roots and all that the index keeps stay as
 * they are; new segments are free ones. Only the directory in NVRAM gets more entries, and what is
 * behind it moves. Nothing in there says where it is itself, so this does not look at it: the NVRAM
 * may be as a crash has left it.
 */
#include "engine/muninn/grow.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/muninn/header.h"

/* What there is, and what it becomes. */
struct growing {
	struct muninn_geometry from, to;
	struct nand_geometry shape;
	const uint8_t *nvram;
	uint8_t first[NVRAM_PAGE]; /* of the new NVRAM: the header says how many blocks there are */
};

static void assert_same_parts(const struct muninn_geometry *from, const struct muninn_geometry *to)
{
	assert(from->rows == to->rows && from->buffers == to->buffers);
	assert(from->root_segments == to->root_segments);
	assert(from->buffer_bytes == to->buffer_bytes && from->group_bytes == to->group_bytes);
	assert(from->directory_entry_bytes == to->directory_entry_bytes);
	assert(from->directory_entries <= to->directory_entries);
	assert(from->nvram_bytes <= to->nvram_bytes);
}

/* Finds out what the device becomes. Nothing changes. */
static int plan(struct growing *growing, struct nand *nand, uint64_t blocks,
		struct error_text *error)
{
	uint64_t bytes;
	int result = nand_grow_check(nand_geometry(nand), blocks, &growing->shape, error);

	growing->nvram = nand_nvram(nand, &bytes);
	if (!result && bytes < NVRAM_PAGE)
		result = error_set(error, -ENODEV, "the device has no NVRAM for the muninn engine");
	if (!result)
		result = header_read(growing->nvram, nand, &growing->from, error);
	if (!result && growing->from.nvram_bytes > bytes)
		result = error_set(error, -EINVAL, "the device has less NVRAM than it needs");
	if (!result)
		result = header_read_shape(growing->nvram, &growing->shape, nand_uuid(nand),
					   &growing->to, error);
	return result;
}

static struct nand_nvram_piece piece(const struct growing *growing, uint64_t from, uint64_t to,
				     uint64_t bytes)
{
	return (struct nand_nvram_piece){ growing->nvram + from, to, bytes };
}

static int carry_out(struct growing *growing, struct nand *nand, struct error_text *error)
{
	const struct muninn_geometry *from = &growing->from, *to = &growing->to;
	uint64_t directory_bytes = (uint64_t)from->directory_entries * from->directory_entry_bytes;
	const struct nand_nvram_piece pieces[] = {
		{ growing->first, 0, sizeof(growing->first) },
		piece(growing, NVRAM_PAGE, NVRAM_PAGE,
		      NVRAM_DIRECTORY_AT + directory_bytes - NVRAM_PAGE),
		piece(growing, from->sums_at, to->sums_at, from->buffers_at - from->sums_at),
		piece(growing, from->buffers_at, to->buffers_at,
		      from->nvram_bytes - from->buffers_at),
	};
	const struct nand_growth growth = {
		.blocks = growing->shape.blocks,
		.nvram_bytes = to->nvram_bytes,
		.pieces = pieces,
		.piece_count = sizeof(pieces) / sizeof(pieces[0]),
	};

	assert_same_parts(from, to);
	memcpy(growing->first, growing->nvram, sizeof(growing->first));
	header_write(growing->first, to, nand_uuid(nand));
	return nand_grow(nand, &growth, error);
}

int grow_device(struct nand *nand, uint64_t blocks, bool really, struct error_text *error)
{
	struct growing growing;
	int result = plan(&growing, nand, blocks, error);

	return result || !really ? result : carry_out(&growing, nand, error);
}
