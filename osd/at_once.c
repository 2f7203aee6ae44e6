/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which commands are worth an attempt (osd_execute_at_once): those that are short if nothing has to
 * wait. Whoever makes the attempt may have others to serve, so what takes long does not count as
 * short, however quick its parts are. It need not be exact: what is no attempt is executed as well.
 */
#include "osd/execute.h"

enum {
	/* Copying so much, with its checksums, takes no longer than handing a command over. */
	DATA_BYTES_MAX = 65536,
	/* Lists and values of attributes, of sets and of gets. */
	ATTRIBUTE_BYTES_MAX = 8192,
	OBJECTS_MAX = 8,
};

/* Did the sender ask for a method? Its nonce must not be used up by an attempt that fails. */
static bool is_signed(const struct osd_request *request)
{
	struct osd_capability capability;

	osd_capability_decode(request->cdb.version, request->cdb.capability, &capability);
	return capability.method != OSD_NOSEC;
}

static bool has_short_attributes(const struct osd_cdb *cdb)
{
	return cdb->get_list.length <= ATTRIBUTE_BYTES_MAX &&
	       cdb->set_data.length <= ATTRIBUTE_BYTES_MAX &&
	       cdb->retrieved.length <= ATTRIBUTE_BYTES_MAX;
}

bool osd_is_short(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	/* Whoever steps through commands wants to see each of their transactions. */
	if (request->device->step)
		return false;
	if (!(request->entry->flags & OSD_SHORT) || cdb->fua || cdb->length > DATA_BYTES_MAX ||
	    cdb->objects > OBJECTS_MAX || !has_short_attributes(cdb))
		return false;
	/* Statistics, which attributes of the root may be, are not taken in an attempt. */
	return !osd_names_root(cdb->partition) && !is_signed(request);
}
