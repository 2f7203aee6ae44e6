/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The exact table of a row.
 *
 * An entry has what the bucket does not say of its tag, then segment and location, in as many whole
 * bytes as that takes. Segment and location are its lower bits, so that of one tag the newest entry
 * is the highest number.
 */
#include "engine/muninn/index/ribbon/exact.h"

#include <assert.h>
#include <stdlib.h>

#include "common/bytes.h"

enum { TAG_BITS = 32 };

struct exact {
	struct exact_shape shape;
	uint32_t entry_bytes;
	uint32_t count;
	uint32_t *ends; /* of each bucket, in entries */
	uint8_t entries[];
};

/* ---- entries ---- */

uint32_t exact_entry_bytes(const struct exact_shape *shape)
{
	return (uint32_t)divide_up(
		TAG_BITS - shape->bucket_bits + shape->segment_bits + shape->location_bits, 8);
}

static uint32_t bucket_of(const struct exact_shape *shape, uint32_t tag)
{
	return tag >> (TAG_BITS - shape->bucket_bits);
}

static uint32_t place_bits(const struct exact_shape *shape)
{
	return shape->segment_bits + shape->location_bits;
}

static uint64_t pack(const struct exact_shape *shape, const struct tag_entry *entry)
{
	uint64_t rest = entry->tag & ((UINT64_C(1) << (TAG_BITS - shape->bucket_bits)) - 1);

	assert(entry->segment >> shape->segment_bits == 0 &&
	       entry->location >> shape->location_bits == 0);
	return rest << place_bits(shape) | (uint64_t)entry->segment << shape->location_bits |
	       entry->location;
}

static struct tag_entry unpack(const struct exact_shape *shape, uint32_t bucket, uint64_t word)
{
	return (struct tag_entry){
		.tag = bucket << (TAG_BITS - shape->bucket_bits) |
		       (uint32_t)(word >> place_bits(shape)),
		.segment = (uint32_t)(word >> shape->location_bits) &
			   ((1U << shape->segment_bits) - 1),
		.location = (uint32_t)word & ((1U << shape->location_bits) - 1),
	};
}

/* Behind the last entry are bytes enough that a whole word can be read. */
static uint64_t entry_at(const struct exact *exact, uint32_t n)
{
	uint64_t word = get_le64(exact->entries + (uint64_t)n * exact->entry_bytes);

	return exact->entry_bytes == 8 ? word
				       : word & ((UINT64_C(1) << exact->entry_bytes * 8) - 1);
}

static uint32_t bucket_begin(const struct exact *exact, uint32_t bucket)
{
	return bucket ? exact->ends[bucket - 1] : 0;
}

/* ---- tables ---- */

static uint64_t bytes_of(const struct exact_shape *shape, uint64_t count)
{
	return sizeof(struct exact) + count * exact_entry_bytes(shape) + 8;
}

static struct exact *create(const struct exact_shape *shape, uint64_t count)
{
	struct exact *exact = malloc(bytes_of(shape, count));

	assert(shape->bucket_bits >= 1 && shape->bucket_bits <= 20 && shape->segment_bits >= 1 &&
	       shape->segment_bits <= 16 && shape->location_bits >= 1 &&
	       shape->location_bits <= 16);
	if (!exact)
		return NULL;
	*exact = (struct exact){
		.shape = *shape,
		.entry_bytes = exact_entry_bytes(shape),
		.ends = calloc(UINT64_C(1) << shape->bucket_bits, sizeof(*exact->ends)),
	};
	if (exact->ends)
		return exact;
	free(exact);
	return NULL;
}

struct exact *exact_create(const struct exact_shape *shape)
{
	return create(shape, 0);
}

void exact_destroy(struct exact *exact)
{
	if (!exact)
		return;
	free(exact->ends);
	free(exact);
}

uint32_t exact_count(const struct exact *exact)
{
	return exact->count;
}

uint64_t exact_bytes(const struct exact *exact)
{
	return bytes_of(&exact->shape, exact->count) + (UINT64_C(4) << exact->shape.bucket_bits);
}

bool exact_next(const struct exact *exact, uint32_t *at, struct tag_entry *entry)
{
	uint32_t low = 0, high = (1U << exact->shape.bucket_bits) - 1;

	if (*at >= exact->count)
		return false;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (exact->ends[middle] > *at)
			high = middle;
		else
			low = middle + 1;
	}
	*entry = unpack(&exact->shape, low, entry_at(exact, (*at)++));
	return true;
}

/* ---- writing anew ---- */

/* Which entries stay, bucket by bucket: the table is gone through twice. */
static bool stays(const struct exact *exact, uint32_t n,
		  bool (*drops)(void *context, uint32_t segment), void *context)
{
	return !drops(context, unpack(&exact->shape, 0, entry_at(exact, n)).segment);
}

static uint64_t count_buckets(const struct exact *from, uint32_t *ends,
			      const struct tag_entry *added, uint32_t count,
			      bool (*drops)(void *context, uint32_t segment), void *context)
{
	uint32_t buckets = 1U << from->shape.bucket_bits;

	for (uint32_t n = 0; n < count; n++)
		ends[bucket_of(&from->shape, added[n].tag)]++;
	for (uint32_t bucket = 0; bucket < buckets; bucket++) {
		uint32_t begin = bucket_begin(from, bucket);

		ends[bucket] += drops ? 0 : from->ends[bucket] - begin;
		for (uint32_t n = begin; drops && n < from->ends[bucket]; n++)
			ends[bucket] += stays(from, n, drops, context);
		if (bucket)
			ends[bucket] += ends[bucket - 1];
	}
	return ends[buckets - 1];
}

/* Puts a word where the bucket's last space is left. */
static void put_entry(struct exact *exact, uint32_t *left, uint32_t bucket, uint64_t word)
{
	uint8_t bytes[8];

	put_le64(bytes, word);
	memcpy(exact->entries + (uint64_t)--left[bucket] * exact->entry_bytes, bytes,
	       exact->entry_bytes);
}

/* Copies what stays of a bucket. */
static void copy_bucket(const struct exact *from, struct exact *to, uint32_t *left, uint32_t bucket,
			bool (*drops)(void *context, uint32_t segment), void *context)
{
	uint32_t begin = bucket_begin(from, bucket), end = from->ends[bucket];

	if (!drops) {
		left[bucket] -= end - begin;
		memcpy(to->entries + (uint64_t)left[bucket] * to->entry_bytes,
		       from->entries + (uint64_t)begin * from->entry_bytes,
		       (uint64_t)(end - begin) * from->entry_bytes);
		return;
	}
	for (uint32_t n = begin; n < end; n++)
		if (stays(from, n, drops, context))
			put_entry(to, left, bucket, entry_at(from, n));
}

struct exact *exact_rewrite(const struct exact *exact, const struct tag_entry *added,
			    uint32_t count, bool (*drops)(void *context, uint32_t segment),
			    void *context)
{
	const struct exact_shape *shape = &exact->shape;
	uint32_t buckets = 1U << shape->bucket_bits;
	struct exact *written = create(shape, (uint64_t)exact->count + count);
	uint32_t *left = malloc(buckets * sizeof(*left));

	if (!written || !left) {
		exact_destroy(written);
		free(left);
		return NULL;
	}
	written->count =
		(uint32_t)count_buckets(exact, written->ends, added, count, drops, context);
	memcpy(left, written->ends, buckets * sizeof(*left));
	for (uint32_t n = 0; n < count; n++)
		put_entry(written, left, bucket_of(shape, added[n].tag), pack(shape, &added[n]));
	for (uint32_t bucket = 0; bucket < buckets; bucket++)
		copy_bucket(exact, written, left, bucket, drops, context);
	free(left);
	/* What was dropped is given back. */
	struct exact *fitting = realloc(written, bytes_of(shape, written->count));

	return fitting ? fitting : written;
}

/* ---- asking ---- */

bool exact_below(const struct exact *exact, uint32_t tag, uint64_t from, uint64_t below,
		 struct tag_entry *entry)
{
	const struct exact_shape *shape = &exact->shape;
	struct tag_entry lowest = { .tag = tag };
	uint64_t base = pack(shape, &lowest), ranks = UINT64_C(1) << place_bits(shape), best = 0;
	uint32_t bucket = bucket_of(shape, tag);
	bool found = false;

	for (uint32_t n = bucket_begin(exact, bucket); n < exact->ends[bucket]; n++) {
		/* Of another tag this is no rank, but a larger number. */
		uint64_t rank = entry_at(exact, n) - base;

		if (rank >= ranks || rank < from || rank >= below || (found && rank <= best))
			continue;
		best = rank;
		found = true;
	}
	if (found)
		*entry = unpack(shape, bucket, base + best);
	return found;
}

void exact_prefetch(const struct exact *exact, uint32_t tag)
{
	uint32_t bucket = bucket_of(&exact->shape, tag);

	__builtin_prefetch(exact->entries +
			   (uint64_t)bucket_begin(exact, bucket) * exact->entry_bytes);
}
