/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Requests of administrators: logical units and volumes, while they are served. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin_verbs.h"
#include "daemon/check.h"
#include "daemon/image.h"
#include "daemon/module/backup.h"
#include "daemon/module/questions.h"
#include "daemon/tgt_control.h"
#include "daemon/units.h"

/* Of one answer, which muninnctl takes as a whole. */
#define VOLUMES_MAX 16000

/* What the file and those that are added make, with one more. One request at a time. */
static struct config whole;

/* ---- units ---- */

static int take_lun(struct admin_request *request, unsigned int *number)
{
	uint64_t value;
	int result = admin_number(request, "lun", &value);

	if (!result && (value < 1 || value > CONFIG_LUN_NUMBER_MAX))
		result = error_set(&request->error, -EINVAL, "units have numbers from 1 to %d",
				   CONFIG_LUN_NUMBER_MAX);
	*number = (unsigned int)value;
	return result;
}

static int read_section(struct admin_request *request, unsigned int number, const char *section,
			const struct lun_config **lun)
{
	const struct server *server = request->server;
	int result = origin_read(server->origin, &server->origin->file, section, &whole,
				 &request->error);

	if (!result)
		result = check_plans(&whole, &request->error);
	for (unsigned int i = 0; !result && i < whole.lun_count; i++)
		if (whole.luns[i].number == number)
			*lun = &whole.luns[i];
	if (!result)
		result = check_unit(&whole, *lun, &request->error);
	return result;
}

/* Serves what a section says of a unit, and answers with the section. */
static int add_section(struct admin_request *request, unsigned int number, const char *section)
{
	struct server *server = request->server;
	const struct lun_config *lun = NULL;
	char url[512];
	int result = 0;

	if (units_find(server, number))
		result = error_set(&request->error, -EEXIST, "there is a LUN %u already", number);
	if (!result)
		result = read_section(request, number, section, &lun);
	if (!result)
		result = units_add(server, &whole, lun, &request->error);
	if (result)
		return result;
	origin_add(server->origin, number, section);
	server_url(server, number, url, sizeof(url));
	admin_log(request, "LUN %u is added", number);
	json_object_update_new(request->ok,
			       json_pack("{s:i,s:s,s:s,s:s,s:s}", "lun", (int)number, "type",
					 lun->type->word, "url", url, "section", section, "file",
					 server->origin->path));
	return 0;
}

/* A key, as a line of a section. */
static int add_line(struct admin_request *request, const char *key, char *section)
{
	size_t used = strlen(section);
	const char *sign = key ? strchr(key, '=') : NULL;

	if (!sign || !isalpha((unsigned char)key[0]) || strpbrk(key, "\r\n"))
		return error_set(&request->error, -EINVAL,
				 "'%.60s' is not KEY=VALUE, as in type=disk", key ? key : "");
	if (snprintf(section + used, ORIGIN_SECTION_MAX - used, "%.*s = %s\n", (int)(sign - key),
		     key, sign + 1) >= (int)(ORIGIN_SECTION_MAX - used))
		return error_set(&request->error, -E2BIG, "the keys are too long together");
	return 0;
}

int admin_lun_add(struct admin_request *request)
{
	const json_t *keys = json_object_get(request->fields, "keys");
	char section[ORIGIN_SECTION_MAX];
	unsigned int number;
	int result = take_lun(request, &number);

	if (result)
		return result;
	snprintf(section, sizeof(section), "[lun %u]\n", number);
	for (size_t i = 0; i < json_array_size(keys); i++) {
		result = add_line(request, json_string_value(json_array_get(keys, i)), section);
		if (result)
			return result;
	}
	return add_section(request, number, section);
}

int admin_lun_rm(struct admin_request *request)
{
	struct server *server = request->server;
	const struct lun_config *lun;
	struct lun_config removed;
	unsigned int number;
	int result = take_lun(request, &number);

	if (result)
		return result;
	lun = units_find(server, number);
	if (!lun)
		return error_set(&request->error, -ENOENT, "there is no LUN %u", number);
	removed = *lun;
	if (!admin_flag(request, "force"))
		result = admin_check_unused(server, number, &request->error);
	if (!result)
		result = units_remove(server, number, &request->error);
	if (result)
		return result;
	origin_remove(server->origin, number);
	admin_log(request, "LUN %u is removed", number);
	json_object_update_new(request->ok, json_pack("{s:i,s:b,s:b,s:s}", "lun", (int)number,
						      "in_file", !removed.added, "needs_start",
						      units_needs_start(server, &removed), "file",
						      server->origin->path));
	return 0;
}

/* Growing is of the volume; what the file says of the unit stays. */
static int grow(struct admin_request *request, unsigned int number, uint64_t bytes)
{
	struct server *server = request->server;
	int result = units_grow(server, number, bytes, &request->error);

	if (result)
		return result;
	admin_log(request, "LUN %u grows to %" PRIu64 " bytes", number, bytes);
	json_object_update_new(request->ok, json_pack("{s:i,s:I,s:b,s:s}", "lun", (int)number,
						      "bytes", (json_int_t)bytes, "in_file",
						      !units_find(server, number)->added, "file",
						      server->origin->path));
	return 0;
}

int admin_lun_resize(struct admin_request *request)
{
	unsigned int number;
	uint64_t bytes;
	int result = take_lun(request, &number);

	if (!result)
		result = admin_number(request, "bytes", &bytes);
	return result ? result : grow(request, number, bytes);
}

/* ---- devices ---- */

/* How requests name a unit's device. */
static void name_device(const struct lun_config *lun, char name[CONFIG_DEVICE_BYTES])
{
	if (lun->device[0])
		snprintf(name, CONFIG_DEVICE_BYTES, "%s", lun->device);
	else
		snprintf(name, CONFIG_DEVICE_BYTES, "lun%u", lun->number);
}

/* The first of the units that are on its device. */
static bool is_first(const struct config *config, const struct lun_config *lun)
{
	for (const struct lun_config *other = config->luns; other < lun; other++)
		if (units_share_device(other, lun))
			return false;
	return true;
}

/* A unit on the device that the request names; it need not if there is one device alone. */
static int find_device(struct admin_request *request, const struct lun_config **lun)
{
	const struct config *config = request->server->config;
	const char *wanted = admin_text(request, "device");
	char name[CONFIG_DEVICE_BYTES], names[400] = "";
	unsigned int found = 0;

	for (unsigned int i = 0; i < config->lun_count; i++) {
		size_t length = strlen(names);

		if (!is_first(config, &config->luns[i]))
			continue;
		name_device(&config->luns[i], name);
		if (wanted && strcmp(wanted, name))
			continue;
		snprintf(names + length, sizeof(names) - length, "%s%s", found++ ? ", " : "", name);
		*lun = &config->luns[i];
	}
	if (found == 1)
		return 0;
	if (!found)
		return error_set(&request->error, -ENOENT, "no unit is on a device %s",
				 wanted ? wanted : "of this service");
	return error_set(&request->error, -EINVAL, "say which device with --device: %s", names);
}

/* A disk on the device that is this volume, or a version of it if `versions`; NULL: there is none.
 */
static const struct lun_config *find_disk(const struct config *config,
					  const struct lun_config *device, uint64_t partition,
					  bool versions)
{
	for (unsigned int i = 0; i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];

		if (lun->type == &unit_types[UNIT_TYPE_DISK] && units_share_device(lun, device) &&
		    config_partition(lun) == partition &&
		    (versions || !lun->options.disk.version[0]))
			return lun;
	}
	return NULL;
}

/* A unit on the device that the request names, or the unit whose number it gives. */
static int find_named_device(struct admin_request *request, const struct lun_config **lun)
{
	const char *wanted = admin_text(request, "device");
	char *end;
	unsigned long number = wanted ? strtoul(wanted, &end, 10) : 0;

	if (!wanted || !isdigit((unsigned char)wanted[0]) || *end)
		return find_device(request, lun);
	*lun = number <= CONFIG_LUN_NUMBER_MAX ? units_find(request->server, (unsigned int)number)
					       : NULL;
	return *lun ? 0 : error_set(&request->error, -ENOENT, "there is no LUN %.20s", wanted);
}

/* ---- backups ---- */

/* Into files that came with the request. Only he may who can read the image anyway. */
int admin_device_backup(struct admin_request *request)
{
	const struct admin_caller *caller = request->caller;
	const struct lun_config *lun;
	int refusal, result = find_named_device(request, &lun);

	if (result)
		return result;
	if (!caller->is_owner)
		return error_set(&request->error, -EACCES,
				 "a backup has all data and keys of the device: root may make one, "
				 "and the service's own user");
	if (caller->fd_count != BACKUP_FILES)
		return error_set(&request->error, -EINVAL,
				 "the request lacks the files of the backup");
	result = admin_result(tgt_lun_back_up(&request->server->tgtd, lun->number, caller->fds,
					      BACKUP_FILES, &refusal, &request->error),
			      refusal);
	if (result)
		return result;
	admin_log(request, "a backup of %s begins", lun->image);
	json_object_update_new(request->ok, json_pack("{s:i,s:s}", "lun", (int)lun->number,
						      "device_image", lun->image));
	return 0;
}

/* ---- growth ---- */

/* Whether the file has a section with the device's size. */
static bool is_in_file(const struct server *server, const struct lun_config *lun)
{
	return server->origin->path[0] && (lun->device[0] || !lun->added);
}

/* That section. */
static void name_section(const struct lun_config *lun, char *section, size_t bytes)
{
	if (lun->device[0])
		snprintf(section, bytes, "[device %s]", lun->device);
	else
		snprintf(section, bytes, "[lun %u]", lun->number);
}

/* -EBUSY with a sentence that says how many sessions use which units on the device. */
static int check_device_unused(struct server *server, const struct lun_config *device,
			       struct error_text *error)
{
	const struct config *config = server->config;
	char users[200] = "", section[CONFIG_DEVICE_BYTES + 16];

	for (unsigned int i = 0; i < config->lun_count; i++) {
		const unsigned int number = config->luns[i].number;
		size_t length = strlen(users), count;
		int result;

		if (!units_share_device(&config->luns[i], device))
			continue;
		result = admin_count_users(server, number, &count, error);
		if (result)
			return result;
		if (count)
			snprintf(users + length, sizeof(users) - length,
				 "%sLUN %u has %zu session%s", length ? ", " : "", number, count,
				 count == 1 ? "" : "s");
	}
	if (!users[0])
		return 0;
	if (!is_in_file(server, device))
		return error_set(error, -EBUSY,
				 "%s: log out there (`muninnctl session ls` names them)", users);
	name_section(device, section, sizeof(section));
	return error_set(error, -EBUSY,
			 "%s: log out there (`muninnctl session ls` names them), or write the size "
			 "into %s of %s and restart the service",
			 users, section, config->source);
}

/* Whether the file says a smaller size, which each start would warn of. */
static bool is_smaller_in_file(const struct server *server, const struct lun_config *lun,
			       uint64_t bytes)
{
	struct error_text ignored;
	struct config_file file;
	int result;

	if (!is_in_file(server, lun) || origin_load(server->origin, &file, &ignored))
		return false;
	result = origin_read(server->origin, &file, NULL, &whole, &ignored);
	config_file_free(&file);
	for (unsigned int i = 0; !result && i < whole.lun_count; i++)
		if (whole.luns[i].number == lun->number)
			return whole.luns[i].size_is_set && whole.luns[i].size_bytes < bytes;
	return false;
}

int admin_device_grow(struct admin_request *request)
{
	struct server *server = request->server;
	const struct lun_config *lun;
	char name[CONFIG_DEVICE_BYTES], section[CONFIG_DEVICE_BYTES + 16];
	struct image_growth growth;
	uint64_t bytes;
	int result = find_named_device(request, &lun);

	if (!result)
		result = admin_number(request, "bytes", &bytes);
	if (!result)
		result = image_plan_growth(lun, bytes, &growth, &request->error);
	if (!result)
		result = check_device_unused(server, lun, &request->error);
	if (result)
		return result;
	name_device(lun, name);
	name_section(lun, section, sizeof(section));
	result = units_grow_device(server, lun, bytes, &request->error);
	if (result) {
		admin_log(request, "device %s: %s", name, request->error.text);
		return result;
	}
	admin_log(request, "device %s has grown to %" PRIu64 " bytes", name, growth.after);
	json_object_update_new(request->ok,
			       json_pack("{s:s,s:s,s:I,s:I,s:b,s:s,s:s}", "device", name, "image",
					 lun->image, "bytes_before", (json_int_t)growth.before,
					 "bytes", (json_int_t)growth.after, "smaller_in_file",
					 is_smaller_in_file(server, lun, growth.after), "section",
					 section, "file", server->origin->path));
	return 0;
}

/* ---- volumes ---- */

/* A volume of an answer, with the units that it is. */
static void add_volume(struct admin_request *request, const struct lun_config *device,
		       const char *line, uint64_t *from)
{
	const struct config *config = request->server->config;
	uint64_t partition, bytes, block_bytes, used, source;
	char name[CONFIG_DEVICE_BYTES];
	json_t *volume, *units;
	int read_only;

	if (sscanf(line,
		   "volume 0x%" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " 0x%" SCNx64 " %d",
		   &partition, &bytes, &block_bytes, &used, &source, &read_only) != 6)
		return;
	*from = partition + 1;
	name_device(device, name);
	volume = json_pack("{s:o,s:s,s:I,s:I,s:I,s:b,s:[]}", "partition",
			   json_sprintf("0x%" PRIx64, partition), "device", name, "bytes",
			   (json_int_t)bytes, "block_bytes", (json_int_t)block_bytes, "used_bytes",
			   (json_int_t)used, "read_only", read_only != 0, "units");
	if (source)
		json_object_set_new(volume, "clone_of", json_sprintf("0x%" PRIx64, source));
	units = json_object_get(volume, "units");
	for (unsigned int i = 0; i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];

		if (lun->type == &unit_types[UNIT_TYPE_DISK] && units_share_device(lun, device) &&
		    config_partition(lun) == partition)
			json_array_append_new(units, json_integer(lun->number));
	}
	json_array_append_new(json_object_get(request->ok, "volumes"), volume);
}

/* Those of one answer; *from is behind the last of them. */
static int list_some_volumes(struct admin_request *request, const struct lun_config *device,
			     uint64_t *from)
{
	char question[64], *answer, *rest, *line;
	int result;

	snprintf(question, sizeof(question), "volumes %" PRIu64, *from);
	result = admin_ask(request, device->number, question, &answer);
	if (result)
		return result;
	rest = answer;
	while ((line = strsep(&rest, "\n")))
		add_volume(request, device, line, from);
	free(answer);
	server_alive();
	return 0;
}

static int list_volumes(struct admin_request *request, const struct lun_config *device)
{
	const json_t *volumes = json_object_get(request->ok, "volumes");
	uint64_t from = 1;
	size_t before, listed;
	int result;

	do {
		before = json_array_size(volumes);
		result = list_some_volumes(request, device, &from);
		listed = json_array_size(volumes);
		if (listed >= VOLUMES_MAX)
			json_object_set_new(request->ok, "incomplete", json_true());
	} while (!result && listed - before == QUESTION_VOLUMES_MAX && listed < VOLUMES_MAX);
	return result;
}

int admin_volume_ls(struct admin_request *request)
{
	const struct config *config = request->server->config;
	const struct lun_config *device;
	int result = 0;

	json_object_set_new(request->ok, "volumes", json_array());
	if (admin_text(request, "device")) {
		result = find_device(request, &device);
		return result ? result : list_volumes(request, device);
	}
	for (unsigned int i = 0; !result && i < config->lun_count; i++)
		if (is_first(config, &config->luns[i]))
			result = list_volumes(request, &config->luns[i]);
	return result;
}

/* A question that makes a volume, and which one. */
static int make(struct admin_request *request, const struct lun_config *device,
		const char *question, uint64_t *partition)
{
	uint64_t bytes = 0, block_bytes = 0;
	char *answer;
	int result = admin_ask(request, device->number, question, &answer);

	if (result)
		return result;
	if (sscanf(answer, "made 0x%" SCNx64 " %" SCNu64 " %" SCNu64, partition, &bytes,
		   &block_bytes) != 3)
		result = error_set(&request->error, -EPROTO, "the module's answer is no volume");
	free(answer);
	json_object_set_new(request->ok, "partition", json_sprintf("0x%" PRIx64, *partition));
	if (bytes)
		json_object_set_new(request->ok, "bytes", json_integer((json_int_t)bytes));
	if (block_bytes)
		json_object_set_new(request->ok, "block_bytes",
				    json_integer((json_int_t)block_bytes));
	return result;
}

int admin_volume_create(struct admin_request *request)
{
	const struct lun_config *device;
	uint64_t partition, bytes, block_bytes;
	char question[128];
	int result = find_device(request, &device);

	if (!result)
		result = admin_number(request, "partition", &partition);
	if (!result)
		result = admin_number(request, "bytes", &bytes);
	if (!result)
		result = admin_number(request, "block_bytes", &block_bytes);
	if (!result && (bytes < LUN_SIZE_MIN || bytes > LUN_SIZE_MAX))
		result = error_set(&request->error, -EINVAL, "a volume has 1 MiB to 1024 TiB");
	if (!result && block_bytes && block_bytes != 512 && block_bytes != 4096)
		result = error_set(&request->error, -EINVAL, "blocks have 512 or 4096 bytes");
	if (result)
		return result;
	snprintf(question, sizeof(question), "create %" PRIu64 " %" PRIu64 " %" PRIu64, partition,
		 bytes, block_bytes);
	result = make(request, device, question, &partition);
	if (!result)
		admin_log(request, "volume 0x%" PRIx64 " is made", partition);
	return result;
}

int admin_volume_rm(struct admin_request *request)
{
	const struct config *config = request->server->config;
	const struct lun_config *device, *disk;
	uint64_t partition;
	char question[64], *answer;
	int result = find_device(request, &device);

	if (!result)
		result = admin_number(request, "partition", &partition);
	if (result)
		return result;
	disk = find_disk(config, device, partition, true);
	if (disk)
		return error_set(&request->error, -EBUSY,
				 "LUN %u is on volume 0x%" PRIx64 ": muninnctl lun rm %u first",
				 disk->number, partition, disk->number);
	snprintf(question, sizeof(question), "remove %" PRIu64, partition);
	result = admin_ask(request, device->number, question, &answer);
	free(answer);
	if (!result)
		admin_log(request, "volume 0x%" PRIx64 " is removed", partition);
	return result;
}

int admin_volume_resize(struct admin_request *request)
{
	const struct config *config = request->server->config;
	const struct lun_config *device, *disk;
	uint64_t partition, bytes;
	char question[96], *answer;
	int result = find_device(request, &device);

	if (!result)
		result = admin_number(request, "partition", &partition);
	if (!result)
		result = admin_number(request, "bytes", &bytes);
	if (result)
		return result;
	disk = find_disk(config, device, partition, false);
	if (disk)
		return grow(request, disk->number, bytes);
	if (bytes > LUN_SIZE_MAX)
		return error_set(&request->error, -EINVAL, "a volume has 1 MiB to 1024 TiB");
	snprintf(question, sizeof(question), "resize %" PRIu64 " %" PRIu64, partition, bytes);
	result = admin_ask(request, device->number, question, &answer);
	free(answer);
	if (!result)
		admin_log(request, "volume 0x%" PRIx64 " grows to %" PRIu64 " bytes", partition,
			  bytes);
	return result;
}

/* ---- the past, as a unit ---- */

/* A clone of the moment, which keeps it. */
static int clone_moment(struct admin_request *request, const struct lun_config *device,
			uint64_t *partition, const char *kind, uint64_t value)
{
	char question[128];
	int result;

	snprintf(question, sizeof(question), "clone %" PRIu64 " %s %" PRIu64 " %d", *partition,
		 kind, value, admin_flag(request, "writable"));
	result = make(request, device, question, partition);
	if (!result)
		admin_log(request, "volume 0x%" PRIx64 " is made, a clone", *partition);
	return result;
}

static bool is_in_whole(unsigned int number)
{
	for (unsigned int i = 0; i < whole.lun_count; i++)
		if (whole.luns[i].number == number)
			return true;
	return false;
}

/* A number that no unit has, nor the file: a unit that was taken away comes back with a reload. */
static int free_number(struct admin_request *request, unsigned int *number)
{
	const struct server *server = request->server;
	int result =
		origin_read(server->origin, &server->origin->file, NULL, &whole, &request->error);

	*number = 1;
	while (*number <= CONFIG_LUN_NUMBER_MAX &&
	       (units_find(server, *number) || is_in_whole(*number)))
		(*number)++;
	return result;
}

/*
 * The target of a unit of a volume's past: that of the disk that is the volume, so that nobody gets
 * at the past who is kept from the present; or of the unit that the device is asked by.
 */
static const char *target_for(const struct config *config, const struct lun_config *device,
			      uint64_t partition)
{
	const struct lun_config *disk = find_disk(config, device, partition, false);

	if (!disk)
		disk = find_disk(config, device, partition, true);
	return disk ? disk->target : device->target;
}

/* A second unit of one version would be refused as if the configuration had both. */
static int check_unshown(struct admin_request *request, const struct lun_config *device,
			 uint64_t partition, const char *version)
{
	const struct config *config = request->server->config;

	for (unsigned int i = 0; i < config->lun_count; i++) {
		const struct lun_config *lun = &config->luns[i];

		if (lun->type == &unit_types[UNIT_TYPE_DISK] && units_share_device(lun, device) &&
		    config_partition(lun) == partition &&
		    !strcmp(lun->options.disk.version, version))
			return error_set(&request->error, -EEXIST,
					 "LUN %u shows version %s of partition 0x%" PRIx64
					 " already",
					 lun->number, version, partition);
	}
	return 0;
}

/* A version is a unit by itself; any other moment, and what is to be written, needs a clone. */
static int expose(struct admin_request *request, const struct lun_config *device,
		  uint64_t partition, unsigned int number)
{
	const char *version = admin_text(request, "version");
	const char *kind = admin_text(request, "kind");
	const char *target = target_for(request->server->config, device, partition);
	char section[ORIGIN_SECTION_MAX];
	uint64_t value = 0;
	int result = 0;

	if (version)
		result = units_find_version(request->server, device, partition, version, &value,
					    &request->error);
	else if (kind && strcmp(kind, "now"))
		result = admin_number(request, "value", &value);
	if (!result && (!version || admin_flag(request, "writable"))) {
		result = clone_moment(request, device, &partition,
				      version ? "version"
				      : kind  ? kind
					      : "now",
				      value);
		version = NULL;
	}
	if (!result && version)
		result = check_unshown(request, device, partition, version);
	if (result)
		return result;
	snprintf(section, sizeof(section),
		 "[lun %u]\ntype = disk\ndevice = %s\npartition = 0x%" PRIx64 "\n%s%s%s%s%s%s",
		 number, device->device, partition, target[0] ? "target = " : "", target,
		 target[0] ? "\n" : "", version ? "version = " : "", version ? version : "",
		 version ? "\n" : "");
	result = add_section(request, number, section);
	if (result && !version) {
		char question[64], *answer;
		struct error_text reason = request->error;

		snprintf(question, sizeof(question), "remove %" PRIu64, partition);
		admin_ask(request, device->number, question, &answer);
		free(answer);
		request->error = reason;
	}
	return result;
}

/* Can a version be asked for by its name, and, if it is to be a unit, stand in its section? */
static bool can_be_told(const char *version, bool writable)
{
	if (!version[0] || strpbrk(version, " ,;\r\n\t"))
		return false;
	return writable || isdigit((unsigned char)version[0]) ||
	       lun_option_is_version_name(version);
}

/* By its name, as the module knows it. A version has its own member. */
static bool is_kind_of_moment(const char *kind)
{
	return !strcmp(kind, "now") || !strcmp(kind, "time") || !strcmp(kind, "sequence");
}

int admin_volume_expose(struct admin_request *request)
{
	const struct lun_config *device;
	const char *version = admin_text(request, "version");
	const char *kind = admin_text(request, "kind");
	unsigned int number;
	uint64_t partition;
	int result = find_device(request, &device);

	if (!result)
		result = admin_number(request, "partition", &partition);
	if (!result)
		result = json_object_get(request->fields, "lun") ? take_lun(request, &number)
								 : free_number(request, &number);
	if (result)
		return result;
	if (version && !can_be_told(version, admin_flag(request, "writable")))
		return error_set(&request->error, -EINVAL,
				 "a unit can't have a version whose name has blanks, commas, "
				 "semicolons, = or letters beyond ASCII: give its number, which "
				 "`muninnctl versions` shows");
	if (kind && !is_kind_of_moment(kind))
		return error_set(&request->error, -EINVAL,
				 "there is no kind '%s' of moment: it is now, time or sequence",
				 kind);
	if (!device->device[0])
		return error_set(&request->error, -EINVAL,
				 "LUN %u has a device of its own, which no other unit can be on: "
				 "give it a section [device NAME]",
				 device->number);
	if (units_find(request->server, number))
		return error_set(&request->error, -EEXIST, "there is a LUN %u already", number);
	return expose(request, device, partition, number);
}
