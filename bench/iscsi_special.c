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

static int measure_by(struct iscsi_context *context, pid_t server, struct load_stream *streams,
		      uint32_t count, double seconds, struct iscsi_turns *turns,
		      struct error_text *error)
{
	struct load load = { .streams = streams,
			     .stream_count = count,
			     .warm_up = context->options->seconds / 5,
			     .seconds = seconds,
			     .server = server,
			     .seed = context->options->seed + turns->count };
	int result = iscsi_measure(&context->place, &load, turns, error);

	load_free(&load);
	return result;
}

static int measure(struct iscsi_context *context, struct load_stream *streams, uint32_t count,
		   double seconds, struct iscsi_turns *turns, struct error_text *error)
{
	return measure_by(context, context->place.ours.tgtd, streams, count, seconds, turns, error);
}

/* ---- latencies at a pace ---- */

/*
 * Overwrites as much as the unit's device holds. So the device is full of history from then on, and
 * merges all the time: before, it takes more WRITEs than it can go on with.
 */
static int fill_with_history(struct iscsi_context *context, struct error_text *error)
{
	double seconds = context->options->sustained / 3, written = 0;
	int result = 0;

	while (written < (double)context->options->drive_size && result == 0) {
		struct load_stream stream = stream_of(&context->place.muninn, LOAD_WRITE);
		struct iscsi_turns filling = { .side = "filling" };

		result = measure(context, &stream, 1, seconds, &filling, error);
		written += filling.turns[0].rate * seconds * BLOCK_BYTES;
	}
	return result;
}

int iscsi_case_tail(struct iscsi_context *context, struct error_text *error)
{
	struct iscsi_turns highest = { .side = "highest" }, paced = { .side = "paced" };
	double ratios[BENCH_RUNS_MAX], kept[BENCH_RUNS_MAX],
		seconds = context->options->sustained / 3;
	struct load_stream stream = { 0 };
	int result = iscsi_want_place(context, &(struct iscsi_wish){ .on_drive = true }, error);

	if (result == 0)
		result = fill_with_history(context, error);
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

/*
 * The longest time that a reader waits is the machine's also without a FLUSH. So the turns with and
 * without take turns, and what counts is how much longer it waits in the one than in the other.
 */
static void judge_flush(struct iscsi_context *context, const struct iscsi_turns *without,
			const struct iscsi_turns *with)
{
	double longest_ms[BENCH_RUNS_MAX], most_ms[BENCH_RUNS_MAX];

	for (uint32_t turn = 0; turn < with->count; turn++) {
		longest_ms[turn] = (with->turns[turn].max_us - without->turns[turn].max_us) / 1e3;
		most_ms[turn] = (with->turns[turn].p999_us - without->turns[turn].p999_us) / 1e3;
	}
	bench_goals_add(
		context->goals,
		&(struct bench_goal){ .name = "flush",
				      .what = "ms that FLUSH adds to a reader's longest wait",
				      .value = bench_median(longest_ms, with->count),
				      .goal = 2,
				      .at_most = true });
	bench_goals_add(context->goals,
			&(struct bench_goal){ .name = "flush",
					      .what = "ms that FLUSH adds to its p99.9",
					      .value = bench_median(most_ms, with->count),
					      .goal = 2,
					      .at_most = true });
}

/* The reader and the FLUSHes are on one unit, the writers on another one of the same tgtd. */
int iscsi_case_flush(struct iscsi_context *context, struct error_text *error)
{
	struct iscsi_turns alone = { .side = "alone" }, beside = { .side = "writers" },
			   flushed = { .side = "+FLUSH" };
	struct iscsi_turns *const kinds[] = { &alone, &beside, &flushed };
	double seconds = context->options->sustained / 6;
	struct load_stream streams[3] = { 0 };
	int result = iscsi_want_place(context, &(struct iscsi_wish){ .on_drive = true }, error);

	for (uint32_t turn = 0; turn < context->options->turns && result == 0; turn++)
		for (uint32_t i = 0; i < 3 && result == 0; i++) {
			/* Another one is first in each turn. */
			uint32_t kind = (turn + i) % 3;

			streams[0] = stream_of(&context->place.idle, LOAD_READ);
			streams[0].depth = 1;
			streams[1] = stream_of(&context->place.muninn, LOAD_WRITE);
			streams[2] = stream_of(&context->place.idle, LOAD_FLUSH);
			streams[2].depth = 1;
			result = measure(context, streams, kind + 1, seconds, kinds[kind], error);
		}
	if (result < 0)
		return result;
	for (uint32_t kind = 0; kind < 3; kind++)
		iscsi_report(context->output, "flush", &streams[0], kinds[kind]);
	judge_flush(context, &beside, &flushed);
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

/* Of Muninn, then of null: one session, and four. */
enum { ONE, FOUR, NULL_ONE, NULL_FOUR, SESSION_SIDES };

static int measure_sessions(struct iscsi_context *context, uint32_t side,
			    struct load_stream *stream, struct iscsi_turns *turns,
			    struct turn_share *share, struct error_text *error)
{
	struct iscsi_place *place = &context->place;

	*stream = stream_of(side < NULL_ONE ? &place->muninn : &place->null, LOAD_MIXED);
	stream->sessions = side % 2 ? SESSIONS : 1;
	stream->verify = side < NULL_ONE;
	if (side < NULL_ONE)
		return measure_share(context, stream, turns, share, error);
	return measure_by(context, place->stock.tgtd, stream, 1, context->options->seconds, turns,
			  error);
}

/* The rates of a side beside those of another one. */
static double compare_sessions(struct iscsi_context *context, const char *name,
			       const struct iscsi_turns *measured,
			       const struct iscsi_turns *reference, double goal)
{
	struct bench_pair pair = { .name = name,
				   .reference_name = reference->side,
				   .unit = "/s",
				   .goal = goal,
				   .runs = measured->count };

	for (uint32_t turn = 0; turn < pair.runs; turn++) {
		pair.measured[turn] = measured->turns[turn].rate;
		pair.reference[turn] = reference->turns[turn].rate;
	}
	return bench_pair_report(context->output, &pair);
}

static void judge_sessions(struct iscsi_context *context, const struct iscsi_turns *turns)
{
	double beside_one = compare_sessions(context, "sessions", &turns[FOUR], &turns[ONE], 1.0);
	double beside_null =
		compare_sessions(context, "sessions", &turns[FOUR], &turns[NULL_FOUR], 0.9);
	const struct bench_goal goals[] = {
		{ .what = "rate of 4 sessions : 1 session", .value = beside_one, .goal = 1.0 },
		{ .what = "rate of 4 sessions : null with 4", .value = beside_null, .goal = 0.9 },
		{ .what = "least : most of 4 sessions",
		  .value = iscsi_median(&turns[FOUR], ISCSI_FIELD(fairness)),
		  .goal = 0.7 },
	};

	compare_sessions(context, "sessions of null", &turns[NULL_FOUR], &turns[NULL_ONE], 0);
	for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++) {
		struct bench_goal goal = goals[i];

		goal.name = "sessions";
		bench_goals_add(context->goals, &goal);
	}
}

/*
 * On units of its own: what earlier cases have written would be merged in some of the turns. More
 * sessions change what the initiator and tgtd itself have to do, too: null shows it.
 */
int iscsi_case_sessions(struct iscsi_context *context, struct error_text *error)
{
	struct iscsi_turns turns[SESSION_SIDES] = {
		{ .side = "1" }, { .side = "4" }, { .side = "null, 1" }, { .side = "null, 4" }
	};
	struct turn_share shares[2] = { 0 };
	struct load_stream stream = { 0 };
	int result;

	iscsi_leave_place(context);
	result = iscsi_want_place(context, &(struct iscsi_wish){ 0 }, error);
	for (uint32_t turn = 0; turn < context->options->turns && result == 0; turn++)
		for (uint32_t i = 0; i < SESSION_SIDES && result == 0; i++) {
			uint32_t side = (turn + i) % SESSION_SIDES;

			result = measure_sessions(context, side, &stream, &turns[side],
						  &shares[side % 2], error);
		}
	if (result < 0)
		return result;
	for (uint32_t side = 0; side < SESSION_SIDES; side++) {
		stream.sessions = side % 2 ? SESSIONS : 1;
		iscsi_report(context->output, "sessions", &stream, &turns[side]);
	}
	turn_share_report(context->output, "sessions", "1", &shares[0]);
	turn_share_report(context->output, "sessions", "4", &shares[1]);
	judge_sessions(context, turns);
	return 0;
}
