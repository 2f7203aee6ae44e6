/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Putting: which of its row's buffers a record goes to, and what is sealed for it. */
#include "engine/muninn/place.h"

#include <errno.h>

#include "common/log.h"
#include "engine/muninn/aborted.h"
#include "engine/muninn/gather.h"
#include "engine/muninn/row.h"
#include "engine/muninn/seal.h"
#include "engine/records/rooms.h"
#include "engine/records/waiting.h"

/* At worst the older buffer is sealed, and then the newer one or a second one is taken. */
enum { PLACE_ATTEMPTS = 4 };

/* Whether a row may be sealed now. */
static int check_room(struct muninn_store *store, enum record_room room)
{
	if (!room_has_segment(store->geometry.room_kept, room, store->space.count))
		return -ENOSPC;
	/* What the host has in reserve is for commands that free something. */
	if (room == RECORD_ROOM_WRITE && nand_host_is_full(store->nand))
		return -ENOSPC;
	/* Should this transaction end in an abort, its number must be noted. */
	if (!aborted_has_room(store, room)) {
		log_line(LOG_LEVEL_ERROR,
			 "%s: %d interrupted commands are on record, the most that can be; "
			 "no segment can be sealed until the unit is started again after a merge",
			 nand_path(store->nand), MUNINN_ABORTED_MAX);
		return -ENOSPC;
	}
	return 0;
}

/* Takes a segment of the room for the row's older buffer, which may be sealed later then. */
static int reserve_segment(struct muninn_store *store, struct sealing *sealing,
			   enum record_room room)
{
	int result = check_room(store, room);

	if (!result)
		result = space_reserve(&store->space, &sealing->segment);
	if (result)
		sealing->segment = NO_SEGMENT;
	return result;
}

/* Makes space in a row whose newest buffer is full. */
static int make_space(struct muninn_store *store, uint32_t number, enum record_room room)
{
	struct row *row = &store->rows[number];
	bool hands_over = !row_has_newer(row) && row_has_spare(store, number);
	bool of_history = number == history_row(&store->geometry);
	int result = 0;

	if (!hands_over && !may_wait())
		return would_wait();
	if (!hands_over && !may_seal())
		return would_seal();
	/* History's row finds a second buffer on a full device, too. */
	if (row->sealing.segment == NO_SEGMENT && !(hands_over && of_history))
		result = reserve_segment(store, &row->sealing, room);
	if (result)
		return result;
	if (hands_over) {
		row_take_newer(store, number);
		return 0;
	}
	result = seal_row(store, number);
	/* A buffer that does not wait takes its segment when it is full again. */
	if (result && !row_has_newer(row) && row->sealing.segment != NO_SEGMENT) {
		space_release(&store->space, row->sealing.segment);
		row->sealing.segment = NO_SEGMENT;
	}
	return result;
}

static int put(struct muninn_store *store, struct row *row, const struct key_hash *hash,
	       const struct new_record *record)
{
	bool newer = row_has_newer(row);
	struct buffer *buffer = newer ? &row->newer : &row->buffer;
	int result = buffer_put(buffer, hash, record, store->committed);

	if (result == -ENOSPC && buffer_gather(buffer, row->index, newer, store->committed))
		result = buffer_put(buffer, hash, record, store->committed);
	return result;
}

int place_record(struct muninn_store *store, const struct new_record *record, enum record_room room)
{
	struct key_hash hash = key_hash(&record->header.key, store->geometry.segment_pages);
	uint32_t number = row_of_key(store, &record->header.key, &hash);
	struct row *row = &store->rows[number];
	int result = -ENOSPC;

	if (room_is_overdrawn(store->geometry.room_kept, room, store->space.count))
		return -ENOSPC;
	for (int attempt = 0; attempt < PLACE_ATTEMPTS; attempt++) {
		result = put(store, row, &hash, record);
		if (result != -ENOSPC)
			break;
		result = make_space(store, number, room);
		if (result)
			return result;
	}
	assert(result == 0); /* an empty buffer takes any record, and one is among these */
	if (result)
		return result;
	if (!row->touched)
		store->touched[store->touched_count++] = (uint16_t)number;
	row->touched = true;
	return 0;
}
