/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The kinds of record stores, and the calls of engine.h that choose one of them. */
#include "engine/open.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "engine/check.h"
#include "engine/muninn/muninn.h"
#include "engine/objects/objects.h"

#define KINDS_MAX 4

/* A kind of store, and where engine_options has its own options. */
struct kind {
	const struct record_store_type *type;
	size_t options_at;
};

static const struct engine_options defaults;

/* The first one is the default. */
static struct kind kinds[KINDS_MAX] = {
	{ &muninn_store_type, offsetof(struct engine_options, muninn) },
};

void engine_add_store(const struct record_store_type *type)
{
	size_t at = 0;

	while (at < KINDS_MAX && kinds[at].type)
		at++;
	assert(at < KINDS_MAX);
	kinds[at] = (struct kind){ .type = type };
}

const char *engine_store_name(size_t i)
{
	return i < KINDS_MAX && kinds[i].type ? kinds[i].type->name : NULL;
}

static const void *own_options(const struct kind *kind, const struct engine_options *options)
{
	return kind->options_at ? (const char *)options + kind->options_at : NULL;
}

/* NULL: there is none of that name. */
static const struct kind *kind_named(const char *name)
{
	if (!name)
		return &kinds[0];
	for (size_t at = 0; at < KINDS_MAX && kinds[at].type; at++)
		if (strcmp(kinds[at].type->name, name) == 0)
			return &kinds[at];
	return NULL;
}

static int unknown_store(const struct engine_options *options, struct error_text *error)
{
	return error_set(error, -EINVAL, "there is no engine \"%s\"", options->store);
}

/* The kind that formatted a device. */
static int find_kind(const struct nand *nand, const struct engine_options *options,
		     const struct kind **found, struct error_text *error)
{
	const char *name = nand_contents(nand);

	if (!kind_named(options->store))
		return unknown_store(options, error);
	if (!*name)
		return error_set(error, -ENODEV, "the device is not formatted for any engine");
	if (options->store && strcmp(name, options->store) != 0)
		return error_set(error, -EINVAL,
				 "the device was formatted for engine \"%s\", and is to be opened "
				 "with \"%s\"",
				 name, options->store);
	*found = kind_named(name);
	if (!*found)
		return error_set(error, -EINVAL,
				 "the device was formatted for engine \"%s\", which this program "
				 "does not have",
				 name);
	return 0;
}

int engine_stored_kind(const struct nand *nand, const struct engine_options *options,
		       const char **name, struct error_text *error)
{
	const struct kind *found = NULL;
	int result = find_kind(nand, options ? options : &defaults, &found, error);

	*name = found ? found->type->name : NULL;
	return result;
}

const char *engine_stored_index(struct nand *nand)
{
	uint64_t bytes;
	const uint8_t *nvram = nand_nvram(nand, &bytes);

	return bytes >= ENGINE_HEADER_BYTES ? muninn_header_index(nvram) : NULL;
}

int engine_nvram_bytes(const struct nand_geometry *geometry, const struct engine_options *options,
		       uint64_t *bytes, struct error_text *error)
{
	const struct kind *kind;

	options = options ? options : &defaults;
	kind = kind_named(options->store);
	if (!kind)
		return unknown_store(options, error);
	return kind->type->nvram_bytes(geometry, &options->records, own_options(kind, options),
				       bytes, error);
}

int engine_format(struct nand *nand, const struct engine_options *options, struct error_text *error)
{
	const struct kind *kind;
	int result;

	options = options ? options : &defaults;
	kind = kind_named(options->store);
	if (!kind)
		return unknown_store(options, error);
	/* First its name: what the kind has not completed it refuses itself. */
	result = nand_set_contents(nand, kind->type->name, error);
	if (result)
		return result;
	return kind->type->format(nand, &options->records, own_options(kind, options), error);
}

static int grow(struct nand *nand, uint64_t bytes, bool really, struct error_text *error)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint64_t block_bytes = (uint64_t)geometry->page_bytes * geometry->pages_per_block;
	const struct kind *found = NULL;
	int result = find_kind(nand, &defaults, &found, error);

	if (result)
		return result;
	if (!found->type->grow)
		return error_set(error, -EINVAL, "devices of engine \"%s\" can't grow",
				 found->type->name);
	return found->type->grow(nand, bytes / block_bytes, really, error);
}

int engine_grow(struct nand *nand, uint64_t bytes, struct error_text *error)
{
	return grow(nand, bytes, true, error);
}

int engine_grow_check(struct nand *nand, uint64_t bytes, struct error_text *error)
{
	return grow(nand, bytes, false, error);
}

int engine_open_records(struct nand *nand, const struct engine_options *options,
			struct record_store **store, struct error_text *error)
{
	const struct kind *found;
	int result;

	*store = NULL;
	options = options ? options : &defaults;
	result = find_kind(nand, options, &found, error);
	if (!result)
		result = found->type->open(nand, &options->records, own_options(found, options),
					   store, error);
	if (!result)
		nand_note_opening(nand);
	return result;
}

int engine_open(struct nand *nand, const struct engine_options *options, struct engine **engine,
		struct error_text *error)
{
	struct record_store *store;
	uint64_t begin = clock_microseconds();
	int result = engine_open_records(nand, options, &store, error);

	*engine = NULL;
	if (result)
		return result;
	result = engine_open_on(store, options, engine, error);
	if (result)
		return result;
	(*engine)->open_microseconds = max_u64(clock_microseconds() - begin, 1);
	return 0;
}
