/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * COPY USER OBJECTS: new objects with the data, and if asked the attributes, of others. The others
 * may be in another partition, or in an old version.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"
#include "wire/vendor.h"

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
 * The command copies byte by byte, and each source as it is at one moment. So it need not be
 * frozen, and there is one time of duplication.
 */
static bool is_method_known(uint8_t method)
{
	return method == OSD_DUPLICATION_DEFAULT || method == OSD_DUPLICATION_BYTE_BY_BYTE ||
	       method == OSD_DUPLICATION_FASTEST ||
	       method == OSD_DUPLICATION_HIGHEST_AVAILABILITY || method == OSD_DUPLICATION_ANY;
}

/* It would be found, empty, as soon as the copy is made. */
static bool is_copy_itself(const struct osd_request *request, const struct osd_copy_source *source)
{
	return source->partition == request->cdb.partition && source->object == request->cdb.object;
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
	if (count == 0 || count > OSD_COPY_SOURCES_MAX || (count > 1 && request->cdb.object != 0))
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	while (next_source(&descriptors, &descriptor))
		if (osd_copy_source_decode(&descriptor, &source) != 0 || source.object == 0 ||
		    source.time != 0 || is_copy_itself(request, &source))
			return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	return 0;
}

/* ---- one source ---- */

/*
 * A copy is of one state of its source: the one that the first turn finds. If somebody modifies the
 * source between two turns, the copy of it begins again, from a moment that is held. Where none can
 * be held, because no history is kept, each turn copies what is there. The access is noted behind
 * that, because a transaction that has changed anything can't hold the present.
 */
static int begin_turn(struct osd_request *request, struct osd_subject *from, bool attributes)
{
	struct osd_copying *copying = &request->copying;
	struct engine_address address = from->address;
	uint64_t sequence = from->stat.modified_sequence;
	/* Of the present of an unlogged object it is not known. */
	bool has_changed = copying->sequence != sequence ||
			   (from->stat.is_unlogged && !osd_moment_is_past(&address));
	int result;

	if (copying->sequence != 0 && has_changed && !copying->restarted) {
		copying->restarted = true;
		copying->offset = 0;
		if (!osd_moment_is_past(&address))
			osd_moment_hold(request, address.partition);
	}
	copying->sequence = sequence;
	if (request->moment.view != 0 && !osd_moment_is_there(request))
		osd_moment_release(request);
	result = engine_object_accessed(from->object, true, attributes);
	if (result != 0)
		return osd_result(request, result, OSD_FIELD_CONTINUATION);
	if (request->moment.view == 0 || osd_moment_is_past(&address))
		return 0;
	address.version = request->moment.view;
	osd_close(from);
	return osd_result(request, osd_open(request, address, from), OSD_FIELD_CONTINUATION);
}

/* Copies as much as the turn still has pages for; request->more: not all. */
static int copy_data(struct osd_request *request, struct osd_subject *from,
		     struct engine_object *to, uint32_t *pages)
{
	int result = engine_object_copy_data(from->object, to, &request->copying.offset, pages);

	request->more = result == -EAGAIN;
	return request->more ? 0 : osd_result(request, result, OSD_FIELD_CONTINUATION);
}

/* The source is copied. */
static void next_copy(struct osd_request *request)
{
	struct osd_copying *copying = &request->copying;

	osd_moment_release(request);
	copying->source++;
	copying->offset = copying->sequence = 0;
	copying->restarted = false;
}

static int copy_one(struct osd_request *request, const struct osd_copy_source *source,
		    struct engine_object *to, uint32_t *pages)
{
	uint16_t permissions = OSD_PERMISSION_READ;
	struct osd_subject from;
	int result = 0;

	if (source->attributes)
		permissions |= OSD_PERMISSION_GET_ATTR;
	if (osd_find_named_object(request, source->partition, source->object, permissions, &from) !=
	    0)
		return -EINVAL;
	if (begin_turn(request, &from, source->attributes) != 0 ||
	    copy_data(request, &from, to, pages) != 0)
		return -EINVAL;
	if (!request->more && source->attributes)
		result = osd_page_copy_stored(request, &from, to);
	osd_close(&from);
	if (!request->more)
		next_copy(request);
	return result;
}

/* ---- all of them ---- */

/* Makes the copies, or finds those that an earlier transaction has made. */
static int find_copies(struct osd_request *request, uint32_t count)
{
	struct osd_copying *copying = &request->copying;
	struct engine_stat stat;
	int result;

	if (!copying->begun) {
		result = osd_create_objects(request, count);
		copying->first = request->subject.address.object;
		return result;
	}
	request->subject.address.object = copying->first;
	for (uint32_t i = 0; i < count; i++) {
		struct osd_subject copy;

		result = osd_open_created(request, i, &copy);
		stat = copy.stat;
		osd_close(&copy);
		if (result == 0 && stat.created_sequence != copying->created)
			result = -ENOENT;
		if (result != 0)
			return osd_result(request, result, OSD_FIELD_OBJECT);
	}
	return osd_created(request, ENGINE_USER_OBJECT, count);
}

/* The turn ends before all is copied: the copies exist from now on. */
static int end_turn(struct osd_request *request)
{
	struct osd_copying *copying = &request->copying;
	struct osd_subject first;
	int result = osd_quotas_check(request);

	if (result != 0)
		return result;
	result = osd_open_created(request, 0, &first);
	copying->begun = true;
	request->leaves_nothing = true;
	copying->created = first.stat.created_sequence;
	osd_close(&first);
	return osd_result(request, result, OSD_FIELD_OBJECT);
}

int osd_copy_user_objects(struct osd_request *request)
{
	struct osd_continuation descriptors = request->descriptors;
	/* A page is read and put. */
	uint32_t count = count_sources(request), pages = request->device->portions.pages / 2;
	struct osd_descriptor descriptor;
	struct osd_copy_source source;
	struct osd_subject to;
	uint32_t first = request->copying.source;
	int result = find_copies(request, count);

	for (uint32_t i = 0; result == 0 && !request->more && i < count; i++) {
		if (!next_source(&descriptors, &descriptor) ||
		    osd_copy_source_decode(&descriptor, &source) != 0)
			return osd_fail_field(request, OSD_FIELD_CONTINUATION);
		if (i < first)
			continue;
		request->more = i > first && osd_has_worked_enough(request);
		if (request->more)
			break;
		result = osd_open_created(request, i, &to);
		result = result != 0 ? osd_result(request, result, OSD_FIELD_OBJECT)
				     : copy_one(request, &source, to.object, &pages);
		osd_close(&to);
	}
	return result == 0 && request->more ? end_turn(request) : result;
}

/* Removes a copy if it is still there. */
static int remove_copy(struct osd_request *request, uint64_t index)
{
	struct osd_subject copy;
	int result = osd_open_created(request, index, &copy);

	if (result == 0 && copy.stat.created_sequence == request->copying.created)
		result = engine_object_remove(copy.object);
	osd_close(&copy);
	return result == -ENOENT ? 0 : result;
}

void osd_copy_end(struct osd_request *request)
{
	uint32_t count = count_sources(request);
	int result;

	/* If there is no memory for it, they stay, with what was copied so far. */
	if (!request->failed || !request->copying.begun ||
	    engine_begin(request->device->engine, ENGINE_FREE, &request->txn) != 0)
		return;
	request->subject.address = osd_address(request->cdb.partition, request->copying.first);
	result = 0;
	for (uint32_t i = 0; result == 0 && i < count; i++)
		result = remove_copy(request, i);
	if (result == 0)
		engine_commit(request->txn, false);
	else
		engine_abort(request->txn);
}
