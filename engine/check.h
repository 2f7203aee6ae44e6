/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Looking for damage in all that a device holds, from its records up to versions and clones. For a
 * device that nobody else uses; muninn-fsck does it on a private copy.
 */
#ifndef MUNINN_ENGINE_CHECK_H
#define MUNINN_ENGINE_CHECK_H

#include "common/finding.h"
#include "engine/options.h"

struct engine_check {
	struct findings *findings;
	bool versions; /* reads the objects of all kept versions, too */
	/* So much is done of a step, of how much; NULL: nobody asks. */
	void (*progress)(void *context, const char *step, uint64_t done, uint64_t total);
	/*
	 * A partition, user object or collection that has been found, damaged or not, and also one
	 * that no list shows. NULL: nobody asks.
	 */
	void (*member)(void *context, struct engine_address address, enum engine_type type);
	void *context;
	/* Results: what there is. */
	uint64_t segments, pages, records;
	uint64_t partitions, objects, collections, kept_versions, data_bytes;
};

/*
 * The geometry that the beginning of the NVRAM's region tells, with defaults for what it does not.
 * False: it is damaged. For an image whose superblocks are.
 */
#define ENGINE_HEADER_BYTES 96
bool engine_header_geometry(const uint8_t header[ENGINE_HEADER_BYTES],
			    struct nand_geometry *geometry);

/*
 * Adds what can be told to be wrong without opening the device, and changes nothing. What makes
 * engine_open fail is in its error.
 */
void engine_examine(struct nand *nand, struct findings *findings);

/*
 * Compares everything with everything that refers to it, and adds what is wrong to the findings.
 * Nothing is changed. -ENOMEM; -EBADMSG: so much is damaged that it could not go on.
 */
int engine_check(struct engine *engine, struct engine_check *check);

#endif
