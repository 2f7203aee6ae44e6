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
#include <malloc.h>
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
	       shape->segment_bits <= 20 && shape->location_bits >= 1 &&
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

const struct exact_shape *exact_shape_of(const struct exact *exact)
{
	return &exact->shape;
}

uint32_t exact_count(const struct exact *exact)
{
	return exact->count;
}

uint64_t exact_bytes(const struct exact *exact)
{
	return bytes_of(&exact->shape, exact->count) + (UINT64_C(4) << exact->shape.bucket_bits);
}

uint64_t exact_memory(const struct exact *exact)
{
	return exact ? malloc_usable_size((void *)(uintptr_t)exact) +
			       malloc_usable_size(exact->ends)
		     : 0;
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

struct rewriting {
	const struct exact *from;
	struct exact *to;
	uint32_t *left; /* of each bucket: where the last space is that is left */
	exact_renumber *renumber;
	void *context;
	bool copies; /* entries stay as they are */
};

/* Entry `n` of a bucket as it is in the new table. False: it is left out. */
static bool renumbered(const struct rewriting *rewriting, uint32_t bucket, uint32_t n,
		       uint64_t *word)
{
	struct tag_entry entry =
		unpack(&rewriting->from->shape, bucket, entry_at(rewriting->from, n));

	if (rewriting->renumber)
		entry.segment = rewriting->renumber(rewriting->context, entry.segment);
	if (entry.segment == EXACT_DROP)
		return false;
	*word = pack(&rewriting->to->shape, &entry);
	return true;
}

/* How many entries of a bucket stay. The table is gone through twice. */
static uint32_t count_bucket(const struct rewriting *rewriting, uint32_t bucket)
{
	uint32_t begin = bucket_begin(rewriting->from, bucket), count = 0;
	uint64_t word;

	if (rewriting->copies)
		return rewriting->from->ends[bucket] - begin;
	for (uint32_t n = begin; n < rewriting->from->ends[bucket]; n++)
		count += renumbered(rewriting, bucket, n, &word);
	return count;
}

static void store_entry(struct exact *exact, uint32_t n, uint64_t word)
{
	uint8_t bytes[8];

	put_le64(bytes, word);
	memcpy(exact->entries + (uint64_t)n * exact->entry_bytes, bytes, exact->entry_bytes);
}

static void put_entry(const struct rewriting *rewriting, uint32_t bucket, uint64_t word)
{
	store_entry(rewriting->to, --rewriting->left[bucket], word);
}

static void copy_bucket(const struct rewriting *rewriting, uint32_t bucket)
{
	const struct exact *from = rewriting->from;
	uint32_t begin = bucket_begin(from, bucket), end = from->ends[bucket];
	uint64_t bytes = from->entry_bytes, word;

	if (rewriting->copies) {
		rewriting->left[bucket] -= end - begin;
		memcpy(rewriting->to->entries + rewriting->left[bucket] * bytes,
		       from->entries + begin * bytes, (end - begin) * bytes);
		return;
	}
	for (uint32_t n = begin; n < end; n++)
		if (renumbered(rewriting, bucket, n, &word))
			put_entry(rewriting, bucket, word);
}

static void rewrite(struct rewriting *rewriting, const struct tag_entry *added, uint32_t count)
{
	struct exact *to = rewriting->to;
	uint32_t buckets = 1U << to->shape.bucket_bits;

	for (uint32_t n = 0; n < count; n++)
		to->ends[bucket_of(&to->shape, added[n].tag)]++;
	for (uint32_t bucket = 0; bucket < buckets; bucket++)
		to->ends[bucket] += count_bucket(rewriting, bucket) + bucket_begin(to, bucket);
	to->count = to->ends[buckets - 1];
	memcpy(rewriting->left, to->ends, buckets * sizeof(*rewriting->left));
	for (uint32_t n = 0; n < count; n++)
		put_entry(rewriting, bucket_of(&to->shape, added[n].tag),
			  pack(&to->shape, &added[n]));
	for (uint32_t bucket = 0; bucket < buckets; bucket++)
		copy_bucket(rewriting, bucket);
}

/* Gives back the memory of what was left out. */
static struct exact *shrink(struct exact *exact)
{
	struct exact *fitting = realloc(exact, bytes_of(&exact->shape, exact->count));

	if (!fitting)
		return exact;
	return fitting;
}

struct exact *exact_rewrite(const struct exact *exact, const struct exact_shape *shape,
			    const struct tag_entry *added, uint32_t count, exact_renumber *renumber,
			    void *context)
{
	struct rewriting rewriting = {
		.from = exact,
		.to = create(shape, (uint64_t)exact->count + count),
		.left = malloc(sizeof(uint32_t) << shape->bucket_bits),
		.renumber = renumber,
		.context = context,
		.copies = !renumber && exact->shape.segment_bits == shape->segment_bits &&
			  exact->shape.location_bits == shape->location_bits,
	};

	assert(exact->shape.bucket_bits == shape->bucket_bits);
	if (!rewriting.to || !rewriting.left) {
		exact_destroy(rewriting.to);
		free(rewriting.left);
		return NULL;
	}
	rewrite(&rewriting, added, count);
	free(rewriting.left);
	return shrink(rewriting.to);
}

void exact_reduce(struct exact *exact, exact_renumber *renumber, void *context)
{
	const struct rewriting rewriting = {
		.from = exact, .to = exact, .renumber = renumber, .context = context
	};
	uint32_t buckets = 1U << exact->shape.bucket_bits, n = 0, left = 0;
	uint64_t word;

	/* What is written is never behind what is read next. */
	for (uint32_t bucket = 0; bucket < buckets; bucket++) {
		for (; n < exact->ends[bucket]; n++)
			if (renumbered(&rewriting, bucket, n, &word))
				store_entry(exact, left++, word);
		exact->ends[bucket] = left;
	}
	exact->count = left;
}

/* ---- asking ---- */

bool exact_find(const struct exact *exact, uint32_t tag, uint64_t from, uint64_t below,
		uint32_t *at, struct tag_entry *entry)
{
	const struct exact_shape *shape = &exact->shape;
	struct tag_entry lowest = { .tag = tag };
	uint64_t base = pack(shape, &lowest), ranks = UINT64_C(1) << place_bits(shape);
	uint32_t bucket = bucket_of(shape, tag);

	for (uint32_t n = bucket_begin(exact, bucket) + *at; n < exact->ends[bucket]; n++) {
		uint64_t rank = entry_at(exact, n) - base;

		if (rank >= ranks || rank < from || rank >= below)
			continue;
		*entry = unpack(shape, bucket, base + rank);
		*at = n + 1 - bucket_begin(exact, bucket);
		return true;
	}
	return false;
}

void exact_prefetch(const struct exact *exact, uint32_t tag)
{
	uint32_t bucket = bucket_of(&exact->shape, tag);

	__builtin_prefetch(exact->entries +
			   (uint64_t)bucket_begin(exact, bucket) * exact->entry_bytes);
}
