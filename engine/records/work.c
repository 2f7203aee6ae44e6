/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* How much a thread does with records. */
#include "engine/records/work.h"

_Thread_local uint64_t records_worked;
