/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Tells what takes the space. Counters of that would change with each moment that passes and each
 * version that is dropped, so there are none: whoever asks has pages looked at, and each record of
 * them judged by the rules that merges follow, once as they are and once without what may go.
 */
#include <errno.h>

#include "common/bytes.h"
#include "engine/history/keep.h"
#include "engine/records/need.h"

/* What a record was found to be at a bound, for the rules that follow. */
#define FOUND_MAX 8

struct found {
	uint64_t bound, sequence;
	bool is_it;
};

struct surveyor {
	struct engine *engine;
	struct engine_survey *survey;
	struct partition *subject; /* pinned */
	struct partition *root;    /* pinned */
	/* As it is, without what goes by itself, and without what is to go. */
	struct keep_context all, spared, reduced;
	bool reduces;
	/* The record that is judged. */
	const struct record_key *key;
	const struct record_info *info;
	struct found found[FOUND_MAX];
	uint32_t found_count;
	uint64_t looked_bytes, live_bytes; /* of the page that is looked at */
	int newest;     /* whether it is the newest of its key, hidden or not; -1: not asked yet */
	bool overflows; /* what was asked for has no place in the tables */
	int result;     /* the first error */
};

/* ---- judging ---- */

static int find_newest(struct surveyor *surveyor)
{
	struct record_store *store = surveyor->engine->store;

	if (surveyor->newest >= 0)
		return surveyor->newest;
	records_worked++;
	int newer = store->operations->has_between(store, surveyor->key, surveyor->info->sequence,
						   RECORD_NEWEST);

	if (newer >= 0)
		surveyor->newest = !newer;
	return newer < 0 ? newer : surveyor->newest;
}

/* As struct record_judged wants it. Where a command put a key twice, sizes tell them apart. */
static int is_found(void *context, uint64_t bound, bool hides, uint64_t *sequence)
{
	struct surveyor *surveyor = context;
	struct record_store *store = surveyor->engine->store;
	struct record_info info = { .sequence = 0 };
	struct found *found;
	int result;

	*sequence = 0;
	if (!hides) {
		result = find_newest(surveyor);
		*sequence = result > 0 ? surveyor->info->sequence : 0;
		return result;
	}
	for (uint32_t n = 0; n < surveyor->found_count; n++)
		if (surveyor->found[n].bound == bound) {
			*sequence = surveyor->found[n].sequence;
			return surveyor->found[n].is_it;
		}
	records_worked++;
	result = store->operations->get(store, surveyor->key, bound, NULL, 0, &info);
	if (result && result != -ENOENT)
		return result;
	found = &surveyor->found[surveyor->found_count % FOUND_MAX];
	surveyor->found_count += surveyor->found_count < FOUND_MAX;
	*found = (struct found){ .bound = bound };
	found->sequence = info.sequence >= surveyor->info->sequence ? info.sequence : 0;
	found->is_it = !result && info.sequence == surveyor->info->sequence &&
		       info.length == surveyor->info->length &&
		       ((info.flags ^ surveyor->info->flags) & RECORD_TOMBSTONE) == 0;
	*sequence = found->sequence;
	return found->is_it;
}

static int has_older(void *context)
{
	struct surveyor *surveyor = context;
	struct record_store *store = surveyor->engine->store;
	struct record_info older;

	records_worked++;
	return store->operations->list(store, surveyor->key, RECORD_NEWEST,
				       surveyor->info->sequence, &older, 1);
}

static struct record_judged judged_by(struct surveyor *surveyor, const struct record_keep *keep)
{
	return (struct record_judged){
		.keep = keep,
		.hidden = &surveyor->engine->past->hidden.asked,
		.key = surveyor->key,
		.info = surveyor->info,
		.latest = surveyor->engine->committed,
		.context = surveyor,
		.is_found = is_found,
		.has_older = has_older,
	};
}

/* Whether a merge would keep it. 1, 0, or an error. */
static int is_kept(struct surveyor *surveyor, struct keep_context *context)
{
	const struct record_keep keep = keep_of(context);
	const struct record_judged judged = judged_by(surveyor, &keep);
	int need = record_judge(&judged);

	return need < 0 ? need : need != RECORD_NEED_NONE;
}

/* Whether the present shows it: as if nothing else were kept. */
static int is_live(struct surveyor *surveyor)
{
	struct record_keep keep = keep_of(&surveyor->all);

	keep.bounds = NULL;
	const struct record_judged judged = judged_by(surveyor, &keep);
	int need;

	if (surveyor->info->flags & RECORD_TOMBSTONE)
		return 0;
	need = record_judge(&judged);
	return need < 0 ? need : need != RECORD_NEED_NONE;
}

/* ---- whose it is ---- */

static enum engine_survey_kind kind_of(struct surveyor *surveyor, uint64_t *id)
{
	const struct source *owner;

	*id = 0;
	if (surveyor->key->partition == RECORD_ROOT_INDEX)
		return ENGINE_SURVEY_DEVICE;
	if (surveyor->subject->index != RECORD_ROOT_INDEX &&
	    surveyor->subject->index != surveyor->key->partition)
		return ENGINE_SURVEY_OTHERS;
	owner = keep_source(&surveyor->all, surveyor->key);
	if (!owner || owner->is_gone ||
	    surveyor->info->sequence < owner->partition->created_sequence)
		return ENGINE_SURVEY_REMOVED;
	*id = owner->partition->id;
	return ENGINE_SURVEY_PARTITION;
}

/* With too many the last place is for all others. */
static struct engine_survey_part *part_of(struct surveyor *surveyor)
{
	struct engine_survey *survey = surveyor->survey;
	uint64_t id;
	enum engine_survey_kind kind = kind_of(surveyor, &id);
	uint32_t at = 0;

	while (at < survey->part_count &&
	       (survey->parts[at].kind != kind || survey->parts[at].partition != id))
		at++;
	if (at == ENGINE_SURVEY_PARTS) {
		surveyor->overflows = true;
		return &survey->parts[ENGINE_SURVEY_PARTS - 1];
	}
	if (at == survey->part_count)
		survey->parts[survey->part_count++] =
			(struct engine_survey_part){ .kind = kind, .partition = id };
	return &survey->parts[at];
}

/* ---- of which version ---- */

/* The version of the subject with this bound: 0: there is none. */
static int version_at(struct surveyor *surveyor, uint64_t bound, uint32_t *version)
{
	struct partition *both[] = { surveyor->subject, surveyor->root };
	int result = 0;

	*version = 0;
	for (int n = 0; n < 2 && !result && !*version; n++) {
		const struct idset set = history_versions(surveyor->engine, both[n]);
		uint64_t found;
		uint32_t number = 0;

		result = history_next_kept(&set, bound, &found, &number);
		if (!result && found == bound)
			*version = number;
	}
	return result;
}

static void add_version(struct surveyor *surveyor, uint32_t version, uint32_t bytes)
{
	struct engine_survey *survey = surveyor->survey;
	uint32_t at = 0;

	while (at < survey->version_count && survey->versions[at].version != version)
		at++;
	surveyor->overflows |= at == ENGINE_SURVEY_VERSIONS;
	if (at == ENGINE_SURVEY_VERSIONS)
		return;
	if (at == survey->version_count)
		survey->versions[survey->version_count++] =
			(struct engine_survey_version){ .version = version };
	survey->versions[at].bytes += bytes;
}

/*
 * Counts it for the version that alone keeps it: the first bound at which it is kept is that
 * version's, and at the next one it is not found. A rollback may have it found elsewhere; then it
 * is counted for none.
 */
static int count_version(struct surveyor *surveyor, uint32_t bytes)
{
	const struct record_keep keep = keep_of(&surveyor->spared);
	uint64_t bounds[2], next, sequence;
	uint32_t version;
	int result;

	if (keep.bounds(keep.context, surveyor->key, surveyor->info, bounds, 2) != 1)
		return 0;
	result = version_at(surveyor, bounds[0], &version);
	if (result || !version)
		return result;
	result = keep_next(&surveyor->spared, surveyor->key, bounds[0] + 1, &next);
	if (result)
		return result;
	result = is_found(surveyor, next, true, &sequence);
	if (result == 0)
		add_version(surveyor, version, bytes);
	return result < 0 ? result : 0;
}

/* ---- counting ---- */

static int count_record(struct surveyor *surveyor, uint32_t bytes)
{
	int kept = is_kept(surveyor, &surveyor->all), live, spared, reduced = 1;
	struct engine_survey_part *part = part_of(surveyor);

	if (kept < 0)
		return kept;
	if (!kept) {
		part->reclaimable += bytes;
		return 0;
	}
	live = is_live(surveyor);
	spared = live ? live : is_kept(surveyor, &surveyor->spared);
	if (spared > 0 && !live && part->kind != ENGINE_SURVEY_OTHERS) {
		int counted = count_version(surveyor, bytes);

		spared = counted < 0 ? counted : 1;
	}
	if (!live && surveyor->reduces && (spared > 0 || surveyor->survey->horizon))
		reduced = is_kept(surveyor, &surveyor->reduced);
	if (live < 0 || spared < 0 || reduced < 0)
		return live < 0 ? live : spared < 0 ? spared : reduced;
	if (live) {
		part->live += bytes;
		surveyor->live_bytes += bytes;
	} else if (spared)
		part->kept += bytes;
	else
		part->history += bytes;
	if (!reduced)
		part->freed += bytes;
	return 0;
}

static void look_at_record(void *context, const struct record_key *key,
			   const struct record_info *info, uint32_t bytes, bool counts)
{
	struct surveyor *surveyor = context;
	int result = 0;

	surveyor->key = key;
	surveyor->info = info;
	surveyor->found_count = 0;
	surveyor->newest = -1;
	surveyor->looked_bytes += bytes;
	if (counts)
		result = count_record(surveyor, bytes);
	else
		part_of(surveyor)->reclaimable += bytes;
	/* What is damaged is not counted. */
	if (result && result != -EBADMSG && !surveyor->result)
		surveyor->result = result;
}

/* ---- page by page ---- */

/* Pages of few samples lie as far from each other as they can; of all of them each comes once. */
static uint64_t page_at(uint64_t position, uint64_t wanted, uint64_t pages)
{
	uint64_t fraction = position * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	return pages <= wanted ? position : (uint64_t)((unsigned __int128)fraction * pages >> 32);
}

static void count_stretch(const struct surveyor *surveyor, uint32_t segment, uint32_t segments)
{
	struct engine_survey *survey = surveyor->survey;

	if (survey->stretch_count && segment < segments) {
		struct engine_stretch *stretch =
			&survey->stretches[(uint64_t)segment * survey->stretch_count / segments];

		stretch->looked_bytes += surveyor->looked_bytes;
		stretch->live_bytes += surveyor->live_bytes;
	}
}

/* The segments of each stretch, which is all that changes here from part to part. */
static uint32_t begin_stretches(const struct surveyor *surveyor)
{
	struct engine_survey *survey = surveyor->survey;
	struct record_store *store = surveyor->engine->store;
	struct record_stretch found[ENGINE_SURVEY_STRETCHES];
	struct record_statistics statistics = { 0 };

	if (!survey->stretches || !store->operations->map)
		survey->stretch_count = 0;
	store->operations->statistics(store, &statistics);
	survey->stretch_count = (uint32_t)min_u64(
		min_u64(survey->stretch_count, ENGINE_SURVEY_STRETCHES), statistics.segments);
	if (survey->stretch_count)
		store->operations->map(store, found, survey->stretch_count);
	for (uint32_t n = 0; n < survey->stretch_count; n++) {
		survey->stretches[n].segments = found[n].segments;
		survey->stretches[n].free = found[n].free;
		survey->stretches[n].sealed = found[n].sealed;
	}
	return (uint32_t)statistics.segments;
}

/*
 * Looks at the next page. False: it needs more places in the tables than are left; the next
 * transaction looks at it. One that needs more than there are has the last ones shared.
 */
static bool look_at_page(struct surveyor *surveyor, struct record_sample *sample, uint32_t segments)
{
	struct engine_survey *survey = surveyor->survey;
	const struct engine_survey before = *survey;
	int result;

	records_worked++;
	surveyor->overflows = false;
	surveyor->looked_bytes = surveyor->live_bytes = 0;
	sample->page = page_at(survey->position, survey->wanted, survey->pages);
	result = surveyor->engine->store->operations->sample(surveyor->engine->store, sample);
	/* What was noted of a record meanwhile stays. */
	if (result)
		surveyor->result = result;
	if (surveyor->overflows && survey->looked_at) {
		*survey = before;
		return false;
	}
	count_stretch(surveyor, sample->segment, segments);
	survey->position++;
	survey->looked_at++;
	return surveyor->result == 0;
}

static int look_at_pages(struct surveyor *surveyor)
{
	struct engine_survey *survey = surveyor->survey;
	struct record_store *store = surveyor->engine->store;
	struct record_sample sample = { .page = UINT64_MAX, .record = look_at_record };
	uint64_t begun = records_worked, end;
	uint32_t segments = begin_stretches(surveyor);
	int result;

	sample.context = surveyor;
	result = store->operations->sample(store, &sample);
	survey->pages = sample.pages;
	survey->record_bytes = sample.bytes;
	survey->flash_bytes = sample.device_bytes;
	end = min_u64(survey->wanted, survey->pages);
	while (!result && survey->position < end && records_worked - begun < survey->work &&
	       look_at_page(surveyor, &sample, segments))
		;
	survey->done = survey->position >= end;
	return result ? result : surveyor->result;
}

/* The bounds of the versions that would be dropped. */
static int find_drops(const struct surveyor *surveyor, uint64_t bounds[ENGINE_SURVEY_DROPS])
{
	const struct engine_survey *survey = surveyor->survey;
	const struct idset set = history_versions(surveyor->engine, surveyor->subject);
	uint32_t found = 0, number;
	uint64_t bound = 0;
	int result = 0;

	while (!result && found < survey->drop_count && bound < RECORD_NEWEST) {
		result = history_next_kept(&set, bound, &bound, &number);
		for (uint32_t n = 0; !result && bound < RECORD_NEWEST && n < survey->drop_count;
		     n++)
			if (survey->drop[n] == number)
				bounds[found++] = bound;
		bound++;
	}
	return result ? result : found == survey->drop_count ? 0 : -ENOENT;
}

static int survey_with(struct surveyor *surveyor)
{
	struct engine_survey *survey = surveyor->survey;
	uint64_t bounds[ENGINE_SURVEY_DROPS];
	const struct keep_without spared = { .spare = true };
	const struct keep_without reduced = { .spare = !survey->horizon,
					      .index = surveyor->subject->index,
					      .horizon = survey->horizon,
					      .bounds = bounds,
					      .count = survey->drop_count };
	int result = find_drops(surveyor, bounds);

	if (result)
		return result;
	surveyor->reduces = survey->horizon || survey->drop_count;
	keep_begin(&surveyor->all, surveyor->engine, NULL, true);
	keep_begin(&surveyor->spared, surveyor->engine, &spared, true);
	keep_begin(&surveyor->reduced, surveyor->engine, &reduced, true);
	result = look_at_pages(surveyor);
	keep_end(&surveyor->reduced);
	keep_end(&surveyor->spared);
	keep_end(&surveyor->all);
	return result;
}

int engine_survey(struct engine_txn *txn, struct engine_survey *survey)
{
	struct engine *engine = txn->engine;
	struct record_statistics statistics = { 0 };
	struct surveyor surveyor = { .engine = engine, .survey = survey };
	struct partition_pair pair;
	int result;

	survey->part_count = survey->version_count = 0;
	survey->looked_at = 0;
	if (!engine->store->operations->sample || survey->drop_count > ENGINE_SURVEY_DROPS)
		return -EOPNOTSUPP;
	result = partition_get_pair(engine, survey->partition, &pair);
	if (result)
		return result;
	surveyor.subject = pair.partition;
	surveyor.root = pair.root;
	result = survey_with(&surveyor);
	partition_release_pair(engine, &pair);
	engine->store->operations->statistics(engine->store, &statistics);
	survey->capacity_bytes = engine->store->limits.capacity_bytes;
	survey->used_bytes = statistics.used_bytes;
	return result;
}
