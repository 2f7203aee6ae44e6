/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * An input of the osd target: a sequence of commands to one logical unit. Byte 0 chooses the scene
 * that they find; then each command has a head of OSD_INPUT_HEAD_BYTES bytes, its CDB, its
 * Data-Out.
 *
 *   0  the first eight flags, enum osd_input_flag
 *   1  bytes of CDB that the target is given; 255 stands for 260
 *   2  bytes of CDB that follow; the others are 0
 *   3  what Data-Out is filled with behind the bytes that follow
 *   4  bytes of Data-Out that the target is given, at most OSD_INPUT_OUT_MAX       2, big-endian;
 * above them two flags more 6  bytes of Data-Out that follow 2 8  room for Data-In, at most
 * OSD_INPUT_IN_MAX                                  2; above it two flags more 10  milliseconds
 * that pass before the command                                   2
 *
 * What is missing at the end of the input is 0.
 */
#ifndef MUNINN_TESTS_FUZZ_OSD_INPUT_H
#define MUNINN_TESTS_FUZZ_OSD_INPUT_H

#include "tests/fuzz/fuzz.h"

#define OSD_INPUT_HEAD_BYTES   12
#define OSD_INPUT_CDB_MAX      260
#define OSD_INPUT_LENGTH_MAX   0x3FFF
#define OSD_INPUT_OUT_MAX      OSD_INPUT_LENGTH_MAX
#define OSD_INPUT_OUT_KEPT_MAX 2048 /* bytes of Data-Out that follow */
#define OSD_INPUT_IN_MAX       OSD_INPUT_LENGTH_MAX
#define OSD_INPUT_COMMANDS_MAX 10
#define OSD_INPUT_FLAGS        11

enum osd_input_flag {
	OSD_INPUT_RESTART = 1 << 0, /* the target dies behind the command and comes back */
	OSD_INPUT_AGAIN = 1 << 1,   /* reading: once more over other garbage, for the same bytes */
	OSD_INPUT_OTHER_NEXUS = 1 << 2,
	OSD_INPUT_COMPARE = 1 << 3, /* of a failing command: everything is as before */
	OSD_INPUT_INQUIRY = 1 << 4, /* the CDB is INQUIRY's */
	OSD_INPUT_MERGE = 1 << 5,   /* space is reclaimed behind the command */
	OSD_INPUT_SIGN = 1 << 6,    /* it gets a capability and check values (osd_sign.h) */
	OSD_INPUT_FORGE = 1 << 7,   /* then a bit of them, which the fill byte chooses, is turned */
	OSD_INPUT_STEP = 1 << 8,    /* behind the command those in the background do a step */
	OSD_INPUT_DAMAGE = 1 << 9,  /* before it the flash gets faults, which the fill byte chooses
				       (osd_damage.h) */
	OSD_INPUT_COMPLETE =
		1 << 10, /* SET MASTER KEY gets the numbers of the exchange (osd_keys.h) */
	OSD_INPUT_ENVELOPE = 1 << 11, /* the command comes in an envelope */
};

/* What the first command finds. */
enum osd_scene {
	OSD_SCENE_EMPTY,
	OSD_SCENE_OBJECTS,  /* two partitions, one with objects and a collection; a subscription */
	OSD_SCENE_VERSIONS, /* the same, changed since a snapshot */
	OSD_SCENE_SMALL,    /* OBJECTS on a device that is soon full */
	OSD_SCENE_SECURED,  /* OBJECTS, the first partition with keys, lists of allowed attributes
			       and the method CAPKEY */
	OSD_SCENE_LOCKED,   /* VERSIONS on a device that is soon full, the retention of its first
			       partition locked */
	OSD_SCENE_PACKED,   /* VERSIONS, the first partition of packed IDs (osd_input_pack) */
	OSD_SCENES
};

/* What the scenes have: partitions from the first ID, and in each objects from the first ID. */
#define OSD_SCENE_PARTITION  UINT64_C(0x10000)
#define OSD_SCENE_OBJECT     UINT64_C(0x10000)
#define OSD_SCENE_COLLECTION UINT64_C(0x10004)
/* The next partition. */
#define OSD_SCENE_CLONE (OSD_SCENE_PARTITION + 2)

struct osd_input_command {
	uint16_t flags;
	uint8_t fill;
	uint16_t cdb_length;
	uint16_t out_length, out_kept, in_capacity, milliseconds;
	uint8_t cdb[OSD_INPUT_CDB_MAX];      /* zeros behind what the input had */
	uint8_t out[OSD_INPUT_OUT_KEPT_MAX]; /* the first out_kept bytes */
};

static inline bool osd_scene_has_version(enum osd_scene scene)
{
	return scene == OSD_SCENE_VERSIONS || scene == OSD_SCENE_LOCKED ||
	       scene == OSD_SCENE_PACKED;
}

/* The scene; the reader is then at the first command. */
enum osd_scene osd_input_scene(struct fuzz_reader *reader);

/* The next command. False: there is none. */
bool osd_input_next(struct fuzz_reader *reader, struct osd_input_command *command);

/* Appends a command at to[size]; new size, or `size` if it does not fit in `capacity`. */
size_t osd_input_append(const struct osd_input_command *command, uint8_t *to, size_t size,
			size_t capacity);

/*
 * Makes a packed ID of an object ID OSD_SCENE_OBJECT + 0..15: as of a version, or some
 * modifications ago, that bits 20 to 23 say as a number from -8 to 7; of the first page in bits 24
 * to 27. So the same inputs make sense with both layouts.
 */
void osd_input_pack(struct osd_input_command *command);

/* ---- osd_generate.c ---- */

/* A command that could come from an initiator in its right mind, or nearly so. */
void osd_input_generate(struct fuzz_random *random, struct osd_input_command *command);

/* Numbers that matter: mostly small ones, IDs of the scenes, the edges of everything. */
uint64_t osd_input_number(struct fuzz_random *random);

/* Makes the buffers as long as the CDB says, where they can be. */
void osd_input_refit(struct osd_input_command *command);

/* ---- osd_mutate.c: for struct fuzz_target ---- */

size_t osd_input_mutate(uint8_t *data, size_t size, size_t capacity, unsigned seed,
			fuzz_mutate_bytes *bytes);
size_t osd_input_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
		       uint8_t *to, size_t capacity, unsigned seed);

#endif
