/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Lets the record store merge, and tells it what must be kept. */
#include "engine/history/merge_step.h"

#include "engine/history/keep.h"

static int do_merge(struct engine *engine, struct record_merge *merge,
		    int (*function)(struct record_store *store, const struct record_keep *keep,
				    struct record_merge *merge))
{
	struct keep_context context;
	struct record_keep keep;
	int result;

	keep_begin(&context, engine, NULL, false);
	keep = keep_of(&context);
	result = function(engine->store, &keep, merge);
	keep_end(&context);
	return result;
}

int merge_step(struct engine *engine, struct record_merge *merge)
{
	uint64_t before = merge->pages_read + merge->records_moved;
	int result = do_merge(engine, merge, engine->store->operations->merge);

	records_worked += merge->pages_read + merge->records_moved - before;
	return result;
}

int merge_step_piece(struct engine *engine, struct record_merge *merge)
{
	uint64_t before = merge->records_moved;
	int result;

	merge->awaited = &engine->turn.wanted;
	result = do_merge(engine, merge, engine->store->operations->merge_step);

	/* Pages were read without the turn. */
	records_worked += merge->records_moved - before;
	return result;
}
