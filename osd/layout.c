/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The layout of a partition, and what its layout can name. */
#include "osd/layout.h"

#include <errno.h>

#include "osd/execute.h"

/*
 * Where the layout of a partition stands. It never changes, so the present one will do, which is
 * cheapest to read. But a version of the device may show a partition that is gone, or that had this
 * ID before.
 */
static int whose_layout(struct osd_request *request, uint64_t partition,
			struct engine_address *address)
{
	const struct engine_address addressed = osd_address(partition, 0);
	const struct engine_moment moment = { ENGINE_AT_VERSION, addressed.version };
	uint64_t sequence;
	int result = 0;

	*address = (struct engine_address){ .partition = addressed.partition };
	if (addressed.version > ENGINE_PARTITION_VERSION_LAST &&
	    osd_has(request->device, ENGINE_HAS_VERSIONS))
		result =
			engine_moment_resolve(request->txn, addressed.partition, moment, &sequence);
	if (result == -ENOENT)
		*address = addressed;
	return result == -ENOENT ? 0 : result;
}

static int get_layout(struct osd_request *request, struct engine_address partition, uint8_t *layout)
{
	uint32_t length;
	int result = osd_attribute_at(request->txn, partition, OSD_MUNINN_PARTITION,
				      OSD_MUNINN_LAYOUT, layout, 1, &length);

	if (result == -ENOENT || length != 1)
		*layout = OSD_LAYOUT_FLAT;
	return result == -ENOENT ? 0 : result;
}

int osd_find_layout(struct osd_request *request, uint64_t partition)
{
	struct engine_address address = { 0 };
	uint8_t layout = OSD_LAYOUT_FLAT;
	int result = 0;

	if (!osd_names_root(partition)) {
		result = whose_layout(request, partition, &address);
		if (result == 0)
			result = get_layout(request, address, &layout);
	}
	request->layout = layout;
	return osd_result(request, result, 0);
}

int osd_layout_create(struct osd_request *request, enum engine_type type, uint32_t count,
		      uint64_t *first)
{
	uint64_t partition = request->subject.address.partition;
	uint64_t last = request->layout == OSD_LAYOUT_PACKED ? OSD_PACKED_OBJECT_MAX : UINT64_MAX;

	if (request->object != 0)
		return engine_create(request->txn, partition, type, request->object, count, first);
	return engine_create_up_to(request->txn, partition, type, last, count, first);
}

int osd_layout_inherit(struct osd_request *request)
{
	uint8_t layout = request->device->layout;

	if (layout == OSD_LAYOUT_FLAT)
		return 0;
	return osd_result(request,
			  engine_object_attribute_set(request->subject.object, OSD_MUNINN_PARTITION,
						      OSD_MUNINN_LAYOUT, &layout, 1),
			  0);
}

/*
 * The object got longer than the layout can name. Fails with the CDB field at fault, or with the
 * set.
 */
static int fail_too_long(struct osd_request *request)
{
	if (osd_sets_length(request))
		return osd_fail_attribute(request, OSD_USER_OBJECT_INFORMATION,
					  OSD_INFORMATION_LOGICAL_LENGTH);
	if (request->cdb.action == OSD_APPEND)
		return osd_fail_field(request, osd_length_field(request));
	if (request->cdb.action == OSD_COPY_USER_OBJECTS)
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	return osd_fail_field(request, osd_address_field(request));
}

int osd_layout_check(struct osd_request *request)
{
	uint64_t bytes_max =
		(uint64_t)OSD_PACKED_PAGES_MAX * engine_page_bytes(request->device->engine);
	struct engine_address address = request->subject.address;
	uint64_t objects = max_u64(request->created, 1);

	if (request->layout != OSD_LAYOUT_PACKED ||
	    request->subject.stat.type != ENGINE_USER_OBJECT)
		return 0;
	if (address.object + objects - 1 > OSD_PACKED_OBJECT_MAX)
		return osd_result(request, -EFBIG, 0);
	for (uint64_t i = 0; i < objects; i++) {
		struct osd_subject after;
		int result = osd_open_created(request, i, &after);

		if (result != 0)
			return osd_result(request, result, OSD_FIELD_OBJECT);
		osd_close(&after);
		if (after.stat.length > bytes_max && after.stat.length > request->before.length)
			return fail_too_long(request);
	}
	return 0;
}
