/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds rollbacks that nobody sees any more. */
#include "engine/history/unseen.h"

#include "common/bytes.h"
#include "engine/history/left_out.h"
#include "engine/history/standing.h"

enum {
	/* Rollbacks of one's own, and of others, that are looked at when there is room for one
	   more. */
	LOOKS = 4,
	/* When there is none: as many as one partition may have. */
	LOOKS_MAX = ENGINE_ROLLBACKS_OF_ONE,
	/* The same for rollbacks of objects. */
	OBJECT_LOOKS = 2,
	OBJECT_LOOKS_MAX = 256,
	/* As how many looks it counts to learn who has an index. */
	LOOKS_TO_OPEN = 16,
	/* States under an index that are looked at to learn until when a partition was there. */
	STATES_LOOKED_AT = 16,
};

/* What a search is about. */
struct search {
	struct engine *engine;
	struct partition *root;
	uint16_t scope; /* of the rollback to come, and where it goes back to */
	uint64_t to;
};

/*
 * The bounds from which readers of a partition go by one of its rollbacks first: from it on until
 * the next one.
 */
struct stretch {
	uint64_t from, to;
};

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

/* The same with rollbacks of an object, or (identifier 0) of all of a partition's. */
static bool objects_lead_there(const struct timeline *timeline, uint16_t scope, uint64_t identifier,
			       const struct stretch *stretch)
{
	const struct object_rollbacks *objects = &timeline->objects;
	uint32_t count, first = object_rollbacks_of(objects, scope, identifier, &count);

	for (uint32_t at = first; at < first + count; at++)
		if (objects->list[at].to >= stretch->from && objects->list[at].to <= stretch->to)
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

/* ---- who is shown ---- */

/*
 * Until when, from `rollback` to `end`, the partition that was rolled back was there; 0: it was
 * not, since nobody reads what is hidden by it. A later one of its index takes nothing from before
 * its own creation.
 */
static int there_until(const struct search *search, const struct rollback *rollback, uint64_t end,
		       uint64_t *until)
{
	*until = end;
	for (int states = 0; states < STATES_LOOKED_AT; states++) {
		struct partition state;
		uint64_t since;
		int result = partition_found_at(search->engine->store, rollback->scope, end, &state,
						&since);

		if (result)
			return result;
		if (state.id && state.created_sequence < rollback->at) {
			*until = end;
			return 0;
		}
		/* Something else was there later, or nothing. */
		if (since <= rollback->at) {
			*until = 0;
			return 0;
		}
		end = since - 1;
	}
	return 0;
}

/*
 * Whether anybody reads in a stretch that begins with a rollback of `owner`, who has its index now
 * or left it.
 */
static int shows(const struct search *search, struct source *owner, const struct rollback *rollback,
		 const struct stretch *stretch, bool *seen)
{
	struct idset clones = history_clones(search->engine, owner->partition);
	uint64_t until = 0;
	/* Clones stand on an index, whoever has it. */
	int result = history_set_shows(&clones, stretch->from, stretch->to, seen);

	if (!result && !*seen)
		result = there_until(search, rollback, stretch->to, &until);
	if (result || *seen || !until)
		return result;
	result = left_out_shows(search->engine, search->root, &owner->partition->history,
				stretch->from, until, seen);
	if (!result && !*seen)
		result =
			history_shows(search->engine, owner->partition, stretch->from, until, seen);
	return result;
}

static int is_seen(const struct search *search, struct source *owner,
		   const struct rollback *rollback, bool *seen)
{
	const struct timeline *timeline = &search->engine->timeline;
	const uint64_t next = min_u64(next_of(timeline, rollback->scope, rollback->at),
				      next_of(timeline, RECORD_ROOT_INDEX, rollback->at));
	const struct stretch stretch = { .from = rollback->at, .to = next - 1 };

	*seen = (rollback->scope == search->scope && search->to >= stretch.from &&
		 search->to <= stretch.to) ||
		leads_there(timeline, rollback->scope, &stretch) ||
		leads_there(timeline, RECORD_ROOT_INDEX, &stretch) ||
		objects_lead_there(timeline, rollback->scope, 0, &stretch);
	return *seen ? 0 : shows(search, owner, rollback, &stretch, seen);
}

/* ---- the search ---- */

/*
 * Looks at up to `now` of a partition's `count` rollbacks from `first` on, going round them from
 * `*looked` on, which it counts up. *found: *unseen is one that nobody sees. What it costs is taken
 * from *looks.
 */
static int look_at_scope(const struct search *search, uint32_t first, uint32_t count, uint32_t now,
			 uint32_t *looked, uint32_t *looks, struct rollback *unseen, bool *found)
{
	const struct rollback *list = search->engine->timeline.list;
	uint32_t used = LOOKS_TO_OPEN;
	struct source owner;
	bool seen = true;
	int result = source_open(search->engine, list[first].scope, &owner);

	if (result)
		return result;
	/* What a clone stood on is looked for from rollback to rollback, so it needs them all. */
	if (owner.partition->history.is_clone)
		now = 0;
	for (; !result && seen && now > 0; now--, used++) {
		*unseen = list[first + (*looked)++ % count];
		result = is_seen(search, &owner, unseen, &seen);
	}
	source_close(search->engine, &owner);
	*found = !result && !seen;
	*looks -= (uint32_t)min_u64(used, *looks);
	return result;
}

/*
 * The same with those of other partitions, one partition after the other from where the last call
 * ended, at most once round.
 */
static void look_at_others(const struct search *search, uint32_t looks, struct rollback *unseen,
			   bool *found)
{
	struct timeline *timeline = &search->engine->timeline;
	uint32_t passed = 0;

	while (!*found && looks > 0 && passed < timeline->count) {
		uint32_t at = timeline->looked_others % timeline->count, count, looked = 0;
		uint16_t scope = timeline->list[at].scope;
		uint32_t left = timeline_of(timeline, scope, &count) + count - at;
		uint32_t now = (uint32_t)min_u64(left, looks);
		int result = 0;

		/* Those of the device tell which partitions were gone for a while, so they stay. */
		if (scope == RECORD_ROOT_INDEX || scope == search->scope)
			looks--;
		else
			result = look_at_scope(search, at, left, now, &looked, &looks, unseen,
					       found);
		if (result)
			/* Of others what can't be read simply stays. */
			looks -= (uint32_t)min_u64(LOOKS_TO_OPEN, looks);
		/* What was not looked at of a clone's, or of what failed, is passed over too. */
		if (!*found && looked < now)
			looked = left;
		timeline->looked_others = at + looked;
		passed += looked;
	}
}

int unseen_find(struct engine *engine, struct partition *partition, uint64_t to,
		struct rollback *unseen, bool *found)
{
	struct search search = { .engine = engine, .scope = partition->index, .to = to };
	struct timeline *timeline = &engine->timeline;
	uint32_t count, first = timeline_of(timeline, partition->index, &count);
	uint32_t own = timeline_own(timeline, partition->index, partition->created_sequence);
	bool most = own >= ENGINE_ROLLBACKS_OF_ONE, full = most, of_device = !partition->index;
	uint32_t looks;
	int result;

	*found = false;
	/*
	 * What is kept for the device is no partition's; and each of these has some that are no
	 * other's.
	 */
	full |= timeline->count >= ENGINE_ROLLBACKS_MAX - (of_device ? 0 : ENGINE_ROLLBACKS_OF_ONE);
	full |= !of_device && timeline->count >= ENGINE_ROLLBACKS_SHARED &&
		own >= ENGINE_ROLLBACKS_OWN;
	/* Those of the device stay: see above. */
	if (of_device)
		return full ? -EFBIG : 0;
	result = partition_get(engine, 0, &search.root);
	if (result)
		return result;
	/* The place of another one is no help to who has as many as one may have. */
	if (most) {
		first += count - own;
		count = own;
	}
	/*
	 * Some are looked at each time, in turn, so that they do not gather; when there is no room,
	 * more.
	 */
	looks = full ? LOOKS_MAX : LOOKS;
	if (count)
		result = look_at_scope(&search, first, count, (uint32_t)min_u64(count, looks),
				       &timeline->looked, &looks, unseen, found);
	looks = full ? LOOKS_MAX : LOOKS;
	if (!result && !*found && !most)
		look_at_others(&search, looks, unseen, found);
	partition_release(engine, search.root);
	return !result && full && !*found ? -EFBIG : result;
}

/* ---- of objects ---- */

/*
 * Until when, from `from` to `end`, the object that was rolled back at `from` was there; 0: never.
 * One that was created later under its ID reads nothing from before.
 */
static int object_there_until(struct engine *engine, const struct object_rollback *rollback,
			      uint64_t end, uint64_t *until)
{
	const struct record_key key = key_of_onode(rollback->partition, rollback->identifier);

	*until = end;
	for (int looks = 0; looks < STATES_LOOKED_AT; looks++) {
		uint8_t record[ONODE_HEAD_BYTES];
		struct record_info info;
		struct onode_head head;
		uint64_t since;
		int result = engine->store->operations->get(engine->store, &key, end, record,
							    sizeof(record), &info);

		if (result && result != -ENOENT)
			return result;
		since = result ? 0 : info.sequence;
		if (!result && !(info.flags & RECORD_TOMBSTONE)) {
			result = onode_head_decode(&head, record, info.length);
			if (result)
				return result;
			if (head.created_sequence <= rollback->at) {
				*until = end;
				return 0;
			}
			since = head.created_sequence;
		}
		if (since <= rollback->at) {
			*until = 0;
			return 0;
		}
		end = since - 1;
	}
	return 0;
}

/* The bounds from which readers of the object's data go by this rollback first. */
static struct stretch stretch_of_object(const struct timeline *timeline,
					const struct object_rollback *rollback)
{
	const struct object_rollbacks *objects = &timeline->objects;
	uint64_t next = min_u64(next_of(timeline, rollback->partition, rollback->at),
				next_of(timeline, RECORD_ROOT_INDEX, rollback->at));
	uint32_t count, first = object_rollbacks_of(objects, rollback->partition,
						    rollback->identifier, &count);

	for (uint32_t at = first + count; at-- > first && objects->list[at].at > rollback->at;)
		next = min_u64(next, objects->list[at].at);
	return (struct stretch){ .from = rollback->at, .to = next - 1 };
}

static int object_is_seen(const struct search *search, const struct object_rollback *coming,
			  const struct object_rollback *rollback, bool *seen)
{
	const struct timeline *timeline = &search->engine->timeline;
	const struct rollback as_partitions = { .at = rollback->at,
						.to = rollback->to,
						.scope = rollback->partition };
	bool is_same = rollback->partition == coming->partition &&
		       rollback->identifier == coming->identifier;
	struct stretch stretch = stretch_of_object(timeline, rollback);
	struct source owner;
	int result;

	/*
	 * Of what other rollbacks lead to only the data need be there, so whether the object was
	 * does not count.
	 */
	*seen = (is_same && coming->to >= stretch.from && coming->to <= stretch.to) ||
		leads_there(timeline, rollback->partition, &stretch) ||
		leads_there(timeline, RECORD_ROOT_INDEX, &stretch) ||
		objects_lead_there(timeline, rollback->partition, rollback->identifier, &stretch);
	if (*seen)
		return 0;
	result = object_there_until(search->engine, rollback, stretch.to, &stretch.to);
	if (result || !stretch.to)
		return result;
	result = source_open(search->engine, rollback->partition, &owner);
	if (result)
		return result;
	result = shows(search, &owner, &as_partitions, &stretch, seen);
	source_close(search->engine, &owner);
	return result;
}

int unseen_find_object(struct engine *engine, const struct object_rollback *rollback,
		       struct object_rollback *unseen, bool *found)
{
	struct search search = { .engine = engine, .scope = rollback->partition };
	struct object_rollbacks *objects = &engine->timeline.objects;
	uint32_t own, looks;
	bool full, seen = true;
	int result;

	object_rollbacks_of(objects, rollback->partition, 0, &own);
	full = objects->count >= ENGINE_ROLLBACKS_MAX ||
	       (objects->count >= ENGINE_ROLLBACKS_SHARED && own >= ENGINE_ROLLBACKS_OWN);
	looks = full ? OBJECT_LOOKS_MAX : OBJECT_LOOKS;
	*found = false;
	result = partition_get(engine, 0, &search.root);
	if (result)
		return result;
	for (looks = (uint32_t)min_u64(looks, objects->count); seen && looks > 0; looks--) {
		*unseen = objects->list[objects->looked++ % objects->count];
		/* What can't be read simply stays. */
		if (object_is_seen(&search, rollback, unseen, &seen))
			seen = true;
	}
	partition_release(engine, search.root);
	*found = !seen;
	return full && !*found ? -EFBIG : 0;
}
