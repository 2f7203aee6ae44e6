/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Mutations that know where the fields of a command are, so that sequences stay sequences. */
#include <string.h>

#include "common/bytes.h"
#include "tests/fuzz/osd_input.h"
#include "wire/wire.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An input taken apart. Static: too large for a stack, and mutators run one at a time. */
struct sequence {
	uint8_t scene;
	unsigned count;
	struct osd_input_command commands[OSD_INPUT_COMMANDS_MAX];
};

static void parse(struct sequence *sequence, const uint8_t *data, size_t size)
{
	struct fuzz_reader reader = { data, size };

	sequence->scene = fuzz_take8(&reader);
	sequence->count = 0;
	while (sequence->count < OSD_INPUT_COMMANDS_MAX &&
	       osd_input_next(&reader, &sequence->commands[sequence->count]))
		sequence->count++;
}

static size_t write_out(const struct sequence *sequence, uint8_t *data, size_t capacity)
{
	size_t size = 1;

	if (capacity == 0)
		return 0;
	data[0] = sequence->scene;
	for (unsigned i = 0; i < sequence->count; i++)
		size = osd_input_append(&sequence->commands[i], data, size, capacity);
	return size;
}

/* ---- the sequence ---- */

static void insert(struct sequence *sequence, unsigned at, const struct osd_input_command *command)
{
	struct osd_input_command *commands = sequence->commands;
	unsigned behind;

	if (sequence->count == OSD_INPUT_COMMANDS_MAX)
		sequence->count--;
	if (at > sequence->count)
		at = sequence->count;
	behind = sequence->count - at;
	memmove(commands + at + 1, commands + at, behind * sizeof(*commands));
	commands[at] = *command;
	sequence->count++;
}

static void take_out(struct sequence *sequence, unsigned at)
{
	struct osd_input_command *commands = sequence->commands;

	memmove(commands + at, commands + at + 1, (sequence->count - at - 1) * sizeof(*commands));
	sequence->count--;
}

static void mutate_sequence(struct fuzz_random *random, struct sequence *sequence)
{
	static struct osd_input_command command;
	unsigned at = fuzz_below(random, sequence->count + 1);

	switch (fuzz_below(random, 8)) {
	case 0:
		sequence->scene = (uint8_t)fuzz_below(random, OSD_SCENES);
		break;
	case 1:
		if (sequence->count > 1)
			take_out(sequence, fuzz_below(random, sequence->count));
		break;
	case 2:
		if (sequence->count == 0)
			break;
		command = sequence->commands[fuzz_below(random, sequence->count)];
		insert(sequence, at, &command);
		break;
	case 3:
		/* Two of them change places. */
		if (sequence->count < 2)
			break;
		at = fuzz_below(random, sequence->count - 1);
		command = sequence->commands[at];
		sequence->commands[at] = sequence->commands[at + 1];
		sequence->commands[at + 1] = command;
		break;
	default:
		osd_input_generate(random, &command);
		insert(sequence, at, &command);
		/*
		 * The first step of an exchange of keys is rarely worth anything without the
		 * second.
		 */
		if (get_be16(command.cdb + 8) == OSD_SET_MASTER_KEY && !(command.cdb[11] & 3)) {
			command.cdb[11] |= 1;
			insert(sequence, at + 1, &command);
		}
		break;
	}
}

/* ---- numbers of a command ---- */

struct field {
	uint16_t at;
	uint8_t bytes;
};

static void put_number(uint8_t *to, unsigned bytes, uint64_t number)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(number >> 8 * (bytes - 1 - i));
}

static uint64_t get_number(const uint8_t *from, unsigned bytes)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < bytes; i++)
		number = number << 8 | from[i];
	return number;
}

/* Another value for a number: one that matters, one nearby, one of its bits. */
static void mutate_number(struct fuzz_random *random, const struct osd_input_command *command,
			  uint8_t *at, unsigned bytes)
{
	uint64_t number = get_number(at, bytes);
	uint32_t encoded = 0;

	switch (fuzz_below(random, 8)) {
	case 0:
		number ^= UINT64_C(1) << fuzz_below(random, 8 * bytes);
		break;
	case 1:
		number += fuzz_below(random, 17);
		break;
	case 2:
		number -= fuzz_below(random, 17);
		break;
	case 3:
		number = command->out_length - fuzz_below(random, 9);
		break;
	case 4:
		number = command->in_capacity - fuzz_below(random, 9);
		break;
	case 5:
		osd_offset_encode(OSD_2, osd_input_number(random), &encoded);
		number = encoded;
		break;
	case 6:
		number = 0;
		break;
	default:
		number = osd_input_number(random);
		break;
	}
	put_number(at, bytes, number);
}

static void mutate_cdb(struct fuzz_random *random, struct osd_input_command *command)
{
	static const struct field fields[] = {
		{ 7, 1 },   { 8, 2 },   { 10, 1 },  { 11, 1 },  { 11, 1 },  { 12, 1 },  { 14, 1 },
		{ 16, 8 },  { 16, 8 },  { 24, 8 },  { 24, 8 },  { 24, 8 },  { 32, 8 },  { 32, 8 },
		{ 36, 8 },  { 40, 8 },  { 40, 8 },  { 44, 8 },  { 32, 2 },  { 36, 2 },  { 48, 4 },
		{ 52, 4 },  { 52, 4 },  { 56, 4 },  { 56, 4 },  { 60, 4 },  { 60, 2 },  { 64, 4 },
		{ 68, 4 },  { 72, 4 },  { 72, 4 },  { 76, 4 },  { 80, 1 },  { 81, 1 },  { 82, 1 },
		{ 83, 1 },  { 84, 6 },  { 92, 4 },  { 128, 1 }, { 129, 2 }, { 135, 1 }, { 136, 8 },
		{ 144, 8 }, { 152, 8 }, { 160, 8 }, { 168, 8 }, { 184, 8 }, { 192, 4 }, { 224, 4 },
	};
	struct field field = fields[fuzz_below(random, COUNT(fields))];
	static struct osd_input_command other;

	if (field.at == 8 && fuzz_below(random, 4)) {
		/* Another command with the same parameters. */
		osd_input_generate(random, &other);
		memcpy(command->cdb + 8, other.cdb + 8, 2);
		return;
	}
	mutate_number(random, command, command->cdb + field.at, field.bytes);
}

static void mutate_out(struct fuzz_random *random, struct osd_input_command *command,
		       fuzz_mutate_bytes *bytes)
{
	unsigned width = 1U << fuzz_below(random, 4), at;

	if (command->out_kept < 8 || fuzz_below(random, 16) == 0) {
		command->out_kept =
			(uint16_t)bytes(command->out, command->out_kept, OSD_INPUT_OUT_KEPT_MAX);
		command->out_length = (uint16_t)max_u64(command->out_length, command->out_kept);
		return;
	}
	/* Mostly where a field of the layouts can be. */
	at = fuzz_below(random, command->out_kept - 7);
	mutate_number(random, command, command->out + (fuzz_below(random, 8) ? at & ~1U : at),
		      width);
}

static void mutate_command(struct fuzz_random *random, struct osd_input_command *command,
			   fuzz_mutate_bytes *bytes)
{
	switch (fuzz_below(random, 16)) {
	case 0:
		command->flags ^= (uint16_t)(1U << fuzz_below(random, OSD_INPUT_FLAGS));
		break;
	case 1:
		command->out_length = (uint16_t)(osd_input_number(random) & OSD_INPUT_OUT_MAX);
		command->out_kept = (uint16_t)min_u64(command->out_kept, command->out_length);
		break;
	case 2:
		command->in_capacity = (uint16_t)(osd_input_number(random) & OSD_INPUT_IN_MAX);
		break;
	case 3:
		command->cdb_length = fuzz_below(random, 2)
					      ? OSD2_CDB_BYTES
					      : (uint16_t)fuzz_below(random, OSD_INPUT_CDB_MAX);
		break;
	case 4:
		command->milliseconds = (uint16_t)osd_input_number(random);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
		mutate_out(random, command, bytes);
		break;
	case 10:
		osd_input_generate(random, command);
		break;
	default:
		mutate_cdb(random, command);
		break;
	}
	if (fuzz_below(random, 3) == 0)
		osd_input_refit(command);
}

/* ---- for libFuzzer ---- */

size_t osd_input_mutate(uint8_t *data, size_t size, size_t capacity, unsigned seed,
			fuzz_mutate_bytes *bytes)
{
	static struct sequence sequence;
	struct fuzz_random random;

	fuzz_random_begin(&random, seed);
	if (fuzz_below(&random, 64) == 0)
		return bytes(data, size, capacity);
	parse(&sequence, data, size);
	for (uint32_t times = 1 + fuzz_below(&random, 3); times > 0; times--) {
		if (sequence.count == 0 || fuzz_below(&random, 4) == 0)
			mutate_sequence(&random, &sequence);
		else
			mutate_command(&random,
				       &sequence.commands[fuzz_below(&random, sequence.count)],
				       bytes);
	}
	return write_out(&sequence, data, capacity);
}

size_t osd_input_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
		       uint8_t *to, size_t capacity, unsigned seed)
{
	static struct sequence first, second;
	struct fuzz_random random;
	unsigned from, count;

	fuzz_random_begin(&random, seed);
	parse(&first, a, a_size);
	parse(&second, b, b_size);
	if (second.count == 0)
		return write_out(&first, to, capacity);
	/* Some of the second's commands somewhere into the first. */
	from = fuzz_below(&random, second.count);
	count = 1 + fuzz_below(&random, second.count - from);
	for (unsigned i = 0, at = fuzz_below(&random, first.count + 1); i < count; i++)
		insert(&first, at + i, &second.commands[from + i]);
	return write_out(&first, to, capacity);
}
