/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * READ MAP: which ranges of an object hold data. READ MAPS AND COMPARE: in which ranges two objects
 * differ.
 */
#include <errno.h>

#include "common/bytes.h"
#include "osd/execute.h"

/* Longest range of an entry, whose length has 32 bits. A longer range becomes several entries. */
#define RANGE_BYTES_MAX UINT64_C(0x80000000)

struct map {
	struct osd_request *request;
	struct osd_subject other; /* to compare with */
	uint64_t end;             /* of the longer object */
	uint32_t budget;          /* pages that may still be read */
	uint64_t entries;         /* of the full map */
	size_t written;           /* bytes in Data-In */
};

int osd_check_map(struct osd_request *request)
{
	switch (request->cdb.map_type) {
	case OSD_MAP_ALL:
	case OSD_MAP_DATA:
	case OSD_MAP_HOLE:
	case OSD_MAP_DAMAGED_DATA:
	case OSD_MAP_DAMAGED_ATTRIBUTES:
		return 0;
	default:
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	}
}

/* Adds the entries of a range, and only counts those without space. */
static void add_range(struct map *map, uint16_t type, uint64_t address, uint64_t length)
{
	uint8_t *data = map->request->command->data_in;
	size_t space = map->request->in_data_length;

	while (length > 0) {
		struct osd_map_entry entry = {
			.type = type,
			.length = (uint32_t)min_u64(length, RANGE_BYTES_MAX),
			.address = address,
		};
		uint8_t bytes[OSD_MAP_ENTRY_BYTES];
		size_t part = space > map->written ? min_u64(space - map->written, sizeof(bytes))
						   : 0;

		osd_map_entry_encode(&entry, bytes);
		memcpy(data + map->written, bytes, part);
		map->written += part;
		map->entries++;
		address += entry.length;
		length -= entry.length;
	}
}

static uint16_t type_of(enum engine_extent_kind kind)
{
	switch (kind) {
	case ENGINE_EXTENT_DATA:
		return OSD_MAP_DATA;
	case ENGINE_EXTENT_DAMAGED:
		return OSD_MAP_DAMAGED_DATA;
	case ENGINE_EXTENT_HOLE:
	case ENGINE_EXTENT_SAME:
		break;
	}
	return OSD_MAP_HOLE;
}

/* The next range of the object, or of the comparison. */
static int next_range(struct map *map, uint64_t offset, struct engine_extent *extent)
{
	struct osd_request *request = map->request;
	uint16_t wanted = request->cdb.map_type;

	if (request->cdb.action == OSD_READ_MAPS_AND_COMPARE)
		return engine_object_compare(request->subject.object, map->other.object, offset,
					     &map->budget, extent);
	/* Only reading shows damage. */
	return engine_object_map(request->subject.object, offset,
				 wanted == OSD_MAP_ALL || wanted == OSD_MAP_DAMAGED_DATA,
				 &map->budget, extent);
}

static bool is_wanted(const struct map *map, enum engine_extent_kind kind)
{
	uint16_t wanted = map->request->cdb.map_type;

	if (map->request->cdb.action == OSD_READ_MAPS_AND_COMPARE)
		return kind != ENGINE_EXTENT_SAME;
	return wanted == OSD_MAP_ALL || wanted == type_of(kind);
}

/*
 * Notes damage for the error recovery page. Of two compared objects either may be the damaged one.
 */
static void note_damage(struct osd_request *request)
{
	if (request->cdb.action == OSD_READ_MAP)
		osd_damage_note(&request->device->damage, request->cdb.partition,
				request->cdb.object, OSD_DAMAGE_CONTENT, request->time_ms, false);
}

/* All ranges from STARTING BYTE ADDRESS on. */
static int map_ranges(struct map *map)
{
	uint64_t offset = map->request->cdb.address;
	struct engine_extent extent;
	int result;

	while ((result = next_range(map, offset, &extent)) == 0) {
		if (extent.kind == ENGINE_EXTENT_DAMAGED)
			note_damage(map->request);
		if (is_wanted(map, extent.kind))
			add_range(map, type_of(extent.kind), extent.offset, extent.length);
		offset = extent.offset + extent.length;
	}
	if (result == -EAGAIN) {
		add_range(map, OSD_MAP_ALL, offset, map->end - offset);
		return 0;
	}
	return result == -ENOENT ? 0 : osd_result(map->request, result, OSD_FIELD_OBJECT);
}

static int answer_map(struct map *map)
{
	struct osd_request *request = map->request;
	size_t head = min_u64(request->in_data_length, OSD_MAP_HEAD_BYTES);
	uint8_t bytes[OSD_MAP_HEAD_BYTES];

	if (request->cdb.address > map->end)
		return osd_fail_field(request, osd_address_field(request));
	if (request->in_data_length == 0)
		return 0;
	/* The rest is the last entry of the map. */
	map->budget = request->device->portions.pages;
	map->written = head;
	/* An object with damaged attributes is not found in the first place. */
	if (request->cdb.map_type != OSD_MAP_DAMAGED_ATTRIBUTES && map_ranges(map) != 0)
		return -EINVAL;
	put_be64(bytes, map->entries * OSD_MAP_ENTRY_BYTES);
	memcpy(request->command->data_in, bytes, head);
	request->command->data_in_length = map->written;
	return 0;
}

int osd_read_map(struct osd_request *request)
{
	struct map map = { .request = request, .end = request->subject.stat.length };

	return answer_map(&map);
}

int osd_read_maps_and_compare(struct osd_request *request)
{
	struct map map = { .request = request };
	uint64_t partition, object;

	if (!request->other.content ||
	    osd_user_object_decode(&request->other, &partition, &object) != 0)
		return osd_fail_field(request, OSD_FIELD_CONTINUATION);
	if (osd_find_named_object(request, partition, object, OSD_PERMISSION_READ, &map.other) != 0)
		return -EINVAL;
	map.end = max_u64(request->subject.stat.length, map.other.stat.length);
	return answer_map(&map);
}
