/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Serves a client from the target's own OSD layer over a device in memory. */
#include "tests/client/local_target.h"
#include "engine/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void must(int result, const struct error_text *error)
{
	if (result != 0)
		fail_msg("%d: %s", result, error->text);
}

void local_target_open(struct local_target *target, uint64_t bytes, const uint8_t uuid[16],
		       const struct osd_options *options)
{
	struct nand_geometry geometry = nand_geometry_default(bytes);
	struct engine_options engine_options = { 0 };
	struct error_text error = { "" };
	uint64_t nvram_bytes;

	must(engine_nvram_bytes(&geometry, &engine_options, &nvram_bytes, &error), &error);
	must(nand_open_memory(&geometry, nvram_bytes, &target->nand, &error), &error);
	must(engine_format(target->nand, &engine_options, &error), &error);
	must(engine_open(target->nand, &engine_options, &target->engine, &error), &error);
	must(osd_device_create(target->engine, uuid, options, &target->device), &error);
}

void local_target_start(struct local_target *target, enum osd_version version,
			loopback_execute *execute, void *context)
{
	target->loopback = loopback_start(execute, context, version, &target->client);
}

static void execute(void *context, struct loopback_command *command)
{
	local_target_execute(context, 0, command);
}

void local_target_serve(struct local_target *target, uint64_t bytes)
{
	static const uint8_t uuid[16] = { 7 };

	local_target_open(target, bytes, uuid, NULL);
	local_target_start(target, OSD_2, execute, target);
}

void local_target_close(struct local_target *target)
{
	loopback_stop(target->loopback, target->client);
	osd_device_destroy(target->device);
	assert_int_equal(engine_close(target->engine), 0);
	assert_int_equal(nand_close(target->nand), 0);
}

void local_target_execute(struct local_target *target, uint64_t nexus,
			  struct loopback_command *command)
{
	struct osd_command osd = {
		.cdb = command->cdb,
		.cdb_length = command->cdb_length,
		.data_out = command->out,
		.data_out_length = command->out_length,
		.data_in = command->in,
		.data_in_capacity = command->in_capacity,
		.nexus = nexus,
	};

	if (!osd_execute_at_once(target->device, &osd, NULL))
		osd_execute(target->device, &osd);
	command->status = osd.status;
	command->in_length = osd.data_in_length;
	command->sense_length = osd.sense_length;
	memcpy(command->sense, osd.sense, osd.sense_length);
}
