/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Seals full buffers at random moments, as threads do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "common/bytes.h"
#include "tests/engine/sealers.h"

static uint32_t below(struct sealers *sealers, uint32_t limit)
{
	uint64_t random = sealers->random += UINT64_C(0x9e3779b97f4a7c15);

	random = (random ^ random >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	random = (random ^ random >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((random ^ random >> 31) % limit);
}

void sealers_forget(struct sealers *sealers)
{
	for (int n = 0; n < SEALERS; n++)
		sealers->at[n].busy = false;
}

static void take(struct sealers *sealers, struct record_store *store, uint32_t n)
{
	struct record_sealing state;
	uint64_t busy = 0;
	int number;

	store->operations->seal_state(store, &state);
	number = store->operations->seal_take(store);
	/* Or a thread would sleep beside work. */
	assert_true(!state.held_up || number == -EAGAIN);
	if (number < 0)
		return;
	sealers->at[n].busy = true;
	sealers->at[n].number = number;
	sealers->taken++;
	for (int other = 0; other < SEALERS; other++)
		busy += sealers->at[other].busy;
	sealers->most_at_once = max_u64(sealers->most_at_once, busy);
}

static void step(struct sealers *sealers, struct record_store *store, uint32_t n)
{
	int result = store->operations->seal_step(store, sealers->at[n].number);

	sealers->at[n].busy = result == 1;
	sealers->sealed += result == 0;
}

void sealers_act(struct sealers *sealers, struct record_store *store, bool in_transaction)
{
	for (uint32_t acts = below(sealers, 4); acts > 0; acts--) {
		uint32_t n = below(sealers, SEALERS);

		if (sealers->at[n].busy && (in_transaction || below(sealers, 2)))
			store->operations->seal_run(store, sealers->at[n].number);
		else if (!in_transaction && sealers->at[n].busy)
			step(sealers, store, n);
		else if (!in_transaction)
			take(sealers, store, n);
	}
}
