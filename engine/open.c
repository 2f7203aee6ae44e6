/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The calls of engine.h that choose the store of records: so far there is one, engine/muninn. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/bytes.h"
#include "engine/objects/objects.h"

static const char *const hot_rows_names[] = {
	[ENGINE_HOT_ROWS_FINALISE] = "finalise",
	[ENGINE_HOT_ROWS_SPREAD] = "spread",
};

const char *engine_hot_rows_name(enum engine_hot_rows hot_rows)
{
	return hot_rows_names[hot_rows];
}

int engine_hot_rows_parse(const char *name, enum engine_hot_rows *hot_rows)
{
	for (int n = ENGINE_HOT_ROWS_FINALISE; n <= ENGINE_HOT_ROWS_SPREAD; n++)
		if (strcmp(name, hot_rows_names[n]) == 0) {
			*hot_rows = (enum engine_hot_rows)n;
			return 0;
		}
	return -EINVAL;
}

int engine_nvram_bytes(const struct nand_geometry *geometry, const struct engine_options *options,
		       uint64_t *bytes, struct error_text *error)
{
	return muninn_nvram_bytes(geometry, options, bytes, error);
}

int engine_format(struct nand *nand, const struct engine_options *options, struct error_text *error)
{
	return muninn_format(nand, options, error);
}

static uint64_t now_microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int engine_open(struct nand *nand, const struct engine_options *options, struct engine **engine,
		struct error_text *error)
{
	struct record_store *store;
	uint64_t begin = now_microseconds();
	int result = muninn_open(nand, options, &store, error);

	*engine = NULL;
	if (result)
		return result;
	result = engine_open_on(store, options, engine);
	if (result)
		return error_set(
			error, result,
			"no memory for the caches of the object layer; lower onode_cache_entries "
			"or directory_cache_nodes");
	(*engine)->open_microseconds = max_u64(now_microseconds() - begin, 1);
	return 0;
}
