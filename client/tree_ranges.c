/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds where a long file differs from the object that it was stored in. */
#include "client/tree_ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "client/read_fully.h"
#include "common/bytes.h"

enum {
	COMPARED_BYTES = 4096, /* the unit of comparing and writing */
	GAP_BYTES = 65536,     /* ranges with a smaller gap are written as one */
	BUFFER_BYTES = 16 * COMPARED_BYTES,
};

/* A comparison of a file with its object, which arrives meanwhile. */
struct tree_comparison {
	int fd;
	uint64_t position;
	EVP_MD_CTX *hash;
	struct tree_ranges ranges;
	uint8_t buffer[BUFFER_BYTES];
};

static void add_range(struct tree_ranges *ranges, uint64_t begin, uint64_t end)
{
	struct tree_range *last = ranges->count > 0 ? &ranges->list[ranges->count - 1] : NULL;

	if (last && (ranges->count == TREE_RANGES_MAX || begin - last->end < GAP_BYTES))
		last->end = end;
	else
		ranges->list[ranges->count++] = (struct tree_range){ begin, end };
}

/*
 * Notes where `file`, which is at `offset`, differs from `object`; NULL: zeros. Offsets ascend from
 * call to call.
 */
static void compare_part(struct tree_ranges *ranges, uint64_t offset, const uint8_t *file,
			 const uint8_t *object, size_t length)
{
	static const uint8_t zeros[COMPARED_BYTES];

	for (size_t at = 0; at < length; at += COMPARED_BYTES) {
		size_t part = min_u64(length - at, COMPARED_BYTES);

		if (memcmp(file + at, object ? object + at : zeros, part) != 0)
			add_range(ranges, offset + at, offset + at + part);
	}
}

/* `object` NULL: zeros. */
static int compare_next(struct tree_comparison *comparison, const uint8_t *object, uint64_t length)
{
	while (length > 0) {
		size_t part = min_u64(length, sizeof(comparison->buffer));
		ssize_t got = read_fully(comparison->fd, comparison->buffer, part);

		if (got < 0)
			return (int)got;
		if ((size_t)got < part)
			return -ESTALE;
		if (EVP_DigestUpdate(comparison->hash, comparison->buffer, part) != 1)
			return -ENOMEM;
		compare_part(&comparison->ranges, comparison->position, comparison->buffer, object,
			     part);
		comparison->position += part;
		object = object ? object + part : NULL;
		length -= part;
	}
	return 0;
}

struct tree_comparison *tree_comparison_begin(int fd)
{
	struct tree_comparison *comparison = calloc(1, sizeof(*comparison));

	if (!comparison)
		return NULL;
	comparison->fd = fd;
	comparison->hash = EVP_MD_CTX_new();
	if (comparison->hash && EVP_DigestInit_ex(comparison->hash, EVP_sha256(), NULL) == 1)
		return comparison;
	tree_comparison_free(comparison);
	return NULL;
}

int tree_comparison_next(struct tree_comparison *comparison, const void *object, size_t length)
{
	return compare_next(comparison, object, length);
}

int tree_comparison_end(struct tree_comparison *comparison, uint64_t length,
			uint8_t sha256[MANIFEST_SHA256_BYTES])
{
	int result = compare_next(comparison, NULL, length - comparison->position);

	if (result == 0 && EVP_DigestFinal_ex(comparison->hash, sha256, NULL) != 1)
		result = -ENOMEM;
	return result;
}

const struct tree_ranges *tree_comparison_ranges(const struct tree_comparison *comparison)
{
	return &comparison->ranges;
}

void tree_comparison_free(struct tree_comparison *comparison)
{
	if (!comparison)
		return;
	EVP_MD_CTX_free(comparison->hash);
	free(comparison);
}

ssize_t tree_ranges_read(void *context, void *data, size_t capacity, uint64_t *offset)
{
	struct tree_ranges_reader *reader = context;
	const struct tree_range *range = &reader->ranges->list[reader->at];
	ssize_t got;

	if (reader->at == reader->ranges->count)
		return 0;
	*offset = max_u64(reader->position, range->begin);
	got = pread(reader->fd, data, min_u64(capacity, range->end - *offset), (off_t)*offset);
	if (got <= 0)
		return got < 0 ? -errno : -ESTALE;
	reader->position = *offset + (uint64_t)got;
	reader->at += reader->position == range->end;
	return got;
}
