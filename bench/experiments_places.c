/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The puts of section 6.4, all kept, with other limits on the versions of a key in a segment. No
 * engine has these limits but the first.
 */
#include "bench/experiments_places.h"

#include <stdio.h>

#include "bench/predict.h"

/* Utilization of two loads together, of as many records each. */
static double together(double one, double other)
{
	return 2 / (1 / one + 1 / other);
}

static int run_places(struct experiment *experiment, struct bench_store *store,
		      struct error_text *error)
{
	const struct places_options *options = &experiment->places;
	struct prediction predicted;
	struct places_report report;
	struct paper_figure *finding;
	double hot;
	int result = places_simulate(options, &report);

	(void)store;
	if (result)
		return error_set(error, result, "out of memory for %u rows", options->rows);
	predict_begin(&predicted, &experiment->options);
	hot = predict_hot_utilization(&predicted, (double)options->puts,
				      basho_truncated_share(options->pairs),
				      places_versions(options));
	finding = experiment_find(experiment, "segment_utilization", "share", report.utilization);
	finding->paper = 0.652;
	finding->predicted = hot;
	finding = experiment_find(experiment, "segment_utilization_with_load", "share",
				  together(predict_utilization(&predicted), report.utilization));
	finding->paper = 0.652;
	finding->predicted = together(predict_utilization(&predicted), hot);
	return 0;
}

void experiments_list_places(struct experiment_list *list, const struct experiment_scale *scale,
			     uint64_t seed)
{
	static const struct {
		uint32_t places, paged, paged_versions, further_versions;
		const char *name;
	} readings[] = {
		{ 24, 7, 4, 4, "24 places of 4" },
		{ 24, 7, 1, 4, "7 places of 1, 17 of 4" },
		{ 16, 7, 4, 4, "16 places of 4" },
		{ 24, 7, 2, 2, "24 places of 2" },
		{ 24, 7, 4, 1, "7 places of 4, 17 of 1" },
		{ 8, 7, 4, 4, "8 places of 4" },
		{ 24, 7, 1, 1, "24 places of 1" },
	};

	for (size_t n = 0; n < sizeof(readings) / sizeof(readings[0]); n++) {
		struct experiment *experiment = experiment_add(list, "6.4, places", seed);
		struct bench_options *options = &experiment->options;

		experiment->run = run_places;
		experiment->has_no_store = true;
		options->rows = scale->update_rows;
		options->size = 2 * scale->update_rows * EXPERIMENT_ROW_BYTES;
		options->pairs = scale->pairs;
		if (readings[n].places < PREDICT_FUNCTIONS)
			options->filters = options->paged_filters = readings[n].places;
		experiment->places = (struct places_options){
			.rows = options->rows,
			.pages = PLACES_PAGES_MAX,
			.per_page = 4096 / options->pair_bytes,
			.places = readings[n].places,
			.paged = readings[n].paged,
			.paged_versions = readings[n].paged_versions,
			.further_versions = readings[n].further_versions,
			.distribution = DISTRIBUTION_BASHO_TRUNCATED,
			.pairs = scale->pairs,
			.puts = scale->pairs,
			.seed = seed,
		};
		experiment->note = scale->note ? "simulated; fewer puts" : "simulated";
		snprintf(experiment->name, sizeof(experiment->name), "%s", readings[n].name);
	}
}
