/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Compares a device with the model, but for what findings name. */
#include "tests/engine/model/model_findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void model_findings_create(struct model_findings *found)
{
	*found =
		(struct model_findings){ .list = calloc(MODEL_FINDINGS_MAX, sizeof(*found->list)) };
	assert_non_null(found->list);
}

void model_findings_destroy(struct model_findings *found)
{
	free(found->list);
}

void model_findings_take(void *context, const struct finding *finding)
{
	struct model_findings *found = context;

	assert_true(found->count < MODEL_FINDINGS_MAX);
	found->list[found->count++] = *finding;
	if (getenv("MUNINN_VERBOSE"))
		printf("  %s 0x%llx/0x%llx: %s\n", finding_words(finding->kind)->name,
		       (unsigned long long)finding->partition, (unsigned long long)finding->object,
		       finding->text);
}

/* Whether a finding that means a loss is about it. */
static bool is_named(const struct model_findings *found, uint64_t partition, uint64_t object)
{
	for (uint32_t n = 0; n < found->count; n++)
		if (finding_words(found->list[n].kind)->is_loss &&
		    found->list[n].partition == partition && found->list[n].object == object)
			return true;
	return false;
}

/* Whether a clone may show its source as of another moment. */
static bool is_of_another_moment(const struct model_findings *found, uint64_t partition)
{
	for (uint32_t n = 0; n < found->count; n++)
		if (found->list[n].partition == partition && !found->list[n].object &&
		    strstr(found->list[n].text, MODEL_OTHER_MOMENT))
			return true;
	return false;
}

static bool is_orphan(const struct model_findings *found, uint64_t partition, uint64_t object)
{
	for (uint32_t n = 0; n < found->count; n++)
		if (found->list[n].kind == FINDING_ORPHAN &&
		    found->list[n].partition == partition && found->list[n].object == object)
			return true;
	return false;
}

bool model_findings_say(const struct model_findings *found, const char *text)
{
	for (uint32_t n = 0; n < found->count; n++)
		if (!found->list[n].partition && !found->list[n].object &&
		    strstr(found->list[n].text, text))
			return true;
	return false;
}

bool model_findings_leave_all_open(const struct model_findings *found)
{
	return model_findings_say(found, MODEL_ALL_OLDER) ||
	       model_findings_say(found, MODEL_NO_ROLLBACKS);
}

/* ---- comparing ---- */

struct comparison {
	struct model_run *run;
	struct engine_txn *txn;
	const struct model_findings *found;
	struct model_compared counts;
	bool list_is_older; /* that of partitions may be */
};

#define check(condition, ...)                  \
	do {                                   \
		if (!(condition))              \
			fail_msg(__VA_ARGS__); \
	} while (0)

static bool attributes_are_equal(struct comparison *comparison, struct engine_address address,
				 const struct model_object *object)
{
	for (uint32_t n = 0; n < object->attribute_count; n++) {
		const struct model_attribute *attribute = &object->attributes[n];
		uint8_t value[ENGINE_ATTRIBUTE_BYTES_MAX];
		uint32_t length = 0;

		if (engine_attribute_get(comparison->txn, address, attribute->page,
					 attribute->number, value, sizeof(value), &length) ||
		    length != attribute->length)
			return false;
		for (uint32_t at = 0; at < length; at++)
			if (value[at] != (uint8_t)(attribute->fill + at))
				return false;
	}
	return true;
}

static bool is_equal(struct comparison *comparison, struct engine_address address,
		     const struct model_object *object)
{
	struct model_run *run = comparison->run;
	struct engine_stat stat;
	uint64_t got;

	if (engine_stat(comparison->txn, address, &stat) || stat.type != object->type)
		return false;
	if (object->type == ENGINE_USER_OBJECT) {
		if (stat.length != object->length ||
		    engine_read(comparison->txn, address, 0, run->buffer, object->length, &got) ||
		    got != object->length)
			return false;
		for (uint64_t at = 0; at < got; at++)
			if (run->buffer[at] != (object->data ? object->data[at] : 0))
				return false;
	}
	return attributes_are_equal(comparison, address, object);
}

/* Then nobody has looked at all of its objects. */
static bool list_is_damaged(const struct model_findings *found, uint64_t partition)
{
	for (uint32_t n = 0; n < found->count; n++)
		if (found->list[n].kind == FINDING_DIRECTORY &&
		    found->list[n].partition == partition)
			return true;
	return false;
}

/* What no list shows is missing, whether it can be addressed or not. */
static bool is_listed(struct comparison *comparison, struct engine_address address,
		      enum engine_type type)
{
	enum engine_list what = type == ENGINE_COLLECTION ? ENGINE_LIST_COLLECTIONS
							  : ENGINE_LIST_USER_OBJECTS;
	struct engine_address partition = { .partition = address.partition };
	uint64_t id, next;
	size_t count;

	return !list_is_damaged(comparison->found, address.partition) &&
	       engine_list(comparison->txn, partition, what, address.object, &id, 1, &count,
			   &next) == 0 &&
	       count == 1 && id == address.object;
}

static void compare_object(struct comparison *comparison, uint64_t partition,
			   const struct model_object *object, bool partition_named)
{
	struct engine_address address = { .partition = partition, .object = object->id };

	if (is_named(comparison->found, partition, object->id)) {
		comparison->counts.named++;
		return;
	}
	comparison->counts.objects++;
	if (partition_named && !is_listed(comparison, address, object->type))
		return;
	check(is_equal(comparison, address, object),
	      "object 0x%llx/0x%llx is not what it was, and nothing says so",
	      (unsigned long long)partition, (unsigned long long)object->id);
}

/* What the model does not have must not be there, unless something says that it may. */
static void compare_list(struct comparison *comparison, const struct model_partition *partition,
			 enum engine_list what)
{
	struct engine_address address = { .partition = partition->id };
	uint64_t ids[64], next = 1;
	size_t count;

	while (next) {
		assert_int_equal(
			engine_list(comparison->txn, address, what, next, ids, 64, &count, &next),
			0);
		for (size_t n = 0; n < count; n++)
			check(object_model_find(&partition->now, ids[n]) ||
				      is_named(comparison->found, partition->id, ids[n]) ||
				      is_orphan(comparison->found, partition->id, ids[n]),
			      "object 0x%llx/0x%llx was not there, and nothing says so",
			      (unsigned long long)partition->id, (unsigned long long)ids[n]);
	}
}

/* Is it another partition of that ID than the one that was there? */
static bool is_another(const struct engine_stat *stat, const struct model_partition *partition)
{
	return stat->times_ms[ENGINE_TIME_CREATED] !=
	       partition->now.self->times_ms[ENGINE_TIME_CREATED];
}

static void compare_partition(struct comparison *comparison,
			      const struct model_partition *partition)
{
	struct engine_address address = { .partition = partition->id };
	bool named = is_named(comparison->found, partition->id, 0);
	struct engine_stat stat;
	int result = engine_stat(comparison->txn, address, &stat);

	if (!partition->now.self || result) {
		check(named || comparison->list_is_older || (result != 0) == !partition->now.self,
		      "partition 0x%llx: %d, and nothing says why",
		      (unsigned long long)partition->id, result);
		return;
	}
	if (comparison->list_is_older && is_another(&stat, partition))
		return;
	if (is_of_another_moment(comparison->found, partition->id))
		return;
	for (uint32_t n = 0; n < partition->now.count; n++)
		compare_object(comparison, partition->id, partition->now.objects[n], named);
	if (named)
		return;
	check(attributes_are_equal(comparison, address, partition->now.self),
	      "attributes of partition 0x%llx are not what they were, and nothing says so",
	      (unsigned long long)partition->id);
	compare_list(comparison, partition, ENGINE_LIST_USER_OBJECTS);
	compare_list(comparison, partition, ENGINE_LIST_COLLECTIONS);
}

struct model_compared model_findings_compare(struct model_run *run, struct engine *engine,
					     const struct model_findings *found)
{
	struct comparison comparison = {
		.run = run,
		.found = found,
		.list_is_older = model_findings_say(found, MODEL_OLDER_LIST),
	};

	if (model_findings_leave_all_open(found))
		return comparison.counts;
	assert_int_equal(engine_begin(engine, ENGINE_READ, &comparison.txn), 0);
	for (uint32_t n = 0; n < MODEL_PARTITIONS; n++)
		compare_partition(&comparison, &run->model.partitions[n]);
	engine_abort(comparison.txn);
	return comparison.counts;
}
