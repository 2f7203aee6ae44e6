/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Whether a buffer holds what was put there. While the host has not failed its sum tells, and each
 * slot's state word. After that each slot's stamp tells how much of it a flush has promised.
 */
#ifndef MUNINN_ENGINE_MUNINN_BUFFER_CHECK_H
#define MUNINN_ENGINE_MUNINN_BUFFER_CHECK_H

#include "engine/muninn/buffer.h"

/*
 * The sum of what NVRAM says of it: serial and row, and if a row has it, which slot each page with
 * records has and what that slot's state word says.
 */
uint64_t buffer_sum(const struct buffer *buffer);

/* Where in NVRAM records are that are not what they should be; where that is said. */
struct buffer_damage {
	uint64_t at, bytes, header_at;
};

/* Whether all records of a buffer that a row has are as they were put; if not, the first page. */
bool buffer_is_whole(const struct buffer *buffer, struct buffer_damage *damage);

/*
 * A flush is about to promise everything in it with numbers up to `sequence`. If it `stamps`, the
 * slots note how much that is.
 */
void buffer_promise(struct buffer *buffer, uint64_t sequence, bool stamps);

/*
 * After a failure of the host: whether the headers can be those of a buffer, whose serials are
 * below `serials`; whether all is there that flushes up to number `flushed` have promised.
 */
bool buffer_is_sound(const struct buffer *buffer, uint64_t serials, struct buffer_damage *damage);
bool buffer_keeps_promise(const struct buffer *buffer, uint64_t flushed,
			  struct buffer_damage *damage);

#endif
