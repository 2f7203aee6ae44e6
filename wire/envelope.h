/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * ENVELOPE: an OSD command in two ordinary ones, for initiators whose system passes on only CDBs of
 * 16 bytes and data in one direction. SEND takes the command and its Data-Out to the unit, as a
 * letter; FETCH executes it and brings its status, sense data and Data-In, as an answer.
 * docs/protocol.md has every byte.
 */
#ifndef MUNINN_WIRE_ENVELOPE_H
#define MUNINN_WIRE_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

enum {
	ENVELOPE_SEND = 0xC0,
	ENVELOPE_FETCH = 0xC1,
	ENVELOPE_CDB_BYTES = 16,
	ENVELOPE_FORMAT = 1,
	/* Of letters and answers: a head, with space for the CDB or the sense data; data follow. */
	ENVELOPE_HEAD_BYTES = 272,
	ENVELOPE_PLACE = 16,
	ENVELOPE_PLACE_BYTES = ENVELOPE_HEAD_BYTES - ENVELOPE_PLACE,
	/* Most bytes of Data-Out in a letter: 1 MiB, and lists of attributes. */
	ENVELOPE_DATA_OUT_MAX = (1 << 20) + (1 << 16),
};

/* Where what is wrong lies: bytes of the CDB, and of a letter. */
enum {
	ENVELOPE_CDB_TAG = 2,
	ENVELOPE_CDB_LENGTH = 10,
	ENVELOPE_LETTER_CDB_LENGTH = 2,
	ENVELOPE_LETTER_DATA_LENGTH = 4,
};

struct envelope_cdb {
	uint8_t operation; /* ENVELOPE_SEND, ENVELOPE_FETCH */
	uint64_t tag;      /* which letter, of those of the same session */
	uint32_t length;   /* of the letter; or the space for the answer */
};

void envelope_cdb_encode(const struct envelope_cdb *cdb, uint8_t bytes[ENVELOPE_CDB_BYTES]);
/* -EINVAL, and *bad_field: the first byte of what is wrong. */
int envelope_cdb_decode(const uint8_t *bytes, size_t length, struct envelope_cdb *cdb,
			uint16_t *bad_field);

/* The head of a letter. Data-Out follows it. */
struct envelope_letter {
	const uint8_t *cdb; /* of the command inside; decoded: in the head */
	size_t cdb_length;  /* 1 to ENVELOPE_PLACE_BYTES */
	size_t data_length; /* bytes of Data-Out */
};

void envelope_letter_encode(const struct envelope_letter *letter,
			    uint8_t head[ENVELOPE_HEAD_BYTES]);
/* `length`: of the whole letter, which holds a head at least. -EINVAL as above. */
int envelope_letter_decode(const uint8_t *head, size_t length, struct envelope_letter *letter,
			   uint16_t *bad_field);

/* The head of an answer. Data-In follows it. */
struct envelope_answer {
	uint8_t status;
	const uint8_t *sense; /* decoded: in the head */
	size_t sense_length;  /* at most ENVELOPE_PLACE_BYTES */
	size_t data_length;   /* bytes of Data-In */
	size_t data_out_used; /* bytes of Data-Out that the command describes, of those that came */
};

void envelope_answer_encode(const struct envelope_answer *answer,
			    uint8_t head[ENVELOPE_HEAD_BYTES]);
/* `length`: bytes of the answer that have come. -EINVAL: it is none. */
int envelope_answer_decode(const uint8_t *head, size_t length, struct envelope_answer *answer);

#endif
