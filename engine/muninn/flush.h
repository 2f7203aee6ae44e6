/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* From the host's caches to its storage. */
#ifndef MUNINN_ENGINE_MUNINN_FLUSH_H
#define MUNINN_ENGINE_MUNINN_FLUSH_H

#include "engine/muninn/store.h"

/* Makes all that is committed stable on the host. */
int flush_all(struct muninn_store *store);

#endif
