/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Checks a geometry, and places the regions of an image by it. */
#include <errno.h>
#include <inttypes.h>

#include "common/bytes.h"
#include "nand/format.h"

struct nand_geometry nand_geometry_default(uint64_t bytes)
{
	struct nand_geometry geometry = {
		.page_bytes = 4096,
		.spare_bytes = 256,
		.pages_per_block = 64,
		.channels = 4,
		.dies_per_channel = 2,
	};
	uint64_t block_bytes = (uint64_t)geometry.page_bytes * geometry.pages_per_block;

	/* More than any geometry may have stays too many, so that the check says so. */
	geometry.blocks = (uint32_t)min_u64(bytes / block_bytes, UINT32_MAX);
	return geometry;
}

uint64_t nand_growth_limit(uint32_t blocks)
{
	return min_u64((uint64_t)blocks * NAND_GROWTH_MAX, UINT64_C(1) << 28);
}

int nand_geometry_check(const struct nand_geometry *geometry, struct error_text *error)
{
	const struct {
		const char *name;
		uint32_t value, least, most;
	} limits[] = {
		{ "page_bytes", geometry->page_bytes, 512, 65536 },
		{ "spare_bytes", geometry->spare_bytes, 64, 4096 },
		{ "pages_per_block", geometry->pages_per_block, 8, 1024 },
		{ "blocks", geometry->blocks, 1, UINT32_C(1) << 28 },
		{ "channels", geometry->channels, 1, 64 },
		{ "dies_per_channel", geometry->dies_per_channel, 1, 64 },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].value < limits[i].least || limits[i].value > limits[i].most)
			return error_set(
				error, -EINVAL, "bad NAND geometry: %s is %u, must be %u to %u",
				limits[i].name, limits[i].value, limits[i].least, limits[i].most);
	if (!is_power_of_two(geometry->page_bytes))
		return error_set(error, -EINVAL,
				 "bad NAND geometry: page_bytes is %u, must be a power of two",
				 geometry->page_bytes);
	if (geometry->grown_from && (geometry->grown_from >= geometry->blocks ||
				     geometry->blocks > nand_growth_limit(geometry->grown_from)))
		return error_set(error, -EINVAL,
				 "bad NAND geometry: %u blocks, grown from %u: must be more, and "
				 "at most %" PRIu64,
				 geometry->blocks, geometry->grown_from,
				 nand_growth_limit(geometry->grown_from));
	return 0;
}

int nand_create_check(const struct nand_geometry *geometry, uint64_t nvram_bytes,
		      uint64_t *image_bytes, struct error_text *error)
{
	int result = nand_geometry_check(geometry, error);

	if (result < 0)
		return result;
	if (nvram_bytes > NAND_NVRAM_BYTES_MAX)
		return error_set(error, -EINVAL, "%llu bytes of NVRAM are too many, at most %llu",
				 (unsigned long long)nvram_bytes,
				 (unsigned long long)NAND_NVRAM_BYTES_MAX);
	*image_bytes = nand_layout_of(geometry).image_bytes;
	return 0;
}

static uint64_t region_bytes(uint64_t count, uint64_t each)
{
	return align_up(count * each, NAND_REGION_ALIGNMENT);
}

/* The table moves behind the blocks that there were, with space for all that may come. */
static void place_grown(const struct nand_geometry *geometry, struct nand_layout *layout)
{
	uint32_t first = geometry->grown_from;

	layout->table_offset = layout->image_bytes;
	layout->gap_at = first;
	layout->gap_bytes = layout->image_bytes +
			    region_bytes(nand_growth_limit(first), sizeof(uint64_t)) -
			    nand_block_offset(layout, first - 1) - layout->block_stride;
	layout->image_bytes = nand_block_offset(layout, first) +
			      region_bytes(geometry->blocks - first, layout->block_stride);
}

struct nand_layout nand_layout_of(const struct nand_geometry *geometry)
{
	uint32_t first = geometry->grown_from ? geometry->grown_from : geometry->blocks;
	struct nand_layout layout = {
		.pages = (uint64_t)geometry->blocks * geometry->pages_per_block,
		.page_stride = (uint32_t)align_up(geometry->page_bytes + geometry->spare_bytes,
						  NAND_PAGE_ALIGNMENT),
		.table_offset = NAND_SUPERBLOCKS_BYTES,
		.table_bytes = region_bytes(geometry->blocks, sizeof(uint64_t)),
		.gap_at = UINT32_MAX,
	};

	layout.block_stride = (uint32_t)align_up(
		(uint64_t)layout.page_stride * geometry->pages_per_block, NAND_BLOCK_ALIGNMENT);
	layout.data_offset = layout.table_offset + region_bytes(first, sizeof(uint64_t));
	layout.image_bytes = layout.data_offset + region_bytes(first, layout.block_stride);
	if (geometry->grown_from)
		place_grown(geometry, &layout);
	return layout;
}
