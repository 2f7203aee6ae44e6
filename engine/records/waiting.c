/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Whether the calling thread may wait. */
#include "engine/records/waiting.h"

#include <assert.h>

_Thread_local enum waiting waiting_now;
_Thread_local struct nand_stage *waiting_stage;
_Thread_local enum sealing_myself seals_now;

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

void seals_put_off(void)
{
	assert(seals_now == SEALS_ALLOWED);
	seals_now = SEALS_PUT_OFF;
}

void seals_decided(void)
{
	if (!has_missed_seal())
		seals_now = SEALS_ALLOWED;
}

bool seals_allow(void)
{
	bool missed = has_missed_seal();

	seals_now = SEALS_ALLOWED;
	return missed;
}
