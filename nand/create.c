/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Creates images, and names what is put on one. Both superblocks say "creating" until all else is
 * stable. So nand_open recognises what a crash leaves at any point.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "common/owner.h"
#include "nand/private.h"
#include "nand/salvage.h"
#include "nand/space.h"

/*
 * Where IMAGE.nvram leads, to be freed: itself, if it is no link. `owner` becomes the link's; that
 * is asked of the very link that is read, which may be exchanged meanwhile.
 */
static char *follow_nvram(const char *path, uid_t *owner)
{
	char target[PATH_MAX], *link, *followed;
	ssize_t length = -1;
	struct stat status;
	int fd;

	if (asprintf(&link, "%s.nvram", path) < 0)
		return NULL;
	fd = open(link, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		if (fstat(fd, &status) == 0 && S_ISLNK(status.st_mode))
			length = readlinkat(fd, "", target, sizeof(target));
		close(fd);
	}
	if (length < 0 || length == sizeof(target))
		return link;
	*owner = status.st_uid;
	if (target[0] == '/')
		followed = strndup(target, (size_t)length);
	else if (asprintf(&followed, "%s/%.*s", dirname(link), (int)length, target) < 0)
		followed = NULL;
	free(link);
	return followed;
}

char *nand_nvram_path(const char *path)
{
	uid_t owner;

	return follow_nvram(path, &owner);
}

int nand_nvram_path_to_make(const char *path, char **file, struct error_text *error)
{
	uid_t owner = geteuid();

	*file = follow_nvram(path, &owner);
	if (!*file)
		return error_set(error, -ENOMEM, "cannot create the NVRAM of %s: %s", path,
				 strerror(ENOMEM));
	if (geteuid() != 0 || owner == 0)
		return 0;
	free(*file);
	*file = NULL;
	return error_set(error, -EPERM,
			 "%s.nvram is a link of the user %u, which root does not follow to make a "
			 "file: nothing was created; remove it, or make the link as root",
			 path, (unsigned int)owner);
}

/* One of the two files while they are made. With a descriptor it is ours, and goes on failure. */
struct new_file {
	const char *path, *name; /* `name`: in `folder` */
	int folder, fd;
};

struct creation {
	struct new_file image, nvram;
	struct nand_superblock superblock;
	struct nand_layout layout;
};

static int failed(struct error_text *error, int result, const char *doing, const char *path)
{
	return error_set(error, result, "cannot %s %s: %s", doing, path, strerror(-result));
}

static int open_folder(struct new_file *file, struct error_text *error)
{
	file->folder = owner_open_folder(file->path, &file->name);
	return file->folder < 0 ? failed(error, file->folder, "create", file->path) : 0;
}

static int create_file(struct new_file *file, struct error_text *error)
{
	file->fd = owner_make_file(file->folder, file->name, O_RDWR, 0640);
	if (file->fd >= 0)
		return 0;
	if (file->fd == -EEXIST)
		return error_set(
			error, -EEXIST,
			"%s exists already: nothing was created; choose another name, or remove "
			"it if nothing on it is wanted",
			file->path);
	return failed(error, file->fd, "create", file->path);
}

static void close_file(struct new_file *file, bool remove)
{
	if (file->fd >= 0) {
		if (remove)
			unlinkat(file->folder, file->name, 0);
		close(file->fd);
	}
	if (file->folder >= 0)
		close(file->folder);
}

static int write_superblocks(struct creation *creation, enum nand_image_state state,
			     struct error_text *error)
{
	uint8_t bytes[NAND_HEADER_BYTES];
	int result = 0;

	creation->superblock.state = state;
	nand_superblock_encode(&creation->superblock, bytes);
	for (int copy = 0; copy < NAND_SUPERBLOCK_COPIES && result == 0; copy++)
		result = nand_write_all(creation->image.fd, bytes, sizeof(bytes),
					(uint64_t)copy * NAND_SUPERBLOCK_SPACING);
	return result < 0 ? failed(error, result, "write the superblock of", creation->image.path)
			  : 0;
}

/* Written, not left as a hole: the mapped table must never want space of the host later. */
static int write_table(struct creation *creation, struct error_text *error)
{
	uint8_t piece[NAND_STORED_PIECE];
	int result = 0;

	nand_table_initialise(piece, sizeof(piece) / sizeof(uint64_t));
	for (uint64_t offset = creation->layout.table_offset;
	     offset < creation->layout.data_offset && result == 0; offset += sizeof(piece))
		result = nand_write_all(creation->image.fd, piece, sizeof(piece), offset);
	return result < 0 ? failed(error, result, "write the block table of", creation->image.path)
			  : 0;
}

/*
 * Written as a whole: a store into space that is only reserved can find a full file system, too
 * (mmap.c), and would end the process.
 */
static int fill_nvram(struct creation *creation, struct error_text *error)
{
	struct nand_nvram_header header = {
		.nvram_bytes = creation->superblock.nvram_bytes,
		.opening = creation->superblock.opening,
	};
	uint8_t bytes[NAND_HEADER_BYTES];
	int result;

	memcpy(header.uuid, creation->superblock.uuid, sizeof(header.uuid));
	nand_nvram_note_growth(&header, &creation->superblock.geometry);
	nand_nvram_header_encode(&header, bytes);
	result = nand_write_zeroes(creation->nvram.fd, 0, NAND_HEADER_BYTES + header.nvram_bytes);
	if (result < 0)
		return error_set(error, result, "cannot reserve %llu bytes for %s: %s",
				 (unsigned long long)(NAND_HEADER_BYTES + header.nvram_bytes),
				 creation->nvram.path, strerror(-result));
	result = nand_write_all(creation->nvram.fd, bytes, sizeof(bytes), 0);
	if (result == 0 && fsync(creation->nvram.fd) < 0)
		result = -errno;
	return result < 0 ? failed(error, result, "write", creation->nvram.path) : 0;
}

static int sync_folder(const struct new_file *file, struct error_text *error)
{
	int result = owner_sync_folder(file->folder);

	return result < 0 ? failed(error, result, "store the directory of", file->path) : 0;
}

static int fill_image(struct creation *creation, struct error_text *error)
{
	int result = write_superblocks(creation, NAND_IMAGE_CREATING, error);

	if (result < 0)
		return result;
	if (ftruncate(creation->image.fd, (off_t)creation->layout.image_bytes) < 0)
		return error_set(error, -errno, "cannot make %s %llu bytes long: %s",
				 creation->image.path,
				 (unsigned long long)creation->layout.image_bytes, strerror(errno));
	result = write_table(creation, error);
	if (result == 0 && fsync(creation->image.fd) < 0)
		result = failed(error, -errno, "store", creation->image.path);
	return result;
}

static int complete(struct creation *creation, struct error_text *error)
{
	int result = write_superblocks(creation, NAND_IMAGE_COMPLETE, error);

	if (result == 0 && fsync(creation->image.fd) < 0)
		result = failed(error, -errno, "store", creation->image.path);
	if (result == 0)
		result = sync_folder(&creation->image, error);
	return result == 0 ? sync_folder(&creation->nvram, error) : result;
}

static int create_files(struct creation *creation, struct error_text *error)
{
	int result = open_folder(&creation->image, error);

	if (result == 0)
		result = open_folder(&creation->nvram, error);
	if (result == 0)
		result = create_file(&creation->image, error);
	if (result == 0)
		result = nand_lock_image(creation->image.fd, creation->image.path, error);
	if (result == 0)
		result = create_file(&creation->nvram, error);
	if (result < 0)
		return result;
	nand_space_warn(creation->image.fd, creation->image.path,
			creation->layout.image_bytes + creation->superblock.nvram_bytes);
	result = fill_image(creation, error);
	if (result == 0)
		result = fill_nvram(creation, error);
	return result == 0 ? complete(creation, error) : result;
}

/* With a new UUID, or with `uuid`. */
static int create_image(const char *path, const struct nand_geometry *geometry,
			uint64_t nvram_bytes, const uint8_t *uuid, struct error_text *error)
{
	struct creation creation = {
		.image = { .path = path, .folder = -1, .fd = -1 },
		.nvram = { .folder = -1, .fd = -1 },
		.superblock = { .geometry = *geometry, .nvram_bytes = nvram_bytes },
	};
	uint64_t image_bytes;
	char *nvram_path;
	int result = nand_create_check(geometry, nvram_bytes, &image_bytes, error);

	if (result < 0)
		return result;
	creation.layout = nand_layout_of(geometry);
	if (uuid)
		memcpy(creation.superblock.uuid, uuid, NAND_UUID_BYTES);
	else if (getrandom(creation.superblock.uuid, NAND_UUID_BYTES, 0) != NAND_UUID_BYTES)
		return failed(error, -EIO, "get random bytes for", path);
	result = nand_nvram_path_to_make(path, &nvram_path, error);
	if (result < 0)
		return result;
	creation.nvram.path = nvram_path;
	result = create_files(&creation, error);
	close_file(&creation.nvram, result < 0);
	close_file(&creation.image, result < 0);
	free(nvram_path);
	return result;
}

int nand_create(const char *path, const struct nand_geometry *geometry, uint64_t nvram_bytes,
		struct error_text *error)
{
	return create_image(path, geometry, nvram_bytes, NULL, error);
}

int nand_create_twin(const char *path, const struct nand *of, uint64_t nvram_bytes,
		     struct error_text *error)
{
	struct nand_geometry geometry = of->geometry;

	geometry.grown_from = 0;
	return create_image(path, &geometry, nvram_bytes, of->uuid, error);
}

/* ---- an NVRAM file for an image that has lost its own ---- */

/* Finds a complete copy of the superblock. */
static int read_superblock(struct creation *creation, struct error_text *error)
{
	uint8_t bytes[NAND_HEADER_BYTES];
	uint32_t version;

	for (int copy = 0; copy < NAND_SUPERBLOCK_COPIES; copy++)
		if (pread(creation->image.fd, bytes, sizeof(bytes),
			  (off_t)copy * NAND_SUPERBLOCK_SPACING) == (ssize_t)sizeof(bytes) &&
		    nand_superblock_decode(bytes, &creation->superblock, &version) ==
			    NAND_HEADER_VALID &&
		    creation->superblock.state == NAND_IMAGE_COMPLETE)
			return 0;
	return error_set(error, -EINVAL, "%s is no complete Muninn image: no NVRAM file was made",
			 creation->image.path);
}

/*
 * Makes the file under a name of its own, then renames it to `wanted`, so that it is whole or not
 * there.
 */
static int make_nvram(struct creation *creation, const char *wanted, struct error_text *error)
{
	struct new_file *nvram = &creation->nvram;
	int result = nand_lock_image(creation->image.fd, creation->image.path, error);
	const char *name = strrchr(wanted, '/');
	struct stat status;

	name = name ? name + 1 : wanted;
	if (result == 0)
		result = read_superblock(creation, error);
	if (result == 0)
		result = open_folder(nvram, error);
	if (result < 0)
		return result;
	if (fstatat(nvram->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		return error_set(error, -EEXIST, "%s exists already: nothing was created", wanted);
	assert(nvram->name); /* open_folder has set it */
	unlinkat(nvram->folder, nvram->name, 0);
	result = create_file(nvram, error);
	if (result == 0)
		result = fill_nvram(creation, error);
	if (result == 0 && renameat(nvram->folder, nvram->name, nvram->folder, name) < 0)
		result = failed(error, -errno, "create", wanted);
	return result == 0 ? sync_folder(nvram, error) : result;
}

int nand_create_nvram(const char *path, struct error_text *error)
{
	struct creation creation = {
		.image = { .path = path, .folder = -1, .fd = -1 },
		.nvram = { .folder = -1, .fd = -1 },
	};
	char *wanted, *unfinished;
	int result = nand_nvram_path_to_make(path, &wanted, error);

	if (result < 0)
		return result;
	if (asprintf(&unfinished, "%s.new", wanted) < 0) {
		free(wanted);
		return failed(error, -ENOMEM, "create the NVRAM of", path);
	}
	creation.nvram.path = unfinished;
	creation.image.fd = open(path, O_RDWR | O_CLOEXEC);
	result = creation.image.fd < 0 ? failed(error, -errno, "open", path)
				       : make_nvram(&creation, wanted, error);
	close_file(&creation.nvram, result < 0);
	close_file(&creation.image, false);
	free(unfinished);
	free(wanted);
	return result;
}

/* ---- the name of what is on it ---- */

int nand_set_contents(struct nand *nand, const char *name, struct error_text *error)
{
	struct nand_superblock superblock = {
		.state = NAND_IMAGE_COMPLETE,
		.geometry = nand->geometry,
		.nvram_bytes = nand->nvram_bytes,
		.opening = nand->opening,
	};
	uint8_t bytes[NAND_HEADER_BYTES];
	size_t length = strlen(name);
	int result = 0;

	if (length >= NAND_CONTENTS_BYTES)
		return error_set(error, -EINVAL, "%s: the name '%s' is longer than %d bytes",
				 nand->path, name, NAND_CONTENTS_BYTES - 1);
	if (nand->read_only)
		return error_set(error, -EROFS, "%s is opened for reading only", nand->path);
	memcpy(superblock.uuid, nand->uuid, NAND_UUID_BYTES);
	memcpy(superblock.contents, name, length);
	nand_superblock_encode(&superblock, bytes);
	/* One copy is whole at any time. Opening takes the first one that is. */
	for (int copy = 0; nand->image_fd >= 0 && copy < NAND_SUPERBLOCK_COPIES && !result;
	     copy++) {
		result = nand_write_all(nand->image_fd, bytes, sizeof(bytes),
					(uint64_t)copy * NAND_SUPERBLOCK_SPACING);
		if (result == 0 && fdatasync(nand->image_fd) < 0)
			result = -EIO;
	}
	if (result < 0)
		return failed(error, result, "write the superblock of", nand->path);
	memcpy(nand->contents, superblock.contents, NAND_CONTENTS_BYTES);
	return 0;
}
