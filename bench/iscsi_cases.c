/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The cases that compare rates: Muninn beside null, rdwr and fio, in turns; and the matrix. */
#include <stddef.h>
#include <string.h>

#include "bench/fio.h"
#include "bench/iscsi_bench.h"

#define KIB UINT32_C(1024)
#define MIB (1024 * KIB)

enum { GOALS_MAX = 2 };

/* A page of 4 KiB and its spare area, in whole sectors. */
#define PAGE_ON_DRIVE 4608

static const char *const side_names[ISCSI_SIDES] = { "muninn", "null", "rdwr", "fio", "fio 4.5K" };

/* Muninn's rate beside a side's; beside the lesser one of two, if `or_else` is a side. */
struct goal {
	enum iscsi_side beside, or_else; /* SIDE_MUNINN: none */
	double least;
};

struct comparison {
	const char *name;
	enum load_operation operation;
	uint32_t block_bytes, shift_bytes, depth, sessions;
	bool random;
	struct iscsi_wish place;
	bool cold;      /* Muninn starts again before each turn, and nothing is in memory */
	bool sustained; /* for longer */
	bool fresh;     /* on new images, so many bytes, with a FLUSH at the end */
	uint32_t fio_depth;
	struct goal goals[GOALS_MAX];
	double most_reads;   /* of the drive for a page; 0: no goal */
	double most_written; /* bytes to the drive for a byte; 0: no goal */
};

static bool has_side(const struct comparison *comparison, enum iscsi_side side)
{
	for (unsigned i = 0; i < GOALS_MAX; i++)
		if (comparison->goals[i].beside == side || comparison->goals[i].or_else == side)
			return true;
	return side == SIDE_MUNINN;
}

static bool is_fio(enum iscsi_side side)
{
	return side == SIDE_FIO || side == SIDE_FIO_PAGE;
}

/* ---- a turn of a side ---- */

static int run_fio(struct iscsi_place *place, bool write, uint32_t block_bytes, uint32_t depth,
		   double *rate, struct error_text *error)
{
	char path[SERVER_PATH_BYTES + 16];
	const struct bench_fio fio = {
		.path = path,
		.bytes = place->muninn.span_bytes,
		.write = write,
		.block_bytes = block_bytes,
		.depth = depth,
		.seconds = place->options->seconds,
	};
	double bytes;

	snprintf(path, sizeof(path), "%s/fio.img", place->folder);
	return bench_run_fio(&fio, rate, &bytes, error);
}

/* Before the first turn, so that its file has its space on the drive. */
static int lay_out_fio(struct iscsi_place *place, struct error_text *error)
{
	double rate;

	return run_fio(place, true, MIB, 4, &rate, error);
}

static int measure_fio(struct iscsi_place *place, const struct comparison *comparison,
		       enum iscsi_side side, struct iscsi_turns *turns, struct error_text *error)
{
	struct iscsi_turn *turn = &turns->turns[turns->count];
	uint32_t bytes = side == SIDE_FIO ? comparison->block_bytes : PAGE_ON_DRIVE;
	int result;

	*turn = (struct iscsi_turn){ 0 };
	result = run_fio(place, comparison->operation == LOAD_WRITE, bytes, comparison->fio_depth,
			 &turn->rate, error);
	if (result == 0)
		turns->count++;
	return result;
}

static int measure_side(struct iscsi_place *place, const struct comparison *comparison,
			enum iscsi_side side, struct load_stream *stream, struct iscsi_turns *turns,
			struct error_text *error)
{
	const struct iscsi_options *options = place->options;
	struct load_unit *units[] = { &place->muninn, &place->null, &place->rdwr };
	bool muninn = side == SIDE_MUNINN;
	struct load load = {
		.streams = stream,
		.stream_count = 1,
		.seconds = comparison->sustained ? options->sustained : options->seconds,
		.warm_up = comparison->cold ? 0 : options->seconds / 5,
		.flush = comparison->fresh,
		.seed = options->seed + turns->count,
	};
	int result = 0;

	if (is_fio(side))
		return measure_fio(place, comparison, side, turns, error);
	if (muninn && comparison->cold)
		result = iscsi_place_chill(place, error);
	if (muninn && comparison->fresh)
		result = iscsi_place_renew(place, error);
	if (result < 0)
		return result;
	*stream = (struct load_stream){
		.unit = *units[side],
		.operation = comparison->operation,
		.block_bytes = comparison->block_bytes,
		.shift_bytes = comparison->shift_bytes,
		.depth = comparison->depth,
		.sessions = comparison->sessions,
		.random = comparison->random,
		.verify = side != SIDE_NULL,
		.bytes = comparison->fresh ? options->bytes : 0,
	};
	load.server = muninn ? place->ours.tgtd : place->stock.tgtd;
	result = iscsi_measure(place, &load, turns, error);
	load_free(&load);
	return result;
}

/* ---- goals ---- */

static void judge_rate(struct iscsi_context *context, const struct comparison *comparison,
		       const struct goal *goal, const struct iscsi_turns *turns)
{
	static const char *const whats[ISCSI_SIDES][ISCSI_SIDES] = {
		[SIDE_NULL] = { "rate : null" },
		[SIDE_RDWR] = { "rate : rdwr" },
		[SIDE_FIO] = { "rate : fio", "rate : the lesser of fio and null" },
	};
	struct bench_pair pair = { .name = comparison->name,
				   .reference_name = goal->or_else ? "the lesser"
								   : side_names[goal->beside],
				   .unit = "/s",
				   .goal = goal->least,
				   .runs = turns[SIDE_MUNINN].count };
	double ratio;

	for (uint32_t i = 0; i < pair.runs; i++) {
		double other = turns[goal->or_else].turns[i].rate;

		pair.measured[i] = turns[SIDE_MUNINN].turns[i].rate;
		pair.reference[i] = turns[goal->beside].turns[i].rate;
		if (goal->or_else != SIDE_MUNINN && other < pair.reference[i])
			pair.reference[i] = other;
	}
	ratio = bench_pair_report(context->output, &pair);
	if (goal->least > 0)
		bench_goals_add(context->goals,
				&(struct bench_goal){ .name = comparison->name,
						      .what = whats[goal->beside][goal->or_else],
						      .value = ratio,
						      .goal = goal->least });
}

/* Where the kernel counts for no drive, tgtd's own bytes stand in. */
static void judge_drive(struct iscsi_context *context, const struct comparison *comparison,
			const struct iscsi_turns *muninn)
{
	bool drive = muninn->drive_known;

	if (comparison->most_reads > 0)
		bench_goals_add(
			context->goals,
			&(struct bench_goal){
				.name = comparison->name,
				.what = drive ? "drive reads per page read (of everybody)"
					      : "pages read by tgtd per page (no drive's counter)",
				.value = iscsi_median(muninn, drive ? ISCSI_FIELD(read_requests)
								    : ISCSI_FIELD(process_reads)),
				.goal = comparison->most_reads,
				.at_most = true });
	if (comparison->most_written > 0)
		bench_goals_add(
			context->goals,
			&(struct bench_goal){
				.name = comparison->name,
				.what = drive ? "drive bytes per byte written (of everybody)"
					      : "tgtd's bytes per byte (no drive's counter)",
				.value = iscsi_median(muninn, drive ? ISCSI_FIELD(drive_writes)
								    : ISCSI_FIELD(process_writes)),
				.goal = comparison->most_written,
				.at_most = true });
}

/* ---- a comparison ---- */

static int compare(struct iscsi_context *context, const struct comparison *comparison,
		   struct error_text *error)
{
	struct iscsi_turns turns[ISCSI_SIDES] = { 0 };
	struct load_stream stream = { 0 };
	int result = has_side(comparison, SIDE_FIO) ? lay_out_fio(&context->place, error) : 0;

	for (uint32_t turn = 0; turn < context->options->turns; turn++)
		for (uint32_t i = 0; i < ISCSI_SIDES && result == 0; i++) {
			/* Another one is first in each turn. */
			enum iscsi_side side = (turn + i) % ISCSI_SIDES;

			turns[side].side = side_names[side];
			turns[side].rates_only = is_fio(side);
			if (has_side(comparison, side))
				result = measure_side(&context->place, comparison, side, &stream,
						      &turns[side], error);
		}
	if (result < 0)
		return result;
	for (uint32_t side = 0; side < ISCSI_SIDES; side++)
		if (turns[side].count > 0)
			iscsi_report(context->output, comparison->name, &stream, &turns[side]);
	for (unsigned i = 0; i < GOALS_MAX; i++)
		if (comparison->goals[i].beside != SIDE_MUNINN)
			judge_rate(context, comparison, &comparison->goals[i], turns);
	judge_drive(context, comparison, &turns[SIDE_MUNINN]);
	return 0;
}

static int run(struct iscsi_context *context, const struct comparison *comparison,
	       struct error_text *error)
{
	int result;

	if (!comparison->fresh) {
		result = iscsi_want_place(context, &comparison->place, error);
		return result == 0 ? compare(context, comparison, error) : result;
	}
	iscsi_leave_place(context);
	result = iscsi_place_open(&context->place, context->options, &comparison->place,
				  context->options->bytes, error);
	if (result < 0)
		return result;
	context->place_open = true;
	result = compare(context, comparison, error);
	iscsi_leave_place(context);
	return result;
}

/* ---- the table of issue and manual ---- */

#define COMPARISON(function, ...)                                                           \
	static int function(struct iscsi_context *context, struct error_text *error)        \
	{                                                                                   \
		static const struct comparison comparison = { .sessions = 1, __VA_ARGS__ }; \
                                                                                            \
		return run(context, &comparison, error);                                    \
	}

COMPARISON(read_4k, .name = "read-4k", .operation = LOAD_READ, .block_bytes = 4 * KIB, .depth = 32,
	   .random = true, .goals = { { SIDE_NULL, 0, 0.9 } })
COMPARISON(write_4k, .name = "write-4k", .operation = LOAD_WRITE, .block_bytes = 4 * KIB,
	   .depth = 32, .random = true, .goals = { { SIDE_NULL, 0, 0.7 } })
COMPARISON(read_1m, .name = "read-1m", .operation = LOAD_READ, .block_bytes = MIB, .depth = 32,
	   .random = true, .goals = { { SIDE_NULL, 0, 0.85 } })
COMPARISON(read_4k_depth_1, .name = "read-4k-depth-1", .operation = LOAD_READ,
	   .block_bytes = 4 * KIB, .depth = 1, .random = true, .goals = { { SIDE_NULL, 0, 0.9 } })
COMPARISON(write_4k_depth_1, .name = "write-4k-depth-1", .operation = LOAD_WRITE,
	   .block_bytes = 4 * KIB, .depth = 1, .random = true, .goals = { { SIDE_NULL, 0, 0.9 } })
COMPARISON(write_4k_drive, .name = "write-4k-drive", .operation = LOAD_WRITE,
	   .block_bytes = 4 * KIB, .depth = 32, .random = true, .place.on_drive = true,
	   .sustained = true, .goals = { { SIDE_NULL, 0, 0.6 }, { SIDE_RDWR, 0, 1.3 } })
COMPARISON(read_4k_cold, .name = "read-4k-cold", .operation = LOAD_READ, .block_bytes = 4 * KIB,
	   .depth = 32, .random = true, .place = { .on_drive = true, .backend = "file" },
	   .cold = true, .fio_depth = 32,
	   .goals = { { SIDE_FIO, 0, 0.85 }, { SIDE_FIO_PAGE, 0, 0 } }, .most_reads = 1.05)
COMPARISON(read_1m_cold, .name = "read-1m-cold", .operation = LOAD_READ, .block_bytes = MIB,
	   .depth = 32, .random = true, .place = { .on_drive = true, .backend = "file" },
	   .cold = true, .fio_depth = 4, .goals = { { SIDE_FIO, 0, 0.85 } })
COMPARISON(write_1m_drive, .name = "write-1m-drive", .operation = LOAD_WRITE, .block_bytes = MIB,
	   .depth = 32, .place.on_drive = true, .fresh = true, .fio_depth = 4,
	   .goals = { { SIDE_FIO, SIDE_NULL, 0.7 } }, .most_written = 2.1)

/* ---- disks ---- */

#define DISK(function, ...) COMPARISON(function, .random = true, .place.disks = true, __VA_ARGS__)

DISK(disk_read_4k, .name = "disk-read-4k", .operation = LOAD_READ, .block_bytes = 4 * KIB,
     .depth = 32, .goals = { { SIDE_NULL, 0, 0.8 }, { SIDE_RDWR, 0, 0 } })
DISK(disk_write_4k, .name = "disk-write-4k", .operation = LOAD_WRITE, .block_bytes = 4 * KIB,
     .depth = 32, .goals = { { SIDE_NULL, 0, 0.7 }, { SIDE_RDWR, 0, 0 } })
DISK(disk_read_4k_depth_1, .name = "disk-read-4k-depth-1", .operation = LOAD_READ,
     .block_bytes = 4 * KIB, .depth = 1, .goals = { { SIDE_NULL, 0, 0.9 }, { SIDE_RDWR, 0, 0 } })
DISK(disk_write_4k_depth_1, .name = "disk-write-4k-depth-1", .operation = LOAD_WRITE,
     .block_bytes = 4 * KIB, .depth = 1, .goals = { { SIDE_NULL, 0, 0.9 }, { SIDE_RDWR, 0, 0 } })
DISK(disk_read_128k, .name = "disk-read-128k", .operation = LOAD_READ, .block_bytes = 128 * KIB,
     .depth = 32, .goals = { { SIDE_NULL, 0, 0.8 }, { SIDE_RDWR, 0, 0 } })
DISK(disk_write_128k, .name = "disk-write-128k", .operation = LOAD_WRITE, .block_bytes = 128 * KIB,
     .depth = 32, .goals = { { SIDE_NULL, 0, 0.8 }, { SIDE_RDWR, 0, 0 } })
DISK(disk_write_unaligned, .name = "disk-write-unaligned", .operation = LOAD_WRITE,
     .block_bytes = 4 * KIB, .shift_bytes = 512, .depth = 32,
     .goals = { { SIDE_NULL, 0, 0 }, { SIDE_RDWR, 0, 0 } })
DISK(disk_write_512, .name = "disk-write-512", .operation = LOAD_WRITE, .block_bytes = 512,
     .depth = 32, .goals = { { SIDE_NULL, 0, 0 }, { SIDE_RDWR, 0, 0 } })
COMPARISON(disk_read_4k_drive, .name = "disk-read-4k-drive", .operation = LOAD_READ,
	   .block_bytes = 4 * KIB, .depth = 32, .random = true,
	   .place = { .on_drive = true, .disks = true },
	   .goals = { { SIDE_NULL, 0, 0 }, { SIDE_RDWR, 0, 1.3 } })
COMPARISON(disk_write_4k_drive, .name = "disk-write-4k-drive", .operation = LOAD_WRITE,
	   .block_bytes = 4 * KIB, .depth = 32, .random = true, .sustained = true,
	   .place = { .on_drive = true, .disks = true },
	   .goals = { { SIDE_NULL, 0, 0 }, { SIDE_RDWR, 0, 1.3 } })

/* Everything with everything, without goals. */
static int matrix(struct iscsi_context *context, struct error_text *error)
{
	static const uint32_t blocks[] = { 4 * KIB, 64 * KIB, MIB }, depths[] = { 1, 32 },
			      sessions[] = { 1, 4 };
	static const char *const block_names[] = { "4K", "64K", "1M" };
	char name[64];
	const struct iscsi_wish place = { .on_drive = false };
	int result = iscsi_want_place(context, &place, error);

	for (unsigned i = 0; i < 48 && result == 0; i++) {
		unsigned block = i / 8 % 3;
		const struct comparison comparison = {
			.name = name,
			.operation = i / 24 ? LOAD_WRITE : LOAD_READ,
			.block_bytes = blocks[block],
			.depth = depths[i / 4 % 2],
			.sessions = sessions[i / 2 % 2],
			.random = i % 2,
			.goals = { { SIDE_NULL, 0, 0 }, { SIDE_RDWR, 0, 0 } },
		};

		snprintf(name, sizeof(name), "%s-%s-%s-%ux%u", i / 24 ? "write" : "read",
			 block_names[block], i % 2 ? "random" : "sequential", comparison.sessions,
			 comparison.depth);
		result = compare(context, &comparison, error);
	}
	return result;
}

const struct iscsi_case iscsi_cases[] = {
	{ "read-4k", "random READ of 4 KiB, depth 32, data in memory", read_4k },
	{ "write-4k", "random WRITE of 4 KiB, depth 32, image in memory", write_4k },
	{ "read-1m", "random READ of 1 MiB, depth 32, data in memory", read_1m },
	{ "read-4k-depth-1", "the same as read-4k, one at a time", read_4k_depth_1 },
	{ "write-4k-depth-1", "the same as write-4k, one at a time", write_4k_depth_1 },
	{ "sessions", "4 KiB, half READ, half WRITE: 4 sessions beside 1", iscsi_case_sessions },
	{ "matrix", "READ and WRITE, 3 sizes, 2 depths, random or not, 1 and 4 sessions", matrix },
	{ "write-4k-drive", "write-4k for long, image on the drive", write_4k_drive },
	{ "tail", "latencies of 4 KiB WRITEs at 80 % of the highest rate", iscsi_case_tail },
	{ "flush", "a reader and FLUSH of an idle unit beside 32 writers", iscsi_case_flush },
	{ "read-4k-cold", "random READ of 4 KiB, `file`, nothing in memory", read_4k_cold },
	{ "read-1m-cold", "random READ of 1 MiB, `file`, nothing in memory", read_1m_cold },
	{ "write-1m-drive", "WRITE of 1 MiB on a new image on the drive, and FLUSH",
	  write_1m_drive },
	{ "disk-read-4k", "a disk: random READ of 4 KiB, depth 32, in memory", disk_read_4k },
	{ "disk-read-4k-depth-1", "a disk: the same, one at a time", disk_read_4k_depth_1 },
	{ "disk-read-128k", "a disk: the same, 128 KiB, depth 32", disk_read_128k },
	{ "disk-write-4k", "a disk: random WRITE of 4 KiB, depth 32, in memory", disk_write_4k },
	{ "disk-write-4k-depth-1", "a disk: the same, one at a time", disk_write_4k_depth_1 },
	{ "disk-write-128k", "a disk: the same, 128 KiB, depth 32", disk_write_128k },
	{ "disk-write-unaligned", "a disk: disk-write-4k, 512 bytes behind a page's beginning",
	  disk_write_unaligned },
	{ "disk-write-512", "a disk: random WRITE of 512 bytes, depth 32", disk_write_512 },
	{ "disk-read-4k-drive", "disk-read-4k, image on the drive", disk_read_4k_drive },
	{ "disk-write-4k-drive", "disk-write-4k for long, image on the drive",
	  disk_write_4k_drive },
};
const unsigned iscsi_case_count = sizeof(iscsi_cases) / sizeof(iscsi_cases[0]);
