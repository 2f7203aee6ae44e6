/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What a check of a device has found, and comparing what the device shows now with the model, but
 * for what the findings name.
 */
#ifndef MUNINN_TESTS_ENGINE_MODEL_MODEL_FINDINGS_H
#define MUNINN_TESTS_ENGINE_MODEL_MODEL_FINDINGS_H

#include "engine/check.h"
#include "tests/engine/model/model_run.h"

enum { MODEL_FINDINGS_MAX = 20000 };

struct model_findings {
	struct finding *list;
	uint32_t count;
};

/* Memory for MODEL_FINDINGS_MAX. */
void model_findings_create(struct model_findings *found);
void model_findings_destroy(struct model_findings *found);

/* As findings.take; `found` is a struct model_findings. MUNINN_VERBOSE prints each. */
void model_findings_take(void *found, const struct finding *finding);

/* What findings say of the device. */
#define MODEL_ALL_OLDER    "anything may be older"
#define MODEL_NO_ROLLBACKS "the newest rollbacks may be lost"
#define MODEL_OLDER_LIST   "the list of partitions" /* or damaged */

/* ... and of a partition, all of whose objects may be others then. */
#define MODEL_OTHER_MOMENT "as of another moment"

bool model_findings_say(const struct model_findings *found, const char *text);

/* Is all of it open, because everything may be older, or the newest rollbacks are lost? */
bool model_findings_leave_all_open(const struct model_findings *found);

/* Objects that were compared, and those that a finding names. */
struct model_compared {
	uint64_t objects, named;
};

/*
 * Compares partitions, objects, their data and attributes. What is not as in the model must be
 * named; fails the test otherwise. Compares nothing where all of it is open.
 */
struct model_compared model_findings_compare(struct model_run *run, struct engine *engine,
					     const struct model_findings *found);

#endif
