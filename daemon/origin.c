/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes the configuration out of the file, the command line, and units added at run time. */
#include "daemon/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What `muninnd --defaults` serves. */
#define BUILT_IN "[lun 1]\ntype = osd\n"

void origin_program_folder(char *folder, size_t bytes)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0) {
		folder[0] = '\0';
		return;
	}
	path[length] = '\0';
	snprintf(folder, bytes, "%s", dirname(path));
}

/* Run from a build folder, it uses the module that was built with it. */
static void prefer_module_beside(struct config *config)
{
	char folder[PATH_MAX], module[PATH_MAX + 32];

	origin_program_folder(folder, sizeof(folder));
	snprintf(module, sizeof(module), "%s/../lib/bs_muninn.so", folder);
	if (!strcmp(config->module, CONFIG_MODULE_INSTALLED) && strlen(module) < PATH_MAX &&
	    !access(module, R_OK))
		strcpy(config->module, module);
}

static int override_size(const char *text, struct config *config, struct error_text *error)
{
	struct error_text reason = { "" };
	uint64_t size;

	if (lun_option_size(text, &size, &reason))
		return error_set(error, -EINVAL, "--size: %s", reason.text);
	for (unsigned int i = 0; i < config->lun_count; i++) {
		config->luns[i].size_bytes = size;
		config->luns[i].size_is_set = true;
	}
	for (unsigned int i = 0; i < config->device_count; i++) {
		config->devices[i].size_bytes = size;
		config->devices[i].size_is_set = true;
	}
	return 0;
}

static int override(const struct origin_options *options, struct config *config,
		    struct error_text *error)
{
	struct error_text reason = { "" };

	if (options->state_dir) {
		if (strlen(options->state_dir) >= sizeof(config->state_dir))
			return error_set(error, -EINVAL, "--state-dir: the name is too long");
		strcpy(config->state_dir, options->state_dir);
		strcpy(config->run_dir, options->state_dir);
	}
	for (unsigned int i = 0; options->port && i < config->portal_count; i++)
		if (config_parse_port(options->port, &config->portals[i].port, &reason))
			return error_set(error, -EINVAL, "--port: %s", reason.text);
	return options->size ? override_size(options->size, config, error) : 0;
}

int origin_load(const struct origin *origin, struct config_file *file, struct error_text *error)
{
	if (!origin->options.defaults)
		return config_file_load(origin->path, file, error);
	memset(file, 0, sizeof(*file));
	strcpy(file->source, "built-in configuration");
	file->text = strdup(BUILT_IN);
	file->bytes = strlen(BUILT_IN);
	return file->text ? 0 : error_set(error, -ENOMEM, "out of memory");
}

static bool has_unit(const struct config *config, unsigned int number)
{
	for (unsigned int i = 0; i < config->lun_count; i++)
		if (config->luns[i].number == number)
			return true;
	return false;
}

/* The added sections that the file does not have, and `section`, as one text. To be freed. */
static char *join_sections(const struct origin *origin, const struct config *of_file,
			   const char *section)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream)
		return NULL;
	for (unsigned int i = 0; i < origin->added_count; i++)
		if (!has_unit(of_file, origin->added[i].number))
			fputs(origin->added[i].section, stream);
	fputs(section ? section : "", stream);
	if (fclose(stream)) {
		free(text);
		return NULL;
	}
	return text;
}

static int read_with(const struct origin *origin, const struct config_file *file, const char *added,
		     struct config *config, struct error_text *error)
{
	int result = config_parse(file, added, config, error);

	if (!result)
		result = override(&origin->options, config, error);
	/* Messages about it name no line. */
	for (unsigned int i = 0; origin->options.defaults && i < config->lun_count; i++)
		config->luns[i].line = 0;
	return result ? result : config_complete(config, error);
}

/* Added units are gone at the next start: what it would refuse of the file is refused with them. */
static int read_here(const struct origin *origin, const struct config_file *file,
		     const char *section, struct config *config, struct error_text *error)
{
	int result = read_with(origin, file, NULL, config, error);
	char *added;

	if (!result && (origin->added_count || section)) {
		added = join_sections(origin, config, section);
		result = added ? read_with(origin, file, added, config, error)
			       : error_set(error, -ENOMEM, "out of memory");
		free(added);
	}
	if (!result)
		prefer_module_beside(config);
	return result;
}

int origin_read(const struct origin *origin, const struct config_file *file, const char *section,
		struct config *config, struct error_text *error)
{
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), result;

	if (origin->folder >= 0 && here >= 0 && fchdir(origin->folder)) {
		result = error_set(error, -errno, "the folder that muninnd was started in: %s",
				   strerror(errno));
		close(here);
		return result;
	}
	result = read_here(origin, file, section, config, error);
	if (origin->folder >= 0 && here >= 0 && fchdir(here) && !result)
		result = error_set(error, -errno, "the working directory: %s", strerror(errno));
	if (here >= 0)
		close(here);
	return result;
}

/* The working directory changes; messages of the start have the name as it was given. */
static int find_path(struct origin *origin, struct error_text *error)
{
	const char *name = origin->options.config;
	char here[PATH_MAX];
	int length;

	if (!getcwd(here, sizeof(here)))
		return error_set(error, -errno, "the working directory has no name: %s",
				 strerror(errno));
	length = name[0] == '/' ? snprintf(origin->path, PATH_MAX, "%s", name)
				: snprintf(origin->path, PATH_MAX, "%s/%s", here, name);
	return length < PATH_MAX ? 0 : error_set(error, -ENAMETOOLONG, "%s: too long", name);
}

int origin_open(struct origin *origin, const struct origin_options *options, struct config *config,
		struct error_text *error)
{
	int result;

	memset(origin, 0, sizeof(*origin));
	origin->options = *options;
	origin->folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	result = options->defaults ? origin_load(origin, &origin->file, error)
				   : config_file_load(options->config, &origin->file, error);
	if (!result && !options->defaults)
		result = find_path(origin, error);
	if (!result) {
		result = origin_read(origin, &origin->file, NULL, config, error);
		config_warn_of_readers(&origin->file, config);
	}
	return result;
}

/* ---- what changes ---- */

void origin_take(struct origin *origin, struct config_file *file, const struct config *config)
{
	config_file_free(&origin->file);
	origin->file = *file;
	for (unsigned int i = 0; i < config->lun_count; i++)
		if (!config->luns[i].added)
			origin_remove(origin, config->luns[i].number);
}

int origin_add(struct origin *origin, unsigned int number, const char *section)
{
	char *copy = origin->added_count < CONFIG_LUNS_MAX ? strdup(section) : NULL;

	if (!copy)
		return -ENOMEM;
	origin->added[origin->added_count].number = number;
	origin->added[origin->added_count++].section = copy;
	return 0;
}

void origin_remove(struct origin *origin, unsigned int number)
{
	for (unsigned int i = 0; i < origin->added_count; i++) {
		if (origin->added[i].number != number)
			continue;
		free(origin->added[i].section);
		origin->added[i] = origin->added[--origin->added_count];
		return;
	}
}

const char *origin_section(const struct origin *origin, unsigned int number)
{
	for (unsigned int i = 0; i < origin->added_count; i++)
		if (origin->added[i].number == number)
			return origin->added[i].section;
	return NULL;
}
