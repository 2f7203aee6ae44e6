/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h that cut, clear and move ranges of data. */
#include "common/bytes.h"
#include "engine/objects/data.h"
#include "engine/objects/handles.h"

/* ---- parts of a piece ---- */

/*
 * Zeros over bytes from..end - 1 of a piece that is kept: its record gets shorter if they are its
 * last ones.
 */
static int zero_part(struct target *target, uint32_t piece, uint32_t from, uint32_t end)
{
	uint8_t *page = txn_page(target->txn, TXN_PIECE);
	uint32_t length;
	int result;

	result = data_get(target, piece, page, target->txn->engine->page_bytes, &length);
	if (result || length <= from)
		return result;
	if (end >= length)
		return data_put(target, piece, page, from);
	memset(page + from, 0, end - from);
	return data_put(target, piece, page, length);
}

int data_cut(struct target *target, uint64_t length)
{
	uint32_t page_bytes = target->txn->engine->page_bytes;
	uint32_t rest = (uint32_t)(length % page_bytes);
	/* First, so that what is put again may be all that a small object has. */
	int result = data_void(target, divide_up(length, page_bytes), ENGINE_PIECES_MAX);

	if (!result && rest)
		result = zero_part(target, (uint32_t)(length / page_bytes), rest, page_bytes);
	if (!result)
		target->onode->head.length = length;
	return result;
}

/* ---- truncate ---- */

int engine_object_truncate(struct engine_object *object, uint64_t length)
{
	struct target *target;
	uint64_t pieces;
	int result = object_use_data(object, TARGET_CHANGE, &target);

	if (!result)
		result = data_check_range(object->txn, 0, length);
	if (!result)
		result = data_change(target);
	if (result)
		return result;
	pieces = target->onode->extents.pieces;
	if (length < target->onode->head.length)
		result = data_cut(target, length);
	else
		target->onode->head.length = length;
	data_account(target, pieces);
	return result;
}

/* ---- clear ---- */

/*
 * Puts zeros over bytes offset..end - 1 (offset < end), as far as the object has them. A piece
 * without any other bytes becomes a hole.
 */
static int clear_range(struct target *target, uint64_t offset, uint64_t end)
{
	uint64_t page_bytes = target->txn->engine->page_bytes, size = target->onode->head.length;
	uint64_t first = offset / page_bytes, last = end / page_bytes;
	uint32_t from = (uint32_t)(offset % page_bytes), to = (uint32_t)(end % page_bytes);
	int result = 0;

	if (end >= size && to) {
		last++;
		to = 0;
	}
	if (from && first == last)
		return zero_part(target, (uint32_t)first, from, to);
	/* First, since pieces that are put on both sides of it would make it look at all between.
	 */
	result = data_void(target, first + (from != 0), last);
	if (!result && from)
		result = zero_part(target, (uint32_t)first, from, (uint32_t)page_bytes);
	if (!result && to)
		result = zero_part(target, (uint32_t)last, 0, to);
	return result ? result : data_limit_extents(target);
}

int engine_object_clear(struct engine_object *object, uint64_t offset, uint64_t length)
{
	struct onode_head *head;
	struct target *target;
	uint64_t pieces, end = offset + length;
	int result = object_use_data(object, TARGET_CHANGE, &target);

	if (!result)
		result = data_check_range(object->txn, offset, length);
	if (result || length == 0)
		return result;
	result = data_change(target);
	if (result)
		return result;
	head = &target->onode->head;
	pieces = target->onode->extents.pieces;
	if (offset < head->length)
		result = clear_range(target, offset, min_u64(end, head->length));
	if (!result)
		head->length = max_u64(head->length, end);
	data_account(target, pieces);
	return result;
}

/* ---- punch ---- */

/*
 * A punch at work: bytes from `offset` on become those `distance` further up; `size` is the old
 * length.
 */
struct punch {
	struct target *target;
	uint64_t offset, distance, size;
};

static bool is_live(const struct punch *punch, uint64_t piece)
{
	return piece < ENGINE_PIECES_MAX &&
	       extents_find(&punch->target->onode->extents, (uint32_t)piece);
}

/*
 * Adds to `page`, which holds `*length` bytes of the new piece, the bytes at..end - 1 of the old
 * object, which go to `to` and on. They lie in one old piece.
 */
static int collect(const struct punch *punch, uint64_t at, uint64_t end, uint8_t *page, uint32_t to,
		   uint32_t *length)
{
	uint32_t page_bytes = punch->target->txn->engine->page_bytes, had, bytes;
	uint32_t from = (uint32_t)(at % page_bytes);
	uint8_t *source = txn_page(punch->target->txn, TXN_OTHER_PIECE);
	int result;

	result = data_get(punch->target, (uint32_t)(at / page_bytes), source, page_bytes, &had);
	if (result || had <= from)
		return result;
	bytes = (uint32_t)min_u64(had - from, end - at);
	memset(page + *length, 0, to - *length);
	memcpy(page + to, source + from, bytes);
	*length = to + bytes;
	return 0;
}

/* Makes one piece of the new object, which begins at or before the end of what is moved. */
static int punch_piece(const struct punch *punch, uint32_t piece)
{
	struct target *target = punch->target;
	uint64_t page_bytes = target->txn->engine->page_bytes;
	uint64_t begin = piece * page_bytes;
	uint64_t kept = punch->offset > begin ? punch->offset - begin : 0;
	uint64_t at = begin + kept + punch->distance;
	uint64_t end = min_u64(begin + page_bytes + punch->distance, punch->size);
	uint64_t turn =
		min_u64(end, align_up(at + 1, page_bytes)); /* where the second old piece begins */
	uint8_t *page = txn_page(target->txn, TXN_PIECE);
	uint32_t length = 0;
	int result = 0;

	if (!(kept && is_live(punch, piece)) && !is_live(punch, at / page_bytes) &&
	    !(turn < end && is_live(punch, turn / page_bytes)))
		return data_void(target, piece, (uint64_t)piece + 1);
	if (kept) {
		result = data_get(target, piece, page, (uint32_t)kept, &length);
		length = (uint32_t)min_u64(length, kept);
	}
	if (!result)
		result = collect(punch, at, turn, page, (uint32_t)kept, &length);
	if (!result && turn < end)
		result = collect(punch, turn, end, page, (uint32_t)(kept + turn - at), &length);
	return result ? result : data_put(target, piece, page, length);
}

/* The first piece >= `piece` that is not a hole both before and after; EXTENTS_NO_PIECE. */
static uint64_t next_concerned(const struct punch *punch, uint64_t piece)
{
	const struct extents *extents = &punch->target->onode->extents;
	uint64_t page_bytes = punch->target->txn->engine->page_bytes;
	uint64_t source = (piece * page_bytes + punch->distance) / page_bytes;
	uint64_t next = extents_next_piece(extents, piece),
		 later = extents_next_piece(extents, source);

	if (later != EXTENTS_NO_PIECE) {
		uint64_t begin = later * page_bytes;

		begin = begin > punch->distance ? (begin - punch->distance) / page_bytes : 0;
		next = min_u64(next, max_u64(piece, begin));
	}
	return next;
}

/* Whether what is behind the hole is more than one transaction moves. */
static bool is_too_much(const struct punch *punch)
{
	const struct extents *extents = &punch->target->onode->extents;
	uint64_t page_bytes = punch->target->txn->engine->page_bytes;
	uint64_t first = (punch->offset + punch->distance) / page_bytes;
	uint64_t live = extents_count_from(extents, first);

	return punch->offset + punch->distance < punch->size && live > ENGINE_PIECES_MOVED_MAX;
}

/*
 * Moves what is behind the hole down, piece by piece; each is made of old pieces that are not
 * behind it.
 */
static int move_down(const struct punch *punch)
{
	uint64_t page_bytes = punch->target->txn->engine->page_bytes;
	uint64_t end = divide_up(punch->size - punch->distance, page_bytes);
	uint64_t piece = next_concerned(punch, punch->offset / page_bytes);
	int result = 0;

	while (!result && piece < end) {
		result = punch_piece(punch, (uint32_t)piece);
		if (!result)
			result = data_limit_extents(punch->target);
		piece = next_concerned(punch, piece + 1);
	}
	return result;
}

int engine_object_punch(struct engine_object *object, uint64_t offset, uint64_t length)
{
	struct punch punch = { .offset = offset };
	uint64_t pieces;
	int result = object_use_data(object, TARGET_CHANGE, &punch.target);

	if (result)
		return result;
	punch.size = punch.target->onode->head.length;
	if (offset > punch.size)
		return -EINVAL;
	punch.distance = min_u64(length, punch.size - offset);
	if (punch.distance == 0)
		return 0;
	if (is_too_much(&punch))
		return -E2BIG;
	result = data_change(punch.target);
	if (result)
		return result;
	pieces = punch.target->onode->extents.pieces;
	if (offset + punch.distance < punch.size)
		result = move_down(&punch);
	if (!result)
		result = data_cut(punch.target, punch.size - punch.distance);
	data_account(punch.target, pieces);
	return result;
}
