/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A backup of a device that serves: a thread that copies the image and the NVRAM into two files, as
 * they are at one instant (nand/image_copy.h), and tells who asked for it how far it is. It ends
 * when he goes away.
 *
 * It tells him over a socket of whole messages (SOCK_SEQPACKET), a line of text each, without its
 * end:
 *
 *   instant MICROSECONDS   the instant is behind; for so long all commands of the device waited
 *   copied BYTES TOTAL     now and then
 *   done BYTES             both files are complete, and stable on their storage
 *   failed ERRNO SENTENCE  they are worth nothing
 */
#ifndef MUNINN_DAEMON_MODULE_BACKUP_H
#define MUNINN_DAEMON_MODULE_BACKUP_H

#include <stdbool.h>

#include "common/error.h"

#define BACKUP_LINE_BYTES 1024 /* of a message */

/* Descriptors of a backup, in this order. */
enum backup_file { BACKUP_IMAGE, BACKUP_NVRAM, BACKUP_LISTENER, BACKUP_FILES };

struct backup;
struct device;
struct engine;
struct nand;

/*
 * Begins one. It takes the descriptors, if it succeeds. The device must stay open until backup_end.
 * -errno with a sentence.
 */
int backup_begin(const struct device *device, struct nand *nand, struct engine *engine,
		 const int fds[BACKUP_FILES], struct backup **backup, struct error_text *error);

/* Whether it is over, so that backup_end would not wait. */
bool backup_is_over(const struct backup *backup);

/* Gives it up if it is not over, waits for its thread, and frees it. NULL: nothing happens. */
void backup_end(struct backup *backup);

#endif
