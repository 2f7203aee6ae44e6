/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * SEARCH: finds bytes here that would otherwise cross the network. A command does a bounded amount
 * of work and says where the next one goes on. Holes are zeros, and are not read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "osd/expression_find.h"
#include "osd/functions.h"

enum {
	WINDOW_BYTES = 64 << 10, /* of an object, in memory; shorter holes are read */
	READ_BYTES = 4096,       /* reads begin at multiples of it */
	WORK_BYTE = 4,           /* as expression_find counts */
	WORK_OBJECT = 4096,      /* to find and open one */
	WORK_HOLE = 1024,        /* to find its end */
};

struct search {
	struct osd_request *request;
	struct osd_item_writer writer;
	/* What is looked for: bytes, or (NULL) an expression. */
	const uint8_t *bytes;
	uint32_t length;
	bool zeros; /* the pattern is nothing but zeros, so holes match */
	struct expression *expression;
	struct expression_matcher *matcher;
	/* The place. */
	uint64_t object, offset; /* to go on */
	uint64_t passed;         /* objects left behind since the first command */
	uint64_t object_bytes;   /* length of the object in question */
	struct engine_object *opened;
	struct engine_extent
		extent;  /* of the object: the last answer of the engine; length 0: none */
	uint8_t *window; /* WINDOW_BYTES, and OSD_PATTERN_BYTES_MAX behind */
	uint64_t window_at, window_length; /* the part of the object to look in for an expression;
					      length 0: nothing yet */
	uint64_t work, looked_at;
	bool full; /* no space for more results, or enough work is done */
};

/* ---- what is looked for ---- */

static int compile_expression(struct search *search, const struct osd_item *item)
{
	search->expression = malloc(sizeof(*search->expression));
	if (!search->expression)
		return osd_result(search->request, -ENOMEM, 0);
	if (expression_compile(item->value, item->length, search->expression) != 0)
		return osd_fail_parameter(search->request, OSD_ITEM_REGEX);
	search->matcher = expression_matcher_create(search->expression);
	return search->matcher ? 0 : osd_result(search->request, -ENOMEM, 0);
}

static int take_pattern(struct search *search)
{
	struct osd_request *request = search->request;
	struct osd_item bytes, expression;
	bool has_bytes = osd_parameter(request, OSD_ITEM_PATTERN, &bytes) == 0;
	bool has_expression = osd_parameter(request, OSD_ITEM_REGEX, &expression) == 0;

	if (has_bytes == has_expression)
		return osd_fail_parameter(request, has_bytes ? OSD_ITEM_PATTERN : 0);
	if (has_expression)
		return compile_expression(search, &expression);
	if (bytes.length == 0 || bytes.length > OSD_PATTERN_BYTES_MAX)
		return osd_fail_parameter(request, OSD_ITEM_PATTERN);
	search->bytes = bytes.value;
	search->length = bytes.length;
	search->zeros = bytes.value[0] == 0 &&
			memcmp(bytes.value, bytes.value + 1, bytes.length - 1) == 0;
	return 0;
}

/* ---- holes ---- */

static bool is_inside(const struct engine_extent *extent, uint64_t offset)
{
	return offset >= extent->offset && offset - extent->offset < extent->length;
}

/*
 * *length: bytes up to the end of the hole at `offset`, which is inside the object. 0: data is
 * there, or only reading could tell.
 */
static int find_hole(struct search *search, uint64_t offset, uint64_t *length)
{
	struct engine_extent *extent = &search->extent;
	uint32_t budget = 0;
	int result;

	*length = 0;
	if (!is_inside(extent, offset)) {
		result = engine_object_map(search->opened, offset, false, &budget, extent);
		if (result != 0)
			extent->length = 0;
		if (result != 0 && result != -EAGAIN)
			return result;
	}
	if (extent->length > 0 && extent->kind == ENGINE_EXTENT_HOLE)
		*length = extent->offset + extent->length - offset;
	return 0;
}

/* ---- in one object ---- */

static bool add_match(struct search *search, uint64_t offset, uint64_t length)
{
	osd_item_open(&search->writer, OSD_ITEM_ENTRY);
	osd_item_add_number(&search->writer, OSD_ITEM_OBJECT,
			    osd_wire_object(search->request, search->object));
	osd_item_add_number(&search->writer, OSD_ITEM_OFFSET, offset);
	osd_item_add_number(&search->writer, OSD_ITEM_LENGTH, length);
	search->full = !osd_item_end(&search->writer);
	search->offset = search->full ? offset : offset + length;
	return !search->full;
}

/*
 * If there is a hole at search->offset, goes on to the first place where a match can begin that
 * ends behind it. *done: there was one.
 */
static int skip_hole(struct search *search, bool *done)
{
	uint64_t hole, end;
	int result = find_hole(search, search->offset, &hole);

	*done = result == 0 && hole >= WINDOW_BYTES && !search->zeros;
	if (!*done)
		return result;
	end = search->offset + hole;
	/* The object ends behind the hole, so no match can go on there. */
	search->offset = end < search->object_bytes ? end - (search->length - 1) : end;
	search->work += WORK_HOLE;
	return 0;
}

/*
 * Finds matches that begin in the WINDOW_BYTES at search->offset, or in the hole there. They do not
 * overlap.
 */
static int find_bytes(struct search *search)
{
	uint64_t start = search->offset, got;
	const uint8_t *from = search->window, *end, *found;
	bool skipped;
	int result = skip_hole(search, &skipped);

	if (result == 0 && !skipped)
		result = engine_object_read(search->opened, start, search->window,
					    WINDOW_BYTES + search->length - 1, &got);
	if (result != 0)
		return osd_result(search->request, result, 0);
	if (skipped)
		return 0;
	end = search->window + got;
	while ((found = memmem(from, (size_t)(end - from), search->bytes, search->length))) {
		if (!add_match(search, start + (uint64_t)(found - search->window), search->length))
			return 0;
		from = found + search->length;
	}
	search->offset = max_u64(search->offset, start + WINDOW_BYTES);
	search->work += min_u64(got, WINDOW_BYTES) * WORK_BYTE;
	return 0;
}

/* As expression_read. */
static int read_window(void *context, uint64_t offset, const uint8_t **bytes, size_t *length)
{
	struct search *search = context;
	uint64_t begin = offset - offset % READ_BYTES, hole;
	int result;

	*length = 0;
	*bytes = NULL;
	if (offset >= search->object_bytes)
		return 0;
	if (offset < search->window_at || offset - search->window_at >= search->window_length) {
		result = find_hole(search, offset, &hole);
		if (result == 0 && hole >= WINDOW_BYTES) {
			search->work += WORK_HOLE;
			*length = hole;
			return 0;
		}
		search->window_at = begin;
		search->window_length = 0;
		if (result == 0)
			result = engine_object_read(search->opened, begin, search->window,
						    WINDOW_BYTES, &search->window_length);
		if (result != 0 || search->window_length <= offset - begin)
			return result;
	}
	*bytes = search->window + (offset - search->window_at);
	*length = search->window_length - (offset - search->window_at);
	return 0;
}

static int find_expression(struct search *search)
{
	uint64_t begin, end;
	int result = expression_find(search->matcher, search->offset, read_window, search,
				     &search->work, &begin, &end);

	if (result < 0)
		return osd_result(search->request, result, 0);
	if (result == EXPRESSION_FOUND)
		add_match(search, begin, end - begin);
	else
		search->offset = result == EXPRESSION_NONE ? search->object_bytes : begin;
	return 0;
}

static void leave_object(struct search *search)
{
	search->object++;
	search->passed++;
	search->offset = 0;
}

/* Searches one object from search->offset on. When it is done with it, *object is the next one. */
static int search_object(struct search *search, const struct osd_subject *object)
{
	const struct engine_stat *stat = &object->stat;
	uint64_t start = min_u64(search->offset, stat->length);

	search->opened = object->object;
	search->object_bytes = stat->length;
	search->extent.length = search->window_length = 0;
	search->work += WORK_OBJECT;
	while (search->offset < stat->length && !search->full) {
		if ((search->bytes ? find_bytes(search) : find_expression(search)) != 0)
			return -EINVAL;
		search->full |= search->work >= EXPRESSION_WORK_MAX;
	}
	search->looked_at += min_u64(search->offset, stat->length) - start;
	if (search->offset < stat->length)
		return 0; /* to be gone on with */
	leave_object(search);
	return 0;
}

/* ---- in a partition ---- */

/*
 * Searches the user objects of a partition from search->object on. *done: it has looked at all of
 * them.
 */
static int search_partition(struct search *search, bool *done)
{
	struct osd_request *request = search->request;
	struct engine_address address = request->subject.address;
	struct osd_subject object;
	uint64_t next = 1;
	size_t count;

	while (!search->full) {
		uint64_t id;
		int result = engine_object_list(request->subject.object, ENGINE_LIST_USER_OBJECTS,
						search->object, &id, 1, &count, &next);

		if (result != 0)
			return osd_result(request, result, OSD_FIELD_PARTITION);
		if (count == 0) {
			*done = true;
			return 0;
		}
		if (id != search->object)
			search->offset = 0;
		search->object = address.object = id;
		result = osd_open(request, address, &object);
		if (result == -ENOENT && request->subject.stat.is_between) {
			search->work += WORK_OBJECT;
			leave_object(search);
		} else if (result != 0) {
			return osd_result(request, result, 0);
		} else {
			result = search_object(search, &object);
			osd_close(&object);
			if (result != 0)
				return result;
		}
		search->full |= search->work >= EXPRESSION_WORK_MAX;
	}
	return 0;
}

static int search_all(struct search *search, bool *done)
{
	const struct osd_subject *subject = &search->request->subject;
	uint64_t object = subject->address.object;
	int result;

	*done = false;
	if (subject->stat.type == ENGINE_PARTITION)
		return search_partition(search, done);
	if (subject->stat.type != ENGINE_USER_OBJECT || search->object != object)
		return osd_fail_field(search->request, OSD_FIELD_OBJECT);
	result = search_object(search, subject);
	*done = search->object != object;
	return result;
}

/* ---- the function ---- */

#define PLACE_BYTES 24
#define COUNT_BYTES (OSD_ITEM_HEAD_BYTES + 8)

/* Where the command before ended. */
static int load_place(struct search *search)
{
	struct osd_item item;

	search->object = search->request->subject.address.object;
	if (osd_parameter(search->request, OSD_ITEM_CONTINUATION, &item) != 0)
		return 0;
	if (item.length != PLACE_BYTES)
		return osd_fail_parameter(search->request, OSD_ITEM_CONTINUATION);
	search->object = get_be64(item.value);
	search->offset = get_be64(item.value + 8);
	search->passed = get_be64(item.value + 16);
	return search->offset <= INT64_MAX
		       ? 0
		       : osd_fail_parameter(search->request, OSD_ITEM_CONTINUATION);
}

/*
 * Progress: every object counts the same, whatever its length; the present one as far as the search
 * has come in it.
 */
static int tell_progress(const struct search *search)
{
	const struct engine_stat *stat = &search->request->subject.stat;
	uint64_t objects = stat->type == ENGINE_PARTITION ? stat->members : 1, part;

	if (search->passed >= objects)
		return 1000;
	part = search->offset / (search->object_bytes / 1000 + 1);
	return osd_permille(search->passed * 1000 + min_u64(part, 999), objects * 1000);
}

int osd_function_search(struct osd_request *request)
{
	struct search search = {
		.request = request,
		.work = EXPRESSION_WORK_MAX - request->device->portions.search_work,
	};
	uint8_t place[PLACE_BYTES];
	bool done = false;
	int result = load_place(&search);

	osd_result_begin(request, &search.writer);
	/* Keeps space for COUNT, which is told even when more matches do not fit. */
	search.writer.capacity -= COUNT_BYTES;
	if (result == 0)
		result = take_pattern(&search);
	if (result == 0) {
		search.window = malloc(WINDOW_BYTES + OSD_PATTERN_BYTES_MAX);
		result = search.window ? search_all(&search, &done)
				       : osd_result(request, -ENOMEM, 0);
	}
	expression_matcher_free(search.matcher);
	free(search.expression);
	free(search.window);
	if (result != 0)
		return result;
	search.writer.capacity += COUNT_BYTES;
	search.writer.full = false;
	osd_item_add_number(&search.writer, OSD_ITEM_COUNT, search.looked_at);
	put_be64(place, search.object);
	put_be64(place + 8, search.offset);
	put_be64(place + 16, search.passed);
	osd_result_end(request, &search.writer, done ? NULL : place, sizeof(place),
		       tell_progress(&search));
	return 0;
}
