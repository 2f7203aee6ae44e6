/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The security manager's side of the keys of one logical unit: what they are, and the numbers of a
 * SET MASTER KEY that no fuzzer finds by itself.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_KEYS_H
#define MUNINN_TESTS_FUZZ_OSD_KEYS_H

#include "osd/osd.h"
#include "tests/fuzz/osd_input.h"
#include "wire/keys_exchange.h"
#include "wire/security.h"

/* The version of the first partition's working key that is used. */
#define OSD_KEYS_VERSION 5

/* From the top: each is derived from the one before. SET KEY's number of each is the same. */
enum osd_keys_level {
	OSD_KEYS_MASTER,
	OSD_KEYS_ROOT,
	OSD_KEYS_PARTITION,
	OSD_KEYS_WORKING,
	OSD_KEYS_LEVELS
};

struct osd_keys_pair {
	uint8_t authentication[OSD_KEY_BYTES], generation[OSD_KEY_BYTES];
};

struct osd_keys {
	struct osd_keys_pair pairs[OSD_KEYS_LEVELS];
	struct osd_keys_pair former_master; /* which must be good for nothing */
	bool has_former_master;
	/* The latest answer to SEED EXCHANGE: the unit's number. */
	uint8_t group; /* 0: there was none */
	uint8_t device[OSD_DH_BYTES_MAX];
};

/* What the unit is opened with. */
extern const uint8_t osd_keys_uuid[16];
void osd_keys_options(struct osd_options *options);

/* The keys of the scene SECURED; the master key of it is that of every other scene, too. */
void osd_keys_begin(struct osd_keys *keys);

/* What SET KEY of the scene says. */
void osd_keys_fields(enum osd_keys_level level, struct osd_key_fields *fields);

/*
 * Puts the manager's number, and behind it the unit's, into SET MASTER KEY's parameters. Others are
 * left alone.
 */
void osd_keys_complete(const struct osd_keys *keys, struct osd_input_command *input);

/*
 * SET KEY or SET MASTER KEY that succeeded: notes what the keys are now. `answer` is its Data-In.
 */
void osd_keys_note(struct osd_keys *keys, const struct osd_input_command *input,
		   const uint8_t *answer, size_t length);

#endif
