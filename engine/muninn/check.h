/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Compares all that is stored with what refers to it. */
#ifndef MUNINN_ENGINE_MUNINN_CHECK_H
#define MUNINN_ENGINE_MUNINN_CHECK_H

#include "engine/records/records.h"

/* record_store_operations.check */
int check_store(struct record_store *store, struct record_check *check);

/* record_store_type.examine */
void check_device(struct nand *nand, struct findings *findings);

#endif
