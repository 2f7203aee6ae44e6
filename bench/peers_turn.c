/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The phases of a store, each in a process of its own, and what they count. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/distribution.h"
#include "bench/memory_limit.h"
#include "bench/peers_bench.h"
#include "bench/record_codec.h"
#include "bench/turns.h"
#include "common/bytes.h"

enum {
	/* Look-ups that are not counted, for indexes that are read when they are needed. */
	WARMING_MIN = 500,
	WARMING_SHARE = 8, /* of the look-ups, one in so many */
};

/* ---- keys and values ---- */

static uint64_t key_of(const struct peers_run *run, uint64_t pair)
{
	return random_mix(pair + random_mix(run->seed));
}

static uint32_t value_bytes(const struct peers_run *run, uint64_t key)
{
	uint32_t least = run->workload->value_min, most = run->workload->value_max;

	return least + (uint32_t)(random_mix(key ^ RANDOM_STEP) % (most - least + 1));
}

static uint32_t make_value(const struct peers_run *run, uint64_t key, uint32_t puts, uint8_t *value)
{
	const struct record_key name = { .identifier = key };
	uint32_t bytes = value_bytes(run, key);

	record_value_make(&name, puts, value, bytes);
	return bytes;
}

uint64_t peers_data_bytes(const struct peers_run *run)
{
	uint64_t bytes = 0;

	for (uint64_t pair = 0; pair < run->pairs; pair++)
		bytes += PEER_KEY_BYTES + value_bytes(run, key_of(run, pair));
	return bytes;
}

int peers_run_begin(struct peers_run *run, struct error_text *error)
{
	void *at = mmap(NULL, run->pairs * sizeof(*run->puts), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return error_set(error, -ENOMEM, "out of memory for %llu pairs",
				 (unsigned long long)run->pairs);
	run->puts = at;
	return 0;
}

void peers_run_end(struct peers_run *run)
{
	if (run->puts)
		munmap(run->puts, run->pairs * sizeof(*run->puts));
	run->puts = NULL;
}

/* ---- a phase ---- */

/* What a phase's process works with, and what it leaves to us. */
struct phase {
	const struct peers_run *run;
	const struct peer_type *type;
	const char *folder;
	enum peers_phase phase;
	struct peer_options options;
	void *peer;
	struct peers_result *result;
	struct error_text *error;
};

static int put(struct phase *phase, uint64_t pair)
{
	const struct peers_run *run = phase->run;
	uint64_t key = key_of(run, pair);
	uint8_t value[PEERS_VALUE_MAX];
	uint32_t bytes = make_value(run, key, run->puts[pair] + 1, value);
	int result = phase->type->put(phase->peer, key, value, bytes, phase->error);

	run->puts[pair] += result == 0;
	phase->result->bytes += PEER_KEY_BYTES + bytes;
	return result;
}

/* Checks what is found; any thread. */
static int look_up(const struct phase *phase, uint64_t pair, struct error_text *error)
{
	const struct peers_run *run = phase->run;
	uint8_t value[PEERS_VALUE_MAX], wanted[PEERS_VALUE_MAX];
	uint64_t key = key_of(run, pair);
	uint32_t bytes = 0, wanted_bytes;
	int result = phase->type->get(phase->peer, key, value, sizeof(value), &bytes, error);

	if (pair >= run->pairs)
		return result == -ENOENT ? 0
		       : result          ? result
				: error_set(error, -EILSEQ, "%s found a key that was never put",
					    phase->type->name);
	if (result == -ENOENT)
		return error_set(error, -EILSEQ, "%s has lost pair %llu", phase->type->name,
				 (unsigned long long)pair);
	if (result)
		return result;
	wanted_bytes = make_value(run, key, run->puts[pair], wanted);
	if (bytes == wanted_bytes && memcmp(value, wanted, bytes) == 0)
		return 0;
	return error_set(error, -EILSEQ, "%s gave another value for pair %llu than was put",
			 phase->type->name, (unsigned long long)pair);
}

static void begin_counting(struct phase *phase, struct bench_drive *before, double *begin)
{
	struct peers_result *result = phase->result;

	result->has_drive = bench_drive_count(phase->folder, before) == 0;
	result->page_reads = phase->type->page_reads ? phase->type->page_reads(phase->peer) : 0;
	*begin = bench_seconds();
}

static void end_counting(struct phase *phase, const struct bench_drive *before, double begin)
{
	struct peers_result *result = phase->result;
	struct bench_drive after;

	result->seconds = bench_seconds() - begin;
	if (phase->type->page_reads)
		result->page_reads = phase->type->page_reads(phase->peer) - result->page_reads;
	result->has_drive = result->has_drive && bench_drive_count(phase->folder, &after) == 0;
	if (result->has_drive)
		result->drive = bench_drive_between(before, &after);
}

/* ---- puts ---- */

/* Until all of them are on the drive, of which the kernel may not know yet. */
static int settle(struct phase *phase)
{
	int fd, result = phase->type->settle(phase->peer, phase->error);

	if (result)
		return result;
	fd = open(phase->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || syncfs(fd) < 0)
		result = error_set(phase->error, -errno, "%s: %s", phase->folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	return result;
}

static int put_all(struct phase *phase)
{
	const struct peers_run *run = phase->run;
	const struct sampler_options options = { .pairs = run->pairs,
						 .seed = run->seed,
						 .pareto_shape = PARETO_SHAPE_DEFAULT,
						 .zipfian_theta = ZIPFIAN_THETA_DEFAULT };
	bool load = phase->phase == PEERS_LOAD;
	struct random_state random = random_stream(run->seed, PEERS_UPDATE);
	struct bench_drive before = { 0 };
	struct sampler sampler;
	double begin;
	int result = 0;

	sampler_begin(&sampler, DISTRIBUTION_PARETO, &options);
	phase->result->operations = load ? run->pairs : run->updates;
	begin_counting(phase, &before, &begin);
	for (uint64_t n = 0; !result && n < phase->result->operations; n++)
		result = put(phase, load ? n : sampler_pair(&sampler, &random, n));
	phase->result->seconds_to_put = bench_seconds() - begin;
	if (!result)
		result = settle(phase);
	end_counting(phase, &before, begin);
	return result;
}

/* ---- look-ups ---- */

/* Numbers `next` to `end` of a random order, on several threads. */
struct lookups {
	struct phase *phase;
	struct permutation order;
	uint64_t end;
	atomic_uint_fast64_t next;
	atomic_int result;
	pthread_mutex_t lock; /* of the sentence */
};

static void *look_up_many(void *context)
{
	struct lookups *lookups = context;
	const struct peers_run *run = lookups->phase->run;
	bool absent = lookups->phase->phase == PEERS_ABSENT;
	struct error_text error = { "" };
	uint64_t n;

	while (!lookups->result && (n = lookups->next++) < lookups->end) {
		uint64_t pair = permutation_at(&lookups->order, n % run->pairs);
		int result = look_up(lookups->phase, absent ? run->pairs + n : pair, &error);

		if (!result)
			continue;
		pthread_mutex_lock(&lookups->lock);
		if (!lookups->result)
			*lookups->phase->error = error;
		lookups->result = result;
		pthread_mutex_unlock(&lookups->lock);
	}
	return NULL;
}

static int look_up_on_threads(struct lookups *lookups, uint32_t count)
{
	pthread_t threads[PEERS_THREADS_MAX];
	uint32_t started = 0;
	int result = 0;

	if (count == 1) {
		look_up_many(lookups);
		return lookups->result;
	}
	while (!result && started < count) {
		result = -pthread_create(&threads[started], NULL, look_up_many, lookups);
		started += !result;
	}
	while (started)
		pthread_join(threads[--started], NULL);
	if (result)
		return error_set(lookups->phase->error, result, "no thread can be started: %s",
				 strerror(-result));
	return lookups->result;
}

static int look_up_all(struct phase *phase)
{
	const struct peers_run *run = phase->run;
	bool deep = phase->phase == PEERS_PRESENT_DEEP;
	uint64_t warming = max_u64(run->lookups / WARMING_SHARE, WARMING_MIN);
	struct lookups lookups = {
		.phase = phase,
		.order = permutation_make(run->pairs, random_mix(run->seed + phase->phase)),
		.end = warming,
	};
	struct bench_drive before = { 0 };
	double begin;
	int result;

	pthread_mutex_init(&lookups.lock, NULL);
	result = look_up_on_threads(&lookups, 1);
	if (!result) {
		lookups.next = warming;
		lookups.end = warming + run->lookups;
		phase->result->operations = run->lookups;
		begin_counting(phase, &before, &begin);
		result = look_up_on_threads(&lookups, deep ? run->threads : 1);
		end_counting(phase, &before, begin);
	}
	pthread_mutex_destroy(&lookups.lock);
	return result;
}

/* ---- processes ---- */

/* Memory of the process that is its own. */
static uint64_t own_memory(void)
{
	unsigned long long kib = 0;
	char line[256];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib << 10;
}

static int do_phase(struct phase *phase)
{
	bool puts = phase->phase == PEERS_LOAD || phase->phase == PEERS_UPDATE;
	uint64_t before = own_memory(), after;
	struct error_text later = { "" };
	int result = phase->type->open(&phase->options, &phase->peer, phase->error), closed;

	if (result)
		return result;
	result = puts ? put_all(phase) : look_up_all(phase);
	after = own_memory();
	phase->result->memory_bytes = after > before ? after - before : 0;
	/* After an error threads of a store may still be at it. */
	phase->result->has_index =
		!result && phase->type->index_bytes &&
		phase->type->index_bytes(phase->peer, &phase->result->index_bytes);
	closed = phase->type->close(phase->peer, &later);
	if (!result && closed)
		*phase->error = later;
	return result ? result : closed;
}

/* In the new process, which ends with the one that started it. */
static int do_phase_within(struct phase *phase, const struct bench_memory_limit *limit)
{
	int result = prctl(PR_SET_PDEATHSIG, SIGKILL) ? -errno : bench_memory_limit_enter(limit);

	return result ? error_set(phase->error, result, "%s: %s", limit->group, strerror(-result))
		      : do_phase(phase);
}

/* Whatever it does there leaves nothing in this process. */
static int in_a_process(struct phase *phase, const struct bench_memory_limit *limit)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(do_phase_within(phase, limit) ? EXIT_FAILURE : EXIT_SUCCESS);
	if (pid < 0)
		return error_set(phase->error, -errno, "no process can be started: %s",
				 strerror(errno));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		return error_set(phase->error, -EIO, "%s died of signal %d (%s)", phase->type->name,
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status) == EXIT_SUCCESS ? 0 : -EIO;
}

/* ---- files ---- */

typedef int file_function(const char *path, void *context);

static int for_each_file(const char *folder, file_function *function, void *context)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	char path[PATH_MAX];
	int result = 0;

	if (!directory)
		return -errno;
	while (!result && (entry = readdir(directory))) {
		if (entry->d_type != DT_REG)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		result = function(path, context);
	}
	closedir(directory);
	return result;
}

static int forget(const char *path, void *context)
{
	(void)context;
	return bench_drive_forget(path);
}

static int add_space(const char *path, void *context)
{
	uint64_t *space = context;
	struct stat status;

	if (stat(path, &status) < 0)
		return -errno;
	*space += (uint64_t)status.st_blocks * 512;
	return 0;
}

/* ---- a turn ---- */

/* Shared with the phases' processes. */
struct shared {
	struct peers_result results[PEERS_PHASES];
	struct error_text error;
};

static int do_phases(struct phase *phase, struct shared *shared, uint64_t *space)
{
	struct bench_memory_limit limit = { "" };
	int result = 0;

	*space = 0;
	for (int n = 0; !result && n < PEERS_PHASES; n++) {
		phase->phase = (enum peers_phase)n;
		phase->options.create = n == PEERS_LOAD;
		phase->result = &shared->results[n];
		result = for_each_file(phase->folder, forget, NULL);
		if (result)
			return error_set(phase->error, result, "%s: %s", phase->folder,
					 strerror(-result));
		if (phase->run->memory_bytes)
			result = bench_memory_limit_begin(&limit, phase->run->memory_bytes,
							  phase->error);
		result = result ? result : in_a_process(phase, &limit);
		bench_memory_limit_end(&limit);
		if (n == PEERS_LOAD)
			for_each_file(phase->folder, add_space, space);
	}
	return result;
}

int peers_turn(const struct peers_run *run, const struct peer_type *type, const char *folder,
	       struct peers_result results[PEERS_PHASES], uint64_t *space, struct error_text *error)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t data = peers_data_bytes(run);
	struct phase phase = {
		.run = run,
		.type = type,
		.folder = folder,
		.options = { .folder = folder,
			     .cache_bytes = run->cache_bytes,
			     .buffer_bytes = run->buffer_bytes,
			     .data_bytes = data,
			     .spare_bytes = data / run->pairs * run->updates,
			     .mixed = run->workload->value_min < run->workload->value_max,
			     .index = (int)run->index,
			     .value_bytes = (uint32_t)(data / run->pairs) - PEER_KEY_BYTES },
	};
	int result;

	if (shared == MAP_FAILED)
		return error_set(error, -ENOMEM, "out of memory");
	phase.error = &shared->error;
	memset(run->puts, 0, run->pairs * sizeof(*run->puts));
	result = do_phases(&phase, shared, space);
	memcpy(results, shared->results, sizeof(shared->results));
	if (result)
		*error = shared->error;
	munmap(shared, sizeof(*shared));
	return result;
}
