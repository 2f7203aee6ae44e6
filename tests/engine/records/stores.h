/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The record stores that the conformance suite runs on. A new store registers in stores.c. */
#ifndef MUNINN_TESTS_ENGINE_RECORDS_STORES_H
#define MUNINN_TESTS_ENGINE_RECORDS_STORES_H

#include "engine/records/records.h"

/* Values of so many bytes fit in every store that is tested. */
#define STORES_VALUE_BYTES 512

struct tested_store {
	const char *name;
	/* An empty device, big enough for all tests; `small`: soon full. */
	void *(*create)(bool small);
	/* Opens what is on it, after a clean close or after a crash. */
	struct record_store *(*open)(void *device);
	/* The device is closed. */
	void (*destroy)(void *device);
};

extern const struct tested_store tested_stores[];
extern const int tested_store_count;

#endif
