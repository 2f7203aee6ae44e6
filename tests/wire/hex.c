/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Reads hex dumps, and the worked examples of the protocol. */
#include "tests/wire/hex.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint8_t digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	assert(at);
	return (uint8_t)(at - digits);
}

static size_t pairs_of_line(const char *line, const char *end, uint8_t *bytes, size_t capacity)
{
	size_t count = 0;

	while (line < end) {
		if (*line == ' ') {
			line++;
			continue;
		}
		assert(count < capacity);
		bytes[count++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
		line += 2;
	}
	return count;
}

size_t hex_pairs(const char *pairs, uint8_t *bytes, size_t capacity)
{
	return pairs_of_line(pairs, pairs + strlen(pairs), bytes, capacity);
}

size_t hex_rows(const char *dump, uint8_t *bytes, size_t capacity)
{
	size_t furthest = 0;

	while (*dump) {
		const char *end = strchr(dump, '\n');
		char *text;
		size_t offset = strtoul(dump, &text, 16);
		size_t count;

		assert(end && offset <= capacity);
		count = pairs_of_line(text, end, bytes + offset, capacity - offset);
		if (offset + count > furthest)
			furthest = offset + count;
		dump = end + 1;
	}
	return furthest;
}

void hex_cdb(const char *dump, uint8_t cdb[236])
{
	memset(cdb, 0, 236);
	hex_rows(LINUX_FORMAT_OSD, cdb, 236);
	hex_rows(dump, cdb, 236);
}
