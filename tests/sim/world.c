/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A run: the device, the target on it, and the process that it is in. */
#include "tests/sim/world.h"
#include "tests/engine/index_under_test.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "engine/history/past.h"
#include "engine/muninn/store.h"
#include "engine/objects/objects.h"

/* A run that takes longer hangs. */
#define CPU_SECONDS_MAX 600

#define HEAP_KEEPS (1 << 30)

/* Attribute pages of partitions, where keys and methods are. */
#define FIRST_PARTITION_PAGE 0x30000000u

/* There is one in a process. */
static struct sim_world world;

void sim_say(struct sim_world *of, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(of->report->what, sizeof(of->report->what), format, arguments);
	va_end(arguments);
	if (of->verbose)
		printf("  %llu: %s\n", (unsigned long long)of->run.step, of->report->what);
}

/* ---- the record store, with something in between ---- */

static int put_beside_sealers(struct record_store *store, const struct record_key *key,
			      uint64_t epoch, unsigned flags, const void *value, uint32_t length,
			      enum record_room room)
{
	if (world.profile->sealers)
		sealers_act(&world.sealers, store, true);
	sim_merging_act(&world, true);
	return world.original->put(store, key, epoch, flags, value, length, room);
}

static void note_commit(struct record_store *store)
{
	if (!world.committed)
		world.committed = ((const struct muninn_store *)(const void *)store)->sequence;
	world.original->commit(store);
}

int __real_engine_begin(struct engine *engine, enum engine_mode mode, struct engine_txn **txn);
int __wrap_engine_begin(struct engine *engine, enum engine_mode mode, struct engine_txn **txn);

/*
 * What the engine commits for itself comes before, or behind the transaction's end. So the first
 * number that is committed from here on is the transaction's.
 */
int __wrap_engine_begin(struct engine *engine, enum engine_mode mode, struct engine_txn **txn)
{
	int result;

	model_power_beginning(&world.run);
	result = __real_engine_begin(engine, mode, txn);
	world.committed = 0;
	model_power_begun(&world.run);
	return result;
}

static void attach(struct model_run *run, struct record_store *store)
{
	(void)run;
	world.original = store->operations;
	world.operations = *store->operations;
	world.operations.put = put_beside_sealers;
	world.operations.commit = note_commit;
	store->operations = &world.operations;
}

/* ---- opening and ending ---- */

static void open_target(struct model_run *run)
{
	static const uint8_t uuid[16] = { 1 };
	int result = osd_device_create(run->engine, uuid,
				       world.profile->secured ? &sim_security_options : NULL,
				       &world.device);

	if (result) {
		world.device = NULL;
		assert_true(run->power && model_power_is_off(run->power));
		return;
	}
	sim_clients_begin(&world);
}

static struct engine *open_flash(struct model_run *run)
{
	run->engine = model_flash_open(run, attach);
	if (run->engine)
		open_target(run);
	if (run->engine)
		sim_merging_begin(&world);
	return run->engine;
}

static struct engine *open_memory(struct model_run *run)
{
	assert_int_equal(
		engine_open_on(memory_store_open(world.memory), &run->options, &run->engine, NULL),
		0);
	run->engine->past->pieces_put_again = MODEL_PIECES_PUT_AGAIN;
	return run->engine;
}

static void disturb_memory(struct model_run *run)
{
	memory_store_fail_put(world.memory, (int64_t)model_run_below(run, 40));
}

static void calm_memory(struct model_run *run)
{
	(void)run;
	memory_store_fail_put(world.memory, -1);
}

static void leave(struct model_run *run)
{
	(void)run;
	sealers_forget(&world.sealers);
	merging_end(&world.merging);
	if (world.device)
		osd_device_destroy(world.device);
	world.device = NULL;
}

static void between(struct model_run *run)
{
	world.sealers.random = model_run_below(run, UINT64_MAX);
	if (world.profile->sealers)
		sealers_act(&world.sealers, run->engine->store, false);
	sim_merging_act(&world, false);
	model_power_notice(run);
	sim_troubles_turn(&world);
}

/* ---- a run ---- */

static void make_memory(uint64_t seed)
{
	world.memory = memory_store_create(seed % 4 ? 512 : 4096);
	memory_store_absorb(world.memory, seed % 3);
	world.run.store = (struct model_store){ .open = open_memory,
						.disturb = disturb_memory,
						.calm = calm_memory };
	world.run.options =
		(struct engine_options){ .onode_cache_entries = 1, .directory_cache_nodes = 1 };
}

/*
 * Small segments are merged more often. Caches that keep much hide what is on flash, but show what
 * they should have forgotten.
 */
static void draw_shape(struct engine_options *options, uint64_t seed)
{
	if (seed % 4)
		options->muninn.segment_pages = 16;
	if (seed % 3 == 0)
		options->onode_cache_entries = options->directory_cache_nodes = 64;
}

static void make_flash(const struct model_flash *flash, uint64_t seed)
{
	static const uint8_t first_boot[16];
	struct model_run *run = &world.run;

	run->store = (struct model_store){
		.open = open_flash,
		.leave = leave,
		.other = sim_clients_turn,
		.between = between,
	};
	run->options = model_flash_options;
	draw_shape(&run->options, seed);
	run->options.muninn.index = index_under_test();
	run->options.merge_manual = flash->merge_manual;
	run->options.records.boot_id = first_boot;
	run->policies = run->lossy = true;
	run->restless = flash->restless;
	if (world.profile->secured)
		run->pages = FIRST_PARTITION_PAGE;
	/* Which commands note accesses, test_timestamps.c knows. */
	run->times_free = flash->restless || run->weights->others;
	world.nand = model_flash_make(flash, &run->options);
	run->store.context = world.nand;
	if (flash->power_fails) {
		run->power = model_power_create(world.nand);
		run->options.records.boot_id = model_power_boot(run->power);
	}
	sim_troubles_begin(&world, seed);
}

static void make(const struct sim_plan *plan, struct sim_report *report)
{
	memset(&world, 0, sizeof(world));
	world.profile = plan->profile;
	world.report = report;
	world.verbose = plan->verbose;
	world.run.weights = &plan->profile->weights;
	if (plan->profile->flash.blocks)
		make_flash(&plan->profile->flash, plan->seed);
	else
		make_memory(plan->seed);
}

static void count_cuts(struct sim_counts *counts)
{
	const struct model_cuts *cuts;

	if (!world.run.power)
		return;
	cuts = model_power_cuts(world.run.power);
	counts->cuts_in_program = cuts->in_flight.programs;
	counts->cuts_in_erase = cuts->in_flight.erases;
	counts->cuts_in_sync = cuts->in_flight.syncs;
	counts->cuts_in_read = cuts->in_flight.reads;
	counts->cuts_in_point = cuts->in_flight.points;
	counts->cuts_kept = cuts->fates[NAND_CUT_NVRAM_KEPT];
	counts->cuts_flushed = cuts->fates[NAND_CUT_NVRAM_FLUSHED];
	counts->cuts_mixed = cuts->fates[NAND_CUT_NVRAM_MIXED];
	counts->cuts = counts->cuts_kept + counts->cuts_flushed + counts->cuts_mixed;
}

static void count(void)
{
	const struct model_run *run = &world.run;
	struct sim_counts *counts = &world.report->counts;

	counts->operations = run->operations;
	counts->compared = run->compared;
	counts->commits = run->commits;
	counts->without_room = run->failures;
	counts->restarts = run->crashes;
	counts->formats = run->formats;
	counts->jumps = run->jumps;
	counts->rollbacks = run->rollbacks;
	counts->sealed = world.sealers.sealed;
	counts->merged = world.merging.merged;
	count_cuts(counts);
	sim_troubles_count(&world);
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * UINT64_C(0x100000001b3);
}

/* Of all that was counted, and what the flash was asked to do. */
static void digest(void)
{
	struct sim_report *report = world.report;
	struct nand_counters flash = { 0 };
	uint64_t counts[SIM_COUNTS];

	memcpy(counts, &report->counts, sizeof(counts));
	for (size_t n = 0; n < SIM_COUNTS; n++)
		report->digest = mix(report->digest, counts[n]);
	if (world.nand)
		nand_read_counters(world.nand, &flash);
	for (int cause = 0; cause < NAND_CAUSES; cause++) {
		report->digest = mix(report->digest, flash.by_cause[cause].pages_read);
		report->digest = mix(report->digest, flash.by_cause[cause].pages_programmed);
	}
	assert_int_equal(flash.rule_violations, 0);
}

/* Of the first object that there is. */
static void forge(void)
{
	struct object_model *model = &world.run.model;

	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++) {
		struct model_state *state = &model->partitions[index].now;

		if (!state->count)
			continue;
		object_model_begin(model, 0, 0);
		object_model_change(model, state, state->objects[0]->id)->length++;
		object_model_commit(model);
		return;
	}
}

static void step(const struct sim_plan *plan, uint64_t number)
{
	world.report->step = number;
	if (plan->crashes_at && number == plan->crashes_at)
		raise(SIGSEGV);
	if (plan->forges_at && number >= plan->forges_at)
		forge();
	world.report->counts.steps++;
	model_run_step(&world.run, number);
	count();
}

static void make_steps(const struct sim_plan *plan)
{
	if (plan->kept) {
		for (size_t n = 0; n < plan->kept_count; n++)
			step(plan, plan->kept[n]);
		return;
	}
	for (uint64_t number = 0; world.run.operations < plan->operations; number++)
		step(plan, number);
}

static void run(const struct sim_plan *plan, struct sim_report *report)
{
	make(plan, report);
	model_run_open(&world.run, plan->seed);
	make_steps(plan);
	sim_say(&world, "looking at everything, and closing");
	model_run_close(&world.run);
	count();
	digest();
	report->ended = true;
}

/* ---- the process ---- */

static void discard_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* What is said of a difference goes to `output`, and ends the process. */
static void be_child(const struct sim_plan *plan, struct sim_report *report, int output)
{
	const struct rlimit cpu = { CPU_SECONDS_MAX, CPU_SECONDS_MAX }, no_core = { 0, 0 };

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &no_core);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	/* The model takes and gives back much: let the heap keep it. */
	mallopt(M_MMAP_THRESHOLD, HEAP_KEEPS);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEEPS);
	if (plan->verbose) {
		setvbuf(stdout, NULL, _IOLBF, 0);
	} else {
		dup2(output, STDOUT_FILENO);
		log_configure(discard_line, LOG_LEVEL_ERROR);
	}
	dup2(output, STDERR_FILENO);
	run(plan, report);
	fflush(stdout);
	_exit(0);
}

static void describe_end(int status, char *text, size_t bytes)
{
	size_t length = strlen(text);

	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGABRT)
		snprintf(text + length, bytes - length, "the process ended by signal %d (%s)\n",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WIFEXITED(status) && WEXITSTATUS(status))
		snprintf(text + length, bytes - length, "the process ended with code %d\n",
			 WEXITSTATUS(status));
}

/* The end of what was said, which tells most. */
static void read_end(int output, char *text, size_t bytes)
{
	off_t end = lseek(output, 0, SEEK_END), room = (off_t)bytes - 1;
	ssize_t got = pread(output, text, bytes - 1, end > room ? end - room : 0);

	text[got > 0 ? got : 0] = '\0';
}

static struct sim_report *shared_report(void)
{
	void *at = mmap(NULL, sizeof(struct sim_report), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return at;
}

bool sim_run(const struct sim_plan *plan, struct sim_report *report, char *text, size_t bytes)
{
	struct sim_report *shared = shared_report();
	int output = memfd_create("sim", MFD_CLOEXEC), status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		be_child(plan, shared, output);
	if (output < 0 || child < 0) {
		perror("fork");
		exit(2);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	read_end(output, text, bytes);
	close(output);
	describe_end(status, text, bytes);
	*report = *shared;
	munmap(shared, sizeof(*shared));
	return report->ended && status == 0;
}
