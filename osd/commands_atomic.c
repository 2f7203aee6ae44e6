/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * osc-osd's additions to OSD-2: COMPARE AND SWAP and FETCH AND ADD on two numbers of the atomics
 * page, and the same on any attribute.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* ---- numbers ---- */

int osd_check_swap(struct osd_request *request)
{
	/* LENGTH is the size of a number. */
	return request->cdb.length >= 8 ? 0 : osd_fail_field(request, osd_length_field(request));
}

/* The number that an object has; 0 until somebody sets it. */
static int get_number(struct osd_request *request, uint32_t number, uint64_t *value)
{
	uint8_t bytes[8];
	uint32_t length;
	int result = engine_object_attribute_get(request->subject.object, OSD_USER_OBJECT_ATOMICS,
						 number, bytes, sizeof(bytes), &length);

	*value = result == 0 && length == sizeof(bytes) ? get_be64(bytes) : 0;
	return result == -ENOENT ? 0 : osd_result(request, result, 0);
}

static int set_number(struct osd_request *request, uint32_t number, uint64_t value)
{
	uint8_t bytes[8];

	put_be64(bytes, value);
	return osd_result(request,
			  engine_object_attribute_set(request->subject.object,
						      OSD_USER_OBJECT_ATOMICS, number, bytes,
						      sizeof(bytes)),
			  0);
}

/* The old number, at STARTING BYTE ADDRESS of Data-In. */
static void answer_number(struct osd_request *request, uint64_t value)
{
	struct osd_command *command = request->command;

	memset(command->data_in, 0, request->cdb.address);
	put_be64(command->data_in + request->cdb.address, value);
	command->data_in_length = request->in_data_length;
}

int osd_compare_and_swap(struct osd_request *request)
{
	const uint8_t *operands = request->command->data_out + request->out_data;
	uint64_t value;
	int result = get_number(request, OSD_ATOMICS_COMPARE_AND_SWAP, &value);

	if (result == 0 && value == get_be64(operands))
		result = set_number(request, OSD_ATOMICS_COMPARE_AND_SWAP, get_be64(operands + 8));
	if (result == 0)
		answer_number(request, value);
	return result;
}

int osd_fetch_and_add(struct osd_request *request)
{
	const uint8_t *operand = request->command->data_out + request->out_data;
	uint64_t value;
	int result = get_number(request, OSD_ATOMICS_FETCH_AND_ADD, &value);

	if (result == 0)
		result = set_number(request, OSD_ATOMICS_FETCH_AND_ADD, value + get_be64(operand));
	if (result == 0)
		answer_number(request, value);
	return result;
}

/* ---- any attribute ---- */

int osd_check_own_lists(struct osd_request *request)
{
	if (request->cdb.format != OSD_ATTRIBUTES_LIST)
		return osd_fail_field(request, OSD_FIELD_COMMAND_OPTIONS);
	return 0;
}

/*
 * The first two entries of the set list: the value to compare with, and the new one. Leaves
 * `reader` at the third.
 */
static int read_operands(struct osd_request *request, struct osd_list_reader *reader,
			 struct osd_attribute *compare, struct osd_attribute *swap)
{
	const struct osd_segment *list = &request->cdb.set_data;

	if (list->length == 0 ||
	    osd_list_read(reader, request->cdb.version, OSD_LIST_TO_SET,
			  request->command->data_out + list->offset, list->length) != 0 ||
	    osd_list_next(reader, compare) != 1 || osd_list_next(reader, swap) != 1)
		return osd_fail(request, SENSE_ILLEGAL_REQUEST, SENSE_PARAMETER_LIST_LENGTH_ERROR);
	if (compare->page != swap->page || compare->number != swap->number)
		return osd_fail_attribute(request, swap->page, swap->number);
	return 0;
}

/*
 * CONDITIONAL SET ATTRIBUTES and GENERAL COMPARE AND SWAP. They differ in the entries behind the
 * two operands: the first command sets them only if the comparison held.
 *
 * As in osc-osd's target, an undefined attribute takes the new value whatever the comparison says.
 * The comparison counts as held only if the value to compare with is empty.
 */
int osd_conditional_set(struct osd_request *request)
{
	const struct osd_subject *subject = &request->subject;
	struct osd_attribute compare, swap, further;
	struct osd_list_reader reader;
	struct osd_list_writer writer;
	uint8_t value[OSD_VALUE_BYTES_MAX];
	uint32_t length;
	bool equal;
	int result = read_operands(request, &reader, &compare, &swap);

	if (result != 0)
		return result;
	result = osd_page_get(request, subject, compare.page, compare.number, value, &length);
	if (result != 0)
		return osd_result(request, result, 0);
	osd_begin_answer(request, &writer);
	osd_list_add_value(&writer, compare.page, compare.number, value, length);
	equal = length == compare.length &&
		(length == 0 || memcmp(value, compare.value, length) == 0);
	if (equal || length == 0)
		result = osd_apply_set(request, subject, &swap);
	while (result == 0 && (equal || request->cdb.action == OSD_GENERAL_COMPARE_AND_SWAP) &&
	       osd_list_next(&reader, &further) == 1)
		result = osd_apply_set(request, subject, &further);
	if (result == 0)
		result = osd_result(request,
				    engine_object_stat(subject->object, &request->subject.stat),
				    OSD_FIELD_OBJECT);
	if (result == 0 && request->cdb.get_list.length > 0)
		result = osd_answer_list(request, subject, &writer);
	if (result == 0)
		osd_end_answer(request, &writer);
	return result;
}
