/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A thread that looks twice a second for what the administrator of the host has left beside an
 * image: also while no initiator sends anything, for somebody waits for what becomes of it.
 */
#ifndef MUNINN_DAEMON_MODULE_ATTENDANT_H
#define MUNINN_DAEMON_MODULE_ATTENDANT_H

struct attendant;

/* Calls `look` from now on, from a thread of its own. -errno. */
int attendant_start(void (*look)(void *context), void *context, struct attendant **attendant);

/* `look` is not called any more when this returns. NULL is allowed. */
void attendant_stop(struct attendant *attendant);

#endif
