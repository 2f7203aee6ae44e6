/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Finds what keeps a configuration from being served, without changing the host. */
#include "daemon/check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/folder.h"
#include "daemon/server.h"
#include "wire/keys_file.h"

/* ---- programs ---- */

/* Whether a file can be read or executed; a folder can't. */
static int check_file(const char *path, int access_mode)
{
	struct stat status;

	if (access(path, access_mode) || stat(path, &status))
		return -errno;
	return S_ISREG(status.st_mode) ? 0 : -EISDIR;
}

/* The dynamic linker passes over what it can't preload, and tgtd would start without it. */
static bool is_library(const char *path)
{
	unsigned char header[EI_NIDENT + sizeof(Elf64_Half)];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool whole;
	Elf64_Half type;

	if (fd < 0)
		return false;
	whole = read(fd, header, sizeof(header)) == (ssize_t)sizeof(header);
	close(fd);
	memcpy(&type, header + EI_NIDENT, sizeof(type));
	return whole && memcmp(header, ELFMAG, SELFMAG) == 0 && type == ET_DYN;
}

static int check_library(const char *what, const char *path, const char *advice,
			 struct error_text *error)
{
	int result = check_file(path, R_OK);

	if (result)
		return error_set(error, result, "%s %s: %s%s", what, path, strerror(-result),
				 result == -ENOENT ? advice : "");
	return is_library(path)
		       ? 0
		       : error_set(error, -ENOEXEC, "%s %s is not a shared library", what, path);
}

int check_programs(const struct config *config, struct error_text *error)
{
	int result = check_file(config->tgtd, X_OK);

	if (result)
		return error_set(error, result, "tgtd %s: %s%s", config->tgtd, strerror(-result),
				 result == -ENOENT ? "; install the package tgt" : "");
	result = check_library("module", config->module, "; run make install", error);
	if (!result && config->allocator[0] == '/')
		result = check_library("allocator", config->allocator, "", error);
	return result;
}

/* ---- the portal ---- */

static int check_one_portal(const struct portal *where, struct error_text *error)
{
	struct sockaddr_storage address;
	socklen_t length = portal_address(where, &address);
	char portal[CONFIG_PORTAL_BYTES];
	const int yes = 1;
	int fd, failed, reason;

	config_portal(where, portal);
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(error, -errno, "%s: %s", portal, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (address.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	failed = bind(fd, (struct sockaddr *)&address, length) || listen(fd, 1);
	reason = errno;
	close(fd);
	if (!failed)
		return 0;
	if (reason == EADDRINUSE)
		return error_set(
			error, -reason,
			"%s is in use by another program (ss -ltnp shows which): stop that, or "
			"choose "
			"another port (make run PORT=..., muninnd --port, portal in [target])",
			portal);
	return error_set(error, -reason, "cannot listen on %s: %s", portal, strerror(reason));
}

int check_portals(const struct config *config, struct error_text *error)
{
	struct error_text reason = { "" };
	int result = 0;

	for (unsigned int i = 0; i < config->portal_count && (!result || result == -EADDRINUSE);
	     i++) {
		int one = check_one_portal(&config->portals[i], &reason);

		if (one)
			result = error_set(error, one, "%s", reason.text);
	}
	return result;
}

/* ---- the configuration ---- */

/* Adds the place in the configuration to a sentence; `line` 0: there is none. */
static int blame(const struct config *config, int line, const char *what, int result,
		 const struct error_text *reason, struct error_text *error)
{
	char at[16] = "";

	if (line)
		snprintf(at, sizeof(at), ":%d", line);
	return error_set(error, result, "%s%s: %s%s", config->source, at, what, reason->text);
}

typedef int check_lun(const struct config *config, const struct lun_config *lun,
		      struct error_text *reason);

/* What is wrong with the i-th unit refuses the configuration, or is told. */
static int judge(const struct check_tolerance *tolerance, unsigned int i, int result,
		 const struct error_text *error)
{
	if (!result || !tolerance || tolerance->care[i] == CHECK_REFUSES)
		return result;
	tolerance->tell(tolerance->context, error->text);
	return 0;
}

static int check_luns(const struct config *config, const struct check_tolerance *tolerance,
		      check_lun *check, struct error_text *error)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];
		struct error_text reason = { "" };
		char what[32];

		result = check(config, lun, &reason);
		snprintf(what, sizeof(what), "LUN %u: ", lun->number);
		if (result)
			blame(config, lun->line, what, result, &reason, error);
		result = judge(tolerance, i, result, error);
	}
	return result;
}

static int check_plan(const struct config *config, const struct lun_config *lun,
		      struct error_text *reason)
{
	(void)config;
	return image_plan(lun, reason);
}

int check_plans(const struct config *config, struct error_text *error)
{
	return check_luns(config, NULL, check_plan, error);
}

/* ---- the host ---- */

static int check_service(const struct config *config, struct error_text *error)
{
	struct error_text reason = { "" };
	int result = check_programs(config, &reason);

	if (!result && config->admin_group[0] && !getgrnam(config->admin_group))
		result = error_set(&reason, -ENOENT, "admin_group: this host has no group %s",
				   config->admin_group);
	if (!result)
		result = check_portals(config, &reason);
	if ((!result || result == -EADDRINUSE) && config->metrics.port) {
		struct error_text of_metrics = { "" };
		int metrics = check_one_portal(&config->metrics, &of_metrics);

		if (metrics && metrics != -EADDRINUSE)
			result = error_set(&reason, metrics, "metrics: %s", of_metrics.text);
	}
	/* What runs with this very configuration is no fault of it. A start looks again. */
	if (result == -EADDRINUSE)
		result = 0;
	return result ? blame(config, 0, "", result, &reason, error) : 0;
}

/* Reads the key file now: tgtd would say less of a wrong one. */
static int check_key_file(const struct lun_config *lun, struct error_text *reason)
{
	uint8_t device_key[OSD_DEVICE_KEY_BYTES];
	int result = 0;

	if (lun->options.key_file[0])
		result = osd_key_file_read(lun->options.key_file, device_key, reason);
	explicit_bzero(device_key, sizeof(device_key));
	return result;
}

/* The folder that a file is in, or will be. */
static int stat_folder(const char *path, struct stat *status)
{
	char folder[PATH_MAX + 1];

	snprintf(folder, sizeof(folder), "%.*s.", (int)(strrchr(path, '/') + 1 - path), path);
	return stat(folder, status);
}

/* Whether two names are of one file: by links, or by other ways to its folder. */
static bool is_same_file(const char *path, const char *other)
{
	struct stat one, two;
	int is_missing = stat(path, &one);

	/* Of files that are to be made, the names count. */
	if (is_missing != stat(other, &two))
		return false;
	if (is_missing && (strcmp(strrchr(path, '/'), strrchr(other, '/')) != 0 ||
			   stat_folder(path, &one) || stat_folder(other, &two)))
		return false;
	return one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

/* Two units that are not on one device can't have one image, whatever they call it. */
static int check_own_image(const struct config *config, const struct lun_config *lun,
			   struct error_text *reason)
{
	for (unsigned int i = 0; i < config->lun_count; i++) {
		const struct lun_config *other = &config->luns[i];

		if (other->number != lun->number && config_is_first_of_device(config, other) &&
		    is_same_file(lun->image, other->image))
			return error_set(reason, -EINVAL,
					 "%s is the image of LUN %u too, %s; each unit needs its "
					 "own, or both name one [device NAME]",
					 lun->image, other->number, other->image);
	}
	return 0;
}

static int check_files(const struct config *config, const struct lun_config *lun,
		       struct error_text *reason)
{
	int result = check_key_file(lun, reason);

	if (!result && config_is_first_of_device(config, lun))
		result = check_own_image(config, lun, reason);
	if (!result && config_is_first_of_device(config, lun))
		result = image_try(lun, reason);
	return result;
}

int check_unit(const struct config *config, const struct lun_config *lun, struct error_text *error)
{
	struct error_text reason = { "" };
	char what[32];
	int result = check_files(config, lun, &reason);

	snprintf(what, sizeof(what), "LUN %u: ", lun->number);
	return result ? blame(config, lun->line, what, result, &reason, error) : 0;
}

/* Every start makes files in it. */
static int check_run_dir(const struct config *config, const struct check_tolerance *tolerance,
			 struct error_text *error)
{
	struct error_text reason = { "" };
	char file[PATH_MAX + 16];
	int result;

	(void)tolerance;
	snprintf(file, sizeof(file), "%s/file", config->run_dir);
	result = folder_try_file(file, 0, &reason);
	return result ? blame(config, 0, "run_dir: ", result, &reason, error) : 0;
}

/* A start makes files in it for new devices only. */
static int check_state_dir(const struct config *config, const struct check_tolerance *tolerance,
			   struct error_text *error)
{
	return check_luns(config, tolerance, check_files, error);
}

typedef int check_inside(const struct config *config, const struct check_tolerance *tolerance,
			 struct error_text *error);

/* Makes a folder, if it is missing, checks what is to be in it, and takes it back. */
static int check_folder(const struct config *config, const struct check_tolerance *tolerance,
			const char *key, const char *folder, check_inside *inside,
			struct error_text *error)
{
	struct error_text reason = { "" };
	unsigned int made;
	int result = folder_make(folder, &made, &reason);

	if (result)
		blame(config, 0, key, result, &reason, error);
	else
		result = inside(config, tolerance, error);
	folder_take_back(folder, made);
	return result;
}

int check_host(const struct config *config, const struct check_tolerance *tolerance,
	       struct error_text *error)
{
	int result = check_service(config, error);

	if (!result)
		result = check_folder(config, tolerance, "run_dir: ", config->run_dir,
				      check_run_dir, error);
	if (!result)
		result = check_folder(config, tolerance, "state_dir: ", config->state_dir,
				      check_state_dir, error);
	return result;
}

/* ---- images ---- */

int check_images(const struct config *config, const struct check_tolerance *tolerance,
		 struct image_engine engines[CONFIG_LUNS_MAX], struct error_text *error)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];
		const struct lun_config *first = config_first_of_device(config, lun);
		struct error_text reason = { "" };

		if (first != lun) {
			engines[i] = engines[first - config->luns];
			continue;
		}
		engines[i] = (struct image_engine){ .name = NULL };
		if (tolerance && tolerance->care[i] == CHECK_NAMES)
			result = image_check_names(lun, &reason);
		else
			result = image_engine(lun, &engines[i], &reason);
		server_alive();
		/* As the start says it, where a sentence that is too long is cut alike. */
		if (result)
			error_set(error, result, "LUN %u: %s", lun->number, reason.text);
		result = judge(tolerance, i, result, error);
	}
	return result;
}
