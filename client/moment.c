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
			 "2026-11-21T14:32:05, 2026-11-21, 14:32, yesterday, -10min, ~2 "
			 "(modifications), now",
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

enum { SHORT_UNITS = 6 }; /* the first, which have no plural */

/* "10min" before now. */
static int parse_before(const char *text, uint64_t now_ms, uint64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {
		{ "ms", 1 },
		{ "s", 1000 },
		{ "min", 60000 },
		{ "h", 3600000 },
		{ "d", 86400000 },
		{ "w", 604800000 },
		/* As people write them, with an s where it belongs. */
		{ "second", 1000 },
		{ "minute", 60000 },
		{ "hour", 3600000 },
		{ "day", 86400000 },
		{ "week", 604800000 },
	};
	uint64_t count;
	const char *unit;

	if (parse_digits(text, &count, &unit) < 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t length = strlen(units[i].unit);

		if (strncmp(unit, units[i].unit, length) != 0 ||
		    (unit[length] && (i < SHORT_UNITS || strcmp(unit + length, "s") != 0)))
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

/* The day that a local calendar shows now, or some days before. */
static void local_day(uint64_t now_ms, int before, struct tm *day)
{
	time_t now = (time_t)(now_ms / 1000), as_utc;
	struct tm shown = { 0 };

	localtime_r(&now, &shown);
	shown.tm_hour = shown.tm_min = shown.tm_sec = 0;
	as_utc = timegm(&shown) - before * DAY_SECONDS;
	gmtime_r(&as_utc, day);
}

/* A time of day. NULL: it is none. */
static const char *parse_clock(const char *text, struct tm *parts, uint64_t *fraction)
{
	const char *behind = strptime(text, "%H:%M:%S", parts);

	if (!behind)
		behind = strptime(text, "%H:%M", parts);
	return behind ? parse_fraction(behind, fraction) : NULL;
}

/*
 * "today" and "yesterday", by the local calendar. `rest`: what is behind the word. Versions can't
 * have these names.
 */
static bool is_day_word(const char *text, uint64_t now_ms, struct tm *day, const char **rest)
{
	static const char *const words[] = { "today", "yesterday" };

	for (int before = 0; before < 2; before++) {
		size_t length = strlen(words[before]);

		if (strncmp(text, words[before], length) != 0 || !strchr("T ", text[length]))
			continue;
		local_day(now_ms, before, day);
		*rest = text + length;
		return true;
	}
	return false;
}

/* The last time at which a local clock showed this. */
static int parse_last(const char *text, uint64_t now_ms, uint64_t *ms)
{
	for (int before = 0; before < 2; before++) {
		struct tm parts;
		uint64_t fraction = 0;
		const char *rest;
		time_t seconds;
		int result;

		local_day(now_ms, before, &parts);
		rest = parse_clock(text, &parts, &fraction);
		if (!rest || *rest)
			return -EINVAL;
		if (!is_in_calendar(&parts))
			return -EDOM;
		result = find_local(&parts, &seconds);
		if (result < 0)
			return result;
		*ms = (uint64_t)seconds * 1000 + fraction;
		if (*ms <= now_ms)
			return 0;
	}
	return -EINVAL;
}

/* -EDOM: not in the calendar; -ENOENT, -ENOTUNIQ: as find_local. */
static int parse_time(const char *text, uint64_t now_ms, uint64_t *ms)
{
	struct tm parts = { 0 };
	const char *rest;
	uint64_t fraction = 0;
	bool zone, is_word;
	int minutes, result;
	time_t seconds;

	tzset();
	is_word = is_day_word(text, now_ms, &parts, &rest);
	if (!is_word)
		rest = strptime(text, "%Y-%m-%d", &parts);
	if (!rest)
		return parse_last(text, now_ms, ms);
	if (*rest == 'T' || *rest == ' ') {
		rest = parse_clock(rest + 1, &parts, &fraction);
		if (!rest)
			return -EINVAL;
	}
	/* The day is one of the local calendar. */
	if (parse_zone(rest, &zone, &minutes) < 0 || (zone && is_word))
		return -EINVAL;
	if (!is_in_calendar(&parts))
		return -EDOM;
	if (zone) {
		seconds = timegm(&parts) - minutes * 60;
	} else {
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

bool osd_client_is_day(const char *text)
{
	struct tm ignored;
	const char *rest;

	return is_day_word(text, 0, &ignored, &rest);
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
	} else if (isdigit((unsigned char)text[0]) || osd_client_is_day(text)) {
		moment->kind = OSD_CLIENT_AT_TIME;
		result = parse_time(text, now_ms, &moment->value);
	} else if (isalpha((unsigned char)text[0]) && strlen(text) <= OSD_VERSION_NAME_MAX) {
		moment->kind = OSD_CLIENT_AT_NAME;
		strcpy(moment->name, text);
	} else {
		result = -EINVAL;
	}
	return result < 0 ? refuse(error, result, text) : 0;
}
