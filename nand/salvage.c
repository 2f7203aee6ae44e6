/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * A private copy of an image, however damaged. Both files are mapped privately, so the copy takes
 * memory only for what is changed in it.
 */
#include "nand/salvage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "nand/grow.h"
#include "nand/opening.h"
#include "nand/page.h"
#include "nand/private.h"

/* The two files, while they are opened. */
struct files {
	int image_fd, nvram_fd; /* nvram_fd -1: the NVRAM begins as zeros */
	uint64_t image_bytes, nvram_bytes;
	char *nvram_path;
	struct nand_nvram_header nvram_header;
	bool nvram_header_valid;
};

/*
 * Maps `bytes` of `fd` from `offset` as a private copy. What is behind the file's end is zeros, so
 * that no look at it ends the process.
 */
static int map_copy(struct nand_mapping *mapping, int fd, uint64_t offset, uint64_t bytes,
		    uint64_t file_bytes, const char *what, struct error_text *error)
{
	uint64_t there = file_bytes > offset ? min_u64(file_bytes - offset, bytes) : 0;
	int result = nand_map(mapping, NAND_MAP_PRIVATE, -1, 0, bytes, what, error);
	void *at;

	if (result || fd < 0 || !there)
		return result;
	at = mmap(mapping->at, there, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, (off_t)offset);
	if (at == MAP_FAILED)
		return error_set(error, -errno, "cannot map %llu bytes of %s: %s",
				 (unsigned long long)there, what, strerror(errno));
	return 0;
}

/* ---- the superblock ---- */

static int read_superblock(const struct nand *nand, int fd, int copy,
			   struct nand_superblock *superblock, enum nand_header_verdict *verdict,
			   struct error_text *error)
{
	uint8_t bytes[NAND_HEADER_BYTES];
	uint32_t version = 0;
	int result = nand_read_header(fd, (uint64_t)copy * NAND_SUPERBLOCK_SPACING, bytes,
				      nand->path, error);

	if (result)
		return result;
	*verdict = nand_superblock_decode(bytes, superblock, &version);
	if (*verdict == NAND_HEADER_OTHER_VERSION)
		return error_set(error, -EINVAL,
				 "%s has image format version %u, this program knows versions %u "
				 "and %u only: use the Muninn release that wrote it",
				 nand->path, version, NAND_FORMAT_VERSION, NAND_FORMAT_GROWN);
	if (*verdict == NAND_HEADER_VALID && superblock->state == NAND_IMAGE_CREATING)
		*verdict = NAND_HEADER_CORRUPT;
	return 0;
}

/*
 * What is not in any copy of the superblock. The UUID and the last opening are those of the NVRAM's
 * file.
 */
static int take_lost(struct nand *nand, const struct files *files, const struct nand_geometry *lost,
		     struct findings *findings, struct error_text *error)
{
	struct nand_superblock superblock = { .nvram_bytes =
						      files->nvram_bytes - NAND_NVRAM_FILE_AT };

	if (lost)
		superblock.geometry = *lost;
	superblock.geometry.grown_from = files->nvram_header.grown_from;
	superblock.opening = files->nvram_header.opening;
	if (!lost || !files->nvram_header_valid || nand_geometry_check(&superblock.geometry, error))
		return error_set(
			error, -EUCLEAN,
			"both copies of the superblock of %s (at bytes 0 and %d) are "
			"damaged%s",
			nand->path, NAND_SUPERBLOCK_SPACING,
			files->nvram_header_valid ? "" : ", and its NVRAM file tells no geometry");
	findings_add(findings, FINDING_SUPERBLOCK,
		     "both copies of the superblock (at bytes 0 and %d) are damaged",
		     NAND_SUPERBLOCK_SPACING);
	memcpy(superblock.uuid, files->nvram_header.uuid, NAND_UUID_BYTES);
	nand_take_superblock(nand, &superblock);
	return 0;
}

static int take_superblock(struct nand *nand, const struct files *files,
			   const struct nand_geometry *lost, struct findings *findings,
			   struct error_text *error)
{
	struct nand_superblock copies[NAND_SUPERBLOCK_COPIES];
	enum nand_header_verdict verdicts[NAND_SUPERBLOCK_COPIES];
	int good = -1;
	bool foreign = true;

	for (int copy = 0; copy < NAND_SUPERBLOCK_COPIES; copy++) {
		int result = read_superblock(nand, files->image_fd, copy, &copies[copy],
					     &verdicts[copy], error);

		if (result)
			return result;
		/* The larger one of the same image, as opening does. */
		if (verdicts[copy] == NAND_HEADER_VALID &&
		    (good < 0 || (copies[copy].geometry.blocks > copies[good].geometry.blocks &&
				  !memcmp(copies[copy].uuid, copies[good].uuid, NAND_UUID_BYTES))))
			good = copy;
		foreign &= verdicts[copy] == NAND_HEADER_FOREIGN;
	}
	if (foreign && !lost && !files->nvram_header_valid)
		return error_set(error, -EINVAL,
				 "%s is not a Muninn image: it holds something else", nand->path);
	if (good < 0)
		return take_lost(nand, files, lost, findings, error);
	for (int copy = 0; copy < NAND_SUPERBLOCK_COPIES; copy++)
		if (verdicts[copy] != NAND_HEADER_VALID)
			findings_add(findings, FINDING_SUPERBLOCK,
				     "the superblock at byte %d is damaged",
				     copy * NAND_SUPERBLOCK_SPACING);
	if (verdicts[1] == NAND_HEADER_VALID &&
	    memcmp(copies[1].uuid, copies[good].uuid, NAND_UUID_BYTES) != 0)
		findings_add(findings, FINDING_SUPERBLOCK,
			     "the two copies of the superblock are of different images");
	nand_take_superblock(nand, &copies[good]);
	return 0;
}

/* ---- the NVRAM's file ---- */

/* Takes over `path`, which is on the heap or NULL. */
static int open_nvram(char *path, struct files *files, struct error_text *error)
{
	uint8_t bytes[NAND_HEADER_BYTES];
	uint32_t version;
	int result;

	files->nvram_path = path;
	if (!files->nvram_path)
		return error_set(error, -ENOMEM, "out of memory");
	result = nand_open_regular(files->nvram_path, true, &files->nvram_fd, &files->nvram_bytes,
				   NULL);
	if (!result)
		result = nand_read_header(files->nvram_fd, 0, bytes, files->nvram_path, NULL);
	if (!result)
		files->nvram_header_valid =
			nand_nvram_header_decode(bytes, &files->nvram_header, &version) ==
				NAND_HEADER_VALID &&
			files->nvram_bytes == NAND_NVRAM_FILE_AT + files->nvram_header.nvram_bytes;
	if (result && files->nvram_fd >= 0) {
		close(files->nvram_fd);
		files->nvram_fd = -1;
	}
	return 0;
}

static void close_nvram(struct files *files)
{
	if (files->nvram_fd >= 0)
		close(files->nvram_fd);
	free(files->nvram_path);
}

/* Whether the file is the image's, and of the size that it has now. */
static bool fits_size(const struct nand *nand, const struct files *files)
{
	struct nand_nvram_header wanted = { 0 };

	nand_nvram_note_growth(&wanted, &nand->geometry);
	return files->nvram_fd >= 0 && files->nvram_header_valid &&
	       memcmp(files->nvram_header.uuid, nand->uuid, NAND_UUID_BYTES) == 0 &&
	       files->nvram_header.blocks == wanted.blocks &&
	       files->nvram_header.grown_from == wanted.grown_from;
}

/* After a growth whose last step did not happen, the file that opening would give its name. */
static int take_unnamed_nvram(const struct nand *nand, struct files *files,
			      struct error_text *error)
{
	struct files grown = { .image_fd = -1, .nvram_fd = -1 };
	int result;

	if (!nand->geometry.grown_from || fits_size(nand, files))
		return 0;
	result = open_nvram(nand_grown_nvram_path(files->nvram_path), &grown, error);
	if (!result && fits_size(nand, &grown)) {
		close_nvram(files);
		files->nvram_fd = grown.nvram_fd;
		files->nvram_bytes = grown.nvram_bytes;
		files->nvram_path = grown.nvram_path;
		files->nvram_header = grown.nvram_header;
		files->nvram_header_valid = true;
	} else {
		close_nvram(&grown);
	}
	return result;
}

/* Says what is wrong with it. Another image's is not taken. */
static void judge_nvram(const struct nand *nand, struct files *files, struct findings *findings)
{
	uint64_t expected = NAND_NVRAM_FILE_AT + nand->nvram_bytes;
	struct error_text reason = { "" };

	if (files->nvram_fd < 0) {
		findings_add(findings, FINDING_NVRAM_FILE, "%s is missing, or can't be read",
			     files->nvram_path);
	} else if (files->nvram_bytes != expected) {
		findings_add(findings, FINDING_NVRAM_FILE, "%s has %llu bytes and must have %llu",
			     files->nvram_path, (unsigned long long)files->nvram_bytes,
			     (unsigned long long)expected);
	} else if (!files->nvram_header_valid) {
		findings_add(findings, FINDING_NVRAM_FILE,
			     "the header of %s (its first %d bytes) is damaged", files->nvram_path,
			     NAND_HEADER_BYTES);
	} else if (memcmp(files->nvram_header.uuid, nand->uuid, NAND_UUID_BYTES) != 0) {
		findings_add(findings, FINDING_NVRAM_FILE, "%s belongs to another image",
			     files->nvram_path);
		close(files->nvram_fd);
		files->nvram_fd = -1;
	} else if (nand_opening_check(nand->path, &nand->opening, files->nvram_path,
				      &files->nvram_header.opening, &reason)) {
		findings_add(findings, FINDING_NVRAM_FILE, "%s", reason.text);
	}
}

/* ---- the handle ---- */

static int map_files(struct nand *nand, const struct files *files, struct error_text *error)
{
	const struct nand_layout *layout = &nand->layout;
	int result = map_copy(&nand->table, files->image_fd, layout->table_offset,
			      layout->table_bytes, files->image_bytes, nand->path, error);

	if (!result)
		result = map_copy(&nand->pages, files->image_fd, layout->data_offset,
				  layout->image_bytes - layout->data_offset, files->image_bytes,
				  nand->path, error);
	if (!result)
		result = map_copy(&nand->nvram, files->nvram_fd, 0,
				  NAND_NVRAM_FILE_AT + nand->nvram_bytes, files->nvram_bytes,
				  files->nvram_path, error);
	return result ? result : nand_mmap_open(nand, error);
}

static int open_copy(struct nand *nand, struct files *files, const struct nand_geometry *lost,
		     struct findings *findings, struct error_text *error)
{
	int result =
		nand_open_regular(nand->path, true, &files->image_fd, &files->image_bytes, error);

	if (result == -ENOENT)
		return error_set(error, result, "there is no image %s", nand->path);
	/* Its lock goes with the handle. */
	nand->copied_fd = files->image_fd;
	if (!result)
		result = nand_lock_image_shared(files->image_fd, nand->path, error);
	if (!result)
		result = open_nvram(nand_nvram_path(nand->path), files, error);
	if (!result)
		result = take_superblock(nand, files, lost, findings, error);
	if (!result)
		result = take_unnamed_nvram(nand, files, error);
	if (result)
		return result;
	if (files->image_bytes < nand->layout.image_bytes)
		findings_add(findings, FINDING_IMAGE_SHORT,
			     "%s is truncated: it has %llu bytes and needs %llu", nand->path,
			     (unsigned long long)files->image_bytes,
			     (unsigned long long)nand->layout.image_bytes);
	judge_nvram(nand, files, findings);
	return map_files(nand, files, error);
}

int nand_open_copy(const char *path, const struct nand_geometry *lost, struct findings *findings,
		   struct nand **nand, struct error_text *error)
{
	struct files files = { .image_fd = -1, .nvram_fd = -1 };
	struct nand *handle = nand_new_handle(path);
	int result;

	*nand = NULL;
	if (!handle)
		return error_set(error, -ENOMEM, "cannot open %s: %s", path, strerror(ENOMEM));
	/* It is damaged: what it breaks of the rules is no bug of the caller. */
	handle->violation_policy = NAND_VIOLATION_FAILS;
	result = open_copy(handle, &files, lost, findings, error);
	close_nvram(&files);
	if (result) {
		nand_free(handle);
		return result;
	}
	*nand = handle;
	return 0;
}

/* ---- blocks ---- */

/*
 * The word of a block, by its pages: as many as have a whole spare area of one life of the block.
 * False: not even the first one has.
 */
static bool word_by_pages(struct nand *nand, uint32_t block, struct nand_block_word *word)
{
	const struct nand_geometry *geometry = &nand->geometry;
	uint64_t page = (uint64_t)block * geometry->pages_per_block;
	uint8_t spare[NAND_SPARE_BYTES_MAX];
	struct nand_page_check check;

	*word = (struct nand_block_word){ 0 };
	for (; word->next_page < geometry->pages_per_block; word->next_page++, page++) {
		if (nand->backend->read(nand, page, NULL, spare) ||
		    !nand_spare_open(spare, geometry->spare_bytes, page, &check) ||
		    (word->next_page && check.erase_count != word->erase_count))
			break;
		word->erase_count = check.erase_count;
	}
	return word->next_page > 0;
}

void nand_mend_blocks(struct nand *nand, struct findings *findings)
{
	for (uint32_t block = 0; block < nand->geometry.blocks; block++) {
		struct nand_block_word word;
		bool mended;

		if (nand_word_load(nand, block, &word))
			continue;
		nand->blocks_damaged++;
		mended = word_by_pages(nand, block, &word);
		if (mended)
			put_le64(nand->table.at + (uint64_t)block * 8,
				 nand_block_word_encode(&word));
		findings_add(findings, FINDING_BLOCK_STATE,
			     "the state of block %u (at byte %llu of the image) is damaged%s",
			     block,
			     (unsigned long long)nand->layout.table_offset +
				     (unsigned long long)block * 8,
			     mended ? ", and follows from its pages" : "");
	}
}

uint32_t nand_blocks_were_damaged(const struct nand *nand)
{
	return nand->blocks_damaged;
}
