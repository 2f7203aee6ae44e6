/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What threads do that seal full buffers behind the writers, done at moments that a seed chooses:
 * a run repeats. Several buffers are under way, each in any stage, while transactions go on.
 */
#ifndef MUNINN_TESTS_ENGINE_SEALERS_H
#define MUNINN_TESTS_ENGINE_SEALERS_H

#include "engine/records/records.h"

enum { SEALERS = 3 };

struct sealers {
	uint64_t random;
	struct {
		bool busy;
		int number; /* that seal_take gave */
	} at[SEALERS];
	uint64_t taken, sealed, most_at_once; /* counts, for tests that they happen at all */
};

/* The store was opened anew: nothing of it is under way. */
void sealers_forget(struct sealers *sealers);

/*
 * A moment at which they may do something. `in_transaction`: they have no turn, so nothing but run
 * a stage.
 */
void sealers_act(struct sealers *sealers, struct record_store *store, bool in_transaction);

#endif
