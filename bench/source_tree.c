/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes the tree of `muninn-bench import`, and checks what came back. */
#include "bench/source_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/random.h"
#include "common/bytes.h"

#define SIGMA 1.5
enum { FILES_OF_DIRECTORY = 16, PIECE_BYTES = 64 << 10, TREE_PATH_BYTES = 64 };

/* ---- names, lengths, contents ---- */

/* A directory's parent has its number without the last hexadecimal digit; number 0 is the top. */
static void directory_path(uint64_t number, char path[TREE_PATH_BYTES])
{
	char digits[17];
	size_t length = 0;

	snprintf(digits, sizeof(digits), "%" PRIx64, number);
	for (size_t i = 0; number > 0 && digits[i]; i++)
		length += (size_t)snprintf(path + length, TREE_PATH_BYTES - length, "part-%c/",
					   digits[i]);
	path[length] = '\0';
}

static void file_path(uint64_t number, char path[TREE_PATH_BYTES])
{
	size_t length;

	directory_path(number / FILES_OF_DIRECTORY, path);
	length = strlen(path);
	snprintf(path + length, TREE_PATH_BYTES - length, "file-%" PRIu64 ".c", number);
}

/* By Box and Muller. */
static double weight(const struct source_tree *tree, uint64_t number)
{
	struct random_state random = random_stream(tree->seed, 2 * number);
	double distance = sqrt(-2 * log(random_unit(&random)));

	return exp(SIGMA * distance * cos(2 * M_PI * random_unit(&random)));
}

static double sum_of_weights(const struct source_tree *tree)
{
	double sum = 0;

	for (uint64_t i = 0; i < tree->files; i++)
		sum += weight(tree, i);
	return sum;
}

/* The next `length` bytes of a file's content; `length` is a multiple of 8 or the file's end. */
static void fill(struct random_state *random, uint8_t *data, size_t length)
{
	for (size_t at = 0; at < length; at += 8) {
		uint64_t number = random_next(random);

		memcpy(data + at, &number, min_u64(8, length - at));
	}
}

/* ---- each file ---- */

static int write_file(int fd, const uint8_t *data, size_t length)
{
	ssize_t written = write(fd, data, length);

	if (written < 0)
		return -errno;
	return (size_t)written == length ? 0 : -ENOSPC;
}

static int compare_file(int fd, const uint8_t *data, size_t length)
{
	static uint8_t found[PIECE_BYTES];
	ssize_t got = read(fd, found, length);

	if (got < 0)
		return -errno;
	return (size_t)got == length && memcmp(found, data, length) == 0 ? 0 : -EBADMSG;
}

/* Writes the file, or compares it; in the latter case its end has to be there, too. */
static int go_through(const struct source_tree *tree, uint64_t number, uint64_t length, int fd,
		      bool compare)
{
	static uint8_t data[PIECE_BYTES];
	struct random_state random = random_stream(tree->seed, 2 * number + 1);
	struct stat status;
	int result = 0;

	if (compare && (fstat(fd, &status) < 0 || (uint64_t)status.st_size != length))
		return -EBADMSG;
	for (uint64_t at = 0; at < length && result == 0; at += PIECE_BYTES) {
		size_t piece = min_u64(PIECE_BYTES, length - at);

		fill(&random, data, piece);
		result = compare ? compare_file(fd, data, piece) : write_file(fd, data, piece);
	}
	return result;
}

static int do_file(const struct source_tree *tree, uint64_t number, uint64_t length, int root,
		   bool compare)
{
	char path[TREE_PATH_BYTES];
	int fd, result;

	if (!compare && number > 0 && number % FILES_OF_DIRECTORY == 0) {
		directory_path(number / FILES_OF_DIRECTORY, path);
		if (mkdirat(root, path, 0755) < 0)
			return -errno;
	}
	file_path(number, path);
	fd = openat(root, path, (compare ? O_RDONLY : O_WRONLY | O_CREAT | O_EXCL) | O_CLOEXEC,
		    0644);
	if (fd < 0)
		return compare && errno == ENOENT ? -EBADMSG : -errno;
	result = go_through(tree, number, length, fd, compare);
	if (close(fd) < 0 && result == 0)
		result = -errno;
	return result;
}

static int do_files(const struct source_tree *tree, const char *folder, bool compare,
		    uint64_t *bytes, struct error_text *error)
{
	double bytes_of_weight = (double)tree->bytes / sum_of_weights(tree);
	int root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int result = 0;

	if (root < 0)
		return error_set(error, -errno, "%s: %s", folder, strerror(errno));
	*bytes = 0;
	for (uint64_t i = 0; i < tree->files && result == 0; i++) {
		uint64_t length = (uint64_t)(weight(tree, i) * bytes_of_weight);
		char path[TREE_PATH_BYTES];

		*bytes += length;
		result = do_file(tree, i, length, root, compare);
		if (result == 0)
			continue;
		file_path(i, path);
		error_set(error, result, "%s/%s: %s", folder, path,
			  result == -EBADMSG ? "it is not what was stored" : strerror(-result));
	}
	close(root);
	return result;
}

int source_tree_make(const struct source_tree *tree, const char *folder, uint64_t *bytes,
		     struct error_text *error)
{
	return do_files(tree, folder, false, bytes, error);
}

int source_tree_check(const struct source_tree *tree, const char *folder, struct error_text *error)
{
	uint64_t bytes;

	return do_files(tree, folder, true, &bytes, error);
}
