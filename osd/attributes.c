/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Carries out the sets and gets of a command: in list, page and CDB format, on what pages.c knows.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* ---- what the command asks for ---- */

bool osd_has_sets(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	return cdb->format == OSD_ATTRIBUTES_LIST ? cdb->set_data.length != 0 : cdb->set_page != 0;
}

bool osd_has_gets(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	if (cdb->list_attributes && request->entry->flags & OSD_LISTS)
		return false;
	if (cdb->format == OSD_ATTRIBUTES_LIST)
		return cdb->get_list.length != 0;
	return cdb->format == OSD_ATTRIBUTES_PAGE && cdb->get_page != 0;
}

/* Keeps one command from visiting attributes without end. */
static int count_visit(struct osd_request *request)
{
	if (request->attribute_visits++ >= OSD_ATTRIBUTE_VISITS_MAX)
		return osd_result(request, -E2BIG, 0);
	return 0;
}

/* The list can't be read: sense data for that. */
static int fail_list(struct osd_request *request, int result)
{
	if (result == -EMSGSIZE)
		return osd_result(request, result, 0);
	return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_INVALID_FIELD_IN_PARAMETER_LIST);
}

static int is_length(void *context, const struct osd_attribute *attribute)
{
	(void)context;
	return attribute->page == OSD_USER_OBJECT_INFORMATION &&
	       attribute->number == OSD_INFORMATION_LOGICAL_LENGTH;
}

bool osd_sets_length(const struct osd_request *request)
{
	return osd_each_set(request, is_length, NULL) == 1;
}

/* ---- sets ---- */

int osd_each_set(const struct osd_request *request,
		 int (*use)(void *context, const struct osd_attribute *attribute), void *context)
{
	const struct osd_cdb *cdb = &request->cdb;
	const uint8_t *data = request->command->data_out;
	struct osd_attribute attribute = { .page = cdb->set_page, .number = cdb->set_number };
	struct osd_list_reader reader;
	int result;

	if (!osd_has_sets(request))
		return 0;
	if (cdb->format == OSD_ATTRIBUTES_LIST) {
		result = osd_list_read(&reader, cdb->version, OSD_LIST_TO_SET,
				       data + cdb->set_data.offset, cdb->set_data.length);
		while (result == 0 && (result = osd_list_next(&reader, &attribute)) == 1)
			result = use(context, &attribute);
		return result;
	}
	if (cdb->format == OSD_ATTRIBUTES_PAGE) {
		attribute.length = cdb->set_data.length;
		attribute.value = attribute.length > 0 ? data + cdb->set_data.offset : NULL;
	} else {
		attribute.length = cdb->set_length;
		attribute.value = cdb->set_value;
	}
	attribute.present = attribute.length;
	return use(context, &attribute);
}

struct set_context {
	struct osd_request *request;
	const struct osd_subject *subject;
	enum engine_type type;
};

static int check_set(void *context, const struct osd_attribute *attribute)
{
	struct set_context *set = context;

	if (count_visit(set->request) != 0)
		return -E2BIG;
	if (osd_page_check_set(set->request, set->type, attribute) != 0)
		return osd_fail_attribute(set->request, attribute->page, attribute->number);
	return 0;
}

int osd_check_sets(struct osd_request *request, enum engine_type type)
{
	struct set_context set = { .request = request, .type = type };
	int result = osd_each_set(request, check_set, &set);

	if (result != 0 && !request->failed)
		return fail_list(request, result);
	return result;
}

int osd_apply_set(struct osd_request *request, const struct osd_subject *subject,
		  const struct osd_attribute *attribute)
{
	int result = osd_page_set(request, subject, attribute);

	if (result == -EFBIG || result == -EINVAL)
		return osd_fail_attribute(request, attribute->page, attribute->number);
	return osd_result(request, result, 0);
}

static int apply_set(void *context, const struct osd_attribute *attribute)
{
	struct set_context *set = context;

	if (count_visit(set->request) != 0)
		return -E2BIG;
	return osd_apply_set(set->request, set->subject, attribute);
}

int osd_apply_sets(struct osd_request *request)
{
	struct osd_subject subject;
	struct set_context set = { .request = request, .subject = &subject };
	uint64_t objects = max_u64(request->created, 1);

	if (!osd_has_sets(request) || request->entry->flags & OSD_OWN_LISTS)
		return 0;
	for (uint64_t i = 0; i < objects; i++) {
		int result = osd_open_created(request, i, &subject);

		if (result != 0)
			return osd_result(request, result, OSD_FIELD_OBJECT);
		/*
		 * osd_check_sets has checked the lists. A result here is a failure that has its
		 * sense data.
		 */
		if (osd_each_set(request, apply_set, &set) != 0)
			return -EINVAL;
		osd_close(&subject);
	}
	return 0;
}

/* ---- gets in list format ---- */

static int add_value(struct osd_request *request, struct osd_list_writer *writer, uint32_t page,
		     uint32_t number, const uint8_t *value, uint32_t length)
{
	/* A value that does not fit ends the list; that is no error. */
	osd_list_add_value(writer, page, number, value, length);
	return count_visit(request);
}

static int add_current_command(struct osd_request *request, struct osd_list_writer *writer)
{
	uint8_t value[OSD_IDENTIFICATION_BYTES];
	uint32_t length;

	for (uint32_t number = 0;
	     number <= OSD_CURRENT_CHANGE_IN_USED_CAPACITY && !writer->truncated; number++) {
		osd_current_command_get(request, number, value, &length);
		if (length > 0 && add_value(request, writer, OSD_PAGE_CURRENT_COMMAND, number,
					    value, length) != 0)
			return -E2BIG;
	}
	return 0;
}

/* The directory page: one attribute for each page that exists, with that page's identification. */
static int add_directory(struct osd_request *request, const struct osd_subject *subject,
			 uint32_t wanted, struct osd_list_writer *writer)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	uint32_t directory = osd_first_page(subject->stat.type) + OSD_PAGE_DIRECTORY;
	uint32_t page = directory, number = 0, length;
	int result;

	result = osd_page_get(request, subject, directory, directory, value, &length);
	if (result == 0 && (wanted == OSD_ATTRIBUTE_ALL || wanted == directory))
		result = add_value(request, writer, directory, directory, value, length);
	while (result == 0 && !writer->truncated) {
		result = osd_page_next(request, subject, &page, &number, value, &length);
		if (result == -ENOENT)
			return 0;
		if (result == 0)
			result = osd_page_get(request, subject, directory, page, value, &length);
		if (result == 0 && (wanted == OSD_ATTRIBUTE_ALL || wanted == page))
			result = add_value(request, writer, directory, page, value, length);
		else if (result == 0)
			result = count_visit(request);
		/* Ends behind the last page number. */
		if (page >= OSD_PAGE_CURRENT_COMMAND - 1)
			break;
		page++;
		number = 0;
	}
	return result;
}

/* From a defined attribute to the place where the next wanted one may be. */
static void step(uint32_t wanted, uint32_t *page, uint32_t *number)
{
	if (wanted == OSD_ATTRIBUTE_ALL) {
		(*number)++;
		return;
	}
	/* One number is wanted of every page: it may still come in this page. */
	if (*number >= wanted)
		(*page)++;
	*number = wanted;
}

/* All defined attributes that a descriptor with a wildcard means, in ascending order. */
static int add_wildcard(struct osd_request *request, const struct osd_subject *subject,
			const struct osd_attribute *asked, struct osd_list_writer *writer)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	uint32_t directory = osd_first_page(subject->stat.type) + OSD_PAGE_DIRECTORY;
	uint32_t page = asked->page == OSD_PAGE_ALL ? 0 : asked->page;
	uint32_t number = asked->number == OSD_ATTRIBUTE_ALL ? 0 : asked->number;
	uint32_t length;
	int result = 0;

	if (asked->page == OSD_PAGE_CURRENT_COMMAND)
		return add_current_command(request, writer);
	if (asked->page == OSD_PAGE_ALL || asked->page == directory)
		result = add_directory(request, subject, asked->number, writer);
	if (asked->page == directory)
		return result;
	while (result == 0 && !writer->truncated) {
		result = osd_page_next(request, subject, &page, &number, value, &length);
		if (result == -ENOENT ||
		    (result == 0 && asked->page != OSD_PAGE_ALL && page != asked->page))
			return 0;
		if (result != 0)
			break;
		if (asked->number == OSD_ATTRIBUTE_ALL || number == asked->number)
			osd_list_add_value(writer, page, number, value, length);
		step(asked->number, &page, &number);
		result = count_visit(request);
	}
	return result;
}

static int add_one(struct osd_request *request, const struct osd_subject *subject,
		   const struct osd_attribute *asked, struct osd_list_writer *writer)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	uint32_t length;
	int result;

	result = osd_page_get(request, subject, asked->page, asked->number, value, &length);
	if (result == -EINVAL)
		return osd_fail_attribute(request, asked->page, asked->number);
	if (result != 0)
		return osd_result(request, result, 0);
	return add_value(request, writer, asked->page, asked->number, value, length);
}

static bool is_wildcard(const struct osd_attribute *asked)
{
	return asked->page == OSD_PAGE_ALL || asked->number == OSD_ATTRIBUTE_ALL;
}

/* Opens the get list. */
static int read_get_list(struct osd_request *request, struct osd_list_reader *reader)
{
	const struct osd_cdb *cdb = &request->cdb;
	int result = osd_list_read(reader, cdb->version, OSD_LIST_TO_GET,
				   request->command->data_out + cdb->get_list.offset,
				   cdb->get_list.length);

	return result == 0 ? 0 : fail_list(request, result);
}

/* Can objects of this type have the page? */
static bool page_fits(enum engine_type type, uint32_t page)
{
	enum engine_type page_type;

	if (page >= OSD_PAGES_ANY_OBJECT)
		return true;
	return osd_page_type(page, &page_type) && page_type == type;
}

int osd_check_gets(struct osd_request *request, enum engine_type type)
{
	struct osd_list_reader reader;
	struct osd_attribute asked;
	int result;

	if (request->cdb.format != OSD_ATTRIBUTES_LIST || request->cdb.get_list.length == 0)
		return 0;
	result = read_get_list(request, &reader);
	if (result != 0)
		return result;
	while ((result = osd_list_next(&reader, &asked)) == 1)
		if (!page_fits(type, asked.page))
			return osd_fail_attribute(request, asked.page, asked.number);
	return result < 0 ? fail_list(request, result) : 0;
}

/*
 * No space that an initiator can give is enough for this object. The sense data names it, so that
 * the initiator asks it alone.
 */
static int fail_too_long(struct osd_request *request, const struct osd_subject *subject,
			 const struct osd_attribute *asked)
{
	osd_fail_attribute(request, asked->page, asked->number);
	request->sense.has_object = true;
	request->sense.partition = osd_wire_partition(subject->address);
	request->sense.object = subject->stat.type == ENGINE_PARTITION
					? 0
					: osd_wire_object(request, subject->address.object);
	return -EINVAL;
}

int osd_answer_list(struct osd_request *request, const struct osd_subject *subject,
		    struct osd_list_writer *writer)
{
	struct osd_list_reader reader;
	struct osd_attribute asked;
	int result = read_get_list(request, &reader);

	if (result != 0)
		return result;
	while ((result = osd_list_next(&reader, &asked)) == 1 && !writer->truncated) {
		if (!page_fits(subject->stat.type, asked.page))
			return osd_fail_attribute(request, asked.page, asked.number);
		if (is_wildcard(&asked))
			result = add_wildcard(request, subject, &asked, writer);
		else
			result = add_one(request, subject, &asked, writer);
		if (result != 0)
			return request->failed ? result : osd_result(request, result, 0);
		if (osd_list_object_is_too_long(writer))
			return fail_too_long(request, subject, &asked);
	}
	return result < 0 ? fail_list(request, result) : 0;
}

/* ---- answers about several created objects ---- */

static int open_created(struct osd_request *request, uint64_t index, struct osd_subject *subject)
{
	return osd_result(request, osd_open_created(request, index, subject), OSD_FIELD_OBJECT);
}

/* OSD-2: object by object, all attributes of each. */
static int answer_objects(struct osd_request *request, struct osd_list_writer *writer)
{
	for (uint64_t i = 0; i < request->created && !writer->truncated; i++) {
		struct osd_subject subject;
		int result = open_created(request, i, &subject);

		if (result != 0)
			return result;
		if (!osd_list_object_begin(writer, osd_wire_object(request, subject.address.object),
					   osd_wire_type(subject.stat.type)))
			break;
		result = osd_answer_list(request, &subject, writer);
		if (result != 0)
			return result;
		osd_list_object_end(writer);
		osd_close(&subject);
	}
	return 0;
}

/* OSD-1: attribute by attribute, for all objects. */
static int answer_objects_osd1(struct osd_request *request, struct osd_list_writer *writer)
{
	uint8_t value[OSD_VALUE_BYTES_MAX];
	struct osd_list_reader reader;
	struct osd_attribute asked;
	int result = read_get_list(request, &reader);

	if (result != 0)
		return result;
	while ((result = osd_list_next(&reader, &asked)) == 1 && !writer->truncated) {
		if (is_wildcard(&asked))
			return osd_fail_attribute(request, asked.page, asked.number);
		for (uint64_t i = 0; i < request->created && !writer->truncated; i++) {
			struct osd_subject subject;
			uint32_t length;

			if (count_visit(request) != 0 || open_created(request, i, &subject) != 0)
				return -EINVAL;
			result = osd_page_get(request, &subject, asked.page, asked.number, value,
					      &length);
			osd_close(&subject);
			if (result == -EINVAL)
				return osd_fail_attribute(request, asked.page, asked.number);
			if (result != 0)
				return osd_result(request, result, 0);
			osd_list_add_object_value(writer,
						  osd_wire_object(request, subject.address.object),
						  asked.page, asked.number, value, length);
		}
	}
	return result < 0 ? fail_list(request, result) : 0;
}

/* ---- the answer in Data-In ---- */

void osd_add_to_data_in(struct osd_request *request, size_t length)
{
	struct osd_command *command = request->command;
	size_t offset = request->cdb.retrieved.offset;

	if (length == 0)
		return;
	request->security.answer_data = command->data_in_length;
	request->security.answer_attributes = length;
	if (offset > command->data_in_length)
		memset(command->data_in + command->data_in_length, 0,
		       offset - command->data_in_length);
	command->data_in_length = max_u64(command->data_in_length, offset + length);
}

/* What page format asks for: a page's structure, or with page FFFFFFFF the list of everything. */
static int answer_page(struct osd_request *request, uint8_t *place, size_t space)
{
	uint8_t structure[OSD_PAGE_STRUCTURE_BYTES_MAX];
	uint32_t page = request->cdb.get_page;
	size_t length;
	int result;

	if (request->created > 1 && page != OSD_PAGE_CURRENT_COMMAND)
		return osd_fail_field(request, 52);
	if (page == OSD_PAGE_ALL) {
		struct osd_attribute everything = { .page = OSD_PAGE_ALL,
						    .number = OSD_ATTRIBUTE_ALL };
		struct osd_list_writer writer;

		osd_list_begin(&writer, request->cdb.version, OSD_LIST_RETRIEVED, place, space);
		result = add_wildcard(request, &request->subject, &everything, &writer);
		if (result != 0)
			return request->failed ? result : osd_result(request, result, 0);
		osd_add_to_data_in(request, osd_list_end(&writer));
		return 0;
	}
	result = osd_page_structure(request, &request->subject, page, structure, &length);
	if (result != 0)
		return osd_result(request, result, 52);
	length = min_u64(length, space);
	if (length > 0)
		memcpy(place, structure, length);
	osd_add_to_data_in(request, length);
	return 0;
}

/* Where the answer goes. */
static uint8_t *place_of_answer(const struct osd_request *request)
{
	const struct osd_segment *retrieved = &request->cdb.retrieved;

	return request->command->data_in + (retrieved->length > 0 ? retrieved->offset : 0);
}

void osd_begin_answer(struct osd_request *request, struct osd_list_writer *writer)
{
	osd_list_begin(writer, request->cdb.version,
		       request->created > 1 ? OSD_LIST_OF_OBJECTS : OSD_LIST_RETRIEVED,
		       place_of_answer(request), request->cdb.retrieved.length);
}

void osd_end_answer(struct osd_request *request, struct osd_list_writer *writer)
{
	osd_add_to_data_in(request, osd_list_end(writer));
}

int osd_answer_gets(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	struct osd_subject *subject = &request->subject;
	bool several = request->created > 1;
	struct osd_list_writer writer;
	int result;

	if (!osd_has_gets(request) || request->entry->flags & OSD_OWN_LISTS)
		return 0;
	/* The command may have changed the object. */
	result = engine_object_stat(subject->object, &subject->stat);
	if (result != 0)
		return osd_result(request, result, OSD_FIELD_OBJECT);
	if (osd_show_data_access(request) != 0)
		return -EINVAL;
	if (cdb->format == OSD_ATTRIBUTES_PAGE)
		return answer_page(request, place_of_answer(request), cdb->retrieved.length);
	osd_begin_answer(request, &writer);
	if (!several)
		result = osd_answer_list(request, subject, &writer);
	else if (cdb->version == OSD_1)
		result = answer_objects_osd1(request, &writer);
	else
		result = answer_objects(request, &writer);
	if (result != 0)
		return result;
	osd_end_answer(request, &writer);
	return 0;
}
