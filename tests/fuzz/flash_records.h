/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Parts of the flash target: what the object layer keeps in records. */
#ifndef MUNINN_TESTS_FUZZ_FLASH_RECORDS_H
#define MUNINN_TESTS_FUZZ_FLASH_RECORDS_H

#include "tests/fuzz/fuzz.h"

void fuzz_flash_onode(struct fuzz_reader *input);
void fuzz_flash_idset(struct fuzz_reader *input);
void fuzz_flash_attributes(struct fuzz_reader *input);
void fuzz_flash_extents(struct fuzz_reader *input);
void fuzz_flash_partition(struct fuzz_reader *input);

#endif
