/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Opens an image with its NVRAM file, or a device in memory. Checks everything before it maps
 * anything writable or repairs it. So a file that is refused is as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/grow.h"
#include "nand/lab.h"
#include "nand/opening.h"
#include "nand/private.h"
#include "nand/space.h"

/* A copy waits for erases; then others wait for it, however many come. */
static void init_erasing(pthread_rwlock_t *erasing)
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(erasing, &attributes);
	pthread_rwlockattr_destroy(&attributes);
}

struct nand *nand_new_handle(const char *path)
{
	size_t bytes = align_up(sizeof(struct nand), alignof(struct nand));
	struct nand *nand = aligned_alloc(alignof(struct nand), bytes);

	if (!nand)
		return NULL;
	memset(nand, 0, bytes);
	nand->path = strdup(path);
	if (!nand->path) {
		free(nand);
		return NULL;
	}
	nand->image_fd = nand->nvram_fd = nand->copied_fd = -1;
	init_erasing(&nand->erasing);
	pthread_mutex_init(&nand->sync_lock, NULL);
	pthread_mutex_init(&nand->ballast_lock, NULL);
	pthread_mutex_init(&nand->space_lock, NULL);
	pthread_mutex_init(&nand->lab_lock, NULL);
	pthread_mutex_init(&nand->calls.lock, NULL);
	pthread_cond_init(&nand->calls.returned, NULL);
	nand_nvram_group_init(&nand->nvram_group);
#ifdef MUNINN_DEBUG
	nand->violation_policy = NAND_VIOLATION_ABORTS;
#else
	nand->violation_policy = NAND_VIOLATION_FAILS;
#endif
	return nand;
}

int nand_read_header(int fd, uint64_t offset, uint8_t *to, const char *path,
		     struct error_text *error)
{
	uint64_t done = 0;

	memset(to, 0, NAND_HEADER_BYTES);
	while (done < NAND_HEADER_BYTES) {
		ssize_t got =
			pread(fd, to + done, NAND_HEADER_BYTES - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(error, -EIO, "cannot read %s at byte %llu: %s", path,
					 (unsigned long long)offset, strerror(errno));
		if (got == 0)
			break;
		done += (uint64_t)got;
	}
	return 0;
}

int nand_open_regular(const char *path, bool read_only, int *fd, uint64_t *bytes,
		      struct error_text *error)
{
	struct stat status;

	*fd = open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (*fd < 0 && errno != EISDIR)
		return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	if (*fd >= 0 && fstat(*fd, &status) < 0)
		return error_set(error, -errno, "cannot open %s: %s", path, strerror(errno));
	if (*fd < 0 || !S_ISREG(status.st_mode))
		return error_set(error, -EINVAL,
				 "%s is not a regular file, so it cannot be a Muninn image", path);
	*bytes = (uint64_t)status.st_size;
	return 0;
}

/* ---- superblocks ---- */

/* Both copies as found on the disk. */
struct superblock_pair {
	struct {
		enum nand_header_verdict verdict;
		struct nand_superblock superblock;
		uint32_t version;
	} copies[NAND_SUPERBLOCK_COPIES];
};

static int read_superblocks(const struct nand *nand, struct superblock_pair *pair,
			    struct error_text *error)
{
	uint8_t bytes[NAND_HEADER_BYTES];

	memset(pair, 0, sizeof(*pair));
	for (int i = 0; i < NAND_SUPERBLOCK_COPIES; i++) {
		int result = nand_read_header(nand->image_fd, (uint64_t)i * NAND_SUPERBLOCK_SPACING,
					      bytes, nand->path, error);

		if (result < 0)
			return result;
		pair->copies[i].verdict = nand_superblock_decode(bytes, &pair->copies[i].superblock,
								 &pair->copies[i].version);
	}
	return 0;
}

/* Which copy has this verdict (and, if it is valid, this state)? -1: none. */
static int find_copy(const struct superblock_pair *pair, enum nand_header_verdict verdict,
		     enum nand_image_state state)
{
	for (int i = 0; i < NAND_SUPERBLOCK_COPIES; i++)
		if (pair->copies[i].verdict == verdict &&
		    (verdict != NAND_HEADER_VALID || pair->copies[i].superblock.state == state))
			return i;
	return -1;
}

/*
 * The copy that counts. Growth writes the second one only when the first one is stable, so what the
 * larger one says is true, also where the host has lost the other. -1: none.
 */
static int find_good(const struct superblock_pair *pair)
{
	int good = -1;
	uint32_t most = 0;

	for (int i = 0; i < NAND_SUPERBLOCK_COPIES; i++) {
		const struct nand_superblock *superblock = &pair->copies[i].superblock;

		if (pair->copies[i].verdict != NAND_HEADER_VALID ||
		    superblock->state != NAND_IMAGE_COMPLETE || superblock->geometry.blocks <= most)
			continue;
		most = superblock->geometry.blocks;
		good = i;
	}
	return good;
}

/* Says why neither copy can be used; the most telling finding first. */
static int refuse_image(const struct nand *nand, const struct superblock_pair *pair, uint64_t bytes,
			struct error_text *error)
{
	int other = find_copy(pair, NAND_HEADER_OTHER_VERSION, 0);

	if (find_copy(pair, NAND_HEADER_VALID, NAND_IMAGE_CREATING) >= 0)
		return error_set(
			error, -EINVAL,
			"%s: its creation was interrupted, nothing is on it; delete it and "
			"%s.nvram (if it is there) and create it again",
			nand->path, nand->path);
	if (other >= 0)
		return error_set(
			error, -EINVAL,
			"%s has image format version %u, this program knows versions %u and %u "
			"only: use the Muninn release that wrote it%s",
			nand->path, pair->copies[other].version, NAND_FORMAT_VERSION,
			NAND_FORMAT_GROWN,
			pair->copies[other].version < NAND_FORMAT_VERSION
				? ", or copy its objects out with that release and into a new image"
				: "");
	if (find_copy(pair, NAND_HEADER_CORRUPT, 0) >= 0)
		return error_set(
			error, -EINVAL,
			"%s is a Muninn image, but both copies of its superblock (at bytes 0 and "
			"%d) are damaged: restore it from a backup",
			nand->path, NAND_SUPERBLOCK_SPACING);
	if (bytes == 0)
		return error_set(
			error, -EINVAL,
			"%s is empty: not a Muninn image, or its creation was interrupted at once; "
			"delete it and create it again",
			nand->path);
	return error_set(error, -EINVAL, "%s is not a Muninn image: it holds something else",
			 nand->path);
}

void nand_take_superblock(struct nand *nand, const struct nand_superblock *superblock)
{
	nand->geometry = superblock->geometry;
	nand->layout = nand_layout_of(&superblock->geometry);
	nand->nvram_bytes = superblock->nvram_bytes;
	memcpy(nand->uuid, superblock->uuid, NAND_UUID_BYTES);
	memcpy(nand->contents, superblock->contents, NAND_CONTENTS_BYTES);
	nand->opening = superblock->opening;
}

/* Fills geometry, layout, uuid and NVRAM size; `good` is the copy that was used. */
static int check_image(struct nand *nand, uint64_t bytes, struct superblock_pair *pair, int *good,
		       struct error_text *error)
{
	const struct nand_superblock *superblock;
	int result = read_superblocks(nand, pair, error);

	if (result < 0)
		return result;
	*good = find_good(pair);
	if (*good < 0)
		return refuse_image(nand, pair, bytes, error);
	superblock = &pair->copies[*good].superblock;
	for (int i = 0; i < NAND_SUPERBLOCK_COPIES; i++)
		if (pair->copies[i].verdict == NAND_HEADER_VALID &&
		    memcmp(pair->copies[i].superblock.uuid, superblock->uuid, NAND_UUID_BYTES) != 0)
			return error_set(
				error, -EINVAL,
				"%s: the two copies of its superblock are of different images: it "
				"was partly overwritten; restore it from a backup",
				nand->path);
	nand_take_superblock(nand, superblock);
	/* One of them may have been noted when the process ended. */
	for (int i = 0; i < NAND_SUPERBLOCK_COPIES; i++)
		if (pair->copies[i].verdict == NAND_HEADER_VALID &&
		    pair->copies[i].superblock.opening.number > nand->opening.number)
			nand->opening = pair->copies[i].superblock.opening;
	if (bytes < nand->layout.image_bytes)
		return error_set(
			error, -EINVAL,
			"%s is truncated: it has %llu bytes and needs %llu; restore it from a "
			"backup",
			nand->path, (unsigned long long)bytes,
			(unsigned long long)nand->layout.image_bytes);
	return 0;
}

/* Is a copy whole, though nand_set_contents or nand_grow may not have reached it? */
static bool is_whole(const struct superblock_pair *pair, int copy)
{
	return pair->copies[copy].verdict == NAND_HEADER_VALID &&
	       pair->copies[copy].superblock.state == NAND_IMAGE_COMPLETE;
}

static bool says_the_same(const struct nand_superblock *one, const struct nand_superblock *other)
{
	return one->geometry.blocks == other->geometry.blocks &&
	       memcmp(one->contents, other->contents, NAND_CONTENTS_BYTES) == 0;
}

/* No damage where a process has ended before it wrote this copy, too. */
static void tell_repair(const struct nand *nand, uint64_t offset, bool was_whole)
{
	if (was_whole)
		log_line(LOG_LEVEL_INFO,
			 "%s: the superblock at byte %llu was older than the other copy, and is as "
			 "new now",
			 nand->path, (unsigned long long)offset);
	else
		log_line(LOG_LEVEL_WARNING,
			 "%s: the superblock at byte %llu was damaged and has been repaired from "
			 "the other copy",
			 nand->path, (unsigned long long)offset);
}

/* Writes the good copy over one that is not. Not being able to is no reason not to go on. */
static void repair_superblocks(const struct nand *nand, const struct superblock_pair *pair,
			       int good)
{
	const struct nand_superblock *superblock = &pair->copies[good].superblock;
	uint8_t bytes[NAND_HEADER_BYTES];

	nand_superblock_encode(superblock, bytes);
	for (int i = 0; i < NAND_SUPERBLOCK_COPIES; i++) {
		uint64_t offset = (uint64_t)i * NAND_SUPERBLOCK_SPACING;
		bool was_whole = is_whole(pair, i);

		if (was_whole && says_the_same(&pair->copies[i].superblock, superblock))
			continue;
		if (pwrite(nand->image_fd, bytes, sizeof(bytes), (off_t)offset) == sizeof(bytes) &&
		    fdatasync(nand->image_fd) == 0)
			tell_repair(nand, offset, was_whole);
		else
			log_line(LOG_LEVEL_WARNING,
				 "%s: the superblock at byte %llu is damaged and could not be "
				 "repaired: %s",
				 nand->path, (unsigned long long)offset, strerror(errno));
	}
}

/* ---- NVRAM ---- */

/* Opens the file, and refuses it unless it is the image's. */
static int check_nvram_file(struct nand *nand, const char *path, struct error_text *error)
{
	struct nand_nvram_header header = { 0 }, wanted = { 0 };
	uint64_t expected = NAND_HEADER_BYTES + nand->nvram_bytes;
	uint8_t from[NAND_HEADER_BYTES];
	uint32_t version = 0;
	uint64_t bytes = 0;
	int result = nand_open_regular(path, nand->read_only, &nand->nvram_fd, &bytes, error);

	if (result == -ENOENT)
		return error_set(error, -EINVAL,
				 "%s is missing: it belongs to %s, which cannot be opened without "
				 "it; put it "
				 "back in its place",
				 path, nand->path);
	if (result == 0)
		result = nand_read_header(nand->nvram_fd, 0, from, path, error);
	if (result < 0)
		return result;
	switch (nand_nvram_header_decode(from, &header, &version)) {
	case NAND_HEADER_VALID:
		break;
	case NAND_HEADER_FOREIGN:
		return error_set(error, -EINVAL,
				 "%s is not a Muninn NVRAM file: it holds something else", path);
	case NAND_HEADER_CORRUPT:
		return error_set(
			error, -EINVAL,
			"%s: its header (the first %d bytes) is damaged: restore it from a backup",
			path, NAND_HEADER_BYTES);
	case NAND_HEADER_OTHER_VERSION:
		return error_set(
			error, -EINVAL,
			"%s has NVRAM format version %u, this program knows version %u only: use "
			"the Muninn release that wrote it",
			path, version, NAND_FORMAT_VERSION);
	}
	if (memcmp(header.uuid, nand->uuid, NAND_UUID_BYTES) != 0)
		return error_set(
			error, -EINVAL,
			"%s belongs to another image than %s: put the right one in its place", path,
			nand->path);
	nand_nvram_note_growth(&wanted, &nand->geometry);
	if (header.blocks != wanted.blocks || header.grown_from != wanted.grown_from)
		return error_set(
			error, -EINVAL,
			"%s is of a time when %s had another size: the image has grown in between, "
			"and one of them was put back without the other; put back both of one time",
			path, nand->path);
	if (header.nvram_bytes != nand->nvram_bytes || bytes != expected)
		return error_set(
			error, -EINVAL,
			"%s has the wrong size: it has %llu bytes and must have %llu; restore it "
			"from a backup",
			path, (unsigned long long)bytes, (unsigned long long)expected);
	return nand_opening_check(nand->path, &nand->opening, path, &header.opening, error);
}

/*
 * The image's NVRAM file. After a growth whose last step did not happen it is still under the name
 * that it was made by.
 */
static int check_nvram(struct nand *nand, const char *path, bool *is_unnamed,
		       struct error_text *error)
{
	int result = check_nvram_file(nand, path, error);
	char *grown;

	*is_unnamed = false;
	if (result == 0 || !nand->geometry.grown_from)
		return result;
	if (nand->nvram_fd >= 0)
		close(nand->nvram_fd);
	nand->nvram_fd = -1;
	grown = nand_grown_nvram_path(path);
	*is_unnamed = grown && check_nvram_file(nand, grown, NULL) == 0;
	free(grown);
	return *is_unnamed ? 0 : result;
}

/* ---- the handle ---- */

/* Damaged block states are reported here once; each is refused when it is touched. */
static void report_damaged_blocks(const struct nand *nand)
{
	uint32_t damaged = 0, first = 0;

	for (uint32_t block = nand->geometry.blocks; block-- > 0;) {
		struct nand_block_word word;

		if (!nand_block_word_decode(get_le64(nand->table.at + block * sizeof(uint64_t)),
					    nand->geometry.pages_per_block, &word)) {
			damaged++;
			first = block;
		}
	}
	if (damaged > 0)
		log_line(LOG_LEVEL_WARNING,
			 "%s: the state of %u blocks is damaged, the first is block %u: what is on "
			 "them "
			 "cannot be read",
			 nand->path, damaged, first);
}

/* Before stores into the mappings of table and NVRAM. */
static int fill_holes(const struct nand *nand, struct error_text *error)
{
	int result = 0;

	if (nand->read_only || nand->image_fd < 0)
		return 0;
	if (nand->nvram_fd >= 0)
		result = nand_space_fill_holes(nand->nvram_fd, 0,
					       NAND_HEADER_BYTES + nand->nvram_bytes);
	if (result == 0)
		result = nand_space_fill_holes(nand->image_fd, nand->layout.table_offset,
					       nand->layout.table_bytes);
	return result < 0 ? error_set(error, result,
				      "%s: no space on the host's file system for holes in its "
				      "NVRAM or block table: %s",
				      nand->path, strerror(-result))
			  : 0;
}

/* At most so much of a file is asked for at once: more than that the host may leave out. */
#define READ_AHEAD_BYTES (128 << 10)

/*
 * Maps what will be stored to here and there. It comes into the host's memory page by page, and not
 * in larger pieces as it would when it is first looked at (space.h). Hints: a host may ignore them.
 */
static int map_stored(struct nand_mapping *mapping, enum nand_mapping_kind kind, int fd,
		      uint64_t offset, uint64_t bytes, const char *what, struct error_text *error)
{
	int result = nand_map(mapping, kind, fd, offset, bytes, what, error);

	if (result < 0 || fd < 0)
		return result;
	for (uint64_t done = 0; done < bytes; done += READ_AHEAD_BYTES)
		(void)posix_fadvise(fd, (off_t)(offset + done), READ_AHEAD_BYTES,
				    POSIX_FADV_WILLNEED);
	(void)madvise(mapping->at, bytes, MADV_RANDOM);
	return 0;
}

/* Table and NVRAM, which every device has mapped. */
static int map_device(struct nand *nand, struct error_text *error)
{
	enum nand_mapping_kind kind = nand->read_only ? NAND_MAP_READ_ONLY : NAND_MAP_SHARED;
	int result = fill_holes(nand, error);

	if (result == 0)
		result = map_stored(&nand->table, kind, nand->image_fd, nand->layout.table_offset,
				    nand->layout.table_bytes, nand->path, error);
	if (result == 0)
		result = map_stored(&nand->nvram,
				    nand->read_only ? NAND_MAP_PRIVATE : NAND_MAP_SHARED,
				    nand->nvram_fd, 0, NAND_HEADER_BYTES + nand->nvram_bytes,
				    "the NVRAM", error);
	if (result == 0 && nand->nvram_fd >= 0 && !nand->read_only) {
		result = nand_nvram_group_open(&nand->nvram_group, nand->nvram_fd);
		if (result < 0)
			error_set(error, result, "%s.nvram can't be opened again: %s", nand->path,
				  strerror(-result));
	}
	return result;
}

static int open_files(struct nand *nand, const struct nand_options *options,
		      struct error_text *error)
{
	char *nvram_path = nand_nvram_path(nand->path);
	struct superblock_pair pair;
	bool is_unnamed = false;
	uint64_t bytes = 0;
	int good = 0;
	int result;

	if (!nvram_path)
		return error_set(error, -ENOMEM, "cannot open %s: %s", nand->path,
				 strerror(ENOMEM));
	result = nand_open_regular(nand->path, nand->read_only, &nand->image_fd, &bytes, error);
	if (result == -ENOENT)
		error_set(error, result, "there is no image %s", nand->path);
	if (result == 0 && !nand->read_only)
		result = nand_lock_image(nand->image_fd, nand->path, error);
	if (result == 0)
		result = check_image(nand, bytes, &pair, &good, error);
	if (result == 0)
		result = check_nvram(nand, nvram_path, &is_unnamed, error);
	if (result == 0 && !nand->read_only)
		result = nand_grow_settle(nand, nvram_path, is_unnamed, error);
	if (result == 0)
		result = map_device(nand, error);
	if (result == 0)
		result = options->backend == NAND_BACKEND_FILE
				 ? nand_file_open(nand, options->io, error)
				 : nand_mmap_open(nand, error);
	free(nvram_path);
	if (result != 0)
		return result;
	if (!nand->read_only)
		repair_superblocks(nand, &pair, good);
	if (!options->only_looks)
		report_damaged_blocks(nand);
	nand->dirty = true; /* what the last process left in the host's cache */
	return nand->read_only || options->only_looks ? 0 : nand_take_left_power_cut(nand, error);
}

int nand_open_with(const char *path, const struct nand_options *options, struct nand **nand,
		   struct error_text *error)
{
	const struct nand_options defaults = { 0 };
	struct nand *handle = nand_new_handle(path);
	int result;

	*nand = NULL;
	if (!handle)
		return error_set(error, -ENOMEM, "cannot open %s: %s", path, strerror(ENOMEM));
	if (!options)
		options = &defaults;
	handle->read_only = options->read_only;
	handle->keep_space = options->space != NAND_SPACE_GIVEN_BACK;
	result = open_files(handle, options, error);
	if (result < 0) {
		nand_free(handle);
		return result;
	}
	*nand = handle;
	return 0;
}

int nand_open(const char *path, struct nand **nand, struct error_text *error)
{
	return nand_open_with(path, NULL, nand, error);
}

int nand_open_read_only(const char *path, struct nand **nand, struct error_text *error)
{
	const struct nand_options options = { .read_only = true };

	return nand_open_with(path, &options, nand, error);
}

/* A handle of a device that no file belongs to, with everything but its back end. */
static int new_in_memory(const struct nand_geometry *geometry, uint64_t nvram_bytes,
			 struct nand **nand, struct error_text *error)
{
	struct nand *handle;
	uint64_t image_bytes;
	int result = nand_create_check(geometry, nvram_bytes, &image_bytes, error);

	*nand = NULL;
	if (result < 0)
		return result;
	handle = nand_new_handle("(memory)");
	if (!handle)
		return error_set(error, -ENOMEM, "cannot make a device: %s", strerror(ENOMEM));
	handle->geometry = *geometry;
	handle->layout = nand_layout_of(geometry);
	handle->nvram_bytes = nvram_bytes;
	result = map_device(handle, error);
	if (result == 0 && getrandom(handle->uuid, NAND_UUID_BYTES, 0) != NAND_UUID_BYTES)
		result = error_set(error, -EIO, "cannot get random bytes for a device");
	if (result < 0) {
		nand_free(handle);
		return result;
	}
	nand_table_initialise(handle->table.at, geometry->blocks);
	*nand = handle;
	return 0;
}

/* The last step: `result` is that of opening the back end. */
static int finish_in_memory(struct nand **nand, int result)
{
	if (result < 0) {
		nand_free(*nand);
		*nand = NULL;
	}
	return result;
}

int nand_open_memory(const struct nand_geometry *geometry, uint64_t nvram_bytes, struct nand **nand,
		     struct error_text *error)
{
	int result = new_in_memory(geometry, nvram_bytes, nand, error);

	return result < 0 ? result : finish_in_memory(nand, nand_mmap_open(*nand, error));
}

int nand_open_headers(const struct nand_geometry *geometry, uint64_t nvram_bytes,
		      const struct nand_payload_codec *codec, struct nand **nand,
		      struct error_text *error)
{
	int result = new_in_memory(geometry, nvram_bytes, nand, error);

	return result < 0 ? result : finish_in_memory(nand, nand_headers_open(*nand, codec, error));
}
