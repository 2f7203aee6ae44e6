/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* What goes wrong beside the power: pages, blocks, the NVRAM file, the host's file system. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/bytes.h"
#include "engine/history/past.h"
#include "engine/objects/objects.h"
#include "engine/open.h"
#include "nand/faults.h"
#include "tests/sim/world.h"

/* The host has no space: 1 as it says, 2 also for what it kept in reserve. */
static int host_full;

int __real_nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
			size_t count);
int __wrap_nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
			size_t count);
bool __real_nand_host_is_full(struct nand *nand);
bool __wrap_nand_host_is_full(struct nand *nand);

int __wrap_nand_program(struct nand *nand, enum nand_cause cause, const struct nand_page_io *pages,
			size_t count)
{
	return host_full == 2 ? -ENOSPC : __real_nand_program(nand, cause, pages, count);
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

/* ---- damage to the NVRAM file ---- */

enum { DAMAGED_PAGE = 4096, REFUSED = 10 };

static const char *const damages[] = { "zeroed", "overwritten", "with a bit changed", "exchanged" };

static void damage_page(struct model_run *run, uint8_t *at, uint8_t *other, uint64_t length,
			unsigned how)
{
	uint8_t page[DAMAGED_PAGE];

	switch (how) {
	case 0:
		memset(at, 0, length);
		break;
	case 1:
		for (uint64_t n = 0; n < length; n++)
			at[n] = (uint8_t)model_run_below(run, 256);
		break;
	case 2:
		at[model_run_below(run, length)] ^= (uint8_t)(1u << model_run_below(run, 8));
		break;
	default:
		memcpy(page, at, length);
		memcpy(at, other, length);
		memcpy(other, page, length);
		break;
	}
}

static void damage_nvram(struct model_run *run)
{
	uint64_t bytes, pages;
	uint8_t *nvram = nand_nvram(sim_world_of(run)->nand, &bytes);
	uint64_t page, other;
	unsigned how = (unsigned)model_run_below(run, 4);

	pages = bytes / DAMAGED_PAGE;
	page = model_run_below(run, pages);
	other = model_run_below(run, pages);
	sim_say(sim_world_of(run), "page %llu of the NVRAM file is %s (%llu)",
		(unsigned long long)page, damages[how], (unsigned long long)other);
	damage_page(run, nvram + page * DAMAGED_PAGE, nvram + other * DAMAGED_PAGE, DAMAGED_PAGE,
		    how);
}

/* As model_store.open: a refusal ends the process, which is here for this alone. */
static struct engine *open_damaged(struct model_run *run)
{
	struct error_text error = { "" };

	damage_nvram(run);
	if (engine_open(run->store.context, &run->options, &run->engine, &error))
		_exit(REFUSED);
	run->engine->past->pieces_put_again = MODEL_PIECES_PUT_AGAIN;
	return run->engine;
}

/* In a process of its own: opening refuses, or all is as the model says. */
static void open_with_damage(struct sim_world *world, bool killed)
{
	struct model_run *run = &world->run;

	run->store.open = open_damaged;
	model_run_restart(run, killed);
	model_run_look(run);
	_exit(0);
}

static void damage(struct sim_world *world)
{
	bool killed = one_in(&world->run, 2);
	int status = 0;
	pid_t child;

	model_run_see(&world->run);
	fflush(NULL);
	child = fork();
	if (child == 0)
		open_with_damage(world, killed);
	assert_true(child > 0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || (WEXITSTATUS(status) && WEXITSTATUS(status) != REFUSED))
		fail_msg("with a damaged NVRAM file, of a target that was %s, opening neither "
			 "refused nor found what was there (status %x)",
			 killed ? "killed" : "closed", status);
	world->report->counts.nvram_refused += WEXITSTATUS(status) == REFUSED;
	world->report->counts.nvram_whole += WEXITSTATUS(status) == 0;
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
	if (now_and_then(run, troubles->nvram))
		damage(world);
}
