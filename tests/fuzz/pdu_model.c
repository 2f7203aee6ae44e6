/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* tgtd's handling of PDUs, as far as memory is concerned. */
#include "tests/fuzz/pdu_model.h"

#include <string.h>

#include "common/bytes.h"

#define FINAL     0x80
#define READS     0x40
#define WRITES    0x20
#define IMMEDIATE 0x40
#define MAX_BURST 1048576

static const uint8_t zeros[1 << 16];

void model_begin(struct model *model)
{
	model->shared.bytes = 0;
	limits_default(&model->shared.limits);
	model->shared.limits.commands = 128;
	model->shared.limits.transfer = 4 << 20;
	model->shared.limits.session_memory = 16 << 20;
	model->shared.limits.memory = 16 << 20;
	guard_begin(&model->guard, &model->shared);
	model->full = model->discovery = model->closed = model->known = false;
	model->count = 0;
	model->bytes = 0;
	model->receiving = NULL;
	model->login_bytes = 0;
}

void model_end(struct model *model)
{
	guard_end(&model->guard);
	fuzz_check(model->shared.bytes == 0);
}

static uint8_t opcode_of(const uint8_t *header)
{
	return header[0] & 0x3f;
}

static uint32_t data_length(const uint8_t *header)
{
	return get_be32(header + 4) & 0xffffff;
}

/* ---- tasks ---- */

static struct model_task *find(struct model *model, uint32_t tag)
{
	for (unsigned i = model->count; i > 0; i--)
		if (model->tasks[i - 1].opcode == GUARD_COMMAND && model->tasks[i - 1].tag == tag)
			return &model->tasks[i - 1];
	return NULL;
}

static struct model_task *allocate(struct model *model, const uint8_t *header, uint64_t bytes)
{
	struct model_task *task = &model->tasks[model->count++];

	fuzz_check(model->count < MODEL_TASKS_MAX);
	*task = (struct model_task){
		.tag = get_be32(header + 16),
		.allocated = bytes,
		.opcode = opcode_of(header),
	};
	model->bytes += bytes;
	return task;
}

static void release(struct model *model, struct model_task *task)
{
	model->bytes -= task->allocated + task->allocated_in;
	memmove(task, task + 1, (size_t)(&model->tasks[--model->count] - task) * sizeof(*task));
}

/* list_add of tgtd's c_list, which links a task into one list only. */
static void enlist(struct model_task *task)
{
	fuzz_check(!task->listed);
	task->listed = true;
}

/* ---- execution: iscsi_target_cmd_queue ---- */

static void read_segments(struct model *model, struct model_task *task)
{
	int left = (int)task->segment_bytes, at = 0;

	if (left >= 4 && task->segments[2] == 1) {
		int rest = get_be16(task->segments) - 1;

		fuzz_check(rest >= 0 && 4 + rest <= left && rest + 16 <= 260);
		at = 4 + rest;
		left -= at;
	}
	if (task->both && left >= 8 && task->segments[at + 2] == 2) {
		uint32_t in = get_be32(task->segments + at + 4), rounded = (in + 3) & ~3U;

		fuzz_check(rounded >= in && in <= model->shared.limits.transfer);
		task->allocated_in = rounded;
		model->bytes += rounded;
	}
}

/* iscsi_scsi_cmd_execute */
static void execute(struct model *model, struct model_task *task)
{
	if (task->r2t_count) {
		if (!task->unsolicited)
			enlist(task);
		return;
	}
	fuzz_check(!task->executed && !task->listed);
	task->executed = true;
	read_segments(model, task);
}

/* ---- what comes: iscsi_task_rx_start and iscsi_task_rx_done ---- */

/* iscsi_scsi_cmd_rx_start */
static void command_comes(struct model *model, const uint8_t *header)
{
	uint32_t length = get_be32(header + 20), immediate = data_length(header);
	struct model_task *task;

	fuzz_check(length <= model->shared.limits.transfer);
	fuzz_check(align_up(immediate, 4) <= align_up(length, 4));
	task = allocate(model, header, align_up(length, 4));
	task->length = length;
	task->segment_bytes = 4U * header[4];
	fuzz_check(task->segment_bytes <= sizeof(task->segments));
	task->both = (header[1] & READS) && (header[1] & WRITES);
	if (header[1] & WRITES) {
		task->offset = immediate;
		task->r2t_count = (int64_t)length - immediate;
		task->unsolicited = !(header[1] & FINAL);
	}
	fuzz_check(task->r2t_count >= 0);
	model->receiving = task;
}

/* iscsi_data_out_rx_start */
static void data_comes(struct model *model, const uint8_t *header)
{
	struct model_task *task = find(model, get_be32(header + 16));
	uint64_t at = get_be32(header + 40), length = data_length(header);

	fuzz_check(task && !task->executed && !task->listed);
	fuzz_check(at + align_up(length, 4) <= task->allocated);
	task->offset += (uint32_t)length;
	task->r2t_count -= (int64_t)length;
	fuzz_check(task->r2t_count >= 0);
	fuzz_check(at + length == task->offset);
	model->receiving = task;
}

static void header_comes(struct model *model, const uint8_t *header)
{
	switch (opcode_of(header)) {
	case GUARD_COMMAND:
		command_comes(model, header);
		return;
	case GUARD_DATA_OUT:
		data_comes(model, header);
		break;
	case GUARD_NOP_OUT:
		model->receiving = allocate(model, header, data_length(header));
		break;
	case GUARD_TASK_MANAGEMENT:
	case GUARD_LOGOUT_REQUEST:
		fuzz_check(data_length(header) == 0);
		model->receiving = allocate(model, header, 0);
		break;
	default:
		fuzz_check(!"a PDU that tgtd does not handle");
	}
	/* conn->req.ahs is an earlier command's. */
	fuzz_check(header[4] == 0);
}

/* iscsi_task_queue: nothing waits for its turn. */
static void take_number(struct model *model, const uint8_t *header)
{
	if (header[0] & IMMEDIATE)
		return;
	fuzz_check(get_be32(header + 24) == model->expected_command);
	model->expected_command++;
}

static void pdu_ends(struct model *model, const uint8_t *header)
{
	struct model_task *task = model->receiving;

	model->receiving = NULL;
	switch (opcode_of(header)) {
	case GUARD_COMMAND:
		take_number(model, header);
		execute(model, task);
		break;
	case GUARD_DATA_OUT:
		if (!(header[1] & FINAL))
			return;
		if (get_be32(header + 20) == GUARD_TAG_NONE)
			task->unsolicited = false;
		execute(model, task);
		break;
	case GUARD_NOP_OUT:
		take_number(model, header);
		if (task->tag == GUARD_TAG_NONE)
			release(model, task);
		else
			enlist(task);
		break;
	default:
		take_number(model, header);
		enlist(task);
		break;
	}
}

/* ---- logins ---- */

/* text_key_find, with what it takes for a key. */
static const char *find_key(const struct model *model, const char *wanted)
{
	const char *data = (const char *)model->login;
	uint32_t left = model->login_bytes;

	while (true) {
		const char *key = data, *value;

		for (; left > 0 && *data != '='; data++, left--)
			;
		if (!left)
			return NULL;
		data++;
		left--;
		for (value = data; left > 0 && *data != 0; data++, left--)
			;
		if (!left)
			return NULL;
		data++;
		left--;
		if (strlen(wanted) == (size_t)(value - key - 1) &&
		    !strncmp(key, wanted, strlen(wanted)))
			return value;
	}
}

static void login_ends(struct model *model, const uint8_t *header)
{
	const char *type;

	if (model->known)
		return;
	model->known = true;
	model->expected_command = get_be32(header + 24);
	type = find_key(model, "SessionType");
	model->discovery = type && !strcmp(type, "Discovery");
	fuzz_check(model->guard.discovers == model->discovery);
}

/* ---- parts, as iscsi_rx_handler reads them ---- */

/* False: the connection is closed. */
static bool part_comes(struct model *model, const uint8_t *from, uint32_t given, uint32_t bytes,
		       uint32_t piece)
{
	bool ended;

	for (uint32_t at = 0; at < bytes;) {
		uint32_t some = (uint32_t)min_u64(bytes - at, piece);
		const uint8_t *part = zeros;

		if (at < given)
			some = (uint32_t)min_u64(some, given - at), part = from + at;
		some = (uint32_t)min_u64(some, sizeof(zeros));
		fuzz_check(guard_missing(&model->guard) == bytes - at);
		if (!guard_came(&model->guard, part, some, &ended)) {
			fuzz_check(model->guard.reason[0]);
			model->closed = true;
			return false;
		}
		at += some;
	}
	return true;
}

/* conn->req_buffer */
static bool login_comes(struct model *model, const uint8_t *data, uint32_t given, uint32_t length,
			uint32_t piece)
{
	uint32_t padded = (uint32_t)align_up(length, 4);

	fuzz_check(padded <= sizeof(model->login));
	memset(model->login, 0, padded);
	memcpy(model->login, data, min_u64(given, length));
	model->login_bytes = length;
	return part_comes(model, model->login, padded, padded, piece);
}

void model_send(struct model *model, const uint8_t header[GUARD_HEADER_BYTES],
		const uint8_t *segments, const uint8_t *data, uint32_t given, uint32_t piece)
{
	uint32_t length = data_length(header);
	bool texts = !model->full;

	if (model->closed ||
	    !part_comes(model, header, GUARD_HEADER_BYTES, GUARD_HEADER_BYTES, piece))
		return;
	if (texts)
		fuzz_check(header[4] == 0);
	else
		header_comes(model, header);
	if (!part_comes(model, segments, 4U * header[4], 4U * header[4], piece))
		return;
	if (!texts && opcode_of(header) == GUARD_COMMAND)
		memcpy(model->receiving->segments, segments, 4U * header[4]);
	if (texts ? !login_comes(model, data, given, length, piece)
		  : !part_comes(model, data, given, (uint32_t)align_up(length, 4), piece))
		return;
	fuzz_check(guard_is_between(&model->guard));
	if (texts && opcode_of(header) == GUARD_LOGIN_REQUEST)
		login_ends(model, header);
	else if (!texts)
		pdu_ends(model, header);
	/* The guard counts the second buffer when it is named, tgtd allocates it later. */
	fuzz_check(model->guard.bytes >= model->bytes);
	if (model->count == 0)
		fuzz_check(model->guard.bytes == 0 && model->guard.tasks.count == 0);
	fuzz_check(model->shared.bytes == model->guard.bytes);
}

/* ---- answers ---- */

static void goes(struct model *model, const uint8_t *header, const void *data, size_t bytes)
{
	guard_went(&model->guard, header, GUARD_HEADER_BYTES);
	if (bytes) {
		guard_went(&model->guard, data, bytes);
		guard_went(&model->guard, zeros, align_up(bytes, 4) - bytes);
	}
}

void model_answer_login(struct model *model, bool end, const char *keys, size_t bytes)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_LOGIN_RESPONSE, end ? 0x87 : 0x04 };

	if (model->closed || model->full || !model->known || model->guard.phase != GUARD_LOGIN)
		return;
	put_be32(header + 4, (uint32_t)bytes);
	goes(model, header, keys, bytes);
	fuzz_check(!end || model->guard.phase == (model->discovery ? GUARD_DISCOVERY : GUARD_FULL));
	model->full = end && !model->discovery;
}

static void ask_for_data(struct model *model, struct model_task *task)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_R2T, FINAL };

	put_be32(header + 16, task->tag);
	put_be32(header + 20, 0x1000 + task->tag); /* as good as tgtd's */
	put_be32(header + 40, task->offset);
	put_be32(header + 44, (uint32_t)min_u64((uint64_t)task->r2t_count, MAX_BURST));
	task->listed = false;
	goes(model, header, NULL, 0);
}

void model_answer(struct model *model, struct model_task *task, bool with_data_in)
{
	uint8_t header[GUARD_HEADER_BYTES] = { GUARD_RESPONSE, FINAL };
	uint32_t bytes = 0;

	put_be32(header + 16, task->tag);
	if (task->opcode == GUARD_COMMAND && !task->executed) {
		if (task->listed)
			ask_for_data(model, task);
		return;
	}
	switch (task->opcode) {
	case GUARD_COMMAND:
		header[0] = with_data_in ? GUARD_DATA_IN : GUARD_RESPONSE;
		header[1] = with_data_in ? FINAL | 1 : FINAL;
		break;
	case GUARD_NOP_OUT:
		header[0] = GUARD_NOP_IN;
		bytes = (uint32_t)task->allocated;
		put_be32(header + 4, bytes);
		break;
	case GUARD_TASK_MANAGEMENT:
		header[0] = GUARD_TASK_MANAGEMENT_RESPONSE;
		break;
	default:
		header[0] = 0x26;
		model->closed = true;
		break;
	}
	guard_went(&model->guard, header, GUARD_HEADER_BYTES);
	for (uint32_t at = 0, padded = (uint32_t)align_up(bytes, 4); at < padded;) {
		uint32_t some = (uint32_t)min_u64(padded - at, sizeof(zeros));

		guard_went(&model->guard, zeros, some);
		at += some;
	}
	release(model, task);
}
