/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The backing store `muninn` of tgtd: one logical unit of type OSD on one flash image.
 *
 * tgtd calls bs_init (options), bs_open (image), bs_cmd_submit (each command with operation code
 * 0x7F), bs_close and bs_exit, all on its main thread. Commands run on the unit's own threads
 * (io_threads.h).
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "daemon/module/attendant.h"
#include "daemon/module/identity.h"
#include "daemon/module/io_threads.h"
#include "daemon/module/options.h"
#include "daemon/module/trust_clock.h"
#include "daemon/module/unlock.h"
#include "engine/engine.h"
#include "nand/live.h"
#include "nand/nand.h"
#include "osd/osd.h"
#include "wire/keys_file.h"

#include "list.h"
#include "scsi.h"
#include "tgtd.h"

/* Wants the others before it. */
#include "target.h"

#define MODULE_FILE "bs_muninn.so"

/* tgtd numbers sessions with 16 bits, in turn. */
#define SESSION_NUMBERS 65536

/* What one logical unit keeps; lies behind tgtd's own structure. */
struct muninn_lun {
	struct lun_options options;
	struct nand *nand;
	struct engine *engine;
	struct osd_device *device;
	struct io_threads *threads;
	/*
	 * tgtd's own functions, where ours are in their places: of the unit, and by operation code.
	 */
	int (*stock_perform)(int tid, struct scsi_cmd *cmd);
	int (*stock_operations[NR_SCSI_OPCODES])(int host_no, struct scsi_cmd *cmd);
	enum order_attribute arriving;              /* of the command that tgtd is handing over */
	uint8_t sessions_seen[SESSION_NUMBERS / 8]; /* a bit for each that has sent a command */
	struct attendant *attendant;
	struct nand_settings settings; /* as last taken up, by the attendant once that is there */
	char *image;
};

/* Called by tgtd by this name, once, at start. */
void register_bs_module(void);

static struct muninn_lun *muninn_lun(struct scsi_lu *lu)
{
	return (struct muninn_lun *)((char *)lu + sizeof(*lu));
}

/* ---- commands ---- */

/*
 * On an I/O thread: hands an OSD command to the OSD layer, and its results back to tgtd's command.
 */
static void execute(void *context, struct scsi_cmd *cmd)
{
	struct muninn_lun *lun = context;
	enum data_direction direction = scsi_get_data_dir(cmd);
	struct osd_command command = {
		.cdb = cmd->scb,
		.cdb_length = (size_t)cmd->scb_len,
		.nexus = cmd->cmd_itn_id,
	};

	if (direction & DATA_WRITE) {
		command.data_out = scsi_get_out_buffer(cmd);
		command.data_out_length = scsi_get_out_length(cmd);
	}
	if (direction & DATA_READ) {
		command.data_in = scsi_get_in_buffer(cmd);
		command.data_in_capacity = scsi_get_in_length(cmd);
	}
	osd_execute(lun->device, &command);

	assert(command.data_in_length <= command.data_in_capacity);
	assert(command.sense_length <= OSD_SENSE_BYTES_MAX);
	memcpy(cmd->sense_buffer, command.sense, command.sense_length);
	cmd->sense_len = (int)command.sense_length;
	/*
	 * tgtd sends the transfer length of Data-In whatever the status is, so a short read's data
	 * goes with its sense.
	 */
	scsi_set_in_resid_by_actual(cmd, (uint32_t)command.data_in_length);
	scsi_set_out_resid_by_actual(
		cmd, (uint32_t)min_u64(command.data_out_used, command.data_out_length));
	scsi_set_result(cmd, command.status);
}

static int submit(struct scsi_cmd *cmd)
{
	struct muninn_lun *lun = muninn_lun(cmd->dev);

	/* An administrator has taken the unit's image away. */
	if (!lun->threads) {
		scsi_set_in_resid_by_actual(cmd, 0);
		sense_data_build(cmd, NOT_READY, ASC_MANUAL_INTERVENTION_REQ);
		return SAM_STAT_CHECK_CONDITION;
	}
	io_threads_submit(lun->threads, cmd, lun->arriving);
	return SAM_STAT_GOOD;
}

/*
 * INQUIRY of an OSD logical unit, in place of tgtd's, which knows neither vendor nor identification
 * of ours.
 */
static int inquiry(struct muninn_lun *lun, struct scsi_cmd *cmd)
{
	uint32_t allocated = get_be16(&cmd->scb[3]);
	uint32_t capacity = scsi_get_in_length(cmd);
	int length;

	if (allocated < capacity)
		capacity = allocated;
	length = osd_inquiry(lun->device, cmd->cmd_itn_id, cmd->scb, scsi_get_in_buffer(cmd),
			     capacity);
	if (length < 0) {
		scsi_set_in_resid_by_actual(cmd, 0);
		sense_data_build(cmd, ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		return SAM_STAT_CHECK_CONDITION;
	}
	scsi_set_in_resid_by_actual(cmd, (uint32_t)min_u64((uint64_t)length, capacity));
	return SAM_STAT_GOOD;
}

/*
 * TEST UNIT READY: tells what the session has not been told yet of things that happened to the
 * unit.
 */
static int test_unit_ready(struct muninn_lun *lun, int host_no, struct scsi_cmd *cmd)
{
	uint8_t sense[OSD_SENSE_BYTES_MAX];
	size_t length;

	if (!osd_unit_attention(lun->device, cmd->cmd_itn_id, sense, &length))
		return lun->stock_operations[TEST_UNIT_READY](host_no, cmd);
	memcpy(cmd->sense_buffer, sense, length);
	cmd->sense_len = (int)length;
	return SAM_STAT_CHECK_CONDITION;
}

/*
 * On tgtd's main thread: what is no OSD command. tgtd has refused the operation codes that the
 * module does not name.
 */
static int perform_on_main(void *context, struct scsi_cmd *cmd)
{
	struct muninn_lun *lun = context;
	int host_no = cmd->it_nexus->host_no;

	if (cmd->scb[0] == INQUIRY)
		return inquiry(lun, cmd);
	if (cmd->scb[0] == TEST_UNIT_READY)
		return test_unit_ready(lun, host_no, cmd);
	return lun->stock_operations[cmd->scb[0]](host_no, cmd);
}

/* In place of tgtd's function of every operation code but that of OSD commands. */
static int perform_in_turn(int host_no, struct scsi_cmd *cmd)
{
	struct muninn_lun *lun = muninn_lun(cmd->dev);

	/* tgtd answers for a unit that does not exist through the target's first one. */
	if (cmd->dev->lun != cmd->dev_id || !lun->threads)
		return lun->stock_operations[cmd->scb[0]](host_no, cmd);
	return io_threads_perform(lun->threads, cmd, lun->arriving);
}

/*
 * tgtd takes all of Data-In for answered unless somebody says otherwise, and many refusals of its
 * own do not: it would then send what earlier commands, of other sessions too, have left in that
 * memory. Whoever answers with data says how much.
 */
static void nothing_answered_yet(struct scsi_cmd *cmd)
{
	scsi_set_in_resid_by_actual(cmd, 0);
}

static enum order_attribute attribute_of(const struct scsi_cmd *cmd)
{
	if (cmd->attribute == MSG_SIMPLE_TAG)
		return ORDER_SIMPLE;
	return cmd->attribute == MSG_HEAD_TAG ? ORDER_HEAD_OF_QUEUE : ORDER_ORDERED;
}

/*
 * tgtd keeps a unit attention (29/00) for each session from its login on. Initiators of OSDs do not
 * repeat a command that was refused for one: exofs would see an I/O error after each reconnect.
 * What comes later, from a reset, stays. Numbers are used again after a round, when half of them
 * are forgotten.
 */
static void forget_power_on(struct muninn_lun *lun, struct scsi_cmd *cmd)
{
	uint32_t number = (uint32_t)(cmd->cmd_itn_id % SESSION_NUMBERS);
	uint32_t opposite = (number + SESSION_NUMBERS / 2) % SESSION_NUMBERS;

	if (lun->sessions_seen[number / 8] & 1u << number % 8)
		return;
	lun->sessions_seen[number / 8] |= (uint8_t)(1u << number % 8);
	lun->sessions_seen[opposite / 8] &= (uint8_t) ~(1u << opposite % 8);
	ua_sense_clear(cmd->itn_lu_info, ASC_POWERON_RESET);
}

/*
 * In place of tgtd's own. tgtd would hold back what may not begin yet, but not by SAM's rules (it
 * lets others overtake an ORDERED command), and it dies when a command that it holds back is
 * aborted. So every command is SIMPLE to it: it hands over all of them at once, and the order is
 * ours.
 */
static int arrive(int tid, struct scsi_cmd *cmd)
{
	struct muninn_lun *lun = muninn_lun(cmd->dev);

	nothing_answered_yet(cmd);
	if (cmd->dev->lun == cmd->dev_id)
		forget_power_on(lun, cmd);
	lun->arriving = attribute_of(cmd);
	cmd->attribute = MSG_SIMPLE_TAG;
	return lun->stock_perform(tid, cmd);
}

/*
 * In place of tgtd's own for the target's first unit, which answers for those that do not exist,
 * too.
 */
static int arrive_at_first(int tid, struct scsi_cmd *cmd)
{
	if (cmd->dev->dev_type_template.type == TYPE_RAID || cmd->dev->lun != cmd->dev_id)
		nothing_answered_yet(cmd);
	return target_cmd_perform(tid, cmd);
}

/*
 * A controller is what tgtd makes as LUN 0; other kinds of unit set their residuals by other rules.
 */
static void watch_first_unit(struct target *target)
{
	struct scsi_lu *first;

	if (list_empty(&target->device_list))
		return;
	first = list_first_entry(&target->device_list, struct scsi_lu, device_siblings);
	if (first->cmd_perform == target_cmd_perform)
		first->cmd_perform = arrive_at_first;
}

/* ---- life of a logical unit ---- */

static tgtadm_err init(struct scsi_lu *lu, char *bsopts)
{
	struct muninn_lun *lun = muninn_lun(lu);
	struct error_text error;

	memset(lun, 0, sizeof(*lun));
	if (lu->dev_type_template.type != TYPE_OSD) {
		log_line(LOG_LEVEL_ERROR,
			 "LUN %" PRIu64 ": this backing store serves device type osd", lu->lun);
		return TGTADM_INVALID_REQUEST;
	}
	if (lun_options_parse(bsopts, &lun->options, &error)) {
		log_line(LOG_LEVEL_ERROR, "LUN %" PRIu64 ": bsopts: %s", lu->lun, error.text);
		return TGTADM_INVALID_REQUEST;
	}
	watch_first_unit(lu->tgt);
	lun->stock_perform = lu->cmd_perform;
	lu->cmd_perform = arrive;
	for (size_t i = 0; i < NR_SCSI_OPCODES; i++) {
		lun->stock_operations[i] = lu->dev_type_template.ops[i].cmd_perform;
		if (i != VARLEN_CDB)
			lu->dev_type_template.ops[i].cmd_perform = perform_in_turn;
	}
	return TGTADM_SUCCESS;
}

/*
 * On the attendant's thread: timing and faults of the emulated flash, what ends locks, and whether
 * the clock is right.
 */
static void look_beside_image(void *context)
{
	struct muninn_lun *lun = context;

	nand_take_settings(lun->nand, &lun->settings);
	unlock_take(lun->engine, lun->image);
	trust_clock_take(lun->engine, lun->image);
}

/* Closes whatever is open, in reverse order. */
static int close_layers(struct muninn_lun *lun)
{
	int result = 0, closed;

	attendant_stop(lun->attendant);
	if (lun->threads)
		io_threads_stop(lun->threads);
	if (lun->device)
		osd_device_destroy(lun->device);
	if (lun->engine)
		result = engine_close(lun->engine);
	if (lun->nand) {
		closed = nand_close(lun->nand);
		result = result ? result : closed;
	}
	free(lun->image);
	lun->image = NULL;
	lun->attendant = NULL;
	lun->threads = NULL;
	lun->device = NULL;
	lun->engine = NULL;
	lun->nand = NULL;
	return result;
}

static int open_layers(struct muninn_lun *lun, const char *path, struct error_text *error)
{
	struct osd_task_set tasks = { .choose = io_threads_choose };
	struct engine_options options = {
		.onode_cache_entries = lun->options.onode_cache_entries,
		.directory_cache_nodes = lun->options.directory_cache_nodes,
		.version_cache_entries = lun->options.version_cache_entries,
		.stable_commits = lun->options.durable,
		.merge_manual = lun->options.merge_manual,
		.history_interval_ms = lun->options.history_interval_ms,
		.table_cache_bytes = (uint64_t)lun->options.table_cache_mib << 20,
		.recover_without_nvram = lun->options.recover_without_nvram,
	};
	int result;

	lun->image = strdup(path);
	if (!lun->image)
		return error_set(error, -ENOMEM, "out of memory");
	result = nand_open(path, &lun->nand, error);
	if (result)
		return result;
	memset(&lun->settings, 0, sizeof(lun->settings));
	nand_take_settings(lun->nand, &lun->settings);
	result = engine_open(lun->nand, &options, &lun->engine, error);
	if (result)
		return result;
	if (lun->options.key_file[0]) {
		result = osd_key_file_read(lun->options.key_file, lun->options.osd.device_key,
					   error);
		if (result)
			return result;
		lun->options.osd.has_device_key = true;
	}
	result = osd_device_create(lun->engine, nand_uuid(lun->nand), &lun->options.osd,
				   &lun->device);
	explicit_bzero(lun->options.osd.device_key, sizeof(lun->options.osd.device_key));
	if (result)
		return error_set(error, result, "no OSD on %s: %s", path, strerror(-result));
	result = io_threads_start(lun->options.threads, execute, perform_on_main, lun,
				  &lun->threads, error);
	if (result)
		return result;
	tasks.context = lun->threads;
	osd_device_set_tasks(lun->device, &tasks);
	result = attendant_start(look_beside_image, lun, &lun->attendant);
	return result ? error_set(error, result, "%s: no thread can be started: %s", path,
				  strerror(-result))
		      : 0;
}

static int open_image(struct scsi_lu *lu, char *path, int *fd, uint64_t *size)
{
	struct muninn_lun *lun = muninn_lun(lu);
	struct engine_statistics statistics;
	struct error_text error = { "" };
	int result = open_layers(lun, path, &error);

	if (result) {
		close_layers(lun);
		log_line(LOG_LEVEL_ERROR, "LUN %" PRIu64 ": %s", lu->lun, error.text);
		return result;
	}
	engine_read_statistics(lun->engine, &statistics);
	log_line(LOG_LEVEL_INFO,
		 "LUN %" PRIu64 ": %s open after %" PRIu64 " us, %" PRIu64 " of %" PRIu64
		 " bytes used, %" PRIu32 " I/O threads",
		 lu->lun, path, statistics.open_microseconds, statistics.used_bytes,
		 statistics.capacity_bytes, lun->options.threads);
	*fd = -1; /* the image is the flash layer's own business */
	*size = statistics.capacity_bytes;
	return 0;
}

/* tgtd closes a unit only when it has no active command. */
static void close_image(struct scsi_lu *lu)
{
	int result = close_layers(muninn_lun(lu));

	if (result)
		log_line(LOG_LEVEL_ERROR,
			 "LUN %" PRIu64 ": the last data may not be on stable storage: %s", lu->lun,
			 strerror(-result));
	else
		log_line(LOG_LEVEL_INFO, "LUN %" PRIu64 ": closed, everything is stable", lu->lun);
}

/* ---- registration ---- */

static struct backingstore_template template = {
	.bs_name = "muninn",
	.bs_datasize = sizeof(struct muninn_lun),
	.bs_init = init,
	.bs_open = open_image,
	.bs_close = close_image,
	.bs_cmd_submit = submit,
};

/* Set while the module registers before tgtd's own log is there. */
static bool before_main;

static void log_to_tgtd(enum log_level level, const char *line)
{
	if (before_main)
		fprintf(stderr, "tgtd: muninn: %s\n", line);
	else if (level == LOG_LEVEL_ERROR)
		log_error("muninn: %s\n", line);
	else if (level == LOG_LEVEL_DEBUG)
		log_debug("muninn: %s\n", line);
	else
		log_warning("muninn: %s\n", line);
}

static enum log_level wanted_log_level(void)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	const char *wanted = getenv("MUNINN_LOG_LEVEL");

	for (size_t i = 0; wanted && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(wanted, names[i]))
			return (enum log_level)i;
	return LOG_LEVEL_INFO;
}

void register_bs_module(void)
{
	unsigned char operations[] = { TEST_UNIT_READY, REQUEST_SENSE, INQUIRY, REPORT_LUNS,
				       VARLEN_CDB };
	struct error_text error;

	log_configure(log_to_tgtd, wanted_log_level());
	if (tgtd_identity_check(&error)) {
		log_line(LOG_LEVEL_ERROR, "%s", error.text);
		return;
	}
	if (get_backingstore_template(template.bs_name)) {
		log_line(LOG_LEVEL_INFO,
			 "a backing store muninn is loaded already; using that one");
		return;
	}
	bs_create_opcode_map(&template, operations, sizeof(operations));
	register_backingstore_template(&template);
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
