/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves steps out of a failing list (A. Zeller, R. Hildebrandt: ddmin, IEEE TSE 28(2), 2002). */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/sim/sim.h"

struct search {
	uint64_t *kept, *tried;
	size_t count;
	unsigned tries;
	sim_fails *fails;
	void *context;
};

/* Without the steps from `at` on, `length` of them. If that fails, too, they stay away. */
static bool leave_out(struct search *search, size_t at, size_t length)
{
	size_t rest = search->count - length;

	if (!search->tries)
		return false;
	search->tries--;
	memcpy(search->tried, search->kept, at * sizeof(*search->kept));
	memcpy(search->tried + at, search->kept + at + length, (rest - at) * sizeof(*search->kept));
	if (!search->fails(search->context, search->tried, rest))
		return false;
	memcpy(search->kept, search->tried, rest * sizeof(*search->kept));
	search->count = rest;
	return true;
}

/* Leaves out one part after the other, from the end; returns whether any stayed away. */
static bool sweep(struct search *search, size_t length)
{
	bool any = false;

	for (size_t end = search->count; end > 0 && search->count > 1;) {
		size_t at = end > length ? end - length : 0, part = end - at;

		if (part < search->count)
			any |= leave_out(search, at, part);
		end = at;
	}
	return any;
}

void sim_minimise(uint64_t *kept, size_t *count, unsigned tries, sim_fails *fails, void *context)
{
	struct search search = {
		kept, malloc(*count * sizeof(*kept)), *count, tries, fails, context
	};
	size_t length = *count / 2;

	if (!search.tried)
		abort();
	while (length > 0 && search.tries && search.count > 1) {
		if (!sweep(&search, length) || length > search.count / 2)
			length = length == 1 ? 0 : divide_up(length, 2);
	}
	free(search.tried);
	*count = search.count;
}
