/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Drops intervals that nobody can tell from their not being there. */
#include "engine/history/hidden_review.h"

#include "common/bytes.h"
#include "engine/history/hidden.h"
#include "engine/history/left_out.h"
#include "engine/history/retention.h"
#include "engine/history/standing.h"

enum {
	/* One call ends after so many intervals, or so much work: searches in the list, and
	   look-ups, which count as so many of these. */
	LOOKS = 64,
	WORK_MAX = 131072,
	WORK_OF_LOOKUP = 256,
	/* States of an object that are looked at to learn until when it was there. */
	STATES_LOOKED_AT = 16,
	/* A round begins when there are as many again, but at least and at most so many more. */
	MORE_MIN = 4,
	MORE_MAX = ENGINE_HIDDEN_MAX / 64,
};

struct review {
	struct engine *engine;
	struct partition *root; /* pinned */
	struct source owner;    /* of `partition`, if that is not 0 */
	uint16_t partition;
	uint32_t work;
};

/* The bounds of readers that go by an interval first. */
struct stretch {
	uint64_t from, to;
};

/* ---- other intervals ---- */

static struct stretch stretch_of(const struct hidden *hidden,
				 const struct hidden_interval *interval)
{
	uint16_t partition = interval->partition;
	uint64_t next = min_u64(hidden_next_of(hidden, RECORD_ROOT_INDEX, 0, interval->at),
				hidden_next_of(hidden, partition, 0, interval->at));

	if (interval->identifier)
		next = min_u64(next, hidden_next_of(hidden, partition, interval->identifier,
						    interval->at));
	return (struct stretch){ .from = interval->at,
				 .to = next == RECORD_NEWEST ? RECORD_NEWEST : next - 1 };
}

/* Whether any interval whose readers may go by this one goes back into its stretch. */
static bool others_lead_there(struct review *review, const struct hidden_interval *interval,
			      const struct stretch *stretch)
{
	const struct hidden_targets *targets = &review->engine->past->hidden.targets;
	uint64_t identifier = interval->identifier;

	return hidden_targets_lead(targets, RECORD_ROOT_INDEX, 0, 0, stretch->from, stretch->to,
				   &review->work) ||
	       hidden_targets_lead(targets, interval->partition, 0, 0, stretch->from, stretch->to,
				   &review->work) ||
	       hidden_targets_lead(targets, interval->partition, identifier ? identifier : 1,
				   identifier ? identifier : UINT64_MAX, stretch->from, stretch->to,
				   &review->work);
}

/* ---- moments ---- */

/* Clones stand on an index whoever has it. */
static int moments_show(struct review *review, const struct stretch *stretch, bool *shown)
{
	struct partition *owner = review->owner.partition;
	struct idset clones = history_clones(review->engine, owner);
	int result = history_set_shows(&clones, stretch->from, stretch->to, shown);

	review->work += WORK_OF_LOOKUP;
	if (!result && !*shown)
		result = left_out_shows(review->engine, review->root, owner->history, stretch->from,
					stretch->to, shown);
	if (!result && !*shown)
		result = history_shows(review->engine, owner, stretch->from, stretch->to, shown);
	return result;
}

/*
 * Until when in its stretch the object was there that an interval is about; 0: never. One that was
 * created later under its ID reads nothing from before.
 */
static int object_there_until(struct review *review, const struct hidden_interval *interval,
			      uint64_t end, uint64_t *until)
{
	struct record_store *store = review->engine->store;
	const struct record_key key = key_of_onode(interval->partition, interval->identifier);

	*until = end;
	for (int looks = 0; looks < STATES_LOOKED_AT; looks++) {
		uint8_t record[ONODE_HEAD_BYTES];
		struct record_info info;
		struct onode_head head;
		uint64_t since;
		int result =
			store->operations->get(store, &key, end, record, sizeof(record), &info);

		review->work += WORK_OF_LOOKUP;
		if (result && result != -ENOENT)
			return result;
		since = result ? 0 : info.sequence;
		if (!result && !(info.flags & RECORD_TOMBSTONE)) {
			result = onode_head_decode(&head, record, info.length);
			if (result)
				return result;
			if (head.created_sequence <= interval->at) {
				*until = end;
				return 0;
			}
			since = head.created_sequence;
		}
		if (since <= interval->at) {
			*until = 0;
			return 0;
		}
		end = since - 1;
	}
	return 0;
}

/* Whether a moment in the stretch shows what the interval is about. */
static int is_shown(struct review *review, const struct hidden_interval *interval,
		    struct stretch stretch, bool *shown)
{
	uint64_t until;
	int result;

	*shown = false;
	result = moments_show(review, &stretch, shown);
	if (result || !*shown || !interval->identifier)
		return result;
	result = object_there_until(review, interval, stretch.to, &until);
	if (result || until == stretch.to)
		return result;
	*shown = false;
	stretch.to = until;
	return until ? moments_show(review, &stretch, shown) : 0;
}

/* ---- rounds ---- */

static int find_owner(struct review *review, uint16_t partition)
{
	int result;

	if (review->partition == partition)
		return 0;
	if (review->partition)
		source_close(review->engine, &review->owner);
	review->partition = 0;
	result = source_open(review->engine, partition, &review->owner);
	if (!result)
		review->partition = partition;
	return result;
}

/*
 * Those of the device stay: they tell which partitions were gone for a while. So do those of
 * clones: what these stood on is looked for from one to the one before (standing.c). What can't be
 * read stays too.
 */
static bool may_go(struct review *review, const struct hidden_interval *interval)
{
	const struct stretch stretch = stretch_of(&review->engine->past->hidden, interval);
	bool shown = true;

	if (interval->partition == RECORD_ROOT_INDEX || find_owner(review, interval->partition) ||
	    (!interval->identifier && review->owner.partition->history->is_clone) ||
	    is_shown(review, interval, stretch, &shown) || shown)
		return false;
	return !others_lead_there(review, interval, &stretch);
}

static uint32_t look_at_some(struct review *review, struct hidden_interval *found)
{
	struct hidden *hidden = &review->engine->past->hidden;
	uint32_t looks = 0, count = 0;

	for (; hidden->reviewed < hidden->count && looks < LOOKS && review->work < WORK_MAX;
	     looks++) {
		const struct hidden_interval *interval = &hidden->list[hidden->reviewed++];

		review->work++;
		if (may_go(review, interval))
			found[count++] = *interval;
	}
	return count;
}

static void end_round(struct hidden *hidden)
{
	hidden->reviewed = 0;
	/* The next one that is refused asks for a round anew. */
	hidden->is_short = false;
	hidden->due = hidden->count + (uint32_t)max_u64(min_u64(hidden->count, MORE_MAX), MORE_MIN);
}

void hidden_review(struct engine *engine)
{
	struct review review = { .engine = engine };
	struct hidden_interval found[LOOKS];
	struct hidden *hidden = &engine->past->hidden;
	uint32_t count;

	if (!hidden->count || partition_get(engine, 0, &review.root))
		return;
	count = look_at_some(&review, found);
	if (review.partition)
		source_close(engine, &review.owner);
	partition_release(engine, review.root);
	if (hidden_drop(engine, found, count) == 0)
		hidden->reviewed -= (uint32_t)min_u64(count, hidden->reviewed);
	if (hidden->reviewed >= hidden->count)
		end_round(hidden);
}

bool hidden_review_is_due(const struct engine *engine)
{
	const struct hidden *hidden = &engine->past->hidden;

	return hidden->count &&
	       (hidden->reviewed || hidden->is_short || hidden->count >= hidden->due);
}

void hidden_review_if_due(struct engine *engine)
{
	struct hidden *hidden = &engine->past->hidden;

	if (!hidden_review_is_due(engine))
		return;
	if (!hidden->reviewed)
		retention_judge(engine);
	hidden_review(engine);
}
