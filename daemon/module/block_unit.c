/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The disk unit: commands that name blocks, on the unit's threads, and INQUIRY in place of tgtd's
 * own. What the commands mean is in disk/. Mode pages, reservations, unit attentions and REPORT
 * LUNS are tgtd's.
 */
#include "daemon/module/block_unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "daemon/module/fullness.h"
#include "daemon/module/nexus.h"
#include "disk/disk.h"
#include "osd/osd.h"
#include "wire/standard.h"

/* Needs the others before it. */
#include "target.h"
/* As above. */
#include "spc.h"

#define MODE_PAGE_CACHING       0x08
#define WRITE_CACHE_ENABLE      0x04
#define MODE_PAGE_CONTROL       0x0A
#define MODE_PAGE_PROVISIONING  0x1C
#define MODE_SUBPAGE_THRESHOLDS 0x02
/* tgtd numbers sessions from 1 on. */
#define NOBODY 0

struct block_state {
	struct disk *disk;
	/* Of the other units on the device; NULL: nobody changes what it shows. */
	struct osd_neighbour *neighbour;
	uint32_t crossings; /* of the device's thresholds that initiators have been told of */
	/* What tgtd's mode pages say. Atomic: set as commands arrive, on the main thread. */
	bool write_through, write_protected;
};

/* ---- commands ---- */

static void take_command(const struct block_state *state, struct scsi_cmd *cmd,
			 struct disk_command *command)
{
	enum data_direction direction = scsi_get_data_dir(cmd);
	bool writes = direction & DATA_WRITE, reads = direction & DATA_READ;

	command->cdb = cmd->scb;
	command->data_out = writes ? scsi_get_out_buffer(cmd) : NULL;
	command->data_out_length = writes ? scsi_get_out_length(cmd) : 0;
	command->data_in = reads ? scsi_get_in_buffer(cmd) : NULL;
	command->data_in_capacity = reads ? scsi_get_in_length(cmd) : 0;
	command->write_through = __atomic_load_n(&state->write_through, __ATOMIC_RELAXED);
	command->write_protected = __atomic_load_n(&state->write_protected, __ATOMIC_RELAXED);
}

static void give_results(struct unit *unit, const struct disk_command *command,
			 struct scsi_cmd *cmd)
{
	memcpy(cmd->sense_buffer, command->sense, command->sense_length);
	cmd->sense_len = (int)command->sense_length;
	unit_note_sense(unit, command->sense, command->sense_length);
	scsi_set_in_resid_by_actual(cmd, (uint32_t)command->data_in_length);
	scsi_set_out_resid_by_actual(cmd, (uint32_t)command->data_out_used);
	scsi_set_result(cmd, command->status);
}

static void execute(struct unit *unit, struct scsi_cmd *cmd)
{
	const struct block_state *state = unit->state;
	struct disk_command command;

	take_command(state, cmd, &command);
	disk_execute(state->disk, &command);
	give_results(unit, &command, cmd);
}

static bool attempt(struct unit *unit, struct scsi_cmd *cmd, struct nand_stage *stage)
{
	const struct block_state *state = unit->state;
	struct disk_command command;

	take_command(state, cmd, &command);
	if (!disk_execute_at_once(state->disk, &command, stage))
		return false;
	give_results(unit, &command, cmd);
	return true;
}

/* ---- on tgtd's main thread ---- */

/* See osd_unit.c: when a new session wants a place. */
static void arrives(struct unit *unit, const struct scsi_cmd *cmd, bool is_first)
{
	struct block_state *state = unit->state;

	if (is_first && state->neighbour)
		osd_neighbour_forget_sessions(state->neighbour, nexus_is_logged_in, cmd->dev->tgt);
}

/*
 * The session uses the disk from now on. True: it is told, in place of what it wants, that somebody
 * has taken the disk back in time.
 */
static bool is_told_of_changes(struct block_state *state, struct scsi_cmd *cmd)
{
	uint16_t code = 0;

	if (state->neighbour)
		code = osd_neighbour_hear(state->neighbour, nexus_of(cmd), nexus_initiator(cmd));
	if (!code)
		return false;
	scsi_set_in_resid_by_actual(cmd, 0);
	scsi_set_out_resid_by_actual(cmd, 0);
	sense_data_build(cmd, UNIT_ATTENTION, code);
	return true;
}

static bool has_write_cache(struct scsi_lu *lu)
{
	const struct mode_pg *page = find_mode_page(lu, MODE_PAGE_CACHING, 0);

	return !page || page->mode_data[0] & WRITE_CACHE_ENABLE;
}

/* Initiators are told, and ask for its size anew. */
static void grown(struct unit *unit)
{
	struct block_state *state = unit->state;
	struct scsi_lu *lu = lu_of(unit);
	uint64_t bytes = disk_bytes(state->disk);

	if (lu->size == bytes)
		return;
	lu->size = bytes;
	put_be32(lu->mode_block_descriptor, (uint32_t)min_u64(bytes >> lu->blk_shift, UINT32_MAX));
	ua_sense_add_other_it_nexus(NOBODY, lu, SENSE_CAPACITY_DATA_HAS_CHANGED);
}

/* Initiators are warned before a write finds no space. The session of this command is one of them.
 */
static void warn(struct unit *unit)
{
	struct block_state *state = unit->state;
	struct device_fullness fullness;

	device_read_fullness(unit->device, &fullness);
	if (fullness.crossings == state->crossings)
		return;
	state->crossings = fullness.crossings;
	if (!disk_is_read_only(state->disk))
		ua_sense_add_other_it_nexus(NOBODY, lu_of(unit),
					    SENSE_THIN_PROVISIONING_SOFT_THRESHOLD_REACHED);
}

/* As tgtd says it to TEST UNIT READY, when an administrator has set online=0. */
static int is_offline(struct scsi_cmd *cmd)
{
	scsi_set_in_resid_by_actual(cmd, 0);
	scsi_set_out_resid_by_actual(cmd, 0);
	sense_data_build(cmd, NOT_READY, ASC_BECOMING_READY);
	return SAM_STAT_CHECK_CONDITION;
}

/*
 * In place of tgtd's functions for commands of disks, whose checks are incomplete: see disk/. What
 * has become of reservations is tgtd's to say.
 */
static int hand_over(int host_no, struct scsi_cmd *cmd)
{
	struct unit *unit = unit_of(cmd->dev);
	struct block_state *state = unit->state;

	(void)host_no;
	if (device_reserved(cmd))
		return SAM_STAT_RESERVATION_CONFLICT;
	if (!cmd->dev->attrs.online)
		return is_offline(cmd);
	if (state) {
		if (is_told_of_changes(state, cmd))
			return SAM_STAT_CHECK_CONDITION;
		/* The command before may have found another size, behind a rollback. */
		grown(unit);
		warn(unit);
		__atomic_store_n(&state->write_through, !has_write_cache(cmd->dev),
				 __ATOMIC_RELAXED);
		__atomic_store_n(&state->write_protected,
				 cmd->dev->attrs.readonly || cmd->dev->attrs.swp, __ATOMIC_RELAXED);
	}
	return unit_submit(cmd);
}

/* `length`: of all that there is to answer; negative: the CDB asks for what there is not. */
static int answer(struct scsi_cmd *cmd, int length, uint32_t allocated)
{
	if (length < 0) {
		scsi_set_in_resid_by_actual(cmd, 0);
		sense_data_build(cmd, ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		return SAM_STAT_CHECK_CONDITION;
	}
	scsi_set_in_resid_by_actual(cmd, (uint32_t)min_u64((uint64_t)length, allocated));
	return SAM_STAT_GOOD;
}

static int inquiry(struct unit *unit, struct scsi_cmd *cmd)
{
	const struct block_state *state = unit->state;
	uint32_t allocated = get_be16(&cmd->scb[3]);
	uint32_t capacity = (uint32_t)min_u64(scsi_get_in_length(cmd), allocated);

	return answer(cmd, disk_inquiry(state->disk, cmd->scb, scsi_get_in_buffer(cmd), capacity),
		      allocated);
}

static int log_sense(struct unit *unit, struct scsi_cmd *cmd)
{
	uint32_t allocated = get_be16(&cmd->scb[7]);
	uint32_t capacity = (uint32_t)min_u64(scsi_get_in_length(cmd), allocated);
	struct device_fullness fullness;
	struct disk_space space;

	device_read_fullness(unit->device, &fullness);
	space = (struct disk_space){ fullness.used_bytes, fullness.capacity_bytes };
	return answer(cmd, disk_log_sense(&space, cmd->scb, scsi_get_in_buffer(cmd), capacity),
		      allocated);
}

/* The thresholds are parts of the device, which may have grown. */
static void renew_thresholds(struct unit *unit)
{
	struct mode_pg *page =
		find_mode_page(lu_of(unit), MODE_PAGE_PROVISIONING, MODE_SUBPAGE_THRESHOLDS);
	struct device_fullness fullness;
	uint64_t available[DISK_THRESHOLDS];

	if (!page || page->pcode_size != DISK_THRESHOLD_PAGE_BYTES)
		return;
	device_read_fullness(unit->device, &fullness);
	available[0] = fullness.capacity_bytes / 100 * (100 - FULLNESS_HIGH_PERCENT);
	available[1] = fullness.capacity_bytes / 100 * (100 - FULLNESS_VERY_HIGH_PERCENT);
	disk_threshold_page(available, page->mode_data);
}

/* Commands that RESERVE(6) of another session keeps out, and tgtd does not. */
static bool is_for_the_holder(uint8_t operation)
{
	return operation == LOG_SENSE || operation == MODE_SENSE || operation == MODE_SENSE_10 ||
	       operation == MODE_SELECT || operation == MODE_SELECT_10 || operation == START_STOP ||
	       operation == TEST_UNIT_READY;
}

/* tgtd writes into the answer, also where there is no place for any. */
static int mode_sense(struct unit *unit, struct scsi_cmd *cmd)
{
	bool is_short = cmd->scb[0] == MODE_SENSE;
	uint32_t allocated = is_short ? cmd->scb[4] : get_be16(&cmd->scb[7]);

	renew_thresholds(unit);
	return allocated ? unit_perform_stock(unit, cmd) : answer(cmd, 0, 0);
}

/*
 * Does a list of MODE SELECT leave the block descriptor alone? The number of blocks may be as it
 * is, or 0. tgtd takes over whatever stands there, and behind the end of the list.
 */
static bool keeps_blocks(struct scsi_cmd *cmd)
{
	bool is_short = cmd->scb[0] == MODE_SELECT;
	uint32_t head = is_short ? 4 : 8, listed = is_short ? cmd->scb[4] : get_be16(&cmd->scb[7]);
	uint64_t length = min_u64(listed, scsi_get_out_length(cmd));
	const uint8_t *list = scsi_get_out_buffer(cmd), *now = cmd->dev->mode_block_descriptor;
	uint32_t bytes;

	if (length < head)
		return true;
	bytes = is_short ? list[3] : get_be16(list + 6);
	if (bytes == 0)
		return true;
	return bytes == BLOCK_DESCRIPTOR_LEN && length >= head + BLOCK_DESCRIPTOR_LEN &&
	       (get_be32(list + head) == 0 || get_be32(list + head) == get_be32(now)) &&
	       get_be32(list + head + 4) == get_be32(now + 4);
}

/*
 * What MODE SELECT can change, as tgtd keeps it. tgtd takes over page after page, also of a list
 * that it refuses in the end.
 */
struct mode_values {
	uint8_t block_descriptor[BLOCK_DESCRIPTOR_LEN];
	uint8_t caching, control; /* the bytes with WCE and SWP */
	bool write_protected;
};

enum { CONTROL_SWP_BYTE = 2 }; /* of the page's data, which is behind its head */

static struct mode_values mode_values(struct scsi_lu *lu)
{
	const struct mode_pg *caching = find_mode_page(lu, MODE_PAGE_CACHING, 0);
	const struct mode_pg *control = find_mode_page(lu, MODE_PAGE_CONTROL, 0);
	struct mode_values values = { .write_protected = lu->attrs.swp };

	memcpy(values.block_descriptor, lu->mode_block_descriptor, BLOCK_DESCRIPTOR_LEN);
	if (caching)
		values.caching = caching->mode_data[0];
	if (control)
		values.control = control->mode_data[CONTROL_SWP_BYTE];
	return values;
}

static void restore_mode(struct scsi_lu *lu, const struct mode_values *values)
{
	struct mode_pg *caching = find_mode_page(lu, MODE_PAGE_CACHING, 0);
	struct mode_pg *control = find_mode_page(lu, MODE_PAGE_CONTROL, 0);

	if (caching)
		caching->mode_data[0] = values->caching;
	if (control)
		control->mode_data[CONTROL_SWP_BYTE] = values->control;
	lu->attrs.swp = values->write_protected;
}

static int mode_select(struct unit *unit, struct scsi_cmd *cmd)
{
	const struct mode_values before = mode_values(cmd->dev);
	int status;

	if (!keeps_blocks(cmd)) {
		scsi_set_in_resid_by_actual(cmd, 0);
		sense_data_build(cmd, ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_PARMS);
		return SAM_STAT_CHECK_CONDITION;
	}
	status = unit_perform_stock(unit, cmd);
	memcpy(cmd->dev->mode_block_descriptor, before.block_descriptor, BLOCK_DESCRIPTOR_LEN);
	if (status != SAM_STAT_GOOD)
		restore_mode(cmd->dev, &before);
	return status;
}

static int reserve_out(struct unit *unit, struct scsi_cmd *cmd)
{
	struct registrations_shared shared = registrations_before(cmd->dev);
	int status;

	if (registrations_refuse(&unit->registrations, cmd)) {
		sense_data_build(cmd, ILLEGAL_REQUEST, ASC_INSUFFICENT_REGISTRATION_RESOURCES);
		return SAM_STAT_CHECK_CONDITION;
	}
	if (registrations_preempt_wrongly(cmd)) {
		sense_data_build(cmd, ILLEGAL_REQUEST, ASC_INVALID_FIELD_IN_CDB);
		return SAM_STAT_CHECK_CONDITION;
	}
	status = unit_perform_stock(unit, cmd);
	registrations_after(&shared, cmd);
	registrations_note(&unit->registrations, cmd->dev);
	return status;
}

/*
 * RESERVE and RELEASE(6) are for disks that nobody has registered at (SPC-2, 5.5.1). tgtd would let
 * RESERVE keep the registered ones out.
 */
static bool is_superseded(const struct scsi_cmd *cmd)
{
	return (cmd->scb[0] == RESERVE || cmd->scb[0] == RELEASE) &&
	       !list_empty(&cmd->dev->registration_list);
}

static int perform(struct unit *unit, struct scsi_cmd *cmd)
{
	if ((is_for_the_holder(cmd->scb[0]) && device_reserved(cmd)) || is_superseded(cmd))
		return SAM_STAT_RESERVATION_CONFLICT;
	if (cmd->scb[0] == INQUIRY)
		return inquiry(unit, cmd);
	if (cmd->scb[0] != REQUEST_SENSE && cmd->scb[0] != REPORT_LUNS &&
	    is_told_of_changes(unit->state, cmd))
		return SAM_STAT_CHECK_CONDITION;
	if (cmd->scb[0] == LOG_SENSE)
		return log_sense(unit, cmd);
	if (cmd->scb[0] == PERSISTENT_RESERVE_OUT)
		return reserve_out(unit, cmd);
	if (cmd->scb[0] == MODE_SENSE || cmd->scb[0] == MODE_SENSE_10)
		return mode_sense(unit, cmd);
	if (cmd->scb[0] == MODE_SELECT || cmd->scb[0] == MODE_SELECT_10)
		return mode_select(unit, cmd);
	return unit_perform_stock(unit, cmd);
}

/* ---- life ---- */

/* Operation codes that change blocks: persistent reservations keep others from them. */
static const uint8_t writing[] = {
	SBC_WRITE_AND_VERIFY_10, SBC_WRITE_SAME_10,       SBC_UNMAP,         SBC_COMPARE_AND_WRITE,
	SBC_ORWRITE_16,          SBC_WRITE_AND_VERIFY_16, SBC_WRITE_SAME_16, SBC_WRITE_AND_VERIFY_12
};

/* tgtd's table blocks plain WRITEs, and leaves out most of these. */
static void complete_conflicts(struct scsi_lu *lu)
{
	struct device_type_operations *operations = lu->dev_type_template.ops;

	for (size_t i = 0; i < sizeof(writing); i++)
		operations[writing[i]].pr_conflict_bits = operations[WRITE_10].pr_conflict_bits;
}

/*
 * REGISTER AND MOVE is left out: tgtd dies of it where nothing is reserved, and forgets of what
 * type a reservation is that it moves.
 */
static void limit_reservations(struct scsi_lu *lu)
{
	static struct service_action offered[16];
	struct device_type_operations *operation =
		&lu->dev_type_template.ops[PERSISTENT_RESERVE_OUT];
	const struct service_action *stock = persistent_reserve_out_actions;
	size_t count = 0;

	for (; stock->cmd_perform && count + 1 < sizeof(offered) / sizeof(offered[0]); stock++)
		if (stock->service_action != PR_OUT_REGISTER_AND_MOVE)
			offered[count++] = *stock;
	offered[count] = (struct service_action){ .cmd_perform = NULL };
	operation->service_actions = offered;
}

/* What tgtd's own answers say of the disk: the block descriptor of mode pages. */
static void describe(struct scsi_lu *lu, const struct disk *disk)
{
	uint32_t block_bytes = disk_block_bytes(disk);
	uint64_t blocks = disk_bytes(disk) / block_bytes;

	lu->blk_shift = (unsigned int)__builtin_ctz(block_bytes);
	put_be32(lu->mode_block_descriptor, (uint32_t)min_u64(blocks, UINT32_MAX));
	put_be32(lu->mode_block_descriptor + 4, block_bytes);
	lu->attrs.thinprovisioning = 1;
	if (!find_mode_page(lu, MODE_PAGE_PROVISIONING, MODE_SUBPAGE_THRESHOLDS))
		add_mode_page(lu, "0x1c:2:28");
	if (disk_is_read_only(disk))
		lu->attrs.readonly = 1;
}

static void tell(struct unit *unit, FILE *to)
{
	const struct block_state *state = unit->state;

	fprintf(to, "partition %" PRIu64 "\nbytes %" PRIu64 "\nblock_bytes %" PRIu32 "\n",
		disk_partition(state->disk), disk_bytes(state->disk),
		disk_block_bytes(state->disk));
	if (unit->options.disk.version[0])
		fprintf(to, "version %s\n", unit->options.disk.version);
	fprintf(to, "read_only %d\n", disk_is_read_only(state->disk));
}

static int grow(struct unit *unit, uint64_t bytes, struct error_text *error)
{
	const struct block_state *state = unit->state;
	int result;

	if (disk_is_version(state->disk))
		return error_set(error, -EINVAL, "it is a version, which stays as it was");
	result = disk_volume_grow(device_engine(unit->device), disk_partition(state->disk), &bytes,
				  error);
	if (!result)
		disk_grown(state->disk, bytes);
	return result;
}

static void close_disk(struct unit *unit)
{
	struct block_state *state = unit->state;

	osd_neighbour_destroy(state->neighbour);
	disk_close(state->disk);
	free(state);
	unit->state = NULL;
}

static int open_disk(struct unit *unit, uint64_t *bytes, struct error_text *error)
{
	struct disk_options options = unit->options.disk;
	struct block_state *state = calloc(1, sizeof(*state));
	struct device_fullness fullness;
	int result;

	if (!state)
		return error_set(error, -ENOMEM, "out of memory");
	memcpy(options.serial, unit->options.osd.serial, sizeof(options.serial));
	result = disk_open(device_engine(unit->device), device_uuid(unit->device), &options,
			   &state->disk, error);
	if (result) {
		free(state);
		return result;
	}
	unit->state = state;
	if (!disk_is_version(state->disk))
		state->neighbour = osd_neighbour_create(device_units(unit->device),
							disk_partition(state->disk));
	if (!state->neighbour && !disk_is_version(state->disk)) {
		close_disk(unit);
		return error_set(error, -ENOMEM, "out of memory");
	}
	*bytes = disk_bytes(state->disk);
	device_read_fullness(unit->device, &fullness);
	state->crossings = fullness.crossings; /* those before are nobody's news */
	describe(lu_of(unit), state->disk);
	complete_conflicts(lu_of(unit));
	limit_reservations(lu_of(unit));
	return 0;
}

static uint64_t partition(const struct unit *unit)
{
	const struct block_state *state = unit->state;

	return disk_partition(state->disk);
}

static const uint8_t operations[] = {
	TEST_UNIT_READY,
	REQUEST_SENSE,
	INQUIRY,
	MODE_SELECT,
	RESERVE,
	RELEASE,
	MODE_SENSE,
	START_STOP,
	ALLOW_MEDIUM_REMOVAL,
	LOG_SENSE,
	MODE_SELECT_10,
	MODE_SENSE_10,
	PERSISTENT_RESERVE_IN,
	PERSISTENT_RESERVE_OUT,
	REPORT_LUNS,
	MAINT_PROTOCOL_IN,
	SBC_READ_6,
	SBC_WRITE_6,
	SBC_READ_CAPACITY_10,
	SBC_READ_10,
	SBC_WRITE_10,
	SBC_WRITE_AND_VERIFY_10,
	SBC_VERIFY_10,
	SBC_PRE_FETCH_10,
	SBC_SYNCHRONIZE_CACHE_10,
	SBC_WRITE_SAME_10,
	SBC_UNMAP,
	SBC_READ_16,
	SBC_COMPARE_AND_WRITE,
	SBC_WRITE_16,
	SBC_ORWRITE_16,
	SBC_WRITE_AND_VERIFY_16,
	SBC_VERIFY_16,
	SBC_PRE_FETCH_16,
	SBC_SYNCHRONIZE_CACHE_16,
	SBC_WRITE_SAME_16,
	SBC_SERVICE_ACTION_IN_16,
	SBC_READ_12,
	SBC_WRITE_12,
	SBC_WRITE_AND_VERIFY_12,
	SBC_VERIFY_12,
};

/* Those of disk/ are the last ones. */
enum { STOCK_OPERATIONS = 16 };

const struct unit_kind block_unit = {
	.type = &unit_types[UNIT_TYPE_DISK],
	.tells_power_on = true,
	.operations = operations,
	.operation_count = sizeof(operations),
	.on_threads = operations + STOCK_OPERATIONS,
	.on_threads_count = sizeof(operations) - STOCK_OPERATIONS,
	.hand_over = hand_over,
	.open = open_disk,
	.close = close_disk,
	.partition = partition,
	.arrives = arrives,
	.execute = execute,
	.attempt = attempt,
	.perform = perform,
	.describe = tell,
	.grow = grow,
	.grown = grown,
};
