/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The Muninn record store, as seen from outside of its folder: the published algorithm. */
#ifndef MUNINN_ENGINE_MUNINN_MUNINN_H
#define MUNINN_ENGINE_MUNINN_MUNINN_H

#include "engine/muninn/options.h"
#include "engine/records/records.h"

extern const struct record_store_type muninn_store_type;

#endif
