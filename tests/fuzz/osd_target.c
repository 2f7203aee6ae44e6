/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * The whole of osd/: sequences of commands to one small logical unit (osd_input.h). After each
 * command the answer must be well-formed, and what a failing command promises not to do must not
 * have happened.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "tests/fuzz/osd_access.h"
#include "tests/fuzz/osd_damage.h"
#include "tests/fuzz/osd_permissions.h"
#include "tests/fuzz/osd_sign.h"
#include "wire/envelope.h"
#include "wire/vendor.h"
#include "wire/wire.h"

/*
 * One command with buffers of exactly their size, so that the address sanitizer sees every byte too
 * far.
 */
struct run {
	struct osd_fuzz_unit unit;
	struct osd_input_command input;
	struct osd_command command;
	uint8_t *cdb, *out, *in;
	unsigned comparisons;          /* of the whole state, so far */
	uint32_t signatures;           /* made so far */
	struct osd_sign_limits limits; /* of the capability that the command was signed with */
	enum osd_scene scene;
	bool full;   /* the device soon is: history is given up, whatever becomes of who needs the
			room */
	bool locked; /* nothing has happened that could let unsigned commands in */
	bool rolled_back;            /* the whole device */
	struct osd_fuzz_locks locks; /* before the command */
};

/* Comparisons of the whole state in one input: they take longer than commands. */
#define COMPARISONS_MAX 1

static uint64_t nexus_of(const struct run *run)
{
	return run->input.flags & OSD_INPUT_OTHER_NEXUS ? 2 : 1;
}

/* The action of the CDB as OSD-2 numbers it; 0: there is none. */
static uint16_t action_of(const struct run *run)
{
	bool is_osd = run->input.cdb_length >= 10 && run->input.cdb[0] == OSD_OPERATION_CODE;
	uint16_t action = is_osd ? get_be16(run->input.cdb + 8) : 0;

	return action >= 0x8800 && action < 0x8880 ? action + OSD2_ACTION_OFFSET : action;
}

/* Thousands of objects at once are possible, but not the point. */
static void keep_small(struct run *run)
{
	if (action_of(run) != OSD_CREATE)
		return;
	for (int at = 32; at <= 36; at += 4) {
		run->input.cdb[at] = 0;
		run->input.cdb[at + 1] &= 7;
	}
}

enum { TEST_UNIT_READY = 0x00 };

static void make_buffers(struct run *run)
{
	const struct osd_input_command *input = &run->input;

	run->cdb = fuzz_exact(input->cdb_length, 0);
	memcpy(run->cdb, input->cdb, input->cdb_length);
	run->out = fuzz_exact(input->out_length, input->fill);
	memcpy(run->out, input->out, input->out_kept);
	run->in = fuzz_exact(input->in_capacity, 0);
}

static void free_buffers(struct run *run)
{
	free(run->cdb);
	free(run->out);
	free(run->in);
}

/* ---- answers ---- */

static void check_sense(const struct run *run)
{
	const struct osd_command *command = &run->command;
	struct osd_sense sense;

	fuzz_check(command->sense_length >= 8 && command->sense_length <= OSD_SENSE_BYTES_MAX);
	fuzz_check(command->sense_length == 8 + (size_t)command->sense[7]);
	fuzz_check(osd_sense_decode(command->sense, command->sense_length, &sense) == 0);
	fuzz_check(sense.key != SENSE_NO_SENSE);
	/* Nothing that an initiator sends is the target's own failure. */
	fuzz_check(sense.key != SENSE_HARDWARE_ERROR || run->unit.worn);
	fuzz_check(sense.key != SENSE_MEDIUM_ERROR || run->unit.damage != 0);
	/* What failed has nothing to say but why. */
	fuzz_check(sense.key == SENSE_RECOVERED_ERROR || command->data_in_length == 0);
}

static void check_answer(const struct run *run)
{
	const struct osd_command *command = &run->command;

	fuzz_check(command->status == SCSI_STATUS_GOOD ||
		   command->status == SCSI_STATUS_CHECK_CONDITION);
	fuzz_check(command->data_in_length <= run->input.in_capacity);
	fuzz_check(command->data_out_used <= run->input.out_length);
	fuzz_check(command->data_in == (run->input.in_capacity ? run->in : NULL));
	fuzz_check(command->data_out == (run->input.out_length ? run->out : NULL));
	fuzz_check((command->sense_length != 0) ==
		   (command->status == SCSI_STATUS_CHECK_CONDITION));
	if (command->status == SCSI_STATUS_CHECK_CONDITION)
		check_sense(run);
}

/* Did the command fail as a whole? Then nothing of it may have happened. */
static bool has_failed(const struct run *run)
{
	return run->command.status == SCSI_STATUS_CHECK_CONDITION &&
	       (run->command.sense[1] & 0x0F) != SENSE_RECOVERED_ERROR;
}

/* FUZZ_SHOW in the environment: says what the input does, a line a command. */
static void show(const struct run *run)
{
	const struct osd_command *command = &run->command;
	struct osd_sense sense = { 0 };
	struct osd_cdb cdb;
	uint16_t bad_field;

	if (!getenv("FUZZ_SHOW"))
		return;
	osd_sense_decode(command->sense, command->sense_length, &sense);
	osd_cdb_decode(run->cdb, run->input.cdb_length, &cdb, &bad_field);
	fprintf(stderr,
		"%s (OSD-%d) %#llx/%#llx length %llu at %#llx, flags %#x, out %u, in %u: "
		"status %#x, sense %x/%04x, field %u, attribute %#x/%#x, %zu bytes\n",
		osd_action_name(cdb.action), cdb.version == OSD_1 ? 1 : 2,
		(unsigned long long)cdb.partition, (unsigned long long)cdb.object,
		(unsigned long long)cdb.length, (unsigned long long)cdb.address, run->input.flags,
		run->input.out_length, run->input.in_capacity, command->status, sense.key,
		sense.code, sense.field, sense.attribute[0].page, sense.attribute[0].number,
		command->data_in_length);
}

/* Of all sequences. */
static uint64_t commands_executed;

static uint64_t count_commands(void)
{
	return commands_executed;
}

static void execute_any(struct run *run, struct osd_command *command)
{
	if (!osd_execute_at_once(run->unit.device, command, NULL))
		osd_execute(run->unit.device, command);
	commands_executed++;
}

/* SEND and FETCH of the command, which always succeed, and the answer as if it had come without. */
static void execute_in_envelope(struct run *run, uint8_t garbage)
{
	const struct osd_input_command *input = &run->input;
	struct osd_command *command = &run->command;
	const struct envelope_letter letter = { run->cdb, input->cdb_length, input->out_length };
	size_t letter_bytes = ENVELOPE_HEAD_BYTES + (size_t)input->out_length;
	size_t answer_bytes = ENVELOPE_HEAD_BYTES + (size_t)input->in_capacity;
	uint8_t *out = fuzz_exact(letter_bytes, 0), *in = fuzz_exact(answer_bytes, garbage);
	uint8_t send[ENVELOPE_CDB_BYTES], fetch[ENVELOPE_CDB_BYTES];
	struct envelope_cdb cdb = { ENVELOPE_SEND, commands_executed, (uint32_t)letter_bytes };
	struct osd_command sent = { .cdb = send,
				    .cdb_length = sizeof(send),
				    .data_out = out,
				    .data_out_length = letter_bytes,
				    .nexus = command->nexus };
	struct osd_command fetched = { .cdb = fetch,
				       .cdb_length = sizeof(fetch),
				       .data_in = in,
				       .data_in_capacity = answer_bytes,
				       .nexus = command->nexus };
	struct envelope_answer answer;

	envelope_cdb_encode(&cdb, send);
	cdb.operation = ENVELOPE_FETCH;
	cdb.length = (uint32_t)answer_bytes;
	envelope_cdb_encode(&cdb, fetch);
	envelope_letter_encode(&letter, out);
	memcpy(out + ENVELOPE_HEAD_BYTES, run->out, input->out_length);
	execute_any(run, &sent);
	fuzz_check(sent.status == SCSI_STATUS_GOOD && sent.data_out_used == letter_bytes);
	execute_any(run, &fetched);
	fuzz_check(fetched.status == SCSI_STATUS_GOOD && fetched.data_in == in);
	fuzz_check(envelope_answer_decode(in, fetched.data_in_length, &answer) == 0);
	fuzz_check(answer.data_length + ENVELOPE_HEAD_BYTES == fetched.data_in_length);
	command->status = answer.status;
	command->sense_length = answer.sense_length;
	memcpy(command->sense, answer.sense, answer.sense_length);
	command->data_in_length = answer.data_length;
	command->data_out_used = answer.data_out_used;
	memcpy(run->in, in + ENVELOPE_HEAD_BYTES, input->in_capacity);
	free(out);
	free(in);
}

static bool fits_envelope(const struct osd_input_command *input)
{
	return input->flags & OSD_INPUT_ENVELOPE && input->cdb_length > 0 &&
	       input->cdb_length <= ENVELOPE_PLACE_BYTES;
}

static void execute(struct run *run, uint8_t garbage)
{
	const struct osd_input_command *input = &run->input;

	memset(run->in, garbage, input->in_capacity);
	run->command = (struct osd_command){
		.cdb = run->cdb,
		.cdb_length = input->cdb_length,
		.data_out = input->out_length > 0 ? run->out : NULL,
		.data_out_length = input->out_length,
		.data_in = input->in_capacity > 0 ? run->in : NULL,
		.data_in_capacity = input->in_capacity,
		.nexus = nexus_of(run),
	};
	memset(run->command.sense, garbage, sizeof(run->command.sense));
	if (fits_envelope(input))
		execute_in_envelope(run, garbage);
	else
		execute_any(run, &run->command);
	show(run);
	check_answer(run);
}

/* ---- what else must hold ---- */

/*
 * Reading once more over other garbage must give the same bytes: so every byte was set. Twice,
 * because the command itself may have moved the access times that it answers.
 */
static void check_every_byte_is_set(struct run *run)
{
	size_t length = run->command.data_in_length;
	uint16_t action = action_of(run);
	uint8_t *first;

	if (length == 0 ||
	    (action != OSD_READ && action != OSD_LIST && action != OSD_LIST_COLLECTION &&
	     action != OSD_GET_ATTRIBUTES && action != OSD_READ_MAP))
		return;
	/* Sets could change what is answered. */
	if (get_be32(run->cdb + 68) != 0 || (run->cdb[11] & 0x30) != OSD_ATTRIBUTES_LIST)
		return;
	execute(run, 0x5A);
	if (run->command.data_in_length != length)
		return;
	first = fuzz_exact(length, 0);
	memcpy(first, run->in, length);
	execute(run, 0xC3);
	fuzz_check(run->command.data_in_length == length);
	fuzz_check(memcmp(first, run->in, length) == 0);
	free(first);
}

/* What is read while the flash has faults is what there is without them. */
static void check_undamaged(struct run *run)
{
	size_t length = run->command.data_in_length;
	uint8_t *read;

	if (run->unit.damage == 0 || run->command.status != SCSI_STATUS_GOOD || length == 0 ||
	    action_of(run) != OSD_READ || get_be32(run->cdb + 60) != 0 ||
	    (run->cdb[11] & 0x30) != OSD_ATTRIBUTES_LIST)
		return;
	read = fuzz_exact(length, 0);
	memcpy(read, run->in, length);
	osd_damage_lift(&run->unit);
	execute(run, 0xC3);
	osd_damage_restore(&run->unit);
	/* Where requests are signed a nonce is good for once. */
	fuzz_check(has_failed(run) ? (run->input.flags & OSD_INPUT_SIGN) != 0
				   : run->command.data_in_length == length &&
					     memcmp(read, run->in, length) == 0);
	free(read);
}

static bool may_compare(struct run *run, bool wanted)
{
	return wanted && run->comparisons++ < COMPARISONS_MAX;
}

/*
 * Where the input asks for it, and where a permission may be missing: then nothing may have
 * happened.
 */
static bool wants_comparison(const struct run *run)
{
	return run->input.flags & OSD_INPUT_COMPARE ||
	       (run->input.flags & OSD_INPUT_SIGN && osd_sign_restricts(&run->input));
}

/* Of what there is when there are no faults: what they damage is not lost by what meets them. */
static uint64_t digest_of(struct run *run)
{
	uint64_t digest;

	osd_damage_lift(&run->unit);
	digest = osd_fuzz_unit_digest(&run->unit);
	osd_damage_restore(&run->unit);
	return digest;
}

static void check_restart(struct run *run)
{
	uint64_t before = digest_of(run);

	osd_fuzz_unit_restart(&run->unit);
	fuzz_check(digest_of(run) == before);
}

static void check_merge(struct run *run)
{
	uint64_t before = digest_of(run);

	osd_fuzz_unit_merge(&run->unit);
	fuzz_check(digest_of(run) == before);
}

/* What a session is told that asks whether the unit is ready. */
static void run_test_unit_ready(struct run *run)
{
	uint8_t *sense = fuzz_exact(OSD_SENSE_BYTES_MAX, 0x5A);
	struct osd_sense told;
	size_t length;

	if (osd_unit_attention(run->unit.device, nexus_of(run), sense, &length)) {
		fuzz_check(length >= 8 && length <= OSD_SENSE_BYTES_MAX);
		fuzz_check(osd_sense_decode(sense, length, &told) == 0);
		fuzz_check(told.key == SENSE_UNIT_ATTENTION);
	}
	free(sense);
}

static void run_inquiry(struct run *run)
{
	const struct osd_input_command *input = &run->input;
	uint8_t *cdb, *data;
	int length;

	if (input->cdb[0] == TEST_UNIT_READY) {
		run_test_unit_ready(run);
		return;
	}
	cdb = fuzz_exact(6, 0);
	data = fuzz_exact(input->in_capacity, 0);
	memcpy(cdb, input->cdb, 6);
	length = osd_inquiry(run->unit.device, nexus_of(run), cdb, data, input->in_capacity);
	fuzz_check(length >= -22 && length <= 4096);
	free(cdb);
	free(data);
}

/*
 * Without a right signature, or by a capability that lacks what the command needs, nothing gets
 * into a partition that demands one, and nothing out of it.
 */
static void check_lock(struct run *run)
{
	uint16_t signing = run->input.flags & (OSD_INPUT_SIGN | OSD_INPUT_FORGE);
	uint16_t needed = osd_permissions_of(&run->input);

	if (!run->locked || has_failed(run))
		return;
	fuzz_check(signing == OSD_INPUT_SIGN || needed == 0);
	fuzz_check((needed & run->limits.lacking) == 0);
	fuzz_check(needed == 0 || osd_permissions_allow_range(&run->input, run->limits.range_start,
							      run->limits.range_length));
	fuzz_check(needed == 0 || run->limits.access == 0 ||
		   osd_access_allows(run->limits.access, &run->input));
	/* Keys, methods and the partition itself may be others from now on. */
	run->locked = !osd_permissions_change(&run->input);
}

/* Keys are set by who has the key above, whatever method the partition has: by nobody else. */
static void check_keys(struct run *run)
{
	uint16_t action = action_of(run);
	uint16_t signing = run->input.flags & (OSD_INPUT_SIGN | OSD_INPUT_FORGE);

	if (has_failed(run))
		return;
	if (action == OSD_FORMAT_OSD)
		run->unit.keys.has_former_master = false;
	if (action != OSD_SET_KEY && action != OSD_SET_MASTER_KEY)
		return;
	fuzz_check(signing == OSD_INPUT_SIGN);
	osd_keys_note(&run->unit.keys, &run->input, run->in, run->command.data_in_length);
}

/* Does a tracking collection note how the command ended, even if it failed? */
static bool is_tracked(const struct run *run)
{
	uint16_t action = action_of(run);

	return action >= OSD_QUERY && action <= OSD_SET_MEMBER_ATTRIBUTES;
}

/*
 * May a command that fails leave something behind: how it ended, in a tracking collection, or that
 * its nonce came? A long copy has committed what it then takes away. Others commit nothing at all,
 * which costs less to know than what the unit holds.
 */
static bool may_commit(const struct run *run)
{
	return is_tracked(run) || action_of(run) == OSD_COPY_USER_OBJECTS ||
	       run->input.flags & OSD_INPUT_SIGN || run->full;
}

/*
 * A retention that is locked stays so until then: no command takes anything of it away, nor what it
 * is the retention of.
 */
static void check_retention(struct run *run)
{
	struct osd_fuzz_locks before = run->locks;

	osd_damage_lift(&run->unit);
	run->locks = osd_fuzz_unit_locks(&run->unit);
	osd_damage_restore(&run->unit);
	for (int i = 0; i < 2; i++)
		fuzz_check(before.until_ms[i] <= run->unit.now_ms ||
			   run->locks.until_ms[i] >= before.until_ms[i]);
}

/* A rollback of the whole device may be to a moment at which there was no version yet. */
static void note_rollback(struct run *run)
{
	struct osd_cdb cdb;
	uint16_t bad_field;

	if (!has_failed(run) &&
	    osd_cdb_decode(run->cdb, run->input.cdb_length, &cdb, &bad_field) == 0 &&
	    cdb.action == OSD_EXECUTE && cdb.partition == 0 &&
	    cdb.address >> 48 == OSD_FUNCTION_ROLLBACK)
		run->rolled_back = true;
}

static void run_command(struct run *run)
{
	bool compare = !is_tracked(run) && may_compare(run, wants_comparison(run));
	uint64_t digest = compare ? digest_of(run) : 0;
	uint64_t commits = osd_fuzz_unit_commits(&run->unit);

	run->limits = (struct osd_sign_limits){ 0 };
	keep_small(run);
	if (run->scene == OSD_SCENE_PACKED)
		osd_input_pack(&run->input);
	run->unit.now_ms += run->input.milliseconds;
	if (run->input.flags & OSD_INPUT_SIGN)
		run->limits = osd_sign(&run->unit, &run->input, nexus_of(run), ++run->signatures);
	if (run->input.flags & OSD_INPUT_FORGE && !run->limits.former_key)
		osd_sign_forge(&run->input);
	make_buffers(run);
	if (run->input.flags & OSD_INPUT_DAMAGE)
		osd_damage_choose(&run->unit, run->input.fill);
	execute(run, 0x5A);
	check_lock(run);
	check_keys(run);
	check_retention(run);
	note_rollback(run);
	if (has_failed(run)) {
		fuzz_check(may_commit(run) || osd_fuzz_unit_commits(&run->unit) == commits);
		fuzz_check(!compare || digest_of(run) == digest);
	} else if (run->unit.damage != 0) {
		check_undamaged(run);
	} else if (run->input.flags & OSD_INPUT_AGAIN) {
		check_every_byte_is_set(run);
	}
	if (run->input.flags & OSD_INPUT_STEP)
		osd_fuzz_unit_step(&run->unit);
	if (run->comparisons == 0 && may_compare(run, run->input.flags & OSD_INPUT_MERGE))
		check_merge(run);
	if (may_compare(run, run->input.flags & OSD_INPUT_RESTART))
		check_restart(run);
	free_buffers(run);
}

/* As long as a version is there, it is as it was made; locked, it is there. */
static void check_version(struct run *run)
{
	uint64_t digest;

	osd_damage_lift(&run->unit);
	digest = osd_fuzz_unit_version_digest(&run->unit);
	fuzz_check(digest == run->unit.version_digest ||
		   (digest == 0 && (run->scene != OSD_SCENE_LOCKED || run->rolled_back)));
	fuzz_check(run->scene != OSD_SCENE_LOCKED || osd_fuzz_unit_is_locked(&run->unit));
}

static void run_osd(const uint8_t *data, size_t size)
{
	struct fuzz_reader reader = { data, size };
	struct run *run = calloc(1, sizeof(*run));
	enum osd_scene scene;

	fuzz_check(run != NULL);
	scene = run->scene = osd_input_scene(&reader);
	run->full = scene == OSD_SCENE_SMALL || scene == OSD_SCENE_LOCKED;
	run->locked = scene == OSD_SCENE_SECURED;
	osd_fuzz_unit_open(&run->unit, scene);
	run->locks = osd_fuzz_unit_locks(&run->unit);
	for (int i = 0; i < OSD_INPUT_COMMANDS_MAX && osd_input_next(&reader, &run->input); i++) {
		if (run->input.flags & OSD_INPUT_INQUIRY)
			run_inquiry(run);
		else
			run_command(run);
	}
	osd_damage_check(&run->unit);
	if (osd_scene_has_version(scene))
		check_version(run);
	osd_fuzz_unit_close(&run->unit);
	free(run);
}

const struct fuzz_target fuzz_osd = {
	.name = "osd",
	.run = run_osd,
	.mutate = osd_input_mutate,
	.cross = osd_input_cross,
	.commands = count_commands,
};
