/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Copying what is whole: the steps, the device and its partitions. What there is to copy the check
 * has found, lists and records alike.
 */
#include "engine/salvage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check_private.h"
#include "engine/history/history.h"
#include "engine/muninn/muninn.h"
#include "engine/salvage_private.h"

/* ---- transactions ---- */

int salvage_commit(struct salvaging *salvaging)
{
	struct engine_txn *txn = salvaging->write;

	salvaging->write = NULL;
	salvaging->put = 0;
	if (txn && !salvaging->broken)
		salvaging->broken = engine_commit(txn, false);
	return salvaging->broken;
}

int salvage_begin(struct salvaging *salvaging)
{
	int result = salvaging->put >= SALVAGE_COMMIT_BYTES ? salvage_commit(salvaging) : 0;

	if (!result && !salvaging->write)
		result = engine_begin(salvaging->to, ENGINE_WRITE, &salvaging->write);
	if (!result)
		engine_bypass_timestamps(salvaging->write, true);
	return result;
}

int salvage_failed(struct salvaging *salvaging, struct engine_address address, const char *what,
		   int result)
{
	enum finding_kind kind = result == -ENOSPC   ? FINDING_SPACE
				 : address.object    ? FINDING_OBJECT
				 : address.partition ? FINDING_PARTITION
						     : FINDING_STORE;

	if (!result)
		return 0;
	findings_add_of(salvaging->findings, kind, address.partition, address.object,
			"%s could not be copied: %s", what,
			result == -ENOSPC ? "the new image is full" : check_trouble(result));
	return result == -EIO || result == -ENOMEM ? result : salvaging->broken;
}

/* ---- what there is ---- */

static void note_member(void *context, struct engine_address address, enum engine_type type)
{
	struct salvaging *salvaging = context;

	if (address.version || salvaging->no_memory)
		return;
	if (salvaging->count == salvaging->capacity) {
		size_t capacity = salvaging->capacity ? 2 * salvaging->capacity : 1024;
		struct member *members =
			realloc(salvaging->members, capacity * sizeof(*salvaging->members));

		if (!members) {
			salvaging->no_memory = true;
			return;
		}
		salvaging->members = members;
		salvaging->capacity = capacity;
	}
	salvaging->members[salvaging->count++] = (struct member){ address, type };
}

/* By partition: itself, collections, user objects; so that what one names is there. */
static int in_order(const void *a_, const void *b_)
{
	const struct member *a = a_, *b = b_;

	if (a->address.partition != b->address.partition)
		return a->address.partition < b->address.partition ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (a->address.object != b->address.object)
		return a->address.object < b->address.object ? -1 : 1;
	return 0;
}

/* Lists and records may have told of one twice. */
static void drop_doubles(struct salvaging *salvaging)
{
	size_t left = 0;

	for (size_t n = 0; n < salvaging->count; n++)
		if (!left || in_order(&salvaging->members[left - 1], &salvaging->members[n]) != 0)
			salvaging->members[left++] = salvaging->members[n];
	salvaging->count = left;
}

/* The caller's progress, also while the check runs. */
static void relay_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
	const struct engine_check *check = &((struct salvaging *)context)->salvage->check;

	if (check->progress)
		check->progress(check->context, step, done, total);
}

static int look(struct salvaging *salvaging)
{
	struct engine_check *results = &salvaging->salvage->check;
	struct engine_check check = *results;
	int result;

	check.context = salvaging;
	check.progress = relay_progress;
	check.member = note_member;
	result = engine_check(salvaging->from, &check);
	check.context = results->context;
	check.progress = results->progress;
	check.member = results->member;
	*results = check;
	if (salvaging->no_memory)
		return -ENOMEM;
	if (!result && salvaging->count)
		qsort(salvaging->members, salvaging->count, sizeof(*salvaging->members), in_order);
	drop_doubles(salvaging);
	return result;
}

/* ---- lasting attributes: the pages of the old device's become the new one's ---- */

static void gather_pages(struct salvaging *salvaging, uint16_t index,
			 uint32_t pages[ENGINE_LASTING_PAGES_MAX], uint32_t *count)
{
	struct onode *onode;

	if (onode_load(salvaging->from->store, index, RECORD_ID_LASTING, RECORD_NEWEST, 0, 0,
		       &onode))
		return;
	for (uint32_t at = 0; at < onode->attributes.count; at++) {
		uint32_t page, number, length, n = 0;
		const uint8_t *value;

		attribute_set_at(&onode->attributes, at, &page, &number, &value, &length);
		while (n < *count && pages[n] != page)
			n++;
		if (n == *count && n < ENGINE_LASTING_PAGES_MAX)
			pages[(*count)++] = page;
	}
	onode_free(onode);
}

static void learn_lasting_pages(struct salvaging *salvaging)
{
	uint32_t pages[ENGINE_LASTING_PAGES_MAX], count = 0;

	gather_pages(salvaging, RECORD_ROOT_INDEX, pages, &count);
	for (size_t n = 0; n < salvaging->count; n++) {
		struct partition *partition;

		if (salvaging->members[n].type != ENGINE_PARTITION ||
		    partition_get(salvaging->from, salvaging->members[n].address.partition,
				  &partition))
			continue;
		gather_pages(salvaging, partition->index, pages, &count);
		partition_release(salvaging->from, partition);
	}
	engine_set_lasting_pages(salvaging->from, pages, count);
	engine_set_lasting_pages(salvaging->to, pages, count);
}

/* ---- partitions ---- */

/* A policy of its own; the device has one in any case. */
static bool has_policy(struct engine *engine, uint64_t id)
{
	struct partition *partition;
	bool particular = false;

	if (!id)
		return true;
	if (partition_get(engine, id, &partition) == 0) {
		particular = partition->history->particular;
		partition_release(engine, partition);
	}
	return particular;
}

/* Last of all, so that a lock does not stand in the way. */
static int copy_policy(struct salvaging *salvaging, struct engine_address address)
{
	struct engine_retention retention;
	int result;

	if (!has_policy(salvaging->from, address.partition))
		return 0;
	result = engine_retention_get(salvaging->read, address.partition, &retention);
	if (!result)
		result = salvage_begin(salvaging);
	if (!result)
		result =
			engine_retention_set(salvaging->write, address.partition, &retention, true);
	return salvage_failed(salvaging, address, "the policy of what is kept", result);
}

/* While it is empty: the objects of an unlogged partition become so when they are made. */
static int copy_unlogged(struct salvaging *salvaging, struct engine_address address)
{
	struct partition *partition;
	int result = partition_get(salvaging->from, address.partition, &partition);

	if (result)
		return result;
	if (partition->is_unlogged)
		result = engine_partition_unlog(salvaging->write, address.partition);
	partition_release(salvaging->from, partition);
	return result;
}

static int copy_partition(struct salvaging *salvaging, struct engine_address address)
{
	int result = salvage_commit(salvaging);

	if (!result)
		result = salvage_begin(salvaging);
	if (!result)
		result = engine_partition_create(salvaging->write, address.partition, NULL);
	if (!result)
		result = copy_unlogged(salvaging, address);
	if (result)
		return salvage_failed(salvaging, address, "the partition", result);
	salvaging->salvage->partitions++;
	return salvage_attributes(salvaging, address);
}

static int copy_member(struct salvaging *salvaging, const struct member *member)
{
	switch (member->type) {
	case ENGINE_PARTITION:
		return copy_partition(salvaging, member->address);
	case ENGINE_COLLECTION:
		return salvage_collection(salvaging, member->address);
	case ENGINE_USER_OBJECT:
		return salvage_object(salvaging, member->address);
	default:
		return 0;
	}
}

static int copy_all(struct salvaging *salvaging)
{
	const struct engine_address root = { 0 };
	int result = salvage_attributes(salvaging, root);

	for (size_t n = 0; !result && n < salvaging->count; n++) {
		relay_progress(salvaging, "copied", n, salvaging->count);
		result = copy_member(salvaging, &salvaging->members[n]);
	}
	for (size_t n = 0; !result && n < salvaging->count; n++)
		if (salvaging->members[n].type == ENGINE_COLLECTION)
			result = salvage_members(salvaging, salvaging->members[n].address);
	for (size_t n = 0; !result && n < salvaging->count; n++)
		if (salvaging->members[n].type == ENGINE_PARTITION)
			result = copy_policy(salvaging, salvaging->members[n].address);
	if (!result)
		result = copy_policy(salvaging, root);
	return result ? result : salvage_commit(salvaging);
}

/* ---- all of it ---- */

void engine_formatted_options(const struct engine *engine, struct engine_options *options)
{
	muninn_formatted_options(engine->store, &options->records, &options->muninn);
}

static int copy_device(struct salvaging *salvaging)
{
	int result;

	learn_lasting_pages(salvaging);
	result = engine_begin(salvaging->from, ENGINE_READ, &salvaging->read);
	if (result)
		return result;
	result = copy_all(salvaging);
	if (salvaging->write)
		engine_abort(salvaging->write);
	engine_abort(salvaging->read);
	if (!result)
		result = engine_set_memo(salvaging->to, engine_memo(salvaging->from), false);
	return result ? result : engine_flush(salvaging->to);
}

int engine_salvage(struct engine *from, struct engine *to, struct engine_salvage *salvage)
{
	struct salvaging salvaging = {
		.from = from,
		.to = to,
		.salvage = salvage,
		.findings = salvage->check.findings,
		.buffer = malloc(SALVAGE_BYTES),
	};
	int result = salvaging.buffer ? look(&salvaging) : -ENOMEM;

	if (!result)
		result = copy_device(&salvaging);
	free(salvaging.members);
	free(salvaging.buffer);
	return result;
}
