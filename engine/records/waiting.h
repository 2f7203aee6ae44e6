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

/*
 * A thread that can do a transaction again need not seal in it: a put that finds a row full, and no
 * spare buffer, ends with -EINPROGRESS then, and the transaction fails as a whole, as in an
 * attempt. What it found full is sealed behind it.
 */
enum sealing_myself { SEALS_ALLOWED, SEALS_PUT_OFF, SEALS_MISSED };
extern _Thread_local enum sealing_myself seals_now;

static inline bool may_seal(void)
{
	return seals_now == SEALS_ALLOWED;
}

/* In place of sealing. */
static inline int would_seal(void)
{
	seals_now = SEALS_MISSED;
	return -EINPROGRESS;
}

static inline bool has_missed_seal(void)
{
	return seals_now == SEALS_MISSED;
}

/* From here on; not inside a transaction. */
void seals_put_off(void);

/* The transaction has ended: if it missed none, what follows may seal. */
void seals_decided(void);

/* The end of that. Was one missed? */
bool seals_allow(void);

/* In an attempt, in place of waiting: it fails. */
static inline int would_wait(void)
{
	waiting_now = WAITING_MISSED;
	return -EINPROGRESS;
}

/* Has the attempt failed, or the transaction that may not seal? */
static inline bool has_missed(void)
{
	return waiting_now == WAITING_MISSED || has_missed_seal();
}

/* From here on the thread makes an attempt; not inside a transaction, and not inside another one.
 */
void waiting_forbid(struct nand_stage *stage);

/* The end of the attempt. */
void waiting_allow(void);

#endif
