/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Stages: pages on their way to those who do something else meanwhile. Each stage is a request of
 * one queue, again and again, with buffers of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/bytes.h"
#include "nand/page.h"
#include "nand/private.h"
#include "nand/stage.h"

struct stage {
	struct nand_stage base; /* first: callers have this */
	struct stage *next_free;
	struct nand_request request;
	uint32_t known; /* pages in `ios`: those that have come, and behind them those noted */
	uint32_t come;  /* of them */
	bool overfull;  /* one more was wanted than fits */
	bool failed;    /* the last ones could not be read */
	struct nand_page_io ios[NAND_STAGE_PAGES];
	uint32_t erase_counts[NAND_STAGE_PAGES]; /* of their blocks, when they were noted */
};

struct nand_stages {
	struct nand *nand;
	struct nand_queue *queue;
	int event_fd;
	uint32_t count, under_way;
	struct stage *free;
	uint8_t *memory; /* of all pages of all stages */
	struct stage stages[];
};

static struct stage *stage_of(struct nand_stage *base)
{
	return (struct stage *)base;
}

/* ---- pages ---- */

static bool locate(const struct nand *nand, uint64_t page, uint32_t *index,
		   struct nand_block_word *word)
{
	uint64_t block = page / nand->geometry.pages_per_block;

	*index = (uint32_t)(page % nand->geometry.pages_per_block);
	return block < nand->geometry.blocks && nand_word_load(nand, (uint32_t)block, word);
}

static uint32_t find(const struct stage *stage, uint64_t page)
{
	uint32_t n = 0;

	while (n < stage->known && stage->ios[n].page != page)
		n++;
	return n;
}

bool nand_stage_copy(struct nand *nand, struct nand_stage *base, const struct nand_page_io *io)
{
	struct stage *stage = stage_of(base);
	uint32_t n = find(stage, io->page), index;
	struct nand_block_word word;

	/* It was checked when it came, so only its block can have changed. */
	if (n >= stage->come || !locate(nand, io->page, &index, &word) ||
	    word.erase_count != stage->erase_counts[n] || index >= word.next_page)
		return false;
	if (io->data)
		memcpy(io->data, stage->ios[n].data, nand->geometry.page_bytes);
	if (io->spare)
		memcpy(io->spare, stage->ios[n].spare, nand_spare_usable(&nand->geometry));
	return true;
}

void nand_stage_note(struct nand *nand, struct nand_stage *base, uint64_t page)
{
	struct stage *stage = stage_of(base);
	uint32_t n = find(stage, page), index;
	struct nand_block_word word;

	if (n >= stage->come && n < stage->known)
		return;
	/*
	 * What has come is of an earlier life of its block, or what is wanted is not there: then
	 * others find out.
	 */
	if (n < stage->come || n == NAND_STAGE_PAGES || !locate(nand, page, &index, &word)) {
		stage->overfull = true;
		return;
	}
	stage->ios[n].page = page;
	stage->erase_counts[n] = word.erase_count;
	stage->known++;
}

/* ---- on their way ---- */

bool nand_stage_send(struct nand_stage *base)
{
	struct stage *stage = stage_of(base);
	struct nand_request *request = &stage->request;

	if (stage->overfull || stage->failed || stage->known == stage->come)
		return false;
	request->pages = stage->ios + stage->come;
	request->count = stage->known - stage->come;
	/* The queue has a place for each stage. */
	nand_submit(base->stages->queue, &request, 1);
	base->stages->under_way++;
	return true;
}

void nand_stages_flush(struct nand_stages *stages)
{
	nand_queue_flush(stages->queue);
}

struct nand_stage *nand_stages_next(struct nand_stages *stages, bool wait)
{
	struct nand_request *completed;
	struct stage *stage;

	if (!stages->under_way || !nand_reap(stages->queue, &completed, 1, wait))
		return NULL;
	stages->under_way--;
	stage = completed->owner;
	stage->failed = completed->result != 0;
	if (!stage->failed)
		stage->come = stage->known;
	return &stage->base;
}

/* ---- the set ---- */

struct nand_stage *nand_stage_take(struct nand_stages *stages)
{
	struct stage *stage = stages->free;

	if (!stage)
		return NULL;
	stages->free = stage->next_free;
	stage->known = stage->come = 0;
	stage->overfull = stage->failed = false;
	return &stage->base;
}

void nand_stage_give(struct nand_stage *base)
{
	struct stage *stage = stage_of(base);

	stage->next_free = base->stages->free;
	base->stages->free = stage;
}

static void make_stages(struct nand_stages *stages)
{
	uint32_t data_bytes = stages->nand->geometry.page_bytes;
	uint32_t spare_bytes = nand_spare_usable(&stages->nand->geometry);
	uint8_t *next = stages->memory;

	for (uint32_t number = 0; number < stages->count; number++) {
		struct stage *stage = &stages->stages[number];

		stage->base.stages = stages;
		stage->base.number = number;
		stage->request.kind = NAND_REQUEST_READ;
		stage->request.cause = NAND_CAUSE_USER;
		stage->request.owner = stage;
		for (uint32_t n = 0; n < NAND_STAGE_PAGES; n++) {
			stage->ios[n].data = next;
			stage->ios[n].spare = next + data_bytes;
			next += data_bytes + spare_bytes;
		}
		nand_stage_give(&stage->base);
	}
}

int nand_stages_open(struct nand *nand, uint32_t count, struct nand_stages **opened, int *event_fd,
		     struct error_text *error)
{
	struct nand_queue_options options = { .depth = count,
					      .request_pages = NAND_STAGE_PAGES,
					      .holds = true };
	size_t stage_bytes = (size_t)NAND_STAGE_PAGES *
			     (nand->geometry.page_bytes + nand_spare_usable(&nand->geometry));
	struct nand_stages *stages;
	int result;

	*opened = NULL;
	if (!nand->backend->async && event_fd)
		return -EOPNOTSUPP;
	stages = calloc(1, sizeof(*stages) + count * sizeof(stages->stages[0]));
	if (!stages)
		return error_set(error, -ENOMEM, "%s: out of memory", nand->path);
	stages->nand = nand;
	stages->count = count;
	stages->memory = malloc(count * stage_bytes);
	stages->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!stages->memory || stages->event_fd < 0) {
		result = error_set(error, stages->memory ? -errno : -ENOMEM,
				   "%s: no memory, or no event descriptor", nand->path);
		nand_stages_close(stages);
		return result;
	}
	make_stages(stages);
	options.event_fd = stages->event_fd;
	result = nand_queue_open(nand, &options, &stages->queue, error);
	if (result) {
		nand_stages_close(stages);
		return result;
	}
	if (event_fd)
		*event_fd = stages->event_fd;
	*opened = stages;
	return 0;
}

void nand_stages_close(struct nand_stages *stages)
{
	if (!stages)
		return;
	nand_queue_close(stages->queue);
	if (stages->event_fd >= 0)
		close(stages->event_fd);
	free(stages->memory);
	free(stages);
}
