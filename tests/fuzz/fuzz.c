/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What all fuzz targets share: taking an input apart, random numbers, and failing. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

const char *fuzz_input_name;

void fuzz_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: does not hold: %s%s%s\n", file, line, what,
		fuzz_input_name ? "; input " : "", fuzz_input_name ? fuzz_input_name : "");
	abort();
}

uint8_t *fuzz_exact(size_t size, uint8_t fill)
{
	uint8_t *bytes = malloc(size > 0 ? size : 1);

	if (!bytes) {
		fputs("no memory for the buffers of an input\n", stderr);
		abort();
	}
	memset(bytes, fill, size > 0 ? size : 1);
	return bytes;
}

void fuzz_touch(const uint8_t *data, size_t size)
{
	volatile uint8_t sum = 0;

	if (size > 0)
		sum = (uint8_t)(sum + data[0] + data[size / 2] + data[size - 1]);
}

/* ---- taking an input apart ---- */

const uint8_t *fuzz_take(struct fuzz_reader *reader, size_t size, size_t *taken)
{
	const uint8_t *bytes = reader->data;

	*taken = min_u64(size, reader->left);
	reader->data += *taken;
	reader->left -= *taken;
	return bytes;
}

uint32_t fuzz_take32(struct fuzz_reader *reader)
{
	uint8_t bytes[4] = { 0 };
	size_t taken;
	const uint8_t *from = fuzz_take(reader, sizeof(bytes), &taken);

	if (taken > 0)
		memcpy(bytes, from, taken);
	return get_be32(bytes);
}

uint16_t fuzz_take16(struct fuzz_reader *reader)
{
	uint16_t high = fuzz_take8(reader);

	return (uint16_t)(high << 8 | fuzz_take8(reader));
}

uint8_t fuzz_take8(struct fuzz_reader *reader)
{
	size_t taken;
	const uint8_t *from = fuzz_take(reader, 1, &taken);

	return taken ? *from : 0;
}

/* ---- random numbers ---- */

void fuzz_random_begin(struct fuzz_random *random, unsigned seed)
{
	random->state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

uint32_t fuzz_below(struct fuzz_random *random, uint32_t bound)
{
	/* xorshift64* */
	random->state ^= random->state >> 12;
	random->state ^= random->state << 25;
	random->state ^= random->state >> 27;
	return (uint32_t)(random->state * UINT64_C(2685821657736338717) >> 32) % bound;
}
