/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Maps of objects, reports of checks, and the descriptors that name objects to copy or compare. */
#include <errno.h>

#include "common/bytes.h"
#include "wire/wire.h"

/* ---- descriptors ---- */

enum { COPY_ATTRIBUTES = 0x80, COPY_FREEZE = 0x40 };

void osd_copy_source_encode(const struct osd_copy_source *source,
			    uint8_t content[OSD_COPY_SOURCE_BYTES])
{
	put_be64(content, source->partition);
	put_be64(content + 8, source->object);
	content[16] = (uint8_t)((source->attributes ? COPY_ATTRIBUTES : 0) |
				(source->freeze ? COPY_FREEZE : 0));
	content[17] = source->time & 0x0F;
}

int osd_copy_source_decode(const struct osd_descriptor *descriptor, struct osd_copy_source *source)
{
	const uint8_t *content = descriptor->content;

	if (descriptor->length != OSD_COPY_SOURCE_BYTES)
		return -EINVAL;
	*source = (struct osd_copy_source){
		.partition = get_be64(content),
		.object = get_be64(content + 8),
		.attributes = content[16] & COPY_ATTRIBUTES,
		.freeze = content[16] & COPY_FREEZE,
		.time = content[17] & 0x0F,
	};
	return 0;
}

int osd_user_object_decode(const struct osd_descriptor *descriptor, uint64_t *partition,
			   uint64_t *object)
{
	if (descriptor->length != OSD_USER_OBJECT_BYTES)
		return -EINVAL;
	*partition = get_be64(descriptor->content);
	*object = get_be64(descriptor->content + 8);
	return 0;
}

/* ---- maps ---- */

void osd_map_entry_encode(const struct osd_map_entry *entry, uint8_t data[OSD_MAP_ENTRY_BYTES])
{
	put_be16(data, 0);
	put_be16(data + 2, entry->type);
	put_be32(data + 4, entry->length);
	put_be64(data + 8, entry->address);
}

/*
 * Bytes of an answer that hold entries: what is there, and not more than ADDITIONAL LENGTH says.
 */
static size_t answer_end(const uint8_t *data, size_t length)
{
	uint64_t additional = length >= 8 ? get_be64(data) : 0;

	return additional > UINT64_MAX - 8 ? length : min_u64(length, additional + 8);
}

int osd_map_next(const uint8_t *data, size_t length, size_t *position, struct osd_map_entry *entry)
{
	const uint8_t *at = data + *position;

	length = answer_end(data, length);
	if (*position > length || length - *position < OSD_MAP_ENTRY_BYTES)
		return 0;
	entry->type = get_be16(at + 2);
	entry->length = get_be32(at + 4);
	entry->address = get_be64(at + 8);
	*position += OSD_MAP_ENTRY_BYTES;
	return 1;
}

/* ---- checks ---- */

void osd_check_head_encode(const struct osd_check_head *head, uint8_t data[OSD_CHECK_HEAD_BYTES])
{
	put_be64(data, head->additional_length);
	put_be64(data + 8, head->continuation);
	put_be64(data + 16, head->objects);
	put_be64(data + 24, head->pages);
}

int osd_check_head_decode(const uint8_t *data, size_t length, struct osd_check_head *head)
{
	if (length < OSD_CHECK_HEAD_BYTES)
		return -EMSGSIZE;
	head->additional_length = get_be64(data);
	head->continuation = get_be64(data + 8);
	head->objects = get_be64(data + 16);
	head->pages = get_be64(data + 24);
	return 0;
}

void osd_check_entry_encode(const struct osd_check_entry *entry,
			    uint8_t data[OSD_CHECK_ENTRY_BYTES])
{
	memset(data, 0, OSD_CHECK_ENTRY_BYTES);
	put_be64(data, entry->partition);
	put_be64(data + 8, entry->object);
	put_be16(data + 16, entry->type);
}

int osd_check_next(const uint8_t *data, size_t length, size_t *position,
		   struct osd_check_entry *entry)
{
	const uint8_t *at = data + *position;

	length = answer_end(data, length);
	if (*position > length || length - *position < OSD_CHECK_ENTRY_BYTES)
		return 0;
	entry->partition = get_be64(at);
	entry->object = get_be64(at + 8);
	entry->type = get_be16(at + 16);
	*position += OSD_CHECK_ENTRY_BYTES;
	return 1;
}
