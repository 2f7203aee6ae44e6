/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Hands out free segments, the less worn ones first. */
#include "engine/records/space.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"

/*
 * Segments that were free longest and are compared: enough to level wear, few enough to keep the
 * order of writing.
 */
enum { CANDIDATES = 8 };

/* Segments that one call of space_trim_look looks at. */
enum { TRIM_LOOKS = 256 };

static void note_wear(struct space *space, uint32_t segment, uint32_t erasures)
{
	if (erasures > space->wear[segment])
		space->wear[segment] = erasures;
	if (erasures > space->wear_most)
		space->wear_most = erasures;
}

/* A block with a damaged record begins its count again. */
static void read_wear(struct space *space)
{
	uint32_t blocks = space->shape.segment_blocks;

	for (uint32_t block = space->shape.first * blocks; block < space->shape.segments * blocks;
	     block++) {
		struct nand_block_info info;

		if (nand_block_info(space->nand, block, &info) == 0)
			note_wear(space, block / blocks, info.erase_count);
	}
}

int space_create(struct space *space, struct nand *nand, const struct space_shape *shape,
		 const bool *in_use)
{
	*space = (struct space){ .nand = nand, .shape = *shape, .away = NO_SEGMENT };
	space->ring = calloc(shape->segments, sizeof(*space->ring));
	space->wear = calloc(shape->segments, sizeof(*space->wear));
	if (!space->ring || !space->wear) {
		space_destroy(space);
		return -ENOMEM;
	}
	read_wear(space);
	for (uint32_t segment = shape->first; segment < shape->segments; segment++)
		if (!in_use[segment])
			space->ring[space->count++] = segment;
	return 0;
}

void space_destroy(struct space *space)
{
	free(space->ring);
	free(space->wear);
	space->ring = space->wear = NULL;
}

int segment_end(struct nand *nand, uint32_t segment_blocks, uint32_t segment, uint32_t *end)
{
	uint32_t block_pages = nand_geometry(nand)->pages_per_block;

	*end = 0;
	for (uint32_t i = 0; i < segment_blocks; i++) {
		struct nand_block_info info;
		int result = nand_block_info(nand, segment * segment_blocks + i, &info);

		if (result)
			return result;
		if (info.next_page)
			*end = i * block_pages + info.next_page;
	}
	return 0;
}

int segment_erase(struct nand *nand, uint32_t segment_blocks, enum nand_cause cause,
		  uint32_t segment, uint32_t *erasures)
{
	uint32_t block = segment * segment_blocks;

	*erasures = 0;
	for (uint32_t i = 0; i < segment_blocks; i++, block++) {
		struct nand_block_info info = { .erase_count = 0 };
		int result = nand_block_info(nand, block, &info);

		if (!result && info.state == NAND_BLOCK_BAD)
			result = -EIO;
		if (!result && info.next_page != 0) {
			result = nand_erase(nand, cause, block);
			info.erase_count++;
		}
		if (result) {
			log_line(LOG_LEVEL_WARNING,
				 "%s: segment %u is retired: block %u can't be erased (error %d)",
				 nand_path(nand), segment, block, -result);
			return result;
		}
		if (info.erase_count > *erasures)
			*erasures = info.erase_count;
	}
	return 0;
}

/* Removes the least worn of the first few from the list, of equal ones the first. */
static uint32_t take_least_worn(struct space *space)
{
	uint32_t candidates = space->count < CANDIDATES ? space->count : CANDIDATES;
	uint32_t best = 0, segment;

	for (uint32_t n = 1; n < candidates; n++)
		if (space->wear[*space_ring_at(space, n)] <
		    space->wear[*space_ring_at(space, best)])
			best = n;
	segment = *space_ring_at(space, best);
	for (uint32_t n = best; n > 0; n--)
		*space_ring_at(space, n) = *space_ring_at(space, n - 1);
	space->first = (space->first + 1) % space->shape.segments;
	space->count--;
	return segment;
}

int space_reserve(struct space *space, uint32_t *segment)
{
	if (!space->count)
		return -ENOSPC;
	*segment = take_least_worn(space);
	space->taken++;
	return 0;
}

void space_prepared(struct space *space, uint32_t segment, int result, uint32_t erasures)
{
	if (result)
		space->retired++;
	else
		note_wear(space, segment, erasures);
}

int space_take(struct space *space, uint32_t *segment)
{
	int result = space_reserve(space, segment);

	while (!result) {
		uint32_t erasures;
		int erased = segment_erase(space->nand, space->shape.segment_blocks,
					   NAND_CAUSE_USER, *segment, &erasures);

		space_prepared(space, *segment, erased, erasures);
		if (!erased)
			break;
		space->taken--;
		result = space_reserve(space, segment);
	}
	return result;
}

/* ---- emptying what is not taken soon ---- */

/* Is there something on it, or may the host lack its space? Of a damaged one nothing is known. */
static bool is_worth_emptying(const struct space *space, uint32_t segment)
{
	uint32_t blocks = space->shape.segment_blocks, end;

	if (segment_end(space->nand, blocks, segment, &end))
		return false;
	for (uint32_t i = 0; i < blocks && end == 0; i++)
		if (nand_may_give_back(space->nand, segment * blocks + i))
			return true;
	return end > 0;
}

bool space_trim_look(struct space *space, uint32_t kept)
{
	uint32_t blocks = space->shape.segment_blocks;

	for (uint32_t looks = 0; looks < TRIM_LOOKS; looks++, space->trimmed++) {
		uint32_t segment;

		if (space->trimmed >= space->count) {
			space->trimmed = 0;
			return false;
		}
		segment = *space_ring_at(space, space->trimmed);
		if (space->trimmed < kept)
			nand_expect_programs(space->nand, segment * blocks, blocks);
		else if (is_worth_emptying(space, segment))
			return true;
	}
	return false;
}

bool space_trim_take(struct space *space, uint32_t kept)
{
	uint32_t end = space->count + space_held_back(space);

	/* Since the last look others have had their turn. */
	if (space->away != NO_SEGMENT || !space_trim_look(space, kept))
		return false;
	space->away = *space_ring_at(space, space->trimmed);
	for (uint32_t n = space->trimmed; n + 1 < end; n++)
		*space_ring_at(space, n) = *space_ring_at(space, n + 1);
	space->count--;
	return true;
}

void space_trim_empty(struct space *space)
{
	uint32_t blocks = space->shape.segment_blocks;

	space->away_result = segment_erase(space->nand, blocks, NAND_CAUSE_MERGE, space->away,
					   &space->away_erasures);
	if (space->away_result == 0)
		nand_give_back(space->nand, space->away * blocks, blocks);
}

void space_trim_put_back(struct space *space)
{
	uint32_t segment = space->away;

	space->away = NO_SEGMENT;
	space_prepared(space, segment, space->away_result, space->away_erasures);
	if (space->away_result == 0)
		space_release(space, segment);
}

void space_release(struct space *space, uint32_t segment)
{
	uint32_t end = space->count + space_held_back(space);

	assert(end < space->shape.segments);
	for (; end > space->count; end--)
		*space_ring_at(space, end) = *space_ring_at(space, end - 1);
	*space_ring_at(space, space->count++) = segment;
}

void space_hold(struct space *space, uint32_t segment)
{
	uint32_t end = space->count + space_held_back(space);

	assert(end < space->shape.segments);
	*space_ring_at(space, end) = segment;
	space->held++;
}

void space_let_go(struct space *space, uint64_t until)
{
	assert(until <= space->held);
	if (until <= space->let_go)
		return;
	space->count += (uint32_t)(until - space->let_go);
	space->let_go = until;
}

uint32_t space_level(struct space *space, bool (*is_used)(const void *context, uint32_t segment),
		     const void *context)
{
	uint32_t least = NO_SEGMENT;

	if (space->wear_most < SPACE_WEAR_SPREAD ||
	    space->taken < space->levelled + SPACE_LEVEL_EVERY)
		return NO_SEGMENT;
	space->levelled = space->taken;
	for (uint32_t segment = 0; segment < space->shape.segments; segment++)
		if ((least == NO_SEGMENT || space->wear[segment] < space->wear[least]) &&
		    is_used(context, segment))
			least = segment;
	if (least == NO_SEGMENT || space->wear_most - space->wear[least] < SPACE_WEAR_SPREAD)
		return NO_SEGMENT;
	return least;
}

void space_leave(struct space *space, uint32_t segment)
{
	space->wear[segment] = space->wear_most;
}
