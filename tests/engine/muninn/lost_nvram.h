/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A small device that loses its NVRAM: what is put to it at random, and what must be found behind
 * the loss.
 */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_LOST_NVRAM_H
#define MUNINN_TESTS_ENGINE_MUNINN_LOST_NVRAM_H

#include "engine/muninn/index/bloom.h"
#include "engine/muninn/store.h"
#include "engine/open.h"

enum { DEVICE_KEYS = 200, DEVICE_VALUE_MAX = 300, DEVICE_BOUNDS = 4 };

/* What a look-up gives. */
struct answer {
	int result;
	struct record_info info;
	uint8_t value[DEVICE_VALUE_MAX];
};

struct device {
	struct engine_options options;
	struct nand *nand;
	struct record_store *store;
	uint64_t random;
	enum record_class class; /* of its keys */
	struct answer before[DEVICE_KEYS][DEVICE_BOUNDS];
	uint64_t segments_sealed;
	uint64_t last; /* the last committed command that had records sealed, or one before it */
	struct answer without_last[DEVICE_KEYS]; /* the newest before that */
	uint64_t bounds[DEVICE_BOUNDS];
};

extern const struct nand_geometry device_shape;

/* What is behind the interface of the device's store. */
static inline struct muninn_store *device_store(struct device *device)
{
	return (struct muninn_store *)(void *)device->store;
}

/* A device of two rows in memory, formatted and open; the log says nothing until it is freed. */
struct device *device_new(enum bloom_hot_rows hot_rows, uint64_t seed);
struct device *device_new_of(const struct nand_geometry *flash, uint32_t rows,
			     enum bloom_hot_rows hot_rows, uint64_t seed);
void device_free(struct device *device);
void device_say_nothing(void);

/* At random, below `limit`. */
uint32_t device_below(struct device *device, uint32_t limit);

/* `recover`: without NVRAM, if that is lost. */
int device_open(struct device *device, bool recover, struct error_text *error);

/* Puts so many records in the running command. Stops at an error, and returns it. */
int device_put(struct device *device, uint32_t count);

/* Commands: some of which are aborted, with merges; or small ones that are all committed. */
void device_run(struct device *device, uint32_t count);
void device_commit(struct device *device, uint32_t count);

struct answer device_ask(struct device *device, uint32_t number, uint64_t bound);
void device_expect(uint32_t number, uint64_t bound, const struct answer *found,
		   const struct answer *expected);
uint64_t device_segments_sealed(struct device *device);

/* Notes what can be found without the buffers. Of a command that is under way nothing counts. */
void device_note_answers(struct device *device);

/* Compares that. Returns whether the last command on flash was taken for an interrupted one. */
bool device_check_answers(struct device *device);

/* Closes the device as kill -9 does, and clears its NVRAM. */
void device_lose_nvram(struct device *device);

#endif
