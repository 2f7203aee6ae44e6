/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which devices were served before: a list in the state directory. So the service can tell a device
 * that somebody has moved, or whose file system is not mounted, from one that never was.
 */
#ifndef MUNINN_DAEMON_KNOWN_H
#define MUNINN_DAEMON_KNOWN_H

#include <stdbool.h>

/* Whether the list has the image's path. False also if the list can't be read. */
bool known_has(const char *state_dir, const char *image);

/* Adds the path, unless it is there. Logs what fails: nothing but a warning hangs on it. */
void known_add(const char *state_dir, const char *image);

#endif
