/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads a unit's counters of the turn before and after a load. */
#include "bench/turn_share.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bench/process.h"

enum { PATH_BYTES = 4096 };

static void find_muninnctl(const char *muninnd, char *path)
{
	char *name;

	snprintf(path, PATH_BYTES - sizeof("muninnctl"), "%s", muninnd);
	name = strrchr(path, '/');
	strcpy(name ? name + 1 : path, "muninnctl");
}

static void take_line(struct turn_share *share, const char *line)
{
	char name[64];
	uint64_t value;

	if (sscanf(line, "%63s %" SCNu64, name, &value) != 2)
		return;
	if (strcmp(name, "turns") == 0)
		share->turns = value;
	else if (strcmp(name, "turns_held_us") == 0)
		share->held_us = value;
	else if (strcmp(name, "turns_waited") == 0)
		share->waited = value;
	else if (strcmp(name, "turns_waited_us") == 0)
		share->waited_us = value;
	else if (strcmp(name, "turn_waited_most_us") == 0)
		share->most_us = value;
}

int turn_share_read(const char *muninnd, const char *url, struct turn_share *share,
		    struct error_text *error)
{
	char path[PATH_BYTES], address[512], line[128];
	char *arguments[] = { path, "statistics", address, NULL };
	struct bench_process process = { 0 };
	int result;

	*share = (struct turn_share){ .seconds = bench_seconds() };
	find_muninnctl(muninnd, path);
	snprintf(address, sizeof(address), "%s", url);
	result = bench_process_start(&process, arguments, &(struct bench_process_options){ 0 },
				     error);
	if (result < 0)
		return result;
	while (fgets(line, sizeof(line), process.output))
		take_line(share, line);
	if (bench_process_wait(&process) != 0 || !share->turns)
		return error_set(error, -EIO, "%s does not tell the statistics of %s", path, url);
	return 0;
}

void turn_share_add(struct turn_share *sum, const struct turn_share *before,
		    const struct turn_share *after)
{
	sum->turns += after->turns - before->turns;
	sum->held_us += after->held_us - before->held_us;
	sum->waited += after->waited - before->waited;
	sum->waited_us += after->waited_us - before->waited_us;
	sum->seconds += after->seconds - before->seconds;
	if (after->most_us > sum->most_us)
		sum->most_us = after->most_us;
}

void turn_share_report(const struct bench_output *output, const char *name, const char *side,
		       const struct turn_share *sum)
{
	double turns = sum->turns ? (double)sum->turns : 1;
	double held = (double)sum->held_us / 1e6 / sum->seconds;
	double mean_us = sum->waited ? (double)sum->waited_us / (double)sum->waited : 0;

	fprintf(output->text,
		"%-10s %s: the turn is held alone %.1f %% of the time, %.2f us each; %.2f %% of "
		"%" PRIu64 " wait, %.1f us on average, %" PRIu64 " us since the start at most\n",
		name, side, held * 100, (double)sum->held_us / turns,
		(double)sum->waited / turns * 100, sum->turns, mean_us, sum->most_us);
	bench_json_line(output,
			json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:I}", "turn_of", name,
				  "side", side, "turns", (json_int_t)sum->turns, "held_share", held,
				  "held_us", (double)sum->held_us / turns, "waiting_share",
				  (double)sum->waited / turns, "waited_us", mean_us,
				  "waited_most_us", (json_int_t)sum->most_us));
}
