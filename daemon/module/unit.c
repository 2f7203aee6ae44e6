/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The life of a logical unit: device, kind and threads, opened in this order and closed in reverse.
 */
#include "daemon/module/unit.h"

#include <errno.h>
#include <string.h>

static void execute(void *context, struct scsi_cmd *cmd)
{
	struct unit *unit = context;

	unit->kind->execute(unit, cmd);
}

static bool attempt(void *context, struct scsi_cmd *cmd, struct nand_stage *stage)
{
	struct unit *unit = context;

	return unit->kind->attempt(unit, cmd, stage);
}

/* As tgtd is going to count it for the session, which may be gone behind that. */
static void count(void *context, struct scsi_cmd *cmd)
{
	struct unit_done *done = &((struct unit *)context)->done;
	enum data_direction direction = scsi_get_data_dir(cmd);

	done->reads += direction == DATA_READ;
	done->writes += direction == DATA_WRITE;
	done->both += direction == DATA_BIDIRECTIONAL;
	if (direction == DATA_READ || direction == DATA_BIDIRECTIONAL)
		done->read_bytes += scsi_get_in_length(cmd);
	if (direction == DATA_WRITE || direction == DATA_BIDIRECTIONAL)
		done->written_bytes += scsi_get_out_length(cmd);
	done->errors += scsi_get_result(cmd) != SAM_STAT_GOOD;
	if (direction == DATA_READ)
		latency_count(&done->read, io_threads_took_us(cmd));
	else if (direction == DATA_WRITE)
		latency_count(&done->written, io_threads_took_us(cmd));
	else if (direction == DATA_BIDIRECTIONAL)
		latency_count(&done->bidirectional, io_threads_took_us(cmd));
}

static int perform_on_main(void *context, struct scsi_cmd *cmd)
{
	struct unit *unit = context;

	return unit->kind->perform(unit, cmd);
}

int unit_attach(struct scsi_lu *lu, const struct unit_kind *kind, const char *bsopts,
		struct error_text *error)
{
	struct unit *unit = unit_of(lu);
	struct error_text reason = { "" };

	memset(unit, 0, sizeof(*unit));
	unit->kind = kind;
	if (lu->dev_type_template.type != kind->type->device_type)
		return error_set(error, -EINVAL, "this backing store serves device type %s",
				 kind->type->word);
	if (lun_options_parse(bsopts, &unit->options, &reason))
		return error_set(error, -EINVAL, "bsopts: %s", reason.text);
	unit_watch_arrivals(unit, lu);
	control_attach(unit, lu);
	return 0;
}

/* If opening fails, nothing is open. */
static int start_threads(struct unit *unit, struct error_text *error)
{
	struct io_work work = {
		.execute = execute,
		.attempt = unit->kind->attempt ? attempt : NULL,
		.perform = perform_on_main,
		.ended = count,
		.context = unit,
	};
	int result = 0;

	if (work.attempt)
		result = device_open_stages(unit->device, ATTEMPTS_PARKED_MAX, &unit->stages,
					    &work.stages_fd, error);
	if (result)
		return result;
	work.stages = unit->stages;
	result = io_threads_start(unit->options.threads, &work, &unit->threads, error);
	if (result)
		nand_stages_close(unit->stages);
	return result;
}

static int open_kind(struct unit *unit, uint64_t *bytes, struct error_text *error)
{
	int result = unit->kind->open(unit, bytes, error);

	if (result)
		return result;
	result = start_threads(unit, error);
	if (result)
		unit->kind->close(unit);
	return result;
}

static void begin_schedule(struct unit *unit)
{
	uint64_t about = unit->kind->partition ? unit->kind->partition(unit) : 0;
	struct schedule_rules rules = { .count = 0 };
	struct error_text ignored;

	if (unit->options.schedule[0])
		schedule_parse(unit->options.schedule, &rules, &ignored);
	device_begin_schedule(unit->device, &unit->schedule, &rules, about);
}

int unit_open(struct unit *unit, const char *image, uint64_t *bytes, struct error_text *error)
{
	int result = device_open(image, &unit->options.nand, &unit->options.engine,
				 &unit->options.scrub, &unit->device, error);

	if (result)
		return result;
	result = open_kind(unit, bytes, error);
	if (result) {
		device_close(unit->device);
		unit->device = NULL;
		return result;
	}
	begin_schedule(unit);
	return 0;
}

int unit_close(struct unit *unit)
{
	struct device *device = unit->device;

	if (!device)
		return 0;
	control_end(unit);
	device_end_schedule(device, &unit->schedule);
	io_threads_stop(unit->threads);
	unit->threads = NULL;
	nand_stages_close(unit->stages);
	unit->kind->close(unit);
	unit->device = NULL;
	return device_close(device);
}
