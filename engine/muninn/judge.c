/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Decides which records of a segment the merge must keep. */
#include "engine/muninn/judge.h"

#include <errno.h>

#include "engine/muninn/lookup.h"
#include "engine/records/need.h"

enum {
	LIST_FROM = 4, /* with so many searches for a key in a segment its records are listed once
			  for all */
};

/* A record that is judged. */
struct judged {
	struct merge_run *run;
	const struct record_header *header;
	bool roughly; /* see struct record_judged */
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

/* Finds what a reader finds. -ENOENT: nothing that is as new as the record. */
static int search(struct judged *judged, const struct visibility *visibility,
		  struct merge_find *find)
{
	struct record_info info;
	uint32_t crc;
	int result = lookup_find_since(judged->run->store, &judged->header->key, visibility,
				       judged->header->sequence, judged->run, &info, &crc);

	if (result)
		return result;
	/* Of what is older not all was looked at. */
	if (info.sequence < judged->header->sequence)
		return -ENOENT;
	*find = (struct merge_find){
		.key = judged->header->key,
		.bound = visibility->bound,
		.hides = visibility->hidden != NULL,
		.sequence = info.sequence,
		.crc = crc,
		.lasts = visibility->bound <= judged->run->store->committed,
	};
	return 0;
}

/* ---- the records of a key ---- */

/* How many of the list have that number or a higher one: it begins with the highest. */
static uint32_t listed_since(const struct merge_list *list, uint64_t sequence)
{
	uint32_t first = 0, end = list->count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (list->records[middle].sequence >= sequence)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Only the first of a number is found. -ENOSPC: the list is full. */
static int list_record(void *context, const struct page_view *page,
		       const struct page_record *record)
{
	struct merge_list *list = context;
	uint64_t sequence = record_sequence(record->header);
	uint32_t at;

	if (!page->checked && !record_is_intact(record->header, page->serial, record->value))
		return -EBADMSG;
	at = listed_since(list, sequence);
	if (at > 0 && list->records[at - 1].sequence == sequence)
		return 0;
	if (list->count == MERGE_LISTED)
		return -ENOSPC;
	memmove(&list->records[at + 1], &list->records[at],
		(list->count - at) * sizeof(list->records[0]));
	list->count++;
	list->records[at] = (struct merge_listed){
		.sequence = sequence,
		.crc = record_crc_of(record->header),
	};
	return 0;
}

static bool is_listed(const struct merge_list *list, const struct record_key *key, uint64_t bound)
{
	return bound >= list->from && bound <= list->to &&
	       list->key.identifier == key->identifier && list->key.piece == key->piece &&
	       list->key.partition == key->partition && list->key.class == key->class;
}

/*
 * Lists the records of a key if many searches have been made for it in the segment that is counted.
 * False: they are not listed.
 */
static bool list_key(struct merge_run *run, const struct record_key *key, uint64_t bound)
{
	struct merge_list *list = &run->list;

	if (is_listed(list, key, bound) && list->count)
		return true;
	if (bound < run->from || bound > run->to)
		return false;
	if (!is_listed(list, key, bound)) {
		list->key = *key;
		list->from = run->from;
		list->to = run->to;
		list->searches = list->count = 0;
		memset(list->answers, 0, sizeof(list->answers));
	}
	if (++list->searches != LIST_FROM)
		return false;
	if (lookup_gather(run->store, key, list->from, list->to, run, list_record, list) == 0)
		return list->count > 0;
	list->count = 0;
	/* It is listed when the pages have come. */
	list->searches -= merge_run_misses(run);
	return false;
}

/* The first that is not newer than the bound, visible or not. */
static uint32_t first_within(const struct merge_list *list, uint64_t bound)
{
	uint32_t low = 0, high = list->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (list->records[middle].sequence > bound)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Which of the list a reader finds; list->count: none. */
static uint32_t first_visible(struct merge_list *list, const struct visibility *visibility)
{
	bool hides = visibility->hidden != NULL;
	uint64_t hash = hash_mix(visibility->bound ^ (uint64_t)hides << 63);
	struct merge_list_answer *answer = &list->answers[hash % MERGE_LIST_ANSWERS];
	uint32_t at;

	if (answer->bound == visibility->bound && answer->hides == hides)
		return answer->at;
	at = first_within(list, visibility->bound);
	while (at < list->count &&
	       !record_is_visible(visibility, &list->key, list->records[at].sequence))
		at++;
	*answer =
		(struct merge_list_answer){ .bound = visibility->bound, .hides = hides, .at = at };
	return at;
}

/* Finds in the list what `search` would find. False: it is not there. */
static bool find_in_list(struct judged *judged, const struct visibility *visibility,
			 struct merge_find *find)
{
	struct merge_list *list = &judged->run->list;
	uint32_t at;

	if (judged->roughly || !list_key(judged->run, &judged->header->key, visibility->bound))
		return false;
	at = first_visible(list, visibility);
	if (at == list->count)
		return false;
	*find = (struct merge_find){ .sequence = list->records[at].sequence,
				     .crc = list->records[at].crc };
	return true;
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
	if (find_in_list(judged, visibility, &found))
		find = &found;
	/* Another one of its number may have been moved since: only a search tells. */
	if ((find != &found && !is_of(find, &header->key, visibility)) ||
	    (find->sequence == header->sequence && !is_same(find, header))) {
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
	struct visibility visibility = store_visibility(judged->run->store, bound);

	if (!hides)
		visibility.hidden = NULL;
	return is_found(judged, &visibility, sequence);
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

int judge_record(struct merge_run *run, const struct record_header *header, bool roughly)
{
	const struct visibility everything = store_visibility(run->store, RECORD_NEWEST);
	const struct record_info info = {
		.sequence = header->sequence,
		.length = header->length,
		.flags = header->flags & (RECORD_TOMBSTONE | RECORD_ABSORB),
	};
	struct judged judged = { .run = run, .header = header, .roughly = roughly };

	run->worked++;
	run->is_large = record_is_large(&run->store->geometry, header->length);
	if (!sequence_is_visible(&everything, header->sequence))
		return RECORD_NEED_NONE;
	if (run->reads > run->reads_max)
		return -EBUSY;
	return record_judge(&(struct record_judged){
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
}
