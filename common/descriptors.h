/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * File descriptors that go beside bytes over a Unix socket: who opened a file lets another process
 * use it, which need not be allowed to open it.
 */
#ifndef MUNINN_COMMON_DESCRIPTORS_H
#define MUNINN_COMMON_DESCRIPTORS_H

#include <stddef.h>
#include <sys/types.h>

#define DESCRIPTORS_MAX 4 /* beside one message */

/* Sends some of the bytes with all of the descriptors. How many, or -errno. */
ssize_t descriptors_send(int socket, const void *bytes, size_t length, const int *fds, int count);

/*
 * As recv(2), without waiting; -errno. Adds the descriptors that came to the *count in `fds`, which
 * has space for DESCRIPTORS_MAX; they are the caller's, and closed by exec. Closes those for which
 * there is no space.
 */
ssize_t descriptors_receive(int socket, void *bytes, size_t length, int *fds, int *count);

/* Closes them; *count is 0 then. */
void descriptors_close(int *fds, int *count);

#endif
