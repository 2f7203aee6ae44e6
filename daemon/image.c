/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Makes images. An image is two files, IMAGE and IMAGE.nvram. Both are made and formatted as
 * IMAGE.new, then renamed, NVRAM first. So a file under the name IMAGE is always part of a complete
 * device.
 *
 * Where the NVRAM is to be elsewhere, IMAGE.nvram is a symbolic link to it, which everybody
 * follows. IMAGE.new.nvram is that link first.
 */
#include "daemon/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/folder.h"
#include "engine/options.h"
#include "nand/nand.h"

#define NAME_BYTES (PATH_MAX + 16)

struct image_names {
	char image[NAME_BYTES];
	char nvram[NAME_BYTES];
	char new_image[NAME_BYTES];
	char new_nvram[NAME_BYTES];
	const char *elsewhere; /* where `nvram` is to lead; "": it is the file */
};

static void name_files(const struct lun_config *lun, struct image_names *names)
{
	const char *image = lun->image;

	snprintf(names->image, NAME_BYTES, "%s", image);
	snprintf(names->nvram, NAME_BYTES, "%s.nvram", image);
	snprintf(names->new_image, NAME_BYTES, "%s.new", image);
	snprintf(names->new_nvram, NAME_BYTES, "%s.new.nvram", image);
	names->elsewhere = strcmp(lun->nvram, names->nvram) != 0 ? lun->nvram : "";
}

static bool exists(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0;
}

/* Makes the names of a folder's files stable. */
static int sync_folder(const char *file)
{
	char copy[NAME_BYTES];
	int fd, result = 0;

	snprintf(copy, sizeof(copy), "%s", file);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fsync(fd))
		result = -errno;
	close(fd);
	return result;
}

static int format(const char *path, const struct lun_options *options, struct error_text *error)
{
	struct nand *nand;
	int result = nand_open_with(path, &options->nand, &nand, error), closed;

	if (result)
		return result;
	result = engine_format(nand, &options->engine, error);
	closed = nand_close(nand);
	if (!result && closed)
		result = error_set(error, closed, "%s: %s", path, strerror(-closed));
	return result;
}

/* One that is there belongs to somebody. */
static int check_elsewhere(const struct image_names *names, struct error_text *error)
{
	if (!exists(names->elsewhere))
		return 0;
	return error_set(error, -EEXIST,
			 "nvram = %s is there already, and not that of %s: remove it if nothing on "
			 "it is wanted, or choose another name",
			 names->elsewhere, names->image);
}

/* A link to a file that is to be made. */
static int link_elsewhere(const struct image_names *names, const char *link,
			  struct error_text *error)
{
	int result = check_elsewhere(names, error);

	if (!result && symlink(names->elsewhere, link))
		result = error_set(error, -errno, "%s: %s", link, strerror(errno));
	return result;
}

/* Whether an unfinished creation has left what is where the NVRAM is to be. */
static bool leaves_elsewhere(const struct image_names *names)
{
	char *target;
	bool leaves;

	if (nand_nvram_path_to_make(names->new_image, &target, NULL))
		return false;
	leaves = exists(names->new_nvram) && !strcmp(target, names->elsewhere);
	free(target);
	return leaves;
}

/* What an unfinished creation has left, or what a failed one leaves. */
static void remove_new(const struct image_names *names)
{
	char *target;

	/* Where our own link leads; it is made only when nothing is there. */
	if (!nand_nvram_path_to_make(names->new_image, &target, NULL)) {
		if (exists(names->new_nvram))
			unlink(target);
		free(target);
	}
	unlink(names->new_nvram);
	unlink(names->new_image);
}

/* What a new device is going to be. */
struct image_plan {
	struct nand_geometry geometry;
	uint64_t nvram_bytes, image_bytes;
};

static int make_plan(const struct lun_config *lun, struct image_plan *plan,
		     struct error_text *error)
{
	uint64_t block_bytes = (uint64_t)lun->geometry.page_bytes * lun->geometry.pages_per_block;
	uint64_t blocks = lun->size_bytes / block_bytes;
	int result;

	if (blocks == 0 || blocks > UINT64_C(1) << 28)
		return error_set(error, -EINVAL,
				 "a size of %" PRIu64 " bytes is %" PRIu64
				 " erase blocks of %" PRIu64 " bytes; 1 to 2^28 are possible",
				 lun->size_bytes, blocks, block_bytes);
	plan->geometry = lun->geometry;
	plan->geometry.blocks = (uint32_t)blocks;
	result = engine_nvram_bytes(&plan->geometry, &lun->options.engine, &plan->nvram_bytes,
				    error);
	return result ? result
		      : nand_create_check(&plan->geometry, plan->nvram_bytes, &plan->image_bytes,
					  error);
}

static int make_new(const struct lun_config *lun, const struct image_names *names,
		    struct error_text *error)
{
	struct image_plan plan;
	int result = make_plan(lun, &plan, error);

	if (!result && names->elsewhere[0])
		result = link_elsewhere(names, names->new_nvram, error);
	if (!result)
		result = nand_create(names->new_image, &plan.geometry, plan.nvram_bytes, error);
	if (!result)
		result = format(names->new_image, &lun->options, error);
	return result;
}

static int rename_new(const struct image_names *names, struct error_text *error)
{
	int result = 0;

	if (exists(names->new_nvram) && rename(names->new_nvram, names->nvram))
		result = -errno;
	else if (rename(names->new_image, names->image))
		result = -errno;
	if (!result)
		result = sync_folder(names->image);
	if (result)
		error_set(error, result, "%s: %s", names->image, strerror(-result));
	return result;
}

/* All of an interrupted creation but its last step is there. */
static bool is_nearly_made(const struct image_names *names)
{
	return exists(names->nvram) && exists(names->new_image) && !exists(names->new_nvram);
}

/* Half a device whose other half is elsewhere is no reason to make a new one. */
static int check_no_half(const struct image_names *names, struct error_text *error)
{
	if (!exists(names->nvram) || is_nearly_made(names))
		return 0;
	return error_set(error, -ENOENT,
			 "%s is missing, but its NVRAM file %s is there: put the image back, or "
			 "remove the NVRAM file to have a new, empty device made",
			 names->image, names->nvram);
}

static int create(const struct lun_config *lun, const struct image_names *names,
		  struct error_text *error)
{
	int result = check_no_half(names, error);

	if (result)
		return result;
	if (is_nearly_made(names))
		return rename_new(names, error);
	remove_new(names);
	result = make_new(lun, names, error);
	if (!result)
		result = rename_new(names, error);
	if (result)
		remove_new(names);
	return result;
}

/*
 * Plans the unit's device if nothing of it is there: what half a device wants is no new one. 1:
 * there is something.
 */
static int plan_new(const struct lun_config *lun, struct image_names *names,
		    struct image_plan *plan, struct error_text *error)
{
	name_files(lun, names);
	return exists(names->image) || exists(names->nvram) ? 1 : make_plan(lun, plan, error);
}

int image_plan(const struct lun_config *lun, struct error_text *error)
{
	const struct disk_options *disk = &lun->options.disk;
	struct image_names names = { .elsewhere = "" };
	struct image_plan plan;
	int result = plan_new(lun, &names, &plan, error);

	if (result)
		return result < 0 ? result : 0;
	if (disk->block_bytes > plan.geometry.page_bytes)
		result = error_set(error, -EINVAL,
				   "blocks of %" PRIu32
				   " bytes do not fit into the device's pages, "
				   "which have %" PRIu32,
				   disk->block_bytes, plan.geometry.page_bytes);
	return result;
}

int image_try(const struct lun_config *lun, struct error_text *error)
{
	struct image_names names = { .elsewhere = "" };
	struct image_plan plan;
	int result = plan_new(lun, &names, &plan, error);

	if (result)
		return result < 0 ? result : 0;
	if (names.elsewhere[0] && !leaves_elsewhere(&names))
		result = check_elsewhere(&names, error);
	if (!result && names.elsewhere[0])
		result = folder_try_file(names.elsewhere, plan.nvram_bytes, error);
	return result ? result : folder_try_file(names.image, plan.image_bytes, error);
}

/* Whether `nvram` is where the configuration wants it; `file`: where that is. */
static int check_place(const struct image_names *names, const char *file, struct error_text *error)
{
	struct stat wanted, found;

	if (!names->elsewhere[0] || !strcmp(file, names->elsewhere) || !exists(names->nvram))
		return 0;
	if (stat(file, &found) == 0 && stat(names->elsewhere, &wanted) == 0 &&
	    found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino)
		return 0;
	return error_set(error, -EINVAL,
			 "the NVRAM file of %s is %s, and nvram = %s: while nobody has the device "
			 "open, move it there and make %s a symbolic link to it, or change nvram",
			 names->image, file, names->elsewhere, names->nvram);
}

/* An image whose NVRAM file is lost gets an empty one, but only if the administrator wants that. */
static int make_lost_nvram(const struct lun_config *lun, const struct image_names *names,
			   const char *file, struct error_text *error)
{
	int result = 0;

	if (names->elsewhere[0] && !exists(names->nvram))
		result = link_elsewhere(names, names->nvram, error);
	if (!result)
		result = nand_create_nvram(names->image, error);
	if (!result)
		log_line(LOG_LEVEL_WARNING,
			 "LUN %u: %s was missing: made an empty one, to recover without it",
			 lun->number, file);
	return result;
}

/* Where the NVRAM file of an image that is there is, or, `lost`, should be. To be freed. */
static int find_nvram(const struct lun_config *lun, const struct image_names *names, char **file,
		      bool *lost, struct error_text *error)
{
	struct stat image;
	int result;

	*file = NULL;
	*lost = false;
	/* As who opens it says it; of such a thing no NVRAM file is missing. */
	if (stat(names->image, &image) == 0 && !S_ISREG(image.st_mode))
		return error_set(error, -EINVAL,
				 "%s is not a regular file, so it cannot be a Muninn image",
				 names->image);
	*file = nand_nvram_path(names->image);
	result = *file ? check_place(names, *file, error)
		       : error_set(error, -ENOMEM, "out of memory");
	*lost = !result && !exists(*file);
	if (*lost && !lun->options.engine.records.recover_without_nvram)
		result = error_set(error, -ENOENT,
				   "%s is missing, without which %s does not open: put it back in "
				   "its place; if it is lost, recover_without_nvram = yes saves "
				   "what is on flash",
				   *file, names->image);
	if (!result && *lost && names->elsewhere[0] && !exists(names->nvram))
		result = check_elsewhere(names, error);
	return result;
}

static int check_nvram(const struct lun_config *lun, const struct image_names *names,
		       struct error_text *error)
{
	char *file;
	bool lost;
	int result = find_nvram(lun, names, &file, &lost, error);

	if (!result && lost)
		result = make_lost_nvram(lun, names, file, error);
	free(file);
	return result;
}

/* Opens the image for muninnd itself: tgtd serves it. */
static int open_image(const struct lun_config *lun, struct nand **nand, struct error_text *error)
{
	struct nand_options options = lun->options.nand;

	options.only_looks = true;
	return nand_open_with(lun->image, &options, nand, error);
}

static uint64_t data_bytes(const struct nand *nand)
{
	const struct nand_geometry *geometry = nand_geometry(nand);

	return (uint64_t)geometry->page_bytes * geometry->pages_per_block * geometry->blocks;
}

/* Whether the configuration wants the device to have more erase blocks than it has. */
static bool wants_larger(const struct lun_config *lun, const struct nand *nand)
{
	uint64_t bytes = data_bytes(nand), block_bytes = bytes / nand_geometry(nand)->blocks;

	return lun->size_is_set && lun->size_bytes >= bytes + block_bytes;
}

/* Growth needs the header in NVRAM. Where that is lost, opening makes it again first. */
static bool is_recovered_first(const struct lun_config *lun, struct nand *nand)
{
	return lun->options.engine.records.recover_without_nvram && !engine_stored_index(nand);
}

static bool is_to_grow(const struct lun_config *lun, struct nand *nand)
{
	return wants_larger(lun, nand) && !is_recovered_first(lun, nand);
}

/* The handle can only be closed after that. */
static int grow(const struct lun_config *lun, struct nand *nand, struct error_text *error)
{
	uint64_t bytes = data_bytes(nand);
	int result = engine_grow(nand, lun->size_bytes, error);

	if (!result)
		log_line(LOG_LEVEL_INFO,
			 "LUN %u: %s has grown from %" PRIu64 " MiB to %" PRIu64 " MiB",
			 lun->number, lun->image, bytes >> 20, lun->size_bytes >> 20);
	return result;
}

/*
 * Opens the image and closes it, so that muninnd says what is wrong before tgtd starts. Lets it
 * grow to a larger size.
 */
static int look_at(const struct lun_config *lun, struct error_text *error)
{
	struct nand *nand;
	int result = open_image(lun, &nand, error);
	const char *engine;

	if (result)
		return result;
	result = engine_stored_kind(nand, &lun->options.engine, &engine, error);
	if (!result && is_to_grow(lun, nand))
		result = grow(lun, nand, error);
	else if (!result && wants_larger(lun, nand))
		log_line(LOG_LEVEL_WARNING,
			 "LUN %u: %s has %" PRIu64 " MiB and is recovered without its NVRAM first; "
			 "the next start lets it grow to its configured size of %" PRIu64 " MiB",
			 lun->number, lun->image, data_bytes(nand) >> 20, lun->size_bytes >> 20);
	else if (!result && lun->size_is_set && data_bytes(nand) > lun->size_bytes)
		log_line(LOG_LEVEL_WARNING,
			 "LUN %u: %s has %" PRIu64 " MiB and stays so: a device does not shrink to "
			 "its configured size of %" PRIu64 " MiB",
			 lun->number, lun->image, data_bytes(nand) >> 20, lun->size_bytes >> 20);
	nand_abandon(nand);
	return result;
}

int image_plan_growth(const struct lun_config *lun, uint64_t bytes, struct image_growth *growth,
		      struct error_text *error)
{
	const struct nand_options read_only = { .read_only = true, .only_looks = true };
	struct nand *nand;
	int result = nand_open_with(lun->image, &read_only, &nand, error);
	uint64_t block_bytes;

	if (result)
		return result;
	growth->before = data_bytes(nand);
	block_bytes = growth->before / nand_geometry(nand)->blocks;
	growth->after = bytes / block_bytes * block_bytes;
	result = engine_grow_check(nand, bytes, error);
	nand_abandon(nand);
	return result;
}

int image_make_stable(const struct lun_config *lun, struct error_text *error)
{
	struct engine_options options = lun->options.engine;
	struct engine *engine;
	struct nand *nand;
	int result = open_image(lun, &nand, error), closed;

	if (result)
		return result;
	/* That is for the start that the administrator wants it for. */
	options.records.recover_without_nvram = false;
	result = engine_open(nand, &options, &engine, error);
	if (result) {
		nand_abandon(nand);
		return result;
	}
	result = engine_close(engine);
	closed = nand_close(nand);
	result = result ? result : closed;
	return result ? error_set(error, result, "%s: %s", lun->image, strerror(-result)) : 0;
}

int image_prepare(const struct lun_config *lun, bool *created, struct error_text *error)
{
	struct image_names names = { .elsewhere = "" };

	*created = false;
	name_files(lun, &names);
	if (exists(names.image)) {
		int result = check_nvram(lun, &names, error);

		return result ? result : look_at(lun, error);
	}
	*created = true;
	return create(lun, &names, error);
}

/* `opens`: there is a device that its files are enough for. */
static int find_device(const struct lun_config *lun, bool *opens, bool *lost,
		       struct error_text *error)
{
	struct image_names names = { .elsewhere = "" };
	char *file;
	int result;

	*opens = *lost = false;
	name_files(lun, &names);
	if (!exists(names.image))
		return check_no_half(&names, error);
	result = find_nvram(lun, &names, &file, lost, error);
	free(file);
	*opens = !result && !*lost;
	return result;
}

int image_check_names(const struct lun_config *lun, struct error_text *error)
{
	bool opens, lost;

	return find_device(lun, &opens, &lost, error);
}

int image_engine(const struct lun_config *lun, struct image_engine *engine,
		 struct error_text *error)
{
	const struct nand_options read_only = { .read_only = true, .only_looks = true };
	const char *configured = lun->options.engine.store;
	struct nand *nand;
	bool opens, lost;
	int result;

	engine->name = configured ? configured : engine_store_name(0);
	engine->index = index_kind_name(lun->options.engine.muninn.index);
	result = find_device(lun, &opens, &lost, error);
	if (lost)
		engine->index = NULL;
	if (!opens)
		return result;
	result = nand_open_with(lun->image, &read_only, &nand, error);
	if (result)
		return result;
	result = engine_stored_kind(nand, &lun->options.engine, &engine->name, error);
	engine->index = engine_stored_index(nand);
	if (!result && is_to_grow(lun, nand))
		result = engine_grow_check(nand, lun->size_bytes, error);
	nand_abandon(nand);
	return result;
}
