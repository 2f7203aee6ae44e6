/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* A flush of a record store as a whole, for tests in which nothing happens beside it. */
#ifndef MUNINN_TESTS_ENGINE_FLUSH_NOW_H
#define MUNINN_TESTS_ENGINE_FLUSH_NOW_H

#include "engine/records/records.h"

static inline int flush_now(struct record_store *store)
{
	return store->operations->flush(store, store->operations->flush_begin(store));
}

#endif
