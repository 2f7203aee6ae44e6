/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What an engine shows of history beside contents, as sums to compare. */
#include "tests/engine/model/model_facts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "common/crc32c.h"

#define ADD(crc, value) ((crc) = crc32c((crc), &(value), sizeof(value)))

static void add_versions(struct model_run *run, uint64_t partition, uint32_t *crc)
{
	struct engine_version version;
	int result;

	for (uint64_t from = 0;; from = version.position + 1) {
		result = answer(run, engine_version_next(run->txn, partition, from, &version));
		assert_true(result == 0 || result == -ENOENT);
		if (result)
			return;
		ADD(*crc, version.version);
		ADD(*crc, version.sequence);
		ADD(*crc, version.time_ms);
	}
}

static void add_facts(struct model_run *run, uint64_t partition, struct model_facts *facts)
{
	struct engine_retention retention;
	struct engine_clone clone = { 0 };
	uint64_t locked_until_ms;
	int result;

	add_versions(run, partition, &facts->versions);
	assert_int_equal(answer(run, engine_retention_get(run->txn, partition, &retention)), 0);
	ADD(facts->retention, retention.kind);
	ADD(facts->retention, retention.keep_all_ms);
	ADD(facts->retention, retention.keep_interval_ms);
	ADD(facts->retention, retention.keep_interval_for_ms);
	/* As it is stored: the day on which it ends hangs on the clock. */
	locked_until_ms = locks_stored(run, partition);
	ADD(facts->retention, locked_until_ms);
	if (!partition)
		return;
	result = answer(run, engine_clone_get(run->txn, partition, &clone));
	ADD(facts->clones, result);
	ADD(facts->clones, clone.source);
	ADD(facts->clones, clone.sequence);
	ADD(facts->clones, clone.time_ms);
}

struct model_facts model_facts_learn(struct model_run *run)
{
	struct model_facts facts = { .known = true };

	assert_int_equal(answer(run, engine_begin(run->engine, ENGINE_READ, &run->txn)), 0);
	add_facts(run, 0, &facts);
	for (uint32_t index = 0; index < MODEL_PARTITIONS; index++)
		if (run->model.partitions[index].now.self)
			add_facts(run, run->model.partitions[index].id, &facts);
	engine_abort(run->txn);
	run->txn = NULL;
	return facts;
}

void model_facts_compare(struct model_run *run, const struct model_facts *wanted)
{
	struct model_facts found = model_facts_learn(run);

	if (!wanted->known)
		return;
	assert_int_equal(found.versions, wanted->versions);
	assert_int_equal(found.retention, wanted->retention);
	assert_int_equal(found.clones, wanted->clones);
}
