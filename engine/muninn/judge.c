/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Decides which records of a segment the merge must keep. */
#include "engine/muninn/judge.h"

#include <errno.h>

#include "engine/muninn/lookup.h"
#include "engine/records/need.h"

/* A record that is judged. */
struct judged {
	struct merge_run *run;
	const struct record_header *header;
	bool roughly;  /* see struct record_judged */
	bool is_blind; /* a search has met a page that can't be read */
};

/* ---- what has been found ---- */

static struct merge_find *find_at(struct merge_run *run, const struct record_key *key,
				  const struct visibility *visibility)
{
	uint64_t hash = hash_mix(key->identifier ^ (uint64_t)key->piece << 32 ^
				 (uint64_t)key->partition << 16);

	hash = hash_mix(hash ^ visibility->bound ^ (visibility->hidden ? UINT64_C(1) << 63 : 0));
	return &run->finds[hash % MERGE_FINDS];
}

static bool is_of(const struct merge_find *find, const struct record_key *key,
		  const struct visibility *visibility)
{
	return find->sequence && find->bound == visibility->bound &&
	       find->hides == (visibility->hidden != NULL) &&
	       find->key.identifier == key->identifier && find->key.piece == key->piece &&
	       find->key.partition == key->partition && find->key.class == key->class;
}

/*
 * Finds what a reader finds. -ENOENT: nothing that is as new as the record. Whether anything is
 * newer, at RECORD_NEWEST, any newer record tells: to find the newest takes passing all that merges
 * have moved since.
 */
static int search(struct judged *judged, const struct visibility *visibility,
		  struct merge_find *find)
{
	const uint64_t sequence = judged->header->sequence;
	bool any = visibility->bound == RECORD_NEWEST && !visibility->hidden;
	struct record_info info;
	uint32_t crc;
	int result = lookup_find_since(judged->run->store, &judged->header->key, visibility,
				       sequence, any, judged->run, &info, &crc);

	if (result)
		return result;
	/* Of what is older not all was looked at. */
	if (info.sequence < sequence)
		return -ENOENT;
	any &= info.sequence > sequence;
	*find = (struct merge_find){
		.key = judged->header->key,
		.bound = visibility->bound,
		.hides = visibility->hidden != NULL,
		.sequence = info.sequence,
		.crc = crc,
		.is_any = any,
		.lasts = min_u64(visibility->bound, any ? info.sequence : RECORD_NEWEST) <=
			 judged->run->store->committed,
	};
	return 0;
}

/* ---- whether a record is found ---- */

/*
 * Whether a record is the one that was found, as its own CRC tells: that is of its segment, header
 * and value. Of its command's puts the last one is found, of copies the newest.
 */
static bool is_same(const struct merge_find *find, const struct record_header *header)
{
	return find->sequence == header->sequence && find->crc == header->crc;
}

/*
 * Whether the record is the one found for its key: not superseded, not even by a later put of the
 * same command. 1, 0, or the error of the search. What is found for a key at a bound stays so
 * during a merge, but for its place: moving changes nothing else of it, and what is put meanwhile
 * is what is moved. So of a key with many records in a segment the search is made once for each
 * bound. *sequence: of the one that is found.
 */
static int is_found(struct judged *judged, const struct visibility *visibility, uint64_t *sequence)
{
	const struct record_header *header = judged->header;
	struct merge_find *find = find_at(judged->run, &header->key, visibility), found;

	*sequence = 0;
	/* Another one of its number may have been moved since: only a search tells. */
	if (!is_of(find, &header->key, visibility) || find->sequence < header->sequence ||
	    (find->sequence == header->sequence && (find->is_any || !is_same(find, header)))) {
		int result = search(judged, visibility, &found);

		if (result)
			return result == -ENOENT ? 0 : result;
		*find = found;
	}
	*sequence = find->sequence;
	return is_same(find, header);
}

/* ---- what is needed ---- */

static int search_at(void *context, uint64_t bound, bool hides, uint64_t *sequence)
{
	struct judged *judged = context;
	const struct record_header *header = judged->header;
	struct visibility visibility = store_visibility(judged->run->store, bound);
	int result;

	/* The judgement has seen to it that nothing hides it there. */
	if (bound == header->sequence && !judged->roughly &&
	    merge_run_is_last_put(judged->run, &header->key, bound)) {
		*sequence = bound;
		return 1;
	}
	if (!hides)
		visibility.hidden = NULL;
	result = is_found(judged, &visibility, sequence);
	judged->is_blind |= result == -EBADMSG;
	return result;
}

static int has_older(void *context)
{
	struct judged *judged = context;

	return lookup_has_older(judged->run->store, &judged->header->key, judged->header->sequence,
				judged->run);
}

/* What the caller gets meanwhile is read as the other pages of the run are. */
static void note_asking(void *context, bool begins)
{
	const struct judged *judged = context;

	judged->run->is_asking = begins;
}

/*
 * A record is kept although not all was seen. Where it is moved to it is in front of the others of
 * its command, and nothing tells any more which was put last. So it must be that one.
 */
static int need_if_last_put(struct judged *judged, int need)
{
	uint64_t sequence;
	int found = search_at(judged, judged->header->sequence, false, &sequence);

	if (found < 0)
		return found;
	return found || sequence != judged->header->sequence ? need : RECORD_NEED_NONE;
}

int judge_record(struct merge_run *run, const struct record_header *header, bool roughly)
{
	const struct visibility everything = store_visibility(run->store, RECORD_NEWEST);
	const struct record_info info = {
		.sequence = header->sequence,
		.length = header->length,
		.flags = header->flags & (RECORD_TOMBSTONE | RECORD_ABSORB),
	};
	struct judged judged = { .run = run, .header = header, .roughly = roughly };
	int need;

	run->worked++;
	run->is_large = record_is_large(&run->store->geometry, header->length);
	if (!sequence_is_visible(&everything, header->sequence))
		return RECORD_NEED_NONE;
	if (run->reads > run->reads_max)
		return -EBUSY;
	need = record_judge(&(struct record_judged){
		.keep = run->keep,
		.hidden = run->store->hidden,
		.key = &header->key,
		.info = &info,
		.roughly = roughly,
		.latest = run->store->committed,
		.context = &judged,
		.is_found = search_at,
		.has_older = has_older,
		.asks = note_asking,
	});
	if (need > RECORD_NEED_NONE && judged.is_blind && !roughly)
		need = need_if_last_put(&judged, need);
	return need;
}
