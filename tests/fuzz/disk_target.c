/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Sequences of commands to a disk of two ranges, on flash in memory, as if new for each. Whatever
 * their bytes are, each answers what the model of a disk says, and leaves its blocks as they are
 * there: also after a crash, a rollback, and a merge in between.
 *
 * An input: a byte of LOOKS bits, then commands. Each is a byte of HOW bits, the 16 bytes of its
 * CDB, the lengths of Data-Out and of the room for Data-In (16 bits each), what Data-Out is filled
 * with (8 bits), and with HOW_LIST 24 bytes that Data-Out begins with. With HOW_EVENT it is that
 * byte alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/history.h"
#include "engine/options.h"
#include "tests/fuzz/disk_model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/osd_flash.h"

enum {
	HOW_AT_ONCE = 1 << 0,       /* first as on the main thread */
	HOW_WRITE_THROUGH = 1 << 1, /* no write cache */
	HOW_PROTECTED = 1 << 2,     /* software write protection */
	HOW_LIST = 1 << 3,
	HOW_NEAR = 1 << 4, /* a command of disks, on few blocks around the end of a range */
	HOW_FITS = 1 << 5, /* Data-Out and Data-In are as long as it wants them */
	HOW_SAME = 1 << 6, /* Data-Out begins with what its blocks hold */
	/* No command: bits 0 and 1 choose what happens to the disk meanwhile. */
	HOW_EVENT = 1 << 7,
};

/* The blocks near the end of a range are compared with the model's at the end in any case. */
enum { LOOKS_AFTER_EACH = 1 << 0, LOOKS_AT_ALL = 7 << 1 };

enum { EVENT_CRASH, EVENT_SNAPSHOT, EVENT_ROLLBACK, EVENT_MERGE };

enum { CDB_BYTES = 16, LIST_BYTES = 24, COMMANDS_MAX = 24, DATA_BYTES_MAX = 8192 };

enum { UNTOUCHED = 0xEE };

/* Around the end of the first range, and a little beyond the end of the disk. */
enum { NEAR_FIRST = DISK_RANGE - 32, NEAR_BLOCKS = DISK_BLOCKS + 4 - NEAR_FIRST };
enum { NEAR_COUNT = 9, FILLED_BLOCKS = 40 };

static const uint8_t operations[] = {
	SBC_READ_6,       SBC_WRITE_6,           SBC_READ_10,
	SBC_WRITE_10,     SBC_READ_16,           SBC_WRITE_16,
	SBC_WRITE_12,     SBC_READ_12,           SBC_UNMAP,
	SBC_UNMAP,        SBC_WRITE_SAME_10,     SBC_WRITE_SAME_16,
	SBC_ORWRITE_16,   SBC_COMPARE_AND_WRITE, SBC_COMPARE_AND_WRITE,
	SBC_VERIFY_16,    SBC_VERIFY_10,         SBC_WRITE_AND_VERIFY_16,
	SBC_PRE_FETCH_16, SBC_READ_CAPACITY_10,  SBC_SERVICE_ACTION_IN_16,
};

struct disk_unit {
	struct nand *nand;
	struct engine *engine;
	struct disk *disk;
	uint64_t now_ms;
	uint32_t version; /* that the model remembers; 0: none */
};

static struct disk_unit unit;
static struct disk_model model;
/* As the flash is that each input begins with. */
static uint8_t first_blocks[sizeof(model.now)], blocks[sizeof(model.now)];
static uint64_t executed;

static void must(int result, const struct error_text *error, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %s (%d)\n", what, error->text, result);
	abort();
}

/* ---- the unit ---- */

static uint64_t read_clock(void *context)
{
	(void)context;
	return unit.now_ms;
}

static struct engine_options engine_options(void)
{
	return (struct engine_options){ .muninn.rows = 1,
					.muninn.segment_pages = 8,
					.muninn.record_bytes = 128,
					.onode_cache_entries = 1,
					.directory_cache_nodes = 1,
					.version_cache_entries = 1,
					.clock_ms = read_clock };
}

static void open_unit(void)
{
	static const uint8_t uuid[16] = { 1 };
	const struct disk_options disk = { .bytes = sizeof(model.now) };
	struct engine_options options = engine_options();
	struct error_text error = { "" };

	must(engine_open(unit.nand, &options, &unit.engine, &error), &error, "engine_open");
	must(disk_open(unit.engine, uuid, &disk, &unit.disk, &error), &error, "disk_open");
}

/* Blocks at both sides of the end of the first range. */
static void fill(void)
{
	uint8_t cdb[CDB_BYTES] = { SBC_WRITE_16 };
	const uint32_t first = DISK_RANGE - FILLED_BLOCKS / 2;
	struct disk_command command = { .cdb = cdb,
					.data_out = first_blocks + (size_t)first * DISK_BLOCK,
					.data_out_length = (size_t)FILLED_BLOCKS * DISK_BLOCK };

	memset(first_blocks + (size_t)first * DISK_BLOCK, 0x5A, command.data_out_length);
	put_be64(cdb + 2, first);
	put_be32(cdb + 10, FILLED_BLOCKS);
	disk_execute(unit.disk, &command);
	fuzz_check(command.status == SCSI_STATUS_GOOD);
}

static void drop_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

/* Made once in a process, and put back for each input. */
static struct osd_flash_state *make_flash(void)
{
	static const struct nand_geometry geometry = { .page_bytes = 512,
						       .spare_bytes = 64,
						       .pages_per_block = 8,
						       .blocks = 1024,
						       .channels = 1,
						       .dies_per_channel = 1 };
	struct engine_options options = engine_options();
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	unit.now_ms = UINT64_C(1700000000000);
	log_configure(drop_line, LOG_LEVEL_ERROR);
	must(engine_nvram_bytes(&geometry, &options, &nvram_bytes, &error), &error, "NVRAM");
	must(nand_open_memory(&geometry, nvram_bytes, &unit.nand, &error), &error, "flash");
	must(engine_format(unit.nand, &options, &error), &error, "engine_format");
	open_unit();
	fill();
	disk_close(unit.disk);
	must(engine_close(unit.engine), &error, "engine_close");
	return osd_flash_remember(unit.nand);
}

/* Blocks are those of the model. */
static void compare_blocks(uint32_t first, uint32_t count)
{
	uint8_t cdb[CDB_BYTES] = { SBC_READ_16 };
	struct disk_command command = { .cdb = cdb,
					.data_in = blocks,
					.data_in_capacity = (size_t)count * DISK_BLOCK };

	put_be64(cdb + 2, first);
	put_be32(cdb + 10, count);
	disk_execute(unit.disk, &command);
	fuzz_check(command.status == SCSI_STATUS_GOOD);
	disk_model_check(&model, &command);
}

/* Those around the end of the first range, or all. */
static void compare(bool all)
{
	if (all)
		compare_blocks(0, DISK_BLOCKS);
	else
		compare_blocks(NEAR_FIRST, DISK_BLOCKS - NEAR_FIRST);
}

/* ---- events ---- */

static void crash(void)
{
	disk_close(unit.disk);
	engine_abandon(unit.engine);
	open_unit();
}

/* Without space for it there is no new version. */
static void keep_version(void)
{
	struct engine_txn *txn;
	uint32_t version;
	int result = engine_begin(unit.engine, ENGINE_HISTORY, &txn);

	if (!result)
		result = engine_snapshot(txn, ENGINE_FIRST_ID, NULL, &version);
	else
		txn = NULL;
	if (!result)
		result = engine_commit(txn, false);
	else if (txn)
		engine_abort(txn);
	fuzz_check(result == 0 || result == -ENOSPC);
	if (result)
		return;
	unit.version = version;
	memcpy(model.then, model.now, sizeof(model.now));
}

static void go_back(void)
{
	const struct engine_moment to = { .kind = ENGINE_AT_VERSION, .value = unit.version };
	struct engine_txn *txn;

	if (!unit.version || engine_begin(unit.engine, ENGINE_HISTORY, &txn))
		return;
	must(engine_rollback(txn, ENGINE_FIRST_ID, to), &(struct error_text){ "" }, "rollback");
	must(engine_commit(txn, false), &(struct error_text){ "" }, "commit of a rollback");
	memcpy(model.now, model.then, sizeof(model.now));
}

static void happen(uint8_t how)
{
	struct engine_merge_result merged = { 0 };

	unit.now_ms += 2000;
	switch (how & 3) {
	case EVENT_CRASH:
		crash();
		break;
	case EVENT_SNAPSHOT:
		keep_version();
		break;
	case EVENT_ROLLBACK:
		go_back();
		break;
	default:
		engine_merge(unit.engine, &merged);
		break;
	}
}

/* ---- commands ---- */

/* Block and count of a CDB by the length that its operation code says. */
static void put_range(uint8_t *cdb, uint32_t block, uint32_t count)
{
	switch (cdb[0] >> 5) {
	case 0:
		put_be32(cdb, (uint32_t)cdb[0] << 24 | block);
		cdb[4] = (uint8_t)count;
		break;
	case 1:
	case 2:
		put_be32(cdb + 2, block);
		put_be16(cdb + 7, (uint16_t)count);
		break;
	case 5:
		put_be32(cdb + 2, block);
		put_be32(cdb + 6, count);
		break;
	default:
		put_be64(cdb + 2, block);
		put_be32(cdb + 10, count);
		break;
	}
}

/* Makes something of any bytes that does something to blocks that others use too. */
static void bring_near(uint8_t *cdb)
{
	uint32_t block = NEAR_FIRST + cdb[2] % NEAR_BLOCKS;
	uint32_t count = cdb[3] % NEAR_COUNT;

	cdb[0] = operations[cdb[0] % sizeof(operations)];
	if (cdb[0] == SBC_SERVICE_ACTION_IN_16)
		cdb[1] = cdb[1] & 1 ? SBC_GET_LBA_STATUS : SBC_READ_CAPACITY_16;
	else
		cdb[1] &= 0x0F; /* without protection */
	if (cdb[0] == SBC_UNMAP)
		put_be16(cdb + 7, LIST_BYTES);
	else if (cdb[0] != SBC_READ_CAPACITY_10)
		put_range(cdb, block, cdb[0] == SBC_SERVICE_ACTION_IN_16 ? 8 * count : count);
}

static size_t bytes_wanted(const struct block_cdb *cdb)
{
	size_t bytes = (size_t)cdb->count * DISK_BLOCK;

	switch (cdb->action) {
	case BLOCK_UNMAP:
	case BLOCK_CAPACITY_LONG:
	case BLOCK_STATUS:
		return cdb->count;
	case BLOCK_WRITE_SAME:
		return cdb->no_data ? 0 : DISK_BLOCK;
	case BLOCK_COMPARE_AND_WRITE:
		return 2 * bytes;
	default:
		return bytes;
	}
}

/* The list of an UNMAP: one descriptor, with what the input says of its blocks. */
static void make_list(uint8_t *out, bool near)
{
	if (!near)
		return;
	put_be16(out, LIST_BYTES - 2);
	put_be16(out + 2, LIST_BYTES - 8);
	put_be64(out + 8, NEAR_FIRST + out[15] % NEAR_BLOCKS);
	put_be32(out + 16, out[19] % NEAR_COUNT);
}

static void fill_out(struct fuzz_reader *input, uint8_t how, const struct block_cdb *cdb,
		     uint8_t *out, size_t length)
{
	size_t taken;
	const uint8_t *from;

	if (how & HOW_SAME && cdb->block < DISK_BLOCKS)
		memcpy(out, model.now + cdb->block * DISK_BLOCK,
		       min_u64(min_u64(length, (uint64_t)cdb->count * DISK_BLOCK),
			       (DISK_BLOCKS - cdb->block) * DISK_BLOCK));
	if (!(how & HOW_LIST))
		return;
	from = fuzz_take(input, LIST_BYTES, &taken);
	taken = min_u64(taken, length);
	if (taken)
		memcpy(out, from, taken);
	if (length >= LIST_BYTES)
		make_list(out, how & HOW_NEAR && cdb->action == BLOCK_UNMAP);
}

static void run_command(struct fuzz_reader *input, uint8_t how)
{
	uint8_t cdb[CDB_BYTES] = { 0 };
	size_t taken, out_length, in_capacity;
	const uint8_t *from = fuzz_take(input, CDB_BYTES, &taken);
	struct disk_command command = { .cdb = cdb,
					.write_through = how & HOW_WRITE_THROUGH,
					.write_protected = how & HOW_PROTECTED };
	struct block_cdb decoded;
	uint8_t *out, *in;

	if (taken)
		memcpy(cdb, from, taken);
	if (how & HOW_NEAR)
		bring_near(cdb);
	out_length = fuzz_take16(input) % (DATA_BYTES_MAX + 1);
	in_capacity = fuzz_take16(input) % (DATA_BYTES_MAX + 1);
	if (block_cdb_decode(cdb, &decoded) && how & HOW_FITS &&
	    bytes_wanted(&decoded) <= DATA_BYTES_MAX)
		out_length = in_capacity = bytes_wanted(&decoded);
	out = fuzz_exact(out_length, fuzz_take8(input));
	in = fuzz_exact(in_capacity, UNTOUCHED);
	fill_out(input, how, &decoded, out, out_length);
	command.data_out = out_length ? out : NULL;
	command.data_out_length = out_length;
	command.data_in = in_capacity ? in : NULL;
	command.data_in_capacity = in_capacity;
	if (!(how & HOW_AT_ONCE) || !disk_execute_at_once(unit.disk, &command, NULL))
		disk_execute(unit.disk, &command);
	executed++;
	disk_model_check(&model, &command);
	/* Nothing is written behind what it has for the initiator. */
	for (size_t at = command.data_in_length; at < in_capacity; at++)
		fuzz_check(in[at] == UNTOUCHED);
	free(out);
	free(in);
}

static void run(const uint8_t *data, size_t size)
{
	static struct osd_flash_state *flash;
	struct fuzz_reader input = { .data = data, .left = size };
	uint8_t looks = fuzz_take8(&input);
	bool at_all = (looks & LOOKS_AT_ALL) == LOOKS_AT_ALL;

	if (!flash)
		flash = make_flash();
	osd_flash_restore(flash);
	unit.now_ms = UINT64_C(1700000000000);
	unit.version = 0;
	memcpy(model.now, first_blocks, sizeof(model.now));
	open_unit();
	for (unsigned i = 0; i < COMMANDS_MAX && input.left; i++) {
		uint8_t how = fuzz_take8(&input);

		if (how & HOW_EVENT)
			happen(how);
		else
			run_command(&input, how);
		if (looks & LOOKS_AFTER_EACH)
			compare(at_all);
	}
	compare(at_all);
	disk_close(unit.disk);
	engine_abandon(unit.engine);
}

static uint64_t commands(void)
{
	return executed;
}

const struct fuzz_target fuzz_disk = {
	.name = "disk",
	.run = run,
	.commands = commands,
};
