/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Applies the rules of flash and the checksums to one page, in front of any back end. */
#include "nand/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "common/log.h"
#include "nand/lab.h"

int nand_violation(struct nand *nand, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	atomic_fetch_add_explicit(&nand->rule_violations, 1, memory_order_relaxed);
	log_line(LOG_LEVEL_ERROR, "%s: rule of flash broken by the caller: %s", nand->path, text);
	if (nand->violation_policy == NAND_VIOLATION_ABORTS)
		abort();
	return -EPERM;
}

/* ---- the block table ---- */

static _Atomic uint64_t *word_at(const struct nand *nand, uint32_t block)
{
	return (_Atomic uint64_t *)(void *)nand->table.at + block;
}

bool nand_word_load(const struct nand *nand, uint32_t block, struct nand_block_word *word)
{
	uint64_t stored = atomic_load_explicit(word_at(nand, block), memory_order_acquire);

	return nand_block_word_decode(le64toh(stored), nand->geometry.pages_per_block, word);
}

void nand_word_store(struct nand *nand, uint32_t block, const struct nand_block_word *word)
{
	atomic_store_explicit(word_at(nand, block), htole64(nand_block_word_encode(word)),
			      memory_order_release);
}

/* ---- reading ---- */

/* Is the page on the device? Fills where it is. */
static bool locate(const struct nand *nand, uint64_t page, struct nand_page_way *way)
{
	if (page >= nand->layout.pages)
		return false;
	way->block = (uint32_t)(page / nand->geometry.pages_per_block);
	way->index = (uint32_t)(page % nand->geometry.pages_per_block);
	return true;
}

int nand_page_read_begin(struct nand *nand, const struct nand_page_io *io,
			 struct nand_page_way *way)
{
	if (!locate(nand, io->page, way))
		return -ERANGE;
	if (!nand_word_load(nand, way->block, &way->word))
		return -EBADMSG;
	if (way->index >= way->word.next_page)
		return -ENODATA;
	return nand_power_read(nand, io->page);
}

/* Is what was read what was programmed in this life of the block? */
static bool page_matches(const struct nand *nand, uint64_t page, const void *data,
			 const uint8_t *spare, uint32_t erase_count)
{
	struct nand_page_check check;

	if (!nand_spare_open(spare, nand->geometry.spare_bytes, page, &check))
		return false;
	if (check.erase_count != erase_count)
		return false;
	return !data || crc32c(0, data, nand->geometry.page_bytes) == check.data_crc;
}

int nand_page_read_finish(struct nand *nand, const struct nand_page_io *io,
			  const struct nand_page_way *way, uint8_t *spare)
{
	struct nand_block_word after;

	nand_faults_read(nand, io->page, way, io->data, spare);
	if (!page_matches(nand, io->page, io->data, spare, way->word.erase_count)) {
		/* An erase on another thread may have come between. */
		if (nand_word_load(nand, way->block, &after) &&
		    (after.erase_count != way->word.erase_count || way->index >= after.next_page))
			return -ENODATA;
		return -EBADMSG;
	}
	if (io->spare)
		memcpy(io->spare, spare, nand_spare_usable(&nand->geometry));
	return 0;
}

/* ---- programming ---- */

/* May this page be programmed now? Fills the block's word. */
static int check_program(struct nand *nand, const struct nand_page_io *io,
			 struct nand_page_way *way)
{
	uint32_t block = way->block, index = way->index, next;

	if (!nand_word_load(nand, block, &way->word)) {
		log_line(LOG_LEVEL_ERROR, "%s: state of block %u is damaged: not programmed",
			 nand->path, block);
		return -EIO;
	}
	if (!io->data)
		return nand_violation(nand, "page %" PRIu64 " programmed without data", io->page);
	if (way->word.bad)
		return nand_violation(nand, "page %" PRIu64 " programmed in bad block %u", io->page,
				      block);
	next = way->word.next_page + nand_pages_on_the_way(nand, block);
	if (index < next)
		return nand_violation(nand,
				      "page %" PRIu64
				      " (page %u of block %u) programmed twice without an "
				      "erase",
				      io->page, index, block);
	if (index > next)
		return nand_violation(nand,
				      "page %" PRIu64
				      " (page %u of block %u) programmed out of order, page "
				      "%u is next",
				      io->page, index, block, next);
	return 0;
}

int nand_page_program_begin(struct nand *nand, const struct nand_page_io *io,
			    struct nand_page_way *way)
{
	int result;

	if (!locate(nand, io->page, way))
		return -ERANGE;
	result = check_program(nand, io, way);
	if (result == 0)
		result = nand->backend->prepare(nand, way->block);
	if (result == 0)
		result = nand_power_program(nand, io, way);
	if (result == 0 && nand_program_fails(nand, io->page, way))
		result = -EIO;
	return result;
}

void nand_page_seal(const struct nand *nand, const struct nand_page_io *io,
		    const struct nand_page_way *way, uint8_t *spare)
{
	const struct nand_geometry *geometry = &nand->geometry;
	struct nand_page_check check = {
		.data_crc = crc32c(0, io->data, geometry->page_bytes),
		.erase_count = way->word.erase_count,
	};

	if (!io->spare)
		memset(spare, 0, nand_spare_usable(geometry));
	else if (io->spare != spare)
		memcpy(spare, io->spare, nand_spare_usable(geometry));
	nand_spare_seal(spare, geometry->spare_bytes, io->page, &check);
}

void nand_page_program_finish(struct nand *nand, const struct nand_page_way *way)
{
	struct nand_block_word word = way->word, now;

	word.next_page = way->index + 1;
	/* A page behind this one on a queue may have turned the block bad. */
	word.bad = nand_word_load(nand, way->block, &now) && now.bad;
	nand_word_store(nand, way->block, &word);
}
