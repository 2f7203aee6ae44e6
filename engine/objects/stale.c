/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The list of what memory keeps of the records, and who forgets when. */
#include "engine/objects/stale.h"

#include <assert.h>

void stale_register(struct memories *memories, void *what, void (*forget)(void *what),
		    unsigned after)
{
	assert(memories->count < REMEMBERED_MAX);
	memories->list[memories->count++] =
		(struct remembered){ .what = what, .forget = forget, .after = after };
}

void stale_say(const struct memories *memories, unsigned events)
{
	for (uint32_t n = 0; n < memories->count; n++)
		if (memories->list[n].after & events)
			memories->list[n].forget(memories->list[n].what);
}
