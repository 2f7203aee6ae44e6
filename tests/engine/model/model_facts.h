/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What an engine shows of history beside contents, as sums to compare. */
#ifndef MUNINN_TESTS_ENGINE_MODEL_MODEL_FACTS_H
#define MUNINN_TESTS_ENGINE_MODEL_MODEL_FACTS_H

#include "tests/engine/model/model_run.h"

/* Of the device and of each partition: versions that are kept, policies, where clones come from. */
struct model_facts {
	bool known;
	uint32_t versions, retention, clones;
};

struct model_facts model_facts_learn(struct model_run *run);

/* What is shown now is as `wanted`, if that is known. */
void model_facts_compare(struct model_run *run, const struct model_facts *wanted);

#endif
