/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Instructions that an administrator leaves for the unit. Each is a file IMAGE.NAME beside the
 * image, where no initiator can write, and holds a number.
 */
#ifndef MUNINN_DAEMON_MODULE_INSTRUCTION_H
#define MUNINN_DAEMON_MODULE_INSTRUCTION_H

#include <stdint.h>

/*
 * Reads one. -ENOENT: there is none. -EINVAL: it holds no number. Others are the file system's.
 */
int instruction_read(const char *image, const char *name, uint64_t *number);

/*
 * Ends one that was read, by removing IMAGE.NAME. `refusal` NULL: it was carried out. Otherwise
 * the reason why not goes to the log, and into IMAGE.NAME.refused for whoever waits for IMAGE.NAME
 * to go.
 */
void instruction_answer(const char *image, const char *name, const char *refusal);

#endif
