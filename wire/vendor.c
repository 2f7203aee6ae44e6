/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The items of EXECUTE: tag 2, zero 2, length 4, value, zeros up to a multiple of 8. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/bytes.h"
#include "wire/vendor.h"

#define NOT_OPEN SIZE_MAX

static size_t padded(size_t length)
{
	return (length + 7) & ~(size_t)7;
}

/* ---- writing ---- */

void osd_items_begin(struct osd_item_writer *writer, uint8_t *data, size_t capacity)
{
	*writer = (struct osd_item_writer){ .data = data, .capacity = capacity, .open = NOT_OPEN };
}

static void put_head(uint8_t *to, uint16_t tag, uint32_t length)
{
	put_be16(to, tag);
	put_be16(to + 2, 0);
	put_be32(to + 4, length);
}

bool osd_item_add(struct osd_item_writer *writer, uint16_t tag, const void *value, uint32_t length)
{
	size_t bytes = OSD_ITEM_HEAD_BYTES + padded(length);
	uint8_t *to = writer->data + writer->length;

	if (writer->full || bytes > writer->capacity - writer->length) {
		writer->full = true;
		writer->missing += bytes;
		return false;
	}
	put_head(to, tag, length);
	memset(to + OSD_ITEM_HEAD_BYTES, 0, padded(length));
	if (length)
		memcpy(to + OSD_ITEM_HEAD_BYTES, value, length);
	writer->length += bytes;
	return true;
}

bool osd_item_add_number(struct osd_item_writer *writer, uint16_t tag, uint64_t value)
{
	uint8_t bytes[8];

	put_be64(bytes, value);
	return osd_item_add(writer, tag, bytes, sizeof(bytes));
}

bool osd_item_add_text(struct osd_item_writer *writer, uint16_t tag, const char *text)
{
	return osd_item_add(writer, tag, text, (uint32_t)strlen(text));
}

bool osd_item_open(struct osd_item_writer *writer, uint16_t tag)
{
	size_t begin = writer->length;

	if (!osd_item_add(writer, tag, NULL, 0))
		return false;
	writer->open = begin;
	return true;
}

bool osd_item_end(struct osd_item_writer *writer)
{
	size_t begin = writer->open;

	if (begin == NOT_OPEN)
		return false;
	writer->open = NOT_OPEN;
	if (writer->full) {
		writer->missing += writer->length - begin;
		writer->length = begin;
		return false;
	}
	put_be32(writer->data + begin + 4,
		 (uint32_t)(writer->length - begin - OSD_ITEM_HEAD_BYTES));
	return true;
}

/* ---- reading ---- */

void osd_items_read(struct osd_item_reader *reader, const uint8_t *data, size_t length)
{
	*reader = (struct osd_item_reader){ .data = data, .length = length };
}

int osd_item_next(struct osd_item_reader *reader, struct osd_item *item)
{
	const uint8_t *at = reader->data + reader->position;
	size_t left = reader->length - reader->position;

	if (left == 0)
		return 0;
	if (left < OSD_ITEM_HEAD_BYTES || get_be16(at + 2) != 0)
		return -EINVAL;
	item->tag = get_be16(at);
	item->length = get_be32(at + 4);
	item->value = at + OSD_ITEM_HEAD_BYTES;
	left -= OSD_ITEM_HEAD_BYTES;
	if (item->length > left || padded(item->length) > left)
		return -EINVAL;
	reader->position += OSD_ITEM_HEAD_BYTES + padded(item->length);
	return 1;
}

int osd_item_number(const struct osd_item *item, uint64_t *value)
{
	switch (item->length) {
	case 1:
		*value = item->value[0];
		return 0;
	case 2:
		*value = get_be16(item->value);
		return 0;
	case 4:
		*value = get_be32(item->value);
		return 0;
	case 8:
		*value = get_be64(item->value);
		return 0;
	default:
		return -EINVAL;
	}
}

int osd_item_find(const uint8_t *data, size_t length, uint16_t tag, struct osd_item *item)
{
	struct osd_item_reader reader;
	int result;

	osd_items_read(&reader, data, length);
	while ((result = osd_item_next(&reader, item)) == 1)
		if (item->tag == tag)
			return 0;
	return result == 0 ? -ENOENT : result;
}

int osd_item_find_number(const uint8_t *data, size_t length, uint16_t tag, uint64_t *value)
{
	struct osd_item item;
	int result = osd_item_find(data, length, tag, &item);

	return result == 0 ? osd_item_number(&item, value) : result;
}

/* ---- names ---- */

const char *osd_function_name(uint16_t function)
{
	static const struct {
		uint16_t function;
		const char *name;
	} names[] = {
		{ OSD_FUNCTION_FEATURES, "FEATURES" },
		{ OSD_FUNCTION_SUBSCRIBE, "SUBSCRIBE" },
		{ OSD_FUNCTION_STATISTICS, "STATISTICS" },
		{ OSD_FUNCTION_SNAPSHOT, "SNAPSHOT" },
		{ OSD_FUNCTION_VERSIONS, "VERSIONS" },
		{ OSD_FUNCTION_DROP, "DROP" },
		{ OSD_FUNCTION_VIEW, "VIEW" },
		{ OSD_FUNCTION_ROLLBACK, "ROLLBACK" },
		{ OSD_FUNCTION_UNDO, "UNDO" },
		{ OSD_FUNCTION_LOG, "LOG" },
		{ OSD_FUNCTION_DIFF, "DIFF" },
		{ OSD_FUNCTION_RETENTION, "RETENTION" },
		{ OSD_FUNCTION_SET_RETENTION, "SET RETENTION" },
		{ OSD_FUNCTION_MERGE, "MERGE" },
		{ OSD_FUNCTION_SPACE, "SPACE" },
		{ OSD_FUNCTION_SEARCH, "SEARCH" },
		{ OSD_FUNCTION_CHECKSUM, "CHECKSUM" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].function == function)
			return names[i].name;
	return "unknown function";
}

/* ---- names of versions ---- */

/* The bytes of the UTF-8 character at `text`; 0: there is none. */
static size_t character_bytes(const uint8_t *text, size_t length)
{
	/* The least character that needs so many bytes. */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t bytes = text[0] < 0x80             ? 1
		       : (text[0] & 0xe0) == 0xc0 ? 2
		       : (text[0] & 0xf0) == 0xe0 ? 3
		       : (text[0] & 0xf8) == 0xf0 ? 4
						  : 0;
	uint32_t character;

	if (bytes < 2)
		return bytes;
	if (bytes > length)
		return 0;
	character = text[0] & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	if (character < least[bytes] || character > 0x10ffff ||
	    (character >= 0xd800 && character <= 0xdfff))
		return 0;
	/* U+0080 to U+009F are control characters, too. */
	return character < 0xa0 ? 0 : bytes;
}

const char *const osd_schedule_words[OSD_SCHEDULE_KINDS] = { "minutely", "hourly", "daily",
							     "weekly", "monthly" };

#define MINUTE_MS UINT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

uint64_t osd_schedule_period(enum osd_schedule_kind kind, uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	uint64_t days = ms / DAY_MS;
	struct tm parts;

	switch (kind) {
	case OSD_MINUTELY:
		return ms - ms % MINUTE_MS;
	case OSD_HOURLY:
		return ms - ms % HOUR_MS;
	case OSD_DAILY:
		return days * DAY_MS;
	case OSD_WEEKLY:
		/* 1970 began on a Thursday. */
		return (days - (days + 3) % 7) * DAY_MS;
	default:
		return gmtime_r(&seconds, &parts) ? (days - (uint64_t)(parts.tm_mday - 1)) * DAY_MS
						  : ms;
	}
}

/* A time to the minute: each digit is a 0 here. */
static bool is_time(const uint8_t *text, size_t length)
{
	static const uint8_t form[] = "0000-00-00T00:00Z";

	if (length != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < length; i++)
		if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	return true;
}

bool osd_version_name_is_scheduled(const uint8_t *name, size_t length)
{
	for (size_t kind = 0; kind < OSD_SCHEDULE_KINDS; kind++) {
		size_t word = strlen(osd_schedule_words[kind]);

		if (length > word && memcmp(name, osd_schedule_words[kind], word) == 0 &&
		    name[word] == '-' && is_time(name + word + 1, length - word - 1))
			return true;
	}
	return false;
}

bool osd_version_name_is_valid(const uint8_t *name, size_t length)
{
	size_t bytes;

	if (length == 0 || length > OSD_VERSION_NAME_MAX ||
	    (length == 3 && memcmp(name, "now", 3) == 0) ||
	    osd_version_name_is_scheduled(name, length))
		return false;
	if (!(name[0] >= 'a' && name[0] <= 'z') && !(name[0] >= 'A' && name[0] <= 'Z'))
		return false;
	for (size_t at = 0; at < length; at += bytes) {
		bytes = character_bytes(name + at, length - at);
		if (bytes == 0 || name[at] < 0x20 || name[at] == 0x7f)
			return false;
	}
	return true;
}
