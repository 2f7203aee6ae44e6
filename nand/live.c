/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Leaves timing and faults beside an image, and takes them up from there. */
#include "nand/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "nand/faults.h"
#include "nand/left.h"
#include "nand/private.h"
#include "nand/timing.h"

#define TEXT_BYTES 1024

const char *nand_setting_name(enum nand_setting which)
{
	static const char *const names[NAND_SETTINGS] = { "timing", "faults" };

	return names[which];
}

/* Parses, and with a device applies. NULL text: off. */
static int use(struct nand *nand, enum nand_setting which, const char *text,
	       struct error_text *error)
{
	struct nand_timing timing = { 0 };
	struct nand_faults faults;
	int result;

	if (which == NAND_SETTING_TIMING) {
		result = nand_timing_parse(text ? text : "none", &timing, error);
		if (!result && nand)
			result = nand_set_timing(nand, &timing, error);
		return result;
	}
	result = nand_faults_parse(text ? text : "off", &faults, error);
	if (!result && nand)
		result = nand_set_faults(nand, &faults, error);
	return result;
}

/* ---- leaving ---- */

int nand_leave_setting(const char *image, enum nand_setting which, const char *text,
		       struct error_text *error)
{
	struct stat status;
	char *file;
	int result = text ? use(NULL, which, text, error) : 0;

	if (result < 0)
		return result;
	if (text && strlen(text) >= TEXT_BYTES)
		return error_set(error, -EINVAL, "the text is longer than %d bytes",
				 TEXT_BYTES - 1);
	if (stat(image, &status) < 0)
		return error_set(error, -errno, "cannot find the image %s: %s", image,
				 strerror(errno));
	file = nand_left_path(image, nand_setting_name(which));
	if (!file)
		return error_set(error, -ENOMEM, "no memory");
	result = text ? nand_left_put(file, text) : nand_left_remove(file);
	if (result == -ENOENT && !text)
		error_set(error, result, "no %s was set for %s", nand_setting_name(which), image);
	else if (result < 0)
		error_set(error, result, "cannot %s %s: %s", text ? "write" : "remove", file,
			  strerror(-result));
	free(file);
	return result;
}

/* ---- taking up ---- */

/* A number that changes with every new file, never 0. 0: there is none. */
static uint64_t identity(const char *path)
{
	struct stat status;
	uint64_t number;

	if (stat(path, &status) < 0)
		return 0;
	number = (uint64_t)status.st_ino * UINT64_C(0x9e3779b97f4a7c15) +
		 (uint64_t)status.st_ctim.tv_sec * 1000000000 + (uint64_t)status.st_ctim.tv_nsec;
	return number ? number : 1;
}

static int read_text(const char *path, char text[TEXT_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, text, TEXT_BYTES);
	close(fd);
	if (got < 0)
		return -errno;
	/* The beginning of a text may mean something else. */
	if (got == TEXT_BYTES)
		return -EFBIG;
	text[got] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	return 0;
}

static void take(struct nand *nand, enum nand_setting which, const char *path, bool there)
{
	struct error_text error = { "" };
	char text[TEXT_BYTES];
	int result = there ? read_text(path, text) : 0;

	if (result < 0)
		error_set(&error, result, "%s", strerror(-result));
	else
		result = use(nand, which, there ? text : NULL, &error);
	if (result < 0)
		log_line(LOG_LEVEL_ERROR, "%s: not used: %s", path, error.text);
	else
		log_line(LOG_LEVEL_WARNING, "%s: %s of the emulated flash: %s", nand->path,
			 nand_setting_name(which), there ? text : "off");
}

void nand_take_settings(struct nand *nand, struct nand_settings *settings)
{
	for (enum nand_setting which = 0; which < NAND_SETTINGS; which++) {
		char *path = nand_left_path(nand->path, nand_setting_name(which));
		uint64_t now = path ? identity(path) : settings->seen[which];

		if (now != settings->seen[which]) {
			settings->seen[which] = now;
			take(nand, which, path, now != 0);
		}
		free(path);
	}
}
