/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Parses settings of the form "word,key=value,key=value". */
#include "nand/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int setting_next(const char **text, struct setting *setting, struct error_text *error)
{
	size_t length = strcspn(*text, ",");
	const char *equals = memchr(*text, '=', length);
	size_t key_length = equals ? (size_t)(equals - *text) : length;
	size_t value_length = equals ? length - key_length - 1 : 0;

	if (**text == 0)
		return 0;
	if (key_length == 0 || key_length >= SETTING_BYTES || value_length >= SETTING_BYTES)
		return error_set(error, -EINVAL, "bad %s: there is no setting '%.*s'",
				 setting->what, (int)length, *text);
	memcpy(setting->key, *text, key_length);
	setting->key[key_length] = 0;
	if (equals)
		memcpy(setting->value, equals + 1, value_length);
	setting->value[value_length] = 0;
	*text += length;
	if (**text == ',')
		++*text;
	return 1;
}

static int bad_value(const struct setting *setting, const char *wanted, struct error_text *error)
{
	return error_set(error, -EINVAL, "bad %s: %s is '%s', must be %s", setting->what,
			 setting->key, setting->value, wanted);
}

/* strtoull and strtod take signs and spaces and nothing at all. */
static bool begins_as_number(const char *value)
{
	return isdigit((unsigned char)value[0]) ||
	       (value[0] == '.' && isdigit((unsigned char)value[1]));
}

int setting_uint(const struct setting *setting, uint64_t most, uint64_t *value,
		 struct error_text *error)
{
	char wanted[64];
	char *end = NULL;

	snprintf(wanted, sizeof(wanted), "a number from 0 to %llu", (unsigned long long)most);
	if (!begins_as_number(setting->value))
		return bad_value(setting, wanted, error);
	errno = 0;
	*value = strtoull(setting->value, &end, 0);
	return errno || *end || *value > most ? bad_value(setting, wanted, error) : 0;
}

int setting_real(const struct setting *setting, double most, double *value,
		 struct error_text *error)
{
	char wanted[64];
	char *end = NULL;

	snprintf(wanted, sizeof(wanted), "a number from 0 to %g", most);
	if (!begins_as_number(setting->value))
		return bad_value(setting, wanted, error);
	*value = strtod(setting->value, &end);
	return *end || !(*value >= 0 && *value <= most) ? bad_value(setting, wanted, error) : 0;
}

int setting_ns(const struct setting *setting, uint32_t most, uint32_t *ns, struct error_text *error)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char wanted[64];
	char *end = NULL;
	double value;

	snprintf(wanted, sizeof(wanted), "a time from 0ns to %uns, with ns, us, ms or s", most);
	if (!begins_as_number(setting->value))
		return bad_value(setting, wanted, error);
	value = strtod(setting->value, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		value *= units[i].ns;
		if (!(value <= most))
			break;
		*ns = (uint32_t)llround(value);
		return 0;
	}
	return bad_value(setting, wanted, error);
}

int setting_word(const struct setting *setting, const char *const *words, unsigned *index,
		 struct error_text *error)
{
	char wanted[160] = "";
	size_t used = 0;

	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(words[i], setting->value) == 0) {
			*index = i;
			return 0;
		}
		used += (size_t)snprintf(wanted + used, sizeof(wanted) - used, "%s%s",
					 i == 0         ? ""
					 : words[i + 1] ? ", "
							: " or ",
					 words[i]);
		if (used >= sizeof(wanted))
			break;
	}
	return bad_value(setting, wanted, error);
}

int setting_unknown(const struct setting *setting, struct error_text *error)
{
	return error_set(error, -EINVAL, "bad %s: there is no setting '%s'", setting->what,
			 setting->key);
}
