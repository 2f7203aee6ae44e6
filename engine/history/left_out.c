/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves partitions with the policy "none" out of the device's moments and rollbacks. */
#include "engine/history/left_out.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "engine/history/standing.h"
#include "engine/history/times.h"

/* ---- the stretch of a partition ---- */

static bool is_left_out(const struct history *history, uint64_t bound)
{
	return history->left_from && bound >= history->left_from &&
	       (!history->left_until || bound < history->left_until);
}

uint64_t left_out_pass(const struct history *history, uint64_t bound)
{
	if (!is_left_out(history, bound))
		return bound;
	return history->left_until ? history->left_until : RECORD_NEWEST;
}

int left_out_lower_by_interval(struct engine *engine, const struct history *history,
			       const struct history *device, uint64_t sequence, uint64_t *lowest)
{
	uint64_t found = sequence;
	int result = 0;

	/* The first one may lie where the partition is left out: then the first one behind that. */
	do {
		sequence = left_out_pass(history, found);
		found = RECORD_NEWEST;
		if (sequence < *lowest)
			result =
				history_lower_by_interval(engine, device, device, sequence, &found);
	} while (found != RECORD_NEWEST && is_left_out(history, found));
	if (!result && found < *lowest)
		*lowest = found;
	return result;
}

int left_out_shows(struct engine *engine, struct partition *root, const struct history *history,
		   uint64_t from, uint64_t to, bool *shows)
{
	const struct history *device = root->history;
	struct idset versions = history_versions(engine, root);
	uint64_t horizon, bound = RECORD_NEWEST;
	int result = history_horizon(engine, device, device, &horizon);

	*shows |= !result && left_out_pass(history, max_u64(from, horizon)) <= to;
	if (!result && !*shows)
		result = history_set_shows(&versions, from, to, shows);
	if (!result && !*shows)
		result = left_out_lower_by_interval(engine, history, device, from, &bound);
	*shows |= bound <= to;
	return result;
}

/* The end of this slot is the first moment that does not show the partition. */
static int begin(struct engine_txn *txn, struct partition *root, struct history *history)
{
	struct device_history *device = &root->history->device;
	uint64_t oldest;
	int result = history_device_oldest(txn->engine, root->history, &oldest);

	if (result)
		return result;
	if (!history->left_from || history->left_until <= oldest)
		history->left_from = max_u64(slot_begin(txn->sequence), 1);
	history->left_until = 0;
	if (!device->left_since || history->left_from < device->left_since)
		device->left_since = history->left_from;
	return 0;
}

int left_out_follow(struct engine_txn *txn, struct partition *root, struct partition *partition)
{
	struct history *history = partition->history;
	bool none = history->particular && history->retention.kind == ENGINE_RETAIN_NONE;
	bool goes_on = history->left_from && !history->left_until;

	if (none && !goes_on)
		return begin(txn, root, history);
	if (!none && goes_on)
		history->left_until = txn->sequence;
	return 0;
}

/* ---- one moment of the device ---- */

/* Neither a version nor its own policy keeps a moment that leaves it out. */
int left_out_reaches(struct engine *engine, struct partition *partition, uint64_t bound)
{
	return is_left_out(partition->history, bound) ? history_reaches(engine, partition, bound)
						      : 0;
}

static int check_index(struct engine *engine, uint16_t index, uint64_t bound)
{
	struct source source;
	int result = source_open(engine, index, &source);

	if (!result)
		result = left_out_reaches(engine, source.partition, bound);
	if (source.partition)
		source_close(engine, &source);
	return result;
}

/* Whether a moment of the device may leave anything out. */
static int may_leave_out(struct engine *engine, uint64_t bound, bool *may)
{
	struct partition *root;
	int result = partition_get(engine, 0, &root);

	if (result)
		return result;
	*may = root->history->device.left_since && bound >= root->history->device.left_since;
	partition_release(engine, root);
	return 0;
}

int left_out_check(struct engine *engine, uint64_t id, uint64_t bound)
{
	uint16_t index;
	bool may = false;
	int result = may_leave_out(engine, bound, &may);

	if (result || !may)
		return result;
	result = partition_index_as_of(engine, id, bound, &index);
	return result ? result : check_index(engine, index, bound);
}

/* ---- rollbacks of the device ---- */

static int add(struct left_out *found, struct left_out_element element)
{
	if (found->count == found->capacity) {
		uint32_t capacity = found->capacity ? found->capacity * 2 : 16;
		struct left_out_element *elements =
			realloc(found->elements, capacity * sizeof(*elements));

		if (!elements)
			return -ENOMEM;
		found->elements = elements;
		found->capacity = capacity;
	}
	found->elements[found->count++] = element;
	return 0;
}

/* Adds an element of the table as of `bound` if the moment leaves its partition out. */
static int add_left_out(struct engine *engine, uint64_t element, uint64_t bound,
			struct left_out *found)
{
	struct partition state;
	int result = check_index(engine, (uint16_t)element, bound);

	if (result == -ENOENT)
		return add(found, (struct left_out_element){ .element = element });
	if (result)
		return result;
	/*
	 * No moment may need this partition any more. Then merging has dropped its state, and its
	 * index may have got another owner.
	 */
	result = partition_state_of(engine->store, (uint16_t)element, bound, &state);
	if (result == -ENOENT)
		return add(found, (struct left_out_element){ element, .is_nothing = true });
	return result;
}

int left_out_find(struct engine *engine, uint64_t bound, struct left_out *found)
{
	struct partition root = { 0 };
	struct idset_walk walk;
	struct idset table;
	uint64_t element;
	bool may = false;
	int result = may_leave_out(engine, bound, &may);

	*found = (struct left_out){ 0 };
	if (!result && may)
		result = partition_state_of(engine->store, RECORD_ROOT_INDEX, bound, &root);
	if (result || !may)
		return result;
	table = partition_set(engine, &root, PARTITION_USER_OBJECTS, bound);
	walk = idset_walk_from(&table, 0);
	while ((result = idset_walk(&walk, &element)) > 0) {
		result = add_left_out(engine, element, bound, found);
		if (result)
			break;
	}
	return result;
}

void left_out_free(struct left_out *found)
{
	free(found->elements);
}

/*
 * Keeps one partition as it is. It gets an interval of its own at the same number as the device's,
 * back to the number before. The smaller scope counts, so nothing of the partition is hidden.
 */
static int keep_one(struct engine_txn *txn, struct partition *root, struct left_out_element one)
{
	struct engine *engine = txn->engine;
	struct idset table = partition_set(engine, root, PARTITION_USER_OBJECTS, RECORD_NEWEST);
	const struct hidden_interval interval = { .to = txn->sequence - 1,
						  .partition = (uint16_t)one.element };
	struct partition state;
	int result = one.is_nothing ? 0 : hidden_add_beside(txn, interval);

	if (!result)
		result = partition_state_of(engine->store, interval.partition, RECORD_NEWEST,
					    &state);
	if (result != -ENOENT)
		return result;
	/* It had been removed, and stays so. */
	partition_mark(txn, root);
	result = idset_remove(&table, &txn->writer, one.element);
	return result == -ENOENT ? -EBADMSG : result;
}

int left_out_keep(struct engine_txn *txn, struct partition *root, const struct left_out *found)
{
	int result = 0;

	for (uint32_t at = 0; !result && at < found->count; at++)
		result = keep_one(txn, root, found->elements[at]);
	return result;
}
