/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A payload codec for the NAND's headers back end: knows pages of the Muninn engine
 * (engine/muninn/format.h) whose values come from record_value_make, and keeps the keys, sequence
 * numbers and lengths of their records, some 10 bytes each.
 *
 *   page     number of records 1 (255: one large record, whose header is in the spare area);
 * records record   shape 1: bits 2-0 bytes of the identifier less one, and a bit for each field
 * that is as in the record before: 3 partition and version, 4 piece, 5 length and flags partition
 * 2, version 2; identifier 1-8; piece 4; length and flags 2: those that differ sequence number less
 * that of the record before, zigzag, 7 bits a byte, low first
 */
#ifndef MUNINN_BENCH_RECORD_CODEC_H
#define MUNINN_BENCH_RECORD_CODEC_H

#include "bench/random.h"
#include "common/bytes.h"
#include "engine/records/records.h"
#include "nand/nand.h"

/*
 * The value of a record: 64-bit little-endian words. The first word follows from key and sequence
 * number, each further one is RANDOM_STEP more than the one before. A last part of a word is its
 * low bytes.
 */
static inline void record_value_make(const struct record_key *key, uint64_t sequence,
				     uint8_t *value, uint32_t length)
{
	uint64_t word = random_mix(key->identifier ^ random_mix(sequence));
	uint32_t offset = 0;

	/* Four at once, because every measured operation pays for this. */
	for (; offset + 32 <= length; offset += 32, word += 4 * RANDOM_STEP) {
		put_le64(value + offset, word);
		put_le64(value + offset + 8, word + RANDOM_STEP);
		put_le64(value + offset + 16, word + 2 * RANDOM_STEP);
		put_le64(value + offset + 24, word + 3 * RANDOM_STEP);
	}
	for (; offset + 8 <= length; offset += 8, word += RANDOM_STEP)
		put_le64(value + offset, word);
	for (; offset < length; offset++, word >>= 8)
		value[offset] = (uint8_t)word;
}

/* `page_bytes` must outlive the codec. */
struct nand_payload_codec record_codec(const uint32_t *page_bytes);

#endif
