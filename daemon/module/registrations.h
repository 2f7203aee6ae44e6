/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * To which initiator port each registration of PERSISTENT RESERVE OUT belongs. tgtd knows the
 * session only that has made it, so an initiator whose connection broke would stand before its own
 * reservation. SPC wants that a registration outlives the session: it belongs to the port, which is
 * the initiator's name and the session's ISID.
 *
 * tgtd keeps registrations as long as the unit, also while it has no image, and so does this.
 *
 * All on tgtd's main thread.
 */
#ifndef MUNINN_DAEMON_MODULE_REGISTRATIONS_H
#define MUNINN_DAEMON_MODULE_REGISTRATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Of one unit, registered at once. */
#define REGISTRATIONS_MAX 128

/* RFC 7143: the longest name of an initiator. */
#define REGISTRATION_NAME_MAX   223
#define REGISTRATION_ISID_BYTES 6

struct scsi_cmd;
struct scsi_lu;

struct registration_port {
	char name[REGISTRATION_NAME_MAX + 1];
	uint8_t isid[REGISTRATION_ISID_BYTES];
};

/* Of one unit; zeroed at the beginning. */
struct registrations {
	struct registration_note {
		long session; /* it_nexus.ctime; 0: there is no note here */
		struct registration_port port;
	} notes[REGISTRATIONS_MAX];
};

/* Behind a command that may have changed what is registered. */
void registrations_note(struct registrations *registrations, struct scsi_lu *lu);

/*
 * Before the command, which is the first one of its session: what the port registered in an
 * earlier session belongs to this one.
 */
void registrations_return(struct registrations *registrations, const struct scsi_cmd *cmd);

/* A reservation that is for all registrants, before a command. */
struct registrations_shared {
	const struct registration *holder; /* whose it is to tgtd; NULL: there is none */
	uint8_t scope, type;
};

/*
 * Around a PERSISTENT RESERVE OUT. When somebody removes the holder's registration by PREEMPT, the
 * reservation stays as long as there are others, and tgtd goes on to use what it has freed. So it
 * becomes that of the session that sent the command.
 */
struct registrations_shared registrations_before(const struct scsi_lu *lu);
void registrations_after(const struct registrations_shared *before, const struct scsi_cmd *cmd);

/*
 * Would the command take a reservation for its session by PREEMPT, of a scope or type that there is
 * not? tgtd looks at neither. Where PREEMPT only removes registrations, nothing hangs on them.
 */
bool registrations_preempt_wrongly(struct scsi_cmd *cmd);

/* Would the command, a PERSISTENT RESERVE OUT, register one more than there may be? */
bool registrations_refuse(const struct registrations *registrations, const struct scsi_cmd *cmd);

#endif
