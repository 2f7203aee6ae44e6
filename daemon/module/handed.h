/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Files that muninnd hands to the module in its tgtd. tgtd inherits one end of a pair of sockets,
 * whose number stands in its environment. muninnd sends the descriptors with a number, and then
 * names that number in a question (questions.h).
 */
#ifndef MUNINN_DAEMON_MODULE_HANDED_H
#define MUNINN_DAEMON_MODULE_HANDED_H

#include <stdint.h>

#include "common/error.h"

#define HANDED_VARIABLE "MUNINN_HANDED"

/* muninnd's end. 0 or -errno. */
int handed_send(int socket, uint64_t number, const int *fds, int count);

/*
 * The module's end: takes the `count` descriptors that came with the number, and closes what came
 * with others. -ENOENT with a sentence: they did not come. Any thread.
 */
int handed_take(uint64_t number, int *fds, int count, struct error_text *error);

#endif
