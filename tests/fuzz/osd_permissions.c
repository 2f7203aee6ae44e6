/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Knows by itself which command needs which permission. */
#include "tests/fuzz/osd_permissions.h"

#include "engine/engine.h"
#include "wire/wire.h"

static const struct {
	uint16_t action;
	uint16_t needed;
} commands[] = {
	{ OSD_CREATE, OSD_PERMISSION_CREATE },
	{ OSD_LIST, OSD_PERMISSION_READ },
	{ OSD_PUNCH, OSD_PERMISSION_WRITE },
	{ OSD_READ, OSD_PERMISSION_READ },
	{ OSD_WRITE, OSD_PERMISSION_WRITE },
	{ OSD_APPEND, OSD_PERMISSION_APPEND },
	{ OSD_FLUSH, OSD_PERMISSION_OBJ_MGMT },
	{ OSD_CLEAR, OSD_PERMISSION_WRITE },
	{ OSD_REMOVE, OSD_PERMISSION_REMOVE },
	{ OSD_GET_ATTRIBUTES, OSD_PERMISSION_GET_ATTR },
	{ OSD_SET_ATTRIBUTES, OSD_PERMISSION_SET_ATTR },
	{ OSD_CREATE_AND_WRITE, OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE },
	{ OSD_COPY_USER_OBJECTS,
	  OSD_PERMISSION_CREATE | OSD_PERMISSION_WRITE | OSD_PERMISSION_M_OBJECT },
	{ OSD_CREATE_COLLECTION, OSD_PERMISSION_CREATE },
	{ OSD_CREATE_USER_TRACKING_COLLECTION, OSD_PERMISSION_CREATE },
	{ OSD_REMOVE_COLLECTION, OSD_PERMISSION_REMOVE },
	{ OSD_LIST_COLLECTION, OSD_PERMISSION_READ },
	{ OSD_FLUSH_COLLECTION, OSD_PERMISSION_OBJ_MGMT },
	{ OSD_QUERY, OSD_PERMISSION_QUERY },
	{ OSD_REMOVE_MEMBER_OBJECTS, OSD_PERMISSION_M_OBJECT | OSD_PERMISSION_REMOVE },
	{ OSD_GET_MEMBER_ATTRIBUTES, OSD_PERMISSION_M_OBJECT | OSD_PERMISSION_GET_ATTR },
	{ OSD_SET_MEMBER_ATTRIBUTES, OSD_PERMISSION_M_OBJECT | OSD_PERMISSION_SET_ATTR },
	{ OSD_READ_MAP, OSD_PERMISSION_READ },
	{ OSD_READ_MAPS_AND_COMPARE, OSD_PERMISSION_READ | OSD_PERMISSION_M_OBJECT },
};

static bool decode(const struct osd_input_command *input, struct osd_cdb *cdb)
{
	uint16_t bad_field;

	return osd_cdb_decode(input->cdb, input->cdb_length, cdb, &bad_field) == 0;
}

static bool has_sets(const struct osd_cdb *cdb)
{
	if (cdb->format == OSD_ATTRIBUTES_LIST)
		return cdb->set_data.length != 0;
	return cdb->set_page != 0;
}

uint16_t osd_permissions_of(const struct osd_input_command *input)
{
	struct osd_cdb cdb;

	if (!decode(input, &cdb) ||
	    (cdb.partition & ENGINE_LAST_PARTITION_ID) != OSD_SCENE_PARTITION)
		return 0;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].action == cdb.action)
			return commands[i].needed | (has_sets(&cdb) ? OSD_PERMISSION_SET_ATTR : 0);
	return 0;
}

bool osd_permissions_change(const struct osd_input_command *input)
{
	struct osd_cdb cdb;

	return !decode(input, &cdb) || osd_permissions_of(input) == 0 || has_sets(&cdb);
}

bool osd_permissions_allow_range(const struct osd_input_command *input, uint64_t start,
				 uint64_t length)
{
	struct osd_cdb cdb;

	if (length == 0 || !decode(input, &cdb))
		return true;
	switch (cdb.action) {
	case OSD_GET_ATTRIBUTES:
	case OSD_SET_ATTRIBUTES:
	case OSD_FLUSH:
		return true;
	case OSD_READ:
	case OSD_WRITE:
	case OSD_CLEAR:
		/* The range of a list of pieces is not looked at here. */
		return cdb.continuation_length != 0 ||
		       (cdb.address >= start && cdb.length <= length &&
			cdb.address - start <= length - cdb.length);
	default:
		return false;
	}
}
