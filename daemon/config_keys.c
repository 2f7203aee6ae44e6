/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The keys of the configuration file, and how each value is read. */
#include "daemon/config_keys.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "daemon/config.h"

/* ---- values ---- */

static int parse_number(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	uint32_t number;
	int result = lun_option_number(value, key->least, key->most, &number, error);

	if (!result)
		memcpy(base + key->offset, &number, sizeof(number));
	return result;
}

static int parse_power(const struct config_key *key, const char *value, char *base,
		       struct error_text *error)
{
	uint32_t number;
	int result = lun_option_number(value, key->least, key->most, &number, error);

	if (!result && !is_power_of_two(number))
		result = error_set(error, -EINVAL, "%s is not a power of two", value);
	return result ? result : parse_number(key, value, base, error);
}

/* 0, for the engine's choice, or what the next parser takes. */
static int parse_or_default(config_key_parser *next, const struct config_key *key,
			    const char *value, char *base, struct error_text *error)
{
	struct error_text reason = { "" };
	int result;

	if (strcmp(value, "0") == 0) {
		memset(base + key->offset, 0, sizeof(uint32_t));
		return 0;
	}
	result = next(key, value, base, &reason);
	return result ? error_set(error, result, "%s; 0 is the engine's choice", reason.text) : 0;
}

static int parse_number_or_default(const struct config_key *key, const char *value, char *base,
				   struct error_text *error)
{
	return parse_or_default(parse_number, key, value, base, error);
}

static int parse_power_or_default(const struct config_key *key, const char *value, char *base,
				  struct error_text *error)
{
	return parse_or_default(parse_power, key, value, base, error);
}

/* The module parses these values too. The option of a unit has the name of the key. */
static int parse_option(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	struct lun_config *lun = (struct lun_config *)(void *)base;

	return lun_option_set(&lun->options, key->name, value, error);
}

static int parse_hot_rows(const struct config_key *key, const char *value, char *base,
			  struct error_text *error)
{
	enum bloom_hot_rows *hot_rows = (void *)(base + key->offset);

	if (bloom_hot_rows_parse(value, hot_rows))
		return error_set(error, -EINVAL, "'%s' is neither spread nor finalise", value);
	return 0;
}

static int parse_index(const struct config_key *key, const char *value, char *base,
		       struct error_text *error)
{
	enum index_kind *index = (void *)(base + key->offset);

	if (index_kind_parse(value, index))
		return error_set(error, -EINVAL, "'%s' is neither bloom nor ribbon", value);
	return 0;
}

/* auto, the engine's choice; or a number, where 0 says none. */
static int parse_parity(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	uint32_t *parity = (void *)(base + key->offset);
	int result;

	*parity = 0;
	if (strcmp(value, "auto") == 0)
		return 0;
	result = parse_number(key, value, base, error);
	if (!result && *parity == 0)
		*parity = MUNINN_PARITY_NONE;
	return result;
}

/* Texts end up in tgtd's parameter strings, which tgtd splits at commas. */
static int copy_text(const char *value, char *to, size_t bytes, struct error_text *error)
{
	size_t length = strlen(value);

	if (length == 0)
		return error_set(error, -EINVAL, "the value is empty");
	if (length >= bytes)
		return error_set(error, -EINVAL, "the value is longer than %zu bytes", bytes - 1);
	if (strchr(value, ','))
		return error_set(error, -EINVAL,
				 "'%s': no comma is possible here (tgtd splits at it)", value);
	memcpy(to, value, length + 1);
	return 0;
}

static int parse_path(const struct config_key *key, const char *value, char *base,
		      struct error_text *error)
{
	return copy_text(value, base + key->offset, PATH_MAX, error);
}

static int parse_absolute_path(const struct config_key *key, const char *value, char *base,
			       struct error_text *error)
{
	if (value[0] != '/')
		return error_set(error, -EINVAL, "'%s' is not an absolute path (it begins with /)",
				 value);
	return parse_path(key, value, base, error);
}

static int parse_allocator(const struct config_key *key, const char *value, char *base,
			   struct error_text *error)
{
	if (value[0] != '/' && strcmp(value, ALLOCATOR_JEMALLOC) != 0 &&
	    strcmp(value, ALLOCATOR_SYSTEM) != 0)
		return error_set(error, -EINVAL,
				 "'%s' is neither jemalloc nor system nor the absolute path of a "
				 "library",
				 value);
	return parse_path(key, value, base, error);
}

static bool is_name(const char *value)
{
	for (const char *c = value; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(".:-_", *c))
			return false;
	return *value != '\0';
}

/* RFC 3720 3.2.6: a type prefix, then letters, digits, dot, colon and hyphen. */
static int check_iscsi_name(const char *value, struct error_text *error)
{
	bool typed = !strncmp(value, "iqn.", 4) || !strncmp(value, "eui.", 4) ||
		     !strncmp(value, "naa.", 4);

	if (typed && is_name(value))
		return 0;
	return error_set(error, -EINVAL,
			 "'%s' is not an iSCSI name: iqn.YEAR-MONTH.DOMAIN:TEXT of letters, digits "
			 "and . : -",
			 value);
}

static int parse_target_name(const struct config_key *key, const char *value, char *base,
			     struct error_text *error)
{
	int result = check_iscsi_name(value, error);

	return result ? result : copy_text(value, base + key->offset, CONFIG_NAME_BYTES, error);
}

/* ADDRESS:PORT or [ADDRESS]:PORT, numeric. The address gets the form that tgtd gives it. */
static int read_portal(const char *value, struct portal *portal, struct error_text *error)
{
	const char *colon = strrchr(value, ':');
	bool bracketed = value[0] == '[';
	struct in6_addr any;
	char address[sizeof(portal->address)];
	size_t length;

	if (!colon || colon == value || (bracketed && colon[-1] != ']'))
		return error_set(error, -EINVAL, "'%s' is not ADDRESS:PORT or [ADDRESS]:PORT",
				 value);
	length = (size_t)(colon - value) - (bracketed ? 2 : 0);
	if (length >= sizeof(address))
		return error_set(error, -EINVAL, "'%s' is not an IP address", value);
	memcpy(address, value + (bracketed ? 1 : 0), length);
	address[length] = '\0';
	if (inet_pton(bracketed ? AF_INET6 : AF_INET, address, &any) != 1)
		return error_set(error, -EINVAL, "'%s' is not an %s", address,
				 bracketed ? "IPv6 address"
					   : "IPv4 address (IPv6 goes in brackets)");
	inet_ntop(bracketed ? AF_INET6 : AF_INET, &any, portal->address, sizeof(portal->address));
	return config_parse_port(colon + 1, &portal->port, error);
}

/* One alone. */
static int parse_address_and_port(const struct config_key *key, const char *value, char *base,
				  struct error_text *error)
{
	return read_portal(value, (struct portal *)(void *)(base + key->offset), error);
}

static int parse_portal(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	struct config *config = (struct config *)(void *)base;
	char copy[CONFIG_LINE_BYTES], *rest = copy, *entry;
	int result = 0;

	(void)key;
	snprintf(copy, sizeof(copy), "%s", value);
	config->portal_count = 0;
	while (!result && (entry = strsep(&rest, ", \t"))) {
		if (!*entry)
			continue;
		if (config->portal_count == CONFIG_PORTALS_MAX)
			return error_set(error, -EINVAL, "more than %d portals",
					 CONFIG_PORTALS_MAX);
		result = read_portal(entry, &config->portals[config->portal_count], error);
		config->portal_count += result == 0;
	}
	if (!result && config->portal_count == 0)
		return error_set(error, -EINVAL, "the value is empty");
	return result;
}

/* An address, optionally with /PREFIX, or ALL. */
static int check_initiator_address(const char *value, struct error_text *error)
{
	char address[64];
	const char *slash = strchr(value, '/');
	size_t length = slash ? (size_t)(slash - value) : strlen(value);
	struct in6_addr any;
	uint32_t prefix;
	bool six;

	if (!strcmp(value, "ALL"))
		return 0;
	if (length < sizeof(address)) {
		memcpy(address, value, length);
		address[length] = '\0';
		six = inet_pton(AF_INET6, address, &any) == 1;
		if (six || inet_pton(AF_INET, address, &any) == 1) {
			if (!slash)
				return 0;
			return lun_option_number(slash + 1, 0, six ? 128 : 32, &prefix, error);
		}
	}
	return error_set(error, -EINVAL, "'%s' is not ALL, an IP address or ADDRESS/PREFIX", value);
}

typedef int entry_check(const char *value, struct error_text *error);

static bool is_listed(const char *entry, const char *list, unsigned int count, size_t bytes)
{
	for (unsigned int i = 0; i < count; i++)
		if (strcmp(entry, list + i * bytes) == 0)
			return true;
	return false;
}

/* Splits at commas and spaces into `list`, an array of CONFIG_LIST_MAX texts of `bytes` bytes. */
static int parse_list(const char *value, entry_check *check, char *list, size_t bytes,
		      unsigned int *count, struct error_text *error)
{
	char copy[CONFIG_LINE_BYTES], *rest = copy, *entry;
	int result = 0;

	snprintf(copy, sizeof(copy), "%s", value);
	*count = 0;
	while (!result && (entry = strsep(&rest, ", \t"))) {
		if (!*entry)
			continue;
		if (*count == CONFIG_LIST_MAX)
			return error_set(error, -EINVAL, "more than %d entries", CONFIG_LIST_MAX);
		result = check(entry, error);
		if (!result)
			result = copy_text(entry, list + *count * bytes, bytes, error);
		/* tgtd refuses an entry that it has. */
		if (!result && !is_listed(entry, list, *count, bytes))
			++*count;
	}
	if (!result && *count == 0)
		return error_set(error, -EINVAL, "the value is empty");
	return result;
}

static int parse_allow_address(const struct config_key *key, const char *value, char *base,
			       struct error_text *error)
{
	struct target_config *target = (struct target_config *)(void *)base;

	(void)key;
	return parse_list(value, check_initiator_address, target->allow_address[0],
			  sizeof(target->allow_address[0]), &target->allow_addresses, error);
}

static int parse_allow_name(const struct config_key *key, const char *value, char *base,
			    struct error_text *error)
{
	struct target_config *target = (struct target_config *)(void *)base;

	(void)key;
	return parse_list(value, check_iscsi_name, target->allow_name[0],
			  sizeof(target->allow_name[0]), &target->allow_names, error);
}

bool config_is_device_name(const char *name)
{
	return is_name(name) && strlen(name) < CONFIG_DEVICE_BYTES;
}

/* A section's name. */
static int copy_name(const struct config_key *key, const char *value, char *base, const char *what,
		     struct error_text *error)
{
	if (!config_is_device_name(value))
		return error_set(error, -EINVAL,
				 "'%s' is no name of a %s: 1 to %d letters, digits and . : - _",
				 value, what, CONFIG_DEVICE_BYTES - 1);
	return copy_text(value, base + key->offset, key->most, error);
}

static int parse_device(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	return copy_name(key, value, base, "device", error);
}

static int parse_target(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	return copy_name(key, value, base, "target", error);
}

static int parse_word(const struct config_key *key, const char *value, char *base,
		      struct error_text *error)
{
	if (!is_name(value))
		return error_set(error, -EINVAL, "'%s': only letters, digits and . : - _", value);
	return copy_text(value, base + key->offset, key->most, error);
}

/* RFC 3720 8.2.1 wants at least 96 bits. The secret never gets into a message. */
int config_check_secret(const char *secret, struct error_text *error)
{
	size_t length = strlen(secret);

	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)secret[i]) || secret[i] == ',')
			return error_set(
				error, -EINVAL,
				"the secret has a space, a comma or a character that is not "
				"printable ASCII");
	if (length < 12 || length >= CONFIG_SECRET_BYTES)
		return error_set(error, -EINVAL, "the secret must have 12 to %d characters",
				 CONFIG_SECRET_BYTES - 1);
	return 0;
}

static int parse_secret(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	int result = config_check_secret(value, error);

	if (!result)
		strcpy(base + key->offset, value);
	return result;
}

/* A file, or the name of a credential that systemd gives to the service. */
static int parse_secret_file(const struct config_key *key, const char *value, char *base,
			     struct error_text *error)
{
	if (value[0] != '/' && (strchr(value, '/') || value[0] == '.'))
		return error_set(error, -EINVAL,
				 "'%s' is neither an absolute path (it begins with /) nor the name "
				 "of a credential (it has no /)",
				 value);
	return parse_path(key, value, base, error);
}

static int parse_log_level(const struct config_key *key, const char *value, char *base,
			   struct error_text *error)
{
	enum log_level level;

	if (!log_level_parse(value, &level)) {
		memcpy(base + key->offset, &level, sizeof(level));
		return 0;
	}
	return error_set(error, -EINVAL, "'%s' is not error, warning, info or debug", value);
}

static int parse_type(const struct config_key *key, const char *value, char *base,
		      struct error_text *error)
{
	const struct unit_type **type = (const struct unit_type **)(void *)(base + key->offset);
	char words[128] = "";
	size_t length = 0;

	for (size_t i = 0; i < UNIT_TYPES; i++) {
		if (!strcmp(unit_types[i].word, value)) {
			*type = &unit_types[i];
			return 0;
		}
		if (length < sizeof(words))
			length += (size_t)snprintf(words + length, sizeof(words) - length, "%s%s",
						   length ? ", " : "", unit_types[i].word);
	}
	return error_set(error, -EINVAL, "'%s' is not a type of logical unit; there is: %s", value,
			 words);
}

static int parse_size(const struct config_key *key, const char *value, char *base,
		      struct error_text *error)
{
	struct lun_config *lun = (struct lun_config *)(void *)base;
	int result = lun_option_size(value, &lun->size_bytes, error);

	(void)key;
	lun->size_is_set |= !result;
	return result;
}

/* A size of memory; the key's limits are MiB. */
static int parse_memory(const struct config_key *key, const char *value, char *base,
			struct error_text *error)
{
	uint64_t bytes;
	int result = lun_option_size(value, &bytes, error);

	if (!result && (bytes < (uint64_t)key->least << 20 || bytes > (uint64_t)key->most << 20))
		return error_set(error, -EINVAL, "%s: %uM at least, %uM at most", value, key->least,
				 key->most);
	if (!result)
		memcpy(base + key->offset, &bytes, sizeof(bytes));
	return result;
}

int config_parse_port(const char *text, uint16_t *port, struct error_text *error)
{
	uint32_t number;
	int result = lun_option_number(text, 1, UINT16_MAX, &number, error);

	if (!result)
		*port = (uint16_t)number;
	return result;
}

/* ---- keys ---- */

#define IN_CONFIG(field)  offsetof(struct config, field)
#define IN_TARGET(field)  offsetof(struct target_config, field)
#define IN_LIMITS(field)  offsetof(struct config, limits.field)
#define IN_LUN(field)     offsetof(struct lun_config, field)
#define IN_ENGINE(field)  offsetof(struct lun_config, options.engine.field)
#define TEXT_BYTES(field) sizeof(((struct config *)NULL)->field)
#define USER_BYTES        sizeof(((struct chap_account *)NULL)->user)

const struct config_key config_keys[] = {
	{ "daemon", "state_dir", parse_absolute_path, IN_CONFIG(state_dir), 0, 0 },
	{ "daemon", "run_dir", parse_absolute_path, IN_CONFIG(run_dir), 0, 0 },
	{ "daemon", "tgtd", parse_absolute_path, IN_CONFIG(tgtd), 0, 0 },
	{ "daemon", "module", parse_absolute_path, IN_CONFIG(module), 0, 0 },
	{ "daemon", "allocator", parse_allocator, IN_CONFIG(allocator), 0, 0 },
	{ "daemon", "log_level", parse_log_level, IN_CONFIG(log_level), 0, 0 },
	{ "daemon", "stop_timeout", parse_number, IN_CONFIG(stop_timeout), 1, 3600 },
	{ "daemon", "watchdog", parse_number, IN_CONFIG(watchdog), 1, 300 },
	{ "daemon", "admin_group", parse_word, IN_CONFIG(admin_group), 0, TEXT_BYTES(admin_group) },
	{ "daemon", "metrics", parse_address_and_port, IN_CONFIG(metrics), 0, 0 },

	{ CONFIG_EACH_TARGET, "name", parse_target_name, IN_TARGET(name), 0, 0 },
	{ CONFIG_EACH_TARGET, "allow_address", parse_allow_address, 0, 0, 0 },
	{ CONFIG_EACH_TARGET, "allow_name", parse_allow_name, 0, 0, 0 },
	{ CONFIG_EACH_TARGET, "chap_user", parse_word, IN_TARGET(chap.user), 0, USER_BYTES },
	{ CONFIG_EACH_TARGET, "chap_secret", parse_secret, IN_TARGET(chap.secret), 0, 0 },
	{ CONFIG_EACH_TARGET, "chap_secret_file", parse_secret_file, IN_TARGET(chap.secret_file), 0,
	  0 },
	{ CONFIG_EACH_TARGET, "mutual_user", parse_word, IN_TARGET(mutual.user), 0, USER_BYTES },
	{ CONFIG_EACH_TARGET, "mutual_secret", parse_secret, IN_TARGET(mutual.secret), 0, 0 },
	{ CONFIG_EACH_TARGET, "mutual_secret_file", parse_secret_file,
	  IN_TARGET(mutual.secret_file), 0, 0 },

	{ "target", "portal", parse_portal, 0, 0, 0 },
	{ "target", "discovery_user", parse_word, IN_CONFIG(discovery.user), 0, USER_BYTES },
	{ "target", "discovery_secret", parse_secret, IN_CONFIG(discovery.secret), 0, 0 },
	{ "target", "discovery_secret_file", parse_secret_file, IN_CONFIG(discovery.secret_file), 0,
	  0 },

	{ "limits", "connections", parse_number, IN_LIMITS(connections), 1, 4096 },
	{ "limits", "connections_per_address", parse_number, IN_LIMITS(connections_per_address), 1,
	  4096 },
	{ "limits", "login_timeout", parse_number, IN_LIMITS(login_timeout), 1, 3600 },
	{ "limits", "stall_timeout", parse_number, IN_LIMITS(stall_timeout), 1, 3600 },
	{ "limits", "commands", parse_number, IN_LIMITS(commands), 128, LIMITS_COMMANDS_MAX },
	{ "limits", "transfer", parse_memory, IN_LIMITS(transfer), 1, 1024 },
	{ "limits", "session_memory", parse_memory, IN_LIMITS(session_memory), 1, 1 << 20 },
	{ "limits", "memory", parse_memory, IN_LIMITS(memory), 1, 1 << 20 },

	{ "nand", "backend", parse_option, 0, 0, 0 },
	{ "nand", "page_bytes", parse_power, IN_LUN(geometry.page_bytes), 512,
	  CONFIG_PAGE_BYTES_MAX },
	{ "nand", "spare_bytes", parse_number, IN_LUN(geometry.spare_bytes), 64, 4096 },
	{ "nand", "pages_per_block", parse_number, IN_LUN(geometry.pages_per_block), 8, 1024 },
	{ "nand", "channels", parse_number, IN_LUN(geometry.channels), 1, 64 },
	{ "nand", "dies_per_channel", parse_number, IN_LUN(geometry.dies_per_channel), 1, 64 },

	{ "engine", "engine", parse_option, 0, 0, 0 },
	{ "engine", "index", parse_index, IN_ENGINE(muninn.index), 0, 0 },
	{ "engine", "rows", parse_power_or_default, IN_ENGINE(muninn.rows), 1, 4096 },
	{ "engine", "segment_pages", parse_power_or_default, IN_ENGINE(muninn.segment_pages), 8,
	  4096 },
	{ "engine", "record_bytes", parse_number_or_default, IN_ENGINE(muninn.record_bytes), 64,
	  CONFIG_PAGE_BYTES_MAX },
	{ "engine", "fpr_millionths", parse_number_or_default,
	  IN_ENGINE(muninn.bloom.fpr_millionths), 1, 500000 },
	{ "engine", "fpr_factor_permille", parse_number_or_default,
	  IN_ENGINE(muninn.bloom.fpr_factor_permille), 1000, 4000 },
	{ "engine", "over_provision_permille", parse_number,
	  IN_ENGINE(records.over_provision_permille), 0, 900 },
	{ "engine", "parity", parse_parity, IN_ENGINE(muninn.parity), 0, MUNINN_PARITY_MAX },
	{ "engine", "hot_rows", parse_hot_rows, IN_ENGINE(muninn.bloom.hot_rows), 0, 0 },
	{ "engine", "onode_cache", parse_option, 0, 0, 0 },
	{ "engine", "directory_cache", parse_option, 0, 0, 0 },
	{ "engine", "version_cache", parse_option, 0, 0, 0 },
	{ "engine", "durability", parse_option, 0, 0, 0 },
	{ "engine", "merge", parse_option, 0, 0, 0 },
	{ "engine", "tables", parse_option, 0, 0, 0 },
	{ "engine", "history_interval", parse_option, 0, 0, 0 },
	{ "engine", "inline_bytes", parse_option, 0, 0, 0 },
	{ "engine", "scrub_days", parse_option, 0, 0, 0 },
	{ "engine", "scrub_rate", parse_option, 0, 0, 0 },

	{ "lun", "type", parse_type, IN_LUN(type), 0, 0 },
	{ "lun", "device", parse_device, IN_LUN(device), 0, CONFIG_DEVICE_BYTES },
	{ "lun", "target", parse_target, IN_LUN(target), 0, CONFIG_DEVICE_BYTES },
	{ "lun", "threads", parse_option, 0, 0, 0 },
	{ "lun", "layout", parse_option, 0, 0, 0 },
	{ "lun", "serial", parse_option, 0, 0, 0 },
	{ "lun", "key_file", parse_option, 0, 0, 0 },
	{ "lun", "system_id", parse_option, 0, 0, 0 },
	{ "lun", "partition", parse_option, 0, 0, 0 },
	{ "lun", "volume_size", parse_option, 0, 0, 0 },
	{ "lun", "block_size", parse_option, 0, 0, 0 },
	{ "lun", "version", parse_option, 0, 0, 0 },
	{ "lun", "snapshot_schedule", parse_option, 0, 0, 0 },

	{ "device", "image", parse_path, IN_LUN(image), 0, 0 },
	{ "device", "nvram", parse_absolute_path, IN_LUN(nvram), 0, 0 },
	{ "device", "size", parse_size, 0, 0, 0 },
	{ "device", "recover_without_nvram", parse_option, 0, 0, 0 },
};

#define KEYS (sizeof(config_keys) / sizeof(config_keys[0]))
static_assert(KEYS <= CONFIG_KEYS_MAX, "a set has them all");

const size_t config_key_count = KEYS;

bool config_key_is_of_target(const struct config_key *key)
{
	return !strcmp(key->section, CONFIG_EACH_TARGET);
}

bool config_key_is_of_unit(const struct config_key *key)
{
	return !strcmp(key->section, "lun") || config_key_is_of_device(key);
}

bool config_key_is_of_device(const struct config_key *key)
{
	return !strcmp(key->section, "device") || !strcmp(key->section, "nand") ||
	       !strcmp(key->section, "engine");
}

const char *config_key_name(size_t i)
{
	return i < KEYS ? config_keys[i].name : NULL;
}
