/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What tgtd's main thread puts off as long as it has more to do, because it costs less for several
 * at once. It is done before tgtd waits for events; answers.c sees to that, in a preloaded module.
 * In any other nothing is put off.
 *
 * Main thread only.
 */
#ifndef MUNINN_DAEMON_MODULE_LATER_H
#define MUNINN_DAEMON_MODULE_LATER_H

#include <stdbool.h>

typedef void later_work(void *context);

/*
 * Will do `work`, once if the same is put off again before that. False: tgtd is not busy, or too
 * much is put off already, so it is to be done now.
 */
bool later_put_off(later_work *work, void *context);

/* It need not be done any more: its context goes. */
void later_forget(void *context);

/* ---- for answers.c ---- */

/* Is there more to do than one thing? */
bool later_is_busy(void);
void later_set_busy(bool busy);

/* Is anything put off? Does it. */
bool later_has_any(void);
void later_do(void);

#endif
