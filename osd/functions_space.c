/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* SPACE: what takes the space of the device, or of a partition. */
#include <assert.h>
#include <errno.h>

#include "common/bytes.h"
#include "osd/functions.h"

/* Pages that are looked at, unless the initiator says how many: they tell within some hundredths.
 */
#define PAGES_DEFAULT 4096

#define PLACE_BYTES 8
/* Items of 8 bytes, of a part and of a version, each in an ENTRY; and those beside them. */
#define ITEM_BYTES  (OSD_ITEM_HEAD_BYTES + 8)
#define PART_BYTES  (OSD_ITEM_HEAD_BYTES + 7 * ITEM_BYTES)
#define OWN_BYTES   (OSD_ITEM_HEAD_BYTES + 2 * ITEM_BYTES)
#define OTHER_BYTES (8 * ITEM_BYTES + 1024)

static_assert(ENGINE_SURVEY_PARTS * PART_BYTES + ENGINE_SURVEY_VERSIONS * OWN_BYTES + OTHER_BYTES <=
		      OSD_SPACE_BYTES_MIN,
	      "a result has space for all that one transaction finds");

static_assert(OSD_SPACE_DROPS_MAX == ENGINE_SURVEY_DROPS, "the limit on the wire is the engine's");

/* ---- parameters ---- */

/* Versions that would be dropped. */
static int read_drops(struct osd_request *request, struct engine_survey *survey)
{
	struct osd_item_reader reader;
	struct osd_item item;

	osd_items_read(&reader, request->command->data_out + request->out_data,
		       request->out_data_length);
	while (osd_item_next(&reader, &item) == 1) {
		uint64_t version;

		if (item.tag != OSD_ITEM_VERSION)
			continue;
		if (osd_item_number(&item, &version) != 0 || version == 0 ||
		    version >= ENGINE_VIEW_FIRST || survey->drop_count == ENGINE_SURVEY_DROPS)
			return osd_fail_parameter(request, OSD_ITEM_VERSION);
		survey->drop[survey->drop_count++] = (uint32_t)version;
	}
	return 0;
}

/* FROM: the moment before which only versions would stay. */
static int read_horizon(struct osd_request *request, struct engine_survey *survey)
{
	struct engine_moment moment;
	bool given;
	int result;

	if (osd_parameter_moment(request, OSD_ITEM_FROM, &moment, &given) != 0)
		return -EINVAL;
	if (!given)
		return 0;
	result = engine_moment_resolve(request->txn, survey->partition, moment, &survey->horizon);
	return result == -ENOENT ? osd_fail_parameter(request, OSD_ITEM_FROM)
				 : osd_result(request, result, 0);
}

static int read_place(struct osd_request *request, struct engine_survey *survey)
{
	struct osd_item item;

	if (osd_parameter(request, OSD_ITEM_CONTINUATION, &item) != 0)
		return 0;
	if (item.length != PLACE_BYTES)
		return osd_fail_parameter(request, OSD_ITEM_CONTINUATION);
	survey->position = get_be64(item.value);
	return 0;
}

/* ---- the result ---- */

static void add_part(struct osd_item_writer *writer, const struct engine_survey_part *part)
{
	static const uint8_t kinds[] = {
		[ENGINE_SURVEY_PARTITION] = OSD_SPACE_PARTITION,
		[ENGINE_SURVEY_DEVICE] = OSD_SPACE_DEVICE,
		[ENGINE_SURVEY_REMOVED] = OSD_SPACE_REMOVED,
		[ENGINE_SURVEY_OTHERS] = OSD_SPACE_OTHERS,
	};

	osd_item_open(writer, OSD_ITEM_ENTRY);
	osd_item_add_number(writer, OSD_ITEM_KIND, kinds[part->kind]);
	if (part->partition)
		osd_item_add_number(writer, OSD_ITEM_PARTITION, part->partition);
	osd_item_add_number(writer, OSD_ITEM_LIVE, part->live);
	osd_item_add_number(writer, OSD_ITEM_KEPT, part->kept);
	osd_item_add_number(writer, OSD_ITEM_HISTORY, part->history);
	osd_item_add_number(writer, OSD_ITEM_RECLAIMABLE, part->reclaimable);
	osd_item_add_number(writer, OSD_ITEM_FREED, part->freed);
	osd_item_end(writer);
}

static void answer(struct osd_request *request, const struct engine_survey *survey)
{
	uint8_t place[PLACE_BYTES];
	struct osd_item_writer writer;

	osd_result_begin(request, &writer);
	for (uint32_t n = 0; n < survey->part_count; n++)
		add_part(&writer, &survey->parts[n]);
	for (uint32_t n = 0; n < survey->version_count; n++) {
		osd_item_open(&writer, OSD_ITEM_ENTRY);
		osd_item_add_number(&writer, OSD_ITEM_VERSION, survey->versions[n].version);
		osd_item_add_number(&writer, OSD_ITEM_LENGTH, survey->versions[n].bytes);
		osd_item_end(&writer);
	}
	osd_item_add_number(&writer, OSD_ITEM_COUNT, survey->looked_at);
	osd_item_add_number(&writer, OSD_ITEM_PAGES, survey->pages);
	osd_item_add_number(&writer, OSD_ITEM_LENGTH, survey->record_bytes);
	osd_item_add_number(&writer, OSD_ITEM_USED, survey->used_bytes);
	osd_item_add_number(&writer, OSD_ITEM_CAPACITY, survey->capacity_bytes);
	osd_item_add_number(&writer, OSD_ITEM_DEVICE, survey->flash_bytes);
	assert(!writer.full);
	put_be64(place, survey->position);
	osd_result_end(request, &writer, survey->done ? NULL : place, sizeof(place),
		       osd_permille(survey->position, min_u64(survey->wanted, survey->pages)));
}

int osd_function_space(struct osd_request *request)
{
	struct engine_survey survey = {
		.partition = request->subject.address.partition,
		.work = request->device->portions.records,
	};
	int result;

	if (request->subject.address.version != 0)
		return osd_fail_field(request, OSD_FIELD_PARTITION);
	if (request->in_data_length < OSD_SPACE_BYTES_MIN)
		return osd_fail_field(request, osd_length_field(request));
	if (osd_parameter_number(request, OSD_ITEM_COUNT, PAGES_DEFAULT, &survey.wanted) != 0 ||
	    read_drops(request, &survey) != 0 || read_horizon(request, &survey) != 0 ||
	    read_place(request, &survey) != 0)
		return -EINVAL;
	if (survey.wanted == 0)
		return osd_fail_parameter(request, OSD_ITEM_COUNT);
	result = engine_survey(request->txn, &survey);
	if (result == -ENOENT)
		return osd_fail_parameter(request, OSD_ITEM_VERSION);
	if (result != 0)
		return osd_result(request, result, 0);
	answer(request, &survey);
	return 0;
}
