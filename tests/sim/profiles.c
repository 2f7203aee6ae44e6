/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The profiles: which device, how often what. */
#include <string.h>

#include "tests/sim/sim.h"

/* What all of them have in common, where they do not say otherwise. */
#define USUAL \
	.jumps = 150, .upheavals = 600, .looks = 1500, .crashes = 200, .aborts = 12, .comebacks = 6

const struct sim_profile sim_profiles[] = {
	{
		.name = "engine",
		.what = "calls of the engine, in memory",
		.weights = { .reading = 33, .history = 10, .disturbed = 20, USUAL },
		.operations = 100000,
	},
	{
		.name = "power",
		.what = "calls of the engine while the power fails, also with the host",
		.flash = { .blocks = 1500, .power_fails = true },
		.sealers = true,
		.weights = { .reading = 20,
			     .history = 17,
			     .cuts = 12,
			     .failures = 32,
			     .wholes = 6,
			     USUAL },
		.operations = 30000,
	},
	{
		.name = "restless",
		.what = "partitions and clones that come and go, while the power fails",
		.flash = { .blocks = 500, .power_fails = true, .restless = true },
		.sealers = true,
		.weights = { .reading = 25,
			     .history = 22,
			     .cuts = 20,
			     .failures = 32,
			     .wholes = 6,
			     USUAL },
		.operations = 30000,
	},
	{
		.name = "osd",
		.what = "commands of several clients, in the order of their task attributes",
		.flash = { .blocks = 1500 },
		.sealers = true,
		.weights = { .reading = 2, .history = 4, .others = 90, USUAL },
		.operations = 40000,
	},
	{
		.name = "secured",
		.what = "the same where partitions are closed, with credentials good and bad, "
			"while "
			"the power fails",
		.flash = { .blocks = 1500, .power_fails = true },
		.sealers = true,
		.secured = true,
		.weights = { .others = 100,
			     .upheavals = 600,
			     .looks = 1500,
			     .cuts = 12,
			     .wholes = 6 },
		.operations = 40000,
	},
	{
		.name = "osd-power",
		.what = "the same while the power fails, also with the host",
		.flash = { .blocks = 1500, .power_fails = true },
		.sealers = true,
		.weights = { .reading = 2,
			     .history = 6,
			     .others = 85,
			     .cuts = 8,
			     .failures = 24,
			     .wholes = 6,
			     USUAL },
		.operations = 30000,
	},
	{
		.name = "faults",
		.what = "bit errors, bad blocks, unreadable pages; NVRAM damaged, lost or older",
		.flash = { .blocks = 2500 },
		.sealers = true,
		.weights = { .reading = 8, .history = 6, .others = 70, USUAL },
		.troubles = { .unreadable = 40,
			      .nvram = 100,
			      .faults = "rber=0.0001,program=0.00002,erase=0.0002" },
		.operations = 30000,
	},
	{
		.name = "full",
		.what = "a device so small that it is merged all the time, and a host without "
			"space",
		.flash = { .blocks = 300 },
		.sealers = true,
		.weights = { .reading = 8, .history = 8, .others = 60, USUAL },
		.troubles = { .host_full = 60 },
		.operations = 30000,
	},
	{
		.name = "stuffed",
		.what = "a device that runs full, because nobody merges it",
		.flash = { .blocks = 700, .merge_manual = true },
		.sealers = true,
		.weights = { .reading = 8, .history = 8, .others = 60, USUAL },
		.operations = 100000,
	},
	{
		.name = "clock",
		.what = "a clock that is set ahead and back all the time",
		.flash = { .blocks = 1500 },
		.sealers = true,
		.weights = { .reading = 10,
			     .history = 25,
			     .others = 40,
			     .jumps = 8,
			     .upheavals = 60,
			     .looks = 300,
			     .crashes = 100,
			     .aborts = 12,
			     .comebacks = 6 },
		.operations = 40000,
	},
	{ .name = NULL },
};

const struct sim_profile *sim_profile_find(const char *name)
{
	for (const struct sim_profile *profile = sim_profiles; profile->name; profile++)
		if (strcmp(profile->name, name) == 0)
			return profile;
	return NULL;
}
