/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The table through which objects call history. */
#ifndef MUNINN_ENGINE_HISTORY_CALLS_H
#define MUNINN_ENGINE_HISTORY_CALLS_H

#include "engine/objects/history_calls.h"

extern const struct history_calls history_calls;

#endif
