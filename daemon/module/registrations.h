/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * To which initiator port each registration of PERSISTENT RESERVE OUT belongs. tgtd knows the
 * session only that has made it, so an initiator whose connection broke would stand before its own
 * reservation. SPC wants that a registration outlives the session: it belongs to the port, which is
 * the initiator's name and the session's ISID.
 *
 * All on tgtd's main thread.
 */
#ifndef MUNINN_DAEMON_MODULE_REGISTRATIONS_H
#define MUNINN_DAEMON_MODULE_REGISTRATIONS_H

#include <stdbool.h>

/* Of one unit, registered at once. */
#define REGISTRATIONS_MAX 128

struct registrations;
struct scsi_cmd;
struct scsi_lu;

/* Of one unit. NULL: out of memory. */
struct registrations *registrations_create(void);
void registrations_destroy(struct registrations *registrations);

/* Behind a command that may have changed what is registered. */
void registrations_note(struct registrations *registrations, struct scsi_lu *lu);

/*
 * Before the command, which is the first one of its session: what the port registered in an
 * earlier session belongs to this one.
 */
void registrations_return(struct registrations *registrations, const struct scsi_cmd *cmd);

/* Would the command, a PERSISTENT RESERVE OUT, register one more than there may be? */
bool registrations_refuse(const struct registrations *registrations, const struct scsi_cmd *cmd);

#endif
