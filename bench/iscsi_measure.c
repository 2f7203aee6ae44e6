/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* One turn of one side: the load with all counters around it; medians of turns. */
#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "bench/drive.h"
#include "bench/iscsi_bench.h"

static double fairness_of(const struct load_stream *stream)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint32_t i = 0; i < stream->sessions; i++) {
		uint64_t count = stream->session_commands[i];

		least = count < least ? count : least;
		most = count > most ? count : most;
	}
	return most ? (double)least / (double)most : 0;
}

static double portion_us(const struct load_stream *stream, double portion)
{
	return latencies_percentile(stream->latencies, portion) / 1e3;
}

int iscsi_measure(struct iscsi_place *place, struct load *load, struct iscsi_turns *turns,
		  struct error_text *error)
{
	const struct load_stream *stream = &load->streams[0];
	struct iscsi_turn *turn = &turns->turns[turns->count];
	struct bench_drive before = { 0 }, after = { 0 }, drive;
	struct bench_process_io io_before = { 0 }, io_after = { 0 };
	double commands, bytes, all = 0;
	int result;

	turns->drive_known = bench_drive_count(place->folder, &before) == 0;
	bench_process_io(load->server, &io_before);
	result = load_run(load, error);
	if (result < 0)
		return result;
	bench_drive_count(place->folder, &after);
	bench_process_io(load->server, &io_after);
	drive = bench_drive_between(&before, &after);
	for (uint32_t i = 0; i < load->stream_count; i++)
		all += (double)load->streams[i].commands;
	all = all > 0 ? all : 1;
	commands = (double)(stream->commands ? stream->commands : 1);
	bytes = commands * (stream->block_bytes ? stream->block_bytes : 1);
	*turn = (struct iscsi_turn){
		.rate = (double)stream->commands / load->elapsed,
		.p50_us = portion_us(stream, 0.5),
		.p99_us = portion_us(stream, 0.99),
		.p999_us = portion_us(stream, 0.999),
		.max_us = (double)stream->latencies->max / 1e3,
		.server_us = load->server_seconds * 1e6 / all,
		.client_us = load->client_seconds * 1e6 / all,
		.fairness = fairness_of(stream),
		.drive_reads = (double)drive.read_bytes / bytes,
		.drive_writes = (double)drive.written_bytes / bytes,
		.read_requests = (double)drive.reads / commands,
		.process_reads = (double)(io_after.read_bytes - io_before.read_bytes) / bytes,
		.process_writes = (double)(io_after.write_bytes - io_before.write_bytes) / bytes,
	};
	turns->count++;
	return 0;
}

double iscsi_median(const struct iscsi_turns *turns, size_t field)
{
	double values[BENCH_RUNS_MAX];

	for (uint32_t i = 0; i < turns->count; i++)
		memcpy(&values[i], (const char *)&turns->turns[i] + field, sizeof(values[i]));
	return turns->count ? bench_median(values, turns->count) : 0;
}

/* ---- for people and programs ---- */

static const char *operation_name(enum load_operation operation)
{
	static const char *const names[] = { "READ", "WRITE", "mixed", "FLUSH" };

	return names[operation];
}

#define MEDIAN(field) iscsi_median(turns, ISCSI_FIELD(field))

static json_t *costs(const struct load_stream *stream, const struct iscsi_turns *turns)
{
	json_t *object = json_pack(
		"{s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "depth", (int)stream->depth,
		"sessions", (int)stream->sessions, "paced", stream->rate, "p50_us", MEDIAN(p50_us),
		"p99_us", MEDIAN(p99_us), "p999_us", MEDIAN(p999_us), "max_us", MEDIAN(max_us),
		"server_us_per_command", MEDIAN(server_us), "client_us_per_command",
		MEDIAN(client_us), "least_to_most_session", MEDIAN(fairness));

	json_object_update_new(
		object, json_pack("{s:f, s:f}", "tgtd_read_bytes_per_byte", MEDIAN(process_reads),
				  "tgtd_written_bytes_per_byte", MEDIAN(process_writes)));
	if (turns->drive_known)
		json_object_update_new(
			object, json_pack("{s:f, s:f, s:f}", "drive_read_bytes_per_byte",
					  MEDIAN(drive_reads), "drive_written_bytes_per_byte",
					  MEDIAN(drive_writes), "drive_reads_per_command",
					  MEDIAN(read_requests)));
	return object;
}

static void print(const struct bench_output *output, const char *name,
		  const struct load_stream *stream, const struct iscsi_turns *turns)
{
	fprintf(output->text, "%-26s %-7s %9.0f/s %8.1f MB/s", name, turns->side, MEDIAN(rate),
		MEDIAN(rate) * stream->block_bytes / 1e6);
	if (!turns->rates_only)
		fprintf(output->text,
			"  p50 %8.1f  p99 %8.1f  p99.9 %8.1f  max %8.0f us"
			"  tgtd %6.1f  client %5.1f us",
			MEDIAN(p50_us), MEDIAN(p99_us), MEDIAN(p999_us), MEDIAN(max_us),
			MEDIAN(server_us), MEDIAN(client_us));
	fputc('\n', output->text);
}

void iscsi_report(const struct bench_output *output, const char *name,
		  const struct load_stream *stream, const struct iscsi_turns *turns)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:i, s:b, s:i, s:f}", "case", name, "side",
				   turns->side, "operation", operation_name(stream->operation),
				   "block", (int)stream->block_bytes, "random", (int)stream->random,
				   "turns", (int)turns->count, "commands_per_s", MEDIAN(rate));

	print(output, name, stream, turns);
	if (object && !turns->rates_only)
		json_object_update_new(object, costs(stream, turns));
	bench_json_line(output, object);
}
