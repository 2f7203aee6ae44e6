/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The NVRAM file at a start: a page of it is damaged, or all of it is lost, or it is an older one.
 *
 * Opening refuses it by name, or finds what was there, of an older one what was there then. But an
 * older one of the same run need not contradict a flash that has been written since; then only the
 * process must not die. (Files of different runs do not open: nand/.)
 *
 * What it refuses it opens without, if it is asked to: then all records that were in segments of
 * flash are found, and no object is older than it was whose records were all there. At last it is
 * formatted and used. Each start is made in a process of its own, which ends with it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/muninn/store.h"
#include "engine/objects/keys.h"
#include "engine/objects/objects.h"
#include "engine/open.h"
#include "tests/engine/model/model_findings.h"
#include "tests/sim/world.h"

enum { DAMAGED_PAGE = 4096, REFUSED = 10, UNNOTICED, STEPS_BEHIND = 20, STEPS_TO_A_COPY = 16 };

enum fate { DAMAGED, LOST, OLDER };

static const char *const fates[] = { "damaged", "lost", "older" };

/* A copy of the NVRAM, and the run when it was taken. */
static struct {
	uint8_t *nvram; /* NULL: there is none yet */
	struct model_run then;
	uint64_t writes; /* to flash until then */
} older;

static uint8_t *nvram_of(const struct sim_world *world, uint64_t *bytes)
{
	return nand_nvram(world->nand, bytes);
}

/* ---- what becomes of it ---- */

static const char *const damages[] = { "zeroed", "overwritten", "with a bit changed", "exchanged" };

static void damage_page(struct model_run *run, uint8_t *at, uint8_t *other, uint64_t length,
			unsigned how)
{
	uint8_t page[DAMAGED_PAGE];

	switch (how) {
	case 0:
		memset(at, 0, length);
		break;
	case 1:
		for (uint64_t n = 0; n < length; n++)
			at[n] = (uint8_t)model_run_below(run, 256);
		break;
	case 2:
		at[model_run_below(run, length)] ^= (uint8_t)(1u << model_run_below(run, 8));
		break;
	default:
		memcpy(page, at, length);
		memcpy(at, other, length);
		memcpy(other, page, length);
		break;
	}
}

static void damage(struct sim_world *world)
{
	struct model_run *run = &world->run;
	uint64_t bytes, pages;
	uint8_t *nvram = nvram_of(world, &bytes);
	uint64_t page, other;
	unsigned how = (unsigned)model_run_below(run, 4);

	pages = bytes / DAMAGED_PAGE;
	page = model_run_below(run, pages);
	other = model_run_below(run, pages);
	sim_say(world, "page %llu of the NVRAM file is %s (%llu)", (unsigned long long)page,
		damages[how], (unsigned long long)other);
	damage_page(run, nvram + page * DAMAGED_PAGE, nvram + other * DAMAGED_PAGE, DAMAGED_PAGE,
		    how);
}

/* Another file in its place may hold anything, as new ones do nothing. */
static void lose(struct sim_world *world)
{
	uint64_t bytes;
	uint8_t *nvram = nvram_of(world, &bytes);
	bool zeroes = one_in(&world->run, 2);

	sim_say(world, "the NVRAM file is lost");
	for (uint64_t n = 0; n < bytes; n++)
		nvram[n] = zeroes ? 0 : (uint8_t)model_run_below(&world->run, 256);
}

static void put_older_back(struct sim_world *world)
{
	uint64_t bytes;
	uint8_t *nvram = nvram_of(world, &bytes);

	sim_say(world, "the NVRAM file is that of step %llu", (unsigned long long)older.then.step);
	memcpy(nvram, older.nvram, bytes);
}

static uint64_t writes_so_far(const struct sim_world *world)
{
	struct nand_counters counters;
	uint64_t writes = 0;

	nand_read_counters(world->nand, &counters);
	for (int cause = 0; cause < NAND_CAUSES; cause++)
		writes += counters.by_cause[cause].pages_programmed +
			  counters.by_cause[cause].blocks_erased;
	return writes;
}

/* Between two transactions: as if the service had been killed then. */
static void keep_copy(struct sim_world *world)
{
	uint64_t bytes;
	const uint8_t *nvram = nvram_of(world, &bytes);

	model_run_see(&world->run);
	if (older.nvram)
		object_model_clear(&older.then.model);
	else
		older.nvram = malloc(bytes);
	assert_non_null(older.nvram);
	memcpy(older.nvram, nvram, bytes);
	older.writes = writes_so_far(world);
	older.then = world->run;
	memset(&older.then.model, 0, sizeof(older.then.model));
	object_model_copy(&older.then.model, &world->run.model);
}

/* ---- records, and where they were ---- */

struct stored {
	struct record_key key;
	uint64_t sequence;
};

struct records {
	struct stored *list; /* sorted */
	size_t count, capacity;
};

/* What the store held, what of it in NVRAM alone; what is lost. */
static struct records held, buffered, lost;

static int by_key(const void *a, const void *b)
{
	const struct record_key *one = a, *other = b;

	if (one->partition != other->partition)
		return one->partition < other->partition ? -1 : 1;
	if (one->identifier != other->identifier)
		return one->identifier < other->identifier ? -1 : 1;
	if (one->piece != other->piece)
		return one->piece < other->piece ? -1 : 1;
	return one->class < other->class ? -1 : one->class > other->class;
}

static int by_record(const void *a, const void *b)
{
	const struct stored *one = a, *other = b;
	int order = by_key(&one->key, &other->key);

	if (order)
		return order;
	return one->sequence < other->sequence ? -1 : one->sequence > other->sequence;
}

static void add(struct records *records, const struct record_key *key, uint64_t sequence)
{
	if (records->count == records->capacity) {
		records->capacity = records->capacity ? 2 * records->capacity : 1024;
		records->list = realloc(records->list, records->capacity * sizeof(*records->list));
		assert_non_null(records->list);
	}
	records->list[records->count++] = (struct stored){ *key, sequence };
}

static void sort(struct records *records)
{
	if (records->count)
		qsort(records->list, records->count, sizeof(*records->list), by_record);
}

static bool has(const struct records *records, const struct stored *record)
{
	return records->count &&
	       bsearch(record, records->list, records->count, sizeof(*records->list), by_record);
}

/* As record_check.record. */
static void note_record(void *records, const struct record_key *key, const struct record_info *info)
{
	add(records, key, info->sequence);
}

static void pass_over(void *context, const struct finding *finding)
{
	(void)context;
	(void)finding;
}

/* All records that the store has, and that count. */
static void note_all(struct record_store *store, struct records *records)
{
	struct findings findings = { .take = pass_over };
	struct record_check check = { .findings = &findings,
				      .context = records,
				      .record = note_record };

	assert_int_equal(store->operations->check(store, &check), 0);
	sort(records);
}

static void note_buffer(const struct buffer *buffer)
{
	for (uint32_t page = 0; buffer->area && page < buffer->geometry->segment_pages; page++) {
		struct page_view view = buffer_page(buffer, page);
		struct record_header header;
		struct page_record record;
		uint32_t offset = 0;

		while (page_next(&view, &offset, &record)) {
			record_header_decode(record.header, &header);
			add(&buffered, &header.key, header.sequence);
		}
	}
}

/* ---- rollbacks ---- */

/* What rollbacks hid, and whether the same is hidden now: then none is lost. */
static struct {
	struct hidden_interval *list;
	uint32_t count;
	bool same;
} rollbacks;

static void note_rollbacks(const struct engine *engine)
{
	const struct hidden *hidden = &engine->past->hidden;

	rollbacks.count = hidden->count;
	rollbacks.list = calloc(hidden->count + 1, sizeof(*hidden->list));
	assert_non_null(rollbacks.list);
	if (hidden->count)
		memcpy(rollbacks.list, hidden->list, hidden->count * sizeof(*hidden->list));
}

static bool is_same_interval(const struct hidden_interval *one, const struct hidden_interval *other)
{
	return one->identifier == other->identifier && one->at == other->at &&
	       one->to == other->to && one->partition == other->partition;
}

static void compare_rollbacks(const struct engine *engine)
{
	const struct hidden *hidden = &engine->past->hidden;

	rollbacks.same = hidden->count == rollbacks.count;
	for (uint32_t n = 0; rollbacks.same && n < rollbacks.count; n++)
		rollbacks.same = is_same_interval(&hidden->list[n], &rollbacks.list[n]);
}

static bool is_of_rollbacks(const struct record_key *key)
{
	const struct record_key history = key_of_history(RECORD_ROOT_INDEX);
	const struct record_key hidden = key_of_table(RECORD_ID_HIDDEN, key->piece);

	return by_key(key, &history) == 0 || by_key(key, &hidden) == 0;
}

/* ---- before and after ---- */

static void note_what_is_there(struct sim_world *world)
{
	struct record_store *base = world->run.engine->store;
	const struct muninn_store *store = (const struct muninn_store *)(const void *)base;

	note_rollbacks(world->run.engine);
	note_all(base, &held);
	for (uint32_t row = 0; row < store->geometry.rows; row++) {
		note_buffer(&store->rows[row].buffer);
		note_buffer(&store->rows[row].newer);
	}
	sort(&buffered);
}

/*
 * What was in a segment is found again, but for one command: the last of which anything is on
 * flash, if the rest of it may be lost.
 */
static void check_what_is_lost(const struct sim_world *world)
{
	struct record_store *store = world->run.engine->store;
	struct records found = { 0 };
	uint64_t last = 0;

	note_all(store, &found);
	for (size_t n = 0; n < held.count; n++)
		if (held.list[n].sequence > last && !has(&buffered, &held.list[n]))
			last = held.list[n].sequence;
	for (size_t n = 0; n < held.count; n++) {
		const struct stored *record = &held.list[n];

		if (has(&found, record))
			continue;
		if (!has(&buffered, record) && record->sequence != last)
			fail_msg("record %llu of partition index %u, identifier 0x%llx, piece "
				 "0x%x was in a segment, and is lost",
				 (unsigned long long)record->sequence, record->key.partition,
				 (unsigned long long)record->key.identifier, record->key.piece);
		add(&lost, &record->key, record->sequence);
	}
	free(found.list);
}

/* ---- what is uncertain ---- */

/* As record_store_operations.is_uncertain: of the key a record is lost. */
static enum record_certainty is_lost(struct record_store *store, const struct record_key *key)
{
	(void)store;
	if (rollbacks.same && is_of_rollbacks(key))
		return RECORD_CERTAIN;
	/* In the order of keys, as it was found. */
	return lost.count && bsearch(key, lost.list, lost.count, sizeof(*lost.list), by_key)
		       ? RECORD_UNCERTAIN
		       : RECORD_CERTAIN;
}

/* ---- opening without it ---- */

static void attach(struct model_run *run, struct record_store *store)
{
	static struct record_store_operations operations;

	(void)run;
	operations = *store->operations;
	operations.is_uncertain = is_lost;
	store->operations = &operations;
}

static void compare(struct sim_world *world)
{
	struct model_findings found;
	struct findings findings = { .take = model_findings_take, .context = &found };
	struct engine_check check = { .findings = &findings };
	struct model_compared compared;
	struct sim_counts *counts = &world->report->counts;
	int result;

	model_findings_create(&found);
	result = engine_check(world->run.engine, &check);
	counts->recovered++;
	if (result == -EBADMSG || model_findings_leave_all_open(&found)) {
		counts->recovered_open++;
		return;
	}
	assert_int_equal(result, 0);
	compared = model_findings_compare(&world->run, world->run.engine, &found);
	counts->recovered_objects += compared.objects;
	counts->recovered_named += compared.named;
	model_findings_destroy(&found);
}

static struct engine *open_plainly(struct model_run *run)
{
	return model_flash_open(run, NULL);
}

/* As the administrator is told to do then. What a lock holds, nobody formats. */
static void format_and_go_on(struct sim_world *world)
{
	struct model_run *run = &world->run;
	int result;

	run->options.records.recover_without_nvram = false;
	run->store.open = open_plainly;
	run->store.between = NULL;
	run->store.other = NULL;
	run->weights = &model_usual;
	object_model_clear(&run->model);
	result = engine_reformat(run->engine);
	if (result == -EPERM)
		return;
	assert_int_equal(result, 0);
	run->closed_for_ms = run->running_ms - device_time_now(run->engine);
	model_clock_open(&run->model.clock, run->engine->committed);
	model_run_restart(run, one_in(run, 2));
	model_run_look(run);
	for (uint64_t step = 0; step < STEPS_BEHIND; step++)
		model_run_step(run, step);
	model_run_look(run);
}

static void open_without(struct sim_world *world)
{
	struct model_run *run = &world->run;

	sim_say(world, "it opens without its NVRAM");
	run->options.records.recover_without_nvram = true;
	run->engine = model_flash_open(run, attach);
	check_what_is_lost(world);
	compare_rollbacks(run->engine);
	compare(world);
	sim_say(world, "formatted behind that");
	format_and_go_on(world);
}

/* ---- a start ---- */

static enum fate fate;

/* The model goes back to when the copy was taken; the clock may be anything. */
static void go_back(struct model_run *run)
{
	struct model_run now = *run;

	*run = older.then;
	run->store = now.store;
	run->engine = now.engine;
	run->buffer = now.buffer;
	run->random = now.random;
	run->doing = now.doing;
	run->closed_ms = run->now_ms;
	run->txn = NULL;
	run->crashed = true;
}

/* The engine is what a flash of another time makes of it. */
static void look_at_something(struct model_run *run)
{
	struct findings findings = { .take = pass_over };
	struct engine_check check = { .findings = &findings, .versions = true };

	engine_check(run->engine, &check);
}

/* As model_store.open. What is refused is opened without, and the process ends. */
static struct engine *open_as_it_is(struct model_run *run)
{
	struct sim_world *world = sim_world_of(run);
	struct error_text error = { "" };
	uint64_t writes = writes_so_far(world);

	if (fate == DAMAGED)
		damage(world);
	else if (fate == LOST)
		lose(world);
	else
		put_older_back(world);
	if (engine_open(run->store.context, &run->options, &run->engine, &error)) {
		bool is_named = strstr(error.text, "NVRAM");

		if (!is_named && fate == OLDER && writes != older.writes)
			_exit(UNNOTICED);
		if (!is_named)
			fail_msg("the NVRAM is not named: %s", error.text);
		if (fate == LOST && !strstr(error.text, "recover_without_nvram"))
			fail_msg("what to do is not named: %s", error.text);
		open_without(world);
		_exit(REFUSED);
	}
	if (fate == LOST)
		fail_msg("it opens although the NVRAM is lost");
	run->engine->past->pieces_put_again = MODEL_PIECES_PUT_AGAIN;
	if (fate == OLDER && writes != older.writes) {
		look_at_something(run);
		_exit(UNNOTICED);
	}
	if (fate == OLDER)
		go_back(run);
	return run->engine;
}

/* In a process of its own. */
static void start(struct sim_world *world, bool killed)
{
	struct model_run *run = &world->run;

	note_what_is_there(world);
	run->store.open = open_as_it_is;
	model_run_restart(run, killed);
	model_run_look(run);
	_exit(0);
}

static void try_to_start(struct sim_world *world)
{
	bool killed = one_in(&world->run, 2);
	int status = 0;
	pid_t child;

	model_run_see(&world->run);
	fflush(NULL);
	child = fork();
	if (child == 0)
		start(world, killed);
	assert_true(child > 0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != REFUSED &&
				   WEXITSTATUS(status) != UNNOTICED))
		fail_msg("with the NVRAM file %s, of a target that was %s, opening neither "
			 "refused nor found what was there (status %x)",
			 fates[fate], killed ? "killed" : "closed", status);
	world->report->counts.nvram_refused += WEXITSTATUS(status) == REFUSED;
	world->report->counts.nvram_whole += WEXITSTATUS(status) == 0;
	world->report->counts.nvram_older += WEXITSTATUS(status) == 0 && fate == OLDER;
	world->report->counts.nvram_unnoticed += WEXITSTATUS(status) == UNNOTICED;
}

void sim_nvram_turn(struct sim_world *world)
{
	static const enum fate drawn[] = { DAMAGED, DAMAGED, DAMAGED, LOST, OLDER, OLDER };

	if (one_in(&world->run, STEPS_TO_A_COPY))
		keep_copy(world);
	if (!one_in(&world->run, world->profile->troubles.nvram))
		return;
	fate = drawn[model_run_below(&world->run, sizeof(drawn) / sizeof(drawn[0]))];
	if (fate == OLDER && !older.nvram)
		fate = LOST;
	try_to_start(world);
}
