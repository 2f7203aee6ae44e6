/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Transactions with their buffers, used again and again, so that commands allocate none. */
#include <stdlib.h>

#include "common/quick_mutex.h"
#include "engine/objects/objects.h"

/*
 * The engine makes so many when it is opened. When more are open at once, it makes further ones and
 * keeps them. Each thread that calls the engine has one open at a time: a unit's I/O threads, at
 * most 64, and the few that work behind them.
 */
#define TRANSACTIONS_MADE 32
#define PAGES_EACH        2

int txn_pool_init(struct engine *engine)
{
	struct txn_pool *pool = &engine->pool;
	size_t page_bytes = engine->page_bytes;

	quick_mutex_init(&pool->mutex);
	pool->transactions = calloc(TRANSACTIONS_MADE, sizeof(*pool->transactions));
	pool->pages = malloc(TRANSACTIONS_MADE * PAGES_EACH * page_bytes);
	if (!pool->transactions || !pool->pages)
		return -ENOMEM;
	for (size_t i = 0; i < TRANSACTIONS_MADE; i++) {
		struct engine_txn *txn = &pool->transactions[i];

		for (size_t page = 0; page < PAGES_EACH; page++)
			txn->pages[page] = pool->pages + (i * PAGES_EACH + page) * page_bytes;
		txn->next_free = pool->free;
		pool->free = txn;
	}
	return 0;
}

void txn_pool_destroy(struct engine *engine)
{
	struct engine_txn *txn, *next;

	for (txn = engine->pool.free; txn; txn = next) {
		next = txn->next_free;
		if (txn->alone) {
			free(txn->pages[0]);
			free(txn);
		}
	}
	free(engine->pool.transactions);
	free(engine->pool.pages);
	pthread_mutex_destroy(&engine->pool.mutex);
}

static struct engine_txn *allocate(const struct engine *engine)
{
	struct engine_txn *txn = calloc(1, sizeof(*txn));
	uint8_t *pages = malloc(PAGES_EACH * (size_t)engine->page_bytes);

	if (!txn || !pages) {
		free(txn);
		free(pages);
		return NULL;
	}
	txn->alone = true;
	for (size_t page = 0; page < PAGES_EACH; page++)
		txn->pages[page] = pages + page * engine->page_bytes;
	return txn;
}

struct engine_txn *txn_new(struct engine *engine, enum engine_mode mode)
{
	struct txn_pool *pool = &engine->pool;
	struct engine_txn *txn;

	pthread_mutex_lock(&pool->mutex);
	txn = pool->free;
	if (txn)
		pool->free = txn->next_free;
	pthread_mutex_unlock(&pool->mutex);
	if (!txn)
		txn = allocate(engine);
	if (!txn)
		return NULL;
	*txn = (struct engine_txn){ .alone = txn->alone,
				    .pages = { txn->pages[0], txn->pages[1] },
				    .engine = engine,
				    .mode = mode };
	return txn;
}

void txn_free(struct engine_txn *txn)
{
	struct txn_pool *pool = &txn->engine->pool;

	onode_free(txn->old.onode);
	pthread_mutex_lock(&pool->mutex);
	txn->next_free = pool->free;
	pool->free = txn;
	pthread_mutex_unlock(&pool->mutex);
}
