/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How many pages of a device are due to be scrubbed, and when. A period is for all places of the
 * device, and what is not in use is passed over. So a device that holds little is read as seldom as
 * a full one.
 */
#include "daemon/module/scrubber.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"

enum {
	/* Users that move more pages a second have the flash to themselves ... */
	BUSY_RATE = 200,
	/* ... unless scrubbing is so much of a period behind. */
	BEHIND_PART = 30,
};

#define DAY_US UINT64_C(86400000000)

void scrubber_begin(struct scrubber *scrubber, const struct scrub_options *options,
		    struct engine *engine, struct nand *nand, uint64_t now_us)
{
	const struct nand_geometry *geometry = nand_geometry(nand);
	uint64_t pages = (uint64_t)geometry->blocks * geometry->pages_per_block;

	*scrubber = (struct scrubber){ .options = *options,
				       .engine = engine,
				       .nand = nand,
				       .last_us = now_us,
				       .scrub.position = now_us % pages };
}

static uint64_t pages_of_users(struct nand *nand)
{
	struct nand_counters counters;

	nand_read_counters(nand, &counters);
	return counters.by_cause[NAND_CAUSE_USER].pages_read +
	       counters.by_cause[NAND_CAUSE_USER].pages_programmed;
}

static void tell_pass(const struct scrubber *scrubber)
{
	const struct engine_scrub *scrub = &scrubber->scrub;

	if (!scrub->read)
		return;
	log_line(scrub->repaired || scrub->lost ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
		 "%s: scrubbed to its end: %llu pages read, %llu of them were lost and made again "
		 "from parity, %llu are lost for good",
		 nand_path(scrubber->nand), (unsigned long long)scrub->read,
		 (unsigned long long)scrub->repaired, (unsigned long long)scrub->lost);
}

/* Returns how many places it has come on. */
static uint64_t read_some(struct scrubber *scrubber, uint64_t pages)
{
	struct engine_scrub *scrub = &scrubber->scrub;
	uint64_t from = scrub->position, passed;

	scrub->pages = (uint32_t)pages;
	if (engine_scrub(scrubber->engine, scrub))
		return 0;
	if (scrub->position)
		return scrub->position - from;
	passed = scrub->end - from;
	tell_pass(scrubber);
	*scrub = (struct engine_scrub){ 0 };
	return passed;
}

/* Adds what is due of a period since the last look, and does it unless others are at work. */
static void read_what_is_due(struct scrubber *scrubber, uint64_t passed_us)
{
	const struct nand_geometry *geometry = nand_geometry(scrubber->nand);
	double pages = (double)geometry->blocks * geometry->pages_per_block;
	double period_us = (double)scrubber->options.days * DAY_US;
	uint64_t users = pages_of_users(scrubber->nand);
	bool busy = users - scrubber->pages_users > passed_us * BUSY_RATE / 1000000;
	uint64_t due;

	scrubber->pages_users = users;
	/* More than a period is never due. */
	scrubber->due = fmin(scrubber->due + (double)passed_us / period_us * pages, pages);
	if (scrubber->due < 1 || (busy && scrubber->due < pages / BEHIND_PART))
		return;
	due = min_u64((uint64_t)scrubber->due, passed_us * scrubber->options.rate / 1000000);
	if (due)
		scrubber->due -= (double)read_some(scrubber, due);
}

static void move_one(struct scrubber *scrubber)
{
	struct engine_merge_result merged = { 0 };
	int result;

	if (!scrubber->options.moves || !engine_damaged(scrubber->engine))
		return;
	result = engine_mend(scrubber->engine, &merged);
	if (result && result != -EAGAIN && result != scrubber->mend_error)
		log_line(LOG_LEVEL_WARNING, "%s: what is beside lost pages can't be moved: %s",
			 nand_path(scrubber->nand), strerror(-result));
	scrubber->mend_error = result;
}

void scrubber_look(struct scrubber *scrubber, uint64_t now_us)
{
	uint64_t passed_us = now_us - scrubber->last_us;

	scrubber->last_us = now_us;
	if (scrubber->options.days)
		read_what_is_due(scrubber, passed_us);
	move_one(scrubber);
}
