/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* All entries of a group, by the tags behind its image. */
#include <errno.h>
#include <stdlib.h>

#include "engine/muninn/index/ribbon/group.h"
#include "engine/muninn/index/ribbon/group_format.h"

/* ---- tags ---- */

struct tags {
	const uint8_t *at, *end;
	uint32_t tag;
	bool failed;
};

/* Goes on to the next one. False: there is none, or bytes that are no tag. */
static bool next_tag(struct tags *tags)
{
	uint64_t value = 0, tag;
	uint32_t bytes = 0;
	uint8_t byte;

	do {
		if (tags->at == tags->end || bytes == TAG_BYTES_MAX)
			return false;
		byte = *tags->at++;
		value |= (uint64_t)(byte & 0x7f) << 7 * bytes++;
	} while (byte & 0x80);
	tag = tags->tag + (value >> 1);
	tags->tag = (uint32_t)tag;
	tags->failed = value & 1;
	return tag <= UINT32_MAX;
}

/* ---- failed entries ---- */

/* By tag, then from the newest to the oldest. */
static int by_tag_and_age(const void *a, const void *b)
{
	const struct tag_entry *first = a, *second = b;

	if (first->tag != second->tag)
		return first->tag < second->tag ? -1 : 1;
	if (first->segment != second->segment)
		return first->segment > second->segment ? -1 : 1;
	return first->location > second->location ? -1 : first->location < second->location;
}

/*
 * Those that the ribbon could have taken, in the order of their tags, and behind them those that
 * are none of its. Returns how many are the first.
 */
static uint32_t list_failed(const struct group *group, struct tag_entry *failed)
{
	uint32_t own = 0, apart = group->failed;

	for (uint32_t n = 0; n < group->failed; n++) {
		struct tag_entry entry = group_failed_entry(group, n);

		failed[entry.location < group->locations ? own++ : --apart] = entry;
	}
	qsort(failed, own, sizeof(*failed), by_tag_and_age);
	return own;
}

/* ---- all entries ---- */

/* Those that have tags. False: these are not the tags of this ribbon. */
static bool list_tagged(const struct group *group, const struct tag_entry *failed,
			uint32_t failed_count, struct tag_entry *entries, uint32_t count)
{
	const uint8_t *at = group->image + group_bytes_before_tags(group);
	struct tags tags = { .at = at + TAGS_CRC_BYTES, .end = at + group->tag_bytes };
	uint32_t number = 0, failed_at = 0;

	for (uint32_t n = 0; n < count; n++) {
		if (!next_tag(&tags))
			return false;
		number = n && tags.tag == entries[n - 1].tag ? number + 1 : 0;
		if (!tags.failed) {
			if (!group_find(group, tags.tag, number, &entries[n]))
				return false;
			continue;
		}
		if (failed_at == failed_count || failed[failed_at].tag != tags.tag)
			return false;
		entries[n] = failed[failed_at++];
	}
	return tags.at == tags.end && failed_at == failed_count;
}

int group_list(const struct group *group, uint64_t length, struct tag_entry *entries)
{
	struct tag_entry *failed = malloc((group->failed + UINT64_C(1)) * sizeof(*failed));
	uint32_t own, apart;
	bool listed;

	if (!failed)
		return -ENOMEM;
	own = list_failed(group, failed);
	apart = group->failed - own;
	listed = group_has_intact_tags(group, length) &&
		 list_tagged(group, failed, own, entries, group->entries - apart);
	if (listed && apart)
		memcpy(entries + (group->entries - apart), failed + own, apart * sizeof(*failed));
	free(failed);
	return listed ? 0 : -EINVAL;
}
