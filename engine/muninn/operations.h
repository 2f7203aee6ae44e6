/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What open.c makes a store of. */
#ifndef MUNINN_ENGINE_MUNINN_OPERATIONS_H
#define MUNINN_ENGINE_MUNINN_OPERATIONS_H

#include "engine/muninn/store.h"

extern const struct record_store_operations muninn_operations;

#endif
