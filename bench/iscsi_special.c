/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The cases that are no comparison of rates: latencies at a pace, a FLUSH, sessions. */
#include <stddef.h>

#include "bench/iscsi_bench.h"
#include "bench/turn_share.h"

enum { BLOCK_BYTES = 4096, DEPTH = 32, SESSIONS = 4 };

/* Of what a load of 4 KiB at random consists; the caller changes the rest. */
static struct load_stream stream_of(const struct load_unit *unit, enum load_operation operation)
{
	return (struct load_stream){ .unit = *unit,
				     .operation = operation,
				     .block_bytes = BLOCK_BYTES,
				     .depth = DEPTH,
				     .sessions = 1,
				     .random = true,
				     .verify = true };
}

static int measure(struct iscsi_context *context, struct load_stream *streams, uint32_t count,
		   double seconds, struct iscsi_turns *turns, struct error_text *error)
{
	struct load load = { .streams = streams,
			     .stream_count = count,
			     .warm_up = context->options->seconds / 5,
			     .seconds = seconds,
			     .server = context->place.ours.tgtd,
			     .seed = context->options->seed + turns->count };
	int result = iscsi_measure(&context->place, &load, turns, error);

	load_free(&load);
	return result;
}

/* ---- latencies at a pace ---- */

int iscsi_case_tail(struct iscsi_context *context, struct error_text *error)
{
	struct iscsi_turns highest = { .side = "highest" }, paced = { .side = "paced" };
	double ratios[BENCH_RUNS_MAX], kept[BENCH_RUNS_MAX],
		seconds = context->options->sustained / 3;
	struct load_stream stream = { 0 };
	int result = iscsi_want_place(context, true, NULL, error);

	for (uint32_t turn = 0; turn < context->options->turns && result == 0; turn++) {
		stream = stream_of(&context->place.muninn, LOAD_WRITE);
		result = measure(context, &stream, 1, seconds, &highest, error);
		if (result < 0)
			break;
		stream = stream_of(&context->place.muninn, LOAD_WRITE);
		stream.rate = 0.8 * highest.turns[turn].rate;
		result = measure(context, &stream, 1, seconds, &paced, error);
		kept[turn] = paced.turns[turn].rate / stream.rate;
		ratios[turn] = paced.turns[turn].p999_us / paced.turns[turn].p50_us;
	}
	if (result < 0)
		return result;
	iscsi_report(context->output, "tail", &stream, &paced);
	stream.rate = 0;
	iscsi_report(context->output, "tail", &stream, &highest);
	bench_goals_add(context->goals,
			&(struct bench_goal){ .name = "tail",
					      .what = "p99.9 : p50, at 80 % of the highest rate",
					      .value = bench_median(ratios, paced.count),
					      .goal = 20,
					      .at_most = true });
	/* Otherwise commands wait for each other all the time, and the other figure says little. */
	bench_goals_add(context->goals,
			&(struct bench_goal){ .name = "tail",
					      .what = "rate : 80 % of the highest rate",
					      .value = bench_median(kept, paced.count),
					      .goal = 0.98 });
	return 0;
}

/* ---- a FLUSH beside others ---- */

/* The reader and the FLUSHes are on one unit, the writers on another one of the same tgtd. */
int iscsi_case_flush(struct iscsi_context *context, struct error_text *error)
{
	struct iscsi_turns alone = { .side = "alone" }, beside = { .side = "writers" },
			   flushed = { .side = "+FLUSH" };
	struct iscsi_turns *const kinds[] = { &alone, &beside, &flushed };
	double waits_ms[BENCH_RUNS_MAX], seconds = context->options->sustained / 6;
	struct load_stream streams[3] = { 0 };
	int result = iscsi_want_place(context, true, NULL, error);

	for (uint32_t turn = 0; turn < context->options->turns && result == 0; turn++) {
		for (uint32_t kind = 0; kind < 3 && result == 0; kind++) {
			streams[0] = stream_of(&context->place.idle, LOAD_READ);
			streams[0].depth = 1;
			streams[1] = stream_of(&context->place.muninn, LOAD_WRITE);
			streams[2] = stream_of(&context->place.idle, LOAD_FLUSH);
			streams[2].depth = 1;
			result = measure(context, streams, kind + 1, seconds, kinds[kind], error);
		}
		if (result == 0)
			waits_ms[turn] =
				(flushed.turns[turn].max_us - alone.turns[turn].p50_us) / 1e3;
	}
	if (result < 0)
		return result;
	for (uint32_t kind = 0; kind < 3; kind++)
		iscsi_report(context->output, "flush", &streams[0], kinds[kind]);
	bench_goals_add(context->goals,
			&(struct bench_goal){ .name = "flush",
					      .what = "ms, longest wait of a reader - one READ",
					      .value = bench_median(waits_ms, flushed.count),
					      .goal = 2,
					      .at_most = true });
	return 0;
}

/* ---- sessions ---- */

/* A turn of a side, and what it was to the unit's own turn. */
static int measure_share(struct iscsi_context *context, struct load_stream *stream,
			 struct iscsi_turns *turns, struct turn_share *share,
			 struct error_text *error)
{
	const char *muninnd = context->options->muninnd, *url = context->place.urls[0];
	struct turn_share before, after;
	int result = turn_share_read(muninnd, url, &before, error);

	if (result == 0)
		result = measure(context, stream, 1, context->options->seconds, turns, error);
	if (result == 0)
		result = turn_share_read(muninnd, url, &after, error);
	if (result == 0)
		turn_share_add(share, &before, &after);
	return result;
}

int iscsi_case_sessions(struct iscsi_context *context, struct error_text *error)
{
	struct iscsi_turns one = { .side = "1" }, four = { .side = "4" };
	struct bench_pair pair = { .name = "sessions",
				   .reference_name = "one session",
				   .unit = "/s",
				   .goal = 1.0,
				   .runs = context->options->turns };
	struct turn_share shares[2] = { 0 };
	struct load_stream stream = { 0 };
	int result = iscsi_want_place(context, false, NULL, error);

	for (uint32_t turn = 0; turn < pair.runs && result == 0; turn++)
		for (uint32_t i = 0; i < 2 && result == 0; i++) {
			bool many = (turn + i) % 2;

			stream = stream_of(&context->place.muninn, LOAD_MIXED);
			stream.sessions = many ? SESSIONS : 1;
			result = measure_share(context, &stream, many ? &four : &one, &shares[many],
					       error);
		}
	if (result < 0)
		return result;
	for (uint32_t turn = 0; turn < pair.runs; turn++) {
		pair.measured[turn] = four.turns[turn].rate;
		pair.reference[turn] = one.turns[turn].rate;
	}
	stream.sessions = 1;
	iscsi_report(context->output, "sessions", &stream, &one);
	stream.sessions = SESSIONS;
	iscsi_report(context->output, "sessions", &stream, &four);
	turn_share_report(context->output, "sessions", "1", &shares[0]);
	turn_share_report(context->output, "sessions", "4", &shares[1]);
	bench_goals_add(context->goals,
			&(struct bench_goal){ .name = "sessions",
					      .what = "rate of 4 sessions : 1 session",
					      .value = bench_pair_report(context->output, &pair),
					      .goal = 1.0 });
	bench_goals_add(context->goals,
			&(struct bench_goal){ .name = "sessions",
					      .what = "least : most of 4 sessions",
					      .value = iscsi_median(&four, ISCSI_FIELD(fairness)),
					      .goal = 0.7 });
	return 0;
}
