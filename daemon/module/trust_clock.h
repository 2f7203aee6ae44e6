/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The administrator's word that the clock of the target's host is right now, after it had been
 * ahead. It comes through the file system of that host, as IMAGE.trust-clock beside the image.
 */
#ifndef MUNINN_DAEMON_MODULE_TRUST_CLOCK_H
#define MUNINN_DAEMON_MODULE_TRUST_CLOCK_H

struct engine;

/*
 * Takes IMAGE.trust-clock up, if it is there: ms since 1970, which time it is by the administrator.
 * If the clock is not far from that, times count by it from now on. Removes the file; what became
 * of it is logged.
 */
void trust_clock_take(struct engine *engine, const char *image);

#endif
