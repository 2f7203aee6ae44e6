/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Runs changed copies of a target's kept inputs, one after the other, as fast as they go. It learns
 * nothing from them, unlike libFuzzer, and is many times as fast: for counts, not for new paths.
 * Input N of a seed is the same on every machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "tests/fuzz/fuzz.h"

#define KEPT_MAX         8192
#define INPUT_BYTES_MAX  4096
#define CHANGES_MAX      12
#define RUNS_PER_LOOK    256 /* at the clock */
#define HANG_SECONDS     20
#define BYTES_OF_ANOTHER 64

struct kept {
	uint8_t *data;
	size_t size;
};

static struct kept kept[KEPT_MAX];
static unsigned kept_count;

/* What the handlers of signals need to know. */
static const struct fuzz_target *target;
static uint64_t seed = 1, number, number_before;
static uint8_t input[INPUT_BYTES_MAX];
static size_t input_size;
static const char *found_folder = "build/fuzz/found";

static const struct fuzz_target *const targets[] = { &fuzz_osd,    &fuzz_disk,  &fuzz_wire,
						     &fuzz_client, &fuzz_flash, &fuzz_pdu };

/* ---- kept inputs ---- */

static void keep(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t data[INPUT_BYTES_MAX];
	struct kept *to = &kept[kept_count];

	if (!file || kept_count == KEPT_MAX) {
		fprintf(stderr, "%s: %s\n", path, file ? "too many inputs" : strerror(errno));
		exit(2);
	}
	to->size = fread(data, 1, sizeof(data), file);
	fclose(file);
	to->data = fuzz_exact(to->size, 0);
	memcpy(to->data, data, to->size);
	kept_count++;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* In the order of their names, so that an input has the same number everywhere. */
static void keep_folder(const char *kind)
{
	char folder[256], path[768];
	struct dirent **entries;
	int count;

	snprintf(folder, sizeof(folder), "tests/fuzz/%s/%s", kind, target->name);
	count = scandir(folder, &entries, is_visible, alphasort);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		keep(path);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

/* ---- changes ---- */

static size_t place_of(struct fuzz_random *random)
{
	return input_size ? fuzz_below(random, (uint32_t)input_size) : 0;
}

/* A piece of another input, over what is there or behind it. */
static void take_from_another(struct fuzz_random *random)
{
	const struct kept *from = &kept[fuzz_below(random, kept_count)];
	size_t begin = from->size ? fuzz_below(random, (uint32_t)from->size) : 0;
	size_t bytes = min_u64(from->size - begin, 1 + fuzz_below(random, BYTES_OF_ANOTHER));
	size_t at = fuzz_below(random, 2) ? input_size : place_of(random);

	bytes = min_u64(bytes, INPUT_BYTES_MAX - at);
	memcpy(input + at, from->data + begin, bytes);
	input_size = max_u64(input_size, at + bytes);
}

static void drop(struct fuzz_random *random)
{
	size_t at = place_of(random), bytes = 1 + fuzz_below(random, 16);

	bytes = min_u64(bytes, input_size - at);
	memmove(input + at, input + at + bytes, input_size - at - bytes);
	input_size -= bytes;
}

static void insert(struct fuzz_random *random)
{
	size_t at = place_of(random), bytes = 1 + fuzz_below(random, 16);

	bytes = min_u64(bytes, INPUT_BYTES_MAX - input_size);
	memmove(input + at + bytes, input + at, input_size - at);
	for (size_t i = 0; i < bytes; i++)
		input[at + i] = (uint8_t)fuzz_below(random, 256);
	input_size += bytes;
}

static void change(struct fuzz_random *random)
{
	static const uint8_t telling[] = { 0, 1, 4, 0x7f, 0x80, 0xfc, 0xff };
	size_t at = place_of(random);

	switch (fuzz_below(random, 8)) {
	case 0:
		input[at] ^= (uint8_t)(1 << fuzz_below(random, 8));
		break;
	case 1:
		input[at] = telling[fuzz_below(random, sizeof(telling))];
		break;
	case 2:
	case 3:
		input[at] = (uint8_t)fuzz_below(random, 256);
		break;
	case 4:
		drop(random);
		break;
	case 5:
		insert(random);
		break;
	default:
		take_from_another(random);
		break;
	}
}

static void make_input(void)
{
	struct fuzz_random random = { (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) ^
				      (number + 1) * UINT64_C(0xD1B54A32D192ED03) };
	const struct kept *from;

	random.state |= random.state == 0;
	from = &kept[fuzz_below(&random, kept_count)];
	input_size = from->size;
	memcpy(input, from->data, input_size);
	for (uint32_t left = 1 + fuzz_below(&random, CHANGES_MAX); left > 0; left--)
		change(&random);
}

/* ---- what is found ---- */

/* Only calls that are safe in a handler of signals, but for snprintf of numbers and names. */
static void write_found(const char *what)
{
	char path[512], text[1024];
	int file, bytes;

	snprintf(path, sizeof(path), "%s/%s/many-%" PRIu64 "-%" PRIu64, found_folder, target->name,
		 seed, number);
	file = creat(path, 0644);
	if (file < 0 || write(file, input, input_size) != (ssize_t)input_size)
		path[0] = 0;
	bytes = snprintf(text, sizeof(text),
			 "%s in input %" PRIu64 " of seed %" PRIu64
			 ": %s\nrepeat it by: fuzz-many --seed %" PRIu64 " --first %" PRIu64
			 " --executions 1 %s\n",
			 what, number, seed, path[0] ? path : "could not be written", seed, number,
			 target->name);
	if (write(STDERR_FILENO, text, (size_t)bytes) < 0)
		_exit(3);
}

static void died(int signal)
{
	write_found(signal == SIGABRT ? "aborted" : "crashed");
	_exit(1);
}

static void look_for_a_hang(int signal)
{
	(void)signal;
	if (number == number_before) {
		write_found("hangs");
		_exit(1);
	}
	number_before = number;
}

/* Its reports end in SIGABRT too. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "abort_on_error=1:malloc_context_size=2:quarantine_size_mb=4:"
	       "detect_stack_use_after_return=0";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
	return "abort_on_error=1";
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(signal, &action, NULL);
}

static void watch(void)
{
	struct itimerval every = { { HANG_SECONDS, 0 }, { HANG_SECONDS, 0 } };

	handle(SIGABRT, died);
	handle(SIGSEGV, died);
	handle(SIGBUS, died);
	handle(SIGFPE, died);
	number_before = UINT64_MAX;
	handle(SIGALRM, look_for_a_hang);
	setitimer(ITIMER_REAL, &every, NULL);
}

/* ---- the run ---- */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void run(uint64_t executions, double seconds)
{
	double begun = now();
	uint64_t first = number;
	uint8_t *exact;

	for (; number - first < executions; number++) {
		if ((number - first) % RUNS_PER_LOOK == 0 && seconds > 0 && now() - begun > seconds)
			break;
		make_input();
		/* Of exactly its size, so that the address sanitizer sees every byte too far. */
		exact = fuzz_exact(input_size, 0);
		memcpy(exact, input, input_size);
		target->run(exact, input_size);
		free(exact);
	}
	printf("%s: seed %" PRIu64 ", inputs %" PRIu64 " to %" PRIu64 " in %.0f s\n", target->name,
	       seed, first, number - 1, now() - begun);
	printf("stat::number_of_executed_units: %" PRIu64 "\n", number - first);
	if (target->commands)
		printf("stat::number_of_executed_commands: %" PRIu64 "\n", target->commands());
	if (target->mutated)
		printf("stat::number_of_mutated_commands: %" PRIu64 "\n", target->mutated());
}

static void usage(FILE *to)
{
	fputs("fuzz-many [--seed N] [--first N] [--executions N] [--seconds N] TARGET\n"
	      "runs changed copies of tests/fuzz/corpus/TARGET and found/TARGET; TARGET: osd, "
	      "disk,\n"
	      "wire, client, flash, pdu. Without --executions and --seconds: a million "
	      "executions.\n",
	      to);
}

static const struct fuzz_target *find_target(const char *name)
{
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (!strcmp(targets[i]->name, name))
			return targets[i];
	return NULL;
}

static void make_folders(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", found_folder, target->name);
	for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		mkdir(path, 0755);
		*at = '/';
	}
	mkdir(path, 0755);
}

int main(int count, char **arguments)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "first", required_argument, NULL, 'f' },
		{ "executions", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t executions = 0;
	double seconds = 0;
	int option;

	while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'f':
			number = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			executions = strtoull(optarg, NULL, 0);
			break;
		case 't':
			seconds = strtod(optarg, NULL);
			break;
		default:
			usage(option == 'h' ? stdout : stderr);
			return option == 'h' ? 0 : 2;
		}
	}
	target = optind + 1 == count ? find_target(arguments[optind]) : NULL;
	if (!target) {
		usage(stderr);
		return 2;
	}
	keep_folder("corpus");
	keep_folder("found");
	if (!kept_count) {
		fprintf(stderr, "tests/fuzz/corpus/%s: no inputs; run it from the repository\n",
			target->name);
		return 2;
	}
	make_folders();
	watch();
	run(executions ? executions : seconds > 0 ? UINT64_MAX : 1000000, seconds);
	return 0;
}
