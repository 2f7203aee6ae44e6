/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How often tests repeat random rounds and power cuts. The release build does all of them, with the
 * default index. Under a sanitizer, which takes several times as long and looks for faults that a
 * path shows at once, a part is done; of random rounds also with the other index.
 */
#ifndef MUNINN_TESTS_REPETITION_H
#define MUNINN_TESTS_REPETITION_H

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED_PART = 4 };
#else
enum { SANITIZED_PART = 1 };
#endif
enum { OTHER_INDEX_PART = 4 };

/* How many of so many random rounds this run does. */
static inline uint64_t rounds(uint64_t all)
{
	if (SANITIZED_PART > 1)
		return all / SANITIZED_PART;
	return getenv("MUNINN_INDEX") ? all / OTHER_INDEX_PART : all;
}

/* The stride in this run of power cuts that are to come at every `every`th operation. */
static inline uint64_t cut_stride(uint64_t every)
{
	return every * SANITIZED_PART;
}

#endif
