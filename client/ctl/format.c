/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Times and sizes as people read them. */
#include <stdio.h>
#include <time.h>

#include "client/ctl/ctl.h"

const char *ctl_format_seconds(int64_t seconds, unsigned ms, char text[CTL_TIME_TEXT])
{
	const time_t time = (time_t)seconds;
	struct tm broken_down;
	size_t used = 0;

	if (gmtime_r(&time, &broken_down))
		used = strftime(text, CTL_TIME_TEXT - sizeof(".000Z") + 1, "%Y-%m-%dT%H:%M:%S",
				&broken_down);
	if (used == 0)
		return "?";
	snprintf(text + used, CTL_TIME_TEXT - used, ".%03uZ", ms % 1000);
	return text;
}

const char *ctl_format_time(uint64_t ms, char text[CTL_TIME_TEXT])
{
	return ctl_format_seconds((int64_t)(ms / 1000), (unsigned)(ms % 1000), text);
}

const char *ctl_format_size(uint64_t bytes, char text[CTL_SIZE_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(text, CTL_SIZE_TEXT, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return text;
}
