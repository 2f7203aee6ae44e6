/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Reclaiming segments. One step takes a few sealed segments, puts again what is still needed of them, takes their columns
 * out of their tables and frees them.
 *
 * A moved record keeps its sequence number, so it counts at once and both copies are the same record; a crash leaves at
 * worst both. A record that is not the newest of its key, hidden ones counted, is marked as moved: its new place is newer
 * than it is, and a search that meets it goes on (store.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "engine/muninn/store.h"

enum {
	SAMPLED_PAGES = 4,          /* of a segment, to estimate how much of it is live */
	CANDIDATES = 16,            /* segments that are sampled for one victim, at most */
	GOOD_ENOUGH_PERMILLE = 100, /* a victim with so little live is taken at once */
	BOUNDS_MAX = 64,            /* at which a record is looked for */
};

/* A sealed segment. */
struct victim {
	uint32_t row;
	uint32_t segment;
	uint32_t live_permille; /* of the bytes of its records, those that are needed */
	bool is_unworn;         /* chosen to level wear */
};

/* ---- what is needed ---- */

enum need { NEED_NONE, NEED_NEWEST, NEED_OLD };

/* What is found for the key of a record that is judged. */
struct judged {
	struct muninn_store *store;
	const struct record_header *header;
	const uint8_t *value;
	struct record_info found;
	uint8_t found_value[MUNINN_PAGE_BYTES_MAX];
};

/*
 * Whether the record is the one found for its key: not superseded, not even by a later put of the same command. 1, 0, or
 * the error of the search. `found` = what is (sequence 0: nothing).
 */
static int is_found(struct judged *judged, const struct visibility *visibility)
{
	const struct record_header *header = judged->header;
	int result = store_get(judged->store, &header->key, visibility, NAND_CAUSE_MERGE,
			       judged->found_value, sizeof(judged->found_value), &judged->found);

	if (result) {
		judged->found.sequence = 0;
		return result == -ENOENT ? 0 : result;
	}
	return judged->found.sequence == header->sequence &&
	       judged->found.length == header->length &&
	       memcmp(judged->found_value, judged->value, header->length) == 0;
}

/* Whether the record is found and reached at one of the bounds. 1, 0, or the error of a search. */
static int is_needed_at(struct judged *judged, const struct record_keep *keep,
			const struct record_info *info, bool newest, const uint64_t *bounds,
			uint32_t count)
{
	const struct record_header *header = judged->header;
	uint64_t newest_sequence = judged->found.sequence;

	for (uint32_t i = 0; i < count; i++) {
		struct visibility visibility = store_visibility(judged->store, bounds[i]);
		int found;

		/* What is known already saves most searches. */
		if (bounds[i] < header->sequence ||
		    record_is_hidden(&visibility, &header->key, header->sequence))
			continue;
		if (newest)
			found = 1;
		else if (bounds[i] == RECORD_NEWEST &&
			 !record_is_hidden(&visibility, &header->key, newest_sequence))
			found = 0;
		else
			found = is_found(judged, &visibility);
		if (found < 0)
			return found;
		if (found && (header->flags & RECORD_TOMBSTONE || !keep->is_reachable ||
			      keep->is_reachable(keep->context, &header->key, info, bounds[i])))
			return 1;
	}
	return 0;
}

/*
 * Whether a record must be kept, and whether nothing newer of its key has been put, hidden or not. Negative errno when that
 * can't be read.
 */
static int judge_record(struct muninn_store *store, const struct record_keep *keep,
			const struct record_header *header, const uint8_t *value)
{
	struct visibility everything = store_visibility(store, RECORD_NEWEST);
	struct judged judged = { .store = store, .header = header, .value = value };
	const struct record_info info = {
		.sequence = header->sequence,
		.length = header->length,
		.version = header->version,
		.flags = header->flags & (RECORD_TOMBSTONE | RECORD_ABSORB),
	};
	uint64_t bounds[BOUNDS_MAX + 1];
	uint32_t count = 0;
	int newest, needed = 1;

	if (!sequence_is_visible(&everything, header->sequence))
		return NEED_NONE;
	everything.timeline = NULL;
	newest = is_found(&judged, &everything);
	if (newest < 0)
		return newest;
	if (keep->boundaries)
		count = keep->boundaries(keep->context, &header->key, &info, bounds, BOUNDS_MAX);
	if (count <= BOUNDS_MAX) {
		bounds[count++] = RECORD_NEWEST;
		needed = is_needed_at(&judged, keep, &info, newest, bounds, count);
	}
	/* Without older records a tombstone says nothing. */
	if (needed > 0 && header->flags & RECORD_TOMBSTONE &&
	    !(keep->keeps_lone_tombstone &&
	      keep->keeps_lone_tombstone(keep->context, &header->key, &info)))
		needed = store_has_older(store, &header->key, header->sequence);
	if (needed <= 0)
		return needed ? needed : NEED_NONE;
	return newest ? NEED_NEWEST : NEED_OLD;
}

/* ---- reading a segment ---- */

/* Called for each record of a page, in order. */
typedef int record_visitor(struct muninn_store *store, const struct record_keep *keep,
			   const struct page_record *record, uint64_t serial, void *context);

static int visit_page(struct muninn_store *store, const struct record_keep *keep, uint32_t segment,
		      uint32_t page, record_visitor *visit, void *context)
{
	uint8_t data[MUNINN_PAGE_BYTES_MAX];
	uint8_t spare_bytes[4096];
	struct page_spare spare;
	struct page_record record;
	struct nand_page_io io = {
		.page = segment_page(&store->geometry, segment) + page,
		.data = data,
		.spare = spare_bytes,
	};
	uint32_t offset = 0;
	int result = nand_read(store->nand, NAND_CAUSE_MERGE, &io, 1);

	if (!result && (!page_spare_decode(spare_bytes, store->geometry.page_bytes, &spare) ||
			spare.kind != PAGE_KIND_RECORDS))
		result = -EBADMSG;
	if (result) {
		log_line(LOG_LEVEL_ERROR,
			 "merge: flash page %llu can't be read (error %d); segment %u stays",
			 (unsigned long long)io.page, -result, segment);
		return result == -ENODATA ? -EBADMSG : result;
	}
	struct page_view view = {
		.serial = spare.serial,
		.data = data,
		.used = spare.used,
		.large_header = spare.large ? spare.large_header : NULL,
	};

	store->merge_page = io.page;
	store->merge_view = view;
	while (!result && page_next(&view, &offset, &record))
		result = visit(store, keep, &record, spare.serial, context);
	store->merge_page = NO_PAGE;
	return result;
}

/* ---- choosing ---- */

/* Bytes of records that were looked at, and of those that are needed. */
struct live_bytes {
	uint64_t live, all;
	uint8_t *needs; /* where what is found for each record goes; NULL: nowhere */
};

static int add_live_bytes(struct muninn_store *store, const struct record_keep *keep,
			  const struct page_record *record, uint64_t serial, void *context)
{
	struct live_bytes *bytes = context;
	struct record_header header;

	(void)serial;
	record_header_decode(record->header, &header);
	int need = judge_record(store, keep, &header, record->value);

	bytes->all += RECORD_HEADER_BYTES + header.length;
	if (need > NEED_NONE)
		bytes->live += RECORD_HEADER_BYTES + header.length;
	if (bytes->needs && need >= 0)
		*bytes->needs++ = (uint8_t)need;
	return need < 0 ? need : 0;
}

/*
 * The live part of the records in `samples` pages spread over a segment, or of a segment that is all but empty: moving its
 * few records gains room too. A segment that can't be read counts as all live.
 */
static uint32_t measure_segment(struct muninn_store *store, const struct record_keep *keep,
				uint32_t segment, uint32_t samples)
{
	uint32_t stride = store->geometry.segment_pages / samples;
	uint32_t first = (uint32_t)(hash_mix(++store->merge_random) % stride);
	uint64_t capacity = (uint64_t)samples * store->geometry.page_bytes;
	bool whole = samples == store->geometry.segment_pages;
	struct live_bytes bytes = { .needs = whole ? store->merge_needs : NULL };

	store->merge_needs_segment = NO_SEGMENT;
	for (uint32_t i = 0; i < samples; i++)
		if (visit_page(store, keep, segment, first + i * stride, add_live_bytes, &bytes))
			return 1000;
	if (whole)
		store->merge_needs_segment = segment;
	/* Half of the capacity is what a segment is refilled to at worst. */
	return (uint32_t)(bytes.live * 1000 / max_u64(max_u64(bytes.all, capacity / 2), 1));
}

static struct table *row_table(struct row *row, uint32_t n)
{
	return n < row->complete_count ? &row->complete[n] : &row->growing;
}

static uint32_t column_segment(const struct table *table, uint32_t column)
{
	struct table_column facts;

	table_read_column(table, column, &facts);
	return facts.segment;
}

/*
 * The next sealed segment of a walk that visits all segments, far apart ones one after the other. False: there are none.
 */
static bool next_segment(struct muninn_store *store, struct victim *victim)
{
	uint32_t segments = store->geometry.segments;

	for (uint32_t tried = 0; tried < segments; tried++) {
		store->merge_cursor =
			(uint32_t)(((uint64_t)store->merge_cursor + store->merge_step) % segments);
		if (store->segment_rows[store->merge_cursor] == NO_ROW)
			continue;
		victim->segment = store->merge_cursor;
		victim->row = store->segment_rows[store->merge_cursor];
		return true;
	}
	return false;
}

/* The next complete table of a walk over all rows. False: it begins again, or there are none. */
static bool next_table(struct muninn_store *store)
{
	for (store->merge_table++; store->merge_row < store->geometry.rows;
	     store->merge_row++, store->merge_table = 0)
		if (store->merge_table < store->rows[store->merge_row].complete_count)
			return true;
	store->merge_row = 0;
	store->merge_table = UINT32_MAX;
	return false;
}

/* Notes what the filters of the walk's next table tell of its segments, and how full they are. */
static void estimate_table(struct muninn_store *store)
{
	uint64_t capacity = (uint64_t)store->geometry.segment_pages * store->geometry.page_bytes;
	uint32_t live_permille[MUNINN_COLUMNS];

	if (!next_table(store))
		return;
	const struct row *row = &store->rows[store->merge_row];
	const struct table *table = &row->complete[store->merge_table];

	overlap_estimate(store, row, store->merge_table, live_permille);
	for (uint64_t live = table_live(table); live; live &= live - 1) {
		uint32_t column = (uint32_t)__builtin_ctzll(live);
		struct table_column facts;

		table_read_column(table, column, &facts);
		store->merge_estimates[facts.segment] =
			(uint16_t)(live_permille[column] * facts.record_bytes / capacity);
	}
}

/* -EAGAIN: by the filters no segment of a complete table is worth it. Their word grows old, so a table is looked at each time. */
static int choose_by_filters(struct muninn_store *store, uint32_t live_permille_max,
			     struct victim *best)
{
	uint32_t segments = store->geometry.segments;

	if (!store->merge_estimates) {
		store->merge_estimates = malloc(segments * sizeof(*store->merge_estimates));
		if (!store->merge_estimates)
			return -ENOMEM;
		memset(store->merge_estimates, 0xff, segments * sizeof(*store->merge_estimates));
	}
	estimate_table(store);
	*best = (struct victim){ .segment = NO_SEGMENT, .live_permille = live_permille_max + 1 };
	for (uint32_t segment = 0; segment < segments; segment++) {
		if (store->segment_rows[segment] == NO_ROW ||
		    store->merge_estimates[segment] >= best->live_permille)
			continue;
		*best = (struct victim){ .row = store->segment_rows[segment],
					 .segment = segment,
					 .live_permille = store->merge_estimates[segment] };
	}
	if (best->segment == NO_SEGMENT)
		return -EAGAIN;
	/* Whatever comes of it, not again before its table is looked at again. */
	store->merge_estimates[best->segment] = UINT16_MAX;
	return 0;
}

/* Where few columns of a table are left, the rest goes too, when the directory needs the room. */
static bool sparse_segment(struct muninn_store *store, struct victim *victim)
{
	if (store_directory_used(store) < store->geometry.directory_entries / 4 * 3)
		return false;
	for (victim->row = 0; victim->row < store->geometry.rows; victim->row++) {
		const struct row *row = &store->rows[victim->row];

		for (uint32_t n = 0; n < row->complete_count; n++) {
			uint64_t live = table_live(&row->complete[n]);

			if (__builtin_popcountll(live) <= TABLE_SPARSE_COLUMNS) {
				victim->segment = column_segment(&row->complete[n],
								 (uint32_t)__builtin_ctzll(live));
				victim->live_permille = 0;
				return true;
			}
		}
	}
	return false;
}

static bool is_sealed(const void *context, uint32_t segment)
{
	const struct muninn_store *store = context;

	return store->segment_rows[segment] != NO_ROW;
}

/* What lies still while others wear out is moved, however much of it is live. */
static bool unworn_segment(struct muninn_store *store, struct victim *victim)
{
	victim->segment = space_level(&store->space, is_sealed, store);
	if (victim->segment == NO_SEGMENT)
		return false;
	victim->row = store->segment_rows[victim->segment];
	victim->live_permille = 0;
	victim->is_unworn = true;
	return true;
}

/* -EAGAIN: there are no sealed segments. */
static int choose_by_samples(struct muninn_store *store, const struct record_keep *keep,
			     uint32_t samples, struct victim *best)
{
	best->live_permille = 1001;
	for (uint32_t i = 0; i < CANDIDATES && best->live_permille > GOOD_ENOUGH_PERMILLE; i++) {
		struct victim candidate = { 0 };

		if (!next_segment(store, &candidate))
			return -EAGAIN;
		candidate.live_permille = measure_segment(store, keep, candidate.segment, samples);
		if (candidate.live_permille < best->live_permille)
			*best = candidate;
	}
	return 0;
}

static int choose_victim(struct muninn_store *store, const struct record_keep *keep,
			 const struct record_merge *merge, struct victim *best)
{
	uint32_t live_permille_max = merge->live_permille_max;
	uint32_t pages = store->geometry.segment_pages;
	uint32_t samples = pages < SAMPLED_PAGES ? pages : SAMPLED_PAGES;
	int result = -EAGAIN;

	if (sparse_segment(store, best) || unworn_segment(store, best))
		return 0;
	if (merge->choice == RECORD_MERGE_FILTERS) {
		result = choose_by_filters(store, live_permille_max, best);
		if (!result)
			best->live_permille = measure_segment(store, keep, best->segment, samples);
		if (!result && best->live_permille > live_permille_max)
			result = -EAGAIN;
	}
	/* Filters speak of complete tables only, and of other keys than a hot one at most. */
	if (result == -EAGAIN)
		result = choose_by_samples(store, keep, samples, best);
	if (result)
		return result;
	/* A few pages tell which segment is best, not whether it is worth moving: that is counted. */
	if (best->live_permille <= live_permille_max)
		best->live_permille = measure_segment(store, keep, best->segment, pages);
	return best->live_permille <= live_permille_max ? 0 : -EAGAIN;
}

/* ---- moving ---- */

struct moving {
	struct record_merge *merge;
	const uint8_t *needs; /* of the records to come, as counted; NULL: to be found out */
};

static int move_record(struct muninn_store *store, const struct record_keep *keep,
		       const struct page_record *record, uint64_t serial, void *context)
{
	struct moving *moving = context;
	struct record_merge *merge = moving->merge;
	struct new_record moved = { .value = record->value };
	int need, result;

	if (!record_is_intact(record->header, serial, record->value))
		return -EBADMSG;
	record_header_decode(record->header, &moved.header);
	need = moving->needs ? *moving->needs++
			     : judge_record(store, keep, &moved.header, record->value);
	if (need <= NEED_NONE) {
		merge->records_dropped += need == NEED_NONE;
		return need;
	}
	if (need == NEED_OLD)
		moved.header.flags |= RECORD_MOVED;
	else
		moved.header.flags &= (uint8_t)~RECORD_MOVED;
	result = store_place(store, &moved, RECORD_ROOM_UPKEEP);
	if (!result) {
		merge->records_moved++;
		merge->bytes_moved += RECORD_HEADER_BYTES + moved.header.length;
	}
	return result;
}

/* Takes the column of a segment out of its table, and the table out of its row when that was the last one. */
static struct root_kill kill_segment(struct muninn_store *store, const struct victim *victim)
{
	struct row *row = &store->rows[victim->row];

	for (uint32_t n = 0; n <= row->complete_count; n++) {
		struct table *table = row_table(row, n);
		uint64_t live = table_live(table);

		for (; live; live &= live - 1) {
			uint32_t column = (uint32_t)__builtin_ctzll(live);
			struct table_column facts;

			table_read_column(table, column, &facts);
			if (facts.segment != victim->segment)
				continue;
			struct root_kill kill = {
				.segment = facts.segment,
				.row = (uint16_t)victim->row,
				.column = (uint16_t)column,
				.table = table_index(table),
				.serial = facts.serial,
			};

			table_kill_column(table, column);
			store->segment_rows[facts.segment] = NO_ROW;
			if (store->merge_estimates)
				store->merge_estimates[facts.segment] = UINT16_MAX;
			store->counters.sealed_records -= facts.records;
			store->counters.sealed_record_bytes -= facts.record_bytes;
			if (n < row->complete_count && !table_live(table))
				store_drop_table(store, victim->row, n);
			versions_refresh(store, row);
			row->unsynced = true;
			return kill;
		}
	}
	assert(!"a sealed segment is in a table of its row");
	abort();
}

uint32_t store_merge_calls_max(const struct muninn_store *store)
{
	return store->geometry.segments / CANDIDATES + 1;
}

void store_merge_begin(struct muninn_store *store)
{
	uint32_t segments = store->geometry.segments;
	uint32_t step = (uint32_t)(segments * 0.618);

	/* A step without a common divisor visits every segment. */
	for (;; step++) {
		uint32_t a = segments, b = step;

		while (b) {
			uint32_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			break;
	}
	store->merge_step = step;
	store->merge_page = NO_PAGE;
	store->merge_needs_segment = NO_SEGMENT;
}

static bool is_chosen(const struct victim *batch, uint32_t count, uint32_t segment)
{
	for (uint32_t i = 0; i < count; i++)
		if (batch[i].segment == segment)
			return true;
	return false;
}

/* Chooses up to `wanted` segments and moves what is needed of each. Returns how many are done; *result: why no more. */
static uint32_t move_batch(struct muninn_store *store, const struct record_keep *keep,
			   struct record_merge *merge, uint32_t wanted, struct victim *batch,
			   int *result)
{
	uint32_t count = 0;

	/* One alone, which is of one row, always comes to its end; with more the last may not, for nothing. */
	while (count < wanted &&
	       (count == 0 || store->space.count > store->geometry.room_kept[RECORD_ROOM_RESCUE])) {
		struct moving moving = { .merge = merge };
		struct victim victim = { 0 };

		*result = choose_victim(store, keep, merge, &victim);
		if (!*result && is_chosen(batch, count, victim.segment))
			*result = -EAGAIN;
		/* Nothing has been put since it was counted. */
		if (store->merge_needs_segment == victim.segment)
			moving.needs = store->merge_needs;
		for (uint32_t page = 0; !*result && page < store->geometry.segment_pages; page++)
			*result =
				visit_page(store, keep, victim.segment, page, move_record, &moving);
		/* A damaged segment is no reason to stop: levelling can do without it. */
		if (*result && *result != -ENOSPC && victim.is_unworn) {
			space_leave(&store->space, victim.segment);
			continue;
		}
		store->merge_needs_segment = NO_SEGMENT;
		if (*result)
			break;
		batch[count++] = victim;
	}
	rows_end_touched(store);
	return count;
}

int store_merge(struct muninn_store *store, const struct record_keep *keep,
		struct record_merge *merge)
{
	struct victim batch[MERGE_SEGMENTS_MAX];
	struct root_kill kills[MERGE_SEGMENTS_MAX];
	uint32_t wanted = merge->segments_wanted ? merge->segments_wanted : 1;
	int result = 0;
	uint32_t count = move_batch(store, keep, merge,
				    wanted < MERGE_SEGMENTS_MAX ? wanted : MERGE_SEGMENTS_MAX,
				    batch, &result);

	/* So that commands that must not take long find room behind what was moved. */
	store_catch_up(store, UINT32_MAX);
	if (count == 0)
		return result;
	/*
	 * On stable storage, what was moved comes before the end of its old place, and that before the segments can
	 * be written again.
	 */
	result = store_flush(store);
	if (result)
		return result;
	for (uint32_t i = 0; i < count; i++)
		kills[i] = kill_segment(store, &batch[i]);
	result = store_flush(store);
	if (result)
		return result;
	store_write_kills(store, kills, count); /* what fails is logged: NVRAM says it all */
	for (uint32_t i = 0; i < count; i++)
		space_release(&store->space, batch[i].segment);
	merge->segments_freed += count;
	return 0;
}
