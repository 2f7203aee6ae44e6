/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The static header: what a device was formatted with. In NVRAM, and a copy of it in every root. */
#include "engine/muninn/header.h"

#include <errno.h>

#include "common/crc32c.h"
#include "engine/muninn/index/index.h"
#include "engine/muninn/muninn.h"

void header_write(uint8_t *to, const struct muninn_geometry *geometry, const uint8_t uuid[16])
{
	put_le64(to + NVRAM_MAGIC_AT, NVRAM_MAGIC);
	put_le32(to + NVRAM_VERSION_AT, MUNINN_FORMAT_VERSION);
	put_le32(to + NVRAM_ROWS_AT, geometry->hashed_rows);
	put_le32(to + NVRAM_SEGMENT_PAGES_AT, geometry->segment_pages);
	put_le32(to + NVRAM_RECORD_BYTES_AT, geometry->record_bytes);
	put_le32(to + NVRAM_OVER_PROVISION_AT, geometry->over_provision_permille);
	put_le32(to + NVRAM_PAGE_BYTES_AT, geometry->page_bytes);
	put_le32(to + NVRAM_BLOCK_PAGES_AT, geometry->block_pages);
	put_le32(to + NVRAM_BLOCKS_AT, geometry->blocks);
	put_le16(to + NVRAM_INDEX_AT, (uint16_t)geometry->index);
	put_le16(to + NVRAM_PARITY_AT, (uint16_t)geometry->parity.losses);
	index_put_part(geometry, to + NVRAM_INDEX_PART_AT);
	memcpy(to + NVRAM_UUID_AT, uuid, 16);
	put_le32(to + NVRAM_HEADER_CRC_AT, crc32c(0, to, NVRAM_HEADER_CRC_AT));
}

/* `blocks_least`: as many as the header may say at least. */
static int read_header(const uint8_t *from, const struct nand_geometry *nand,
		       const uint8_t uuid[16], uint32_t blocks_least,
		       struct muninn_geometry *geometry, struct error_text *error)
{
	const struct record_options records = {
		.over_provision_permille = get_le32(from + NVRAM_OVER_PROVISION_AT),
	};
	struct muninn_options options = {
		.rows = get_le32(from + NVRAM_ROWS_AT),
		.segment_pages = get_le32(from + NVRAM_SEGMENT_PAGES_AT),
		.record_bytes = get_le32(from + NVRAM_RECORD_BYTES_AT),
	};
	uint32_t version = get_le32(from + NVRAM_VERSION_AT);
	uint32_t parity = get_le16(from + NVRAM_PARITY_AT);
	uint32_t blocks = get_le32(from + NVRAM_BLOCKS_AT);
	int result;

	if (get_le64(from + NVRAM_MAGIC_AT) != NVRAM_MAGIC)
		return error_set(error, -ENODEV,
				 "the device is not formatted for the muninn engine");
	if (get_le32(from + NVRAM_HEADER_CRC_AT) != crc32c(0, from, NVRAM_HEADER_CRC_AT))
		return error_set(error, -EINVAL,
				 "the engine's header in NVRAM is corrupt (checksum)");
	if (version != MUNINN_FORMAT_VERSION)
		return error_set(
			error, -EPROTO,
			"the device has engine format %u, this program knows %d; use the program"
			" that formatted it",
			version, MUNINN_FORMAT_VERSION);
	if (!index_is_known(get_le16(from + NVRAM_INDEX_AT)))
		return error_set(error, -EPROTO,
				 "the device has index %u, which this program does not know; use "
				 "the program that formatted it",
				 get_le16(from + NVRAM_INDEX_AT));
	if (memcmp(from + NVRAM_UUID_AT, uuid, 16) != 0 ||
	    get_le32(from + NVRAM_PAGE_BYTES_AT) != nand->page_bytes ||
	    get_le32(from + NVRAM_BLOCK_PAGES_AT) != nand->pages_per_block ||
	    blocks < blocks_least || blocks > nand->blocks)
		return error_set(error, -EINVAL, "the NVRAM was formatted for another flash image");
	options.parity = parity ? parity : MUNINN_PARITY_NONE;
	result = index_get_part(get_le16(from + NVRAM_INDEX_AT), from + NVRAM_INDEX_PART_AT,
				&options, error);
	return result ? result : muninn_geometry_choose(nand, &records, &options, geometry, error);
}

int header_read(const uint8_t *from, struct nand *nand, struct muninn_geometry *geometry,
		struct error_text *error)
{
	const struct nand_geometry *shape = nand_geometry(nand);

	return read_header(from, shape, nand_uuid(nand), shape->blocks, geometry, error);
}

int header_read_of_root(const uint8_t *from, struct nand *nand, struct muninn_geometry *geometry,
			struct error_text *error)
{
	return header_read_shape(from, nand_geometry(nand), nand_uuid(nand), geometry, error);
}

int header_read_shape(const uint8_t *from, const struct nand_geometry *nand, const uint8_t uuid[16],
		      struct muninn_geometry *geometry, struct error_text *error)
{
	return read_header(from, nand, uuid, nand->grown_from ? nand->grown_from : nand->blocks,
			   geometry, error);
}

static bool is_intact(const uint8_t *header)
{
	return get_le64(header + NVRAM_MAGIC_AT) == NVRAM_MAGIC &&
	       get_le32(header + NVRAM_HEADER_CRC_AT) == crc32c(0, header, NVRAM_HEADER_CRC_AT);
}

const char *muninn_header_index(const uint8_t *header)
{
	uint32_t kind = get_le16(header + NVRAM_INDEX_AT);

	return is_intact(header) && index_is_known(kind) ? index_kind_name((enum index_kind)kind)
							 : NULL;
}

bool muninn_header_geometry(const uint8_t *header, struct nand_geometry *geometry)
{
	if (!is_intact(header))
		return false;
	geometry->page_bytes = get_le32(header + NVRAM_PAGE_BYTES_AT);
	geometry->pages_per_block = get_le32(header + NVRAM_BLOCK_PAGES_AT);
	geometry->blocks = get_le32(header + NVRAM_BLOCKS_AT);
	return true;
}
