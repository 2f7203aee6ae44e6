/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What a flush beside a writing transaction needs of it. */
#ifndef MUNINN_ENGINE_OBJECTS_FLUSH_BESIDE_H
#define MUNINN_ENGINE_OBJECTS_FLUSH_BESIDE_H

struct engine;
struct flush_beside;

void flush_beside_init(struct flush_beside *beside);
void flush_beside_destroy(struct flush_beside *beside);

/*
 * Flushes, if somebody waits for that. The caller has the turn alone, and its transaction is
 * between two records. Quick when nobody does.
 */
void flush_beside_serve(struct engine *engine);

#endif
