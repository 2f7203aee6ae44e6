/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* muninn-sim: the command line of the simulator. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/engine/index_under_test.h"
#include "tests/sim/sim.h"

enum { TEXT_BYTES = 8192, KEPT_MAX = 1 << 20 };

struct settings {
	struct sim_plan plan;
	uint64_t seeds, seconds;
	bool every_profile, minimise, keep_going;
	unsigned tries;
	uint64_t *kept;
};

static const char usage[] =
	"usage: muninn-sim [OPTION...]\n"
	"Runs the target, the engine and the flash in virtual time, with clients and all that can\n"
	"go wrong, and compares all answers with a model of full history.\n"
	"\n"
	"  --profile NAME  what is simulated: see below; `all`: one after the other\n"
	"                  (the default)\n"
	"  --seed N        the first seed (default 1)\n"
	"  --seeds N       how many of them (default 1), or\n"
	"  --seconds N     as many as begin in this time\n"
	"  --ops N         operations of each seed; default: what the profile says\n"
	"  --keep LIST     only these steps, as 0-17,23,40: what --minimise prints\n"
	"  --replay        says what each step does\n"
	"  --minimise      of a seed that fails, looks for a short list of steps that does\n"
	"  --tries N       runs for that (default 400)\n"
	"  --keep-going    goes on with the next seed behind one that fails\n"
	"\n"
	"An operation is a command of a client, or a call of the engine, that is compared with\n"
	"the model. SIGINT and SIGTERM end it behind the seed in work. Exit code: 0 no violation,\n"
	"1 some, 2 a wrong option.\n"
	"\n"
	"profiles:\n";

static void print_usage(void)
{
	fputs(usage, stdout);
	for (const struct sim_profile *profile = sim_profiles; profile->name; profile++)
		printf("  %-10s %s\n", profile->name, profile->what);
}

/* ---- lists of steps ---- */

static void fail(const char *text)
{
	fprintf(stderr, "muninn-sim: %s; see --help\n", text);
	exit(2);
}

static void parse_kept(struct settings *settings, const char *text)
{
	settings->kept = malloc(KEPT_MAX * sizeof(*settings->kept));
	if (!settings->kept)
		abort();
	settings->plan.kept = settings->kept;
	while (*text) {
		char *end;
		uint64_t first = strtoull(text, &end, 10), last = first;

		if (end == text)
			fail("--keep takes numbers, and ranges like 3-9, with commas between");
		if (*end == '-')
			last = strtoull(end + 1, &end, 10);
		for (; first <= last; first++) {
			if (settings->plan.kept_count == KEPT_MAX)
				fail("too many steps");
			settings->kept[settings->plan.kept_count++] = first;
		}
		text = *end == ',' ? end + 1 : end;
	}
}

static void print_kept(const uint64_t *kept, size_t count)
{
	for (size_t n = 0; n < count;) {
		size_t end = n + 1;

		while (end < count && kept[end] == kept[end - 1] + 1)
			end++;
		printf("%s%" PRIu64, n ? "," : "", kept[n]);
		if (end > n + 1)
			printf("-%" PRIu64, kept[end - 1]);
		n = end;
	}
}

static void print_command(const struct sim_plan *plan, const uint64_t *kept, size_t count)
{
	printf("%sbuild/bin/muninn-sim --profile %s --seed %" PRIu64 " --ops %" PRIu64,
	       index_setting(), plan->profile->name, plan->seed, plan->operations);
	if (kept) {
		fputs(" --keep ", stdout);
		print_kept(kept, count);
	}
	puts(" --replay");
}

/* ---- a seed ---- */

static void report_violation(const struct sim_plan *plan, const struct sim_report *report,
			     const char *text)
{
	printf("VIOLATION in profile %s, seed %" PRIu64 ", step %" PRIu64 ", behind %" PRIu64
	       " operations\n  while: %s\n%s",
	       plan->profile->name, plan->seed, report->step, report->counts.operations,
	       report->what, text);
	fputs("replay: ", stdout);
	print_command(plan, plan->kept, plan->kept_count);
}

static bool run_fails(void *context, const uint64_t *kept, size_t count)
{
	static char text[TEXT_BYTES];
	struct sim_plan plan = *(const struct sim_plan *)context;
	struct sim_report report;

	plan.kept = kept;
	plan.kept_count = count;
	plan.verbose = false;
	return !sim_run(&plan, &report, text, sizeof(text));
}

static void minimise(const struct settings *settings, const struct sim_plan *plan, uint64_t last)
{
	size_t count = plan->kept ? plan->kept_count : last + 1;
	uint64_t *kept = malloc(count * sizeof(*kept));
	struct sim_plan context = *plan;

	if (!kept)
		abort();
	for (size_t n = 0; n < count; n++)
		kept[n] = plan->kept ? plan->kept[n] : n;
	sim_minimise(kept, &count, settings->tries, run_fails, &context);
	printf("%zu steps are left\nreplay: ", count);
	print_command(plan, kept, count);
	free(kept);
}

static void add(struct sim_counts *sum, const struct sim_counts *counts)
{
	uint64_t all[SIM_COUNTS], more[SIM_COUNTS];

	memcpy(all, sum, sizeof(all));
	memcpy(more, counts, sizeof(more));
	for (size_t n = 0; n < SIM_COUNTS; n++)
		all[n] += more[n];
	memcpy(sum, all, sizeof(all));
}

/* Whether it came to its end. */
static bool run_seed(const struct settings *settings, const struct sim_plan *plan,
		     struct sim_counts *sum)
{
	static char text[TEXT_BYTES];
	struct sim_report report;
	bool ended = sim_run(plan, &report, text, sizeof(text));

	add(sum, &report.counts);
	if (ended)
		return true;
	report_violation(plan, &report, text);
	if (settings->minimise)
		minimise(settings, plan, report.step);
	return false;
}

/* ---- the sum ---- */

static void print_sum(const struct sim_counts *sum, uint64_t seeds, uint64_t violations,
		      double seconds)
{
#define N(member) sum->member
	printf("%" PRIu64 " operations over %" PRIu64 " seeds, %" PRIu64 " answers compared, %.0f s"
	       " (%.0f operations/s)\n",
	       N(operations), seeds, N(compared), seconds, (double)N(operations) / seconds);
	printf("commits %" PRIu64 ", without room %" PRIu64 ", restarts %" PRIu64
	       ", formats %" PRIu64 ", rollbacks %" PRIu64 ", jumps of the clock %" PRIu64
	       ", segments sealed beside others %" PRIu64 ", merged %" PRIu64 "\n",
	       N(commits), N(without_room), N(restarts), N(formats), N(rollbacks), N(jumps),
	       N(sealed), N(merged));
	printf("clients: commands %" PRIu64 ", held back %" PRIu64 ", aborted %" PRIu64
	       ", task functions %" PRIu64 ", unit attentions %" PRIu64
	       ", let into closed partitions %" PRIu64 ", kept out %" PRIu64 "\n",
	       N(commands), N(held_back), N(aborted), N(task_functions), N(attentions), N(let_in),
	       N(kept_out));
	printf("power cuts: %" PRIu64
	       ", each at another operation of its seed: in programs %" PRIu64 ", erases %" PRIu64
	       ", syncs %" PRIu64 ", reads %" PRIu64 ", between stores %" PRIu64
	       "; NVRAM kept %" PRIu64 ", as flushed %" PRIu64 ", mixed %" PRIu64 "\n",
	       N(cuts), N(cuts_in_program), N(cuts_in_erase), N(cuts_in_sync), N(cuts_in_read),
	       N(cuts_in_point), N(cuts_kept), N(cuts_flushed), N(cuts_mixed));
	printf("faults: wrong bits %" PRIu64 ", failed programs %" PRIu64 ", failed erases %" PRIu64
	       ", times with unreadable pages %" PRIu64 " (%" PRIu64 " answers of damage)"
	       ", other NVRAM %" PRIu64 " refused and %" PRIu64 " whole (%" PRIu64
	       " of an older time), %" PRIu64 " unnoticed, times with a full host %" PRIu64
	       " (%" PRIu64 " refusals)\n",
	       N(bits_corrected), N(program_failures), N(erase_failures), N(unreadable),
	       N(medium_errors), N(nvram_refused), N(nvram_whole), N(nvram_older),
	       N(nvram_unnoticed), N(host_full), N(host_refusals));
	printf("opened without NVRAM %" PRIu64 ", all open %" PRIu64
	       "; objects as they were %" PRIu64 ", named %" PRIu64 "\n",
	       N(recovered), N(recovered_open), N(recovered_objects), N(recovered_named));
	printf("violations: %" PRIu64 "\n", violations);
#undef N
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static volatile sig_atomic_t stopped;

/* The seed in work comes to its end, and the sum is printed. */
static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static bool has_time(const struct settings *settings, uint64_t done, double seconds)
{
	if (stopped)
		return false;
	return settings->seconds ? seconds < (double)settings->seconds : done < settings->seeds;
}

static const struct sim_profile *profile_of(const struct settings *settings, uint64_t done)
{
	size_t count = 0;

	if (!settings->every_profile)
		return settings->plan.profile;
	while (sim_profiles[count].name)
		count++;
	return &sim_profiles[done % count];
}

static int run_all(const struct settings *settings)
{
	struct sim_counts sum = { 0 };
	uint64_t done = 0, violations = 0;
	double start = now();

	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	for (; has_time(settings, done, now() - start); done++) {
		struct sim_plan plan = settings->plan;

		plan.seed += done;
		plan.profile = profile_of(settings, done);
		if (!plan.operations)
			plan.operations = plan.profile->operations;
		violations += !run_seed(settings, &plan, &sum);
		if (violations && !settings->keep_going)
			break;
	}
	print_sum(&sum, done, violations, now() - start);
	return violations ? 1 : 0;
}

/* ---- options ---- */

enum { PROFILE = 256, SEED, SEEDS, SECONDS, OPS, KEEP, REPLAY, MINIMISE, TRIES, KEEP_GOING, HELP };

static const struct option options[] = {
	{ "profile", required_argument, NULL, PROFILE },
	{ "seed", required_argument, NULL, SEED },
	{ "seeds", required_argument, NULL, SEEDS },
	{ "seconds", required_argument, NULL, SECONDS },
	{ "ops", required_argument, NULL, OPS },
	{ "keep", required_argument, NULL, KEEP },
	{ "replay", no_argument, NULL, REPLAY },
	{ "minimise", no_argument, NULL, MINIMISE },
	{ "tries", required_argument, NULL, TRIES },
	{ "keep-going", no_argument, NULL, KEEP_GOING },
	{ "help", no_argument, NULL, HELP },
	{ 0 },
};

static uint64_t number_of(const char *text)
{
	char *end;
	uint64_t number = strtoull(text, &end, 0);

	if (end == text || *end)
		fail("a number is wanted");
	return number;
}

static void choose_profile(struct settings *settings, const char *name)
{
	settings->every_profile = strcmp(name, "all") == 0;
	settings->plan.profile = sim_profile_find(name);
	if (!settings->plan.profile && !settings->every_profile)
		fail("there is no such profile");
}

static void take_option(struct settings *settings, int option, const char *value)
{
	switch (option) {
	case PROFILE:
		choose_profile(settings, value);
		break;
	case SEED:
		settings->plan.seed = number_of(value);
		break;
	case SEEDS:
		settings->seeds = number_of(value);
		break;
	case SECONDS:
		settings->seconds = number_of(value);
		break;
	case OPS:
		settings->plan.operations = number_of(value);
		break;
	case KEEP:
		parse_kept(settings, value);
		break;
	case REPLAY:
		settings->plan.verbose = true;
		break;
	case MINIMISE:
		settings->minimise = true;
		break;
	case TRIES:
		settings->tries = (unsigned)number_of(value);
		break;
	case KEEP_GOING:
		settings->keep_going = true;
		break;
	case HELP:
		print_usage();
		exit(0);
	default:
		fail("a wrong option");
	}
}

int sim_main(int argc, char **argv)
{
	struct settings settings = {
		.plan.seed = 1, .seeds = 1, .every_profile = true, .tries = 400
	};
	int option, result;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		take_option(&settings, option, optarg);
	if (optind < argc)
		fail("an argument too many");
	result = run_all(&settings);
	free(settings.kept);
	return result;
}
