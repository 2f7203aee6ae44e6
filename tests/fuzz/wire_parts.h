/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Parts of the wire target: what came to the standards' layouts later, and the vendor's own. */
#ifndef MUNINN_TESTS_FUZZ_WIRE_PARTS_H
#define MUNINN_TESTS_FUZZ_WIRE_PARTS_H

#include "tests/fuzz/fuzz.h"

void fuzz_wire_items(struct fuzz_reader *input);
void fuzz_wire_item_writer(struct fuzz_reader *input);
void fuzz_wire_capability(struct fuzz_reader *input);
void fuzz_wire_key_fields(struct fuzz_reader *input);
void fuzz_wire_maps(struct fuzz_reader *input);
void fuzz_wire_check_value_place(struct fuzz_reader *input);

#endif
