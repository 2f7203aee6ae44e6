/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Judges whether a merge must keep a version of a record. */
#include "engine/records/need.h"

#include <errno.h>
#include <stddef.h>

enum { BOUNDS_MAX = 64 }; /* at which a version is looked for; with more it is kept unasked */

static bool is_hidden(const struct record_judged *judged, uint64_t sequence, uint64_t bound)
{
	const struct record_hidden *hidden = judged->hidden;

	return hidden && hidden->is_hidden(hidden->context, judged->key, sequence, bound);
}

/*
 * Whether the version is found at a bound. `newest`: the number of the newest version of the key.
 * What is known already saves most searches.
 */
static int is_found_at(const struct record_judged *judged, bool is_newest, uint64_t newest,
		       uint64_t bound)
{
	uint64_t sequence;

	if (bound < judged->info->sequence || is_hidden(judged, judged->info->sequence, bound))
		return 0;
	if (is_newest || (judged->roughly && bound == judged->info->sequence))
		return 1;
	/* Then the newest one is found there. With number 0 it is not known. */
	if (newest && newest <= bound && !is_hidden(judged, newest, bound))
		return 0;
	return judged->is_found(judged->context, bound, true, &sequence);
}

/* A tombstone is reached wherever it is found: what it ends is. */
static bool is_reachable(const struct record_judged *judged, uint64_t bound)
{
	const struct record_keep *keep = judged->keep;
	bool reachable;

	if (judged->info->flags & RECORD_TOMBSTONE || !keep->is_reachable)
		return true;
	if (judged->asks)
		judged->asks(judged->context, true);
	reachable = keep->is_reachable(keep->context, judged->key, judged->info, bound);
	if (judged->asks)
		judged->asks(judged->context, false);
	return reachable;
}

/*
 * The bounds at which it is looked for, ascending, the present among them. Returns how many; 0: it
 * is kept unasked.
 */
static uint32_t collect_bounds(const struct record_judged *judged, uint64_t bounds[BOUNDS_MAX + 1])
{
	const struct record_keep *keep = judged->keep;
	uint32_t count = 0;

	if (keep->bounds)
		count = keep->bounds(keep->context, judged->key, judged->info, bounds, BOUNDS_MAX);
	if (count > BOUNDS_MAX)
		return 0;
	bounds[count++] = RECORD_NEWEST;
	return count;
}

/*
 * Whether the version's own command has put another one in its place, which is all that matters of
 * one that is kept unasked. 1, 0, or the error of the search.
 */
static int is_put_again(const struct record_judged *judged)
{
	uint64_t sequence = judged->info->sequence, other = 0;
	int found = 1;

	if (!judged->roughly)
		found = judged->is_found(judged->context, sequence, false, &other);
	return found < 0 ? found : !found && other == sequence;
}

/*
 * Whether another version is found at the lowest bound, and instead of this one at the others, too.
 * That is so of most versions that are not needed, and takes a single search. Not so where the
 * newest version of all tells the same. 1, 0, or the error of the search.
 */
static int is_superseded(const struct record_judged *judged, const uint64_t *bounds, uint32_t count)
{
	uint64_t sequence = judged->info->sequence, other;
	int found;

	if (bounds[0] >= judged->latest || bounds[0] < sequence ||
	    (judged->roughly && bounds[0] == sequence) || is_hidden(judged, sequence, bounds[0]))
		return 0;
	found = judged->is_found(judged->context, bounds[0], true, &other);
	if (found)
		return found < 0 ? found : 0;
	if (!other)
		return 0;
	for (uint32_t i = 1; i < count; i++)
		if (is_hidden(judged, other, bounds[i]))
			return 0;
	return 1;
}

/* Whether the version is found and reached at one of the bounds. 1, 0, or an error. */
static int is_needed(const struct record_judged *judged, const uint64_t *bounds, uint32_t count,
		     bool is_newest, uint64_t newest)
{
	for (uint32_t i = 0; i < count; i++) {
		int found = is_found_at(judged, is_newest, newest, bounds[i]);

		if (found < 0)
			return found;
		if (found && is_reachable(judged, bounds[i]))
			return 1;
	}
	return count == 0;
}

/* Roughly: whether it is kept for the moment at which it was put, whatever came later. */
static bool is_needed_then(const struct record_judged *judged, const uint64_t *bounds,
			   uint32_t count)
{
	uint64_t sequence = judged->info->sequence;

	return judged->roughly && count && bounds[0] == sequence &&
	       !is_hidden(judged, sequence, sequence) && is_reachable(judged, sequence);
}

/* Whether a tombstone that is needed says something: without older versions most don't. */
static int says_something(const struct record_judged *judged)
{
	const struct record_keep *keep = judged->keep;

	if (keep->keeps_lone_tombstone &&
	    keep->keeps_lone_tombstone(keep->context, judged->key, judged->info))
		return 1;
	return judged->has_older(judged->context);
}

/*
 * What can't be judged is kept: the flash has lost a page that may hold other versions of the key,
 * or only seems to. Otherwise one lost page would keep many segments from being merged.
 */
static int or_keep(int result, int kept)
{
	return result == -EBADMSG ? kept : result;
}

int record_judge(const struct record_judged *judged)
{
	uint64_t bounds[BOUNDS_MAX + 1], newest = 0;
	uint32_t count = collect_bounds(judged, bounds);
	int superseded =
		or_keep(count ? is_superseded(judged, bounds, count) : is_put_again(judged), 0);
	int is_newest = 0, needed = 1;

	if (superseded)
		return superseded < 0 ? superseded : RECORD_NEED_NONE;
	if (!is_needed_then(judged, bounds, count)) {
		is_newest = judged->is_found(judged->context, RECORD_NEWEST, false, &newest);
		if (is_newest < 0)
			return or_keep(is_newest, RECORD_NEED_OLD);
		needed = or_keep(is_needed(judged, bounds, count, is_newest, newest), 1);
	}
	if (needed > 0 && judged->info->flags & RECORD_TOMBSTONE)
		needed = or_keep(says_something(judged), 1);
	if (needed <= 0)
		return needed ? needed : RECORD_NEED_NONE;
	return is_newest ? RECORD_NEED_NEWEST : RECORD_NEED_OLD;
}
