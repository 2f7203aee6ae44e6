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

/* ---- READ, in as many turns as it takes ---- */

/*
 * What is read belongs to one state of the object: the one that the first turn finds. If somebody
 * modifies the object between two turns, the command begins again, with a moment that it holds.
 * Where none can be held, because no history is kept, each turn reads what is there.
 */
static void begin_turn(struct osd_request *request)
{
	struct osd_reading *reading = &request->reading;
	const struct engine_address *address = &request->subject.address;
	uint64_t sequence = request->subject.stat.modified_sequence;
	/* Of the present of an unlogged object it is not known. */
	bool is_present = !osd_moment_is_past(address);
	bool has_changed = reading->sequence != sequence ||
			   (request->subject.stat.is_unlogged && is_present);

	if (!reading->begun || (!reading->restarted && has_changed)) {
		request->command->data_in_length = 0;
		reading->restarted = reading->begun;
		if (reading->restarted && is_present)
			osd_moment_hold(request, address->partition);
	}
	reading->begun = true;
	reading->sequence = sequence;
}

/* The object to read is what the subject was at the moment that the command holds, if it does. */
static int open_past(struct osd_request *request, struct osd_subject *past)
{
	struct engine_address address = request->subject.address;

	address.version = request->moment.view;
	return osd_result(request, osd_open(request, address, past), OSD_FIELD_OBJECT);
}

/*
 * A READ met damage: adds where, so that the sense data says it. The first byte of the first
 * damaged run of the range, and how many bytes of the range follow in that run.
 */
static void tell_damage(struct osd_request *request, const struct osd_subject *from,
			uint64_t offset, uint64_t end)
{
	uint32_t budget = request->device->portions.pages;
	struct engine_extent extent;

	while (offset < end &&
	       engine_object_map(from->object, offset, true, &budget, &extent) == 0) {
		if (extent.kind != ENGINE_EXTENT_DAMAGED) {
			offset = extent.offset + extent.length;
			continue;
		}
		request->sense.has_information = request->sense.has_command_information = true;
		request->sense.information = offset;
		request->sense.command_information =
			min_u64(end, extent.offset + extent.length) - offset;
		return;
	}
}

/* Reads what of a piece is not in Data-In yet, at most `most` bytes: zeros behind the end. */
static int read_piece(struct osd_request *request, const struct osd_subject *from,
		      struct osd_piece piece, uint64_t behind, uint64_t most)
{
	struct osd_command *command = request->command;
	uint64_t length = min_u64(piece.length - behind, most), got;
	uint8_t *place = command->data_in + command->data_in_length;
	uint64_t offset = piece.offset + behind;
	int result = engine_object_read(from->object, offset, place, length, &got);

	if (result != 0) {
		range_result(request, result);
		if (result == -EBADMSG)
			tell_damage(request, from, offset, offset + length);
		return result;
	}
	memset(place + got, 0, length - got);
	command->data_in_length += length;
	return 0;
}

/* Goes on behind what is in Data-In. */
static int read_on(struct osd_request *request, const struct osd_subject *from)
{
	uint64_t done = request->command->data_in_length;
	uint64_t page_bytes = engine_page_bytes(request->device->engine);
	uint64_t left = request->device->portions.pages * page_bytes;

	for (size_t i = 0; i < piece_count(request); i++) {
		struct osd_piece piece = piece_at(request, i);
		uint64_t behind = min_u64(done, piece.length), before;

		done -= behind;
		if (behind == piece.length)
			continue;
		if (left == 0) {
			request->more = request->leaves_nothing = true;
			return 0;
		}
		before = request->command->data_in_length;
		if (read_piece(request, from, piece, behind, left) != 0)
			return -EINVAL;
		/* A piece reads a page at least. */
		left -= min_u64(left,
				max_u64(request->command->data_in_length - before, page_bytes));
		request->more = behind + (request->command->data_in_length - before) < piece.length;
		request->leaves_nothing = request->more;
		if (request->more)
			return 0;
	}
	return 0;
}

/* How the READ ended, by the length of what it read. */
static int end_read(struct osd_request *request, uint64_t length)
{
	bool past_end = false, all_beyond = true;
	uint64_t total = 0;

	for (size_t i = 0; i < piece_count(request); i++) {
		struct osd_piece piece = piece_at(request, i);
		uint64_t got = piece.offset < length ? min_u64(piece.length, length - piece.offset)
						     : 0;

		if (piece.length == 0)
			continue;
		total += got;
		past_end |= got < piece.length;
		all_beyond &= got == 0;
	}
	return past_end ? report_past_end(request, all_beyond, total) : 0;
}

int osd_read(struct osd_request *request)
{
	struct osd_subject past = { .object = NULL };
	const struct osd_subject *from = &request->subject;
	int result = 0;

	begin_turn(request);
	if (request->moment.view != 0 && !osd_moment_is_there(request))
		osd_moment_release(request);
	if (request->moment.view != 0) {
		result = open_past(request, &past);
		from = &past;
	}
	if (result == 0)
		result = read_on(request, from);
	osd_close(&past);
	if (result != 0 || request->more)
		return result;
	osd_moment_release(request);
	return end_read(request, from->stat.length);
}

/* ---- what changes data ---- */

/* Pages that a range touches. */
static uint64_t pages_of(const struct osd_request *request, uint64_t offset, uint64_t length)
{
	uint64_t page_bytes = engine_page_bytes(request->device->engine);

	return length > 0 ? (offset + length - 1) / page_bytes - offset / page_bytes + 1 : 0;
}

/* Does a WRITE touch more pages than a command may? */
static bool writes_too_much(const struct osd_request *request)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < piece_count(request); i++) {
		struct osd_piece piece = piece_at(request, i);

		pages += pages_of(request, piece.offset, piece.length);
	}
	return pages > request->device->portions.written;
}

int osd_write(struct osd_request *request)
{
	const uint8_t *data = data_out(request);

	if (writes_too_much(request))
		return osd_fail_field(request, osd_length_field(request));
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

	if (pages_of(request, offset, request->cdb.length) > request->device->portions.written)
		return osd_fail_field(request, osd_length_field(request));
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
