/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes space in a full buffer whose records were put again meanwhile. */
#ifndef MUNINN_ENGINE_MUNINN_GATHER_H
#define MUNINN_ENGINE_MUNINN_GATHER_H

#include "engine/muninn/buffer.h"

/*
 * Where a key may go to any page, drops records that newer ones supersede, on whatever page these
 * are, and moves the others to the first pages. `committed` is as in buffer_put, `ahead` as in
 * buffer_start. False: it is not tried, because nothing was put again, or too little at all since
 * the last time.
 */
bool buffer_gather(struct buffer *buffer, const struct row_index *row, uint32_t ahead,
		   uint64_t committed);

#endif
