/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Random commands on a disk against a model: an array of numbers, one for each block. With
 * snapshots, rollbacks, clones, crashes of the process and power cuts in between. MUNINN_SEED
 * chooses another run, MUNINN_OPERATIONS its length: a tenth of that with blocks of 4096.
 */
#include "tests/disk/drive.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "common/bytes.h"
#include "common/log.h"
#include "nand/power.h"
#include "tests/repetition.h"

enum {
	BLOCKS = 20000, /* more than a range, and no whole number of pages */
	BLOCKS_AT_ONCE = 1024,
	VERSIONS = 8,
	STEPS = 1200,
};

struct contents {
	uint32_t block[BLOCKS];
};

struct world {
	struct drive *drive;
	uint64_t random;
	uint32_t last; /* number that was written */
	uint32_t block_bytes;
	struct contents now, before; /* `before`: of the last command */
	uint32_t versions[VERSIONS]; /* 0: none */
	struct contents then[VERSIONS];
	uint32_t taken, commands, reads, refused;
	uint64_t blocks_checked;
	uint32_t rollbacks, clones, crashes, cuts;
	bool is_large; /* ranges are long */
};

static uint64_t draw(struct world *world)
{
	uint64_t z = world->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint32_t below(struct world *world, uint32_t limit)
{
	return (uint32_t)(draw(world) % limit);
}

/* Mostly few blocks, and often of the same places, so that they overlap. */
static uint32_t some_range(struct world *world, uint32_t *first)
{
	uint32_t most = world->is_large || !below(world, 4) ? BLOCKS_AT_ONCE : 24;
	uint32_t count = 1 + below(world, most);

	*first = below(world, 3) ? below(world, 400) : below(world, BLOCKS);
	return (uint32_t)min_u64(count, BLOCKS - *first);
}

static bool is_so(const struct world *world, const uint8_t *data, const uint32_t *wanted,
		  uint32_t count)
{
	for (uint32_t n = 0; n < count; n++)
		for (uint32_t at = 0; at < world->block_bytes; at += 4)
			if (get_be32(data + (size_t)n * world->block_bytes + at) != wanted[n])
				return false;
	return true;
}

static void read_and_check(struct world *world, uint32_t first, uint32_t count)
{
	struct drive *drive = world->drive;
	size_t bytes = (size_t)count * world->block_bytes;

	assert_int_equal(drive_range(drive, SBC_READ_16, 0, first, count, 0, bytes), 0);
	assert_true(is_so(world, drive->in, world->now.block + first, count));
	world->blocks_checked += count;
	world->reads++;
}

static void check_everything(struct world *world)
{
	for (uint32_t first = 0; first < BLOCKS; first += BLOCKS_AT_ONCE / 8)
		read_and_check(world, first, (uint32_t)min_u64(BLOCKS - first, BLOCKS_AT_ONCE / 8));
}

/* Puts numbers into the model, and into Data-Out as blocks. */
static void make_blocks(struct world *world, uint32_t first, uint32_t count, uint8_t *data)
{
	for (uint32_t n = 0; n < count; n++) {
		world->now.block[first + n] = ++world->last;
		drive_fill(data + (size_t)n * world->block_bytes, world->block_bytes, world->last);
	}
}

/* What a command returns when the power may fail: 0, or that it failed. */
static uint32_t write_blocks(struct world *world, uint32_t first, uint32_t count)
{
	struct drive *drive = world->drive;
	size_t bytes = (size_t)count * world->block_bytes;
	uint8_t operation = below(world, 4) ? SBC_WRITE_16 : SBC_WRITE_AND_VERIFY_16;

	make_blocks(world, first, count, drive->out);
	return drive_range(drive, operation, 0x08 * !below(world, 4), first, count, bytes, 0);
}

static uint32_t or_blocks(struct world *world, uint32_t first, uint32_t count)
{
	struct drive *drive = world->drive;
	size_t bytes = (size_t)count * world->block_bytes;
	uint32_t bits = UINT32_C(1) << below(world, 32);

	for (uint32_t n = 0; n < count; n++)
		world->now.block[first + n] |= bits;
	drive_fill(drive->out, bytes, bits);
	return drive_range(drive, SBC_ORWRITE_16, 0, first, count, bytes, 0);
}

static uint32_t same_blocks(struct world *world, uint32_t first, uint32_t count)
{
	struct drive *drive = world->drive;
	uint32_t number = below(world, 2) ? ++world->last : 0;
	bool no_data = !number && below(world, 2);

	for (uint32_t n = 0; n < count; n++)
		world->now.block[first + n] = number;
	drive_fill(drive->out, world->block_bytes, number);
	return drive_range(drive, SBC_WRITE_SAME_16, (uint8_t)(0x08 * below(world, 2) | no_data),
			   first, count, no_data ? 0 : world->block_bytes, 0);
}

static uint32_t unmap_blocks(struct world *world, uint32_t first, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++)
		world->now.block[first + n] = 0;
	return drive_unmap(world->drive, first, count);
}

/* Half of them find something else. */
static uint32_t compare_and_write(struct world *world, uint32_t first, uint32_t count)
{
	struct drive *drive = world->drive;
	bool fits = below(world, 2);
	uint32_t result;
	size_t bytes;

	count = (uint32_t)min_u64(count, 100);
	bytes = (size_t)count * world->block_bytes;
	for (uint32_t n = 0; n < count; n++)
		drive_fill(drive->out + (size_t)n * world->block_bytes, world->block_bytes,
			   world->now.block[first + n]);
	drive->out[below(world, (uint32_t)bytes)] ^= !fits;
	make_blocks(world, first, count, drive->out + bytes);
	memset(drive->cdb, 0, sizeof(drive->cdb));
	drive->cdb[0] = SBC_COMPARE_AND_WRITE;
	put_be64(drive->cdb + 2, first);
	drive->cdb[13] = (uint8_t)count;
	result = drive_run(drive, 2 * bytes, 0);
	if (!fits)
		world->now = world->before;
	return fits || result != SENSE(MISCOMPARE, MISCOMPARE_DURING_VERIFY_OPERATION) ? result : 0;
}

/* One command that changes blocks. */
static uint32_t change(struct world *world)
{
	uint32_t first, count = some_range(world, &first), what = below(world, 100);

	world->before = world->now;
	world->commands++;
	world->drive->command.write_through = !below(world, 8);
	return (what < 60   ? write_blocks
		: what < 68 ? or_blocks
		: what < 76 ? same_blocks
		: what < 90 ? unmap_blocks
			    : compare_and_write)(world, first, count);
}

/*
 * Merging goes on before commands, a little each time; what came with many blocks at once may be
 * too much for it. Then nothing has happened.
 */
static void take_result(struct world *world, uint32_t result)
{
	struct engine_merge_result merged = { 0 };

	if (!result)
		return;
	assert_int_equal(result, SENSE(DATA_PROTECT, SPACE_ALLOCATION_FAILED_WRITE_PROTECT));
	world->now = world->before;
	world->refused++;
	for (int n = 0; n < 200 && !engine_merge(world->drive->engine, &merged); n++)
		;
}

/* ---- history ---- */

/* False: a clone stood on it at a moment that can still be reached. */
static bool drop_version(struct world *world, uint32_t version)
{
	struct engine_txn *txn;
	int result;

	assert_int_equal(engine_begin(world->drive->engine, ENGINE_RESCUE, &txn), 0);
	result = engine_version_drop(txn, DRIVE_PARTITION, version);
	if (!result)
		result = engine_commit(txn, false);
	else
		engine_abort(txn);
	assert_true(result == 0 || result == -EBUSY);
	return !result;
}

static void keep_version(struct world *world)
{
	uint32_t place = world->taken++ % VERSIONS;

	if (world->versions[place] && !drop_version(world, world->versions[place]))
		return;
	world->versions[place] = drive_snapshot(world->drive);
	world->then[place] = world->now;
}

static void go_back(struct world *world)
{
	uint32_t place = below(world, VERSIONS);

	if (!world->versions[place])
		return;
	drive_roll_back(world->drive, world->versions[place]);
	world->now = world->then[place];
	world->rollbacks++;
	check_everything(world);
}

/* ---- clones ---- */

/* 0: too many partitions are on record. */
static uint64_t make_clone(struct world *world, uint32_t version)
{
	const struct engine_moment moment = { .kind = ENGINE_AT_VERSION, .value = version };
	struct engine_txn *txn;
	uint64_t partition = 0;
	int result;

	world->drive->now += 2000;
	assert_int_equal(engine_begin(world->drive->engine, ENGINE_WRITE, &txn), 0);
	result = engine_clone(txn, DRIVE_PARTITION, moment, 0, true, &partition);
	if (!result) {
		assert_int_equal(engine_commit(txn, false), 0);
		return partition;
	}
	engine_abort(txn);
	assert_true(result == -ENOSPC || result == -EFBIG);
	return 0;
}

static void remove_clone(struct world *world, uint64_t partition)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(world->drive->engine, ENGINE_FREE, &txn), 0);
	assert_int_equal(engine_partition_remove(txn, partition, true), 0);
	assert_int_equal(engine_commit(txn, false), 0);
}

/* The commands go to another disk meanwhile, whose blocks are those of the model then. */
static void use_clone(struct world *world, uint64_t partition, bool writes)
{
	struct drive *drive = world->drive;
	struct disk *present = drive->disk;

	drive->disk = drive_open_other(drive, partition);
	check_everything(world);
	for (int n = 0; writes && n < 4; n++)
		take_result(world, change(world));
	disk_close(drive->disk);
	drive->disk = present;
}

/* A clone is what its version was, takes writes, keeps them in a crash, and the disk stays. */
static void clone_version(struct world *world)
{
	static struct contents present;
	uint32_t place = below(world, VERSIONS);
	uint64_t partition = world->versions[place] ? make_clone(world, world->versions[place]) : 0;

	if (!partition)
		return;
	present = world->now;
	world->now = world->then[place];
	use_clone(world, partition, true);
	if (below(world, 2))
		drive_crash(world->drive);
	use_clone(world, partition, false);
	world->now = present;
	world->clones++;
	check_everything(world);
	remove_clone(world, partition);
}

/* ---- failures ---- */

/* Whether each block of the disk is that of one of the two: of one command all, or none. */
static void find_out(struct world *world)
{
	struct drive *drive = world->drive;
	bool old = true, new = true;

	for (uint32_t first = 0; first < BLOCKS; first += BLOCKS_AT_ONCE / 8) {
		uint32_t count = (uint32_t)min_u64(BLOCKS - first, BLOCKS_AT_ONCE / 8);
		size_t bytes = (size_t)count * world->block_bytes;

		assert_int_equal(drive_range(drive, SBC_READ_16, 0, first, count, 0, bytes), 0);
		old &= is_so(world, drive->in, world->before.block + first, count);
		new &= is_so(world, drive->in, world->now.block + first, count);
	}
	assert_true(old || new);
	if (!new)
		world->now = world->before;
}

/* The command that a number draws: the same one for the same number. */
static uint32_t change_of(struct world *world, uint64_t command)
{
	uint64_t random = world->random;
	uint32_t result;

	world->random = command;
	result = change(world);
	world->random = random;
	return result;
}

/* The power fails at the n-th operation of a command. True: it did not come to that. */
static bool cut_at(struct world *world, uint64_t operation, uint64_t command)
{
	const struct nand_power_cut cut = { .after = operation,
					    .page = (enum nand_cut_page)below(world,
									      NAND_CUT_PAGES),
					    .torn_bytes = below(world, 4000),
					    .seed = world->random };
	struct nand_power_status status;
	struct error_text error;
	uint32_t result;

	assert_int_equal(nand_arm_power_cut(world->drive->nand, &cut, &error), 0);
	result = change_of(world, command);
	nand_power_status(world->drive->nand, &status);
	if (!status.off) {
		/* What is refused makes room by merging, which is not to be cut. */
		nand_disarm_power_cut(world->drive->nand);
		take_result(world, result);
		return true;
	}
	disk_close(world->drive->disk);
	engine_abandon(world->drive->engine);
	assert_int_equal(nand_power_on(world->drive->nand), 0);
	drive_open(world->drive);
	world->cuts++;
	find_out(world);
	return false;
}

/* ---- runs ---- */

static void step(struct world *world)
{
	uint32_t what = below(world, 1000), first, count;

	world->drive->now += below(world, 300);
	if (what < 700) {
		take_result(world, change(world));
	} else if (what < 960) {
		count = some_range(world, &first);
		read_and_check(world, first, count);
	} else if (what < 975) {
		keep_version(world);
	} else if (what < 982) {
		go_back(world);
	} else if (what < 988) {
		drive_crash(world->drive);
		world->crashes++;
		check_everything(world);
	} else if (what < 990) {
		clone_version(world);
	} else if (what < 997) {
		cut_at(world, below(world, 200), draw(world));
	}
}

static struct world *world_new(uint32_t block_bytes, uint64_t flash_mib)
{
	const char *seed = getenv("MUNINN_SEED");
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->random = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
	print_message("MUNINN_SEED=%llu\n", (unsigned long long)world->random);
	world->block_bytes = block_bytes;
	world->drive = drive_new(flash_mib, (uint64_t)BLOCKS * block_bytes, block_bytes);
	return world;
}

static void world_free(struct world *world)
{
	print_message("%u commands, %u of them refused, %u reads of %llu blocks; %u versions, %u "
		      "rollbacks, %u clones, %u crashes, %u power cuts\n",
		      world->commands, world->refused, world->reads,
		      (unsigned long long)world->blocks_checked, world->taken, world->rollbacks,
		      world->clones, world->crashes, world->cuts);
	assert_true(world->refused <= world->commands / 10);
	drive_free(world->drive);
	free(world);
}

/* `share`: of the steps that are asked for. */
static void random_run(uint32_t block_bytes, uint64_t flash_mib, uint32_t share)
{
	const char *steps = getenv("MUNINN_OPERATIONS");
	struct world *world = world_new(block_bytes, flash_mib);

	for (uint64_t n = steps ? strtoull(steps, NULL, 0) / share : rounds(STEPS); n; n--)
		step(world);
	check_everything(world);
	world_free(world);
}

static void test_random_commands_match_the_model(void **state)
{
	(void)state;
	random_run(512, 256, 1);
}

static void test_random_commands_match_the_model_with_blocks_of_4096(void **state)
{
	(void)state;
	/* Looking at all of it takes ten times as long. */
	random_run(4096, 1024, 10);
}

/* One that does not end before its first operation: many blocks fill buffers now and then. */
static uint64_t command_that_is_cut(struct world *world)
{
	for (int tries = 0; tries < 1000; tries++) {
		uint64_t command = draw(world);

		if (!cut_at(world, 0, command))
			return command;
	}
	fail_msg("no command came to an operation of the flash");
	return 0;
}

/* A command after each number of operations that its power can last, on what the last cut left. */
static void test_a_command_that_is_cut_anywhere_has_happened_or_not(void **state)
{
	struct world *world = world_new(512, 256);
	uint64_t cuts = 0;

	(void)state;
	world->is_large = true;
	for (uint32_t round = 0; round < 12; round++) {
		uint64_t command = command_that_is_cut(world), operation = 1;

		for (cuts++; !cut_at(world, operation, command); operation += 1 + cuts % 3)
			cuts++;
		check_everything(world);
	}
	print_message("%llu cuts\n", (unsigned long long)cuts);
	world_free(world);
}

/* An engine without power says so of every page that it tries. */
static void drop_line(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_commands_match_the_model),
		cmocka_unit_test(test_random_commands_match_the_model_with_blocks_of_4096),
		cmocka_unit_test(test_a_command_that_is_cut_anywhere_has_happened_or_not),
	};

	log_configure(drop_line, LOG_LEVEL_ERROR);
	return cmocka_run_group_tests_name("disk model", tests, NULL, NULL);
}
