/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Looks at a device without touching it. */
#include "nand/inspect.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "nand/page.h"

const char *nand_look_name(enum nand_block_look look)
{
	static const char *const names[NAND_LOOKS] = {
		[NAND_LOOK_ERASED] = "erased",
		[NAND_LOOK_PARTLY] = "partly programmed",
		[NAND_LOOK_FULL] = "full",
		[NAND_LOOK_BAD] = "bad",
		[NAND_LOOK_DAMAGED] = "state damaged",
	};

	return names[look];
}

/* Fills `word` with zeroes if the block's state is damaged. */
static enum nand_block_look look_of(const struct nand *nand, uint32_t block,
				    struct nand_block_word *word)
{
	if (!nand_word_load(nand, block, word)) {
		*word = (struct nand_block_word){ 0 };
		return NAND_LOOK_DAMAGED;
	}
	if (word->bad)
		return NAND_LOOK_BAD;
	if (word->next_page == 0)
		return NAND_LOOK_ERASED;
	return word->next_page < nand->geometry.pages_per_block ? NAND_LOOK_PARTLY : NAND_LOOK_FULL;
}

void nand_summarize(struct nand *nand, struct nand_summary *summary)
{
	*summary = (struct nand_summary){ 0 };
	for (uint32_t block = 0; block < nand->geometry.blocks; block++) {
		struct nand_block_word word;

		summary->blocks[look_of(nand, block, &word)]++;
		summary->pages_programmed += word.next_page;
	}
}

uint32_t nand_cell_blocks(const struct nand_geometry *geometry, uint32_t cells_max)
{
	assert(cells_max > 0);
	return (uint32_t)divide_up(geometry->blocks, cells_max);
}

struct nand_cell nand_look_at(struct nand *nand, uint32_t first, uint32_t count)
{
	uint64_t pages = (uint64_t)count * nand->geometry.pages_per_block, programmed = 0;
	struct nand_cell cell = { .first = first, .count = count };

	assert(count > 0 && (uint64_t)first + count <= nand->geometry.blocks);
	for (uint32_t block = first; block < first + count; block++) {
		struct nand_block_word word;
		enum nand_block_look look = look_of(nand, block, &word);

		cell.look = look > cell.look ? look : cell.look;
		programmed += word.next_page;
		if (word.erase_count > cell.erase_count_most)
			cell.erase_count_most = word.erase_count;
	}
	if (cell.look == NAND_LOOK_FULL && programmed < pages)
		cell.look = NAND_LOOK_PARTLY;
	cell.fill_permille = (uint32_t)(programmed * 1000 / pages);
	return cell;
}

/* Bytes in front of those at the end that are as an erase leaves them. */
static uint32_t programmed_bytes(const uint8_t *bytes, uint32_t count)
{
	while (count && bytes[count - 1] == 0xFF)
		count--;
	return count;
}

/* A program that was cut off has left the end of the page erased, the seal at least. */
static void find_tear(struct nand_page_dump *dump, const struct nand_geometry *geometry)
{
	uint32_t of_spare = programmed_bytes(dump->spare, geometry->spare_bytes);

	dump->is_torn = dump->verdict == -EBADMSG && of_spare <= nand_spare_usable(geometry);
	if (dump->is_torn)
		dump->torn_bytes = of_spare ? geometry->page_bytes + of_spare
					    : programmed_bytes(dump->data, geometry->page_bytes);
}

static int read_raw(struct nand *nand, struct nand_page_dump *dump)
{
	const struct nand_geometry *geometry = &nand->geometry;
	struct nand_page_io io = { .page = dump->page };
	struct nand_page_check check;
	int result;

	dump->data = malloc(geometry->page_bytes);
	dump->spare = malloc(geometry->spare_bytes);
	if (!dump->data || !dump->spare)
		return -ENOMEM;
	/* The verdict first: it destroys what it is given. */
	io.data = dump->data;
	dump->verdict = nand_read(nand, NAND_CAUSE_RECOVERY, &io, 1);
	result = nand->backend->read(nand, dump->page, dump->data, dump->spare);
	if (result < 0)
		return result;
	dump->spare_intact =
		nand_spare_open(dump->spare, geometry->spare_bytes, dump->page, &check);
	dump->stored_data_crc = check.data_crc;
	dump->stored_erase_count = check.erase_count;
	dump->data_crc = crc32c(0, dump->data, geometry->page_bytes);
	find_tear(dump, geometry);
	return 0;
}

int nand_dump_page(struct nand *nand, uint64_t page, struct nand_page_dump *dump)
{
	struct nand_block_word word;
	int result;

	*dump = (struct nand_page_dump){ .page = page };
	if (page >= nand->layout.pages)
		return -ERANGE;
	dump->block = (uint32_t)(page / nand->geometry.pages_per_block);
	dump->index = (uint32_t)(page % nand->geometry.pages_per_block);
	dump->block_look = look_of(nand, dump->block, &word);
	dump->block_erase_count = word.erase_count;
	result = read_raw(nand, dump);
	if (result < 0)
		nand_page_dump_free(dump);
	return result;
}

void nand_page_dump_free(struct nand_page_dump *dump)
{
	free(dump->data);
	free(dump->spare);
	dump->data = dump->spare = NULL;
}

long nand_image_holder(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	long holder;

	if (fd < 0)
		return 0;
	holder = nand_lock_holder(fd);
	close(fd);
	return holder;
}
