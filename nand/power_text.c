/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Power cuts as text, and left beside an image for the next process that opens it. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "nand/lab.h"
#include "nand/left.h"
#include "nand/power.h"
#include "nand/settings.h"

#define TEXT_BYTES 256

static const char *const pages[] = { "absent", "torn", "garbage", NULL };
static const char *const erases[] = { "absent", "half", "done", NULL };
static const char *const nvrams[] = { "kept", "lost", "flushed", "mixed", NULL };

static int parse_setting(const struct setting *setting, struct nand_power_cut *cut, bool *has_after,
			 struct error_text *error)
{
	uint64_t value = 0;
	unsigned index = 0;
	int result = 0;

	if (strcmp(setting->key, "after") == 0) {
		*has_after = true;
		result = setting_uint(setting, UINT64_MAX, &cut->after, error);
	} else if (strcmp(setting->key, "reads") == 0 && !setting->value[0]) {
		cut->count_reads = true;
	} else if (strcmp(setting->key, "page") == 0) {
		result = setting_word(setting, pages, &index, error);
		cut->page = (enum nand_cut_page)index;
	} else if (strcmp(setting->key, "torn") == 0) {
		result = setting_uint(setting, UINT32_MAX, &value, error);
		cut->torn_bytes = (uint32_t)value;
	} else if (strcmp(setting->key, "erase") == 0) {
		result = setting_word(setting, erases, &index, error);
		cut->erase = (enum nand_cut_erase)index;
	} else if (strcmp(setting->key, "nvram") == 0) {
		result = setting_word(setting, nvrams, &index, error);
		cut->nvram = (enum nand_cut_nvram)index;
	} else if (strcmp(setting->key, "seed") == 0) {
		result = setting_uint(setting, UINT64_MAX, &cut->seed, error);
	} else {
		result = setting_unknown(setting, error);
	}
	return result;
}

int nand_power_cut_parse(const char *text, struct nand_power_cut *cut, struct error_text *error)
{
	struct setting setting = { .what = "power cut" };
	struct nand_power_cut parsed = { .torn_bytes = 2048,
					 .erase = NAND_CUT_ERASE_HALF,
					 .seed = 1 };
	bool has_after = false;
	int result;

	while ((result = setting_next(&text, &setting, error)) > 0) {
		result = parse_setting(&setting, &parsed, &has_after, error);
		if (result < 0)
			return result;
	}
	if (result < 0)
		return result;
	if (!has_after)
		return error_set(error, -EINVAL,
				 "bad power cut: after=N is missing, the number of operations "
				 "before it");
	*cut = parsed;
	return 0;
}

const char *nand_power_cut_format(const struct nand_power_cut *cut, char text[NAND_POWER_CUT_TEXT])
{
	snprintf(text, NAND_POWER_CUT_TEXT,
		 "after=%llu%s,page=%s,torn=%u,erase=%s,nvram=%s,seed=%llu",
		 (unsigned long long)cut->after, cut->count_reads ? ",reads" : "", pages[cut->page],
		 cut->torn_bytes, erases[cut->erase], nvrams[cut->nvram],
		 (unsigned long long)cut->seed);
	return text;
}

/* ---- IMAGE.cut ---- */

static char *cut_path(const char *path)
{
	return nand_left_path(path, "cut");
}

int nand_leave_power_cut(const char *path, const char *text, struct error_text *error)
{
	struct nand_power_cut cut;
	struct stat status;
	char *file;
	int result = text ? nand_power_cut_parse(text, &cut, error) : 0;

	if (result < 0)
		return result;
	if (text && strlen(text) >= TEXT_BYTES)
		return error_set(error, -EINVAL, "bad power cut: its text is too long");
	if (stat(path, &status) < 0)
		return error_set(error, -errno, "cannot find the image %s: %s", path,
				 strerror(errno));
	file = cut_path(path);
	if (!file)
		return error_set(error, -ENOMEM, "no memory to leave a power cut at %s", path);
	result = text ? nand_left_put(file, text) : nand_left_remove(file);
	if (result == -ENOENT && !text)
		error_set(error, result, "no power cut was left at %s", path);
	else if (result < 0)
		error_set(error, result, "cannot %s %s: %s", text ? "write" : "remove", file,
			  strerror(-result));
	free(file);
	return result;
}

/* What is left in the file, removed. -ENOENT: nothing. */
static int take_file(const char *path, char text[TEXT_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;
	int result;

	if (fd < 0)
		return -errno;
	got = read(fd, text, TEXT_BYTES - 1);
	result = got < 0 ? -errno : 0;
	close(fd);
	if (result < 0)
		return result;
	text[got] = 0;
	text[strcspn(text, "\r\n")] = 0;
	return nand_left_remove(path);
}

int nand_take_left_power_cut(struct nand *nand, struct error_text *error)
{
	struct nand_power_cut cut;
	char text[TEXT_BYTES];
	char *file = cut_path(nand->path);
	int result = file ? take_file(file, text) : -ENOMEM;

	if (result < 0 && result != -ENOENT)
		error_set(error, result, "cannot take the power cut left in %s.cut: %s", nand->path,
			  strerror(-result));
	free(file);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = nand_power_cut_parse(text, &cut, error);
	if (result < 0)
		return result;
	result = nand_arm_power_cut(nand, &cut, error);
	if (result == 0)
		log_line(LOG_LEVEL_WARNING, "%s: a power cut is armed: %s", nand->path, text);
	return result;
}
