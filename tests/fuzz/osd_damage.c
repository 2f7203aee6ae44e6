/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Makes the flash below the osd target fail, and checks what the target says of it. */
#include "tests/fuzz/osd_damage.h"
#include "tests/engine/by_address.h"

#include <errno.h>
#include <string.h>

#include "engine/engine.h"
#include "nand/faults.h"

static struct nand_faults faults_of(uint8_t choice)
{
	static const double shares[] = { 0, 0.05, 0.3, 1 };
	struct nand_faults faults = nand_faults_default();

	faults.seed = choice;
	faults.ecc_codeword_bytes = 512;
	faults.unreadable = shares[choice >> 6];
	faults.on = faults.unreadable > 0 ? 1 << NAND_FAULT_UNREADABLE : 0;
	if (choice & 1 << 5) {
		faults.on |= 1 << NAND_FAULT_PROGRAM;
		faults.program_fails_at = 1 + (choice & 3);
	}
	if (choice & 1 << 4) {
		faults.on |= 1 << NAND_FAULT_ERASE;
		faults.erase_fails_at = 1 + (choice >> 2 & 3);
	}
	return faults;
}

static void set(struct osd_fuzz_unit *unit, uint8_t choice)
{
	struct nand_faults faults = faults_of(choice);
	struct error_text error = { "" };

	fuzz_check(nand_set_faults(unit->nand, choice ? &faults : NULL, &error) == 0);
}

void osd_damage_choose(struct osd_fuzz_unit *unit, uint8_t choice)
{
	if (choice == 0 && unit->damage == 0)
		return;
	unit->damage = choice;
	unit->worn |= (choice & (1 << 5 | 1 << 4)) != 0;
	set(unit, choice);
}

void osd_damage_lift(struct osd_fuzz_unit *unit)
{
	if (unit->damage != 0)
		set(unit, 0);
}

void osd_damage_restore(struct osd_fuzz_unit *unit)
{
	if (unit->damage != 0)
		set(unit, unit->damage);
}

/* ---- what can be read in spite of it ---- */

#define READ_BYTES 2048
#define OBJECTS    4

struct read {
	int result;
	uint64_t got;
	uint8_t data[READ_BYTES];
};

static void read_object(struct osd_fuzz_unit *unit, uint64_t object, struct read *read)
{
	struct engine_address address = { .partition = OSD_SCENE_PARTITION, .object = object };
	struct engine_txn *txn;

	read->result = engine_begin(unit->engine, ENGINE_READ, &txn);
	if (read->result != 0)
		return;
	read->result = engine_read(txn, address, 0, read->data, READ_BYTES, &read->got);
	engine_abort(txn);
}

void osd_damage_check(struct osd_fuzz_unit *unit)
{
	static struct read with[OBJECTS], without;

	if (unit->damage == 0)
		return;
	for (uint64_t i = 0; i < OBJECTS; i++)
		read_object(unit, OSD_SCENE_OBJECT + i, &with[i]);
	osd_damage_lift(unit);
	for (uint64_t i = 0; i < OBJECTS; i++) {
		if (with[i].result == -EBADMSG)
			continue;
		read_object(unit, OSD_SCENE_OBJECT + i, &without);
		fuzz_check(with[i].result == without.result);
		fuzz_check(without.result != 0 ||
			   (with[i].got == without.got &&
			    memcmp(with[i].data, without.data, without.got) == 0));
	}
	osd_damage_restore(unit);
}
