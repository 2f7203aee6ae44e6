/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A Cauchy code in GF(2^8): any `more` of its symbols may be lost. Each column of the matrix is
 * divided by its first element, so that the first parity is the XOR of all data.
 */
#include "engine/muninn/parity.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/erasure_code.h>

#include "common/bytes.h"

/* Bytes that libisal makes of a factor, at most: how they are laid out is its own matter. */
enum { TABLE_BYTES = 32 };

/* ---- a code ---- */

/* What data symbol `column` is multiplied with in the parity `row`. */
static uint8_t factor(const struct parity_code *code, uint32_t row, uint32_t column)
{
	uint8_t first = (uint8_t)(code->data ^ column);
	uint8_t own = (uint8_t)((code->data + row) ^ column);

	return gf_mul(first, gf_inv(own));
}

static int code_create(struct parity_code *code, uint32_t data, uint32_t more)
{
	uint8_t matrix[PARITY_LOSSES_MAX * PARITY_GROUP_PAGES_MAX];

	*code = (struct parity_code){ .data = data, .more = more, .used = data };
	if (more == 1)
		return 0; /* add_up needs none */
	code->tables = malloc((size_t)data * more * TABLE_BYTES);
	if (!code->tables)
		return -ENOMEM;
	for (uint32_t row = 0; row < more; row++)
		for (uint32_t column = 0; column < data; column++)
			matrix[row * data + column] = factor(code, row, column);
	ec_init_tables((int)data, (int)more, matrix, code->tables);
	return 0;
}

/* As many bytes at once as every processor of a kind has registers for. */
typedef uint64_t lanes __attribute__((vector_size(16), aligned(1), may_alias));

static void xor_into(uint8_t *sum, const uint8_t *data, uint32_t bytes)
{
	uint32_t at = 0;

	for (; at + 4 * sizeof(lanes) <= bytes; at += 4 * sizeof(lanes)) {
		lanes *to = (lanes *)(void *)(sum + at);
		const lanes *from = (const lanes *)(const void *)(data + at);

		to[0] ^= from[0];
		to[1] ^= from[1];
		to[2] ^= from[2];
		to[3] ^= from[3];
	}
	for (; at < bytes; at++)
		sum[at] ^= data[at];
}

/*
 * The first parity, symbol by symbol: the sum stays in the nearest cache. Looking for each byte in
 * all symbols, as libisal does, takes several times as long where they are pages.
 */
static void add_up(const struct parity_code *code, uint32_t bytes, uint8_t **data, uint8_t *sum)
{
	memcpy(sum, data[0], bytes);
	for (uint32_t column = 1; column < code->used; column++)
		xor_into(sum, data[column], bytes);
}

/* Adds a symbol to parities that begin with zeros: code_make of all, one by one. */
static void code_add(const struct parity_code *code, uint32_t column, uint32_t bytes, uint8_t *data,
		     uint8_t **more)
{
	if (code->more == 1)
		xor_into(more[0], data, bytes);
	else
		ec_encode_data_update((int)bytes, (int)code->data, (int)code->more, (int)column,
				      code->tables, data, more);
}

/* Of fewer symbols than the code's tables are for. */
static void make_of_some(const struct parity_code *code, uint32_t bytes, uint8_t **data,
			 uint8_t **more)
{
	uint8_t factors[PARITY_GROUP_PAGES_MAX], tables[PARITY_GROUP_PAGES_MAX * TABLE_BYTES];

	for (uint32_t row = 0; row < code->more; row++) {
		for (uint32_t column = 0; column < code->used; column++)
			factors[column] = factor(code, row, column);
		ec_init_tables((int)code->used, 1, factors, tables);
		ec_encode_data((int)bytes, (int)code->used, 1, tables, data, &more[row]);
	}
}

static void code_make(const struct parity_code *code, uint32_t bytes, uint8_t **data,
		      uint8_t **more)
{
	if (code->more == 1)
		add_up(code, bytes, data, more[0]);
	else if (code->used == code->data)
		ec_encode_data((int)bytes, (int)code->data, (int)code->more, code->tables, data,
			       more);
	else
		make_of_some(code, bytes, data, more);
}

/* Which symbols are lost: `count` of the data, and of the parities those that are NULL. */
struct losses {
	const uint32_t *lost;
	uint32_t count;
};

/*
 * Makes lost data again, in place. Each parity is a sum of products; with zeros in the place of
 * what is lost, the difference to the stored one is the sum of the lost products. As many of these
 * as are lost are solved.
 */
static void code_restore(const struct parity_code *code, uint32_t bytes, uint8_t **data,
			 uint8_t **more, const struct losses *losses, uint8_t *scratch)
{
	uint8_t matrix[PARITY_LOSSES_MAX * PARITY_LOSSES_MAX];
	uint8_t inverse[PARITY_LOSSES_MAX * PARITY_LOSSES_MAX];
	uint8_t tables[PARITY_LOSSES_MAX * PARITY_LOSSES_MAX * TABLE_BYTES];
	uint8_t *sums[PARITY_LOSSES_MAX], *known[PARITY_LOSSES_MAX], *out[PARITY_LOSSES_MAX];
	uint32_t count = losses->count, used = 0;

	if (!count)
		return;
	for (uint32_t row = 0; row < code->more; row++)
		sums[row] = scratch + (size_t)row * bytes;
	for (uint32_t n = 0; n < count; n++) {
		out[n] = data[losses->lost[n]];
		assert(out[n]);
		memset(out[n], 0, bytes);
	}
	code_make(code, bytes, data, sums);
	for (uint32_t row = 0; row < code->more && used < count; row++) {
		if (!more[row])
			continue;
		for (uint32_t n = 0; n < count; n++)
			matrix[used * count + n] = factor(code, row, losses->lost[n]);
		for (uint32_t n = 0; n < bytes; n++)
			sums[row][n] ^= more[row][n];
		known[used++] = sums[row];
	}
	assert(used == count);
	int singular = gf_invert_matrix(matrix, inverse, (int)count);

	assert(!singular);
	(void)singular;
	ec_init_tables((int)count, (int)count, inverse, tables);
	ec_encode_data((int)bytes, (int)count, (int)count, tables, known, out);
}

/* ---- shape and memory ---- */

/* Bytes of all parities of a group. */
static uint32_t parities_bytes(const struct parity_shape *shape)
{
	return shape->losses * (shape->page_bytes + shape->head_bytes);
}

/* Shares that hold parities; as many as may be lost hold parity of these. */
static uint32_t shares_of_parities(const struct parity_shape *shape)
{
	return shape->group_pages - shape->losses;
}

struct parity_shape parity_shape(uint32_t page_bytes, uint32_t head_bytes, uint32_t segment_pages,
				 uint32_t losses)
{
	struct parity_shape shape = {
		.losses = losses,
		.group_pages = (uint32_t)min_u64(segment_pages, PARITY_GROUP_PAGES_MAX),
		.page_bytes = page_bytes,
		.head_bytes = head_bytes,
	};

	assert(losses <= PARITY_LOSSES_MAX && losses <= shape.group_pages / 2);
	shape.share_bytes = (uint32_t)divide_up(parities_bytes(&shape), shares_of_parities(&shape));
	return shape;
}

int parity_create(struct parity *parity, const struct parity_shape *shape)
{
	*parity = (struct parity){ .shape = *shape };
	if (!shape->losses)
		return 0;
	if (code_create(&parity->pages, shape->group_pages, shape->losses) ||
	    code_create(&parity->shares, shares_of_parities(shape), shape->losses))
		return -ENOMEM;
	return 0;
}

void parity_destroy(struct parity *parity)
{
	free(parity->pages.tables);
	free(parity->shares.tables);
}

uint64_t parity_memory(const struct parity *parity)
{
	return malloc_usable_size(parity->pages.tables) + malloc_usable_size(parity->shares.tables);
}

/* The parities, cut into shares; then what code_restore needs. */
static size_t cut_bytes(const struct parity_shape *shape)
{
	return (size_t)shares_of_parities(shape) * shape->share_bytes;
}

size_t parity_scratch_bytes(const struct parity_shape *shape)
{
	return cut_bytes(shape) +
	       (size_t)shape->losses *
		       max_u64(max_u64(shape->page_bytes, shape->head_bytes), shape->share_bytes);
}

/* ---- a group ---- */

/* A part of all pages: their data, or the heads of their spare areas. */
struct part {
	uint32_t bytes;
	uint8_t *data[PARITY_GROUP_PAGES_MAX];
	uint8_t *more[PARITY_LOSSES_MAX];
};

static uint8_t *share_of(const struct parity *parity, const struct nand_page_io *page)
{
	return (uint8_t *)page->spare + parity->shape.head_bytes;
}

/* `cut`: where the parities are. */
static struct part part_of(const struct parity *parity, const struct nand_page_io *group,
			   uint8_t *cut, bool is_head)
{
	const struct parity_shape *shape = &parity->shape;
	struct part part = { .bytes = is_head ? shape->head_bytes : shape->page_bytes };

	for (uint32_t n = 0; n < shape->group_pages; n++)
		part.data[n] = is_head ? group[n].spare : group[n].data;
	for (uint32_t n = 0; n < shape->losses; n++)
		part.more[n] = cut + (size_t)n * (shape->page_bytes + shape->head_bytes) +
			       (is_head ? shape->page_bytes : 0);
	return part;
}

void parity_begin(const struct parity *parity, uint8_t *scratch)
{
	memset(scratch, 0, cut_bytes(&parity->shape));
}

void parity_add(const struct parity *parity, uint32_t number, const struct nand_page_io *page,
		uint8_t *scratch)
{
	const struct parity_shape *shape = &parity->shape;
	uint8_t *more[2][PARITY_LOSSES_MAX];

	for (uint32_t n = 0; n < shape->losses; n++) {
		more[0][n] = scratch + (size_t)n * (shape->page_bytes + shape->head_bytes);
		more[1][n] = more[0][n] + shape->page_bytes;
	}
	code_add(&parity->pages, number, shape->page_bytes, page->data, more[0]);
	code_add(&parity->pages, number, shape->head_bytes, page->spare, more[1]);
}

void parity_end(const struct parity *parity, const struct nand_page_io *group, uint8_t *scratch)
{
	const struct parity_shape *shape = &parity->shape;
	uint32_t first = shares_of_parities(shape);
	uint8_t *shares[PARITY_GROUP_PAGES_MAX], *more[PARITY_LOSSES_MAX];

	for (uint32_t n = 0; n < first; n++)
		shares[n] = memcpy(share_of(parity, &group[n]),
				   scratch + (size_t)n * shape->share_bytes, shape->share_bytes);
	for (uint32_t n = 0; n < shape->losses; n++)
		more[n] = share_of(parity, &group[first + n]);
	code_make(&parity->shares, shape->share_bytes, shares, more);
}

/* Puts together the parities of a group from those shares that are there. */
static void restore_parities(const struct parity *parity, const struct nand_page_io *group,
			     const struct losses *losses, uint8_t *scratch)
{
	const struct parity_shape *shape = &parity->shape;
	uint32_t first = shares_of_parities(shape);
	uint8_t *shares[PARITY_GROUP_PAGES_MAX] = { NULL }, *more[PARITY_LOSSES_MAX] = { NULL };
	struct losses of_parities = *losses;

	for (uint32_t n = 0; n < first; n++)
		shares[n] = memcpy(scratch + (size_t)n * shape->share_bytes,
				   share_of(parity, &group[n]), shape->share_bytes);
	for (uint32_t n = 0; n < shape->losses; n++)
		more[n] = share_of(parity, &group[first + n]);
	/* The last ones of them are parity of shares. */
	while (of_parities.count && losses->lost[of_parities.count - 1] >= first)
		more[losses->lost[--of_parities.count] - first] = NULL;
	code_restore(&parity->shares, shape->share_bytes, shares, more, &of_parities,
		     scratch + cut_bytes(shape));
}

int parity_restore(const struct parity *parity, const struct nand_page_io *group,
		   const uint32_t *lost, uint32_t count, uint8_t *scratch)
{
	const struct losses losses = { .lost = lost, .count = count };

	if (count > parity->shape.losses)
		return -EBADMSG;
	restore_parities(parity, group, &losses, scratch);
	for (int is_head = 0; is_head <= 1; is_head++) {
		struct part part = part_of(parity, group, scratch, is_head);

		code_restore(&parity->pages, part.bytes, part.data, part.more, &losses,
			     scratch + cut_bytes(&parity->shape));
	}
	return 0;
}

/* ---- a run ---- */

uint32_t parity_run_more(const struct parity_shape *shape, uint32_t pages)
{
	return (uint32_t)divide_up(pages, shape->group_pages) * shape->losses;
}

/* A group of a run: the code for as many pages as it has, and where these and its parities are. */
struct run_group {
	struct parity_code code;
	uint32_t first, more_first; /* pages of the run, counted with its parities */
	uint8_t *data[PARITY_GROUP_PAGES_MAX];
	uint8_t *more[PARITY_LOSSES_MAX];
};

/* Group `number`. False: the run has not so many. */
static bool run_group(const struct parity *parity, uint8_t *bytes, uint32_t pages, uint32_t number,
		      struct run_group *group)
{
	const struct parity_shape *shape = &parity->shape;

	if (!shape->losses || number * shape->group_pages >= pages)
		return false;
	group->code = parity->pages;
	group->first = number * shape->group_pages;
	group->more_first = pages + number * shape->losses;
	group->code.used = (uint32_t)min_u64(pages - group->first, shape->group_pages);
	for (uint32_t n = 0; n < group->code.used; n++)
		group->data[n] = bytes + (uint64_t)(group->first + n) * shape->page_bytes;
	for (uint32_t n = 0; n < shape->losses; n++)
		group->more[n] = bytes + (uint64_t)(group->more_first + n) * shape->page_bytes;
	return true;
}

void parity_run_encode(const struct parity *parity, uint8_t *bytes, uint32_t pages)
{
	struct run_group group = { 0 };

	for (uint32_t n = 0; run_group(parity, bytes, pages, n, &group); n++)
		code_make(&group.code, parity->shape.page_bytes, group.data, group.more);
}

static int restore_run_group(const struct parity *parity, struct run_group *group, const bool *lost,
			     uint8_t *scratch)
{
	uint32_t numbers[PARITY_GROUP_PAGES_MAX];
	struct losses losses = { .lost = numbers };
	uint32_t parities = 0;

	for (uint32_t n = 0; n < group->code.used; n++)
		if (lost[group->first + n])
			numbers[losses.count++] = n;
	for (uint32_t n = 0; n < group->code.more; n++) {
		if (lost[group->more_first + n])
			group->more[n] = NULL;
		parities += group->more[n] != NULL;
	}
	if (losses.count > parities)
		return -EBADMSG;
	code_restore(&group->code, parity->shape.page_bytes, group->data, group->more, &losses,
		     scratch);
	return 0;
}

int parity_run_restore(const struct parity *parity, uint8_t *bytes, uint32_t pages,
		       const bool *lost, uint8_t *scratch)
{
	struct run_group group = { 0 };
	int result = 0;

	for (uint32_t n = 0; !result && run_group(parity, bytes, pages, n, &group); n++)
		result = restore_run_group(parity, &group, lost, scratch);
	for (uint32_t n = 0; !parity->shape.losses && n < pages; n++)
		result = lost[n] ? -EBADMSG : result;
	return result;
}
