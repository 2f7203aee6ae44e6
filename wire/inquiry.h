/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What the INQUIRY data of all kinds of units has in common (SPC-3, SPC-4). */
#ifndef MUNINN_WIRE_INQUIRY_H
#define MUNINN_WIRE_INQUIRY_H

#include <stddef.h>
#include <stdint.h>

enum {
	VPD_SUPPORTED_PAGES = 0x00,
	VPD_UNIT_SERIAL_NUMBER = 0x80,
	VPD_DEVICE_IDENTIFICATION = 0x83,
};

#define INQUIRY_VENDOR     "MUNINN  "
#define INQUIRY_REVISION   "0001"
#define INQUIRY_NAME_BYTES 8

struct inquiry {
	uint8_t device_type;
	uint8_t version;      /* of SPC */
	uint8_t bytes;        /* of the standard data, 66 at least */
	const char *product;  /* 16 characters */
	uint16_t versions[4]; /* VERSION DESCRIPTORs */
};

/* Standard INQUIRY data into `inquiry->bytes` zeroed bytes. Returns their number. */
size_t inquiry_standard(const struct inquiry *inquiry, uint8_t *data);

/* Makes 8 bytes that no other unit has a locally assigned NAA name: its first digit is 3. */
void inquiry_name_local(uint8_t name[INQUIRY_NAME_BYTES]);

/*
 * The body of the page of a unit's identification, behind its head of 4 bytes: a T10 vendor
 * designator of vendor and serial number, and a locally assigned NAA name. Returns the length of
 * the page.
 */
size_t inquiry_identification(const char *serial, const uint8_t name[INQUIRY_NAME_BYTES],
			      uint8_t *page);

/* The head of a VPD page of so many bytes. */
void inquiry_page_head(const struct inquiry *inquiry, uint8_t code, size_t length, uint8_t *page);

#endif
