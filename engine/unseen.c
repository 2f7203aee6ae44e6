/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/unseen.h"

#include "common/bytes.h"

/* Bounds of clones that are looked at to learn whether an index is one's; with more of them it counts as one. */
#define CLONES_LOOKED_AT 1024

/* Rollbacks that are looked at when there is room for one more. */
#define LOOKS 4

/* The bounds from which readers of a partition go by one of its rollbacks first: from it on until the next one. */
struct stretch {
	uint64_t from, to;
};

/* ---- clones ---- */

/* Whether a clone of this index stands, or stood, on one of a source's bounds that are not given free. */
static int look_for_clone(struct engine *engine, uint16_t source, uint16_t index, uint32_t *looks,
			  bool *is_clone)
{
	struct partition left = { .index = source };
	struct idset clones;
	uint64_t elements[64], next = 0;
	bool more = true;
	int result = history_read(engine->store, source, &left.history);

	clones = history_clones(engine, &left);
	while (!result && more && !*is_clone) {
		size_t count;

		result = idset_list(&clones, next, elements, 64, &count, &more, &next);
		for (size_t at = 0; !result && at < count; at++)
			*is_clone |= (uint16_t)elements[at] == index;
		*looks += (uint32_t)count;
		*is_clone |= *looks > CLONES_LOOKED_AT;
	}
	return result;
}

/*
 * Whether the partition is, or was, a clone. What it stands on is looked for line by line, from rollback to rollback
 * (standing.c), so it needs them all.
 */
static int may_be_clone(struct engine *engine, struct partition *root, uint16_t index,
			bool *is_clone)
{
	struct idset reserved = history_clones(engine, root);
	uint64_t elements[64], next = 0;
	uint32_t looks = 0;
	bool more = true;

	while (more && !*is_clone) {
		size_t count;
		int result = idset_list(&reserved, next, elements, 64, &count, &more, &next);

		for (size_t at = 0; !result && at < count && !*is_clone; at++)
			result = look_for_clone(engine, (uint16_t)elements[at], index, &looks,
						is_clone);
		if (result)
			return result;
	}
	return 0;
}

/* ---- other rollbacks ---- */

/* Whether a rollback of a scope goes back into the stretch. */
static bool leads_there(const struct timeline *timeline, uint16_t scope,
			const struct stretch *stretch)
{
	uint32_t count, first = timeline_of(timeline, scope, &count);

	for (uint32_t at = first; at < first + count; at++)
		if (timeline->list[at].to >= stretch->from && timeline->list[at].to <= stretch->to)
			return true;
	return false;
}

/* The next rollback of a scope behind `sequence`. */
static uint64_t next_of(const struct timeline *timeline, uint16_t scope, uint64_t sequence)
{
	uint32_t count, first = timeline_of(timeline, scope, &count);

	for (uint32_t at = first; at < first + count; at++)
		if (timeline->list[at].at > sequence)
			return timeline->list[at].at;
	return RECORD_NEWEST + 1;
}

/* ---- both ---- */

static int is_seen(struct engine *engine, struct partition *partition, struct partition *root,
		   const struct rollback *rollback, uint64_t to, bool *seen)
{
	const struct timeline *timeline = &engine->timeline;
	const uint64_t next = min_u64(next_of(timeline, rollback->scope, rollback->at),
				      next_of(timeline, RECORD_ROOT_INDEX, rollback->at));
	const struct stretch stretch = { .from = rollback->at, .to = next - 1 };
	struct idset clones = history_clones(engine, partition);
	int result;

	*seen = (to >= stretch.from && to <= stretch.to) ||
		leads_there(timeline, rollback->scope, &stretch) ||
		leads_there(timeline, RECORD_ROOT_INDEX, &stretch);
	if (*seen)
		return 0;
	result = history_shows(engine, root, stretch.from, stretch.to, seen);
	if (!result && !*seen)
		result = history_shows(engine, partition, stretch.from, stretch.to, seen);
	if (!result && !*seen)
		result = history_set_shows(&clones, stretch.from, stretch.to, seen);
	return result;
}

int unseen_find(struct engine *engine, struct partition *partition, uint64_t to,
		struct rollback *unseen)
{
	struct timeline *timeline = &engine->timeline;
	bool of_device = partition->index == RECORD_ROOT_INDEX;
	/* What is kept for the device is no partition's. */
	uint32_t all = ENGINE_ROLLBACKS_MAX - (of_device ? 0 : ENGINE_ROLLBACKS_OF_ONE);
	uint32_t count, first = timeline_of(timeline, partition->index, &count), looks;
	uint32_t own = timeline_own(timeline, partition->index, partition->created_sequence);
	bool full = own >= ENGINE_ROLLBACKS_OF_ONE || timeline->count >= all, seen = true;
	struct partition *root;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	/*
	 * Those of the device tell which partitions were gone for a while, so they stay. Of the others some are looked at each
	 * time, in turn, so that they do not gather; when there is no room, as many as one partition may have.
	 */
	looks = of_device ? 0 : (uint32_t)min_u64(count, full ? ENGINE_ROLLBACKS_OF_ONE : LOOKS);
	for (; !result && seen && looks > 0; looks--) {
		*unseen = timeline->list[first + timeline->looked++ % count];
		result = is_seen(engine, partition, root, unseen, to, &seen);
	}
	/* The same for all of them, so it is looked for once: with thousands of rollbacks everybody would wait for it. */
	if (!result && !seen)
		result = may_be_clone(engine, root, partition->index, &seen);
	partition_release(engine, root);
	if (result)
		return result;
	return !seen ? 0 : full ? -EFBIG : -ENOENT;
}
