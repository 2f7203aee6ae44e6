/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The power fails at every operation of the flash under commands that change much at once: ROLLBACK
 * of a partition and of the device, RESTORE, REFRESH, snapshots, clones, REMOVE PARTITION and
 * FORMAT OSD, on a unit with keys. After it the unit is as before or as after the command under
 * way: partitions, data, attributes, policy, and which keys open what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "common/bytes.h"
#include "common/log.h"
#include "engine/options.h"
#include "nand/rehearsal.h"
#include "osd/keys.h"
#include "tests/osd/function_call.h"
#include "tests/osd/secured.h"

enum { PARTITIONS = 6, BYTES = 1500, NAME_BYTES = 8 };
/* Partitions beside P: a snapshot from the beginning, and what the commands make. */
enum { SNAPSHOT = P + 1, CLONE, SECOND, REFRESHED };

static const struct nand_geometry geometry = {
	.page_bytes = 512,
	.spare_bytes = 64,
	.pages_per_block = 8,
	.blocks = 400,
	.channels = 1,
	.dies_per_channel = 1,
};
static const uint8_t uuid[16] = { 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
/*
 * Each start is so much later that nobody is refused for what was signed before; the second one
 * follows a crash.
 */
#define LATER      (UNIT_CLOCK + 1)
#define MUCH_LATER (UNIT_CLOCK + 5000)

static const uint8_t boots[2][16] = { { 1 }, { 2 } };

/* The working keys that P has one after the other. */
enum { KEYS = 3 };
static struct key_pair working[KEYS];

/* ---- the unit on a device of the rehearsal ---- */

static uint64_t clock_of(void *context)
{
	return ((const struct unit *)context)->now_ms;
}

static bool open_unit(struct unit *unit, struct nand *nand, const uint8_t *boot_id, uint64_t now_ms)
{
	const struct engine_options options = { .muninn.rows = 1,
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 256,
						.clock_ms = clock_of,
						.clock_context = unit,
						.records.boot_id = boot_id };
	struct osd_options osd_options = { .has_device_key = true };
	struct error_text error = { "" };

	*unit = (struct unit){ .nand = nand, .now_ms = now_ms };
	memcpy(osd_options.device_key, secured_manager.device_key, sizeof(osd_options.device_key));
	if (engine_open(nand, &options, &unit->engine, &error) != 0)
		return false;
	if (osd_device_create(unit->engine, uuid, &osd_options, &unit->device) == 0)
		return true;
	engine_abandon(unit->engine);
	return false;
}

static void leave_unit(struct unit *unit)
{
	osd_device_destroy(unit->device);
	engine_abandon(unit->engine);
	free(unit->data_in);
}

static bool is_good(const struct unit *unit)
{
	return unit->command.status == SCSI_STATUS_GOOD;
}

static bool execute(struct unit *unit, struct signed_call *call, bool fua)
{
	call->call.cdb.fua = fua;
	signed_run(unit, call);
	return is_good(unit);
}

/* ---- the commands ---- */

static bool write_object(struct unit *unit, uint8_t fill, bool fua)
{
	struct signed_call call = signed_call_of(unit, OSD_WRITE, P, O, OSD_CMDRSP);
	uint8_t data[BYTES];

	memset(data, fill, sizeof(data));
	call_data(&call.call, data, sizeof(data));
	return execute(unit, &call, fua);
}

static bool run_function(struct unit *unit, enum osd_function function, uint64_t partition,
			 uint16_t tag, uint64_t number, const char *name)
{
	struct signed_call call = signed_call_of(unit, OSD_EXECUTE, partition, 0, OSD_CMDRSP);
	struct function_call made;

	function_of(&made, function, partition, 0);
	if (name)
		osd_item_add_text(&made.writer, OSD_ITEM_NAME, name);
	else
		osd_item_add_number(&made.writer, tag, number);
	call_data(&made.call, made.parameters, made.writer.length);
	made.call.cdb.address = osd_execute_address(function, (uint32_t)made.writer.length);
	made.call.cdb.length = made.call.data_in_capacity;
	call.call = made.call;
	return execute(unit, &call, true);
}

/* A command on a partition that names another one. Making partitions is the root key's business. */
static bool run_pair(struct unit *unit, uint16_t action, uint64_t partition, uint64_t other,
		     bool by_root)
{
	struct signed_call call = signed_call_of(unit, action, partition, 0, OSD_CMDRSP);

	if (by_root)
		call.secret = secured_manager.root.authentication;
	call.call.cdb.address = other;
	signed_extend(&call, other ? other : P, 0, OSD_TYPE_PARTITION, OSD_PERMISSION_READ);
	return execute(unit, &call, true);
}

static bool remove_partition(struct unit *unit)
{
	struct signed_call call = signed_call_of(unit, OSD_REMOVE_PARTITION, P, 0, OSD_CMDRSP);

	call.call.cdb.command_options = OSD_REMOVE_CONTENTS;
	return execute(unit, &call, true);
}

/* With attributes that do not fit the row's buffer, so that the format seals segments itself. */
static bool format_unit(struct unit *unit)
{
	struct signed_call call = signed_call_of(unit, OSD_FORMAT_OSD, 0, 0, OSD_CMDRSP);
	uint8_t value[3000];

	memset(value, 'f', sizeof(value));
	call.call.cdb.length = 100000;
	call_set(&call.call, OSD_ROOT_INFORMATION, OSD_ROOT_OSD_NAME, "formatted", 10);
	call_set(&call.call, OSD_PAGES_ROOT + 0x10000, 7, value, sizeof(value));
	return execute(unit, &call, false);
}

static bool set_working_key(struct unit *unit, uint8_t fill, unsigned which)
{
	struct signed_call call =
		signed_set_key(unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, fill, &working[which]);
	bool good = execute(unit, &call, false);

	secured_manager.working[KEY_VERSION] = working[which];
	return good;
}

static bool step_key(struct unit *unit)
{
	return set_working_key(unit, 0x55, 2);
}

static bool step_write(struct unit *unit)
{
	return write_object(unit, 'c', false);
}

static bool step_rollback(struct unit *unit)
{
	return run_function(unit, OSD_FUNCTION_ROLLBACK, P, OSD_ITEM_VERSION, 1, NULL);
}

static bool step_write_again(struct unit *unit)
{
	return write_object(unit, 'd', true);
}

static bool step_restore(struct unit *unit)
{
	return run_pair(unit, OSD_RESTORE_PARTITION_FROM_SNAPSHOT, P, SNAPSHOT, false);
}

static bool step_clone(struct unit *unit)
{
	return run_pair(unit, OSD_CREATE_CLONE, CLONE, P, true);
}

static bool step_snapshot(struct unit *unit)
{
	return run_pair(unit, OSD_CREATE_SNAPSHOT, SECOND, P, true);
}

static bool step_refresh(struct unit *unit)
{
	return run_pair(unit, OSD_REFRESH_SNAPSHOT_OR_CLONE, SECOND, 0, false);
}

static bool step_rollback_device(struct unit *unit)
{
	return run_function(unit, OSD_FUNCTION_ROLLBACK, 0, OSD_ITEM_VERSION,
			    ENGINE_DEVICE_VERSION_FIRST, NULL);
}

static const struct step {
	bool (*run)(struct unit *unit);
	bool stable; /* what it did survives a failure of the host */
} steps[] = {
	{ step_write, false },      { step_rollback, true },        { step_write_again, true },
	{ step_restore, true },     { step_clone, true },           { step_write, false },
	{ step_key, true },         { step_snapshot, true },        { step_write, false },
	{ step_refresh, true },     { step_rollback_device, true }, { step_write, false },
	{ remove_partition, true }, { step_rollback_device, true }, { format_unit, true },
};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* ---- what is shown ---- */

static void add_attributes(struct engine_txn *txn, struct engine_address address,
			   XXH64_state_t *hash)
{
	uint32_t page = 0, number = 0, length;
	uint8_t value[4096];

	while (engine_attribute_next(txn, address, &page, &number, value, sizeof(value), &length) ==
	       0) {
		XXH64_update(hash, &page, sizeof(page));
		XXH64_update(hash, &number, sizeof(number));
		/* Keys are encrypted with something random in them; the epoch counts starts. */
		if ((page != 0x5FFFFFFF && page != 0xBFFFFFFF) ||
		    number == OSD_PRIVATE_FORMATTED_CAPACITY)
			XXH64_update(hash, value, length);
		if (++number == 0)
			break;
	}
}

static void add_stored(struct engine *engine, XXH64_state_t *hash)
{
	struct engine_txn *txn;

	assert_int_equal(engine_begin(engine, ENGINE_READ, &txn), 0);
	add_attributes(txn, (struct engine_address){ 0 }, hash);
	for (uint64_t partition = P; partition < P + PARTITIONS; partition++) {
		struct engine_address address = { .partition = partition };
		uint8_t data[BYTES];
		struct engine_stat stat;
		uint64_t got = 0;
		int result = engine_stat(txn, address, &stat);

		XXH64_update(hash, &result, sizeof(result));
		if (result != 0)
			continue;
		XXH64_update(hash, &stat.members, sizeof(stat.members));
		add_attributes(txn, address, hash);
		address.object = O;
		result = engine_read(txn, address, 0, data, sizeof(data), &got);
		XXH64_update(hash, &result, sizeof(result));
		XXH64_update(hash, data, got);
	}
	engine_abort(txn);
}

/* Which credentials and methods open P, its snapshots and its clone. */
static void add_doors(struct unit *unit, XXH64_state_t *hash)
{
	for (uint64_t partition = P; partition < P + PARTITIONS; partition++)
		for (unsigned which = 0; which < 2 * KEYS; which++) {
			uint8_t method = which < KEYS ? OSD_CMDRSP : OSD_CAPKEY;
			struct signed_call call =
				signed_call_of(unit, OSD_READ, partition, O, method);
			uint16_t code = 0;

			call.secret = working[which % KEYS].authentication;
			call.call.cdb.length = 1;
			call.call.data_in_capacity = 1;
			signed_run(unit, &call);
			if (!is_good(unit))
				code = unit_sense(unit).code;
			XXH64_update(hash, &code, sizeof(code));
		}
}

static uint64_t look(struct unit *unit)
{
	XXH64_state_t *hash = XXH64_createState();
	uint64_t digest;

	XXH64_reset(hash, 0);
	add_stored(unit->engine, hash);
	add_doors(unit, hash);
	digest = XXH64_digest(hash);
	XXH64_freeState(hash);
	return digest;
}

/* ---- the rehearsal ---- */

struct progress {
	uint64_t left[STEPS + 1]; /* what is shown after so many steps */
	unsigned done, stable; /* in this run; of them, those that a failure of the host leaves */
	bool host_fails;
	unsigned before, after;
};

/* Everything has a past in which P had another key, no method and other contents. */
static void prepare(struct nand *nand, void *context)
{
	const struct engine_options options = { .muninn.rows = 1,
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 256 };
	struct progress *progress = context;
	struct error_text error = { "" };
	struct signed_call call;
	struct unit unit;

	progress->done = progress->stable = 0;
	if (engine_format(nand, &options, &error) != 0)
		fail_msg("%s", error.text);
	assert_true(open_unit(&unit, nand, boots[0], UNIT_CLOCK));
	unit_create_partition(&unit, P);
	unit_create(&unit, P, O);
	call = signed_set_key(&unit, OSD_SET_ROOT_KEY, 0, 0, 0x11, &secured_manager.root);
	assert_true(execute(&unit, &call, false));
	call = signed_set_key(&unit, OSD_SET_PARTITION_KEY, P, 0, 0x22, &secured_manager.partition);
	assert_true(execute(&unit, &call, false));
	assert_true(set_working_key(&unit, 0x33, 0));
	signed_set_key(&unit, OSD_SET_WORKING_KEY, P, KEY_VERSION, 0x55, &working[2]);
	function_subscribe(&unit);
	assert_true(write_object(&unit, 'a', false));
	assert_true(run_function(&unit, OSD_FUNCTION_SNAPSHOT, P, 0, 0, "first"));
	assert_true(run_function(&unit, OSD_FUNCTION_SNAPSHOT, 0, 0, 0, "all"));
	assert_true(run_pair(&unit, OSD_CREATE_SNAPSHOT, SNAPSHOT, P, true));
	assert_true(set_working_key(&unit, 0x44, 1));
	secured_set_method(&unit, P, OSD_CMDRSP);
	assert_true(write_object(&unit, 'b', true));
	leave_unit(&unit);
}

static void run(struct nand *nand, void *context)
{
	struct progress *progress = context;
	struct nand_power_status status;
	struct unit unit;

	if (!open_unit(&unit, nand, boots[0], LATER))
		return;
	nand_power_status(nand, &status);
	if (!status.off)
		function_subscribe(&unit);
	while (!status.off && progress->done < STEPS && steps[progress->done].run(&unit)) {
		nand_power_status(nand, &status);
		if (status.off)
			break;
		if (steps[progress->done++].stable)
			progress->stable = progress->done;
	}
	leave_unit(&unit);
}

static void check(struct nand *nand, void *context, const struct nand_power_cut *cut)
{
	struct progress *progress = context;
	char text[NAND_POWER_CUT_TEXT] = "no cut";
	unsigned from = progress->host_fails ? progress->stable : progress->done;
	unsigned to = progress->done + (progress->done < STEPS);
	struct unit unit;
	uint64_t found;

	if (cut)
		nand_power_cut_format(cut, text);
	if (!open_unit(&unit, nand, boots[cut && progress->host_fails], MUCH_LATER))
		fail_msg("does not open after the cut %s", text);
	found = look(&unit);
	leave_unit(&unit);
	progress->before += found == progress->left[from];
	for (unsigned step = from; step <= to; step++) {
		if (found != progress->left[step])
			continue;
		progress->after += step == progress->done + 1;
		return;
	}
	fail_msg("after the cut %s, %u steps done, %u of them stable: what is there is none of "
		 "their states",
		 text, progress->done, progress->stable);
}

/* What each step leaves when nothing fails. */
static void learn(struct progress *progress, uint64_t nvram_bytes)
{
	struct error_text error = { "" };
	struct nand *nand;
	struct unit unit;

	assert_int_equal(nand_open_memory(&geometry, nvram_bytes, &nand, &error), 0);
	prepare(nand, progress);
	assert_true(open_unit(&unit, nand, boots[0], LATER));
	function_subscribe(&unit);
	progress->left[0] = look(&unit);
	for (unsigned step = 0; step < STEPS; step++) {
		if (!steps[step].run(&unit))
			fail_msg("step %u: sense %04x, field %d", step + 1, unit_sense(&unit).code,
				 unit_sense(&unit).field);
		progress->left[step + 1] = look(&unit);
	}
	leave_unit(&unit);
	assert_int_equal(nand_close(nand), 0);
}

static void no_log(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void rehearse(enum nand_cut_nvram nvram, size_t ends_count, uint64_t stride)
{
	const struct engine_options options = { .muninn.rows = 1,
						.muninn.segment_pages = 8,
						.muninn.record_bytes = 256 };
	struct nand_power_cut ends[NAND_REHEARSAL_ENDS];
	struct progress progress = { .host_fails = nvram != NAND_CUT_NVRAM_KEPT };
	struct nand_rehearsal rehearsal = { .geometry = &geometry,
					    .context = &progress,
					    .prepare = prepare,
					    .run = run,
					    .check = check,
					    .ends = ends,
					    .ends_count = ends_count,
					    .stride = stride };
	struct error_text error = { "" };
	uint64_t runs = 0;

	log_configure(no_log, LOG_LEVEL_ERROR);
	memset(secured_manager.device_key, 0xC0, sizeof(secured_manager.device_key));
	memcpy(secured_manager.system_id, "\x01\x00\x00\x10", 4);
	memcpy(secured_manager.system_id + 4, uuid, sizeof(uuid));
	assert_int_equal(osd_initial_master_keys(secured_manager.device_key,
						 secured_manager.system_id,
						 secured_manager.master.authentication,
						 secured_manager.master.generation),
			 0);
	assert_int_equal(engine_nvram_bytes(&geometry, &options, &rehearsal.nvram_bytes, &error),
			 0);
	learn(&progress, rehearsal.nvram_bytes);
	nand_rehearsal_ends(&geometry, nvram, ends);
	if (nand_rehearse(&rehearsal, &runs, &error) != 0)
		fail_msg("%s", error.text);
	log_configure(NULL, LOG_LEVEL_WARNING);
	print_message("%llu cuts: %u left the state before, %u the one after\n",
		      (unsigned long long)runs, progress.before, progress.after);
	assert_true(progress.before > 40);
	/* A command that is answered after its flush is not there before it. */
	assert_true(nvram != NAND_CUT_NVRAM_KEPT || progress.after > 0);
}

static void test_a_cut_leaves_the_state_before_or_after_the_command(void **state)
{
	(void)state;
	rehearse(NAND_CUT_NVRAM_KEPT, 2, 1);
}

static void test_a_failure_of_the_host_leaves_no_less_than_the_last_flush(void **state)
{
	(void)state;
	rehearse(NAND_CUT_NVRAM_FLUSHED, 1, 1);
	rehearse(NAND_CUT_NVRAM_MIXED, 1, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cut_leaves_the_state_before_or_after_the_command),
		cmocka_unit_test(test_a_failure_of_the_host_leaves_no_less_than_the_last_flush),
	};

	return cmocka_run_group_tests_name("going back and formatting, power cuts", tests, NULL,
					   NULL);
}
