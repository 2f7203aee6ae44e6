/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Pieces of data: reading and putting one, voiding, keeping the list of extents short; and on top
 * of them the calls of engine.h that read and write. No record reaches beyond the end of its
 * object.
 */
#include "engine/objects/data.h"

#include <assert.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/objects/handles.h"
#include "engine/records/waiting.h"

/*
 * ---- single pieces ----
 *
 * Piece 0 of a small object is in its onode, as long as it is the object's only one. Everything
 * that reads or puts a piece comes through here, so nothing else in the engine sees a difference.
 */

static struct record_key piece_key(const struct target *target, uint32_t piece)
{
	const struct cache_key *key = &target->onode->entry.key;

	return key_of_data(key->partition, key->identifier, piece);
}

static int lost(const struct target *target, uint32_t piece)
{
	log_line(LOG_LEVEL_ERROR,
		 "%s: partition 0x%llx object 0x%llx: the record of page %u is missing from the "
		 "store",
		 target->txn->engine->store->device, (unsigned long long)target->partition->id,
		 (unsigned long long)target->onode->entry.key.identifier, piece);
	return -EBADMSG;
}

/* What a record of an extent's piece means: how many bytes there are. */
static int piece_found(const struct target *target, const struct extent *extent, uint32_t piece,
		       const struct record_found *found, uint32_t *length)
{
	*length = 0;
	if (found->result == -ENOENT ||
	    (!found->result && found->info.sequence < extent->min_sequence))
		return extent->loose ? 0 : lost(target, piece);
	if (!found->result)
		*length = found->info.length;
	return found->result;
}

static int inline_get(const struct inline_data *from, void *data, uint32_t capacity,
		      uint32_t *length)
{
	*length = from->length;
	if (from->length && capacity)
		memcpy(data, from->bytes, min_u64(from->length, capacity));
	return 0;
}

int data_get(const struct target *target, uint32_t piece, void *data, uint32_t capacity,
	     uint32_t *length)
{
	const struct extent *extent = extents_find(&target->onode->extents, piece);
	struct record_found found;

	*length = 0;
	if (!extent)
		return 0;
	if (target->onode->data.here)
		return inline_get(&target->onode->data, data, capacity, length);
	found.result = record_get(target->txn->engine->store, piece_key(target, piece),
				  target->bound, data, capacity, &found.info);
	return piece_found(target, extent, piece, &found, length);
}

/*
 * The number of the record of a target's piece. 0: it has none of its own, or it can't be read.
 */
static uint64_t record_of(const struct target *target, uint32_t piece)
{
	const struct extent *extent = extents_find(&target->onode->extents, piece);
	struct record_info info;

	if (!extent || target->onode->data.here ||
	    record_get(target->txn->engine->store, piece_key(target, piece), target->bound, NULL, 0,
		       &info))
		return 0;
	return info.sequence >= extent->min_sequence ? info.sequence : 0;
}

static int owner_of(const struct target *target, uint64_t sequence, uint16_t *owner)
{
	return lineage_owner(target->txn->engine->store, target->partition->index, target->bound,
			     sequence, owner);
}

/* Whether what has that number in both is the same. */
static bool have_same_owner(const struct target *one, const struct target *other, uint64_t sequence)
{
	uint16_t owner, other_owner;

	return owner_of(one, sequence, &owner) == 0 &&
	       owner_of(other, sequence, &other_owner) == 0 && owner == other_owner;
}

bool data_is_same_record(const struct target *one, const struct target *other, uint32_t piece)
{
	uint64_t sequence = record_of(one, piece);

	return sequence && sequence == record_of(other, piece) &&
	       have_same_owner(one, other, sequence);
}

bool data_is_unmodified(const struct target *one, const struct target *other)
{
	uint64_t sequence = one->onode->head.modified_sequence;

	return !one->partition->is_unlogged && sequence == other->onode->head.modified_sequence &&
	       have_same_owner(one, other, sequence);
}

static int put_piece_record(struct target *target, uint32_t piece, const void *data,
			    uint32_t length)
{
	struct onode *onode = target->onode;
	struct engine_txn *txn = target->txn;
	int result = record_put(&txn->writer, piece_key(target, piece),
				onode->absorb ? RECORD_ABSORB : 0, data, length);

	if (result)
		return result;
	txn->data_put = true;
	if (onode->written_sequence != txn->sequence) {
		onode->written_sequence = txn->sequence;
		onode->written_first = piece;
		onode->written_end = (uint64_t)piece + 1;
	} else {
		onode->written_first = min_u64(onode->written_first, piece);
		onode->written_end = max_u64(onode->written_end, (uint64_t)piece + 1);
	}
	return 0;
}

/* Whether the object would be a small one with `length` bytes in a piece. */
static bool fits_inline(const struct target *target, uint32_t piece, uint32_t length)
{
	const struct extents *extents = &target->onode->extents;

	return piece == 0 && target->txn->engine->inline_max &&
	       length <= target->txn->engine->inline_max &&
	       extents->pieces == (extents_find(extents, 0) ? 1 : 0);
}

/* The object is no small one any more: piece 0 gets a record of its own. */
static int move_out(struct target *target)
{
	struct onode *onode = target->onode;
	int result = put_piece_record(target, 0, onode->data.bytes, onode->data.length);

	if (!result)
		onode_inline_end(onode);
	return result;
}

int data_put(struct target *target, uint32_t piece, const void *data, uint32_t length)
{
	struct onode *onode = target->onode;
	int result = extents_reserve(&onode->extents, 1);

	if (!result && fits_inline(target, piece, length)) {
		result = onode_inline_set(onode, data, length);
	} else {
		if (!result && piece != 0 && onode->data.here)
			result = move_out(target);
		if (!result)
			result = put_piece_record(target, piece, data, length);
		if (!result && piece == 0)
			onode_inline_end(onode);
	}
	if (!result)
		extents_add(&onode->extents, piece, onode->head.void_sequence);
	return result;
}

/*
 * Gives the pieces of an extent that this transaction has put, within first..end - 1, empty
 * records.
 */
static int empty_written(struct target *target, uint64_t first, uint64_t end)
{
	struct onode *onode = target->onode;
	struct engine_txn *txn = target->txn;
	uint32_t piece;

	if (onode->written_sequence != txn->sequence)
		return 0;
	first = max_u64(first, onode->written_first);
	end = min_u64(end, onode->written_end);
	while (first < end) {
		struct record_info info;
		int result;

		piece = extents_next_piece(&onode->extents, first);
		if (piece == EXTENTS_NO_PIECE || piece >= end)
			return 0;
		result = record_get(txn->engine->store, piece_key(target, piece), RECORD_NEWEST,
				    NULL, 0, &info);
		if (!result && info.sequence == txn->sequence && info.length)
			result = record_put(&txn->writer, piece_key(target, piece), 0, NULL, 0);
		if (result && result != -ENOENT)
			return result;
		first = (uint64_t)piece + 1;
	}
	return 0;
}

int data_void(struct target *target, uint64_t first, uint64_t end)
{
	struct onode *onode = target->onode;
	uint32_t piece = extents_next_piece(&onode->extents, first);
	int result;

	if (piece == EXTENTS_NO_PIECE || piece >= end)
		return 0;
	result = extents_reserve(&onode->extents, 1);
	if (!result)
		result = empty_written(target, first, end);
	if (result)
		return result;
	extents_remove(&onode->extents, first, end);
	if (first == 0)
		onode_inline_end(onode);
	onode->head.void_sequence = target->txn->sequence - 1;
	return 0;
}

void data_account(struct target *target, uint64_t before)
{
	uint64_t page_bytes = target->txn->engine->page_bytes;
	uint64_t after = target->onode->extents.pieces;

	if (after == before)
		return;
	target->partition->used_bytes += (after - before) * page_bytes;
	usage_change(target->txn, before * page_bytes, after * page_bytes);
	partition_mark(target->txn, target->partition);
}

/* ---- extents, when they get too many ---- */

/* Puts the live pieces of an extent again, so that they are newer than everything voided. */
static int put_again(struct target *target, struct extent extent)
{
	uint8_t *page = txn_page(target->txn, TXN_OTHER_PIECE);
	uint64_t end = (uint64_t)extent.first + extent.count;

	if (extent.min_sequence > target->onode->head.void_sequence)
		return 0;
	/* So many pieces are no work for who must not wait. */
	if (!may_wait())
		return would_wait();
	for (uint64_t piece = extent.first; piece < end; piece++) {
		uint32_t length;
		int result = data_get(target, (uint32_t)piece, page,
				      target->txn->engine->page_bytes, &length);

		if (!result && (length || !extent.loose))
			result = data_put(target, (uint32_t)piece, page, length);
		if (result)
			return result;
	}
	return 0;
}

int data_limit_extents(struct target *target)
{
	struct onode *onode = target->onode;
	struct extents *extents = &onode->extents;

	while (extents->count > EXTENTS_MAX) {
		uint32_t index = extents_cheapest_pair(extents, onode->head.void_sequence);
		int result = put_again(target, extents->list[index]);

		if (!result)
			result = put_again(target, extents->list[index + 1]);
		if (result)
			return result;
		extents_bridge(extents, index, onode->head.void_sequence);
	}
	return 0;
}

/* ---- reading ---- */

/* Reads `wanted` bytes from `from` of a piece, zeros where there are none. */
static int read_piece(struct target *target, uint32_t piece, uint32_t from, uint32_t wanted,
		      uint8_t *data)
{
	uint32_t length, have = 0;
	uint8_t *page = data;
	int result;

	if (from)
		page = txn_page(target->txn, TXN_PIECE);
	result = data_get(target, piece, page, from + wanted, &length);
	if (result)
		return result;
	if (length > from)
		have = (uint32_t)min_u64(length - from, wanted);
	if (from)
		memcpy(data, page + from, have);
	memset(data + have, 0, wanted - have);
	return 0;
}

/*
 * Reads whole pieces from `piece` on, at most `count`, as many as one request takes: *read says how
 * many. There is data at the first one.
 */
static int read_run(struct target *target, uint32_t piece, uint64_t count, uint8_t *data,
		    uint32_t *read)
{
	const struct extent *extent = extents_find(&target->onode->extents, piece);
	uint32_t page_bytes = target->txn->engine->page_bytes;
	struct record_found found[RECORD_RUN_MAX];
	int result = 0;

	count = min_u64(count, extent->first + (uint64_t)extent->count - piece);
	count = min_u64(count, RECORD_RUN_MAX);
	record_get_run(target->txn->engine->store, piece_key(target, piece), (uint32_t)count,
		       target->bound, data, page_bytes, found);
	for (*read = 0; !result && *read < count; ++*read, data += page_bytes) {
		uint32_t length;

		result = piece_found(target, extent, piece + *read, &found[*read], &length);
		if (!result)
			memset(data + length, 0, page_bytes - length);
	}
	return result;
}

/* Where the next run of data at or behind `offset` begins; `end` if that is earlier. */
static uint64_t next_data(const struct target *target, uint64_t offset, uint64_t end)
{
	uint64_t page_bytes = target->txn->engine->page_bytes;
	uint32_t piece = extents_next_piece(&target->onode->extents, offset / page_bytes);

	if (piece == EXTENTS_NO_PIECE)
		return end;
	return min_u64(end, max_u64(offset, piece * page_bytes));
}

static int read_range(struct target *target, uint64_t offset, uint8_t *data, uint64_t end)
{
	uint64_t page_bytes = target->txn->engine->page_bytes;

	while (offset < end) {
		uint32_t from = (uint32_t)(offset % page_bytes), wanted;
		uint64_t hole = next_data(target, offset, end) - offset;
		int result;

		if (hole) {
			memset(data, 0, hole);
			data += hole;
			offset += hole;
			continue;
		}
		if (from || end - offset < page_bytes || target->onode->data.here) {
			wanted = (uint32_t)min_u64(page_bytes - from, end - offset);
			result = read_piece(target, (uint32_t)(offset / page_bytes), from, wanted,
					    data);
		} else {
			result = read_run(target, (uint32_t)(offset / page_bytes),
					  (end - offset) / page_bytes, data, &wanted);
			wanted *= (uint32_t)page_bytes;
		}
		if (result)
			return result;
		data += wanted;
		offset += wanted;
	}
	return 0;
}

int engine_object_read(struct engine_object *object, uint64_t offset, void *data, uint64_t length,
		       uint64_t *got)
{
	struct target *target;
	int result = object_use_data(object, TARGET_READ, &target);

	*got = 0;
	if (result || offset >= target->onode->head.length)
		return result;
	length = min_u64(length, target->onode->head.length - offset);
	result = read_range(target, offset, data, offset + length);
	if (!result)
		*got = length;
	return result;
}

/* ---- writing ---- */

/* Checks that a range fits into an object. */
int data_check_range(const struct engine_txn *txn, uint64_t offset, uint64_t length)
{
	uint64_t most = (uint64_t)ENGINE_PIECES_MAX * txn->engine->page_bytes;

	return offset > most || length > most - offset ? -EFBIG : 0;
}

void data_modified_now(struct target *target)
{
	if (!target->txn->bypass)
		target->onode->head.times_ms[ENGINE_TIME_DATA_MODIFIED] = target->txn->time_ms;
}

int data_change(struct target *target)
{
	int result = target_change(target);

	if (!result)
		data_modified_now(target);
	return result;
}

/* Writes `length` bytes at `from` of a piece. Other bytes of the piece stay as they are. */
static int write_part(struct target *target, uint32_t piece, uint32_t from, const uint8_t *data,
		      uint32_t length)
{
	uint32_t page_bytes = target->txn->engine->page_bytes;
	uint64_t end = (uint64_t)piece * page_bytes + from + length;
	uint8_t *page;
	uint32_t had;
	int result;

	/*
	 * No record reaches beyond the object's end, so writing up to there leaves nothing to keep.
	 */
	if (from == 0 && (length == page_bytes || end >= target->onode->head.length))
		return data_put(target, piece, data, length);
	page = txn_page(target->txn, TXN_PIECE);
	result = data_get(target, piece, page, page_bytes, &had);
	if (result)
		return result;
	if (had < from)
		memset(page + had, 0, from - had);
	memcpy(page + from, data, length);
	return data_put(target, piece, page, (uint32_t)max_u64(had, from + length));
}

/* Writes piece by piece. After an error what was written before it is part of the object. */
static int write_range(struct target *target, uint64_t offset, const uint8_t *data, uint64_t length)
{
	uint64_t page_bytes = target->txn->engine->page_bytes, end = offset + length;
	struct onode_head *head = &target->onode->head;

	while (offset < end) {
		uint32_t from = (uint32_t)(offset % page_bytes);
		uint32_t bytes = (uint32_t)min_u64(page_bytes - from, end - offset);
		int result = write_part(target, (uint32_t)(offset / page_bytes), from, data, bytes);

		if (result)
			return result;
		data += bytes;
		offset += bytes;
		head->length = max_u64(head->length, offset);
		result = data_limit_extents(target);
		if (result)
			return result;
	}
	return 0;
}

/* Whether every piece of a range has a record of its own already, or a place in a loose extent. */
static bool has_pieces(const struct target *target, uint64_t offset, uint64_t end)
{
	const struct extents *extents = &target->onode->extents;
	uint64_t page_bytes = target->txn->engine->page_bytes;
	uint64_t piece = offset / page_bytes;

	while (piece * page_bytes < end) {
		const struct extent *extent = extents_find(extents, (uint32_t)piece);

		if (!extent)
			return false;
		piece = extent->first + (uint64_t)extent->count;
	}
	return true;
}

/* A clone's own onode comes with its first change; until then it reads its source's. */
static bool has_own_onode(const struct target *target)
{
	const struct partition_origin *origin = &target->partition->origin;

	return !origin->index || target->onode->head.modified_sequence >= origin->since;
}

/* Whether what is written at `offset` might go into the onode. */
static bool may_go_inline(const struct target *target, uint64_t offset)
{
	return offset < target->txn->engine->page_bytes && fits_inline(target, 0, 0);
}

/* Whether writing the range changes nothing that the onode says. */
static bool leaves_onode(const struct target *target, uint64_t offset, uint64_t length)
{
	const struct onode *onode = target->onode;

	return target->partition->is_unlogged && !onode->data.here &&
	       !may_go_inline(target, offset) && offset + length <= onode->head.length &&
	       has_pieces(target, offset, offset + length) && has_own_onode(target);
}

/* Writes where the onode stays as it is, and is not put. */
static int overwrite(struct target *target, uint64_t offset, const void *data, uint64_t length)
{
	struct engine *engine = target->txn->engine;

	target->txn->changed = true;
	target->onode->absorb = engine->history->keeps_nothing(engine, target->partition);
	return write_range(target, offset, data, length);
}

static int write_target(struct target *target, uint64_t offset, const void *data, uint64_t length)
{
	uint64_t pieces = target->onode->extents.pieces;
	int result = data_check_range(target->txn, offset, length);

	if (result || length == 0)
		return result;
	if (leaves_onode(target, offset, length))
		return overwrite(target, offset, data, length);
	result = data_change(target);
	if (result)
		return result;
	result = write_range(target, offset, data, length);
	data_account(target, pieces);
	return result;
}

int engine_object_write(struct engine_object *object, uint64_t offset, const void *data,
			uint64_t length)
{
	struct target *target;
	int result = object_use_data(object, TARGET_CHANGE, &target);

	return result ? result : write_target(target, offset, data, length);
}

int engine_object_append(struct engine_object *object, const void *data, uint64_t length,
			 uint64_t *offset)
{
	struct target *target;
	uint64_t end;
	int result = object_use_data(object, TARGET_CHANGE, &target);

	if (result)
		return result;
	end = target->onode->head.length;
	result = write_target(target, end, data, length);
	if (!result && offset)
		*offset = end;
	return result;
}
