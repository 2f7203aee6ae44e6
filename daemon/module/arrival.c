/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How commands of a unit arrive, on tgtd's main thread: functions in place of tgtd's own. They keep
 * tgtd from holding commands back, and give each command to the unit's order of tasks.
 */
#include "common/clock.h"
#include "daemon/module/nexus.h"
#include "daemon/module/requests.h"
#include "daemon/module/unit.h"

/* Needs the others before it. */
#include "target.h"

/* In place of tgtd's functions, for all operation codes that no thread executes. */
static int perform_in_turn(int host_no, struct scsi_cmd *cmd)
{
	struct unit *unit = unit_of(cmd->dev);

	/* For a unit that does not exist, tgtd answers through the target's first one. */
	if (cmd->dev->lun != cmd->dev_id || !unit->threads)
		return unit->stock_operations[cmd->scb[0]](host_no, cmd);
	return io_threads_perform(unit->threads, cmd, unit->arriving);
}

/*
 * tgtd takes all of Data-In for answered unless somebody says otherwise, and many of its own
 * refusals do not. It would then send what earlier commands, of other sessions too, have left in
 * that memory. So answers begin empty, and whoever answers with data says how much.
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
 * Is it the first command that the session sends to the unit? tgtd uses numbers of sessions again
 * after a round, so the number alone does not tell.
 */
static bool is_first_of_session(struct unit *unit, const struct scsi_cmd *cmd)
{
	uint32_t *seen = &unit->sessions_seen[cmd->cmd_itn_id % SESSION_NUMBERS];
	uint32_t session = (uint32_t)nexus_of(cmd);
	bool is_first = *seen != session;

	*seen = session;
	return is_first;
}

/*
 * tgtd keeps a unit attention (29/00) for each new session. Initiators of OSDs do not repeat a
 * command that was refused for one, so exofs would see an I/O error after each reconnect. Such
 * units drop that attention; later ones, from a reset, stay.
 */
static void look_at_session(struct unit *unit, struct scsi_cmd *cmd)
{
	bool is_first = is_first_of_session(unit, cmd);

	if (is_first && !unit->kind->tells_power_on)
		ua_sense_clear(cmd->itn_lu_info, ASC_POWERON_RESET);
	/* Also while no image is open: the session may go on when one is. */
	if (is_first)
		registrations_return(&unit->registrations, cmd);
	if (unit->threads && unit->kind->arrives)
		unit->kind->arrives(unit, cmd, is_first);
}

/*
 * Counts a command that has ended at once, by what tgtd has counted for its session. One that goes
 * on is counted when it ends (unit.c).
 */
static void count_at_once(struct unit *unit, const struct lu_stat *before,
			  const struct lu_stat *now, uint32_t took_us)
{
	struct unit_done *done = &unit->done;

	done->reads += now->rd_done_cmds - before->rd_done_cmds;
	done->writes += now->wr_done_cmds - before->wr_done_cmds;
	done->both += now->bidir_done_cmds - before->bidir_done_cmds;
	done->errors += now->err_num - before->err_num;
	done->read_bytes += now->rd_done_bytes - before->rd_done_bytes;
	done->written_bytes += now->wr_done_bytes - before->wr_done_bytes;
	if (now->rd_done_cmds != before->rd_done_cmds)
		latency_count(&done->read, took_us);
	if (now->wr_done_cmds != before->wr_done_cmds)
		latency_count(&done->written, took_us);
	if (now->bidir_done_cmds != before->bidir_done_cmds)
		latency_count(&done->bidirectional, took_us);
}

/*
 * In place of tgtd's own. tgtd would hold back what may not begin yet, but not by SAM's rules (it
 * lets others overtake an ORDERED command), and it dies when somebody aborts a command that it
 * holds back. So every command is SIMPLE to tgtd, which hands over all of them at once, and this
 * module keeps the order.
 */
static int arrive(int tid, struct scsi_cmd *cmd)
{
	struct unit *unit = unit_of(cmd->dev);
	/* Of the session, which stays; the command may be gone behind this. */
	const struct it_nexus_lu_info *info = cmd->itn_lu_info;
	const struct lu_stat before = info->stat;
	uint64_t began_us = clock_microseconds();
	int result;

	io_threads_arrives(cmd);
	nothing_answered_yet(cmd);
	nexus_greet(cmd->it_nexus);
	if (cmd->dev->lun == cmd->dev_id)
		look_at_session(unit, cmd);
	unit->arriving = attribute_of(cmd);
	cmd->attribute = MSG_SIMPLE_TAG;
	result = unit->stock_perform(tid, cmd);
	count_at_once(unit, &before, &info->stat, (uint32_t)(clock_microseconds() - began_us));
	return result;
}

/*
 * In place of tgtd's own for the target's first unit, which also answers for units that do not
 * exist.
 */
static int arrive_at_first(int tid, struct scsi_cmd *cmd)
{
	if (cmd->dev->dev_type_template.type == TYPE_RAID || cmd->dev->lun != cmd->dev_id)
		nothing_answered_yet(cmd);
	/* As in arrive. A controller executes each command at once, so it keeps their order. */
	if (cmd->dev->dev_type_template.type == TYPE_RAID)
		cmd->attribute = MSG_SIMPLE_TAG;
	return target_cmd_perform(tid, cmd);
}

/* tgtd makes a controller as LUN 0. Other kinds of unit set their residuals by other rules. */
static void watch_first_unit(struct target *target)
{
	struct scsi_lu *first;

	if (list_empty(&target->device_list))
		return;
	first = list_first_entry(&target->device_list, struct scsi_lu, device_siblings);
	requests_watch(first);
	if (first->cmd_perform == target_cmd_perform)
		first->cmd_perform = arrive_at_first;
}

static bool is_on_threads(const struct unit_kind *kind, size_t operation)
{
	for (size_t i = 0; i < kind->on_threads_count; i++)
		if (kind->on_threads[i] == operation)
			return true;
	return false;
}

void unit_watch_arrivals(struct unit *unit, struct scsi_lu *lu)
{
	watch_first_unit(lu->tgt);
	requests_watch(lu);
	unit->stock_perform = lu->cmd_perform;
	lu->cmd_perform = arrive;
	for (size_t i = 0; i < NR_SCSI_OPCODES; i++) {
		unit->stock_operations[i] = lu->dev_type_template.ops[i].cmd_perform;
		if (!is_on_threads(unit->kind, i))
			lu->dev_type_template.ops[i].cmd_perform = perform_in_turn;
		else if (unit->kind->hand_over)
			lu->dev_type_template.ops[i].cmd_perform = unit->kind->hand_over;
	}
}

int unit_submit(struct scsi_cmd *cmd)
{
	struct unit *unit = unit_of(cmd->dev);

	/* No image is open: an administrator has closed it. */
	if (!unit->threads) {
		scsi_set_in_resid_by_actual(cmd, 0);
		sense_data_build(cmd, NOT_READY, ASC_MANUAL_INTERVENTION_REQ);
		return SAM_STAT_CHECK_CONDITION;
	}
	return io_threads_submit(unit->threads, cmd, unit->arriving);
}

int unit_perform_stock(struct unit *unit, struct scsi_cmd *cmd)
{
	return unit->stock_operations[cmd->scb[0]](cmd->it_nexus->host_no, cmd);
}
