/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Writes a local file from its beginning, and leaves holes where its blocks are zero. Also tells
 * whether bytes are zero.
 */
#ifndef MUNINN_CLIENT_SPARSE_FILE_H
#define MUNINN_CLIENT_SPARSE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPARSE_BLOCK_BYTES 4096U

/* Whether bytes, at least one, are all zero. */
bool sparse_is_zero(const void *data, size_t length);

struct sparse_file {
	int fd;          /* of an empty file, opened for writing; the caller's */
	uint64_t length; /* bytes given so far */
	uint64_t end;    /* of what was written, holes at the end left out */
};

/* The next bytes. 0 or negative errno. */
int sparse_file_write(struct sparse_file *file, const void *data, size_t length);

/* The next `length` bytes are zeros. */
void sparse_file_skip(struct sparse_file *file, uint64_t length);

/* Sets the length of the file, which a hole at the end does not. */
int sparse_file_end(struct sparse_file *file);

#endif
