/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Numbers of sessions that never come again while tgtd runs. tgtd's own have 16 bits: after 65,535
 * logins a session has the number of an earlier one, and must not be taken for it.
 */
#ifndef MUNINN_DAEMON_MODULE_NEXUS_H
#define MUNINN_DAEMON_MODULE_NEXUS_H

#include <stdbool.h>
#include <stdint.h>

struct it_nexus;
struct scsi_cmd;

/* Before anybody asks for the session's number. On tgtd's main thread. */
void nexus_greet(struct it_nexus *nexus);

/* The number of a command's session, from 1. On any thread, as long as the command lives. */
uint64_t nexus_of(const struct scsi_cmd *cmd);

/*
 * The name of the session's initiator, ended by a blank. NULL: not known. On any thread, as long as
 * the command lives.
 */
const char *nexus_initiator(const struct scsi_cmd *cmd);

/* Is the session of a number logged in at the struct target? On tgtd's main thread. */
bool nexus_is_logged_in(void *target, uint64_t nexus);

#endif
