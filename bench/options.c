/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Parses and checks the options of `muninn-bench run`. */
#include "bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bench_run_help[] =
	"muninn-bench run [OPTION...]\n"
	"Runs phases of operations on a fresh store, engine only. One JSON object per phase on "
	"stdout,\n"
	"a table on stderr.\n"
	"\n"
	"  --engine muninn        the engine\n"
	"  --index bloom|ribbon   its index (ribbon); ribbon takes none of --filters, --hot-rows, "
	"--fpr,\n"
	"                         --fpr-factor, --internal-version-tables, --tables and --merge "
	"filters\n"
	"  --nand mmap            device in memory (default); mmap:PATH: in a mapped file, which "
	"is\n"
	"                         created and removed again\n"
	"  --size 8G              page data of the device; K, M, G, T are powers of 1024\n"
	"  --pairs 1000000        how many pairs\n"
	"  --pair-size 1024       bytes of a pair: key, record header and value\n"
	"  --op insert,lookup     phases, one after another over the same store: insert, lookup,\n"
	"                         absent, update, delete, mixed:R (R = share of lookups: 0.95 or "
	"95,\n"
	"                         the rest are updates), open (once: behind a crash of the "
	"process).\n"
	"                         Without insert the pairs are put in first, unmeasured.\n"
	"  --dist random          one for all phases or one for each: sequential, random, pareto,\n"
	"                         basho, basho-truncated, zipfian, latest, oldest, newest\n"
	"  --ops N                operations of every phase but insert; default: the pairs, at "
	"most\n"
	"                         1000000\n"
	"  --window N             pairs that oldest and newest mean; default: those of the oldest\n"
	"                         table of every row, and those in no complete table\n"
	"  --pareto-shape 1.161   --zipfian-theta 0.99\n"
	"  --threads 1            threads\n"
	"  --depth 1              look-ups that are under way at once, of one thread\n"
	"  --timing muninn        15 us a page access; muninn,dies=8: on eight dies; none\n"
	"  --time virtual         by the timing, for one thread; virtual+processor: what the "
	"store\n"
	"                         takes of a processor is added; real: by the machine's clock, "
	"which\n"
	"                         needs --timing none\n"
	"  --history on           keep every record; off: absorb overwrites in the buffers\n"
	"  --rows N               active segments; default: by size, 128 from 16G, 256 from 128G "
	"on\n"
	"  --segment-size 1M      bytes of a segment\n"
	"  --filters S8/7         of a segment: S(kewed) or N (even), filters / filters with a "
	"page;\n"
	"                         8/8, 8/7, 16/16, 16/15\n"
	"  --hot-rows finalise    a segment in which a key has no place left is sealed; spread: "
	"filled\n"
	"                         with that key\n"
	"  --parity 0             lost pages of each 128 that can be made again; it takes no "
	"pages\n"
	"  --merge off            sampled, filters: segments are reclaimed when the device gets "
	"full, "
	"found\n"
	"                         so; only the present is kept\n"
	"  --internal-version-tables 1   read-only tables of an internal version\n"
	"  --tables ram           complete tables in memory; demand:BYTES: on flash, read through "
	"a "
	"cache\n"
	"  --fpr 0.0005           false-positive rate of the newest table\n"
	"  --fpr-factor 1.01      its growth for every older table; below 1: for every newer one\n"
	"  --seed 1               of everything random\n";

static const char *const operation_names[] = {
	[OPERATION_INSERT] = "insert", [OPERATION_LOOKUP] = "lookup", [OPERATION_ABSENT] = "absent",
	[OPERATION_UPDATE] = "update", [OPERATION_DELETE] = "delete", [OPERATION_MIXED] = "mixed",
	[OPERATION_OPEN] = "open",
};

const char *operation_name(enum bench_operation operation)
{
	return operation_names[operation];
}

const char *nand_name(enum bench_nand nand)
{
	static const char *const names[] = { [BENCH_NAND_MEMORY] = "mmap",
					     [BENCH_NAND_HEADERS] = "headers",
					     [BENCH_NAND_MAPPED_FILE] = "mmap-file",
					     [BENCH_NAND_FILE] = "file" };

	return names[nand];
}

static const char *const merge_names[] = { [BENCH_MERGE_OFF] = "off",
					   [BENCH_MERGE_SAMPLED] = "sampled",
					   [BENCH_MERGE_FILTERS] = "filters" };

const char *merge_name(enum bench_merge merge)
{
	return merge_names[merge];
}

bool is_virtual(const struct bench_options *options)
{
	return options->timing.mode == NAND_TIMING_VIRTUAL;
}

const char *time_name(const struct bench_options *options)
{
	return !is_virtual(options)      ? "real"
	       : options->adds_processor ? "virtual+processor"
					 : "virtual";
}

void filters_name(const struct bench_options *options, char text[FILTERS_NAME_BYTES])
{
	uint32_t filters = options->filters ? options->filters : 8;
	uint32_t paged = options->paged_filters ? options->paged_filters : 7;

	snprintf(text, FILTERS_NAME_BYTES, "%c%u/%u", options->even_filters ? 'N' : 'S', filters,
		 paged);
}

struct bench_options bench_options_default(void)
{
	struct bench_options options = {
		.index = INDEX_DEFAULT,
		.size = UINT64_C(8) << 30,
		.pairs = 1000000,
		.pair_bytes = 1024,
		.phases = { { .operation = OPERATION_INSERT, .distribution = DISTRIBUTION_RANDOM },
			    { .operation = OPERATION_LOOKUP,
			      .distribution = DISTRIBUTION_RANDOM } },
		.phase_count = 2,
		.threads = 1,
		.depth = 1,
		.timing_name = "muninn",
		.history = true,
		.pareto_shape = PARETO_SHAPE_DEFAULT,
		.zipfian_theta = ZIPFIAN_THETA_DEFAULT,
		.seed = 1,
		.segment_bytes = 1 << 20,
		.filters = 8,
		.paged_filters = 7,
	};

	if (nand_timing_preset(options.timing_name, &options.timing) != 0)
		abort(); /* nand/ has this preset */
	options.timing.mode = NAND_TIMING_VIRTUAL;
	return options;
}

/* ---- values ---- */

/* A whole number with an optional K, M, G or T. */
static int parse_whole(const char *name, const char *text, uint64_t least, uint64_t most,
		       uint64_t *value, struct error_text *error)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (end == text || text[0] == '-' || errno)
		return error_set(error, -EINVAL, "--%s %s: not a number", name, text);
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		uint64_t factor = UINT64_C(1) << (10 * (unit - units + 1));

		if (*value > UINT64_MAX / factor)
			return error_set(error, -EINVAL, "--%s %s: too large", name, text);
		*value *= factor;
		end++;
	}
	if (*end)
		return error_set(error, -EINVAL, "--%s %s: not a number, or K, M, G, T behind it",
				 name, text);
	if (*value < least || *value > most)
		return error_set(error, -EINVAL, "--%s %s: must be %llu to %llu", name, text,
				 (unsigned long long)least, (unsigned long long)most);
	return 0;
}

static int parse_whole32(const char *name, const char *text, uint64_t least, uint64_t most,
			 uint32_t *value, struct error_text *error)
{
	uint64_t wide;
	int result = parse_whole(name, text, least, most, &wide, error);

	if (!result)
		*value = (uint32_t)wide;
	return result;
}

static int parse_real(const char *name, const char *text, double least, double most, double *value,
		      struct error_text *error)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !(*value >= least && *value <= most))
		return error_set(error, -EINVAL, "--%s %s: must be a number from %g to %g", name,
				 text, least, most);
	return 0;
}

/* A rate that the engine stores as a whole number of `parts`. */
static int parse_parts(const char *name, const char *text, double least, double most, double parts,
		       uint32_t *value, struct error_text *error)
{
	double real;
	int result = parse_real(name, text, least, most, &real, error);

	if (!result)
		*value = (uint32_t)lround(real * parts);
	return result;
}

/* One of two words: `first` gives true. */
static int parse_choice(const char *name, const char *text, const char *first, const char *second,
			bool *is_first, struct error_text *error)
{
	*is_first = strcmp(text, first) == 0;
	if (!*is_first && strcmp(text, second) != 0)
		return error_set(error, -EINVAL, "--%s %s: must be %s or %s", name, text, first,
				 second);
	return 0;
}

int bench_filters_parse(struct bench_options *options, const char *text, struct error_text *error)
{
	static const struct {
		const char *text;
		uint32_t filters, paged;
	} known[] = { { "8/8", 8, 8 }, { "8/7", 8, 7 }, { "16/16", 16, 16 }, { "16/15", 16, 15 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if ((text[0] != 'S' && text[0] != 'N') || strcmp(text + 1, known[i].text) != 0)
			continue;
		options->even_filters = text[0] == 'N';
		options->filters = known[i].filters;
		options->paged_filters = known[i].paged;
		return 0;
	}
	return error_set(error, -EINVAL,
			 "--filters %s: must be S or N followed by 8/8, 8/7, 16/16 or 16/15", text);
}

static int parse_nand(struct bench_options *options, const char *text, struct error_text *error)
{
	if (strcmp(text, "mmap") == 0) {
		options->nand = BENCH_NAND_MEMORY;
		return 0;
	}
	if ((strncmp(text, "mmap:", 5) == 0 || strncmp(text, "file:", 5) == 0) && text[5]) {
		options->nand = text[0] == 'm' ? BENCH_NAND_MAPPED_FILE : BENCH_NAND_FILE;
		options->path = text + 5;
		return 0;
	}
	if (strcmp(text, "headers") == 0) {
		options->nand = BENCH_NAND_HEADERS;
		return 0;
	}
	return error_set(error, -EINVAL, "--nand %s: must be mmap, headers, mmap:PATH or file:PATH",
			 text);
}

static int parse_merge(enum bench_merge *merge, const char *text, struct error_text *error)
{
	for (size_t i = 0; i < sizeof(merge_names) / sizeof(merge_names[0]); i++) {
		if (strcmp(text, merge_names[i]) == 0) {
			*merge = (enum bench_merge)i;
			return 0;
		}
	}
	return error_set(error, -EINVAL, "--merge %s: must be off, sampled or filters", text);
}

static int parse_tables(struct bench_options *options, const char *text, struct error_text *error)
{
	options->table_cache_bytes = 0;
	if (strcmp(text, "ram") == 0)
		return 0;
	if (strncmp(text, "demand:", 7) != 0)
		return error_set(error, -EINVAL, "--tables %s: must be ram or demand:BYTES", text);
	return parse_whole("tables demand", text + 7, BLOOM_TABLE_CACHE_MIN, UINT64_C(1) << 40,
			   &options->table_cache_bytes, error);
}

/* The preset's own mode counts only if it is off; otherwise --time says it. */
static int choose_timing(struct bench_options *options, const char *text, bool virtual_time,
			 struct error_text *error)
{
	struct error_text why = { "" };

	options->timing_name = text;
	if (nand_timing_parse(text, &options->timing, &why))
		return error_set(error, -EINVAL, "--timing %s: %s", text, why.text);
	if (options->timing.mode == NAND_TIMING_OFF && virtual_time)
		return error_set(error, -EINVAL,
				 "--timing %s takes no virtual time; use --time real, or another "
				 "timing",
				 text);
	if (options->timing.mode != NAND_TIMING_OFF)
		options->timing.mode = virtual_time ? NAND_TIMING_VIRTUAL : NAND_TIMING_REAL;
	return 0;
}

/* Options that count together, when all have been read. */
struct said {
	struct bench_phase operations[PHASES_MAX], distributions[PHASES_MAX];
	uint32_t operation_count, distribution_count;
	uint64_t ops, window;
	const char *timing;
	bool virtual_time;
	int of_bloom; /* the last option that only the Bloom index has; 0: none */
};

static int parse_time(struct bench_options *options, struct said *said, const char *text,
		      struct error_text *error)
{
	options->adds_processor = strcmp(text, "virtual+processor") == 0;
	said->virtual_time = options->adds_processor || strcmp(text, "virtual") == 0;
	if (!said->virtual_time && strcmp(text, "real") != 0)
		return error_set(error, -EINVAL,
				 "--time %s: must be virtual, virtual+processor or real", text);
	return 0;
}

/* ---- phases ---- */

static int parse_operation(struct bench_phase *phase, const char *text, struct error_text *error)
{
	for (size_t i = 0; i < sizeof(operation_names) / sizeof(operation_names[0]); i++) {
		if (i != OPERATION_MIXED && strcmp(text, operation_names[i]) == 0) {
			phase->operation = (enum bench_operation)i;
			return 0;
		}
	}
	if (strncmp(text, "mixed:", 6) != 0)
		return error_set(error, -EINVAL,
				 "--op %s: must be insert, lookup, absent, update, delete, open or "
				 "mixed:R (R = share of lookups)",
				 text);
	phase->operation = OPERATION_MIXED;
	int result = parse_real("op mixed", text + 6, 0, 100, &phase->lookup_share, error);

	if (phase->lookup_share > 1)
		phase->lookup_share /= 100;
	return result;
}

static int parse_distribution(struct bench_phase *phase, const char *text, struct error_text *error)
{
	if (distribution_parse(text, &phase->distribution))
		return 0;
	return error_set(error, -EINVAL,
			 "--dist %s: must be sequential, random, pareto, basho, basho-truncated, "
			 "zipfian, latest, oldest or newest",
			 text);
}

/* Calls `parse` for every word of a list with commas, at most PHASES_MAX of them. */
static int parse_list(const char *name, const char *text, struct bench_phase *phases,
		      uint32_t *count,
		      int (*parse)(struct bench_phase *, const char *, struct error_text *),
		      struct error_text *error)
{
	*count = 0;
	for (;;) {
		size_t length = strcspn(text, ",");
		char word[64];
		int result;

		if (*count == PHASES_MAX || length >= sizeof(word))
			return error_set(error, -EINVAL,
					 "--%s: more than %d phases, or a word too long", name,
					 PHASES_MAX);
		memcpy(word, text, length);
		word[length] = '\0';
		result = parse(&phases[(*count)++], word, error);
		if (result)
			return result;
		if (!text[length])
			return 0;
		text += length + 1;
	}
}

static int join_phases(struct bench_options *options, const struct said *said,
		       struct error_text *error)
{
	if (said->operation_count) {
		memcpy(options->phases, said->operations, sizeof(options->phases));
		options->phase_count = said->operation_count;
		for (uint32_t i = 0; i < options->phase_count; i++)
			options->phases[i].distribution = DISTRIBUTION_RANDOM;
	}
	if (said->distribution_count > 1 && said->distribution_count != options->phase_count)
		return error_set(
			error, -EINVAL,
			"--dist: %u distributions for %u phases; give one, or one for each",
			said->distribution_count, options->phase_count);
	for (uint32_t i = 0; said->distribution_count && i < options->phase_count; i++) {
		uint32_t from = said->distribution_count > 1 ? i : 0;

		options->phases[i].distribution = said->distributions[from].distribution;
	}
	for (uint32_t i = 0; i < options->phase_count; i++) {
		if (options->phases[i].operation != OPERATION_INSERT &&
		    options->phases[i].operation != OPERATION_OPEN)
			options->phases[i].operations = said->ops;
		options->phases[i].window = said->window;
	}
	return 0;
}

/* ---- all of them ---- */

enum option_id {
	OPTION_ENGINE = 1,
	OPTION_INDEX,
	OPTION_NAND,
	OPTION_SIZE,
	OPTION_PAIRS,
	OPTION_PAIR_SIZE,
	OPTION_OP,
	OPTION_DIST,
	OPTION_OPS,
	OPTION_WINDOW,
	OPTION_PARETO_SHAPE,
	OPTION_ZIPFIAN_THETA,
	OPTION_THREADS,
	OPTION_DEPTH,
	OPTION_TIMING,
	OPTION_TIME,
	OPTION_HISTORY,
	OPTION_ROWS,
	OPTION_SEGMENT_SIZE,
	OPTION_FILTERS,
	OPTION_HOT_ROWS,
	OPTION_PARITY,
	OPTION_MERGE,
	OPTION_VERSION_TABLES,
	OPTION_TABLES,
	OPTION_FPR,
	OPTION_FPR_FACTOR,
	OPTION_SEED,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{ "engine", required_argument, NULL, OPTION_ENGINE },
	{ "index", required_argument, NULL, OPTION_INDEX },
	{ "nand", required_argument, NULL, OPTION_NAND },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "pairs", required_argument, NULL, OPTION_PAIRS },
	{ "pair-size", required_argument, NULL, OPTION_PAIR_SIZE },
	{ "op", required_argument, NULL, OPTION_OP },
	{ "dist", required_argument, NULL, OPTION_DIST },
	{ "ops", required_argument, NULL, OPTION_OPS },
	{ "window", required_argument, NULL, OPTION_WINDOW },
	{ "pareto-shape", required_argument, NULL, OPTION_PARETO_SHAPE },
	{ "zipfian-theta", required_argument, NULL, OPTION_ZIPFIAN_THETA },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "depth", required_argument, NULL, OPTION_DEPTH },
	{ "timing", required_argument, NULL, OPTION_TIMING },
	{ "time", required_argument, NULL, OPTION_TIME },
	{ "history", required_argument, NULL, OPTION_HISTORY },
	{ "rows", required_argument, NULL, OPTION_ROWS },
	{ "segment-size", required_argument, NULL, OPTION_SEGMENT_SIZE },
	{ "filters", required_argument, NULL, OPTION_FILTERS },
	{ "hot-rows", required_argument, NULL, OPTION_HOT_ROWS },
	{ "parity", required_argument, NULL, OPTION_PARITY },
	{ "merge", required_argument, NULL, OPTION_MERGE },
	{ "internal-version-tables", required_argument, NULL, OPTION_VERSION_TABLES },
	{ "tables", required_argument, NULL, OPTION_TABLES },
	{ "fpr", required_argument, NULL, OPTION_FPR },
	{ "fpr-factor", required_argument, NULL, OPTION_FPR_FACTOR },
	{ "seed", required_argument, NULL, OPTION_SEED },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

/* So far there is one engine. */
static int parse_engine(const char *text, struct error_text *error)
{
	if (strcmp(text, "muninn") == 0)
		return 0;
	return error_set(error, -EINVAL, "--engine %s: this build has only muninn", text);
}

static int parse_option(struct bench_options *options, struct said *said, enum option_id id,
			const char *text, struct error_text *error)
{

	switch (id) {
	case OPTION_ENGINE:
		return parse_engine(text, error);
	case OPTION_INDEX:
		if (index_kind_parse(text, &options->index))
			return error_set(error, -EINVAL, "--index %s: must be bloom or ribbon",
					 text);
		return 0;
	case OPTION_NAND:
		return parse_nand(options, text, error);
	case OPTION_SIZE:
		return parse_whole("size", text, 1 << 20, UINT64_C(1) << 46, &options->size, error);
	case OPTION_PAIRS:
		return parse_whole("pairs", text, 1, UINT32_MAX, &options->pairs, error);
	case OPTION_PAIR_SIZE:
		return parse_whole32("pair-size", text, 64, PAIR_HEADER_BYTES + 4096,
				     &options->pair_bytes, error);
	case OPTION_OP:
		return parse_list("op", text, said->operations, &said->operation_count,
				  parse_operation, error);
	case OPTION_DIST:
		return parse_list("dist", text, said->distributions, &said->distribution_count,
				  parse_distribution, error);
	case OPTION_OPS:
		return parse_whole("ops", text, 1, UINT32_MAX, &said->ops, error);
	case OPTION_WINDOW:
		return parse_whole("window", text, 1, UINT32_MAX, &said->window, error);
	case OPTION_PARETO_SHAPE:
		return parse_real("pareto-shape", text, 1.001, 100, &options->pareto_shape, error);
	case OPTION_ZIPFIAN_THETA:
		return parse_real("zipfian-theta", text, 0.001, 10, &options->zipfian_theta, error);
	case OPTION_THREADS:
		return parse_whole32("threads", text, 1, THREADS_MAX, &options->threads, error);
	case OPTION_DEPTH:
		return parse_whole32("depth", text, 1, ASYNC_DEPTH_MAX, &options->depth, error);
	case OPTION_TIMING:
		said->timing = text;
		return 0;
	case OPTION_TIME:
		return parse_time(options, said, text, error);
	case OPTION_HISTORY:
		return parse_choice("history", text, "on", "off", &options->history, error);
	case OPTION_ROWS:
		return parse_whole32("rows", text, 1, 4096, &options->rows, error);
	case OPTION_SEGMENT_SIZE:
		return parse_whole32("segment-size", text, 32 << 10, 16 << 20,
				     &options->segment_bytes, error);
	case OPTION_FILTERS:
		return bench_filters_parse(options, text, error);
	case OPTION_TABLES:
		return parse_tables(options, text, error);
	case OPTION_HOT_ROWS:
		if (bloom_hot_rows_parse(text, &options->hot_rows))
			return error_set(error, -EINVAL,
					 "--hot-rows %s: must be finalise or spread", text);
		return 0;
	case OPTION_PARITY:
		return parse_whole32("parity", text, 0, MUNINN_PARITY_MAX, &options->parity, error);
	case OPTION_MERGE:
		return parse_merge(&options->merge, text, error);
	case OPTION_VERSION_TABLES:
		return parse_whole32("internal-version-tables", text, 1, 1024,
				     &options->internal_version_tables, error);
	case OPTION_FPR:
		return parse_parts("fpr", text, 1e-6, 0.5, 1e6, &options->fpr_millionths, error);
	case OPTION_FPR_FACTOR:
		return parse_parts("fpr-factor", text, BLOOM_FACTOR_MIN / 1e3, 4, 1e3,
				   &options->fpr_factor_permille, error);
	case OPTION_SEED:
		return parse_whole("seed", text, 0, UINT64_MAX, &options->seed, error);
	case OPTION_HELP:
		return 1;
	}
	return error_set(error, -EINVAL, "unknown option");
}

static bool is_of_bloom(int id)
{
	return id == OPTION_FILTERS || id == OPTION_HOT_ROWS || id == OPTION_VERSION_TABLES ||
	       id == OPTION_TABLES || id == OPTION_FPR || id == OPTION_FPR_FACTOR;
}

/* What would be without effect is refused. */
static int check_index(const struct bench_options *options, const struct said *said,
		       struct error_text *error)
{
	const struct option *option = long_options;

	if (options->index != INDEX_RIBBON)
		return 0;
	if (options->merge == BENCH_MERGE_FILTERS)
		return error_set(error, -EINVAL,
				 "--merge filters: the ribbon index has none (--index bloom)");
	if (!said->of_bloom)
		return 0;
	while (option->val != said->of_bloom)
		option++;
	return error_set(error, -EINVAL, "--%s: only the Bloom index has that (--index bloom)",
			 option->name);
}

int bench_options_parse(struct bench_options *options, int argc, char **argv,
			struct error_text *error)
{
	struct said said = { .timing = "muninn", .virtual_time = true };
	int id, result;

	*options = bench_options_default();
	optind = 0;
	while ((id = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (id == ':')
			return error_set(error, -EINVAL, "%s: needs a value", argv[optind - 1]);
		if (id == '?')
			return error_set(error, -EINVAL, "%s: no such option", argv[optind - 1]);
		result = parse_option(options, &said, (enum option_id)id, optarg, error);
		if (result)
			return result;
		if (is_of_bloom(id))
			said.of_bloom = id;
	}
	if (optind < argc)
		return error_set(error, -EINVAL, "%s: not an option", argv[optind]);
	result = join_phases(options, &said, error);
	if (!result)
		result = check_index(options, &said, error);
	if (!result)
		result = choose_timing(options, said.timing, said.virtual_time, error);
	return result ? result : bench_options_check(options, error);
}

/* ---- what fits together ---- */

static int check_phase(const struct bench_options *options, uint32_t number,
		       struct error_text *error)
{
	const struct bench_phase *phase = &options->phases[number];
	enum distribution distribution = phase->distribution;

	if (phase->operation == OPERATION_INSERT) {
		if (number != 0)
			return error_set(error, -EINVAL,
					 "--op: insert must be the first phase; the pairs"
					 " exist afterwards, so use update");
		if (distribution == DISTRIBUTION_LATEST || distribution == DISTRIBUTION_OLDEST ||
		    distribution == DISTRIBUTION_NEWEST)
			return error_set(error, -EINVAL,
					 "--dist %s: inserts have no age yet; use sequential, "
					 "random, pareto, basho, basho-truncated or zipfian",
					 distribution_name(distribution));
	}
	if (phase->window > options->pairs)
		return error_set(error, -EINVAL, "--window %llu: there are only %llu pairs",
				 (unsigned long long)phase->window,
				 (unsigned long long)options->pairs);
	if (phase->operation == OPERATION_DELETE && distribution == DISTRIBUTION_RANDOM &&
	    phase->operations > options->pairs)
		return error_set(error, -EINVAL,
				 "--ops %llu: a random delete takes each of the %llu"
				 " pairs once",
				 (unsigned long long)phase->operations,
				 (unsigned long long)options->pairs);
	return 0;
}

int bench_options_check(const struct bench_options *options, struct error_text *error)
{
	if (is_virtual(options) && options->threads > 1)
		return error_set(
			error, -EINVAL,
			"--threads %u: virtual time is that of one thread; use --time real",
			options->threads);
	if (options->depth > 1 && options->threads > 1)
		return error_set(error, -EINVAL,
				 "--depth %u: it is that of one thread, so without --threads",
				 options->depth);
	for (uint32_t number = 0; number < options->phase_count; number++) {
		int result = check_phase(options, number, error);

		if (result)
			return result;
	}
	return 0;
}
