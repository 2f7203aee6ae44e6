/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes a device larger that no store is open on. */
#ifndef MUNINN_ENGINE_MUNINN_GROW_H
#define MUNINN_ENGINE_MUNINN_GROW_H

#include "engine/records/records.h"

/* As `grow` of struct record_store_type. */
int grow_device(struct nand *nand, uint64_t blocks, bool really, struct error_text *error);

#endif
