/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The options of a logical unit: a table of them, each read from text and written as text. */
#include "daemon/module/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/history.h"
#include "wire/layout.h"

/* The longest text of a value. */
#define VALUE_BYTES (LUN_PATH_BYTES + 1)

struct option {
	const char *name;
	int (*parse)(const struct option *option, const char *text, void *field,
		     struct error_text *error);
	/* writes a text that `parse` reads again; empty where the option can't say the value */
	void (*write)(const struct option *option, const void *field, char text[VALUE_BYTES]);
	size_t offset;        /* of the field in struct lun_options */
	uint32_t least, most; /* numbers */
	const char *words[2]; /* choices: of false and true */
};

int lun_option_number(const char *text, uint32_t least, uint32_t most, uint32_t *value,
		      struct error_text *error)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || number < least || number > most)
		return error_set(error, -EINVAL, "'%s' is not a whole number from %u to %u", text,
				 least, most);
	*value = (uint32_t)number;
	return 0;
}

int lun_option_size(const char *text, uint64_t *bytes, struct error_text *error)
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
	if (number > LUN_SIZE_MAX >> shift || number << shift < LUN_SIZE_MIN)
		return error_set(error, -EINVAL, "size %s: 1M at least, 1024T at most", text);
	*bytes = number << shift;
	return 0;
}

/* ---- values ---- */

static int parse_number(const struct option *option, const char *text, void *field,
			struct error_text *error)
{
	return lun_option_number(text, option->least, option->most, field, error);
}

static void write_number(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	(void)option;
	snprintf(text, VALUE_BYTES, "%u", *(const uint32_t *)field);
}

static int find_word(const struct option *option, const char *text, bool *second,
		     struct error_text *error)
{
	*second = strcmp(text, option->words[1]) == 0;
	if (!*second && strcmp(text, option->words[0]) != 0)
		return error_set(error, -EINVAL, "'%s' is neither %s nor %s", text,
				 option->words[0], option->words[1]);
	return 0;
}

static int parse_choice(const struct option *option, const char *text, void *field,
			struct error_text *error)
{
	return find_word(option, text, field, error);
}

static void write_choice(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	snprintf(text, VALUE_BYTES, "%s", option->words[*(const bool *)field]);
}

static const char *const backend_names[] = {
	[NAND_BACKEND_MMAP] = "mmap",
	[NAND_BACKEND_FILE] = "file",
};

const char *lun_options_backend(const struct lun_options *options)
{
	return backend_names[options->nand.backend];
}

static int parse_backend(const struct option *option, const char *text, void *field,
			 struct error_text *error)
{
	enum nand_backend_kind *backend = field;
	bool file = false;
	int result = find_word(option, text, &file, error);

	*backend = file ? NAND_BACKEND_FILE : NAND_BACKEND_MMAP;
	return result;
}

static void write_backend(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const enum nand_backend_kind *backend = field;

	(void)option;
	snprintf(text, VALUE_BYTES, "%s", backend_names[*backend]);
}

static int parse_layout(const struct option *option, const char *text, void *field,
			struct error_text *error)
{
	uint8_t *layout = field;
	bool packed = false;
	int result = find_word(option, text, &packed, error);

	*layout = packed ? OSD_LAYOUT_PACKED : OSD_LAYOUT_FLAT;
	return result;
}

static void write_layout(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const uint8_t *layout = field;

	snprintf(text, VALUE_BYTES, "%s", option->words[*layout == OSD_LAYOUT_PACKED]);
}

/* The engine that there is of this name; the field keeps the table's own text. */
static int parse_engine(const struct option *option, const char *text, void *field,
			struct error_text *error)
{
	const char **store = field;
	char names[128] = "";
	size_t length = 0;

	(void)option;
	for (size_t i = 0; (*store = engine_store_name(i)); i++) {
		if (!strcmp(*store, text))
			return 0;
		if (length < sizeof(names))
			length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
						   length ? ", " : "", *store);
	}
	return error_set(error, -EINVAL, "'%s' is no engine; there is: %s", text, names);
}

static void write_engine(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const char *const *store = field;

	(void)option;
	snprintf(text, VALUE_BYTES, "%s", *store ? *store : "");
}

/* "ram" (0), or "demand:MIB": the bytes of the cache. */
static int parse_tables(const struct option *option, const char *text, void *field,
			struct error_text *error)
{
	uint64_t *bytes = field;
	uint32_t mib = 0;
	int result = 0;

	if (strncmp(text, "demand:", 7) == 0)
		result = lun_option_number(text + 7, option->least, option->most, &mib, error);
	else if (strcmp(text, "ram") != 0)
		result = error_set(error, -EINVAL, "'%s' is neither ram nor demand:MIB", text);
	*bytes = (uint64_t)mib << 20;
	return result;
}

static void write_tables(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const uint64_t *bytes = field;

	(void)option;
	if (*bytes)
		snprintf(text, VALUE_BYTES, "demand:%u", (uint32_t)(*bytes >> 20));
	else
		snprintf(text, VALUE_BYTES, "ram");
}

/*
 * Numbers whose 0 means something apart, where 0 is the engine's default.
 */
#define APART UINT32_MAX
static_assert(ENGINE_EVERY_COMMAND == APART && ENGINE_INLINE_NONE == APART,
	      "what 0 means in the text of an option");

static int parse_apart(const struct option *option, const char *text, void *field,
		       struct error_text *error)
{
	uint32_t *number = field;
	int result = lun_option_number(text, option->least, option->most, number, error);

	if (!result && *number == 0)
		*number = APART;
	return result;
}

static void write_apart(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const uint32_t *number = field;

	(void)option;
	text[0] = '\0';
	if (*number)
		snprintf(text, VALUE_BYTES, "%u", *number == APART ? 0 : *number);
}

static int parse_serial(const struct option *option, const char *text, void *field,
			struct error_text *error)
{
	const size_t capacity = sizeof(((struct osd_options *)NULL)->serial);
	size_t length = strlen(text);

	(void)option;
	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)text[i]) || strchr(",;=", text[i]))
			return error_set(
				error, -EINVAL,
				"serial number '%s': only printable characters, no space , ; or =",
				text);
	if (length == 0 || length >= capacity)
		return error_set(error, -EINVAL, "serial number '%s': 1 to %zu characters", text,
				 capacity - 1);
	memcpy(field, text, length + 1);
	return 0;
}

static int parse_key_file(const struct option *option, const char *text, void *field,
			  struct error_text *error)
{
	size_t length = strlen(text);

	(void)option;
	if (length == 0 || length >= LUN_PATH_BYTES || strpbrk(text, ",;"))
		return error_set(error, -EINVAL,
				 "device key '%s': a path of 1 to %d bytes without , and ;", text,
				 LUN_PATH_BYTES - 1);
	memcpy(field, text, length + 1);
	return 0;
}

static void write_text(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	(void)option;
	snprintf(text, VALUE_BYTES, "%s", (const char *)field);
}

static int hexadecimal_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

#define SYSTEM_ID_BYTES sizeof(((struct osd_options *)NULL)->system_id)

static int parse_system_id(const struct option *option, const char *text, void *field,
			   struct error_text *error)
{
	uint8_t *id = field;
	bool valid = strlen(text) == 2 * SYSTEM_ID_BYTES;

	(void)option;
	for (size_t i = 0; valid && i < SYSTEM_ID_BYTES; i++) {
		int high = hexadecimal_digit(text[2 * i]);
		int low = hexadecimal_digit(text[2 * i + 1]);

		valid = high >= 0 && low >= 0;
		id[i] = (uint8_t)(high * 16 + low);
	}
	if (!valid)
		return error_set(error, -EINVAL, "system ID '%s' is not %zu hexadecimal digits",
				 text, 2 * SYSTEM_ID_BYTES);
	return 0;
}

static void write_system_id(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const uint8_t *id = field;

	(void)option;
	for (size_t i = 0; i < SYSTEM_ID_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

/* 0, which is not written, is the default. */
static void write_size(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const uint64_t *bytes = field;

	(void)option;
	text[0] = '\0';
	if (*bytes)
		snprintf(text, VALUE_BYTES, "%llu", (unsigned long long)*bytes);
}

static int parse_size(const struct option *option, const char *text, void *field,
		      struct error_text *error)
{
	(void)option;
	return lun_option_size(text, field, error);
}

int lun_option_partition(const char *text, uint64_t *partition, struct error_text *error)
{
	char *end;

	errno = 0;
	*partition = strtoull(text, &end, 0);
	if (!isdigit((unsigned char)text[0]) || *end || errno || *partition < ENGINE_FIRST_ID ||
	    *partition > ENGINE_LAST_PARTITION_ID)
		return error_set(error, -EINVAL,
				 "'%s' is no partition ID, which are 0x10000 to 0xFFFFFFFFFFFF",
				 text);
	return 0;
}

static int parse_partition(const struct option *option, const char *text, void *field,
			   struct error_text *error)
{
	(void)option;
	return lun_option_partition(text, field, error);
}

static int parse_schedule(const struct option *option, const char *text, void *field,
			  struct error_text *error)
{
	struct schedule_rules rules;
	int result = schedule_parse(text, &rules, error);

	(void)option;
	if (!result)
		strcpy(field, text);
	return result;
}

static int parse_block_size(const struct option *option, const char *text, void *field,
			    struct error_text *error)
{
	uint32_t *bytes = field;
	bool large = false;
	int result = find_word(option, text, &large, error);

	*bytes = large ? 4096 : 512;
	return result;
}

static void write_block_size(const struct option *option, const void *field, char text[VALUE_BYTES])
{
	const uint32_t *bytes = field;

	snprintf(text, VALUE_BYTES, "%s", *bytes ? option->words[*bytes == 4096] : "");
}

/* Names that are not plain have a number, too. */
bool lun_option_is_version_name(const char *text)
{
	size_t length = strlen(text);
	bool is_plain = isalpha((unsigned char)text[0]) && length <= DISK_VERSION_MAX;

	for (size_t i = 0; is_plain && i < length; i++)
		is_plain = isgraph((unsigned char)text[i]) && !strchr(",;=", text[i]);
	return is_plain;
}

static int parse_version(const struct option *option, const char *text, void *field,
			 struct error_text *error)
{
	struct error_text ignored;
	uint32_t number;

	if (!lun_option_is_version_name(text) &&
	    lun_option_number(text, option->least, option->most, &number, &ignored))
		return error_set(error, -EINVAL,
				 "'%s' is no version: a number from %u to %u, or a name of 1 to %d "
				 "characters that begins with a letter and has no space , ; and =",
				 text, option->least, option->most, DISK_VERSION_MAX);
	snprintf(field, DISK_VERSION_MAX + 1, "%s", text);
	return 0;
}

/* ---- the table ---- */

#define AT(field) offsetof(struct lun_options, field)
#define NUMBER(least, most) \
	least, most,        \
	{                   \
		NULL, NULL  \
	}
#define CHOICE(first, second) \
	0, 0,                 \
	{                     \
		first, second \
	}

static const struct option known[] = {
	{ "threads", parse_number, write_number, AT(threads), NUMBER(1, LUN_THREADS_MAX) },
	{ "backend", parse_backend, write_backend, AT(nand.backend), CHOICE("mmap", "file") },
	{ "engine", parse_engine, write_engine, AT(engine.store), NUMBER(0, 0) },
	{ "onode_cache", parse_number, write_number, AT(engine.onode_cache_entries),
	  NUMBER(0, LUN_CACHE_ENTRIES_MAX) },
	{ "directory_cache", parse_number, write_number, AT(engine.directory_cache_nodes),
	  NUMBER(0, LUN_CACHE_ENTRIES_MAX) },
	{ "version_cache", parse_number, write_number, AT(engine.version_cache_entries),
	  NUMBER(0, LUN_CACHE_ENTRIES_MAX) },
	{ "durability", parse_choice, write_choice, AT(engine.stable_commits),
	  CHOICE("process", "host") },
	{ "merge", parse_choice, write_choice, AT(engine.merge_manual), CHOICE("auto", "manual") },
	{ "recover_without_nvram", parse_choice, write_choice,
	  AT(engine.records.recover_without_nvram), CHOICE("no", "yes") },
	{ "tables", parse_tables, write_tables, AT(engine.muninn.bloom.table_cache_bytes),
	  NUMBER(1, LUN_TABLE_CACHE_MAX) },
	{ "history_interval", parse_apart, write_apart, AT(engine.history_interval_ms),
	  NUMBER(0, LUN_HISTORY_INTERVAL_MAX) },
	{ "inline_bytes", parse_apart, write_apart, AT(engine.inline_bytes),
	  NUMBER(0, LUN_INLINE_BYTES_MAX) },
	{ "scrub_days", parse_number, write_number, AT(scrub.days), NUMBER(0, SCRUB_DAYS_MAX) },
	{ "scrub_rate", parse_number, write_number, AT(scrub.rate), NUMBER(1, SCRUB_RATE_MAX) },
	{ "layout", parse_layout, write_layout, AT(osd.layout), CHOICE("flat", "packed") },
	{ "serial", parse_serial, write_text, AT(osd.serial), NUMBER(0, 0) },
	{ "key_file", parse_key_file, write_text, AT(key_file), NUMBER(0, 0) },
	{ "partition", parse_partition, write_size, AT(disk.partition), NUMBER(0, 0) },
	{ "volume_size", parse_size, write_size, AT(disk.bytes), NUMBER(0, 0) },
	{ "block_size", parse_block_size, write_block_size, AT(disk.block_bytes),
	  CHOICE("512", "4096") },
	{ "version", parse_version, write_text, AT(disk.version),
	  NUMBER(1, ENGINE_DEVICE_VERSION_LAST) },
	{ "snapshot_schedule", parse_schedule, write_text, AT(schedule), NUMBER(0, 0) },
	{ "system_id", parse_system_id, write_system_id, AT(osd.system_id), NUMBER(0, 0) },
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

void lun_options_default(struct lun_options *options)
{
	memset(options, 0, sizeof(*options));
	options->threads = LUN_THREADS_DEFAULT;
	options->scrub =
		(struct scrub_options){ .days = SCRUB_DAYS_DEFAULT, .rate = SCRUB_RATE_DEFAULT };
}

static int refuse_unknown(const char *name, struct error_text *error)
{
	char names[400] = "";
	size_t length = 0;

	for (size_t i = 0; i < KNOWN && length < sizeof(names); i++)
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
					   i == 0           ? ""
					   : i == KNOWN - 1 ? " and "
							    : ", ",
					   known[i].name);
	return error_set(error, -EINVAL, "unknown option '%s'; known are %s", name, names);
}

int lun_option_set(struct lun_options *options, const char *name, const char *value,
		   struct error_text *error)
{
	for (size_t i = 0; i < KNOWN; i++)
		if (!strcmp(known[i].name, name))
			return known[i].parse(&known[i], value, (char *)options + known[i].offset,
					      error);
	return refuse_unknown(name, error);
}

int lun_options_parse(const char *text, struct lun_options *options, struct error_text *error)
{
	char *copy, *rest, *item;
	int result = 0;

	lun_options_default(options);
	if (!text)
		return 0;
	copy = strdup(text);
	if (!copy)
		return error_set(error, -ENOMEM, "out of memory");
	rest = copy;
	while (!result && (item = strsep(&rest, ";"))) {
		struct error_text reason = { "" };
		char *value;

		if (!*item)
			continue;
		value = strchr(item, '=');
		if (!value) {
			result = error_set(error, -EINVAL, "option '%s' has no value (NAME=VALUE)",
					   item);
			break;
		}
		*value++ = '\0';
		result = lun_option_set(options, item, value, &reason);
		if (result)
			error_set(error, result, "option %s: %s", item, reason.text);
	}
	free(copy);
	return result;
}

void lun_options_write(const struct lun_options *options, char text[LUN_OPTIONS_TEXT_BYTES])
{
	struct lun_options defaults;
	size_t length = 0;

	lun_options_default(&defaults);
	text[0] = '\0';
	for (size_t i = 0; i < KNOWN && length < LUN_OPTIONS_TEXT_BYTES; i++) {
		const struct option *option = &known[i];
		char value[VALUE_BYTES], usual[VALUE_BYTES];

		option->write(option, (const char *)options + option->offset, value);
		option->write(option, (const char *)&defaults + option->offset, usual);
		if (strcmp(value, usual) != 0)
			length += (size_t)snprintf(text + length, LUN_OPTIONS_TEXT_BYTES - length,
						   "%s%s=%s", length ? ";" : "", option->name,
						   value);
	}
}
