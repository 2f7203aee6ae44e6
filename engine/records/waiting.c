/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Whether the calling thread may wait. */
#include "engine/records/waiting.h"

#include <assert.h>

_Thread_local enum waiting waiting_now;
_Thread_local struct nand_stage *waiting_stage;

void waiting_forbid(struct nand_stage *stage)
{
	assert(waiting_now == WAITING_ALLOWED);
	waiting_stage = stage;
	waiting_now = WAITING_FORBIDDEN;
}

void waiting_allow(void)
{
	assert(waiting_now != WAITING_ALLOWED);
	waiting_now = WAITING_ALLOWED;
}
