/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* NAND images on this host: create, info, cut. */
#include "client/ctl/nand.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nand/left.h"
#include "nand/live.h"
#include "nand/power.h"
#include "nand/wear.h"

/* ---- shared ---- */

enum ctl_exit nand_tool_exit(int result)
{
	switch (result) {
	case -ENOENT:
		return CTL_NOT_FOUND;
	case -EEXIST:
		return CTL_EXISTS;
	case -ENOSPC:
		return CTL_NO_SPACE;
	case -EBADMSG:
	case -EINVAL:
		return CTL_BAD_DATA;
	case -EACCES:
	case -EPERM:
		return CTL_DENIED;
	default:
		return CTL_LOCAL;
	}
}

int nand_tool_open(const struct ctl *ctl, const char *path, struct nand **nand)
{
	struct error_text error;
	int result = nand_open_read_only(path, nand, &error);
	long holder;
	char text[160];

	if (result < 0)
		return ctl_fail(ctl, nand_tool_exit(result), "%s", error.text);
	holder = nand_image_holder(path);
	if (holder > 0 && !ctl->options->json) {
		snprintf(text, sizeof(text),
			 "the image is in use by process %ld: what follows may be changing",
			 holder);
		ctl_warn(text);
	}
	return CTL_OK;
}

int nand_tool_check(const struct ctl *ctl, const char *path)
{
	struct error_text error;
	struct nand *nand;
	int result = nand_open_read_only(path, &nand, &error);

	if (result < 0)
		return ctl_fail(ctl, nand_tool_exit(result), "%s", error.text);
	nand_abandon(nand);
	return CTL_OK;
}

bool nand_tool_colours(void)
{
	const char *no_color = getenv("NO_COLOR");

	return !(no_color && no_color[0]) && isatty(STDOUT_FILENO);
}

FILE *nand_tool_svg(const struct ctl *ctl)
{
	FILE *svg = fopen(ctl->options->svg, "we");

	if (!svg)
		ctl_fail(ctl, CTL_LOCAL, "%s can't be written: %s", ctl->options->svg,
			 strerror(errno));
	return svg;
}

int nand_tool_svg_end(const struct ctl *ctl, FILE *svg)
{
	bool failed = ferror(svg) != 0;

	if (fclose(svg) == 0 && !failed)
		return CTL_OK;
	return ctl_fail(ctl, CTL_LOCAL, "%s can't be written: %s", ctl->options->svg,
			strerror(errno));
}

/* ---- create ---- */

int verb_nand_create(struct ctl *ctl)
{
	struct nand_geometry geometry;
	struct error_text error;
	uint64_t bytes, nvram_bytes = 0;
	int result = ctl_size(ctl, 0, "size", &bytes);

	if (result == CTL_OK && ctl->argument_count > 1)
		result = ctl_size(ctl, 1, "NVRAM size", &nvram_bytes);
	if (result != CTL_OK)
		return result;
	geometry = nand_geometry_default(bytes);
	if (geometry.blocks == 0)
		return ctl_fail(ctl, CTL_USAGE,
				"size '%s' is less than a block has, %" PRIu64 " bytes",
				ctl->arguments[0],
				(uint64_t)geometry.pages_per_block * geometry.page_bytes);
	result = nand_create(ctl->url, &geometry, nvram_bytes, &error);
	if (result < 0)
		return ctl_fail(ctl, result == -EINVAL ? CTL_USAGE : nand_tool_exit(result), "%s",
				error.text);
	return CTL_OK;
}

/* ---- info ---- */

struct info {
	const char *path;
	const struct nand_geometry *geometry;
	char uuid[33];
	char engine[NAND_CONTENTS_BYTES];
	uint64_t nvram_bytes, data_bytes, host_bytes;
	long holder;
	struct nand_summary summary;
	struct nand_wear wear;
};

static void gather(struct info *info, const char *path, struct nand *nand)
{
	struct stat status;

	*info = (struct info){ .path = path, .geometry = nand_geometry(nand) };
	for (int i = 0; i < 16; i++)
		snprintf(info->uuid + 2 * i, 3, "%02x", nand_uuid(nand)[i]);
	snprintf(info->engine, sizeof(info->engine), "%s", nand_contents(nand));
	nand_nvram(nand, &info->nvram_bytes);
	info->data_bytes = (uint64_t)info->geometry->blocks * info->geometry->pages_per_block *
			   info->geometry->page_bytes;
	if (stat(path, &status) == 0)
		info->host_bytes = (uint64_t)status.st_blocks * 512;
	info->holder = nand_image_holder(path);
	nand_summarize(nand, &info->summary);
	nand_read_wear(nand, &info->wear);
}

static json_t *info_json(const struct info *info)
{
	const struct nand_geometry *geometry = info->geometry;
	json_t *blocks = json_object(), *object;

	for (int look = 0; look < NAND_LOOKS; look++)
		json_object_set_new(blocks, nand_look_name(look),
				    json_integer((json_int_t)info->summary.blocks[look]));
	object = json_pack(
		"{s:s,s:I,s:I,s:I,s:i,s:i,s:i,s:i,s:i,s:i,s:o,s:I,s:I,s:f,s:I,s:I}", "uuid",
		info->uuid, "data_bytes", (json_int_t)info->data_bytes, "nvram_bytes",
		(json_int_t)info->nvram_bytes, "host_bytes", (json_int_t)info->host_bytes,
		"page_bytes", (int)geometry->page_bytes, "spare_bytes", (int)geometry->spare_bytes,
		"pages_per_block", (int)geometry->pages_per_block, "blocks", (int)geometry->blocks,
		"channels", (int)geometry->channels, "dies_per_channel",
		(int)geometry->dies_per_channel, "blocks_by_state", blocks, "pages_programmed",
		(json_int_t)info->summary.pages_programmed, "erases", (json_int_t)info->wear.erases,
		"erases_mean", info->wear.mean, "erases_most", (json_int_t)info->wear.most,
		"in_use_by_process", (json_int_t)info->holder);
	ctl_json_with_text(object, "image", info->path);
	return ctl_json_with_text(object, "engine", info->engine);
}

static void print_info(const struct info *info)
{
	const struct nand_geometry *geometry = info->geometry;
	char data[CTL_SIZE_TEXT], nvram[CTL_SIZE_TEXT], host[CTL_SIZE_TEXT];

	printf("image        %s\n", info->path);
	printf("uuid         %s\n", info->uuid);
	printf("engine       %s\n", *info->engine ? info->engine : "not formatted");
	printf("size         %s of data, %s of NVRAM; takes %s of the host\n",
	       ctl_format_size(info->data_bytes, data), ctl_format_size(info->nvram_bytes, nvram),
	       ctl_format_size(info->host_bytes, host));
	printf("page         %u + %u bytes\n", geometry->page_bytes, geometry->spare_bytes);
	printf("block        %u pages\n", geometry->pages_per_block);
	printf("dies         %u channels x %u\n", geometry->channels, geometry->dies_per_channel);
	printf("blocks       %u:", geometry->blocks);
	for (int look = 0; look < NAND_LOOKS; look++)
		printf("%s %" PRIu64 " %s", look ? "," : "", info->summary.blocks[look],
		       nand_look_name(look));
	printf("\npages        %" PRIu64 " programmed of %" PRIu64 "\n",
	       info->summary.pages_programmed,
	       (uint64_t)geometry->blocks * geometry->pages_per_block);
	printf("wear         %" PRIu64 " erases, %.1f a block, at most %u\n", info->wear.erases,
	       info->wear.mean, info->wear.most);
	if (info->holder > 0)
		printf("in use       by process %ld\n", info->holder);
}

int verb_nand_info(struct ctl *ctl)
{
	struct nand *nand;
	struct info info;
	int code = nand_tool_open(ctl, ctl->url, &nand);

	if (code != CTL_OK)
		return code;
	gather(&info, ctl->url, nand);
	if (ctl->options->json)
		code = ctl_print_json(stdout, info_json(&info));
	else
		print_info(&info);
	nand_abandon(nand);
	return code == CTL_OK ? ctl_end_output(ctl) : code;
}

/* ---- timing, faults ---- */

static int say_setting(const struct ctl *ctl, const char *which, long holder)
{
	json_t *object = json_pack("{s:I}", "in_use_by_process", (json_int_t)holder);

	ctl_json_with_text(object, "image", ctl->url);
	return ctl_print_json(stdout, ctl_json_with_text(object, which, ctl->arguments[0]));
}

static int leave_setting(struct ctl *ctl, enum nand_setting which)
{
	const char *text = ctl->arguments[0];
	struct error_text error;
	int result = strcmp(text, "off") == 0 ? CTL_OK : nand_tool_check(ctl, ctl->url);

	if (result != CTL_OK)
		return result;
	result =
		nand_leave_setting(ctl->url, which, strcmp(text, "off") == 0 ? NULL : text, &error);

	if (result < 0)
		return ctl_fail(ctl, result == -EINVAL ? CTL_USAGE : nand_tool_exit(result), "%s",
				error.text);
	if (!ctl->options->json)
		return CTL_OK;
	return say_setting(ctl, nand_setting_name(which), nand_image_holder(ctl->url));
}

int verb_nand_timing(struct ctl *ctl)
{
	return leave_setting(ctl, NAND_SETTING_TIMING);
}

int verb_nand_faults(struct ctl *ctl)
{
	return leave_setting(ctl, NAND_SETTING_FAULTS);
}

/* ---- cut ---- */

int verb_nand_cut(struct ctl *ctl)
{
	const char *text = ctl->arguments[0];
	struct error_text error;
	int result = strcmp(text, "off") == 0 ? CTL_OK : nand_tool_check(ctl, ctl->url);
	long holder;

	if (result != CTL_OK)
		return result;
	result = nand_leave_power_cut(ctl->url, strcmp(text, "off") == 0 ? NULL : text, &error);
	if (result < 0)
		return ctl_fail(ctl, result == -EINVAL ? CTL_USAGE : nand_tool_exit(result), "%s",
				error.text);
	holder = nand_image_holder(ctl->url);
	if (ctl->options->json)
		return say_setting(ctl, "cut", holder);
	if (holder > 0 && strcmp(text, "off") != 0)
		ctl_warn("the image is in use now: the cut is for the process that opens it next");
	return CTL_OK;
}
