/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Takes an input of the osd target apart into commands, and packs one. */
#include "tests/fuzz/osd_input.h"

#include <string.h>

#include "common/bytes.h"

enum osd_scene osd_input_scene(struct fuzz_reader *reader)
{
	return (enum osd_scene)(fuzz_take8(reader) % OSD_SCENES);
}

/* A length of 14 bits; above it are two flags, of which `first` is the lower one. */
static uint16_t take_length(struct fuzz_reader *reader, enum osd_input_flag first, uint16_t *flags)
{
	uint16_t number = fuzz_take16(reader);

	*flags |= (uint16_t)((number >> 14) * first);
	return number & OSD_INPUT_LENGTH_MAX;
}

static void put_length(uint8_t *to, uint16_t length, enum osd_input_flag first, uint16_t flags)
{
	put_be16(to, (uint16_t)(length | (flags / first & 3) << 14));
}

bool osd_input_next(struct fuzz_reader *reader, struct osd_input_command *command)
{
	const uint8_t *bytes;
	size_t taken, kept;

	if (reader->left == 0)
		return false;
	command->flags = fuzz_take8(reader);
	command->cdb_length = fuzz_take8(reader);
	if (command->cdb_length == 255)
		command->cdb_length = OSD_INPUT_CDB_MAX;
	kept = fuzz_take8(reader);
	command->fill = fuzz_take8(reader);
	command->out_length = take_length(reader, OSD_INPUT_STEP, &command->flags);
	command->out_kept = fuzz_take16(reader);
	command->in_capacity = take_length(reader, OSD_INPUT_COMPLETE, &command->flags);
	command->milliseconds = fuzz_take16(reader);
	memset(command->cdb, 0, sizeof(command->cdb));
	bytes = fuzz_take(reader, kept, &taken);
	if (taken > 0)
		memcpy(command->cdb, bytes, taken);
	kept = min_u64(min_u64(command->out_kept, command->out_length), OSD_INPUT_OUT_KEPT_MAX);
	bytes = fuzz_take(reader, kept, &taken);
	if (taken > 0)
		memcpy(command->out, bytes, taken);
	command->out_kept = (uint16_t)taken;
	return true;
}

void osd_input_pack(struct osd_input_command *command)
{
	uint64_t object = get_be64(command->cdb + 24);
	int version = (int)(object >> 20 & 15);

	if ((object & ~UINT64_C(0x0FF0000F)) != OSD_SCENE_OBJECT)
		return;
	if (version > 7)
		version -= 16;
	put_be64(command->cdb + 24, ((object & 15) + 1) << 32 | (uint64_t)(uint16_t)version << 16 |
					    (object >> 24 & 15));
}

size_t osd_input_append(const struct osd_input_command *command, uint8_t *to, size_t size,
			size_t capacity)
{
	uint8_t *head = to + size;
	size_t cdb_kept = min_u64(command->cdb_length, 255), out_kept = command->out_kept;

	while (cdb_kept > 0 && command->cdb[cdb_kept - 1] == 0)
		cdb_kept--;
	while (out_kept > 0 && command->out[out_kept - 1] == command->fill)
		out_kept--;
	if (size > capacity || capacity - size < OSD_INPUT_HEAD_BYTES + cdb_kept + out_kept)
		return size;
	head[0] = (uint8_t)command->flags;
	head[1] = (uint8_t)min_u64(command->cdb_length, 255);
	head[2] = (uint8_t)cdb_kept;
	head[3] = command->fill;
	put_length(head + 4, command->out_length, OSD_INPUT_STEP, command->flags);
	put_be16(head + 6, (uint16_t)out_kept);
	put_length(head + 8, command->in_capacity, OSD_INPUT_COMPLETE, command->flags);
	put_be16(head + 10, command->milliseconds);
	memcpy(head + OSD_INPUT_HEAD_BYTES, command->cdb, cdb_kept);
	memcpy(head + OSD_INPUT_HEAD_BYTES + cdb_kept, command->out, out_kept);
	return size + OSD_INPUT_HEAD_BYTES + cdb_kept + out_kept;
}
