/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The ranges in which a long file differs from the object that it was stored in. Private to the
 * tree_*.c files.
 */
#ifndef MUNINN_CLIENT_TREE_RANGES_H
#define MUNINN_CLIENT_TREE_RANGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/manifest.h"

#define TREE_RANGES_MAX 1024 /* of a file; further ones become part of the last one */

/* In bytes from the file's beginning, ascending, not touching each other. */
struct tree_ranges {
	struct tree_range {
		uint64_t begin, end;
	} list[TREE_RANGES_MAX];
	size_t count;
};

/* ---- finding them ---- */

struct tree_comparison;

/* Of the file `fd`, from where it stands. NULL: out of memory. */
struct tree_comparison *tree_comparison_begin(int fd);
/*
 * Compares the file's next bytes with the object's. -ESTALE: the file is shorter than it was;
 * errors of reading it; -ENOMEM.
 */
int tree_comparison_next(struct tree_comparison *comparison, const void *object, size_t length);
/*
 * The rest of the file, which has `length` bytes in all, has no counterpart in the object: compares
 * it with zeros. Gives the file's SHA-256.
 */
int tree_comparison_end(struct tree_comparison *comparison, uint64_t length,
			uint8_t sha256[MANIFEST_SHA256_BYTES]);
/* Those found so far; the comparison's own. */
const struct tree_ranges *tree_comparison_ranges(const struct tree_comparison *comparison);
/* NULL is allowed. */
void tree_comparison_free(struct tree_comparison *comparison);

/* ---- sending them ---- */

struct tree_ranges_reader {
	int fd;
	const struct tree_ranges *ranges;
	/* The reader's own, zeroed. */
	size_t at;
	uint64_t position; /* in that range; 0: at its beginning */
};

/* As a transfer_read (client/transfer.h). -ESTALE: the file is shorter than it was. */
ssize_t tree_ranges_read(void *reader, void *data, size_t capacity, uint64_t *offset);

#endif
