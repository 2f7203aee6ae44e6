/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The rules: what of a PDU tgtd would trust, and what RFC 7143 lets an initiator send. Each rule
 * that is there for a fault of tgtd says which; docs/security.md has the list.
 */
#include "daemon/module/guard.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/bytes.h"

#define IMMEDIATE       0x40
#define FINAL           0x80
#define READS           0x40
#define WRITES          0x20
#define CONTINUED       0x40
#define FUNCTION_MASK   0x7f
#define ABORT_TASK      1
#define LOGIN_BYTES_MAX 8192 /* of tgtd's buffer */
#define LOGINS_MAX      32   /* login requests of a login; with CHAP five are usual */

#define AHS_EXTENDED_CDB 1
#define AHS_READ_LENGTH  2
#define AHS_HEAD_BYTES   4
#define CDB_BYTES_MAX    260
#define CDB_HEADER_BYTES 16

static uint32_t field(const struct guard *guard, size_t at)
{
	return get_be32(guard->in.header + at);
}

static bool flag(const struct guard *guard, uint8_t bit)
{
	return guard->in.header[1] & bit;
}

static bool is_immediate(const struct guard *guard)
{
	return guard->in.header[0] & IMMEDIATE;
}

/* ---- rules that several kinds of PDUs share ---- */

/* tgtd reads segments and data of these to where those of an earlier PDU were. */
static bool judge_no_segments(struct guard *guard)
{
	return !guard->in.header[4] ||
	       guard_refuse(guard, "PDU %02x with additional header segments",
			    guard_opcode(&guard->in));
}

static bool judge_no_data(struct guard *guard)
{
	return !guard_data_length(&guard->in) ||
	       guard_refuse(guard, "PDU %02x with a data segment", guard_opcode(&guard->in));
}

static bool judge_data_segment(struct guard *guard)
{
	uint32_t length = guard_data_length(&guard->in);

	return length <= guard->agreed.segment_bytes ||
	       guard_refuse(guard, "a data segment of %u bytes, and the target takes %u", length,
			    guard->agreed.segment_bytes);
}

/*
 * With one connection numbers come in order. tgtd would keep any number of commands that are ahead
 * of their turn, and put one that waits for data into two of its lists.
 */
static bool judge_command_number(struct guard *guard)
{
	uint32_t number = field(guard, 24);

	if (is_immediate(guard))
		return true;
	if (number != guard->expected_command)
		return guard_refuse(guard, "CmdSN %u in place of %u", number,
				    guard->expected_command);
	guard->expected_command++;
	return true;
}

/* ---- memory ---- */

static bool charge(struct guard *guard, uint64_t bytes)
{
	const struct limits *limits = &guard->shared->limits;

	if (guard->bytes + bytes > 2 * limits->session_memory + limits->transfer)
		return guard_refuse(guard, "the session's commands are too large together");
	if (guard->shared->bytes + bytes > 2 * limits->memory + limits->transfer)
		return guard_refuse(guard, "all sessions' commands are too large together");
	guard->bytes += bytes;
	guard->shared->bytes += bytes;
	return true;
}

static bool judge_transfer(struct guard *guard, const char *what, uint32_t length)
{
	return length <= guard->shared->limits.transfer ||
	       guard_refuse(guard, "%s of %u bytes, and the limit is %llu", what, length,
			    (unsigned long long)guard->shared->limits.transfer);
}

/* ---- logins and texts ---- */

static bool judge_text_request(struct guard *guard)
{
	if (guard_data_length(&guard->in) > LOGIN_BYTES_MAX)
		return guard_refuse(guard, "a text of %u bytes", guard_data_length(&guard->in));
	if (flag(guard, CONTINUED))
		return guard_refuse(guard, "a text in several PDUs, which tgtd can't read");
	return judge_no_segments(guard);
}

/*
 * tgtd would let a second connection into a session, whose commands it then mixes up: a connection
 * could write into buffers that the other one has freed.
 */
static bool judge_login(struct guard *guard)
{
	if (!is_immediate(guard))
		return guard_refuse(guard, "a login request that is not immediate");
	if (get_be16(guard->in.header + 14))
		return guard_refuse(guard, "a login into another session");
	if (guard->logins++ == LOGINS_MAX)
		return guard_refuse(guard, "a login of too many requests");
	if (guard->logins == 1) {
		guard->expected_command = field(guard, 24);
		memcpy(guard->isid, guard->in.header + 8, sizeof(guard->isid));
	}
	return judge_text_request(guard);
}

static bool matches(const struct guard_text *text, const char *key)
{
	return !strcasecmp(text->key, key);
}

/* Both sides agree on the smaller one. tgtd passes over a value out of RFC 7143's limits. */
static void agree_least(uint32_t *agreed, const char *value)
{
	unsigned int number = (unsigned int)strtol(value, NULL, 0);

	if (number >= 512 && number <= 0xffffff && number < *agreed)
		*agreed = number;
}

/* What the initiator says may only restrict what the target has said, or will say. */
static void agree(struct guard_agreed *agreed, const struct guard_text *text)
{
	if (matches(text, "FirstBurstLength"))
		agree_least(&agreed->first_burst, text->value);
	else if (matches(text, "ImmediateData"))
		agreed->immediate_data &= strcmp(text->value, "No") != 0;
	else if (matches(text, "InitialR2T"))
		agreed->initial_r2t |= !strcmp(text->value, "Yes");
}

/* The first ones count for tgtd, and only those of the first request. */
static const char *note_identity(struct guard *guard, const struct guard_text *text)
{
	bool name = !strcmp(text->key, "InitiatorName");

	if ((name || !strcmp(text->key, "TargetName")) && text->value_bytes > GUARD_NAME_BYTES)
		return "an iSCSI name of more than 223 bytes";
	if (guard->logins != 1)
		return NULL;
	if (name && !guard->name[0])
		strcpy(guard->name, text->value);
	if (!strcmp(text->key, "TargetName") && !guard->target[0])
		strcpy(guard->target, text->value);
	if (!strcmp(text->key, "SessionType") && !guard->typed) {
		guard->typed = true;
		guard->discovers = !strcmp(text->value, "Discovery");
	}
	return NULL;
}

/* tgtd decodes whatever fits in groups of three bytes, up to two more than it has room for. */
static bool is_base64_digest(const struct guard_text *text)
{
	const char *end = text->value + text->value_bytes;

	if (text->value_bytes == 2 + 24) /* MD5: 16 bytes */
		return end[-1] == '=' && end[-2] == '=';
	return text->value_bytes == 2 + 28 && end[-1] == '='; /* SHA-1: 20 bytes */
}

const char *guard_key_came(void *context, const struct guard_text *text)
{
	struct guard *guard = context;

	if (guard->phase != GUARD_LOGIN)
		return NULL;
	if (matches(text, "MaxXmitDataSegmentLength") || matches(text, "MaxQueueCmd"))
		return "a text key that is tgtd's own";
	/* tgtd pads each PDU inside of the data that it sends, and behind its end. */
	if (matches(text, "MaxRecvDataSegmentLength") && strtol(text->value, NULL, 0) % 4)
		return "a MaxRecvDataSegmentLength that is no multiple of 4";
	if (!strcmp(text->key, "CHAP_R") && !strncasecmp(text->value, "0b", 2) &&
	    !is_base64_digest(text))
		return "a CHAP_R that is no digest";
	agree(&guard->agreed, text);
	return note_identity(guard, text);
}

/* The target's answers are what both have agreed on. */
const char *guard_key_went(void *context, const struct guard_text *text)
{
	struct guard *guard = context;
	struct guard_agreed *agreed = &guard->agreed;

	if (!strcmp(text->value, "Reject"))
		return NULL;
	if (matches(text, "MaxRecvDataSegmentLength"))
		agreed->segment_bytes = (uint32_t)strtol(text->value, NULL, 0);
	else if (matches(text, "FirstBurstLength"))
		agreed->first_burst = (uint32_t)strtol(text->value, NULL, 0);
	else if (matches(text, "InitialR2T"))
		agreed->initial_r2t = strcmp(text->value, "No") != 0;
	else if (matches(text, "ImmediateData"))
		agreed->immediate_data = strcmp(text->value, "No") != 0;
	else if (matches(text, "HeaderDigest"))
		agreed->header_digest = !strcmp(text->value, "CRC32C");
	else if (matches(text, "DataDigest"))
		agreed->data_digest = !strcmp(text->value, "CRC32C");
	return NULL;
}

/* ---- SCSI commands ---- */

/*
 * tgtd finds a command by its tag, and the newer one of two. After a request to abort it an
 * initiator may use the tag again, while tgtd still waits for data of the old one: data for it
 * would go to the new one, so it stays as it is. An old one that tgtd may still ask for data of, or
 * answer, would be taken for the new one.
 */
static bool judge_tag(struct guard *guard, uint32_t tag)
{
	const struct guard_task *old = guard_tasks_find(&guard->tasks, tag);

	if (tag == GUARD_TAG_NONE)
		return guard_refuse(guard, "a command without a task tag");
	return !old ||
	       (old->aborted &&
		(old->data == GUARD_DATA_UNSOLICITED || old->data == GUARD_DATA_SOLICITED)) ||
	       guard_refuse(guard, "a second command with task tag %08x", tag);
}

/* What comes with the command, and what may follow without being asked for. */
static bool judge_immediate_data(struct guard *guard, uint32_t length, enum guard_data *data)
{
	uint32_t immediate = guard_data_length(&guard->in);
	uint32_t first = (uint32_t)min_u64(length, guard->agreed.first_burst);

	*data = GUARD_DATA_COMPLETE;
	if (!flag(guard, WRITES))
		return judge_no_data(guard);
	if (immediate && !guard->agreed.immediate_data)
		return guard_refuse(guard, "immediate data, though ImmediateData is No");
	if (immediate > first)
		return guard_refuse(guard, "immediate data of %u bytes, and %u may come", immediate,
				    first);
	if (flag(guard, FINAL)) {
		*data = immediate < length ? GUARD_DATA_NEEDED : GUARD_DATA_COMPLETE;
		return true;
	}
	if (guard->agreed.initial_r2t)
		return guard_refuse(guard, "unsolicited data, though InitialR2T is Yes");
	/* tgtd would execute the command, and once more at the end of data that isn't needed. */
	if (immediate == first)
		return guard_refuse(guard, "a command says that more data comes, and none may");
	*data = GUARD_DATA_UNSOLICITED;
	return true;
}

static bool judge_command(struct guard *guard)
{
	uint32_t tag = field(guard, 16), length = field(guard, 20);
	enum guard_data data;
	struct guard_task *task;

	if (!judge_data_segment(guard) || !judge_transfer(guard, "a transfer", length) ||
	    !judge_tag(guard, tag) || !judge_immediate_data(guard, length, &data))
		return false;
	if (guard->in.left[GUARD_SEGMENTS] > GUARD_SEGMENTS_BYTES)
		return guard_refuse(guard, "additional header segments of %u bytes",
				    guard->in.left[GUARD_SEGMENTS]);
	if (!judge_command_number(guard) || !charge(guard, align_up(length, 4)))
		return false;
	task = guard_tasks_add(&guard->tasks, tag);
	if (!task)
		return guard_refuse(guard, "more than %u commands are not answered",
				    guard->tasks.room);
	task->length = length;
	task->received = flag(guard, WRITES) ? guard_data_length(&guard->in) : length;
	task->bytes = align_up(length, 4);
	guard_tasks_set(&guard->tasks, task, data);
	guard->task = task;
	return true;
}

/* tgtd takes the length of an extended CDB, less one, for bytes to move: 0 moves all memory. */
static bool judge_extended_cdb(struct guard *guard, uint32_t all, uint32_t *used)
{
	uint32_t length = get_be16(guard->segments), rest;

	*used = 0;
	if (guard->segments[2] != AHS_EXTENDED_CDB)
		return true;
	if (length == 0)
		return guard_refuse(guard, "an extended CDB of length 0");
	rest = length - 1;
	if (CDB_HEADER_BYTES + rest > CDB_BYTES_MAX || AHS_HEAD_BYTES + rest > all)
		return guard_refuse(guard, "an extended CDB of %u bytes in segments of %u", rest,
				    all);
	*used = AHS_HEAD_BYTES + (uint32_t)align_up(rest, 4);
	/* tgtd looks for the next segment without padding. */
	if (rest % 4 && *used < all)
		return guard_refuse(guard, "a segment behind an extended CDB of %u bytes", rest);
	return true;
}

/* tgtd allocates this too, rounded up without looking whether that becomes 0. */
static bool judge_read_length(struct guard *guard, const uint8_t *from, uint32_t left)
{
	uint32_t length;

	if (left != AHS_HEAD_BYTES + 4 || from[2] != AHS_READ_LENGTH || get_be16(from) != 5)
		return guard_refuse(guard, "an additional header segment of type %u, length %u",
				    from[2], get_be16(from));
	if (!flag(guard, READS) || !flag(guard, WRITES))
		return guard_refuse(guard, "a second length for a transfer in one direction");
	length = get_be32(from + AHS_HEAD_BYTES);
	if (!judge_transfer(guard, "a transfer", length) || !charge(guard, align_up(length, 4)))
		return false;
	guard->task->bytes += align_up(length, 4);
	return true;
}

bool guard_judge_segments(struct guard *guard)
{
	uint32_t all = 4 * (uint32_t)guard->in.header[4], used;

	if (!judge_extended_cdb(guard, all, &used))
		return false;
	return used == all || judge_read_length(guard, guard->segments + used, all - used);
}

/* ---- Data-Out ---- */

/* What tgtd waits for, whether it has asked for it or not. */
static bool judge_place(struct guard *guard, const struct guard_task *task)
{
	uint32_t transfer_tag = field(guard, 20), length = guard_data_length(&guard->in), end;

	if (transfer_tag == GUARD_TAG_NONE) {
		if (task->data != GUARD_DATA_UNSOLICITED)
			return guard_refuse(guard, "unsolicited data that nobody expects");
		end = (uint32_t)min_u64(task->length, guard->agreed.first_burst);
	} else {
		if (task->data != GUARD_DATA_SOLICITED || transfer_tag != task->transfer_tag)
			return guard_refuse(guard, "data that tgtd has not asked for");
		end = task->window_end;
	}
	if (field(guard, 40) != task->received)
		return guard_refuse(guard, "data at offset %u in place of %u", field(guard, 40),
				    task->received);
	if (length > end - task->received)
		return guard_refuse(guard, "%u bytes of data at offset %u, and %u may come", length,
				    task->received, end);
	return true;
}

/* tgtd adds the offset to its buffer's address, and reads data and padding to there. */
static bool judge_data_out(struct guard *guard)
{
	struct guard_task *task = guard_tasks_find(&guard->tasks, field(guard, 16));
	uint32_t length = guard_data_length(&guard->in);

	if (!judge_no_segments(guard) || !judge_data_segment(guard))
		return false;
	if (!task)
		return guard_refuse(guard, "data for no command");
	if (!judge_place(guard, task))
		return false;
	if (task->received + align_up(length, 4) > align_up(task->length, 4))
		return guard_refuse(guard, "data whose padding is behind the transfer's end");
	task->received += length;
	guard->task = task;
	return true;
}

/*
 * At the end of a sequence tgtd executes the command, or asks for more. It puts the command into a
 * list for that: a second time is no sequence's end, because no data is expected then.
 */
static void end_data_out(struct guard *guard)
{
	struct guard_task *task = guard->task;

	if (flag(guard, FINAL))
		guard_tasks_set(&guard->tasks, task,
				task->received < task->length ? GUARD_DATA_NEEDED
							      : GUARD_DATA_COMPLETE);
}

/* ---- the others ---- */

/* Requests that are no commands. */
static bool count_request(struct guard *guard)
{
	uint32_t most = 2 * guard->shared->limits.commands;

	return guard->pings++ < most ||
	       guard_refuse(guard, "more than %u requests are not answered", most);
}

/* tgtd keeps the data until it has answered, and answers only as fast as the initiator reads. */
static bool judge_ping(struct guard *guard)
{
	const struct limits *limits = &guard->shared->limits;
	uint32_t length = guard_data_length(&guard->in);

	if (!judge_no_segments(guard) || !judge_data_segment(guard) || !judge_command_number(guard))
		return false;
	if (field(guard, 16) == GUARD_TAG_NONE) {
		if (!is_immediate(guard))
			return guard_refuse(guard, "a NOP-Out without a tag that is not immediate");
		if (guard->silent++ == limits->commands)
			return guard_refuse(guard, "too many requests without an answer");
		return judge_no_data(guard);
	}
	return count_request(guard) && charge(guard, length);
}

static bool judge_task_management(struct guard *guard)
{
	uint8_t function = guard->in.header[1] & FUNCTION_MASK;

	if (!judge_no_segments(guard) || !judge_no_data(guard) || !judge_command_number(guard))
		return false;
	if (!count_request(guard))
		return false;
	guard_tasks_abort(&guard->tasks, function == ABORT_TASK, field(guard, 20));
	return true;
}

static bool judge_logout(struct guard *guard)
{
	return judge_no_segments(guard) && judge_no_data(guard) &&
	       (guard->phase == GUARD_DISCOVERY || judge_command_number(guard));
}

/* ---- phases ---- */

static bool refuse_opcode(struct guard *guard, const char *when)
{
	return guard_refuse(guard, "PDU %02x %s", guard_opcode(&guard->in), when);
}

static bool judge_in_full_feature_phase(struct guard *guard)
{
	switch (guard_opcode(&guard->in)) {
	case GUARD_COMMAND:
		return judge_command(guard);
	case GUARD_DATA_OUT:
		return judge_data_out(guard);
	case GUARD_NOP_OUT:
		return judge_ping(guard);
	case GUARD_TASK_MANAGEMENT:
		return judge_task_management(guard);
	case GUARD_LOGOUT_REQUEST:
		return judge_logout(guard);
	default:
		return refuse_opcode(guard, "in a session");
	}
}

/* tgtd would execute requests for texts before the login, without the name that it looks at. */
bool guard_judge_header(struct guard *guard)
{
	enum guard_opcode opcode = guard_opcode(&guard->in);

	guard->task = NULL;
	switch (guard->phase) {
	case GUARD_LOGIN:
		return opcode == GUARD_LOGIN_REQUEST ? judge_login(guard)
						     : refuse_opcode(guard, "before a login");
	case GUARD_DISCOVERY:
		if (opcode == GUARD_TEXT_REQUEST)
			return judge_text_request(guard);
		return opcode == GUARD_LOGOUT_REQUEST ? judge_logout(guard)
						      : refuse_opcode(guard, "in a discovery");
	case GUARD_FULL:
		return judge_in_full_feature_phase(guard);
	default:
		return refuse_opcode(guard, "behind the logout");
	}
}

bool guard_judge_end(struct guard *guard)
{
	enum guard_opcode opcode = guard_opcode(&guard->in);

	if (opcode == GUARD_DATA_OUT)
		end_data_out(guard);
	else if (opcode == GUARD_LOGOUT_REQUEST)
		guard->phase = GUARD_LOGOUT;
	return true;
}
