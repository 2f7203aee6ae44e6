/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What osd_generate.c (CDBs) and osd_generate_out.c (Data-Out) share. */
#ifndef MUNINN_TESTS_FUZZ_OSD_GENERATE_H
#define MUNINN_TESTS_FUZZ_OSD_GENERATE_H

#include "tests/fuzz/osd_input.h"
#include "wire/wire.h"

/* Mostly IDs of the scenes. */
uint64_t osd_generate_partition(struct fuzz_random *random);
uint64_t osd_generate_object(struct fuzz_random *random);

/* Does the action address a collection? */
bool osd_generate_is_of_collection(uint16_t action);

/* Data-Out is `end` bytes long, all of them in the input. */
void osd_generate_ends_at(struct osd_input_command *command, size_t end);

/*
 * Each adds to Data-Out, and to the CDB what says so. Continuation segments and parameters come
 * first, attributes last.
 */
void osd_generate_continuation(struct fuzz_random *random, struct osd_input_command *command,
			       struct osd_cdb *cdb);
void osd_generate_parameters(struct fuzz_random *random, struct osd_input_command *command,
			     struct osd_cdb *cdb);
void osd_generate_attributes(struct fuzz_random *random, struct osd_input_command *command,
			     struct osd_cdb *cdb);

#endif
