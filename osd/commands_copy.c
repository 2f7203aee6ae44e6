/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * COPY USER OBJECTS: new objects with the data, and if asked the attributes, of others. The others
 * may be in another partition, or in an old version.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* CDB byte of the duplication method. */
#define FIELD_DUPLICATION_METHOD 14

/* The next source in the continuation segment. False: there is none. */
static bool next_source(struct osd_continuation *descriptors, struct osd_descriptor *source)
{
	while (osd_continuation_next(descriptors, source) == 1)
		if (source->type == OSD_CONTINUATION_COPY_SOURCE)
			return true;
	return false;
}

static uint32_t count_sources(const struct osd_request *request)
{
	struct osd_continuation descriptors = request->descriptors;
	struct osd_descriptor descriptor;
	uint32_t count = 0;

	while (request->cdb.continuation_length > 0 && next_source(&descriptors, &descriptor))
		count++;
	return count;
}

/*
 * The command copies byte by byte, and nobody else changes anything meanwhile. So a source need not
 * be frozen, and there is one time of duplication.
 */
static bool is_method_known(uint8_t method)
{
	return method == OSD_DUPLICATION_DEFAULT || method == OSD_DUPLICATION_BYTE_BY_BYTE ||
	       method == OSD_DUPLICATION_FASTEST ||
	       method == OSD_DUPLICATION_HIGHEST_AVAILABILITY || method == OSD_DUPLICATION_ANY;
}

int osd_check_copy(struct osd_request *request)
{
	struct osd_continuation descriptors = request->descriptors;
	struct osd_descriptor descriptor;
	struct osd_copy_source source;
	uint32_t count = count_sources(request);

	if (!is_method_known(request->cdb.duplication_method))
		return osd_fail_field(request, FIELD_DUPLICATION_METHOD);
	/* With several copies the target chooses the IDs. */
	if (count == 0 || (count > 1 && request->cdb.object != 0))
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	while (next_source(&descriptors, &descriptor))
		if (osd_copy_source_decode(&descriptor, &source) != 0 || source.object == 0 ||
		    source.time != 0)
			return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	return 0;
}

static int copy_one(struct osd_request *request, const struct osd_copy_source *source,
		    struct engine_object *to)
{
	uint16_t permissions = OSD_PERMISSION_READ;
	struct osd_subject from;
	int result;

	if (source->attributes)
		permissions |= OSD_PERMISSION_GET_ATTR;
	if (osd_find_named_object(request, source->partition, source->object, permissions, &from) !=
	    0)
		return -EINVAL;
	result = engine_object_copy_data(from.object, to);
	if (result == 0)
		result = engine_object_accessed(from.object, true, source->attributes);
	if (result != 0)
		return osd_result(request, result, OSD_FIELD_CONTINUATION);
	if (source->attributes)
		result = osd_page_copy_stored(request, &from, to);
	osd_close(&from);
	return result;
}

int osd_copy_user_objects(struct osd_request *request)
{
	struct osd_continuation descriptors = request->descriptors;
	struct osd_descriptor descriptor;
	struct osd_copy_source source;
	struct osd_subject to;
	uint64_t made = 0;
	int result = osd_create_objects(request, count_sources(request));

	while (result == 0 && next_source(&descriptors, &descriptor) &&
	       osd_copy_source_decode(&descriptor, &source) == 0) {
		result = osd_open_created(request, made++, &to);
		result = result != 0 ? osd_result(request, result, OSD_FIELD_OBJECT)
				     : copy_one(request, &source, to.object);
		osd_close(&to);
	}
	return result;
}
