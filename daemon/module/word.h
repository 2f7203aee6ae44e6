/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Words that an administrator leaves for the unit as IMAGE.NAME beside its image, where no
 * initiator can write: a number each, which says what about.
 */
#ifndef MUNINN_DAEMON_MODULE_WORD_H
#define MUNINN_DAEMON_MODULE_WORD_H

#include <stdint.h>

/*
 * Reads one. -ENOENT: there is none. -EINVAL: it holds no number. Else what the file system says.
 */
int word_read(const char *image, const char *name, uint64_t *number);

/*
 * Ends one that was read: it was carried out, or not, for the reason `refusal`. That is logged and
 * in IMAGE.NAME.refused before IMAGE.NAME goes, for who waits for it.
 */
void word_answer(const char *image, const char *name, const char *refusal);

#endif
