/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "daemon/config.h"

#include "osd/keys_file.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX 4096 /* line end and NUL included */
#define SECTION_BYTES  64   /* more than any name there is */

struct key;
typedef int key_parser(const struct key *key, const char *value, char *base,
		       struct error_text *error);

/* One key of the file. `offset` counts from struct config, in [lun N] from struct lun_config. */
struct key {
	const char *section;
	const char *name;
	key_parser *parse;
	size_t offset;
	uint32_t least, most; /* numbers: limits; texts: most = bytes with NUL */
};

/* ---- values ---- */

static int parse_number(const struct key *key, const char *value, char *base,
			struct error_text *error)
{
	uint32_t number;
	int result = lun_option_number(value, key->least, key->most, &number, error);

	if (!result)
		memcpy(base + key->offset, &number, sizeof(number));
	return result;
}

static int parse_durability(const struct key *key, const char *value, char *base,
			    struct error_text *error)
{
	return lun_option_choice(value, "process", "host", (bool *)(base + key->offset), error);
}

static int parse_merge(const struct key *key, const char *value, char *base,
		       struct error_text *error)
{
	return lun_option_choice(value, "auto", "manual", (bool *)(base + key->offset), error);
}

static int parse_layout(const struct key *key, const char *value, char *base,
			struct error_text *error)
{
	struct osd_options *osd = (struct osd_options *)(base + key->offset);
	bool packed = false;
	int result = lun_option_choice(value, "flat", "packed", &packed, error);

	osd->layout = packed;
	return result;
}

static int parse_history_interval(const struct key *key, const char *value, char *base,
				  struct error_text *error)
{
	return lun_option_history_interval(value, (uint32_t *)(base + key->offset), error);
}

static int parse_yes(const struct key *key, const char *value, char *base, struct error_text *error)
{
	return lun_option_choice(value, "no", "yes", (bool *)(base + key->offset), error);
}

static int parse_tables(const struct key *key, const char *value, char *base,
			struct error_text *error)
{
	return lun_option_tables(value, (uint32_t *)(void *)(base + key->offset), error);
}

static int parse_hot_rows(const struct key *key, const char *value, char *base,
			  struct error_text *error)
{
	bool keep;
	int result = lun_option_choice(value, "finalise", "keep", &keep, error);

	if (!result)
		*(enum engine_hot_rows *)(void *)(base + key->offset) =
			keep ? ENGINE_HOT_ROWS_KEEP : ENGINE_HOT_ROWS_FINALISE;
	return result;
}

/* Texts end up in tgtd's parameter strings, which are split at commas. */
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

static int parse_path(const struct key *key, const char *value, char *base,
		      struct error_text *error)
{
	return copy_text(value, base + key->offset, PATH_MAX, error);
}

static int parse_absolute_path(const struct key *key, const char *value, char *base,
			       struct error_text *error)
{
	if (value[0] != '/')
		return error_set(error, -EINVAL, "'%s' is not an absolute path (it begins with /)",
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

static int parse_target_name(const struct key *key, const char *value, char *base,
			     struct error_text *error)
{
	int result = check_iscsi_name(value, error);

	return result ? result : copy_text(value, base + key->offset, CONFIG_NAME_BYTES, error);
}

/* ADDRESS:PORT or [ADDRESS]:PORT, numeric. */
static int parse_portal(const struct key *key, const char *value, char *base,
			struct error_text *error)
{
	struct config *config = (struct config *)base;
	const char *colon = strrchr(value, ':');
	bool bracketed = value[0] == '[';
	struct in6_addr any;
	char address[sizeof(config->address)];
	size_t length;

	(void)key;
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
	memcpy(config->address, address, length + 1);
	return config_parse_port(colon + 1, &config->port, error);
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

/* Splits at commas and spaces into `list`, an array of CONFIG_LIST_MAX texts of `bytes` bytes. */
static int parse_list(const char *value, entry_check *check, char *list, size_t bytes,
		      unsigned int *count, struct error_text *error)
{
	char copy[LINE_BYTES_MAX], *rest = copy, *entry;
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
		++*count;
	}
	if (!result && *count == 0)
		return error_set(error, -EINVAL, "the value is empty");
	return result;
}

static int parse_allow_address(const struct key *key, const char *value, char *base,
			       struct error_text *error)
{
	struct config *config = (struct config *)base;

	(void)key;
	return parse_list(value, check_initiator_address, config->allow_address[0],
			  sizeof(config->allow_address[0]), &config->allow_addresses, error);
}

static int parse_allow_name(const struct key *key, const char *value, char *base,
			    struct error_text *error)
{
	struct config *config = (struct config *)base;

	(void)key;
	return parse_list(value, check_iscsi_name, config->allow_name[0],
			  sizeof(config->allow_name[0]), &config->allow_names, error);
}

static int parse_chap_user(const struct key *key, const char *value, char *base,
			   struct error_text *error)
{
	if (!is_name(value))
		return error_set(error, -EINVAL, "'%s': only letters, digits and . : - _", value);
	return copy_text(value, base + key->offset, key->most, error);
}

/* RFC 3720 8.2.1 wants 96 bits at least. The secret never gets into a message. */
static int parse_chap_secret(const struct key *key, const char *value, char *base,
			     struct error_text *error)
{
	size_t length = strlen(value);

	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)value[i]) || value[i] == ',')
			return error_set(
				error, -EINVAL,
				"the secret has a space, a comma or a character that is not "
				"printable ASCII");
	if (length < 12 || length >= key->most)
		return error_set(error, -EINVAL, "the secret must have 12 to %u characters",
				 key->most - 1);
	memcpy(base + key->offset, value, length + 1);
	return 0;
}

static int parse_log_level(const struct key *key, const char *value, char *base,
			   struct error_text *error)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(value, names[i])) {
			enum log_level level = (enum log_level)i;

			memcpy(base + key->offset, &level, sizeof(level));
			return 0;
		}
	return error_set(error, -EINVAL, "'%s' is not error, warning, info or debug", value);
}

static int parse_type(const struct key *key, const char *value, char *base,
		      struct error_text *error)
{
	(void)key;
	(void)base;
	if (strcmp(value, "osd"))
		return error_set(error, -EINVAL,
				 "'%s' is not a type of logical unit; there is: osd", value);
	return 0;
}

static int parse_size(const struct key *key, const char *value, char *base,
		      struct error_text *error)
{
	uint64_t bytes;
	int result = config_parse_size(value, &bytes, error);

	if (!result)
		memcpy(base + key->offset, &bytes, sizeof(bytes));
	return result;
}

static int parse_serial(const struct key *key, const char *value, char *base,
			struct error_text *error)
{
	return lun_option_serial(value, (struct osd_options *)(base + key->offset), error);
}

static int parse_key_file(const struct key *key, const char *value, char *base,
			  struct error_text *error)
{
	return lun_option_key_file(value, base + key->offset, error);
}

static int parse_system_id(const struct key *key, const char *value, char *base,
			   struct error_text *error)
{
	return lun_option_system_id(value, (struct osd_options *)(base + key->offset), error);
}

int config_parse_size(const char *text, uint64_t *bytes, struct error_text *error)
{
	static const char suffixes[] = "KMGT";
	unsigned long long number;
	unsigned int shift = 0;
	const char *suffix;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*end && (suffix = strchr(suffixes, toupper((unsigned char)*end)))) {
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
		end++;
	}
	if (!isdigit((unsigned char)text[0]) || *end || errno)
		return error_set(error, -EINVAL,
				 "'%s' is not a size: bytes, or a number with K, M, G or T", text);
	if (number > CONFIG_SIZE_MAX >> shift || number << shift < CONFIG_SIZE_MIN)
		return error_set(error, -EINVAL, "size %s: 1M at least, 1024T at most", text);
	*bytes = number << shift;
	return 0;
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
#define IN_LUN(field)     offsetof(struct lun_config, field)
#define TEXT_BYTES(field) sizeof(((struct config *)NULL)->field)

static const struct key keys[] = {
	{ "daemon", "state_dir", parse_absolute_path, IN_CONFIG(state_dir), 0, 0 },
	{ "daemon", "run_dir", parse_absolute_path, IN_CONFIG(run_dir), 0, 0 },
	{ "daemon", "tgtd", parse_absolute_path, IN_CONFIG(tgtd), 0, 0 },
	{ "daemon", "module", parse_absolute_path, IN_CONFIG(module), 0, 0 },
	{ "daemon", "log_level", parse_log_level, IN_CONFIG(log_level), 0, 0 },

	{ "target", "name", parse_target_name, IN_CONFIG(target_name), 0, 0 },
	{ "target", "portal", parse_portal, 0, 0, 0 },
	{ "target", "allow_address", parse_allow_address, 0, 0, 0 },
	{ "target", "allow_name", parse_allow_name, 0, 0, 0 },
	{ "target", "chap_user", parse_chap_user, IN_CONFIG(chap_user), 0, TEXT_BYTES(chap_user) },
	{ "target", "chap_secret", parse_chap_secret, IN_CONFIG(chap_secret), 0,
	  TEXT_BYTES(chap_secret) },

	{ "nand", "page_bytes", parse_number, IN_CONFIG(geometry.page_bytes), 512, 65536 },
	{ "nand", "spare_bytes", parse_number, IN_CONFIG(geometry.spare_bytes), 64, 4096 },
	{ "nand", "pages_per_block", parse_number, IN_CONFIG(geometry.pages_per_block), 8, 1024 },
	{ "nand", "channels", parse_number, IN_CONFIG(geometry.channels), 1, 64 },
	{ "nand", "dies_per_channel", parse_number, IN_CONFIG(geometry.dies_per_channel), 1, 64 },

	{ "engine", "rows", parse_number, IN_CONFIG(engine.rows), 0, 1024 },
	{ "engine", "segment_pages", parse_number, IN_CONFIG(engine.segment_pages), 0, 4096 },
	{ "engine", "record_bytes", parse_number, IN_CONFIG(engine.record_bytes), 0, 65536 },
	{ "engine", "fpr_millionths", parse_number, IN_CONFIG(engine.fpr_millionths), 0, 500000 },
	{ "engine", "fpr_factor_permille", parse_number, IN_CONFIG(engine.fpr_factor_permille), 0,
	  4000 },
	{ "engine", "over_provision_permille", parse_number,
	  IN_CONFIG(engine.over_provision_permille), 0, 900 },
	{ "engine", "hot_rows", parse_hot_rows, IN_CONFIG(engine.hot_rows), 0, 0 },

	{ "lun", "type", parse_type, 0, 0, 0 },
	{ "lun", "image", parse_path, IN_LUN(image), 0, 0 },
	{ "lun", "size", parse_size, IN_LUN(size_bytes), 0, 0 },
	{ "lun", "threads", parse_number, IN_LUN(options.threads), 1, LUN_THREADS_MAX },
	{ "lun", "onode_cache", parse_number, IN_LUN(options.onode_cache_entries), 0,
	  LUN_CACHE_ENTRIES_MAX },
	{ "lun", "directory_cache", parse_number, IN_LUN(options.directory_cache_nodes), 0,
	  LUN_CACHE_ENTRIES_MAX },
	{ "lun", "version_cache", parse_number, IN_LUN(options.version_cache_entries), 0,
	  LUN_CACHE_ENTRIES_MAX },
	{ "lun", "durability", parse_durability, IN_LUN(options.durable), 0, 0 },
	{ "lun", "recover_without_nvram", parse_yes, IN_LUN(options.recover_without_nvram), 0, 0 },
	{ "lun", "tables", parse_tables, IN_LUN(options.table_cache_mib), 0, 0 },
	{ "lun", "merge", parse_merge, IN_LUN(options.merge_manual), 0, 0 },
	{ "lun", "layout", parse_layout, IN_LUN(options.osd), 0, 0 },
	{ "lun", "history_interval", parse_history_interval, IN_LUN(options.history_interval_ms), 0,
	  0 },
	{ "lun", "serial", parse_serial, IN_LUN(options.osd), 0, 0 },
	{ "lun", "key_file", parse_key_file, IN_LUN(options.key_file), 0, 0 },
	{ "lun", "system_id", parse_system_id, IN_LUN(options.osd), 0, 0 },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))
_Static_assert(KEYS <= 64, "the keys that were seen are bits of a uint64_t");

const char *config_key_name(size_t i)
{
	return i < KEYS ? keys[i].name : NULL;
}

/* ---- defaults ---- */

void config_defaults(struct config *config)
{
	memset(config, 0, sizeof(*config));
	strcpy(config->source, "built-in configuration");
	strcpy(config->state_dir, "/var/lib/muninn");
	strcpy(config->run_dir, "/run/muninn");
	strcpy(config->tgtd, "/usr/sbin/tgtd");
	strcpy(config->module, CONFIG_MODULE_INSTALLED);
	config->log_level = LOG_LEVEL_INFO;
	strcpy(config->target_name, "iqn.2014-06.local.muninn:osd");
	strcpy(config->address, "127.0.0.1");
	config->port = 3260;
	config->geometry = nand_geometry_default(CONFIG_SIZE_MIN);
	config->geometry.blocks = 0;
}

static struct lun_config *add_lun(struct config *config, unsigned int number, int line)
{
	struct lun_config *lun;

	assert(config->lun_count < CONFIG_LUNS_MAX);
	lun = &config->luns[config->lun_count++];
	memset(lun, 0, sizeof(*lun));
	lun->number = number;
	lun->line = line;
	snprintf(lun->image, sizeof(lun->image), "lun%u.img", number);
	lun->size_bytes = UINT64_C(8) << 30;
	lun->options.threads = LUN_THREADS_DEFAULT;
	return lun;
}

void config_add_default_lun(struct config *config)
{
	add_lun(config, 1, 0);
}

/* ---- the file ---- */

/* State of one pass through a file. */
struct reading {
	FILE *file;
	int line;
	bool line_too_long;
	struct config *config;
	uint64_t keys_seen; /* bit i: keys[i], outside of [lun N] */
	uint64_t lun_keys_seen[CONFIG_LUNS_MAX];
	char section[SECTION_BYTES]; /* that is being read, as far as it fits */
	int section_line;            /* 0 = none yet */
	bool section_has_keys;
	int error_line; /* 0 = none yet */
	struct error_text reason;
};

/* "lun N" → the unit, which is added when it is new. */
static struct lun_config *section_lun(struct reading *reading, const char *section,
				      struct error_text *error)
{
	struct config *config = reading->config;
	struct error_text ignored;
	uint32_t number;

	if (strncmp(section, "lun ", 4) ||
	    lun_option_number(section + 4, 1, CONFIG_LUN_NUMBER_MAX, &number, &ignored)) {
		error_set(error, -EINVAL,
			  "section [%s] is unknown; there are [daemon], [target], [nand], [engine] "
			  "and [lun N] with N from 1 to %d",
			  section, CONFIG_LUN_NUMBER_MAX);
		return NULL;
	}
	for (unsigned int i = 0; i < config->lun_count; i++)
		if (config->luns[i].number == number)
			return &config->luns[i];
	if (config->lun_count == CONFIG_LUNS_MAX) {
		error_set(error, -EINVAL, "more than %d logical units", CONFIG_LUNS_MAX);
		return NULL;
	}
	return add_lun(config, number, reading->line);
}

static bool is_plain_section(const char *section)
{
	for (size_t i = 0; i < KEYS; i++)
		if (strcmp(keys[i].section, "lun") && !strcmp(keys[i].section, section))
			return true;
	return false;
}

/* Names what there is: most wrong keys are misspelt, or stand in the wrong section. */
static int refuse_key(const char *section, const char *kind, const char *name,
		      struct error_text *error)
{
	char names[320];
	size_t length = 0;

	for (size_t i = 0; i < KEYS; i++) {
		if (!strcmp(keys[i].name, name) && strcmp(keys[i].section, kind))
			return error_set(
				error, -EINVAL, "[%s] has no key %s; it belongs to [%s]", section,
				name, strcmp(keys[i].section, "lun") ? keys[i].section : "lun N");
		if (!strcmp(keys[i].section, kind) && length < sizeof(names))
			length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
						   length ? ", " : "", keys[i].name);
	}
	return error_set(error, -EINVAL, "[%s] has no key %s; it has %s", section, name, names);
}

static int set_key(struct reading *reading, const char *section, const char *name,
		   const char *value, struct error_text *error)
{
	char *base = (char *)reading->config;
	uint64_t *seen = &reading->keys_seen;
	const char *kind = section;
	struct error_text reason = { "" };
	int result;

	if (!*section)
		return error_set(error, -EINVAL, "%s stands before the first [section]", name);
	if (!is_plain_section(section)) {
		struct lun_config *lun = section_lun(reading, section, error);

		if (!lun)
			return -EINVAL;
		kind = "lun";
		base = (char *)lun;
		seen = &reading->lun_keys_seen[lun - reading->config->luns];
	}
	for (size_t i = 0; i < KEYS; i++) {
		if (strcmp(keys[i].section, kind) || strcmp(keys[i].name, name))
			continue;
		if (*seen & UINT64_C(1) << i)
			return error_set(error, -EINVAL, "%s is set twice in [%s]", name, section);
		*seen |= UINT64_C(1) << i;
		result = keys[i].parse(&keys[i], value, base, &reason);
		return result ? error_set(error, result, "%s: %s", name, reason.text) : 0;
	}
	return refuse_key(section, kind, name, error);
}

/*
 * inih tells of keys only. A section without any would be passed over in silence: of a unit that is a unit which is missing,
 * and a name may be misspelt. The general sections may be empty.
 */
static void end_section(struct reading *reading)
{
	const char *section = reading->section;

	if (reading->section_line == 0 || reading->section_has_keys || is_plain_section(section))
		return;
	reading->error_line = reading->section_line;
	if (section_lun(reading, section, &reading->reason))
		error_set(&reading->reason, -EINVAL,
			  "[%s] is empty; write type = osd below it, or remove it", section);
}

/* Does the line begin a section, or is it something in one? */
static void note_line(struct reading *reading, const char *line)
{
	const char *text = line + strspn(line, " \t\r\n\f\v"), *end = strchr(text, ']');

	if (text[0] != '[' || !end) {
		/* A line that is wrong has a message of its own. */
		if (text[0] != '\0' && text[0] != ';' && text[0] != '#')
			reading->section_has_keys = true;
		return;
	}
	end_section(reading);
	snprintf(reading->section, sizeof(reading->section), "%.*s", (int)(end - text - 1),
		 text + 1);
	reading->section_line = reading->line;
	reading->section_has_keys = false;
}

static char *read_line(char *line, int bytes, void *stream)
{
	struct reading *reading = stream;
	size_t length;

	/* The first error counts; what follows may be its consequence. */
	if (reading->error_line || reading->line_too_long)
		return NULL;
	if (!fgets(line, bytes, reading->file)) {
		end_section(reading);
		return NULL;
	}
	reading->line++;
	length = strlen(line);
	if (length > 0 && line[length - 1] != '\n' && !feof(reading->file)) {
		reading->line_too_long = true;
		return NULL;
	}
	note_line(reading, line);
	return reading->error_line ? NULL : line;
}

/* Called for every NAME = VALUE; 0 = error, as inih wants it. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
	struct reading *reading = user;

	if (reading->error_line)
		return 0;
	if (set_key(reading, section, name, value, &reading->reason)) {
		reading->error_line = reading->line;
		return 0;
	}
	return 1;
}

static int read_file(struct reading *reading, struct error_text *error)
{
	const char *source = reading->config->source;
	int result;

	/* A line that begins with blanks is a key like any other, and ; inside a value is part of it. */
	ini_allow_multiline = false;
	ini_allow_inline_comments = false;
	ini_max_line = LINE_BYTES_MAX;
	result = ini_parse_stream(read_line, reading, on_key, reading);
	if (reading->line_too_long)
		return error_set(error, -EINVAL, "%s:%d: the line is longer than %d bytes", source,
				 reading->line, LINE_BYTES_MAX - 2);
	if (reading->error_line)
		return error_set(error, -EINVAL, "%s:%d: %s", source, reading->error_line,
				 reading->reason.text);
	if (result > 0)
		return error_set(
			error, -EINVAL,
			"%s:%d: neither [section] nor KEY = VALUE; comments begin with # or ;",
			source, result);
	if (result < 0)
		return error_set(error, -ENOMEM, "%s: out of memory", source);
	if (ferror(reading->file))
		return error_set(error, -EIO, "%s: %s", source, strerror(errno));
	if (reading->config->lun_count == 0)
		return error_set(
			error, -EINVAL,
			"%s: there is no logical unit; add a section [lun 1] with type = osd",
			source);
	return 0;
}

int config_read(const char *path, struct config *config, struct error_text *error)
{
	struct reading reading = { .config = config };
	int result;

	config_defaults(config);
	if (strlen(path) >= sizeof(config->source))
		return error_set(error, -ENAMETOOLONG, "%s: the name is too long", path);
	strcpy(config->source, path);
	reading.file = fopen(path, "re");
	if (!reading.file)
		return error_set(error, -errno, "%s: %s%s", path, strerror(errno),
				 errno == ENOENT ? "; --config names another file, --defaults "
						   "does without"
						 : "");
	result = read_file(&reading, error);
	fclose(reading.file);
	return result;
}

/* ---- the whole ---- */

/* `path` has room for `bytes`. */
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

/* A key that can't be read is found out before anything is started. */
static int complete_key_file(struct lun_config *lun, const char *folder, struct error_text *reason)
{
	char *path = lun->options.key_file;
	uint8_t device_key[OSD_DEVICE_KEY_BYTES];
	int result;

	if (!path[0])
		return 0;
	result = make_absolute(path, LUN_PATH_BYTES, folder, reason);
	if (!result)
		result = osd_key_file_read(path, device_key, reason);
	explicit_bzero(device_key, sizeof(device_key));
	return result;
}

static int complete_luns(struct config *config, struct error_text *reason, int *line)
{
	for (unsigned int i = 0; i < config->lun_count; i++) {
		struct lun_config *lun = &config->luns[i];
		int result = make_absolute(lun->image, PATH_MAX, config->state_dir, reason);

		*line = lun->line;
		if (!result)
			result = complete_key_file(lun, config->state_dir, reason);
		if (result)
			return result;
		for (unsigned int j = 0; j < i; j++)
			if (!strcmp(lun->image, config->luns[j].image))
				return error_set(reason, -EINVAL,
						 "logical units %u and %u have the same image %s; "
						 "each needs its "
						 "own",
						 config->luns[j].number, lun->number, lun->image);
	}
	*line = 0;
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
	/* Who wants to let in some only says so. */
	if (config->allow_addresses == 0 && config->allow_names == 0) {
		strcpy(config->allow_address[0], "ALL");
		config->allow_addresses = 1;
	}
	if (!result && !config->chap_user[0] != !config->chap_secret[0])
		result = error_set(
			&reason, -EINVAL,
			"[target] chap_user and chap_secret belong together; %s is missing",
			config->chap_user[0] ? "chap_secret" : "chap_user");
	if (!result)
		return 0;
	if (line)
		return error_set(error, result, "%s:%d: %s", config->source, line, reason.text);
	return error_set(error, result, "%s: %s", config->source, reason.text);
}
