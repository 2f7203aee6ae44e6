/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The examination: a private copy of the image is opened as the service would open it, so nothing
 * that opening does reaches the files. Then everything on it is read and compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/fsck/fsck.h"
#include "common/owner.h"
#include "engine/salvage.h"
#include "nand/salvage.h"

/* The copy has this name until it is complete. */
#define UNFINISHED ".unfinished"

/* What is half made: see fsck_clean_up. */
static char unfinished[4096], unfinished_nvram[4096 + 8];

/* What its NVRAM file is then renamed to. */
static char complete_nvram[4096];

void fsck_clean_up(void)
{
	if (!unfinished[0])
		return;
	unlink(unfinished);
	unlink(unfinished_nvram);
}

/* ---- the image ---- */

/* The geometry that the engine noted in NVRAM, if both superblocks are damaged. */
static bool find_geometry(const char *image, struct nand_geometry *geometry)
{
	char *path = nand_nvram_path(image);
	uint8_t header[ENGINE_HEADER_BYTES];
	bool found = false;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		found = pread(fd, header, sizeof(header), NAND_NVRAM_FILE_AT) == sizeof(header) &&
			engine_header_geometry(header, geometry);
		close(fd);
	}
	free(path);
	return found;
}

static int open_image(struct fsck_report *report, struct nand **nand, struct error_text *error)
{
	const char *image = report->options->image;
	struct nand_geometry geometry;
	int result = nand_open_copy(image, NULL, &report->findings, nand, error);

	if (result != -EUCLEAN || !find_geometry(image, &geometry))
		return result;
	result = nand_open_copy(image, &geometry, &report->findings, nand, error);
	return result ? result : nand_set_contents(*nand, engine_store_name(0), error);
}

/*
 * Opens it as the service does. If that is refused, with what the flash and the rest of the NVRAM
 * hold.
 */
static int open_engine(struct fsck_report *report, struct nand *nand, struct engine **engine,
		       struct error_text *error)
{
	/* Nothing happens on the copy by itself. */
	const struct engine_options options = { .records.salvage = &report->findings,
						.merge_manual = true };

	return engine_open(nand, &options, engine, error);
}

/* ---- the copy ---- */

static bool name_copy(const char *to)
{
	int length = snprintf(unfinished, sizeof(unfinished), "%s" UNFINISHED, to);

	snprintf(unfinished_nvram, sizeof(unfinished_nvram), "%s.nvram", unfinished);
	snprintf(complete_nvram, sizeof(complete_nvram), "%s.nvram", to);
	return length > 0 && (size_t)length < sizeof(unfinished);
}

/*
 * Nothing is replaced. A link is refused like a file, and never followed: whoever the folder
 * belongs to may have made it.
 */
static int rename_in(int folder, const char *from, const char *to)
{
	return renameat2(folder, from, folder, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* The copy's own names begin with `to`, so all four are in its folder. */
static int rename_both(const char *to)
{
	const char *name;
	int folder = owner_open_folder(to, &name);
	ptrdiff_t at = name - to;
	int result;

	if (folder < 0)
		return folder;
	result = rename_in(folder, unfinished_nvram + at, complete_nvram + at);
	if (!result) {
		result = rename_in(folder, unfinished + at, name);
		if (result)
			unlinkat(folder, complete_nvram + at, 0);
	}
	close(folder);
	return result;
}

/* Gives the complete copy its name. */
static int rename_copy(const char *to, struct error_text *error)
{
	int result = rename_both(to);

	if (!result)
		unfinished[0] = '\0';
	return result ? error_set(error, result, "%s can't be given its name: %s", to,
				  strerror(-result))
		      : 0;
}

static int create_copy(const struct nand *from, const struct engine *engine, struct nand **to,
		       struct engine **copy, struct error_text *error)
{
	struct nand_geometry geometry = *nand_geometry(from);
	struct engine_options options = { 0 };
	uint64_t nvram_bytes;
	int result;

	/* Some of a device that has grown is sized as when it was created; a twin has never grown.
	 */
	geometry.grown_from = 0;
	engine_formatted_options(engine, &options);
	result = engine_nvram_bytes(&geometry, &options, &nvram_bytes, error);
	if (!result)
		result = nand_create_twin(unfinished, from, nvram_bytes, error);
	if (result) {
		unfinished[0] = '\0'; /* what is there is not ours */
		return result;
	}
	result = nand_open(unfinished, to, error);
	if (!result)
		result = engine_format(*to, &options, error);
	return result ? result : engine_open(*to, &options, copy, error);
}

static int close_copy(struct nand *nand, struct engine *engine, int result)
{
	int closed = engine ? engine_close(engine) : 0;

	if (nand && nand_close(nand) && !closed)
		closed = -EIO;
	return result ? result : closed;
}

/* Known before an hour's work. A link counts, wherever it leads. */
static int check_new(const char *to, struct error_text *error)
{
	const char *const names[] = { to, complete_nvram };
	struct stat status;

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		if (lstat(names[n], &status) == 0)
			return error_set(error, -EEXIST, "%s exists already; nothing was copied",
					 names[n]);
	return 0;
}

static int salvage(struct fsck_report *report, struct nand *nand, struct engine *engine,
		   struct engine_salvage *salvage, struct error_text *error)
{
	struct nand *to = NULL;
	struct engine *copy = NULL;
	int result;

	if (!name_copy(report->options->to))
		return error_set(error, -ENAMETOOLONG, "the name %s is too long",
				 report->options->to);
	result = check_new(report->options->to, error);
	if (result) {
		unfinished[0] = '\0';
		return result;
	}
	result = create_copy(nand, engine, &to, &copy, error);
	if (!result) {
		result = engine_salvage(engine, copy, salvage);
		if (result)
			error_set(error, result, "copying to %s ended early: %s",
				  report->options->to, strerror(-result));
	}
	result = close_copy(to, copy, result);
	return result ? result : rename_copy(report->options->to, error);
}

/* ---- all of it ---- */

static enum fsck_exit exit_code(const struct fsck_report *report)
{
	if (!report->findings.count)
		return FSCK_CLEAN;
	return report->options->to && !report->losses ? FSCK_REPAIRED : FSCK_LEFT;
}

static enum fsck_exit finish(struct fsck_report *report, const struct engine_salvage *salvage)
{
	const struct engine_check *check = &salvage->check;
	const struct fsck_counts found = { check->partitions, check->objects, check->collections,
					   check->kept_versions, check->data_bytes };
	const struct fsck_counts copied = { salvage->partitions, salvage->objects,
					    salvage->collections, 0, salvage->data_bytes };
	enum fsck_exit code = exit_code(report);

	report_end(report, &found, report->options->to ? &copied : NULL, code);
	return code;
}

static enum fsck_exit examine(struct fsck_report *report, struct nand *nand)
{
	struct engine_salvage work = {
		.check = { .findings = &report->findings,
			   .versions = report->options->versions,
			   .progress = report_progress,
			   .context = report },
	};
	struct error_text error = { "" };
	struct engine_options options = { 0 };
	struct engine *engine = NULL;
	int result;

	nand_mend_blocks(nand, &report->findings);
	engine_examine(nand, &report->findings);
	result = open_engine(report, nand, &engine, &error);
	if (result)
		return report_failure(report, FSCK_CANNOT, error.text);
	engine_formatted_options(engine, &options);
	report->index = index_kind_name(options.muninn.index);
	if (report->options->to)
		result = salvage(report, nand, engine, &work, &error);
	else if ((result = engine_check(engine, &work.check)) != 0)
		error_set(&error, result, "the examination ended early: %s", strerror(-result));
	engine_abandon(engine);
	fsck_clean_up();
	return result ? report_failure(report, FSCK_CANNOT, error.text) : finish(report, &work);
}

enum fsck_exit fsck_run(struct fsck_report *report)
{
	struct error_text error = { "" };
	struct nand *nand;
	enum fsck_exit code;

	if (open_image(report, &nand, &error))
		return report_failure(report, FSCK_CANNOT, error.text);
	code = examine(report, nand);
	nand_abandon(nand);
	return code;
}
