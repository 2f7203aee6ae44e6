/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An administrator's instruction that ends the lock of a history. It comes through the file
 * system of the target's host, as IMAGE.unlock beside the image, which no initiator can write.
 */
#ifndef MUNINN_DAEMON_MODULE_UNLOCK_H
#define MUNINN_DAEMON_MODULE_UNLOCK_H

#include <stdint.h>

struct engine;

/*
 * Carries out IMAGE.unlock, if it is there: ends the lock of the partition that it names (0: of the
 * device's policy), and removes the file. Logs what became of it. If it was refused, the reason is
 * in IMAGE.unlock.refused before the file goes.
 */
void unlock_take(struct engine *engine, const char *image);

#endif
