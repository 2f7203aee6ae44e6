/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What goes wrong beside the power: pages, blocks, the host's file system; when the NVRAM file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "nand/faults.h"
#include "tests/sim/world.h"

/* The host has no space: 1 as it says, 2 also for what it kept in reserve. */
static int host_full;

int __real_nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
			size_t count);
int __wrap_nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
			size_t count);
int __real_nand_program_whole(struct nand *nand, enum nand_cause cause,
			      const struct nand_page_io *pages, size_t count);
int __wrap_nand_program_whole(struct nand *nand, enum nand_cause cause,
			      const struct nand_page_io *pages, size_t count);
bool __real_nand_host_is_full(struct nand *nand);
bool __wrap_nand_host_is_full(struct nand *nand);

int __wrap_nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
			size_t count)
{
	return host_full == 2 ? -ENOSPC : __real_nand_program(nand, cause, pages, count);
}

int __wrap_nand_program_whole(struct nand *nand, enum nand_cause cause,
			      const struct nand_page_io *pages, size_t count)
{
	return host_full == 2 ? -ENOSPC : __real_nand_program_whole(nand, cause, pages, count);
}

bool __wrap_nand_host_is_full(struct nand *nand)
{
	return host_full || __real_nand_host_is_full(nand);
}

/* ---- faults of the flash ---- */

/* Those of the profile, and `unreadable` pages. */
static void set_faults(struct sim_world *world, uint64_t seed, double unreadable)
{
	const char *text = world->profile->troubles.faults;
	struct nand_faults faults = nand_faults_default();
	struct error_text error = { "" };

	if (text && nand_faults_parse(text, &faults, &error))
		fail_msg("%s", error.text);
	faults.seed = seed;
	faults.ecc_codeword_bytes = 512;
	faults.unreadable = unreadable;
	if (unreadable > 0)
		faults.on |= 1 << NAND_FAULT_UNREADABLE;
	if (nand_set_faults(world->nand, &faults, &error))
		fail_msg("%s", error.text);
}

void sim_troubles_begin(struct sim_world *world, uint64_t seed)
{
	if (world->profile->troubles.faults)
		set_faults(world, seed, 0);
}

void sim_troubles_count(struct sim_world *world)
{
	struct nand_fault_counters faults;

	if (!world->nand)
		return;
	nand_read_fault_counters(world->nand, &faults);
	world->report->counts.bits_corrected = faults.corrected_bits;
	world->report->counts.program_failures = faults.program_failures;
	world->report->counts.erase_failures = faults.erase_failures;
}

/* Clients go on meanwhile; what was there before is there again afterwards. */
static void be_unreadable(struct sim_world *world)
{
	static const double shares[] = { 0.01, 0.05, 0.3, 1 };
	struct model_run *run = &world->run;

	sim_say(world, "pages of flash can't be read");
	set_faults(world, model_run_below(run, UINT32_MAX), shares[model_run_below(run, 4)]);
	world->unreadable = true;
	sim_clients_turn(run);
	world->unreadable = false;
	set_faults(world, run->seed, 0);
	world->report->counts.unreadable++;
	model_run_look(run);
}

/* ---- a host without space ---- */

static void be_full(struct sim_world *world)
{
	struct model_run *run = &world->run;

	sim_say(world, "the host's file system is full");
	host_full = one_in(run, 2) ? 1 : 2;
	world->host_full = true;
	sim_clients_turn(run);
	world->host_full = false;
	host_full = 0;
	world->report->counts.host_full++;
	model_run_look(run);
}

void sim_troubles_turn(struct sim_world *world)
{
	const struct sim_troubles *troubles = &world->profile->troubles;
	struct model_run *run = &world->run;

	if (model_power_is_watched(run))
		return;
	if (now_and_then(run, troubles->unreadable))
		be_unreadable(world);
	if (now_and_then(run, troubles->host_full))
		be_full(world);
	if (troubles->nvram)
		sim_nvram_turn(world);
}
