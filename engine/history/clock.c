/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "engine/history/clock.h"

#include <stdio.h>
#include <time.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history/times.h"
#include "engine/objects/objects.h"

#define RECORD_MAX_BYTES \
	(CLOCK_HEAD_BYTES + CLOCK_SPANS_MAX * CLOCK_SPAN_BYTES + CLOCK_CUTS_MAX * CLOCK_CUT_BYTES)

/* ---- the record ---- */

static int decode(struct clock_spans *spans, const uint8_t *from, uint32_t length)
{
	/* Older programs put no head. */
	uint32_t head = length % CLOCK_SPAN_BYTES ? CLOCK_HEAD_BYTES : 0;

	*spans = (struct clock_spans){ .begun_ms = head ? get_le48(from + 2) : 0,
				       .count = head ? from[0] : length / CLOCK_SPAN_BYTES,
				       .cut_count = head ? from[1] : 0 };
	if (spans->count > CLOCK_SPANS_MAX || spans->cut_count > CLOCK_CUTS_MAX ||
	    length != head + spans->count * CLOCK_SPAN_BYTES + spans->cut_count * CLOCK_CUT_BYTES)
		return -EBADMSG;
	from += head;
	for (uint32_t at = 0; at < spans->count; at++, from += CLOCK_SPAN_BYTES)
		spans->list[at] = (struct clock_span){ .from_ms = get_le48(from),
						       .until_ms = get_le48(from + 6) };
	for (uint32_t at = 0; at < spans->cut_count; at++, from += CLOCK_CUT_BYTES)
		spans->cuts[at] = (struct clock_cut){ .sequence = get_le48(from),
						      .from_ms = get_le48(from + 6),
						      .until_ms = get_le48(from + 12) };
	return 0;
}

int clock_load(struct engine *engine)
{
	uint8_t record[RECORD_MAX_BYTES];
	struct record_info info;
	int result = record_get(engine->store, key_of_table(RECORD_ID_CLOCK, 0), RECORD_NEWEST,
				record, sizeof(record), &info);

	engine->doubts = (struct clock_spans){ 0 };
	if (result)
		return result == -ENOENT ? 0 : result;
	return info.length > sizeof(record) ? -EBADMSG
					    : decode(&engine->doubts, record, info.length);
}

int clock_put(struct engine_txn *txn, const struct clock_spans *spans)
{
	uint8_t record[RECORD_MAX_BYTES] = { (uint8_t)spans->count, (uint8_t)spans->cut_count };
	uint8_t *to = record + CLOCK_HEAD_BYTES;
	int result;

	put_le48(record + 2, spans->begun_ms);
	for (uint32_t at = 0; at < spans->count; at++, to += CLOCK_SPAN_BYTES) {
		put_le48(to, spans->list[at].from_ms);
		put_le48(to + 6, spans->list[at].until_ms);
	}
	for (uint32_t at = 0; at < spans->cut_count; at++, to += CLOCK_CUT_BYTES) {
		put_le48(to, spans->cuts[at].sequence);
		put_le48(to + 6, spans->cuts[at].from_ms);
		put_le48(to + 12, spans->cuts[at].until_ms);
	}
	result = record_put(&txn->writer, key_of_table(RECORD_ID_CLOCK, 0), RECORD_ABSORB, record,
			    (uint32_t)(to - record));
	if (result)
		return result;
	txn->doubts = *spans;
	txn->doubts_changed = true;
	return 0;
}

uint64_t clock_cut(const struct clock_spans *spans, uint64_t sequence, uint64_t ms)
{
	for (uint32_t at = 0; at < spans->cut_count; at++)
		if (sequence < spans->cuts[at].sequence && ms > spans->cuts[at].from_ms)
			ms = spans->cuts[at].until_ms;
	return ms;
}

/* ---- spans ---- */

/*
 * The span that a clock is in which says `now_ms`; empty if it is not behind the latest time on
 * record.
 */
static int present_span(struct engine *engine, const struct history *device, uint64_t now_ms,
			struct clock_span *span)
{
	uint64_t latest_ms = max_u64(engine->committed_ms, device->device.slot_ms);
	int result;

	*span = (struct clock_span){ 0 };
	if (now_ms + CLOCK_STEP_MS >= latest_ms)
		return 0;
	result = times_last_before(engine, device, now_ms, &span->from_ms);
	/* Behind the beginning of which the table does not tell any more. */
	if (!result && !span->from_ms && engine->doubts.begun_ms &&
	    now_ms >= engine->doubts.begun_ms)
		span->from_ms = engine->doubts.begun_ms;
	/*
	 * From before the device was made, as clocks come from that have lost their battery: what
	 * is on record was not ahead of that, and no time until then means anything else than it
	 * did.
	 */
	if (!result && span->from_ms)
		span->until_ms = latest_ms;
	return result;
}

/*
 * Takes a span in. False: it was there. Those on record were noted one after the other, so it is
 * with the last ones.
 */
static bool add_span(struct clock_spans *spans, const struct clock_span *span)
{
	struct clock_span *last = spans->count ? &spans->list[spans->count - 1] : NULL;

	if (last && span->from_ms >= last->from_ms && span->until_ms <= last->until_ms)
		return false;
	if (last && (span->from_ms < last->until_ms || spans->count == CLOCK_SPANS_MAX)) {
		last->from_ms = min_u64(last->from_ms, span->from_ms);
		last->until_ms = max_u64(last->until_ms, span->until_ms);
	} else {
		spans->list[spans->count++] = *span;
	}
	return true;
}

static void format_time(uint64_t ms, char text[32])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;

	snprintf(text, 32, "?");
	if (gmtime_r(&seconds, &parts))
		strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static void tell(uint64_t now_ms, const struct clock_span *span)
{
	char now[32], from[32], until[32];

	format_time(now_ms, now);
	format_time(span->from_ms, from);
	format_time(span->until_ms, until);
	log_line(
		LOG_LEVEL_WARNING,
		"the clock says %s, but commands are on record up to %s: it was ahead, or is "
		"behind "
		"now. Points in time between %s and %s are refused from now on, since it is not "
		"known what was when; go by sequence numbers (`muninnctl log`, `#N`) there. If the "
		"clock is wrong now, set it; if it is right, `muninnctl trust-clock` on this host "
		"lets times count by it again",
		now, until, from, until);
}

int clock_note(struct engine_txn *txn, const struct history *device)
{
	struct clock_spans spans = txn->engine->doubts;
	struct clock_span span;
	int result = present_span(txn->engine, device, txn->time_ms, &span);

	if (result || !span.until_ms || !add_span(&spans, &span))
		return result;
	result = clock_put(txn, &spans);
	if (!result)
		tell(txn->time_ms, &span);
	return result;
}

int clock_forget(struct engine_txn *txn, uint64_t first_ms)
{
	struct clock_spans spans = txn->engine->doubts;

	if (spans.begun_ms)
		return 0;
	spans.begun_ms = first_ms;
	return clock_put(txn, &spans);
}

static bool is_within(const struct clock_span *span, uint64_t ms)
{
	return ms > span->from_ms && ms < span->until_ms;
}

int clock_check(struct engine *engine, const struct history *device, uint64_t now_ms, uint64_t ms)
{
	struct clock_span span;
	int result = present_span(engine, device, now_ms, &span);

	if (result)
		return result;
	if (is_within(&span, ms))
		return -ESTALE;
	for (uint32_t at = 0; at < engine->doubts.count; at++)
		if (is_within(&engine->doubts.list[at], ms))
			return -ESTALE;
	return 0;
}

bool clock_was(const struct engine *engine, uint64_t recorded_ms, uint64_t ms)
{
	for (uint32_t at = 0; at < engine->doubts.count; at++) {
		const struct clock_span *span = &engine->doubts.list[at];

		if (is_within(span, ms) && recorded_ms > span->from_ms &&
		    recorded_ms <= span->until_ms)
			return true;
	}
	return false;
}
