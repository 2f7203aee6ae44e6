/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A new time epoch, after the clock of the target's host was far ahead. An administrator asks for
 * it through the file system of that host, as IMAGE.time-epoch beside the image.
 */
#ifndef MUNINN_DAEMON_MODULE_TIME_EPOCH_H
#define MUNINN_DAEMON_MODULE_TIME_EPOCH_H

struct engine;

/*
 * Carries out IMAGE.time-epoch, if it is there. The file holds the administrator's time, in ms
 * since 1970. If the host's clock is near to that, begins a time epoch. Logs what became of it, and
 * removes the file.
 */
void time_epoch_take(struct engine *engine, const char *image);

#endif
