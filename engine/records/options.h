/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Options that every record store takes. Each kind of store has its own beside them. */
#ifndef MUNINN_ENGINE_RECORDS_OPTIONS_H
#define MUNINN_ENGINE_RECORDS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct findings;

struct record_options {
	/* Fixed at format; stored in the device. */
	uint32_t over_provision_permille; /* hidden from users; 0: 100 (10 %) */
	/*
	 * When the NVRAM is lost or unusable: open with what is on flash, without what was only in
	 * NVRAM (-EINVAL otherwise). To be given once, and taken back.
	 */
	bool recover_without_nvram;
	/*
	 * Not NULL, on a private copy of a device: what is damaged is left out where something is
	 * left, and added to these. What may be older then, is_uncertain of the store tells.
	 */
	struct findings *salvage;
	/* 16 bytes that change when the host starts, read while opening; NULL: the kernel's */
	const uint8_t *boot_id;
};

#endif
