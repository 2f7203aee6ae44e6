/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Whether the calling thread may wait. In an attempt it may not: it does what can be done at once,
 * or nothing. Whatever would wait (for the turn, for flash, to seal) asks here first, and ends with
 * -EINPROGRESS instead. The attempt then fails as a whole, also if somebody takes that for another
 * error.
 *
 * It belongs to the thread, because what waits is far below who decides, and most of what is
 * between them must not care.
 */
#ifndef MUNINN_ENGINE_RECORDS_WAITING_H
#define MUNINN_ENGINE_RECORDS_WAITING_H

#include <errno.h>
#include <stdbool.h>

struct nand_stage;

enum waiting { WAITING_ALLOWED, WAITING_FORBIDDEN, WAITING_MISSED };

/* Of the calling thread. Only this file's functions change them. */
extern _Thread_local enum waiting waiting_now;
extern _Thread_local struct nand_stage *waiting_stage; /* for the pages of an attempt, or NULL */

static inline bool may_wait(void)
{
	return waiting_now == WAITING_ALLOWED;
}

/* In an attempt, in place of waiting: it fails. */
static inline int would_wait(void)
{
	waiting_now = WAITING_MISSED;
	return -EINPROGRESS;
}

/* Has the attempt failed? */
static inline bool has_missed(void)
{
	return waiting_now == WAITING_MISSED;
}

/* From here on the thread makes an attempt; not inside a transaction, and not inside another one.
 */
void waiting_forbid(struct nand_stage *stage);

/* The end of the attempt. */
void waiting_allow(void);

#endif
