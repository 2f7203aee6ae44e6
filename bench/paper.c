/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* `muninn-bench paper`: runs the experiments side by side and compares with the paper's numbers. */
#include "bench/paper.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS_MAX = 16, JOBS_DEFAULT = 2 };

const char bench_paper_help[] =
	"muninn-bench paper [OPTION...]\n"
	"Repeats the experiments of the paper (SYSTOR'14, section 6): its numbers beside ours, and "
	"what\n"
	"equations predict. Some are run with the ribbon index, too, which the paper does not "
	"have.\n"
	"\n"
	"  --quick                2 million pairs and less, in place of 50 million\n"
	"  --output FILE          where the results go as JSON; default muninn-paper.json\n"
	"  --only TEXT            only sections whose name holds the text: \"Figure 7\", 6.4, ...\n"
	"  --jobs 2               experiments side by side\n"
	"  --processor            look-ups of 6.3 once more, with their processor time added: "
	"needs a\n"
	"                         machine with nothing else on it, and --jobs 1; not repeatable\n"
	"  --seed 1               of everything random\n"
	"  --commit TEXT          noted beside the results\n";

/* ---- options ---- */

static int parse_number(const char *name, const char *text, uint64_t least, uint64_t most,
			uint64_t *value, struct error_text *error)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (end == text || *end || text[0] == '-' || errno || *value < least || *value > most)
		return error_set(error, -EINVAL, "--%s %s: must be a number from %llu to %llu",
				 name, text, (unsigned long long)least, (unsigned long long)most);
	return 0;
}

static int parse_option(struct paper_options *options, int id, const char *text,
			struct error_text *error)
{
	uint64_t jobs = 0;
	int result = 0;

	switch (id) {
	case 'q':
		options->scale = &experiment_scale_quick;
		return 0;
	case 'o':
		options->output = text;
		return 0;
	case 'p':
		options->adds_processor = true;
		return 0;
	case 'n':
		options->only = text;
		return 0;
	case 'c':
		options->commit = text;
		return 0;
	case 's':
		return parse_number("seed", text, 0, UINT64_MAX, &options->seed, error);
	case 'j':
		result = parse_number("jobs", text, 1, JOBS_MAX, &jobs, error);
		options->jobs = (uint32_t)jobs;
		return result;
	default:
		return 1;
	}
}

int paper_options_parse(struct paper_options *options, int argc, char **argv,
			struct error_text *error)
{
	static const struct option long_options[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "output", required_argument, NULL, 'o' },
		{ "only", required_argument, NULL, 'n' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "processor", no_argument, NULL, 'p' },
		{ "seed", required_argument, NULL, 's' },
		{ "commit", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int id, result;

	*options = (struct paper_options){ .scale = &experiment_scale_full,
					   .output = "muninn-paper.json",
					   .seed = 1,
					   .jobs = JOBS_DEFAULT };
	optind = 0;
	while ((id = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (id == ':')
			return error_set(error, -EINVAL, "%s: needs a value", argv[optind - 1]);
		if (id == '?')
			return error_set(error, -EINVAL, "%s: no such option", argv[optind - 1]);
		result = parse_option(options, id, optarg, error);
		if (result)
			return result;
	}
	if (optind < argc)
		return error_set(error, -EINVAL, "%s: not an option", argv[optind]);
	return 0;
}

/* ---- running ---- */

struct crew {
	struct experiment_list *list;
	uint32_t order[EXPERIMENTS_MAX]; /* the longest first */
	FILE *progress;
	_Atomic uint32_t next;
	_Atomic bool stop;
};

static void *work(void *context)
{
	struct crew *crew = context;

	while (!atomic_load(&crew->stop)) {
		uint32_t turn = atomic_fetch_add(&crew->next, 1);
		struct experiment *experiment;

		if (turn >= crew->list->count)
			break;
		experiment = &crew->list->experiments[crew->order[turn]];
		experiment_run(experiment);
		if (experiment->result)
			atomic_store(&crew->stop, true);
		else
			fprintf(crew->progress, "%-8s %-6s %-36s %6.1f s\n", experiment->section,
				index_kind_name(experiment->options.index), experiment->name,
				experiment->seconds);
	}
	return NULL;
}

static void sort_by_length(struct crew *crew)
{
	const struct experiment_list *list = crew->list;

	for (uint32_t n = 0; n < list->count; n++) {
		uint32_t at = n;

		for (; at > 0; at--) {
			uint64_t pairs = list->experiments[n].options.pairs;

			if (list->experiments[crew->order[at - 1]].options.pairs >= pairs)
				break;
			crew->order[at] = crew->order[at - 1];
		}
		crew->order[at] = n;
	}
}

static int run_all(struct experiment_list *list, uint32_t jobs, FILE *progress,
		   struct error_text *error)
{
	struct crew crew = { .list = list, .progress = progress };
	pthread_t ids[JOBS_MAX];
	uint32_t started = 0;
	int result = 0;

	sort_by_length(&crew);
	for (; started < jobs; started++) {
		result = -pthread_create(&ids[started], NULL, work, &crew);
		if (result) {
			atomic_store(&crew.stop, true);
			error_set(error, result, "job %u can't be started (error %d)", started,
				  -result);
			break;
		}
	}
	for (uint32_t i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
	for (uint32_t i = 0; !result && i < list->count; i++) {
		const struct experiment *experiment = &list->experiments[i];

		if (experiment->result)
			result = error_set(error, experiment->result, "%s, %s: %.*s",
					   experiment->section, experiment->name, 400,
					   experiment->error.text);
	}
	return result;
}

/* ---- writing ---- */

static json_t *parameters_json(const struct experiment *experiment, const char *scale)
{
	const struct bench_options *options = &experiment->options;
	char filters[FILTERS_NAME_BYTES];

	filters_name(options, filters);
	return json_pack(
		"{s:s, s:I, s:I, s:i, s:i, s:i, s:s, s:f, s:f, s:s, s:s, s:s, s:s, s:f}", "scale",
		scale, "size", (json_int_t)options->size, "pairs", (json_int_t)options->pairs,
		"pair_size", (int)options->pair_bytes, "rows", (int)options->rows, "segment_size",
		(int)options->segment_bytes, "filters", filters, "fpr",
		options->fpr_millionths ? options->fpr_millionths / 1e6 : 0.0005, "fpr_factor",
		options->fpr_factor_permille ? options->fpr_factor_permille / 1e3 : 1.01, "history",
		options->history ? "on" : "off", "nand", nand_name(options->nand), "timing",
		options->timing_name, "time", time_name(options), "pareto_shape",
		options->pareto_shape);
}

/*
 * The n-th finding of an experiment with the ribbon index; NAN: that has not been run.
 * Look-ups that read nothing take no time, so their rate may be no number.
 */
static struct paper_figure with_ribbon(const struct experiment *experiment, uint32_t n)
{
	static const struct paper_figure none = { .ours = NAN, .predicted = NAN };

	return experiment->second ? experiment->second->findings[n] : none;
}

static json_t *number_json(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

static json_t *finding_json(uint32_t n, const struct experiment *experiment,
			    const struct paper_options *options)
{
	const struct paper_figure *finding = &experiment->findings[n];

	struct paper_figure ribbon = with_ribbon(experiment, n);

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:f, s:o, s:o, s:s?, s:o, s:I, s:s?}",
			 "section", finding->section, "case", finding->name, "metric",
			 finding->metric, "unit", finding->unit, "paper",
			 number_json(finding->paper), "predicted", number_json(finding->predicted),
			 "ours", finding->ours, "ribbon_predicted", number_json(ribbon.predicted),
			 "ribbon", number_json(ribbon.ours), "note", finding->note, "parameters",
			 parameters_json(experiment, options->scale->name), "seed",
			 (json_int_t)options->seed, "commit", options->commit);
}

/* Writes beside the file and renames, so that the file has all results or is not there. */
static int write_file(json_t *results, const char *path, struct error_text *error)
{
	char temporary[4096];

	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.new", path) >= sizeof(temporary))
		return error_set(error, -EINVAL, "--output: too long");
	if (json_dump_file(results, temporary, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0 ||
	    rename(temporary, path) != 0)
		return error_set(error, -errno, "%s: the results can't be written: %s", path,
				 strerror(errno));
	return 0;
}

static int write_results(const struct experiment_list *list, const struct paper_options *options,
			 struct error_text *error)
{
	json_t *results = json_array();
	int result = results ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < list->count; i++) {
		const struct experiment *experiment = &list->experiments[i];

		if (experiment->options.index == INDEX_RIBBON)
			continue; /* beside the other one */
		for (uint32_t n = 0; !result && n < experiment->finding_count; n++) {
			json_t *finding = finding_json(n, experiment, options);

			if (!finding || json_array_append_new(results, finding) != 0)
				result = -ENOMEM;
		}
	}
	result = result ? error_set(error, result, "out of memory for the results")
			: write_file(results, options->output, error);
	json_decref(results);
	return result;
}

/* A number of the table, which may not be known. */
struct cell {
	char text[32];
};

static struct cell cell_of(double number)
{
	struct cell cell = { "-" };

	if (isfinite(number))
		snprintf(cell.text, sizeof(cell.text), "%.6g", number);
	return cell;
}

static void print_table(const struct experiment_list *list, const struct experiment_scale *scale,
			FILE *to)
{
	fprintf(to,
		"%s scale: %s. -: the paper gives no number, or none that is known here; no "
		"equation\npredicts it.\n\n",
		scale->name, scale->description);
	fprintf(to, "%-11s %-38s %-32s %10s %10s %10s %10s %10s\n", "section", "case", "metric",
		"paper", "predicted", "ours", "predicted", "ribbon");
	for (uint32_t i = 0; i < list->count; i++) {
		const struct experiment *experiment = &list->experiments[i];

		if (experiment->options.index == INDEX_RIBBON)
			continue;
		for (uint32_t n = 0; n < experiment->finding_count; n++) {
			const struct paper_figure *finding = &experiment->findings[n];
			struct paper_figure ribbon = with_ribbon(experiment, n);

			fprintf(to, "%-11s %-38s %-32s %10s %10s %10.6g %10s %10s\n",
				finding->section, finding->name, finding->metric,
				cell_of(finding->paper).text, cell_of(finding->predicted).text,
				finding->ours, cell_of(ribbon.predicted).text,
				cell_of(ribbon.ours).text);
		}
	}
}

/* ---- all of it ---- */

static void keep_only(struct experiment_list *list, const char *only)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++)
		if (strstr(list->experiments[i].section, only))
			list->experiments[kept++] = list->experiments[i];
	list->count = kept;
}

int paper_run(const struct paper_options *options, FILE *table, FILE *progress,
	      struct error_text *error)
{
	struct experiment_list *list = calloc(1, sizeof(*list));
	int result;

	if (!list)
		return error_set(error, -ENOMEM, "out of memory");
	experiments_list(list, options->scale, options->seed);
	for (uint32_t n = 0; n < list->count; n++)
		list->experiments[n].adds_processor = options->adds_processor;
	if (options->only)
		keep_only(list, options->only);
	experiments_add_ribbon(list);
	result = list->count
			 ? run_all(list, options->jobs, progress, error)
			 : error_set(error, -EINVAL, "--only %s: no section has that in its name",
				     options->only);
	if (!result)
		result = write_results(list, options, error);
	if (!result)
		print_table(list, options->scale, table);
	free(list);
	return result;
}
