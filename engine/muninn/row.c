/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Which buffers a row has. place.c decides which of them a record goes to.
 *
 * A row whose buffer is full takes a second one. As soon as it has that, nothing is put to the
 * first, which waits to be sealed: behind those who put, or at once when the second one is full
 * too. There are few spare buffers. Where none is left, the only one is sealed at once.
 *
 * History's row takes the records of snapshots and rollbacks, which must not wait until a whole
 * segment is programmed. So it always finds a second buffer. Without a thread for that, its first
 * one is programmed a few pages at a time behind each command (seal_catch_up). The row fills
 * slowly. It is sealed half empty when the other rows have sealed one segment each. So it loses no
 * more with the NVRAM than they do.
 *
 * The buffers' areas in NVRAM say which row they belong to. The older buffer of a row has the lower
 * serial. A buffer has been sealed if its serial is not above the serial of the row's last segment.
 */
#include "engine/muninn/row.h"

#include <errno.h>
#include <stdio.h>

#include "common/log.h"
#include "engine/muninn/buffer_check.h"
#include "engine/muninn/nvram.h"
#include "engine/records/waiting.h"

/*
 * In how many eighths of the row's next segment metadata has its first places, by its part of what
 * the newest buffer holds: an eighth of it more. A row that begins leaves it all pages.
 */
static uint32_t choose_eighths(const struct row *row)
{
	const struct buffer *last = row_has_newer(row) ? &row->newer : &row->buffer;
	uint64_t all = last->area ? buffer_used_bytes(last) : 0;

	if (!all)
		return SERIAL_EIGHTHS_MAX;
	return (uint32_t)min_u64(SERIAL_EIGHTHS_MAX, buffer_metadata_bytes(last) * 9 / all + 1);
}

/* Records that follow are mostly of the same size. */
static uint32_t choose_cell(const struct row *row)
{
	const struct buffer *last = row_has_newer(row) ? &row->newer : &row->buffer;

	return last->area ? buffer_best_cell(last) : 0;
}

static uint64_t next_serial(struct muninn_store *store, uint32_t eighths)
{
	uint64_t serial = align_up(state_read(store, STATE_NEXT_SERIAL_AT), SERIAL_STEP);

	state_write(store, STATE_NEXT_SERIAL_AT, serial + SERIAL_STEP);
	return serial | (eighths - 1);
}

/* ---- taking and giving back ---- */

static struct buffer take_buffer(struct muninn_store *store, uint32_t number, uint32_t ahead)
{
	const struct row *row = &store->rows[number];
	struct buffer buffer;

	assert(store->free_buffer_count > 0);
	buffer = store->free_buffers[--store->free_buffer_count];
	buffer_start(&buffer, next_serial(store, choose_eighths(row)), choose_cell(row), row->index,
		     ahead);
	buffer_give(&buffer, number);
	return buffer;
}

static void return_buffer(struct muninn_store *store, struct buffer *buffer)
{
	assert(store->free_buffer_count < store->geometry.buffers);
	store->free_buffers[store->free_buffer_count++] = *buffer;
	*buffer = (struct buffer){ 0 };
}

void row_start_buffer(struct muninn_store *store, uint32_t number)
{
	assert(!store->rows[number].buffer.area);
	store->rows[number].buffer = take_buffer(store, number, 0);
}

void row_take_newer(struct muninn_store *store, uint32_t number)
{
	assert(!row_has_newer(&store->rows[number]));
	store->rows[number].newer = take_buffer(store, number, 1);
	store->waiting += number != history_row(&store->geometry);
	store->held_up = false;
}

bool row_has_spare(const struct muninn_store *store, uint32_t number)
{
	uint32_t history = history_row(&store->geometry);
	uint32_t kept = number != history && !row_has_newer(&store->rows[history]);

	return store->free_buffer_count > kept;
}

bool rows_are_pressed(const struct muninn_store *store)
{
	uint32_t rows = store->geometry.hashed_rows;

	if (!store->waiting || store->free_buffer_count > 1)
		return false;
	if (store->waiting < rows)
		return true;
	/* There are no more than these, and each has a second buffer. */
	for (uint32_t number = 0; number < rows; number++)
		if (buffer_is_half_full(&store->rows[number].newer))
			return true;
	return false;
}

/* What was taken of the flash for it is free again. */
static void release_segment(struct muninn_store *store, struct sealing *sealing)
{
	assert(sealing->stage == SEAL_NONE);
	if (sealing->segment != NO_SEGMENT)
		space_release(&store->space, sealing->segment);
	sealing->segment = NO_SEGMENT;
}

void row_end_buffer(struct muninn_store *store, uint32_t number)
{
	struct row *row = &store->rows[number];

	release_segment(store, &row->sealing);
	if (row_has_newer(row)) {
		store->waiting -= number != history_row(&store->geometry);
		buffer_take_back(&row->buffer);
		return_buffer(store, &row->buffer);
		row->buffer = row->newer;
		row->newer = (struct buffer){ 0 };
	} else {
		buffer_start(&row->buffer, next_serial(store, choose_eighths(row)),
			     choose_cell(row), row->index, 0);
	}
}

void rows_release_buffers(struct muninn_store *store)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		if (row->buffer.area)
			return_buffer(store, &row->buffer);
		if (row_has_newer(row))
			return_buffer(store, &row->newer);
	}
	for (uint32_t n = 0; n < store->free_buffer_count; n++) {
		struct buffer *buffer = &store->free_buffers[n];

		buffer_take_back(buffer);
		buffer_format(buffer);
		/* Whatever it was, the next one is higher, also behind another start. */
		nvram_store64(buffer->area + BUFFER_SERIAL_AT, SLOT_SERIAL_NEVER);
		buffer->serial = 0;
	}
}

/* Begins the index of a row's buffers anew. An older buffer without records is none. */
static void index_again(struct muninn_store *store, uint32_t number)
{
	struct row *row = &store->rows[number];
	if (row_has_newer(row) && buffer_used_bytes(&row->buffer) == 0)
		row_end_buffer(store, number);
	buffer_index_again(&row->buffer, row->index, 0);
	if (!row_has_newer(row))
		return;
	buffer_index_again(&row->newer, row->index, 1);
}

void rows_drop_void(struct muninn_store *store, uint64_t before)
{
	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		buffer_drop_void(&row->buffer, before);
		if (row_has_newer(row))
			buffer_drop_void(&row->newer, before);
		index_again(store, number);
	}
}

/* ---- putting ---- */

void rows_end_touched(struct muninn_store *store)
{
	for (uint32_t n = 0; n < store->touched_count; n++) {
		struct row *row = &store->rows[store->touched[n]];

		row->touched = false;
		row->unpromised = true;
	}
	store->touched_count = 0;
}

void row_cut(struct muninn_store *store, uint32_t number, uint64_t last)
{
	struct row *row = &store->rows[number];
	bool is_outdated = buffer_cut(&row->buffer, last);

	if (!row_has_newer(row)) {
		if (is_outdated)
			buffer_index_again(&row->buffer, row->index, 0);
		return;
	}
	if (buffer_cut(&row->newer, last))
		buffer_index_again(&row->newer, row->index, 1);
	if (buffer_used_bytes(&row->newer) || row->sealing.stage != SEAL_NONE)
		return;
	/* It is sealed behind the transaction, which is to be done again. */
	if (has_missed_seal() && buffer_is_half_used(&row->buffer))
		return;
	release_segment(store, &row->sealing);
	store->waiting -= number != history_row(&store->geometry);
	buffer_take_back(&row->newer);
	return_buffer(store, &row->newer);
}

/* ---- recovery ---- */

/* Makes a buffer the row's older or newer one, by its serial. False: it has two already. */
static bool adopt_buffer(struct row *row, const struct buffer *buffer)
{
	if (row_has_newer(row))
		return false;
	if (!row->buffer.area) {
		row->buffer = *buffer;
	} else if (buffer_stored_serial(buffer) > buffer_stored_serial(&row->buffer)) {
		row->newer = *buffer;
	} else {
		row->newer = row->buffer;
		row->buffer = *buffer;
	}
	return true;
}

/*
 * A third buffer of a row, after a failure of the host: the one that began first has been sealed
 * since, and promised nothing. So neither that it was, nor that another row may have it, need have
 * reached the host's storage; that it was the row's has. Returns that one.
 */
static struct buffer pass_over_oldest(struct row *row, const struct buffer *third)
{
	struct buffer oldest = row->buffer;

	if (buffer_stored_serial(third) < buffer_stored_serial(&oldest))
		return *third;
	row->buffer = row->newer;
	row->newer = (struct buffer){ 0 };
	adopt_buffer(row, third);
	return oldest;
}

/* Those from `n` on, so that all are freed. */
static void keep_in_list(struct muninn_store *store, uint32_t n, uint32_t count)
{
	memmove(&store->free_buffers[store->free_buffer_count], &store->free_buffers[n],
		(count - n) * sizeof(store->free_buffers[0]));
	store->free_buffer_count += count - n;
}

/* Gives the buffers that are in use to their rows; the others stay in the list. */
static int distribute_buffers(struct muninn_store *store, struct error_text *error)
{
	uint32_t count = store->free_buffer_count;

	store->free_buffer_count = 0;
	for (uint32_t n = 0; n < count; n++) {
		struct buffer buffer = store->free_buffers[n];
		uint32_t number = buffer_row(&buffer);
		bool used = number < store->geometry.rows &&
			    buffer_stored_serial(&buffer) >
				    row_index_last_serial(store->rows[number].index);

		if (used && adopt_buffer(&store->rows[number], &buffer))
			continue;
		if (used && !store->host_failed) {
			keep_in_list(store, n, count);
			return error_set(error, -EINVAL,
					 "row %u has three buffers in NVRAM; the NVRAM is corrupt",
					 number);
		}
		if (used)
			buffer = pass_over_oldest(&store->rows[number], &buffer);
		/* It was sealed when the store ended. */
		if (number < store->geometry.rows)
			buffer_take_back(&buffer);
		if (buffer_rest(&buffer))
			return error_set(error, -ENOMEM, "out of memory");
		store->free_buffers[store->free_buffer_count++] = buffer;
	}
	return 0;
}

/* After a failure of the host nothing may be missing that a flush promised and no format made void.
 */
static int check_promise(const struct muninn_store *store, uint32_t number,
			 const struct buffer *buffer, struct error_text *error)
{
	struct buffer_damage damage;
	char what[64];

	if (!store->host_failed || state_read(store, STATE_VOID_NEXT_AT) ||
	    buffer_keeps_promise(buffer, store->committed, &damage))
		return 0;
	snprintf(what, sizeof(what), "records of row %u", number);
	return store_refuse_nvram(store, what, damage.at, damage.bytes, damage.header_at, error);
}

/* Cuts a buffer to what is committed and builds its index again. */
static int recover_buffer(struct muninn_store *store, uint32_t number, struct buffer *buffer,
			  uint32_t ahead, struct error_text *error)
{
	int result = check_promise(store, number, buffer, error);

	if (result)
		return result;
	result = buffer_recover(buffer, store->rows[number].index, ahead, store->committed);
	if (result < 0)
		return error_set(error, result, "the buffer of row %u in NVRAM is corrupt", number);
	if (result > 0)
		log_line(LOG_LEVEL_WARNING,
			 "%s: row %u: %d pages of NVRAM are damaged; what was not flushed "
			 "there before the host lost power is gone",
			 nand_path(store->nand), number, result);
	if (store->host_failed)
		buffer_clear_rest(buffer);
	return 0;
}

int rows_check_headers(const struct muninn_store *store, struct error_text *error)
{
	uint64_t serials = state_read(store, STATE_NEXT_SERIAL_AT) + SERIALS_AHEAD_MAX;
	struct buffer_damage damage;

	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		if (!buffer_is_sound(&store->free_buffers[n], serials, &damage))
			return store_refuse_nvram(store, "the headers of a buffer", damage.at,
						  damage.bytes, damage.header_at, error);
	return 0;
}

int rows_recover_buffers(struct muninn_store *store, struct error_text *error)
{
	int result = distribute_buffers(store, error);

	for (uint32_t number = 0; !result && number < store->geometry.rows; number++) {
		struct row *row = &store->rows[number];

		store->waiting += row_has_newer(row) && number != history_row(&store->geometry);
		if (row->buffer.area)
			result = recover_buffer(store, number, &row->buffer, 0, error);
		else if (store->free_buffer_count)
			row_start_buffer(store, number);
		else
			result = error_set(
				error, -EINVAL,
				"no buffer in NVRAM is left for row %u; the NVRAM is corrupt",
				number);
		if (!result && row_has_newer(row))
			result = recover_buffer(store, number, &row->newer, 1, error);
	}
	return result;
}

/* ---- figures ---- */

uint64_t rows_buffered_bytes(const struct muninn_store *store)
{
	uint64_t bytes = 0;

	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		const struct row *row = &store->rows[number];

		bytes += buffer_used_bytes(&row->buffer);
		if (row_has_newer(row))
			bytes += buffer_used_bytes(&row->newer);
	}
	return bytes;
}

uint64_t rows_index_bytes(const struct muninn_store *store)
{
	uint64_t bytes = 0;

	for (uint32_t number = 0; number < store->geometry.rows; number++) {
		const struct row *row = &store->rows[number];

		bytes += segment_index_bytes(row->buffer.index);
		if (row_has_newer(row))
			bytes += segment_index_bytes(row->newer.index);
	}
	for (uint32_t n = 0; n < store->free_buffer_count; n++)
		bytes += segment_index_bytes(store->free_buffers[n].index);
	return bytes;
}
