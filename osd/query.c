/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * QUERY: which members of a collection have attributes inside given bounds. The matches are
 * returned, or become the members of a tracking collection.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* Every member is compared with all of them. More are refused. */
#define CRITERIA_MAX 64
/* Head of the query list; a criterion without bounds; answer before the IDs. */
#define LIST_HEAD_BYTES      4
#define CRITERION_BYTES_MIN  16
#define ANSWER_HEAD_BYTES    12
#define ANSWER_FORMAT_OFFSET 11

/*
 * A value of an attribute between two others, inclusive, as byte strings. Length 0: no such bound.
 */
struct criterion {
	uint32_t page, number;
	uint16_t minimum_length, maximum_length;
	const uint8_t *minimum, *maximum;
};

struct query {
	bool all; /* criteria must match, otherwise any */
	size_t count;
	struct criterion criteria[CRITERIA_MAX];
};

/* ---- the query list ---- */

/* Decodes the criterion at the start of `left` bytes. Returns its length; 0: malformed. */
static size_t decode_criterion(const uint8_t *from, size_t left, struct criterion *criterion)
{
	size_t bytes = 4 + (size_t)get_be16(from + 2), bounds;

	if (bytes < CRITERION_BYTES_MIN || bytes > left)
		return 0;
	bounds = bytes - CRITERION_BYTES_MIN;
	criterion->page = get_be32(from + 4);
	criterion->number = get_be32(from + 8);
	criterion->minimum_length = get_be16(from + 12);
	criterion->minimum = from + 14;
	if (criterion->minimum_length > bounds)
		return 0;
	from += 14 + criterion->minimum_length;
	criterion->maximum_length = get_be16(from);
	criterion->maximum = from + 2;
	return criterion->minimum_length + (size_t)criterion->maximum_length == bounds ? bytes : 0;
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* Decodes the query list. Bytes at the end that are too few for a criterion are padding. */
static int decode_query(struct osd_request *request, struct query *query)
{
	const uint8_t *from = request->query.content;
	size_t left = request->query.length, bytes;

	query->count = 0;
	if (!from || left < LIST_HEAD_BYTES || (from[0] & 0x0F) > OSD_QUERY_ALL)
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	query->all = (from[0] & 0x0F) == OSD_QUERY_ALL;
	from += LIST_HEAD_BYTES;
	left -= LIST_HEAD_BYTES;
	for (; left >= CRITERION_BYTES_MIN; from += bytes, left -= bytes) {
		bytes = query->count < CRITERIA_MAX
				? decode_criterion(from, left, &query->criteria[query->count])
				: 0;
		if (bytes == 0)
			return osd_fail_field(request, OSD_FIELD_CONTINUATION);
		query->count++;
	}
	if (query->count == 0 || !is_zero(from, left))
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	return 0;
}

int osd_query_each(struct osd_request *request,
		   int (*use)(void *context, const struct osd_attribute *attribute), void *context)
{
	struct query query;
	int result = decode_query(request, &query);

	for (size_t i = 0; i < query.count && result == 0; i++) {
		struct osd_attribute asked = { .page = query.criteria[i].page,
					       .number = query.criteria[i].number };

		result = use(context, &asked);
	}
	return result;
}

/* Is it one attribute that user objects can have, and not one of the command itself? */
static bool may_be_queried(const struct criterion *criterion)
{
	enum engine_type type;

	if (criterion->number == OSD_ATTRIBUTE_ALL || criterion->page >= OSD_PAGE_CURRENT_COMMAND)
		return false;
	return criterion->page >= OSD_PAGES_ANY_OBJECT ||
	       (osd_page_type(criterion->page, &type) && type == ENGINE_USER_OBJECT);
}

int osd_check_query(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	struct query query;

	/* Matches are either returned or collected. */
	if (cdb->immediate_tracking && cdb->address == 0)
		return osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
	if (cdb->address == 0 && cdb->length == 0)
		return osd_fail_field(request, osd_length_field(request));
	if (cdb->address != 0 && (cdb->length != 0 || cdb->address == cdb->object))
		return osd_fail_field(request, osd_address_field(request));
	if (decode_query(request, &query) != 0)
		return -EINVAL;
	for (size_t i = 0; i < query.count; i++)
		if (!may_be_queried(&query.criteria[i]))
			return osd_fail_attribute(request, query.criteria[i].page,
						  query.criteria[i].number);
	return 0;
}

/* ---- matching ---- */

/* Order of byte strings; a prefix comes first. */
static int compare(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	int order = memcmp(a, b, min_u64(a_length, b_length));

	if (order != 0)
		return order;
	return a_length < b_length ? -1 : a_length > b_length;
}

/* 1, 0, or the error of looking at the attribute. An undefined attribute matches nothing. */
static int matches_criterion(struct osd_request *request, const struct osd_subject *member,
			     const struct criterion *criterion)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	uint32_t length;
	int result =
		osd_page_get(request, member, criterion->page, criterion->number, value, &length);

	if (result != 0 || length == 0)
		return result;
	if (criterion->minimum_length != 0 &&
	    compare(value, length, criterion->minimum, criterion->minimum_length) < 0)
		return 0;
	return criterion->maximum_length == 0 ||
	       compare(value, length, criterion->maximum, criterion->maximum_length) <= 0;
}

static int matches(struct osd_request *request, const struct query *query,
		   const struct osd_subject *member)
{
	for (size_t i = 0; i < query->count; i++) {
		int result = matches_criterion(request, member, &query->criteria[i]);

		if (result < 0 || (result == 1) != query->all)
			return result;
	}
	return query->all;
}

/* ---- the result ---- */

struct search {
	struct osd_request *request;
	struct query query;
	struct engine_address from; /* the collection to search, and as of when */
	struct engine_object *into; /* collection for the matches; NULL: they are returned */
	uint64_t looked_at, missing, found;
};

/* A match: into the collection, or into Data-In if there is space. */
static int take_match(struct search *search, uint64_t id)
{
	struct osd_command *command = search->request->command;
	size_t at = ANSWER_HEAD_BYTES + 8 * (size_t)search->found;

	search->found++;
	if (search->into)
		return engine_object_member_insert(search->into, id);
	if (search->request->in_data_length < at + 8)
		return 0;
	put_be64(command->data_in + at, osd_wire_object(search->request, id));
	command->data_in_length = at + 8;
	return 0;
}

static int look_at(struct search *search, uint64_t id)
{
	struct osd_request *request = search->request;
	struct engine_address address = search->from;
	struct osd_subject member;
	int result;

	address.object = id;
	result = osd_open(request, address, &member);
	if (result == -ENOENT || (result == 0 && member.stat.type != ENGINE_USER_OBJECT)) {
		osd_close(&member);
		search->missing++;
		return 0;
	}
	search->looked_at++;
	if (result == 0)
		result = matches(request, &search->query, &member);
	osd_close(&member);
	return result == 1 ? take_match(search, id) : result;
}

/*
 * Looks at members from *next on, at most `portions` portions (UINT64_MAX: all of them). *next: the
 * first one that is left, 0: none.
 */
static int look_at_members(struct search *search, uint64_t portions, uint64_t *next)
{
	struct osd_request *request = search->request;
	uint64_t ids[OSD_CANDIDATES_PORTION];
	struct engine_object *collection;
	size_t count;
	int result = engine_open_object(request->txn, search->from, &collection);

	while (result == 0) {
		result = engine_object_list(collection, ENGINE_LIST_MEMBERS, *next, ids,
					    request->device->portions.candidates, &count, next);
		for (size_t i = 0; result == 0 && i < count; i++) {
			result = look_at(search, ids[i]);
			if (portions == UINT64_MAX || !osd_has_worked_enough(request))
				continue;
			*next = i + 1 < count ? ids[i + 1] : *next;
			portions = 1;
			break;
		}
		portions -= portions != UINT64_MAX;
		if (portions == 0 || *next == 0)
			break;
	}
	engine_close_object(collection);
	return osd_result(request, result, 0);
}

/*
 * The collection that takes the matches: a tracking one that nobody works on. Emptied at the
 * beginning.
 */
static int prepare_matches(struct search *search)
{
	struct osd_request *request = search->request;
	uint16_t field = osd_address_field(request);
	bool begun = request->tracking.partition != 0;
	struct osd_subject into;
	uint8_t type;
	int result;

	if (osd_find_collection(request, request->cdb.address, field, OSD_PERMISSION_WRITE,
				&into) != 0)
		return -EINVAL;
	search->into = into.object;
	if (begun)
		return osd_tracking_resume(request);
	result = osd_collection_type(&into, &type);
	if (result != 0)
		return osd_result(request, result, field);
	if (type != OSD_COLLECTION_IS_TRACKING)
		return osd_fail_field(request, field);
	if (osd_tracking_begin(request, into.address.object, request->subject.stat.members,
			       field) != 0)
		return -EINVAL;
	return osd_result(request, engine_object_members_clear(into.object), field);
}

/* One transaction of a search that collects its matches. */
static int collect(struct search *search)
{
	struct osd_request *request = search->request;
	struct osd_tracking *tracking = &request->tracking;

	if (prepare_matches(search) != 0 || look_at_members(search, 1, &tracking->next) != 0)
		return -EINVAL;
	tracking->counts.processed += search->looked_at;
	tracking->counts.missing_skipped += search->missing;
	request->more = tracking->next != 0;
	return osd_tracking_store(request, !request->more);
}

/* The answer's head; ADDITIONAL LENGTH is that of all matches. */
static void finish_answer(const struct search *search)
{
	struct osd_command *command = search->request->command;
	uint8_t head[ANSWER_HEAD_BYTES] = { 0 };
	size_t space = min_u64(search->request->in_data_length, ANSWER_HEAD_BYTES);

	put_be64(head, ANSWER_HEAD_BYTES - 8 + 8 * search->found);
	head[ANSWER_FORMAT_OFFSET] = OSD_LISTED_USER_OBJECTS << 2;
	memcpy(command->data_in, head, space);
	if (command->data_in_length < space)
		command->data_in_length = space;
}

/* ---- matches that are returned: those of one moment, whatever others change meanwhile ---- */

/*
 * Does the past show the attribute as it was? Accessed times are noted for the present only, and
 * the partition's ID would contain the version.
 */
static bool is_in_history(const struct criterion *criterion)
{
	return criterion->page != OSD_USER_OBJECT_TIMESTAMPS &&
	       !(criterion->page == OSD_USER_OBJECT_INFORMATION &&
		 criterion->number == OSD_INFORMATION_PARTITION_ID);
}

/* How a search can be done in turns, if it has to be. */
static void begin_search(struct search *search)
{
	struct osd_request *request = search->request;
	struct osd_search_progress *progress = &request->search;
	const struct osd_subject *subject = &request->subject;
	bool in_history = true;

	progress->begun = true;
	progress->kind = OSD_SEARCHES_WHOLE;
	if (subject->stat.members <=
	    (uint64_t)request->device->portions.turn * request->device->portions.candidates)
		return;
	for (size_t i = 0; i < search->query.count; i++)
		in_history &= is_in_history(&search->query.criteria[i]);
	if (subject->address.version != 0 || subject->address.ago != 0)
		progress->kind = OSD_SEARCHES_PAST;
	else if (in_history && osd_moment_hold(request, subject->address.partition))
		progress->kind = OSD_SEARCHES_MOMENT;
	else if (subject->stat.members > request->device->portions.objects)
		progress->kind = OSD_SEARCHES_PRESENT;
}

/* Begins again, without the moment that can't be seen any more. */
static void search_again(struct osd_request *request)
{
	struct osd_search_progress *progress = &request->search;
	bool few = request->subject.stat.members <= request->device->portions.objects;

	osd_moment_release(request);
	*progress = (struct osd_search_progress){ .begun = true,
						  .kind = few ? OSD_SEARCHES_WHOLE
							      : OSD_SEARCHES_PRESENT };
	request->command->data_in_length = 0;
}

static bool has_lost_its_moment(const struct osd_request *request)
{
	return request->search.kind == OSD_SEARCHES_MOMENT && !osd_moment_is_there(request);
}

/* A turn of the search; request->more: there is another one. */
static int search_on(struct search *search)
{
	struct osd_request *request = search->request;
	struct osd_search_progress *progress = &request->search;
	int result;

	search->from = request->subject.address;
	if (progress->kind == OSD_SEARCHES_MOMENT)
		search->from.version = request->moment.view;
	search->found = progress->found;
	result = look_at_members(
		search,
		progress->kind == OSD_SEARCHES_WHOLE ? UINT64_MAX : request->device->portions.turn,
		&progress->next);
	progress->found = search->found;
	request->more = result == 0 && progress->next != 0;
	request->leaves_nothing = request->more;
	return result;
}

static int return_matches(struct search *search)
{
	struct osd_request *request = search->request;

	if (!request->search.begun)
		begin_search(search);
	if (has_lost_its_moment(request))
		search_again(request);
	if (search_on(search) != 0) {
		osd_moment_release(request);
		return -EINVAL;
	}
	if (has_lost_its_moment(request)) {
		search_again(request);
		if (search_on(search) != 0)
			return -EINVAL;
	}
	if (!request->more) {
		osd_moment_release(request);
		finish_answer(search);
	}
	return 0;
}

int osd_query(struct osd_request *request)
{
	struct search search = { .request = request, .from = request->subject.address };

	if (decode_query(request, &search.query) != 0)
		return -EINVAL;
	return request->cdb.address != 0 ? collect(&search) : return_matches(&search);
}
