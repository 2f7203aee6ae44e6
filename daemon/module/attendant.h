/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A thread that looks twice a second for instructions that the administrator of the host has left
 * beside an image. It does so also while no initiator sends anything, because somebody waits for
 * the answer.
 */
#ifndef MUNINN_DAEMON_MODULE_ATTENDANT_H
#define MUNINN_DAEMON_MODULE_ATTENDANT_H

struct attendant;

/* From now on calls `look` on a thread of its own. -errno. */
int attendant_start(void (*look)(void *context), void *context, struct attendant **attendant);

/* After this, `look` is not called any more. NULL is allowed. */
void attendant_stop(struct attendant *attendant);

#endif
