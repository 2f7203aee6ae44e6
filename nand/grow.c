/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes images larger. A new NVRAM file beside the old one is the first thing and has its own name
 * to the end: so it shows a growth that was cut short. Then comes what lies behind the image's end,
 * which nobody looks at. The first superblock decides: before it is written the image has its old
 * size, afterwards the new one, and opening does what is left.
 */
#include "nand/grow.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"
#include "common/owner.h"
#include "nand/space.h"

/* The two names of an NVRAM file in its folder. */
struct names {
	char *path, *grown_path;
	const char *name, *grown;
	int folder;
};

char *nand_grown_nvram_path(const char *nvram_path)
{
	char *path;

	return asprintf(&path, "%s.grown", nvram_path) < 0 ? NULL : path;
}

static int failed(struct error_text *error, int result, const char *doing, const char *path)
{
	return error_set(error, result, "cannot %s %s: %s", doing, path, strerror(-result));
}

/* ---- sizes ---- */

int nand_grow_check(const struct nand_geometry *geometry, uint64_t blocks,
		    struct nand_geometry *grown, struct error_text *error)
{
	uint32_t first = geometry->grown_from ? geometry->grown_from : geometry->blocks;
	uint64_t block_bytes = (uint64_t)geometry->page_bytes * geometry->pages_per_block;
	uint64_t most = nand_growth_limit(first);

	if (blocks <= geometry->blocks)
		return error_set(error, -EINVAL,
				 "the device has %" PRIu64 " MiB: it can only become larger",
				 geometry->blocks * block_bytes >> 20);
	if (blocks > most)
		return error_set(error, -EINVAL,
				 "the device was created with %" PRIu64
				 " MiB and can grow to at most %" PRIu64
				 " MiB; a larger one has to be made beside it",
				 first * block_bytes >> 20, most * block_bytes >> 20);
	*grown = *geometry;
	grown->blocks = (uint32_t)blocks;
	grown->grown_from = first;
	return nand_geometry_check(grown, error);
}

/* ---- the NVRAM file ---- */

static int open_names(const char *image, struct names *names, struct error_text *error)
{
	int result = nand_nvram_path_to_make(image, &names->path, error);

	if (result < 0)
		return result;
	names->grown_path = nand_grown_nvram_path(names->path);
	if (!names->grown_path)
		return failed(error, -ENOMEM, "grow", image);
	names->folder = owner_open_folder(names->path, &names->name);
	if (names->folder < 0)
		return failed(error, names->folder, "open the folder of", names->path);
	names->grown = strrchr(names->grown_path, '/');
	names->grown = names->grown ? names->grown + 1 : names->grown_path;
	return 0;
}

/* The new file would take the place of the link, and not of what it leads to. */
static int check_no_link(const struct names *names, struct error_text *error)
{
	struct stat status;

	if (fstatat(names->folder, names->name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISLNK(status.st_mode))
		return 0;
	return error_set(
		error, -EINVAL,
		"%s is a link that a link leads to: nothing has changed; let one link lead "
		"to the NVRAM file itself",
		names->path);
}

static void close_names(struct names *names)
{
	if (names->folder >= 0)
		close(names->folder);
	free(names->path);
	free(names->grown_path);
}

/* As all that is mapped later, in small pieces (space.h). */
static int write_piece(int fd, const struct nand_nvram_piece *piece)
{
	const uint8_t *from = piece->from;
	int result = 0;

	for (uint64_t at = 0; at < piece->bytes && result == 0; at += NAND_STORED_PIECE)
		result = nand_write_all(fd, from + at,
					min_u64(piece->bytes - at, NAND_STORED_PIECE),
					NAND_HEADER_BYTES + piece->to + at);
	return result;
}

static int write_pieces(int fd, const struct nand_growth *growth)
{
	uint64_t at = 0;
	int result = 0;

	for (size_t i = 0; i < growth->piece_count && result == 0; i++) {
		const struct nand_nvram_piece *piece = &growth->pieces[i];

		assert(piece->to >= at && piece->to + piece->bytes <= growth->nvram_bytes);
		result = nand_write_zeroes(fd, NAND_HEADER_BYTES + at, piece->to - at);
		if (result == 0)
			result = write_piece(fd, piece);
		at = piece->to + piece->bytes;
	}
	return result ? result
		      : nand_write_zeroes(fd, NAND_HEADER_BYTES + at, growth->nvram_bytes - at);
}

/* The user and the mode of the file whose place it takes. */
static int take_owner(const struct nand *nand, int fd)
{
	struct stat status;

	if (fstat(nand->nvram_fd, &status) < 0 || fchmod(fd, status.st_mode & 07777) < 0)
		return -errno;
	if (geteuid() == 0 && fchown(fd, status.st_uid, status.st_gid) < 0)
		return -errno;
	return 0;
}

static int fill_nvram(const struct nand *nand, const struct nand_growth *growth,
		      const struct nand_geometry *geometry, int fd)
{
	struct nand_nvram_header header;
	uint8_t bytes[NAND_HEADER_BYTES];
	uint32_t version;
	int result = take_owner(nand, fd);

	if (result < 0)
		return result;
	/* It was found valid. Only what follows from the size changes. */
	if (nand_nvram_header_decode(nand->nvram.at, &header, &version) != NAND_HEADER_VALID)
		return -EIO;
	header.nvram_bytes = growth->nvram_bytes;
	nand_nvram_note_growth(&header, geometry);
	nand_nvram_header_encode(&header, bytes);
	result = nand_write_all(fd, bytes, sizeof(bytes), 0);
	if (result == 0)
		result = write_pieces(fd, growth);
	return result == 0 && fsync(fd) < 0 ? -errno : result;
}

static int make_nvram(const struct nand *nand, const struct nand_growth *growth,
		      const struct nand_geometry *geometry, const struct names *names)
{
	int fd = owner_make_file(names->folder, names->grown, O_RDWR, 0600), result;

	if (fd < 0)
		return fd;
	result = fill_nvram(nand, growth, geometry, fd);
	close(fd);
	if (result == 0)
		result = owner_sync_folder(names->folder);
	return result;
}

/* ---- the image ---- */

/* What the table of the grown image says: of the blocks that there are what it says now. */
static int write_table(const struct nand *nand, const struct nand_layout *layout)
{
	uint64_t old_bytes = nand->geometry.blocks * sizeof(uint64_t), at = 0;
	uint8_t piece[NAND_STORED_PIECE];
	int result = 0;

	while (at < layout->table_bytes && result == 0) {
		uint64_t kept = old_bytes > at ? min_u64(old_bytes - at, sizeof(piece)) : 0;

		nand_table_initialise(piece, sizeof(piece) / sizeof(uint64_t));
		memcpy(piece, nand->table.at + at, kept);
		result = nand_write_all(nand->image_fd, piece, sizeof(piece),
					layout->table_offset + at);
		at += sizeof(piece);
	}
	return result;
}

/* Everything of the grown image but the superblocks. */
static int extend_image(struct nand *nand, const struct nand_layout *layout)
{
	int result = nand_space_cut(nand);

	if (result == 0 && ftruncate(nand->image_fd, (off_t)layout->image_bytes) < 0)
		result = -errno;
	if (result == 0)
		result = write_table(nand, layout);
	return result == 0 && fsync(nand->image_fd) < 0 ? -errno : result;
}

static int write_superblock(const struct nand *nand, const uint8_t *bytes, int copy)
{
	int result = nand_write_all(nand->image_fd, bytes, NAND_HEADER_BYTES,
				    (uint64_t)copy * NAND_SUPERBLOCK_SPACING);

	return result == 0 && fdatasync(nand->image_fd) < 0 ? -errno : result;
}

static void encode_superblock(const struct nand *nand, const struct nand_growth *growth,
			      const struct nand_geometry *geometry, uint8_t *bytes)
{
	struct nand_superblock superblock = {
		.state = NAND_IMAGE_COMPLETE,
		.geometry = *geometry,
		.nvram_bytes = growth->nvram_bytes,
		.opening = nand->opening,
	};

	memcpy(superblock.uuid, nand->uuid, NAND_UUID_BYTES);
	memcpy(superblock.contents, nand->contents, NAND_CONTENTS_BYTES);
	nand_superblock_encode(&superblock, bytes);
}

/* ---- all of it ---- */

static int name_nvram(const struct names *names)
{
	if (renameat(names->folder, names->grown, names->folder, names->name) < 0)
		return -errno;
	return owner_sync_folder(names->folder);
}

/* From here on nothing is taken back: the host may have stored what it says it has not. */
static int decide(const struct nand *nand, const uint8_t *superblock, const struct names *names,
		  struct error_text *error)
{
	int result = 0;

	for (int copy = 0; copy < NAND_SUPERBLOCK_COPIES && result == 0; copy++)
		result = write_superblock(nand, superblock, copy);
	if (result == 0)
		result = name_nvram(names);
	return result < 0 ? error_set(error, result,
				      "%s: its last steps failed: %s; the next opening finds out "
				      "whether it has grown",
				      nand->path, strerror(-result))
			  : 0;
}

static void take_back(struct nand *nand, const struct names *names)
{
	(void)nand_space_cut(nand);
	(void)unlinkat(names->folder, names->grown, 0);
}

static int grow(struct nand *nand, const struct nand_growth *growth,
		const struct nand_geometry *geometry, const struct names *names,
		struct error_text *error)
{
	struct nand_layout layout = nand_layout_of(geometry);
	uint8_t superblock[NAND_HEADER_BYTES];
	int result = make_nvram(nand, growth, geometry, names);

	if (result < 0) {
		take_back(nand, names);
		return failed(error, result, "make", names->grown_path);
	}
	nand_space_warn(nand->image_fd, nand->path, layout.image_bytes - nand->layout.image_bytes);
	result = extend_image(nand, &layout);
	if (result < 0) {
		take_back(nand, names);
		return failed(error, result, "make larger", nand->path);
	}
	encode_superblock(nand, growth, geometry, superblock);
	return decide(nand, superblock, names, error);
}

int nand_grow(struct nand *nand, const struct nand_growth *growth, struct error_text *error)
{
	struct names names = { .folder = -1 };
	struct nand_geometry geometry;
	uint64_t image_bytes;
	int result;

	if (nand->read_only || nand->image_fd < 0)
		return error_set(error, -EROFS, "%s is no image that is open for writing",
				 nand->path);
	result = nand_grow_check(&nand->geometry, growth->blocks, &geometry, error);
	if (result == 0)
		result = nand_create_check(&geometry, growth->nvram_bytes, &image_bytes, error);
	if (result == 0)
		result = open_names(nand->path, &names, error);
	if (result == 0)
		result = check_no_link(&names, error);
	if (result == 0)
		result = grow(nand, growth, &geometry, &names, error);
	close_names(&names);
	return result;
}

int nand_grow_settle(struct nand *nand, const char *nvram_path, bool is_unnamed,
		     struct error_text *error)
{
	char *grown = nand_grown_nvram_path(nvram_path);
	struct names names = { .folder = -1 };
	int result = grown ? 0 : failed(error, -ENOMEM, "open", nand->path);

	if (result == 0 && access(grown, F_OK) == 0)
		result = open_names(nand->path, &names, error);
	free(grown);
	if (names.folder >= 0 && is_unnamed) {
		result = name_nvram(&names);
		if (result < 0)
			failed(error, result, "name", names.grown_path);
		else
			log_line(LOG_LEVEL_INFO, "%s: has grown; the last step was left to do",
				 nand->path);
	} else if (names.folder >= 0) {
		take_back(nand, &names);
		log_line(LOG_LEVEL_WARNING,
			 "%s: a growth was cut short; it has the size that it had before",
			 nand->path);
	}
	close_names(&names);
	/* What is left of one that does not count does no harm. */
	return is_unnamed ? result : 0;
}
