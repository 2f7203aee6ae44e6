/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A new epoch of times, after the clock of the target's host had been far ahead. An administrator
 * asks for it through the file system of that host, as IMAGE.time-epoch beside the image.
 */
#ifndef MUNINN_DAEMON_MODULE_TIME_EPOCH_H
#define MUNINN_DAEMON_MODULE_TIME_EPOCH_H

struct engine;

/*
 * Takes IMAGE.time-epoch up, if it is there: ms since 1970, which time it is by the administrator.
 * If the clock is not far from that, times begin anew by it. Removes the file; what became of it is
 * logged.
 */
void time_epoch_take(struct engine *engine, const char *image);

#endif
