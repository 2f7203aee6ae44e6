/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Commands of SCSI block devices (SBC-3, T10/BSR INCITS 514): what their CDBs and parameter lists
 * say. Decoders take any bytes.
 */
#ifndef MUNINN_WIRE_BLOCKS_H
#define MUNINN_WIRE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SBC_PERIPHERAL_DEVICE_TYPE 0x00

/* Operation codes, with their length in the name where there are several. */
enum {
	SBC_READ_6 = 0x08,
	SBC_WRITE_6 = 0x0A,
	SBC_READ_CAPACITY_10 = 0x25,
	SBC_READ_10 = 0x28,
	SBC_WRITE_10 = 0x2A,
	SBC_WRITE_AND_VERIFY_10 = 0x2E,
	SBC_VERIFY_10 = 0x2F,
	SBC_PRE_FETCH_10 = 0x34,
	SBC_SYNCHRONIZE_CACHE_10 = 0x35,
	SBC_WRITE_SAME_10 = 0x41,
	SBC_UNMAP = 0x42,
	SBC_READ_16 = 0x88,
	SBC_COMPARE_AND_WRITE = 0x89,
	SBC_WRITE_16 = 0x8A,
	SBC_ORWRITE_16 = 0x8B,
	SBC_WRITE_AND_VERIFY_16 = 0x8E,
	SBC_VERIFY_16 = 0x8F,
	SBC_PRE_FETCH_16 = 0x90,
	SBC_SYNCHRONIZE_CACHE_16 = 0x91,
	SBC_WRITE_SAME_16 = 0x93,
	SBC_SERVICE_ACTION_IN_16 = 0x9E,
	SBC_READ_12 = 0xA8,
	SBC_WRITE_12 = 0xAA,
	SBC_WRITE_AND_VERIFY_12 = 0xAE,
	SBC_VERIFY_12 = 0xAF,
};

/* Service actions of SBC_SERVICE_ACTION_IN_16. */
enum { SBC_READ_CAPACITY_16 = 0x10, SBC_GET_LBA_STATUS = 0x12 };

/* What a command does, whatever the length of its CDB. */
enum block_action {
	BLOCK_READ,
	BLOCK_WRITE,
	BLOCK_WRITE_AND_VERIFY,
	BLOCK_VERIFY,
	BLOCK_PRE_FETCH,
	BLOCK_SYNCHRONIZE,
	BLOCK_WRITE_SAME,
	BLOCK_UNMAP,
	BLOCK_COMPARE_AND_WRITE,
	BLOCK_OR_WRITE,
	BLOCK_CAPACITY,      /* READ CAPACITY(10) */
	BLOCK_CAPACITY_LONG, /* READ CAPACITY(16) */
	BLOCK_STATUS,        /* GET LBA STATUS */
	BLOCK_ACTIONS
};

/* How the medium is compared with Data-Out: BYTCHK. */
enum { BLOCK_CHECK_NONE = 0, BLOCK_CHECK_ALL = 1, BLOCK_CHECK_RESERVED = 2, BLOCK_CHECK_ONE = 3 };

struct block_cdb {
	enum block_action action;
	uint64_t block;  /* LOGICAL BLOCK ADDRESS */
	uint32_t count;  /* blocks; of UNMAP, BLOCK_CAPACITY_LONG and BLOCK_STATUS bytes */
	uint8_t protect; /* RDPROTECT, WRPROTECT, VRPROTECT or ORPROTECT */
	uint8_t check;   /* BYTCHK */
	bool fua;
	bool unmap, anchor, no_data; /* UNMAP, ANCHOR and NDOB */
	bool partial;                /* PMI of READ CAPACITY(10) */
};

/* Decodes a CDB of at least 16 bytes. False: it is none of the commands above. */
bool block_cdb_decode(const uint8_t *cdb, struct block_cdb *decoded);

/* ---- the parameter list of UNMAP ---- */

enum { UNMAP_HEAD_BYTES = 8, UNMAP_DESCRIPTOR_BYTES = 16 };

/*
 * How many descriptors a list of `length` bytes has, as its header says. False: the header does not
 * fit to the length.
 */
bool unmap_list_decode(const uint8_t *list, size_t length, uint32_t *descriptors);

/* One of them, counted from 0. */
void unmap_descriptor_decode(const uint8_t *list, uint32_t index, uint64_t *block, uint32_t *count);

/* ---- sense data ---- */

#define BLOCK_SENSE_BYTES 18

/* Fixed format. `information`: told if `has_information`, and if it has space. */
void block_sense_encode(uint8_t key, uint16_t code, bool has_information, uint64_t information,
			uint8_t sense[BLOCK_SENSE_BYTES]);

#endif
