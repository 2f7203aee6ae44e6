/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h about the layout of data: maps, comparisons and copies of objects. */
#include "common/bytes.h"
#include "engine/objects/data.h"
#include "engine/objects/handles.h"

/* ---- maps ---- */

struct mapping {
	struct target *target;
	bool verify;
	uint32_t *budget;
};

/* Takes one piece from the budget. False: it is used up. */
static bool spend(uint32_t *budget)
{
	if (*budget == 0)
		return false;
	(*budget)--;
	return true;
}

/*
 * Kind of the pieces from `piece` on, and in *end up to which one without another look. -EAGAIN:
 * the budget does not allow the look that it takes.
 */
static int kind_of(const struct mapping *mapping, uint32_t piece, enum engine_extent_kind *kind,
		   uint64_t *end)
{
	const struct extents *extents = &mapping->target->onode->extents;
	const struct extent *extent = extents_find(extents, piece);
	struct engine_txn *txn = mapping->target->txn;
	uint8_t *page = txn_page(txn, TXN_PIECE);
	uint32_t length;
	int result;

	*kind = ENGINE_EXTENT_HOLE;
	if (!extent) {
		*end = extents_next_piece(extents, piece);
		return 0;
	}
	*kind = ENGINE_EXTENT_DATA;
	*end = (uint64_t)extent->first + extent->count;
	if (!mapping->verify && !extent->loose)
		return 0;
	*end = (uint64_t)piece + 1;
	if (!spend(mapping->budget))
		return -EAGAIN;
	result = data_get(mapping->target, piece, page, txn->engine->page_bytes, &length);
	if (result == -EBADMSG)
		*kind = ENGINE_EXTENT_DAMAGED;
	else if (!result && length == 0)
		*kind = ENGINE_EXTENT_HOLE;
	return result == -EBADMSG ? 0 : result;
}

static int map_target(const struct mapping *mapping, uint64_t offset, struct engine_extent *extent)
{
	uint64_t page_bytes = mapping->target->txn->engine->page_bytes;
	uint64_t size = mapping->target->onode->head.length;
	uint64_t piece = offset / page_bytes, end;
	enum engine_extent_kind kind;
	int result;

	if (offset >= size)
		return -ENOENT;
	result = kind_of(mapping, (uint32_t)piece, &extent->kind, &end);
	if (result)
		return result;
	while (end < ENGINE_PIECES_MAX && end * page_bytes < size) {
		const struct extent *next =
			extents_find(&mapping->target->onode->extents, (uint32_t)end);

		piece = end;
		/* What is behind a hole and certainly no hole need not be looked at yet. */
		if (extent->kind == ENGINE_EXTENT_HOLE && next && !next->loose)
			break;
		result = kind_of(mapping, (uint32_t)piece, &kind, &end);
		if (result && result != -EAGAIN)
			return result;
		if (result || kind != extent->kind) {
			end = piece;
			break;
		}
	}
	extent->offset = offset;
	extent->length = min_u64(end * page_bytes, size) - offset;
	return 0;
}

int engine_object_map(struct engine_object *object, uint64_t offset, bool verify, uint32_t *budget,
		      struct engine_extent *extent)
{
	struct mapping mapping = { .verify = verify, .budget = budget };
	int result = object_use_data(object, TARGET_READ, &mapping.target);

	return result ? result : map_target(&mapping, offset, extent);
}

/* ---- comparisons ---- */

/* Two objects being compared, and their lengths. */
struct comparison {
	struct engine_txn *txn;
	struct engine_object *objects[2];
	uint64_t length[2];
	uint32_t *budget;
};

static int open_comparison(struct comparison *comparison)
{
	for (int i = 0; i < 2; i++) {
		struct target *target;
		int result = object_use_data(comparison->objects[i], TARGET_READ, &target);

		if (result)
			return result;
		comparison->length[i] = target->onode->head.length;
	}
	return 0;
}

/* Whether the bytes of a page from `offset` on differ, which lie inside both objects. */
static int compare_page(const struct comparison *comparison, uint64_t offset, uint64_t length,
			enum engine_extent_kind *kind)
{
	uint8_t *pages[2] = { txn_page(comparison->txn, TXN_PIECE),
			      txn_page(comparison->txn, TXN_OTHER_PIECE) };
	uint64_t page_bytes = comparison->txn->engine->page_bytes;
	uint64_t begin = offset / page_bytes * page_bytes, got;

	for (int i = 0; i < 2; i++) {
		/* From the page's start: a read from inside it would use the buffers as well. */
		int result = engine_object_read(comparison->objects[i], begin, pages[i],
						offset - begin + length, &got);

		if (result == -EBADMSG)
			*kind = ENGINE_EXTENT_DAMAGED;
		if (result)
			return result == -EBADMSG ? 0 : result;
	}
	if (memcmp(pages[0] + (offset - begin), pages[1] + (offset - begin), length) == 0)
		*kind = ENGINE_EXTENT_SAME;
	return 0;
}

/* What there is from `offset` on: a run that is the same, or at most a page that is not. */
static int compare_step(const struct comparison *comparison, uint64_t offset,
			struct engine_extent *extent)
{
	uint64_t page_bytes = comparison->txn->engine->page_bytes;
	struct engine_extent runs[2];

	for (int i = 0; i < 2; i++) {
		int result = engine_object_map(comparison->objects[i], offset, false,
					       comparison->budget, &runs[i]);

		if (result == -ENOENT)
			runs[i] = (struct engine_extent){ ENGINE_EXTENT_HOLE, offset, UINT64_MAX };
		else if (result)
			return result;
	}
	extent->offset = offset;
	extent->kind = runs[0].kind;
	extent->length = min_u64(runs[0].length, runs[1].length);
	/* Where only one of them has bytes, they differ whatever the bytes are. */
	if (offset >= min_u64(comparison->length[0], comparison->length[1]))
		return 0;
	if (runs[0].kind == ENGINE_EXTENT_HOLE && runs[1].kind == ENGINE_EXTENT_HOLE) {
		extent->kind = ENGINE_EXTENT_SAME;
		return 0;
	}
	if (!spend(comparison->budget))
		return -EAGAIN;
	extent->length = min_u64(extent->length, page_bytes - offset % page_bytes);
	return compare_page(comparison, offset, extent->length, &extent->kind);
}

int engine_object_compare(struct engine_object *first, struct engine_object *second,
			  uint64_t offset, uint32_t *budget, struct engine_extent *extent)
{
	struct comparison comparison = { .txn = first->txn,
					 .objects = { first, second },
					 .budget = budget };
	uint64_t end;
	int result = open_comparison(&comparison);

	if (result)
		return result;
	end = max_u64(comparison.length[0], comparison.length[1]);
	if (offset >= end)
		return -ENOENT;
	result = compare_step(&comparison, offset, extent);
	while (!result && extent->offset + extent->length < end) {
		struct engine_extent next;

		result = compare_step(&comparison, extent->offset + extent->length, &next);
		if (result == -EAGAIN)
			return 0;
		if (result || next.kind != extent->kind)
			break;
		extent->length += next.length;
	}
	return result;
}

/* ---- copies ---- */

/* Copies the run from *offset on. */
static int copy_run(struct engine_object *from, struct engine_object *to,
		    const struct engine_extent *run, uint64_t *offset, uint32_t *budget)
{
	struct engine_txn *txn = from->txn;
	uint32_t page_bytes = txn->engine->page_bytes;
	uint64_t end = run->offset + run->length, got;
	int result = 0;

	while (!result && *offset < end) {
		/* Not used by reads and writes of whole pages, and of the last one. */
		uint8_t *page = txn_page(txn, TXN_OTHER_PIECE);

		if (!spend(budget))
			return -EAGAIN;
		result = engine_object_read(from, *offset, page, min_u64(page_bytes, end - *offset),
					    &got);
		if (!result)
			result = engine_object_write(to, *offset, page, got);
		if (!result)
			*offset += got;
	}
	return result;
}

int engine_object_copy_data(struct engine_object *from, struct engine_object *to, uint64_t *offset,
			    uint32_t *budget)
{
	struct engine_stat stat;
	int result = engine_object_stat(from, &stat);

	if (!result && *offset == 0)
		result = engine_object_truncate(to, 0);
	while (!result) {
		struct engine_extent run;

		result = engine_object_map(from, *offset, false, budget, &run);
		if (!result && run.kind == ENGINE_EXTENT_DATA)
			result = copy_run(from, to, &run, offset, budget);
		else if (!result && run.kind == ENGINE_EXTENT_DAMAGED)
			result = -EBADMSG;
		else if (!result)
			*offset = run.offset + run.length;
	}
	return result == -ENOENT ? engine_object_truncate(to, stat.length) : result;
}
