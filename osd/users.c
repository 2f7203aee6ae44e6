/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which sessions use a partition. A host that has a file system of it mounted keeps some of its
 * state in memory. If somebody takes the partition to another state, the host goes on with a
 * mixture, and writes it. So such commands are refused while other sessions use the partition.
 *
 * A session uses a partition from its first command on it until it logs out: nothing on the wire
 * says that a host has unmounted. A disk is a partition, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "osd/functions.h"
#include "wire/envelope.h"

void osd_note_use(const struct osd_request *request)
{
	struct engine_address address = osd_address(request->cdb.partition, 0);

	if (address.partition != 0 && address.version == 0)
		osd_use_note(request->device->conditions, request->command->nexus,
			     address.partition, request->command->initiator);
}

int osd_check_users(struct osd_request *request, uint64_t partition, bool force)
{
	char names[OSD_SENSE_USERS_BYTES + 1];
	unsigned users = force ? 0
			       : osd_users(request->device->conditions, request->command->nexus,
					   partition, names);

	if (users == 0)
		return 0;
	osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_MEDIUM_REMOVAL_PREVENTED);
	request->sense.users = users;
	memcpy(request->sense.user_names, names, sizeof(names));
	return -EINVAL;
}

void osd_forget_sessions(struct osd_device *device, osd_is_logged_in *is_logged_in, void *context)
{
	osd_nexuses_forget(device->conditions, is_logged_in, context);
	osd_letters_forget(&device->letters, is_logged_in, context);
}

/* ---- disks ---- */

struct osd_neighbour {
	struct osd_conditions *conditions;
	uint64_t partition;
};

struct osd_neighbour *osd_neighbour_create(struct osd_units *units, uint64_t partition)
{
	struct osd_neighbour *neighbour = calloc(1, sizeof(*neighbour));

	if (!neighbour)
		return NULL;
	neighbour->partition = partition;
	neighbour->conditions = osd_conditions_create();
	if (!neighbour->conditions) {
		free(neighbour);
		return NULL;
	}
	osd_conditions_join(neighbour->conditions, units);
	return neighbour;
}

void osd_neighbour_destroy(struct osd_neighbour *neighbour)
{
	if (!neighbour)
		return;
	osd_conditions_destroy(neighbour->conditions);
	free(neighbour);
}

uint16_t osd_neighbour_hear(struct osd_neighbour *neighbour, uint64_t nexus, const char *initiator)
{
	enum osd_attention attention;
	bool is_told = osd_attention_take(neighbour->conditions, nexus, &attention);

	osd_use_note(neighbour->conditions, nexus, neighbour->partition, initiator);
	return is_told ? osd_attention_code(attention) : 0;
}

void osd_neighbour_forget_sessions(struct osd_neighbour *neighbour, osd_is_logged_in *is_logged_in,
				   void *context)
{
	osd_nexuses_forget(neighbour->conditions, is_logged_in, context);
}

/* ---- who asks ---- */

bool osd_asks_for_sessions(struct osd_device *device, uint64_t nexus, const uint8_t *bytes,
			   size_t length)
{
	struct osd_cdb cdb;
	uint16_t bad_field, action = length >= 10 ? get_be16(bytes + 8) : 0;

	if (length > 0 && bytes[0] == ENVELOPE_FETCH)
		return osd_envelope_asks_for_sessions(device, nexus, bytes, length);
	/* Few commands are worth decoding here, where all pass. */
	if (length == 0 || bytes[0] != OSD_OPERATION_CODE)
		return false;
	if (action != OSD_EXECUTE)
		return action == OSD_REFRESH_SNAPSHOT_OR_CLONE ||
		       action == OSD_RESTORE_PARTITION_FROM_SNAPSHOT;
	return osd_cdb_decode(bytes, length, &cdb, &bad_field) == 0 &&
	       osd_function_code(&cdb) == OSD_FUNCTION_ROLLBACK;
}
