/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A directory tree as that of a program's sources: many small files and a few long ones, 16 in a
 * directory. Names, lengths and contents follow from a seed.
 */
#ifndef MUNINN_BENCH_SOURCE_TREE_H
#define MUNINN_BENCH_SOURCE_TREE_H

#include <stdint.h>

#include "common/error.h"

struct source_tree {
	uint64_t files;
	uint64_t bytes; /* of all files; by rounding the tree has up to one less for each file */
	uint64_t seed;
};

/*
 * Makes the tree in an empty folder; `bytes` gets what its files have. -errno with a sentence.
 * Lengths are log-normal, sigma 1.5: the median is a third of the mean, and a thousandth of the
 * files have more than 30 times the mean. Contents can't be compressed.
 */
int source_tree_make(const struct source_tree *tree, const char *folder, uint64_t *bytes,
		     struct error_text *error);

/* Compares all files of the tree with those in `folder`. -EBADMSG: one is missing or differs. */
int source_tree_check(const struct source_tree *tree, const char *folder, struct error_text *error);

#endif
