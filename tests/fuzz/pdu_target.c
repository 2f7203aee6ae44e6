/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The guard before tgtd: an input is a session of PDUs that make sense for what has gone before,
 * with some bytes of their headers changed, between answers of tgtd. pdu_model.h judges what gets
 * through.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/fuzz/pdu_model.h"

#define STEPS_MAX 200

/* An initiator that counts as it should. */
struct sender {
	struct model model;
	struct fuzz_reader *input;
	uint32_t command_number, next_tag, piece;
	uint8_t header[GUARD_HEADER_BYTES];
	uint8_t segments[1020];
	uint8_t text[2048];
	uint32_t text_bytes;
	bool changed; /* what it sends next is not what an honest initiator would send */
};

static uint64_t sent, changed;
static bool shows; /* FUZZ_SHOW in the environment: says what the input does, a line a PDU */

static struct sender sender;

static void begin(struct sender *to, uint8_t opcode, uint8_t flags)
{
	memset(to->header, 0, sizeof(to->header));
	memset(to->segments, 0, sizeof(to->segments));
	to->text_bytes = 0;
	to->changed = false;
	to->header[0] = opcode;
	to->header[1] = flags;
	put_be32(to->header + 24, to->command_number);
}

static void set_data_length(struct sender *to, uint32_t length)
{
	put_be32(to->header + 4, (uint32_t)to->header[4] << 24 | length);
}

/* With up to three bytes of header and segments changed. */
static void send(struct sender *to)
{
	uint8_t how = fuzz_take8(to->input);
	uint32_t given;

	to->piece = how & 0x10 ? 1U + fuzz_take8(to->input) : UINT32_MAX;
	for (unsigned i = (how & 0xf) > 12 ? (how & 0xf) - 12 : 0; i > 0; i--) {
		uint8_t at = fuzz_take8(to->input), value = fuzz_take8(to->input);

		if (at < sizeof(to->header))
			to->header[at] ^= value;
		else
			to->segments[(at - sizeof(to->header)) % 64] ^= value;
		to->changed |= value != 0;
	}
	given = (uint32_t)min_u64(to->text_bytes, get_be32(to->header + 4) & 0xffffff);
	if (!(to->header[0] & 0x40) && (to->header[0] & 0x3f) != GUARD_DATA_OUT)
		to->command_number = get_be32(to->header + 24) + 1;
	model_send(&to->model, to->header, to->segments, to->text, given, to->piece);
	sent++;
	changed += to->changed;
	if (shows)
		fprintf(stderr, "sent %02x %02x: %s\n", to->header[0], to->header[1],
			to->model.guard.reason);
}

/* ---- logins ---- */

static const char *const keys[] = {
	"InitiatorName=iqn.2014-06.local.host:a",
	"SessionType=Discovery",
	"SessionType=Normal",
	"TargetName=iqn.2014-06.local.muninn:osd",
	"MaxRecvDataSegmentLength=262144",
	"MaxRecvDataSegmentLength=8190",
	"FirstBurstLength=65536",
	"FirstBurstLength=512",
	"MaxBurstLength=1048576",
	"InitialR2T=No",
	"InitialR2T=Yes",
	"ImmediateData=No",
	"HeaderDigest=CRC32C,None",
	"AuthMethod=CHAP,None",
	"CHAP_R=0bAAAA",
	"MaxQueueCmd=512",
};

static const char *const answers[] = {
	"MaxRecvDataSegmentLength=262144\0FirstBurstLength=262144\0InitialR2T=No\0",
	"MaxRecvDataSegmentLength=262144\0FirstBurstLength=1024\0InitialR2T=Yes\0",
	"FirstBurstLength=262144\0InitialR2T=No\0ImmediateData=No\0MaxRecvDataSegmentLength=512\0",
	"TargetPortalGroupTag=1\0InitialR2T=No\0a=NotUnderstood\0MaxRecvDataSegmentLength=65536\0",
};

static void add_text(struct sender *to, const void *text, size_t bytes)
{
	bytes = min_u64(bytes, sizeof(to->text) - to->text_bytes);
	memcpy(to->text + to->text_bytes, text, bytes);
	to->text_bytes += (uint32_t)bytes;
}

static void log_in(struct sender *to)
{
	uint8_t kinds = fuzz_take8(to->input), answer;

	begin(to, 0x43, 0x87);
	for (unsigned i = kinds & 7; i > 0; i--) {
		const char *key = keys[fuzz_take8(to->input) % (sizeof(keys) / sizeof(keys[0]))];

		add_text(to, key, strlen(key) + 1);
	}
	if (kinds & 8) {
		size_t taken;
		const uint8_t *raw = fuzz_take(to->input, fuzz_take8(to->input), &taken);

		add_text(to, raw, taken);
		to->changed |= taken > 0;
	}
	set_data_length(to, to->text_bytes);
	send(to);
	answer = fuzz_take8(to->input);
	model_answer_login(&to->model, answer & 0x80, answers[answer & 3], 64);
}

/* A discovery's request. */
static void ask_for_targets(struct sender *to)
{
	begin(to, GUARD_TEXT_REQUEST, 0x80);
	add_text(to, "SendTargets=All", 16);
	set_data_length(to, to->text_bytes);
	send(to);
}

/* ---- sessions ---- */

static void send_command(struct sender *to)
{
	uint8_t how = fuzz_take8(to->input);
	uint32_t length = fuzz_take16(to->input), at = 0;

	if (how & 1)
		length <<= 4;
	begin(to, how & 2 ? 0x41 : 0x01, (uint8_t)((how & 4 ? 0 : 0x80) | (how >> 3 & 3) << 5));
	if (how & 0x20) {
		uint32_t rest = how & 0x40 ? 220 : 4U * (fuzz_take8(to->input) % 62);

		put_be16(to->segments, (uint16_t)(rest + 1));
		to->segments[2] = 1;
		at = 4 + rest;
	}
	if ((how >> 3 & 3) == 3) {
		put_be16(to->segments + at, 5);
		to->segments[at + 2] = 2;
		put_be32(to->segments + at + 4, fuzz_take16(to->input));
		at += 8;
	}
	to->header[4] = (uint8_t)(at / 4);
	if (how & 0x80 && how & 0x10)
		set_data_length(to, (uint32_t)min_u64(length, fuzz_take16(to->input)));
	put_be32(to->header + 16, how & 0x40 ? to->next_tag : to->next_tag++);
	put_be32(to->header + 20, length);
	send(to);
}

static struct model_task *any_task(struct sender *to)
{
	return to->model.count ? &to->model.tasks[fuzz_take8(to->input) % to->model.count] : NULL;
}

/* The data that is due next for a command. */
static void send_data(struct sender *to)
{
	struct model_task *task = any_task(to);
	uint32_t left, length;

	if (!task)
		return;
	left = task->r2t_count > 0 ? (uint32_t)task->r2t_count : 0;
	length = (uint32_t)min_u64(left, fuzz_take16(to->input) * UINT64_C(4));
	begin(to, GUARD_DATA_OUT, length == left || fuzz_take8(to->input) & 1 ? 0x80 : 0);
	set_data_length(to, length);
	put_be32(to->header + 16, task->tag);
	put_be32(to->header + 20, task->unsolicited ? GUARD_TAG_NONE : 0x1000 + task->tag);
	put_be32(to->header + 40, task->offset);
	send(to);
}

static void send_other(struct sender *to, uint8_t opcode)
{
	uint8_t how = fuzz_take8(to->input);
	struct model_task *task = any_task(to);

	begin(to, (uint8_t)(opcode | (how & 1 ? 0x40 : 0)), (uint8_t)(0x80 | how >> 4));
	put_be32(to->header + 16, how & 2 ? GUARD_TAG_NONE : to->next_tag++);
	put_be32(to->header + 20, opcode == GUARD_NOP_OUT ? GUARD_TAG_NONE : task ? task->tag : 0);
	if (opcode == GUARD_NOP_OUT && how & 4)
		set_data_length(to, fuzz_take16(to->input));
	send(to);
}

static void send_raw(struct sender *to)
{
	size_t taken;
	const uint8_t *raw = fuzz_take(to->input, sizeof(to->header), &taken);

	begin(to, 0, 0);
	memcpy(to->header, raw, taken);
	to->changed = true;
	send(to);
}

static void step(struct sender *to, uint8_t kind)
{
	struct model_task *task;

	if (!to->model.full && !(to->model.known && to->model.guard.phase != GUARD_LOGIN)) {
		if (kind % 32 == 31)
			send_raw(to);
		else
			log_in(to);
		return;
	}
	if (to->model.discovery) {
		ask_for_targets(to);
		return;
	}
	switch (kind % 16) {
	case 0:
		send_raw(to);
		break;
	case 1:
		send_other(to, kind < 32 ? GUARD_LOGOUT_REQUEST : GUARD_NOP_OUT);
		break;
	case 2:
		send_other(to, GUARD_TASK_MANAGEMENT);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		send_data(to);
		break;
	case 7:
	case 8:
	case 9:
	case 10:
		task = any_task(to);
		if (task)
			model_answer(&to->model, task, kind & 0x20);
		break;
	default:
		send_command(to);
		break;
	}
}

static void run(const uint8_t *data, size_t size)
{
	struct fuzz_reader input = { .data = data, .left = size };

	shows = getenv("FUZZ_SHOW");
	sender.input = &input;
	sender.command_number = 1;
	sender.next_tag = 1;
	model_begin(&sender.model);
	for (unsigned i = 0; i < STEPS_MAX && input.left && !sender.model.closed; i++)
		step(&sender, fuzz_take8(&input));
	model_end(&sender.model);
}

static uint64_t pdus(void)
{
	return sent;
}

static uint64_t changed_pdus(void)
{
	return changed;
}

const struct fuzz_target fuzz_pdu = {
	.name = "pdu",
	.run = run,
	.commands = pdus,
	.mutated = changed_pdus,
};
