/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps how much the service did in the last minutes. */
#include "daemon/trend.h"

#include "daemon/facts.h"

static void add_unit(struct trend_sum *sum, const json_t *unit)
{
	static const char *const took[] = { "latency_reads", "latency_writes",
					    "latency_bidirectional" };

	sum->units++;
	sum->commands += facts_number(unit, "reads") + facts_number(unit, "writes") +
			 facts_number(unit, "bidirectional");
	sum->bytes += facts_number(unit, "read_bytes") + facts_number(unit, "written_bytes");
	for (size_t i = 0; i < sizeof(took) / sizeof(took[0]); i++) {
		struct latency latency;

		if (!facts_latency(unit, took[i], &latency))
			continue;
		sum->took_us += latency.sum_us;
		for (int class = 0; class < LATENCY_CLASSES; class ++)
			sum->timed += latency.count[class];
	}
}

static void add_point(struct trend *trend, const struct trend_sum *now, int64_t now_ms)
{
	const struct trend_sum *last = &trend->last;
	double seconds = (double)(now_ms - trend->last_ms) / 1000;
	struct trend_point *point;

	if (trend->count == TREND_POINTS_MAX) {
		trend->first = (trend->first + 1) % TREND_POINTS_MAX;
		trend->count--;
	}
	point = &trend->points[(trend->first + trend->count++) % TREND_POINTS_MAX];
	*point = (struct trend_point){
		.at_ms = now_ms,
		.commands = (double)(now->commands - last->commands) / seconds,
		.bytes = (double)(now->bytes - last->bytes) / seconds,
	};
	if (now->timed > last->timed)
		point->latency_us =
			(double)(now->took_us - last->took_us) / (double)(now->timed - last->timed);
}

void trend_note(struct trend *trend, const json_t *status, int64_t now_ms)
{
	const json_t *units = json_object_get(status, "units");
	struct trend_sum now = { 0 };

	if (trend->last_ms && now_ms - trend->last_ms < TREND_SPACING_MS)
		return;
	for (size_t i = 0; i < json_array_size(units); i++)
		if (facts_is_known(json_array_get(units, i)))
			add_unit(&now, json_array_get(units, i));
	/* Another tgtd counts anew, and so does a unit that was away. */
	if (trend->last_ms && now.units == trend->last.units &&
	    now.commands >= trend->last.commands && now.bytes >= trend->last.bytes &&
	    now.took_us >= trend->last.took_us && now.timed >= trend->last.timed)
		add_point(trend, &now, now_ms);
	trend->last = now;
	trend->last_ms = now_ms;
	while (trend->count && now_ms - trend_at(trend, 0)->at_ms > TREND_SPAN_MS) {
		trend->first = (trend->first + 1) % TREND_POINTS_MAX;
		trend->count--;
	}
}

const struct trend_point *trend_at(const struct trend *trend, size_t n)
{
	return &trend->points[(trend->first + n) % TREND_POINTS_MAX];
}
