/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Keeps look-ups under way from one thread, by the engine's attempts and the stages of nand/. */
#include "bench/async.h"

#include <errno.h>

#include "engine/engine.h"
#include "nand/nand.h"

/* A look-up under way; stages have numbers below the depth. */
struct under_way {
	uint64_t number, begun_ns;
};

struct async {
	struct bench_store *store;
	const struct async_lookups *lookups;
	struct nand_stages *stages;
	uint32_t held; /* under way */
	struct under_way under_way[ASYNC_DEPTH_MAX];
};

/* 0: it has ended. 1: its pages are under way. */
static int attempt(struct async *async, struct nand_stage *stage)
{
	const struct async_lookups *lookups = async->lookups;
	uint64_t number = async->under_way[stage->number].number;
	int result;

	engine_attempt_begin(stage);
	result = lookups->lookup(lookups->context, number);
	engine_attempt_end();
	if (result == -EINPROGRESS) {
		uint64_t begun = bench_store_charge_begin(async->store);
		bool sent = nand_stage_send(stage);

		bench_store_charge_end(async->store, begun);
		if (sent)
			return 1;
		/* The stage can't help any more, so this one waits for its pages. */
		result = lookups->lookup(lookups->context, number);
	}
	return result;
}

/* Goes on with a look-up, and gives its stage back when it has ended. */
static int go_on(struct async *async, struct nand_stage *stage)
{
	int result = attempt(async, stage);

	if (result == 1)
		return 0;
	nand_stage_give(stage);
	async->held--;
	if (!result)
		async->lookups->done(async->lookups->context,
				     async->lookups->now_ns(async->store) -
					     async->under_way[stage->number].begun_ns);
	return result;
}

static struct nand_stage *next_to_go_on(struct async *async)
{
	uint64_t begun = bench_store_charge_begin(async->store);
	struct nand_stage *stage = nand_stages_next(async->stages, true);

	bench_store_charge_end(async->store, begun);
	return stage;
}

static int run(struct async *async)
{
	const struct async_lookups *lookups = async->lookups;
	uint64_t begun = 0;
	int result = 0;

	while (!result && (begun < lookups->operations || async->held)) {
		struct nand_stage *stage =
			begun < lookups->operations ? nand_stage_take(async->stages) : NULL;

		if (stage) {
			async->under_way[stage->number] =
				(struct under_way){ .number = begun++,
						    .begun_ns = lookups->now_ns(async->store) };
			async->held++;
		} else {
			stage = next_to_go_on(async);
		}
		result = go_on(async, stage);
	}
	return result;
}

int async_run(struct bench_store *store, const struct async_lookups *lookups)
{
	struct async async = { .store = store, .lookups = lookups };
	int result = nand_stages_open(store->nand, lookups->depth, &async.stages, NULL, NULL);

	if (result)
		return result;
	result = run(&async);
	nand_stages_close(async.stages);
	return result;
}
