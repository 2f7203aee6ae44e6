/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Searches for an order that explains a history. */
#include "tests/engine/objects/histories.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#define TRIED (1U << 16)

struct search {
	const struct history_call *calls;
	uint32_t count;
	struct history_state *end;
	/* Hashes of what was tried for nothing: calls that are done, and the state behind them. */
	uint64_t *tried;
};

uint32_t history_hash(uint32_t hash, uint32_t value)
{
	return (hash ^ value) * 0x01000193U + 0x9e3779b9U;
}

/* ---- what a call does, and has to answer ---- */

static struct history_objects *version(struct history_state *state, uint32_t number)
{
	for (uint32_t n = 0; n < HISTORY_VERSIONS; n++)
		if (state->versions[n].number == number)
			return &state->versions[n].objects;
	return NULL;
}

static bool does_snapshot(struct history_state *state, const struct history_call *call)
{
	struct history_objects *objects = version(state, 0);

	if (!objects || version(state, call->version))
		return false;
	*objects = state->now;
	for (uint32_t n = 0; n < HISTORY_VERSIONS; n++)
		if (&state->versions[n].objects == objects)
			state->versions[n].number = call->version;
	return true;
}

static bool reads(struct history_state *state, const struct history_call *call)
{
	const struct history_objects *objects = call->version ? version(state, call->version)
							      : &state->now;

	return objects && memcmp(objects, &call->found, sizeof(*objects)) == 0;
}

static bool rolls_back(struct history_state *state, const struct history_call *call)
{
	const struct history_objects *objects = version(state, call->version);

	if (objects)
		state->now = *objects;
	return objects != NULL;
}

/* False: the answer does not fit the state. */
static bool changes_object(struct history_state *state, const struct history_call *call)
{
	struct history_object *object = &state->now.at[call->object];

	if (call->result)
		return call->result == (object->exists ? -EEXIST : -ENOENT) &&
		       (call->kind == HISTORY_CREATE) == object->exists;
	if (!!object->exists == (call->kind == HISTORY_CREATE))
		return false;
	if (call->kind == HISTORY_REMOVE) {
		*object = (struct history_object){ 0 };
	} else if (call->kind == HISTORY_APPEND) {
		object->appended++;
		object->hash = history_hash(object->hash, call->value);
	} else {
		*object = (struct history_object){ .exists = 1, .value = call->value };
	}
	return true;
}

static bool apply(struct history_state *state, const struct history_call *call)
{
	/* The device was full: nothing has happened. */
	if (call->result == -ENOSPC)
		return true;
	switch (call->kind) {
	case HISTORY_READ:
		return reads(state, call);
	case HISTORY_SNAPSHOT:
		return !call->result && does_snapshot(state, call);
	case HISTORY_ROLLBACK:
		return !call->result && rolls_back(state, call);
	case HISTORY_FLUSH:
		return true;
	default:
		return changes_object(state, call);
	}
}

/* ---- the search ---- */

static uint64_t hash_of(uint64_t done, const struct history_state *state)
{
	const uint32_t *words = (const uint32_t *)(const void *)state;
	uint64_t hash = done * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t n = 0; n < sizeof(*state) / 4; n++)
		hash = (hash ^ words[n]) * UINT64_C(0x100000001b3);
	hash ^= hash >> 29;
	return hash | 1;
}

static uint64_t first_return(const struct search *search, uint64_t done)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t n = 0; n < search->count; n++)
		if (!(done >> n & 1) && search->calls[n].returned < first)
			first = search->calls[n].returned;
	return first;
}

/* Goes at most as deep as there are calls. */
static bool go_on(struct search *search, uint64_t done, const struct history_state *state)
{
	uint64_t first = first_return(search, done), hash = hash_of(done, state);

	if (first == UINT64_MAX) {
		*search->end = *state;
		return true;
	}
	if (search->tried[hash % TRIED] == hash)
		return false;
	for (uint32_t n = 0; n < search->count; n++) {
		struct history_state next = *state;

		/* What was called behind a return comes behind that call. */
		if (done >> n & 1 || search->calls[n].called > first)
			continue;
		if (apply(&next, &search->calls[n]) &&
		    go_on(search, done | UINT64_C(1) << n, &next))
			return true;
	}
	search->tried[hash % TRIED] = hash;
	return false;
}

bool history_is_explained(const struct history_call *calls, uint32_t count,
			  struct history_state *state)
{
	const struct history_state begin = *state;
	struct search search = { .calls = calls, .count = count, .end = state };
	bool result;

	assert_true(count <= HISTORY_CALLS_MAX);
	search.tried = calloc(TRIED, sizeof(*search.tried));
	assert_non_null(search.tried);
	result = go_on(&search, 0, &begin);
	free(search.tried);
	return result;
}

void history_print(const struct history_call *calls, uint32_t count)
{
	static const char *const names[HISTORY_KINDS] = { "READ",     "CREATE", "WRITE",
							  "APPEND",   "REMOVE", "SNAPSHOT",
							  "ROLLBACK", "FLUSH" };

	for (uint32_t n = 0; n < count; n++) {
		const struct history_call *call = &calls[n];

		print_message("%5llu-%-5llu %s object %u value %u version %u: %d",
			      (unsigned long long)call->called, (unsigned long long)call->returned,
			      names[call->kind], call->object, call->value, call->version,
			      call->result);
		for (uint32_t i = 0; call->kind == HISTORY_READ && i < HISTORY_OBJECTS; i++)
			print_message(" [%u %u +%u %08x]", call->found.at[i].exists,
				      call->found.at[i].value, call->found.at[i].appended,
				      call->found.at[i].hash);
		print_message("\n");
	}
}
