/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Bytes written as hex dumps, and the worked examples of the protocol. */
#ifndef MUNINN_TESTS_WIRE_HEX_H
#define MUNINN_TESTS_WIRE_HEX_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a dump into `bytes`. A line is "0010  00 01 02 ...": each row goes to its offset. Bytes
 * without a row stay as they are. Returns the end of the furthest row.
 */
size_t hex_rows(const char *dump, uint8_t *bytes, size_t capacity);

/* Reads plain pairs, with or without blanks between them. Returns how many. */
size_t hex_pairs(const char *pairs, uint8_t *bytes, size_t capacity);

/* The CDB of an example: the FORMAT OSD example's rows, replaced by those of `dump`. 236 bytes. */
void hex_cdb(const char *dump, uint8_t cdb[236]);

/*
 * The worked examples: Linux's initiator (LINUX_), osc-osd's (OSC_). CDBs for hex_cdb, buffers for
 * hex_rows.
 */
extern const char LINUX_FORMAT_OSD[], LINUX_CREATE_PARTITION[], LINUX_CREATE[], LINUX_REMOVE[];
extern const char LINUX_WRITE[], LINUX_READ[], LINUX_READ_OUT[], LINUX_READ_IN[];
extern const char LINUX_GET_LENGTH[], LINUX_GET_LENGTH_OUT[], LINUX_GET_LENGTH_IN[];
extern const char LINUX_WRITE_ATTRIBUTES[], LINUX_WRITE_ATTRIBUTES_OUT[];
extern const char LINUX_LIST[], LINUX_LIST_IN[], LINUX_LIST_TWO_IN[];
extern const char LINUX_WRITE_SCATTERED[], LINUX_WRITE_SCATTERED_OUT[];
extern const char LINUX_ATTACH[], LINUX_ATTACH_OUT[];
extern const char OSC_CREATE_THREE[], OSC_CREATE_THREE_IN[];
extern const char OSC_SET_IN_CDB[], OSC_APPEND[], OSC_APPEND_OUT[], OSC_APPEND_IN[];
extern const char LINUX_OSD1_WRITE[],
	LINUX_OSD1_WRITE_OUT[]; /* whole CDB for hex_rows, 200 bytes */
extern const char UNDEFINED_ATTRIBUTES_IN[], SENSE_NO_SUCH_OBJECT[], SENSE_OF_OSC[];

#endif
