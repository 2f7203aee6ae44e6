/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * What only the whole configuration shows: names of files, what units have of their devices, and
 * what they can't share; targets and portals.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config.h"
#include "daemon/config_keys.h"

/* `path` has space for `bytes`. */
static int make_absolute(char *path, size_t bytes, const char *folder, struct error_text *error)
{
	char joined[2 * PATH_MAX];

	if (path[0] == '/')
		return 0;
	snprintf(joined, sizeof(joined), "%s/%s", folder, path);
	if (strlen(joined) >= bytes)
		return error_set(error, -ENAMETOOLONG, "the path %s is too long", joined);
	if (strchr(joined, ','))
		return error_set(error, -EINVAL, "the path %s has a comma, which tgtd cannot take",
				 joined);
	strcpy(path, joined);
	return 0;
}

/* Whether two units share a device. */
static bool is_shared(const struct lun_config *lun, const struct lun_config *other)
{
	return lun->device[0] && !strcmp(lun->device, other->device);
}

/* Whether two units, or two files of one, are to have the same file. */
static int check_files(const struct lun_config *lun, const struct lun_config *other,
		       struct error_text *reason)
{
	bool self = lun == other || is_shared(lun, other);

	if (!self && !strcmp(lun->image, other->image))
		return error_set(reason, -EINVAL,
				 "logical units %u and %u have the same image %s; each needs its "
				 "own, or both name one [device NAME]",
				 other->number, lun->number, lun->image);
	if (!lun->nvram[0])
		return 0;
	if (!strcmp(lun->nvram, other->image))
		return error_set(reason, -EINVAL, "%s can't be both an image and an NVRAM file",
				 lun->nvram);
	if (!self && !strcmp(lun->nvram, other->nvram))
		return error_set(reason, -EINVAL,
				 "logical units %u and %u have the same NVRAM file %s; each needs "
				 "its own",
				 other->number, lun->number, lun->nvram);
	return 0;
}

uint64_t config_partition(const struct lun_config *lun)
{
	return lun->options.disk.partition ? lun->options.disk.partition : ENGINE_FIRST_ID;
}

/* What two units of one device can't both be. */
static int check_shared(const struct lun_config *lun, const struct lun_config *other,
			struct error_text *reason)
{
	bool is_disk = lun->type == &unit_types[UNIT_TYPE_DISK];

	if (lun == other || !is_shared(lun, other) || lun->type != other->type)
		return 0;
	if (!is_disk)
		return error_set(reason, -EINVAL,
				 "logical units %u and %u are both OSDs on device %s; it can have "
				 "one, which shows all of it",
				 other->number, lun->number, lun->device);
	if (config_partition(lun) == config_partition(other) &&
	    !strcmp(lun->options.disk.version, other->options.disk.version))
		return error_set(reason, -EINVAL,
				 "logical units %u and %u are both partition 0x%llx of device %s; "
				 "each disk needs its own, or a version of its own",
				 other->number, lun->number,
				 (unsigned long long)config_partition(lun), lun->device);
	return 0;
}

/* What a unit's schedule is about where it names no partition. */
static uint64_t scheduled_partition(const struct lun_config *lun, const struct schedule_rule *rule)
{
	bool is_disk = lun->type == &unit_types[UNIT_TYPE_DISK];

	return rule->partition ? rule->partition : is_disk ? config_partition(lun) : 0;
}

/* The words of a schedule are right: the key has been parsed. */
static struct schedule_rules rules_of(const struct lun_config *lun)
{
	struct schedule_rules rules = { .count = 0 };
	struct error_text ignored;

	if (lun->options.schedule[0])
		schedule_parse(lun->options.schedule, &rules, &ignored);
	return rules;
}

static int check_schedule(const struct lun_config *lun, struct error_text *reason)
{
	struct schedule_rules rules = rules_of(lun);

	if (lun->type != &unit_types[UNIT_TYPE_DISK])
		return 0;
	if (rules.count && lun->options.disk.version[0])
		return error_set(reason, -EINVAL,
				 "a disk with version never changes: snapshot_schedule is not "
				 "possible");
	for (unsigned int i = 0; i < rules.count; i++)
		if (rules.rule[i].partition)
			return error_set(reason, -EINVAL,
					 "snapshot_schedule of a disk is about its own partition: "
					 "partition IDs are for units with type = osd");
	return 0;
}

/* Two schedules of one partition would drop each other's versions. */
static int check_schedules(const struct lun_config *lun, const struct lun_config *other,
			   struct error_text *reason)
{
	struct schedule_rules rules = rules_of(lun), others = rules_of(other);

	if (lun == other || !is_shared(lun, other))
		return 0;
	for (unsigned int i = 0; i < rules.count * others.count; i++) {
		uint64_t partition = scheduled_partition(lun, &rules.rule[i / others.count]);

		if (partition == scheduled_partition(other, &others.rule[i % others.count]))
			return error_set(reason, -EINVAL,
					 "logical units %u and %u both have a snapshot_schedule "
					 "for partition 0x%llx of device %s",
					 other->number, lun->number, (unsigned long long)partition,
					 lun->device);
	}
	return 0;
}

int config_check_beside(const struct lun_config *lun, const struct lun_config *other,
			struct error_text *reason)
{
	int result = check_shared(lun, other, reason);

	return result ? result : check_schedules(lun, other, reason);
}

/* Keys of the other type of unit. */
static int check_type(const struct lun_config *lun, struct error_text *reason)
{
	static const struct osd_options none;
	const struct disk_options *disk = &lun->options.disk;
	bool is_disk = lun->type == &unit_types[UNIT_TYPE_DISK];

	if (!is_disk && (disk->partition || disk->bytes || disk->block_bytes || disk->version[0]))
		return error_set(reason, -EINVAL,
				 "partition, volume_size, block_size and version are of units with "
				 "type = disk");
	if (disk->version[0] && (disk->bytes || disk->block_bytes))
		return error_set(reason, -EINVAL,
				 "a disk with version is as its volume was then: volume_size and "
				 "block_size are not possible");
	if (is_disk && (lun->options.key_file[0] || lun->options.osd.layout ||
			memcmp(lun->options.osd.system_id, none.system_id, sizeof(none.system_id))))
		return error_set(reason, -EINVAL,
				 "key_file, layout and system_id are of units with type = osd");
	return check_schedule(lun, reason);
}

/* Gives a unit what its device has. */
static int take_device(struct config *config, struct lun_config *lun, struct error_text *reason)
{
	const struct lun_config *device;
	struct lun_options *options = &lun->options;

	if (!lun->device[0])
		return 0;
	device = config_find_device(config, lun->device);
	if (!device)
		return error_set(reason, -EINVAL, "there is no section [device %s]", lun->device);
	strcpy(lun->image, device->image);
	strcpy(lun->nvram, device->nvram);
	lun->size_bytes = device->size_bytes;
	lun->size_is_set = device->size_is_set;
	lun->geometry = device->geometry;
	options->nand = device->options.nand;
	options->engine = device->options.engine;
	options->scrub = device->options.scrub;
	return 0;
}

static int check_with_others(struct config *config, unsigned int number, struct error_text *reason)
{
	const struct lun_config *lun = &config->luns[number];
	int result = 0;

	for (unsigned int j = 0; !result && j <= number; j++) {
		result = check_files(lun, &config->luns[j], reason);
		if (!result && j < number)
			result = check_files(&config->luns[j], lun, reason);
		if (!result)
			result = config_check_beside(lun, &config->luns[j], reason);
	}
	return result;
}

static int complete_luns(struct config *config, struct error_text *reason, int *line)
{
	for (unsigned int i = 0; i < config->lun_count; i++) {
		struct lun_config *lun = &config->luns[i];
		int result;

		*line = lun->line;
		result = check_type(lun, reason);
		if (!result)
			result = take_device(config, lun, reason);
		if (!result)
			result = make_absolute(lun->image, PATH_MAX, config->state_dir, reason);
		if (!result && lun->options.key_file[0])
			result = make_absolute(lun->options.key_file, LUN_PATH_BYTES,
					       config->state_dir, reason);
		if (!result)
			result = check_with_others(config, i, reason);
		if (result)
			return result;
	}
	*line = 0;
	return 0;
}

/* A device that no unit names is a slip of the pen. */
static int check_devices(const struct config *config, struct error_text *reason, int *line)
{
	for (unsigned int i = 0; i < config->device_count; i++) {
		bool is_used = false;

		for (unsigned int lun = 0; lun < config->lun_count; lun++)
			is_used |= is_shared(&config->luns[lun], &config->devices[i]);
		*line = config->devices[i].line;
		if (!is_used)
			return error_set(reason, -EINVAL, "no logical unit has device = %s",
					 config->devices[i].device);
	}
	*line = 0;
	return 0;
}

const struct lun_config *config_first_of_device(const struct config *config,
						const struct lun_config *lun)
{
	for (const struct lun_config *other = config->luns; other < lun; other++)
		if (is_shared(lun, other))
			return other;
	return lun;
}

bool config_is_first_of_device(const struct config *config, const struct lun_config *lun)
{
	return config_first_of_device(config, lun) == lun;
}

/* ---- targets ---- */

void config_target_section(const struct target_config *target, char *text, size_t bytes)
{
	snprintf(text, bytes, "[target%s%s]", target->label[0] ? " " : "", target->label);
}

/* A secret stands in the configuration or in a file; and no user is without one. */
static int check_account(const struct chap_account *account, const char *section, const char *kind,
			 struct error_text *reason)
{
	bool has_secret = account->secret[0] || account->secret_file[0];

	if (account->secret[0] && account->secret_file[0])
		return error_set(reason, -EINVAL,
				 "%s has %s_secret and %s_secret_file: one of them", section, kind,
				 kind);
	if (!account->user[0] == !has_secret)
		return 0;
	return error_set(reason, -EINVAL,
			 "%s %s_user and %s_secret belong together; %s%s is missing", section, kind,
			 kind, kind, account->user[0] ? "_secret" : "_user");
}

static bool has_rules(const struct target_config *target)
{
	return target->chap.user[0] || target->mutual.user[0] || target->allow_addresses ||
	       target->allow_names;
}

static int check_target(const struct config *config, const struct target_config *target,
			struct error_text *reason)
{
	char section[CONFIG_DEVICE_BYTES + 16];
	int result;

	config_target_section(target, section, sizeof(section));
	if (target->label[0] && !config_has_units(config, target))
		return error_set(reason, -EINVAL, "no logical unit has target = %s", target->label);
	if (!config_has_units(config, target) && has_rules(target))
		return error_set(reason, -EINVAL,
				 "[target] says who may log in, and no logical unit is on it: all "
				 "have target = NAME");
	for (const struct target_config *other = config->targets; other < target; other++)
		if (!strcmp(other->name, target->name) &&
		    (other->label[0] || config_has_units(config, other)))
			return error_set(reason, -EINVAL, "two targets have the name %s",
					 target->name);
	result = check_account(&target->chap, section, "chap", reason);
	if (!result)
		result = check_account(&target->mutual, section, "mutual", reason);
	if (!result && target->mutual.user[0] && !target->chap.user[0])
		result = error_set(reason, -EINVAL,
				   "%s mutual_user needs chap_user: a target proves itself in "
				   "logins with CHAP only",
				   section);
	return result;
}

/* [target] is there for the portals, where all units are on others. */
static void drop_unused_target(struct config *config)
{
	if (config->target_count == 1 || config_has_units(config, &config->targets[0]))
		return;
	memmove(config->targets, config->targets + 1,
		--config->target_count * sizeof(config->targets[0]));
}

static int complete_targets(struct config *config, struct error_text *reason, int *line)
{
	int result = 0;

	for (unsigned int i = 0; i < config->lun_count; i++) {
		*line = config->luns[i].line;
		if (!config_find_target(config, config->luns[i].target))
			return error_set(reason, -EINVAL, "there is no section [target %s]",
					 config->luns[i].target);
	}
	for (unsigned int i = 0; !result && i < config->target_count; i++) {
		struct target_config *target = &config->targets[i];

		*line = target->line;
		result = check_target(config, target, reason);
		/* Without a list, everybody may log in. */
		if (target->allow_addresses == 0 && target->allow_names == 0) {
			strcpy(target->allow_address[0], "ALL");
			target->allow_addresses = 1;
		}
	}
	if (result)
		return result;
	*line = 0;
	drop_unused_target(config);
	return check_account(&config->discovery, "[target]", "discovery", reason);
}

/* All addresses of a family. */
static bool is_wildcard(const struct portal *portal)
{
	return !strcmp(portal->address, "0.0.0.0") || !strcmp(portal->address, "::");
}

/* Whether nobody can listen at both. */
static bool is_same_place(const struct portal *a, const struct portal *b)
{
	bool six[2] = { strchr(a->address, ':') != NULL, strchr(b->address, ':') != NULL };

	return a->port == b->port && six[0] == six[1] &&
	       (!strcmp(a->address, b->address) || is_wildcard(a) || is_wildcard(b));
}

static int check_portals(const struct config *config, struct error_text *reason)
{
	char text[2][CONFIG_PORTAL_BYTES];

	for (unsigned int i = 0; i < config->portal_count; i++) {
		const struct portal *portal = &config->portals[i];

		config_portal(portal, text[0]);
		config_portal(&config->metrics, text[1]);
		if (config->metrics.port && is_same_place(portal, &config->metrics))
			return error_set(reason, -EINVAL, "[daemon] metrics has %s, where %s is",
					 text[1], text[0]);
		for (unsigned int j = 0; j < i; j++) {
			config_portal(&config->portals[j], text[1]);
			if (!strcmp(text[0], text[1]))
				return error_set(reason, -EINVAL, "[target] portal has %s twice",
						 text[0]);
			if (is_same_place(portal, &config->portals[j]))
				return error_set(reason, -EINVAL,
						 "[target] portal has %s and %s, and one has all "
						 "addresses",
						 text[1], text[0]);
		}
	}
	return 0;
}

int config_complete(struct config *config, struct error_text *error)
{
	struct error_text reason = { "" };
	char here[PATH_MAX];
	int line = 0, result;

	if (!getcwd(here, sizeof(here)))
		return error_set(error, -errno, "the working directory has no name: %s",
				 strerror(errno));
	result = make_absolute(config->state_dir, PATH_MAX, here, &reason);
	if (!result)
		result = make_absolute(config->run_dir, PATH_MAX, here, &reason);
	if (!result)
		result = complete_luns(config, &reason, &line);
	if (!result)
		result = check_devices(config, &reason, &line);
	if (!result)
		result = complete_targets(config, &reason, &line);
	if (!result)
		result = check_portals(config, &reason);
	if (!result && (config->limits.transfer > config->limits.session_memory ||
			config->limits.session_memory > config->limits.memory))
		result = error_set(&reason, -EINVAL,
				   "[limits] transfer may not be above session_memory, nor that "
				   "above memory");
	if (!result)
		return 0;
	if (line)
		return error_set(error, result, "%s:%d: %s", config->source, line, reason.text);
	return error_set(error, result, "%s: %s", config->source, reason.text);
}

socklen_t portal_address(const struct portal *portal, struct sockaddr_storage *address)
{
	struct sockaddr_in *four = (struct sockaddr_in *)address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, portal->address, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(portal->port);
		return sizeof(*four);
	}
	inet_pton(AF_INET6, portal->address, &six->sin6_addr);
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(portal->port);
	return sizeof(*six);
}

void config_portal(const struct portal *portal, char text[CONFIG_PORTAL_BYTES])
{
	bool six = strchr(portal->address, ':') != NULL;

	snprintf(text, CONFIG_PORTAL_BYTES, "%s%s%s:%u", six ? "[" : "", portal->address,
		 six ? "]" : "", portal->port);
}

void config_portals(const struct config *config, const char *before,
		    char text[CONFIG_PORTALS_BYTES])
{
	size_t used = 0;

	for (unsigned int i = 0; i < config->portal_count; i++) {
		char portal[CONFIG_PORTAL_BYTES];

		config_portal(&config->portals[i], portal);
		used += (size_t)snprintf(text + used, CONFIG_PORTALS_BYTES - used, "%s%s%s",
					 i ? "," : "", before, portal);
	}
}
