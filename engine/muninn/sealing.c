/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Who runs a stage of sealing. */
#include "engine/muninn/sealing.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>

/*
 * Where pages and spare areas are made. An index that arranges records has pages composed: where
 * they can be programmed from without a copy.
 */
static int create_pages(const struct muninn_store *store, struct seal_scratch *scratch)
{
	uint64_t pages = store->geometry.segment_pages;

	if (!index_arranges(&store->geometry)) {
		scratch->spares = malloc(pages * nand_spare_usable(nand_geometry(store->nand)));
		return scratch->spares ? 0 : -ENOMEM;
	}
	scratch->views = malloc(pages * sizeof(*scratch->views));
	scratch->pages =
		aligned_alloc(NAND_MOVE_ALIGNMENT,
			      align_up(pages * nand_page_stride(store->nand), NAND_MOVE_ALIGNMENT));
	if (!scratch->views || !scratch->pages)
		return -ENOMEM;
	/* What lies between pages goes to the drive with them. */
	if (nand_page_stride(store->nand) >
	    store->geometry.page_bytes + nand_geometry(store->nand)->spare_bytes)
		memset(scratch->pages, 0, pages * nand_page_stride(store->nand));
	return 0;
}

/*
 * For each processor that a thread can have, and for who has the turn. More threads would only take
 * the processors, and what lies in their caches, from each other.
 */
static uint32_t scratch_count(void)
{
	cpu_set_t set;
	uint32_t processors = SEAL_SCRATCH_MAX; /* on more than a set can say */

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		processors = (uint32_t)CPU_COUNT(&set);
	return (uint32_t)min_u64(processors + 1, SEAL_SCRATCH_MAX);
}

/* What is written before it is read is not cleared: memory that nobody has used yet is none. */
int sealing_create(struct muninn_store *store)
{
	const struct parity_shape *parity = &store->geometry.parity;
	uint32_t pages = store->geometry.segment_pages, count = scratch_count();

	pthread_mutex_init(&store->seal_lock, NULL);
	pthread_cond_init(&store->seal_ran, NULL);
	for (uint32_t n = 0; n < count; n++) {
		struct seal_scratch *scratch = &store->scratch[n];

		scratch->ios = malloc(pages * sizeof(*scratch->ios));
		if (parity->losses)
			scratch->parity = malloc(parity_scratch_bytes(parity));
		if (!scratch->ios || (parity->losses && !scratch->parity) ||
		    create_pages(store, scratch))
			return -ENOMEM;
		scratch->next = store->free_scratch;
		store->free_scratch = scratch;
	}
	return 0;
}

void sealing_destroy(struct muninn_store *store)
{
	for (uint32_t n = 0; n < SEAL_SCRATCH_MAX; n++) {
		free(store->scratch[n].spares);
		free(store->scratch[n].ios);
		free(store->scratch[n].parity);
		free(store->scratch[n].views);
		free(store->scratch[n].pages);
	}
	for (uint32_t number = 0; store->rows && number < store->geometry.rows; number++)
		arrangement_destroy(store->rows[number].sealing.arrangement);
}

uint64_t sealing_memory(const struct muninn_store *store)
{
	uint64_t bytes = 0;

	for (uint32_t n = 0; n < SEAL_SCRATCH_MAX; n++)
		bytes += malloc_usable_size(store->scratch[n].spares) +
			 malloc_usable_size(store->scratch[n].ios) +
			 malloc_usable_size(store->scratch[n].parity) +
			 malloc_usable_size(store->scratch[n].views) +
			 malloc_usable_size(store->scratch[n].pages);
	return bytes;
}

void sealing_offer(struct muninn_store *store, struct sealing *sealing)
{
	pthread_mutex_lock(&store->seal_lock);
	sealing->running = SEAL_DUE;
	pthread_mutex_unlock(&store->seal_lock);
}

bool sealing_claim(struct muninn_store *store, struct sealing *sealing)
{
	bool claimed;

	pthread_mutex_lock(&store->seal_lock);
	claimed = sealing->running == SEAL_DUE;
	if (claimed)
		sealing->running = SEAL_RUNNING;
	pthread_mutex_unlock(&store->seal_lock);
	return claimed;
}

void sealing_ran(struct muninn_store *store, struct sealing *sealing)
{
	pthread_mutex_lock(&store->seal_lock);
	sealing->running = SEAL_IDLE;
	pthread_cond_broadcast(&store->seal_ran);
	pthread_mutex_unlock(&store->seal_lock);
}

void sealing_pause(struct muninn_store *store, struct sealing *sealing)
{
	pthread_mutex_lock(&store->seal_lock);
	while (sealing->running == SEAL_RUNNING)
		pthread_cond_wait(&store->seal_ran, &store->seal_lock);
	sealing->running = SEAL_IDLE;
	pthread_mutex_unlock(&store->seal_lock);
}

bool sealing_is_running(struct muninn_store *store, const struct sealing *sealing)
{
	bool running;

	pthread_mutex_lock(&store->seal_lock);
	running = sealing->running == SEAL_RUNNING;
	pthread_mutex_unlock(&store->seal_lock);
	return running;
}

void sealing_wait(struct muninn_store *store, const struct sealing *sealing)
{
	pthread_mutex_lock(&store->seal_lock);
	while (sealing->running == SEAL_RUNNING)
		pthread_cond_wait(&store->seal_ran, &store->seal_lock);
	pthread_mutex_unlock(&store->seal_lock);
}

void sealing_pause_all(struct muninn_store *store)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++)
		sealing_pause(store, &store->rows[number].sealing);
}

/* A thread leaves one for who has the turn: all others wait for him. */
static bool has_scratch(const struct muninn_store *store, const struct sealing *sealing)
{
	const struct seal_scratch *first = store->free_scratch;

	return first && (first->next || sealing->running != SEAL_RUNNING);
}

struct seal_scratch *sealing_take_scratch(struct muninn_store *store, const struct sealing *sealing)
{
	struct seal_scratch *scratch;

	pthread_mutex_lock(&store->seal_lock);
	while (!has_scratch(store, sealing))
		pthread_cond_wait(&store->seal_ran, &store->seal_lock);
	scratch = store->free_scratch;
	store->free_scratch = scratch->next;
	pthread_mutex_unlock(&store->seal_lock);
	return scratch;
}

void sealing_give_scratch(struct muninn_store *store, struct seal_scratch *scratch)
{
	pthread_mutex_lock(&store->seal_lock);
	scratch->next = store->free_scratch;
	store->free_scratch = scratch;
	pthread_cond_broadcast(&store->seal_ran);
	pthread_mutex_unlock(&store->seal_lock);
}
