/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Which of its row's buffers a record goes to. */
#ifndef MUNINN_ENGINE_MUNINN_PLACE_H
#define MUNINN_ENGINE_MUNINN_PLACE_H

#include "engine/muninn/store.h"

/*
 * Puts a record into its row's buffer, sealing it first when it is full. Visible at once when its
 * sequence number is a committed one. -ENOSPC, -EIO.
 */
int place_record(struct muninn_store *store, const struct new_record *record,
		 enum record_room room);

#endif
