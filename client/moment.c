/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Moments as people write them. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/osd_client.h"

static int bad_moment(struct error_text *error, const char *text)
{
	return error_set(error, -EINVAL,
			 "'%.80s' is no moment; for instance 3 (a version), daily (its name), "
			 "2026-11-21T14:32:05, 2026-11-21, -10min, ~2 (modifications), now",
			 text);
}

/* Decimal digits only. */
static int parse_digits(const char *text, uint64_t *value, const char **end)
{
	char *behind;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &behind, 10);
	*end = behind;
	return errno ? -EINVAL : 0;
}

/* The number of a version, as in an address: decimal, or 0x and hexadecimal digits. */
static bool is_version(const char *text, uint64_t *version)
{
	bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hexadecimal ? text + 2 : text;

	if (!*digits ||
	    digits[strspn(digits, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789")])
		return false;
	errno = 0;
	*version = strtoull(digits, NULL, hexadecimal ? 16 : 10);
	return errno == 0;
}

/* "10min" before now. */
static int parse_before(const char *text, uint64_t now_ms, uint64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {
		{ "ms", 1 },      { "s", 1000 },     { "min", 60000 },
		{ "h", 3600000 }, { "d", 86400000 }, { "w", 604800000 },
	};
	uint64_t count;
	const char *unit;

	if (parse_digits(text, &count, &unit) < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].unit) != 0)
			continue;
		if (count > now_ms / units[i].ms)
			return -EINVAL;
		*ms = now_ms - count * units[i].ms;
		return 0;
	}
	return -EINVAL;
}

/* Behind the seconds: nothing, Z, or +hh:mm. `minutes`: east of UTC. */
static int parse_zone(const char *text, bool *given, int *minutes)
{
	int hours, rest, used = 0;

	*given = *text != '\0';
	*minutes = 0;
	if (!*given || strcmp(text, "Z") == 0)
		return 0;
	if ((text[0] != '+' && text[0] != '-') ||
	    sscanf(text + 1, "%2d:%2d%n", &hours, &rest, &used) != 2 || text[1 + used] ||
	    hours < 0 || hours > 14 || rest < 0 || rest > 59)
		return -EINVAL;
	*minutes = (text[0] == '-' ? -1 : 1) * (hours * 60 + rest);
	return 0;
}

/* Reads a fraction of a second, ".123". */
static const char *parse_fraction(const char *text, uint64_t *ms)
{
	uint64_t unit = 100;

	*ms = 0;
	if (*text != '.')
		return text;
	for (text++; isdigit((unsigned char)*text); text++, unit /= 10)
		*ms += unit * (uint64_t)(*text - '0');
	return text;
}

static bool same_time(const struct tm *a, const struct tm *b)
{
	return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday &&
	       a->tm_hour == b->tm_hour && a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

#define DAY_SECONDS 86400

/*
 * Finds the time at which a local clock shows `wall`. Tries two offsets, that of the day before and
 * that of the day after, because clocks are set. -ENOENT: never; -ENOTUNIQ: twice.
 */
static int find_local(const struct tm *wall, time_t *seconds)
{
	struct tm copy = *wall;
	const time_t as_utc = timegm(&copy);
	int found = 0;

	for (int day = -1; day <= 1; day += 2) {
		time_t near = as_utc + day * DAY_SECONDS, at;
		struct tm shown;

		if (!localtime_r(&near, &shown))
			return -EINVAL;
		at = as_utc - shown.tm_gmtoff;
		if (!localtime_r(&at, &shown) || !same_time(&shown, wall) ||
		    (found && at == *seconds))
			continue;
		*seconds = at;
		found++;
	}
	if (found == 1)
		return 0;
	return found ? -ENOTUNIQ : -ENOENT;
}

/* The C library would take 31 June for 1 July. */
static bool is_in_calendar(const struct tm *wall)
{
	struct tm copy = *wall, shown;
	time_t as_utc = timegm(&copy);

	return gmtime_r(&as_utc, &shown) && same_time(&shown, wall);
}

/* -EDOM: not in the calendar; -ENOENT, -ENOTUNIQ: as find_local. */
static int parse_time(const char *text, uint64_t *ms)
{
	struct tm parts = { 0 };
	const char *rest = strptime(text, "%Y-%m-%d", &parts);
	uint64_t fraction = 0;
	bool zone;
	int minutes, result;
	time_t seconds;

	if (!rest)
		return -EINVAL;
	if (*rest == 'T' || *rest == ' ') {
		const char *behind = strptime(rest + 1, "%H:%M:%S", &parts);

		rest = behind ? behind : strptime(rest + 1, "%H:%M", &parts);
		if (!rest)
			return -EINVAL;
		rest = parse_fraction(rest, &fraction);
	}
	if (parse_zone(rest, &zone, &minutes) < 0)
		return -EINVAL;
	if (!is_in_calendar(&parts))
		return -EDOM;
	if (zone) {
		seconds = timegm(&parts) - minutes * 60;
	} else {
		tzset();
		result = find_local(&parts, &seconds);
		if (result < 0)
			return result;
	}
	if (seconds < 0)
		return -EINVAL;
	*ms = (uint64_t)seconds * 1000 + fraction;
	return 0;
}

/* Says why a text is no moment. */
static int refuse(struct error_text *error, int result, const char *text)
{
	switch (result) {
	case -EDOM:
		return error_set(error, -EINVAL, "'%.80s': there is no such day or time", text);
	case -ENOENT:
		return error_set(
			error, -EINVAL,
			"'%.80s' was left out here when clocks were set forward; say which "
			"time is meant by giving the offset from UTC, as in "
			"2026-03-29T02:30:00+01:00, or Z",
			text);
	case -ENOTUNIQ:
		return error_set(
			error, -EINVAL,
			"'%.80s' came twice here, as clocks were set back; say which of the "
			"two is meant by giving the offset from UTC, as in "
			"2026-10-25T02:30:00+02:00, or Z",
			text);
	default:
		return bad_moment(error, text);
	}
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

int osd_client_parse_moment(const char *text, uint64_t now_ms, struct osd_client_moment *moment,
			    struct error_text *error)
{
	const char *digits, *end;
	int result = 0;

	text += text[0] == '@'; /* as behind an address */
	digits = text[0] == '~' || text[0] == '#' ? text + 1 : text;
	*moment = (struct osd_client_moment){ 0 };
	if (strcmp(text, "now") == 0)
		return 0;
	if (is_version(text, &moment->value)) {
		moment->kind = OSD_CLIENT_AT_VERSION;
		result = moment->value ? 0 : -EINVAL;
	} else if (digits > text && is_number(digits)) {
		moment->kind = text[0] == '~' ? OSD_CLIENT_AGO : OSD_CLIENT_AT_SEQUENCE;
		result = parse_digits(digits, &moment->value, &end);
		if (moment->value == 0)
			result = -EINVAL;
	} else if (text[0] == '-') {
		moment->kind = OSD_CLIENT_AT_TIME;
		result = parse_before(text + 1, now_ms, &moment->value);
	} else if (isdigit((unsigned char)text[0])) {
		moment->kind = OSD_CLIENT_AT_TIME;
		result = parse_time(text, &moment->value);
	} else if (isalpha((unsigned char)text[0]) && strlen(text) <= OSD_VERSION_NAME_MAX) {
		moment->kind = OSD_CLIENT_AT_NAME;
		strcpy(moment->name, text);
	} else {
		result = -EINVAL;
	}
	return result < 0 ? refuse(error, result, text) : 0;
}
