/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The backing stores that tgtd gets from us, one for each kind of logical unit: registers them, and
 * takes tgtd's calls about a unit's life.
 *
 * tgtd calls bs_init (options), bs_open (image), bs_cmd_submit (each command that is executed on
 * threads), bs_close and bs_exit, all on its main thread.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/module/block_unit.h"
#include "daemon/module/connections.h"
#include "daemon/module/identity.h"
#include "daemon/module/osd_unit.h"
#include "daemon/module/unit.h"
#include "engine/engine.h"
#include "engine/salvage.h"

#define MODULE_FILE "bs_muninn.so"

/* The kinds of logical units that there are, and tgtd's view of each. */
static const struct unit_kind *const kinds[UNIT_TYPES] = {
	[UNIT_TYPE_OSD] = &osd_unit,
	[UNIT_TYPE_DISK] = &block_unit,
};
static struct backingstore_template templates[UNIT_TYPES];

/* Called by tgtd by this name, once, at start. */
void register_bs_module(void);

/* ---- life of a logical unit ---- */

static tgtadm_err init(struct scsi_lu *lu, char *bsopts)
{
	struct error_text error;

	if (unit_attach(lu, kinds[lu->bst - templates], bsopts, &error)) {
		log_line(LOG_LEVEL_ERROR, "LUN %" PRIu64 ": %s", lu->lun, error.text);
		return TGTADM_INVALID_REQUEST;
	}
	return TGTADM_SUCCESS;
}

static int open_image(struct scsi_lu *lu, char *path, int *fd, uint64_t *size)
{
	struct unit *unit = unit_of(lu);
	struct engine_options formatted = { 0 };
	struct engine_statistics statistics;
	struct error_text error = { "" };
	int result = unit_open(unit, path, size, &error);

	if (result) {
		log_line(LOG_LEVEL_ERROR, "LUN %" PRIu64 ": %s", lu->lun, error.text);
		return result;
	}
	engine_read_statistics(device_engine(unit->device), &statistics);
	engine_formatted_options(device_engine(unit->device), &formatted);
	log_line(LOG_LEVEL_INFO,
		 "LUN %" PRIu64 ": %s open after %" PRIu64 " us, %" PRIu64 " of %" PRIu64
		 " bytes used, index %s, back end %s, %" PRIu32 " I/O threads",
		 lu->lun, path, statistics.open_microseconds, statistics.used_bytes,
		 statistics.capacity_bytes, index_kind_name(formatted.muninn.index),
		 lun_options_backend(&unit->options), unit->options.threads);
	*fd = -1; /* the image is the flash layer's own business */
	return 0;
}

/* tgtd closes a unit only when it has no active command. */
static void close_image(struct scsi_lu *lu)
{
	int result = unit_close(unit_of(lu));

	connections_sum_up();
	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "LUN %" PRIu64 ": closed, but the host could not store everything: %s; a "
			 "power loss of the host may take what came since the last FLUSH",
			 lu->lun, strerror(-result));
	else
		log_line(LOG_LEVEL_INFO, "LUN %" PRIu64 ": closed, everything is stable", lu->lun);
}

/* ---- registration ---- */

/* Set while the module registers before tgtd's own log is there. */
static bool before_main;

/* muninnd takes the digit off, and makes it the line's priority where it has one. */
static void log_to_tgtd(enum log_level level, const char *line)
{
	char mark[8] = "";

	if (getenv("MUNINN_LOG_LEVEL"))
		snprintf(mark, sizeof(mark), "<%d>", (int)level);
	if (before_main)
		fprintf(stderr, "tgtd: muninn: %s%s\n", mark, line);
	else if (level == LOG_LEVEL_ERROR)
		log_error("muninn: %s%s\n", mark, line);
	else if (level == LOG_LEVEL_DEBUG)
		log_debug("muninn: %s%s\n", mark, line);
	else
		log_warning("muninn: %s%s\n", mark, line);
}

static enum log_level wanted_log_level(void)
{
	const char *wanted = getenv("MUNINN_LOG_LEVEL");
	enum log_level level;

	return wanted && !log_level_parse(wanted, &level) ? level : LOG_LEVEL_INFO;
}

static void register_kind(const struct unit_kind *kind, struct backingstore_template *template)
{
	unsigned char operations[NR_SCSI_OPCODES];

	memcpy(operations, kind->operations, kind->operation_count);
	*template = (struct backingstore_template){
		.bs_name = kind->type->backing_store,
		.bs_datasize = sizeof(struct unit),
		.bs_init = init,
		.bs_open = open_image,
		.bs_close = close_image,
		.bs_cmd_submit = unit_submit,
	};
	bs_create_opcode_map(template, operations, (int)kind->operation_count);
	register_backingstore_template(template);
}

void register_bs_module(void)
{
	struct error_text error;

	log_configure(log_to_tgtd, wanted_log_level());
	if (tgtd_identity_check(&error)) {
		log_line(LOG_LEVEL_ERROR, "%s", error.text);
		return;
	}
	/* tgtd loads what it was preloaded with, too, where that is installed. */
	if (get_backingstore_template(unit_types[0].backing_store) == &templates[0])
		return;
	if (get_backingstore_template(unit_types[0].backing_store)) {
		log_line(LOG_LEVEL_INFO, "a backing store %s is loaded already; using that one",
			 unit_types[0].backing_store);
		return;
	}
	for (size_t i = 0; i < UNIT_TYPES; i++)
		register_kind(kinds[i], &templates[i]);
}

/*
 * muninnd can preload the module into its tgtd, so that a module that is not installed is used
 * without a change to the system. Then nobody calls register_bs_module; and programs that tgtd
 * starts shall not have it.
 */
__attribute__((constructor)) static void register_when_preloaded(void)
{
	const char *preloaded = getenv("LD_PRELOAD");

	if (!preloaded || !strstr(preloaded, MODULE_FILE))
		return;
	unsetenv("LD_PRELOAD");
	before_main = true;
	register_bs_module();
	before_main = false;
}
