/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* ENVELOPE byte by byte. */
#include "wire/envelope.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/bytes.h"

/* ---- CDBs ---- */

void envelope_cdb_encode(const struct envelope_cdb *cdb, uint8_t bytes[ENVELOPE_CDB_BYTES])
{
	memset(bytes, 0, ENVELOPE_CDB_BYTES);
	bytes[0] = cdb->operation;
	put_be64(bytes + ENVELOPE_CDB_TAG, cdb->tag);
	put_be32(bytes + ENVELOPE_CDB_LENGTH, cdb->length);
}

int envelope_cdb_decode(const uint8_t *bytes, size_t length, struct envelope_cdb *cdb,
			uint16_t *bad_field)
{
	*bad_field = 0;
	if (length < ENVELOPE_CDB_BYTES ||
	    (bytes[0] != ENVELOPE_SEND && bytes[0] != ENVELOPE_FETCH))
		return -EINVAL;
	*bad_field = bytes[1] != 0 ? 1 : 14;
	if (bytes[1] != 0 || bytes[14] != 0)
		return -EINVAL;
	cdb->operation = bytes[0];
	cdb->tag = get_be64(bytes + ENVELOPE_CDB_TAG);
	cdb->length = get_be32(bytes + ENVELOPE_CDB_LENGTH);
	*bad_field = ENVELOPE_CDB_LENGTH;
	return cdb->length < ENVELOPE_HEAD_BYTES ? -EINVAL : 0;
}

/* ---- letters ---- */

void envelope_letter_encode(const struct envelope_letter *letter, uint8_t head[ENVELOPE_HEAD_BYTES])
{
	assert(letter->cdb_length >= 1 && letter->cdb_length <= ENVELOPE_PLACE_BYTES);
	memset(head, 0, ENVELOPE_HEAD_BYTES);
	head[0] = ENVELOPE_FORMAT;
	put_be16(head + ENVELOPE_LETTER_CDB_LENGTH, (uint16_t)letter->cdb_length);
	put_be32(head + ENVELOPE_LETTER_DATA_LENGTH, (uint32_t)letter->data_length);
	memcpy(head + ENVELOPE_PLACE, letter->cdb, letter->cdb_length);
}

/* The first byte of [from, to) that is not zero, or `to`. */
static size_t first_used(const uint8_t *bytes, size_t from, size_t to)
{
	while (from < to && bytes[from] == 0)
		from++;
	return from;
}

int envelope_letter_decode(const uint8_t *head, size_t length, struct envelope_letter *letter,
			   uint16_t *bad_field)
{
	size_t used;

	assert(length >= ENVELOPE_HEAD_BYTES);
	letter->cdb = head + ENVELOPE_PLACE;
	letter->cdb_length = get_be16(head + ENVELOPE_LETTER_CDB_LENGTH);
	letter->data_length = get_be32(head + ENVELOPE_LETTER_DATA_LENGTH);
	*bad_field = 0;
	if (head[0] != ENVELOPE_FORMAT)
		return -EINVAL;
	*bad_field = 1;
	if (head[1] != 0)
		return -EINVAL;
	*bad_field = ENVELOPE_LETTER_CDB_LENGTH;
	if (letter->cdb_length < 1 || letter->cdb_length > ENVELOPE_PLACE_BYTES)
		return -EINVAL;
	*bad_field = ENVELOPE_LETTER_DATA_LENGTH;
	if (letter->data_length != length - ENVELOPE_HEAD_BYTES)
		return -EINVAL;
	used = first_used(head, 8, ENVELOPE_PLACE);
	if (used == ENVELOPE_PLACE)
		used = first_used(head, ENVELOPE_PLACE + letter->cdb_length, ENVELOPE_HEAD_BYTES);
	*bad_field = (uint16_t)used;
	return used == ENVELOPE_HEAD_BYTES ? 0 : -EINVAL;
}

/* ---- answers ---- */

void envelope_answer_encode(const struct envelope_answer *answer, uint8_t head[ENVELOPE_HEAD_BYTES])
{
	assert(answer->sense_length <= ENVELOPE_PLACE_BYTES);
	memset(head, 0, ENVELOPE_HEAD_BYTES);
	head[0] = ENVELOPE_FORMAT;
	head[1] = answer->status;
	put_be16(head + 2, (uint16_t)answer->sense_length);
	put_be32(head + 4, (uint32_t)answer->data_length);
	put_be32(head + 8, (uint32_t)answer->data_out_used);
	if (answer->sense_length > 0)
		memcpy(head + ENVELOPE_PLACE, answer->sense, answer->sense_length);
}

int envelope_answer_decode(const uint8_t *head, size_t length, struct envelope_answer *answer)
{
	if (length < ENVELOPE_HEAD_BYTES || head[0] != ENVELOPE_FORMAT)
		return -EINVAL;
	answer->status = head[1];
	answer->sense = head + ENVELOPE_PLACE;
	answer->sense_length = get_be16(head + 2);
	answer->data_length = get_be32(head + 4);
	answer->data_out_used = get_be32(head + 8);
	if (answer->sense_length > ENVELOPE_PLACE_BYTES ||
	    answer->data_length > length - ENVELOPE_HEAD_BYTES)
		return -EINVAL;
	return 0;
}
