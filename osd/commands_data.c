/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The commands on the data of a user object. */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* Pieces of READ and WRITE: those of the scatter/gather list, or the one range of the CDB. */
static size_t piece_count(const struct osd_request *request)
{
	return request->pieces.content ? request->pieces.length / 16 : 1;
}

/* Piece `index`, its offset counted from the object's start. */
static struct osd_piece piece_at(const struct osd_request *request, size_t index)
{
	struct osd_piece piece = { 0, request->cdb.length };

	if (request->pieces.content)
		osd_piece_decode(&request->pieces, index, &piece);
	piece.offset += request->cdb.address;
	return piece;
}

/* The command data in Data-Out. */
static const uint8_t *data_out(const struct osd_request *request)
{
	return request->command->data_out + request->out_data;
}

/* If the engine refuses a range, its address is wrong. */
static int range_result(struct osd_request *request, int result)
{
	if (result == -EFBIG || result == -EINVAL)
		return osd_fail_field(request, osd_address_field(request));
	return osd_result(request, result, OSD_FIELD_OBJECT);
}

/* The answer of a READ that met the object's end. `got`: bytes that were there. */
static int report_past_end(struct osd_request *request, bool all_beyond, uint64_t got)
{
	if (all_beyond)
		return osd_fail_field(request, osd_address_field(request));
	/* The sources disagree about the descriptor that has the count, so both have it. */
	request->sense = (struct osd_sense){
		.key = SENSE_RECOVERED_ERROR,
		.code = SENSE_READ_PAST_END_OF_USER_OBJECT,
		.has_information = true,
		.information = got,
		.has_command_information = true,
		.command_information = got,
	};
	return 0;
}

int osd_read(struct osd_request *request)
{
	struct osd_command *command = request->command;
	bool past_end = false, all_beyond = true;
	uint64_t total = 0;

	for (size_t i = 0; i < piece_count(request); i++) {
		struct osd_piece piece = piece_at(request, i);
		uint8_t *place = command->data_in + command->data_in_length;
		uint64_t got;
		int result;

		if (piece.length == 0)
			continue;
		result = engine_object_read(request->subject.object, piece.offset, place,
					    piece.length, &got);
		if (result != 0)
			return range_result(request, result);
		memset(place + got, 0, piece.length - got);
		command->data_in_length += piece.length;
		total += got;
		past_end |= got < piece.length;
		all_beyond &= got == 0;
	}
	return past_end ? report_past_end(request, all_beyond, total) : 0;
}

int osd_write(struct osd_request *request)
{
	const uint8_t *data = data_out(request);

	for (size_t i = 0; i < piece_count(request); i++) {
		struct osd_piece piece = piece_at(request, i);
		int result;

		if (piece.length == 0)
			continue;
		result = engine_object_write(request->subject.object, piece.offset, data,
					     piece.length);
		if (result != 0)
			return range_result(request, result);
		data += piece.length;
	}
	return 0;
}

int osd_append(struct osd_request *request)
{
	uint64_t offset = request->subject.stat.length;
	int result = 0;

	if (request->cdb.length > 0)
		result = engine_object_append(request->subject.object, data_out(request),
					      request->cdb.length, &offset);
	request->append_address = offset;
	if (result == -EFBIG || result == -EINVAL)
		return osd_fail_field(request, osd_length_field(request));
	return osd_result(request, result, OSD_FIELD_OBJECT);
}

int osd_clear(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;

	if (cdb->length == 0)
		return 0;
	return range_result(
		request, engine_object_clear(request->subject.object, cdb->address, cdb->length));
}

int osd_punch(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->cdb;
	uint64_t object_length = request->subject.stat.length;

	if (cdb->address > object_length)
		return osd_fail_field(request, osd_address_field(request));
	/* A range that goes beyond the object's end cuts the object at the range's start. */
	return range_result(
		request, engine_object_punch(request->subject.object, cdb->address,
					     min_u64(cdb->length, object_length - cdb->address)));
}
