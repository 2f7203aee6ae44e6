/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Random numbers of the tests of the ribbon index: they depend on the seed alone. */
#ifndef MUNINN_TESTS_ENGINE_MUNINN_RIBBON_RANDOM_H
#define MUNINN_TESTS_ENGINE_MUNINN_RIBBON_RANDOM_H

#include <stdint.h>

#include "engine/muninn/hash.h"

static inline uint64_t next_random(uint64_t *random)
{
	return hash_mix(*random += UINT64_C(0x9e3779b97f4a7c15));
}

static inline uint32_t below(uint64_t *random, uint32_t limit)
{
	return (uint32_t)(next_random(random) % limit);
}

#endif
