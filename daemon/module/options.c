/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Parses the options of one logical unit from tgtd's `bsopts`. */
#include "daemon/module/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int lun_option_choice(const char *text, const char *first, const char *second, bool *value,
		      struct error_text *error)
{
	*value = strcmp(text, second) == 0;
	if (!*value && strcmp(text, first) != 0)
		return error_set(error, -EINVAL, "'%s' is neither %s nor %s", text, first, second);
	return 0;
}

int lun_option_serial(const char *text, struct osd_options *osd, struct error_text *error)
{
	size_t length = strlen(text);

	for (size_t i = 0; i < length; i++)
		if (!isgraph((unsigned char)text[i]) || strchr(",;=", text[i]))
			return error_set(
				error, -EINVAL,
				"serial number '%s': only printable characters, no space , ; or =",
				text);
	if (length == 0 || length >= sizeof(osd->serial))
		return error_set(error, -EINVAL, "serial number '%s': 1 to %zu characters", text,
				 sizeof(osd->serial) - 1);
	memcpy(osd->serial, text, length + 1);
	return 0;
}

int lun_option_key_file(const char *text, char *path, struct error_text *error)
{
	size_t length = strlen(text);

	if (length == 0 || length >= LUN_PATH_BYTES || strpbrk(text, ",;"))
		return error_set(error, -EINVAL,
				 "device key '%s': a path of 1 to %d bytes without , and ;", text,
				 LUN_PATH_BYTES - 1);
	memcpy(path, text, length + 1);
	return 0;
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

int lun_option_tables(const char *text, uint32_t *mib, struct error_text *error)
{
	*mib = 0;
	if (!strcmp(text, "ram"))
		return 0;
	if (strncmp(text, "demand:", 7) != 0)
		return error_set(error, -EINVAL, "'%s' is neither ram nor demand:MIB", text);
	return lun_option_number(text + 7, 1, LUN_TABLE_CACHE_MAX, mib, error);
}

int lun_option_history_interval(const char *text, uint32_t *ms, struct error_text *error)
{
	int result = lun_option_number(text, 0, LUN_HISTORY_INTERVAL_MAX, ms, error);

	if (!result && *ms == 0)
		*ms = ENGINE_EVERY_COMMAND;
	return result;
}

int lun_option_system_id(const char *text, struct osd_options *osd, struct error_text *error)
{
	const size_t bytes = sizeof(osd->system_id);
	bool valid = strlen(text) == 2 * bytes;

	for (size_t i = 0; valid && i < bytes; i++) {
		int high = hexadecimal_digit(text[2 * i]);
		int low = hexadecimal_digit(text[2 * i + 1]);

		valid = high >= 0 && low >= 0;
		osd->system_id[i] = (uint8_t)(high * 16 + low);
	}
	if (!valid)
		return error_set(error, -EINVAL, "system ID '%s' is not %zu hexadecimal digits",
				 text, 2 * bytes);
	return 0;
}

static int set_option(struct lun_options *options, const char *name, const char *value,
		      struct error_text *error)
{
	if (!strcmp(name, "threads"))
		return lun_option_number(value, 1, LUN_THREADS_MAX, &options->threads, error);
	if (!strcmp(name, "onode_cache"))
		return lun_option_number(value, 0, LUN_CACHE_ENTRIES_MAX,
					 &options->onode_cache_entries, error);
	if (!strcmp(name, "directory_cache"))
		return lun_option_number(value, 0, LUN_CACHE_ENTRIES_MAX,
					 &options->directory_cache_nodes, error);
	if (!strcmp(name, "version_cache"))
		return lun_option_number(value, 0, LUN_CACHE_ENTRIES_MAX,
					 &options->version_cache_entries, error);
	if (!strcmp(name, "durability"))
		return lun_option_choice(value, "process", "host", &options->durable, error);
	if (!strcmp(name, "merge"))
		return lun_option_choice(value, "auto", "manual", &options->merge_manual, error);
	if (!strcmp(name, "history_interval"))
		return lun_option_history_interval(value, &options->history_interval_ms, error);
	if (!strcmp(name, "layout")) {
		bool packed = false;
		int result = lun_option_choice(value, "flat", "packed", &packed, error);

		options->osd.layout = packed;
		return result;
	}
	if (!strcmp(name, "tables"))
		return lun_option_tables(value, &options->table_cache_mib, error);
	if (!strcmp(name, "recover_without_nvram"))
		return lun_option_choice(value, "no", "yes", &options->recover_without_nvram,
					 error);
	if (!strcmp(name, "serial"))
		return lun_option_serial(value, &options->osd, error);
	if (!strcmp(name, "key_file"))
		return lun_option_key_file(value, options->key_file, error);
	if (!strcmp(name, "system_id"))
		return lun_option_system_id(value, &options->osd, error);
	return error_set(error, -EINVAL,
			 "unknown option '%s'; known are threads, onode_cache, directory_cache, "
			 "version_cache, durability, merge, recover_without_nvram, tables, "
			 "history_interval, "
			 "layout, serial, key_file and system_id",
			 name);
}

int lun_options_parse(const char *text, struct lun_options *options, struct error_text *error)
{
	char *copy, *rest, *item;
	int result = 0;

	memset(options, 0, sizeof(*options));
	options->threads = LUN_THREADS_DEFAULT;
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
		result = set_option(options, item, value, &reason);
		if (result)
			error_set(error, result, "option %s: %s", item, reason.text);
	}
	free(copy);
	return result;
}
