/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The ports of registrations. tgtd keeps the registrations themselves, each with the number and
 * the time of its session (nexus.c); there is one note for each of them.
 */
#include "daemon/module/registrations.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "daemon/module/nexus.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Wants the others before it. */
#include "target.h"

enum { SERVICE_ACTION_MASK = 0x1F };

/* Of a parameter list: how long it is, and where SERVICE ACTION RESERVATION KEY is. */
enum { PARAMETER_BYTES = 24, KEY_OF_OTHERS = 8 };

/*
 * The beginning of tgtd's own structure (usr/iscsi/iscsid.h), which is in none of the headers for
 * backing stores. The module runs in the tgtd that it is built for only (identity.c).
 */
struct iscsi_session {
	int refcount;
	struct list_head slist, hlist;
	char *initiator, *initiator_alias;
	void *target;
	uint8_t isid[REGISTRATION_ISID_BYTES];
	uint16_t tsih;
};

/* list.h has an offsetof of its own, which is no constant to clang. */
static_assert(__builtin_offsetof(struct iscsi_session, isid) == 64,
	      "as tgtd's compiler lays it out");

/* tgtd's. */
struct iscsi_session *session_lookup_by_tsih(uint16_t tsih);

/* False: the session is gone. */
static bool find_port(uint64_t number, struct registration_port *port)
{
	const struct iscsi_session *session = session_lookup_by_tsih((uint16_t)number);

	if (!session)
		return false;
	snprintf(port->name, sizeof(port->name), "%s", session->initiator);
	memcpy(port->isid, session->isid, sizeof(port->isid));
	return true;
}

static bool is_same(const struct registration_port *one, const struct registration_port *other)
{
	return strcmp(one->name, other->name) == 0 &&
	       memcmp(one->isid, other->isid, sizeof(one->isid)) == 0;
}

static struct registration *registration_of(struct scsi_lu *lu, long session)
{
	struct registration *each;

	list_for_each_entry(each, &lu->registration_list,
			    registration_siblings) if (each->ctime == session) return each;
	return NULL;
}

static struct registration_note *note_of(struct registrations *registrations, long session)
{
	for (size_t i = 0; i < REGISTRATIONS_MAX; i++)
		if (registrations->notes[i].session == session)
			return &registrations->notes[i];
	return NULL;
}

void registrations_note(struct registrations *registrations, struct scsi_lu *lu)
{
	struct registration *each;

	for (size_t i = 0; i < REGISTRATIONS_MAX; i++)
		if (registrations->notes[i].session &&
		    !registration_of(lu, registrations->notes[i].session))
			registrations->notes[i].session = 0;
	list_for_each_entry(each, &lu->registration_list, registration_siblings)
	{
		struct registration_note *note;

		if (note_of(registrations, each->ctime))
			continue;
		/* tgtd may have given the number of a session that has ended to another one. */
		if (!nexus_is_logged_in(lu->tgt, -(uint64_t)each->ctime))
			continue;
		note = note_of(registrations, 0);
		if (note && find_port(each->nexus_id, &note->port))
			note->session = each->ctime;
	}
}

void registrations_return(struct registrations *registrations, const struct scsi_cmd *cmd)
{
	struct registration_port port;

	if (list_empty(&cmd->dev->registration_list) || !find_port(cmd->cmd_itn_id, &port))
		return;
	for (size_t i = 0; i < REGISTRATIONS_MAX; i++) {
		struct registration_note *note = &registrations->notes[i];
		struct registration *registration;

		if (!note->session || !is_same(&note->port, &port))
			continue;
		registration = registration_of(cmd->dev, note->session);
		if (!registration)
			continue;
		registration->nexus_id = cmd->cmd_itn_id;
		registration->ctime = note->session = cmd->it_nexus->ctime;
	}
}

static bool is_for_all(uint8_t type)
{
	return type == PR_TYPE_WRITE_EXCLUSIVE_ALLREG || type == PR_TYPE_EXCLUSIVE_ACCESS_ALLREG;
}

struct registrations_shared registrations_before(const struct scsi_lu *lu)
{
	const struct registration *holder = lu->pr_holder;

	if (!holder || !is_for_all(holder->pr_type))
		return (struct registrations_shared){ .holder = NULL };
	return (struct registrations_shared){ holder, holder->pr_scope, holder->pr_type };
}

void registrations_after(const struct registrations_shared *before, const struct scsi_cmd *cmd)
{
	struct scsi_lu *lu = cmd->dev;
	struct registration *each, *heir;

	if (!before->holder || lu->pr_holder != before->holder)
		return;
	list_for_each_entry(each, &lu->registration_list,
			    registration_siblings) if (each == before->holder) return;
	heir = registration_of(lu, cmd->it_nexus->ctime);
	if (heir) {
		heir->pr_scope = before->scope;
		heir->pr_type = before->type;
	}
	lu->pr_holder = heir;
}

static bool is_type(uint8_t type)
{
	return is_for_all(type) || type == PR_TYPE_WRITE_EXCLUSIVE ||
	       type == PR_TYPE_EXCLUSIVE_ACCESS || type == PR_TYPE_WRITE_EXCLUSIVE_REGONLY ||
	       type == PR_TYPE_EXCLUSIVE_ACCESS_REGONLY;
}

bool registrations_preempt_wrongly(struct scsi_cmd *cmd)
{
	const struct registration *holder = cmd->dev->pr_holder;
	uint8_t scope = cmd->scb[2] >> 4, type = cmd->scb[2] & 0x0F;
	uint64_t key; /* of whom it preempts; 0: of all */

	if ((cmd->scb[1] & SERVICE_ACTION_MASK) != PR_OUT_PREEMPT || !holder ||
	    scsi_get_out_length(cmd) < PARAMETER_BYTES)
		return false;
	key = get_be64((const uint8_t *)scsi_get_out_buffer(cmd) + KEY_OF_OTHERS);
	if (key != (is_for_all(holder->pr_type) ? 0 : holder->key))
		return false;
	return scope != PR_LU_SCOPE || !is_type(type);
}

bool registrations_refuse(const struct registrations *registrations, const struct scsi_cmd *cmd)
{
	uint8_t action = cmd->scb[1] & SERVICE_ACTION_MASK;

	if (action != PR_OUT_REGISTER && action != PR_OUT_REGISTER_AND_IGNORE_EXISTING_KEY &&
	    action != PR_OUT_REGISTER_AND_MOVE)
		return false;
	for (size_t i = 0; i < REGISTRATIONS_MAX; i++)
		if (!registrations->notes[i].session ||
		    (registrations->notes[i].session == cmd->it_nexus->ctime &&
		     action != PR_OUT_REGISTER_AND_MOVE))
			return false;
	return true;
}
