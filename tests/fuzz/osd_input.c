/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
#include "tests/fuzz/osd_input.h"

#include <string.h>

#include "common/bytes.h"

enum osd_scene osd_input_scene(struct fuzz_reader *reader)
{
	return (enum osd_scene)(fuzz_take8(reader) % OSD_SCENES);
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
	command->out_length = fuzz_take16(reader) & OSD_INPUT_OUT_MAX;
	command->out_kept = fuzz_take16(reader);
	command->in_capacity = fuzz_take16(reader) & OSD_INPUT_IN_MAX;
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
	head[0] = command->flags;
	head[1] = (uint8_t)min_u64(command->cdb_length, 255);
	head[2] = (uint8_t)cdb_kept;
	head[3] = command->fill;
	put_be16(head + 4, command->out_length);
	put_be16(head + 6, (uint16_t)out_kept);
	put_be16(head + 8, command->in_capacity);
	put_be16(head + 10, command->milliseconds);
	memcpy(head + OSD_INPUT_HEAD_BYTES, command->cdb, cdb_kept);
	memcpy(head + OSD_INPUT_HEAD_BYTES + cdb_kept, command->out, out_kept);
	return size + OSD_INPUT_HEAD_BYTES + cdb_kept + out_kept;
}
