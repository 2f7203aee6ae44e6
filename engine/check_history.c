/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Looking for damage: versions, and what clones stand on. */
#include <errno.h>
#include <inttypes.h>

#include "engine/check_private.h"
#include "engine/history/history.h"

/* ---- versions ---- */

/* A name leads to its version. */
static void check_name(struct checking *checking, uint64_t partition,
		       const struct engine_version *version)
{
	uint32_t found = 0;
	int result = engine_version_find(checking->txn, partition, version->name, &found);

	if (result || found != version->version)
		findings_add_of(checking->check->findings, FINDING_VERSION, partition, 0,
				"the name \"%s\" of version %u does not lead to it", version->name,
				version->version);
}

/* What a version shows: the partition of then, or with `versions` all of it. */
static void check_shown(struct checking *checking, uint64_t partition,
			const struct engine_version *version)
{
	struct engine_address address = { .partition = partition, .version = version->version };
	struct engine_object *object;
	int result;

	if (partition && checking->check->versions) {
		check_partition(checking, address, NULL);
		return;
	}
	result = engine_open_object(checking->txn, address, &object);
	if (!result)
		engine_close_object(object);
	else
		findings_add_of(checking->check->findings, FINDING_VERSION, partition, 0,
				"what version %u shows %s", version->version,
				check_trouble(result));
}

static bool is_of_device(uint32_t version)
{
	return version >= ENGINE_DEVICE_VERSION_FIRST;
}

void check_versions(struct checking *checking, uint64_t partition)
{
	struct engine_version version;
	uint64_t from = 0;
	int result;

	while ((result = engine_version_next(checking->txn, partition, from, &version)) == 0) {
		from = version.position + 1;
		/* The device's are looked at in each partition, but named once. */
		if (version.name[0] && is_of_device(version.version) == !partition)
			check_name(checking, partition, &version);
		check_shown(checking, partition, &version);
		checking->check->kept_versions += is_of_device(version.version) == !partition;
	}
	if (result != -ENOENT)
		findings_add_of(checking->check->findings, FINDING_VERSION, partition, 0,
				"the list of its versions %s", check_trouble(result));
}

/* ---- clones ---- */

/* Whether the source keeps the bound for the clone. 1, 0, or an error. */
static int stands(struct checking *checking, const struct partition *clone)
{
	struct engine *engine = checking->engine;
	struct history source;
	struct idset set = {
		.store = engine->store,
		.nodes = &engine->nodes,
		.header = &source.clones,
		.first = key_of_node(clone->origin.index, RECORD_ID_CLONE_SET, 0),
		/* Past the cache, which has the sets of partitions that are there. */
		.bound = engine->committed,
	};
	int result = history_read(engine->store, clone->origin.index, &source);

	return result ? result
		      : idset_contains(&set, history_element(clone->origin.bound, clone->index));
}

void check_clone(struct checking *checking, uint64_t id)
{
	struct partition *partition;
	int result;

	if (partition_get(checking->engine, id, &partition))
		return;
	result = partition->origin.index ? stands(checking, partition) : 1;
	if (result != 1)
		findings_add_of(checking->check->findings, FINDING_CLONE, id, 0,
				"its source (index %u) does not keep number %" PRIu64
				" for it, where it reads what it has not written itself",
				partition->origin.index, partition->origin.bound);
	partition_release(checking->engine, partition);
}
