/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a fuzz target is, and what they share. A target runs one input from the beginning: it keeps
 * nothing from one input to the next that could change what the next one does, so that a file
 * reproduces what was found with it.
 */
#ifndef MUNINN_TESTS_FUZZ_FUZZ_H
#define MUNINN_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes `size` of at most `capacity` bytes in place without knowing what they mean; new size. */
typedef size_t fuzz_mutate_bytes(uint8_t *data, size_t size, size_t capacity);

struct fuzz_target {
	const char *name;

	/* Runs one input; returns if nothing is wrong, otherwise ends the process. */
	void (*run)(const uint8_t *data, size_t size);

	/* As fuzz_mutate_bytes, for a target that knows its format; NULL: the engine's own. */
	size_t (*mutate)(uint8_t *data, size_t size, size_t capacity, unsigned seed,
			 fuzz_mutate_bytes *bytes);

	/* Makes a third input of two; NULL: the engine's own. */
	size_t (*cross)(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
			uint8_t *to, size_t capacity, unsigned seed);

	/*
	 * Commands that all inputs of this process have executed; NULL: an input is not made of
	 * commands.
	 */
	uint64_t (*commands)(void);

	/* Those of them that are not as an honest sender's would be; NULL: nobody counts them. */
	uint64_t (*mutated)(void);
};

/* osd_target.c, disk_target.c, wire_target.c, client_target.c, flash_target.c, pdu_target.c */
extern const struct fuzz_target fuzz_osd, fuzz_disk, fuzz_wire, fuzz_client, fuzz_flash, fuzz_pdu;

/* Ends the process with a sentence that names the input, if it came from a file. */
void fuzz_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* What must hold whatever the input is. */
#define fuzz_check(condition)                                      \
	do {                                                       \
		if (!(condition))                                  \
			fuzz_fail(__FILE__, __LINE__, #condition); \
	} while (0)

/* The file that is being run, for messages; NULL: none. */
extern const char *fuzz_input_name;

/* An allocation of exactly `size` bytes (of 1 for 0), filled with `fill`. Never NULL. */
uint8_t *fuzz_exact(size_t size, uint8_t fill);

/* Reads bytes whose values tell the allocator's checker if there are fewer than `size`. */
void fuzz_touch(const uint8_t *data, size_t size);

/* ---- taking an input apart: behind its end there are zeros ---- */

struct fuzz_reader {
	const uint8_t *data;
	size_t left;
};

uint8_t fuzz_take8(struct fuzz_reader *reader);
uint16_t fuzz_take16(struct fuzz_reader *reader);
uint32_t fuzz_take32(struct fuzz_reader *reader);
/* Up to `size` bytes; `*taken` = how many there were. */
const uint8_t *fuzz_take(struct fuzz_reader *reader, size_t size, size_t *taken);

/* ---- random numbers of a mutator ---- */

struct fuzz_random {
	uint64_t state;
};

void fuzz_random_begin(struct fuzz_random *random, unsigned seed);
/* 0..bound - 1; bound > 0 */
uint32_t fuzz_below(struct fuzz_random *random, uint32_t bound);

#endif
