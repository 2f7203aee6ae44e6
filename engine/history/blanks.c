/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/history/blanks.h"

#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "engine/history/times.h"

/* ---- the record ---- */

uint32_t blanks_encode(const struct blanks *blanks, uint8_t *to)
{
	put_le48(to, blanks->since);
	put_le16(to + 6, (uint16_t)blanks->count);
	to += BLANKS_HEAD_BYTES;
	for (uint32_t at = 0; at < blanks->count; at++, to += BLANKS_ENTRY_BYTES) {
		put_le48(to, blanks->list[at].from);
		put_le48(to + 6, blanks->list[at].until);
	}
	return BLANKS_HEAD_BYTES + blanks->count * BLANKS_ENTRY_BYTES;
}

int blanks_decode(struct blanks *blanks, const uint8_t *from, uint32_t length)
{
	uint64_t behind = 0;

	*blanks = (struct blanks){ 0 };
	if (length < BLANKS_HEAD_BYTES)
		return -EBADMSG;
	blanks->since = get_le48(from);
	blanks->count = get_le16(from + 6);
	if (blanks->count > BLANKS_MAX ||
	    length != BLANKS_HEAD_BYTES + blanks->count * BLANKS_ENTRY_BYTES)
		return -EBADMSG;
	from += BLANKS_HEAD_BYTES;
	for (uint32_t at = 0; at < blanks->count; at++, from += BLANKS_ENTRY_BYTES) {
		const struct blank blank = { .from = get_le48(from), .until = get_le48(from + 6) };

		if (blank.from <= behind || blank.until <= blank.from)
			return -EBADMSG;
		behind = blank.until;
		blanks->list[at] = blank;
	}
	return blanks->since && blanks->since <= behind ? -EBADMSG : 0;
}

/* ---- beginning and ending ---- */

void blanks_begin(struct blanks *blanks, uint64_t sequence)
{
	/*
	 * Moments are ends of slots: that of this one is the first that is not kept. Bound 0 is no
	 * moment.
	 */
	uint64_t from = max_u64(slot_begin(sequence), 1);

	if (blanks->since)
		return;
	blanks->since = from;
	if (blanks->count && blanks->list[blanks->count - 1].until >= from)
		blanks->since = blanks->list[--blanks->count].from;
}

static void take_out(struct blanks *blanks, uint32_t at)
{
	blanks->count--;
	memmove(&blanks->list[at], &blanks->list[at + 1],
		(blanks->count - at) * sizeof(blanks->list[0]));
}

/*
 * Makes one of the two neighbours that are nearest to one another, `last` being behind all of them.
 */
static void join_nearest(struct blanks *blanks, struct blank *last)
{
	uint32_t nearest = blanks->count - 1;
	uint64_t least = last->from - blanks->list[nearest].until;

	for (uint32_t at = 0; at + 1 < blanks->count; at++) {
		uint64_t between = blanks->list[at + 1].from - blanks->list[at].until;

		if (between < least) {
			least = between;
			nearest = at;
		}
	}
	if (nearest == blanks->count - 1)
		last->from = blanks->list[nearest].from;
	else
		blanks->list[nearest + 1].from = blanks->list[nearest].from;
	take_out(blanks, nearest);
}

void blanks_end(struct blanks *blanks, uint64_t sequence, uint64_t horizon)
{
	struct blank last = { .from = blanks->since, .until = sequence };

	while (blanks->count && blanks->list[0].until <= horizon)
		take_out(blanks, 0);
	blanks->since = 0;
	/* One that ends in the transaction that it would have begun with. */
	if (!last.from || last.until <= last.from)
		return;
	if (blanks->count == BLANKS_MAX)
		join_nearest(blanks, &last);
	blanks->list[blanks->count++] = last;
}

/* ---- where moments are ---- */

uint64_t blanks_pass(const struct blanks *blanks, uint64_t committed, uint64_t bound)
{
	if (blanks->since && bound >= blanks->since)
		return max_u64(bound, committed);
	for (uint32_t at = 0; at < blanks->count; at++)
		if (bound >= blanks->list[at].from && bound < blanks->list[at].until)
			return blanks->list[at].until;
	return bound;
}

uint64_t blanks_behind(const struct blanks *blanks, uint64_t committed)
{
	/* What the open transaction begins is behind all that is committed. */
	if (blanks->since && blanks->since <= committed)
		return committed;
	return blanks->count ? blanks->list[blanks->count - 1].until : 0;
}
