/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps hidden intervals in the order of what they go back to. */
#include "engine/history/hidden_targets.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *one, const void *other)
{
	const struct hidden_target *a = one, *b = other;

	if (a->partition != b->partition)
		return a->partition < b->partition ? -1 : 1;
	if (a->identifier != b->identifier)
		return a->identifier < b->identifier ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

/* How many are before `wanted`. */
static uint32_t position(const struct hidden_targets *targets, const struct hidden_target *wanted)
{
	uint32_t low = 0, high = targets->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare(&targets->list[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct hidden_target target_of(const struct hidden_interval *interval)
{
	return (struct hidden_target){
		.identifier = interval->identifier,
		.to = interval->to,
		.at = interval->at,
		.partition = interval->partition,
	};
}

static int reserve(struct hidden_targets *targets, uint32_t capacity)
{
	struct hidden_target *grown = realloc(targets->list, capacity * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	targets->list = grown;
	targets->capacity = capacity;
	return 0;
}

int hidden_targets_grow(struct hidden_targets *targets)
{
	if (targets->count < targets->capacity)
		return 0;
	return reserve(targets, targets->capacity ? targets->capacity * 2 : 16);
}

void hidden_targets_add(struct hidden_targets *targets, const struct hidden_interval *interval)
{
	struct hidden_target target = target_of(interval);
	uint32_t at = position(targets, &target);

	assert(targets->count < targets->capacity);
	memmove(&targets->list[at + 1], &targets->list[at], (targets->count - at) * sizeof(target));
	targets->list[at] = target;
	targets->count++;
}

int hidden_targets_load(struct hidden_targets *targets, const struct hidden_interval *list,
			uint32_t count)
{
	int result = count > targets->capacity ? reserve(targets, count) : 0;

	if (result)
		return result;
	for (uint32_t n = 0; n < count; n++)
		targets->list[n] = target_of(&list[n]);
	targets->count = count;
	if (count)
		qsort(targets->list, count, sizeof(*targets->list), compare);
	return 0;
}

void hidden_targets_free(struct hidden_targets *targets)
{
	free(targets->list);
	*targets = (struct hidden_targets){ 0 };
}

void hidden_targets_mark(struct hidden_targets *targets, const struct hidden_interval *interval)
{
	struct hidden_target target = target_of(interval);
	uint32_t at = position(targets, &target);

	assert(at < targets->count && compare(&targets->list[at], &target) == 0);
	targets->list[at].is_gone = true;
}

void hidden_targets_take_out(struct hidden_targets *targets)
{
	uint32_t kept = 0;

	for (uint32_t from = 0; from < targets->count; from++)
		if (!targets->list[from].is_gone)
			targets->list[kept++] = targets->list[from];
	targets->count = kept;
}

bool hidden_targets_lead(const struct hidden_targets *targets, uint16_t partition, uint64_t first,
			 uint64_t last, uint64_t from, uint64_t to, uint32_t *work)
{
	struct hidden_target wanted = { .partition = partition, .identifier = first, .to = from };

	/* From one identifier that has any to the next one. */
	for (;;) {
		uint32_t at = position(targets, &wanted);
		const struct hidden_target *found = &targets->list[at];

		++*work;
		if (at == targets->count || found->partition != partition ||
		    found->identifier > last)
			return false;
		if (found->identifier == wanted.identifier) {
			if (found->to <= to)
				return true;
			if (found->identifier == last)
				return false;
			wanted.identifier++;
		} else {
			wanted.identifier = found->identifier;
		}
	}
}
