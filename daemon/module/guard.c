/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Follows both directions of a connection, part by part, and what tgtd's answers change. */
#include "daemon/module/guard.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"

#define OPCODE_MASK        0x3f
#define TRANSIT            0x80
#define NEXT_STAGE         0x03
#define FULL_FEATURE_PHASE 3
#define DATA_IN_STATUS     0x01
#define STATUS_CLASS       36

enum guard_opcode guard_opcode(const struct guard_flow *flow)
{
	return flow->header[0] & OPCODE_MASK;
}

uint32_t guard_data_length(const struct guard_flow *flow)
{
	return get_be32(flow->header + 4) & 0xffffff;
}

static uint32_t tag_of(const struct guard_flow *flow)
{
	return get_be32(flow->header + 16);
}

bool guard_refuse(struct guard *guard, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(guard->reason, sizeof(guard->reason), format, arguments);
	va_end(arguments);
	return false;
}

/* ---- life ---- */

static void expect_header(struct guard_flow *flow)
{
	memset(flow->left, 0, sizeof(flow->left));
	flow->left[GUARD_HEADER] = GUARD_HEADER_BYTES;
	flow->part = GUARD_HEADER;
}

void guard_begin(struct guard *guard, struct guard_shared *shared)
{
	memset(guard, 0, sizeof(*guard));
	guard->shared = shared;
	guard->agreed = (struct guard_agreed){
		.segment_bytes = 8192,
		.first_burst = 65536,
		.initial_r2t = true,
		.immediate_data = true,
	};
	expect_header(&guard->in);
	expect_header(&guard->out);
}

void guard_end(struct guard *guard)
{
	assert(guard->bytes <= guard->shared->bytes);
	guard->shared->bytes -= guard->bytes;
	guard->bytes = 0;
	guard_tasks_release(&guard->tasks);
}

/* ---- what is asked about it ---- */

uint32_t guard_missing(const struct guard *guard)
{
	return guard->in.left[guard->in.part];
}

bool guard_is_between(const struct guard *guard)
{
	return guard->in.part == GUARD_HEADER && guard->in.left[GUARD_HEADER] == GUARD_HEADER_BYTES;
}

/* While a command waits for its data, which is behind whatever comes, the session has to go on. */
bool guard_may_go_on(const struct guard *guard)
{
	const struct limits *limits = &guard->shared->limits;

	if (guard->phase != GUARD_FULL || guard->tasks.waiting)
		return true;
	return guard->tasks.count + guard->pings < limits->commands &&
	       guard->bytes < limits->session_memory && guard->shared->bytes < limits->memory;
}

bool guard_waits(const struct guard *guard)
{
	return !guard_is_between(guard) || guard->tasks.waiting > 0;
}

bool guard_is_same_session(const struct guard *one, const struct guard *other)
{
	return one->phase == GUARD_FULL && other->phase == GUARD_FULL &&
	       strcmp(one->name, other->name) == 0 && strcmp(one->target, other->target) == 0 &&
	       memcmp(one->isid, other->isid, sizeof(one->isid)) == 0;
}

/* ---- from the initiator ---- */

/* The header is whole: what follows it. */
static void expect_rest(const struct guard *guard, struct guard_flow *flow)
{
	uint32_t data = guard_data_length(flow);
	bool digests = guard->phase == GUARD_FULL || guard->phase == GUARD_LOGOUT;

	flow->left[GUARD_SEGMENTS] = 4 * (uint32_t)flow->header[4];
	flow->left[GUARD_HEADER_DIGEST] = digests && guard->agreed.header_digest ? 4 : 0;
	flow->left[GUARD_DATA] = (uint32_t)align_up(data, 4);
	flow->left[GUARD_DATA_DIGEST] = digests && data && guard->agreed.data_digest ? 4 : 0;
	flow->text_left = data;
	memset(&flow->text, 0, sizeof(flow->text));
}

static bool is_text(const struct guard_flow *flow)
{
	enum guard_opcode opcode = guard_opcode(flow);

	return opcode == GUARD_LOGIN_REQUEST || opcode == GUARD_TEXT_REQUEST ||
	       opcode == GUARD_LOGIN_RESPONSE;
}

/* Bytes of one part. */
static bool part_came(struct guard *guard, const uint8_t *from, uint32_t bytes)
{
	struct guard_flow *flow = &guard->in;
	uint32_t at;
	const char *reason;

	switch (flow->part) {
	case GUARD_HEADER:
		memcpy(flow->header + GUARD_HEADER_BYTES - flow->left[GUARD_HEADER], from, bytes);
		return true;
	case GUARD_SEGMENTS:
		at = 4 * (uint32_t)flow->header[4] - flow->left[GUARD_SEGMENTS];
		memcpy(guard->segments + at, from, bytes);
		return true;
	case GUARD_DATA:
		if (!is_text(flow))
			return true;
		bytes = (uint32_t)min_u64(bytes, flow->text_left);
		flow->text_left -= bytes;
		reason = guard_text_came(&flow->text, from, bytes, guard_key_came, guard);
		return !reason || guard_refuse(guard, "%s", reason);
	default:
		return true;
	}
}

/* A part is whole. */
static bool judge_part(struct guard *guard)
{
	struct guard_flow *flow = &guard->in;
	const char *reason;

	switch (flow->part) {
	case GUARD_HEADER:
		expect_rest(guard, flow);
		return guard_judge_header(guard);
	case GUARD_SEGMENTS:
		return guard_judge_segments(guard);
	case GUARD_DATA:
		reason = is_text(flow) ? guard_text_end(&flow->text) : NULL;
		return !reason || guard_refuse(guard, "%s", reason);
	default:
		return true;
	}
}

/* Goes on to the next part that has bytes. Whether the PDU is at its end. */
static bool next_part(struct guard_flow *flow)
{
	while (flow->part < GUARD_PARTS && !flow->left[flow->part])
		flow->part++;
	return flow->part == GUARD_PARTS;
}

bool guard_came(struct guard *guard, const uint8_t *from, size_t bytes, bool *ended)
{
	struct guard_flow *flow = &guard->in;

	*ended = false;
	while (bytes > 0) {
		uint32_t some = (uint32_t)min_u64(bytes, flow->left[flow->part]);

		if (!part_came(guard, from, some))
			return false;
		from += some;
		bytes -= some;
		flow->left[flow->part] -= some;
		if (flow->left[flow->part])
			return true;
		if (!judge_part(guard))
			return false;
		if (!next_part(flow))
			continue;
		if (!guard_judge_end(guard))
			return false;
		*ended = true;
		expect_header(flow);
	}
	return true;
}

/* ---- from tgtd ---- */

static void release(struct guard *guard, uint64_t bytes)
{
	bytes = min_u64(bytes, guard->bytes);
	guard->bytes -= bytes;
	guard->shared->bytes -= bytes;
}

static void end_task(struct guard *guard)
{
	struct guard_task *task = guard_tasks_find(&guard->tasks, tag_of(&guard->out));

	/* Of several with one tag only the newest can have all its data. */
	if (!task || task->data != GUARD_DATA_COMPLETE)
		return;
	release(guard, task->bytes);
	guard_tasks_remove(&guard->tasks, task);
}

static void note_request_for_data(struct guard *guard)
{
	const uint8_t *header = guard->out.header;
	struct guard_task *task = guard_tasks_find(&guard->tasks, tag_of(&guard->out));

	guard->asking = true;
	if (!task || task->data != GUARD_DATA_NEEDED)
		return;
	task->transfer_tag = get_be32(header + 20);
	task->window_end = get_be32(header + 40) + get_be32(header + 44);
	guard_tasks_set(&guard->tasks, task, GUARD_DATA_SOLICITED);
}

static void answer_ping(struct guard *guard)
{
	if (tag_of(&guard->out) == GUARD_TAG_NONE)
		return;
	guard->pings -= guard->pings > 0;
	release(guard, guard_data_length(&guard->out));
}

static void header_went(struct guard *guard)
{
	const struct guard_flow *flow = &guard->out;

	guard->asking = false;
	switch (guard_opcode(flow)) {
	case GUARD_RESPONSE:
		end_task(guard);
		break;
	case GUARD_DATA_IN:
		if (flow->header[1] & DATA_IN_STATUS)
			end_task(guard);
		break;
	case GUARD_R2T:
		note_request_for_data(guard);
		break;
	case GUARD_NOP_IN:
	case GUARD_TASK_MANAGEMENT_RESPONSE:
		answer_ping(guard);
		break;
	default:
		break;
	}
}

/* The login has come to its end if this answer says so. Without memory, the connection ends. */
static void end_login(struct guard *guard)
{
	const uint8_t *header = guard->out.header;

	if (guard->phase != GUARD_LOGIN || guard_opcode(&guard->out) != GUARD_LOGIN_RESPONSE)
		return;
	guard->refusal = get_be16(header + STATUS_CLASS);
	if (guard->refusal || !(header[1] & TRANSIT) ||
	    (header[1] & NEXT_STAGE) != FULL_FEATURE_PHASE)
		return;
	guard->phase = guard->discovers ? GUARD_DISCOVERY : GUARD_FULL;
	if (guard->discovers)
		return;
	if (guard_tasks_init(&guard->tasks, 2 * guard->shared->limits.commands))
		guard_refuse(guard, "there is no memory for another session");
}

static void text_went(struct guard *guard, const uint8_t *from, uint32_t bytes)
{
	struct guard_flow *flow = &guard->out;

	bytes = (uint32_t)min_u64(bytes, flow->text_left);
	flow->text_left -= bytes;
	/* tgtd repeats keys of the initiator, which have been judged. */
	guard_text_came(&flow->text, from, bytes, guard_key_went, guard);
}

void guard_went(struct guard *guard, const uint8_t *from, size_t bytes)
{
	struct guard_flow *flow = &guard->out;

	while (bytes > 0) {
		uint32_t some = (uint32_t)min_u64(bytes, flow->left[flow->part]);

		if (flow->part == GUARD_HEADER)
			memcpy(flow->header + GUARD_HEADER_BYTES - flow->left[GUARD_HEADER], from,
			       some);
		else if (flow->part == GUARD_DATA && is_text(flow))
			text_went(guard, from, some);
		from += some;
		bytes -= some;
		flow->left[flow->part] -= some;
		if (flow->left[flow->part])
			return;
		if (flow->part == GUARD_HEADER) {
			expect_rest(guard, flow);
			header_went(guard);
		}
		if (!next_part(flow))
			continue;
		end_login(guard);
		expect_header(flow);
	}
}
