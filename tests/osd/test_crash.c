/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power fails at every few operations of the flash under a series of commands: of each command
 * its data, its attributes and what it created or removed are there together, or not at all; and
 * what was answered GOOD is there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/options.h"
#include "nand/rehearsal.h"
#include "tests/osd/unit.h"

enum { DATA_BYTES_MAX = 15000 };

/* A series of commands, each of which writes so much, and how often the power fails. */
struct series {
	uint32_t rounds, data_bytes;
	uint32_t stride, ends; /* operations from cut to cut, and ways in which they end */
};

static const struct series small = { .rounds = 120, .data_bytes = 1800, .stride = 7, .ends = 2 };
/*
 * Several times what a row's buffer holds, so that segments are sealed before the command is
 * committed.
 */
static const struct series large = {
	.rounds = 30, .data_bytes = DATA_BYTES_MAX, .stride = 5, .ends = NAND_REHEARSAL_ENDS
};
static const struct series *series;

static const struct nand_geometry geometry = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 512,
	.channels = 1,
	.dies_per_channel = 1,
};
static const struct engine_options options = { .muninn.rows = 1,
					       .muninn.segment_pages = 8,
					       .muninn.record_bytes = 256 };
static const uint8_t uuid[16] = { 0x10 };

/* What the series has come to. */
struct progress {
	uint32_t answered; /* rounds whose command was GOOD */
	unsigned cut, whole;
};

/* ---- commands on a device of the rehearsal ---- */

static bool execute(struct osd_device *device, const struct osd_cdb *cdb, const uint8_t *out,
		    size_t out_length, uint8_t *in, size_t in_capacity)
{
	uint8_t bytes[OSD_CDB_BYTES_MAX];
	struct osd_command command = {
		.cdb = bytes,
		.data_out = out,
		.data_out_length = out_length,
		.data_in = in,
		.data_in_capacity = in_capacity,
	};

	assert_int_equal(osd_cdb_encode(cdb, bytes, &command.cdb_length), 0);
	osd_execute(device, &command);
	return command.status == SCSI_STATUS_GOOD;
}

static struct osd_cdb command_of(uint16_t action, uint64_t object)
{
	return (struct osd_cdb){ .version = OSD_2,
				 .action = action,
				 .format = OSD_ATTRIBUTES_LIST,
				 .partition = P,
				 .object = object };
}

/*
 * Round n: object O gets data of n and the attribute n; every third round makes object O + n with
 * data and attribute n, and the one behind removes it.
 */
static bool run_round(struct osd_device *device, uint32_t round)
{
	struct osd_cdb cdb = command_of(OSD_WRITE, O);
	static uint8_t data[DATA_BYTES_MAX];

	memset(data, (int)round, series->data_bytes);
	if (round % 3 == 1)
		cdb = command_of(OSD_CREATE_AND_WRITE, O + round);
	if (round % 3 == 2) {
		cdb = command_of(OSD_REMOVE, O + round - 1);
		return execute(device, &cdb, NULL, 0, NULL, 0);
	}
	cdb.format = OSD_ATTRIBUTES_CDB;
	cdb.length = series->data_bytes;
	cdb.set_page = 0x10000;
	cdb.set_number = 1;
	cdb.set_length = 4;
	put_be32(cdb.set_value, round);
	return execute(device, &cdb, data, series->data_bytes, NULL, 0);
}

/*
 * The round that an object's data and attribute say; they must agree. 0: there is no such object.
 */
static uint32_t round_of(struct osd_device *device, uint64_t object)
{
	struct osd_cdb cdb = command_of(OSD_READ, object);
	uint8_t gets[16] = { OSD_LIST_TYPE_GET }, in[DATA_BYTES_MAX + 8 + 32];
	uint32_t round;

	put_be32(gets + 8, 0x10000);
	put_be32(gets + 12, 1);
	cdb.length = series->data_bytes;
	cdb.get_list = (struct osd_segment){ 0, 16 };
	cdb.retrieved.offset = osd_offset_encode(OSD_2, series->data_bytes, NULL);
	cdb.retrieved.length = 32;
	if (!execute(device, &cdb, gets, sizeof(gets), in, sizeof(in)))
		return 0;
	round = get_be32(in + cdb.retrieved.offset + 24);
	for (size_t i = 0; i < series->data_bytes; i++)
		assert_int_equal(in[i], (uint8_t)round);
	return round;
}

/* ---- the rehearsal ---- */

static void open_device(struct nand *nand, struct engine **engine, struct osd_device **device)
{
	struct error_text error = { "" };

	if (engine_open(nand, &options, engine, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(osd_device_create(*engine, uuid, NULL, device), 0);
}

static void prepare(struct nand *nand, void *context)
{
	struct progress *progress = context;
	struct osd_cdb partition = command_of(OSD_CREATE_PARTITION, 0);
	struct osd_cdb object = command_of(OSD_CREATE, O);
	struct error_text error = { "" };
	struct osd_device *device;
	struct engine *engine;

	progress->answered = 0;
	assert_int_equal(engine_format(nand, &options, &error), 0);
	open_device(nand, &engine, &device);
	assert_true(execute(device, &partition, NULL, 0, NULL, 0));
	assert_true(execute(device, &object, NULL, 0, NULL, 0));
	osd_device_destroy(device);
	assert_int_equal(engine_close(engine), 0);
}

/* A command that needs no flash does not notice it. */
static bool is_off(struct nand *nand)
{
	struct nand_power_status status;

	nand_power_status(nand, &status);
	return status.off;
}

static void run(struct nand *nand, void *context)
{
	struct progress *progress = context;
	struct osd_device *device;
	struct engine *engine;

	open_device(nand, &engine, &device);
	while (progress->answered < series->rounds && run_round(device, progress->answered + 1) &&
	       !is_off(nand))
		progress->answered++;
	osd_device_destroy(device);
	engine_abandon(engine);
}

/*
 * The state behind round n: the last one that wrote O, and whether an object of a round is there.
 */
static bool is_state_of(struct osd_device *device, uint32_t round, uint32_t written)
{
	uint32_t last = round - round % 3;
	uint32_t made = round % 3 == 1 ? round : 0;

	if (written != last)
		return false;
	for (uint32_t other = 1; other <= series->rounds; other += 3)
		if (round_of(device, O + other) != (other == made ? other : 0))
			return false;
	return true;
}

static void check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	struct progress *progress = context;
	char text[NAND_POWER_CUT_TEXT] = "no cut";
	struct osd_device *device;
	struct engine *engine;
	uint32_t written;

	if (cut)
		nand_power_cut_format(cut, text);
	open_device(nand, &engine, &device);
	written = round_of(device, O);
	/* The command in flight may have been committed, but not answered. */
	if (!is_state_of(device, progress->answered, written) &&
	    !(cut && is_state_of(device, progress->answered + 1, written)))
		fail_msg("%s: %u rounds were answered; what is there belongs to no round", text,
			 progress->answered);
	progress->cut += cut != NULL;
	progress->whole += !cut;
	osd_device_destroy(device);
	engine_abandon(engine);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void rehearse(const struct series *of)
{
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct progress progress = { 0 };
	struct nand_rehearsal rehearsal = {
		.geometry = &geometry,
		.context = &progress,
		.prepare = prepare,
		.run = run,
		.check = check,
		.ends = ends,
		.ends_count = of->ends,
		.stride = of->stride,
	};
	struct error_text error = { "" };
	uint64_t runs = 0;

	series = of;
	log_configure(no_log, LOG_LEVEL_ERROR);
	nand_rehearsal_ends(&geometry, NAND_CUT_NVRAM_KEPT, ends);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &rehearsal.nvram_bytes, &error),
			 0);
	if (nand_rehearse(&rehearsal, &runs, &error) != 0)
		fail_msg("%s", error.text);
	assert_int_equal(progress.whole, series->ends);
	assert_int_equal(progress.answered, series->rounds);
	assert_true(progress.cut > 50);
	log_configure(NULL, LOG_LEVEL_WARNING);
}

static void test_a_command_is_there_as_a_whole_or_not_at_all_after_a_power_cut(void **state)
{
	(void)state;
	rehearse(&small);
}

static void test_so_is_one_that_is_larger_than_the_buffers(void **state)
{
	(void)state;
	rehearse(&large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_command_is_there_as_a_whole_or_not_at_all_after_a_power_cut),
		cmocka_unit_test(test_so_is_one_that_is_larger_than_the_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
