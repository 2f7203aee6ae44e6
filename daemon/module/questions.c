/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Answers what muninnd asks of a unit for an administrator. */
#include "daemon/module/questions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/descriptors.h"
#include "common/version.h"
#include "daemon/module/backup.h"
#include "daemon/module/handed.h"
#include "daemon/module/unit.h"
#include "engine/history.h"

/* Needs the others before it. */
#include "target.h"

#define WORDS_MAX 6

/* ---- use ---- */

bool question_is_of_main(const char *question)
{
	return strcmp(question, "use") == 0;
}

/* See is_first_of_session in arrival.c. */
static bool has_seen(const struct unit *unit, const struct it_nexus *nexus)
{
	return nexus->ctime < 0 &&
	       unit->sessions_seen[nexus->itn_id % SESSION_NUMBERS] == (uint32_t)-nexus->ctime;
}

static void tell_sessions(const struct unit *unit, const struct target *target, FILE *to)
{
	struct it_nexus *each;

	list_for_each_entry(each, &target->it_nexus_list, nexus_siblings)
	{
		if (has_seen(unit, each))
			fprintf(to, "session %" PRIu64 "\n", each->itn_id);
	}
}

/* Since the unit was made. */
static void tell_commands(const struct unit_done *done, FILE *to)
{
	fprintf(to,
		"reads %" PRIu64 "\nwrites %" PRIu64 "\nbidirectional %" PRIu64 "\nerrors %" PRIu64
		"\nread_bytes %" PRIu64 "\nwritten_bytes %" PRIu64 "\n",
		done->reads, done->writes, done->both, done->errors, done->read_bytes,
		done->written_bytes);
}

/* As above: microseconds of all, then how many were in each class. */
static void tell_latency(const char *kind, const struct latency *latency, FILE *to)
{
	fprintf(to, "latency_%s %" PRIu64, kind, latency->sum_us);
	for (int class = 0; class < LATENCY_CLASSES; class ++)
		fprintf(to, " %" PRIu64, latency->count[class]);
	fputc('\n', to);
}

/* As above. */
static void tell_senses(const struct unit *unit, FILE *to)
{
	static const char *const words[16] = {
		[NOT_READY] = "not_ready",
		[MEDIUM_ERROR] = "medium_error",
		[HARDWARE_ERROR] = "hardware_error",
		[ILLEGAL_REQUEST] = "illegal_request",
		[UNIT_ATTENTION] = "unit_attention",
		[DATA_PROTECT] = "data_protect",
		[ABORTED_COMMAND] = "aborted_command",
		[MISCOMPARE] = "miscompare",
	};
	uint64_t others = 0;

	for (int key = 0; key < 16; key++) {
		uint64_t count = __atomic_load_n(&unit->senses[key], __ATOMIC_RELAXED);

		if (words[key])
			fprintf(to, "sense_%s %" PRIu64 "\n", words[key], count);
		else
			others += count;
	}
	fprintf(to, "sense_other %" PRIu64 "\n", others);
}

static void tell_flash(const struct device *device, FILE *to)
{
	static const char *const causes[NAND_CAUSES] = {
		[NAND_CAUSE_USER] = "user",         [NAND_CAUSE_INDEX] = "index",
		[NAND_CAUSE_MERGE] = "merge",       [NAND_CAUSE_RECOVERY] = "recovery",
		[NAND_CAUSE_METADATA] = "metadata", [NAND_CAUSE_SCRUB] = "scrub",
	};
	uint64_t read = 0, programmed = 0, erased = 0;
	struct nand_counters counters;

	device_read_counters(device, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		fprintf(to,
			"pages_read_%s %" PRIu64 "\npages_programmed_%s %" PRIu64
			"\nblocks_erased_%s %" PRIu64 "\n",
			causes[cause], counters.by_cause[cause].pages_read, causes[cause],
			counters.by_cause[cause].pages_programmed, causes[cause],
			counters.by_cause[cause].blocks_erased);
		read += counters.by_cause[cause].pages_read;
		programmed += counters.by_cause[cause].pages_programmed;
		erased += counters.by_cause[cause].blocks_erased;
	}
	fprintf(to,
		"pages_read %" PRIu64 "\npages_programmed %" PRIu64 "\nblocks_erased %" PRIu64 "\n",
		read, programmed, erased);
}

char *question_use(struct unit *unit)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return NULL;
	tell_sessions(unit, lu_of(unit)->tgt, to);
	tell_commands(&unit->done, to);
	tell_latency("reads", &unit->done.read, to);
	tell_latency("writes", &unit->done.written, to);
	tell_latency("bidirectional", &unit->done.bidirectional, to);
	tell_senses(unit, to);
	tell_flash(unit->device, to);
	fclose(to);
	return text;
}

/* ---- the others ---- */

struct question {
	struct unit *unit;
	struct engine *engine;
	char *words[WORDS_MAX]; /* behind the first one; "" where there are none */
	FILE *to;
};

static uint64_t number(const struct question *question, int word)
{
	return strtoull(question->words[word], NULL, 0);
}

/* What the record store has and does: for metrics. */
static void tell_store(const struct engine_statistics *statistics, FILE *to)
{
	const struct {
		const char *name;
		uint64_t value;
	} facts[] = {
		{ "index_bytes", statistics->index_bytes },
		{ "buffer_bytes", statistics->buffer_bytes },
		{ "records_put", statistics->records_put },
		{ "record_bytes_put", statistics->record_bytes_put },
		{ "records_got", statistics->records_got },
		{ "records_absent", statistics->records_absent },
		{ "user_page_reads", statistics->user_page_reads },
		{ "false_positive_reads", statistics->false_positive_reads },
		{ "pages_repaired", statistics->pages_repaired },
		{ "segments", statistics->segments },
		{ "segments_free", statistics->segments_free },
		{ "segments_sealed", statistics->segments_sealed },
		{ "segments_metadata", statistics->segments_metadata },
		{ "sealed_record_bytes", statistics->sealed_record_bytes },
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		fprintf(to, "%s %" PRIu64 "\n", facts[i].name, facts[i].value);
}

static void tell_wear(struct device *device, const struct engine_statistics *statistics, FILE *to)
{
	struct device_wear wear;
	uint64_t segment;

	device_read_wear(device, &wear);
	fprintf(to,
		"page_bytes %" PRIu32 "\nerase_count_most %" PRIu32 "\nerase_count_mean %" PRIu64
		"\n",
		wear.page_bytes, wear.erase_count_most, wear.erase_count_mean);
	if (!statistics->segments)
		return;
	/* Segments are powers of two, and little of a device is in none. */
	segment = wear.device_bytes / statistics->segments;
	while (segment & (segment - 1))
		segment &= segment - 1;
	fprintf(to, "segment_bytes %" PRIu64 "\n", segment);
}

static int answer_facts(const struct question *question, struct error_text *error)
{
	struct unit *unit = question->unit;
	struct engine_statistics statistics;

	(void)error;
	engine_read_statistics(question->engine, &statistics);
	fprintf(question->to,
		"module %s\nbackend %s\nthreads %" PRIu32 "\ncapacity_bytes %" PRIu64
		"\nused_bytes %" PRIu64 "\npages_lost %" PRIu64 "\n",
		MUNINN_VERSION, lun_options_backend(&unit->options), unit->options.threads,
		statistics.capacity_bytes, statistics.used_bytes, statistics.pages_lost);
	tell_store(&statistics, question->to);
	tell_wear(unit->device, &statistics, question->to);
	if (unit->kind->describe)
		unit->kind->describe(unit, question->to);
	return 0;
}

static int answer_volumes(const struct question *question, struct error_text *error)
{
	struct disk_volume volume = { 0 };
	uint64_t from = number(question, 0);
	int result = 0;

	for (int count = 0; !result && count < QUESTION_VOLUMES_MAX; count++) {
		result = disk_volume_next(question->engine, from, &volume);
		from = volume.partition + 1;
		if (!result)
			fprintf(question->to,
				"volume 0x%" PRIx64 " %" PRIu64 " %" PRIu32 " %" PRIu64
				" 0x%" PRIx64 " %d\n",
				volume.partition, volume.bytes, volume.block_bytes,
				volume.used_bytes, volume.source, volume.is_read_only);
	}
	if (result && result != -ENOENT)
		return error_set(error, result, "%s", strerror(-result));
	return 0;
}

static int answer_grow(const struct question *question, struct error_text *error)
{
	struct unit *unit = question->unit;

	if (!unit->kind->grow)
		return error_set(error, -EINVAL, "a unit of type %s can't grow",
				 unit->kind->type->word);
	return unit->kind->grow(unit, number(question, 0), error);
}

static int answer_create(const struct question *question, struct error_text *error)
{
	struct disk_volume made = { 0 };
	int result = disk_volume_create(question->engine, number(question, 0), number(question, 1),
					(uint32_t)number(question, 2), &made, error);

	if (!result)
		fprintf(question->to, "made 0x%" PRIx64 " %" PRIu64 " %" PRIu32 "\n",
			made.partition, made.bytes, made.block_bytes);
	return result;
}

static int answer_remove(const struct question *question, struct error_text *error)
{
	return disk_volume_remove(question->engine, number(question, 0), error);
}

static int answer_resize(const struct question *question, struct error_text *error)
{
	uint64_t bytes = number(question, 1);

	return disk_volume_grow(question->engine, number(question, 0), &bytes, error);
}

static int answer_clone(const struct question *question, struct error_text *error)
{
	static const char *const kinds[] = {
		[ENGINE_NOW] = "now",
		[ENGINE_AT_VERSION] = "version",
		[ENGINE_AT_TIME] = "time",
		[ENGINE_AT_SEQUENCE] = "sequence",
	};
	struct engine_moment moment = { .kind = ENGINE_NOW, .value = number(question, 2) };
	uint64_t clone = 0;
	int result;

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		if (strcmp(kinds[kind], question->words[1]) == 0)
			moment.kind = (enum engine_moment_kind)kind;
	result = disk_volume_clone(question->engine, number(question, 0), &moment,
				   number(question, 3) != 0, &clone, error);
	if (!result)
		fprintf(question->to, "made 0x%" PRIx64 " 0 0\n", clone);
	return result;
}

static int answer_version(const struct question *question, struct error_text *error)
{
	uint32_t version = 0;
	int result = disk_volume_version(question->engine, number(question, 0), question->words[1],
					 &version, error);

	if (!result)
		fprintf(question->to, "version %" PRIu32 "\n", version);
	return result;
}

static int answer_map(const struct question *question, struct error_text *error)
{
	int result = question_map(question->engine, question->to);

	return result ? error_set(error, result, "%s", strerror(-result)) : 0;
}

static int answer_backup(const struct question *question, struct error_text *error)
{
	int fds[BACKUP_FILES], count = BACKUP_FILES;
	int result = handed_take(number(question, 0), fds, BACKUP_FILES, error);

	if (result)
		return result;
	result = device_back_up(question->unit->device, fds, error);
	if (result)
		descriptors_close(fds, &count);
	return result;
}

static const struct {
	const char *word;
	int words; /* behind it */
	int (*answer)(const struct question *question, struct error_text *error);
} answers[] = {
	{ "facts", 0, answer_facts },   { "volumes", 1, answer_volumes },
	{ "grow", 1, answer_grow },     { "create", 3, answer_create },
	{ "remove", 1, answer_remove }, { "resize", 2, answer_resize },
	{ "clone", 4, answer_clone },   { "version", 2, answer_version },
	{ "map", 0, answer_map },       { "backup", 1, answer_backup },
};

static int answer_in_words(struct question *question, char *text, struct error_text *error)
{
	char *word = strsep(&text, " ");
	int count = 0;

	while (text && count < WORDS_MAX)
		question->words[count++] = strsep(&text, " ");
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (strcmp(answers[i].word, word) == 0 && answers[i].words == count)
			return answers[i].answer(question, error);
	return error_set(error, -EOPNOTSUPP,
			 "the module of the running tgtd does not know '%s': it is of another "
			 "version",
			 word);
}

int question_answer(struct unit *unit, const char *text, char **answer, struct error_text *error)
{
	struct question question = { .unit = unit, .engine = device_engine(unit->device) };
	char copy[CONTROL_QUESTION_BYTES];
	size_t bytes;
	int result;

	snprintf(copy, sizeof(copy), "%s", text);
	question.to = open_memstream(answer, &bytes);
	if (!question.to)
		return error_set(error, -ENOMEM, "out of memory");
	result = answer_in_words(&question, copy, error);
	fclose(question.to);
	return result;
}
