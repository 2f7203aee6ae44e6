/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * receive: stores what `send` has written. A new partition is removed again if anything goes wrong,
 * and one that there was before goes back to the version that it was a copy of. A mark says so much
 * to the next one, should this one be killed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/items.h"
#include "client/ctl/places.h"
#include "client/ctl/send.h"
#include "common/bytes.h"

#define PARAMETERS_BYTES 256
#define SETS_MAX         64
#define SET_BYTES_MAX    (256u << 10)

enum { MARK_WHOLE = 1, MARK_DIFFERENCES = 2 };

struct receiving {
	struct ctl *ctl;
	struct stream stream;
	struct stream_header header;
	struct osd_client_address partition;
	char name[OSD_VERSION_NAME_MAX + 1]; /* that a new partition gets; "": none */
	struct send_version base;            /* what differences begin at */
	bool begun;                          /* what is there is to be taken back if it fails */
	uint64_t object;                     /* whose records come */
	bool is_new, is_pending;             /* of the stream; it has not been made yet */
	uint64_t written_end;                /* of a new one */
	/* Attributes of the object that wait to be set together. */
	struct osd_client_value sets[SETS_MAX];
	uint32_t set_count, set_bytes;
	uint8_t *set_data;
	struct progress progress;
	struct osd_client_error error;
	struct error_text sentence; /* of the stream */
};

static struct osd_client_address object_of(const struct receiving *receiving)
{
	struct osd_client_address address = receiving->partition;

	address.object = receiving->object;
	return address;
}

/* ---- attributes ---- */

static int set_waiting(struct receiving *receiving)
{
	uint32_t count = receiving->set_count;

	receiving->set_count = receiving->set_bytes = 0;
	return count ? osd_client_set_attributes(receiving->ctl->client, object_of(receiving),
						 receiving->sets, count, &receiving->error)
		     : 0;
}

/* Length 0 takes it away. */
static int set_attribute(struct receiving *receiving, uint32_t page, uint32_t number,
			 const uint8_t *value, uint32_t length)
{
	uint8_t *at;
	int result = 0;

	if (receiving->set_count == SETS_MAX || receiving->set_bytes + length > SET_BYTES_MAX)
		result = set_waiting(receiving);
	at = receiving->set_data + receiving->set_bytes;
	if (length)
		memcpy(at, value, length);
	receiving->sets[receiving->set_count++] = (struct osd_client_value){
		.page = page, .number = number, .value = at, .length = length
	};
	receiving->set_bytes += length;
	return result;
}

static int take_away(void *context, const struct osd_attribute *attribute)
{
	struct receiving *receiving = context;

	if (!send_is_carried(receiving->object == 0, attribute->page, attribute->number))
		return 0;
	return set_attribute(receiving, attribute->page, attribute->number, NULL, 0);
}

/* Those that follow are all that there are. */
static int begin_attributes(struct receiving *receiving)
{
	if (receiving->is_new)
		return 0;
	return osd_client_get_all_attributes(receiving->ctl->client, object_of(receiving),
					     take_away, receiving, &receiving->error);
}

static int take_attribute(struct receiving *receiving, const struct stream_record *record)
{
	uint32_t page, number;

	if (record->length < 8 || record->length > 8 + OSD_ATTRIBUTE_BYTES_MAX)
		return -EBADMSG;
	page = get_be32(record->data);
	number = get_be32(record->data + 4);
	/* Nothing of the stream may set what is not an object's own. */
	if (!send_is_carried(record->object == 0, page, number))
		return -EBADMSG;
	return set_attribute(receiving, page, number, record->data + 8, record->length - 8);
}

/* ---- data ---- */

static int create(struct receiving *receiving)
{
	receiving->is_pending = false;
	return osd_client_create(receiving->ctl->client, receiving->partition.partition,
				 receiving->object, 1, NULL, NULL, &receiving->error);
}

/* One command. */
static int store(struct receiving *receiving, uint64_t offset, const uint8_t *data, size_t length)
{
	struct osd_client *client = receiving->ctl->client;
	int result = 0;

	if (receiving->is_pending && offset == 0 && length) {
		receiving->is_pending = false;
		return osd_client_create_and_write(client, receiving->partition.partition,
						   receiving->object, data, length, NULL,
						   &receiving->error);
	}
	if (receiving->is_pending)
		result = create(receiving);
	return result ? result
		      : osd_client_write(client, object_of(receiving), offset, data, length,
					 &receiving->error);
}

/* A record may have more than this initiator sends at once. */
static int take_data(struct receiving *receiving, const struct stream_record *record)
{
	size_t chunk = receiving->ctl->options->chunk_bytes;
	uint32_t done = 0;
	int result;

	progress_add(&receiving->progress, record->length, 0);
	if (receiving->is_new)
		receiving->written_end = record->offset + record->length;
	do {
		size_t part = min_u64(record->length - done, chunk);

		result = store(receiving, record->offset + done, record->data + done, part);
		done += (uint32_t)part;
	} while (result == 0 && done < record->length);
	return result;
}

static int take_hole(struct receiving *receiving, const struct stream_record *record)
{
	if (record->length != 8)
		return -EBADMSG;
	return osd_client_clear(receiving->ctl->client, object_of(receiving), record->offset,
				get_be64(record->data), &receiving->error);
}

static int take_length(struct receiving *receiving, const struct stream_record *record)
{
	int result = receiving->is_pending ? create(receiving) : 0;

	if (result || (receiving->is_new && receiving->written_end == record->offset))
		return result;
	return osd_client_truncate(receiving->ctl->client, object_of(receiving), record->offset,
				   &receiving->error);
}

/* ---- records ---- */

static int go_to_object(struct receiving *receiving, const struct stream_record *record)
{
	int result;

	if (receiving->object == record->object)
		return 0;
	result = set_waiting(receiving);
	receiving->object = record->object;
	receiving->is_new = receiving->is_pending = false;
	return result;
}

static int take_record(struct receiving *receiving, const struct stream_record *record)
{
	int result = go_to_object(receiving, record);

	if (result)
		return result;
	/* Only attributes are those of the partition. */
	if (record->object < OSD_FIRST_ID &&
	    (record->object ||
	     (record->type != STREAM_ATTRIBUTES && record->type != STREAM_ATTRIBUTE)))
		return -EBADMSG;
	switch (record->type) {
	case STREAM_OBJECT:
		receiving->is_new = receiving->is_pending = true;
		receiving->written_end = 0;
		return 0;
	case STREAM_REMOVED:
		return osd_client_remove(receiving->ctl->client, object_of(receiving),
					 &receiving->error);
	case STREAM_DATA:
		return take_data(receiving, record);
	case STREAM_HOLE:
		return take_hole(receiving, record);
	case STREAM_LENGTH:
		return take_length(receiving, record);
	case STREAM_ATTRIBUTES:
		return begin_attributes(receiving);
	default:
		return take_attribute(receiving, record);
	}
}

static int take_records(struct receiving *receiving)
{
	struct stream_record record;
	int result;

	while ((result = stream_read(&receiving->stream, &record, &receiving->sentence)) == 1) {
		result = progress_interrupted() ? -ECANCELED : take_record(receiving, &record);
		if (result < 0)
			return result;
	}
	return result ? result : set_waiting(receiving);
}

/* ---- before and behind them ---- */

static int set_mark(struct receiving *receiving, uint8_t mark)
{
	const struct osd_client_value set = { TREE_PARTITION_PAGE, SEND_UNDER_WAY, &mark, 1 };

	receiving->begun = true;
	return osd_client_set_attributes(receiving->ctl->client, receiving->partition, &set, 1,
					 &receiving->error);
}

/* 0: there is none. */
static uint8_t mark_of(struct receiving *receiving, int *result)
{
	uint8_t mark = 0;

	*result = osd_client_get_attribute(receiving->ctl->client, receiving->partition,
					   TREE_PARTITION_PAGE, SEND_UNDER_WAY, &mark, 1, NULL,
					   &receiving->error);
	if (*result == -ENODATA)
		*result = 0;
	return mark;
}

static int begin_whole(struct receiving *receiving)
{
	struct ctl *ctl = receiving->ctl;
	uint64_t id = receiving->partition.partition;
	int result = -ENOENT;
	uint8_t mark = id ? mark_of(receiving, &result) : 0;

	if (result == 0 && mark != MARK_WHOLE)
		return ctl_fail(ctl, CTL_EXISTS,
				"receive: partition 0x%" PRIx64
				" is there already; give another ID or a new name, or remove it "
				"first",
				id);
	/* An earlier one was killed: this one begins anew. */
	if (result == 0)
		result = osd_client_remove_partition(ctl->client, id, true, &receiving->error);
	if (result == 0 || result == -ENOENT)
		result = osd_client_create_named(
			ctl->client, id, 0, receiving->name[0] ? receiving->name : NULL,
			&receiving->partition.partition, &receiving->error);
	if (result == 0)
		result = set_mark(receiving, MARK_WHOLE);
	return result ? ctl_fail_command(ctl, &receiving->error) : CTL_OK;
}

static int go_back(struct receiving *receiving)
{
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_item_add_number(&writer, OSD_ITEM_VERSION, receiving->base.number);
	return osd_client_execute(receiving->ctl->client, OSD_FUNCTION_ROLLBACK,
				  receiving->partition, writer.data, writer.length, NULL, NULL,
				  &receiving->error);
}

static int note_difference(void *context, const uint8_t *data, size_t length)
{
	struct osd_item item;

	(void)context;
	return osd_item_find(data, length, OSD_ITEM_ENTRY, &item) == 0 ? -EEXIST : 0;
}

/* -EEXIST: the partition is not what its base is. */
static int compare_with_base(struct receiving *receiving)
{
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_item_open(&writer, OSD_ITEM_FROM);
	osd_item_add_number(&writer, OSD_ITEM_VERSION, receiving->base.number);
	osd_item_end(&writer);
	return osd_client_execute(receiving->ctl->client, OSD_FUNCTION_DIFF, receiving->partition,
				  writer.data, writer.length, note_difference, NULL,
				  &receiving->error);
}

static void encode_received(const struct stream_header *header, uint64_t sequence,
			    uint8_t received[SEND_RECEIVED_BYTES])
{
	memcpy(received, header->system, STREAM_SYSTEM_BYTES);
	put_be64(received + STREAM_SYSTEM_BYTES, header->partition);
	put_be64(received + STREAM_SYSTEM_BYTES + 8, sequence);
}

/* Whether the partition is a copy of what the differences begin at. */
static int check_received(struct receiving *receiving)
{
	uint8_t wanted[SEND_RECEIVED_BYTES], found[SEND_RECEIVED_BYTES] = { 0 };
	struct ctl *ctl = receiving->ctl;
	uint64_t id = receiving->partition.partition;
	int result = osd_client_get_attribute(ctl->client, receiving->partition,
					      TREE_PARTITION_PAGE, SEND_RECEIVED, found,
					      sizeof(found), NULL, &receiving->error);

	encode_received(&receiving->header, receiving->header.from, wanted);
	if (result == 0 && memcmp(found, wanted, sizeof(wanted)) == 0)
		return CTL_OK;
	if (result < 0 && result != -ENODATA)
		return ctl_fail_command(ctl, &receiving->error);
	if (result == 0 && memcmp(found, wanted, SEND_RECEIVED_BYTES - 8) == 0)
		return ctl_fail(ctl, CTL_TARGET,
				"receive: partition 0x%" PRIx64 " is a copy of #%" PRIu64
				", and the stream goes from #%" PRIu64 " to #%" PRIu64
				": send from the version that it is a copy of",
				id, get_be64(found + SEND_RECEIVED_BYTES - 8),
				receiving->header.from, receiving->header.to);
	return ctl_fail(ctl, CTL_TARGET,
			"receive: partition 0x%" PRIx64
			" is no copy of what the stream's differences begin at",
			id);
}

static int begin_differences(struct receiving *receiving)
{
	struct ctl *ctl = receiving->ctl;
	char name[OSD_VERSION_NAME_MAX + 1];
	uint8_t mark;
	int result, code = check_received(receiving);

	if (code == CTL_OK)
		code = send_find_version(ctl, receiving->partition,
					 send_version_name(receiving->header.from, name),
					 &receiving->base);
	/* It was dropped, or the one that received it was killed before its last command. */
	if (code == CTL_NOT_FOUND)
		fprintf(stderr,
			"muninnctl: receive: if nobody has changed partition 0x%" PRIx64
			" since it was received, `muninnctl snapshot URL 0x%" PRIx64
			" --name %s` makes it\n",
			receiving->partition.partition, receiving->partition.partition, name);
	if (code != CTL_OK)
		return code;
	mark = mark_of(receiving, &result);
	if (result == 0 && mark == 0)
		result = compare_with_base(receiving);
	if (result == -EEXIST && !ctl->options->force)
		return ctl_fail(ctl, CTL_TARGET,
				"receive: partition 0x%" PRIx64
				" has changed since it was received; --force takes it back to %s "
				"first",
				receiving->partition.partition, name);
	/* An earlier one was killed, or somebody has changed it. */
	if (result == -EEXIST || (result == 0 && mark))
		result = go_back(receiving);
	if (result == 0)
		result = set_mark(receiving, MARK_DIFFERENCES);
	return result ? ctl_fail_command(ctl, &receiving->error) : CTL_OK;
}

/*
 * Versions survive rollbacks, so an earlier `receive` may have left one of that name, whose answer
 * was lost or whose copy somebody has taken back since.
 */
static int keep_version(struct receiving *receiving, const char *name)
{
	uint8_t parameters[PARAMETERS_BYTES];
	struct osd_item_writer writer;
	int result;

	osd_items_begin(&writer, parameters, sizeof(parameters));
	osd_item_add_text(&writer, OSD_ITEM_NAME, name);
	for (int tries = 0; tries < 2; tries++) {
		result = osd_client_execute(receiving->ctl->client, OSD_FUNCTION_SNAPSHOT,
					    receiving->partition, writer.data, writer.length, NULL,
					    NULL, &receiving->error);
		if (result != -EEXIST || tries)
			break;
		result = osd_client_execute(receiving->ctl->client, OSD_FUNCTION_DROP,
					    receiving->partition, writer.data, writer.length, NULL,
					    NULL, &receiving->error);
		if (result)
			break;
	}
	return result;
}

/*
 * From one command on it is a copy of the new version. What is kept of it is made after that, as
 * it must show what the partition is.
 */
static int finish(struct receiving *receiving)
{
	uint8_t received[SEND_RECEIVED_BYTES];
	const struct osd_client_value sets[] = {
		{ TREE_PARTITION_PAGE, SEND_RECEIVED, received, sizeof(received) },
		{ TREE_PARTITION_PAGE, SEND_UNDER_WAY, NULL, 0 },
	};
	char name[OSD_VERSION_NAME_MAX + 1];
	int result;

	encode_received(&receiving->header, receiving->header.to, received);
	result = osd_client_set_attributes(receiving->ctl->client, receiving->partition, sets, 2,
					   &receiving->error);
	return result ? result
		      : keep_version(receiving, send_version_name(receiving->header.to, name));
}

/* ---- if it fails ---- */

static void take_back(struct receiving *receiving)
{
	uint64_t id = receiving->partition.partition;
	bool is_whole = receiving->header.from == 0;
	int result = -EIO;

	if (!receiving->begun)
		return;
	if (ctl_recover(receiving->ctl))
		result = is_whole ? osd_client_remove_partition(receiving->ctl->client, id, true,
								&receiving->error)
				  : go_back(receiving);
	if (result == 0)
		fprintf(stderr, "muninnctl: receive: partition 0x%" PRIx64 " is %s\n", id,
			is_whole ? "removed again" : "as it was before");
	else
		fprintf(stderr,
			"muninnctl: receive: partition 0x%" PRIx64
			" is not whole: the next `receive` takes back what is there, and begins "
			"anew\n",
			id);
}

static int fail(struct receiving *receiving, int result)
{
	struct ctl *ctl = receiving->ctl;

	if (progress_interrupted() || result == -ECANCELED)
		return ctl_fail(ctl, CTL_INTERRUPTED, "receive: interrupted");
	if (receiving->sentence.text[0])
		return ctl_fail(ctl, result == -EBADMSG ? CTL_BAD_DATA : CTL_LOCAL, "receive: %s",
				receiving->sentence.text);
	if (result == -EBADMSG && receiving->error.result == 0)
		return ctl_fail(ctl, CTL_BAD_DATA,
				"receive: the stream has a record that makes no sense before "
				"byte %" PRIu64,
				receiving->stream.bytes);
	return ctl_fail_command(ctl, &receiving->error);
}

/* ---- the verb ---- */

/* The argument: a partition of the present, the name of one to make, or nothing. */
static int receive_into(struct receiving *receiving)
{
	struct ctl *ctl = receiving->ctl;
	struct ctl_place place;
	int code = ctl_place_to_make(ctl, 0, &place);

	if (code != CTL_OK || ctl->argument_count == 0)
		return code;
	if (!place.new_name[0] && !place.address.partition)
		return ctl_fail(ctl, CTL_USAGE,
				"receive needs a partition, PID or a name; '%s' is the device",
				ctl->arguments[0]);
	receiving->partition = place.address;
	/* Also of one that is there: it has to be made anew if an earlier `receive` was killed. */
	if (ctl_place_is_named(&place))
		memcpy(receiving->name, place.partition, place.partition_length);
	return CTL_OK;
}

static int begin(struct receiving *receiving)
{
	struct ctl *ctl = receiving->ctl;
	int result, code = receive_into(receiving);

	if (code != CTL_OK)
		return code;
	result = stream_read_header(&receiving->stream, &receiving->header, &receiving->sentence);
	if (result < 0)
		return fail(receiving, result);
	if (receiving->name[0] && !receiving->partition.partition && receiving->header.from)
		return ctl_fail(
			ctl, CTL_NOT_FOUND,
			"receive: the stream has differences, and no partition has the name "
			"'%s'",
			receiving->name);
	if (ctl->argument_count == 0)
		receiving->partition.partition = receiving->header.partition;
	code = ctl_connect(ctl);
	if (code != CTL_OK)
		return code;
	ctl_catch_signals(ctl);
	return receiving->header.from ? begin_differences(receiving) : begin_whole(receiving);
}

static int receive(struct receiving *receiving)
{
	struct ctl *ctl = receiving->ctl;
	int result, code = begin(receiving);

	if (code == CTL_OK) {
		progress_begin(&receiving->progress, ctl, "receive", 0, 0);
		result = take_records(receiving);
		if (result == 0)
			result = finish(receiving);
		progress_end(&receiving->progress);
		code = result < 0 ? fail(receiving, result) : CTL_OK;
	}
	if (code != CTL_OK)
		take_back(receiving);
	return code == CTL_OK ? ctl_print_id(ctl, "partition", receiving->partition.partition)
			      : code;
}

int verb_receive(struct ctl *ctl)
{
	struct receiving *receiving = calloc(1, sizeof(*receiving));
	int code;

	if (receiving)
		receiving->set_data = malloc(SET_BYTES_MAX + OSD_ATTRIBUTE_BYTES_MAX);
	if (!receiving || !receiving->set_data ||
	    stream_open(&receiving->stream, STDIN_FILENO, "standard input") < 0) {
		code = ctl_fail(ctl, CTL_LOCAL, "receive: no memory");
	} else {
		receiving->ctl = ctl;
		code = receive(receiving);
		stream_close(&receiving->stream);
	}
	if (receiving)
		free(receiving->set_data);
	free(receiving);
	return code;
}
