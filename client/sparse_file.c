/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Writes a local file and leaves holes where its blocks are zero. */
#include "client/sparse_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"

bool sparse_is_zero(const void *data, size_t length)
{
	const uint8_t *bytes = data;

	return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static int write_at(struct sparse_file *file, const uint8_t *data, size_t length, uint64_t offset)
{
	while (length > 0) {
		ssize_t written = pwrite(file->fd, data, length, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		data += written;
		length -= (size_t)written;
		offset += (uint64_t)written;
		file->end = offset;
	}
	return 0;
}

int sparse_file_write(struct sparse_file *file, const void *data, size_t length)
{
	const uint8_t *bytes = data;
	size_t begin = 0, at = 0;

	/*
	 * Takes the blocks of the file, so that there are holes also when the pieces are not
	 * aligned.
	 */
	while (at < length) {
		size_t block = min_u64(
			SPARSE_BLOCK_BYTES - (file->length + at) % SPARSE_BLOCK_BYTES, length - at);

		if (block == SPARSE_BLOCK_BYTES && sparse_is_zero(bytes + at, block)) {
			int result =
				write_at(file, bytes + begin, at - begin, file->length + begin);

			if (result < 0)
				return result;
			begin = at + block;
		}
		at += block;
	}
	if (begin < length) {
		int result = write_at(file, bytes + begin, length - begin, file->length + begin);

		if (result < 0)
			return result;
	}
	file->length += length;
	return 0;
}

void sparse_file_skip(struct sparse_file *file, uint64_t length)
{
	file->length += length;
}

int sparse_file_end(struct sparse_file *file)
{
	if (file->end == file->length)
		return 0;
	return ftruncate(file->fd, (off_t)file->length) < 0 ? -errno : 0;
}
