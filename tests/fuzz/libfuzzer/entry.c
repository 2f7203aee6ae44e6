/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What libFuzzer calls: one program for each target, which FUZZ_TARGET names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#ifndef FUZZ_TARGET
#define FUZZ_TARGET fuzz_wire
#endif

/* libFuzzer's, and what it looks for here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
				 uint8_t *to, size_t capacity, unsigned seed);

/* Beside libFuzzer's own statistics, for tests/fuzz/run. */
static void print_commands(void)
{
	fprintf(stderr, "stat::number_of_executed_commands: %" PRIu64 "\n", FUZZ_TARGET.commands());
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	(void)count;
	(void)arguments;
	return FUZZ_TARGET.commands ? atexit(print_commands) : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FUZZ_TARGET.run(data, size);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)
{
	if (!FUZZ_TARGET.mutate)
		return LLVMFuzzerMutate(data, size, capacity);
	return FUZZ_TARGET.mutate(data, size, capacity, seed, LLVMFuzzerMutate);
}

/*
 * Inputs are short-lived: short histories of allocations will do, and save half of the time. What
 * the engine takes at once is marked by writing, not by new memory, which costs a fault a page.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "malloc_context_size=2:quarantine_size_mb=4:detect_stack_use_after_return=0:"
	       "clear_shadow_mmap_threshold=16777216";
}

/* Without a format of its own: the beginning of one and the end of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
				 uint8_t *to, size_t capacity, unsigned seed)
{
	size_t head, tail;

	if (FUZZ_TARGET.cross)
		return FUZZ_TARGET.cross(a, a_size, b, b_size, to, capacity, seed);
	head = a_size > 0 ? seed % (a_size + 1) : 0;
	tail = b_size > 0 ? (seed >> 8) % (b_size + 1) : 0;
	if (head > capacity)
		head = capacity;
	if (tail > capacity - head)
		tail = capacity - head;
	if (head > 0)
		memcpy(to, a, head);
	if (tail > 0)
		memcpy(to + head, b + b_size - tail, tail);
	return head + tail;
}
